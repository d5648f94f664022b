"""Sets of attributes, and all subsets of them: what a marginal is made of.

A marginal over the attributes U is put together from one residual for each subset T of U. The
lattice numbers those subsets once, by attribute and never by size, so that two attributes of
equal size stay two. A set is a path from the empty set: its last attribute, and the set without
it; whatever is a product over a set's attributes is then one pass over the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats
from ..errors import TooLarge

Ints = NDArray[np.int64]

# Pairs of a marginal and a subset of it that are written out: 16 bytes each. All marginals of
# up to three of 100 attributes make 1.3 million; one of 24 attributes alone makes 17 million.
MOST_PAIRS = 100_000_000


@dataclass(frozen=True, eq=False)
class Lattice:
    """Sets of attributes, closed under taking subsets, in order of size.

    Attributes
    ----------
    attributes
        How many attributes there are; sets hold their numbers, increasing.
    parent, last : integers, shape (t,)
        Set ``i`` is set ``parent[i]`` and the attribute ``last[i]``; set 0 is empty, and has -1.
    levels
        Where the sets of 0, 1, 2, ... attributes begin, and the end.
    """

    attributes: int
    parent: Ints
    last: Ints
    levels: tuple[int, ...]

    @staticmethod
    def under(groups: Sequence[Ints], attributes: int) -> tuple[Lattice, list[Ints]]:
        """Return the lattice of all subsets of the given sets, and where each subset is in it.

        Parameters
        ----------
        groups
            Arrays (m_g, k_g): sets of k_g increasing attributes, one a row.

        Returns
        -------
        lattice, and for each group the numbers (m_g, 2**k_g) of the subsets of its rows: bit b of
        the column says whether the row's attribute b is in it.
        """
        pairs = sum(len(group) << group.shape[1] for group in groups)
        if pairs > MOST_PAIRS:
            raise TooLarge(
                f"the marginals have {pairs:,} subsets, counted for each of them, and at most "
                f"{MOST_PAIRS:,} are planned: ask for marginals of fewer attributes each."
            )
        numbers = [np.zeros((len(g), 1 << g.shape[1]), dtype=np.int64) for g in groups]
        parents, lasts, levels = [np.array([-1])], [np.array([-1])], [0, 1]
        for size in range(1, max((g.shape[1] for g in groups), default=0) + 1):
            start, base = levels[-2], levels[-1]
            places, keys = [], []
            for group, number in zip(groups, numbers, strict=True):
                for mask in range(1 << group.shape[1]):
                    if mask.bit_count() == size:
                        top = mask.bit_length() - 1
                        before = number[:, mask ^ (1 << top)] - start
                        keys.append(before * attributes + group[:, top])
                        places.append(number[:, mask])
            found, ranks = _numbered(keys, (base - start) * attributes)
            for place, rank in zip(places, ranks, strict=True):
                place[:] = base + rank
            parents.append(start + found // attributes)
            lasts.append(found % attributes)
            levels.append(base + len(found))
        lattice = Lattice(attributes, np.concatenate(parents), np.concatenate(lasts), tuple(levels))
        return lattice, numbers

    @staticmethod
    def of(sets: Sequence[Sequence[int]], attributes: int) -> Lattice:
        """Return the lattice of all subsets of sets of increasing attributes."""
        return Lattice.under([group for group, _ in by_size(sets)], attributes)[0]

    def __len__(self) -> int:
        return len(self.parent)

    def product(self, each: Floats) -> Floats:
        """Return the product of ``each`` (attributes,) over every set, shape (t,)."""
        found = np.ones(len(self))
        for begin, end in self._ranges():
            found[begin:end] = found[self.parent[begin:end]] * each[self.last[begin:end]]
        return found

    def greatest(self, each: Floats) -> Floats:
        """Return the greatest of ``each`` (attributes,) over every set, 0 for the empty one."""
        found = np.zeros(len(self))
        for begin, end in self._ranges():
            before = found[self.parent[begin:end]]
            found[begin:end] = np.maximum(before, each[self.last[begin:end]])
        return found

    def _ranges(self) -> list[tuple[int, int]]:
        return list(zip(self.levels[1:-1], self.levels[2:], strict=True))

    @property
    def sizes(self) -> Ints:
        """How many attributes each set has, shape (t,)."""
        return np.repeat(np.arange(len(self.levels) - 1), np.diff(self.levels))

    def members(self, number: int) -> tuple[int, ...]:
        """Return the attributes of one set, increasing."""
        found: list[int] = []
        while number > 0:
            found.append(int(self.last[number]))
            number = int(self.parent[number])
        return tuple(reversed(found))

    def number(self, members: Sequence[int]) -> int | None:
        """Return the number of a set of increasing attributes; None if it is not in here."""
        at = 0
        for attribute in members:
            key = at * self.attributes + attribute
            at = int(np.searchsorted(self._keys, key))
            if at == len(self) or self._keys[at] != key:
                return None
        return at

    def subsets(self, group: Ints) -> Ints:
        """Return the numbers of all subsets, (m, 2^k), of sets that are in here, (m, k)."""
        found = np.zeros((len(group), 1 << group.shape[1]), dtype=np.int64)
        for mask in range(1, found.shape[1]):
            top = mask.bit_length() - 1
            keys = found[:, mask ^ (1 << top)] * self.attributes + group[:, top]
            found[:, mask] = np.searchsorted(self._keys, keys)
        return found

    @cached_property
    def _keys(self) -> Ints:
        """Parent and last attribute as one number: increasing, since parents are."""
        return self.parent * self.attributes + self.last


def by_size(sets: Sequence[Sequence[int]]) -> list[tuple[Ints, Ints]]:
    """Return sets of equal size as arrays (m_k, k), each with where its sets were, (m_k,)."""
    lengths = np.fromiter(map(len, sets), dtype=np.int64, count=len(sets))
    found = []
    for size in np.unique(lengths).tolist():
        place = np.flatnonzero(lengths == size)
        rows = np.array([sets[i] for i in place.tolist()], dtype=np.int64)
        found.append((rows.reshape(len(place), size), place))
    return found


def _numbered(keys: Sequence[Ints], bound: int) -> tuple[Ints, list[Ints]]:
    """Return the distinct keys, increasing, and the rank of each key among them."""
    flat = np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
    ends = np.cumsum([len(key) for key in keys])[:-1]
    if bound <= 8 * flat.size + (1 << 20):  # a table of flags: a fifth of the time of sorting
        there = np.zeros(bound, dtype=bool)
        there[flat] = True
        found = np.flatnonzero(there)
        ranks = (np.cumsum(there) - 1)[flat]
    else:
        found, ranks = np.unique(flat, return_inverse=True)
    return found, np.split(ranks, ends)
