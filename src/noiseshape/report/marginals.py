"""What a report says of plans and releases by marginals."""

from __future__ import annotations

import math

import numpy as np

from ..privacy import Cost
from ..release.intervals import NOISE_ONLY
from ..release.marginalsplan import MarginalsPlan
from ..release.marginalsrelease import MarginalsRelease
from ..strategies.contrast import Helmert
from . import planned, released, words
from .page import Section, listed, pairs, said, shown
from .picture import Picture, html_table, tabled
from .svg import WIDTH, Scale, across, bar, number, short, text, width_of
from .tables import FEW_ROWS, MOST_BYTES, MOST_ROWS

MOST_PICTURES = 24
MOST_LISTED = 200  # queries, and sentences about columns, that are written out
MOST_DRAWN = 20_000  # answers of a query that is drawn


def subject(plan: MarginalsPlan) -> str:
    """Return what the numbers are about."""
    return f"Statistics about {plan.asked.table}" if plan.asked.table else ""


def asked(plan: MarginalsPlan) -> str:
    """Return what is asked, and which rows count."""
    sentences = plan.words()
    left = len(sentences) - MOST_LISTED
    more = [f"And {left:,} columns more, in provenance.json."] if left > 0 else []
    return html_table(plan.summary(), most=MOST_LISTED) + listed([*sentences[:MOST_LISTED], *more])


def sections(plan: MarginalsPlan, delta: float, *, compare: bool) -> list[Section]:  # noqa: ARG001
    """Return errors, where the privacy goes, plain noise at the same privacy, and the proof."""
    proof = "" if plan.certificate is None else words.proof(plan.certificate)
    return [
        Section("targets", "How accurate every answer is", shown(planned.queries(plan))),
        Section("noise", "How the noise is shaped", shown(_residuals(plan)) + _made(plan)),
        Section(
            "room",
            "What is left for free",
            said(
                "A person costs the same in whatever cell, so that nothing more can be answered "
                "for free: ask for everything in one plan."
            ),
        ),
        Section("compare", "Against other noise", _comparison(plan) if compare else ""),
        Section("proof", "How good it is: the proof", said(proof)),
    ]


def values(release: MarginalsRelease) -> str:
    """Return pictures of the first queries, as many as there is room for."""
    parts = [
        said(
            f"Every number is unbiased, and stands with its 95 % interval ({NOISE_ONLY}). Counts "
            "may come out below zero: the noise is left as it is, so that errors stay known."
        )
    ]
    left, undrawn, drawn = MOST_BYTES, 0, 0
    for named in release.plan.asked.named:
        count = len(named.variance)
        size = 200 * min(count, released.MOST_SHADES) + 240 * FEW_ROWS
        if count > MOST_DRAWN or drawn >= MOST_PICTURES or size > left:
            undrawn += 1
            continue
        rows = 240 * min(count, MOST_ROWS)
        parts.append(pictured(release, named.name).html(MOST_ROWS if size + rows <= left else 20))
        drawn += 1
        left -= size + (rows if size + rows <= left else 0)
    if undrawn:
        parts.append(f"<p>{undrawn:,} further queries are in the files.</p>")
    return "".join(parts)


def pictured(release: MarginalsRelease, name: str) -> Picture:
    """Return the picture of one query."""
    table = release.table(name)
    labels = tuple(str(cell) for cell in table["cell"])
    value, stderr = (np.asarray(table[column]) for column in ("value", "stderr"))
    return released.of_answers(name, labels, value, stderr)


def _residuals(plan: MarginalsPlan) -> Picture | None:
    """Return which parts of marginals the privacy is spent on."""
    strategy, names = plan.strategy, [axis.column for axis in plan.asked.axes]
    if not all(isinstance(contrast, Helmert) for contrast in strategy.contrasts):
        return None  # what a set costs then differs from cell to cell
    sizes = np.array(strategy.sizes, dtype=np.float64)
    sets = [tuple(strategy.lattice.members(i)) for i in range(len(strategy.lattice))]
    spent = np.array([math.prod(1 - 1 / sizes[i] for i in members) for members in sets])
    share = spent / np.asarray(strategy.u)  # docs/math/marginals.md: these add up to mu^2
    share = share / share.sum()
    order = np.argsort(-share, kind="stable")[:25]
    labels = [" x ".join(names[i] for i in sets[k]) or "total" for k in order]
    left = width_of(labels)
    x = Scale(0.0, 100 * float(share.max()) * 1.12, left, WIDTH - 60)
    bottom = 10.0 + 24 * len(order)
    drawn = [across(x, 10.0, bottom, "share of mu\u00b2, %")]
    for k, i in enumerate(order):
        at, part = 10.0 + 24 * (k + 0.5), 100 * float(share[i])
        drawn.append(bar(x(0), at - 8, x(part), at + 8, "fill", f"{labels[k]}: {part:.2f} %"))
        drawn.append(text(left - 8, at + 4, short(labels[k], left), "label", "end"))
        drawn.append(text(x(part) + 6, at + 4, f"{part:.1f} %", "value"))
    return Picture(
        "What the privacy is spent on",
        f"Of {len(sets):,} sets of columns most is spent on {labels[0]}: what they tell together "
        "beyond each smaller set.",
        "".join(drawn),
        bottom + 42,
        tabled({"columns": labels, "share of mu\u00b2, %": np.round(100 * share[order], 3)}),
        "A set of columns is measured by what it tells beyond all smaller ones; the noise of these "
        "parts is independent, and every marginal is put together of them.",
    )


def _made(plan: MarginalsPlan) -> str:
    return pairs(
        [
            ("drawn", "rounded Gaussian, exact, in integers, from the operating system's secret "
                      "bits"),
            ("measured", f"{plan.strategy.shape[0]:,} integers in {len(plan.strategy.lattice):,} "
                         "sets of columns"),
        ]
    )  # fmt: skip


def _comparison(plan: MarginalsPlan) -> str:
    """Return plain noise on cells and on answers at the same privacy, both in closed form."""
    people = plan.people
    if people.neighbours != "add-remove" or not all(
        named.ask.plain and named.one_target for named in plan.asked.named
    ):
        return ""
    targets = np.array([float(named.variance[0]) for named in plan.asked.named])
    mu = plan.cost.mu / people.max_rows
    sizes = plan.strategy.sizes
    # A cell of a marginal adds up so many cells of the whole table.
    log_added = np.array(
        [
            sum(math.log10(n) for i, n in enumerate(sizes) if i not in set(named.ask.members))
            for named in plan.asked.named
        ]
    )
    on_cells = float((log_added - np.log10(targets)).max()) - 2 * math.log10(mu)
    on_answers = float((1 / targets).sum()) / mu**2
    rows = [
        ("this plan", number(plan.k), plan.cost.mu * math.sqrt(plan.k)),
        (
            "plain: on each answer by itself",
            number(on_answers),
            plan.cost.mu * math.sqrt(on_answers),
        ),
        (
            "plain: on every cell of the table",
            number(10**on_cells) if on_cells < 12 else f"10^{on_cells:.0f}",
            plan.cost.mu * 10 ** (on_cells / 2) if on_cells < 300 else math.inf,
        ),
    ]
    table = tabled(
        {
            "noise": [r[0] for r in rows],
            "worst variance / target": [r[1] for r in rows],
            "mu to meet every target": [number(r[2]) for r in rows],
            "epsilon then (delta 1e-9)": [
                number(Cost.of(r[2]).epsilon(1e-9)) if r[2] < 1e3 else "more than 10^5"
                for r in rows
            ],
        },
        note="all at the privacy of this plan",
    )
    return html_table(table)
