"""What may be published of a matrix query: measured integers, the answer, its errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import Floats, frozen
from ..archive import digest_of, pack, raw, unpack, write_whole
from ..errors import InvalidInput
from ..strategies.exact import Integers, integers, magnitude
from .intervals import NOISE_ONLY, critical, percent
from .matrixplan import MatrixPlan, named
from .planned import Released, Stamp
from .processed import (
    Components,
    Processed,
    correlation,
    decomposed,
    nearest_psd,
    processed,
    square,
)
from .release import INTERVAL
from .simulation import simulate_spread
from .table import Table

# Answers of more entries are not listed one a line, which takes a hundred bytes each, but kept as
# numpy keeps matrices.
LISTED = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class MatrixRelease(Released):
    """A measurement of a matrix query that was paid for, and the answer that follows from it.

    Attributes
    ----------
    plan
        What was asked, and the strategy as it was executed; without any rows.
    values : integers, shape (k,)
        y, the only thing that came out of the data.
    stamp
        The ledger entry that paid, or None for an unrecorded release.
    when
        When it was paid for: UTC, ISO 8601.

    Everything here may be published: it is post-processing of y.
    """

    kind = "matrix release"

    plan: MatrixPlan
    values: Integers
    stamp: Stamp | None
    when: str

    def __post_init__(self) -> None:
        values = integers("the measured values", self.values)
        if values.shape != (self.plan.strategy.shape[0],):
            raise InvalidInput(
                f"the plan measures {self.plan.strategy.shape[0]} values, got {values.shape}."
            )
        if len(values) <= LISTED:
            # Python integers: how a file is laid out must not depend on how large they are.
            values = np.array([int(v) for v in values], dtype=object)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @cached_property
    def coordinates(self) -> Floats:
        """What was measured, in its own units, (size,): counts, sums and products, say; unbiased.

        In the order of ``plan.query.parts``; errors are ``np.sqrt(plan.coordinates)``.
        """
        return frozen(self.plan.query.step * self.plan.strategy.rebuild(self.values))

    def part(self, name: str) -> Floats:
        """Return one part of the coordinates: ``"count"``, ``"sums"``, ``"products"``."""
        at = 0
        for part, size in self.plan.query.parts.items():
            if part == name:
                return self.coordinates[at : at + size]
            at += size
        known = ", ".join(self.plan.query.parts)
        raise InvalidInput(f"no part of this release is called {name!r}: there are {known}.")

    @cached_property
    def answer(self) -> Floats:
        """The answer, in its own shape: unbiased where the query is linear."""
        return frozen(np.asarray(self.plan.query.answer(self.coordinates)))

    @cached_property
    def stderr(self) -> Floats:
        """The standard error of each entry of the answer, in its shape: of the noise only.

        Exact for linear queries; for others simulated from what was measured, and so no secret.
        """
        if self.plan.query.linear:
            return frozen(self.plan.stderr)
        return frozen(simulate_spread(self, self.plan.query.answer))

    def table(self, *, level: float = 0.95) -> Table:
        """Return every different entry with its standard error and interval.

        Parameters
        ----------
        level
            Chance that an interval holds the true answer, given the bounds and grid.
        """
        asked, width = self.plan.query, critical(level)
        value, error = self.answer[asked.entries], self.stderr[asked.entries]
        notes = f"single {percent(level)} intervals, {NOISE_ONLY}"
        if not asked.linear:
            notes += "; errors simulated from the release"
        columns = named(asked) | {
            "value": value,
            "stderr": error,
            "low": value - width * error,
            "high": value + width * error,
        }
        return Table(columns, note=notes)

    def nearest_psd(self) -> Processed:
        """Return the nearest positive semi-definite matrix, labelled, with its simulated spread."""
        square(self)
        return processed(self, nearest_psd, "nearest positive semi-definite matrix")

    def symmetric(self) -> Processed:
        """Return (M + M^T) / 2 of a square answer, labelled, with its simulated spread."""
        square(self)
        return processed(self, lambda M: (M + M.T) / 2, "symmetric part")

    def correlation(self) -> Processed:
        """Return correlations, from the nearest positive semi-definite matrix; labelled."""
        square(self)
        return processed(self, correlation, "correlations")

    def components(self, k: int | None = None) -> Components:
        """Return the ``k`` greatest eigenvalues and their directions, with simulated spreads."""
        return decomposed(self, k)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the measured integers."""
        return _digest(self.values)

    def settle(self) -> None:
        """Rebuild the answer and its errors."""
        _ = self.answer
        _ = self.stderr

    def files(self, folder: Path) -> None:
        """Write every entry to answers.csv and answers.parquet; of large answers, answer.npy."""
        if self.plan.count > LISTED:
            np.save(folder / "answer.npy", self.answer, allow_pickle=False)
            if self._wide:
                write_whole(folder / "values.int64", raw(self.values))
            return
        table = self.table()
        # A CSV file keeps no note: what its intervals are of goes with every one of them.
        table = Table({**table.data, "interval": (INTERVAL,) * len(table)}, note=table.note)
        table.to_csv(folder / "answers.csv")
        table.to_parquet(folder / "answers.parquet")

    @property
    def _wide(self) -> bool:
        """Whether the integers lie in a file of their own."""
        return self.plan.count > LISTED and self.values.dtype == np.int64

    def told(self) -> dict[str, Any]:
        """Return mechanism, accuracy, design and rows, for the provenance."""
        plan, asked = self.plan, self.plan.query
        error = np.sqrt(plan.variance) if asked.linear else self.stderr[asked.entries]
        return {
            "mechanism": "integer linear measurements with rounded Gaussian noise, drawn exactly",
            "accuracy": {
                "entries": plan.count,
                "least stderr": float(error.min()),
                "greatest stderr": float(error.max()),
                "targets met up to a factor of variance": (None if plan.target is None else plan.k),
                "errors are of": NOISE_ONLY,
                "errors are": "exact" if asked.linear else "simulated from the release",
                "intervals": f"single {percent(0.95)} intervals, {NOISE_ONLY}",
            },
            "design": {
                "shape": plan.shape,
                "note": plan.note,
                "certificate": plan.to_json()["certificate"],
            },
            "rows": {"selection": asked.selection, "query": asked.to_json()},
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values from which the release can be made again."""
        stamp = None if self.stamp is None else [self.stamp.number, self.stamp.hash]
        values = {"file": "values.int64", "sha256": self.fingerprint}
        return {
            "plan": self.plan.to_json(),
            "values": values if self._wide else pack(self.values),
            "ledger": stamp,
            "when": self.when,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], folder: Path | None = None) -> MatrixRelease:
        """Return the release that ``to_json`` said; large ones have integers beside it."""
        try:
            stamp, values = content["ledger"], content["values"]
            return MatrixRelease(
                MatrixPlan.from_json(content["plan"]),
                _beside(values, folder) if "file" in values else unpack(values),
                None if stamp is None else Stamp(*stamp),
                str(content["when"]),
            )
        except (KeyError, TypeError):
            raise InvalidInput("the release lacks a part: restore it from a copy.") from None

    def __repr__(self) -> str:
        paid = "unrecorded" if self.stamp is None else f"ledger entry {self.stamp.number}"
        shape = " x ".join(map(str, self.plan.query.shape))
        return f"MatrixRelease({self.plan.query.kind}, {shape}, {self.plan.cost!r}, {paid})"


def _digest(values: Integers) -> str:
    """Return the SHA-256 of integers, whatever type holds them."""
    if magnitude(values).bit_length() < 63:
        return digest_of(values.astype(np.int64))
    from ..archive import digest

    return digest(pack(values))


def _beside(values: dict[str, Any], folder: Path | None) -> Integers:
    """Return the integers of a large release, from the file beside it."""
    try:
        found = np.fromfile((folder or Path()) / "values.int64", dtype="<i8")
    except OSError:
        found = np.zeros(0, dtype="<i8")
    whole = found.astype(np.int64, copy=False)
    if digest_of(whole) != values["sha256"]:
        raise InvalidInput(
            "values.int64 of this release was altered since it was written, or is gone: restore "
            "it from a copy."
        )
    return whole
