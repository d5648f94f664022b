"""Plans of mixed workloads: marginals in residuals, and what breaks their symmetry over its cells.

    marginals    residuals of every marginal asked for, which cost a person the same in any cell
    cells        all other queries, over the cells that they alone tell apart

Both are measured, under one budget, with independent noise: their costs add, exactly, and what
both tell is answered from both, each by its precision. So a query over the cells need not meet its
target alone: what the marginals tell of it already is taken off, and how much of the cost goes to
the marginals beyond what their own targets need is chosen to make the sum least.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats
from ..archive import digest, pack, unpack
from ..design import fit
from ..design.certificate import Certificate
from ..design.solve import Watch
from ..errors import InvalidInput, NotSpanned
from ..privacy import Budget, Cost, People
from ..privacy.ledger import Charge
from ..strategies.exact import Integers
from ..tables import Workload
from ..tables.asks import Ask, packed, unpacked
from .marginalsplan import FEW, SELECTION, WRITTEN, MarginalsPlan, plan_marginals
from .plan import Plan, _designed, _with_absence
from .planned import Planned, Stamp
from .source import Source
from .table import Table

if TYPE_CHECKING:
    from ..privacy.ledger import Ledger
    from .unionrelease import UnionRelease

# A target that the marginals meet by themselves leaves the cells this much looser a one.
LOOSE = 1e4
# Shares of the marginals' cost that are tried: their variances times this, of what targets need.
SHARES = (1.0, 0.9, 0.75, 0.5, 0.3)
# How close the designs come with which shares are compared.
ROUGH = 0.02
AIM = 1 - 1e-8


@dataclass(frozen=True, eq=False)
class Shared:
    """A query over the cells, asked of the marginals.

    Attributes
    ----------
    ask, order
        What it asks, and the axes of its answers as published.
    rows : integers
        Which of those answers the query has: it leaves out what is 0 whoever is counted.
    """

    ask: Ask
    order: tuple[int, ...]
    rows: NDArray[np.int64]

    def published(self, answers: Floats) -> Floats:
        """Return answers in the shape of the ask as the query has them."""
        return np.transpose(answers, self.order).reshape(-1)[self.rows]

    def to_json(self) -> list[Any]:
        """Return plain JSON values."""
        return [list(self.ask.members), packed(self.ask), list(self.order), pack(self.rows)]

    @staticmethod
    def from_json(content: Sequence[Any]) -> Shared:
        """Return what ``to_json`` said."""
        members, ask, order, rows = content
        return Shared(unpacked(tuple(members), ask), tuple(order), unpack(rows))


def known(
    marginals: MarginalsPlan, shared: Sequence[Shared | None], sizes: Sequence[int]
) -> Floats:
    """Return the variances of queries from the marginals alone; infinite where they do not tell."""
    parts = [
        np.full(size, np.inf)
        if each is None
        else each.published(marginals.strategy.variances(each.ask))
        for each, size in zip(shared, sizes, strict=True)
    ]
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False, repr=False)
class UnionPlan(Planned):
    """A plan by marginals and one over cells, of one workload, one budget and one release.

    Attributes
    ----------
    names
        The queries, in the order in which they were asked.
    marginals
        The marginals among them.
    cells
        The others; its targets are those of the workload, its strategy meets what is left of them.
    shared
        What each of the others asks of the marginals, where they tell it too; None elsewhere.
    certificate
        Proof of how far the cost is from the least of all noise.
    share
        Variances of the marginals, over what their own targets allow.
    why
        Why the workload is planned so, in a sentence.

    Formal Guarantees:
      ``cost`` holds for what ``release`` executes: the sum of both parts'. Errors are exact: noise
      of the two is independent.
    """

    kind = "union plan"

    names: tuple[str, ...]
    marginals: MarginalsPlan
    cells: Plan
    shared: tuple[Shared | None, ...]
    certificate: Certificate | None = None
    share: float = 1.0
    why: str = ""

    @cached_property
    def cost(self) -> Cost:
        """What one release costs: of marginals the same in any cell, and so the sum is exact."""
        return self.marginals.cost + self.cells.cost

    @property
    def people(self) -> People:
        """Whose privacy."""
        return self.marginals.people

    @property
    def count(self) -> int:
        """How many answers it gives."""
        return self.marginals.count + self.cells.count

    @cached_property
    def variances(self) -> Floats:
        """Variance of each answer over the cells, from both parts, in their order."""
        mine, theirs = self.cells.strategy.variance, self.from_marginals
        return np.asarray(1 / (1 / mine + 1 / theirs))

    @cached_property
    def from_marginals(self) -> Floats:
        """Variance of each answer over the cells from the marginals alone; infinite where none."""
        sizes = [len(query.labels) for query in self.cells.queries.queries]
        return known(self.marginals, self.shared, sizes)

    @property
    def k(self) -> float:
        """The factor by which the variance targets are met (at most 1) or missed (above 1)."""
        return max(self.marginals.k, float((self.variances / self.cells.queries.variance).max()))

    def errors(self) -> Table:
        """Return one line a query, as ``summary``."""
        return self.summary()

    def summary(self) -> Table:
        """Return one line a query: its answers, least target, greatest error and ratio."""
        rows = {row["query"]: row for row in self.marginals.summary().rows()}
        at = 0
        for query in self.cells.queries.queries:
            v = self.variances[at : at + len(query.labels)]
            at += len(query.labels)
            rows[query.name] = {
                "query": query.name,
                "answers": len(query.labels),
                "target stderr": float(np.sqrt(query.variance.min())),
                "stderr": float(np.sqrt(v.max())),
                "variance / target": float((v / query.variance).max()),
            }
        ordered = [rows[name] for name in self.names]
        columns: dict[str, Any] = {key: [row[key] for row in ordered] for key in ordered[0]}
        return Table(columns, note="the least target and the greatest error of each query; of "
                     "the noise only")  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """Return the parts' sizes, the least possible mu, k and every query's error."""
        return {
            "measured by marginals": self.marginals.strategy.shape[0],
            "measured over cells": self.cells.strategy.shape[0],
            "share": self.share,
            "least mu": None if self.certificate is None else self.certificate.lower**0.5,
            "k": self.k,
            "errors": list(self.errors().rows()),
        }

    def words(self) -> tuple[str, ...]:
        """Return how it is planned and why, how close to the least cost, and the policies."""
        said = [f"Planned as a union: {self.why}"]
        if self.certificate is not None:
            least = self.certificate.lower**0.5
            said.append(f"No Gaussian noise meets these targets at less than mu {least:.6g}.")
        said.append(f"Every variance is at most {self.k:.6g} times its target.")
        said += [f"  {note}" for note in self.marginals.notes]
        policies = self.marginals.asked.schema.policies()
        return (*said, *(f"  {name}: {policy}." for name, policy in policies.items()))

    def within(self, budget: Budget) -> UnionPlan:
        """Return the same shape scaled to spend the budget, and never more."""
        if not isinstance(budget, Budget):
            raise InvalidInput(
                f"a budget must be a Budget, got {type(budget).__name__}: Budget(epsilon=1, "
                "delta=1e-9), Budget(rho=0.1) or Budget(mu=0.5)."
            )
        factor = math.sqrt(float(self.cost.mu_squared / budget.mu_squared))
        if not factor > 0:
            raise InvalidInput("this plan costs nothing: no scale of it spends a budget.")
        plan = self._scaled(factor)
        while not budget.allows(plan.cost):  # scales are rounded: a hair more noise
            factor *= 1 + 2.0**-31
            plan = self._scaled(factor)
        return plan

    def _scaled(self, factor: float) -> UnionPlan:
        return replace(
            self,
            marginals=replace(self.marginals, strategy=self.marginals.strategy.scaled(factor)),
            cells=replace(self.cells, strategy=self.cells.strategy.scaled(factor)),
        )

    def slack(self) -> Floats:
        """Return how much mu^2 is left in each cell of ``cells.queries``, rounded down.

        The marginals leave none; what the other part leaves below its own greatest is free.
        """
        return self.refine().cells.slack()

    def refine(self) -> UnionPlan:
        """Return the same plan with the least profile over the cells, so that slack is exact."""
        if self.cells.refined:
            return self
        queries = self.cells.queries
        targets = left(queries.variance, self.from_marginals) * self.k * AIM
        return replace(self, cells=_designed(queries, targets, "fit", refine=True))

    def extend(self, work: Workload) -> UnionPlan:
        """Return a plan that answers further queries too, at no extra cost, inside the slack.

        They may cut columns only where the queries over cells cut them.
        """
        base = self.refine()
        more = base.cells.extend(work)
        further = more.queries.queries[len(self.shared) :]
        names = (*self.names, *(query.name for query in further))
        return replace(base, names=names, cells=more, shared=(*self.shared, *[None] * len(further)))

    def release(
        self,
        data: Source | Any,
        *,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        out: str | os.PathLike[str] | None = None,
        who: str = "",
        what: str = "",
        vintage: str | None = None,
        unrecorded: bool = False,
        resume: int | None = None,
    ) -> UnionRelease:
        """Debit the ledger, count and measure both parts with exact noise, rebuild, publish.

        See :func:`noiseshape.release.run.run` for the order of events and what each refusal
        means.
        """
        from .run import run

        made = run(
            self,
            data,
            ledger=ledger,
            out=out,
            who=who,
            what=what,
            vintage=vintage,
            unrecorded=unrecorded,
            resume=resume,
        )
        return cast("UnionRelease", made)

    def source(self, data: Source | Any) -> Source:
        """Return the rows, to be counted for both parts."""
        if isinstance(data, Both):
            return data  # type: ignore[return-value]
        return Both(self.marginals.source(data), self.cells.source(data))  # type: ignore[return-value]

    def rehearse(self) -> None:
        """Rebuild public numbers with both parts."""
        self.marginals.rehearse()
        self.cells.rehearse()

    def charge(self, who: str, what: str) -> Charge:
        """Return what the ledger is told: profiles of both parts, where both have one."""
        one, other = self.marginals.charge(who, what), self.cells.charge(who, what)
        both = None
        if one.profile is not None and other.profile is not None:
            both = one.profile + other.profile
            if both.greatest != self.cost.mu_squared:
                both = None
        return Charge(
            who=who,
            what=what or f"{self.count} answers to {len(self.names)} queries",
            people=self.people,
            cost=self.cost,
            profile=both,
            schema_hash=self.marginals.asked.domain,
            selection=SELECTION,
            spec_hash=self.digest,
        )

    def measured(self, x: Any) -> Integers:
        """Return both parts' measurements, the marginals' first."""
        parts = [self.marginals.measured(x[0]), self.cells.measured(x[1])]
        if any(part.dtype == object for part in parts):
            parts = [part.astype(object) for part in parts]
        return np.concatenate(parts)

    def released(self, y: Integers, stamp: Stamp | None, when: str) -> UnionRelease:
        """Return the release of a measurement."""
        from .unionrelease import UnionRelease

        return UnionRelease(self, y, stamp, when)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that the plan says."""
        said = [list(self.names), self.marginals.digest, self.cells.digest, self.share]
        return digest({"union": said})

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: both parts; nothing of data."""
        return {
            "names": list(self.names),
            "marginals": self.marginals.to_json(),
            "cells": self.cells.to_json(),
            "shared": [None if each is None else each.to_json() for each in self.shared],
            "certificate": None if self.certificate is None else asdict(self.certificate),
            "share": self.share,
            "why": self.why,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> UnionPlan:
        """Return the plan that ``to_json`` said; costs and errors are computed anew."""
        try:
            proof = content["certificate"]
            marginals = MarginalsPlan.from_json(content["marginals"])
            return UnionPlan(
                tuple(map(str, content["names"])),
                marginals,
                Plan.from_json(content["cells"]),
                tuple(None if e is None else Shared.from_json(e) for e in content["shared"]),
                None if proof is None else Certificate(**{**proof, "levels": ()}),
                float(content["share"]),
                str(content["why"]),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput("the plan file lacks a part: make the plan anew.") from None

    def __repr__(self) -> str:
        proof = ""
        if self.certificate is not None:
            proof = f", gap {self.certificate.gap:.1e}"
        return (
            f"UnionPlan({self.count:,} answers to {len(self.names):,} queries, "
            f"{len(self.cells.queries.queries)} of them over {len(self.cells.queries.cells):,} "
            f"cells, {self.cost!r}, variances at most {self.k:.6g} times their targets{proof})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Both:
    """Rows that are counted for both parts: the source of a release."""

    marginals: Any
    rows: Any

    def cells(self) -> int:
        """Return how many integers they become."""
        return int(self.marginals.cells() + self.rows.cells())

    def read(self) -> tuple[Any, Any]:
        """Read the rows, for either part."""
        return self.marginals.read(), self.rows.read()


def plan_union(
    work: Workload, *, gap: float = 1e-3, why: str = "", progress: Watch | None = None
) -> UnionPlan | None:
    """Design a union for a workload of marginals and others.

    None where it is not both, or where the others are too many to be designed over their cells.

    The cost of the others is found for some shares of the marginals' cost, and the least sum is
    taken. The bound is the greater of what either part alone must cost.
    """
    chosen = dict(zip(work.names, work.asks, strict=True))
    asked = work.products()
    plain = [named.name for named in asked.named if named.ask.plain]
    others = [name for name in chosen if name not in set(plain)]
    if not plain or not others:
        return None
    rest = work.only(others).products()
    cells, answers = math.prod(rest.sizes), sum(len(named.variance) for named in rest.named)
    if min(cells, answers) > FEW or cells * answers > WRITTEN:
        return None
    alone = plan_marginals(work.only(plain).products(), gap=gap)
    queries = work.only(others).compiled()
    shared = [_shared(alone, chosen[query.name], query.labels) for query in queries.queries]
    sizes = [len(query.labels) for query in queries.queries]
    theirs, c = known(alone, shared, sizes), queries.variance
    bounds = [0.0]
    if alone.certificate is not None and not work.schema.zeros:
        bounds.append(alone.certificate.lower)
    costs = {}
    for share in SHARES if np.isfinite(theirs).any() else SHARES[:1]:
        design = fit(
            _with_absence(queries), left(c, share * theirs), neighbours=queries.people.neighbours,
            gap=ROUGH, on_gap="label", progress=progress,
        )  # fmt: skip
        rows = queries.people.max_rows**2
        costs[share] = float(alone.cost.mu_squared) / share + design.alpha * rows
    best = min(costs, key=lambda share: costs[share])
    scaled = alone
    if best < 1:
        scaled = replace(alone, strategy=alone.strategy.scaled(math.sqrt(best), up=False))
    targets = left(c, known(scaled, shared, sizes)) * AIM
    designed = _designed(queries, targets, "fit", gap=gap, progress=progress)
    whole = fit(_with_absence(queries), c, neighbours=queries.people.neighbours, gap=ROUGH,
                on_gap="label", progress=progress)  # fmt: skip
    if whole.certificate is not None:
        bounds.append(whole.certificate.lower * queries.people.max_rows**2)
    made = UnionPlan(tuple(work.names), scaled, designed, tuple(shared), None, best, why)
    proof = Certificate(max(bounds), float(made.cost.mu_squared),
                        neighbours=queries.people.neighbours)  # fmt: skip
    return replace(made, certificate=proof)


def left(c: Floats, theirs: Floats) -> Floats:
    """Return the variance that is left to meet targets with, beside an independent answer."""
    with np.errstate(divide="ignore"):
        rest = 1 / c - 1 / theirs
        return np.asarray(np.where(rest > 1 / (LOOSE * c), 1 / np.maximum(rest, 1e-300), LOOSE * c))


def _shared(marginals: MarginalsPlan, question: Any, labels: Sequence[str]) -> Shared | None:
    """Return a query as it is asked of the marginals, or None where they do not tell it."""
    try:
        ask, order, _ = marginals.asked.ask(question)
        marginals.strategy.check_spans(ask)
    except NotSpanned:
        return None
    place = {label: i for i, label in enumerate(question.labels())}
    return Shared(ask, order, np.array([place[label] for label in labels], dtype=np.int64))
