"""What a report says of plans and releases of a kind that has no pictures of its own."""

from __future__ import annotations

from ..release.planned import Planned, Released
from .page import Section, listed
from .picture import drawer, html_table


def subject(plan: Planned) -> str:  # noqa: ARG001
    """Return what the numbers are about: nothing is known."""
    return ""


def asked(plan: Planned) -> str:
    """Return what is asked, in words and as a table."""
    return listed(plan.words()) + html_table(plan.summary())


def sections(plan: Planned, delta: float, *, compare: bool) -> list[Section]:  # noqa: ARG001
    """Return how accurate every answer is."""
    return [
        Section("targets", "How accurate every answer is", drawer(plan.errors(), "Every answer"))
    ]


def values(release: Released) -> str:
    """Return the answers as a table."""
    return html_table(release.table())
