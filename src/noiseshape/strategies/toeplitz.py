"""Sums of all cells so far, each cell weighed by how long ago it was: a Toeplitz strategy.

Row r measures ``sum over i <= r of a_(r-i) x_i`` for integers a. As power series the rows are
a(x), and the sums up to each cell are 1 / (1 - x) = r(x) a(x): the rebuild is the series
r = 1 / ((1 - x) a). Near (1 - x)^-1/2 both factors of the prefix sums are alike, and their
greatest norms multiply to within (ln d / pi + 1.07)^2 (Fichtenberger, Henzinger and Upadhyay, ICML
2023); other powers share errors otherwise between short and long ranges.

What is executed are integers: products are exact (flint multiplies polynomials of integers), costs
are sums of their squares, and only the errors that are stated go through doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import nlargest
from itertools import pairwise
from typing import Self

import numpy as np
from flint import fmpz_poly
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft

from .._checks import Floats, floats, frozen, whole
from ..errors import InvalidInput, TooLarge
from ..privacy import Profile
from .exact import Integers, integers, magnitude
from .sigma import refined, scaled, weights
from .spanning import Spanning, Spans, level_scales
from .strategy import PAIRS

# Bits of the first coefficient: at least these, and twelve more than what (1 - x)^-1/2 loses in d
# terms, so that the last one still has twelve. More would cost nothing but draws: beyond scales of
# 2^40 the sampler takes twenty microseconds for each.
PRECISION, LAST = 20, 12

# Additions that stating the errors of listed ranges may take: some ten seconds.
MOST_ADDED = 4_000_000_000


@dataclass(frozen=True, eq=False, init=False)
class Toeplitz(Spanning):
    """Integer rows a_(r-i), with one scale for all or one for each block of rows.

    Parameters
    ----------
    spans
        What is asked.
    coefficients : integers, shape (d,)
        a: the first must not be 0.
    level_sigma
        The noise scale of each block, at least 1.
    level_rows
        Rows of each block, in order; by default one block of all.

    Formal Guarantees:
      Under add-remove neighbours the cost of cell i is exactly
      ``sum over r >= i of a_(r-i)^2 / sigma_r^2``.

    Examples
    --------
    >>> sums = Toeplitz.power(Spans.prefixes(4), 0.5, 2.0**34)
    >>> sums.shape, (sums.coefficients / 2**20).round(4).tolist()
    ((4, 4), [1.0, 0.5, 0.375, 0.3125])
    """

    spans: Spans
    coefficients: Integers
    level_sigma: Floats
    level_rows: tuple[int, ...]

    def __init__(
        self,
        spans: Spans,
        coefficients: ArrayLike,
        level_sigma: ArrayLike,
        level_rows: Sequence[int] | None = None,
    ) -> None:
        a = integers("coefficients", coefficients)
        if a.shape != (spans.cells,) or int(a[0]) == 0:
            raise InvalidInput(
                f"a Toeplitz strategy over {spans.cells} cells needs as many coefficients, the "
                f"first of them not 0; got shape {a.shape}."
            )
        a.setflags(write=False)
        given = [spans.cells] if level_rows is None else level_rows
        rows = tuple(whole("the rows of a block", count) for count in given)
        if sum(rows) != spans.cells:
            raise InvalidInput(
                f"the blocks of a Toeplitz strategy hold its {spans.cells} rows, got {sum(rows)}."
            )
        object.__setattr__(self, "spans", spans)
        object.__setattr__(self, "coefficients", a)
        object.__setattr__(self, "level_sigma", level_scales(np.ravel(level_sigma), len(rows)))
        object.__setattr__(self, "level_rows", rows)

    @classmethod
    def power(cls, spans: Spans, power: float, sigma: float) -> Toeplitz:
        """Return the powers rounded to integers, measured at this scale: see ``precision``."""
        return cls(spans, rounded_power(power, spans.cells), [sigma])

    def asking(self, spans: Spans) -> Self:
        """Return the same rows and scales, asked other spans."""
        return self._twin(spans, self.coefficients, self.level_sigma)

    def _twin(self, spans: Spans, coefficients: Integers, sigma: Floats) -> Self:
        """Return another multiple of the same series: its reciprocal is known."""
        twin = type(self)(spans, coefficients, sigma, self.level_rows)
        vars(twin)["_series"] = self._series
        return twin

    @cached_property
    def _borders(self) -> list[tuple[int, int]]:
        """The first row of each block, and the first after it."""
        ends = np.cumsum((0, *self.level_rows)).tolist()
        return list(pairwise(ends))

    def _apply_to(self, X: Integers) -> Integers:
        if X.ndim == 1:
            return convolved(self.coefficients, X)
        columns = X.reshape(len(X), -1)
        found = [convolved(self.coefficients, column) for column in columns.T]
        return np.stack(found, axis=1).reshape(X.shape)

    @cached_property
    def _squares(self) -> NDArray[np.object_]:
        """Return sums of the first 0, 1, ..., d squares of coefficients, exactly."""
        a = self.coefficients.astype(object)
        return np.concatenate([np.zeros(1, dtype=object), np.add.accumulate(a * a)])

    @cached_property
    def _profile(self) -> Profile:
        units, exponent = weights(self.level_sigma)
        S, d = self._squares, self.spans.cells
        total = np.zeros(d, dtype=object)
        for unit, (start, end) in zip(units, self._borders, strict=True):
            # Rows start, ..., end - 1 hold a_(start - i), ..., a_(end - 1 - i) of cell i.
            cell = S[end:0:-1] * int(unit)
            total[:end] += cell
            if start:
                total[:start] -= S[start:0:-1] * int(unit)
        return Profile(total, exponent)

    @cached_property
    def _replaced(self) -> Fraction:
        """Return max ||a_i - a_j||^2: for each distance the first pair differs in most rows.

        With blocks of several scales exactly up to 4,096 cells; beyond, a bound above it: columns
        of numbers that are not negative are at most as far apart as if they shared no row.
        """
        a = self.coefficients
        d = len(a)
        if d == 1:
            return Fraction(0)
        if len(self.level_rows) > 1:
            if d <= PAIRS or not bool((a >= 0).all()):
                return super()._replaced
            return Fraction(sum(nlargest(2, self.profile().units)), 1 << self.profile().exponent)
        products = convolved(a, a[::-1], full=True).astype(object)[d:]  # sum a_t a_(t+L), L = 1...
        S = self._squares
        greatest = max(S[d] + S[1:d][::-1] - 2 * products)
        (unit,), exponent = weights(self.level_sigma)
        return Fraction(int(greatest) * int(unit), 1 << exponent)

    def scaled(self, factor: float, *, up: bool = True) -> Self:
        """Return the same shape with every sigma multiplied by ``factor``."""
        a = self.coefficients
        sigma, finer = refined(scaled(self.level_sigma, factor, up=up), magnitude(a))
        if finer:
            a = integers("coefficients", a.astype(object) << finer)
        return self._twin(self.spans, a, sigma)

    @cached_property
    def _series(self) -> Floats:
        """Return r = a_0 / ((1 - x) a), shape (d,): a prefix sum's row, last cell first."""
        a = self.coefficients
        steps = np.diff(a.astype(object) if a.dtype == object else a, prepend=0)
        return frozen(reciprocal((steps / int(a[0])).astype(np.float64)))

    @property
    def _unit(self) -> float:
        return float(int(self.coefficients[0]))

    def _approximate_to(self, R: Floats) -> Floats:
        inverse = np.diff(self._series, prepend=0.0) / self._unit
        return filtered(inverse, R)

    def influence(self, weights: Floats) -> Floats:
        """Return R^T w: the reciprocal's series run backwards over the weights."""
        inverse = np.diff(self._series, prepend=0.0) / self._unit
        return filtered(inverse, weights[::-1])[::-1]

    @cached_property
    def _sums(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self._series**2)])

    def gains(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> Floats:
        """Return the sum of squares of each span's row of R in each block, (m, blocks)."""
        return self.mixed(low, high, np.eye(len(self.level_rows)))

    def mixed(self, low: NDArray[np.int64], high: NDArray[np.int64], unit: Floats) -> Floats:
        """Return ``gains @ unit``.

        The row of a span of L cells is r_(high - 1 - t) at the rows t that it holds, and
        r_(k + L) - r_k, k = low - 1 - t, before it: sums of squares, so that nothing cancels.
        """
        lengths = high - low
        inside = np.flatnonzero(low > 0)
        distinct = np.unique(lengths[inside])
        if len(distinct) and len(distinct) * int(low[inside].max()) > MOST_ADDED:
            raise TooLarge(_too_many(len(distinct)))
        total = np.zeros((len(low), unit.shape[1]))
        S = self._sums
        for weight, (start, end) in zip(unit, self._borders, strict=True):
            first, last = (np.clip(row, low, high) for row in (start, end))
            total += (S[high - first] - S[high - last])[:, None] * weight
        r = self._series
        order = inside[np.argsort(lengths[inside], kind="stable")]
        stops = np.searchsorted(lengths[order], distinct, side="right")
        begin = 0
        for length, stop in zip(distinct.tolist(), stops.tolist(), strict=True):
            mine = order[begin:stop]
            at = low[mine]
            far = int(at.max())
            apart = np.append(0.0, np.cumsum((r[length : length + far] - r[:far]) ** 2))
            for weight, (start, end) in zip(unit, self._borders, strict=True):
                held = apart[at - np.minimum(start, at)] - apart[at - np.minimum(end, at)]
                total[mine] += held[:, None] * weight
            begin = stop
        return np.asarray(total / self._unit**2)

    def by_length(self, first: int | None = None) -> Floats:
        """Return the greatest variance of the spans of 1, 2, ... cells, among the ``first`` cells.

        The farther from the first cell the greater it is: the last span of a length has it. With
        one scale for all rows; with several there is no such order.
        """
        if len(self.level_rows) > 1:
            raise InvalidInput("the greatest error of each length is told by one scale for all.")
        d = self.spans.cells if first is None else first
        return greatest_gains(self._series[:d]) / self._unit**2 * self.level_variance[0]


def greatest_gains(r: Floats) -> Floats:
    """Return, for spans of 1, ..., d cells, the greatest sum of squares of a row of R, shape (d,).

    It is ``sum_(k < d) r_k^2 + sum_(k < d - L) r_k^2 - 2 sum_k r_k r_(k + L)``, that of the last.
    """
    d = len(r)
    S = np.concatenate([[0.0], np.cumsum(r**2)])
    size = next_fast_len(2 * d, real=True)
    shifted = np.append(irfft(np.abs(rfft(r, size)) ** 2, size)[1:d], 0.0)
    return np.asarray(S[d] + S[d - 1 :: -1] - 2 * shifted)


def power_series(power: float, d: int) -> Floats:
    """Return the first d coefficients of (1 - x)^-power: 1, power, power (power + 1) / 2, ..."""
    k = np.arange(1, d)
    return np.concatenate([[1.0], np.cumprod((power - 1 + k) / k)])


def precision(d: int) -> int:
    """Return the bits of the first of d coefficients."""
    return max(PRECISION, LAST + (d.bit_length() + 1) // 2)


def rounded_power(power: float, d: int) -> NDArray[np.int64]:
    """Return 2^precision(d) (1 - x)^-power as integers, shape (d,)."""
    power = float(floats("power", power))
    if not 0 <= power <= 1:
        raise InvalidInput(f"the power must be from 0 (cells) to 1 (sums), got {power:g}.")
    return np.rint(np.ldexp(power_series(power, d), precision(d))).astype(np.int64)


def convolved(a: Integers, x: Integers, *, full: bool = False) -> Integers:
    """Return the first ``len(x)`` terms of the product of two series of integers, exactly.

    flint multiplies polynomials over the integers: no double is in between, whatever their size.
    """
    one, other = fmpz_poly(a.tolist()), fmpz_poly(x.tolist())
    size = len(a) + len(x) - 1 if full else len(x)
    product = one.mul_low(other, size) if not full else one * other
    found = [int(c) for c in product.coeffs()]
    found += [0] * (size - len(found))
    return integers("a product", np.array(found, dtype=object))


def filtered(series: Floats, X: Floats) -> Floats:
    """Return the first rows of the product of a series and each column, by FFT in doubles."""
    d = len(series)
    size = next_fast_len(2 * d, real=True)
    shape = (-1,) + (1,) * (X.ndim - 1)
    spectrum = rfft(series, size).reshape(shape) * rfft(X, size, axis=0)
    return np.asarray(irfft(spectrum, size, axis=0)[:d])


def reciprocal(series: Floats) -> Floats:
    """Return the first terms of 1 / series, whose first term is 1, by Newton's iteration."""
    d = len(series)
    found = np.ones(1)
    while len(found) < d:
        n = min(2 * len(found), d)
        padded = np.append(found, np.zeros(n - len(found)))
        off = -filtered(series[:n], padded)
        off[0] += 2.0
        found = filtered(padded, off)
    return np.asarray(found)


def _too_many(lengths: int) -> str:
    return (
        f"the errors of ranges of {lengths:,} different lengths take too long to state one by one "
        "here: ask for a tree, or for all ranges, whose greatest error of each length is known."
    )
