"""Shared checks at the boundary: each raises one clear sentence, and rejects NaN.

Conditions are written ``not low <= x <= high`` because a comparison with NaN is
false: the form ``x < low`` would let NaN through.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arb import fraction_down
from .errors import InvalidInput

Floats = NDArray[np.float64]


def real(name: str, value: Any) -> float:
    """Return ``value`` as a float, or refuse what is not one finite real number."""
    try:
        if isinstance(value, (str, bytes)):  # which float would read
            raise TypeError
        number = float(value)
    except OverflowError:
        raise InvalidInput(f"{name} must be at most 1.8e308 in size, as doubles are.") from None
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be one real number, got {type(value).__name__}.") from None
    if not np.isfinite(number):
        raise InvalidInput(f"{name} must be finite, got {number}.")
    return number


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above zero."""
    number = real(name, value)
    if not number > 0:
        raise InvalidInput(f"{name} must be above 0, got {number:g}.")
    return number


def exact(name: str, value: Any) -> Fraction:
    """Return ``value`` as the exact rational it is (a float is a dyadic rational)."""
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        # A Decimal or a long double would be rounded on the way: which way, nobody asked.
        raise InvalidInput(
            f"{name} must be an int, a float or a Fraction, got {type(value).__name__}."
        )
    return Fraction(real(name, value) if isinstance(value, float) else value)


def exact_positive(name: str, value: Any) -> Fraction:
    """Return ``value`` above zero as the exact rational it is."""
    number = exact(name, value)
    if not number > 0:
        raise InvalidInput(f"{name} must be above 0, got {fraction_down(number):g}.")
    return number


def is_masked(values: Any) -> bool:
    """Return whether parts of an array are hidden from its own arithmetic."""
    return isinstance(values, np.ma.MaskedArray)


def kept_as(dtype: np.dtype[Any]) -> str:
    """Return what an array's type is called, without the length of its longest text."""
    return {"O": "objects", "U": "text", "S": "bytes"}.get(dtype.kind, dtype.name)


def floats(name: str, values: ArrayLike, *, ndim: int | None = None) -> Floats:
    """Return ``values`` as a new float64 array of finite numbers, with ``ndim`` axes if given."""
    try:
        given = np.asarray(values)
        if is_masked(values) or given.dtype.kind not in "iufbO":
            raise TypeError
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be an array of real numbers, none masked.") from None
    if ndim is not None and array.ndim != ndim:
        raise InvalidInput(f"{name} must have {ndim} axes, got shape {array.shape}.")
    bad = int(array.size - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise InvalidInput(f"{name} must be finite: {bad} of {array.size} entries are not.")
    return array


def probability(name: str, value: Any) -> float:
    """Return ``value`` as a float above 0 and below 1."""
    number = real(name, value)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} must be above 0 and below 1, got {number:g}.")
    return number


def whole(name: str, value: Any, *, least: int = 1) -> int:
    """Return ``value`` as an int of at least ``least``, or refuse what is not a whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidInput(f"{name} must be a whole number, got {type(value).__name__}.")
    if not value >= least:
        raise InvalidInput(f"{name} must be at least {least}, got {value}.")
    return int(value)


def frozen(array: Floats) -> Floats:
    """Return the array, read-only from now on."""
    array.setflags(write=False)
    return array
