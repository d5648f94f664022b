"""What is asked of a declared table, each with its own accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import floats, whole
from ..errors import InvalidInput
from ..privacy import People
from .asks import Products
from .domains import Integers
from .layout import Family, Layout, Question, fits
from .queries import Queries
from .schema import Schema, View
from .steps import Steps
from .targets import Reference, from_cv, variances

Names = str | Sequence[str]

# More answers than this in one query cannot be planned densely on any machine of today; their
# labels alone are half a kilobyte each.
MOST_ANSWERS = 10_000_000


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
        for size in range(least, most + 1):
            for chosen in combinations(names, size):
                self.marginal(*chosen, **dict(target))
        return self

    def prefixes(
        self, column: str, *, by: Names = (), name: str | None = None, **target: Any
    ) -> Self:
        """Ask for the count at or below every value of an ordered column."""
        view = self._ordered(column)
        n = view.domain.regular
        fits(n, n)
        family = Family(
            column, "<=", view.column, view.labels[:n],
            Steps(np.arange(n + 1), np.vstack([np.triu(np.ones((n, n))), np.zeros((1, n))]))
            if n < view.domain.size
            else Steps(np.arange(n), np.triu(np.ones((n, n)))),
        )  # fmt: skip
        return self._ask(name or f"{column} up to", self._question(_names(by), family), target)

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
        labels = tuple(_range_label(str(low), str(high)) for low, high in ranges)
        family = _intervals(column, view, spans, labels)
        return self._ask(name or f"{column} ranges", self._question(_names(by), family), target)

    def all_ranges(
        self, column: str, *, by: Names = (), name: str | None = None, **target: Any
    ) -> Self:
        """Ask for the count between every two values of an ordered column."""
        view = self._ordered(column)
        n = view.domain.regular
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
        return self._ask(name or f"{column} all ranges", question, target)

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
        if not self._asked:
            raise InvalidInput("nothing is asked yet: add queries, such as total(stderr=10).")
        return self.on(Layout.of(self.schema, [question for question, _ in self._asked.values()]))

    def products(self) -> Products:
        """Return the queries by the marginals that they are about: no table of all is formed."""
        if not self._asked:
            raise InvalidInput("nothing is asked yet: add queries, such as total(stderr=10).")
        asked = [(name, question, variance) for name, (question, variance) in self._asked.items()]
        return Products.of(self.schema, self.people, self.table, asked)

    @property
    def names(self) -> tuple[str, ...]:
        """What each query is called, in order."""
        return tuple(self._asked)

    def only(self, names: Sequence[str]) -> Workload:
        """Return a workload of some of the queries."""
        made = Workload(self.schema, self.people, table=self.table)
        made._asked = {name: self._asked[name] for name in names}
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
        twice = [f.name for f in families if columns.count(f.column) > 1]
        if twice:
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
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("a query needs a name.")
        if name in self._asked:
            raise InvalidInput(f"a query named {name!r} is asked already: give it another name.")
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
        self._asked[name] = question, variances(name, question.rows, **kinds)
        return self

    def listing(self) -> list[dict[str, Any]]:
        """Return for each query its name, how many answers it has, and its target errors."""
        return [
            {
                "query": name,
                "answers": question.rows,
                "least target stderr": float(np.sqrt(variance.min())),
                "greatest target stderr": float(np.sqrt(variance.max())),
            }
            for name, (question, variance) in self._asked.items()
        ]

    def _repr_html_(self) -> str:
        from ..report.scraps import of_workload

        return of_workload(self)

    def __rich__(self) -> Any:
        from ..report.terminal import of_workload

        return of_workload(self)

    def __repr__(self) -> str:
        answers = sum(question.rows for question in self.asks)
        return f"Workload({answers} answers to {len(self._asked)} queries)"


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
