"""Plans of mixed workloads: marginals in residuals, and what breaks their symmetry over its cells.

    cells        all other queries, over the cells of the columns V that they tell apart, and what
                 marginals ask of those columns
    residuals    what marginals tell beyond V, which costs a person the same in any cell

Both are designed together: one iteration shares the cost between them, and its weights bound what
any Gaussian noise must cost (docs/math/marginals.md, "Unions").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from .._checks import Floats
from ..archive import digest, uncompressed, unpack
from ..design import fit
from ..design.certificate import COST, Certificate
from ..design.joint import JointDesign, Mixed, joint
from ..design.marginals import expanded, in_order, stacked
from ..design.solve import Watch
from ..errors import InvalidInput
from ..privacy import Profile
from ..privacy.ledger import Charge
from ..strategies import Residual
from ..strategies.contrast import Helmert
from ..strategies.exact import Integers
from ..strategies.joint import Joint
from ..strategies.lattice import Ints, Lattice, by_size
from ..tables import Queries, Workload
from ..tables.asks import Named, Products
from ..tables.layout import Layout
from ..tables.queries import replace_queries
from .marginalsplan import (
    AIM,
    FEW,
    WRITTEN,
    MarginalsPlan,
    _least,
    _publishable,
    _twice,
    plan_marginals,
)
from .plan import Plan, _designed
from .planned import Stamp

if TYPE_CHECKING:
    from .unionrelease import UnionRelease

# Answers of the marginals over the cells of V that are weighed one by one.
MOST_WEIGHED = 1_000_000
# How close a lower bound of a part is proved.
ROUGH = 0.02


@dataclass(frozen=True, eq=False, repr=False)
class UnionPlan(MarginalsPlan):
    """One strategy for a mixed workload: rows over some columns' cells, residuals beyond them.

    Attributes
    ----------
    cells
        What is measured over the cells: its queries are those that are no marginals, and what
        marginals ask of the same columns; its targets, what the residuals leave.

    Formal Guarantees:
      ``cost`` holds for what ``release`` executes: the sum of both parts'. Errors are exact: noise
      of the two is independent.
    """

    kind = "union plan"

    cells: Plan = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        same = isinstance(self.strategy, Joint) and self.strategy.block is self.cells.strategy
        if not same:
            raise InvalidInput("the plan's cells are measured by another strategy than the plan's.")

    @property
    def joint(self) -> Joint:
        """The strategy, as it is executed."""
        return cast("Joint", self.strategy)

    @property
    def share(self) -> float:
        """How much of the cost is spent over the cells."""
        rows = self.people.max_rows**2
        return float(self.cells.cost.mu_squared / (self.joint.beside * rows
                                                   + self.cells.cost.mu_squared))  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """Return the parts' sizes, the least possible mu, k and every query's error."""
        over = self.cells.strategy.shape[0]
        return {
            "measured in residuals": self.strategy.shape[0] - over,
            "measured over cells": over,
            "share of the cells": self.share,
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
        columns = ", ".join(self.asked.axes[i].column for i in self.joint.inside)
        said.append(f"{self.share:.1%} of the cost is spent over the cells of {columns}.")
        said += [f"  {note}" for note in self.notes]
        policies = self.asked.schema.policies()
        return (*said, *(f"  {name}: {policy}." for name, policy in policies.items()))

    def _scaled(self, factor: float) -> UnionPlan:
        strategy = self.joint.scaled(factor)
        return replace(self, strategy=strategy, cells=replace(self.cells, strategy=strategy.block))

    def slack(self) -> Floats:
        """Return how much mu^2 is left in each cell of ``cells.queries``, rounded down.

        Residuals leave none; what the other part leaves below its own greatest is free.
        """
        return self.refine().cells.slack()

    def refine(self) -> UnionPlan:
        """Return the same plan with the least profile over the cells, so that slack is exact."""
        return self if self.cells.refined else self._with(self.cells.refine())

    def _with(self, cells: Plan, asked: Products | None = None) -> UnionPlan:
        """Return the same residuals beside another measurement of the cells."""
        strategy = self.joint.with_block(cells.strategy)
        if asked is None:
            return replace(self, strategy=strategy, cells=cells)
        strategy = replace(strategy, asked=tuple(named.ask for named in asked.named))
        return replace(self, strategy=strategy, cells=cells, asked=asked)

    def extend(self, work: Workload) -> UnionPlan:
        """Return a plan that answers further queries too, at no extra cost, inside the slack.

        They may cut columns only where the queries over cells cut them.
        """
        repeated = [name for name in work.names if name in self._names]
        if repeated:
            raise InvalidInput(
                f"a query named {repeated[0]!r} is planned already: give it another name."
            )
        base = self.refine()
        more = base.cells.extend(work)
        further = work.products().named
        named = []
        for name, question, each in zip(work.names, work.asks, further, strict=True):
            ask, order, numbered = self.asked.ask(question)
            named.append(Named(name, ask, order, question.families, numbered, each.variance))
        return base._with(more, replace(self.asked, named=(*self.asked.named, *named)))

    def rehearse(self) -> None:
        """Rebuild public numbers as large as counts may be."""
        self.cells.rehearse()

    def charge(self, who: str, what: str) -> Charge:
        """Return what the ledger is told: profiles of both parts, where there is one."""
        charge, over = super().charge(who, what), self.cells.charge(who, what).profile
        if charge.profile is None or over is None:
            return replace(charge, profile=None)
        beside = self.joint.beside * self.people.max_rows**2
        units = np.full(len(over), beside.numerator, dtype=object)
        both = over + Profile(units, beside.denominator.bit_length() - 1)
        return replace(charge, profile=both if both.greatest == self.cost.mu_squared else None)

    def released(self, y: Integers, stamp: Stamp | None, when: str) -> UnionRelease:
        """Return the release of a measurement."""
        from .unionrelease import UnionRelease

        return UnionRelease(self, y, stamp, when)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that the plan says, but for how long its design took."""
        content = self.to_json()
        proof = content["certificate"]
        if proof is not None:
            proof = {name: value for name, value in proof.items() if name != "seconds"}
        said = {**content, "certificate": proof, "cells": self.cells.digest}
        return digest(uncompressed(said))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: the workload and both parts; nothing of data."""
        content = super().to_json()
        content["contrasts"] = []  # Helmert's all, by the workload's sizes
        return {**content, "inside": list(self.joint.inside), "cells": self.cells.to_json()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> UnionPlan:
        """Return the plan that ``to_json`` said; costs and errors are computed anew."""
        try:
            asked, cells = Products.from_json(content["asked"]), Plan.from_json(content["cells"])
            base, bits = unpack(content["base"]), unpack(content["bits"])
            lattice = _lattice(asked)
            if base.shape != (len(lattice),) or bits.shape != base.shape:
                raise InvalidInput("the plan's scales do not fit its marginals: make it anew.")
            asks = tuple(named.ask for named in asked.named)
            residual = Residual(_helmert(asked), lattice, base, bits, asks)
            inside = tuple(map(int, content["inside"]))
            proof = content["certificate"]
            return UnionPlan(
                asked,
                Joint.joining(residual, inside, cells.strategy),
                str(content["shape"]),
                None if proof is None else Certificate(**{**proof, "levels": ()}),
                str(content["why"]),
                tuple(map(str, content["notes"])),
                cells,
            )
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput("the plan file lacks a part: make the plan anew.") from None

    def __repr__(self) -> str:
        proof = ""
        if self.certificate is not None:
            proof = f", gap {self.certificate.gap:.1e}"
        return (
            f"UnionPlan({self.count:,} answers to {len(self.asked.named):,} queries, over "
            f"{len(self.cells.queries.cells):,} cells and in residuals beyond, {self.cost!r}, "
            f"variances at most {self.k:.6g} times their targets{proof})"
        )


@dataclass(frozen=True, eq=False)
class _Seen:
    """A mixed workload as it is designed: queries over the cells of V, and residuals beyond."""

    inside: tuple[int, ...]
    queries: Queries
    mixed: Mixed
    lattice: Lattice
    beyond: Ints


def plan_union(
    work: Workload, *, gap: float = 1e-3, why: str = "", progress: Watch | None = None
) -> UnionPlan | None:
    """Design a union for a workload of marginals and others.

    None where it is not both, where the cells of the others are too many, or where some cells are
    impossible, which the symmetry of the residuals does not know.
    """
    asked = work.products()
    seen = _seen(work, asked)
    if seen is None:
        return None
    _publishable(asked)
    design = joint(seen.mixed, gap=gap)
    u = np.full(len(seen.lattice), 1.0)
    u[seen.beyond] = design.u * AIM
    asks = tuple(named.ask for named in asked.named)
    residual = Residual.of(_helmert(asked), seen.lattice, u, asks)
    queries = _left(seen, replace(design, u=residual.u[seen.beyond]))
    cells = _designed(queries, queries.variance * AIM, "fit", gap=gap / 2, progress=progress)
    strategy = Joint.joining(residual, seen.inside, cells.strategy)
    made = UnionPlan(asked, strategy, "fit", None, why, _twice(asked), cells)
    rows = asked.people.max_rows**2
    design = design.proving(float(made.joint.cost_of_one("add-remove")), gap=gap)
    lower = design.everywhere(asked.people.neighbours)
    if asked.people.neighbours == "replace":
        lower = max(lower, *_apart(work, seen, gap))
    proof = Certificate(
        lower * rows,
        float(made.cost.mu_squared),
        iterations=design.iterations,
        reason="shared by one iteration",
        neighbours=asked.people.neighbours,
        covers=COST,
    )
    return replace(made, certificate=proof)


def _apart(work: Workload, seen: _Seen, gap: float) -> list[float]:
    """Return what marginals alone, and what is asked over the cells, must cost under replace.

    Weights that are best for add-remove prove little of it where few cells differ.
    """
    asked = work.products()
    plain = [named.name for named in asked.named if named.ask.plain]
    alone = plan_marginals(work.only(plain).products(), gap=gap).certificate
    mixed = seen.mixed
    own = np.flatnonzero(mixed.a == 1)  # asked of the cells of V alone
    W, c = mixed.W[mixed.row[own]], mixed.c[own]
    absent = asked.rows_may_leave or asked.people.max_rows > 1
    W = np.pad(W, ((0, 0), (0, int(absent))))
    over = fit(W, c, neighbours="replace", gap=ROUGH, on_gap="label").certificate
    assert alone is not None
    assert over is not None
    return [alone.lower / asked.people.max_rows**2, over.lower]


def _helmert(asked: Products) -> tuple[Helmert, ...]:
    known: dict[int, Helmert] = {}
    return tuple(known.setdefault(size, Helmert(size)) for size in asked.sizes)


def _lattice(asked: Products) -> Lattice:
    """Return all sets within marginals: what others ask is measured over their cells."""
    plain = [named.ask.members for named in asked.named if named.ask.plain]
    return Lattice.of(plain, len(asked.sizes))


def _seen(work: Workload, asked: Products) -> _Seen | None:
    """Return a workload as it is designed; None where it cannot be."""
    plain = [named for named in asked.named if named.ask.plain]
    others = [named for named in asked.named if not named.ask.plain]
    if not plain or not others or work.schema.zeros:
        return None
    sizes = asked.sizes
    inside = tuple(sorted({i for named in others for i in named.ask.members}))
    cells = math.prod(sizes[i] for i in inside)
    parts = [tuple(i for i in named.ask.members if i in inside) for named in plain]
    counts = [math.prod(sizes[i] for i in part) for part in parts]
    distinct = dict.fromkeys(parts)
    rows = sum(len(named.variance) for named in others)
    rows += sum(math.prod(sizes[i] for i in part) for part in distinct)
    if min(cells, rows) > FEW or cells * rows > WRITTEN or sum(counts) > MOST_WEIGHED:
        return None
    layout = Layout(work.schema, tuple(asked.axes[i] for i in inside))
    queries = work.only([named.name for named in others]).on(layout)
    own, at, begins = len(queries.variance), len(queries.variance), {}
    for part in distinct:
        begins[part] = at
        W: Any = 1.0
        for i in inside:
            W = np.kron(W, np.eye(sizes[i]) if i in part else np.ones((1, sizes[i])))
        name = " x ".join(asked.axes[i].column for i in part) or "all"
        queries = queries.ask(_free(f"cells of {name}", asked), W, variance=1.0,
                              labels=list(map(str, range(len(W)))))  # fmt: skip
        at += len(W)
    lattice = _lattice(asked)
    outside = np.ones(len(sizes))
    outside[list(inside)] = 0.0
    beyond = np.flatnonzero(lattice.greatest(outside) > 0)
    n = np.array(sizes, dtype=np.float64)
    column = np.full(len(lattice), -1)
    column[beyond] = np.arange(len(beyond))
    B = _entries([named.ask.members for named in plain], lattice, 1 - 1 / n, n**-2.0)
    B = sparse.csr_array(B.tocsc()[:, beyond])
    away = [tuple(i for i in named.ask.members if i not in inside) for named in plain]
    apart = _entries(away, Lattice.of(away, len(sizes)), (1 - 1 / n) ** 2, n**-2.0)
    each = np.repeat(np.arange(len(plain)), counts)
    alone = sparse.csr_array((np.ones(own), (np.arange(own), np.zeros(own, dtype=int))),
                             shape=(own, apart.shape[1]))  # fmt: skip
    mixed = Mixed(
        np.asarray(queries.matrix),
        np.concatenate([np.arange(own), *(begins[p] + np.arange(k)
                                          for p, k in zip(parts, counts, strict=True))]),
        np.concatenate([queries.variance[:own],
                        np.repeat([_least(named) for named in plain], counts)]),
        sparse.csr_array(sparse.vstack([sparse.csr_array((own, len(beyond))), B[each]])),
        lattice.product(1 - 1 / n)[beyond],
        sparse.csc_array(sparse.vstack([alone, apart[each]])),
    )  # fmt: skip
    return _Seen(inside, queries, mixed, lattice, beyond)


def _entries(
    sets: Sequence[tuple[int, ...]], lattice: Lattice, within: Floats, without: Floats
) -> sparse.csr_array:
    """Return, for each set and each subset of it, the product of what attributes contribute."""
    groups = by_size(sets)
    numbers = [lattice.subsets(group) for group, _ in groups]
    values = [expanded(within[group], without[group]) for group, _ in groups]
    return in_order(stacked(numbers, values, len(lattice)), [place for _, place in groups])


def _left(seen: _Seen, design: JointDesign) -> Queries:
    """Return the queries over cells with the targets that the residuals leave."""
    mixed = seen.mixed
    rest = (mixed.c - design.beyond()) / mixed.a
    target = np.full(len(mixed.W), np.inf)
    np.minimum.at(target, mixed.row, rest)
    ends = np.cumsum([len(query.labels) for query in seen.queries.queries])
    queries = [
        replace(query, variance=part)
        for query, part in zip(seen.queries.queries, np.split(target, ends[:-1]), strict=True)
    ]
    return replace_queries(seen.queries, tuple(queries))


def _free(name: str, asked: Products) -> str:
    known = {named.name for named in asked.named}
    while name in known:
        name += "'"
    return name
