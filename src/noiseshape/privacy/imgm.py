"""IMGM's own search for its privacy bound B: a second derivation of ``curve.mu``.

Yang et al., Improved Matrix Gaussian Mechanism, Algorithm 2 (after Balle and Wang 2018,
Algorithm 1), with two corrections: line 7 prints ``u/T``, and there is no T (with T = 10 it
gives B = 0.074 for 0.268 at epsilon 1, delta 1e-5); and epsilon = 0 is taken by its limit,
since the algorithm divides by it.

In doubles its differences cancel: at delta = 1e-30 nothing is left, and what comes out for B
may be 1e15 times too large. So they are taken in interval arithmetic here. The result is
rounded to the nearest double, for comparison and teaching: calibrate with ``curve.mu``,
which is rounded toward privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb

from .._arb import precision
from .._checks import probability, real
from ..errors import InvalidInput
from .curve import MOST_EPSILON, sharp, upper_tail

# Bits of the root, and its size below which it is nothing beside 1.
_ACCURATE_BITS = 128
_NOTHING = -2 * _ACCURATE_BITS


def privacy_bound(epsilon: float, delta: float) -> float:
    """Return IMGM's B, the root in mu of the curve (Lemma 3), by its two-branch search.

    Examples
    --------
    >>> privacy_bound(1.0, 1e-5)
    0.2680511232112942
    """
    eps, delta = real("epsilon", epsilon), probability("delta", delta)
    if not 0 <= eps <= MOST_EPSILON:
        raise InvalidInput(f"epsilon must be at least 0 and at most {MOST_EPSILON:g}, got {eps:g}.")
    e, d = arb(eps), arb(delta)

    def difference(sign: int, v: Any) -> Any:
        """Return Phi(+-sqrt(epsilon v)) - e^epsilon Phi(-sqrt(epsilon (v + 2)))."""
        return sharp(
            lambda: upper_tail(-sign * (e * v).sqrt()) - e.exp() * upper_tail((e * (v + 2)).sqrt())
        )

    with precision(2 * _ACCURATE_BITS):
        if eps == 0:
            return float(2 * arb(2).sqrt() * d.erfinv())
        if difference(1, arb(0)) <= d:
            v = _root(lambda v: bool(difference(1, v) <= d))  # rises with v
            return float((2 * e).sqrt() * ((1 + v / 2).sqrt() + (v / 2).sqrt()))
        u = _root(lambda u: bool(difference(-1, u) > d))  # falls with u
        return float((2 * e).sqrt() / ((1 + u / 2).sqrt() + (u / 2).sqrt()))


def _root(before: Callable[[Any], bool]) -> Any:
    """Return the point where ``before`` turns from true to false, by doubling and halving."""
    low, high = arb(0), arb(1)
    while before(high):
        low, high = high, 2 * high
    while high - low > high * arb((1, -_ACCURATE_BITS)) and high > arb((1, _NOTHING)):
        middle = ((low + high) / 2).mid()
        low, high = (middle, high) if before(middle) else (low, middle)
    return high
