"""Pictures of what is known before any data is touched: privacy, targets, prices, room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..design.compare import NAMES
from ..errors import NoiseshapeError
from ..privacy import Cost
from .picture import Picture, tabled
from .svg import (
    WIDTH,
    Scale,
    across,
    bar,
    chance,
    dot,
    line,
    number,
    path,
    short,
    text,
    upright,
    width_of,
)

if TYPE_CHECKING:
    from ..release.plan import Plan
    from ..release.planned import Planned

ROW = 26.0
# Beyond this many entries of the workload, the other designs take longer than a reader waits.
MOST_COMPARED = 150_000
# Ticks of a strip that coincide on the screen are drawn once.
_SAME = 1.5
MOST_CORRELATED = 48
# Queries that are drawn in a line each, and those that are in the table behind.
MOST_QUERIES, MOST_LISTED = 40, 2_000


def curve(cost: Cost, delta: float = 1e-9) -> Picture:
    """Return the epsilon-delta curve of a cost, with the point at ``delta`` marked."""
    chosen = cost.epsilon(delta)
    least = min(1e-12, delta / 100)
    deltas = np.logspace(math.log10(least), math.log10(cost.delta(0.0)), 40)[:-1].tolist()
    points = [(cost.epsilon(d), d) for d in deltas] + [(0.0, cost.delta(0.0))]
    x = Scale(0.0, max(points[0][0], chosen) * 1.05, 62.0, WIDTH - 16)
    y = Scale(least, 1.0, 262.0, 26.0, log=True)
    drawn = [
        upright(y, x.start, x.end, "delta (log scale)"),
        across(x, y.end, y.start, "epsilon"),
        path(
            [(x.start, y.start), *((x(e), y(d)) for e, d in reversed(points))], "area", closed=True
        ),
        path([(x(e), y(d)) for e, d in points], "stroke"),
        line(x.start, y(delta), x(chosen), y(delta), "guide"),
        line(x(chosen), y(delta), x(chosen), y.start, "guide"),
        dot(x(chosen), y(delta), 5, "point", f"epsilon {number(chosen)} at delta {chance(delta)}"),
    ]
    right = x(chosen) < WIDTH - 260
    drawn.append(
        text(x(chosen) + (10 if right else -10), y(delta) + (-8 if right else 17),
             f"epsilon {number(chosen)} at delta {chance(delta)}", "strong",
             "start" if right else "end")
    )  # fmt: skip
    drawn.append(text(x.start + 14, y.start - 12, "promises that this does not keep", "faint"))
    drawn.append(text(x.end - 8, y.end + 16, "every promise on or above the line holds", "faint",
                      "end"))  # fmt: skip
    stated = [10.0**-k for k in range(3, 13)]
    rows = sorted({*stated, delta}, reverse=True)
    table = tabled(
        {"delta": tuple(chance(d) for d in rows), "epsilon": [cost.epsilon(d) for d in rows]},
        note=f"mu {cost.mu:.6g}; rho {cost.rho:.6g} (zero-concentrated); rounded up",
    )
    return Picture(
        "Privacy as a curve: for each epsilon, the least delta",
        f"The release is epsilon {number(chosen)} at delta {chance(delta)}.",
        "".join(drawn),
        302,
        table,
        "All of these promises hold at once: they are one curve, not a choice to be made.",
    )


def targets(plan: Plan) -> Picture:
    """Return every answer's variance over its target, tightest query first."""
    errors = plan.errors()
    # Equal ratios stay in the plan's order: a plan read from a file has other last digits.
    ratios = np.round(np.asarray(errors["variance / target"]), 7)
    names = np.array(errors["query"])
    order = sorted(
        dict.fromkeys(errors["query"]), key=lambda name: -float(ratios[names == name].max())
    )
    shown = order[:40]
    left = width_of(shown)
    low, high = float(ratios.min()), float(ratios.max())
    x = Scale(min(low / 1.1, 0.9), max(high * 1.15, 1.15), left, WIDTH - 70, log=True)
    top = 30.0
    bottom = top + ROW * len(shown)
    drawn = [across(x, top, bottom, "variance, as a multiple of its target (log scale)")]
    drawn += [
        line(x(1), top - 8, x(1), bottom, "target"),
        text(x(1), top - 12, "target", "strong", "middle"),
    ]
    for i, name in enumerate(shown):
        at = top + ROW * (i + 0.5)
        mine = np.sort(ratios[names == name])
        last = -math.inf
        for value in mine:
            if x(value) - last >= _SAME:
                last = x(value)
                drawn.append(line(last, at - 8, last, at + 8, "tick-mark"))
        missed = mine[-1] > 1 + 1e-9
        drawn.append(dot(x(mine[-1]), at, 4.5, "bad" if missed else "point",
                         f"{name}: at most {number(float(mine[-1]))} times its "
                         f"target"))  # fmt: skip
        drawn.append(text(left - 8, at + 4, short(name, left), "label", "end"))
        drawn.append(text(WIDTH - 62, at + 4, number(float(mine[-1])), "value"))
    worst = float(ratios.max())
    met = (
        "every target is met" if worst <= 1 + 1e-9 else f"targets are missed up to {worst:.4g} fold"
    )
    order_all = np.argsort(-ratios, kind="stable")
    table = tabled(
        {
            "query": [errors["query"][i] for i in order_all],
            "cell": [errors["label"][i] for i in order_all],
            "target stderr": np.asarray(errors["target"])[order_all],
            "stderr": np.asarray(errors["stderr"])[order_all],
            "variance / target": ratios[order_all],
        },
        note="tightest first; standard errors are of the noise only",
    )
    return Picture(
        "Every target against what it gets, tightest first",
        f"{len(ratios):,} answers to {len(order)} queries: {met}.",
        "".join(drawn),
        bottom + 42,
        table,
        "A tick is an answer, the dot the worst of its query. Left of the line is better "
        "than asked.",
    )


def queries(plan: Planned) -> Picture:
    """Return every query's greatest ratio of variance to target, tightest first."""
    summary = plan.summary()
    ratios = np.asarray(summary["variance / target"])
    order = np.argsort(-ratios.round(7), kind="stable")
    top = order[:MOST_QUERIES]
    names = [str(summary["query"][i]) for i in top]
    left = width_of(names)
    x = Scale(min(float(ratios.min()) / 1.1, 0.9), max(float(ratios.max()) * 1.15, 1.15), left,
              WIDTH - 70, log=True)  # fmt: skip
    bottom = 30.0 + 24 * len(top)
    drawn = [
        across(x, 30.0, bottom, "variance, as a multiple of its target (log scale)"),
        line(x(1), 22, x(1), bottom, "target"),
        text(x(1), 18, "target", "strong", "middle"),
    ]
    for k, i in enumerate(top):
        at = 30.0 + 24 * (k + 0.5)
        ratio = float(ratios[i])
        missed = ratio > 1 + 1e-9
        drawn.append(dot(x(ratio), at, 4.5, "bad" if missed else "point",
                         f"{names[k]}: {number(ratio)}"))  # fmt: skip
        drawn.append(text(left - 8, at + 4, short(names[k], left), "label", "end"))
        drawn.append(text(WIDTH - 62, at + 4, number(ratio), "value"))
    some = f" The tightest {len(top)} are drawn." if len(top) < len(order) else ""
    table = tabled(
        {name: [summary[name][i] for i in order[:MOST_LISTED]] for name in summary.columns},
        note=summary.note,
    )
    return Picture(
        "Every query against its target, tightest first",
        f"{len(order):,} queries; the worst has {number(float(ratios.max()))} times its target "
        f"variance.{some}",
        "".join(drawn),
        bottom + 42,
        table,
        "The dot is the worst answer of a query. Left of the line is better than asked." + some,
    )


def prices(plan: Plan, delta: float = 1e-9) -> Picture | None:
    """Return which targets the privacy is spent on, and what relaxing them could save."""
    if plan.prices is None or not plan.prices.sum() > 0:
        return None
    names = [query.name for query in plan.queries.queries]
    owner = np.array(plan.queries.names)
    shares = {n: float(plan.prices[owner == n].sum() / plan.prices.sum()) for n in names}
    order = sorted(names, key=lambda n: -shares[n])
    shown = order[:25]
    left = width_of(shown)
    x = Scale(0.0, max(shares.values()) * 1.12, left, WIDTH - 60)
    top = 14.0
    bottom = top + ROW * len(shown)
    drawn = [across(Scale(0, x.high * 100, x.start, x.end), top, bottom, "share of the price, %")]
    for i, name in enumerate(shown):
        at = top + ROW * (i + 0.5)
        drawn.append(bar(x(0), at - 8, x(shares[name]), at + 8, "fill",
                         f"{name}: {100 * shares[name]:.1f} % of the price"))  # fmt: skip
        drawn.append(text(left - 8, at + 4, short(name, left), "label", "end"))
        drawn.append(text(x(shares[name]) + 6, at + 4, f"{100 * shares[name]:.1f} %", "value"))
    saved = {n: plan.saving(2.0, n) for n in order}
    now = plan.cost
    table = tabled(
        {
            "query": order,
            "share of the price, %": [round(100 * shares[n], 2) for n in order],
            "most saved by doubling its variances, % of mu\u00b2": [
                round(100 * saved[n], 2) for n in order
            ],
            f"epsilon then, at least (delta {chance(delta)})": [
                Cost.of(now.mu * math.sqrt(1 - saved[n])).epsilon(delta) for n in order
            ],
        },
        note=f"epsilon now: {number(now.epsilon(delta))}",
    )
    first = order[0]
    return Picture(
        "Which targets the privacy is spent on",
        f"The dearest is {first}, with {100 * shares[first]:.0f} % of the price; doubling its "
        f"variances would save at most {100 * saved[first]:.0f} % of mu squared.",
        "".join(drawn),
        bottom + 42,
        table,
        "Prices are the weights that prove the design optimal. Relaxing a variance by 1 % "
        "saves about "
        "its share of 1\u00a0% of mu squared; a query without a price relaxes for nothing.",
    )


def correlation(plan: Plan) -> Picture | None:
    """Return how the errors of answers go together: correlations of up to 48 of them."""
    m = len(plan.queries.names)
    if m < 2:
        return None
    chosen: Any = _some([len(query.labels) for query in plan.queries.queries])
    covariance = plan.strategy.asking(plan.queries.matrix[chosen]).covariance()
    scale = np.sqrt(np.diag(covariance))
    r = covariance / np.outer(scale, scale)
    names = np.array(plan.queries.names)[chosen]
    labels = np.array(plan.queries.labels)[chosen]
    groups = [(n, np.flatnonzero(names == n)) for n in dict.fromkeys(names.tolist())]
    left = width_of([n for n, _ in groups], 170)
    size = min(440.0, WIDTH - left - 110)
    cell = size / len(chosen)
    top = 16.0
    drawn = []
    for i in range(len(chosen)):
        for j in range(len(chosen)):
            value = float(r[i, j])
            if i == j:
                drawn.append(bar(left + j * cell, top + i * cell, left + (j + 1) * cell,
                                 top + (i + 1) * cell, "self"))  # fmt: skip
            elif abs(value) >= 0.005:
                drawn.append(
                    bar(left + j * cell, top + i * cell, left + (j + 1) * cell,
                        top + (i + 1) * cell, "plus" if value > 0 else "minus",
                        f"{names[i]} {labels[i]} and {names[j]} {labels[j]}: {value:.2f}",
                        shade=min(1.0, abs(value)))
                )  # fmt: skip
    drawn.append(
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{size:.1f}" height="{size:.1f}" class="frame"/>'
    )
    for name, where in groups:
        begin, end = where.min() * cell, (where.max() + 1) * cell
        if begin:
            drawn.append(line(left, top + begin, left + size, top + begin, "rule"))
            drawn.append(line(left + begin, top, left + begin, top + size, "rule"))
        if end - begin >= 9:
            drawn.append(text(left - 8, top + (begin + end) / 2 + 4, short(name, left),
                              "label", "end"))  # fmt: skip
    drawn += _correlation_key(left + size + 22, top)
    first, second = np.triu_indices(len(chosen), 1)
    strongest = np.argsort(-np.abs(r[first, second]).round(7), kind="stable")[:40]
    one, two = first[strongest], second[strongest]
    table = tabled(
        {
            "answer": [f"{names[a]} {labels[a]}".strip() for a in one],
            "and answer": [f"{names[b]} {labels[b]}".strip() for b in two],
            "correlation": np.round(r[one, two], 4),
        },
        note=f"the strongest of {len(first):,} pairs",
    )
    some = "" if len(chosen) == m else f"{len(chosen)} of {m:,} answers, evenly chosen. "
    return Picture(
        "How the noise of answers goes together",
        f"{some}The strongest correlation is {float(r[one[0], two[0]]):.2f}.",
        "".join(drawn),
        top + size + 16,
        table,
        f"{some}Blue: both err to the same side; orange: to opposite sides. Differences and "
        f"sums of "
        "correlated answers have other errors than their own; release.answer gives them exactly.",
    )


def _some(sizes: list[int]) -> Any:
    """Return the numbers of at most about 48 answers, some of every query if there is room."""
    if sum(sizes) <= MOST_CORRELATED:
        return np.arange(sum(sizes))
    shares = np.sqrt(np.array(sizes[:MOST_CORRELATED], dtype=float))
    starts = np.cumsum([0, *sizes])
    found = []
    for size, share, start in zip(sizes, shares, starts, strict=False):
        count = min(size, max(1, round(MOST_CORRELATED * share / shares.sum())))
        found.append(start + np.linspace(0, size - 1, count).round().astype(int))
    return np.unique(np.concatenate(found))


def _correlation_key(x: float, top: float) -> list[str]:
    parts = []
    for k, value in enumerate((1.0, 0.5, 0.0, -0.5, -1.0)):
        kind = "plus" if value > 0 else "minus"
        at = top + 22 * k
        if value:
            parts.append(bar(x, at, x + 16, at + 16, kind, shade=abs(value)))
        parts.append(
            f'<rect x="{x:.1f}" y="{at:.1f}" width="16.0" height="16.0" class="frame"/>'
            + text(x + 22, at + 12, f"{value:+g}".replace("-", "\u2212") if value else "0", "tick")
        )
    return parts


def room(plan: Plan) -> Picture | str:
    """Return how much of mu^2 each cell uses, or why there is nothing to show."""
    asked = plan.queries
    if asked.people.neighbours != "add-remove":
        return (
            "Room for free answers is told by what single cells spend, which under replace "
            "neighbours "
            "does not tell the cost."
        )
    profile = plan.profile.values()
    used = profile / profile.max() if profile.max() > 0 else np.ones(len(profile))
    if not (used < 1 - 1e-3).any():
        return (
            "Every cell spends the whole cost, so that nothing more can be answered for "
            "free. (That "
            "is the rule where every cell has a target of its own.)"
        )
    if asked.reach is not None:
        return (
            f"{int((used < 1 - 1e-3).sum()):,} of the {len(used):,} things that one row can "
            f"add cost "
            f"less than the dearest, down to {100 * float(used.min()):.2g} % of mu\u00b2: "
            "plan.extend(...) answers further questions within that."
        )
    order = np.argsort(used.round(7), kind="stable")
    best = order[: min(25, int((used < 1 - 1e-3).sum()))]
    free = asked.people.max_rows / np.sqrt(profile.max() - profile[best])
    x = Scale(0.0, float(len(used)), 62.0, WIDTH - 16)
    y = Scale(0.0, 100.0, 200.0, 26.0)
    steps: list[tuple[float, float]] = [(x(0), y(0))]
    ends = np.unique(np.linspace(0, len(used), min(len(used), 400) + 1).round().astype(int))
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        level = y(100 * float(used[order[begin]]))
        steps += [(x(begin), level), (x(end), level)]
    steps.append((x(float(len(used))), y(0)))
    drawn = [
        upright(y, x.start, x.end, "share of mu\u00b2 that a person in the cell spends, %"),
        path(steps, "area solid", closed=True),
        line(x.start, y(100), x.end, y(100), "target"),
        text((x.start + x.end) / 2, y.start + 22, "cells, from the one with the most room", "axis",
             "middle"),
    ]  # fmt: skip
    said = (
        f"{int((used < 1 - 1e-3).sum()):,} of {len(used):,} cells have room. The most has "
        f"{asked.cells[best[0]]}: its count could be answered once more, for free, with a standard "
        f"error of {number(float(free[0]))}."
    )
    table = tabled(
        {
            "cell": [asked.cells[i] for i in best],
            "share of mu\u00b2 spent, %": np.round(100 * used[best], 3),
            "stderr of one more count of it, for free": free,
        },
        note="each by itself, in this plan as it is; plan.refine() makes the most room, and "
        "plan.extend(...) uses it",
    )
    return Picture("What could be answered for free", said, "".join(drawn), 236, table, said)


def comparison(plan: Plan) -> Picture | None:
    """Return what other noise would give at this privacy; None where it would take too long."""
    if plan.queries.reach is not None or plan.queries.matrix.size > MOST_COMPARED:
        return None
    made = plan.cost.mu / plan.queries.people.max_rows
    try:
        found = plan.compare(designs=["total", "hierarchy", "identity", "per_query"], mu=made)
    except (NoiseshapeError, ArithmeticError, np.linalg.LinAlgError):
        return None
    ratios = np.asarray(plan.errors()["variance / target"])
    rows = [("this plan", plan.k, float(np.median(ratios)))]
    rows += [(_NAMES.get(r.design, r.design), r.worst_ratio, r.median_ratio) for r in found.rows()]
    mus = [plan.cost.mu * math.sqrt(plan.k)] + [
        r.mu_for_targets * plan.queries.people.max_rows for r in found.rows()
    ]
    left = width_of([r[0] for r in rows])
    values = [v for r in rows for v in r[1:]]
    x = Scale(min(values) / 1.3, max(values) * 1.5, left, WIDTH - 70, log=True)
    top = 30.0
    bottom = top + 34 * len(rows)
    drawn = [across(x, top, bottom, "variance, as a multiple of its target (log scale)")]
    drawn += [
        line(x(1), top - 8, x(1), bottom, "target") if x.low <= 1 <= x.high else "",
        text(x(1), top - 12, "target", "strong", "middle") if x.low <= 1 <= x.high else "",
    ]
    for i, (name, worst, median) in enumerate(rows):
        at = top + 34 * (i + 0.5)
        drawn.append(line(x(median), at, x(worst), at, "span"))
        drawn.append(dot(x(median), at, 4, "hollow", f"{name}: median {number(median)}"))
        drawn.append(dot(x(worst), at, 5.5, "point" if i == 0 else "bad",
                         f"{name}: worst {number(worst)}"))  # fmt: skip
        drawn.append(text(left - 8, at + 4, short(name, left), "strong" if i == 0 else "label",
                          "end"))  # fmt: skip
        drawn.append(text(x(worst) + 10, at + 4, number(worst), "value"))
    other = min(rows[1:], key=lambda r: r[1])
    table = tabled(
        {
            "noise": [r[0] for r in rows],
            "worst variance / target": [r[1] for r in rows],
            "median variance / target": [r[2] for r in rows],
            "mu to meet every target": mus,
            "epsilon to meet every target (delta 1e-9)": [Cost.of(mu).epsilon(1e-9) for mu in mus],
        },
        note="all at the privacy of this plan",
    )
    return Picture(
        "Other noise at the same privacy",
        f"At this privacy the worst answer of this plan has {number(plan.k)} times its target "
        f"variance; with {other[0]} it has {number(other[1])} times.",
        "".join(drawn),
        bottom + 42,
        table,
        "Full dot: the worst answer; ring: the median one. Plain Gaussian noise is the same "
        "on every "
        "cell, or drawn for each answer by itself.",
    )


_NAMES = {**NAMES, "identity": "plain: on every cell", "per_query": "plain: on each answer"}


def budget(parts: Sequence[tuple[str, float, str]], cap: float, note: str = "") -> Picture:
    """Return a bar of what a budget is spent on: (name, mu^2, class) parts of a cap."""
    left, right = 8.0, WIDTH - 8
    x = Scale(0.0, max(cap, sum(p[1] for p in parts)), left, right)
    drawn = []
    at = 0.0
    for i, (name, size, kind) in enumerate(parts):
        drawn.append(bar(x(at), 22, x(at + size), 56, kind, f"{name}: {100 * size / cap:.1f} %"))
        drawn.append(bar(left + 200 * i, 76, left + 200 * i + 14, 90, kind))
        drawn.append(text(left + 200 * i + 20, 88, f"{name}: {100 * size / cap:.1f} %", "label"))
        at += size
    drawn.append(f'<rect x="{left}" y="22" width="{right - left}" height="34" class="frame"/>')
    table = tabled(
        {
            "part": [p[0] for p in parts],
            "mu squared": [p[1] for p in parts],
            "share of the cap, %": [round(100 * p[1] / cap, 3) for p in parts],
        }
    )
    said = "; ".join(f"{name} {100 * size / cap:.1f} %" for name, size, _ in parts)
    return Picture(
        "The budget, in mu\u00b2, which is what adds",
        said + ".",
        "".join(drawn),
        104,
        table,
        note,
    )
