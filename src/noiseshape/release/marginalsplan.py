"""Plans by marginals: what is asked of each, measured in residuals, however large the table.

The whole table is never formed: the cost of a release, the error of every cell and the covariance
of any two follow from one number for each set of attributes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._checks import Floats
from .._memory import free_memory
from ..archive import digest, pack, uncompressed, unpack
from ..design import fit
from ..design.certificate import Certificate
from ..design.marginals import expanded
from ..design.products import products
from ..design.solve import Watch
from ..errors import InvalidInput, TooLarge
from ..privacy import Cost, People, Profile
from ..privacy.ledger import Charge
from ..strategies import Residual
from ..strategies.contrast import Contrast, Helmert, Written
from ..strategies.exact import Integers
from ..strategies.lattice import Lattice, by_size
from ..tables import Workload
from ..tables.asks import Ask, Named, Products
from ..tables.layout import MOST_CHARGED
from .measurement import measure_tables
from .planned import Scaled, Stamp
from .source import Source, is_source
from .table import Table

if TYPE_CHECKING:
    from .marginalsrelease import MarginalsRelease
    from .unionplan import UnionPlan

# Targets aimed at, so that rounding of scales and of noise misses none.
AIM = 1 - 2e-9

# Cells of one marginal that can be counted, measured and published: 48 bytes each while it is.
MOST_PUBLISHED = 200_000_000
_BYTES = 48

# Answers that are listed one by one in a table in memory, at a hundred bytes each.
LISTED = 200_000


@dataclass(frozen=True, eq=False, repr=False)
class MarginalsPlan(Scaled["MarginalsRelease"]):
    """Residuals of marginals, as they will be executed, with what they cost and what they give.

    Attributes
    ----------
    asked
        What is asked, of which attributes, how accurately, and about whom.
    strategy
        Integer contrasts and dyadic scales: the one object that accounts, measures and rebuilds.
    shape
        "fit", or "total" for the least sum of variances.
    certificate
        Proof of how far the designed cost is from the least, and what it covers.
    why
        Why the workload is planned by marginals, in a sentence.
    notes
        What a reader must know of how it was read, in sentences.

    Formal Guarantees:
      ``cost`` holds for what ``release`` executes, given true secret bits; errors are those of the
      integers and the rounded noise that are executed, at most 3e-10 above them in variance.
    """

    kind = "marginals plan"

    asked: Products
    strategy: Residual
    shape: str = "fit"
    certificate: Certificate | None = None
    why: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = self.asked.sizes
        if self.strategy.sizes != sizes or len(self.strategy.asked) != len(self.asked.named):
            raise InvalidInput("the plan's strategy is about other marginals than the plan's.")

    @cached_property
    def cost(self) -> Cost:
        """What one release costs, exactly or rounded up, under the people rule of the workload."""
        asked = self.asked
        return self.strategy.cost(asked.people, rows_may_leave=asked.rows_may_leave)

    @property
    def people(self) -> People:
        """Whose privacy."""
        return self.asked.people

    @cached_property
    def count(self) -> int:
        """How many answers it gives."""
        return sum(len(named.variance) for named in self.asked.named)

    @cached_property
    def _achieved(self) -> tuple[Floats, Floats]:
        """The greatest variance of each query, and its greatest ratio to the target."""
        greatest, ratio = np.empty((2, len(self.asked.named)))
        strategy = self.strategy
        # Of residuals alone, and Helmert's: every cell of a marginal has the same variance.
        if type(strategy) is Residual and all(isinstance(c, Helmert) for c in strategy.contrasts):
            n = np.array(strategy.sizes, dtype=np.float64)
            plain = [i for i, named in enumerate(self.asked.named) if named.ask.plain]
            for group, place in by_size([self.asked.named[i].ask.members for i in plain]):
                at = np.array(plain)[place]
                greatest[at] = _steady(strategy, group, n)
                least = [float(_least(self.asked.named[i])) for i in at.tolist()]
                ratio[at] = greatest[at] / least
            rest = sorted(set(range(len(self.asked.named))) - set(plain))
        else:
            rest = list(range(len(self.asked.named)))
        for i in rest:
            named = self.asked.named[i]
            found = strategy.variances(named.ask)
            greatest[i] = found.max()
            if named.one_target:
                ratio[i] = greatest[i] / named.variance[0]
            else:
                ratio[i] = (named.published(found) / named.variance).max()
        return greatest, ratio

    @property
    def k(self) -> float:
        """The factor by which the variance targets are met (at most 1) or missed (above 1)."""
        return float(self._achieved[1].max())

    def variance(self, name: str) -> Floats:
        """Return the variance of each answer to one query, in the order of its labels."""
        named = self.named(name)
        return named.published(self.strategy.variances(named.ask))

    def named(self, name: str) -> Named:
        """Return a query by its name."""
        if name not in self._names:
            some = ", ".join(repr(known) for known in list(self._names)[:8])
            raise InvalidInput(f"no query is called {name!r}: there are {some}.")
        return self.asked.named[self._names[name]]

    @cached_property
    def _names(self) -> dict[str, int]:
        return {named.name: i for i, named in enumerate(self.asked.named)}

    def covariance(self, one: tuple[str, str], other: tuple[str, str]) -> float:
        """Return the covariance of two answers, each told by its query and label."""
        first, second = (self.row(*each) for each in (one, other))
        return float(self.strategy.covariances(first, second)[0, 0])

    def row(self, name: str, label: str | None = None) -> Ask:
        """Return one answer of a query, or their sum, as a question of its own."""
        named = self.named(name)
        shape = named.ask.shape(self.asked.sizes)
        place = np.zeros(shape)
        if label is None:
            place[...] = 1.0
        else:
            axes = named.labels()
            texts = _split(label, axes)
            if texts is None:
                raise InvalidInput(f"{name!r} has no answer labelled {label!r}.")
            inner = [len(axis) for axis in axes]
            flat = np.zeros(math.prod(inner))
            flat[np.ravel_multi_index(tuple(texts), tuple(inner)) if inner else 0] = 1.0
            published = tuple(shape[i] for i in named.order)
            place = flat.reshape(published).transpose(np.argsort(named.order))
        return summed(named.ask, place)

    def errors(self) -> Table:
        """Return target and achieved standard error: one line a query, since its cells are alike.

        Of a query whose answers differ, the greatest error and the greatest ratio.
        """
        return self.summary()

    def summary(self) -> Table:
        """Return one line a query: its answers, least target, greatest error and ratio."""
        achieved, ratio = self._achieved
        columns: dict[str, Any] = {
            "query": tuple(named.name for named in self.asked.named),
            "answers": [len(named.variance) for named in self.asked.named],
            "target stderr": [math.sqrt(_least(named)) for named in self.asked.named],
            "stderr": np.sqrt(achieved),
            "variance / target": ratio,
        }
        return Table(columns, note="the least target and the greatest error of each query; of "
                     "the noise only")  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """Return cells, the least possible mu, k and every query's error."""
        return {
            "cells": self.strategy.shape[1],
            "measured": self.strategy.shape[0],
            "residuals": len(self.strategy.lattice),
            "least mu": None if self.certificate is None else self.certificate.lower**0.5,
            "k": self.k,
            "errors": list(self.errors().rows()),
        }

    def words(self) -> tuple[str, ...]:
        """Return how it is planned and why, how close to the least cost, and the policies."""
        said = [f"Planned by marginals: {self.why}"] if self.why else []
        if self.certificate is not None and self.shape == "fit":
            least = self.certificate.lower**0.5
            said.append(f"No noise has a lower {self.certificate.covers} than mu {least:.6g}.")
        said.append(f"Every variance is at most {self.k:.6g} times its target.")
        said += [f"  {note}" for note in self.notes]
        policies = self.asked.schema.policies()
        return (*said, *(f"  {name}: {policy}." for name, policy in policies.items()))

    def _scaled(self, factor: float) -> Self:
        return replace(self, strategy=self.strategy.scaled(factor))

    def slack(self) -> Floats:
        """Refuse: marginals cost a person the same in every cell, so that nothing more is free."""
        if not self.strategy.steady:
            raise InvalidInput(
                "a plan by marginals does not tell slack cell by cell: plan by='union' or "
                "by='cells' to use it."
            )
        raise InvalidInput(
            "this plan has no slack: a person costs the same in whatever cell, and nothing more "
            "can be answered for free; ask for it in the same plan."
        )

    def extend(self, _: Any) -> MarginalsPlan:
        """Refuse, as ``slack`` does."""
        raise InvalidInput(
            "this plan has no slack to answer more in: plan all queries together, as one workload."
        )

    def source(self, data: Source | Any, progress: Callable[[str], None] | None = None) -> Source:
        """Return the rows to be counted in each marginal that no other one holds.

        Parameters
        ----------
        progress
            Called with how far the counting is, by the plan alone.
        """
        if is_source(data):
            given: Source = data
            return given
        from ..tables.opening import opened
        from ..tables.tabulate import Tables

        asked = self.asked
        return Tables(  # type: ignore[return-value]
            opened(data), asked.coded, asked.people, self.strategy.tables, progress
        )

    def rehearse(self) -> None:
        """Rebuild public numbers with every kind of contrast; Helmert's cannot fail."""
        for i, contrast in enumerate(self.strategy.contrasts):
            if not isinstance(contrast, Helmert):
                lattice = Lattice.of([() if contrast.whole else (0,)], 1)
                ones = np.ones(len(lattice))
                alone = Residual.of([contrast], lattice, ones, [self._alone(i)])
                x = [(j % 2) << 62 for j in range(contrast.cells)]
                alone.rebuild(alone.apply(x))

    def _alone(self, attribute: int) -> Ask:
        """Return all that is asked of one attribute."""
        factors = [
            named.ask.factors[named.ask.members.index(attribute)]
            for named in self.asked.named
            if named.ask.weights is None and attribute in named.ask.members
        ]
        n = self.asked.sizes[attribute]
        if not factors:
            return Ask((0,), (np.ones((1, n)),))
        distinct = {id(W): W for W in factors}
        rows = [np.eye(n) if W is None else W for W in distinct.values()]
        return Ask((0,), (np.vstack(rows),))

    def charge(self, who: str, what: str) -> Charge:
        """Return what the ledger is told: with a profile, where cells add up and are few."""
        asked = self.asked
        by_cell = asked.people.neighbours == "add-remove" and asked.table is not None
        profile = None
        if by_cell and asked.schema.cells <= MOST_CHARGED:
            square = self.cost.mu_squared
            units = np.full(asked.schema.cells, square.numerator, dtype=object)
            exponent = square.denominator.bit_length() - 1
            if square.denominator == 1 << exponent:
                profile = Profile(units, exponent)
        return Charge(
            who=who,
            what=what or f"{self.count} answers to {len(asked.named)} queries by marginals",
            people=asked.people,
            cost=self.cost,
            profile=profile,
            schema_hash=asked.domain,
            selection=SELECTION,
            spec_hash=self.digest,
        )

    def measured(self, x: Any) -> Integers:
        """Return every residual with its noise, (k,): marginals are taken one at a time."""
        asked = self.asked
        return measure_tables(
            self.strategy, x, self.cost, people=asked.people, rows_may_leave=asked.rows_may_leave
        ).values

    def released(self, y: Integers, stamp: Stamp | None, when: str) -> MarginalsRelease:
        """Return the release of a measurement."""
        from .marginalsrelease import MarginalsRelease

        return MarginalsRelease(self, y, stamp, when)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that the plan says, but for how long its design took."""
        content = self.to_json()
        proof = content["certificate"]
        if proof is not None:
            proof = {name: value for name, value in proof.items() if name != "seconds"}
        return digest(uncompressed({**content, "certificate": proof}))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: the workload, contrasts and scales; nothing of data."""
        return {
            "asked": self.asked.to_json(),
            "contrasts": [_written(c) for c in self.strategy.contrasts],
            "base": pack(self.strategy.base),
            "bits": pack(self.strategy.bits),
            "shape": self.shape,
            "certificate": None if self.certificate is None else asdict(self.certificate),
            "why": self.why,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> MarginalsPlan:
        """Return the plan that ``to_json`` said; costs and errors are computed anew."""
        try:
            asked = Products.from_json(content["asked"])
            contrasts = _contrasts(content["contrasts"], asked.sizes)
            asks = tuple(named.ask for named in asked.named)
            whole = {i for i, contrast in enumerate(contrasts) if contrast.whole}
            lattice = Lattice.of(
                [[i for i in ask.members if i not in whole] for ask in asks], len(asked.sizes)
            )
            base, bits = unpack(content["base"]), unpack(content["bits"])
            if base.shape != (len(lattice),) or bits.shape != base.shape:
                raise InvalidInput("the plan's scales do not fit its marginals: make it anew.")
            proof = content["certificate"]
            return MarginalsPlan(
                asked,
                Residual(contrasts, lattice, base, bits, asks),
                str(content["shape"]),
                None if proof is None else Certificate(**{**proof, "levels": ()}),
                str(content["why"]),
                tuple(map(str, content["notes"])),
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
            f"MarginalsPlan({self.shape} for {self.count:,} answers to {len(self.asked.named):,} "
            f"queries, {self.cost!r}, variances at most {self.k:.6g} times their targets{proof})"
        )


SELECTION = "every row that the policies of its columns keep"


# A workload is designed over its cells at once while that takes seconds: by the lesser of answers
# and cells, which is what an iteration's time grows with, and by the weights that it writes out.
# Marginals alone have their optimum either way, and are planned over cells while that is no wait.
FEW, FEW_MARGINALS = 1024, 512
# A union is another measurement to explain: it is taken where it costs this much less in mu.
CHEAPER = 0.99
WRITTEN, WRITTEN_MARGINALS = 20_000_000, 4_000_000


def by_marginals(
    work: Workload,
    shape: str,
    by: str,
    *,
    refine: bool,
    gap: float,
    progress: Watch | None = None,
) -> MarginalsPlan | UnionPlan | None:
    """Return the plan of a workload by marginals, or None where it is planned over its cells."""
    over_cells = shape not in ("fit", "total") or refine
    summed = any(question.summed is not None for question in work.asks)
    if by == "cells" or (by == "auto" and (over_cells or summed)):
        return None
    if refine:
        raise InvalidInput("a plan by marginals has one profile for all: leave refine out.")
    asked = work.products()
    cells = math.prod(asked.sizes)
    answers = sum(len(named.variance) for named in asked.named)
    plain = all(named.ask.plain for named in asked.named)
    why = "as was asked."
    if by == "auto":
        few, written = (FEW_MARGINALS, WRITTEN_MARGINALS) if plain else (FEW, WRITTEN)
        if min(cells, answers) <= few and cells * answers <= written:
            return None
        why = (
            f"its {_count(cells)} cells are too many to be designed at once in seconds, and its "
            f"{len(asked.named):,} queries are about marginals"
            + (" alone, of which this is the optimum of all." if plain else ".")
        )
    union = None
    if by == "union" or (by == "auto" and not plain and shape == "fit"):
        union = _union(work, gap, why, progress)
        if by == "union":
            return union
    bound = None
    if not plain and cells <= FEW_MARGINALS and cells * answers <= WRITTEN_MARGINALS:
        bound = partial(_bound, work, progress)
    made = plan_marginals(asked, shape=shape, gap=gap, why=why, bound=bound)
    if union is None:
        if by == "auto" and not plain and shape == "fit":
            over = "over too many cells, or beside impossible ones, to be designed in a union"
            why = f"{why[:-1]}; those that are no marginals break its symmetry {over}."
            made = replace(made, why=why)
        return made
    here, there = made.cost.mu, union.cost.mu
    said = f"cost mu {here:.4g} in residuals, and {there:.4g} in a union with its other queries"
    if there < CHEAPER * here:
        return replace(union, why=f"{why[:-1]}; they {said} over their own cells.")
    return replace(made, why=f"{why[:-1]}; they {said} over their own cells.")


def _union(work: Workload, gap: float, why: str, progress: Watch | None) -> UnionPlan | None:
    from .unionplan import plan_union

    made = plan_union(work, gap=gap, why=why, progress=progress)
    if made is None and why == "as was asked.":
        raise InvalidInput(
            "a union is of marginals and of other queries, few enough to be designed over their "
            "own cells: say by='marginals', or ask for both."
        )
    return made


def _bound(work: Workload, progress: Watch | None) -> float:
    """Return a lower bound on mu^2 of any noise, from the design over all cells."""
    queries = work.compiled()
    W, people = queries.matrix, queries.people
    absent = people.neighbours == "replace" and (queries.rows_may_leave or people.max_rows > 1)
    W = np.pad(W, ((0, 0), (0, int(absent))))
    made = fit(
        W, queries.variance, neighbours=people.neighbours, gap=1e-2, on_gap="label",
        progress=progress,
    )  # fmt: skip
    assert made.certificate is not None
    return made.certificate.lower


def _count(cells: int) -> str:
    return f"{cells:,}" if cells < 10**15 else f"10^{len(str(cells)) - 1}"


def plan_marginals(
    asked: Products,
    *,
    shape: str = "fit",
    gap: float = 1e-3,
    why: str = "",
    bound: Callable[[], float] | None = None,
) -> MarginalsPlan:
    """Design residuals for a workload, and round them to the integers that will be executed.

    Parameters
    ----------
    shape
        "fit": every target met at the least cost. "total": the least sum of variances.
    why
        Why it is planned so, in a sentence.
    bound
        What gives a lower bound on mu^2 of all noise, where one can be computed.
    """
    if shape not in ("fit", "total"):
        raise InvalidInput(f"by marginals the shape is 'fit' or 'total', got {shape!r}.")
    _publishable(asked)
    people = asked.people
    may_leave = asked.rows_may_leave or people.max_rows > 1
    asks = tuple(named.ask for named in asked.named)
    targets = [_in_its_shape(named, asked.sizes) for named in asked.named]
    design = products(
        asked.sizes, asks, targets,
        neighbours=people.neighbours,
        rows_may_leave=may_leave and people.neighbours == "replace",
        total=shape == "total", gap=gap,
    )  # fmt: skip
    made = design.made
    strategy = Residual.of(design.contrasts, made.problem.lattice, made.u * AIM, asks)
    rows = people.max_rows**2
    proof = made.certificate
    lower, covers = proof.lower, proof.covers
    if asked.schema.zeros:
        covers += "; cells declared impossible are measured like others"
    if bound is not None and not design.plain:
        lower, covers = bound(), "privacy cost mu^2 for these targets"
    proof = replace(proof, lower=lower * rows, achieved=proof.achieved * rows, covers=covers)
    return MarginalsPlan(asked, strategy, shape, proof, why, _twice(asked))


def _publishable(asked: Products) -> None:
    """Refuse attributes that tell nobody apart, and a marginal that is too large to publish."""
    for axis in asked.axes:
        if axis.count < 2:
            raise InvalidInput(
                f"column {axis.column!r} has one value here and tells nobody apart: leave it out "
                "of the marginals."
            )
    free = free_memory()
    for named in asked.named:
        cells = math.prod(asked.sizes[i] for i in named.ask.members)
        if cells > MOST_PUBLISHED or cells * _BYTES > free:
            raise TooLarge(
                f"{named.name!r} is about {cells:,} cells, {cells * _BYTES / 1e9:,.1f} GB while "
                f"it is counted and published, of at most {MOST_PUBLISHED:,} cells and "
                f"{free / 1e9:,.1f} GB that are free: ask about fewer columns together, "
                "or in coarser bands."
            )


def _in_its_shape(named: Named, sizes: Sequence[int]) -> Floats:
    """Return targets in the order of the ask's axes, flat; or one for all of them."""
    if named.one_target:
        return named.variance[:1]
    shape = named.ask.shape(sizes)
    published = named.variance.reshape([shape[i] for i in named.order])
    return published.transpose(np.argsort(named.order)).reshape(-1)


def _least(named: Named) -> float:
    return float(named.variance[0] if named.one_target else named.variance.min())


def _twice(asked: Products) -> tuple[str, ...]:
    """Return a sentence for each marginal that is asked again to another accuracy."""
    first: dict[tuple[int, ...], Named] = {}
    known: dict[tuple[int, ...], set[float]] = {}
    for named in asked.named:
        if named.ask.plain and (before := first.setdefault(named.ask.members, named)) is not named:
            targets = known.setdefault(named.ask.members, {_least(before)})
            targets.add(_least(named))
    return tuple(
        f"The marginal of {', '.join(asked.axes[i].column for i in members) or 'nothing (total)'} "
        f"is asked with different targets: the tightest, a standard error of "
        f"{min(targets) ** 0.5:g}, holds for all of them."
        for members, targets in known.items()
        if len(targets) > 1
    )


def _steady(strategy: Residual, group: Any, n: Floats) -> Floats:
    """Return the variance of a cell of each marginal, (m,), for Helmert's contrasts."""
    values = expanded(1 - 1 / n[group], n[group] ** -2.0)
    return np.asarray((values * strategy.u[strategy.lattice.subsets(group)]).sum(axis=1))


def summed(ask: Ask, place: Floats) -> Ask:
    """Return one question: a combination, with weights ``place`` in the ask's shape, of answers."""
    if ask.weights is not None:
        return Ask(ask.members, weights=np.tensordot(place, ask.weights, 1)[None])
    weights = place
    for factor in ask.factors:  # the axis to treat is first, and goes last
        moved = weights if factor is None else np.tensordot(factor.T, weights, 1)
        weights = np.moveaxis(moved, 0, -1)
    return Ask(ask.members, weights=np.ascontiguousarray(weights)[None])


def _split(label: str, axes: Sequence[Sequence[str]]) -> list[int] | None:
    """Return the place of each part of a label along its axis."""
    if not axes:
        return [] if not label else None
    # Labels may hold commas: the first axis is matched by what the text begins with.
    first, rest = axes[0], axes[1:]
    for place, text in enumerate(first):
        if not rest and label == text:
            return [place]
        if rest and label.startswith(f"{text}, "):
            found = _split(label[len(text) + 2 :], rest)
            if found is not None:
                return [place, *found]
    return None


def _written(contrast: Contrast) -> Any:
    """Return a contrast as JSON values: Helmert's by its size."""
    if isinstance(contrast, Helmert):
        return contrast.n
    rows, sigma = pack(contrast.written()), pack(contrast.sigma)
    return {"rows": rows, "sigma": sigma, "whole": contrast.whole}


def _contrasts(content: Sequence[Any], sizes: Sequence[int]) -> tuple[Contrast, ...]:
    known: dict[int, Helmert] = {}
    found: list[Contrast] = []
    for said, size in zip(content, sizes, strict=True):
        if isinstance(said, int):
            found.append(known.setdefault(said, Helmert(said)))
        else:
            whole = bool(said["whole"])
            found.append(Written(unpack(said["rows"]), unpack(said["sigma"]), whole=whole))
        if found[-1].cells != size:
            raise InvalidInput("the plan's contrasts do not fit its schema: make the plan anew.")
    return tuple(found)
