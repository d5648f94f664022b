"""What a report says of plans and releases of tables."""

from __future__ import annotations

from html import escape

import numpy as np

from ..release.intervals import NOISE_ONLY
from ..release.plan import Plan
from ..release.release import Release
from . import planned, released, words
from .page import Section, listed, pairs, said, shown
from .picture import html_table, tabled
from .svg import number

SHAPES = {
    "fit": "fitted to the targets at the least privacy cost",
    "total": "of least total error",
    "hierarchy": "a hierarchy",
    "identity": "the same on every cell",
    "sm2": "fitted by SM-II",
}
# A report stays below 3 MB: what pictures and the tables behind them may take, by estimates that
# do not depend on values. The files hold the rest.
MOST_BYTES = 1_900_000
MOST_ROWS, FEW_ROWS = 2_000, 20


def subject(plan: Plan) -> str:
    """Return what the numbers are about."""
    return f"Statistics about {plan.queries.table}" if plan.queries.table else ""


def asked(plan: Plan) -> str:
    """Return what is asked, and which rows count."""
    queries = plan.queries
    table = tabled(
        {
            "query": [q.name for q in queries.queries],
            "answers": [f"{len(q.labels):,}" for q in queries.queries],
            "target standard error, at most": [
                number(float(np.sqrt(q.variance.max()))) for q in queries.queries
            ],
            "cells": [
                " \u2026 ".join(dict.fromkeys([q.labels[0], q.labels[-1]])) for q in queries.queries
            ],
        }
    )
    body = html_table(table)
    if queries.layout is None:
        return body
    schema, people = queries.layout.schema, queries.people
    rules = [f"{name}: {policy}." for name, policy in schema.policies().items()]
    rules += [f"Impossible, and left out: {text}." for text in schema.excluded]
    if people.unit != "rows":
        rules.append(
            f"Of each {people.unit} at most {people.max_rows} rows count, chosen by a hash of that "
            "person's own values; rows without it are left out."
        )
    return body + "<h3>Which rows count</h3>" + listed(rules)


def sections(plan: Plan, delta: float, *, compare: bool) -> list[Section]:
    """Return what is known before any data is touched, beside the privacy."""
    return [
        Section("targets", "How accurate every answer is", shown(planned.targets(plan))),
        Section("prices", "Which target is the dear one", shown(planned.prices(plan, delta))),
        Section("noise", "How the noise is shaped", shown(planned.correlation(plan))),
        Section("room", "What is left for free", shown(planned.room(plan))),
        Section(
            "compare",
            "Against other noise",
            shown(planned.comparison(plan)) if compare else "",
        ),
        Section(
            "proof", "How good it is: the proof", said(words.proof(plan.certificate)) + made(plan)
        ),
    ]


def made(plan: Plan) -> str:
    """Return how the design was found, and what is executed."""
    proof = plan.certificate
    facts = [
        ("noise", SHAPES.get(plan.shape, plan.shape) + (", refined" if plan.refined else "")),
        (
            "drawn",
            "rounded Gaussian, exact, in integers, from the operating system\u2019s secret bits",
        ),
        (
            "measured",
            f"{plan.strategy.shape[0]:,} integer combinations of {plan.strategy.shape[1]:,} cells",
        ),
    ]
    if proof is not None:
        facts.append(("search", f"{proof.iterations} steps; {proof.reason}"))
    return pairs(facts)


def values(release: Release) -> str:
    """Return a picture of every query, with its table."""
    left, parts = MOST_BYTES, []
    for picture in released.pictures(release):
        count = len(picture.table)
        drawn, rows = 200 * min(count, released.MOST_SHADES), 240 * min(count, MOST_ROWS)
        if drawn > left:
            parts.append(f"<p>{escape(picture.title)}: its {count:,} answers are in the files.</p>")
            continue
        parts.append(picture.html(MOST_ROWS if drawn + rows <= left else FEW_ROWS))
        left -= drawn + (rows if drawn + rows <= left else 240 * FEW_ROWS)
    intro = said(
        f"Every number is unbiased, and stands with its 95 % interval ({NOISE_ONLY}). Counts may "
        "come out below zero or not quite add up: the noise is left as it is, so that errors stay "
        "known."
    )
    return intro + "".join(parts)
