"""What notebooks show of an object: the same pictures, in small."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ..privacy import Cost, Ledger
from ..release.marginalsrelease import MarginalsRelease
from ..release.matrixrelease import MatrixRelease
from ..release.plan import Plan
from ..release.planned import Planned, Released
from ..release.release import Release
from ..release.table import Table
from . import marginals, matrices, planned, released
from .picture import Picture, html_table, tabled
from .style import SCRAP
from .svg import number

if TYPE_CHECKING:
    from ..tables import Schema, Workload

MOST_PICTURES = 3


def scrap(title: str, *parts: Picture | Table | str) -> str:
    """Return a title with pictures, tables and sentences as HTML that brings its own style."""
    shown = "".join(map(_part, parts))
    return (
        f'<div class="noiseshape"><style>{SCRAP}</style><p><strong>{escape(title)}</strong></p>'
        f"{shown}</div>"
    )


def _part(part: Picture | Table | str) -> str:
    if isinstance(part, Picture):
        return f"<p>{escape(part.title)}</p>{part.svg()}<p><small>{escape(part.said)}</small></p>"
    return html_table(part, most=30) if isinstance(part, Table) else f"<p>{escape(part)}</p>"


def of_cost(cost: Cost) -> str:
    """Return a cost: its numbers and its curve."""
    return scrap(
        f"mu {cost.mu:.6g}, rho {cost.rho:.6g}, {cost.neighbours} neighbours", planned.curve(cost)
    )


def of_plan(plan: Planned) -> str:
    """Return a plan: cost, accuracy, and which targets are dear."""
    cost = plan.cost
    title = (
        f"Plan of {plan.count:,} answers: epsilon {number(cost.epsilon(1e-9))} at delta 1e-9 "
        f"(mu {number(cost.mu)}, {cost.neighbours})"
    )
    parts: list[Any] = [*plan.words()]
    if isinstance(plan, Plan):
        parts += [planned.targets(plan), planned.prices(plan)]
    else:
        parts.append(plan.summary())
    return scrap(title, *(part for part in parts if part is not None))


def of_release(release: Released) -> str:
    """Return a release: how it was paid, and its first pictures."""
    cost = release.plan.cost
    paid = "unrecorded" if release.stamp is None else f"ledger entry {release.stamp.number}"
    title = (
        f"Release of {release.plan.count:,} answers, {release.when[:10]}, {paid}: epsilon "
        f"{number(cost.epsilon(1e-9))} at delta 1e-9"
    )
    if isinstance(release, MatrixRelease):
        picture = matrices.pictured(release)
        return scrap(title, *([picture] if picture is not None else []))
    if isinstance(release, MarginalsRelease):
        small = [n.name for n in release.plan.asked.named if len(n.variance) <= 5_000]
        return scrap(title, *(marginals.pictured(release, n) for n in small[:MOST_PICTURES]))
    if not isinstance(release, Release):
        return scrap(title, release.table())
    pictures: Sequence[Picture] = released.pictures(release)
    left = len(pictures) - MOST_PICTURES
    more = [f"More pictures ({left}) are in release.report()."] if left > 0 else []
    return scrap(title, *pictures[:MOST_PICTURES], *more)


def of_ledger(ledger: Ledger) -> str:
    """Return a ledger: its budget, and what it was spent on."""
    cap, spent = float(ledger.budget.mu_squared), float(ledger.spent().mu_squared)
    parts: list[Any] = [
        planned.budget([("spent", spent, "blue"), ("left", max(0.0, cap - spent), "left")], cap)
    ]
    entries = ledger.history()
    if entries:
        parts.append(
            tabled(
                {
                    "entry": [e.number for e in entries],
                    "when": [e.when for e in entries],
                    "who": [e.charge.who for e in entries],
                    "what": [e.charge.what for e in entries],
                    "mu": [e.charge.cost.mu for e in entries],
                }
            )
        )
    return scrap(f"Ledger: {ledger.budget.stated}; vintage {ledger.vintage or 'none'}", *parts)


def of_schema(schema: Schema) -> str:
    """Return a schema: its columns, recodes, and what becomes of odd values."""
    policies = schema.policies()
    columns = tabled(
        {
            "column": list(schema.columns),
            "kind": [domain.kind for domain in schema.columns.values()],
            "cells": [f"{domain.size:,}" for domain in schema.columns.values()],
            "from": [domain.label(0) for domain in schema.columns.values()],
            "to": [domain.label(domain.regular - 1) for domain in schema.columns.values()],
            "policies": [policies[name] for name in schema.columns],
        }
    )
    parts: list[Any] = [columns]
    if schema.recodes:
        parts.append(
            tabled(
                {
                    "recode": list(schema.recodes),
                    "of": [recode.of for recode in schema.recodes.values()],
                    "labels": [", ".join(schema.view(n).labels[:12]) for n in schema.recodes],
                }
            )
        )
    parts += [f"Impossible: {text}" for text in schema.excluded]
    return scrap(f"Schema of {schema.cells:,} cells", *parts)


def of_workload(work: Workload) -> str:
    """Return a workload: its queries and their targets."""
    rows = work.listing()
    if not rows:
        return scrap("Workload: nothing is asked yet")
    table = tabled({name: [row[name] for row in rows] for name in rows[0]})
    return scrap(repr(work), table)
