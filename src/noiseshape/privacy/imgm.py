"""IMGM's own search for its privacy bound B: a second derivation of ``curve.mu``.

Yang et al., Improved Matrix Gaussian Mechanism, Algorithm 2 (after Balle and Wang 2018,
Algorithm 1), with two corrections: line 7 prints ``u/T``, and there is no T (with T = 10 it
gives B = 0.074 for 0.268 at epsilon 1, delta 1e-5); and epsilon = 0 is taken by its limit,
since the algorithm divides by it.

This is floating-point mathematics kept for comparison and teaching. Calibrate with
``curve.mu``, which is rounded toward privacy; this is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import log_ndtr, ndtri

from .._checks import probability, real
from ..errors import InvalidInput


def privacy_bound(epsilon: float, delta: float) -> float:
    """Return IMGM's B, the root in mu of the curve (Lemma 3), by its two-branch search.

    Examples
    --------
    >>> round(privacy_bound(1.0, 1e-5), 9)
    0.268051123
    """
    eps, delta = real("epsilon", epsilon), probability("delta", delta)
    if not eps >= 0:
        raise InvalidInput(f"epsilon must be at least 0, got {eps:g}.")
    if eps == 0:
        return 2 * float(ndtri((1 + delta) / 2))

    def plus(v: float) -> float:  # rises with v
        return _difference(math.sqrt(eps * v), eps, v)

    def minus(u: float) -> float:  # falls with u
        return _difference(-math.sqrt(eps * u), eps, u)

    if delta >= plus(0.0):
        v, _ = _bracket(lambda v: plus(v) <= delta)
        return math.sqrt(2 * eps) * (math.sqrt(1 + v / 2) + math.sqrt(v / 2))
    _, u = _bracket(lambda u: minus(u) > delta)
    return math.sqrt(2 * eps) / (math.sqrt(1 + u / 2) + math.sqrt(u / 2))


def _difference(x: float, eps: float, v: float) -> float:
    """Return Phi(x) - e^eps Phi(-sqrt(eps (v + 2))), in logarithms."""
    first = float(log_ndtr(x))
    second = eps + float(log_ndtr(-math.sqrt(eps * (v + 2))))
    return -math.exp(first) * math.expm1(second - first)


def _bracket(below: Callable[[float], bool]) -> tuple[float, float]:
    """Return neighbouring points (a, b) where ``below`` turns from true to false."""
    low, high = 0.0, 1.0
    while below(high):
        low, high = high, 2 * high
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return low, high
        low, high = (middle, high) if below(middle) else (low, middle)
