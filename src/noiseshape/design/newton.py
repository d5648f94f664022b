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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from .._checks import Floats

Solver = Callable[[Floats], Floats]

MOST_TERMS = 40


@dataclass(frozen=True)
class Precision:
    """How carefully a step is computed.

    Attributes
    ----------
    kernel
        Share of the Cauchy kernel's diagonal that its low-rank form may leave out.
    single
        Whether the matrix is in single precision: half the time and memory of the step.
    jitter
        Share added to its unit diagonal, which makes up for the digits.
    """

    kernel: float
    single: bool
    jitter: float


# Newton's steps need no better: over PL-94, ages, prefixes, ranges and random queries a kernel
# of 0.2 takes 3 to 8 terms where 0.02 takes twice as many, and saves half a step in fifteen.
QUICK = Precision(kernel=0.2, single=True, jitter=1e-6)
# Refined levels multiply caps by weights in the hundreds, and subtract: single precision stalls.
CAREFUL = Precision(kernel=1e-3, single=False, jitter=1e-13)
# A multiplier whose own curvature is below this share of its diagonal is taken as independent of
# the others: a third of the queries, typically, and so half of the time.
LOOSE = 0.01
# Never more multipliers than this (or six for each coordinate) in one matrix: 683 queries over
# 3,192 cells take half as long as with four, and the matrix stays within three times the workload.
# Where more count, as pairs do under replace, it leads conjugate gradients to this accuracy.
MOST_ACTIVE = 2000
MOST_TIMES = 6
CONJUGATE = 0.03
MOST_CONJUGATE = 30
BLOCK = 256


@dataclass(frozen=True, eq=False)
class Program:
    """The linear parts ``a`` and ``e`` of the dual, one entry for each multiplier."""

    a: Floats
    e: Floats


def most_active(k: int) -> int:
    """Return how many multipliers one matrix takes at rank ``k``."""
    return max(MOST_ACTIVE, MOST_TIMES * k)


def direction(
    program: Program,
    Z: Floats,
    signs: Floats,
    sigma: Floats,
    G: Floats,
    u: Floats,
    s: Floats,
    tau: float,
    precision: Precision = QUICK,
) -> tuple[Floats, Floats] | None:
    """Return the primal-dual step ``(du, ds)``; None if the matrix is numerically singular.

    Parameters
    ----------
    Z : (n, k)
        The vectors ``z`` of all multipliers, in the precision wanted.
    signs : (n,)
        +1 for people, -1 for queries.
    sigma : (k,)
        Singular values of the state.
    G, u, s : (n,)
        Constraint values, multipliers and slacks.
    tau
        Complementarity to aim for.
    """
    a, e = program.a, program.e
    terms = [term.astype(Z.dtype) for term in cauchy_terms(sigma, precision.kernel)]
    curved = u * _own_curvature(Z, terms)
    coupling = curved / (curved + s)
    active = np.flatnonzero(coupling > LOOSE)
    most = most_active(len(sigma))
    crowded = len(active) > most
    if crowded:
        active = np.sort(np.argpartition(-coupling, most)[:most])
    chosen = Z if len(active) == len(u) else Z[active]
    diagonal = (curved * (1 + precision.jitter) + s)[active] / u[active]
    solve_active = _factored(chosen, terms, signs[active], diagonal)
    if solve_active is None:
        return None

    def approximately(right: Floats) -> Floats:
        solved: Floats = right * u / (curved + s)
        solved[active] = solve_active(right[active])
        return solved

    nu = float((u * e) @ G / (u @ e))
    right = G - a - nu * e + tau / u
    if crowded:
        bend = _bending(Z, signs, sigma)
        x, y = (_conjugate(lambda v: bend(v) + s / u * v, approximately, r) for r in (right, e))
    else:
        x, y = approximately(right), approximately(e)
    more_nu = (e @ x - (1 - e @ u)) / (e @ y)
    du = x - more_nu * y
    ds = (tau - u * s - s * du) / u
    return (du, ds) if np.all(np.isfinite(du)) else None


def _own_curvature(Z: Floats, terms: list[Floats]) -> Floats:
    """Return the diagonal of ``Q`` (n,)."""
    C = np.stack(terms, axis=1)
    own = np.empty(len(Z))
    for start in range(0, len(Z), BLOCK):
        part = Z[start : start + BLOCK]
        own[start : start + BLOCK] = (((part * part) @ C) ** 2).sum(axis=1)
    return own


def _factored(Z: Floats, terms: list[Floats], signs: Floats, diagonal: Floats) -> Solver | None:
    """Return what solves ``(D Q D + ..) x = right`` with this diagonal, by Cholesky."""
    if not len(Z):  # every multiplier is loose
        return lambda right: right
    Q = _curvature(Z, terms)
    scale = 1 / np.sqrt(diagonal)  # to unit diagonal, whatever the precision
    scaled = (scale * signs).astype(Z.dtype)
    Q *= scaled
    Q *= scaled[:, None]
    Q[np.diag_indices_from(Q)] = 1.0
    # Rows of Q up to the diagonal are columns of its transpose: LAPACK's upper triangle.
    potrf, potrs = sl.get_lapack_funcs(("potrf", "potrs"), (Q,))
    factor, failed = potrf(Q.T, lower=0, overwrite_a=1, clean=0)
    if failed:
        return None

    def solve(right: Floats) -> Floats:
        solved, _ = potrs(factor, (right * scale).astype(factor.dtype), lower=0)
        result: Floats = solved * scale
        return result

    return solve


def _bending(Z: Floats, signs: Floats, sigma: Floats) -> Solver:
    """Return the product with ``D Q D``, never formed: ``O(n k^2)``, and the kernel is exact."""
    kernel = (1 / (sigma[:, None] + sigma)).astype(Z.dtype)

    def product(x: Floats) -> Floats:
        E = np.zeros((len(sigma), len(sigma)), dtype=Z.dtype)
        weights = (signs * x).astype(Z.dtype)[:, None]
        for start in range(0, len(Z), BLOCK):
            part = slice(start, start + BLOCK)
            E += (Z[part] * weights[part]).T @ Z[part]
        E *= kernel
        bent = np.empty(len(Z))
        for start in range(0, len(Z), BLOCK):
            part = slice(start, start + BLOCK)
            bent[part] = np.einsum("ij,ij->i", Z[part] @ E, Z[part])
        return signs * bent

    return product


def _conjugate(product: Solver, approximately: Solver, right: Floats) -> Floats:
    """Return ``x`` with ``product(x)`` close to ``right``: preconditioned conjugate gradients."""
    x = np.zeros_like(right)
    residual = right.copy()
    z = approximately(residual)
    ahead, first = z, float(residual @ z)
    size = first
    for _ in range(MOST_CONJUGATE):
        moved = product(ahead)
        curvature = float(ahead @ moved)
        if not curvature > 0:
            break
        x = x + size / curvature * ahead
        residual = residual - size / curvature * moved
        z = approximately(residual)
        size, before = float(residual @ z), size
        if not size > CONJUGATE**2 * first:
            break
        ahead = z + size / before * ahead
    return x


def _curvature(Z: Floats, terms: list[Floats]) -> Floats:
    """Return the lower triangle of ``Q`` (n, n); the rest is not filled."""
    n = len(Z)
    Q = np.zeros((n, n), dtype=Z.dtype)
    height = max(n // 16, 32)  # what a block needs beside Q is then little
    for start in range(0, n, height):
        stop = min(start + height, n)
        for term in terms:
            block = (Z[start:stop] * term) @ Z[:stop].T
            block *= block
            Q[start:stop, :stop] += block
            del block
    return Q


def cauchy_terms(sigma: Floats, kernel: float) -> list[Floats]:
    """Return vectors ``c_l`` with ``sum_l c_la c_lb`` close to ``1 / (sigma_a + sigma_b)``.

    Pivoted Cholesky of the kernel scaled to unit diagonal, until what is left of the diagonal is
    below ``kernel``; never more than the kernel in the order of positive matrices.
    """
    root = np.sqrt(sigma)
    left = np.ones(len(sigma))
    terms: list[Floats] = []
    while left.max() > kernel and len(terms) < min(MOST_TERMS, len(sigma)):
        at = int(left.argmax())
        column = 2 * root * root[at] / (sigma + sigma[at])
        for term in terms:
            column = column - term * term[at]
        column /= np.sqrt(left[at])
        left = left - column**2
        terms.append(column)
    return [term / (np.sqrt(2) * root) for term in terms]
