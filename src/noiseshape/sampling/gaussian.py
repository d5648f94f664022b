"""Rounded Gaussian noise, drawn exactly."""

from __future__ import annotations

import math
import operator
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, TooLarge
from . import bits
from .interval import settle_exactly, settle_quickly
from .scale import Rational, Row, Scale, Sigma

Size = int | tuple[int, ...] | None

# Draws at a time: five arrays of 64 kB stay in a second-level cache of 512 kB. Twice or
# half as many are no faster.
CHUNK = 8192


@overload
def rounded_gaussian(sigma: Rational, size: None = None) -> int: ...
@overload
def rounded_gaussian(sigma: Rational, size: int | tuple[int, ...]) -> NDArray[Any]: ...
@overload
def rounded_gaussian(sigma: Row, size: Size = None) -> NDArray[Any]: ...
def rounded_gaussian(sigma: Sigma, size: Size = None) -> int | NDArray[Any]:
    """Draw ``round(sigma N)`` exactly, N a standard normal.

    Parameters
    ----------
    sigma : int, float, Fraction, or a 1-D sequence of k of them
        From 2^-7 to 2^80. A float is taken as the dyadic rational that it is.
    size : int or tuple of ints, optional
        Shape of the result. With k sigmas its first axis must be k: row i has sigma i.

    Returns
    -------
    int, or array of shape ``size``
        One int for one sigma and no size; shape (k,) for k sigmas and no size. The type is
        int64 while every sigma is at most 2^50, and Python ints (dtype object) beyond.

    Notes
    -----
    **Guarantee.** Given independent fair bits from the operating system, the draws are
    independent and

        P(m) = Phi((m + 1/2) / sigma) - Phi((m - 1/2) / sigma)

    for every integer m, with sigma the exact rational. Added to an integer f(x), the noise
    gives ``round(f(x) + sigma N)``, a function of the continuous Gaussian mechanism's output:
    whatever that promises, this promises.

    There is no seed, and nothing is promised about the time a draw takes. Up to sigma
    2^40 nearly all draws are settled in vectorised doubles; beyond, arb takes up to
    twenty microseconds for each.
    """
    scale = Scale.of(sigma)
    shape = _shape(size, scale)
    try:
        draws = np.empty(math.prod(shape), dtype=np.int64 if scale.fits_int64 else object)
    except (MemoryError, ValueError):
        raise TooLarge(
            f"about 2^{math.prod(shape).bit_length() - 1} draws do not fit in memory: draw fewer "
            "at a time."
        ) from None
    for start in range(0, draws.size, CHUNK):
        _fill(draws[start : start + CHUNK], start, draws.size // scale.floats.size, scale)
    return int(draws[0]) if shape == () else draws.reshape(shape)


def _fill(block: NDArray[Any], start: int, row_length: int, scale: Scale) -> None:
    """Fill ``block``, which begins at the flat position ``start``, with draws."""
    words = bits.secret_words(block.size)
    rows = np.arange(start, start + block.size) // row_length
    sigma = scale.floats[rows[0]] if rows[0] == rows[-1] else scale.floats[rows]
    m, settled = settle_quickly(words, sigma)
    late = np.flatnonzero(~settled)
    m[late] = 0.0  # could be too large for the conversion
    block[:] = m.astype(np.int64)
    for i in late:
        block[i] = settle_exactly(int(words[i]), scale.fraction(int(rows[i])))


def _shape(size: Size, scale: Scale) -> tuple[int, ...]:
    k = scale.floats.size
    if size is None:
        return () if scale.single else (k,)
    try:
        axes = size if isinstance(size, tuple) else (size,)
        shape = tuple(operator.index(axis) for axis in axes)
    except TypeError:
        raise InvalidInput("size must be an int or a tuple of ints.") from None
    if min(shape, default=0) < 0:
        raise InvalidInput(f"size must not be negative, got {shape}.")
    if not scale.single and shape[:1] != (k,):
        raise InvalidInput(f"size must begin with {k}, one row for each sigma, got {shape}.")
    return shape
