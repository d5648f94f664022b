"""Functions on the cells of one column that are constant on runs of cells.

A column of 200,001 incomes of which a workload tells three bands apart is three runs, not
200,001 entries: what is asked of a column is kept by runs from the declaration to the SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Steps:
    """A function of cells 0..n-1 that changes only at ``starts``.

    Attributes
    ----------
    starts : integers, shape (r,)
        First cell of each run, increasing; the first is 0.
    values : shape (r,) or (r, w)
        The value on each run.

    Examples
    --------
    >>> adult = Steps([0, 18], [False, True])
    >>> adult.at([17, 18, 99]).tolist()
    [False, True, True]
    """

    starts: NDArray[np.int64]
    values: NDArray[Any]

    def __init__(self, starts: ArrayLike, values: ArrayLike) -> None:
        object.__setattr__(self, "starts", np.asarray(starts, dtype=np.int64))
        object.__setattr__(self, "values", np.asarray(values))

    def at(self, cells: ArrayLike) -> NDArray[Any]:
        """Return the values at some cells."""
        return self.values[np.searchsorted(self.starts, cells, side="right") - 1]

    def merged(self) -> Steps:
        """Return the same function with neighbouring runs of equal value joined."""
        flat = self.values.reshape(len(self.starts), -1)
        kept = np.append(True, np.any(flat[1:] != flat[:-1], axis=1))
        return Steps(self.starts[kept], self.values[kept])


def on_cells(chosen: ArrayLike, size: int) -> Steps:
    """Return the truth of "this cell is one of ``chosen``" over ``size`` cells."""
    cells = np.unique(np.asarray(chosen, dtype=np.int64))
    starts = np.unique(np.concatenate([[0], cells, cells + 1]))
    starts = starts[starts < size]
    return Steps(starts, np.isin(starts, cells)).merged()


def between(low: int, high: int, size: int) -> Steps:
    """Return the truth of "this cell is one of low, ..., high - 1" over ``size`` cells."""
    starts = np.unique([start for start in (0, low, high) if start < size])
    return Steps(starts, (low <= starts) & (starts < high)).merged()


def partition(functions: Sequence[Steps]) -> Steps:
    """Return the coarsest numbering of cells that tells what every one of ``functions`` tells.

    Cells with equal values under all of them get one number, wherever they are; numbers follow
    the first cell.
    """
    starts = np.unique(np.concatenate([[0], *(f.starts for f in functions)]))
    if not functions:
        return Steps(starts, [0])
    columns = [
        np.asarray(f.at(starts), dtype=np.float64).reshape(len(starts), -1) for f in functions
    ]
    _, first, number = np.unique(np.hstack(columns), axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return Steps(starts, rank[number.ravel()]).merged()
