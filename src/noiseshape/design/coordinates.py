"""Coordinates for a design: the reduced workload in a basis, and strategies back on all cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from .._checks import Floats
from ..errors import InvalidInput
from .certificate import Neighbours
from .reduce import Ints, Reduced, reduce
from .sides import Pairs, Side, Units, UnitsAnd, Vectors

# A direction of the workload (rows scaled to length one) below this share of the largest is none.
RANK_TOLERANCE = 1e-12
# A basis may miss the workload by this share of its size.
BASIS_TOLERANCE = 1e-12


# Beyond this many cells (d^2/2 pairs) a design for replace has the shape of one for add-remove.
MOST_PAIRED = 256
# Up to this share of cells that depend on the others, the others are the basis: the iteration then
# treats most people as unit vectors, which saves it a third.
FEW = 0.25


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A workload in a basis, ``L B``, scaled to unit targets, and how to leave these coordinates.

    Attributes
    ----------
    reduced
        What was left out and how to put it back.
    people, queries
        The two sides, in ``k`` coordinates.
    B : (k, d') or None
        Columns on kept cells; None if the cells themselves are the basis.
    total : (m',)
        Part of each query that is a multiple of the number of people and can be told from the
        rest: free under replace, where that number is public. Zero otherwise.
    """

    reduced: Reduced
    people: Side
    queries: Side
    B: Floats | None
    total: Floats

    @property
    def paired(self) -> bool:
        """Whether people are pairs of cells."""
        return isinstance(self.people, Pairs)

    @property
    def rank(self) -> int:
        """Numerical rank of the workload."""
        return self.queries.k + int(np.any(self.total))

    def strategy(self, Ti: Floats, spare: float) -> Floats:
        """Return ``A = T^-1 B`` (k, d) on all cells.

        Where the number of people is free, a row measures it so well that it adds at most
        ``spare`` to any variance over its target.
        """
        A = Ti.T if self.B is None else Ti.T @ self.B
        if np.any(self.total):
            weight = np.abs(self.total).max() / np.sqrt(spare)
            A = np.vstack([A, np.full(len(self.reduced.representatives), weight)])
        return self.reduced.expand(A)


def coordinates(
    W: Floats,
    c: Floats,
    neighbours: Neighbours,
    *,
    basis: Floats | None = None,
    every_query: bool = False,
) -> Coordinates:
    """Reduce ``W`` and find a basis: an orthonormal one of its rows unless one is given.

    Pairs of cells are in coordinates of their own: a given basis is then only checked.
    """
    reduced = reduce(W, c, neighbours, every_query=every_query)
    B = None if basis is None else _checked(basis, reduced.full)[:, reduced.representatives]
    paired = neighbours == "replace" and len(reduced.representatives) <= MOST_PAIRED
    W, c = reduced.W, reduced.c
    none = np.zeros(len(c))
    if paired:
        return _paired(reduced, W, c)
    if B is not None:
        return Coordinates(reduced, _plain(B.T.copy()), Vectors(_solved(W, B), c), B, none)
    chosen, X = spanning_columns(W)
    k, d = len(chosen), W.shape[1]
    if k == d:
        return Coordinates(reduced, Units(d), Vectors(W, c), None, none)
    B = _on_cells(chosen, X)
    if d - k <= FEW * k:
        others = np.setdiff1d(np.arange(d), chosen)
        people = UnitsAnd(chosen, others, np.ascontiguousarray(X.T))
        return Coordinates(reduced, people, Vectors(W[:, chosen], c), B, none)
    # Many dependent cells: no structure to use, and an orthonormal basis is the best conditioned.
    Q = np.linalg.qr(B.T)[0]
    return Coordinates(reduced, _plain(Q), Vectors(W @ Q, c), Q.T, none)


def _plain(V: Floats) -> Vectors:
    """Return vectors without targets, as people are."""
    return Vectors(V, np.ones(len(V)))


def _paired(reduced: Reduced, W: Floats, c: Floats) -> Coordinates:
    """Coordinates under replace: only differences of columns matter, so take the least one off.

    A larger one would leave its rounding in the others.
    """
    at = int(np.linalg.norm(W, axis=0).argmin())
    least = W[:, at]
    differences = np.delete(W, at, axis=1) - least[:, None]
    chosen, X = spanning_columns(differences)
    L, B = differences[:, chosen], _on_cells(chosen, X)
    points = np.insert(B.T, at, 0.0, axis=0)
    # W = L (B, 0) + least 1^T: what of ``least`` L does not span needs the number of people.
    shift = sl.lstsq(L, least, check_finite=False)[0] if L.size else np.zeros(len(B))
    total = least - L @ shift
    if np.linalg.norm(total) <= RANK_TOLERANCE * len(least) * np.linalg.norm(W):
        total = np.zeros(len(least))
    basis = points.T + shift[:, None]
    return Coordinates(reduced, Pairs(points), Vectors(L, c), basis, total / np.sqrt(c))


def row_space(W: Floats) -> Floats | None:
    """Return an orthonormal basis (d, k) of the rows of ``W``, or None if they span everything."""
    chosen, X = spanning_columns(W)
    return None if len(chosen) == W.shape[1] else np.linalg.qr(_on_cells(chosen, X).T)[0]


def _on_cells(chosen: Ints, X: Floats) -> Floats:
    """Return the basis (k, d) whose coordinates are the ``chosen`` cells."""
    k, d = len(chosen), len(chosen) + X.shape[1]
    B = np.zeros((k, d))
    B[np.arange(k), chosen] = 1.0
    B[:, np.setdiff1d(np.arange(d), chosen)] = X
    return B


def spanning_columns(W: Floats) -> tuple[Ints, Floats]:
    """Return ``k`` columns that span all, in order, and the others' coordinates (k, d - k) in them.

    Numerical rank: rows are scaled to length one, and what pivoted QR finds below
    :data:`RANK_TOLERANCE` of the largest is taken as zero.
    """
    m, d = W.shape
    lengths = np.linalg.norm(W, axis=1)
    rows = W / np.where(lengths > 0, lengths, 1.0)[:, None]
    if m >= d > 0 and _surely_full_rank(rows.T @ rows):
        return np.arange(d), np.zeros((d, 0))
    R, pivots = sl.qr(rows, mode="r", pivoting=True, overwrite_a=True, check_finite=False)
    diagonal = np.abs(R.diagonal())
    k = int(np.count_nonzero(diagonal > RANK_TOLERANCE * diagonal[0])) if diagonal.any() else 0
    X = sl.solve_triangular(R[:k, :k], R[:k, k:], check_finite=False) if k else R[:0, k:]
    chosen, others = np.argsort(pivots[:k]), np.argsort(pivots[k:])
    return pivots[:k][chosen], X[np.ix_(chosen, others)]


def _surely_full_rank(gram: Floats) -> bool:
    """Whether a Gram matrix is so well conditioned that squaring cannot have hidden its rank."""
    factor, failed = sl.lapack.dpotrf(gram, lower=1, overwrite_a=1, clean=0)
    if failed:
        return False
    rcond, _ = sl.lapack.dpocon(factor, 1.0, uplo="L")
    return bool(rcond > 1e-10)


def _solved(W: Floats, B: Floats) -> Floats:
    """Return ``L`` with ``L B = W`` in least squares."""
    Q, R = np.linalg.qr(B.T)
    result: Floats = sl.solve_triangular(R, (W @ Q).T, check_finite=False).T
    return np.ascontiguousarray(result)


def _checked(basis: Floats, W: Floats) -> Floats:
    """Return ``basis`` if its rows are independent and just span ``W``; refuse it otherwise."""
    if basis.ndim != 2 or basis.shape[1] != W.shape[1]:
        raise InvalidInput(f"basis must have {W.shape[1]} columns, got shape {basis.shape}.")
    k = len(basis)
    if k == 0 or np.linalg.matrix_rank(basis) < k:
        raise InvalidInput(f"The {k} rows of basis must be linearly independent: leave some out.")
    L = _solved(W, basis)
    miss = float(np.linalg.norm(L @ basis - W) / np.linalg.norm(W))
    if not miss <= BASIS_TOLERANCE:
        raise InvalidInput(
            f"basis must span the workload: L B misses W by {miss:.1e} of its size, "
            f"and at most {BASIS_TOLERANCE:g} is allowed."
        )
    rank = int(np.linalg.matrix_rank(L))
    if rank < k:
        raise InvalidInput(
            f"basis has {k} rows for a workload of rank {rank}: give a basis of the workload only."
        )
    return basis
