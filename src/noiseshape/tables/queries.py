"""What is asked of a table of counts, how accurately, and about whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, floats, frozen
from ..archive import digest, pack, unpack
from ..errors import InvalidInput
from ..privacy import People, Profile
from .layout import Layout, domain
from .targets import variances


@dataclass(frozen=True, eq=False)
class Query:
    """One question, or one for each of several labels.

    Attributes
    ----------
    name
        What the question is called; unique among those asked together.
    rows : shape (r, d)
        One linear combination of the cells for each label.
    variance : shape (r,)
        Target variance of each.
    labels
        r texts, such as the cells of a marginal.
    """

    name: str
    rows: Floats
    variance: Floats
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Queries:
    """Linear queries over d cells, each with its own accuracy target.

    Parameters
    ----------
    cells
        The cells' labels (or how many there are): the declared domain, never learnt from data.
    people
        Whose privacy is protected.
    rows_may_leave
        Whether a policy (a filter, values dropped as outside) can take a person's row out of
        the cells altogether; matters under ``replace``.
    table
        The custodian's name of the table that is counted. Releases about the cells of one named
        table, in one vintage, add up cell by cell in the ledger; without a name they never do,
        since equal labels may stand for other cells.
    selection
        Words that name the policies by which rows were selected; releases with other words
        do not add up cell by cell either.
    layout
        Where rows of a declared table are counted; a :class:`Workload` makes it, and cells
        without one are whatever the caller counted.

    Examples
    --------
    >>> import numpy as np
    >>> asked = (Queries(["young", "old"])
    ...     .ask("total", [[1, 1]], stderr=10)
    ...     .ask("ages", np.eye(2), stderr=20, labels=["young", "old"]))
    >>> asked
    Queries(3 answers to 2 queries over 2 cells, add-remove)
    """

    cells: tuple[str, ...]
    people: People = field(default_factory=People)
    rows_may_leave: bool = False
    table: str | None = None
    selection: str = "every row"
    queries: tuple[Query, ...] = ()
    layout: Layout | None = None

    def __init__(
        self,
        cells: int | Iterable[str],
        people: People | None = None,
        *,
        rows_may_leave: bool = False,
        table: str | None = None,
        selection: str = "every row",
        queries: Sequence[Query] = (),
        layout: Layout | None = None,
    ) -> None:
        if isinstance(cells, (int, np.integer)):
            cells = [str(i) for i in range(int(cells))]
        if isinstance(cells, str) or not isinstance(cells, Iterable):
            raise InvalidInput("cells must be a list of labels, or how many cells there are.")
        if people is not None and not isinstance(people, People):
            raise InvalidInput('people must be People, such as People("patient", max_rows=2).')
        cells = tuple(_text("a cell's label", str(cell)) for cell in cells)
        if not cells:
            raise InvalidInput("queries need at least one cell to ask about.")
        if len(set(cells)) != len(cells):
            raise InvalidInput("the cells' labels must differ from each other.")
        for name, value in {
            "cells": cells,
            "people": people or People(),
            "rows_may_leave": bool(rows_may_leave),
            "table": None if table is None else _text("the table's name", table),
            "selection": _text("selection", selection),
            "queries": tuple(queries),
            "layout": layout,
        }.items():
            object.__setattr__(self, name, value)

    def ask(
        self,
        name: str,
        rows: ArrayLike,
        *,
        variance: ArrayLike | None = None,
        stderr: ArrayLike | None = None,
        margin: ArrayLike | None = None,
        labels: Sequence[str] | None = None,
    ) -> Queries:
        """Return these queries and one more.

        Parameters
        ----------
        rows : shape (d,) or (r, d)
            Linear combinations of the cells.
        variance, stderr, margin
            One of the three: the target as a variance, a standard error, or the half-width of
            a 95 % interval; one for all rows or one a row.
        labels
            A text for each row; by default the cells' labels where each row is one cell, in
            order, and numbers elsewhere.
        """
        if not _text("a query's name", name):
            raise InvalidInput("a query needs a name.")
        if any(query.name == name for query in self.queries):
            raise InvalidInput(f"a query named {name!r} is asked already: give it another name.")
        W = np.atleast_2d(floats(f"the rows of {name!r}", rows))
        if W.ndim != 2 or W.shape[1] != len(self.cells) or not len(W):
            raise InvalidInput(
                f"the rows of {name!r} must have one entry for each of {len(self.cells)} cells, "
                f"got shape {np.shape(rows)}."
            )
        c = variances(name, len(W), variance=variance, stderr=stderr, margin=margin)
        empty = np.flatnonzero(~W.any(axis=1))
        if empty.size:
            raise InvalidInput(f"row {empty[0]} of {name!r} asks nothing: all its entries are 0.")
        each: Sequence[object] = range(len(W))
        if isinstance(labels, str):
            raise InvalidInput(f"the labels of {name!r} must be a list of texts, got one text.")
        if labels is not None:
            each = labels
        elif labels is None and np.array_equal(W, np.eye(len(self.cells))):
            each = self.cells
        texts = tuple(_text(f"a label of {name!r}", str(t)) for t in each)
        if len(W) == 1 and labels is None:
            texts = ("",)
        if len(texts) != len(W) or len(set(texts)) != len(texts):
            raise InvalidInput(f"{name!r} needs {len(W)} labels that differ from each other.")
        return replace_queries(self, (*self.queries, Query(name, frozen(W), frozen(c), texts)))

    @cached_property
    def matrix(self) -> Floats:
        """W, shape (m, d): the rows of every query, one after the other."""
        W = np.vstack([query.rows for query in self._asked()])
        return frozen(W)

    @cached_property
    def variance(self) -> Floats:
        """c, shape (m,): the target variance of every row."""
        return frozen(np.concatenate([query.variance for query in self._asked()]))

    def _asked(self) -> tuple[Query, ...]:
        if not self.queries:
            raise InvalidInput("nothing is asked yet: add queries with ask(...).")
        return self.queries

    @property
    def names(self) -> tuple[str, ...]:
        """The query that each of the m rows belongs to."""
        return tuple(query.name for query in self.queries for _ in query.labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each of the m rows within its query."""
        return tuple(label for query in self.queries for label in query.labels)

    @property
    def domain(self) -> str:
        """A digest of the table's name and cells: equal for releases about the same cells."""
        if self.layout is not None:
            return domain(self.table, self.layout.schema)
        return digest({"table": self.table, "cells": self.cells})

    @property
    def reach(self) -> NDArray[np.int64] | None:
        """What one row can add to the data, (d, c) in its columns; None for one cell each."""
        return None if self.layout is None else self.layout.reach

    def charged(self, profile: Profile) -> Profile | None:
        """Return what a release costs in each cell of ``domain``; None where it is not told."""
        return profile if self.layout is None else self.layout.charged(profile)

    def same_subject(self, other: Queries) -> bool:
        """Return whether two sets of queries are about the same cells, people and rows."""
        mine, theirs = (
            (q.cells, q.people, q.rows_may_leave, q.table, q.selection) for q in (self, other)
        )
        return mine == theirs

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say all of this, and nothing of any data."""
        return {
            "cells": list(self.cells),
            "people": {
                "unit": self.people.unit,
                "max_rows": self.people.max_rows,
                "neighbours": self.people.neighbours,
            },
            "rows_may_leave": self.rows_may_leave,
            "table": self.table,
            "selection": self.selection,
            "layout": None if self.layout is None else self.layout.to_json(),
            "queries": [
                {
                    "name": query.name,
                    "labels": list(query.labels),
                    "rows": pack(query.rows),
                    "variance": pack(query.variance),
                }
                for query in self.queries
            ],
        }

    @staticmethod
    def from_json(content: dict[str, Any]) -> Queries:
        """Return the queries that ``to_json`` said, checked as if typed anew."""
        layout = content["layout"]
        asked = Queries(
            content["cells"],
            People(**content["people"]),
            rows_may_leave=content["rows_may_leave"],
            table=content["table"],
            selection=content["selection"],
            layout=None if layout is None else Layout.from_json(layout),
        )
        if asked.layout is not None and asked.layout.labels != asked.cells:
            raise InvalidInput("the plan's cells do not fit its schema: make the plan anew.")
        for query in content["queries"]:
            rows, variance = unpack(query["rows"]), unpack(query["variance"])
            asked = asked.ask(query["name"], rows, variance=variance, labels=query["labels"])
        return asked

    def __repr__(self) -> str:
        answers = sum(len(query.labels) for query in self.queries)
        return (
            f"Queries({answers} answers to {len(self.queries)} queries over {len(self.cells)} "
            f"cells, {self.people.neighbours})"
        )


def _text(what: str, value: str) -> str:
    """Return text that any file can hold, or refuse it now rather than when it is published."""
    if not isinstance(value, str) or not value.isprintable():  # half a surrogate is not
        raise InvalidInput(f"{what} must be printable text, got {type(value).__name__}.")
    return value


def replace_queries(asked: Queries, queries: Sequence[Query]) -> Queries:
    """Return the same cells and people, asked other queries."""
    return Queries(
        asked.cells,
        asked.people,
        rows_may_leave=asked.rows_may_leave,
        table=asked.table,
        selection=asked.selection,
        queries=queries,
        layout=asked.layout,
    )
