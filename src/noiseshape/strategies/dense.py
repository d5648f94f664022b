"""Any integer matrix as a strategy."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import fmpz_mat, nmod_mat
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr, solve_triangular

from .._checks import Floats, floats
from ..errors import InvalidInput, NotSpanned
from ..privacy import Profile
from .changes import Changes, check_size
from .exact import Integers, fits, integers, magnitude, product, shifted, squares
from .sigma import WIDEST, refined, scaled, scales, weights
from .strategy import PAIRS, Strategy, exact_integers

# A query is spanned when the measured rows give it exactly, or, as doubles have it, to this
# share of its own greatest entry: a workload may have to move that far to fit an integer basis.
MOVED = 1e-12

# A prime of 62 bits: ranks over it equal those over the rationals but for one matrix in 2^50.
_PRIME = 4611686018427387847

_BLOCK = 256  # columns compared at a time under replace: bounds the memory to 256 x d integers


@dataclass(frozen=True, eq=False)
class Dense(Strategy):
    """A strategy whose rows are written out.

    Parameters
    ----------
    rows : integers, shape (k, d)
        A~. More rows than cells are allowed: the answers then use all of them, weighted.
    sigma : shape (k,) or one number
        Noise scale of each row, at least 1.
    workload : shape (m, d)
        W. Every query must be a combination of the rows.
    reach : integers, shape (d, c), or None
        What one person's row can add to the data: any combination of these columns with weights
        that are not negative and sum to 1. None: the unit vectors, one cell each. Costs,
        profiles and differences are then of A~ reach, exact at its columns and greatest there,
        since a length is convex.
    changes
        Any other set of what one row can contribute.

    Examples
    --------
    >>> import numpy as np
    >>> two = Dense(np.array([[1, 1], [1, -1]]), 64.0, np.eye(2))
    >>> two.rebuild(two.apply([30, 12]))
    array([30., 12.])
    """

    rows: Integers
    sigma: Floats
    workload: Floats
    reach: Integers | None = None
    changes: Changes | None = None

    def __post_init__(self) -> None:
        rows = integers("the strategy's rows", self.rows)
        if rows.ndim != 2 or 0 in rows.shape:
            raise InvalidInput(f"a strategy needs rows and cells, got shape {rows.shape}.")
        workload = floats("workload", self.workload, ndim=2)
        if workload.shape[1] != rows.shape[1] or not len(workload):
            raise InvalidInput(
                f"workload must ask about the strategy's {rows.shape[1]} cells, "
                f"got shape {workload.shape}."
            )
        asked = np.abs(workload).max(axis=1)
        inside = (asked == 0) | ((asked >= 2.0**-WIDEST) & (asked <= 2.0**WIDEST))
        if magnitude(rows) >> WIDEST or not inside.all():
            raise InvalidInput(
                f"the greatest entry of a strategy's row must be at most 2^{WIDEST}, and of a "
                f"query between 2^-{WIDEST} and 2^{WIDEST}: state them in another unit."
            )
        for array in (rows, workload):
            array.setflags(write=False)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "workload", workload)
        object.__setattr__(self, "sigma", scales(self.sigma, len(rows)))
        if self.reach is not None:
            reach = integers("reach", self.reach)
            if reach.ndim != 2 or len(reach) != rows.shape[1] or not reach.shape[1]:
                raise InvalidInput(
                    f"reach must have a row for each of {rows.shape[1]} cells, got {reach.shape}."
                )
            if self.changes is not None:
                raise InvalidInput("what one row can do is stated once: as reach, or as changes.")
            reach.setflags(write=False)
            object.__setattr__(self, "reach", reach)
            if magnitude(self.reached) >> WIDEST:
                raise InvalidInput(
                    f"what one row adds to a measured number must be at most 2^{WIDEST}: state "
                    "the data in another unit."
                )
        check_size(self.changes, rows.shape[1])
        self._check_span()

    def _check_span(self) -> None:
        """Refuse a workload with a part that is not measured."""
        W = self.workload
        if self._inverse.rank < min(self.shape) and self._inverse.rank < self._rank:
            raise InvalidInput(
                f"the strategy is too ill-conditioned: doubles tell {self._inverse.rank} of its "
                f"{self._rank} directions apart; measure rows that differ more from each other."
            )
        outside = np.abs(W - self._inverse.project(W)).max(axis=1)
        doubted = np.flatnonzero(outside > MOVED * np.abs(W).max(axis=1))
        # The projection is in doubles, and errs with the strategy's condition: ask exactly.
        missed = [j for j in doubted if not self._spans(W[j])]
        if missed:
            raise NotSpanned(
                f"the strategy does not span the workload: {len(missed)} of {len(W)} queries, "
                f"query {missed[0]} first, have a part that no combination of its rows gives; "
                "measure more rows or ask less."
            )

    def _spans(self, row: Floats) -> bool:
        """Return whether a row of doubles is a rational combination of the strategy's rows."""
        exact, _ = exact_integers(row[None, :])
        both = np.vstack([self.rows.astype(object), exact.astype(object)])
        return exact_rank(both) == self._rank

    @cached_property
    def _rank(self) -> int:
        return exact_rank(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows measured and cells: (k, d)."""
        return self.rows.shape

    @property
    def queries(self) -> int:
        """How many questions are answered: m."""
        return len(self.workload)

    def apply(self, x: ArrayLike) -> Integers:
        """Return A~ x exactly: shape (k,) for integers x of shape (d,)."""
        return self._apply_to(self._data(x))

    def _apply_to(self, X: Integers) -> Integers:
        return product(self.rows, X)

    @cached_property
    def reached(self) -> Integers:
        """A~ times everything that one row can add, shape (k, c)."""
        return self.rows if self.reach is None else product(self.rows, self.reach)

    @cached_property
    def _profile(self) -> Profile:
        """sum_r A~_ri^2 w_r / 2^e for each column i, where w_r / 2^e >= 1 / sigma_r^2."""
        units, exponent = weights(self.sigma)
        total = np.zeros(self.reached.shape[1], dtype=object)
        # Rows of equal sigma are summed first, in int64 where that is safe.
        for sigma in np.unique(self.sigma):
            chosen = np.flatnonzero(self.sigma == sigma)
            total = total + squares(self.reached[chosen]).astype(object) * units[chosen[0]]
        return Profile(total, exponent)

    def asking(self, workload: ArrayLike) -> Dense:
        """Return the same rows and scales, answering another workload: what can be derived."""
        W = floats("workload", workload, ndim=2)
        if W.shape[1] != self.shape[1] or not len(W):
            raise InvalidInput(f"workload must ask about {self.shape[1]} cells, got {W.shape}.")
        W.setflags(write=False)
        twin = self._twin(workload=W)
        # The factors of the rows are the dear part, and stay.
        vars(twin).update(_weighting=self._weighting, _inverse=self._inverse)
        twin._check_span()
        return twin

    def measurable(self, workload: ArrayLike) -> Floats:
        """Return, for each row, the nearest question that the strategy answers, shape (m, d)."""
        return self._inverse.project(floats("workload", workload, ndim=2))

    def greatest_difference(self) -> Fraction:
        """Return the greatest squared distance of two columns of A.

        Exactly up to ``PAIRS`` columns; beyond, a bound above it by rounding of doubles alone.
        """
        units, exponent = weights(self.sigma)
        reached = self.reached
        if reached.shape[1] > PAIRS:
            return min(self._difference_bound(units, exponent), self.profile().replace_bound())
        if np.all(self.sigma == self.sigma[0]) and fits(reached.T, reached):
            return Fraction(_greatest_distance(reached) * int(units[0]), 1 << exponent)
        columns = fmpz_mat([[int(v) for v in column] for column in reached.T.tolist()])
        weighted = [
            [int(v) * w for v in row] for row, w in zip(reached.tolist(), units, strict=True)
        ]
        lengths = np.asarray(self.profile().units)
        greatest = 0
        for start in range(0, reached.shape[1], _BLOCK):
            block = fmpz_mat([row[start : start + _BLOCK] for row in weighted])
            inner = np.array((columns * block).tolist(), dtype=object)
            other = lengths[start : start + _BLOCK]
            greatest = max(greatest, int((lengths[:, None] + other - 2 * inner).max()))
        return Fraction(greatest, 1 << exponent)

    @cached_property
    def _replaced(self) -> Fraction:
        return self.greatest_difference()

    def _difference_bound(self, units: Integers, exponent: int) -> Fraction:
        """Return a rational above every squared distance of two columns of A.

        Distances come from doubles, n_i + n_j - 2 v_i . v_j, with v the columns of A. An inner
        product of k terms errs by at most (k + 2) u of the product of lengths, u = 2^-53, and the
        entries by 4 u; lengths likewise: in all less than 4 (k + 16) u times the greatest length
        squared.
        """
        roots = [math.sqrt(Fraction(w, 1 << exponent)) for w in units]
        V = np.asarray(self.reached, dtype=np.float64) * np.array(roots)[:, None]
        lengths = np.einsum("ij,ij->j", V, V)
        greatest = 0.0
        for start in range(0, V.shape[1], _BLOCK):
            block = slice(start, start + _BLOCK)
            inner = V[:, block].T @ V
            greatest = max(greatest, (lengths[block, None] + lengths - 2 * inner).max())
        # The profile's greatest entry is exact, and so the margin is no estimate.
        margin = 4 * (len(V) + 16) * Fraction(1, 1 << 53) * self.profile().greatest
        return Fraction(greatest) + margin

    def covariance(self) -> Floats:
        """Return the covariance of the answers, shape (m, m)."""
        weighted = self._rebuilding * self.noise_variance
        return weighted @ self._rebuilding.T

    def _variance(self) -> Floats:
        return self._rebuilt_variance(self.noise_variance)

    def densify(self) -> Dense:
        """Return self: every matrix is written out already."""
        return self

    def scaled(self, factor: float, *, up: bool = True) -> Dense:
        """Return the same shape with every sigma multiplied by ``factor``."""
        sigma, bits = refined(scaled(self.sigma, factor, up=up), magnitude(self.reached))
        rows = shifted(self.rows, bits)
        rows.setflags(write=False)
        twin = self._twin(rows=rows, sigma=scales(sigma, len(sigma)))
        # One factor for every row: the answers are put together as before.
        vars(twin).update(_weighting=np.ldexp(self._weighting, bits), _inverse=self._inverse)
        return twin

    def _twin(self, **changes: Floats) -> Dense:
        """Return a copy with changed fields, and nothing derived from them."""
        twin = copy.copy(self)
        fields = ("rows", "sigma", "workload", "reach", "changes")
        vars(twin).clear()
        vars(twin).update({name: getattr(self, name) for name in fields} | changes)
        return twin

    def _approximate_to(self, R: Floats) -> Floats:
        return self._inverse.solve((R.T / self._weighting).T)

    def _ask_to(self, X: Integers) -> Integers:
        return product(self._asked[0], X)

    @property
    def _asked_bits(self) -> NDArray[np.int64]:
        return self._asked[1]

    def _rebuilt_variance(self, variances: Floats) -> Floats:
        return self._rebuilding**2 @ variances

    def _gross(self) -> float:
        return float(np.abs(self.workload).sum(axis=1).max())

    @cached_property
    def _asked(self) -> tuple[Integers, NDArray[np.int64]]:
        return exact_integers(self.workload)

    @cached_property
    def _rebuilding(self) -> Floats:
        """R, shape (m, k): answers = R y."""
        return self._inverse.solve_left(self.workload) / self._weighting

    @cached_property
    def _weighting(self) -> Floats:
        """Scales by which rows are weighted in the answers: sigma, up to one common factor."""
        return self.sigma

    @cached_property
    def _inverse(self) -> _PseudoInverse:
        return _PseudoInverse(np.asarray(self.rows, dtype=np.float64) / self._weighting[:, None])


def exact_rank(rows: Integers) -> int:
    """Return the rank of integers, whatever their size and condition."""
    entries = [int(v) % _PRIME for v in rows.ravel().tolist()]
    k, d = rows.shape
    return int(nmod_mat(k, d, entries, _PRIME).rank())


def _greatest_distance(columns: Integers) -> int:
    """Return the greatest squared distance of two columns, (k, d), whose products fit int64.

    Exact: inner products go through BLAS in whole numbers (``product``), eight times as fast as
    Python's integers in flint; sums of four of them are put together where they surely fit.
    """
    lengths = squares(columns)
    room = 4 * magnitude(lengths) < 1 << 63
    greatest = 0
    for start in range(0, columns.shape[1], _BLOCK):
        block = slice(start, start + _BLOCK)
        inner, own = product(columns.T, columns[:, block]), lengths
        if not room:
            inner, own = inner.astype(object), lengths.astype(object)
        greatest = max(greatest, int((own[:, None] + own[block] - 2 * inner).max()))
    return greatest


class _PseudoInverse:
    """A^+ of the strategy with unit noise, in factors: A = U T V^T, and A^+ = V T^-1 U^T."""

    def __init__(self, A: Floats) -> None:
        k, d = A.shape
        if k >= d:
            U, T = qr(A, mode="economic", check_finite=False)
            self.V, self.T, self.U = None, T, U
        else:
            V, T = qr(A.T, mode="economic", check_finite=False)
            self.V, self.T, self.U = V, T.T, None
        self.lower = k < d
        # Each relative to the length of its own column of A, or row: data in small steps and in
        # large ones stand in one strategy, and QR errs by column.
        lengths = np.linalg.norm(T, axis=0)
        size = np.abs(np.diag(T)) / np.where(lengths > 0, lengths, 1)
        if size.min() <= 1e-12:  # the rows repeat each other: cut the rank
            U, s, Vt = np.linalg.svd(A, full_matrices=False)
            kept = s > 1e-12 * s[0]
            self.V, self.T, self.U = Vt[kept].T, np.diag(s[kept]), U[:, kept]
        self.rank = len(self.T)

    def solve(self, r: Floats) -> Floats:
        """Return A^+ r."""
        t = self.U.T @ r if self.U is not None else r
        t = solve_triangular(self.T, t, lower=self.lower, check_finite=False)
        return self.V @ t if self.V is not None else t

    def solve_left(self, W: Floats) -> Floats:
        """Return W A^+."""
        t = W @ self.V if self.V is not None else W
        t = solve_triangular(self.T, t.T, lower=self.lower, trans="T", check_finite=False).T
        return t @ self.U.T if self.U is not None else t

    def project(self, W: Floats) -> Floats:
        """Return W A^+ A: the part of W in the span of the rows."""
        return W if self.V is None else (W @ self.V) @ self.V.T
