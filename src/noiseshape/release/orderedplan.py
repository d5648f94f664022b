"""Plans for one ordered column of up to millions of values: none of its size squared."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats
from .._memory import free_memory
from ..archive import digest, pack, uncompressed, unpack
from ..design.certificate import Certificate
from ..design.ordered import Targets, ordered
from ..errors import InvalidInput, TooLarge
from ..privacy import Cost, People
from ..privacy.ledger import Charge
from ..strategies import Diagonal, Haar, Kronecker, Spans, Strategy, Toeplitz, Tree
from ..strategies.exact import Integers
from ..strategies.spanning import Spanning
from ..tables import Workload
from ..tables.layout import MOST_CHARGED
from ..tables.ordered import Ordered, Ranges
from .marginalsplan import SELECTION
from .measurement import measure
from .planned import Scaled, Stamp
from .source import Source, fitting, is_source
from .table import Table

if TYPE_CHECKING:
    from .orderedrelease import OrderedRelease

# Bytes of memory while a cell is measured, rebuilt and published: Python integers beyond 62 bits.
BYTES = 1000

FAMILIES = {"fit": ("series", "wavelet", "tree"), "hierarchy": ("tree",)}

WORDS = {
    "series": "sums of all values so far, in integer series",
    "wavelet": "Haar's wavelets, with a scale for each level",
    "tree": "a tree of totals, with a scale for each level and least squares",
}


@dataclass(frozen=True, eq=False, repr=False)
class OrderedPlan(Scaled["OrderedRelease"]):
    """A structured strategy for one ordered column, with what it costs and what it gives.

    Attributes
    ----------
    asked
        What is asked of which column, how accurately, and about whom.
    factor
        The strategy of one group: what is executed in each.
    shape
        "fit", or "hierarchy" for a tree whatever it costs.
    certificate
        Proof of how far the cost is from the least of all Gaussian noise, and from what.
    why
        Which strategy was taken, and why, in a sentence.

    Formal Guarantees:
      ``cost`` holds for what ``release`` executes, given true secret bits; errors are those of the
      integers and the rounded noise that are executed.
    """

    kind = "ordered plan"

    asked: Ordered
    factor: Spanning
    shape: str = "fit"
    certificate: Certificate | None = None
    why: str = ""

    def __post_init__(self) -> None:
        spans = self.factor.spans
        same = spans.cells == self.asked.size and np.array_equal(spans.low, self.asked.low)
        if not same or not np.array_equal(spans.high, self.asked.high):
            raise InvalidInput("the plan's strategy answers other ranges than the plan's.")

    @cached_property
    def strategy(self) -> Strategy:
        """What is executed: the factor, in each group on its own."""
        if not self.asked.by:
            return self.factor
        return Kronecker([Diagonal(np.ones(self.asked.groups)), self.factor])

    @cached_property
    def cost(self) -> Cost:
        """What one release costs, exactly or rounded up, under the people rule of the workload."""
        return self.strategy.cost(self.people, rows_may_leave=self.asked.rows_may_leave)

    @property
    def people(self) -> People:
        """Whose privacy."""
        return self.asked.people

    @property
    def count(self) -> int:
        """How many answers are published."""
        return self.asked.groups * len(self.factor.spans)

    @cached_property
    def span_variance(self) -> Floats:
        """The variance of each published range, (m,): the same in every group."""
        return self.factor.variance

    def of(self, query: Ranges) -> slice:
        """Return where a query's ranges are among those of a group."""
        start = 0
        for each in self.asked.queries:
            if each is query:
                return slice(start, start + len(each.low))
            start += len(each.low)
        raise InvalidInput(f"{query.name!r} is no query of this plan.")

    def named(self, name: str) -> Ranges:
        """Return a query by its name."""
        for query in self.asked.queries:
            if query.name == name:
                return query
        some = ", ".join(repr(query.name) for query in self.asked.queries[:8])
        raise InvalidInput(f"no query is called {name!r}: there are {some}.")

    @cached_property
    def by_length(self) -> Floats:
        """The greatest variance of ranges of 1, 2, ... values, wherever they lie; shape (values,).

        For a series with one scale, of which the last range of each length has it.
        """
        if isinstance(self.factor, Toeplitz) and len(self.factor.level_rows) == 1:
            return self.factor.by_length(self.asked.values)
        raise InvalidInput(
            "the greatest error of every length of range is known where all ranges are asked: ask "
            "for all_ranges, or for the error of one range with range_stderr."
        )

    def range_stderr(self, low: int, high: int) -> float:
        """Return the standard error of the sum of cells low, ..., high - 1: exactly."""
        return math.sqrt(float(self.factor.span_variance([low], [high])[0]))

    @cached_property
    def _bands(self) -> list[tuple[Ranges, int, int, float, float]]:
        """Query, least and greatest length of each band, its target and greatest error."""
        found = []
        for query in self.asked.queries:
            shortest = 1
            for longest, target in zip(query.longest, query.each, strict=True):
                worst = float(self.by_length[shortest - 1 : longest].max())
                found.append((query, shortest, longest, target, worst))
                shortest = longest + 1
        return found

    @cached_property
    def _each(self) -> list[tuple[float, float, float]]:
        """Least target, greatest error and greatest ratio of each query, in variances."""
        found = []
        for query in self.asked.queries:
            achieved = self.span_variance[self.of(query)]
            bands = [band for band in self._bands if band[0] is query]
            least = min([float(query.variance.min()), *query.each])
            greatest = max([float(achieved.max()), *(worst for *_, worst in bands)])
            ratio = float((achieved / query.variance).max())
            found.append((least, greatest, max([ratio, *(w / t for *_, t, w in bands)])))
        return found

    @property
    def k(self) -> float:
        """The factor by which the variance targets are met (at most 1) or missed (above 1)."""
        return max(ratio for *_, ratio in self._each)

    def errors(self) -> Table:
        """Return targets and errors: one line a query, and one for each band of all ranges."""
        if not self._bands:
            return self.summary()
        lines = []
        for query, (least, greatest, ratio) in zip(self.asked.queries, self._each, strict=True):
            mine = [band for band in self._bands if band[0] is query]
            if not mine:
                lines.append((query.name, "", least, greatest, ratio))
            lines += [
                (query.name, f"{short:,} to {far:,} values", target, worst, worst / target)
                for _, short, far, target, worst in mine
            ]
        names, lengths, targets, worst, ratios = zip(*lines, strict=True)
        return Table(
            {
                "query": names,
                "ranges of": lengths,
                "target stderr": np.sqrt(targets),
                "stderr": np.sqrt(worst),
                "variance / target": np.array(ratios),
            },
            note="the greatest of each, wherever it lies; of the noise only",
        )

    def summary(self) -> Table:
        """Return one line a query: its answers, least target, greatest error and ratio."""
        least, greatest, ratio = np.array(self._each).T
        columns: dict[str, Any] = {
            "query": tuple(query.name for query in self.asked.queries),
            "answers": [self.asked.groups * len(q.low) for q in self.asked.queries],
            "target stderr": np.sqrt(least),
            "stderr": np.sqrt(greatest),
            "variance / target": ratio,
        }
        return Table(
            columns, note="the least target and the greatest error of each query; of the noise only"
        )

    def facts(self) -> dict[str, Any]:
        """Return cells, strategy, the least possible mu, k and every query's error."""
        return {
            "cells": self.asked.cells,
            "measured": self.strategy.shape[0],
            "strategy": self.why,
            "least mu": None if self.certificate is None else self.certificate.lower**0.5,
            "k": self.k,
            "errors": list(self.errors().rows()),
        }

    def words(self) -> tuple[str, ...]:
        """Return which strategy and why, how close to the least cost, and the policies."""
        said = [self.why] if self.why else []
        if self.certificate is not None:
            least = self.certificate.lower**0.5
            said.append(
                f"No Gaussian noise meets these targets at less than mu {least:.6g} "
                f"({self.certificate.reason})."
            )
        said.append(f"Every variance is at most {self.k:.6g} times its target.")
        if any(query.longest for query in self.asked.queries):
            said.append(
                "Of all ranges the counts up to each value are published: any range is a "
                "difference of two, and answer(condition) states its exact error."
            )
        said += [f"  {rule}" for rule in self.asked.schema.words(self.people)]
        return tuple(said)

    def _scaled(self, factor: float) -> OrderedPlan:
        return replace(self, factor=self.factor.scaled(factor))

    def slack(self) -> Floats:
        """Refuse: what cells could still answer is no use to ranges of many."""
        raise InvalidInput(
            "this plan has no slack to tell: ask for more in the same plan, as one workload."
        )

    def extend(self, _: Any) -> OrderedPlan:
        """Refuse, as ``slack`` does."""
        raise InvalidInput(
            "this plan has no slack to answer more in: plan all queries together, as one workload."
        )

    def source(self, data: Source | Any) -> Source:
        """Return the rows to be counted in each cell of the column, or counts of them."""
        if is_source(data):
            return fitting(data, self.asked.cells)
        from ..tables.opening import opened
        from ..tables.ordered import Cells

        return fitting(Cells(opened(data), self.asked.layout, self.people), self.asked.cells)

    def rehearse(self) -> None:
        """Rebuild public numbers in one group: a strategy of many values fails alike in all."""
        x = (np.arange(self.asked.size) % 2) << 40
        self.factor.rebuild(self.factor.apply(x))

    def charge(self, who: str, what: str) -> Charge:
        """Return what the ledger is told: with a profile, where cells add up and are few."""
        asked = self.asked
        by_cell = (
            self.people.neighbours == "add-remove"
            and asked.table is not None
            and asked.schema.cells <= MOST_CHARGED
            and [axis.column for axis in asked.layout.axes]
            == [name for name in asked.schema.columns if name in (*asked.by, asked.column)]
        )
        profile = None
        if by_cell:
            profile = asked.layout.charged(self.strategy.profile() * self.people.max_rows**2)
        return Charge(
            who=who,
            what=what or f"{self.count:,} answers about {asked.column} in order",
            people=self.people,
            cost=self.cost,
            profile=profile,
            schema_hash=asked.domain,
            selection=SELECTION,
            spec_hash=self.digest,
        )

    def measured(self, x: Any) -> Integers:
        """Return A~ x + noise, (k,)."""
        return measure(
            self.strategy, x, self.cost, people=self.people,
            rows_may_leave=self.asked.rows_may_leave,
        ).values  # fmt: skip

    def released(self, y: Integers, stamp: Stamp | None, when: str) -> OrderedRelease:
        """Return the release of a measurement."""
        from .orderedrelease import OrderedRelease

        return OrderedRelease(self, y, stamp, when)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that the plan says, but for how long its design took."""
        content = self.to_json()
        proof = content["certificate"]
        if proof is not None:
            proof = {name: value for name, value in proof.items() if name != "seconds"}
        return digest(uncompressed({**content, "certificate": proof}))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: the workload, integers and scales; nothing of data."""
        return {
            "asked": self.asked.to_json(),
            "factor": _written(self.factor),
            "shape": self.shape,
            "certificate": None if self.certificate is None else asdict(self.certificate),
            "why": self.why,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> OrderedPlan:
        """Return the plan that ``to_json`` said; costs and errors are computed anew."""
        try:
            asked = Ordered.from_json(content["asked"])
            proof = content["certificate"]
            return OrderedPlan(
                asked,
                _read(content["factor"], Spans(asked.low, asked.high, asked.size)),
                str(content["shape"]),
                None if proof is None else Certificate(**{**proof, "levels": ()}),
                str(content["why"]),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput("the plan file lacks a part: make the plan anew.") from None

    def __repr__(self) -> str:
        proof = "" if self.certificate is None else f", gap {self.certificate.gap:.2g}"
        return (
            f"OrderedPlan({type(self.factor).__name__.lower()} for {self.count:,} answers about "
            f"{self.asked.size:,} values of {self.asked.column}, {self.cost!r}, variances at most "
            f"{self.k:.6g} times their targets{proof})"
        )


def by_order(work: Workload, shape: str, by: str, *, refine: bool) -> OrderedPlan | None:
    """Return the plan of a workload about one ordered column, or None where it is planned densely.

    Automatically where the column has so many values that weights are not written out.
    """
    if by not in ("auto", "ordered") or (by == "auto" and not work.unwritten):
        return None
    if refine:
        raise InvalidInput("a plan of a column in order is not refined: leave refine out.")
    if shape not in FAMILIES:
        raise InvalidInput(
            f"of a column of many values the shape is 'fit' or 'hierarchy' (a tree), got {shape!r}."
        )
    return plan_ordered(work.ordered(), shape=shape)


def plan_ordered(asked: Ordered, *, shape: str = "fit") -> OrderedPlan:
    """Design a structured strategy for an ordered column, and round it to integers."""
    needed, free = BYTES * asked.cells, free_memory()
    if needed > free:
        raise TooLarge(
            f"{asked.cells:,} cells of {asked.column} need about {needed / 1e9:,.1f} GB while they "
            f"are measured and published, and {free / 1e9:,.1f} GB are free: declare it in coarser "
            "steps, or split it by fewer columns."
        )
    people = asked.people
    # Where absence counts too, no less than what it costs alone bounds the cost from below.
    leaves = asked.rows_may_leave or people.max_rows > 1
    relation = "add-remove" if leaves else people.neighbours
    spans = Spans(asked.low, asked.high, asked.size)
    made = ordered(
        Targets(spans, asked.variance, asked.by_length),
        neighbours=relation,
        families=FAMILIES[shape],
    )
    plan = OrderedPlan(asked, made.strategy, shape, None, _why(asked, made.name, made.considered))
    lower = made.certificate.lower * people.max_rows**2
    proof = replace(
        made.certificate, lower=lower, achieved=float(plan.cost.mu_squared),
        neighbours=people.neighbours,
    )  # fmt: skip
    return replace(plan, certificate=proof)


def _why(asked: Ordered, name: str, considered: dict[str, float]) -> str:
    chosen = considered[name]
    others = [
        f"{other} at least {100 * (mu / chosen - 1):.0f} % more"
        for other, mu in considered.items()
        if other != name
    ]
    many = f"{asked.column} has {asked.size:,} values in order"
    said = f"{many}, planned by {WORDS[name]}"
    if others:
        return f"{said}: of equal errors this costs the least mu, {' and '.join(others)}."
    if any(query.longest for query in asked.queries):
        return f"{said}: its greatest error of every length of range is known."
    return f"{said}, as was asked."


def _written(factor: Spanning) -> dict[str, Any]:
    """Return a strategy as JSON values, without its questions."""
    said: dict[str, Any] = {"sigma": pack(factor.level_sigma)}
    if isinstance(factor, Toeplitz):
        a: NDArray[Any] = factor.coefficients
        return {**said, "kind": "series", "coefficients": pack(a), "rows": list(factor.level_rows)}
    if isinstance(factor, Haar):
        return {**said, "kind": "wavelet", "bits": factor.bits}
    assert isinstance(factor, Tree)
    return {**said, "kind": "tree", "bits": factor.bits, "widths": list(factor.widths)}


def _read(said: dict[str, Any], spans: Spans) -> Spanning:
    sigma, kind = unpack(said["sigma"]), said["kind"]
    if kind == "series":
        return Toeplitz(spans, unpack(said["coefficients"]), sigma, said["rows"])
    if kind == "wavelet":
        return Haar(spans, sigma, said["bits"])
    if kind == "tree":
        return Tree(spans, said["widths"], sigma, said["bits"])
    raise KeyError(kind)
