"""The scale of the noise: one exact rational sigma, or one for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._checks import exact_positive, is_masked
from ..errors import InvalidInput

Rational: TypeAlias = int | float | Fraction
Row: TypeAlias = Sequence[Rational] | NDArray[Any]
Sigma: TypeAlias = Rational | Row

# Below 2^-7 anything but 0 has a chance under 1e-890; above 2^80 no use is known, and
# no speed has been measured.
LEAST = Fraction(1, 128)
MOST = Fraction(2**80)

# A result past 64 bits needs |N| > 2^13 here: 48 million zero bits in a row. It would raise
# OverflowError, not wrap.
LARGEST_INT64 = 2.0**50


@dataclass(frozen=True)
class Scale:
    """Sigma as it was given, exactly, and as the nearest doubles.

    exact (k,): each an int, a float (a dyadic rational) or a Fraction
    floats (k,): the doubles nearest to them
    single: whether one number was given, rather than a sequence
    """

    exact: Sequence[Rational] | NDArray[np.float64]
    floats: NDArray[np.float64]
    single: bool

    @classmethod
    def of(cls, sigma: Sigma) -> Self:
        """Read what a caller gave, or refuse it."""
        values: Any = sigma
        if is_masked(values):
            raise InvalidInput("sigma must not be masked: give every row its own.")
        if hasattr(values, "__array__"):
            values = np.asarray(values)
            if values.ndim == 1 and values.dtype == np.float64:
                return cls._of_doubles(values.copy())
            values = values.tolist()
        if not isinstance(values, Sequence) or isinstance(values, (str, bytes, bytearray)):
            values, single = [values], True
        else:
            single = False
        exact = [_rational(value) for value in values]
        return cls(exact, np.array([float(value) for value in exact], dtype=np.float64), single)

    @classmethod
    def _of_doubles(cls, floats: NDArray[np.float64]) -> Self:
        # A Fraction takes a microsecond to make: a million rows are checked as doubles.
        allowed = (floats >= float(LEAST)) & (floats <= float(MOST))
        if not allowed.all():
            _rational(floats[np.argmin(allowed)].item())
        return cls(floats, floats, single=False)

    def fraction(self, row: int) -> Fraction:
        """Return the exact sigma of one row."""
        return Fraction(self.exact[row])

    @property
    def fits_int64(self) -> bool:
        """Whether every draw fits 64 bits; known from sigma, so that the type tells nothing."""
        return bool(np.max(self.floats, initial=0.0) <= LARGEST_INT64)


def _rational(value: Any) -> Fraction:
    if not isinstance(value, (int, float, Fraction)):
        raise InvalidInput(
            "sigma must be an int, float or Fraction, or a 1-D sequence of them, "
            f"got {type(value).__name__}: convert it with fractions.Fraction to keep it exact."
        )
    exact = exact_positive("sigma", value)
    if not LEAST <= exact <= MOST:
        power = exact.numerator.bit_length() - exact.denominator.bit_length()
        raise InvalidInput(
            f"sigma must lie between 2**-7 and 2**80, got about 2**{power}: "
            "measure the query in another unit."
        )
    return exact
