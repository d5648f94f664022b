"""What may be published of a matrix that was measured row by row: Parquet, a file a chunk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import Floats, frozen, whole
from ..archive import digest
from ..errors import InvalidInput
from .chunks import Chunks
from .intervals import NOISE_ONLY, critical, percent
from .matrixplan import named
from .planned import Released, Stamp
from .rowsplan import RowsPlan
from .table import Table

# Entries that are listed in a table, one a line; of more, a line for each column.
LISTED = 10_000


@dataclass(frozen=True)
class Parts:
    """The published answers, a Parquet file for each chunk.

    Attributes
    ----------
    folder
        Where they are.
    digests
        SHA-256 of each file.
    measured
        SHA-256 of what was measured of each chunk.
    """

    folder: Path
    digests: tuple[str, ...]
    measured: tuple[str, ...]

    def __post_init__(self) -> None:
        for number, stated in enumerate(self.digests):
            if _digest(part(self.folder, number)) != stated:
                raise InvalidInput(
                    f"{part(self.folder, number).name} of this release was altered since it was "
                    "written, or is gone: restore it from a copy."
                )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what was measured."""
        return digest(list(self.measured))


@dataclass(frozen=True, eq=False, repr=False)
class RowsRelease(Released):
    """A measurement of rows that was paid for, in chunks on a disk.

    Attributes
    ----------
    plan
        What was asked, and how each row was measured.
    kept
        The chunks that were kept for the ledger entry; of a release that was read, its files.
    stamp
        The ledger entry that paid, or None for an unrecorded release.
    when
        When it was paid for: UTC, ISO 8601.

    Everything here may be published: it is post-processing of the measured integers.
    """

    kind = "rows release"

    plan: RowsPlan
    kept: Chunks | Parts
    stamp: Stamp | None
    when: str
    _written: list[str] = field(default_factory=list, init=False)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what was measured."""
        return self.kept.fingerprint

    @cached_property
    def stderr(self) -> Floats:
        """The standard error of each entry of a row, (width,): exact, the same in every row."""
        return frozen(np.sqrt(self.plan.variance))

    def rows(self, number: int) -> Floats:
        """Return the answers of one chunk, (rows, width): unbiased."""
        whole("number", number, least=0)
        if number >= self.plan.chunks:
            raise InvalidInput(f"there are {self.plan.chunks} chunks, from 0.")
        if isinstance(self.kept, Parts):
            import pyarrow.parquet as pq

            table = pq.read_table(part(self.kept.folder, number))
            return np.column_stack([column.to_numpy() for column in table.columns])
        plan = self.plan.of(self.plan.length(number))
        y = self.kept.read(number)
        return np.asarray(plan.query.answer(plan.query.step * plan.strategy.rebuild(y)))

    def __iter__(self) -> Iterator[Floats]:
        """Yield the answers, chunk after chunk."""
        return (self.rows(number) for number in range(self.plan.chunks))

    def settle(self) -> None:
        """Rebuild one chunk, so that what cannot be is found now; all others are like it."""
        self.rows(0)

    def table(self, *, level: float = 0.95) -> Table:
        """Return every entry with its error and interval; of many, one line for each column.

        Parameters
        ----------
        level
            Chance that an interval holds the true entry, given the bounds and grid.
        """
        if self.plan.count > LISTED:
            columns: dict[str, Any] = {
                "column": self.plan.columns,
                "rows": [self.plan.n] * self.plan.width,
                "stderr": self.stderr,
                "margin": critical(level) * self.stderr,
            }
            note = f"every row is in the Parquet files; margins of single {percent(level)} "
            return Table(columns, note=note + f"intervals, {NOISE_ONLY}")
        asked = replace(self.plan.query, n=self.plan.n)
        value, error = np.concatenate(list(self)).ravel(), np.tile(self.stderr, self.plan.n)
        width = critical(level)
        listed = named(asked) | {
            "value": value,
            "stderr": error,
            "low": value - width * error,
            "high": value + width * error,
        }
        return Table(listed, note=f"single {percent(level)} intervals, {NOISE_ONLY}")

    def files(self, folder: Path) -> None:
        """Write the answers, a Parquet file for each chunk: which are there is told by the plan."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._written.clear()
        for number in range(self.plan.chunks):
            columns = dict(zip(self.plan.columns, self.rows(number).T, strict=True))
            table = pa.table({name: np.ascontiguousarray(c) for name, c in columns.items()})
            path = part(folder, number)
            # Noise has no pattern to be coded by, and little to be compressed.
            pq.write_table(table, path, compression="NONE", use_dictionary=False)
            self._written.append(_digest(path))

    def told(self) -> dict[str, Any]:
        """Return mechanism, accuracy, design and rows, for the provenance."""
        plan = self.plan
        error = np.sqrt(plan.variance)
        return {
            "mechanism": "integer linear measurements of each row with rounded Gaussian noise, "
            "drawn exactly",
            "accuracy": {
                "entries": plan.count,
                "least stderr": float(error.min()),
                "greatest stderr": float(error.max()),
                "columns": dict(zip(plan.columns, error.tolist(), strict=True)),
                "errors are of": NOISE_ONLY,
                "errors are": "exact",
            },
            "design": {
                "shape": plan.few.shape,
                "note": plan.few.note,
                "certificate": plan.few.to_json()["certificate"],
            },
            "rows": {
                "selection": plan.query.selection,
                "query": plan.query.to_json(),
                "rows": plan.n,
                "rows in a file": plan.rows,
                "numbered by": plan.key or "their order",
            },
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that name the files and their digests."""
        stamp = None if self.stamp is None else [self.stamp.number, self.stamp.hash]
        measured = self.kept.measured if isinstance(self.kept, Parts) else self.kept.digests
        return {
            "plan": self.plan.to_json(),
            "values": {"data": list(measured)},
            "files": list(self._written),
            "ledger": stamp,
            "when": self.when,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], folder: Path | None = None) -> RowsRelease:
        """Return the release that ``to_json`` said, whose rows lie beside it."""
        try:
            stamp = content["ledger"]
            return cls(
                RowsPlan.from_json(content["plan"]),
                Parts(folder or Path(), tuple(content["files"]), tuple(content["values"]["data"])),
                None if stamp is None else Stamp(*stamp),
                str(content["when"]),
            )
        except (KeyError, TypeError):
            raise InvalidInput("the release lacks a part: restore it from a copy.") from None

    def __repr__(self) -> str:
        paid = "unrecorded" if self.stamp is None else f"ledger entry {self.stamp.number}"
        shape = f"{self.plan.n} x {self.plan.width}"
        return f"RowsRelease({self.plan.query.kind}, {shape}, {self.plan.cost!r}, {paid})"


def part(folder: Path, number: int) -> Path:
    """Return the file of a chunk's answers."""
    return folder / f"answers-{number:06d}.parquet"


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
