"""What a report says of plans and releases of any other kind, from what all kinds tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..release.intervals import NOISE_ONLY
from ..release.planned import Planned, Released
from . import planned, released, words
from .page import Section, listed, said, shown
from .picture import drawer, html_table
from .tables import FEW_ROWS, MOST_BYTES, MOST_ROWS

ANSWERS = ("query", "cell", "value", "stderr")
MOST_LISTED = 200
MOST_PICTURES = 24


def subject(plan: Planned) -> str:  # noqa: ARG001
    """Return what the numbers are about: nothing is known."""
    return ""


def asked(plan: Planned) -> str:
    """Return what is asked, in words and as a table."""
    return html_table(plan.summary(), most=MOST_LISTED) + listed(plan.words()[:MOST_LISTED])


def sections(plan: Planned, delta: float, *, compare: bool) -> list[Section]:  # noqa: ARG001
    """Return how accurate every answer is, and the proof."""
    drawn = {"query", "variance / target"} <= set(plan.summary().columns)
    proof: Any = getattr(plan, "certificate", None)
    return [
        Section(
            "targets",
            "How accurate every answer is",
            shown(planned.queries(plan)) if drawn else drawer(plan.errors(), "Every answer"),
        ),
        Section(
            "proof",
            "How good it is: the proof",
            said(words.proof(proof)) if proof is not None else "",
        ),
    ]


def values(release: Released) -> str:
    """Return pictures of the first queries, if the answers are told by queries; else a table."""
    table = release.table()
    if not set(ANSWERS) <= set(table.columns):
        return html_table(table, most=MOST_ROWS)
    names = np.array(table["query"])
    parts = [said(f"Every number stands with its 95 % interval ({NOISE_ONLY}).")]
    left, undrawn = MOST_BYTES, 0
    for number, name in enumerate(dict.fromkeys(table["query"])):
        at = np.flatnonzero(names == name)
        size = 200 * min(len(at), released.MOST_SHADES) + 240 * min(len(at), MOST_ROWS)
        if number >= MOST_PICTURES or size > left:
            undrawn += 1
            continue
        labels = tuple(str(table["cell"][i]) for i in at)
        value, stderr = (np.asarray(table[column])[at] for column in ("value", "stderr"))
        picture = released.of_answers(str(name), labels, value, stderr)
        parts.append(picture.html(MOST_ROWS if size <= left else FEW_ROWS))
        left -= size
    if undrawn:
        parts.append(said(f"{undrawn:,} further queries are in the files."))
    return "".join(parts)
