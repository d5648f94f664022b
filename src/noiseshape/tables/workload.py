"""What is asked of a declared table, each with its own accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import floats, whole
from .._memory import kept
from ..errors import InvalidInput, TooLarge
from ..privacy import People
from .asks import Products
from .domains import Integers
from .layout import Family, Layout, Question, fits
from .ordered import MOST_WRITTEN, Ordered, Ranges, bands, by_band, spans_of
from .queries import Queries
from .schema import Schema, View
from .steps import Steps
from .targets import Reference, from_cv, variances

Names = str | Sequence[str]

# More answers than this in one query cannot be planned densely on any machine of today; their
# labels alone are half a kilobyte each.
MOST_ANSWERS = 10_000_000

# Weights of listed ranges that are written out: answers times the runs of cells they tell apart.
_MOST = 4_000_000


class Workload:
    """Queries about a declared table, added one by one.

    Parameters
    ----------
    schema
        The declared columns.
    people
        Whose privacy: rows, or an id column with at most so many rows each.
    table
        The custodian's name of the table, if releases about it shall add up cell by cell in the
        ledger: only for one frozen body of data.

    Every method takes the query's ``name`` and one target: ``variance``, ``stderr``, ``margin``
    (half-width at 95 %), or ``cv`` (standard error as a share of what a public ``reference`` table
    expects); one number, or one for each answer. ``by`` splits a query by columns or recodes.

    Examples
    --------
    >>> from noiseshape.tables import integers
    >>> work = Workload(Schema({"age": integers(0, 99), "sex": ["F", "M"]}))
    >>> work.total(stderr=10).marginal("sex", "age", stderr=20)
    Workload(304 answers to 2 queries)
    >>> work.compiled()
    Queries(304 answers to 2 queries over 303 cells, add-remove)
    """

    def __init__(
        self, schema: Schema, people: People | None = None, *, table: str | None = None
    ) -> None:
        if not isinstance(schema, Schema):
            raise InvalidInput(f"a workload needs a Schema, got {type(schema).__name__}.")
        if people is not None and not isinstance(people, People):
            raise InvalidInput('people must be People, such as People("patient", max_rows=2).')
        self.schema, self.people, self.table = schema, people or People(), table
        self._asked: dict[str, tuple[Question, np.ndarray[Any, Any]]] = {}
        self._each: dict[str, Family] = {}
        # Queries about an ordered column as ranges: all there are of columns of many values, whose
        # weights are never written out, and those of others beside their question.
        self._ranges: dict[str, Ranges] = {}
        self._unwritten: set[str] = set()
        self._order: list[str] = []

    def total(self, *, by: Names = (), name: str = "total", **target: Any) -> Self:
        """Ask how many rows there are."""
        return self._ask(name, self._question(_names(by)), target)

    def marginal(
        self, *columns: str, name: str | None = None, by: Names = (), **target: Any
    ) -> Self:
        """Ask for the count of every cell of the product of some columns, empty ones included."""
        if not columns:
            raise InvalidInput("a marginal needs columns: total() asks for their whole.")
        names = [*_names(by), *columns]
        wide = [n for n in names if self._is_wide(n)]
        if len(wide) == 1:
            others = tuple(n for n in names if n != wide[0])
            count = self.schema.view(wide[0]).size
            called = name or " x ".join(names)
            return self._by_ranges(called, wide[0], others, "cells", count, target)
        return self._ask(name or " x ".join(names), self._question(names), target)

    def all_marginals(
        self, most: int, *, columns: Sequence[str] | None = None, least: int = 1, **target: Any
    ) -> Self:
        """Ask for every marginal of at least ``least`` and at most ``most`` columns together.

        Of the schema's columns, or of those named. Each is a query of its own, called by its
        columns as ``marginal`` calls it, and each has the same target.
        """
        names = list(self.schema.columns) if columns is None else list(_names(columns))
        if not 1 <= whole("least", least) <= whole("most", most) <= len(names):
            raise InvalidInput(
                f"marginals of {least} to {most} of {len(names)} columns: say 1 <= least <= most "
                f"<= {len(names)}."
            )
        # One number is one target for every marginal of as many answers: there may be many.
        alike = "cv" not in target and all(np.ndim(value) == 0 for value in target.values())
        known: dict[int, np.ndarray[Any, Any]] = {}
        with kept():
            for chosen in chain.from_iterable(
                combinations(names, size) for size in range(least, most + 1)
            ):
                name, question = " x ".join(chosen), self._question(chosen)
                rows = question.rows
                if rows in known:
                    self._is_new(name)
                    self._keep(name, question, known[rows])
                else:
                    self._ask(name, question, dict(target))
                    if alike:
                        known[rows] = self._asked[name][1]
        return self

    def prefixes(
        self, column: str, *, by: Names = (), name: str | None = None, **target: Any
    ) -> Self:
        """Ask for the count at or below every value of an ordered column."""
        view = self._ordered(column)
        n = view.domain.regular
        called = name or f"{column} up to"
        if n > MOST_WRITTEN:
            return self._by_ranges(called, column, _names(by), "prefixes", n, target)
        fits(n, n)
        family = Family(
            column, "<=", view.column, view.labels[:n],
            Steps(np.arange(n + 1), np.vstack([np.triu(np.ones((n, n))), np.zeros((1, n))]))
            if n < view.domain.size
            else Steps(np.arange(n), np.triu(np.ones((n, n)))),
        )  # fmt: skip
        self._ask(called, self._question(_names(by), family), target)
        return self._beside(called, column, _names(by), "prefixes", *spans_of("prefixes", n, n))

    def ranges(
        self,
        column: str,
        ranges: Sequence[tuple[Any, Any]],
        *,
        by: Names = (),
        name: str | None = None,
        **target: Any,
    ) -> Self:
        """Ask for the counts between pairs of values of an ordered column, both included."""
        view = self._ordered(column)
        if not len(ranges) or not all(_is_pair(r) for r in ranges):
            raise InvalidInput(f"the ranges of {column} must be pairs (low, high).")
        spans = [self._span(view, low, high) for low, high in ranges]
        called = name or f"{column} ranges"
        ends = np.array(spans, dtype=np.int64).T
        if view.domain.regular > MOST_WRITTEN and len(spans) * (1 + len(np.unique(ends))) > _MOST:
            return self._by_ranges(called, column, _names(by), "ranges", (ends[0], ends[1]), target)
        labels = tuple(_range_label(str(low), str(high)) for low, high in ranges)
        family = _intervals(column, view, spans, labels)
        self._ask(called, self._question(_names(by), family), target)
        return self._beside(called, column, _names(by), "ranges", ends[0], ends[1])

    def all_ranges(
        self,
        column: str,
        *,
        lengths: Sequence[int] | None = None,
        by: Names = (),
        name: str | None = None,
        **target: Any,
    ) -> Self:
        """Ask for the count between every two values of an ordered column.

        With ``lengths`` ranges have targets by band: ranges of up to ``lengths[0]`` values have the
        first target, longer ones of up to ``lengths[1]`` the second, and so on to all values.

        Of a column of more than 4,096 values the counts up to each value are published, and any
        range is a difference of two, with its exact error.
        """
        view = self._ordered(column)
        n = view.domain.regular
        called = name or f"{column} all ranges"
        longest = bands(called, n, lengths)
        each = target if lengths is None else self._by_band(called, longest, target)
        if n > MOST_WRITTEN:
            told = by_band(longest, np.broadcast_to(self._target(called, len(longest), target),
                                                    len(longest)))  # fmt: skip
            self._by_ranges(called, column, _names(by), "all ranges", n, {"variance": told})
            kept = self._ranges[called]
            firsts = [int(b) - 1 for b in longest]
            self._ranges[called] = replace(
                kept, longest=longest, each=tuple(kept.variance[firsts].tolist())
            )
            return self
        if n * (n + 1) // 2 > MOST_ANSWERS:
            raise InvalidInput(
                f"{column} has {n:,} values and {n * (n + 1) // 2:,} ranges: ask for some of them."
            )
        fits(n * (n + 1) // 2, n)
        spans = [(i, j + 1) for i in range(n) for j in range(i, n)]
        texts = view.labels
        labels = tuple(_range_label(texts[i], texts[j - 1]) for i, j in spans)
        family = _intervals(column, view, spans, labels)
        question = self._question(_names(by), family)
        if lengths is not None:
            ends = np.array(spans).T
            lengthwise = by_band(longest, each["variance"])[ends[1] - ends[0] - 1]
            each = {"variance": np.tile(lengthwise, question.rows // len(spans))}
        self._ask(called, question, each)
        return self._beside(called, column, _names(by), "ranges", *np.array(spans).T)

    def where(
        self, condition: str, *, by: Names = (), name: str | None = None, **target: Any
    ) -> Self:
        """Ask how many rows meet a condition, such as ``"age >= 18 and hours > 40"``."""
        question = self.question(condition, by=by)
        return self._ask(name or " ".join(condition.split()), question, target)

    def sum(
        self,
        column: str,
        *,
        by: Names = (),
        where: str | None = None,
        name: str | None = None,
        **target: Any,
    ) -> Self:
        """Ask for the sum of an integer column, each value within its declared bounds.

        Missing values, and those that count as "other", add nothing.
        """
        question = self.question(where, by=by, summed=column)
        return self._ask(name or f"sum of {column}", question, target)

    def rows(
        self,
        matrix: ArrayLike,
        *,
        over: Names | None = None,
        by: Names = (),
        name: str = "rows",
        **target: Any,
    ) -> Self:
        """Ask any linear queries: a weight for every cell of some columns.

        By default of all columns but those of ``by``, which splits each of the queries.

        Cells are in the order of ``over``, the last column fastest, "other" and "missing" last
        in each.
        """
        split = self._question(_names(by)).families
        taken = {family.column for family in split}
        if over is None:
            over = [column for column in self.schema.columns if column not in taken]
        columns = _names(over)
        for column in columns:
            if column not in self.schema.columns:
                self.schema.view(column)
                raise InvalidInput(f"{column} is a recode: rows are over columns.")
        if len(set(columns)) != len(columns):
            raise InvalidInput("the columns of rows must differ.")
        if taken & set(columns):
            raise InvalidInput(
                f"{min(taken & set(columns))} is weighed by the rows of {name!r} and splits them: "
                "leave it out of over, or of by."
            )
        sizes = tuple(len(self.schema.view(c).labels) for c in columns)
        weights = np.atleast_2d(floats(f"the matrix of {name!r}", matrix))
        if weights.ndim != 2 or weights.shape[1] != math.prod(sizes) or not len(weights):
            each = " x ".join(map(str, sizes)) + (f" = {math.prod(sizes)}" * (len(sizes) > 1))
            raise InvalidInput(
                f"the matrix of {name!r} needs {each} columns, a weight for every cell of "
                f"{', '.join(columns)}; got {weights.shape}."
            )
        if not weights.any(axis=1).all():
            raise InvalidInput(f"a row of {name!r} asks nothing: all its weights are 0.")
        question = Question(split, over=columns, weights=weights.reshape(-1, *sizes))
        return self._ask(name, question, target)

    def question(
        self, condition: str | None = None, *, by: Names = (), summed: str | None = None
    ) -> Question:
        """Return a count or a sum under a condition, split by columns: one row a combination."""
        met = None if condition is None else self.schema.condition(condition)
        if summed is not None:
            view = self.schema.view(summed)
            if view.recoded is not None or not isinstance(view.domain, Integers):
                raise InvalidInput(f"{summed} cannot be summed: only columns of integers can.")
        found = self._question(_names(by))
        return Question(found.families, met, summed)

    def compiled(self) -> Queries:
        """Return the queries over the cells that they tell apart: what a plan is made of."""
        self._is_written()
        return self.on(Layout.of(self.schema, [question for question, _ in self._asked.values()]))

    def products(self) -> Products:
        """Return the queries by the marginals that they are about: no table of all is formed."""
        self._is_written()
        asked = [(name, question, variance) for name, (question, variance) in self._asked.items()]
        return Products.of(self.schema, self.people, self.table, asked)

    def ordered(self) -> Ordered:
        """Return the queries as ranges of one ordered column, however many values it has."""
        if not self._order:
            raise InvalidInput("nothing is asked yet: add queries, such as total(stderr=10).")
        if not self._ranges:
            raise InvalidInput(
                "nothing is asked in the order of a column: by='ordered' plans prefixes, ranges "
                "and all ranges of one."
            )
        first = next(iter(self._ranges.values()))
        found = [self._as_ranges(name, first.column, first.by) for name in self._order]
        return Ordered(self.schema, self.people, self.table, tuple(found))

    @property
    def unwritten(self) -> tuple[str, ...]:
        """Queries about columns of so many values that their weights are never written out."""
        return tuple(self._unwritten)

    def _as_ranges(self, name: str, column: str, by: tuple[str, ...]) -> Ranges:
        """Return a query as ranges of a column; a total or marginal may be one."""
        if name in self._ranges:
            return self._ranges[name]
        question, variance = self._asked[name]
        plain = question.condition is None and question.summed is None and question.weights is None
        names = tuple(f.name for f in question.families)
        kinds = {tuple(sorted(by)): "total", tuple(sorted((*by, column))): "cells"}
        kind = kinds.get(tuple(sorted(names)))
        size = self.schema.view(column).size
        if not plain or kind is None or names[: len(by)] != by:
            raise InvalidInput(
                f"{name!r} is no prefix or range of {column}"
                + (f" by {', '.join(by)}" if by else "")
                + ": what is asked of a column of many values is about it alone; plan the others "
                "in a workload of their own."
            )
        low, high = spans_of(kind, size, size)
        return Ranges(name, column, by, kind, low, high, self._alike(name, variance, len(low)))

    def _alike(self, name: str, variance: np.ndarray[Any, Any], count: int) -> Any:
        """Return the targets of a query within a group, which must be alike in all groups."""
        groups = np.reshape(variance, (-1, count))
        if not (groups == groups[0]).all():
            raise InvalidInput(
                f"{name!r} has other targets in other groups, and a column in order is planned "
                "alike in all: give one target for each of its ranges."
            )
        return groups[0]

    def _is_wide(self, name: str) -> bool:
        view = self.schema.view(name)
        return view.recoded is None and view.domain.ordered and view.size > MOST_WRITTEN

    def _is_written(self) -> None:
        """Refuse to write out what is asked of a column of many values."""
        if not self._order:
            raise InvalidInput("nothing is asked yet: add queries, such as total(stderr=10).")
        if self._unwritten:
            name = min(self._unwritten)
            column = self._ranges[name].column
            raise TooLarge(
                f"{name!r} is about {self.schema.view(column).size:,} values of {column} in order, "
                "which are planned on their own by structured strategies: leave by at 'auto' or "
                "'ordered', and plan what is about other columns in a workload of its own."
            )

    def _target(self, name: str, rows: int, target: dict[str, Any]) -> Any:
        """Return target variances of a query whose weights are not written out."""
        unknown = set(target) - {"variance", "stderr", "margin"}
        if unknown:
            raise InvalidInput(
                f"{name!r} takes variance, stderr or margin, and has no use here for "
                f"{sorted(unknown)[0]!r}."
            )
        return variances(name, rows, **(dict.fromkeys(("variance", "stderr", "margin")) | target))

    def _by_band(self, name: str, longest: tuple[int, ...], target: dict[str, Any]) -> Any:
        return {"variance": np.array(self._target(name, len(longest), target))}

    def _by_ranges(
        self, name: str, column: str, by: tuple[str, ...], kind: str, where: Any, target: Any
    ) -> Self:
        """Add a query about a column of many values, never written out."""
        self._is_new(name)
        self._question(by)  # the columns that split are there, and differ
        for split in by:
            view = self.schema.view(split)
            if view.recoded is not None or view.column == column:
                raise InvalidInput(
                    f"{column} has {self.schema.view(column).size:,} values and is split by other "
                    f"columns, not by {split}: recode the answers after the release."
                )
        size = self.schema.view(column).size
        low, high = spans_of(kind, where, size) if isinstance(where, int) else where
        variance = self._target(name, len(low), target)
        self._ranges[name] = Ranges(name, column, by, kind, low, high, variance)
        self._unwritten.add(name)
        self._order.append(name)
        return self

    def _beside(
        self, name: str, column: str, by: tuple[str, ...], kind: str, low: Any, high: Any
    ) -> Self:
        """Keep a query, whose weights are written out, as ranges too, if groups are alike."""
        variance = self._asked[name][1].reshape(-1, len(low))
        plain = all(self.schema.view(split).recoded is None for split in by)
        if plain and (variance == variance[0]).all():
            self._ranges[name] = Ranges(name, column, by, kind, low, high, variance[0])
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """What each query is called, in order."""
        return tuple(self._order)

    def only(self, names: Sequence[str]) -> Workload:
        """Return a workload of some of the queries."""
        made = Workload(self.schema, self.people, table=self.table)
        made._order = list(names)
        made._asked = {name: self._asked[name] for name in names if name in self._asked}
        made._ranges = {name: self._ranges[name] for name in names if name in self._ranges}
        made._unwritten = self._unwritten & set(names)
        made._each = self._each
        return made

    @property
    def asks(self) -> tuple[Question, ...]:
        """What is asked, in order."""
        return tuple(question for question, _ in self._asked.values())

    def on(self, layout: Layout) -> Queries:
        """Return the queries on a layout that tells enough apart."""
        asked = Queries(
            layout.labels,
            self.people,
            rows_may_leave=self.schema.rows_may_leave or self.people.unit != "rows",
            table=self.table,
            selection="every row that the policies of its columns keep",
            layout=layout,
        )
        for name, (question, variance) in self._asked.items():
            rows, labels = layout.rows(question), question.labels()
            # What is 0 whoever is counted, such as an impossible cell, is no query.
            (told,) = np.nonzero(rows.any(axis=1))
            if not told.size:
                raise InvalidInput(
                    f"{name!r} asks nothing: by its condition, or by what is impossible, it is 0 "
                    "whoever is counted."
                )
            if told.size < len(rows):
                rows, variance = rows[told], variance[told]
                labels = [labels[i] for i in told]
            asked = asked.ask(name, rows, variance=variance, labels=labels)
        return asked

    def _question(self, by: Sequence[str], *further: Family) -> Question:
        families = [self._by(name) for name in by] + list(further)
        columns = [family.column for family in families]
        if len(set(columns)) < len(columns):
            twice = [f.name for f in families if columns.count(f.column) > 1]
            raise InvalidInput(
                f"{twice[0]} and {twice[1]} tell the same column: ask by one of them."
            )
        question = Question(tuple(families))
        if question.rows > MOST_ANSWERS:
            raise InvalidInput(
                f"{question.rows:,} answers in one query would need "
                f"{512 * question.rows / 1e9:,.1f} GB for their labels alone, and at most "
                f"{MOST_ANSWERS:,} can be asked: "
                "ask about fewer columns together, or in coarser bands."
            )
        return question

    def _by(self, name: str) -> Family:
        """Return each cell of a column, or label of a recode: one object, however often asked."""
        if name not in self._each:
            self._each[name] = _each(self.schema.view(name))
        return self._each[name]

    def _ordered(self, column: str) -> View:
        view = self.schema.view(column)
        if view.recoded is not None or not view.domain.ordered:
            raise InvalidInput(f"{column} has no order: ask for its marginal, or for ranges of "
                               "a column of integers, bins or dates.")  # fmt: skip
        return view

    def _span(self, view: View, low: Any, high: Any) -> tuple[int, int]:
        """Return the cells from low to high, first and after the last."""
        if isinstance(view.domain, Integers) and not (
            all(isinstance(v, (int, float, np.integer)) for v in (low, high))
            and view.domain.low <= low <= high <= view.domain.high
        ):
            raise InvalidInput(
                f"a range of {view.name} must lie within {view.domain.low} to {view.domain.high}, "
                f"got {low} to {high}."
            )
        above, below = ">=", "<="
        if view.domain.kind == "bins":  # bins are cut at edges: from an edge to another
            above, below = (">", "<=") if view.domain.closed == "right" else (">=", "<")  # type: ignore[attr-defined]
            if low == view.domain.edges[0]:  # type: ignore[attr-defined]
                above = ">="
            if high == view.domain.edges[-1]:  # type: ignore[attr-defined]
                below = "<="
        chosen = [
            view.domain.compare(operator, value)  # type: ignore[arg-type]
            for operator, value in ((above, low), (below, high))
        ]
        starts = np.union1d(chosen[0].starts, chosen[1].starts)
        inside = chosen[0].at(starts).astype(bool) & chosen[1].at(starts).astype(bool)
        held = np.flatnonzero(inside)
        if not held.size:
            raise InvalidInput(f"the range of {view.name} from {low} to {high} holds no cell.")
        after = starts[held[-1] + 1] if held[-1] + 1 < len(starts) else view.domain.size
        return int(starts[held[0]]), int(after)

    def _ask(self, name: str, question: Question, target: dict[str, Any]) -> Self:
        """Add a query, its target as variances, one for each answer."""
        self._is_new(name)
        unknown = set(target) - {"variance", "stderr", "margin", "cv", "reference"}
        if unknown:
            raise InvalidInput(f"{name!r} has no use for {sorted(unknown)[0]!r}.")
        reference: Reference | None = target.pop("reference", None)
        kinds = dict.fromkeys(("variance", "stderr", "margin", "cv")) | target
        if reference is not None and kinds["cv"] is None:
            raise InvalidInput(f"the reference of {name!r} is for a cv, and no cv is given.")
        if kinds["cv"] is not None and not any(
            kinds[k] is not None for k in ("variance", "stderr", "margin")
        ):
            kinds["stderr"] = from_cv(name, kinds["cv"], reference, question.axes, question.parts())
            kinds["cv"] = None
        self._keep(name, question, variances(name, question.rows, **kinds))
        return self

    def _keep(self, name: str, question: Question, variance: np.ndarray[Any, Any]) -> None:
        self._asked[name] = question, variance
        self._order.append(name)

    def _is_new(self, name: str) -> None:
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("a query needs a name.")
        if name in self._asked or name in self._ranges:
            raise InvalidInput(f"a query named {name!r} is asked already: give it another name.")

    def _sized(self) -> dict[str, tuple[int, Any]]:
        """Return for each query how many answers it has, and their targets."""
        found: dict[str, tuple[int, Any]] = {}
        for name in self._order:
            if name in self._asked:
                question, variance = self._asked[name]
                found[name] = question.rows, variance
            else:
                asked = self._ranges[name]
                groups = math.prod(self.schema.view(split).size for split in asked.by)
                found[name] = len(asked.low) * groups, asked.variance
        return found

    def listing(self) -> list[dict[str, Any]]:
        """Return for each query its name, how many answers it has, and its target errors."""
        return [
            {
                "query": name,
                "answers": answers,
                "least target stderr": float(np.sqrt(variance.min())),
                "greatest target stderr": float(np.sqrt(variance.max())),
            }
            for name, (answers, variance) in self._sized().items()
        ]

    def _repr_html_(self) -> str:
        from ..report.scraps import of_workload

        return of_workload(self)

    def __rich__(self) -> Any:
        from ..report.terminal import of_workload

        return of_workload(self)

    def __repr__(self) -> str:
        answers = [count for count, _ in self._sized().values()]
        return f"Workload({sum(answers)} answers to {len(answers)} queries)"


def _each(view: View) -> Family:
    """Return one row for each cell of a column, or each label of a recode."""
    cells = view.cells()
    fits(view.size, len(cells.starts))
    return Family(
        view.name, "=", view.column, view.labels,
        Steps(cells.starts, np.eye(view.size)[cells.values]),
    )  # fmt: skip


def _intervals(
    name: str, view: View, spans: Sequence[tuple[int, int]], labels: tuple[str, ...]
) -> Family:
    low, high = np.array(spans).T
    starts = np.unique(np.concatenate([[0], low, high]))
    starts = starts[starts < view.domain.size]
    fits(len(spans), len(starts))
    inside = (low <= starts[:, None]) & (starts[:, None] < high)
    return Family(name, "=", view.column, labels, Steps(starts, inside.astype(np.float64)))


def _range_label(low: str, high: str) -> str:
    if low == high:
        return low
    plain = "-" not in low + high
    return f"{low}-{high}" if plain else f"{low} to {high}"


def _is_pair(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2


def _names(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
