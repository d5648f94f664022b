"""Where counts come from: what can be told of them beforehand, and the one moment they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..strategies.exact import Integers, integers, magnitude


@runtime_checkable
class Source(Protocol):
    """Data that is counted over declared cells."""

    def cells(self) -> int:
        """Return over how many cells it is counted, from declarations alone: no row is read."""

    def read(self) -> Integers:
        """Read the rows, for the first time, and return one count for each cell.

        Total: nothing in here stops on a value, since whether it stopped would be told for free.
        """


def is_source(data: Any) -> bool:
    """Return whether data reads itself."""
    # Asked of the type: a frame answers to the names of its columns.
    return all(callable(getattr(type(data), method, None)) for method in ("cells", "read"))


def fitting(source: Source, cells: int) -> Source:
    """Return a source that becomes as many integers as a plan is about, or refuse it."""
    told = source.cells()
    if told != cells:
        raise InvalidInput(f"the plan is about {cells} cells, and the data has {told}.")
    return source


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Counts that the caller holds in memory already, checked when they are wrapped.

    No table of people has a negative count or half a person, so that a refusal here tells of
    a mistake, not of a person; and it comes before any release has begun.

    Examples
    --------
    >>> Counts([3, 4])
    Counts(2 cells)
    """

    values: Integers

    def __init__(self, values: ArrayLike) -> None:
        counts = integers("the counts", values)
        if counts.ndim != 1 or not counts.size:
            raise InvalidInput(f"counts must be one list of whole numbers, got {counts.shape}.")
        if bool(np.any(counts < 0)):
            raise InvalidInput("counts must not be negative: they count people in declared cells.")
        if magnitude(counts) >> 62:
            raise InvalidInput("counts must be below 2^62.")
        counts.setflags(write=False)
        object.__setattr__(self, "values", counts)

    def cells(self) -> int:
        """Return how many cells are counted."""
        return len(self.values)

    def read(self) -> Integers:
        """Return the counts."""
        return self.values

    def __repr__(self) -> str:
        return f"Counts({len(self.values)} cells)"
