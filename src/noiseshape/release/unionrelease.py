"""What may be published of a union: both parts, and answers from both, each by its precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from .._checks import Floats
from ..archive import pack, unpack
from ..errors import InvalidInput, NotSpanned
from ..strategies.exact import Integers, integers
from .intervals import NOISE_ONLY, critical, percent
from .marginalsplan import LISTED
from .marginalsrelease import MarginalsRelease
from .planned import Released, Stamp
from .release import INTERVAL, Answer, Combination, Release
from .table import Table
from .unionplan import UnionPlan


@dataclass(frozen=True, eq=False, repr=False)
class UnionRelease(Released):
    """A measurement of a union that was paid for, and the answers that follow from it.

    Attributes
    ----------
    plan
        What was asked, and both strategies as they were executed.
    values : integers, shape (k,)
        y of the marginals, then of the cells: the only thing that came out of the data.
    stamp
        The ledger entry that paid, or None for an unrecorded release.
    when
        When it was paid for: UTC, ISO 8601.
    """

    kind = "union release"

    plan: UnionPlan
    values: Integers
    stamp: Stamp | None
    when: str

    def __post_init__(self) -> None:
        values = integers("the measured values", self.values)
        rows = self.plan.marginals.strategy.shape[0] + self.plan.cells.strategy.shape[0]
        if values.shape != (rows,):
            raise InvalidInput(f"the plan measures {rows} values, got {values.shape}.")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @cached_property
    def marginals(self) -> MarginalsRelease:
        """The part that was measured by marginals."""
        k = self.plan.marginals.strategy.shape[0]
        return MarginalsRelease(self.plan.marginals, self.values[:k].copy(), self.stamp, self.when)

    @cached_property
    def cells(self) -> Release:
        """The part that was measured over cells."""
        k = self.plan.marginals.strategy.shape[0]
        return Release(self.plan.cells, self.values[k:].copy(), self.stamp, self.when)

    @cached_property
    def over_cells(self) -> Floats:
        """The answers to the queries over cells, from both parts, in their order."""
        strategy, plan = self.plan.marginals.strategy, self.plan
        parts = []
        for each, query in zip(plan.shared, plan.cells.queries.queries, strict=True):
            if each is None:
                parts.append(np.zeros(len(query.labels)))
            else:
                parts.append(each.published(strategy.answers(each.ask, self.marginals._rows)))
        mine = plan.variances / plan.cells.strategy.variance
        return np.asarray(mine * self.cells.answers + (1 - mine) * np.concatenate(parts))

    def table(self, *, level: float = 0.95) -> Table:
        """Return every answer with its standard error and interval, in the order of the queries.

        Where there are too many marginals' answers to be listed, one line a query, and its errors.
        """
        note = f"single {percent(level)} intervals, {NOISE_ONLY}"
        if self.plan.count > LISTED:
            said = f"{self.plan.count:,} answers are in the published files"
            return Table(dict(self.plan.summary().data), note=f"{said}; {note}")
        rows: dict[str, list[tuple[str, float, float]]] = {}
        for row in self.marginals.table(level=level).rows():
            rows.setdefault(row["query"], []).append((row["cell"], row["value"], row["stderr"]))
        asked = self.plan.cells.queries
        errors = np.sqrt(self.plan.variances)
        for name, label, value, error in zip(
            asked.names, asked.labels, self.over_cells.tolist(), errors.tolist(), strict=True
        ):
            rows.setdefault(name, []).append((label, value, error))
        flat = [(name, *each) for name in self.plan.names for each in rows[name]]
        value, error = (np.array([each[i] for each in flat]) for i in (2, 3))
        width = critical(level) * error
        columns: dict[str, Any] = {
            "query": tuple(each[0] for each in flat),
            "cell": tuple(each[1] for each in flat),
            "value": value,
            "stderr": error,
            "low": value - width,
            "high": value + width,
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
        """Return a derived answer with its exact error, from whichever part tells it, or from both.

        Parameters and refusals are those of either part's own ``answer``; a mapping names queries
        of one part.
        """
        if isinstance(question, Mapping):
            names = {key[0] if isinstance(key, tuple) else key for key in question}
            part = self.marginals if names <= set(self.plan.marginals._names) else self.cells
            return part.answer(question, level=level)
        found: list[Any] = []
        refused: NotSpanned | None = None
        for part in (self.marginals, self.cells):
            try:
                if by:
                    found.append(part.answer(question, by=by, level=level))
                else:
                    found.append(part.answer(question, level=level))
            except NotSpanned as cut:
                refused = cut
        if not found:
            assert refused is not None
            raise refused
        if len(found) == 1:
            return found[0]
        one, other = found
        if isinstance(one, Answer):
            value, error = _both(one.value, one.stderr, other.value, other.stderr)
            width = critical(level) * float(error)
            return Answer(float(value), float(error), float(value) - width,
                          float(value) + width, level)  # fmt: skip
        value, error = _both(one["value"], one["stderr"], other["value"], other["stderr"])
        width = critical(level) * error
        columns = {"cell": one["cell"], "value": value, "stderr": error, "low": value - width,
                   "high": value + width}  # fmt: skip
        return Table(columns, caption=one.caption, note=one.note)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the measured integers: both parts'."""
        from ..archive import digest

        return digest({"union": [self.marginals.fingerprint, self.cells.fingerprint]})

    def settle(self) -> None:
        """Rebuild the answers."""
        self.marginals.settle()
        _ = self.over_cells

    def files(self, folder: Path) -> None:
        """Write every answer; of very many, the marginals' to a folder of Parquet files."""
        if self.plan.count <= LISTED:
            table = self.table()
            # A CSV file keeps no note: what its intervals are of goes with every one of them.
            table = Table({**table.data, "interval": (INTERVAL,) * len(table)}, note=table.note)
            table.to_csv(folder / "answers.csv")
            table.to_parquet(folder / "answers.parquet")
            return
        self.marginals.files(folder)
        asked, errors = self.plan.cells.queries, np.sqrt(self.plan.variances)
        width = critical(0.95) * errors
        Table(
            {
                "query": asked.names,
                "cell": asked.labels,
                "value": self.over_cells,
                "stderr": errors,
                "low": self.over_cells - width,
                "high": self.over_cells + width,
            },
            note=f"single {percent(0.95)} intervals, {NOISE_ONLY}",
        ).to_parquet(folder / "answers-over-cells.parquet")

    def told(self) -> dict[str, Any]:
        """Return mechanism, accuracy, design and rows, for the provenance."""
        said = self.marginals.told()
        plan = self.plan
        return {
            "mechanism": said["mechanism"],
            "accuracy": {
                "errors": list(plan.summary().rows()),
                "targets met up to a factor of variance": plan.k,
                "errors are of": NOISE_ONLY,
                "intervals": f"single {percent(0.95)} intervals, {NOISE_ONLY}",
            },
            "design": {
                "shape": "union",
                "why": plan.why,
                "variances of the marginals over what their targets allow": plan.share,
                "certificate": plan.to_json()["certificate"],
            },
            "rows": said["rows"],
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values from which the release can be made again."""
        stamp = None if self.stamp is None else [self.stamp.number, self.stamp.hash]
        values = self.values.astype(object) if len(self.values) <= LISTED else self.values
        return {
            "plan": self.plan.to_json(),
            "values": pack(values),
            "ledger": stamp,
            "when": self.when,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], folder: Path | None = None) -> UnionRelease:  # noqa: ARG003
        """Return the release that ``to_json`` said."""
        try:
            stamp = content["ledger"]
            return UnionRelease(
                UnionPlan.from_json(content["plan"]),
                unpack(content["values"]),
                None if stamp is None else Stamp(*stamp),
                str(content["when"]),
            )
        except (KeyError, TypeError):
            raise InvalidInput("the release lacks a part: restore it from a copy.") from None

    def __repr__(self) -> str:
        paid = "unrecorded" if self.stamp is None else f"ledger entry {self.stamp.number}"
        return f"UnionRelease({self.plan.count:,} answers, {self.plan.cost!r}, {paid})"


def _both(a: Any, sa: Any, b: Any, sb: Any) -> tuple[Any, Any]:
    """Return two independent answers as one, each by its precision, and its error."""
    va, vb = np.square(sa), np.square(sb)
    total = va + vb
    share = np.where(total > 0, vb / np.where(total > 0, total, 1.0), 0.5)
    return share * a + (1 - share) * b, np.sqrt(share * va)
