"""What a report says of plans and releases of matrix queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import Floats
from ..errors import NoiseshapeError
from ..release.matrixplan import MatrixPlan
from ..release.matrixrelease import MatrixRelease
from ..release.shapes import isotropic
from . import words
from .page import Section, listed, pairs, said, shown
from .picture import Picture, html_table, tabled
from .svg import (
    WIDTH,
    Scale,
    across,
    bar,
    brief,
    line,
    number,
    short,
    spanning,
    text,
    whisker,
    width_of,
)

MOST = 40  # rows and columns of a matrix that is drawn
WRITTEN = 8  # up to so many, its numbers are written into it
MOST_ROWS = 2_000
MOST_COMPARED = 2_000  # coordinates
MOST_BARS = 40


def subject(plan: MatrixPlan) -> str:
    """Return what the numbers are about."""
    return f"{plan.query.kind.capitalize()}, {_size(plan)}"


def _size(plan: MatrixPlan) -> str:
    return " x ".join(f"{n:,}" for n in plan.query.shape)


def asked(plan: MatrixPlan) -> str:
    """Return what is asked, in words, and its parts."""
    parts = plan.query.parts
    table = tabled({"measured": list(parts), "numbers": [f"{n:,}" for n in parts.values()]})
    return listed(plan.words()) + html_table(table)


def sections(plan: MatrixPlan, delta: float, *, compare: bool) -> list[Section]:  # noqa: ARG001
    """Return errors, the shape of the noise, and other noise at the same privacy."""
    return [
        Section("targets", "How accurate every entry is", _errors(plan)),
        Section("noise", "How the noise is shaped", _shape(plan)),
        Section("compare", "Against other noise", _comparison(plan) if compare else ""),
        Section("proof", "How good it is: the proof", said(_proof(plan))),
    ]


def values(release: MatrixRelease) -> str:
    """Return the answer as a picture with its table, as far as it can be drawn."""
    exact = release.plan.query.linear
    intro = said(
        "Every entry stands with its 95 % interval, of the noise only. "
        + ("Entries are unbiased." if exact else "Errors are simulated from the release itself.")
    )
    picture = pictured(release)
    if picture is None:
        return intro + said(f"{release.plan.count:,} entries are in the files.")
    return intro + picture.html(MOST_ROWS)


def pictured(release: MatrixRelease) -> Picture | None:
    """Return the picture of an answer; None where it has no rows and columns to draw."""
    plan = release.plan
    shape = plan.query.shape
    if plan.count > 50_000 or len(shape) > 2:
        return None
    table = release.table()
    if len(shape) == 1 or min(shape) == 1:
        return _bars(release, table)
    drawn, height = matrix(
        release.answer, plan.query.labels[0], plan.query.labels[1], errors=release.stderr
    )
    cut = max(shape) > MOST
    return Picture(
        plan.query.kind.capitalize(),
        f"A matrix of {_size(plan)}: blue above zero, orange below, stronger where it is larger.",
        drawn,
        height,
        table,
        ("The number, and its standard error, show where the pointer rests. " if not cut else "")
        + (f"The first {MOST} rows and columns are drawn." if cut else ""),
        derived=True,
    )


def matrix(
    values: Floats,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    *,
    errors: Floats | None = None,
) -> tuple[str, float]:
    """Return a matrix as a field of shades, and its height: two colours around zero."""
    r, c = min(len(rows), MOST), min(len(columns), MOST)
    shown_values = values[:r, :c]
    largest = float(np.abs(shown_values).max()) or 1.0
    left = width_of(rows[:r], 150)
    cell = min(74.0, (WIDTH - left - 100) / c)
    tall = min(cell, 40.0) if r > 1 else 30.0
    turned = width_of(columns[:c], 120) > cell
    top = 20.0 + (width_of(columns[:c], 110) * 0.75 if turned else 0)
    written = max(r, c) <= WRITTEN
    drawn = []
    for i in range(r):
        for j in range(c):
            value = float(shown_values[i, j])
            error = "" if errors is None else f", standard error {number(float(errors[i, j]))}"
            x, y, share = left + j * cell, top + i * tall, abs(value) / largest
            kind = "plus" if value >= 0 else "minus"
            told = f"{rows[i]}, {columns[j]}: {number(value)}{error}"
            drawn.append(bar(x, y, x + cell, y + tall, kind, told, shade=max(0.03, share)))
            if written:
                drawn.append(
                    text(
                        x + cell / 2, y + tall / 2 + 4, brief(float(f"{value:.2g}")), "on", "middle"
                    )
                )
        drawn.append(text(left - 8, top + (i + 0.5) * tall + 4, short(rows[i], left), "label",
                          "end"))  # fmt: skip
    for j in range(c):
        x = left + (j + 0.5) * cell
        turn = -50 if turned else 0
        drawn.append(text(x + (3 if turned else 0), top - 6, short(columns[j], 110), "tick",
                          "start" if turned else "middle", turn))  # fmt: skip
    x = left + c * cell + 16
    parts = (1.0, 0.5, -0.5, -1.0) if float(shown_values.min()) < 0 else (1.0, 0.5)
    for k, part in enumerate(parts):
        at = top + 20 * k
        drawn.append(bar(x, at, x + 14, at + 14, "plus" if part > 0 else "minus", shade=abs(part)))
        drawn.append(text(x + 20, at + 11, brief(float(f"{part * largest:.2g}")), "tick"))
    return "".join(drawn), max(top + r * tall, top + 80) + 14


def _bars(release: MatrixRelease, table: Any) -> Picture:
    value, low, high = (np.asarray(table[n]) for n in ("value", "low", "high"))
    first = next(name for name in table.columns if not isinstance(table[name], np.ndarray))
    labels = tuple(table[first])[:MOST_BARS]
    n = len(labels)
    left = width_of(labels)
    least, most = spanning([*low[:n], *high[:n]])
    x = Scale(least, most, left, WIDTH - 80)
    drawn = [across(x, 10.0, 10.0 + 24 * n, "")]
    for i, label in enumerate(labels):
        at = 10.0 + 24 * (i + 0.5)
        drawn.append(bar(x(0), at - 8, x(float(value[i])), at + 8, "blue soft"))
        drawn.append(whisker(x(float(low[i])), x(float(high[i])), at))
        drawn.append(text(left - 8, at + 4, short(label, left), "label", "end"))
        drawn.append(text(WIDTH - 72, at + 4, brief(float(value[i])), "value"))
    more = "" if len(value) == n else f" The first {n} of {len(value):,} are drawn."
    return Picture(
        release.plan.query.kind.capitalize(),
        f"{len(value):,} entries as bars with intervals.{more}",
        "".join(drawn),
        34 + 24 * n,
        table,
        "Bars are answers, the lines on them 95 % intervals." + more,
        derived=True,
    )


def _errors(plan: MatrixPlan) -> str:
    if not plan.query.sized:
        return said(
            "How accurate the answer will be depends on how many rows there are, which is private "
            "too: say expected=... when asking, for the errors at that number."
        ) + html_table(plan.summary())
    if plan.count > 50_000:
        return html_table(plan.summary())
    table = plan.errors()
    shape = plan.query.shape
    if len(shape) != 2 or min(shape) == 1:
        return html_table(plan.summary()) + html_table(table, most=MOST_ROWS)
    drawn, height = matrix(plan.stderr, plan.query.labels[0], plan.query.labels[1])
    least, most = float(plan.stderr.min()), float(plan.stderr.max())
    return Picture(
        "The standard error of every entry",
        f"Between {number(least)} and {number(most)}; {table.note}.",
        drawn,
        height,
        table,
        f"Errors are {table.note}.",
    ).html(MOST_ROWS)


def _shape(plan: MatrixPlan) -> str:
    ends = np.cumsum(list(plan.query.parts.values()))[:-1]
    errors = np.split(np.sqrt(plan.coordinates), ends)
    table = tabled(
        {
            "part": list(plan.query.parts),
            "numbers": [f"{len(e):,}" for e in errors],
            "least stderr": [float(e.min()) for e in errors],
            "greatest stderr": [float(e.max()) for e in errors],
        },
        note="of what is measured, in its own units; the answer is computed from it",
    )
    return pairs([("noise", plan.shape), *([("note", plan.note)] if plan.note else [])]) + (
        html_table(table)
    )


def _comparison(plan: MatrixPlan) -> str:
    """Return equal noise in all directions at the same privacy, beside this plan's."""
    if plan.shape == "isotropic" or plan.query.size > MOST_COMPARED or not plan.query.sized:
        return ""
    try:
        plain = isotropic(plan.query)
        total = plain.total * float(plain.cost.mu_squared / plan.cost.mu_squared)
    except (NoiseshapeError, ArithmeticError):
        return ""
    scale = Scale(0.0, max(total, plan.total) * 1.15, 160.0, WIDTH - 80)
    drawn = [across(scale, 10.0, 74.0, "sum of the variances of all entries")]
    rows = [("this plan", plan.total, "fill"), ("equal in all directions", total, "blue soft")]
    for i, (name, value, kind) in enumerate(rows):
        at = 26.0 + 32 * i
        drawn.append(bar(scale(0), at - 9, scale(value), at + 9, kind))
        drawn.append(text(152, at + 4, name, "strong" if i == 0 else "label", "end"))
        drawn.append(text(scale(value) + 6, at + 4, number(value), "value"))
    drawn.append(line(scale(0), 10, scale(0), 74, "span"))
    return shown(
        Picture(
            "Total error at the same privacy",
            f"Equal noise in all directions has {number(total / plan.total)} times the total error "
            "of this plan.",
            "".join(drawn),
            114,
            tabled(
                {
                    "noise": [r[0] for r in rows],
                    "sum of variances": [r[1] for r in rows],
                    "times this plan's": [r[1] / plan.total for r in rows],
                }
            ),
        )
    )


def _proof(plan: MatrixPlan) -> str:
    if plan.certificate is None:
        return "There is no proof of how good this noise is: it was given, and its cost is exact."
    return words.near(plan.certificate)
