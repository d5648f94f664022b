"""The strategy as it is executed: integer rows, one dyadic sigma a row, and what they answer.

    measure    y = A~ x + round(sigma N)         integers, exactly
    rebuild    answers = R y,  R A~ = W          floats only at the last conversion
    account    mu^2 = max_i sum_r A~_ri^2 / sigma_r^2, from the same integers

One frozen object feeds all three, so that what is accounted for is what is drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, frozen
from ..errors import InvalidInput, NotConverged, TooLarge
from ..privacy import Cost, People, Profile
from ..sampling import rounded_variance
from .exact import Integers, difference, integers, magnitude, nearest, shifted

if TYPE_CHECKING:
    from ..privacy.people import Neighbours
    from .changes import Changes
    from .dense import Dense

# Pairs of columns are compared exactly up to this many cells (16 M pairs, under a minute);
# beyond, a bound above them by rounding alone where the matrix is written out, and a bound from the
# profile where it is not.
PAIRS = 4096

# Rounding of the rebuilt answers, in standard errors; exceeded, nothing is answered.
RESIDUAL = 1e-6


class Strategy(ABC):
    """What is measured, how noisily, and how the answers are rebuilt.

    A strategy of shape (k, d) measures k integer combinations of d cells; its workload asks m
    questions. Every member can ``densify``, and passes one conformance kit against that.
    """

    changes: Changes | None
    """What one row can contribute, where that is not one cell (or, in a ``Dense``, a ``reach``)."""

    sigma: Floats
    """Noise scale of each row, shape (k,): doubles, taken as the dyadic rationals they are."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows measured and cells: (k, d)."""

    @property
    @abstractmethod
    def queries(self) -> int:
        """How many questions are answered: m."""

    @abstractmethod
    def apply(self, x: ArrayLike) -> Integers:
        """Return A~ x exactly for integers x of shape (d,): shape (k,)."""

    def profile(self) -> Profile:
        """Return sum_r A~_ri^2 / sigma_r^2 for each cell i, exactly, rounded up once a sigma."""
        return self._profile

    @cached_property
    @abstractmethod
    def _profile(self) -> Profile: ...

    @abstractmethod
    def covariance(self) -> Floats:
        """Return the covariance of the answers, shape (m, m): of the noise that is executed."""

    @abstractmethod
    def _variance(self) -> Floats: ...

    @abstractmethod
    def densify(self) -> Dense:
        """Return the same strategy with every matrix written out."""

    @abstractmethod
    def scaled(self, factor: float, *, up: bool = True) -> Strategy:
        """Return the same shape with every sigma multiplied by ``factor``.

        Sigmas are rounded up (toward privacy) or, with ``up=False``, down (toward accuracy);
        the cost is recomputed from the result either way.
        """

    # What a strategy does to a vector, or to each column of a matrix: a factor of a product acts
    # on one axis of the data.

    @abstractmethod
    def _apply_to(self, X: Integers) -> Integers:
        """Return A~ X exactly, (d,) -> (k,) or (d, n) -> (k, n)."""

    @abstractmethod
    def _approximate_to(self, R: Floats) -> Floats:
        """Return P R in floats, (k, ...) -> (d, ...), P close to a left inverse of A~."""

    @abstractmethod
    def _ask_to(self, X: Integers) -> Integers:
        """Return 2^bits W X exactly, (d, ...) -> (m, ...), with a number of bits for each row."""

    @property
    @abstractmethod
    def _asked_bits(self) -> NDArray[np.int64]:
        """Return the bits of each row of W, shape (m,)."""

    @abstractmethod
    def _rebuilt_variance(self, variances: Floats) -> Floats:
        """Return the variances of R y, (k, ...) -> (m, ...), for independent y with these."""

    @cached_property
    def noise_variance(self) -> Floats:
        """Variance of round(sigma N) for each row, shape (k,)."""
        return frozen(np.asarray(rounded_variance(self.sigma)))

    @cached_property
    def variance(self) -> Floats:
        """Variance of each answer, shape (m,): of the integers and the rounded noise executed."""
        return frozen(self._variance())

    def _data(self, x: ArrayLike) -> Integers:
        """Return data as integers, one a cell, or refuse it."""
        x = integers("the data", x)
        if x.shape != self.shape[1:]:
            raise InvalidInput(
                f"the data must have one integer for each of {self.shape[1]} cells, "
                f"got shape {x.shape}."
            )
        return x

    def cost(self, people: People | None = None, *, rows_may_leave: bool = False) -> Cost:
        """Return what measuring this once costs, from the executed integers, exactly.

        Parameters
        ----------
        people
            Whose privacy; by default each row is a person, added or removed.
        rows_may_leave
            Under ``replace``: a row may also leave the domain (a filter, ``outside: drop``),
            so that a column on its own counts as a difference too.

        Formal Guarantees:
          ``add-remove``: mu = k max_i ||a_i||. ``replace``: mu = k max over i, j of
          ||a_i - a_j|| (k > 1, or rows that may leave: and of ||a_i||), exactly for up to
          4,096 cells; beyond, rounded up by less than 1e-11 of the profile's greatest entry for
          a matrix that is written out, and an upper bound from the profile for others.
        """
        people = People() if people is None else people
        if not isinstance(people, People):
            raise InvalidInput(
                f"whose privacy must be said by a People, got {type(people).__name__}: "
                'People("person_id", max_rows=3), say.'
            )
        square = self.cost_of_one(people.neighbours)
        if people.neighbours == "replace" and (people.max_rows > 1 or rows_may_leave):
            square = max(square, self.cost_of_one("add-remove"))
        return Cost(people.max_rows**2 * square, people.neighbours)

    def cost_of_one(self, neighbours: Neighbours) -> Fraction:
        """Return mu^2 of one row that is added or removed, or replaced by another."""
        if self.changes is not None:
            return self.changes.square(self, neighbours)
        return self.profile().greatest if neighbours == "add-remove" else self._replaced

    @cached_property
    def _replaced(self) -> Fraction:
        """Return max over pairs of ||a_i - a_j||^2, or a bound above it."""
        if len(self.profile()) > PAIRS:
            return self.profile().replace_bound()
        return self.densify().greatest_difference()

    def rebuild(self, y: ArrayLike) -> Floats:
        """Return the answers, shape (m,), from the measured integers y, shape (k,).

        x is found as X / 2^s, X integers, by x <- x + P (y - A~ x) with the residual in exact
        integers. Whatever left inverse P the floats hold, the limit (P A~)^-1 P y is exactly
        unbiased: R A~ = W. The rounding left over is checked to be below 1e-6 of each answer's
        standard error.
        """
        y = self._measured(y)
        error = np.sqrt(self.variance)
        X: Integers = np.zeros(self.shape[1], dtype=np.int64)
        bits = self._resolution
        asked = self._asked_bits + bits
        asked_whole: Integers | None = None
        if magnitude(y).bit_length() + bits >= 63:
            # Whole numbers first: what they leave of y fits 64 bits with its fraction, where y
            # itself would be millions of Python's integers.
            whole = nearest(self._approximate_to(doubles(y, 0)), 0)
            y = difference(y, self.apply(whole))
            asked_whole = self._ask_to(whole)
        target = shifted(y, bits)
        for _ in range(12):
            residual = doubles(difference(target, self.apply(X)), bits)
            step = nearest(self._approximate_to(residual), bits)
            X = difference(X, -step)
            if np.all(np.abs(doubles(self._ask_to(step), asked)) <= RESIDUAL / 4 * error):
                return self._together(asked_whole, self._ask_to(X), bits)
        raise NotConverged(
            "the answers cannot be rebuilt to a millionth of their standard errors: the strategy "
            "is too ill-conditioned; relax the tightest targets."
        )

    def _together(self, whole: Integers | None, part: Integers, bits: int) -> Floats:
        """Return answers to whole cells and to 2^-bits of cells, rounded once to doubles."""
        asked = self._asked_bits + bits
        if whole is None:
            return doubles(part, asked)
        if max(magnitude(whole), magnitude(part)) <= 1 << 53:  # both are doubles as they stand
            return doubles(whole, self._asked_bits) + doubles(part, asked)
        return doubles(difference(shifted(whole, bits), -part), asked)

    def approximate(self, Y: Floats) -> Floats:
        """Return cells from measured numbers in doubles, (k, n) -> (d, n): for simulations.

        What is published goes through ``rebuild``, which is exact up to a stated rounding.
        """
        return self._approximate_to(Y)

    def _measured(self, y: ArrayLike) -> Integers:
        y = integers("y", y)
        k = self.shape[0]
        if y.shape != (k,):
            raise InvalidInput(f"y must have one entry for each of {k} rows, got shape {y.shape}.")
        return y

    @cached_property
    def _resolution(self) -> int:
        """Bits after the point of x, so that rounding it moves no answer by 1e-9 of its error."""
        asked = self.variance[self.variance > 0]  # a query of zeros has no error
        if not asked.size:
            return 0
        return max(0, int(np.ceil(np.log2(self._gross() / np.sqrt(asked.min())))) + 30)

    @abstractmethod
    def _gross(self) -> float:
        """Return the greatest sum of absolute values of a row of W."""


def doubles(values: Integers, bits: int | NDArray[np.int64]) -> Floats:
    """Return integers / 2**bits as the nearest doubles; one bits for all, or one each."""
    if values.dtype != object:
        return np.ldexp(values.astype(np.float64), -bits)
    # Python divides integers of any size with one correct rounding.
    each = np.broadcast_to(bits, values.shape)
    try:
        return np.array([int(v) / (1 << int(b)) for v, b in zip(values, each, strict=True)])
    except OverflowError:
        raise TooLarge(
            "what was measured passes 1e308, and answers are doubles: read the integers instead."
        ) from None


def exact_integers(W: Floats) -> tuple[Integers, NDArray[np.int64]]:
    """Return (integers, bits) with W_j = integers_j / 2**bits_j for each row j, exactly.

    Doubles are dyadic rationals: int64 where every row fits in 62 bits, as rows of whole numbers
    do, and otherwise Python integers.
    """
    mantissas, exponents = np.frexp(W)
    whole = np.ldexp(mantissas, 53).astype(np.int64)  # W = whole * 2^(exponents - 53)
    lowest = np.log2(np.where(whole == 0, 1, whole & -whole)).astype(np.int64)
    bits = np.where(whole == 0, 0, 53 - exponents - lowest).max(axis=1, initial=0).astype(np.int64)
    if np.all(np.abs(W).max(axis=1, initial=0.0) < np.ldexp(1.0, 62 - np.minimum(bits, 1000))):
        return np.ldexp(W, bits[:, None]).astype(np.int64), bits
    shifts = (bits[:, None] + exponents - 53).astype(object)
    wide = whole.astype(object)
    left = np.where(shifts > 0, shifts, 0)
    right = np.where(shifts < 0, -shifts, 0)  # only zeros are shifted out
    return (wide << left) >> right, bits
