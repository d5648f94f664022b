"""Noise scales as dyadic rationals, and the integers that account for them.

A double is a dyadic rational, exactly: sigma = s / 2^q. So scales are kept as doubles and
*taken exactly*, by the sampler and by the accounting alike.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, exact_positive, floats, frozen
from ..errors import InvalidInput

# Bits kept of each scale, and of each 1/sigma^2: 32 lose at most 2^-31 of the noise, 40 at
# most 2^-40 of the cost, and integers stay short (1,024 unlike denominators would make
# fractions of 45,000 bits).
SCALE_BITS = 32
WEIGHT_BITS = 40

# Below 1 the rounded noise is no longer close to its Gaussian; see docs/math/exact-noise.md.
LEAST = 1.0
PREFERRED = 64.0

# Bits of the greatest entry of a row. Variances are then doubles: squares of entries, scales up
# to 2^80 and conditions up to 1e12 stay far within 2^1023, and none is lost below 2^-1022.
WIDEST = 350

# As far as the sampler goes.
GREATEST = 2.0**80


def scales(sigma: ArrayLike, rows: int) -> Floats:
    """Return one scale a row as a read-only array, or refuse them in one sentence."""
    array = floats("sigma", sigma)
    if array.ndim == 0:
        array = np.full(rows, float(array))
    if array.shape != (rows,):
        raise InvalidInput(f"sigma must have one entry for each of {rows} rows, not {array.shape}.")
    if not np.all(array >= LEAST):
        raise InvalidInput(
            f"sigma must be at least {LEAST:g} in integer units, got {array.min():g}: multiply the "
            "strategy's rows and their sigmas by the same power of two."
        )
    if not np.all(array <= GREATEST):
        raise InvalidInput(
            f"sigma must be at most 2^80 in integer units, got {array.max():.3g}: so much noise "
            "leaves nothing to publish; ask for a greater budget or coarser rows."
        )
    return frozen(array)


def scaled(sigma: Floats, factor: float, *, up: bool) -> Floats:
    """Return sigma * factor with ``SCALE_BITS`` significant bits, rounded up, or else down.

    The product is taken exactly first: as doubles it could round the other way.
    """
    by = exact_positive("factor", factor)
    distinct, inverse = _distinct(sigma)
    return np.array([_dyadic(Fraction(s) * by, up) for s in distinct.tolist()])[inverse]


def _distinct(sigma: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distinct scales, increasing, and which one each row has."""
    if sigma.min() == sigma.max():  # ten million equal ones need no sorting
        return sigma[:1], np.zeros(len(sigma), dtype=np.int64)
    return np.unique(sigma, return_inverse=True)


def _dyadic(value: Fraction, up: bool) -> float:
    n, d = value.numerator, value.denominator
    shift = SCALE_BITS - (n.bit_length() - d.bit_length())
    n, d = (n << shift, d) if shift >= 0 else (n, d << -shift)
    try:
        return math.ldexp(-(-n // d) if up else n // d, -shift)
    except OverflowError:  # beyond doubles, and so beyond what ``scales`` allows
        return math.inf


def refined(sigma: Floats, widest: int) -> tuple[Floats, int]:
    """Return (2^bits sigma, bits): finer rows where the noise would come close to the grid.

    ``widest`` is the greatest integer of the rows, which grows as much; too fine is refused.
    """
    least = max(float(sigma.min()), 2.0**-WIDEST)
    bits = int(np.ceil(np.log2(PREFERRED / least))) if least < LEAST else 0
    if (widest << bits) >> WIDEST:
        raise InvalidInput(
            f"sigma of {sigma.min():.3g} would need integers beyond 2^{WIDEST}, and protects "
            "nobody: scale by a greater factor."
        )
    return np.ldexp(sigma, bits), bits


def weights(sigma: Floats) -> tuple[NDArray[np.object_], int]:
    """Return integers w and an exponent e with w / 2^e >= 1 / sigma^2, as close as may be.

    One power of two for the whole strategy, so that every cost is an integer over 2^e.
    """
    distinct, inverse = _distinct(sigma)
    exponent = WEIGHT_BITS + 2 * max(0, int(np.frexp(distinct[-1])[1]))
    units = [-(-(1 << exponent) // Fraction(s) ** 2) for s in distinct.tolist()]
    return np.array(units, dtype=object)[inverse], exponent


def outer_up(*factors: Floats) -> Floats:
    """Return the products of one scale from each factor, rounded up to doubles, flattened.

    Read-only, and refused beyond what the sampler draws.
    """
    total = np.ones(1)
    for factor in factors:
        # The product of two doubles may round down; the next double is certainly not below.
        rough = np.multiply.outer(total, factor).ravel()
        exact = _product_is_exact(total, factor)
        total = scales(rough if exact else np.nextafter(rough, np.inf), rough.size)
    return total


def _product_is_exact(a: Floats, b: Floats) -> bool:
    def bits(x: Floats) -> int:
        mantissas = np.ldexp(np.frexp(x)[0], 53).astype(np.int64)
        # The lowest set bit of m is m & -m; 53 minus its position is what m really uses.
        return 53 - int(np.log2(np.min(mantissas & -mantissas)))

    return bits(a) + bits(b) <= 53
