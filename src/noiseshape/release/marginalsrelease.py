"""What may be published of marginals: measured residuals, every cell, and what follows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .._checks import Floats, frozen, real
from ..archive import digest, digest_of, pack, raw, unpack, write_whole
from ..errors import InvalidInput, TooLarge
from ..strategies.exact import Integers, integers
from ..tables import Workload
from ..tables.asks import Ask, Named
from .intervals import NOISE_ONLY, critical, percent
from .marginalsplan import LISTED, SELECTION, MarginalsPlan
from .planned import Released, Stamp
from .release import INTERVAL, Answer, Combination
from .table import Table

if TYPE_CHECKING:
    import pyarrow as pa

# Answers in one row group of a Parquet file, and in one file: told by the plan alone.
GROUP = 1 << 20
FILE = 1 << 24

# Cells of residuals that are kept between one marginal and the next, eight bytes each.
_KEPT = 1 << 25


@dataclass(frozen=True, eq=False, repr=False)
class MarginalsRelease(Released):
    """A measurement of marginals that was paid for, and the answers that follow from it.

    Attributes
    ----------
    plan
        What was asked, and the strategy as it was executed.
    values : integers, shape (k,)
        y, the only thing that came out of the data.
    stamp
        The ledger entry that paid, or None for an unrecorded release.
    when
        When it was paid for: UTC, ISO 8601.

    Everything here may be published: it is post-processing of y.
    """

    kind = "marginals release"

    plan: MarginalsPlan
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

    def _rows(self, number: int) -> Integers:
        starts = self.plan.strategy.starts
        return self.values[starts[number] : starts[number + 1]]

    def query(self, name: str) -> Floats:
        """Return the answers to one query, in the order of its labels: unbiased."""
        named = self.plan.named(name)
        return frozen(named.published(self.plan.strategy.answers(named.ask, self._rows)))

    def _each(self) -> Iterator[tuple[Named, Floats, Floats]]:
        """Yield every query with its answers and their variances, in order."""
        strategy = self.plan.strategy
        tables: dict[int, Any] = {}
        held = 0
        for named in self.plan.asked.named:
            before = set(tables)
            answers = strategy.answers(named.ask, self._rows, tables)
            own = strategy.lattice.number([i for i in named.ask.members if i not in strategy.whole])
            for number in set(tables) - before:
                size = tables[number][0].size
                # Of a marginal's own residual there is little chance to be asked again.
                if (number == own and size > 4096) or held + size > _KEPT:
                    del tables[number]
                else:
                    held += size
            variance = strategy.variances(named.ask)
            yield named, named.published(answers), named.published(variance)

    def table(self, query: str | None = None, *, level: float = 0.95) -> Table:
        """Return every answer with its standard error and interval.

        Parameters
        ----------
        query
            One query by its name; by default all of them, if they are at most 200,000.
        level
            Chance that an interval holds the true answer.
        """
        note = f"single {percent(level)} intervals, {NOISE_ONLY}"
        if query is not None:
            named = self.plan.named(query)
            if len(named.variance) > LISTED:
                raise TooLarge(
                    f"{query!r} has {len(named.variance):,} answers, and at most {LISTED:,} are "
                    "listed in a table: read them in the published Parquet files, or ask for some "
                    "with answer(condition, by=...)."
                )
            variance = self.plan.variance(query)
            parts = [(named, self.query(query), variance)]
        elif self.plan.count > LISTED:
            said = f"{self.plan.count:,} answers are in the published files; table(query) lists one"
            return Table(dict(self.plan.summary().data), note=f"{said}; {note}")
        else:
            parts = list(self._each())
        width = critical(level)
        value = np.concatenate([answers for _, answers, _ in parts])
        error = np.sqrt(np.concatenate([variance for _, _, variance in parts]))
        columns: dict[str, Any] = {
            "query": tuple(named.name for named, answers, _ in parts for _ in answers),
            "cell": tuple(text for named, _, _ in parts for text in _cells(named).to_pylist()),
            "value": value,
            "stderr": error,
            "low": value - width * error,
            "high": value + width * error,
        }
        return Table(columns, note=note)

    @overload
    def answer(self, question: Combination | str, *, level: float = 0.95) -> Answer: ...

    @overload
    def answer(self, question: str, *, by: str | Sequence[str], level: float = 0.95) -> Table: ...

    def answer(
        self,
        question: Combination | str,
        *,
        by: str | Sequence[str] = (),
        level: float = 0.95,
    ) -> Answer | Table:
        """Return a derived answer, with its exact standard error.

        Parameters
        ----------
        question : a condition, or a mapping
            How many rows meet a condition, such as ``"age < 30"``; or a linear combination of
            answers, by the name of their query (all its labels) or by (name, label).
        by
            With a condition: columns or recodes to split it by, for a table of answers.

        Raises
        ------
        NotSpanned
            Where the columns that it needs together were not measured together.
        """
        if isinstance(question, Mapping):
            if by:
                raise InvalidInput("only a condition is split by columns: give one, as text.")
            return self._combined(question, level)
        if not isinstance(question, str):
            raise InvalidInput(
                "a question is a condition, as text, or a mapping from queries to coefficients."
            )
        if question in self.plan._names:
            raise InvalidInput(f"ask by name as a mapping: {{{question!r}: 1}}.")
        asked = self.plan.asked
        told = Workload(asked.schema).question(question, by=by)
        ask, order, numbered = asked.ask(told)
        self.plan.strategy.check_spans(ask)
        named = Named(question, ask, order, told.families, numbered, np.ones(told.rows))
        values = named.published(self.plan.strategy.answers(ask, self._rows))
        errors = np.sqrt(named.published(self.plan.strategy.variances(ask)))
        width = critical(level) * errors
        if not by:
            value, error = float(values[0]), float(errors[0])
            return Answer(value, error, value - width[0], value + width[0], level)
        columns: dict[str, Any] = {
            "cell": tuple(_cells(named).to_pylist()),
            "value": values,
            "stderr": errors,
            "low": values - width,
            "high": values + width,
        }
        note = f"single {percent(level)} intervals, {NOISE_ONLY}"
        return Table(columns, caption=question, note=note)

    def _combined(self, question: Combination, level: float) -> Answer:
        if not question:
            raise InvalidInput("the question is empty: name at least one query.")
        parts: list[tuple[float, Ask]] = []
        for key, coefficient in question.items():
            name, label = key if isinstance(key, tuple) else (key, None)
            times = real(f"the coefficient of {key!r}", coefficient)
            parts.append((times, self.plan.row(name, label)))
        strategy = self.plan.strategy
        value = sum(t * float(strategy.answers(ask, self._rows)[0]) for t, ask in parts)
        variance = sum(
            t * s * float(strategy.covariances(one, other)[0, 0])
            for t, one in parts
            for s, other in parts
        )
        error = math.sqrt(max(variance, 0.0))
        width = critical(level) * error
        return Answer(value, error, value - width, value + width, level)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the measured integers."""
        return digest_of(self.values) if self._wide else digest(pack(self.values))

    def settle(self) -> None:
        """Rebuild the answers, where they are few enough to be kept.

        Of more, each is rebuilt as it is written: Helmert's contrasts always can be, and others
        were rehearsed.
        """
        if self.plan.count <= LISTED:
            for _ in self._each():
                pass

    def files(self, folder: Path) -> None:
        """Write every answer: answers.csv and answers.parquet, or many to answers/*.parquet.

        A file of more than 200,000 answers holds sixteen million at most, a million at a time:
        how many files there are, and what each holds, is told by the plan alone.
        """
        if self._wide:
            write_whole(folder / "values.int64", raw(self.values))
        if self.plan.count <= LISTED:
            table = self.table()
            # A CSV file keeps no note: what its intervals are of goes with every one of them.
            table = Table({**table.data, "interval": (INTERVAL,) * len(table)}, note=table.note)
            table.to_csv(folder / "answers.csv")
            table.to_parquet(folder / "answers.parquet")
            return
        (folder / "answers").mkdir()
        self._stream(folder / "answers")

    def _stream(self, folder: Path) -> None:
        import pyarrow.parquet as pq

        writer: Any = None
        number = written = 0
        try:
            for batch in self._batches():
                if writer is None or written >= FILE:
                    if writer is not None:
                        writer.close()
                    path = folder / f"part-{number:05d}.parquet"
                    writer, number, written = pq.ParquetWriter(path, batch.schema), number + 1, 0
                writer.write_table(batch, row_group_size=GROUP)
                written += batch.num_rows
        finally:
            if writer is not None:
                writer.close()

    def _batches(self) -> Iterator[pa.Table]:
        """Yield the answers as Arrow tables of ``GROUP`` rows or more, whole queries in each."""
        import pyarrow as pa

        width, held, rows = critical(0.95), [], 0
        note = {"note": f"single {percent(0.95)} intervals, {NOISE_ONLY}"}
        for named, answers, variance in self._each():
            error = np.sqrt(variance)
            columns = {
                "query": pa.DictionaryArray.from_arrays(
                    pa.array(np.zeros(len(answers), dtype=np.int32)), pa.array([named.name])
                ).cast(pa.string()),
                "cell": _cells(named),
                "value": pa.array(answers),
                "stderr": pa.array(error),
                "low": pa.array(answers - width * error),
                "high": pa.array(answers + width * error),
            }
            held.append(pa.table(columns, metadata=note))
            rows += len(answers)
            if rows >= GROUP:
                yield pa.concat_tables(held)
                held, rows = [], 0
        if held:
            yield pa.concat_tables(held)

    @property
    def _wide(self) -> bool:
        """Whether the integers lie in a file of their own."""
        return self.values.dtype == np.int64

    def told(self) -> dict[str, Any]:
        """Return mechanism, accuracy, design and rows, for the provenance."""
        plan, asked = self.plan, self.plan.asked
        rows: dict[str, Any] = {
            "selection": SELECTION,
            "table": asked.table,
            "columns": asked.schema.policies(),
        }
        if asked.schema.excluded:
            rows["impossible, and left out"] = list(asked.schema.excluded)
        if asked.people.unit != "rows":
            rows["of each person"] = (
                f"at most {asked.people.max_rows} rows of one {asked.people.unit}, chosen by a "
                f"hash of that person's own values; rows without {asked.people.unit} are left out"
            )
        return {
            "mechanism": "integer linear measurements with rounded Gaussian noise, drawn exactly",
            "accuracy": {
                "errors": list(plan.summary().rows()),
                "targets met up to a factor of variance": plan.k,
                "errors are of": NOISE_ONLY,
                "intervals": f"single {percent(0.95)} intervals, {NOISE_ONLY}",
            },
            "design": {
                "shape": plan.shape,
                "by marginals": plan.why,
                "notes": list(plan.notes),
                "certificate": plan.to_json()["certificate"],
            },
            "rows": rows,
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
    def from_json(cls, content: dict[str, Any], folder: Path | None = None) -> MarginalsRelease:
        """Return the release that ``to_json`` said; large ones have integers beside it."""
        from .matrixrelease import _beside

        try:
            stamp, values = content["ledger"], content["values"]
            return MarginalsRelease(
                MarginalsPlan.from_json(content["plan"]),
                _beside(values, folder) if "file" in values else unpack(values),
                None if stamp is None else Stamp(*stamp),
                str(content["when"]),
            )
        except (KeyError, TypeError):
            raise InvalidInput("the release lacks a part: restore it from a copy.") from None

    def __repr__(self) -> str:
        paid = "unrecorded" if self.stamp is None else f"ledger entry {self.stamp.number}"
        return f"MarginalsRelease({self.plan.count:,} answers, {self.plan.cost!r}, {paid})"


def _cells(named: Named) -> Any:
    """Return the label of every answer as one Arrow array of text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    axes = named.labels()
    if not axes:
        return pa.array([""])
    shape = [len(axis) for axis in axes]
    parts = []
    for i, axis in enumerate(axes):
        place = np.tile(np.repeat(np.arange(shape[i]), math.prod(shape[i + 1 :])),
                        math.prod(shape[:i]))  # fmt: skip
        parts.append(pa.array(axis, pa.string()).take(pa.array(place)))
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ", ")
