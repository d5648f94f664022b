"""What may be published: measured integers, and everything that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats, floats, frozen, real
from ..archive import digest, pack, unpack
from ..errors import InvalidInput, NoiseshapeError, NotSpanned
from ..strategies.exact import Integers, integers
from ..tables import Layout, Workload
from .intervals import (
    DISPLAY,
    NOISE_ONLY,
    RELIABILITY,
    Method,
    RatioEstimate,
    critical,
    display,
    percent,
    ratio,
    reliability,
    simultaneous,
)
from .plan import Plan
from .planned import Released, Stamp
from .table import Table

if TYPE_CHECKING:
    from .consistency import Consistent

INTERVAL = f"95 %; {NOISE_ONLY}"

# A question in words: the name of a query (or of one label of it) with its coefficient.
Combination = Mapping[str | tuple[str, str], float]


@dataclass(frozen=True, eq=False)
class Answer:
    """A derived answer with its exact standard error, from the full covariance.

    The interval is normal, and covers the noise only: not sampling or non-response error.
    """

    value: float
    stderr: float
    low: float
    high: float
    level: float = 0.95
    note: str = NOISE_ONLY

    def __str__(self) -> str:
        digits = max(0, 1 - int(np.floor(np.log10(self.stderr)))) if self.stderr > 0 else 6
        value, error, low, high = (
            f"{v:,.{digits}f}" for v in (self.value, self.stderr, self.low, self.high)
        )
        return f"{value} +- {error} ({percent(self.level)} interval {low} to {high}; {self.note})"


@dataclass(frozen=True, eq=False, repr=False)
class Release(Released):
    """A measurement that was paid for, and the answers that follow from it.

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

    kind = "release"

    plan: Plan
    values: Integers
    stamp: Stamp | None
    when: str

    def __post_init__(self) -> None:
        values = integers("the measured values", self.values)
        if values.shape != (self.plan.strategy.shape[0],):
            raise InvalidInput(
                f"the plan measures {self.plan.strategy.shape[0]} values, got {values.shape}."
            )
        # Python integers always: how a file is laid out must not depend on how large they are.
        values = np.array([int(v) for v in values], dtype=object)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @cached_property
    def answers(self) -> Floats:
        """The answers to the plan's queries, shape (m,): unbiased."""
        return frozen(self.plan.strategy.rebuild(self.values))

    @property
    def stderr(self) -> Floats:
        """The standard error of each answer, shape (m,): of the noise only."""
        return np.sqrt(self.plan.strategy.variance)

    def covariance(self) -> Floats:
        """Return the covariance of the answers, shape (m, m), of what was executed."""
        return self.plan.strategy.covariance()

    def table(
        self,
        *,
        level: float = 0.95,
        together: bool = False,
        rounded: bool = False,
        mended: Consistent | None = None,
    ) -> Table:
        """Return every answer with its standard error and interval.

        Parameters
        ----------
        level
            Chance that an interval holds the true answer.
        together
            Widen the intervals so that all of them hold at once with that chance.
        rounded
            Round for display to the digits that the error supports, and flag reliability:
            post-processing, so labelled in the column names.
        mended
            What ``consistent`` returned: its answers beside the unbiased ones, and which of them
            moved, so that the interval is no longer about them.
        """
        width = simultaneous(level, self.plan.strategy) if together else critical(level)
        value, error = self.answers, self.stderr
        kind = "simultaneous" if together else "single"
        notes = [f"{kind} {percent(level)} intervals, {NOISE_ONLY}"]
        columns: dict[str, Any] = {
            "query": self.plan.queries.names,
            "cell": self.plan.queries.labels,
            "value": value,
            "stderr": error,
            "low": value - width * error,
            "high": value + width * error,
        }
        if rounded:
            columns["value (rounded for display)"] = display(value, error)
            columns["reliability"] = reliability(value, error)
            notes += [DISPLAY, RELIABILITY]
        if mended is not None:
            columns["consistent"] = mended.answers
            columns["interval changed"] = mended.changed
            notes.append(mended.label)
        return Table(columns, note="; ".join(notes))

    @overload
    def answer(self, question: ArrayLike | Combination | str, *, level: float = 0.95) -> Answer: ...

    @overload
    def answer(self, question: str, *, by: str | Sequence[str], level: float = 0.95) -> Table: ...

    def answer(
        self,
        question: ArrayLike | Combination | str,
        *,
        by: str | Sequence[str] = (),
        level: float = 0.95,
    ) -> Answer | Table:
        """Return a derived answer, with its exact standard error.

        Parameters
        ----------
        question : a condition, a mapping, or shape (d,)
            How many rows meet a condition, such as ``"age < 30"``; a linear combination of
            answers, by the name of their query (all its labels) or by (name, label); or of the
            cells.
        by
            With a condition: columns or recodes to split it by, for a table of answers.

        Raises
        ------
        NotSpanned
            Where what was measured does not tell; ``measurable`` gives the part that it does.
        """
        if isinstance(question, str) and by:
            labels, rows = self._where(question, by)
            asking = self._asking(rows)
            values, errors = asking.rebuild(self.values), np.sqrt(asking.variance)
            width = critical(level)
            note = f"single {percent(level)} intervals, {NOISE_ONLY}"
            return Table(
                {
                    "cell": tuple(labels),
                    "value": values,
                    "stderr": errors,
                    "low": values - width * errors,
                    "high": values + width * errors,
                },
                caption=question,
                note=note,
            )
        if by:
            raise InvalidInput("only a condition is split by columns: give one, as text.")
        w = self._row(question)
        asking = self._asking(w[None, :])
        value = float(asking.rebuild(self.values)[0])
        error = float(np.sqrt(asking.variance[0]))
        width = critical(level) * error
        return Answer(value, error, value - width, value + width, level)

    def mean(
        self,
        column: str,
        *,
        by: str | Sequence[str] = (),
        where: str | None = None,
        level: float = 0.95,
    ) -> Table:
        """Return the mean of a column that was summed, over rows with a declared value of it.

        The intervals are by Fieller's theorem, from the covariance of the sum and the count.
        """
        work = Workload(self._layout.schema)
        sums = work.question(where, by=by, summed=column)
        held = f"`{column}` is not missing and `{column}` is not other"
        counts = work.question(f"({where}) and {held}" if where else held, by=by)
        rows = [self._layout.rows(q) for q in (sums, counts)]
        try:
            found = [self.ratio(a, b, level=level) for a, b in zip(*rows, strict=True)]
        except NotSpanned:
            raise NotSpanned(
                f"a mean of {column} needs its sum and the count of rows that have one, in the "
                f"detail of this question, and not both were measured: ask in the plan for "
                f"sum({column!r}) and for where('{column} is not missing'); with "
                "missing='drop' in the schema, a total is that count."
            ) from None
        return Table(
            {
                "cell": tuple(sums.labels()),
                "mean": np.array([r.value for r in found]),
                "low": np.array([r.low for r in found]),
                "high": np.array([r.high for r in found]),
                "interval": tuple(r.kind for r in found),
            },
            caption=f"mean of {column}",
            note=f"{percent(level)} intervals by Fieller's theorem, {NOISE_ONLY}",
        )

    @property
    def _layout(self) -> Layout:
        layout = self.plan.queries.layout
        if layout is None:
            raise InvalidInput(
                "this release is of plain cells, not of a declared table: ask by the name of a "
                "query as a mapping, such as {'total': 1}, or by a row over the cells."
            )
        return layout

    def _where(self, condition: str, by: str | Sequence[str] = ()) -> tuple[Sequence[str], Floats]:
        question = Workload(self._layout.schema).question(condition, by=by)
        return question.labels(), self._layout.rows(question)

    def measurable(self, question: ArrayLike | Combination) -> Floats:
        """Return the nearest linear combination of the cells that was measured, shape (d,)."""
        return self.plan.strategy.measurable(self._row(question)[None, :])[0]

    def ratio(
        self,
        numerator: ArrayLike | Combination,
        denominator: ArrayLike | Combination,
        *,
        level: float = 0.95,
        method: Method = "fieller",
    ) -> RatioEstimate:
        """Return a proportion or mean, with an interval by Fieller's theorem, or simulated."""
        asking = self._asking(np.vstack([self._row(numerator), self._row(denominator)]))
        a, b = asking.rebuild(self.values).tolist()
        covariance = asking.covariance()
        moments = covariance[0, 0], covariance[1, 1], covariance[0, 1]
        return ratio(a, b, *moments, level, method=method)

    def consistent(
        self,
        *,
        nonnegative: bool = True,
        integer: bool = False,
        fixed: Sequence[tuple[ArrayLike | Combination, float]] = (),
    ) -> Consistent:
        """Return answers that are non-negative, whole and additive: labelled post-processing.

        Parameters
        ----------
        nonnegative, integer
            What every cell is known to be.
        fixed
            Pairs of a question, as ``answer`` takes it, and the value that it is publicly known
            to have: typed by the caller, never computed from the data.

        See :func:`noiseshape.release.consistency.consistent` for what is guaranteed.
        """
        from .consistency import consistent

        try:
            known = [(self._row(question), value) for question, value in fixed]
        except (TypeError, ValueError) as error:
            if isinstance(error, NoiseshapeError):
                raise
            raise InvalidInput("fixed must be pairs of a question and its known value.") from None
        return consistent(
            self.plan.strategy,
            self.values,
            nonnegative=nonnegative,
            integer=integer,
            fixed=known or None,
        )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the measured integers."""
        return digest(pack(self.values))

    def settle(self) -> None:
        """Rebuild the answers."""
        _ = self.answers

    def files(self, folder: Path) -> None:
        """Write every answer with its error and interval: answers.csv, answers.parquet."""
        table = self.table()
        # A CSV file keeps no note: what its intervals are of goes with every one of them.
        table = Table({**table.data, "interval": (INTERVAL,) * len(table)}, note=table.note)
        table.to_csv(folder / "answers.csv")
        table.to_parquet(folder / "answers.parquet")

    def told(self) -> dict[str, Any]:
        """Return mechanism, accuracy, design and rows, for the provenance."""
        plan, asked = self.plan, self.plan.queries
        return {
            "mechanism": "integer linear measurements with rounded Gaussian noise, drawn exactly",
            "accuracy": {
                "errors": [
                    {
                        "query": query.name,
                        "answers": len(query.labels),
                        "greatest target stderr": float(np.sqrt(query.variance.max())),
                        "greatest stderr": float(achieved.max() ** 0.5),
                        "greatest variance / target": float((achieved / query.variance).max()),
                    }
                    for query, achieved in zip(asked.queries, self._variances(), strict=True)
                ],
                "targets met up to a factor of variance": plan.k,
                "errors are of": NOISE_ONLY,
                "intervals": self.table().note,
            },
            "design": {
                "shape": plan.shape,
                "refined": plan.refined,
                "workload moved by": plan.moved,
                "certificate": plan.to_json()["certificate"],
            },
            "rows": {"selection": asked.selection} | self._rows(),
        }

    def _rows(self) -> dict[str, Any]:
        """Return which rows are counted, by which policies; never how many a policy met."""
        asked = self.plan.queries
        if asked.layout is None:
            return {}
        schema, people = asked.layout.schema, asked.people
        said: dict[str, Any] = {"table": asked.table, "columns": schema.policies()}
        if schema.excluded:
            said["impossible, and left out"] = list(schema.excluded)
        if people.unit != "rows":
            said["of each person"] = (
                f"at most {people.max_rows} rows of one {people.unit}, chosen by a hash of that "
                f"person's own values; rows without {people.unit} are left out"
            )
        return said

    def _variances(self) -> list[Floats]:
        ends = np.cumsum([len(query.labels) for query in self.plan.queries.queries])
        return np.split(self.plan.strategy.variance, ends[:-1])

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values from which the release can be made again."""
        stamp = None if self.stamp is None else [self.stamp.number, self.stamp.hash]
        return {
            "plan": self.plan.to_json(),
            "values": pack(self.values),
            "ledger": stamp,
            "when": self.when,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], folder: Path | None = None) -> Release:  # noqa: ARG003  # all is in the content
        """Return the release that ``to_json`` said."""
        try:
            stamp = content["ledger"]
            return Release(
                Plan.from_json(content["plan"]),
                unpack(content["values"]),
                None if stamp is None else Stamp(*stamp),
                str(content["when"]),
            )
        except (KeyError, TypeError):
            raise InvalidInput("the release lacks a part: restore it from a copy.") from None

    def _row(self, question: ArrayLike | Combination) -> Floats:
        asked = self.plan.queries
        if isinstance(question, str):
            if question in asked.names:
                raise InvalidInput(f"ask by name as a mapping: {{{question!r}: 1}}.")
            return self._where(question)[1][0]
        if not isinstance(question, Mapping):
            w = floats("the question", question)
            if w.shape != (len(asked.cells),):
                raise InvalidInput(
                    f"the question must have one entry for each of {len(asked.cells)} cells, "
                    f"got shape {w.shape}."
                )
            return w
        total = np.zeros(len(asked.cells))
        names, labels = np.array(asked.names), np.array(asked.labels)
        for key, coefficient in question.items():
            name, label = key if isinstance(key, tuple) else (key, None)
            chosen = (names == name) & ((labels == label) if label is not None else True)
            if not chosen.any():
                known = ", ".join(repr(query.name) for query in asked.queries[:8])
                raise InvalidInput(
                    f"no answer is named {key!r}: the queries are {known}; their labels are in the "
                    "table."
                )
            total += real(f"the coefficient of {key!r}", coefficient) * (
                asked.matrix[chosen].sum(axis=0)
            )
        if not question:
            raise InvalidInput("the question is empty: name at least one query.")
        return total

    def _asking(self, rows: Floats) -> Any:
        try:
            return self.plan.strategy.asking(rows)
        except NotSpanned:
            inside = self.plan.strategy.measurable(rows)
            outside = np.abs(rows - inside).max(axis=0)
            worst = np.argsort(-outside.round(9), kind="stable")[:3]
            cells = ", ".join(repr(self.plan.queries.cells[i]) for i in worst if outside[i] > 1e-9)
            raise NotSpanned(
                "the question is not answered by what was measured: it tells apart cells that "
                f"the measurement does not, {cells} first. Of it, {self._in_words(inside[0])} "
                "measured; measurable(question) gives that part, to ask for instead."
            ) from None

    def _in_words(self, row: Floats) -> str:
        """Return a combination of cells as "1 x 'a' + 0.5 x 'b' was", its greatest parts."""
        most = np.argsort(-np.abs(row).round(9), kind="stable")  # rounding must not order
        parts = [i for i in most if abs(row[i]) > 1e-9]
        if not parts:
            return "nothing was"
        said = " + ".join(f"{row[i]:.4g} x {self.plan.queries.cells[i]!r}" for i in parts[:3])
        return said + (f" and so on over {len(parts)} cells was" if len(parts) > 3 else " was")

    def __repr__(self) -> str:
        paid = "unrecorded" if self.stamp is None else f"ledger entry {self.stamp.number}"
        return f"Release({len(self.plan.queries.names)} answers, {self.plan.cost!r}, {paid})"
