"""What a release costs a person in each cell, as exact integers over a power of two."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .._arb import fraction_up, sqrt_up
from .._checks import whole
from ..errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """The privacy profile: entry i is b_i^T S^-1 b_i, the squared cost of one row in cell i.

    Parameters
    ----------
    units : object array of int, shape (d,)
        Entry i of the profile is ``units[i] / 2**exponent``, exactly.
    exponent
        A whole number, not negative.

    Two profiles add cell by cell only where a person surely sits in the same cells both
    times: one frozen vintage of the data, one schema, one people rule, add-remove neighbours
    (Fitness-for-use, section 3.2; docs/math/profiles.md). The ledger decides when.
    """

    units: NDArray[np.object_]
    exponent: int

    def __post_init__(self) -> None:
        given = np.ravel(np.asarray(self.units, dtype=object))
        if given.size == 0:
            raise InvalidInput("a profile must have at least one cell.")
        if not all(isinstance(u, (int, np.integer)) for u in given):
            raise InvalidInput("a profile's units must be integers.")
        whole("the profile's exponent", self.exponent, least=0)
        units = np.array([int(u) for u in given], dtype=object)
        if bad := sum(u < 0 for u in units):
            raise InvalidInput(
                f"a profile's units must be at least 0: {bad} of {len(units)} are not."
            )
        units.setflags(write=False)
        object.__setattr__(self, "units", units)

    def __len__(self) -> int:
        return len(self.units)

    def __add__(self, other: Profile) -> Profile:
        """Add cell by cell: both releases, for a person who sits in the same cells in both."""
        if len(self) != len(other):
            raise InvalidInput(
                f"profiles over {len(self)} and {len(other)} cells cannot be added cell by cell."
            )
        exponent = max(self.exponent, other.exponent)
        return Profile(self._at(exponent) + other._at(exponent), exponent)

    def __mul__(self, times: int) -> Profile:
        return Profile(self.units * times, self.exponent)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Profile) or len(self) != len(other):
            return NotImplemented if not isinstance(other, Profile) else False
        exponent = max(self.exponent, other.exponent)
        return bool(np.all(self._at(exponent) == other._at(exponent)))

    __hash__ = None  # type: ignore[assignment]  # an array inside

    def __repr__(self) -> str:
        return f"Profile({len(self)} cells, greatest {fraction_up(self.greatest):.6g})"

    def _at(self, exponent: int) -> NDArray[np.object_]:
        return self.units << (exponent - self.exponent)

    @property
    def greatest(self) -> Fraction:
        """The greatest entry: mu^2 under add-remove neighbours."""
        return Fraction(int(max(self.units)), 1 << self.exponent)

    def values(self) -> NDArray[np.float64]:
        """Return the entries as doubles, each rounded up, shape (d,)."""
        scale = 1 << self.exponent
        return np.array([fraction_up(Fraction(int(u), scale)) for u in self.units])

    def replace_bound(self) -> Fraction:
        """Return a rational that mu^2 under replace neighbours certainly does not exceed.

        ||a_i - a_j|| <= ||a_i|| + ||a_j||, and the two greatest entries give the largest sum;
        the profile alone does not tell more.
        """
        top = sorted(self.units)[-2:]
        first = Fraction(int(top[-1]), 1 << self.exponent)
        second = Fraction(int(top[0]), 1 << self.exponent) if len(top) == 2 else Fraction(0)
        # (a + b)^2 = a^2 + b^2 + 2 ab, and ab is the root of a rational: rounded up.
        return first + second + 2 * Fraction(sqrt_up(first * second))
