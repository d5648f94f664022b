"""The dual of a design: its value at given weights, the covariance there, and safe ascent.

With ``M = sum p_i b_i b_i^T`` and ``N = sum q_j l_j l_j^T`` (targets scaled to one), everything
follows from one eigendecomposition (docs/math/fit.md):

    M = C C^T,  C^T N C = V diag(lam) V^T,  sigma = sqrt(lam),  F = sum sigma,
    S = T T^T,  T = C V sigma^-1/2,  S N S = M,
    g_i = |T^-1 b_i|^2,  h_j = |l_j T|^2,  sum p g = sum q h = F.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from .._checks import Floats
from .sides import Side

# Directions that no weight reaches have sigma = 0 and any extent: they get this share of the
# largest sigma in T, and none in F. (A floor of 1e-14 inside F once gave F^2 = 1.0001 where the
# optimum is exactly 1.)
SIGMA_FLOOR = 1e-12
# Eigenvalues of K^T K are good to eps times the largest, so singular values below this share of
# the largest are computed again. (Without it a degenerate workload, ranges over 128 cells, stalls
# at a gap of 3e-4 where its slack directions have sigma below 1e-8.)
SQUARED_AWAY = 1e-5
# Weights never fall below this share of the uniform weight: both bounds hold for any weights, and
# without it a weight that underflows can never return.
WEIGHT_FLOOR = 1e-10
# Exponents up to 2 are safe with one side fixed; 1.9 converges twice as fast as 1 on both sides.
LARGEST_EXPONENT = 1.9


@dataclass(eq=False)
class State:
    """The dual at weights ``p`` (people) and ``q`` (queries).

    ``T`` and ``Ti = T^-T`` (k, k) give the covariance ``S = T T^T`` on the basis and the strategy
    ``Ti^T B``; ``sigma`` (k,) are the singular values whose sum is ``F``.
    """

    p: Floats
    q: Floats
    F: float
    g: Floats
    h: Floats
    sigma: Floats
    T: Floats
    Ti: Floats

    @property
    def lower(self) -> float:
        """Lower bound on ``max g * max h`` over all covariances, before rounding."""
        return float(self.F**2 / (self.p.sum() * self.q.sum()))

    def shed(self) -> None:
        """Drop ``T`` and ``Ti``, which have served: a fifth of the iteration's memory."""
        self.T = self.Ti = np.empty((0, 0))


def evaluate(people: Side, queries: Side, p: Floats, q: Floats) -> State | None:
    """Return the dual at ``p, q``; None where ``M`` is singular to working precision."""
    C = _root(people.gram(p))
    if C is None:
        return None
    diagonal = C.ndim == 1
    G = queries.gram(q)
    if diagonal:
        G *= C
        G *= C[:, None]
    else:
        G, _ = sl.lapack.dsygst(G.T, C, itype=3, lower=1, overwrite_a=1)
    sigma, V = _eigen(G)
    small = int(np.searchsorted(sigma, SQUARED_AWAY * sigma[-1]))
    if small:
        part = np.empty((queries.n, small))
        queries.rows(C[:, None] * V[:, :small] if diagonal else C @ V[:, :small], part)
        part *= np.sqrt(q)[:, None]
        sigma[:small], turn = _resolve(part)
        V[:, :small] = V[:, :small] @ turn
    del G
    F = float(sigma.sum())
    if not (np.isfinite(F) and F > 0):
        return None
    sigma_T = np.maximum(sigma, SIGMA_FLOOR * sigma[-1])
    if diagonal:
        T = V * (1 / np.sqrt(sigma_T))
        T *= C[:, None]
        Ti = np.multiply(V, np.sqrt(sigma_T), out=V)
        Ti /= C[:, None]
    else:
        T = _times(C, V * (1 / np.sqrt(sigma_T)))
        Ti = sl.solve_triangular(
            C, np.multiply(V, np.sqrt(sigma_T), out=V), lower=True, trans="T", check_finite=False
        )
    return State(p, q, F, people.forms(Ti), queries.forms(T), sigma_T, T, Ti)


def _root(M: Floats) -> Floats | None:
    """Return ``C`` with ``C C^T = M``: a diagonal (k,), or lower triangular; None if singular."""
    if M.ndim == 1:
        root: Floats = np.sqrt(M)
        return root
    factor, failed = sl.lapack.dpotrf(M.T, lower=1, overwrite_a=1, clean=1)
    return None if failed else factor


def _times(C: Floats, X: Floats, *, trans: bool = False, right: bool = False) -> Floats:
    """Return ``C X``, ``C^T X`` or ``X C``, ``C`` lower triangular: half the work of a product."""
    result: Floats = sl.blas.dtrmm(1.0, C, X, side=right, lower=1, trans_a=trans)
    return result


def _eigen(G: Floats) -> tuple[Floats, Floats]:
    """Return the singular values, ascending, and right singular vectors of ``K``, ``G = K^T K``."""
    # evd is the fastest LAPACK driver here: 154 ms at k = 1024 on one core, evr 173.
    lam, V = sl.eigh(G, driver="evd", overwrite_a=True, check_finite=False)
    return np.sqrt(np.maximum(lam, 0.0)), V


def _resolve(part: Floats) -> tuple[Floats, Floats]:
    """Return the singular values and right singular vectors of ``part``, however small.

    Eigenvectors of a Gram matrix hold the span of small singular values to full accuracy but mix
    below it; the Gram matrix on that span alone, formed from its own columns, tells them apart.
    """
    sigma, V = _eigen(part.T @ part)
    small = int(np.searchsorted(sigma, SQUARED_AWAY * sigma[-1]))
    if small:
        sigma[:small], turn = _resolve(part @ V[:, :small])
        V[:, :small] = V[:, :small] @ turn
    return sigma, V


def multiplied(state: State, *, both: bool) -> tuple[Floats, Floats]:
    """Return the weights after one multiplicative step, which never lowers ``F``.

    ``p <- p (g/F)^t`` and, if ``both``, ``q <- q (h/F)^t``, renormalised, with the largest
    exponent that is known to be safe: with ``q`` fixed any ``t <= 2`` is; with both free ``t = 1``
    is, and a larger ``t`` when the step keeps its promise (docs/math/fit.md, "Exponents").
    """
    p, q = state.p / state.p.sum(), state.q / state.q.sum()
    r, s = _relative(p, state.g), _relative(q, state.h)
    t = _safe_exponent(p, r, q, s) if both else LARGEST_EXPONENT
    return _clipped(p * r**t), _clipped(q * s**t) if both else q


def _relative(weights: Floats, values: Floats) -> Floats:
    """Return ``values`` over their weighted mean, kept off zero so that logarithms exist."""
    result: Floats = np.maximum(values / (weights @ values), 1e-100)
    return result


def _clipped(weights: Floats) -> Floats:
    weights = weights / weights.sum()
    weights = np.maximum(weights, WEIGHT_FLOOR / len(weights))
    result: Floats = weights / weights.sum()
    return result


def _safe_exponent(p: Floats, r: Floats, q: Floats, s: Floats) -> float:
    """Return the largest ``t`` of a grid up to 1.9 that the safe rule allows, else 1."""
    log_r, log_s = np.log(r), np.log(s)
    promise = float((p * r) @ log_r + (q * s) @ log_s)
    for t in np.arange(LARGEST_EXPONENT, 1, -0.1):
        cost = np.log(p @ np.exp(t * log_r)) + np.log(q @ np.exp(t * log_s))
        if cost <= t * promise:
            return float(t)
    return 1.0
