"""What a report of a plan, or of a release, consists of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from .._arb import fraction_up
from .._version import __version__
from ..privacy import Ledger
from ..release.intervals import NOISE_ONLY
from . import planned, released, words
from .page import Report, Section, listed, page, pairs, said
from .picture import DERIVED, END, Picture, html_table, tabled
from .svg import number

if TYPE_CHECKING:
    from ..release.plan import Plan
    from ..release.release import Release

DELTA = 1e-9
SHAPES = {
    "fit": "fitted to the targets at the least privacy cost",
    "total": "of least total error",
    "hierarchy": "a hierarchy",
    "identity": "the same on every cell",
    "sm2": "fitted by SM-II",
}
# Rows of tables behind pictures, in all: the files hold the rest.
MOST_TABLED = 12_000


def of_plan(
    plan: Plan,
    *,
    delta: float = DELTA,
    title: str = "",
    ledger: Ledger | None = None,
    compare: bool = True,
) -> Report:
    """Return the report of a plan: what it would release, at what cost, how accurately."""
    return page(
        title or _title(plan),
        "Plan: no data has been touched",
        _lead(plan, "would be released"),
        _facts(plan, delta),
        [
            Section("what", "What would be released, and about whom", _what(plan)),
            *_planned(plan, delta, compare=compare),
            Section("budget", "The budget", _budget(ledger, plan)),
            Section("design", "The design, and how it was made", _made(plan)),
        ],
    )


def of_release(
    release: Release,
    *,
    delta: float = DELTA,
    title: str = "",
    ledger: Ledger | None = None,
    compare: bool = True,
) -> Report:
    """Return the report of a release: what was released, at what cost, how accurately."""
    plan = release.plan
    return page(
        title or _title(plan),
        f"Release of {_day(release.when)}",
        _lead(plan, "were released"),
        _facts(plan, delta),
        [
            Section("what", "What was released, and about whom", _what(plan)),
            Section("values", "The released numbers", _values(release)),
            *_planned(plan, delta, compare=compare),
            Section("budget", "The budget", _budget(ledger, None)),
            Section("provenance", "Provenance", _provenance(release) + _made(plan)),
            Section("cite", "How to cite these numbers", _cite(release)),
        ],
    )


def _planned(plan: Plan, delta: float, *, compare: bool) -> list[Section]:
    """Return what a plan and its releases have in common."""
    cost, people = plan.cost, plan.queries.people
    prices = planned.prices(plan, delta)
    return [
        Section(
            "privacy",
            "What it costs in privacy",
            listed(words.plainly(cost, people)) + planned.curve(cost, delta).html(),
        ),
        Section("targets", "How accurate every answer is", planned.targets(plan).html()),
        Section(
            "prices",
            "Which target is the dear one",
            prices.html() if prices is not None else "",
        ),
        Section("noise", "How the noise is shaped", _html(planned.correlation(plan))),
        Section("room", "What is left for free", _html(planned.room(plan))),
        Section(
            "compare",
            "Against other noise",
            _html(planned.comparison(plan) if compare else None),
        ),
        Section(
            "proof",
            "How good it is: the proof",
            said(words.proof(plan.certificate)),
        ),
    ]


def _html(shown: Picture | str | None) -> str:
    if shown is None:
        return ""
    return said(shown) if isinstance(shown, str) else shown.html()


def _title(plan: Plan) -> str:
    table = plan.queries.table
    return f"Statistics about {table}" if table else f"{len(plan.queries.names):,} statistics"


def _lead(plan: Plan, verb: str) -> str:
    asked = plan.queries
    one = words.person(asked.people)
    return (
        f"{len(asked.names):,} answers to {len(asked.queries):,} "
        f"quer{'y' if len(asked.queries) == 1 else 'ies'} {verb}, with noise that hides {one}."
    )


def _facts(plan: Plan, delta: float) -> list[tuple[str, str]]:
    cost = plan.cost
    met = plan.k <= 1 + 1e-9
    found = [
        (f"\u03b5 {number(cost.epsilon(delta))}", f"epsilon at delta {delta:g}, rounded up"),
        (f"\u03bc {number(cost.mu)}", "the same as one number (Gaussian privacy)"),
        (
            "all met" if met else f"missed {number(math.sqrt(plan.k))}\u00d7",
            "accuracy targets" if met else "the worst standard error over its target",
        ),
    ]
    proof = plan.certificate
    if proof is not None and proof.lower > 0:
        own = "" if plan.shape == "fit" else ", of its own objective"
        found.append((f"{100 * proof.gap:.2g} %", f"at most from the optimum, proven{own}"))
    return found


def _what(plan: Plan) -> str:
    asked = plan.queries
    rows = [
        (
            query.name,
            f"{len(query.labels):,}",
            number(float(np.sqrt(query.variance.max()))),
            " \u2026 ".join(dict.fromkeys([query.labels[0], query.labels[-1]])),
        )
        for query in asked.queries
    ]  # fmt: skip
    table = tabled(
        {
            "query": [r[0] for r in rows],
            "answers": [r[1] for r in rows],
            "target standard error, at most": [r[2] for r in rows],
            "cells": [r[3] for r in rows],
        }
    )
    body = said(words.neighbours(asked.people)) + html_table(table)
    if asked.layout is not None:
        schema = asked.layout.schema
        body += "<h3>Which rows count</h3>" + listed(
            [f"{name}: {policy}." for name, policy in schema.policies().items()]
            + [f"Impossible, and left out: {text}." for text in schema.impossible]
        )
        if asked.people.unit != "rows":
            body += said(
                f"Of each {asked.people.unit} at most {asked.people.max_rows} rows count, "
                f"chosen by a "
                "hash of that person's own values; rows without it are left out."
            )
    return body


def _values(release: Release) -> str:
    pictures = released.pictures(release)
    left, parts = MOST_TABLED, []
    for picture in pictures:
        most = min(2_000, max(left, 20))
        parts.append(picture.html(most))
        left -= min(len(picture.table), most)
    intro = said(
        f"Every number is unbiased, and stands with its 95 % interval ({NOISE_ONLY}). Counts "
        f"may come "
        "out below zero or not quite add up: the noise is left as it is, so that errors stay known."
    )
    return intro + "".join(parts)


def _budget(ledger: Ledger | None, plan: Plan | None) -> str:
    if ledger is None:
        return ""
    cap, spent = float(ledger.budget.mu_squared), float(ledger.spent().mu_squared)
    parts = [("spent", spent, "blue")]
    sentences = [
        f"The ledger allows {ledger.budget.stated} in all, fixed when it was made; its vintage is "
        f"{ledger.vintage or 'not named'}. Entries so far: {len(ledger.history())}."
    ]
    if plan is not None:
        from ..release.run import _charge

        more = ledger.would_cost(_charge(plan, "", ""))
        if Fraction(more.mu_squared) > ledger.budget.mu_squared - ledger.spent().mu_squared:
            sentences.append("This plan does not fit into what is left.")
        parts.append(("this plan", fraction_up(more.mu_squared), "orange soft"))
    used = sum(part[1] for part in parts)
    parts.append(("left", max(0.0, cap - used), "left"))
    return said(*sentences) + planned.budget(parts, cap).html()


def _made(plan: Plan) -> str:
    proof = plan.certificate
    facts = [
        (
            "noise",
            escape(SHAPES.get(plan.shape, plan.shape)) + (", refined" if plan.refined else ""),
        ),
        (
            "drawn",
            "rounded Gaussian, exact, in integers, from the operating system\u2019s secret bits",
        ),
        (
            "measured",
            f"{plan.strategy.shape[0]:,} integer combinations of {plan.strategy.shape[1]:,} cells",
        ),
        ("cost, exactly", f"mu\u00b2 = <code>{_exact(plan.cost.mu_squared)}</code>"),
        ("zero-concentrated", f"rho = {number(plan.cost.rho)}"),
        ("plan", f"<code>{plan.digest}</code>"),
    ]
    if proof is not None:
        facts.insert(3, ("search", f"{proof.iterations} steps; {escape(proof.reason)}"))
    return pairs(facts)


def _exact(value: Fraction) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{number(fraction_up(value))}, rounded up"


def _provenance(release: Release) -> str:
    from ..archive import digest

    paid = (
        "unrecorded: no ledger accounts for this release"
        if release.stamp is None
        else f"ledger entry {release.stamp.number}, <code>{escape(release.stamp.hash)}</code>"
    )
    values = digest(release.to_json()["values"])
    return pairs(
        [
            ("when", escape(release.when)),
            ("paid by", paid),
            ("values", f"<code>{DERIVED}{values}{END}</code>"),
            ("software", f"Noiseshape {escape(__version__)}"),
        ]
    )


def _cite(release: Release) -> str:
    plan = release.plan
    table = plan.queries.table or "these statistics"
    paid = "" if release.stamp is None else f" Ledger entry {release.stamp.hash[:16]}."
    note = (
        f"Source: {table}, released {_day(release.when)} with differential privacy (Gaussian "
        f"noise, "
        f"mu = {plan.cost.mu:.4g}; epsilon = {plan.cost.epsilon(DELTA):.4g} at delta = {DELTA:g}; "
        f"{plan.queries.people.neighbours} neighbours, unit {plan.queries.people.unit}). Standard "
        f"errors are of the noise only. Noiseshape {__version__}, plan {plan.digest[:16]}.{paid}"
    )
    return (
        said("With a table or a figure that uses these numbers, say:")
        + f"<pre>{escape(note)}</pre>"
        + said(
            "Give standard errors or intervals with every number, and those of anything "
            "computed from "
            "them: release.answer(...) has the exact error of sums, differences and any other "
            "combination, which adding errors one by one gets wrong."
        )
    )


def _day(when: str) -> str:
    return when[:10]


__all__: Sequence[str] = ["of_plan", "of_release"]
