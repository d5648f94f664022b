"""Gram and kernel matrices: inner products of rows, or any bounded function of two of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats, positive, real, whole
from ..errors import InvalidInput
from ..privacy import People
from ..strategies.exact import Integers, product
from .changes import Star
from .clipped import clipped
from .features import power_of_two
from .identity import rows_public
from .query import MatrixQuery, length, numbered, replacing, within_memory
from .reading import doubles, in_order, length_of, padded

# Steps of the default grid in the norm of rows; their products have twice as many bits.
_STEPS = 15

Kernel = Callable[[Floats], ArrayLike]


@dataclass(frozen=True, eq=False, repr=False)
class PairsOfRows:
    """Every pair of rows, to be read: the source of a release."""

    rows: Callable[[], Floats]
    query: Gram

    def cells(self) -> int:
        """Return how many integers the data becomes."""
        return self.query.size

    def read(self) -> Integers:
        """Read the rows; return the kernel of every pair i <= j, in steps. Total."""
        q = self.query
        X = padded(self.rows(), q.n)
        i, j = q.entries
        if q.kernel is None:
            # Whole vectors no longer than the radius: inner products are exact, and within bounds.
            z = clipped(X / q.unit, q.radius)
            return product(z, np.ascontiguousarray(z.T))[i, j]
        K = np.asarray(q.kernel(np.where(np.isfinite(X), X, 0.0)), dtype=np.float64)
        if K.shape != (q.n, q.n):  # told by the function, and not by values
            raise InvalidInput(f"the kernel must return shape {(q.n, q.n)}, got {K.shape}.")
        first, last = q.ends
        values = np.where(np.isfinite(K[i, j]), K[i, j], q.low)
        return np.clip(
            np.rint(np.clip(values, q.low, q.high) / q.grid).astype(np.int64), first, last
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Gram(MatrixQuery):
    """K_ij = k(x_i, x_j), shape (n, n), with k between ``low`` and ``high``.

    Attributes
    ----------
    n
        How many rows there are: public under replace neighbours.
    low, high
        Bounds of k. For inner products of rows clipped to the norm ``clip``: -clip^2 and clip^2.
    grid
        The step, a power of two.
    clip
        The norm to which rows are clipped; of inner products only.
    kernel
        From all rows (n, m) to K (n, n); None for inner products. No file holds it.
    """

    kind = "gram"

    n: int
    low: float
    high: float
    grid: float
    clip: float = 0.0
    kernel: Kernel | None = None

    def __post_init__(self) -> None:
        whole("n", self.n)
        replacing("a Gram matrix", self.people)
        within_memory(self.n, (self.n + 1) // 2)
        if not self.low < self.high:
            raise InvalidInput(f"a kernel needs low < high, got {self.low:g} and {self.high:g}.")
        if not 1 <= max(abs(self.low), abs(self.high)) / self.grid <= 1 << 40:
            raise InvalidInput("the bounds of a kernel must be 1 to 2^40 steps: another step.")

    @property
    def unit(self) -> float:
        """The step of rows, whose products are steps of K."""
        return math.sqrt(self.grid)

    @property
    def radius(self) -> int:
        """The norm of rows, in their steps, rounded down."""
        return int(Fraction(self.clip) / Fraction(self.unit))

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest value, in steps."""
        if self.clip:
            return -(self.radius**2), self.radius**2
        return math.ceil(self.low / self.grid), math.floor(self.high / self.grid)

    @property
    def symmetric(self) -> bool:
        """It is."""
        return True

    @property
    def semidefinite(self) -> bool:
        """Inner products are; a kernel of the caller's is not known to be."""
        return bool(self.clip)

    @property
    def shape(self) -> tuple[int, ...]:
        """A row and a column for each person."""
        return (self.n, self.n)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Numbers of rows, twice."""
        return (numbered("", self.n),) * 2

    @cached_property
    def changes(self) -> Star:
        """One person's row and column: from any allowed values to any others."""
        first, last = self.ends
        # The square of a row is never negative.
        return Star(self.n, diagonal=last if self.clip else last - first, others=last - first)

    @cached_property
    def step(self) -> Floats:
        """The grid."""
        return np.full(self.changes.size, self.grid)

    def source(self, data: Any) -> PairsOfRows:
        """Return the rows to be compared."""
        if not self.clip and self.kernel is None:
            raise InvalidInput(
                "no file holds a kernel: ask again in Python, with the function that it is."
            )
        told = length_of(in_order(data))
        if told is not None and told != self.n:
            raise InvalidInput(f"the plan is about {self.n} rows, and the data has {told}.")
        return PairsOfRows(doubles(data, None), self)

    def s2(self) -> float:
        """Return the length of one row and column of changes: exact for the bounds.

        MVG's Example 2 has c sqrt(8 n - 4) for k in [-c, c]: each of 2 n - 1 entries by 2 c. A
        diagonal that is never negative changes by c only.
        """
        return length(self, self.twice)

    def gamma(self) -> float:
        """Return n times the greatest |k| (MVG, Example 2: n c)."""
        return self.n * max(abs(self.low), abs(self.high))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the question, but for a kernel."""
        said = {name: getattr(self, name) for name in ("n", "low", "high", "grid", "clip")}
        return {"kind": self.kind, "people": self._people_json()} | said

    @classmethod
    def from_json(cls, **content: Any) -> Self:
        """Return the question that ``to_json`` said."""
        return cls(**content)


def gram(
    rows: Any = None,
    *,
    clip: float | None = None,
    kernel: Kernel | None = None,
    bounds: tuple[float, float] | None = None,
    n: int | None = None,
    step: float | None = None,
    people: People | None = None,
) -> Gram:
    """Ask for a Gram matrix, shape (n, n): inner products of rows, or a kernel of every two.

    One person is a row and a column of it. Its shape tells n: neighbours must be ``replace``.

    Parameters
    ----------
    rows
        An array or a frame of numbers.
    clip
        For inner products: the norm to which rows are clipped.
    kernel, bounds
        Otherwise: a function from all rows (n, m) to K (n, n) whose entry i, j depends on rows i
        and j alone, and the bounds that its values are clipped to.
    n
        How many rows there are, where ``rows`` does not tell without being read.
    step
        The grid of the rows' entries, by default 2^15 steps in ``clip``; or of the kernel's values,
        by default 2^30 steps in the greatest.
    """
    people = replacing("a Gram matrix", people)
    if (clip is None) == (kernel is None):
        raise InvalidInput("a Gram matrix needs clip, for inner products, or a kernel with bounds.")
    if kernel is None:
        c = positive("clip", clip)
        low, high = -(c**2), c**2
        grid = power_of_two(c / 2**_STEPS if step is None else step) ** 2
    else:
        if bounds is None or np.shape(bounds) != (2,):
            raise InvalidInput("a kernel needs bounds (low, high), to which it is clipped.")
        c, (low, high) = 0.0, (real("a bound of the kernel", b) for b in bounds)
        grid = power_of_two(max(abs(low), abs(high)) / 2 ** (2 * _STEPS) if step is None else step)
    return Gram(
        n=rows_public(rows, n), low=low, high=high, grid=grid, clip=c, kernel=kernel,
        people=people, rows=rows,
    )  # fmt: skip
