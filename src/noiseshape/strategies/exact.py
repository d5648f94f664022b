"""Exact integers: what is an integer array, and products that cannot overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import is_masked, kept_as
from ..errors import InvalidInput

# int64 where everything fits, Python integers (dtype object) where it may not.
Integers = NDArray[Any]

_WORD = 63  # bits of magnitude in an int64
_DOUBLES = 1 << 53  # whole numbers up to here are doubles


def integers(name: str, values: ArrayLike) -> Integers:
    """Return ``values`` as an int64 array, or as Python integers where 64 bits are too few.

    Decided by type alone: floats are refused even where they happen to be whole, so that
    whether data is accepted says nothing about it.
    """
    # As a plain array: a subclass may hide entries from checks and show them to products.
    try:
        array = np.asarray(values) if isinstance(values, np.ndarray) else _as_listed(values)
    except ValueError:
        raise InvalidInput(f"{name} must hold integers, in rows of equal length.") from None
    if is_masked(values):
        raise InvalidInput(f"{name} must not be masked: fill or drop what is hidden first.")
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    if array.dtype.kind == "u":
        return array.astype(np.int64 if array.dtype.itemsize < 8 else object)
    if array.dtype == object and all(map(_is_integer, array.flat)):
        return _narrow(np.array([int(v) for v in array.flat], dtype=object).reshape(array.shape))
    raise InvalidInput(
        f"{name} must hold integers, got {kept_as(np.asarray(values).dtype)}: if they are whole, "
        "convert them, as with astype(int); real data is rounded to a declared grid first."
    )


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _as_listed(values: ArrayLike) -> NDArray[Any]:
    """Return a list as an array; of Python integers as they are, which numpy would make floats."""
    array = np.asarray(values)
    return np.asarray(values, dtype=object) if array.dtype.kind in "fu" else array


def magnitude(array: Integers) -> int:
    """Return the greatest absolute value as a Python integer (0 for an empty array)."""
    return max(abs(int(array.max())), abs(int(array.min()))) if array.size else 0


def product(A: Integers, x: Integers) -> Integers:
    """Return A @ x exactly, for A (k, d) and x (d,) or (d, n).

    int64 where a bound on every partial sum fits; otherwise x is cut into limbs that do, and
    only the k x n sums are put together as Python integers. Many columns go through doubles
    where every partial sum is below 2^53, or in two halves of x that are so: BLAS then adds whole
    numbers, exactly in any order, at forty times the speed. (At k = d = 1,024 numpy's int64
    product takes 0.5 ms, its product of Python integers 30 ms, and flint's 5 ms after a conversion
    of 140 ms; ``make bench`` prints them.)
    """
    rows = _row_sum(A)
    if x.ndim == 2 and x.shape[1] > 1 and rows * magnitude(x) < _DOUBLES:
        return np.asarray(A.astype(np.float64) @ x.astype(np.float64)).astype(np.int64)
    bits = magnitude(x).bit_length()
    if rows.bit_length() + bits < _WORD:
        cut = _DOUBLES.bit_length() - 2 - rows.bit_length()
        if x.ndim == 2 and x.shape[1] > 1 and cut >= bits - cut > 0:
            # Two halves, each through doubles: x = high 2^cut + low.
            high, low = _as_int64(x) >> cut, _as_int64(x) & ((1 << cut) - 1)
            F = A.astype(np.float64)
            halves = [(F @ part.astype(np.float64)).astype(np.int64) for part in (high, low)]
            return np.asarray((halves[0] << cut) + halves[1])
    if rows.bit_length() + bits <= _WORD:
        return _as_int64(A) @ _as_int64(x)
    room = _WORD - rows.bit_length()
    if room < 8:
        return _narrow(np.asarray(A.astype(object) @ x.astype(object)))
    limbs, rest = [], x.astype(object) if x.dtype == object else x
    while magnitude(rest) >> room:
        limbs.append(_as_int64(rest & ((1 << room) - 1)))
        rest = rest >> room  # an arithmetic shift: the last limb carries the sign
    limbs.append(_as_int64(rest))
    total = (_as_int64(A) @ limbs[-1]).astype(object)
    for limb in reversed(limbs[:-1]):
        total = (total << room) + (_as_int64(A) @ limb).astype(object)
    return _narrow(np.asarray(total))


def fits(A: Integers, x: Integers) -> bool:
    """Return whether every partial sum of ``product(A, x)`` stays within int64."""
    return _row_sum(A).bit_length() + magnitude(x).bit_length() <= _WORD


def squares(A: Integers) -> Integers:
    """Return the sum over rows of the squared entries of each column, exactly, shape (d,)."""
    if 2 * magnitude(A).bit_length() + len(A).bit_length() <= _WORD:
        return np.asarray(np.einsum("ij,ij->j", A, A))
    return np.asarray((A.astype(object) ** 2).sum(axis=0))


def shifted(x: Integers, bits: int) -> Integers:
    """Return x * 2**bits, exactly."""
    if bits + magnitude(x).bit_length() <= _WORD:
        return x << bits
    return np.asarray(x.astype(object) << bits)


def difference(a: Integers, b: Integers) -> Integers:
    """Return a - b, exactly."""
    if max(magnitude(a), magnitude(b)).bit_length() < _WORD - 1:
        return np.asarray(a - b)
    return _narrow(np.asarray(a.astype(object) - b.astype(object)))


def nearest(values: NDArray[np.float64], bits: int) -> Integers:
    """Return doubles * 2**bits as the nearest integers."""
    grid = np.rint(np.ldexp(values, bits))
    if np.abs(grid).max(initial=0.0) < 2.0 ** (_WORD - 1):
        return grid.astype(np.int64)
    return np.array([int(v) for v in grid.flat], dtype=object).reshape(grid.shape)


def _row_sum(A: Integers) -> int:
    """Return the greatest sum of absolute values of a row: exact, or a bound for int64."""
    if A.size == 0:
        return 0
    if A.dtype == object:
        return max(sum(abs(int(v)) for v in row) for row in A)
    top = magnitude(A)
    if top.bit_length() + A.shape[1].bit_length() <= _WORD:
        return int(np.abs(A).sum(axis=1).max())
    return top * A.shape[1]


def _as_int64(array: Integers) -> NDArray[np.int64]:
    return array.astype(np.int64, copy=False)


def _narrow(array: Integers) -> Integers:
    return array.astype(np.int64) if magnitude(array).bit_length() <= _WORD - 1 else array
