"""Where every row of a table is counted: the cells that a workload tells apart, and no more.

Values of a column that no query tells apart are one *atom*; the product of the columns' atoms,
without the impossible ones, are the cells. A column that is summed adds, for each group that it
is summed in, how far the values exceed the least of their atom:

    sum over a group = sum of (least of the atom x count of the cell) + excess of the group

so that the data is counts and excesses, integers all, and every query is linear in them. What
one row can do to them is a cell and any values within its atoms: a combination, with weights
that are not negative and sum to 1, of the columns of ``reach``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats
from .._memory import free_memory
from ..archive import digest
from ..errors import InvalidInput, NotSpanned, TooLarge
from ..privacy import Profile
from .domains import Integers
from .predicate import Leaf, Predicate, leaves
from .schema import Schema
from .steps import Steps, partition

# What one row can reach is written out: cells times two for each column that is summed.
MOST_REACHED = 200_000

# Up to here a release tells the ledger its cost in every cell of the schema; a larger table's
# releases add as the sum of maxima.
MOST_CHARGED = 100_000

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Family:
    """One way to ask about a column: r functions of its cells.

    Attributes
    ----------
    name, sign
        How labels begin: "AGEP" and "=", or "<=".
    column
        The column whose cells the functions are of.
    labels
        r texts.
    steps
        Values of shape (runs, r).
    """

    name: str
    sign: str
    column: str
    labels: tuple[str, ...]
    steps: Steps


@dataclass(frozen=True, eq=False)
class Question:
    """A query as the layout needs it: a product of families, under a condition, or any matrix.

    Attributes
    ----------
    families
        One for each ``by`` and for the query itself; answers are their product, the last fastest.
    condition
        Only rows that meet it count.
    summed
        The column whose values are summed; None where rows are counted.
    over, weights
        For ``rows``: the columns, and an array of shape (r, cells of each); answers are the
        product of families and r.
    """

    families: tuple[Family, ...] = ()
    condition: Predicate | None = None
    summed: str | None = None
    over: tuple[str, ...] = ()
    weights: Floats | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of what the rows are by."""
        return (*(f.name for f in self.families), *(["row"] if self.weights is not None else []))

    @property
    def rows(self) -> int:
        """How many answers there are."""
        each = 1 if self.weights is None else len(self.weights)
        return each * math.prod([len(f.labels) for f in self.families])

    def parts(self) -> list[tuple[str, ...]]:
        """Return the labels of each row, one for each axis, then its number in ``weights``."""
        return list(product(*(f.labels for f in self.families), *self._numbers()))

    def labels(self) -> list[str]:
        """Return a text for each row."""
        named = ([f"{f.name}{f.sign}{label}" for label in f.labels] for f in self.families)
        return [", ".join(part) for part in product(*named, *self._numbers())]

    def _numbers(self) -> list[list[str]]:
        return [] if self.weights is None else [[str(i) for i in range(len(self.weights))]]

    def functions(self) -> list[tuple[str, Steps]]:
        """Return what the question tells apart: functions of the cells of columns."""
        found = [(f.column, f.steps) for f in self.families]
        if self.condition is not None:
            found += [(leaf.column, leaf.steps) for leaf in leaves(self.condition)]
        return found

    def groups(self) -> tuple[str, ...]:
        """Return the columns that a sum is split by."""
        return tuple(dict.fromkeys(column for column, _ in self.functions()))


@dataclass(frozen=True, eq=False)
class Atoms:
    """The cells of one column, as far as they are told apart.

    Attributes
    ----------
    column
        Its name.
    steps
        The atom of each cell: numbers that follow the first cell of each.
    """

    column: str
    steps: Steps

    @cached_property
    def count(self) -> int:
        """How many there are."""
        return int(self.steps.values.max()) + 1

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """A cell of each atom."""
        _, index = np.unique(self.steps.values, return_index=True)
        return self.steps.starts[index]

    def check(self, schema: Schema) -> None:
        """Refuse atoms that do not number the cells of their column."""
        starts, values = self.steps.starts, self.steps.values
        if (
            starts[0] != 0
            or np.any(np.diff(starts) <= 0)
            or starts[-1] >= schema.columns[self.column].size
            or not np.array_equal(np.unique(values), np.arange(self.count))
        ):
            raise InvalidInput("the plan's cells do not fit its schema: make the plan anew.")

    def of(self, steps: Steps) -> NDArray[Any]:
        """Return the values of a function on the atoms; refuse one that cuts an atom."""
        starts = np.union1d(steps.starts, self.steps.starts)
        values = steps.at(self.first)
        if not np.array_equal(values[self.steps.at(starts)], steps.at(starts)):
            raise not_told(self.column)
        return values


@dataclass(frozen=True, eq=False)
class Coded:
    """Columns that are told apart, each with its atoms, however many cells they make together."""

    schema: Schema
    axes: tuple[Atoms, ...]
    sums: tuple[Sum, ...] = ()


@dataclass(frozen=True)
class Sum:
    """A column that is summed, and the columns that it is summed by."""

    column: str
    by: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """The coordinates of the data: counts of cells, then excesses of sums.

    Parameters
    ----------
    schema
        Which rows are counted, and in which cells of the whole table.
    axes
        The columns that are told apart, in the schema's order, each with its atoms.
    sums
        The columns that are summed.
    """

    schema: Schema
    axes: tuple[Atoms, ...]
    sums: tuple[Sum, ...] = ()

    def __post_init__(self) -> None:
        for total in self.sums:
            if not isinstance(self.schema.columns.get(total.column), Integers):
                raise InvalidInput(f"{total.column} cannot be summed: only integers can.")
        if self.grid_size > 2**26:
            raise TooLarge(
                f"the workload tells {self.grid_size:,} cells apart, and a plan forms at most "
                f"{2**26:,}: ask about fewer columns together, or in coarser bands."
            )

    @staticmethod
    def of(schema: Schema, questions: Sequence[Question]) -> Layout:
        """Return the coarsest layout in which every question can be asked."""
        told = told_by(schema, questions)
        for leaf in (leaf for zero in schema.zeros for leaf in leaves(zero)):
            if leaf.column in told:
                told[leaf.column].append(leaf.steps)
        axes = tuple(Atoms(n, partition(told[n])) for n in schema.columns if n in told)
        by: dict[str, list[str]] = {}
        for question in questions:
            if question.summed is not None:
                by.setdefault(question.summed, []).extend(question.groups())
        order = list(schema.columns)
        sums = tuple(
            Sum(column, tuple(sorted(set(groups), key=order.index)))
            for column, groups in by.items()
        )
        return Layout(schema, axes, sums)

    @property
    def shape(self) -> tuple[int, ...]:
        """Atoms of each axis."""
        return tuple(axis.count for axis in self.axes)

    @property
    def grid_size(self) -> int:
        """Cells before the impossible ones are left out."""
        return math.prod(self.shape)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {axis.column: i for i, axis in enumerate(self.axes)}

    @cached_property
    def kept(self) -> Bools:
        """Which cells of the grid somebody can be in, shape (grid_size,)."""
        extra: dict[str, list[Steps]] = {}
        for leaf in (leaf for zero in self.schema.zeros for leaf in leaves(zero)):
            if leaf.column not in self._position:
                extra.setdefault(leaf.column, []).append(leaf.steps)
        axes = (*self.axes, *(Atoms(n, partition(s)) for n, s in extra.items()))
        empty = np.zeros((1,) * len(axes), dtype=bool)
        for zero in self.schema.zeros:
            empty = empty | _truth(zero, axes)
        empty = np.broadcast_to(empty, tuple(axis.count for axis in axes))
        gone = empty.all(axis=tuple(range(len(self.axes), len(axes))))
        if bool(gone.all()):
            raise InvalidInput("every cell is impossible by the schema: nobody can be counted.")
        return ~gone.ravel()

    @property
    def cells(self) -> int:
        """How many cells are counted."""
        return int(np.count_nonzero(self.kept))

    @property
    def coordinates(self) -> int:
        """How many integers the data is: counts, then excesses."""
        return self.cells + sum(len(kept) for _, kept in self._excess)

    def lows_and_highs(self, column: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least and greatest that a row adds to a sum, in each atom of its column.

        Values that are missing or other add 0, alone in an atom or not.
        """
        domain, axis = self.schema.columns[column], self.axes[self._position[column]]
        assert isinstance(domain, Integers)
        regular = axis.steps.starts < domain.regular
        ends = np.minimum(np.append(axis.steps.starts[1:], domain.size), domain.regular) - 1
        atoms = axis.steps.values[regular]
        low = np.full(axis.count, np.iinfo(np.int64).max)
        high = np.full(axis.count, np.iinfo(np.int64).min)
        np.minimum.at(low, atoms, axis.steps.starts[regular] + domain.low)
        np.maximum.at(high, atoms, ends[regular] + domain.low)
        special = [cell for cell in (domain.other, domain.absent) if cell is not None]
        zero = axis.steps.at(np.array(special, dtype=np.int64))
        low[zero], high[zero] = np.minimum(low[zero], 0), np.maximum(high[zero], 0)
        return low, high

    def _per_cell(self, column: str, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of a column's atoms for every kept cell."""
        return np.broadcast_to(self._along(column, values), self.shape).ravel()[self.kept]

    def _along(self, column: str, values: NDArray[Any]) -> NDArray[Any]:
        shape = [1] * len(self.axes)
        shape[self._position[column]] = -1
        return values.reshape(shape)

    @cached_property
    def _excess(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For each sum: the group of every kept cell, and the groups in which values can differ."""
        found = []
        for total in self.sums:
            number = np.zeros(1, dtype=np.int64).reshape((1,) * len(self.axes))
            for column in total.by:
                count = self.axes[self._position[column]].count
                number = number * count + self._along(column, np.arange(count))
            group = np.broadcast_to(number, self.shape).ravel()[self.kept]
            low, high = self.lows_and_highs(total.column)
            wide = self._per_cell(total.column, high > low)
            found.append((group, np.unique(group[wide])))
        return found

    @cached_property
    def reach(self) -> NDArray[np.int64] | None:
        """What one row can add to the data, (coordinates, c): the corners of all it can.

        None where that is one cell, and nothing else: the unit vectors.
        """
        if not self.sums:
            return None
        cells = self.cells
        wide = []
        for total in self.sums:
            low, high = self.lows_and_highs(total.column)
            wide.append(self._per_cell(total.column, high - low))
        corners = int(sum(2 ** np.count_nonzero([w[i] > 0 for w in wide]) for i in range(cells)))
        if corners > MOST_REACHED or 8 * corners * self.coordinates > free_memory() // 4:
            raise TooLarge(
                f"{len(self.sums)} sums over {cells:,} cells make {corners:,} things that one row "
                f"can do, and a plan writes out at most {MOST_REACHED:,}: sum fewer columns "
                "together, or by fewer groups."
            )
        columns = []
        for i in range(cells):
            column = np.zeros(self.coordinates, dtype=np.int64)
            column[i] = 1
            ends = [column]
            at = cells
            for (group, groups), width in zip(self._excess, wide, strict=True):
                if width[i] > 0:
                    further = np.zeros_like(column)
                    further[at + np.searchsorted(groups, group[i])] = width[i]
                    ends += [end + further for end in ends]
                at += len(groups)
            columns += ends
        reach = np.array(columns).T.copy()
        reach.setflags(write=False)
        return reach

    def rows(self, question: Question) -> Floats:
        """Return a question as rows over the coordinates, shape (r, coordinates)."""
        fits(question.rows, self.coordinates)
        if question.summed is None:
            counted = self._cells_rows(question, self.axes)
            rows = np.broadcast_to(counted, (question.rows, *self.shape))
            found = np.zeros((question.rows, self.coordinates))
            found[:, : self.cells] = rows.reshape(question.rows, -1)[:, self.kept]
            return found
        return self._sum_rows(question, question.summed)

    def weights_of(self, question: Question) -> Floats:
        """Return what a question weighs each cell of the grid with; broadcast where constant."""
        return self._cells_rows(question, self.axes)

    def _sum_rows(self, question: Question, column: str) -> Floats:
        try:
            which = [total.column for total in self.sums].index(column)
        except ValueError:
            raise NotSpanned(f"{column} was not summed: ask for its sum in the plan.") from None
        total = self.sums[which]
        outside = [name for name in question.groups() if name not in total.by]
        if outside:
            raise NotSpanned(f"{column} was not summed by {outside[0]}: ask for that in the plan.")
        low, _ = self.lows_and_highs(column)
        found = np.zeros((question.rows, self.coordinates))
        counted = self._cells_rows(question, self.axes)
        weighted = counted * self._along(column, low.astype(np.float64))
        rows = np.broadcast_to(weighted, (question.rows, *self.shape))
        found[:, : self.cells] = rows.reshape(question.rows, -1)[:, self.kept]
        axes = tuple(self.axes[self._position[name]] for name in total.by)
        split = np.broadcast_to(
            self._cells_rows(question, axes), (question.rows, *(axis.count for axis in axes))
        ).reshape(question.rows, -1)
        at = self.cells + sum(len(groups) for _, groups in self._excess[:which])
        groups = self._excess[which][1]
        found[:, at : at + len(groups)] = split[:, groups]
        return found

    def _cells_rows(self, question: Question, axes: Sequence[Atoms]) -> Floats:
        """Return the question's value on each cell of some axes, broadcast where it is constant."""
        n, count = len(axes), len(question.families)
        position = {axis.column: i for i, axis in enumerate(axes)}
        found = np.ones((1,) * (count + n))
        for i, family in enumerate(question.families):
            if family.column not in position:
                raise not_told(family.column)
            at = position[family.column]
            values = np.asarray(axes[at].of(family.steps), dtype=np.float64)
            shape = [1] * (count + n)
            shape[i], shape[count + at] = len(family.labels), axes[at].count
            found = found * values.T.reshape(shape)
        if question.condition is not None:
            found = found * _truth(question.condition, axes)
        if question.weights is not None:
            weights = self._weights(question, axes)
            found = found.reshape(-1, 1, *found.shape[count:]) * weights
            count = 2
        return found.reshape(question.rows, *found.shape[count:])

    def _weights(self, question: Question, axes: Sequence[Atoms]) -> Floats:
        """Return the weights on the full cells of some columns, each of them told apart."""
        assert question.weights is not None
        order = sorted(range(len(question.over)), key=lambda i: self._position[question.over[i]])
        shape = [1] * len(axes)
        for column in question.over:
            shape[self._position[column]] = axes[self._position[column]].count
        weights = question.weights.transpose([0, *(1 + i for i in order)])
        return weights.reshape(len(weights), *shape)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A text for each coordinate."""
        named = [
            [f"{axis.column}={text}" for text in _atom_labels(self.schema, axis)]
            for axis in self.axes
        ]
        cells = [", ".join(parts) or "everybody" for parts in product(*named)]
        found = [cell for cell, keep in zip(cells, self.kept, strict=True) if keep]
        for total, (_, groups) in zip(self.sums, self._excess, strict=True):
            by = [named[self._position[column]] for column in total.by]
            texts = [", ".join(parts) or "everybody" for parts in product(*by)]
            found += [f"excess of {total.column}: {texts[g]}" for g in groups]
        return tuple(found)

    def gathered(
        self, counts: NDArray[np.object_], sums: Sequence[NDArray[np.object_]]
    ) -> NDArray[np.object_]:
        """Return the data vector from counts and sums on the grid, in exact integers.

        Parameters
        ----------
        counts, sums : Python integers, shape (grid_size,)
            Rows of each cell, and for each of ``self.sums`` the sum of their values.
        """
        rows = counts[self.kept]
        parts = [rows]
        for total, values, (group, groups) in zip(self.sums, sums, self._excess, strict=True):
            low, high = self.lows_and_highs(total.column)
            # Elsewhere nobody is, or nobody can exceed.
            at = np.flatnonzero((rows != 0) & self._per_cell(total.column, high > low))
            least = self._per_cell(total.column, low)[at].astype(object)
            gathered = np.zeros(len(groups), dtype=object)
            excess = values[self.kept][at] - least * rows[at]
            np.add.at(gathered, np.searchsorted(groups, group[at]), excess)
            parts.append(gathered)
        return np.concatenate(parts)

    def charged(self, profile: Profile) -> Profile | None:
        """Return a profile over what one row can reach as one over all cells of the schema.

        The greatest of a cell's corners counts, so that profiles of several releases add safely
        whatever values a person has. None where the schema has more than ``MOST_CHARGED`` cells.
        """
        if self.schema.cells > MOST_CHARGED:
            return None
        units = np.asarray(profile.units)
        if self.reach is not None:
            cell = self.reach[: self.cells].argmax(axis=0)
            starts = np.searchsorted(cell, np.arange(self.cells))  # corners follow their cells
            units = np.maximum.reduceat(units, starts)
        grid = np.zeros(self.grid_size, dtype=object)
        grid[self.kept] = units
        grid = grid.reshape(self.shape)
        shape = []
        for i, axis in enumerate(self.axes):
            size = self.schema.columns[axis.column].size
            grid = np.take(grid, axis.steps.at(np.arange(size)), axis=i)
        for column, domain in self.schema.columns.items():
            shape.append(domain.size if column in self._position else 1)
        whole = [domain.size for domain in self.schema.columns.values()]
        return Profile(np.broadcast_to(grid.reshape(shape), whole).ravel(), profile.exponent)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say all of this."""
        return {
            "schema": self.schema.to_json(),
            "axes": [
                [axis.column, axis.steps.starts.tolist(), axis.steps.values.tolist()]
                for axis in self.axes
            ],
            "sums": [[total.column, list(total.by)] for total in self.sums],
        }

    @staticmethod
    def from_json(content: dict[str, Any]) -> Layout:
        """Return the layout that ``to_json`` said."""
        schema = Schema.from_json(content["schema"])
        axes = tuple(Atoms(c, Steps(starts, values)) for c, starts, values in content["axes"])
        for axis in axes:
            axis.check(schema)
        return Layout(schema, axes, tuple(Sum(c, tuple(by)) for c, by in content["sums"]))


def told_by(schema: Schema, questions: Sequence[Question]) -> dict[str, list[Steps]]:
    """Return what questions tell apart, by column: each function of its cells once."""
    told: dict[str, dict[int, Steps]] = {}
    seen: set[int] = set()  # families are one object, however many questions share them
    for question in questions:
        plain = question.condition is None and question.weights is None
        if plain and question.summed is None and seen.issuperset(map(id, question.families)):
            continue
        seen.update(map(id, question.families))
        for column, steps in question.functions():
            told.setdefault(column, {})[id(steps)] = steps
        for column in question.over:
            cells = schema.view(column).cells()
            told.setdefault(column, {})[id(column)] = cells
        if question.summed is not None:
            summed = schema.columns[question.summed]
            apart = told.setdefault(question.summed, {})
            # What is missing or other adds 0: where a value may, that needs no cell of its own.
            if not (isinstance(summed, Integers) and summed.low <= 0 <= summed.high):
                apart[-1] = summed.is_regular()
    return {column: list(each.values()) for column, each in told.items()}


def domain(table: str | None, schema: Schema) -> str:
    """Return a digest of a table's name and schema: equal for releases about the same cells."""
    return digest({"table": table, "schema": schema.digest})


def fits(answers: int, cells: int) -> None:
    """Refuse, before it is made, a matrix of weights that memory does not hold."""
    # Measured: six matrices of doubles at the peak, and half a kilobyte of labels a cell.
    needed, free = (8 * 6 * answers + 512) * cells, free_memory()
    if needed > free:
        raise TooLarge(
            f"{answers:,} answers over {cells:,} cells need about {needed / 1e9:,.1f} GB to plan, "
            f"and {free / 1e9:,.1f} GB are free: ask for fewer answers, about fewer columns "
            "together, or in coarser bands."
        )


def _truth(predicate: Predicate, axes: Sequence[Atoms]) -> Bools:
    """Return where a predicate holds, over the cells of some axes; broadcast where constant."""
    if isinstance(predicate, Leaf):
        for i, axis in enumerate(axes):
            if axis.column == predicate.column:
                shape = [1] * len(axes)
                shape[i] = axis.count
                return np.asarray(axis.of(predicate.steps), dtype=bool).reshape(shape)
        raise not_told(predicate.column)
    parts = [_truth(part, axes) for part in predicate.parts]
    if predicate.how == "not":
        return ~parts[0]
    found = parts[0]
    for part in parts[1:]:
        found = found & part if predicate.how == "and" else found | part
    return found


def not_told(column: str) -> NotSpanned:
    """Return the refusal of a question that cuts a column finer than what was measured."""
    return NotSpanned(
        f"the question needs {column} in more detail than was measured: ask for it in the plan, or "
        "cut where the plan's queries cut."
    )


def _atom_labels(schema: Schema, axis: Atoms) -> list[str]:
    """Return a text for each atom: its cells, as runs."""
    domain = schema.columns[axis.column]
    # "other" and "missing" are named, never the end of a run of numbers.
    special = [cell for cell in (domain.other, domain.absent) if cell is not None]
    starts = np.union1d(axis.steps.starts, special).astype(np.int64)
    ends = np.append(starts[1:], domain.size) - 1
    runs: list[list[str]] = [[] for _ in range(axis.count)]
    for start, end, atom in zip(starts, ends, axis.steps.at(starts), strict=True):
        first, last = domain.label(int(start)), domain.label(int(end))
        runs[atom].append(first if start == end else f"{first} to {last}")
    texts = ["+".join(run[:4]) + ("+..." if len(run) > 4 else "") for run in runs]
    twice = {text for text in texts if texts.count(text) > 1} if len(texts) < 5000 else set()
    return [f"{text} ({i})" if text in twice else text for i, text in enumerate(texts)]
