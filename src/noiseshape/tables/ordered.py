"""What is asked of one ordered column of many values: prefixes, ranges, all ranges by length.

Of a million values there are half a trillion ranges, and a matrix of prefixes would take eight
terabytes. So a query here is where its ranges begin and end; of all ranges, which nobody can list,
it is a target for each band of length, and the prefixes that every range is a difference of are
published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, whole
from ..archive import pack, unpack
from ..errors import InvalidInput, TooLarge
from ..privacy import People
from .engine import Rows
from .layout import Atoms, Layout, domain
from .schema import Schema
from .steps import Steps

Ints = NDArray[np.int64]

# A column of more values than this is planned by structured strategies: weights that are written
# out, one for each value and answer, would take hundreds of megabytes and minutes.
MOST_WRITTEN = 4096

# Cells of the column times those it is split by.
MOST_CELLS = 1 << 26


@dataclass(frozen=True, eq=False)
class Ranges:
    """One query about an ordered column.

    Attributes
    ----------
    name, column, by
        What it is called, the column, and the columns that split it.
    kind
        "prefixes", "ranges", "all ranges", "cells" or "total".
    low, high : integers, shape (m,)
        The cells from low up to, and without, high, of each published answer.
    variance : shape (m,)
        Their targets.
    longest, each : shape (bands,)
        Of all ranges: ranges of up to so many values, and longer than the band before, have this
        target variance. Empty for others.
    """

    name: str
    column: str
    by: tuple[str, ...]
    kind: str
    low: Ints
    high: Ints
    variance: Floats
    longest: tuple[int, ...] = ()
    each: tuple[float, ...] = ()

    def labels(self, schema: Schema) -> list[str]:
        """Return a text for each answer within its group: "x<=4", "x=2-7"."""
        named = schema.columns[self.column].label
        if self.kind == "total":
            return [""]
        if self.kind in ("prefixes", "all ranges"):
            return [f"{self.column}<={named(high - 1)}" for high in self.high.tolist()]
        ends = zip(self.low.tolist(), self.high.tolist(), strict=True)
        return [f"{self.column}={_range(named(low), named(high - 1))}" for low, high in ends]


def bands(name: str, values: int, lengths: Sequence[int] | None) -> tuple[int, ...]:
    """Return the longest range of each band, checked: the last band reaches all values."""
    if lengths is None:
        return (values,)
    found = tuple(whole(f"a length of {name!r}", length) for length in lengths)
    if not found or any(b <= a for a, b in pairwise(found)) or found[-1] != values:
        raise InvalidInput(
            f"the lengths of {name!r} end its bands, from short ranges to long: they increase, and "
            f"the last is all {values:,} values."
        )
    return found


def by_band(longest: Sequence[int], each: Sequence[float] | Floats) -> Floats:
    """Return the target of ranges of 1, 2, ... values."""
    sizes = np.diff([0, *longest])
    return np.repeat(np.asarray(each, dtype=np.float64), sizes)


@dataclass(frozen=True, eq=False)
class Ordered:
    """Queries about one ordered column, split by others or by none.

    Parameters
    ----------
    schema, people, table
        As of a workload.
    queries
        What is asked: all of one column, and split by the same columns.
    """

    schema: Schema
    people: People
    table: str | None
    queries: tuple[Ranges, ...]

    def __post_init__(self) -> None:
        if not self.queries:
            raise InvalidInput("nothing is asked yet: add queries, such as prefixes(column, ...).")
        first = self.queries[0]
        for query in self.queries:
            if (query.column, query.by) != (first.column, first.by):
                raise InvalidInput(
                    f"{query.name!r} and {first.name!r} are about other columns: what is asked of "
                    "a column of many values is about it alone, all split by the same columns; "
                    "plan them in two workloads."
                )
        if self.schema.zeros:
            raise InvalidInput(
                "impossible cells are left out of a table, and a column of many values is measured "
                "whole: declare the schema without them."
            )
        if self.cells > MOST_CELLS:
            split, fewer = "", ""
            if self.by:
                split, fewer = f" split by {', '.join(self.by)}", "split it by fewer columns, or "
            raise TooLarge(
                f"{self.column}{split} makes {self.cells:,} cells, and at most {MOST_CELLS:,} are "
                f"counted in one plan: {fewer}declare it in coarser steps."
            )

    @property
    def column(self) -> str:
        """The ordered column."""
        return self.queries[0].column

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that split it."""
        return self.queries[0].by

    @property
    def size(self) -> int:
        """Cells of the column: its values, then those of its policies."""
        return self.schema.columns[self.column].size

    @property
    def values(self) -> int:
        """Declared values of the column."""
        return self.schema.columns[self.column].regular

    @property
    def groups(self) -> int:
        """How many parts it is split into."""
        return math.prod(self.schema.columns[name].size for name in self.by)

    @property
    def cells(self) -> int:
        """How many integers the data is: groups x cells of the column."""
        return self.groups * self.size

    @property
    def rows_may_leave(self) -> bool:
        """Whether a policy can take a person's row out of the table."""
        return self.schema.rows_may_leave or self.people.unit != "rows"

    @property
    def domain(self) -> str:
        """A digest of the table's name and schema."""
        return domain(self.table, self.schema)

    @cached_property
    def layout(self) -> Layout:
        """Where rows are counted: the columns that split, then the ordered one, cell by cell."""
        axes = []
        for name in (*self.by, self.column):
            cells = np.arange(self.schema.columns[name].size)
            axes.append(Atoms(name, Steps(cells, cells)))
        return Layout(self.schema, tuple(axes))

    @property
    def low(self) -> Ints:
        """Where every published range begins, of all queries in order."""
        return np.concatenate([query.low for query in self.queries])

    @property
    def high(self) -> Ints:
        """The first cell after every published range."""
        return np.concatenate([query.high for query in self.queries])

    @property
    def variance(self) -> Floats:
        """The targets of every published range."""
        return np.concatenate([query.variance for query in self.queries])

    @cached_property
    def by_length(self) -> Floats | None:
        """The target of any range of 1, 2, ... values, where all ranges are asked."""
        found = [by_band(q.longest, q.each) for q in self.queries if q.longest]
        return np.minimum.reduce(found) if found else None

    def group_labels(self) -> list[str]:
        """Return a text for each part: "sex=F"."""
        axes = [[f"{n}={label}" for label in self.schema.columns[n].labels()] for n in self.by]
        return [", ".join(parts) for parts in product(*axes)]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say all of this; prefixes by their number alone."""
        said = []
        for q in self.queries:
            constant = bool((q.variance == q.variance[0]).all())
            listed = q.kind == "ranges"
            said.append(
                [q.name, q.kind, pack(np.stack([q.low, q.high])) if listed else len(q.low),
                 float(q.variance[0]) if constant else pack(np.ascontiguousarray(q.variance)),
                 list(q.longest), list(q.each)]
            )  # fmt: skip
        return {
            "schema": self.schema.to_json(),
            "people": asdict(self.people),
            "table": self.table,
            "column": self.column,
            "by": list(self.by),
            "queries": said,
        }

    @staticmethod
    def from_json(content: dict[str, Any]) -> Ordered:
        """Return the queries that ``to_json`` said."""
        schema = Schema.from_json(content["schema"])
        column, by = str(content["column"]), tuple(map(str, content["by"]))
        size = schema.columns[column].size
        queries = []
        for name, kind, where, target, longest, each in content["queries"]:
            low, high = spans_of(kind, where, size) if isinstance(where, int) else unpack(where)
            variance = np.float64(target) if isinstance(target, float) else unpack(target)
            queries.append(
                Ranges(str(name), column, by, str(kind), low, high,
                       np.broadcast_to(variance, low.shape), tuple(longest), tuple(each))
            )  # fmt: skip
        return Ordered(schema, People(**content["people"]), content["table"], tuple(queries))


@dataclass(frozen=True, eq=False, repr=False)
class Cells(Rows):
    """Rows of people, counted in every cell of a column: millions of counts, as arrays."""

    def read(self) -> NDArray[Any]:
        """Count the rows: exact integers, one for each cell of each group."""
        counts = np.zeros(self.layout.grid_size, dtype=np.int64)
        columns = self.engine.arrays(self.statement)
        if columns:  # some engines return no columns where they return no rows
            *axes, rows = (np.asarray(column).astype(np.int64) for column in columns)
            at = np.ravel_multi_index(tuple(axes), self.layout.shape)
            np.add.at(counts, at, rows)
        return counts


def spans_of(kind: str, count: int, size: int) -> tuple[Ints, Ints]:
    """Return where the ranges of a kind begin and end, whose number says them."""
    if kind == "total":
        return np.zeros(1, dtype=np.int64), np.array([size])
    ends = np.arange(1, count + 1)
    return (ends - 1 if kind == "cells" else np.zeros(count, dtype=np.int64)), ends


def _range(low: str, high: str) -> str:
    if low == high:
        return low
    return f"{low}-{high}" if "-" not in low + high else f"{low} to {high}"
