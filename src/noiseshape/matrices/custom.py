"""Any function of the rows, with a declared grid and a declared set of changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats, positive, whole
from ..errors import InvalidInput
from ..privacy import People
from ..strategies.changes import Changes
from ..strategies.exact import Integers
from .changes import Recorded
from .features import power_of_two
from .query import MatrixQuery, length, numbered, within_memory

Function = Callable[[Any], ArrayLike]

# Values on the grid stay below this: their sums with noise then fit in 64 bits.
_MOST = 1 << 60


@dataclass(frozen=True, eq=False, repr=False)
class Computed:
    """A function of rows, to be computed: the source of a release."""

    data: Any
    query: CustomQuery

    def cells(self) -> int:
        """Return how many integers the data becomes."""
        return self.query.size

    def read(self) -> Integers:
        """Return the function's values in steps; what is no number counts as 0."""
        q = self.query
        assert q.function is not None
        values = np.asarray(q.function(self.data), dtype=np.float64).reshape(q.shape)[q.entries]
        values = np.where(np.isnan(values), 0.0, values / q.grid)
        return np.rint(np.clip(values, -_MOST, _MOST)).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CustomQuery(MatrixQuery):
    """The caller's own function.

    Attributes
    ----------
    function
        From the rows to numbers of the declared shape. No file holds it.
    dimensions
        The declared shape.
    declared
        What one row can contribute to the values in steps: to those that are measured.
    grid
        The step, a power of two.
    mirrored
        Whether the answer is symmetric, and measured for i <= j.
    """

    kind = "custom"

    function: Function | None
    dimensions: tuple[int, ...]
    declared: Changes
    grid: float
    mirrored: bool = False

    def __post_init__(self) -> None:
        if not self.dimensions:
            raise InvalidInput("a custom query needs a shape of one axis or more: shape=(1,), say.")
        within_memory(*self.dimensions)
        if self.mirrored and (len(self.dimensions) != 2 or len(set(self.dimensions)) != 1):
            raise InvalidInput("a symmetric answer needs a shape (n, n).")
        if self.declared.size != len(self.entries[0]):
            raise InvalidInput(
                f"{len(self.entries[0])} entries are measured, and the set of changes is of "
                f"{self.declared.size}."
            )
        if self.people.unit != "rows":
            raise InvalidInput('the set of changes is of one row: use the unit "rows".')

    @property
    def symmetric(self) -> bool:
        """Whether the answer is symmetric."""
        return self.mirrored

    @property
    def shape(self) -> tuple[int, ...]:
        """The declared shape."""
        return self.dimensions

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Numbers along each axis."""
        return tuple(numbered("", size) for size in self.dimensions)

    @property
    def selection(self) -> str:
        """Return in words which rows count."""
        return "as a function of the custodian's own has it"

    @property
    def changes(self) -> Changes:
        """What was declared."""
        return self.declared

    @cached_property
    def step(self) -> Floats:
        """The grid."""
        return np.full(self.declared.size, self.grid)

    def source(self, data: Any) -> Computed:
        """Return the function to be computed."""
        if self.function is None:
            raise InvalidInput(
                "no file holds a function: ask again in Python, with the function that it is."
            )
        return Computed(data, self)

    def s2(self) -> float:
        """Return the greatest length of the declared set, or a bound above it."""
        return length(self, self.twice)

    def gamma(self) -> float:
        """Refuse: what the function can be, its caller knows."""
        raise InvalidInput(
            "a custom function has no declared bound on its values: state gamma=..., the greatest "
            "Frobenius norm that they can have."
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the question, but for the function and its set."""
        return {
            "kind": self.kind,
            "people": self._people_json(),
            "dimensions": list(self.dimensions),
            "grid": self.grid,
            "mirrored": self.mirrored,
            "size": self.declared.size,
        }

    @classmethod
    def from_json(cls, *, dimensions: list[int], size: int, **content: Any) -> Self:
        """Return the question that ``to_json`` said, without its function."""
        return cls(function=None, dimensions=tuple(dimensions), declared=Recorded(size), **content)


def custom(
    function: Function,
    rows: Any = None,
    *,
    shape: Sequence[int],
    changes: Changes | None = None,
    step: float | None = None,
    symmetric: bool = False,
    people: People | None = None,
) -> CustomQuery:
    """Ask for any function of the rows, with a declared grid and a declared set of changes.

    Parameters
    ----------
    function
        From the rows to numbers of the declared shape. Its values are rounded to the grid;
        what is no number counts as 0, and whatever it raises is told as a failed step.
    shape
        Of the answer.
    changes
        What one row can contribute to the rounded values, in steps: rounding moves each of two
        values by half a step, so allow for one step more than the exact function needs. For a
        symmetric answer: to its entries i <= j, row by row.
    step
        The grid, rounded down to a power of two.
    symmetric
        Whether the answer is symmetric, (n, n): measured once.
    people
        Whose privacy; the set of changes is used under its neighbours.
    """
    if step is None:
        raise InvalidInput("a custom function needs a declared grid: step=0.001, for example.")
    if not isinstance(changes, Changes):
        raise InvalidInput(
            "a custom function needs a declared set of changes, in steps: Ball(size, radius), "
            "Box(low, high), ..."
        )
    if not callable(function):
        raise InvalidInput("a custom query needs a function of the rows.")
    return CustomQuery(
        function=function,
        dimensions=tuple(whole("a length of the shape", s) for s in shape),
        declared=changes,
        grid=power_of_two(positive("step", step)),
        mirrored=symmetric,
        people=people or People(),
        rows=rows,
    )
