"""Haar wavelets over one ordered attribute: the total, and at each split left half less right.

The rows are as many as the cells, and rebuilding is halving sums and differences. On 2^h cells
the wavelets span what a binary tree with least squares measures, each direction once: with a scale
for each level they are never worse than such a tree (docs/math/onedim.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, whole
from ..privacy import Profile
from .exact import Integers, magnitude, shifted
from .sigma import refined, scaled, weights
from .spanning import Spanning, Spans, level_scales
from .strategy import PAIRS

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, init=False)
class Haar(Spanning):
    """The total of all cells, and differences of halves: one scale a level.

    Parameters
    ----------
    spans
        What is asked.
    level_sigma
        The noise scale of each level, the finest differences first and the total last: h + 1 of
        them for up to 2^h cells.
    bits
        Each row is measured 2^bits times over.

    A node that reaches past the last cell has fewer cells; one without a right half has no row.

    Examples
    --------
    >>> Haar(Spans.each(3), [64.0] * 3).densify().rows.tolist()
    [[1, -1, 0], [1, 1, -1], [1, 1, 1]]
    """

    spans: Spans
    level_sigma: Floats
    bits: int = 0

    def __init__(self, spans: Spans, level_sigma: ArrayLike, bits: int = 0) -> None:
        levels = height(spans.cells) + 1
        object.__setattr__(self, "spans", spans)
        object.__setattr__(self, "level_sigma", level_scales(level_sigma, levels))
        object.__setattr__(self, "bits", whole("bits", bits, least=0))

    @cached_property
    def level_rows(self) -> tuple[int, ...]:  # type: ignore[override]
        """Differences of each level, the finest first, and the total."""
        nodes, found = self.spans.cells, []
        while nodes > 1:
            found.append(nodes // 2)
            nodes -= nodes // 2
        return (*found, 1)

    def asking(self, spans: Spans) -> Self:
        """Return the same rows and scales, asked other spans."""
        return type(self)(spans, self.level_sigma, self.bits)

    def _apply_to(self, X: Integers) -> Integers:
        if magnitude(X).bit_length() + self.spans.cells.bit_length() > 62:
            X = X.astype(object)
        levels = []
        while len(X) > 1:
            pairs = len(X) // 2
            left, right, alone = X[: 2 * pairs : 2], X[1 : 2 * pairs : 2], X[2 * pairs :]
            levels.append(left - right)
            X = np.concatenate([left + right, alone])
        return shifted(np.concatenate([*levels, X]), self.bits)

    @cached_property
    def _profile(self) -> Profile:
        units, exponent = weights(self.level_sigma)
        total = np.zeros(1, dtype=object) + int(units[-1])
        nodes = [self.spans.cells]
        while nodes[-1] > 1:
            nodes.append(nodes[-1] - nodes[-1] // 2)
        for unit, count in zip(units[-2::-1], nodes[-2::-1], strict=True):
            total = np.asarray(np.repeat(total + int(unit), 2)[:count], dtype=object)
            if count % 2:  # the last has no sibling, and no difference is measured
                total[-1] -= int(unit)
        return Profile(total * (1 << (2 * self.bits)), exponent)

    @cached_property
    def _replaced(self) -> Fraction:
        """Return max ||a_i - a_j||^2, exactly up to 4,096 cells and as if complete beyond.

        Two cells that part at a level differ by 2 in its row and have one row each below; a level
        that is cut short only lacks rows.
        """
        if self.spans.cells <= PAIRS:
            return self.densify().greatest_difference()
        units, exponent = weights(self.level_sigma)
        below, greatest = 0, 0
        for unit in units[:-1]:
            greatest = max(greatest, 4 * int(unit) + 2 * below)
            below += int(unit)
        return Fraction(greatest << (2 * self.bits), 1 << exponent)

    def scaled(self, factor: float, *, up: bool = True) -> Self:
        """Return the same shape with every sigma multiplied by ``factor``."""
        sigma, finer = refined(scaled(self.level_sigma, factor, up=up), 1 << self.bits)
        return replace(self, level_sigma=sigma, bits=self.bits + finer)

    def _approximate_to(self, R: Floats) -> Floats:
        starts = np.cumsum((0, *self.level_rows))
        X: NDArray[Any] = np.ldexp(R, -self.bits)
        sums = X[starts[-2] :]
        for begin, end in zip(starts[-3::-1], starts[-2:0:-1], strict=True):
            less, pairs = X[begin:end], end - begin
            both = np.empty((2 * pairs, *X.shape[1:]))
            both[::2], both[1::2] = (sums[:pairs] + less) / 2, (sums[:pairs] - less) / 2
            sums = np.concatenate([both, sums[pairs:]])
        return np.asarray(sums)

    def influence(self, weights: Floats) -> Floats:
        """Return R^T w: of each difference half of how much its halves' weights differ."""
        levels, w = [], np.asarray(weights, dtype=np.float64)
        while len(w) > 1:
            pairs = len(w) // 2
            left, right, alone = w[: 2 * pairs : 2], w[1 : 2 * pairs : 2], w[2 * pairs :]
            levels.append((left - right) / 2)
            w = np.concatenate([(left + right) / 2, alone])
        return np.ldexp(np.concatenate([*levels, w]), -self.bits)

    def gains(self, low: Ints, high: Ints) -> Floats:
        """Return what each level adds to a span's variance, for unit noise, (m, levels).

        A span is one prefix less another, and a prefix weighs the halves of a node unlike only
        where it ends: one row a level.
        """
        found = np.zeros((len(low), len(self.level_rows)))
        count = self.spans.cells
        # Of the node in which a prefix ends: what its total weighs there, and 1 before it.
        at_low, at_high = low.copy(), high.copy()
        in_low, in_high = np.zeros(len(low)), np.zeros(len(low))
        for level in range(len(self.level_rows) - 1):
            less = []
            for at, part in ((at_low, in_low), (at_high, in_high)):
                right, single = at % 2 == 1, (at == count - 1) & (count % 2 == 1)
                past = at >= count  # the prefix is of all nodes: nothing is cut
                cut = np.where(right, (1 - part) / 2, part / 2)
                less.append(np.where(single | past, 0.0, cut))
                part[:] = np.where(single, part, np.where(right, (1 + part) / 2, part / 2))
            same = at_low // 2 == at_high // 2
            apart = less[0] ** 2 + less[1] ** 2
            found[:, level] = np.where(same, (less[1] - less[0]) ** 2, apart)
            at_low, at_high = at_low // 2, at_high // 2
            nodes = count - count // 2
            # A prefix of all cells stays past the end; halving alone may bring it back inside.
            at_high[high == self.spans.cells] = nodes
            in_high[high == self.spans.cells] = 0.0
            count = nodes
        low_part = np.where(at_low >= 1, 1.0, in_low)
        high_part = np.where(at_high >= 1, 1.0, in_high)
        found[:, -1] = (high_part - low_part) ** 2
        return np.ldexp(found, -2 * self.bits)


def height(d: int) -> int:
    """Return how often d cells can be halved, rounding up, until one is left."""
    return (d - 1).bit_length()
