"""Questions seen from the marginal that they are about, and a workload in that form.

A marginal of three of a hundred columns touches three of them; a plan that knows this never forms
the table of all. A question is a product of small matrices, one for each column that it names, or
any weights on the marginal's cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from .._checks import Floats, frozen
from .._memory import kept
from ..archive import pack, unpack
from ..errors import InvalidInput, TooLarge
from ..privacy import People
from .layout import Atoms, Coded, Family, Layout, Question, domain, not_told, told_by
from .predicate import Leaf, Predicate, leaves
from .schema import Schema
from .steps import Steps, partition

# Weights of one question that are written out: answers times the cells of its marginal.
MOST_WEIGHTS = 20_000_000


@dataclass(frozen=True, eq=False)
class Ask:
    """Questions about the marginal of some attributes.

    Attributes
    ----------
    members
        The attributes, increasing.
    factors
        For each of them a matrix (r_i, n_i), or None for every value by itself: the questions are
        their product, the last fastest. Empty where ``weights`` say them.
    weights : shape (r, n_1, n_2, ...), optional
        Any questions: a weight for each cell of the marginal.
    """

    members: tuple[int, ...]
    factors: tuple[Floats | None, ...] = ()
    weights: Floats | None = None

    @property
    def plain(self) -> bool:
        """Whether every cell of the marginal is asked for, and nothing else."""
        return self.weights is None and not [W for W in self.factors if W is not None]

    def shape(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return how many answers there are, along each axis."""
        if self.weights is not None:
            return (len(self.weights),)
        return tuple(
            sizes[i] if W is None else len(W)
            for i, W in zip(self.members, self.factors, strict=True)
        )

    def written(self, sizes: Sequence[int]) -> Floats:
        """Return the weights of every answer on the marginal's cells, (r, n_1, n_2, ...)."""
        if self.weights is not None:
            return self.weights
        found = np.ones((1,))
        for i, W in zip(self.members, self.factors, strict=True):
            found = np.multiply.outer(found, np.eye(sizes[i]) if W is None else W)
        k = len(self.members)
        axes = [0, *(1 + 2 * i for i in range(k)), *(2 + 2 * i for i in range(k))]
        return np.transpose(found, axes).reshape(-1, *(sizes[i] for i in self.members))


def everything(members: Sequence[int]) -> Ask:
    """Return the question for every cell of a marginal."""
    return Ask(tuple(members), (None,) * len(members))


@dataclass(frozen=True, eq=False)
class Named:
    """One query of a workload: what it is called, what it asks, and how accurately.

    Attributes
    ----------
    name
        What it is called.
    ask
        What it asks of its marginal.
    order
        The axes of the answers as they are published: those of the families, then the numbers of
        rows of weights; what only a condition has is of length 1, and last.
    families
        What its answers are by, the last fastest.
    numbered
        How many rows of weights each combination of families has; 0 where it has none.
    variance : shape (r,)
        Target of each answer, as published; broadcast where they are one.
    """

    name: str
    ask: Ask
    order: tuple[int, ...]
    families: tuple[Family, ...]
    numbered: int
    variance: Floats

    def published(self, answers: Floats) -> Floats:
        """Return answers in the shape of the ask as one row, in the order of the labels."""
        return np.transpose(answers, self.order).reshape(-1)

    def labels(self) -> list[list[str]]:
        """Return the texts along each axis, as published."""
        named = [[f"{f.name}{f.sign}{label}" for label in f.labels] for f in self.families]
        return [*named, *([list(map(str, range(self.numbered)))] if self.numbered else [])]

    @property
    def one_target(self) -> bool:
        """Whether all answers have one target, known without looking at each."""
        return self.variance.strides == (0,) or len(self.variance) == 1


@dataclass(frozen=True, eq=False)
class Products:
    """A workload in this form: attributes, and what is asked of their marginals.

    Attributes
    ----------
    schema, people, table
        As of the workload.
    axes
        The attributes: columns that are told apart, in the schema's order, each with its atoms.
    named
        The queries.
    """

    schema: Schema
    people: People
    table: str | None
    axes: tuple[Atoms, ...]
    named: tuple[Named, ...]

    @staticmethod
    def of(
        schema: Schema,
        people: People,
        table: str | None,
        asked: Sequence[tuple[str, Question, Floats]],
    ) -> Products:
        """Return a workload's queries over the attributes that they tell apart."""
        told = told_by(schema, [question for _, question, _ in asked])
        axes = tuple(Atoms(n, partition(told[n])) for n in schema.columns if n in told)
        made = Products(schema, people, table, axes, ())
        named = []
        with kept():
            for name, question, variance in asked:
                ask, order, numbered = made.ask(question)
                if not ask.plain and _asks_nothing(ask):
                    raise InvalidInput(
                        f"{name!r} asks nothing: by its condition it is 0 whoever is counted."
                    )
                named.append(Named(name, ask, order, question.families, numbered, variance))
        return replace(made, named=tuple(named))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(axis.count for axis in self.axes)

    @cached_property
    def coded(self) -> Coded:
        """What an engine needs to tell the atom of every row."""
        return Coded(self.schema, self.axes)

    @property
    def rows_may_leave(self) -> bool:
        """Whether a policy can take a row out of the table."""
        return self.schema.rows_may_leave or self.people.unit != "rows"

    @property
    def domain(self) -> str:
        """A digest of the table's name and schema: equal for releases about the same cells."""
        return domain(self.table, self.schema)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {axis.column: i for i, axis in enumerate(self.axes)}

    @cached_property
    def _factors(self) -> dict[int, tuple[Family, tuple[int, Floats | None]]]:
        return {}

    def ask(self, question: Question) -> tuple[Ask, tuple[int, ...], int]:
        """Return a question about its marginal, the published order of its axes, and its numbers.

        Raises NotSpanned where it cuts an attribute finer than the workload does.
        """
        if question.summed is not None:
            raise InvalidInput(
                "a sum is planned with every cell written out: ask for it in a workload of its "
                "own, over fewer columns."
            )
        if question.condition is None and question.weights is None:
            told = [self._place(family) for family in question.families]
            members = [at for at, _ in told]
            order: Sequence[int] = range(len(told))
            if members != (inside := sorted(members)):
                order = [inside.index(at) for at in members]
                told.sort(key=lambda place: place[0])
            return Ask(tuple(inside), tuple([matrix for _, matrix in told])), tuple(order), 0
        factors = _conjunction(question.condition) if question.weights is None else None
        if factors is None:
            return self._weighted(question)
        matrices: dict[int, Floats | None] = dict(map(self._place, question.families))
        members = sorted({*matrices, *(self._at(column) for column in factors)})
        for column, leaves_ in factors.items():
            at = self._at(column)
            truth = np.ones(self.axes[at].count)
            for leaf in leaves_:
                truth = truth * np.asarray(self.axes[at].of(leaf.steps), dtype=np.float64)
            if at in matrices:
                matrix = matrices[at]
                matrices[at] = truth * (np.eye(len(truth)) if matrix is None else matrix)
            else:
                matrices[at] = truth[None, :]
        place = {i: axis for axis, i in enumerate(members)}
        first = [place[self._at(family.column)] for family in question.families]
        order = (*first, *(axis for axis in range(len(members)) if axis not in first))
        return Ask(tuple(members), tuple(matrices[i] for i in members)), order, 0

    def _at(self, column: str) -> int:
        if column not in self._position:
            raise not_told(column)
        return self._position[column]

    def _place(self, family: Family) -> tuple[int, Floats | None]:
        """Return a family's attribute, and its matrix; None where it is each value by itself."""
        known = self._factors.get(id(family))
        if known is None or known[0] is not family:
            at = self._at(family.column)
            axis = self.axes[at]
            values = np.asarray(axis.of(family.steps), dtype=np.float64).T
            square = values.shape[0] == values.shape[1] == axis.count
            plain = square and np.array_equal(values, np.eye(axis.count))
            matrix = None if plain else frozen(np.ascontiguousarray(values))
            known = family, (at, matrix)
            self._factors[id(family)] = known
        return known[1]

    def _weighted(self, question: Question) -> tuple[Ask, tuple[int, ...], int]:
        """Return a question with its weights written out on the cells of its marginal."""
        told = [column for column, _ in question.functions()]
        members = tuple(sorted({self._at(column) for column in [*told, *question.over]}))
        sizes = [self.axes[i].count for i in members]
        if question.rows * math.prod(sizes) > MOST_WEIGHTS:
            raise TooLarge(
                f"{question.rows:,} answers with a weight for each of {math.prod(sizes):,} cells "
                f"are written out, at most {MOST_WEIGHTS:,} weights: ask by fewer columns together."
            )
        layout = Layout(self.schema, tuple(self.axes[i] for i in members))
        rows = layout.weights_of(question)
        weights = np.broadcast_to(rows, (question.rows, *sizes))
        numbered = 0 if question.weights is None else len(question.weights)
        return Ask(members, weights=np.ascontiguousarray(weights)), (0,), numbered

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say all of this: what is equal is said once."""
        families: dict[int, int] = {}
        listed = []
        for named in self.named:
            for family in named.families:
                if id(family) not in families:
                    families[id(family)] = len(families)
                    listed.append(
                        [family.name, family.sign, family.column, list(family.labels),
                         pack(family.steps.starts), pack(_doubles(family.steps.values))]
                    )  # fmt: skip
        return {
            "schema": self.schema.to_json(),
            "people": {
                "unit": self.people.unit,
                "max_rows": self.people.max_rows,
                "neighbours": self.people.neighbours,
            },
            "table": self.table,
            "axes": [
                [axis.column, axis.steps.starts.tolist(), axis.steps.values.tolist()]
                for axis in self.axes
            ],
            "families": listed,
            "named": [
                [
                    named.name,
                    list(named.ask.members),
                    packed(named.ask),
                    list(named.order),
                    [families[id(family)] for family in named.families],
                    named.numbered,
                    float(named.variance[0])
                    if named.one_target
                    else pack(_doubles(named.variance)),
                ]
                for named in self.named
            ],
        }

    @staticmethod
    def from_json(content: dict[str, Any]) -> Products:
        """Return the workload that ``to_json`` said."""
        schema = Schema.from_json(content["schema"])
        axes = tuple(Atoms(c, Steps(starts, values)) for c, starts, values in content["axes"])
        for axis in axes:
            axis.check(schema)
        families = [
            Family(name, sign, column, tuple(labels), Steps(unpack(starts), unpack(values)))
            for name, sign, column, labels, starts, values in content["families"]
        ]
        sizes = [axis.count for axis in axes]
        named = []
        for name, members, said, order, numbers, numbered, variance in content["named"]:
            ask = unpacked(tuple(members), said)
            by = tuple(families[i] for i in numbers)
            rows = math.prod(ask.shape(sizes))
            target = np.float64(variance) if isinstance(variance, float) else unpack(variance)
            named.append(
                Named(str(name), ask, tuple(order), by, int(numbered),
                      np.broadcast_to(target, (rows,)))
            )  # fmt: skip
        people = People(**content["people"])
        return Products(schema, people, content["table"], axes, tuple(named))


def _target(named: Named) -> Any:
    return float(named.variance[0]) if named.one_target else pack(_doubles(named.variance))


def _doubles(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float64)


def packed(ask: Ask) -> Any:
    """Return what an ask weighs as plain JSON values; None where it is every cell."""
    if ask.weights is not None:
        return {"weights": pack(ask.weights)}
    if ask.plain:
        return None
    return [None if W is None else pack(W) for W in ask.factors]


def unpacked(members: tuple[int, ...], content: Any) -> Ask:
    """Return the ask that ``packed`` said."""
    if content is None:
        return everything(members)
    if isinstance(content, dict):
        return Ask(members, weights=unpack(content["weights"]))
    return Ask(members, tuple(None if W is None else unpack(W) for W in content))


def _conjunction(condition: Predicate | None) -> dict[str, list[Leaf]] | None:
    """Return the comparisons of a condition that joins them by "and", by column; None if not."""
    if condition is None:
        return {}
    parts = [condition]
    found: dict[str, list[Leaf]] = {}
    while parts:
        part = parts.pop()
        if isinstance(part, Leaf):
            found.setdefault(part.column, []).append(part)
        elif part.how == "and":
            parts.extend(part.parts)
        else:
            columns = {leaf.column for leaf in leaves(part)}
            if len(columns) > 1:
                return None
            found.setdefault(columns.pop(), []).append(_joined(part))
    return found


def _joined(part: Predicate) -> Leaf:
    """Return a condition on one column as one comparison of it."""
    told = list(leaves(part))
    starts = np.unique(np.concatenate([leaf.steps.starts for leaf in told]))

    def truth(p: Predicate) -> np.ndarray[Any, Any]:
        if isinstance(p, Leaf):
            return p.steps.at(starts).astype(bool)
        each = [truth(q) for q in p.parts]
        if p.how == "not":
            return ~each[0]
        return reduce(np.logical_and if p.how == "and" else np.logical_or, each)

    return Leaf(told[0].column, Steps(starts, truth(part)).merged())


def _asks_nothing(ask: Ask) -> bool:
    if ask.weights is not None:
        return not ask.weights.any()
    return any(W is not None and not W.any() for W in ask.factors)
