"""Where rows are: one small interface, and what every engine is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..privacy import People
from .layout import Layout
from .sql import Dialect, Kind, check_kinds, counting


class Engine(Protocol):
    """Rows that stay where they are: only counts and sums over declared cells leave."""

    dialect: Dialect
    source: str
    """What stands behind FROM."""

    def kinds(self) -> Mapping[str, Kind | None]:
        """Return the declared type of each column: no row is read."""

    def rows(self, statement: str) -> Iterable[tuple[Any, ...]]:
        """Read rows: run one statement and return what it gives."""

    def arrays(self, statement: str) -> list[NDArray[Any]]:
        """Read rows: run one statement and return its columns, masked where they are NULL.

        Only for questions whose answer is the rows themselves, with noise.
        """


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of people, to be counted on a layout: the source of a release.

    Whether the columns are there and readable is told by their declarations, and checked when
    this is made; rows are read by ``read`` alone.
    """

    engine: Engine
    layout: Layout
    people: People

    def __post_init__(self) -> None:
        check_kinds(self.layout.schema, self.people, self.engine.kinds())

    def cells(self) -> int:
        """Return how many integers the data is."""
        return self.layout.coordinates

    @property
    def statement(self) -> str:
        """The one statement that reads rows."""
        engine = self.engine
        return counting(self.layout, self.people, engine.kinds(), engine.source, engine.dialect)

    def read(self) -> NDArray[np.object_]:
        """Count the rows: exact integers, one for each coordinate of the layout."""
        layout = self.layout
        counts = np.zeros(layout.grid_size, dtype=object)
        sums = [np.zeros(layout.grid_size, dtype=object) for _ in layout.sums]
        axes = len(layout.axes)
        for row in self.engine.rows(self.statement):
            at = int(np.ravel_multi_index(tuple(int(k) for k in row[:axes]), layout.shape))
            for total, value in zip([counts, *sums], row[axes:], strict=True):
                total[at] += int(value or 0)  # the sum of no rows is NULL
        return layout.gathered(counts, sums)

    def __repr__(self) -> str:
        return f"Rows({type(self.engine).__name__}, {len(self.layout.schema.columns)} columns)"
