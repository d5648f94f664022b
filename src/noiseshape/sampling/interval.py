"""From secret bits to an integer that is certain: quickly in doubles, always in arb.

A word of 64 bits is a sign and 63 bits ``k``. It puts the tail probability of ``|N|``
(one side, so between 0 and 1/2) in ``[k, k+1] * 2^-64``, hence ``|sigma N|`` in an interval,
and it is settled when all of that interval rounds to one integer. The proofs, and
the margins term by term, are in docs/math/exact-noise.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray
from scipy.special import ndtri

from .._arb import ball, precision
from . import bits

# Doubles decide where p >= TAIL and the interval keeps this far from every half-integer:
#   RELATIVE * |x|     errors of ndtri, of sigma as a double, and of their product
#   ABSOLUTE * sigma   half the width of the interval, and the rounding of its midpoint p
TAIL = 2.0**-17
RELATIVE = 2.0**-47
ABSOLUTE = 2.0**-49

_MAGNITUDE = np.uint64(2**63 - 1)


def tail_midpoint(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the midpoint ``(k + 1/2) 2^-64`` of each word's interval, to 2^-52 relative."""
    p = (words & _MAGNITUDE).view(np.int64).astype(np.float64)
    p += 0.5
    p *= 2.0**-64
    return p


def settle_quickly(
    words: NDArray[np.uint64], sigma: NDArray[np.float64] | np.float64
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Round ``sigma N`` in doubles, and say where that is certainly right.

    Parameters
    ----------
    words : (n,) array
        64 secret bits for each draw.
    sigma : (n,) array or scalar
        The doubles nearest to the exact sigmas.

    Returns
    -------
    m : (n,) array
        Candidates, meaningless where not settled.
    settled : (n,) array
        True where every point of the interval rounds to ``m``.
    """
    # Preallocated buffers were tried: no gain, the temporaries of a chunk stay in cache.
    p = tail_midpoint(words)
    x = ndtri(p)
    x *= sigma
    np.abs(x, out=x)
    m = np.rint(x)
    reach = np.abs(x - m)
    x *= RELATIVE
    reach += x
    settled = reach < 0.5 - ABSOLUTE * sigma
    settled &= p >= TAIL
    np.copysign(m, words.view(np.float64), out=m)
    return m, settled


def settle_exactly(word: int, sigma: Fraction) -> int:
    """Round ``sigma N`` for one word, drawing 64 more bits until one integer is left.

    It ends with probability one: the interval shrinks to a point, and half-integers
    have probability zero.
    """
    negative, k = divmod(word, 1 << 63)
    width = 64
    while (m := _only_integer(k, width, sigma)) is None:
        k = k << 64 | int(bits.secret_words(1)[0])
        width += 64
    return -m if negative else m


def _only_integer(k: int, width: int, sigma: Fraction) -> int | None:
    """Return the integer to which all of the interval rounds, or None if that is not certain."""
    # An interval wider than an integer is not worth an inverse: it takes 11 to 19 us.
    if sigma >= 1 << (width - 6):
        return None
    with precision(width + 64):
        both_tails = arb((2 * k + 1, -width), (1, -width))
        x = ball(sigma) * arb(2).sqrt() * both_tails.erfcinv()
        m = (x + 0.5).floor().unique_fmpz()
    return None if m is None else int(m)
