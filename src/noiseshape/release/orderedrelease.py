"""What may be published of one ordered column: measured integers, what was asked, any range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from .._checks import Floats, frozen, real
from ..archive import digest, digest_of, pack, raw, unpack, write_whole
from ..errors import InvalidInput, NotSpanned, TooLarge
from ..strategies.exact import Integers, integers
from ..strategies.spanning import Spans
from ..tables.predicate import Leaf, Predicate
from .intervals import NOISE_ONLY, critical, percent
from .marginalsplan import LISTED, SELECTION
from .orderedplan import OrderedPlan
from .planned import Released, Stamp
from .release import INTERVAL, Answer, Combination
from .table import Table


@dataclass(frozen=True, eq=False, repr=False)
class OrderedRelease(Released):
    """A measurement of an ordered column that was paid for, and the answers that follow from it.

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

    kind = "ordered release"

    plan: OrderedPlan
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
    def _cells(self) -> Floats:
        """Sums of the first 0, 1, ..., d cells of each group, (groups, d + 1): of any range."""
        factor, asked = self.plan.factor, self.plan.asked
        prefixes = factor.asking(Spans.prefixes(asked.size))
        found = np.zeros((asked.groups, asked.size + 1))
        rows = self.values.reshape(asked.groups, -1)
        for group, y in enumerate(rows):
            found[group, 1:] = prefixes.rebuild(y)
        return frozen(found)

    @cached_property
    def answers(self) -> Floats:
        """The answer to every range of every group, (groups, m): unbiased."""
        low, high = self.plan.asked.low, self.plan.asked.high
        if self.plan.asked.size <= LISTED:  # each on its own, to a millionth of its error
            found = self.plan.strategy.rebuild(self.values)
            return frozen(found.reshape(self.plan.asked.groups, -1))
        return frozen(self._cells[:, high] - self._cells[:, low])

    def query(self, name: str) -> Floats:
        """Return the answers to one query, in the order of its labels: group by group."""
        place = self.plan.of(self.plan.named(name))
        return frozen(self.answers[:, place].reshape(-1).copy())

    def _columns(self, names: Sequence[str], level: float) -> dict[str, Any]:
        plan, asked = self.plan, self.plan.asked
        groups = asked.group_labels()
        query: list[str] = []
        cell: list[str] = []
        value, error = [], []
        for name in names:
            one = plan.named(name)
            labels = one.labels(asked.schema)
            cell += [", ".join(filter(None, (g, label))) for g in groups for label in labels]
            query += [name] * (len(groups) * len(labels))
            value.append(self.query(name))
            error.append(np.tile(np.sqrt(plan.span_variance[plan.of(one)]), len(groups)))
        values, errors = np.concatenate(value), np.concatenate(error)
        width = critical(level) * errors
        return {
            "query": tuple(query),
            "cell": tuple(cell),
            "value": values,
            "stderr": errors,
            "low": values - width,
            "high": values + width,
        }

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
        names = [q.name for q in self.plan.asked.queries] if query is None else [query]
        size = self.plan.asked.groups * sum(len(self.plan.named(name).low) for name in names)
        if size > LISTED:
            if query is None:
                said = f"{size:,} answers are in the published file; query(name) has one's values"
                return Table(dict(self.plan.summary().data), note=f"{said}; {note}")
            raise TooLarge(
                f"{query!r} has {size:,} answers, and at most {LISTED:,} are listed in a table: "
                "read them with query(name) or in the published Parquet file, or ask for some with "
                "answer(condition)."
            )
        return Table(self._columns(names, level), note=note)

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
            How many rows meet a condition, such as ``"day >= 30 and day < 90"``, on the ordered
            column and those that it is split by; or a linear combination of answers, by the name
            of their query (all its labels) or by (name, label).
        by
            With a condition: the columns that split the plan, all of them in their order, for a
            table.

        Raises
        ------
        NotSpanned
            Where other columns are needed than those that were measured together.
        """
        asked = self.plan.asked
        if isinstance(question, Mapping):
            if by:
                raise InvalidInput("only a condition is split by columns: give one, as text.")
            return self._answered(self._combined(question), level)
        if not isinstance(question, str):
            raise InvalidInput(
                "a question is a condition, as text, or a mapping from queries to coefficients."
            )
        if any(question == query.name for query in asked.queries):
            raise InvalidInput(f"ask by name as a mapping: {{{question!r}: 1}}.")
        met = self._met(asked.schema.condition(question))
        split = (by,) if isinstance(by, str) else tuple(by)
        if not split:
            return self._answered(met, level)
        if split != asked.by:
            raise NotSpanned(
                f"the answers are split by {', '.join(asked.by) or 'no column'}: ask by all of "
                "them in that order, or name one in the condition."
            )
        each = []
        for group in range(asked.groups):
            alone = np.zeros_like(met)
            alone[group] = met[group]
            each.append(self._answered(alone, level))
        columns: dict[str, Any] = {
            "cell": tuple(asked.group_labels()),
            "value": [one.value for one in each],
            "stderr": [one.stderr for one in each],
            "low": [one.low for one in each],
            "high": [one.high for one in each],
        }
        note = f"single {percent(level)} intervals, {NOISE_ONLY}"
        return Table(columns, caption=question, note=note)

    def _answered(self, weights: Floats, level: float) -> Answer:
        """Return the answer to weights on the cells of each group, (groups, d)."""
        value = variance = 0.0
        for group, w in enumerate(weights):
            if not w.any():
                continue
            steps = np.flatnonzero(np.diff(w, prepend=0.0, append=0.0))
            change = -np.diff(w, prepend=0.0, append=0.0)[steps]
            value += float(change @ self._cells[group, steps])
            if len(steps) == 2:  # one range: its error in closed form
                ((v,),) = (self.plan.factor.span_variance([steps[0]], [steps[1]]),)
                variance += float(v) * float(w[steps[0]]) ** 2
            else:
                variance += self.plan.factor.weighed_variance(w)
        error = math.sqrt(variance)
        width = critical(level) * error
        return Answer(value, error, value - width, value + width, level)

    def _met(self, predicate: Predicate) -> Floats:
        """Return which cells meet a condition, (groups, d)."""
        asked = self.plan.asked
        axes = [*asked.by, asked.column]
        if isinstance(predicate, Leaf):
            if predicate.column not in axes:
                raise NotSpanned(
                    f"{predicate.column} was not measured together with {asked.column}: ask for it "
                    "in the plan."
                )
            at = axes.index(predicate.column)
            sizes = [asked.schema.columns[name].size for name in axes]
            truth = np.asarray(predicate.steps.at(np.arange(sizes[at])), dtype=np.float64)
            shape = [1] * len(axes)
            shape[at] = -1
            whole = np.broadcast_to(truth.reshape(shape), sizes)
            return np.array(whole.reshape(asked.groups, asked.size))
        parts = [self._met(part) for part in predicate.parts]
        if predicate.how == "not":
            return 1.0 - parts[0]
        found = parts[0]
        for part in parts[1:]:
            found = np.minimum(found, part) if predicate.how == "and" else np.maximum(found, part)
        return found

    def _combined(self, question: Combination) -> Floats:
        """Return a combination of answers as weights on the cells, (groups, d)."""
        if not question:
            raise InvalidInput("the question is empty: name at least one query.")
        asked = self.plan.asked
        steps = np.zeros((asked.groups, asked.size + 1))
        for key, coefficient in question.items():
            name, label = key if isinstance(key, tuple) else (key, None)
            times = real(f"the coefficient of {key!r}", coefficient)
            query = self.plan.named(name)
            chosen = [(g, j) for g in range(asked.groups) for j in range(len(query.low))]
            if label is not None:
                texts = query.labels(asked.schema)
                groups = asked.group_labels()
                chosen = [
                    (g, j)
                    for g, group in enumerate(groups)
                    for j, text in enumerate(texts)
                    if ", ".join(filter(None, (group, text))) == label
                ]
                if not chosen:
                    raise InvalidInput(f"{name!r} has no answer labelled {label!r}.")
            g, j = np.array(chosen).T
            np.add.at(steps, (g, query.low[j]), times)
            np.add.at(steps, (g, query.high[j]), -times)
        return np.cumsum(steps, axis=1)[:, :-1]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the measured integers."""
        return digest_of(self.values) if self._wide else digest(pack(self.values))

    def settle(self) -> None:
        """Rebuild every answer now."""
        self.answers  # noqa: B018

    def files(self, folder: Path) -> None:
        """Write every answer: answers.parquet, and answers.csv of up to 200,000."""
        if self._wide:
            write_whole(folder / "values.int64", raw(self.values))
        names = [query.name for query in self.plan.asked.queries]
        note = f"single {percent(0.95)} intervals, {NOISE_ONLY}"
        columns = self._columns(names, 0.95)
        if self.plan.count <= LISTED:
            table = Table({**columns, "interval": (INTERVAL,) * self.plan.count}, note=note)
            table.to_csv(folder / "answers.csv")
            table.to_parquet(folder / "answers.parquet")
        else:
            Table(columns, note=note).to_parquet(folder / "answers.parquet")

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
        if asked.people.unit != "rows":
            rows["of each person"] = (
                f"at most {asked.people.max_rows} rows of one {asked.people.unit}, chosen by a "
                f"hash of that person's own values; rows without {asked.people.unit} are left out"
            )
        return {
            "mechanism": "integer linear measurements with rounded Gaussian noise, drawn exactly",
            "accuracy": {
                "errors": list(plan.errors().rows()),
                "targets met up to a factor of variance": plan.k,
                "errors are of": NOISE_ONLY,
                "intervals": f"single {percent(0.95)} intervals, {NOISE_ONLY}",
            },
            "design": {
                "shape": plan.shape,
                "in order": plan.why,
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
    def from_json(cls, content: dict[str, Any], folder: Path | None = None) -> OrderedRelease:
        """Return the release that ``to_json`` said; large ones have integers beside it."""
        from .matrixrelease import _beside

        try:
            stamp, values = content["ledger"], content["values"]
            return OrderedRelease(
                OrderedPlan.from_json(content["plan"]),
                _beside(values, folder) if "file" in values else unpack(values),
                None if stamp is None else Stamp(*stamp),
                str(content["when"]),
            )
        except (KeyError, TypeError):
            raise InvalidInput("the release lacks a part: restore it from a copy.") from None

    def __repr__(self) -> str:
        paid = "unrecorded" if self.stamp is None else f"ledger entry {self.stamp.number}"
        return f"OrderedRelease({self.plan.count:,} answers, {self.plan.cost!r}, {paid})"
