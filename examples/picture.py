"""The picture of the README: errors of "people up to an age", under three kinds of noise.

Queries, targets and people are those of examples/survey.yaml without its income. Every kind of
noise costs the same privacy: that at which shaped noise just meets every target.

Run: python examples/picture.py [file]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import noiseshape as ns
from noiseshape import spec as specs
from noiseshape.design.compare import Comparison
from noiseshape.report.style import standalone
from noiseshape.report.svg import Scale, line, path, text

HERE = Path(__file__).parent
PLACE = HERE.parent / "docs" / "images" / "funnel-and-tube.svg"
QUERY, SEX = "up to age", "sex=female"
WIDTH, HEIGHT = 820.0, 380.0


def planned() -> ns.Plan:
    """Return the plan of the survey's counts."""
    spec = specs.read(HERE / "survey.yaml")
    work = spec.workload(HERE)
    return ns.plan(work.only([name for name in _names(spec) if name != "income"]), by="cells")


def _names(spec: specs.Spec) -> list[str]:
    return [query.name for query in spec.queries if query.name is not None]


def margins(plan: ns.Plan) -> dict[str, np.ndarray]:
    """Return half-widths of 95 % intervals by age, for each kind of noise at the plan's cost."""
    others: Comparison = plan.compare(designs=["identity", "per_query"], mu=plan.cost.mu)
    names, labels = np.array(plan.queries.names), plan.queries.labels
    chosen = [i for i in np.flatnonzero(names == QUERY) if labels[i].startswith(SEX)]
    kinds = {name: design.variances for name, design in others.designs.items()}
    kinds["shaped"] = plan.strategy.variance
    return {name: 1.96 * np.sqrt(variance[chosen]) for name, variance in kinds.items()}


def drawn(found: dict[str, np.ndarray]) -> str:
    """Return the picture: intervals around the truth, age by age."""
    ages = np.arange(len(found["shaped"]))
    most = float(max(values.max() for values in found.values())) * 1.08
    x, y = Scale(0, float(ages[-1]), 70, WIDTH - 236), Scale(-most, most, HEIGHT - 62, 64)
    parts = [
        text(16, 26, "The same privacy, spent in three ways", "title"),
        text(16, 46, "How far off \u201cwomen up to this age\u201d may be: 95 % intervals around "
                     "the truth", "faint"),
    ]  # fmt: skip
    for value in y.ticks(6):
        parts.append(line(x.start, y(value), x.end, y(value), "grid"))
        said = f"{value:+.0f}".replace("-", "\u2212") if value else "0"
        parts.append(text(x.start - 8, y(value) + 4, said, "tick", "end"))
    for value in x.ticks(8):
        parts.append(text(x(value), y.start + 20, f"{value:.0f}", "tick", "middle"))
    parts.append(text((x.start + x.end) / 2, y.start + 42, "up to age", "axis", "middle"))
    for name, kind, style in (
        ("identity", "orange", "orange-line"),
        ("per_query", "", "purple-line d1"),
        ("shaped", "blue", "blue-line"),
    ):
        upper = [(x(float(a)), y(float(h))) for a, h in zip(ages, found[name], strict=True)]
        lower = [(x(float(a)), y(-float(h))) for a, h in zip(ages, found[name], strict=True)]
        if kind:
            parts.append(path([*upper, *reversed(lower)], f"{kind} faint-fill", closed=True))
        parts += [path(upper, style), path(lower, style)]
    at = x.end + 14
    for name, style, where, said, more in (
        (
            "identity",
            "orange-line",
            y(float(found["identity"][-1])),
            "plain noise on every cell",
            "errors pile up",
        ),
        (
            "per_query",
            "purple-line d1",
            y(float(found["per_query"].max())) - 18,
            "plain noise on each answer",
            "overlaps paid twice",
        ),
        ("shaped", "blue-line", y(0.0), "shaped noise", "as was asked"),
    ):
        parts.append(path([(at, where), (at + 22, where)], style))
        parts.append(text(at + 30, where + 4, said, "strong"))
        parts.append(
            text(at + 30, where + 20, f"up to \u00b1{found[name].max():.0f}: {more}", "faint")
        )
    return standalone("".join(parts), WIDTH, HEIGHT, "Intervals of three kinds of noise by age")


def main(file: str = str(PLACE)) -> None:
    """Write the picture."""
    plan = planned()
    found = margins(plan)
    Path(file).write_text(drawn(found), encoding="utf-8")
    ends = {name: round(float(values.max()), 1) for name, values in found.items()}
    print(f"{file}: epsilon {plan.cost.epsilon(1e-9):.4f} at delta 1e-9; greatest margins", ends)


if __name__ == "__main__":
    main(*sys.argv[1:2])
