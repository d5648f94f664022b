"""Rows that are read a chunk at a time, in one order: for matrices that memory does not hold.

Which row is where must be the same whenever rows are read, since a run that continues measures
the chunks that are missing, and nobody twice. Files and arrays have an order. A cluster has none:
there a declared column, the key, numbers the rows 0, 1, ..., and a row's chunk follows from its
own key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats
from ..errors import InvalidInput
from ..privacy import People
from ..strategies.exact import Integers
from ..tables.duck import Duck
from ..tables.opening import opened
from ..tables.spark import Spark
from . import sql
from .clipped import Features as Vectors
from .clipped import clipped
from .identity import Identity
from .reading import array, padded

Take = Callable[[int, Integers], None]
"""What is done with a chunk: its number, and its rows on the grid, one after the other."""

_BATCH = 1 << 17  # rows that an engine hands over at a time


@dataclass(frozen=True)
class Cut:
    """How ``n`` rows are cut: ``rows`` in each chunk, but in the last."""

    n: int
    rows: int

    @property
    def count(self) -> int:
        """How many chunks there are."""
        return -(-self.n // self.rows)

    def length(self, number: int) -> int:
        """Return how many rows a chunk has."""
        return min(self.rows, self.n - number * self.rows)


class Stream(Protocol):
    """Rows in chunks: what a release reads from."""

    def cells(self) -> int:
        """Return how many integers the data becomes, from declarations alone."""

    def read(self) -> Stream:
        """Return the rows, which are read as chunks are taken."""

    def known(self) -> list[Any]:
        """Return what tells these files from altered ones; nothing where nothing does."""

    def feed(self, wanted: Sequence[int], take: Take) -> None:
        """Read the rows of some chunks, and hand each chunk to ``take``. Total."""


@dataclass(frozen=True, eq=False)
class Coder:
    """From rows of doubles to whole numbers on the query's grid."""

    query: Identity | Vectors

    def __call__(self, X: NDArray[Any], rows: int) -> Integers:
        """Return z, row by row: what lacks is 0, and nothing stops on a value."""
        if isinstance(self.query, Identity):
            z, _ = self.query.features.whole(X)
        else:
            z = clipped(np.asarray(X, dtype=np.float64) / self.query.grid, self.query.radius)
        return np.ascontiguousarray(padded(z, rows)).ravel()


@dataclass(frozen=True, eq=False, repr=False)
class _Rows:
    query: Identity | Vectors
    cut: Cut

    def cells(self) -> int:
        """Return how many integers the data becomes."""
        return self.cut.n * self.query.shape[1]

    def known(self) -> list[Any]:
        """Return nothing: what is in memory has no date."""
        return []


@dataclass(frozen=True, eq=False, repr=False)
class Held(_Rows):
    """Rows of an array."""

    X: NDArray[Any]

    def read(self) -> Held:
        """Return the rows."""
        return self

    def feed(self, wanted: Sequence[int], take: Take) -> None:
        """Hand over slices."""
        code = Coder(self.query)
        for number in wanted:
            start, rows = number * self.cut.rows, self.cut.length(number)
            take(number, code(self.X[start : start + rows], rows))


@dataclass(frozen=True, eq=False, repr=False)
class Elsewhere(_Rows):
    """Rows of files and frames, in their order, through the embedded engine."""

    engine: Duck
    statement: str

    def read(self) -> Elsewhere:
        """Return the rows."""
        return self

    def known(self) -> list[Any]:
        """Return names, sizes and dates of the files."""
        found = [(name, os.stat(name)) for name in self.engine.files]
        return [[os.path.abspath(name), s.st_size, s.st_mtime_ns] for name, s in found]

    def feed(self, wanted: Sequence[int], take: Take) -> None:
        """Read each stretch of chunks that follow each other in one statement."""
        code, cut = Coder(self.query), self.cut
        for start, stop in _stretches(wanted):
            first, last = start * cut.rows, min(stop * cut.rows, cut.n)
            parts = self.engine.batches(
                f"{self.statement} LIMIT {last - first} OFFSET {first}", _BATCH
            )
            cutting = _regrouped(parts, cut.rows, self.query.shape[1])
            with closing(parts), closing(cutting):
                for number in range(start, stop):
                    take(number, code(next(cutting), cut.length(number)))


@dataclass(frozen=True, eq=False, repr=False)
class OnSpark(_Rows):
    """Rows of a Spark frame: each chunk is measured by the task that has its rows."""

    engine: Spark
    statement: str

    def read(self) -> OnSpark:
        """Return the rows."""
        return self

    def feed(self, wanted: Sequence[int], take: Take) -> None:
        """Bring the rows of each chunk together on the cluster, and call ``take`` there."""
        code, cut, width = Coder(self.query), self.cut, self.query.shape[1]

        def of_chunk(number: int, at: NDArray[np.int64], X: Floats) -> None:
            rows = cut.length(number)
            ordered = np.full((rows, width), np.nan)
            # Of several rows of one key the first in the order of their values is taken.
            order = np.lexsort((*X.T[::-1], at))
            at, X = at[order], X[order]
            first = np.flatnonzero(np.diff(at, prepend=-1))
            ordered[at[first]] = X[first]
            take(number, code(ordered, rows))

        self.engine.each(self.statement, list(wanted), cut.rows, cut.n, width, of_chunk)


def streamed(query: Identity | Vectors, cut: Cut, data: Any, key: str | None) -> Stream:
    """Return rows to be read in chunks, checked as far as declarations tell."""
    width = query.shape[1]
    names = query.features.names if isinstance(query, Identity) else None
    if isinstance(data, (np.ndarray, list, tuple)):
        _keyless(key)
        return Held(query, cut, _long_enough(array(data, width), cut.n))
    engine = opened(data)
    kinds = engine.kinds()
    if names is None:
        names = tuple(name for name in kinds if name != key)
        if len(names) != width:
            raise InvalidInput(f"rows have {len(names)} columns, and {width} are declared.")
    sql.check_kinds(names, People(), kinds)
    if isinstance(engine, Duck):
        _keyless(key)
        return Elsewhere(query, cut, engine, sql.plain(names, kinds, engine.source, engine.dialect))
    if not isinstance(engine, Spark):
        raise InvalidInput(
            "rows are read in chunks from files, arrays and frames, whose order stays: write this "
            "relation to Parquet first, and name the file."
        )
    if key is None or kinds.get(key) != "integer":
        raise InvalidInput(
            "the rows of a Spark frame have no order that stays: name a column of whole numbers "
            f"that numbers them from 0 to {cut.n - 1:,}, row_by_row(n, key=...)."
        )
    told = sql.plain(names, kinds, engine.source, engine.dialect, key=key)
    return OnSpark(query, cut, engine, told)


def _keyless(key: str | None) -> None:
    if key is not None:
        raise InvalidInput(
            "a key is for Spark frames: rows of files and arrays are numbered by their order; "
            "leave it out."
        )


def _long_enough(X: NDArray[Any], n: int) -> NDArray[Any]:
    if len(X) != n:
        raise InvalidInput(f"the plan is about {n} rows, and the data has {len(X)}.")
    return X


def _stretches(wanted: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of numbers that follow each other."""
    start = stop = -1
    for number in wanted:
        if number != stop:
            if stop > start:
                yield start, stop
            start = number
        stop = number + 1
    if stop > start:
        yield start, stop


def _regrouped(parts: Iterator[Floats], rows: int, width: int) -> Generator[Floats]:
    """Yield rows by the chunk, from parts of any length; then parts without rows, for ever."""
    held: list[Floats] = []
    have = 0
    for part in parts:
        while len(part):
            taken = part[: rows - have]
            held.append(taken)
            have, part = have + len(taken), part[len(taken) :]
            if have == rows:
                yield np.concatenate(held)
                held, have = [], 0
    if held:
        yield np.concatenate(held)
    while True:
        yield np.empty((0, width))
