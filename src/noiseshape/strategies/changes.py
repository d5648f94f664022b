"""What one person's row can do to the data vector, where that is more than one cell.

A set of changes answers one question: how far can one row move A x at most? It holds what a row
can *contribute*; under add-remove a change is a contribution, under replace the difference of two.
Every answer is exact, or a proved bound above.

    Ball(size, radius)      any vector of length at most ``radius``
    Box(low, high)          each entry between its own bounds
    Outer(bounds)           count, features and products of one row of bounded features
    Columns(E)              any weighted mean of the columns of E
    Spectrum(shape, values) any matrix with these singular values
    Custom(far, bound)      whatever the caller has proved
    OneOf(set, n)           one of n equal parts of the vector changes: a row of a data matrix

Entrywise noise, sigma_t on entry t, moves by at most max_i sum_t B_it / sigma_t^2: ``terms`` is
that B, by which entrywise noise is designed (design/entrywise.py).
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
from scipy import sparse

from .._arb import fraction_up, sqrt_up
from .._checks import Floats, exact_positive, floats, positive, whole
from ..errors import InvalidInput
from ..privacy.people import Neighbours
from .exact import Integers, integers

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

    @abstractmethod
    def terms(self, neighbours: Neighbours) -> sparse.csr_array:
        """Return B, (people, size): ||A D||^2 <= max_i sum_t B_it / sigma_t^2, entrywise."""

    def tight(self, neighbours: Neighbours) -> bool:  # noqa: ARG002  # for most sets of changes
        """Return whether ``terms`` tells the cost of entrywise noise exactly."""
        return True

    def length(self, neighbours: Neighbours) -> float:
        """Return sup ||D||_2, the papers' s2, rounded up."""
        from .diagonal import Diagonal

        unit = Diagonal(np.full(self.size, 1.0))
        return sqrt_up(self.square(unit, neighbours))


@dataclass(frozen=True, eq=False)
class Ball(Changes):
    """Any contribution of length at most ``radius``: what clipping to a norm leaves.

    Parameters
    ----------
    size
        How many entries there are.
    radius
        The greatest length, in whole steps (any rational).
    counts : integers, shape (size,), optional
        How often each entry counts in the length: sum_t counts_t D_t^2 <= radius^2. In a
        symmetric matrix that is measured once, entries off the diagonal count twice.
    """

    entries: int
    radius: Fraction
    counts: Integers | None = None

    def __init__(
        self, size: int, radius: float | Fraction, counts: ArrayLike | None = None
    ) -> None:
        object.__setattr__(self, "entries", whole("the size of a Ball", size))
        object.__setattr__(self, "radius", exact_positive("the radius of a Ball", radius))
        if counts is not None:
            times = integers("the counts of a Ball", counts)
            if times.shape != (size,) or np.any(times < 1):
                raise InvalidInput(f"a Ball needs a count of at least 1 for {size} entries.")
            object.__setattr__(self, "counts", times)

    @property
    def size(self) -> int:
        """How many integers the data is."""
        return self.entries

    def _radius(self, neighbours: Neighbours) -> Fraction:
        return self.radius * (2 if neighbours == "replace" else 1)

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return (r ||A||)^2, r the radius, or twice it under replace."""
        return self._radius(neighbours) ** 2 * _largest_eigenvalue(strategy, self.counts)

    def widest(self, neighbours: Neighbours) -> Floats:
        """Return the radius for every entry, less where it counts more often."""
        length = np.full(self.entries, np.nextafter(float(self._radius(neighbours)), np.inf))
        return length if self.counts is None else np.nextafter(length / self.counts**0.5, np.inf)

    def terms(self, neighbours: Neighbours) -> sparse.csr_array:
        """Return r^2 / counts for each entry by itself: exact."""
        r2 = float(self._radius(neighbours) ** 2)
        counts = np.ones(self.entries) if self.counts is None else self.counts
        return sparse.csr_array(sparse.diags_array(r2 / counts))


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

    def terms(self, neighbours: Neighbours) -> sparse.csr_array:
        """Return w_t^2 in one row: exact, at a corner."""
        return _row(self.widest(neighbours) ** 2)

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
        spectral = len(w) * _above(float(np.linalg.eigvalsh(P)[-1]), margin, len(w))
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

    def terms(self, neighbours: Neighbours) -> sparse.csr_array:
        """Return how far each entry can change, squared; for signed products replaced, a bound.

        That bound is twice their c_i^2 c_j^2, which is what ``square`` says unless entries differ
        wildly: designs are made by it, and their cost is always what ``square`` says.
        """
        far = self.widest(neighbours) ** 2
        if not self.tight(neighbours):
            far[-len(self.pairs[0]) :] = 2 * self.corner[-len(self.pairs[0]) :].astype(float) ** 2
        return _row(far)

    def tight(self, neighbours: Neighbours) -> bool:
        """Return whether it is: not for signed products that are replaced."""
        return not (self.products and self.signed and neighbours == "replace")

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return the greatest ||A D||^2.

        Exact where each entry is measured on its own and a row is added or removed, or replaced
        with features of one sign. For other strategies the least of the bound of a box and of
        that of a ball: ||x x^T|| = ||x||^2, and two of them are at most sqrt 2 times that apart.
        """
        own = _own_weights(strategy)
        if own is None:
            far = np.ceil(self.widest(neighbours)).astype(np.int64)
            box = Box(-far, far).square(strategy, "add-remove")
            return min(box, self._ball(neighbours).square(strategy, "add-remove"))
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

    def _ball(self, neighbours: Neighbours) -> Ball:
        """Return a ball that holds all changes; products off the diagonal count twice."""
        i, j = self.pairs
        m = len(self.bounds)
        square = int(sum(self.bounds.astype(object) ** 2))
        parts = [1 * self.count, square * self.sums, square**2 * self.products]
        if neighbours == "replace":
            parts = [0, parts[1] * (4 if self.signed else 1), parts[2] * 2]
        counts = [[1]] * self.count + [[1] * m] * self.sums + [np.where(i == j, 1, 2)]
        kept = np.concatenate(counts if self.products else counts[:-1])
        return Ball(self.size, Fraction(sqrt_up(Fraction(sum(parts)))), kept.astype(np.int64))

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

    def terms(self, neighbours: Neighbours) -> sparse.csr_array:
        """Return the squares of the columns, or of their differences: exact."""
        E = self.reach.astype(np.float64)
        if neighbours == "replace":
            i, j = np.triu_indices(E.shape[1], 1)
            E = E[:, i] - E[:, j]
        return sparse.csr_array(E.T**2)

    def widest(self, neighbours: Neighbours) -> Floats:
        """Return how far each entry can change."""
        E = self.reach.astype(np.float64)
        if neighbours == "replace":
            return np.asarray(E.max(axis=1) - E.min(axis=1))
        return np.asarray(np.abs(E).max(axis=1))


@dataclass(frozen=True, eq=False)
class Spectrum(Changes):
    """Matrices (m, n) whose singular values are at most these, in whatever directions.

    Parameters
    ----------
    shape
        m, n.
    values : shape (r,), r <= min(m, n)
        The greatest singular values, decreasing, in whole steps.

    Formal Guarantees (IMGM, Theorem 1):
      ||A_1 D A_2^T||_F^2 <= sum_i s_i(A_1)^2 s_i(A_2)^2 values_i^2, with the singular values of
      each in decreasing order; attained when the directions are those of A_1 and A_2.
    """

    shape: tuple[int, int]
    values: Floats

    def __post_init__(self) -> None:
        m, n = (whole("a length of the shape", v) for v in self.shape)
        values = floats("the singular values", self.values, ndim=1)
        if not 0 < len(values) <= min(m, n) or not np.all(values >= 0) or not np.any(values):
            raise InvalidInput(
                f"a {m} x {n} matrix has 1 to {min(m, n)} singular values, none below 0 and not "
                f"all 0; got {len(values)}."
            )
        if np.any(np.diff(values) > 0):
            raise InvalidInput("singular values are given in decreasing order.")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @property
    def size(self) -> int:
        """How many integers the data is."""
        return self.shape[0] * self.shape[1]

    def _ball(self) -> Ball:
        square = sum(Fraction(v) ** 2 for v in self.values.tolist())
        return Ball(self.size, Fraction(sqrt_up(Fraction(square))))

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return the sum over singular values; for other strategies the ball's bound."""
        from .kronecker import Kronecker

        factors = strategy.factors if isinstance(strategy, Kronecker) else ()
        if tuple(f.shape[1] for f in factors) != self.shape:
            return self._ball().square(strategy, neighbours)
        first, second = (_squared_values(f)[: len(self.values)] for f in factors)
        total = sum(
            (Fraction(a) * Fraction(b) * Fraction(v) ** 2
             for a, b, v in zip(first, second, self.values.tolist(), strict=True)),
            Fraction(0),
        )  # fmt: skip
        return total * (4 if neighbours == "replace" else 1)

    def widest(self, neighbours: Neighbours) -> Floats:
        """Return the greatest singular value for every entry."""
        far = self.values[0] * (2.0 if neighbours == "replace" else 1.0)
        return np.full(self.size, np.nextafter(far, np.inf))

    def terms(self, neighbours: Neighbours) -> sparse.csr_array:
        """Return the ball's: a bound."""
        return self._ball().terms(neighbours)

    def tight(self, neighbours: Neighbours) -> bool:  # noqa: ARG002
        """Return whether it is: for one singular value, which may stand in one entry."""
        return len(self.values) == 1


@dataclass(frozen=True, eq=False)
class Custom(Changes):
    """A set of the caller's own, with a proved bound.

    Parameters
    ----------
    far : shape (size,)
        The greatest |D_i| of each entry, in whole steps, under the relation that is used.
    bound, optional
        From P = A^T A, (size, size) doubles, and the relation of neighbours to a number at or
        above sup ||A D||^2. What it returns is believed: prove it. Without one, changes are all
        that stays within ``far``.
    """

    far: Floats
    bound: Callable[[Floats, Neighbours], float] | None = None

    def __post_init__(self) -> None:
        far = floats("far", self.far, ndim=1)
        if not far.size or not np.all(far >= 0) or not np.any(far):
            raise InvalidInput("far needs numbers of at least 0, one an entry, not all of them 0.")
        far.setflags(write=False)
        object.__setattr__(self, "far", far)

    @property
    def size(self) -> int:
        """How many integers the data is."""
        return len(self.far)

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return the caller's bound, raised by what rounding may have taken from P."""
        within = Box(*(sign * np.ceil(self.far).astype(np.int64) for sign in (-1, 1)))
        if self.bound is None:
            return within.square(strategy, "add-remove")
        P, margin = _gram(strategy.densify(), np.ones(self.size))
        stated = positive("the bound of a Custom set", self.bound(P, neighbours))
        return Fraction(stated) * (1 + Fraction(1, 10**9)) + Fraction(
            margin * float(self.far.sum()) ** 2
        )

    def widest(self, neighbours: Neighbours) -> Floats:  # noqa: ARG002  # the caller knew it
        """Return what the caller said."""
        return self.far

    def terms(self, neighbours: Neighbours) -> sparse.csr_array:  # noqa: ARG002
        """Return those of the box that ``far`` spans: a bound, where the caller has another."""
        return _row(self.far**2)

    def tight(self, neighbours: Neighbours) -> bool:  # noqa: ARG002
        """Return whether changes are all that stays within ``far``."""
        return self.bound is None


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
        """Return the greatest over the stretches, as exact as the inner set tells each.

        For a product A_1 x A_2 with A_1 over the stretches: that of A_2 times the greatest
        squared column of A_1.
        """
        from .diagonal import Diagonal
        from .kronecker import Kronecker

        if isinstance(strategy, Kronecker) and strategy.factors[0].shape[1] == self.parts:
            first, *rest = strategy.factors
            within = rest[0] if len(rest) == 1 else Kronecker(rest)
            return first.profile().greatest * self.inner.square(within, neighbours)
        if not isinstance(strategy, Diagonal):
            raise InvalidInput(
                f"rows of a matrix are measured entry by entry, or by a product over {self.parts} "
                "rows and over columns: use a Diagonal or a Kronecker."
            )
        sigma = strategy.sigma.reshape(self.parts, -1)
        rows = sigma[:1] if np.all(sigma == sigma[0]) else np.unique(sigma, axis=0)
        return max(self.inner.square(Diagonal(r, bits=strategy.bits), neighbours) for r in rows)

    def widest(self, neighbours: Neighbours) -> Floats:
        """Return how far each entry can change."""
        return np.tile(self.inner.widest(neighbours), self.parts)

    def terms(self, neighbours: Neighbours) -> sparse.csr_array:
        """Return the inner ones for each stretch: as exact as they are."""
        eye = sparse.eye_array(self.parts)
        return sparse.csr_array(sparse.kron(eye, self.inner.terms(neighbours)))

    def tight(self, neighbours: Neighbours) -> bool:
        """Return whether the inner ones are."""
        return self.inner.tight(neighbours)


def _row(values: Floats) -> sparse.csr_array:
    return sparse.csr_array(values[None, :])


def _own_weights(strategy: Strategy) -> tuple[Integers, int] | None:
    """Return A_ii^2 as units over 2^exponent, where each entry is measured on its own."""
    from .diagonal import Diagonal

    return strategy.own_weights() if isinstance(strategy, Diagonal) else None


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


def _largest_eigenvalue(strategy: Strategy, counts: Integers | None) -> Fraction:
    """Return ||A diag(counts)^-1/2||^2, exactly for entries on their own, and else a bound above.

    Every count is 1 where there are none.
    """
    from .kronecker import Kronecker

    own = _own_weights(strategy)
    if own is not None:
        units, exponent = own
        if counts is None:
            return Fraction(int(max(units)), 1 << exponent)
        greatest = {int(c): int(max(units[counts == c])) for c in np.unique(counts)}
        return max(Fraction(u, c << exponent) for c, u in greatest.items())
    if isinstance(strategy, Kronecker) and counts is None:
        found = Fraction(1)
        for factor in strategy.factors:
            found *= _largest_eigenvalue(factor, None)
        return found
    dense = strategy.densify()
    scale = np.ones(dense.shape[1]) if counts is None else counts.astype(np.float64) ** -0.5
    P, margin = _gram(dense, scale)
    return Fraction(_above(float(np.linalg.eigvalsh(P)[-1]), margin, len(P)))


def _squared_values(strategy: Strategy) -> list[float]:
    """Return bounds above the squared singular values of A, decreasing."""
    from .diagonal import Diagonal

    if isinstance(strategy, Diagonal):
        units, exponent = strategy.own_weights()
        return sorted((fraction_up(Fraction(int(u), 1 << exponent)) for u in units), reverse=True)
    dense = strategy.densify()
    P, margin = _gram(dense, np.ones(dense.shape[1]))
    values = np.maximum(np.linalg.eigvalsh(P)[::-1], 0.0)
    return [_above(v, margin + float(values[0]) * 32 * 2.0**-52, len(P)) for v in values.tolist()]


def _above(eigenvalue: float, margin: float, size: int) -> float:
    """Return a double above a computed eigenvalue of a matrix whose entries err by ``margin``.

    LAPACK's symmetric eigenvalues err by a modest multiple of size x eps x the greatest.
    """
    return eigenvalue * (1 + 64 * size * 2.0**-52) + 2 * size * margin


def check_size(changes: Changes | None, size: int) -> None:
    """Refuse a set of changes of another vector."""
    if changes is not None and changes.size != size:
        raise InvalidInput(
            f"the set of changes is of {changes.size} entries, and the strategy measures {size}."
        )
