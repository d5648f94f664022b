"""A tree of totals over one ordered attribute, each level with its own noise.

Every level is a partition of the d cells into nodes of one width; a node of a level is a whole
number of nodes of the level below, and the last one of a level may be cut short. Answers are the
least-squares ones, found in two passes (Hay et al., PVLDB 2010; Honaker, TPDP 2015, with weights):
upward the best estimate of each node from its own subtree, downward the rest of it is shared out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, whole
from ..errors import InvalidInput
from ..privacy import Profile
from .exact import Integers, magnitude, shifted
from .sigma import refined, scaled, weights
from .spanning import Spanning, Spans, level_scales

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, init=False)
class Tree(Spanning):
    """Totals of consecutive blocks of cells, at several widths.

    Parameters
    ----------
    spans
        What is asked.
    widths
        Cells of a node of each level, increasing: 1 first, each a multiple of the one before.
    level_sigma
        The noise scale of each level, at least 1.
    bits
        Each total is measured 2^bits times over, so that noise below one unit of the data is
        still well above the integers' grid.

    Formal Guarantees:
      A cell is in one node of each level, so that under add-remove neighbours
      ``mu^2 = 4^bits sum over levels of 1 / sigma_l^2`` in every cell, exactly.

    Examples
    --------
    >>> tree = Tree(Spans.prefixes(4), [1, 2, 4], [64.0] * 3)
    >>> tree.shape, bool(tree.variance[3] < 64**2)
    ((7, 4), True)
    """

    spans: Spans
    widths: tuple[int, ...]
    level_sigma: Floats
    bits: int = 0

    def __init__(
        self, spans: Spans, widths: Sequence[int], level_sigma: ArrayLike, bits: int = 0
    ) -> None:
        widths = tuple(whole("a width", width) for width in widths)
        chain = pairwise(widths)
        if not widths or widths[0] != 1 or any(b % a or b == a for a, b in chain):
            raise InvalidInput(
                f"the widths of a tree's levels begin with 1, and each is a multiple of the one "
                f"before; got {widths}."
            )
        for field, value in (
            ("spans", spans),
            ("widths", widths),
            ("level_sigma", level_scales(level_sigma, len(widths))),
            ("bits", whole("bits", bits, least=0)),
        ):
            object.__setattr__(self, field, value)

    @cached_property
    def level_rows(self) -> tuple[int, ...]:  # type: ignore[override]
        """Nodes of each level, the cells first."""
        return tuple(-(-self.spans.cells // width) for width in self.widths)

    def asking(self, spans: Spans) -> Self:
        """Return the same rows and scales, asked other spans."""
        return type(self)(spans, self.widths, self.level_sigma, self.bits)

    def _apply_to(self, X: Integers) -> Integers:
        if magnitude(X).bit_length() + self.spans.cells.bit_length() > 62:
            X = X.astype(object)
        return shifted(self._totals(X), self.bits)

    def _totals(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the total of every node, (d, ...) -> (k, ...)."""
        levels = [X]
        for fan in self._fans:
            levels.append(_children(levels[-1], fan).sum(axis=1))
        return np.concatenate(levels)

    @property
    def _fans(self) -> list[int]:
        """How many nodes of each level make one of the next."""
        return [b // a for a, b in pairwise(self.widths)]

    @cached_property
    def _profile(self) -> Profile:
        units, exponent = weights(self.level_sigma)
        total = int(sum(units)) << (2 * self.bits)
        return Profile(np.full(self.spans.cells, total, dtype=object), exponent)

    @cached_property
    def _replaced(self) -> Fraction:
        """Return max ||a_i - a_j||^2: two cells share no node but on levels of one node."""
        units, exponent = weights(self.level_sigma)
        told = sum(int(u) for u, rows in zip(units, self.level_rows, strict=True) if rows > 1)
        return Fraction(2 * told << (2 * self.bits), 1 << exponent)

    def scaled(self, factor: float, *, up: bool = True) -> Self:
        """Return the same shape with every sigma multiplied by ``factor``."""
        sigma, finer = refined(scaled(self.level_sigma, factor, up=up), 1 << self.bits)
        return replace(self, level_sigma=sigma, bits=self.bits + finer)

    @cached_property
    def _noise(self) -> Floats:
        """Variance of each level's noise in units of the data: what least squares weighs by."""
        return np.ldexp(self.level_sigma, -self.bits) ** 2

    @cached_property
    def _spread(self) -> list[Floats]:
        """Variance of each node's total given what its own subtree says, level by level."""
        found = [np.full(self.spans.cells, self._noise[0])]
        for fan, noise in zip(self._fans, self._noise[1:], strict=True):
            together = _children(found[-1], fan).sum(axis=1)
            found.append(together * noise / (together + noise))
        return found

    def _approximate_to(self, R: Floats) -> Floats:
        return np.ldexp(self._least_squares(R), -self.bits)

    def _least_squares(self, Y: Floats) -> Floats:
        """Return cells from noisy totals in units of the data, (k, ...) -> (d, ...)."""
        starts = np.cumsum((0, *self.level_rows))
        own = [Y[a:b] for a, b in pairwise(starts.tolist())]
        each = (-1,) + (1,) * (Y.ndim - 1)
        z, sums = [own[0]], []
        for level, (fan, noise) in enumerate(zip(self._fans, self._noise[1:], strict=True)):
            below = _children(z[-1], fan).sum(axis=1)
            T = _children(self._spread[level], fan).sum(axis=1).reshape(each)
            sums.append((below, T))
            z.append((noise * below + T * own[level + 1]) / (T + noise))
        x = z[-1]
        for level in range(len(sums) - 1, -1, -1):
            below, T = sums[level]
            parent = np.arange(len(z[level])) // self._fans[level]
            x = z[level] + ((x - below) / T)[parent] * self._spread[level].reshape(each)
        return x

    def influence(self, weights: Floats) -> Floats:
        """Return R^T w: the rows of S^-1 A P^-1 w, P^-1 w being the answer to S w on the cells."""
        Y = np.zeros((self.shape[0], *weights.shape[1:]))
        Y[: self.spans.cells] = weights * self._noise[0]
        totals = self._totals(self._least_squares(Y))
        noise = np.repeat(self._noise, self.level_rows)
        return np.ldexp(totals / noise.reshape((-1,) + (1,) * (weights.ndim - 1)), -self.bits)

    def gains(self, low: Ints, high: Ints) -> Floats:
        """Return what each level adds to a span's variance, for unit noise, (m, levels)."""
        return self.mixed(low, high, np.eye(len(self.widths)))

    def mixed(self, low: Ints, high: Ints, unit: Floats) -> Floats:
        """Return ``gains @ unit`` for numbers (levels, q): no more than q of them are followed.

        Going up, a span is a few whole nodes and at most two that it cuts. Of a cut node, V is the
        variance of what the span has in it, and C its covariance with the node's total, given the
        node's subtree; the node's own row then conditions both. By the envelope theorem the
        derivative of the least variance in a level's noise is that level's gain.
        """
        v, fans = self._noise, self._fans
        levels, m = len(v), len(low)
        whole_s, last_s = _Dual(v[0], unit[0]), _Dual(v[0], unit[0])
        count = self.spans.cells
        a, b = low.copy(), high - 1
        cell = _Dual(np.full(m, v[0]), np.broadcast_to(unit[0], (m, unit.shape[1])))
        one = a == b  # whether both ends are in one node: all of it is then kept on the left
        left, right = (cell, cell), (cell.where(~one), cell.where(~one))
        for level in range(levels):
            top = level == levels - 1
            fan = count if top else fans[level]
            up_a, up_b = (a // fan, b // fan)
            joined = up_a == up_b
            # Whole nodes between the two ends, or from an end to the border of its parent.
            end_a = np.minimum((up_a + 1) * fan, count)
            stop = np.where(joined, np.where(one, a + 1, b), end_a)
            inner = _between(a + 1, stop, count, whole_s, last_s)
            outer = _between(up_b * fan, np.where(joined, up_b * fan, b), count, whole_s, last_s)
            merged = joined & ~one
            moved = [part.where(merged) for part in right]
            left = tuple(
                part + inner.where(~one) + more for part, more in zip(left, moved, strict=True)
            )  # type: ignore[assignment]
            right = tuple((part + outer).where(~joined) for part in right)  # type: ignore[assignment]
            one = one | joined
            if top:
                return np.ldexp(left[0].slope, -2 * self.bits)
            noise = _Dual(v[level + 1], unit[level + 1])
            nodes = -(-count // fan)
            full = whole_s * fan
            rest = whole_s * (count - (nodes - 1) * fan - 1) + last_s
            left = _conditioned(left, full.choose(up_a == nodes - 1, rest), noise)
            right = _conditioned(right, full.choose(up_b == nodes - 1, rest), noise)
            whole_s, last_s = (s * noise / (s + noise) for s in (full, rest))
            if nodes == 1:
                whole_s = last_s
            a, b, count = up_a, up_b, nodes
        raise AssertionError


class _Dual:
    """Numbers, with their slopes in some directions of the levels' noise: shapes (m,), (m, q)."""

    def __init__(self, value: Any, slope: Any) -> None:
        self.value, self.slope = np.asarray(value), np.asarray(slope)

    def __add__(self, other: _Dual) -> _Dual:
        return _Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: _Dual) -> _Dual:
        return _Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: Any) -> _Dual:
        if not isinstance(other, _Dual):
            times = np.asarray(other, dtype=np.float64)
            return _Dual(self.value * times, self.slope * times[..., None])
        slope = self.slope * other.value[..., None] + self.value[..., None] * other.slope
        return _Dual(self.value * other.value, slope)

    def __truediv__(self, other: _Dual) -> _Dual:
        value = self.value / other.value
        slope = self.slope - value[..., None] * other.slope
        return _Dual(value, slope / other.value[..., None])

    def where(self, condition: NDArray[np.bool_]) -> _Dual:
        """Return these where a condition holds, and 0 elsewhere."""
        return self * condition.astype(np.float64)

    def choose(self, condition: NDArray[np.bool_], other: _Dual) -> _Dual:
        """Return others where a condition holds, and these elsewhere."""
        value = np.where(condition, other.value, self.value)
        return _Dual(value, np.where(condition[..., None], other.slope, self.slope))


def _between(start: Ints, stop: Ints, count: int, whole_s: _Dual, last_s: _Dual) -> _Dual:
    """Return the variance of the nodes start, ..., stop - 1 of a level of ``count``."""
    nodes = np.maximum(stop - start, 0)
    held = ((nodes > 0) & (stop == count)).astype(np.float64)
    return whole_s * (nodes - held) + last_s * held


def _conditioned(part: tuple[_Dual, ...], together: _Dual, noise: _Dual) -> tuple[_Dual, _Dual]:
    """Return V and C after a node's own row, ``together`` being the variance of its total."""
    V, C = part
    total = together + noise
    return V - C * C / total, C * noise / total


def _children(X: NDArray[Any], fan: int) -> NDArray[Any]:
    """Return the nodes of a level by their parents, (n, ...) -> (parents, fan, ...); 0 for none."""
    parents = -(-len(X) // fan)
    missing = parents * fan - len(X)
    if missing:
        X = np.concatenate([X, np.zeros((missing, *X.shape[1:]), dtype=X.dtype)])
    return X.reshape(parents, fan, *X.shape[1:])
