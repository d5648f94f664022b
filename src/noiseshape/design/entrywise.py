"""Noise of its own for each entry: the least weighted error, or the least cost, with proof.

With x_t = 1/sigma_t^2, entrywise noise costs mu^2 = max_i (B x)_i (B is ``terms`` of the set of
changes) and gives entry j the variance (G 1/x)_j (G is ``spread`` of the query). For weights p on
people and q on entries, each summing to one,

    F(p, q) = sum_t sqrt(b_t n_t),    b = B^T p,  n = G^T (q / c)
    F^2 <= max_i (B x)_i max_j h_j

whatever x is, h = (G 1/x) / c, by Cauchy and Schwarz; equality at x_t = sqrt(n_t / b_t). That is
fit's dual (certificate.py) where every matrix is diagonal, and its iteration:

    p <- p g^t,  g = B x / F        q <- q h^t,  h = (G 1/x) / (c F)

t = 1 never lowers F; with q fixed no t <= 2 does. One person (Box, Outer) is settled at once:

    sigma_t^2 = sqrt(b_t / n_t) F / mu^2     (b_t = w_t^2 of a Box)
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from .._checks import Floats
from .certificate import EPS, Certificate, Neighbours

GAP = 1e-6
MOST = 20_000  # iterations
FAST = 1.9  # at 2 an iteration may go to and fro between two points for ever

TOTAL = "weighted error at mu = 1, of noise that is independent from entry to entry"
COST = "privacy cost mu^2 for these targets, of noise that is independent from entry to entry"


@dataclass(frozen=True, eq=False)
class Entrywise:
    """Scales for each coordinate, and the proof of how good they are.

    Attributes
    ----------
    sigma : shape (size,)
        With weights: at mu = 1. With targets: as large as the targets allow.
    certificate
        Of the objective that its ``covers`` names.
    """

    sigma: Floats
    certificate: Certificate


def entrywise(
    B: sparse.csr_array,
    G: sparse.csr_array,
    *,
    weights: Floats | None = None,
    variance: Floats | None = None,
    neighbours: Neighbours = "add-remove",
    gap: float = GAP,
) -> Entrywise:
    """Return entrywise noise of least weighted error, or of least cost for targets.

    Parameters
    ----------
    B : sparse, shape (people, size)
        How far one person can move each coordinate, squared.
    G : sparse, shape (entries, size)
        Variances of entries from those of coordinates.
    weights, variance : shape (entries,)
        One of the two: what each entry's variance counts for, or its target.
    gap
        Relative distance of the two bounds at which to stop.
    """
    begun = time.perf_counter()
    c = np.ones(G.shape[0]) if variance is None else variance
    w = np.full(G.shape[0], 1.0) if weights is None else weights
    H = sparse.csr_array(sparse.diags_array(1 / c) @ G)
    HT, BT = sparse.csr_array(H.T), sparse.csr_array(B.T)
    fixed = weights is not None
    q = w / w.sum()
    p = np.full(B.shape[0], 1 / B.shape[0])
    lower, achieved, best, reason = 0.0, np.inf, np.ones(G.shape[1]), ""
    iterations = 0
    while True:
        x, F = _best(BT @ p, HT @ q)
        g, h = B @ x / F, (H @ (1 / x)) / F
        iterations += 1
        # Every sum errs by less than its number of terms times eps; F is a sum of sums.
        lower = max(lower, F**2 * (1 - 8 * EPS * (B.shape[1] + B.shape[0])))
        worst = float(q @ h) if fixed else float(h.max())
        reached = F**2 * float(g.max()) * worst
        if reached < achieved:
            achieved = reached
            # Scaled to mu = 1, or to meet the tightest target.
            best = x / (F * g.max()) if fixed else x * F * h.max()
        if achieved <= lower * (1 + gap):
            reason = "gap reached"
        elif iterations >= MOST:
            reason = f"stopped after {MOST} iterations"
        if reason:
            break
        t = FAST if fixed else _longest(p, g, q, h)
        p = _stepped(p, g, t)
        if not fixed:
            q = _stepped(q, h, t)
    scale = float(w.sum()) if fixed else 1.0
    proof = Certificate(
        lower * scale,
        achieved * scale,
        iterations,
        time.perf_counter() - begun,
        reason,
        neighbours,
        TOTAL if fixed else COST,
    )
    return Entrywise(1 / np.sqrt(best), proof)


def _best(b: Floats, n: Floats) -> tuple[Floats, float]:
    """Return x = sqrt(n / b), and F; what nobody moves, or nobody asks, is set aside.

    A coordinate that nobody moves needs no noise, and one that nobody asks no precision: both get
    a share of mu^2, or of the error, too small to be seen.
    """
    root = np.sqrt(b * n)
    F = float(root.sum())
    least = 1e-9 * F / len(b)
    seen = root > 0
    x = np.where(seen, np.sqrt(np.where(seen, n / np.where(seen, b, 1), 1)), 1.0)
    x = np.where(~seen & (b > 0), least / np.where(b > 0, b, 1), x)
    x = np.where(~seen & (b == 0) & (n > 0), np.where(n > 0, n, 1) / least, x)
    return x, F


def _longest(p: Floats, g: Floats, q: Floats, h: Floats) -> float:
    """Return ``FAST``, or 1 where that might lower F: by Jensen's inequality, in O(size)."""
    t = FAST
    seen_p, seen_q = g > 0, h > 0
    logs = float(p[seen_p] @ (g[seen_p] * np.log(g[seen_p])))
    logs += float(q[seen_q] @ (h[seen_q] * np.log(h[seen_q])))
    bound = np.log(float(p @ g**t)) + np.log(float(q @ h**t))
    return t if bound <= t * logs else 1.0


def _stepped(p: Floats, g: Floats, t: float) -> Floats:
    p = np.maximum(p * g**t, 1e-12 / len(p))
    return np.asarray(p / p.sum())


def isotropic(
    B: sparse.csr_array, a: Floats, parts: tuple[int, ...], counts: Floats, step: Floats
) -> Floats:
    """Return equal noise in all directions of each part, (size,): sigma in whole steps, at mu <= 1.

    Parameters
    ----------
    B : sparse, shape (people, size)
        In whole steps.
    a : shape (size,)
        What each coordinate's variance counts for, in its own units.
    parts
        How many coordinates each part has; parts have units of their own (people, sums of a
        column, products of two), and equal noise means something within one alone.
    counts, step : shape (size,)
        How often a coordinate stands in a symmetric answer, and what one unit of it is worth.

    Shares of mu^2 between the parts are those of least total error: with L_k^2 the cost of part k
    at unit noise and e_k its error, s_k^2 = (L_k / sqrt e_k) sum_l L_l sqrt e_l.
    """
    unit = 1 / counts / step**2  # sigma^2 in steps, for unit noise in orthonormal coordinates
    ends = np.cumsum((0, *parts))
    blocks = [slice(i, j) for i, j in pairwise(ends)]
    L = np.array([np.sqrt((B[:, k] @ (1 / unit[k])).max()) for k in blocks])
    e = np.array([np.sqrt((a[k] * unit[k] * step[k] ** 2).sum()) for k in blocks])
    L = np.maximum(L, 1e-9 * L.max())  # what no change reaches needs hardly any noise
    s = np.sqrt(L / e * (L @ e))
    return np.sqrt(unit) * np.repeat(s, parts)
