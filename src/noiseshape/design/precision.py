"""How a precision budget is shared among directions: MVG's allocations theta.

A direction with precision p_i = theta_i P has variance 1 / sqrt(p_i) (Algorithms 1 and 2, step 3):
"precision" is the inverse of the squared variance there. P is ``Condition.precision_budget``.

    uniform(k)              the same for every direction
    binary(k, chosen)       most of it to the chosen directions (section 7)
    max_pnr(spectrum)       water-filling on the answer's own spectrum (Theorem 7, corrected)
    any numbers above 0 with a sum of at most 1

A share of 0 is noise without end, and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats, floats, positive, real, whole
from ..errors import InvalidInput
from .covariances import product_gap

Allocation = Callable[[float], Floats]
"""From the precision budget P to theta, shape (k,)."""

# Of the budget of inverse variances, the share that max_pnr gives to each direction in any case.
FLOOR = 1e-3


def uniform(size: int) -> Floats:
    """Return 1 / size for every direction: no directional noise."""
    return np.full(whole("size", size), 1 / size)


def binary(size: int, chosen: Sequence[int], share: float = 0.8) -> Floats:
    """Return the binary allocation: ``share`` to the chosen directions, the rest to the others.

    Equally within each group. The papers' tau is ``share``, and the best of five was picked in
    hindsight there, which costs privacy: fix it beforehand.

    Examples
    --------
    >>> binary(4, [0, 3], share=0.9).round(3).tolist()
    [0.45, 0.05, 0.05, 0.45]
    """
    k, part = whole("size", size), real("share", share)
    if not 0 < part < 1:
        raise InvalidInput(f"share must be above 0 and below 1, got {part:g}.")
    picked = sorted({whole("a chosen direction", i, least=0) for i in chosen})
    if not 0 < len(picked) < k or picked[-1] >= k:
        raise InvalidInput(
            f"a binary allocation needs some, and not all, of the directions 0 to {k - 1}; "
            f"got {picked}."
        )
    theta = np.full(k, (1 - part) / (k - len(picked)))
    theta[picked] = part / len(picked)
    return theta


def allocated(theta: ArrayLike, size: int) -> Floats:
    """Return theta, checked: one share above 0 for each direction, at most 1 together."""
    shares = floats("precision", theta, ndim=1)
    if len(shares) != size:
        raise InvalidInput(
            f"precision needs a share for each of {size} directions, got {len(shares)}."
        )
    if not np.all(shares > 0):
        raise InvalidInput(
            f"precision must be above 0 in every direction, and {np.count_nonzero(shares <= 0)} of "
            f"{size} are not: a share of 0 is noise without end; give a small one."
        )
    total = math.fsum(shares.tolist())
    if not total <= 1 + 1e-12:
        raise InvalidInput(
            f"precision must sum to at most 1, got {total:.6g}: divide every share by it."
        )
    return shares / max(total, 1.0)


def filled(spectrum: ArrayLike, budget: float, *, floor: float = 0.0) -> Floats:
    """Return w >= floor that maximises sum log(1 + lambda_i w_i) with sum w_i = budget.

    w_i = max(floor, c - 1 / lambda_i): Theorem 7's equation 25 with the ( )^+ that its proof has
    and its statement lacks. The c printed with it holds only where every entry is positive.

    Parameters
    ----------
    spectrum : shape (k,)
        lambda, the variances of the answer along the directions; 0 is allowed.
    budget, floor
        k floor <= budget.
    """
    values, d = floats("spectrum", spectrum, ndim=1), positive("budget", budget)
    if not values.size or not np.all(values >= 0) or not np.any(values):
        raise InvalidInput("a spectrum is of variances: at least 0, and not all of them 0.")
    least = real("floor", floor)
    if not 0 <= least * len(values) <= d:
        raise InvalidInput(
            f"a floor of {least:g} for each of {len(values)} directions passes the budget {d:g}."
        )
    order = np.argsort(values, kind="stable")[::-1]
    sorted_ = values[order]
    top = sorted_[0]
    with np.errstate(divide="ignore", over="ignore"):
        # 1 / lambda_i - 1 / lambda_1, without the difference of two great numbers.
        depth = (top - sorted_) / sorted_ / top
    # With the first j directions above the floor, the level is c_j; the last j that holds.
    j = np.arange(1, len(values) + 1)
    known = np.where(np.isfinite(depth), depth, 0.0)
    level = (d - (len(values) - j) * least + np.cumsum(known)) / j
    holds = np.isfinite(depth) & (level - depth >= least)
    count = int(np.flatnonzero(holds)[-1]) + 1
    w = np.full(len(values), least)
    w[order[:count]] = level[count - 1] - depth[:count]
    return w


def filled_exactly(spectrum: ArrayLike, budget: float) -> Floats:
    """Return w that maximises sum log(1 + lambda_i w_i) with ||w||_2 = budget.

    Problem 1 itself, for directions given: the paper relaxes the norm to the sum, which leaves
    some of the budget. w_i = (sqrt(1 + 2 lambda_i^2 / v) - 1) / (2 lambda_i) for one v > 0: above 0
    where lambda_i is.
    """
    values, d = floats("spectrum", spectrum, ndim=1), positive("budget", budget)
    if not values.size or not np.all(values > 0):
        raise InvalidInput("this spectrum must be above 0 in every direction.")
    unit = values / values.max()  # in units of the greatest variance, and w of its inverse
    goal = d * values.max()

    def at(log_v: float) -> Floats:
        ratio = 2 * (unit / math.exp(log_v / 2)) ** 2
        return np.asarray(ratio / (np.sqrt(1 + ratio) + 1) / (2 * unit))

    low, high = -1400.0, 1400.0  # ||w|| falls with v
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.linalg.norm(at(middle)) > goal else (low, middle)
    w = at(high)
    return w / np.linalg.norm(w) * d


def max_pnr(spectrum: ArrayLike, *, problem: int = 2, floor: float = FLOOR) -> Allocation:
    """Return the allocation with the greatest power-to-noise ratio, for noise in one mode.

    The inverse variances w_i are bounded by sqrt P together: phi^2 / sqrt(n), n the size of the
    other mode. (The text's "replace Psi x Sigma by Sigma" forgets sqrt n, and what comes out is
    not allowed by Theorem 2.)

    Parameters
    ----------
    spectrum : shape (k,)
        Variances of the answer along the directions: public, or paid for. K_f = X X^T is neither.
    problem
        2: the paper's relaxation, sum w = sqrt P, by ``filled``. 1: ||w||_2 = sqrt P, by
        ``filled_exactly``, which has the greater ratio.
    floor
        For problem 2: the least share of the budget for a direction, times 1 / k.
    """
    values = floats("spectrum", spectrum, ndim=1)
    if problem not in (1, 2):
        raise InvalidInput(f"problem must be 1 or 2, got {problem!r}.")
    least = real("floor", floor)
    if not 0 < least <= 1:
        raise InvalidInput(f"floor must be above 0 and at most 1, got {least:g}.")

    def theta(P: float) -> Floats:
        root = math.sqrt(positive("the precision budget", P))
        if problem == 1:
            w = filled_exactly(values, root)
        else:
            w = filled(values, root, floor=least * root / len(values))
        return np.asarray((w / root) ** 2)

    filled(values, 1.0)  # a spectrum that is none is refused now
    return theta


@dataclass(frozen=True, eq=False)
class MaxPnr:
    """Theorem 7: the noise of greatest power-to-noise ratio, over all covariances (m n, m n).

    Attributes
    ----------
    covariance
        Q Lambda_Z Q^T, in the coordinates of vec (the paper prints Q^T Lambda_Z Q).
    precision : shape (m n,)
        Inverse variances along the columns of Q; they sum to the budget.
    log_pnr
        The logarithm of the ratio it reaches.
    product_gap
        0 if it is some Psi x Sigma, told by its inverse. Elsewhere Theorem 2 says nothing about
        it, and ``mu`` does.
    """

    covariance: Floats
    precision: Floats
    log_pnr: float
    product_gap: float

    def mu(self, s2: float) -> float:
        """Return the true cost over every change of norm s2."""
        return positive("s2", s2) * math.sqrt(float(self.precision.max())) * (1 + 1e-12)


def theorem_7(
    K: ArrayLike, budget: float, shape: tuple[int, int], *, floor: float = FLOOR
) -> MaxPnr:
    """Return the noise that maximises |K + S| / |S| with tr S^-1 = budget (Problem 2).

    Parameters
    ----------
    K : shape (m n, m n)
        The answer's covariance over vec: public, or paid for.
    budget
        phi^2, ``Condition.phi ** 2``.
    shape
        (m, n).
    floor
        The least share of the budget for a direction, times 1 / (m n).
    """
    known = floats("K_f", K, ndim=2)
    size = whole("m", shape[0]) * whole("n", shape[1])
    near = np.allclose(known, known.T, rtol=0, atol=1e-9 * np.abs(known).max(initial=0))
    if known.shape != (size, size) or not near:
        raise InvalidInput(f"K_f must be symmetric, of shape {(size, size)}.")
    values, Q = np.linalg.eigh((known + known.T) / 2)
    values = np.clip(values, 0, None)
    least = real("floor", floor) * positive("budget", budget) / size
    if not least > 0:
        raise InvalidInput("floor must be above 0: a direction without precision has no variance.")
    w = filled(values, budget, floor=least)
    S = (Q / w) @ Q.T
    # Of the inverse, where what matters is great: variances at the floor would hide the rest.
    gap = product_gap((Q * w) @ Q.T, shape)
    return MaxPnr((S + S.T) / 2, w, float(np.log1p(values * w).sum()), gap)
