"""Rows of numbers, wherever they are: arrays in memory, or an engine's files and frames.

Both give the same integers for the same values: a number is clipped to its bounds and goes to the
nearest step of the grid (half a step up); what is no finite number is missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, is_masked, kept_as
from ..errors import InvalidInput
from ..privacy import People
from ..strategies.exact import Integers, product
from ..tables.engine import Engine
from ..tables.opening import opened
from . import sql
from .features import Features

# Rows that are squared at a time: the grid of a hundred columns stays in 100 MB.
_BLOCK = 1 << 16


class Numbers(Protocol):
    """Rows of declared columns, not read yet."""

    def moments(self, *, count: bool, sums: bool, products: bool) -> Integers:
        """Read the rows; return how many stay, the sums of z and of z_i z_j for i <= j, exactly."""

    def grid(self, n: int) -> NDArray[np.int64]:
        """Read the rows; return z for ``n`` of them, (n, m): what lacks is 0, what is over goes."""


def numbers(data: Any, features: Features, people: People) -> Numbers:
    """Return rows of declared columns, checked as far as declarations tell."""
    if isinstance(data, (np.ndarray, list, tuple)):
        return Held(array(data, len(features.names)), features, people)
    return Elsewhere(opened(data), features, people)


def array(data: Any, width: int | None = None) -> NDArray[Any]:
    """Return rows as a matrix of numbers, told by its shape and type alone.

    What a list holds is told by its values alone: each that is no number is missing, and no list is
    refused for one.
    """
    if is_masked(data):
        raise InvalidInput("rows must not be masked: fill what is hidden with NaN.")
    X = listed(data) if isinstance(data, (list, tuple)) else np.asarray(data)
    if X.ndim != 2:
        raise InvalidInput(f"rows must be a matrix, a row for each person, got {X.ndim} axes.")
    if X.dtype.kind not in "biuf":
        raise InvalidInput(
            f"rows must hold numbers, got {kept_as(X.dtype)}: hand text and mixed columns in as a "
            "frame."
        )
    if width is not None and X.shape[1] != width:
        raise InvalidInput(f"rows have {X.shape[1]} columns, and {width} are declared.")
    return X


def listed(rows: Sequence[Any]) -> NDArray[Any]:
    """Return a list of rows as an array of numbers, NaN for what is none: told by lengths alone."""
    each = [row if isinstance(row, (list, tuple, np.ndarray)) else None for row in rows]
    lengths = {-1 if row is None else len(row) for row in each}
    if len(lengths) > 1:
        raise InvalidInput("rows must be of equal length.")
    if lengths == {-1} or not each:
        return np.zeros(len(each))  # refused by its one axis
    numbers = [_number(value) for row in each if row is not None for value in row]
    return np.array(numbers, dtype=np.float64).reshape(len(each), *lengths)


def _number(value: Any) -> float:
    """Return a value as a double, NaN where it is no number: whatever it is."""
    try:
        told = isinstance(value, (int, float, Fraction, Decimal, np.number, np.bool_))
        return float(value) if told else math.nan
    except Exception:  # past all doubles, or an object of somebody's own
        return math.nan


@dataclass(frozen=True, eq=False, repr=False)
class Held:
    """Rows of an array."""

    X: NDArray[Any]
    features: Features
    people: People

    def __post_init__(self) -> None:
        if self.people.unit != "rows":
            raise InvalidInput(
                f"an array has no column {self.people.unit!r} to tell people by: hand in a frame "
                "or a file, or make each row one person."
            )

    def moments(self, *, count: bool, sums: bool, products: bool) -> Integers:
        """Return exact sums, a block of rows at a time."""
        m = len(self.features.names)
        i, j = np.triu_indices(m)
        total = np.zeros(1 + m + len(i), dtype=object)
        for start in range(0, len(self.X), _BLOCK):
            z, present = self.features.whole(self.X[start : start + _BLOCK])
            z = z[present]
            total[0] += len(z)
            total[1 : 1 + m] += z.sum(axis=0)
            if products:
                total[1 + m :] += product(np.ascontiguousarray(z.T), z)[i, j]
        kept = np.repeat([count, sums, products], [1, m, len(i)])
        return total[kept]

    def grid(self, n: int) -> NDArray[np.int64]:
        """Return z, row by row."""
        z, _ = self.features.whole(self.X[:n])
        return padded(z, n)


@dataclass(frozen=True, eq=False, repr=False)
class Elsewhere:
    """Rows of files and frames, read by their engine."""

    engine: Engine
    features: Features
    people: People

    def __post_init__(self) -> None:
        sql.check_kinds(self.features.names, self.people, self.engine.kinds())

    def moments(self, *, count: bool, sums: bool, products: bool) -> Integers:
        """Return exact sums, computed inside the engine."""
        found: list[int] = []
        for statement in sql.moments(self._reader(), count=count, sums=sums, products=products):
            (row,) = self.engine.rows(statement)
            found += [int(value or 0) for value in row]  # the sum of no rows is NULL
        return np.array(found, dtype=object)

    def grid(self, n: int) -> NDArray[np.int64]:
        """Return z, row by row in the order of the file."""
        columns = self.engine.arrays(self._reader().grid(n))
        return padded(np.column_stack([np.asarray(c, dtype=np.int64) for c in columns]), n)

    def _reader(self) -> sql.Reader:
        engine = self.engine
        return sql.Reader(self.features, self.people, engine.kinds(), engine.source, engine.dialect)


def padded(z: NDArray[Any], n: int) -> NDArray[Any]:
    """Return exactly n rows: how many there are is public, and nothing stops on it."""
    return np.concatenate([z[:n], np.zeros((max(0, n - len(z)), *z.shape[1:]), dtype=z.dtype)])


def doubles(data: Any, width: int | None, names: tuple[str, ...] | None = None) -> Any:
    """Return a function that reads rows as doubles, (n, m), NaN where there is no number."""
    if isinstance(data, (np.ndarray, list, tuple)):
        X = array(data, width)
        return lambda: np.asarray(X, dtype=np.float64)
    engine = opened(data)
    kinds = engine.kinds()
    names = tuple(kinds) if names is None else names
    if width is not None and len(names) != width:
        raise InvalidInput(f"rows have {len(names)} columns, and {width} are declared.")
    sql.check_kinds(names, People(), kinds)
    statement = sql.plain(names, kinds, engine.source, engine.dialect)

    def read() -> Floats:
        return np.column_stack([np.ma.filled(c, np.nan) for c in engine.arrays(statement)])

    return read


def in_order(data: Any) -> Any:
    """Return rows that have an order, for an answer with a row for each; refuse others.

    Where an engine brings rows together, their places may hang on their values: one person who is
    replaced would then move everybody.
    """
    if type(data).__name__ == "DuckDBPyRelation" or type(data).__module__.startswith("pyspark"):
        raise InvalidInput(
            "the rows of a relation or of a Spark frame have no order that stays, and each of them "
            "is a row of this answer: write them to Parquet first, and name the file; or number "
            "them on Spark, row_by_row(n, key=...)."
        )
    return data


def length_of(data: Any) -> int | None:
    """Return how many rows there are, where that is told without reading any; else None.

    Of what is in memory. A relation has a length too, and runs its query to tell it.
    """
    kept = ("numpy", "pandas", "polars", "pyarrow")
    if isinstance(data, (list, tuple)):
        return len(data)
    known = type(data).__module__.split(".")[0] in kept and hasattr(data, "__len__")
    return len(data) if known else None


def columns_of(data: Any) -> tuple[str, ...] | None:
    """Return the names of a frame's columns, where it has any."""
    names = getattr(data, "column_names", None) or getattr(data, "columns", None)
    return None if names is None else tuple(str(name) for name in names)
