"""Sums and means of bounded columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._checks import Floats, whole
from ..errors import InvalidInput
from ..privacy import People
from ..strategies.changes import Box
from ..strategies.exact import Integers
from .features import Bounds, Features, Missing, columns_declared
from .query import MatrixQuery, length
from .reading import Numbers, length_of, numbers


@dataclass(frozen=True, eq=False, repr=False)
class SummedRows:
    """Sums over rows, to be read: the source of a release."""

    rows: Numbers
    query: OverRows

    def cells(self) -> int:
        """Return how many integers the data becomes."""
        return self.query.size

    def read(self) -> Integers:
        """Read the rows, and return the exact sums."""
        q = self.query
        return self.rows.moments(count=q.counts, sums=q.sums, products=q.products)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OverRows(MatrixQuery):
    """A question about sums over rows.

    Attributes
    ----------
    features
        The declared columns.
    count
        How many rows there are, where that is public: it is then not measured.
    expected
        About how many rows there are, from public knowledge: used for planning, never in answers.
    """

    features: Features
    count: int | None = None
    expected: int | None = None

    sums: ClassVar[bool] = True
    products: ClassVar[bool] = False
    divides: ClassVar[bool] = False
    """Whether the answer divides by the number of rows."""

    def __post_init__(self) -> None:
        for name in ("count", "expected"):
            value = getattr(self, name)
            if value is not None:
                whole(name, value)
        if self.divides and self.count is None and self.count_public:
            told = length_of(self.rows)
            if told is None:
                raise InvalidInput(
                    "under replace neighbours, with no row left out, the number of rows is public: "
                    "declare it, count=..."
                )
            object.__setattr__(self, "count", told)

    @property
    def count_public(self) -> bool:
        """Whether neighbours share the number of rows."""
        return self.people.neighbours == "replace" and not self.rows_may_leave

    @property
    def rows_may_leave(self) -> bool:
        """Whether a missing value takes its row out."""
        return self.features.missing == "drop" or self.people.unit != "rows"

    @property
    def counts(self) -> bool:
        """Whether the number of rows is measured: private, and needed."""
        return self.divides and self.count is None

    @property
    def parts(self) -> dict[str, int]:
        """The count, the sums and the products: those that are measured."""
        m = len(self.features.names)
        each = {"count": 1, "sums": m, "products": m * (m + 1) // 2}
        asked = {"count": self.counts, "sums": self.sums, "products": self.products}
        return {name: size for name, size in each.items() if asked[name]}

    @property
    def linear(self) -> bool:
        """Whether the answer is linear in what is measured."""
        return not self.counts

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a column."""
        return (len(self.features.names),)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The columns."""
        return (self.features.names,)

    @property
    def selection(self) -> str:
        """Return in words which rows count."""
        f = self.features
        if f.missing == "drop":
            return "rows that have a number in every column"
        return "every row; what is no number counts as the middle of its bounds"

    @cached_property
    def step(self) -> Floats:
        """1 for the count, and each column's own."""
        return np.concatenate([np.ones(int(self.counts)), self.features.step])

    def source(self, data: Any) -> SummedRows:
        """Return the rows to be summed."""
        return SummedRows(numbers(data, self.features, self.people), self)

    @property
    def sized(self) -> bool:
        """Whether anybody said about how many rows there are, where the answer divides by them."""
        return not self.divides or bool(self.count or self.expected)

    @property
    def rows_about(self) -> int:
        """About how many rows there are, from public knowledge; refused where nobody said."""
        n = self.count or self.expected
        if n is None:
            raise InvalidInput(
                f"the errors of a {self.kind} depend on how many rows there are: say about how "
                "many, from public knowledge, expected=...; or count=... if it is public exactly."
            )
        return n

    @property
    def _half(self) -> Floats:
        """How far a value can be from the origin, in its own units."""
        return self.features.far * self.features.step

    def _ends(self) -> Floats:
        return np.maximum(np.abs(self.features.low), np.abs(self.features.high))

    def _declared_count(self, what: str) -> int:
        if self.count is None:
            raise InvalidInput(
                f"{what} of a {self.kind} needs the number of rows, which is private: declare it "
                "where it is public, count=..."
            )
        return self.count

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the question."""
        return {
            "kind": self.kind,
            "people": self._people_json(),
            "features": self.features.to_json(),
            "count": self.count,
            "expected": self.expected,
        }

    @classmethod
    def from_json(cls, *, features: dict[str, Any], **content: Any) -> Self:
        """Return the question that ``to_json`` said."""
        return cls(features=Features.from_json(features), **content)


class Sum(OverRows):
    """The sum of each column, shape (m,)."""

    kind = "sum"

    @cached_property
    def changes(self) -> Box:
        """Each column between its own bounds."""
        return Box(self.features.least, self.features.greatest)

    def s2(self) -> float:
        """Return the length of the box, or of its edges under replace: exact."""
        return length(self, np.ones(self.size))

    def gamma(self) -> float:
        """Return n times the length of the farthest row."""
        return self._declared_count("gamma") * float(np.linalg.norm(self._ends()))


class Mean(OverRows):
    """The mean of each column, shape (m,): sums about the middle of the bounds, over the count."""

    kind = "mean"
    divides = True

    @cached_property
    def changes(self) -> Box:
        """1 for the count, and each column between its own bounds."""
        f, ones = self.features, np.ones(int(self.counts), dtype=np.int64)
        return Box(np.concatenate([ones, f.least]), np.concatenate([ones, f.greatest]))

    def answer(self, v: Floats) -> Floats:
        """Return origin + sum / count; a count below 1 is taken as 1."""
        f = self.features
        n = max(float(v[0]), 1.0) if self.counts else float(self.count or 1)
        return f.origin * f.step + v[int(self.counts) :] / n

    def spread(self) -> sparse.csr_array:
        """Return 1/n^2 for the sums, and for the count at most the half range, squared, of it."""
        n, m = self.rows_about, len(self.features.names)
        parts = [sparse.csr_array(self._half[:, None] ** 2)] * self.counts
        return sparse.csr_array(sparse.hstack([*parts, sparse.eye_array(m)]) / n**2)

    def s2(self) -> float:
        """Return that of the sums over the declared count: exact."""
        return length(self, np.ones(self.size)) / self._declared_count("s2")

    def gamma(self) -> float:
        """Return the length of the farthest row."""
        return float(np.linalg.norm(self._ends()))


def sum(  # as a module's name: matrices.sum
    rows: Any = None,
    *,
    bounds: Bounds | None = None,
    columns: ArrayLike | None = None,
    step: ArrayLike | None = None,
    missing: Missing = "drop",
    count: int | None = None,
    people: People | None = None,
) -> Sum:
    """Ask for the sum of each column, shape (m,).

    Parameters
    ----------
    rows
        The data: an array with a row for each person, a frame, a table, a relation or a path; or
        nothing, for a plan without data.
    bounds
        (low, high) for all columns, or one pair a column, in order or by name: from public
        knowledge. Values are clipped to them.
    columns
        Their names, where rows do not have them.
    step
        The grid that values are rounded to; by default 2^15 steps or more in each range.
    missing
        What is no number: "drop" its row, or count it as the "middle" of its bounds.
    count
        How many rows there are, if that is public.
    people
        Whose privacy.
    """
    features = columns_declared(rows, columns, bounds, step, "zero", missing)
    return Sum(features=features, people=people or People(), rows=rows, count=count)


def mean(
    rows: Any = None,
    *,
    bounds: Bounds | None = None,
    columns: ArrayLike | None = None,
    step: ArrayLike | None = None,
    missing: Missing = "drop",
    count: int | None = None,
    expected: int | None = None,
    people: People | None = None,
) -> Mean:
    """Ask for the mean of each column, shape (m,): a noisy sum over a noisy or public count.

    Parameters
    ----------
    rows, bounds, columns, step, missing, people
        As :func:`sum` has them.
    count
        How many rows there are, if that is public; otherwise it is measured too.
    expected
        About how many rows there are, from public knowledge, to plan errors by.
    """
    features = columns_declared(rows, columns, bounds, step, "middle", missing)
    return Mean(
        features=features, people=people or People(), rows=rows, count=count, expected=expected
    )
