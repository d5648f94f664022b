"""Certificates: how close to the least privacy cost a design is, and a slow way to check that.

For weights ``p`` on people and ``q`` on queries, each summing to one,

    F(p, q) = nuclear norm of  diag(q/c)^1/2 W diag(p)^1/2,      F^2 <= alpha*,

whatever ``p`` and ``q`` are (docs/math/fit.md). Under replace, ``p`` weighs pairs of cells and
the columns are differences of columns of ``W``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg as sl

from .._checks import Floats
from ..errors import InvalidInput

Neighbours = Literal["add-remove", "replace"]

COST = "privacy cost mu^2 for these targets"
EPS = float(np.finfo(np.float64).eps)
# A tiny p may be left out of a lower bound (F only falls): under replace most of the d^2/2 pairs
# carry no weight, and without them the bound at d = 256 takes a hundredth of the time.
NEGLIGIBLE = 1e-13


@dataclass(frozen=True)
class Level:
    """One level of a refined profile: cells whose cost can be no lower.

    Attributes
    ----------
    cost, lower
        Profile of these cells at the targets, and the proven lower bound on it, given that cells
        of the levels above stay at theirs.
    cells
        How many distinct cells (after merging) this level settles.
    """

    cost: float
    lower: float
    cells: int


@dataclass(frozen=True)
class Certificate:
    """Proof of how far a design is from the best there is.

    Formal guarantee: no Gaussian noise meets the targets with ``mu**2`` below ``lower``; this
    design, scaled to meet its targets, has ``mu**2 = achieved``. (With another objective, named
    by ``covers``, both numbers are values of that objective.)

    Attributes
    ----------
    lower, achieved
        Lower bound, rounding subtracted, and the value achieved.
    iterations, seconds
        What it took.
    reason
        Why the iteration stopped.
    neighbours
        The relation that the proof holds for.
    covers
        The objective that ``lower`` bounds.
    levels
        Levels of the profile, from the top, if the design is refined.
    rank, tolerance
        Numerical rank of the workload, and the relative size below which a direction is no
        direction (0 when rank was not in question).
    """

    lower: float
    achieved: float
    iterations: int = 0
    seconds: float = 0.0
    reason: str = ""
    neighbours: Neighbours = "add-remove"
    covers: str = COST
    levels: tuple[Level, ...] = ()
    rank: int = 0
    tolerance: float = 0.0

    @property
    def gap(self) -> float:
        """Relative distance to the proven bound: ``achieved / lower - 1``."""
        return self.achieved / self.lower - 1 if self.lower > 0 else float(self.achieved > 0)


def pairs(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells ``i < j`` of every pair, in the order of ``p`` under replace."""
    return np.triu_indices(d, 1)


def lower_bound(
    W: Floats,
    c: Floats,
    p: Floats,
    q: Floats,
    neighbours: Neighbours = "add-remove",
    *,
    products: bool = False,
) -> float:
    """Return ``F(p, q)**2``, rounded down: a lower bound on ``alpha*`` for any ``p, q >= 0``.

    Parameters
    ----------
    W : (m, d)
        Workload.
    c : (m,)
        Target variances.
    p : (d,) or, under replace, (d (d-1) / 2,)
        Weights on cells, or on pairs in the order of :func:`pairs`.
    q : (m,)
        Weights on queries.
    products
        Under replace: ``p`` (d,) weighs cells, and pairs by the products ``p_i p_j``.

    Notes
    -----
    Singular values come from LAPACK, each within a modest multiple of ``eps * sigma_max``. Forming
    the matrix errs by a few ulps an entry. Eight times ``max(m, d) sqrt(r) eps`` times the product
    of Frobenius norms exceeds both, summed over the ``r`` values, and is subtracted.
    """
    for name, weights in (("p", p), ("q", q)):
        if not (np.all(weights >= 0) and weights.sum() > 0):
            raise InvalidInput(f"Weights {name} must be at least 0 and not all 0.")
    p_sum, q_sum = float(p.sum()), float(q.sum())
    K = np.sqrt(q / c)[:, None] * W
    size = float(np.linalg.norm(K))
    if neighbours == "add-remove":
        K *= np.sqrt(p)
        size = float(np.linalg.norm(K))
    elif products:
        # diag(p) - p p^T / sum p is the Laplacian of the weights p_i p_j / sum p.
        root = np.sqrt(p / p_sum)
        K *= root
        size = float(np.linalg.norm(K))
        K -= np.outer(K @ root, root)
        p_sum = _pair_sum(root**2)
        if not p_sum:
            return 0.0
    else:
        E = _pair_root(p, W.shape[1])
        size *= float(np.linalg.norm(E))
        K = K @ E
    values = sl.svdvals(K, overwrite_a=True, check_finite=False)
    allowance = 8 * max(K.shape) * np.sqrt(len(values)) * EPS * size
    F = max(float(values.sum()) - allowance, 0.0)
    return float(F**2 / (p_sum * q_sum) * (1 - 1e-14))


def _pair_sum(share: Floats) -> float:
    """Return ``sum over i < j of share_i share_j``, shares of one.

    Half of ``1 - sum share^2`` has no digits where one cell has nearly all.
    """
    others, top = 1 - share, share.argmax()
    others[top] = np.delete(share, top).sum()
    return float(share @ others) / 2


def _pair_root(p: Floats, d: int) -> Floats:
    """Return ``E (d, <= d)`` with ``E E^T`` the Laplacian of pair weights, by blocked QR.

    Cholesky of the Laplacian loses half the digits where weights differ much; QR of the weighted
    incidence rows does not.
    """
    i, j = pairs(d)
    keep = np.flatnonzero(p > NEGLIGIBLE * p.sum())
    R = np.zeros((0, d))
    for start in range(0, len(keep), 4 * d):
        part = keep[start : start + 4 * d]
        rows = np.zeros((len(part), d))
        at, root = np.arange(len(part)), np.sqrt(p[part])
        rows[at, i[part]], rows[at, j[part]] = root, -root
        R = np.asarray(np.linalg.qr(np.vstack([R, rows]), mode="r"))
    return np.ascontiguousarray(R.T)


def recompute(
    W: Floats,
    c: Floats,
    p: Floats,
    q: Floats,
    A: Floats,
    neighbours: Neighbours = "add-remove",
    *,
    products: bool = False,
) -> tuple[float, float]:
    """Recompute ``(lower, achieved)`` from first principles, slowly; for tests and the doubtful.

    ``achieved`` is ``mu**2`` of ``A`` scaled so that the worst query just meets its target:
    ``max ||a_i||^2 * max_j ||w_j A^+||^2 / c_j``, with the pseudo-inverse from an SVD.
    """
    columns = A
    if neighbours == "replace":
        i, j = pairs(A.shape[1])
        columns = A[:, i] - A[:, j]
    cost = float((columns**2).sum(axis=0).max(initial=0.0))
    R = W @ np.linalg.pinv(A, rcond=1e-12)
    worst = float(((R**2).sum(axis=1) / c).max())
    return lower_bound(W, c, p, q, neighbours, products=products), cost * worst
