"""What one person's row can do to the data vector, where that is more than one cell.

A set of changes answers one question: how far can one row move A x at most? It holds what a row
can *contribute*; under add-remove a change is a contribution, under replace the difference of two.
Every answer is exact, or a proved bound above.

    Ball(size, radius)     any vector of length at most ``radius``
    Box(low, high)         each entry between its own bounds
    Outer(bounds)          count, features and products of one row of bounded features
    Columns(E)             any weighted mean of the columns of E
    Custom(size, bound)    whatever the caller has proved
    OneOf(set, n)          one of n equal parts of the vector changes: a row of a data matrix
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product as corners_of
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .._arb import sqrt_up
from .._checks import Floats, exact_positive, positive, whole
from ..errors import InvalidInput
from ..privacy.people import Neighbours
from .exact import Integers, integers
from .sigma import weights

if TYPE_CHECKING:
    from .dense import Dense
    from .strategy import Strategy

# Corners of a box are enumerated up to this many entries: 2^12 products with P.
CORNERS = 12


class Changes(ABC):
    """What one row can contribute to a data vector of ``size`` integers."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many integers the data is."""

    @abstractmethod
    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return sup ||A D||^2 over changes D, for one row; exact, or a bound above it."""

    @abstractmethod
    def widest(self, neighbours: Neighbours) -> Floats:
        """Return the greatest |D_i| of each entry, (size,), rounded up."""

    def length(self, neighbours: Neighbours) -> float:
        """Return sup ||D||_2, the papers' s2, rounded up."""
        from .diagonal import Diagonal

        unit = Diagonal(np.full(self.size, 1.0))
        return sqrt_up(self.square(unit, neighbours))


@dataclass(frozen=True)
class Ball(Changes):
    """Any contribution of length at most ``radius``: what clipping to a norm leaves."""

    entries: int
    radius: Fraction

    def __init__(self, size: int, radius: float | Fraction) -> None:
        object.__setattr__(self, "entries", whole("the size of a Ball", size))
        object.__setattr__(self, "radius", exact_positive("the radius of a Ball", radius))

    @property
    def size(self) -> int:
        """How many integers the data is."""
        return self.entries

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return (r ||A||)^2, r the radius, or twice it under replace."""
        length = self.radius * (2 if neighbours == "replace" else 1)
        return length**2 * _largest_eigenvalue(strategy)

    def widest(self, neighbours: Neighbours) -> Floats:
        """Return the radius for every entry."""
        length = float(self.radius) * (2 if neighbours == "replace" else 1)
        return np.full(self.entries, np.nextafter(length, np.inf))


@dataclass(frozen=True, eq=False)
class Box(Changes):
    """Contributions v with low_i <= v_i <= high_i, each entry on its own."""

    low: Integers
    high: Integers

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        low, high = integers("the low ends of a Box", low), integers("the high ends", high)
        if low.ndim != 1 or low.shape != high.shape or not low.size:
            raise InvalidInput(
                f"a Box needs a low and a high end for each entry, got {low.shape}, {high.shape}."
            )
        if np.any(low > high):
            raise InvalidInput("a Box needs low <= high in every entry.")
        if not np.any(np.maximum(np.abs(low), np.abs(high))):
            raise InvalidInput("a Box of nothing but zeros has no sensitivity: nothing can change.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def size(self) -> int:
        """How many integers the data is."""
        return len(self.low)

    def widest(self, neighbours: Neighbours) -> Floats:
        """Return how far each entry can change."""
        return np.asarray(self._widths(neighbours), dtype=np.float64)

    def _widths(self, neighbours: Neighbours) -> Integers:
        low, high = self.low.astype(object), self.high.astype(object)
        return high - low if neighbours == "replace" else np.maximum(abs(low), abs(high))

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return the greatest ||A D||^2 over the box.

        Exact where each entry is measured on its own, and over the corners of a small box; else
        min(sum_ij |P_ij| w_i w_j, m lambda_max(D_w P D_w)), P = A^T A.
        """
        w = self._widths(neighbours)
        own = _own_weights(strategy)
        if own is not None:
            units, exponent = own
            return Fraction(int(sum(units * w * w)), 1 << exponent)
        dense = strategy.densify()
        ends = [(-int(v), int(v)) for v in w]
        if neighbours == "add-remove":
            ends = [(int(a), int(b)) for a, b in zip(self.low, self.high, strict=True)]
        if len(ends) <= CORNERS:
            corners = np.array(list(corners_of(*ends)), dtype=object).T
            return _columns_square(dense, integers("the corners", corners))
        P, margin = _gram(dense, w.astype(np.float64))
        sums = float(np.abs(P).sum()) * (1 + 1e-12) + margin * P.size
        spectral = len(w) * (float(np.linalg.eigvalsh(P)[-1]) + len(w) * margin) * (1 + 1e-12)
        return Fraction(min(sums, spectral))


@dataclass(frozen=True, eq=False)
class Outer(Changes):
    """The moments of one row x with |x_i| <= c_i: 1, then x, then x_i x_j for i <= j.

    Parameters
    ----------
    bounds : integers, shape (m,)
        c, on the grid.
    signed
        Whether features may be negative: -c_i <= x_i <= c_i, and else 0 <= x_i <= c_i.
    count, sums, products
        Which of the three parts the data holds, in this order.

    With each entry measured on its own, weight w = 1/sigma^2:

        add-remove  mu^2 = w_n + sum_i w_i c_i^2 + sum_{i<=j} w_ij c_i^2 c_j^2, at x = c
        replace     the same without w_n for features in [0, c_i]; for signed ones sums cost 4
                    times as much, and products at most min(2, ...) times (design.md, section 7)
    """

    bounds: Integers
    signed: bool = True
    count: bool = True
    sums: bool = True
    products: bool = True

    def __post_init__(self) -> None:
        bounds = integers("the bounds of Outer", self.bounds)
        if bounds.ndim != 1 or not bounds.size or np.any(bounds <= 0):
            raise InvalidInput("Outer needs a bound above 0 for every feature.")
        object.__setattr__(self, "bounds", bounds)
        if not (self.count or self.sums or self.products):
            raise InvalidInput("Outer needs at least one of count, sums and products.")

    @cached_property
    def pairs(self) -> tuple[Integers, Integers]:
        """The rows and columns of the products: i <= j."""
        i, j = np.triu_indices(len(self.bounds))
        return i, j

    @property
    def size(self) -> int:
        """How many integers the data is."""
        m = len(self.bounds)
        return int(self.count) + m * self.sums + m * (m + 1) // 2 * self.products

    @cached_property
    def corner(self) -> Integers:
        """The moments of the row x = c: the greatest of every entry."""
        c = self.bounds.astype(object)
        i, j = self.pairs
        parts = [[1]] * self.count + [c] * self.sums + [c[i] * c[j]] * self.products
        return np.concatenate([np.asarray(p, dtype=object) for p in parts])

    def widest(self, neighbours: Neighbours) -> Floats:
        """Return how far each entry can change."""
        far = self.corner.astype(np.float64)
        if neighbours == "add-remove":
            return far
        m, at = len(self.bounds), int(self.count)
        far[:at] = 0
        if self.signed:
            far[at : at + m * self.sums] *= 2
            i, j = self.pairs
            if self.products:
                far[at + m * self.sums :] *= np.where(i == j, 1.0, 2.0)
        return far

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return the greatest ||A D||^2, exact under add-remove where entries are on their own."""
        own = _own_weights(strategy)
        if own is None:
            far = np.ceil(self.widest(neighbours)).astype(np.int64)
            return Box(-far, far).square(strategy, "add-remove")
        units, exponent = own
        each = units * self.corner * self.corner
        if neighbours == "add-remove":
            return Fraction(int(sum(each)), 1 << exponent)
        m, at = len(self.bounds), int(self.count)
        sums = int(sum(each[at : at + m * self.sums]))
        products = int(sum(each[at + m * self.sums :])) if self.products else 0
        if not self.signed:
            return Fraction(sums + products, 1 << exponent)
        scale = Fraction(1, 1 << exponent)
        factor = self._signed_factor(units[at + m * self.sums :], products)
        return 4 * sums * scale + products * scale * factor

    def _signed_factor(self, units: Integers, products: int) -> Fraction:
        """Return how much more replacing costs than adding, for signed products: squared."""
        if not products:
            return Fraction(1)
        m = len(self.bounds)
        V = np.zeros((m, m))
        i, j = self.pairs
        relative = np.array([float(Fraction(int(u), products)) for u in units])
        V[i, j] = V[j, i] = np.where(i == j, relative, relative / 2)
        c2 = (self.bounds.astype(np.float64)) ** 2
        least = float(np.linalg.eigvalsh(c2[:, None] * V * c2)[0])
        # Rounding of eigenvalues: a hair below, in units of mu^2 (the trace is at most 1).
        below = max(0.0, -(least - 1e-12 * m))
        return min(Fraction(4), 2 + 2 * m * Fraction(below))


@dataclass(frozen=True, eq=False)
class Columns(Changes):
    """Any weighted mean of the columns of an integer matrix E, (size, c)."""

    reach: Integers

    def __post_init__(self) -> None:
        reach = integers("the columns", self.reach)
        if reach.ndim != 2 or 0 in reach.shape or not np.any(reach):
            raise InvalidInput(f"Columns needs a matrix that is not zero, got {reach.shape}.")
        object.__setattr__(self, "reach", reach)

    @property
    def size(self) -> int:
        """How many integers the data is."""
        return len(self.reach)

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return the greatest over columns, or over pairs of them."""
        from .dense import Dense

        dense = strategy.densify()
        told = Dense(dense.rows, dense.sigma, dense.workload, self.reach)
        return told.cost_of_one(neighbours)

    def widest(self, neighbours: Neighbours) -> Floats:
        """Return how far each entry can change."""
        E = self.reach.astype(np.float64)
        if neighbours == "replace":
            return np.asarray(E.max(axis=1) - E.min(axis=1))
        return np.asarray(np.abs(E).max(axis=1))


@dataclass(frozen=True, eq=False)
class Custom(Changes):
    """A set of the caller's own, with a proved bound.

    Parameters
    ----------
    entries
        How many integers the data is.
    bound
        From P = A^T A, (size, size) doubles, and the relation of neighbours to a number at or
        above sup ||A D||^2. What it returns is believed: prove it.
    far : shape (size,)
        The greatest |D_i| of each entry.
    """

    entries: int
    bound: Callable[[Floats, Neighbours], float]
    far: Floats

    @property
    def size(self) -> int:
        """How many integers the data is."""
        return self.entries

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return the caller's bound, raised by what rounding may have taken from P."""
        P, margin = _gram(strategy.densify(), np.ones(self.entries))
        stated = positive("the bound of a Custom set", self.bound(P, neighbours))
        return Fraction(stated) * (1 + Fraction(1, 10**9)) + Fraction(
            margin * float(np.abs(self.far).sum()) ** 2
        )

    def widest(self, neighbours: Neighbours) -> Floats:  # noqa: ARG002  # the caller knew it
        """Return what the caller said."""
        return np.asarray(self.far, dtype=np.float64)


@dataclass(frozen=True)
class OneOf(Changes):
    """One of ``parts`` equal stretches of the vector changes as ``inner`` says: a row of many."""

    inner: Changes
    parts: int

    @property
    def size(self) -> int:
        """How many integers the data is."""
        return self.inner.size * self.parts

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return the greatest over the stretches, each measured on its own."""
        from .diagonal import Diagonal

        if not isinstance(strategy, Diagonal):
            raise InvalidInput("rows of a matrix are measured entry by entry: use a Diagonal.")
        rows = np.unique(strategy.sigma.reshape(self.parts, -1), axis=0)
        return max(self.inner.square(Diagonal(row), neighbours) for row in rows)

    def widest(self, neighbours: Neighbours) -> Floats:
        """Return how far each entry can change."""
        return np.tile(self.inner.widest(neighbours), self.parts)


def _own_weights(strategy: Strategy) -> tuple[Integers, int] | None:
    """Return 1/sigma_i^2 as units over 2^exponent, where each entry is measured on its own."""
    from .diagonal import Diagonal

    if not isinstance(strategy, Diagonal):
        return None
    units, exponent = weights(strategy.sigma)
    return np.asarray(units, dtype=object), exponent


def _columns_square(dense: Dense, columns: Integers) -> Fraction:
    """Return the greatest ||A e||^2 over the columns e of an integer matrix, exactly."""
    from .dense import Dense

    return Dense(dense.rows, dense.sigma, dense.workload, columns).cost_of_one("add-remove")


def _gram(dense: Dense, scale: Floats) -> tuple[Floats, float]:
    """Return D P D, P = A^T A and D = diag(scale), in doubles, and a bound on an entry's error."""
    V = np.asarray(dense.rows, dtype=np.float64) / dense.sigma[:, None] * scale
    P = V.T @ V
    # An inner product of k terms errs by (k + 2) u of the product of lengths; entries by 4 u.
    return P, 4 * (len(V) + 16) * 2.0**-53 * float(np.einsum("ij,ij->j", V, V).max())


def _largest_eigenvalue(strategy: Strategy) -> Fraction:
    """Return ||A||^2, exactly where each entry is measured on its own, and else a bound above."""
    from .kronecker import Kronecker

    own = _own_weights(strategy)
    if own is not None:
        units, exponent = own
        return Fraction(int(max(units)), 1 << exponent)
    if isinstance(strategy, Kronecker):
        found = Fraction(1)
        for factor in strategy.factors:
            found *= _largest_eigenvalue(factor)
        return found
    dense = strategy.densify()
    if _is_unit(dense):
        units, exponent = weights(dense.sigma)
        return Fraction(int(max(units)), 1 << exponent)
    P, margin = _gram(dense, np.ones(dense.shape[1]))
    top = float(np.linalg.eigvalsh(P)[-1])
    return Fraction(top) * (1 + Fraction(1, 10**12)) + Fraction(margin) * len(P)


def _is_unit(dense: Dense) -> bool:
    k, d = dense.rows.shape
    return k == d and np.array_equal(dense.rows, np.eye(k, dtype=np.int64))


def check_size(changes: Changes | None, size: int) -> None:
    """Refuse a set of changes of another vector."""
    if changes is not None and changes.size != size:
        raise InvalidInput(
            f"the set of changes is of {changes.size} entries, and the strategy measures {size}."
        )
