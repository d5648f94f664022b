"""Plans: what will be measured, what it costs, and how accurate every answer will be.

A plan is made before any data is touched, and holds nothing of the data. Everything it states
is computed from the integers that will be executed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from scipy.linalg import lstsq

from .._arb import fraction_down
from .._checks import Floats, floats, frozen, positive
from ..archive import digest, pack, uncompressed, unpack
from ..design import Certificate, Design, fit
from ..design.certificate import COST, Level
from ..design.compare import DESIGNS, QUICK, Comparison, compare
from ..design.hierarchy import hierarchy
from ..design.solve import Steps, Watch
from ..errors import BudgetExceeded, InvalidInput
from ..privacy import Budget, Cost, People, Profile
from ..privacy.ledger import Charge
from ..strategies import Dense, rounded
from ..strategies.exact import Integers
from ..tables import Queries, Workload
from .marginalsplan import MarginalsPlan, by_marginals
from .measurement import measure
from .orderedplan import OrderedPlan, by_order
from .planned import Scaled, Stamp, is_budget
from .source import Counts, Source, fitting, is_source
from .table import Table

if TYPE_CHECKING:
    from .release import Release
    from .unionplan import UnionPlan

Shape = Literal["fit", "total", "hierarchy", "identity", "sm2"]
Priority = Literal["accuracy", "privacy"]
By = Literal["auto", "cells", "marginals", "union", "ordered"]

# Targets aimed at where a plan is put together of parts, so that rounding misses none.
AIM = 1 - 1e-5

SHAPES = ("total", "hierarchy", "identity", "sm2")


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Scaled["Release"]):
    """A strategy for queries, as it will be executed, with what it costs and what it gives.

    Attributes
    ----------
    queries
        What is asked, how accurately, and about whom.
    strategy
        Integer rows and dyadic scales: the one object that accounts, measures and rebuilds.
    shape
        How the strategy was chosen: "fit", "total", "hierarchy", "identity" or "sm2".
    refined
        Whether the profile was made the lexicographically smallest, so that slack is exact.
    certificate
        Proof of how far the designed cost is from the least; None where none was asked for.
    moved
        How far the workload moved, relative to its greatest entry, to fit an integer basis.
    prices : shape (m,) or None
        What each target costs: q of the certificate, at least 0 and summing to one; None where
        the design was for another objective. See ``saving``.

    Formal Guarantees:
      ``cost`` holds for what ``release`` executes, given true secret bits; errors are those of
      the integers and the rounded noise that are executed.
    """

    kind = "plan"

    queries: Queries
    strategy: Dense
    shape: str = "fit"
    refined: bool = False
    certificate: Certificate | None = None
    moved: float = 0.0
    prices: Floats | None = None

    def __post_init__(self) -> None:
        asked, made = self.queries, self.strategy
        same = made.shape[1] == len(asked.cells) and np.array_equal(made.workload, asked.matrix)
        if not same or not _equal(made.reach, asked.reach):
            raise InvalidInput("the plan's strategy answers other queries than the plan's.")
        if made.changes is not None:  # a cost under any other set would be another one's
            raise InvalidInput(
                "what one row can add is told by the plan's queries: leave changes out of its "
                "strategy."
            )
        if self.prices is not None:
            prices = floats("prices", self.prices)
            if prices.shape != asked.variance.shape or not (prices >= 0).all():
                raise InvalidInput("prices must be one for each answer, and at least 0.")
            object.__setattr__(self, "prices", frozen(prices))

    @cached_property
    def cost(self) -> Cost:
        """What one release costs, exactly, under the people rule of the queries."""
        asked = self.queries
        return self.strategy.cost(asked.people, rows_may_leave=asked.rows_may_leave)

    @cached_property
    def profile(self) -> Profile:
        """What one release costs a person in each cell (k rows: k^2 times that of one)."""
        return self.strategy.profile() * self.queries.people.max_rows**2

    @property
    def k(self) -> float:
        """The factor by which the variance targets are met (at most 1) or missed (above 1)."""
        return float((self.strategy.variance / self.queries.variance).max())

    def errors(self) -> Table:
        """Return query, label, target and achieved standard error, and the ratio of variances."""
        achieved, target = self.strategy.variance, self.queries.variance
        return Table(
            {
                "query": self.queries.names,
                "label": self.queries.labels,
                "target": np.sqrt(target),
                "stderr": np.sqrt(achieved),
                "variance / target": achieved / target,
            }
        )

    def saving(self, times: float, query: str | None = None) -> float:
        """Return the share of mu^2 that relaxing targets can save at most.

        Parameters
        ----------
        times
            The factor on the target variances, at least 1.
        query
            The query that is relaxed; by default all of them.

        Formal Guarantees:
          No Gaussian noise that meets the relaxed targets costs less than ``1 - saving`` times
          the certificate's ``lower``. With s the sum of the relaxed queries' prices, this is
          ``1 - 1 / (1 + s (times - 1))``: weights p and q c'/c prove it (docs/math/fit.md), and
          for small changes it is what an optimal design saves.
        """
        if self.prices is None:
            raise InvalidInput(
                "this plan was designed for another objective than its targets, and knows no "
                "prices: plan with shape='fit'."
            )
        if not positive("times", times) >= 1:
            raise InvalidInput(f"times must be at least 1, got {times:g}: targets are relaxed.")
        names = np.array(self.queries.names)
        if query is not None and query not in names:
            raise InvalidInput(f"no query is called {query!r}.")
        chosen = np.ones(len(names), bool) if query is None else names == query
        share = float(self.prices[chosen].sum() / self.prices.sum())
        return 1 - 1 / (1 + share * (times - 1))

    def _scaled(self, factor: float) -> Plan:
        return replace(self, strategy=self.strategy.scaled(factor))

    def refine(self) -> Plan:
        """Return the plan whose profile is the lexicographically smallest (FFU Theorem 10).

        It costs the same to a billionth or so, and leaves every cell the most room for later.
        """
        if self.refined:
            return self
        # Aimed below the targets by what the levels of the design may miss them by.
        return _designed(self.queries, self.queries.variance * self.k * AIM, "fit", refine=True)

    def slack(self) -> Floats:
        """Return how much mu^2 the refined plan leaves in each cell, (d,), rounded down.

        From the integers that ``refine()`` executes: release that plan, or what ``extend``
        returns, to have it. Zero everywhere means that nothing can be answered for free.
        """
        if self.queries.people.neighbours != "add-remove":
            raise InvalidInput(
                "slack is told by the profile, and under replace neighbours the profile does not "
                "tell the cost: plan under add-remove to use it."
            )
        plan = self.refine()
        scale = 1 << plan.profile.exponent
        cap = plan.cost.mu_squared
        return np.array([fraction_down(cap - Fraction(int(u), scale)) for u in plan.profile.units])

    def extend(self, queries: Queries | Workload) -> Plan:
        """Return a plan that answers further queries too, at no extra cost, inside the slack.

        A further workload may cut columns only where the plan's queries cut them.

        Raises BudgetExceeded, with the factor by which the targets would have to be relaxed,
        where they do not fit.
        """
        from .extension import extended

        if isinstance(queries, Workload) and self.queries.layout is not None:
            queries = queries.on(self.queries.layout)
        return extended(self, _is_queries(queries))

    def compare(self, **options: Any) -> Comparison:
        """Return this workload under every shape at equal privacy: errors and their totals.

        The cost is that of one row, under the plan's neighbours; k rows multiply every mu by k.
        """
        if self.queries.reach is not None:
            raise InvalidInput(
                "shapes are compared for counts, and this workload sums a column: compare a "
                "workload without its sums."
            )
        W, variance = _with_absence(self.queries), self.queries.variance
        chosen = options.pop("designs", QUICK)
        designs = [_compared(one, self.queries, W) if one in DESIGNS else one for one in chosen]
        return compare(W, variance, designs, **options)

    @property
    def people(self) -> People:
        """Whose privacy: the queries'."""
        return self.queries.people

    @property
    def count(self) -> int:
        """How many answers it gives."""
        return len(self.queries.names)

    def source(self, data: Source | Any) -> Source:
        """Return what will be counted: rows of a declared table, or counts of plain cells."""
        return fitting(self._source(data), len(self.queries.cells))

    def _source(self, data: Any) -> Source:
        if is_source(data):
            given: Source = data
            return given
        if self.queries.layout is None:
            return Counts(data)
        from ..tables.engine import Rows
        from ..tables.opening import opened

        return Rows(opened(data), self.queries.layout, self.queries.people)

    def rehearse(self) -> None:
        """Rebuild public numbers as large as counts may be."""
        cells = range(len(self.queries.cells))
        self.strategy.rebuild(self.strategy.apply([(i % 2) << 62 for i in cells]))

    def charge(self, who: str, what: str) -> Charge:
        """Return what the ledger is told: with the profile, where cells add up."""
        asked = self.queries
        # Cells of a table without a name may be other cells than those of the last one.
        by_cell = asked.people.neighbours == "add-remove" and asked.table is not None
        return Charge(
            who=who,
            what=what or f"{len(asked.names)} answers about {len(asked.cells)} cells",
            people=asked.people,
            cost=self.cost,
            profile=asked.charged(self.profile) if by_cell else None,
            schema_hash=asked.domain,
            selection=asked.selection,
            spec_hash=self.digest,
        )

    def measured(self, x: Integers) -> Integers:
        """Return A~ x + noise, (k,)."""
        asked = self.queries
        return measure(
            self.strategy, x, self.cost, people=asked.people, rows_may_leave=asked.rows_may_leave
        ).values

    def released(self, y: Integers, stamp: Stamp | None, when: str) -> Release:
        """Return the release of a measurement."""
        from .release import Release

        return Release(self, y, stamp, when)

    def summary(self) -> Table:
        """Return one line a query: its greatest target, error, and ratio of variances."""
        achieved, asked = self.strategy.variance, self.queries.queries
        ends = np.cumsum([len(query.labels) for query in asked])
        parts = list(zip(asked, np.split(achieved, ends[:-1]), strict=True))
        columns: dict[str, Any] = {
            "query": tuple(query.name for query in asked),
            "answers": [len(query.labels) for query in asked],
            "target stderr": [float(np.sqrt(query.variance.max())) for query in asked],
            "stderr": [float(np.sqrt(v.max())) for _, v in parts],
            "variance / target": [float((v / query.variance).max()) for query, v in parts],
        }
        return Table(columns, note="the greatest of each query; of the noise only")

    def facts(self) -> dict[str, Any]:
        """Return cells, the least possible mu, k and every error."""
        return {
            "cells": len(self.queries.cells),
            "least mu": None if self.certificate is None else self.certificate.lower**0.5,
            "k": self.k,
            "errors": list(self.errors().rows()),
        }

    def words(self) -> tuple[str, ...]:
        """Return how close to the least cost it is, how targets are met, and the policies."""
        said = [f"Every variance is at most {self.k:.6g} times its target."]
        if self.certificate is not None and self.shape == "fit":
            least = self.certificate.lower**0.5
            said.insert(0, f"No Gaussian noise meets these targets at less than mu {least:.6g}.")
        if self.queries.layout is not None:
            schema = self.queries.layout.schema
            said += [f"  {rule}" for rule in schema.words(self.queries.people)]
        return tuple(said)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that the plan says: releases and ledger entries carry it.

        Saved and loaded it stays the same, on any machine. A plan designed anew has the same on
        the same machine; other processors or threads may design other last digits.
        """
        return plan_digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: queries, integers, scales, certificate; nothing of data."""
        return {
            "queries": self.queries.to_json(),
            "rows": pack(self.strategy.rows),
            "sigma": pack(self.strategy.sigma),
            "shape": self.shape,
            "refined": self.refined,
            "moved": self.moved,
            "certificate": None if self.certificate is None else asdict(self.certificate),
            "prices": None if self.prices is None else pack(self.prices),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Plan:
        """Return the plan that ``to_json`` said; costs and errors are computed anew."""
        try:
            asked = Queries.from_json(content["queries"])
            rows, sigma = unpack(content["rows"]), unpack(content["sigma"])
            strategy = Dense(rows, sigma, asked.matrix, asked.reach)
            proof = content["certificate"]
            if proof is not None:
                levels = tuple(Level(**level) for level in proof["levels"])
                proof = Certificate(**{**proof, "levels": levels})
            moved = content["moved"]
            if not isinstance(moved, float):
                raise TypeError
            prices = content["prices"]
            return Plan(
                asked,
                strategy,
                str(content["shape"]),
                bool(content["refined"]),
                proof,
                moved,
                None if prices is None else unpack(prices),
            )
        except (KeyError, TypeError, AttributeError):
            raise InvalidInput("the plan file lacks a part: make the plan anew.") from None

    def __repr__(self) -> str:
        proof = ""
        if self.certificate is not None:
            objective = "" if self.shape == "fit" else " of its own objective"
            proof = f", gap {self.certificate.gap:.1e}{objective}"
        return (
            f"Plan({self.shape} for {len(self.queries.names)} answers over "
            f"{len(self.queries.cells)} cells, {self.cost!r}, variances at most {self.k:.6g} times "
            f"their targets{proof})"
        )


def plan_digest(content: dict[str, Any]) -> str:
    """Return the digest of a plan from its JSON values: all but how long its design took."""
    proof = content["certificate"]
    if proof is not None:
        proof = {name: value for name, value in proof.items() if name != "seconds"}
    return digest(uncompressed({**content, "certificate": proof}))


@overload
def plan(
    queries: Queries,
    *,
    shape: Shape = "fit",
    by: By = "auto",
    budget: Budget | None = None,
    prioritise: Priority = "accuracy",
    refine: bool = False,
    gap: float = 1e-3,
    progress: Watch | None = None,
) -> Plan: ...


@overload
def plan(
    queries: Workload,
    *,
    shape: Shape = "fit",
    by: Literal["cells"],
    budget: Budget | None = None,
    prioritise: Priority = "accuracy",
    refine: bool = False,
    gap: float = 1e-3,
    progress: Watch | None = None,
) -> Plan: ...


@overload
def plan(
    queries: Workload,
    *,
    shape: Shape = "fit",
    by: By = "auto",
    budget: Budget | None = None,
    prioritise: Priority = "accuracy",
    refine: bool = False,
    gap: float = 1e-3,
    progress: Watch | None = None,
) -> Plan | MarginalsPlan | UnionPlan | OrderedPlan: ...


def plan(
    queries: Queries | Workload,
    *,
    shape: Shape = "fit",
    by: By = "auto",
    budget: Budget | None = None,
    prioritise: Priority = "accuracy",
    refine: bool = False,
    gap: float = 1e-3,
    progress: Watch | None = None,
) -> Plan | MarginalsPlan | UnionPlan | OrderedPlan:
    """Design noise for queries, and round it to the integers that will be executed.

    Parameters
    ----------
    queries
        What is asked, each with its target.
    shape
        How the noise is shaped: "fit" meets every target at the least cost, with proof; the
        others are for comparison.
    by
        Of a workload: "cells" designs over all its cells at once; "marginals" in the residuals of
        the marginals that it is about, however large the table; "union" its marginals so and all
        else over the cells that it tells apart; "ordered" prefixes and ranges of one ordered
        column in structured strategies, up to millions of values. "auto" takes cells where there
        are few, then what costs less, and ``plan.why`` says why.
    budget
        A ceiling: what the targets need is spent, and more is refused.
    prioritise
        ``"privacy"`` scales all targets by one factor, ``plan.k``, to spend exactly the budget.
    refine
        Make the profile the lexicographically smallest, so that slack is exact.
    gap
        How close to the least possible mu^2 the designed noise must be proven to be.
    progress
        Called with the state of the design after each iteration, and when its result is checked
        and rounded; ``state.words`` says which.

    Examples
    --------
    >>> import numpy as np
    >>> asked = Queries(4).ask("prefixes", np.tril(np.ones((4, 4))), stderr=1)
    >>> made = plan(asked, gap=1e-6)
    >>> round(made.cost.mu**2, 4), made.k <= 1
    (1.7586, True)
    """
    if budget is not None:
        is_budget(budget)
    if shape not in ("fit", *SHAPES):
        raise InvalidInput(f"shape must be one of fit, {', '.join(SHAPES)}; got {shape!r}.")
    if by not in ("auto", "cells", "marginals", "union", "ordered"):
        raise InvalidInput(f"by must be auto, cells, marginals, union or ordered; got {by!r}.")
    if prioritise not in ("accuracy", "privacy"):
        raise InvalidInput(f'prioritise must be "accuracy" or "privacy", got {prioritise!r}.')
    if prioritise == "privacy" and budget is None:
        raise InvalidInput("prioritise='privacy' spends a budget exactly: give one.")
    made: Plan | MarginalsPlan | UnionPlan | OrderedPlan | None = None
    if isinstance(queries, Workload):
        made = by_order(queries, shape, by, refine=refine)
        if made is None:
            made = by_marginals(queries, shape, by, refine=refine, gap=gap, progress=progress)
        if made is None:
            queries = queries.compiled()
    elif by in ("marginals", "union", "ordered"):
        raise InvalidInput(f"only a Workload is planned by {by!r}: its columns tell which.")
    if made is None:
        asked = _is_queries(queries)
        made = _designed(asked, asked.variance, shape, refine=refine, gap=gap, progress=progress)
    if budget is None:
        return made
    if prioritise == "privacy":
        return made.within(budget)
    if not budget.allows(made.cost):
        k = made.within(budget).k
        raise BudgetExceeded(
            f"the targets need {budget.in_its_words(made.cost)}, and the budget is "
            f"{budget.stated}: it buys every target variance times {k:.6g} (standard errors times "
            f"{k**0.5:.6g}); "
            "relax the targets by that, raise the budget, or say prioritise='privacy'."
        )
    return made


def per_row(queries: Queries, W: Floats) -> Floats:
    """Return W as the columns of what one row can add, (m, c): the people of the design."""
    return W if queries.reach is None else W @ queries.reach


def on_coordinates(queries: Queries, A: Floats) -> Floats:
    """Return the strategy over the data, (k, d), whose columns per row are A, (k, c)."""
    if queries.reach is None:
        return A
    size = np.abs(queries.reach).max(axis=1, keepdims=True)  # counts are 1, sums are large
    return np.asarray(lstsq((queries.reach / size).T, A.T)[0].T / size.T)


def _equal(one: Any, two: Any) -> bool:
    return (one is None and two is None) or np.array_equal(one, two)


def _is_queries(queries: object) -> Queries:
    if not isinstance(queries, Queries):
        raise InvalidInput(
            f"a plan is of a Workload or of Queries, got {type(queries).__name__}: "
            "Workload(schema).total(stderr=...), or Queries(cells).ask(name, rows, stderr=...)."
        )
    return queries


def _designed(
    queries: Queries,
    variance: Floats,
    shape: str,
    *,
    refine: bool = False,
    gap: float = 1e-3,
    progress: Watch | None = None,
) -> Plan:
    W, people = queries.matrix, queries.people
    steps = Steps(progress)
    if shape == "fit":
        design: Design = fit(
            _with_absence(queries),
            variance,
            neighbours=people.neighbours,
            refine=refine,
            gap=gap,
            progress=steps.each,
        )
    elif refine:
        raise InvalidInput("only the shape 'fit' is refined: the others are for comparison.")
    elif queries.reach is not None and shape != "total":
        raise InvalidInput(
            f"the shape {shape!r} is for counts, and this workload sums a column: use 'fit' or "
            "'total'."
        )
    else:
        design = _shaped(shape, queries, variance)
    absences = design.A.shape[1] - (W if queries.reach is None else queries.reach).shape[1]
    A = on_coordinates(queries, design.A[:, : design.A.shape[1] - absences])
    steps.begin("rounding")
    executed = rounded(A, W, reach=queries.reach)
    certificate = design.certificate
    if certificate is not None:  # of one row; a person has k
        rows = people.max_rows**2
        certificate = replace(
            certificate, lower=certificate.lower * rows, achieved=certificate.achieved * rows
        )
    told = certificate is not None and certificate.covers == COST and design.q is not None
    prices = design.q / design.q.sum() if told and design.q is not None else None
    return Plan(queries, executed.strategy, shape, refine, certificate, executed.moved, prices)


def _with_absence(queries: Queries) -> Floats:
    """Return W, with a cell that no query asks about where a person may also be absent.

    Under replace, absence is then one more cell to be replaced by, so that every column counts
    on its own.
    """
    W, people = per_row(queries, queries.matrix), queries.people
    absent = people.neighbours == "replace" and (queries.rows_may_leave or people.max_rows > 1)
    return np.pad(W, ((0, 0), (0, int(absent))))


def _shaped(shape: str, queries: Queries, variance: Floats) -> Design:
    """Return the design of a shape; a hierarchy has a tree for each ordered column."""
    W = per_row(queries, queries.matrix)
    layout = queries.layout
    if shape != "hierarchy" or layout is None:
        return DESIGNS[shape](W, variance)
    columns = [layout.schema.columns[axis.column] for axis in layout.axes]
    ordered = [column.ordered for column in columns]
    return hierarchy(W, variance, sizes=layout.shape, ordered=ordered, kept=layout.kept)


def _compared(name: str, queries: Queries, W: Floats) -> Design:
    """Return a design at what it costs under the plan's neighbours; only fit is made for them."""
    neighbours = queries.people.neighbours
    if name == "fit":
        return fit(W, queries.variance, neighbours=neighbours)
    made = _shaped(name, queries, queries.variance)
    A = np.pad(made.A, ((0, 0), (0, W.shape[1] - made.A.shape[1])))  # absence is not measured
    proof = made.certificate if neighbours == made.neighbours else None
    return Design(name, W, made.c, A, certificate=proof, neighbours=neighbours)
