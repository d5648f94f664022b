"""The data matrix itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats, whole
from ..errors import InvalidInput
from ..privacy import People
from ..strategies.changes import Box, OneOf
from ..strategies.exact import Integers
from .features import Bounds, Features, columns_declared
from .query import MatrixQuery, length, numbered, replacing, within_memory
from .reading import Numbers, in_order, length_of, numbers


@dataclass(frozen=True, eq=False, repr=False)
class EveryRow:
    """Rows as they are, to be read: the source of a release."""

    rows: Numbers
    n: int
    m: int

    def cells(self) -> int:
        """Return how many integers the data becomes."""
        return self.n * self.m

    def read(self) -> Integers:
        """Read the rows, and return z, one row after the other."""
        return self.rows.grid(self.n).ravel()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Identity(MatrixQuery):
    """The data matrix, shape (n, m): every entry between the bounds of its column.

    Attributes
    ----------
    features
        The declared columns.
    n
        How many rows there are: public under replace neighbours.
    """

    kind = "identity"

    features: Features
    n: int

    def __post_init__(self) -> None:
        whole("n", self.n)
        replacing("the data matrix", self.people)
        within_memory(self.n, len(self.features.names))

    @property
    def shape(self) -> tuple[int, ...]:
        """A row for each person, a column for each feature."""
        return (self.n, len(self.features.names))

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Numbers of rows, and names of columns."""
        return numbered("", self.n), self.features.names

    @property
    def selection(self) -> str:
        """Return in words which rows count."""
        return "every row; what is no number counts as the middle of its bounds"

    @cached_property
    def changes(self) -> OneOf:
        """One row changes, each entry between its own bounds."""
        return OneOf(Box(self.features.least, self.features.greatest), self.n)

    @cached_property
    def step(self) -> Floats:
        """Each column's own."""
        return np.tile(self.features.step, self.n)

    def source(self, data: Any) -> EveryRow:
        """Return the rows to be read."""
        told = length_of(in_order(data))
        if told is not None and told != self.n:
            raise InvalidInput(f"the plan is about {self.n} rows, and the data has {told}.")
        return EveryRow(numbers(data, self.features, self.people), self.n, self.shape[1])

    def answer(self, v: Floats) -> Floats:
        """Return the origin of each column + v."""
        return self.features.origin * self.features.step + v.reshape(self.shape)

    def s2(self) -> float:
        """Return the length of the box's edges: exact."""
        return length(self, np.ones(self.size))

    def gamma(self) -> float:
        """Return sqrt(n) times the length of the farthest row."""
        ends = np.maximum(np.abs(self.features.low), np.abs(self.features.high))
        return float(np.sqrt(self.n) * np.linalg.norm(ends))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the question."""
        return {
            "kind": self.kind,
            "people": self._people_json(),
            "features": self.features.to_json(),
            "n": self.n,
        }

    @classmethod
    def from_json(cls, *, features: dict[str, Any], **content: Any) -> Self:
        """Return the question that ``to_json`` said."""
        return cls(features=Features.from_json(features), **content)


def identity(
    rows: Any = None,
    *,
    bounds: Bounds | None = None,
    columns: ArrayLike | None = None,
    n: int | None = None,
    step: ArrayLike | None = None,
    people: People | None = None,
) -> Identity:
    """Ask for the data matrix itself, shape (n, m): every entry, with noise.

    Its shape tells how many rows there are, so that neighbours must be ``replace``. What is no
    number counts as the middle of its bounds.

    Parameters
    ----------
    rows, bounds, columns, step
        As :func:`~noiseshape.matrices.sum` has them.
    n
        How many rows there are, where ``rows`` does not tell without being read.
    """
    people = replacing("the data matrix", people)
    features = columns_declared(rows, columns, bounds, step, "middle", "middle")
    return Identity(features=features, people=people, rows=rows, n=rows_public(rows, n))


def rows_public(rows: Any, n: int | None) -> int:
    """Return how many rows there are: declared, or told by the data without reading it."""
    told = length_of(rows) if n is None else n
    if told is None:
        raise InvalidInput("say how many rows there are: n=...; replace neighbours share it.")
    return whole("n", told)
