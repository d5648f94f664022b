"""The variance of rounded Gaussian noise."""

from __future__ import annotations

from fractions import Fraction
from typing import overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from .._arb import ball, precision
from .scale import Rational, Row, Scale, Sigma

# From here the theta series converges in two terms, the next being below 2e-19 of the sum;
# under it the sum over tails does, in at most seven.
_THETA_FROM = 0.5


@overload
def rounded_variance(sigma: Rational) -> float: ...
@overload
def rounded_variance(sigma: Row) -> NDArray[np.float64]: ...
def rounded_variance(sigma: Sigma) -> float | NDArray[np.float64]:
    """Return the variance of ``round(sigma N)``, N a standard normal.

    Parameters
    ----------
    sigma : int, float, Fraction, or a 1-D sequence of k of them
        From 2^-7 to 2^80.

    Returns
    -------
    float, or array of shape (k,)
        Within 4 units in the last place. It is 0 below sigma 1/77 or so, where the variance
        is less than the smallest double.

    Notes
    -----
    From 1/2 upward by Poisson summation,

        sigma^2 + 1/12 + sum over j >= 1 of (-1)^j e^(-2 pi^2 j^2 sigma^2) (4 sigma^2 + 1/(pi j)^2),

    at most ``sigma^2 + 1/12`` and 1e-8 from it at sigma = 1. Below, as the sum over tails
    ``2 sum over m >= 1 of (2m - 1) Q((m - 1/2) / sigma)``, in arb, which takes tens of
    microseconds for each distinct sigma.
    """
    scale = Scale.of(sigma)
    variance = theta_series(scale.floats)
    small = np.flatnonzero(scale.floats < _THETA_FROM)
    exact = [scale.fraction(int(row)) for row in small]
    known = {each: tail_sum(each) for each in set(exact)}
    variance[small] = [known[each] for each in exact]
    return float(variance[0]) if scale.single else variance


def theta_series(sigma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variance by Poisson summation, two terms, for ``sigma`` of 1/2 and more."""
    square = sigma**2
    variance = square + 1 / 12
    for j in (1, 2):
        decay = np.exp(-2 * (np.pi * j) ** 2 * square)
        variance += (-1) ** j * decay * (4 * square + (np.pi * j) ** -2)
    return variance


def tail_sum(sigma: Fraction) -> float:
    """Return the variance as a sum over tails, for ``sigma`` of 1/2 and less."""
    with precision(128):
        scale = 1 / (ball(sigma) * arb(8).sqrt())
        total, m = arb(0), 1
        # Each term is under 1/30 of the one before: stop 2^-70 below the sum.
        while True:
            term = (2 * m - 1) * ((2 * m - 1) * scale).erfc()
            total += term
            if term < total * arb(2) ** -70:
                return float(total)
            m += 1
