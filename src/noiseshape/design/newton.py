"""Newton steps on the dual with a barrier: the finish that proves a gap of 1e-6 in a few steps.

The program is ``minimise t`` subject to ``g_i <= t`` for free people, ``g_i <= cap_i`` for capped
ones and ``h_j <= 1``, over covariances. Its dual is concave in the multipliers ``u = (p, q)``:

    maximise  2 F(u) - a.u   subject to  e.u = 1,  u >= 0,

``a`` = 0 for free people, the cap for capped ones, 1 for queries; ``e`` = 1 for free people,
0 for the others. With ``G = (g, h)`` and slacks ``s = a + nu e - G``, a primal-dual step solves

    (D Q D + diag(s/u)) du = G - a - nu e + tau/u,   e.du = 1 - e.u,

where ``D Q D`` is minus the Hessian of ``2 F``: ``D`` the signs +1 for people and -1 for queries,

    Q_uv = sum_ab z_ua z_ub z_va z_vb / (sigma_a + sigma_b),   z_i = T^-1 b_i,  z_j = T^T l_j.

``1 / (sigma_a + sigma_b)`` is a Cauchy matrix: a few terms ``sum_l c_la c_lb`` come close, and each
turns the fourfold sum into one Gram matrix, squared entry by entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from .._checks import Floats
from .reduce import Ints

# Share of the Cauchy kernel's diagonal that its low-rank form may leave out. Newton's steps need
# no better: over PL-94, ages, ranges and random queries at d = 256, 0.1 takes 3 to 8 terms and
# 3 to 9 steps to a gap of 1e-6; 0.001 takes 6 to 18 terms and saves at most two of those steps.
KERNEL = 0.1
MOST_TERMS = 40
# The matrix is in single precision: half the time and memory of the step. This share of its unit
# diagonal makes up for the digits.
JITTER = 1e-6
BLOCK = 512


@dataclass(frozen=True, eq=False)
class Program:
    """The linear parts ``a`` and ``e`` of the dual, one entry for each multiplier."""

    a: Floats
    e: Floats


def direction(
    program: Program,
    Z: Floats,
    active: Ints,
    signs: Floats,
    sigma: Floats,
    G: Floats,
    u: Floats,
    s: Floats,
    tau: float,
) -> tuple[Floats, Floats] | None:
    """Return the primal-dual step ``(du, ds)``; None if the matrix is singular in single precision.

    Parameters
    ----------
    Z : (l, k)
        The vectors ``z`` of the active multipliers, in single precision.
    active : (l,)
        Which of the multipliers those are; the others are taken as independent of each other.
    signs : (l,)
        +1 for people, -1 for queries.
    sigma : (k,)
        Singular values of the state.
    G, u, s : (n,)
        Constraint values, multipliers and slacks.
    tau
        Complementarity to aim for.
    """
    a, e = program.a, program.e
    nu = float((u * e) @ G / (u @ e))
    right = np.stack([G - a - nu * e + tau / u, e], axis=1)
    solved = right * (u / s)[:, None]
    inner = _solve_active(Z, signs, sigma, u[active], s[active], right[active])
    if inner is None:
        return None
    solved[active] = inner
    x, y = solved.T
    more_nu = (e @ x - (1 - e @ u)) / (e @ y)
    du = x - more_nu * y
    ds = (tau - u * s - s * du) / u
    return (du, ds) if np.all(np.isfinite(du)) else None


def _solve_active(
    Z: Floats, signs: Floats, sigma: Floats, u: Floats, s: Floats, right: Floats
) -> Floats | None:
    """Solve ``(D Q D + diag(s/u)) x = right`` by Cholesky, scaled to unit diagonal."""
    Q = _curvature(Z, sigma)
    scale = np.sqrt(u / (Q.diagonal() * u * (1 + JITTER) + s))
    scaled = (scale * signs).astype(np.float32)
    Q *= scaled
    Q *= scaled[:, None]
    Q[np.diag_indices_from(Q)] = 1.0
    # Rows of Q up to the diagonal are columns of its transpose: LAPACK's upper triangle.
    factor, failed = sl.lapack.spotrf(Q.T, lower=0, overwrite_a=1, clean=0)
    if failed:
        return None
    solved, _ = sl.lapack.spotrs(factor, (right * scale[:, None]).astype(np.float32), lower=0)
    result: Floats = solved.astype(np.float64) * scale[:, None]
    return result


def _curvature(Z: Floats, sigma: Floats) -> Floats:
    """Return the lower triangle of ``Q`` (n, n) in single precision (the rest is not filled)."""
    n = len(Z)
    Q = np.zeros((n, n), dtype=np.float32)
    for term in cauchy_terms(sigma):
        signed = (np.sign(term) * np.sqrt(np.abs(term))).astype(np.float32)
        left, right = Z * signed, Z * np.abs(signed)
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            block = left[start:stop] @ right[:stop].T
            block *= block
            Q[start:stop, :stop] += block
    return Q


def cauchy_terms(sigma: Floats) -> list[Floats]:
    """Return vectors ``c_l`` with ``sum_l c_la c_lb`` close to ``1 / (sigma_a + sigma_b)``.

    Pivoted Cholesky of the kernel scaled to unit diagonal, until what is left of the diagonal is
    below :data:`KERNEL`; never more than the kernel in the order of positive matrices.
    """
    root = np.sqrt(sigma)
    left = np.ones(len(sigma))
    terms: list[Floats] = []
    while left.max() > KERNEL and len(terms) < min(MOST_TERMS, len(sigma)):
        at = int(left.argmax())
        column = 2 * root * root[at] / (sigma + sigma[at])
        for term in terms:
            column = column - term * term[at]
        column /= np.sqrt(left[at])
        left = left - column**2
        terms.append(column)
    return [term / (np.sqrt(2) * root) for term in terms]
