"""Interval arithmetic (python-flint's arb): enclosures, and doubles rounded one way.

An ``arb`` is a ball that certainly holds the true value, whatever the precision;
precision only decides how small the ball is.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

# flint keeps one precision for the whole process. Another thread that changed it midway
# could never make an enclosure wrong, only wide, and must not find its own changed either.
_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A child must not inherit the lock from a thread that does not exist in it.
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )

# Bits kept of the end of a ball before it is rounded to a double.
_SHARP = 256

# The smallest double above zero, and the greatest.
_TINY = math.ulp(0.0)
_HUGE = sys.float_info.max


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with ``bits`` of precision inside the block, one thread at a time."""
    with _LOCK:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def ball(value: float | int | Fraction) -> Any:
    """Return the exact rational ``value`` (a float is one) as an arb at the current precision."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


def to_fraction(point: Any) -> Fraction:
    """Return an exact arb (radius zero) as a Fraction."""
    mantissa, exponent = point.man_exp()
    mantissa, exponent = int(mantissa), int(exponent)
    if exponent >= 0:
        return Fraction(mantissa << exponent)
    return Fraction(mantissa, 1 << -exponent)


def double_up(value: Any) -> float:
    """Return the least double that is certainly at or above the ball ``value``."""
    with precision(_SHARP):  # or flint would round at whatever precision the process has
        top = value.upper()
    if 0 < top < _TINY:  # such as e^(-10^23): as a rational it would fill the memory
        return _TINY
    return fraction_up(to_fraction(top))


def double_down(value: Any) -> float:
    """Return the greatest double that is certainly at or below the ball ``value``."""
    with precision(_SHARP):
        return -double_up(-value)


def fraction_up(value: Fraction) -> float:
    """Return the least double at or above the exact rational ``value``."""
    nearest = _nearest(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def fraction_down(value: Fraction) -> float:
    """Return the greatest double at or below the exact rational ``value``."""
    nearest = _nearest(value)
    return nearest if nearest <= value else math.nextafter(nearest, -math.inf)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def sqrt_up(value: Fraction) -> float:
    """Return the least double whose square is at or above the exact rational ``value``."""
    return _sqrt(value, up=True)


def sqrt_down(value: Fraction) -> float:
    """Return the greatest double whose square is at or below the exact rational ``value``."""
    return _sqrt(value, up=False)


def _sqrt(value: Fraction, *, up: bool) -> float:
    # Start within an ulp or two and walk with exact comparisons: no rounding analysis needed.
    # Scaling by an even power of two keeps the start a normal double for any rational.
    if value == 0:
        return 0.0
    if value > Fraction(_HUGE) ** 2:
        return math.inf if up else _HUGE
    shift = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    root = math.ldexp(math.sqrt(value / Fraction(4) ** shift), shift)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    while Fraction(root) ** 2 > value:
        root = math.nextafter(root, 0.0)
    # Now root is the greatest double with root^2 <= value.
    return math.nextafter(root, math.inf) if up and Fraction(root) ** 2 < value else root
