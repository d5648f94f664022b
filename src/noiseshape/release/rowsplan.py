"""Plans for matrices with a row for each person that memory does not hold: row by row.

Every row is measured alike and on its own, with the noise that was designed for one. One person is
one row, so that the whole costs what one row does; and rows can be read, measured and kept a chunk
at a time, in any order, on any machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._checks import Floats, frozen, whole
from .._memory import free_memory
from ..archive import digest
from ..errors import InvalidInput, ReleaseFailed, TooLarge
from ..matrices.clipped import Features as Vectors
from ..matrices.identity import Identity
from ..privacy import Budget, Cost, People
from ..privacy.ledger import Charge
from ..strategies import Diagonal, Kronecker, Strategy
from ..strategies.changes import Changes
from ..strategies.exact import Integers
from .chunks import Chunks, temporary
from .matrixplan import MatrixPlan
from .planned import InChunks, Stamp
from .source import Source, is_source
from .table import Table

if TYPE_CHECKING:
    from ..matrices.streams import Stream
    from .rowsrelease import RowsRelease

# Integers in a chunk, if nobody says otherwise: with what is made of them on the way they take
# a quarter of a gigabyte.
CHUNK = 1 << 21
_BYTES = 120  # of memory for an integer, at the most: rows, grid, sum, noise and file


@dataclass(frozen=True, eq=False, repr=False)
class RowsPlan(InChunks):
    """Noise for one row, drawn for each of n: made by :meth:`MatrixPlan.row_by_row`.

    Attributes
    ----------
    few
        The plan of a few rows that are measured alike; one is enough.
    n
        How many rows there are: public under replace neighbours.
    rows
        How many of them are in a chunk, but in the last.
    key
        The column that numbers the rows of a Spark frame.

    Formal Guarantees:
      ``cost`` is that of ``few``: a person is in one row, a row in one chunk, and what is measured
      of a chunk depends on its rows alone. Answers are unbiased, their errors exact.
    """

    kind = "rows plan"

    few: MatrixPlan
    n: int
    rows: int
    key: str | None = None
    _steady: dict[int, MatrixPlan] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        whole("n", self.n)
        whole("rows", self.rows)
        if not isinstance(self.few.query, (Identity, Vectors)):
            raise InvalidInput(
                f"a {self.few.query.kind} is no matrix with a row for each person: identity(...) "
                "and features(...) are released row by row."
            )
        _one_row(self.few.strategy, self.few.query.n)

    @property
    def query(self) -> Identity | Vectors:
        """The question, of a few rows: see ``n``."""
        return cast("Identity | Vectors", self.few.query)

    @property
    def width(self) -> int:
        """How many entries a row has."""
        return self.query.m if isinstance(self.query, Vectors) else len(self.query.features.names)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the answer."""
        return self.n, self.width

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        names = self.query.labels[1]
        return tuple(f"x{name}" for name in names) if isinstance(self.query, Vectors) else names

    @property
    def cost(self) -> Cost:
        """What one release costs, exactly: what one row does."""
        return self.few.cost

    @property
    def people(self) -> People:
        """Whose privacy: a row each."""
        return self.few.people

    @property
    def count(self) -> int:
        """How many entries the answer has."""
        return self.n * self.width

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.n // self.rows)

    def length(self, number: int) -> int:
        """Return how many rows a chunk has."""
        return min(self.rows, self.n - number * self.rows)

    def of(self, rows: int) -> MatrixPlan:
        """Return the plan of so many rows, as they are executed."""
        if rows not in self._steady:
            query = replace(self.query, n=rows, rows=None)
            strategy = _of_rows(self.few.strategy, self.query.n, rows, query.changes)
            self._steady[rows] = MatrixPlan(query, strategy, self.few.shape)
        return self._steady[rows]

    @cached_property
    def variance(self) -> Floats:
        """The variance of each entry of a row, (width,): exact, and the same in every row."""
        return frozen(self.few.variance[: self.width])

    def errors(self) -> Table:
        """Return the standard error of each column's entries."""
        columns: dict[str, Any] = {"column": self.columns, "stderr": np.sqrt(self.variance)}
        if self.few.target is not None:
            target = self.few.target[: self.width]
            columns |= {"target": np.sqrt(target), "variance / target": self.variance / target}
        return Table(columns, note="exact, of every row; of the noise only")

    def summary(self) -> Table:
        """Return one line: how many rows and entries, their least and greatest error."""
        error = np.sqrt(self.variance)
        columns: dict[str, Any] = {
            "query": (self.query.kind,),
            "rows": [self.n],
            "entries": [self.count],
            "least stderr": [float(error.min())],
            "greatest stderr": [float(error.max())],
        }
        return Table(columns, note="exact; of the noise only")

    def facts(self) -> dict[str, Any]:
        """Return shape, the design, k and the errors' ends."""
        told = self.few.facts()
        return told | {
            "shape": list(self.shape), "chunks": self.chunks, "errors": list(self.summary().rows()),
        }  # fmt: skip

    def words(self) -> tuple[str, ...]:
        """Return the design of a row, and how rows are cut, in sentences."""
        by = "in the order of the file" if self.key is None else f"numbered by {self.key!r}"
        return (
            *self.few.words(),
            f"{self.n:,} rows, each measured alike, {by}: {self.chunks:,} chunks of {self.rows:,}.",
        )

    def within(self, budget: Budget) -> RowsPlan:
        """Return the same shape scaled to spend the budget, and never more."""
        return replace(self, few=self.few.within(budget))

    def release(
        self,
        data: Source | Any = None,
        *,
        ledger: Any = None,
        out: str | os.PathLike[str] | None = None,
        who: str = "",
        what: str = "",
        vintage: str | None = None,
        unrecorded: bool = False,
        resume: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> RowsRelease:
        """Debit the ledger, measure the rows chunk by chunk, and publish them in Parquet.

        See :func:`noiseshape.release.run.run` for the order of events and what each refusal means.
        With ``resume`` only the chunks are read and drawn that the interrupted run did not keep.

        Parameters
        ----------
        data
            Parquet or CSV files, an array, a pandas or Polars frame, an Arrow table; a Spark frame
            for a plan with a key, whose chunks are measured by the cluster's tasks.
        progress
            Is told how many chunks are done.
        """
        from .run import run

        made = run(
            self, self.source(data, progress), ledger=ledger, out=out, who=who, what=what,
            vintage=vintage, unrecorded=unrecorded, resume=resume,
        )  # fmt: skip
        return cast("RowsRelease", made)

    def source(self, data: Source | Any, progress: Callable[[str], None] | None = None) -> Source:
        """Return the rows to be read; no row is."""
        from ..matrices.streams import Cut, streamed

        if is_source(data):
            if data.cells() != self.count:
                raise InvalidInput(f"the plan is about {self.count} cells, not {data.cells()}.")
            given: Any = data
        else:
            asked = self.query.rows if data is None else data
            if asked is None:
                raise InvalidInput("hand in the rows: release(rows, ...).")
            given = streamed(self.query, Cut(self.n, self.rows), asked, self.key)
        return given if progress is None else cast("Source", Told(given, self.chunks, progress))

    def rehearse(self) -> None:
        """Rebuild public numbers of one row, and see that a chunk fits in memory."""
        needed = min(self.rows, self.n) * self.width * _BYTES
        if needed > free_memory():
            raise TooLarge(
                f"a chunk of {self.rows:,} rows x {self.width:,} columns needs about "
                f"{needed / 1e9:,.1f} GB and {free_memory() / 1e9:,.1f} GB are free: take fewer "
                "rows at a time, row_by_row(n, rows=...)."
            )
        self.of(1).rehearse()

    def charge(self, who: str, what: str) -> Charge:
        """Return what the ledger is told."""
        return Charge(
            who=who,
            what=what or f"{self.query.kind}, {self.n} x {self.width}, row by row",
            people=self.people,
            cost=self.cost,
            profile=None,
            schema_hash=digest({"row": self.query.digest(), "n": self.n}),
            selection=self.query.selection,
            spec_hash=self.digest,
        )

    def kept_in(self, folder: Any, entry: str) -> Chunks:
        """Return where the chunks of a ledger entry are kept."""
        return Chunks(folder, entry, *self._lengths)

    @property
    def _lengths(self) -> tuple[int, int]:
        each = self.of(1).strategy.shape[0]
        return min(self.rows, self.n) * each, self.n * each

    def measured(self, x: Any, kept: Chunks | None = None) -> Any:
        """Measure the chunks that are missing, each through ``measure``, and keep each."""
        chunks = temporary(*self._lengths) if kept is None else kept
        x.feed(chunks.missing(), Keeper(self._public(), chunks))
        if chunks.missing():
            raise ReleaseFailed("not every chunk was handed over")
        return chunks

    def measured_chunk(self, number: int, z: Integers) -> Integers:
        """Return A~ z + noise of one chunk."""
        plan = self.of(self.length(number))
        return plan.measured(z)

    def released(self, y: Any, stamp: Stamp | None, when: str) -> RowsRelease:
        """Return the release of chunks that were kept."""
        from .rowsrelease import RowsRelease

        return RowsRelease(self._public(), y, stamp, when)

    def _public(self) -> RowsPlan:
        """Return the same plan without any rows, and without what was computed on the way."""
        few = replace(self.few, query=self.few.query.without_rows())
        return replace(self, few=few)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that the plan says."""
        return digest({"few": self.few.digest, "n": self.n, "rows": self.rows, "key": self.key})

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: the plan of a few rows, and how many there are."""
        return {"few": self.few.to_json(), "n": self.n, "rows": self.rows, "key": self.key}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> RowsPlan:
        """Return the plan that ``to_json`` said; costs and errors are computed anew."""
        try:
            few = MatrixPlan.from_json(content["few"])
            return cls(few, content["n"], content["rows"], content["key"])
        except (KeyError, TypeError):
            raise InvalidInput("the plan file lacks a part: make the plan anew.") from None

    def __repr__(self) -> str:
        shape = f"{self.n} x {self.width}"
        return f"RowsPlan({self.few.shape} noise for {self.query.kind}, {shape}, {self.cost!r})"


@dataclass(frozen=True)
class Keeper:
    """Measures a chunk and keeps it, here or in a task of a cluster; what is kept stays."""

    plan: RowsPlan
    chunks: Chunks

    def __call__(self, number: int, z: Integers) -> None:
        """Measure one chunk, if it was not kept yet."""
        if not self.chunks.file(number).exists():
            self.chunks.keep(number, self.plan.measured_chunk(number, z))


@dataclass(frozen=True, eq=False, repr=False)
class Told:
    """Rows in chunks, whose progress somebody wants to know."""

    stream: Stream
    count: int
    progress: Callable[[str], None]

    def cells(self) -> int:
        """Return how many integers the data becomes."""
        return self.stream.cells()

    def known(self) -> list[Any]:
        """Return what tells these files from altered ones."""
        return self.stream.known()

    def read(self) -> Told:
        """Return the rows."""
        return self

    def feed(self, wanted: Sequence[int], take: Callable[[int, Integers], None]) -> None:
        """Hand the chunks over, and tell after each how many are done."""
        from ..matrices.streams import OnSpark

        if isinstance(self.stream, OnSpark):  # its tasks are elsewhere, and say nothing
            self.progress(f"{len(wanted):,} of {self.count:,} chunks on the cluster")
            self.stream.feed(wanted, take)
            return
        done = self.count - len(wanted)

        def taken(number: int, z: Integers) -> None:
            nonlocal done
            take(number, z)
            done += 1
            self.progress(f"{done:,} of {self.count:,} chunks")

        self.stream.feed(wanted, taken)


def _one_row(strategy: Strategy, n: int) -> None:
    """Refuse a strategy that does not measure all of n rows alike."""
    if isinstance(strategy, Diagonal):
        sigma = strategy.sigma.reshape(n, -1)
    elif isinstance(strategy, Kronecker) and strategy.factors[0].shape == (n, n):
        first = strategy.factors[0]
        sigma = first.sigma.reshape(n, -1) if isinstance(first, Diagonal) else np.empty((0, 0))
    else:
        sigma = np.empty((0, 0))
    if not len(sigma) or not np.array_equal(sigma, np.broadcast_to(sigma[0], sigma.shape)):
        raise InvalidInput(
            "row by row, each row is measured alike and on its own: use noise entry by entry that "
            "is the same in every row, or kronecker(query, columns=...)."
        )


def _of_rows(strategy: Strategy, n: int, rows: int, changes: Changes) -> Strategy:
    """Return a strategy over n rows, which are alike, as one over so many."""
    if isinstance(strategy, Diagonal):
        sigma = strategy.sigma.reshape(n, -1)[0]
        return Diagonal(np.tile(sigma, rows), changes, strategy.bits)
    first, *rest = cast("Kronecker", strategy).factors
    alike = Diagonal(np.full(rows, first.sigma[0]), bits=cast("Diagonal", first).bits)
    return Kronecker([alike, *rest], changes)
