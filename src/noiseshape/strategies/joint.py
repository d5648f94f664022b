"""Some attributes cell by cell, the others in residuals: one strategy for mixed workloads.

    inside     integer rows over the cells of the attributes V, as a dense strategy measures them
    outside    the residual of every set T of attributes that is not within V

A question about the attributes U has one part in each residual T within U that is not within V, and
one in the cells of V: its mean over what U has outside V. The parts are independent, and residuals
cost a person the same in every cell, so that both costs add, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, frozen
from ..errors import InvalidInput, TooLarge
from ..privacy import Profile
from ..tables.asks import Ask
from .contrast import Helmert
from .dense import Dense
from .exact import Integers, shifted
from .residual import MOST_DIFFERING, WRITTEN_OUT, Residual

if TYPE_CHECKING:
    from ..privacy.people import Neighbours

# Which rows of a question ask anything of the cells, and the block as it answers them.
Told = tuple[NDArray[np.int64], Dense | None]


@dataclass(frozen=True, eq=False)
class Joint(Residual):
    """Rows over the cells of some attributes, and residuals of all sets that reach beyond them.

    Parameters
    ----------
    contrasts, lattice, base, bits, asked
        As of ``Residual``; of a set within ``inside`` nothing is measured, and its base is unused.
    inside
        The attributes V whose cells are measured together, increasing.
    block
        What is measured over their cells, the last attribute fastest.

    Rows are those of the residuals, then those of the block: residual number ``len(lattice)``.
    """

    inside: tuple[int, ...] = ()
    block: Dense = None  # type: ignore[assignment]
    _told: dict[tuple[int, ...], tuple[NDArray[np.int64], Dense | None]] = field(
        default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(isinstance(contrast, Helmert) for contrast in self.contrasts):
            raise InvalidInput("residuals beside a block of cells are those of Helmert's rows.")
        cells = math.prod(self.sizes[i] for i in self.inside)
        if self.block.shape[1] != cells or self.block.reach is not None:
            raise InvalidInput(
                f"the block must be over the {cells:,} cells of its attributes, got "
                f"{self.block.shape[1]:,}."
            )

    @staticmethod
    def joining(residual: Residual, inside: Sequence[int], block: Dense) -> Joint:
        """Return residuals with a block in the place of those that are within its attributes."""
        return Joint(residual.contrasts, residual.lattice, residual.base, residual.bits,
                     residual.asked, inside=tuple(inside), block=block)  # fmt: skip

    @cached_property
    def beyond(self) -> NDArray[np.bool_]:
        """Which sets of the lattice are measured as residuals: those not within V, shape (t,)."""
        outside = np.ones(len(self.sizes))
        outside[list(self.inside)] = 0.0
        return np.asarray(self.lattice.greatest(outside) > 0)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """How many rows each residual has, and last the block, shape (t + 1,)."""
        each = super().rows
        return np.append(np.where(self.beyond, each, 0), self.block.shape[0])

    def attributes(self, number: int) -> tuple[int, ...]:
        """Return the attributes of a residual's table, or the block's."""
        return self.inside if number == len(self.lattice) else super().attributes(number)

    def scales(self, number: int) -> Floats:
        """Return the sigma of each row of a residual, or of the block."""
        if number == len(self.lattice):
            return self.block.sigma
        return super().scales(number) if self.beyond[number] else np.zeros(0)

    @cached_property
    def sigma(self) -> Floats:  # type: ignore[override]
        """Noise scale of every row, shape (k,)."""
        return frozen(np.concatenate([self.scales(i) for i in range(len(self.lattice) + 1)]))

    # Measuring.

    def measures(self, number: int, table: Integers) -> Integers:
        """Return the rows of one residual, or of the block, exactly."""
        if number == len(self.lattice):
            return self.block.apply(np.asarray(table).reshape(-1))
        if not self.beyond[number]:
            return np.zeros(0, dtype=np.int64)
        return super().measures(number, table)

    @cached_property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The marginals that have to be counted: the block's, and those that no other one holds."""
        held = ~self.beyond
        wanted = [self.inside]
        for number in range(len(self.lattice) - 1, -1, -1):
            if not held[number]:
                members = self.attributes(number)
                wanted.append(members)
                for subset, _ in self._subsets(members):
                    held[subset] = True
        return tuple(reversed(wanted))

    def parts(
        self, tables: Iterable[tuple[Sequence[int], Integers]]
    ) -> Iterator[tuple[int, Integers]]:
        """Yield every residual once, and the block, with its rows exactly."""
        done = np.append(~self.beyond, False)
        for members, table in tables:
            if tuple(members) == self.inside and not done[-1]:
                done[-1] = True
                yield len(self.lattice), self.measures(len(self.lattice), table)
            for number, kept in self._subsets(members):
                if not done[number]:
                    done[number] = True
                    away = tuple(axis for axis, inside in enumerate(kept) if not inside)
                    yield number, self.measures(number, np.asarray(table.sum(axis=away)))
        if not done.all():
            raise InvalidInput(f"{int((~done).sum()):,} residuals are in none of the tables.")

    # Accounting.

    def _shares(self, each: Sequence[float]) -> Floats:
        return np.where(self.beyond, super()._shares(each), 0.0)

    @cached_property
    def _profile(self) -> Profile:
        units, exponent = self._summed(self._shares(self._greatest))
        mine = self.block.profile()
        place = [n if i in self.inside else 1 for i, n in enumerate(self.sizes)]
        wide = np.broadcast_to(np.asarray(mine.units).reshape(place), self.sizes).ravel()
        return Profile(np.full(self.shape[1], units, dtype=object), exponent) + Profile(
            wide.astype(object), mine.exponent
        )

    @cached_property
    def beside(self) -> Fraction:
        """What the residuals cost a person in whatever cell: mu^2 of one row, rounded up."""
        units, exponent = self._summed(self._shares(self._greatest))
        return Fraction(units, 1 << exponent)

    def cost_of_one(self, neighbours: Neighbours) -> Fraction:
        """Return mu^2 of one row: both parts' exactly, or under replace a bound above.

        Under replace it is exact for small tables; else the greatest of either part are added.
        """
        if neighbours == "replace":
            return self._replaced
        return self.beside + self.block.cost_of_one("add-remove")

    @cached_property
    def _replaced(self) -> Fraction:
        if self.shape[1] <= WRITTEN_OUT:
            return self.densify().greatest_difference()
        told = np.unique(self.lattice.last[1:])
        few = len(told) <= MOST_DIFFERING
        beyond = self._differing(told) if few else self._replaced_at_most()
        return beyond + self.block.cost_of_one("replace")

    # Rebuilding.

    def _numbers(self, ask: Ask) -> list[tuple[int, tuple[bool, ...]]]:
        """Return the residuals not within V that a question has, and which attributes of it."""
        found = []
        for kept in self._choices(ask.members):
            if all(i in self.inside for i, kept_ in zip(ask.members, kept, strict=True) if kept_):
                continue
            number = self._measured_number(ask, kept)
            if number is not None:
                found.append((number, kept))
        return found

    def check_spans(self, ask: Ask) -> None:
        """Refuse a question that tells apart what was not measured apart."""
        super().check_spans(ask)
        self._asking(self._within(ask))

    def _within(self, ask: Ask) -> Ask:
        """Return a question's part in the cells: its mean over what it has outside V."""
        away = tuple(1 + a for a, i in enumerate(ask.members) if i not in self.inside)
        members = tuple(i for i in ask.members if i in self.inside)
        if ask.weights is None:
            factors = dict(zip(ask.members, ask.factors, strict=True))
            return Ask(members, tuple(factors[i] for i in members))
        return Ask(members, weights=np.asarray(ask.weights.mean(axis=away)))

    def _rows_within(self, ask: Ask) -> Floats:
        """Return questions about attributes of V as rows over its cells."""
        if not ask.members and ask.weights is None:
            return np.ones((1, self.block.shape[1]))
        shape = [self.sizes[i] if i in ask.members else 1 for i in self.inside]
        weights = ask.written(self.sizes)
        wide = np.broadcast_to(
            weights.reshape(len(weights), *shape),
            (len(weights), *(self.sizes[i] for i in self.inside)),
        )
        return np.ascontiguousarray(wide.reshape(len(weights), -1))

    def _asking(self, ask: Ask) -> Told:
        """Return which rows of a question ask anything of the cells, and a block that asks them."""
        if ask.plain and ask.members in self._told:
            return self._told[ask.members]
        W = self._rows_within(ask)
        size = np.abs(W).max(axis=1)
        told = np.flatnonzero(size > 1e-13 * size.max(initial=0.0))
        asking = self.block.asking(W[told]) if told.size else None
        if ask.plain:  # many marginals have the same part in the cells
            self._told[ask.members] = told, asking
        return told, asking

    def _out(self, ask: Ask, values: Floats, power: int) -> Floats:
        """Return what the cells tell of each answer, in the shape of the question."""
        if ask.weights is not None:
            return values
        shape = ask.shape(self.sizes)
        inner = [n if i in self.inside else 1 for i, n in zip(ask.members, shape, strict=True)]
        found = values.reshape(inner)
        for axis, (i, W) in enumerate(zip(ask.members, ask.factors, strict=True)):
            if i not in self.inside:
                mean = np.full(shape[axis], 1 / self.sizes[i]) if W is None else W.mean(axis=1)
                found = found * (mean**power).reshape(
                    [-1 if a == axis else 1 for a in range(len(shape))]
                )
        return np.broadcast_to(found, shape)

    def answers(
        self, ask: Ask, y_of: Callable[[int], Integers], tables: dict[int, Any] | None = None
    ) -> Floats:
        """Return the answers to one question, in its shape, as ``Residual`` does."""
        shape = ask.shape(self.sizes)
        beyond: Any = 0.0
        if self._numbers(ask):
            beyond = super().answers(ask, y_of, tables)
        within = self._within(ask)
        told, asking = self._asking(within)
        values = np.zeros(math.prod(within.shape(self.sizes)))
        if asking is not None:
            values[told] = asking.rebuild(y_of(len(self.lattice)))
        return np.asarray(np.broadcast_to(beyond + self._out(ask, values, 1), shape))

    # Errors.

    def variances(self, ask: Ask) -> Floats:
        """Return the variance of each answer to one question, in its shape: both parts'."""
        shape = ask.shape(self.sizes)
        within = self._within(ask)
        told, asking = self._asking(within)
        values = np.zeros(math.prod(within.shape(self.sizes)))
        if asking is not None:
            values[told] = asking.variance
        return np.broadcast_to(super().variances(ask) + self._out(ask, values, 2), shape)

    def covariances(self, one: Ask, other: Ask) -> Floats:
        """Return the covariance of the answers to two questions, (r, r'), of what is executed."""
        found = super().covariances(one, other)
        first, second = (self._rows_averaged(ask) for ask in (one, other))
        both = self.block.asking(np.vstack([first, second])).covariance()
        return found + both[: len(first), len(first) :]

    def _rows_averaged(self, ask: Ask) -> Floats:
        away = tuple(1 + a for a, i in enumerate(ask.members) if i not in self.inside)
        sizes = [self.sizes[i] for i in ask.members]
        written = ask.written(self.sizes)
        weights = written.reshape(len(written), *sizes).mean(axis=away)
        return self._rows_within(Ask(tuple(i for i in ask.members if i in self.inside),
                                     weights=weights))  # fmt: skip

    # The rest of the protocol.

    def densify(self) -> Dense:
        """Return the same strategy over the whole table, with every matrix written out."""
        if self.shape[0] * self.shape[1] > 2**24:
            raise TooLarge(
                f"{self.shape[0]:,} rows over {self.shape[1]:.3g} cells are not written out."
            )
        rows = [self._written_out(n) for n in np.flatnonzero(self.beyond).tolist()]
        grid = np.indices(self.sizes).reshape(len(self.sizes), -1)[list(self.inside)]
        cells = np.ravel_multi_index(tuple(grid), tuple(self.sizes[i] for i in self.inside))
        rows.append(shifted(self.block.rows[:, cells].astype(object), 0))
        return Dense(np.vstack(rows), self.sigma, self._workload())

    def scaled(self, factor: float, *, up: bool = True) -> Joint:
        """Return the same shape with every sigma multiplied by ``factor``."""
        made = super().scaled(factor, up=up)
        return Joint.joining(made, self.inside, self.block.scaled(factor, up=up))

    def with_block(self, block: Dense) -> Joint:
        """Return the same residuals beside another block over the same cells."""
        return replace(self, block=block, _told={})
