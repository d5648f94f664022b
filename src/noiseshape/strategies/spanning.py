"""Strategies over one ordered attribute that are asked for sums of consecutive cells.

A question is a span: the cells from ``low`` up to, and without, ``high``. Rows come in levels that
share one scale, and what a span's error takes from each level has a closed form, so that nothing of
the size d x d is ever formed, whatever d is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, frozen
from ..errors import InvalidInput
from ..sampling import rounded_variance
from .dense import Dense
from .exact import Integers, integers, magnitude
from .sigma import scales
from .strategy import Strategy

# Spans whose errors are found at once: a hundred megabytes at twenty levels.
TOGETHER = 1 << 16

_WORD = 62


@dataclass(frozen=True, eq=False)
class Spans:
    """Sums of consecutive cells: span j is of the cells low_j, ..., high_j - 1 of d.

    Attributes
    ----------
    low, high : integers, shape (m,)
        Where each begins, and the first cell after it.
    cells
        How many cells there are: d.

    Examples
    --------
    >>> Spans.prefixes(3).written()
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    cells: int

    def __init__(self, low: ArrayLike, high: ArrayLike, cells: int) -> None:
        ends = []
        for name, given in (("low", low), ("high", high)):
            array = integers(name, given)
            if array.ndim != 1 or array.dtype == object or not array.size:
                raise InvalidInput(f"{name} must be a list of whole numbers, one for each span.")
            array.setflags(write=False)
            ends.append(array)
        if len(ends[0]) != len(ends[1]):
            raise InvalidInput(f"spans need as many ends as beginnings: {len(ends[1])} ends of "
                               f"{len(ends[0])}.")  # fmt: skip
        inside = (ends[0] >= 0) & (ends[0] < ends[1]) & (ends[1] <= cells)
        if not inside.all():
            raise InvalidInput(
                f"a span is of at least one of the {cells} cells, and {int((~inside).sum())} of "
                f"{len(inside)} are not: say 0 <= low < high <= {cells}."
            )
        for field, value in (("low", ends[0]), ("high", ends[1]), ("cells", int(cells))):
            object.__setattr__(self, field, value)

    @staticmethod
    def prefixes(cells: int, upto: int | None = None) -> Spans:
        """Return the sums up to each cell: of all cells, or of the first ``upto``."""
        count = cells if upto is None else upto
        return Spans(np.zeros(count, dtype=np.int64), np.arange(1, count + 1), cells)

    @staticmethod
    def each(cells: int) -> Spans:
        """Return every cell on its own."""
        return Spans(np.arange(cells), np.arange(1, cells + 1), cells)

    def __len__(self) -> int:
        return len(self.low)

    def written(self) -> Floats:
        """Return the spans as rows of a matrix, shape (m, d): for small d alone."""
        at = np.arange(self.cells)
        inside = (self.low[:, None] <= at) & (at < self.high[:, None])
        return inside.astype(np.float64)

    def parts(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield low and high of some spans at a time."""
        for start in range(0, len(self), TOGETHER):
            yield self.low[start : start + TOGETHER], self.high[start : start + TOGETHER]

    def sums(self, X: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the sum of each span, (d, ...) -> (m, ...): exactly, for integers."""
        if X.dtype == np.int64 and magnitude(X).bit_length() + self.cells.bit_length() > _WORD:
            X = X.astype(object)
        total = np.zeros((self.cells + 1, *X.shape[1:]), dtype=X.dtype)
        np.add.accumulate(X, axis=0, out=total[1:])
        return np.asarray(total[self.high] - total[self.low])


class Spanning(Strategy):
    """A strategy whose questions are spans and whose rows come in levels of one scale each."""

    spans: Spans
    """What is asked."""

    level_sigma: Floats
    """The noise scale of each level, shape (levels,), in the units of the integers measured."""

    level_rows: tuple[int, ...]
    """How many rows each level has, in their order."""

    changes = None

    @abstractmethod
    def gains(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> Floats:
        """Return what each level adds to a span's variance, for unit noise, (m, levels).

        With R the least-squares rebuild of these scales, entry (j, l) is the sum of R_jr^2 over
        the rows r of level l.
        """

    def mixed(self, low: NDArray[np.int64], high: NDArray[np.int64], unit: Floats) -> Floats:
        """Return ``gains @ unit`` for numbers (levels, q): variances of levels, say."""
        return np.asarray(self.gains(low, high) @ unit)

    @abstractmethod
    def influence(self, weights: Floats) -> Floats:
        """Return R^T w, (d, ...) -> (k, ...): how much each row counts in any linear question."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows measured and cells: (k, d)."""
        return sum(self.level_rows), self.spans.cells

    @property
    def queries(self) -> int:
        """How many questions are answered: m."""
        return len(self.spans)

    @cached_property
    def sigma(self) -> Floats:  # type: ignore[override]
        """Noise scale of each row, shape (k,): that of its level."""
        return frozen(np.repeat(self.level_sigma, self.level_rows))

    @cached_property
    def level_variance(self) -> Floats:
        """Variance of round(sigma N) in each level, shape (levels,)."""
        return frozen(np.asarray(rounded_variance(self.level_sigma)))

    @cached_property
    def noise_variance(self) -> Floats:
        """Variance of round(sigma N) for each row, shape (k,)."""
        return frozen(np.repeat(self.level_variance, self.level_rows))

    def span_variance(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """Return the variance of the sum of any spans, (m,): of the noise that is executed."""
        asked = Spans(low, high, self.spans.cells)
        levels = self.level_variance[:, None]
        return np.concatenate([self.mixed(*ends, levels)[:, 0] for ends in asked.parts()])

    def weighed_variance(self, weights: ArrayLike) -> float:
        """Return the variance of one linear question about the cells, from its whole row of R."""
        w = np.asarray(weights, dtype=np.float64)
        if w.shape != self.shape[1:]:
            raise InvalidInput(f"a question weighs {self.shape[1]} cells, got shape {w.shape}.")
        return float(self.influence(w) ** 2 @ self.noise_variance)

    @abstractmethod
    def asking(self, spans: Spans) -> Self:
        """Return the same rows and scales, asked other spans."""

    @abstractmethod
    def scaled(self, factor: float, *, up: bool = True) -> Self:
        """Return the same shape with every sigma multiplied by ``factor``."""

    def apply(self, x: ArrayLike) -> Integers:
        """Return A~ x exactly for integers x of shape (d,): shape (k,)."""
        return self._apply_to(self._data(x))

    def covariance(self) -> Floats:
        """Return the covariance of the answers, shape (m, m): of the noise that is executed."""
        R = self.influence(self.spans.written().T).T
        return np.asarray((R * self.noise_variance) @ R.T)

    def _variance(self) -> Floats:
        return self.span_variance(self.spans.low, self.spans.high)

    def densify(self) -> Dense:
        """Return the same strategy with every matrix written out."""
        rows = self._apply_to(np.eye(self.shape[1], dtype=np.int64))
        return Dense(rows, self.sigma, self.spans.written())

    def _ask_to(self, X: Integers) -> Integers:
        return self.spans.sums(X)

    @cached_property
    def _asked_bits(self) -> NDArray[np.int64]:
        return np.zeros(len(self.spans), dtype=np.int64)

    def _gross(self) -> float:
        return float((self.spans.high - self.spans.low).max())

    def _rebuilt_variance(self, variances: Floats) -> Floats:
        """Return the variances of R y, (k, ...) -> (m, ...); of one level, they must be alike."""
        starts = np.cumsum((0, *self.level_rows))
        for start, end in pairwise(starts.tolist()):
            level = variances[start:end]
            if not np.allclose(level, level[:1], rtol=1e-9, atol=0):
                return self.densify()._rebuilt_variance(variances)
        alike = variances[starts[:-1]]
        flat = alike.reshape(len(alike), -1)
        found = np.concatenate([self.mixed(*ends, flat) for ends in self.spans.parts()])
        return found.reshape(-1, *variances.shape[1:])


def level_scales(sigma: ArrayLike, levels: int) -> Floats:
    """Return one scale a level, or refuse them in one sentence."""
    return scales(sigma, levels)
