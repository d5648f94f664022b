"""A spec of several parts: tables and matrices, planned alike and released under one ledger.

Each part is a release of its own, with a ledger entry and a published folder ``out/NAME``; the
queries of the tables together are the part ``tables``. Everything that can be refused is refused
for all of them before the first is debited: what every part reads, rebuilds, and costs together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from ._arb import sqrt_down
from .design.solve import Watch
from .errors import BudgetExceeded, InvalidInput, ReleaseFailed
from .privacy import Budget, Cost, Ledger
from .release import (
    MarginalsPlan,
    MatrixPlan,
    OrderedPlan,
    Plan,
    Planned,
    Released,
    RowsPlan,
    UnionPlan,
)
from .release import plan as designed
from .release.publication import published, writable
from .release.run import run
from .spec import TABLES, Spec

Parts = Mapping[str, Planned]


def planned(spec: Spec, folder: Path, progress: Watch | None = None) -> dict[str, Planned]:
    """Return the plan of each part, by name, within the spec's budget together.

    Targets that need more than the budget are refused; with ``prioritise: privacy`` all variances
    are scaled by one factor so that the parts together spend it.
    """
    parts: dict[str, Plan | MarginalsPlan | UnionPlan | OrderedPlan | MatrixPlan | RowsPlan] = {}
    if spec.queries:
        work = spec.workload(folder)
        parts[TABLES] = designed(work, shape=spec.shape, progress=progress)
    parts |= {name: matrix.plan(spec.said_people()) for name, matrix in spec.named().items()}
    budget = spec.ceiling()
    if budget is None:
        if spec.prioritise == "privacy":
            raise InvalidInput("prioritise: privacy spends a budget exactly: give one.")
        return dict(parts)
    together = total(parts)
    k = together.mu_squared / budget.mu_squared
    if spec.prioritise == "privacy":
        return {name: plan.within(_share(plan, k)) for name, plan in parts.items()}
    if k > 1:
        raise BudgetExceeded(
            f"the targets of {len(parts)} parts together need {budget.in_its_words(together)}, and "
            f"the budget is {budget.stated}: it buys every target variance times {float(k):.6g} "
            f"(standard errors times {float(k) ** 0.5:.6g}); relax the targets by that, raise the "
            "budget, or say prioritise: privacy."
        )
    return dict(parts)


def _share(plan: Planned, k: Fraction) -> Budget:
    """Return a part's share of a budget, rounded down: all variances times k."""
    return Budget(mu=sqrt_down(plan.cost.mu_squared / k))


def total(parts: Parts) -> Cost:
    """Return what all parts cost together."""
    first, *others = (plan.cost for plan in parts.values())
    return sum(others, first)


def released(
    parts: Parts,
    data: Any,
    *,
    ledger: str | os.PathLike[str] | None,
    out: Path,
    unrecorded: bool = False,
    vintage: str | None = None,
    who: str = "",
    what: str = "",
    resume: int | None = None,
) -> dict[str, Released]:
    """Release each part into ``out/NAME``: all of them are checked before the first is debited.

    With ``resume``, parts that are published in ``out`` are left as they are, the one that this
    entry paid for is continued, and those that follow are released.
    """
    if resume is None:
        writable(out)
    done = {name: published(out / name) for name in parts if (out / name).exists()}
    for name, release in done.items():
        if release.plan.digest != parts[name].digest:
            raise InvalidInput(f"{out / name} was published of another plan: name another folder.")
    left = {name: plan for name, plan in parts.items() if name not in done}
    sources = {name: plan.source(data) for name, plan in left.items()}
    for plan in left.values():
        plan.rehearse()
    book = None if ledger is None else Ledger.open(ledger)
    entry = None if book is None else _paid(book, left, resume)
    if book is not None:
        _affordable(book, {name: plan for name, plan in left.items() if name != entry})
    out.mkdir(exist_ok=True)
    for name, plan in left.items():
        try:
            done[name] = run(
                plan,
                sources[name],
                ledger=book,
                out=out / name,
                who=who,
                what=f"{what or 'release'}: {name}",
                vintage=vintage,
                unrecorded=unrecorded,
                resume=resume if name == entry else None,
            )
        except ReleaseFailed as error:
            whole = [part for part in parts if part in done]
            published_so_far = f" Published before it: {', '.join(whole)}." if whole else ""
            raise ReleaseFailed(f"{name}: {error}{published_so_far}") from None
        finally:
            if not any(out.iterdir()):
                out.rmdir()
    return {name: done[name] for name in parts}


def _paid(book: Ledger, parts: Parts, resume: int | None) -> str | None:
    """Return the part that a ledger entry paid for."""
    if resume is None:
        return None
    plans = {plan.digest: name for name, plan in parts.items()}
    for entry in book.history():
        if entry.number == resume and entry.charge.spec_hash in plans:
            return plans[entry.charge.spec_hash]
    raise InvalidInput(
        f"ledger entry {resume} paid for none of the parts that are not published yet: "
        f"{', '.join(parts) or 'none is left'}."
    )


def _affordable(book: Ledger, parts: Parts) -> None:
    """Refuse parts that together cost more than a ledger has left: none of them is debited."""
    if not parts:
        return
    # Refuses other people than the ledger's, too. At most one part has a profile, so that what
    # each adds by itself is what they add together.
    adds = [book.would_cost(plan.charge("anybody", name)) for name, plan in parts.items()]
    together, left = sum(adds[1:], adds[0]), book.remaining()
    if together.mu_squared > left.mu_squared:
        raise BudgetExceeded(
            f"{len(parts)} parts together cost mu = {together.mu:.6g}, and {left.mu:.6g} remains "
            "in the ledger: relax their targets, or release fewer. Nothing was spent."
        )
