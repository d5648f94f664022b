"""Sets of changes of matrices over pairs of people (graphs, Gram matrices), and forgotten ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse

from .._checks import Floats
from ..errors import InvalidInput
from ..privacy.people import Neighbours
from ..strategies import Dense, Diagonal, Strategy
from ..strategies.changes import Box, Changes
from ..strategies.exact import Integers


@dataclass(frozen=True)
class Edges(Changes):
    """One of the pairs i < j of ``nodes`` changes by 1: one edge of a graph."""

    nodes: int

    @property
    def size(self) -> int:
        """How many pairs there are."""
        return self.nodes * (self.nodes - 1) // 2

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:
        """Return the greatest 1/sigma^2, exactly; under replace two edges change.

        Where pairs are not measured on their own: the greatest squared column, exactly; under
        replace at most the square of the sum of the two longest.
        """
        if not isinstance(strategy, Diagonal):
            profile = strategy.profile()
            return profile.greatest if neighbours == "add-remove" else profile.replace_bound()
        units, exponent = _own(strategy)
        top = sorted(units)[-2:] if neighbours == "replace" else [max(units)]
        return Fraction(sum(int(u) for u in top), 1 << exponent)

    def widest(self, neighbours: Neighbours) -> Floats:  # noqa: ARG002  # 1 under both
        """Return 1 for every pair."""
        return np.ones(self.size)

    def terms(self, neighbours: Neighbours) -> sparse.csr_array:
        """Return 1 for each pair by itself; under replace 2, a bound."""
        times = 2.0 if neighbours == "replace" else 1.0
        return sparse.csr_array(sparse.diags_array(np.full(self.size, times)))

    def tight(self, neighbours: Neighbours) -> bool:
        """Return whether it is: not for two edges."""
        return neighbours == "add-remove"


@dataclass(frozen=True)
class Star(Changes):
    """All pairs with one of ``nodes`` change: a person with a row and a column.

    Parameters
    ----------
    diagonal
        How far the pair (i, i) changes; None where those are not measured.
    others
        How far every other pair changes. The same under both relations: a node's entries go from
        any allowed values to any others.
    """

    nodes: int
    diagonal: int | None
    others: int

    @property
    def size(self) -> int:
        """How many pairs are measured: i <= j, or i < j without the diagonal."""
        n = self.nodes
        return n * (n - 1) // 2 + (0 if self.diagonal is None else n)

    def _pairs(self) -> tuple[Integers, Integers]:
        i, j = np.triu_indices(self.nodes, 1 if self.diagonal is None else 0)
        return i, j

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:  # noqa: ARG002
        """Return the greatest over people of the sum over their pairs, exactly.

        Where pairs are not measured on their own: that of the box of all changes of one person,
        the greatest over people; a bound.
        """
        i, j = self._pairs()
        if not isinstance(strategy, Diagonal):
            return max(self._of_one(k, strategy.densify()) for k in range(self.nodes))
        units, exponent = _own(strategy)
        far = np.where(i == j, self.diagonal or 0, self.others).astype(object)
        each = units * far * far
        total = np.zeros(self.nodes, dtype=object)
        np.add.at(total, i, each)
        off = i != j
        np.add.at(total, j[off], each[off])
        return Fraction(int(max(total)), 1 << exponent)

    def _of_one(self, person: int, dense: Dense) -> Fraction:
        """Return a bound on the squared length of what one person can do."""
        i, j = self._pairs()
        mine = np.flatnonzero((i == person) | (j == person))
        far = np.where(i == j, self.diagonal or 0, self.others)[mine]
        rows = dense.rows[:, mine]
        kept = np.any(rows != 0, axis=1)
        part = Dense(rows[kept], dense.sigma[kept], np.zeros((1, len(mine))))
        return Box(-far, far).square(part, "add-remove")

    def widest(self, neighbours: Neighbours) -> Floats:  # noqa: ARG002
        """Return how far each pair can change."""
        i, j = self._pairs()
        return np.where(i == j, self.diagonal or 0, self.others).astype(np.float64)

    def terms(self, neighbours: Neighbours) -> sparse.csr_array:
        """Return a row for each person, how far their pairs change, squared: exact."""
        i, j = self._pairs()
        far = self.widest(neighbours) ** 2
        off, at = i != j, np.arange(self.size)
        people, pairs = np.concatenate([i, j[off]]), np.concatenate([at, at[off]])
        values = np.concatenate([far, far[off]])
        return sparse.csr_array((values, (people, pairs)), shape=(self.nodes, self.size))


@dataclass(frozen=True)
class Recorded(Changes):
    """A set that no file holds: of a release that was read, paid for when it was made."""

    entries: int

    @property
    def size(self) -> int:
        """How many integers the data is."""
        return self.entries

    def square(self, strategy: Strategy, neighbours: Neighbours) -> Fraction:  # noqa: ARG002
        """Refuse: the caller who declared the set knows it."""
        raise InvalidInput(
            "no file holds a custom set of changes: ask again in Python, with the set that it is."
        )

    def widest(self, neighbours: Neighbours) -> Floats:  # noqa: ARG002
        """Refuse."""
        raise InvalidInput("no file holds a custom set of changes: ask again in Python.")

    def terms(self, neighbours: Neighbours) -> sparse.csr_array:  # noqa: ARG002
        """Refuse."""
        raise InvalidInput("no file holds a custom set of changes: ask again in Python.")


def _own(strategy: Strategy) -> tuple[Integers, int]:
    if not isinstance(strategy, Diagonal):
        raise InvalidInput("pairs of people are measured entry by entry: use a Diagonal.")
    return strategy.own_weights()
