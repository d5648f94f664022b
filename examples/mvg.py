"""What MVG's conditions waste: the tables and the picture of docs/math/mvg.md.

For equal noise on every entry, the factor by which each standard deviation is greater than what
the same (epsilon, delta) needs by the exact curve. gamma is s2 / 2 in the first table and in the
picture, the least that there can be: no question wastes less.

Run: python examples/mvg.py [folder]
"""

from __future__ import annotations

import sys
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from noiseshape.design.condition import Condition, Theorem, Zeta
from noiseshape.design.mvg import wasted

SHAPES = [(1, 1), (4, 4), (6, 248), (21, 21), (21, 2126), (1000, 1000)]
EPSILONS = [0.1, 1.0, 10.0]
DELTAS = [1e-5, 1e-9]
INK = "#222222"
# Okabe and Ito's colours, told apart by all; lines differ by their dashes too.
COLOURS = ["#0072B2", "#D55E00", "#009E73"]


def factor(
    m: int,
    n: int,
    epsilon: float,
    delta: float,
    *,
    zeta: Zeta = "printed",
    theorem: Theorem = 2,
    ratio: float = 0.5,
) -> float:
    """Return the factor wasted on an m x n answer, at gamma = ratio s2."""
    return wasted(
        Condition(
            m=m,
            n=n,
            s2=1.0,
            gamma=ratio,
            epsilon=epsilon,
            delta=delta,
            theorem=theorem,
            zeta=zeta,
        )
    )


def table() -> str:
    """Return the factor over m, n, epsilon and delta, in Markdown: printed zeta, tight zeta."""
    points = [(d, e) for d in DELTAS for e in EPSILONS]
    lines = [
        "| m x n | " + " | ".join(f"delta {d:g}, epsilon {e:g}" for d, e in points) + " |",
        "|---|" + "---|" * len(points),
    ]
    for m, n in SHAPES:
        cells = [
            " / ".join(_short(factor(m, n, e, d, zeta=z)) for z in ("printed", "tight"))
            for d, e in points
        ]  # fmt: skip
        lines.append(f"| {m} x {n} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def experiments() -> str:
    """Return MVG's three experiments at their epsilon = 1, delta = 1 / n, in Markdown."""
    cases: list[tuple[str, int, int, float, float, float, list[Theorem]]] = [
        ("I: identity, 6 x 248, [-1, 1]", 6, 248, 2 * sqrt(6), sqrt(6 * 248), 1 / 248, [2]),
        ("II: X X^T / n, 4 x 4, [-100, 100]", 4, 4, 8e4 / 10176, 4e4, 1 / 10176, [2, 3]),
        ("III: identity, 21 x 2,126, [0, 1]", 21, 2126, sqrt(21), sqrt(21 * 2126), 1 / 2126, [2]),
    ]
    lines = [
        "| experiment | theorem | standard deviation, printed / tight | IMGM's | wasted |",
        "|---|---|---|---|---|",
    ]
    for name, m, n, s2, gamma, delta, theorems in cases:
        for theorem in theorems:
            made = [
                Condition(
                    m=m, n=n, s2=s2, gamma=gamma, epsilon=1.0, delta=delta,
                    theorem=theorem, zeta=zeta,
                )
                for zeta in ZETAS
            ]  # fmt: skip
            factors = [wasted(c) for c in made]
            least = s2 / made[0].budget
            deviations = " / ".join(_short(f * least) for f in factors)
            wastes = " / ".join(_short(f) for f in factors)
            lines.append(f"| {name} | {theorem} | {deviations} | {_short(least)} | {wastes} |")
    return "\n".join(lines)


ZETAS: list[Zeta] = ["printed", "tight"]


def chart() -> Any:
    """Return the factor against the size of the answer, and against epsilon."""
    import altair

    alt: Any = altair
    sizes = np.unique(np.geomspace(1, 1000, 40).round().astype(int))
    by_size = [
        {"entries": int(k * k), "factor": factor(int(k), int(k), e, 1e-5, zeta=z),
         "line": f"epsilon = {e:g}", "zeta": z}
        for e in EPSILONS for z in ZETAS for k in sizes
    ]  # fmt: skip
    shapes = [(4, 4), (6, 248), (21, 2126)]
    by_epsilon = [
        {"epsilon": float(e), "factor": factor(m, n, float(e), 1e-5, zeta=z),
         "line": f"{m} x {n}", "zeta": z}
        for m, n in shapes for z in ZETAS for e in np.geomspace(1e-3, 1e2, 40)
    ]  # fmt: skip
    y = alt.Y(
        "factor:Q",
        scale=alt.Scale(type="log", domain=[1, 1e10], nice=False),
        title="factor wasted (log scale)",
        axis=alt.Axis(values=[10.0**k for k in range(0, 12, 2)], format="~s"),
    )
    dash = alt.StrokeDash(
        "zeta:N",
        scale=alt.Scale(domain=ZETAS, range=[[1, 0], [5, 3]]),
        legend=alt.Legend(title="zeta"),
    )

    def panel(rows: list[dict[str, Any]], x: Any, title: str, names: list[str], key: str) -> Any:
        colour = alt.Color(
            "line:N",
            scale=alt.Scale(domain=names, range=COLOURS),
            legend=alt.Legend(title=key),
        )
        return (
            alt.Chart(alt.Data(values=rows))
            .mark_line(strokeWidth=2)
            .encode(x=x, y=y, color=colour, strokeDash=dash)
            .properties(
                width=310,
                height=260,
                title=alt.Title(title, anchor="start", fontSize=13, color=INK),
            )
        )

    log = alt.Scale(type="log", nice=False)
    left = panel(
        by_size,
        alt.X("entries:Q", scale=log, title="entries m n, m = n", axis=alt.Axis(format="~s")),
        "As the matrix grows",
        [f"epsilon = {e:g}" for e in EPSILONS],
        "delta = 1e-5",
    )
    right = panel(
        by_epsilon,
        alt.X(
            "epsilon:Q",
            scale=log,
            title="epsilon",
            axis=alt.Axis(values=[1e-3, 1e-2, 0.1, 1, 10, 100], format="~g"),
        ),
        "As the privacy grows",
        [f"{m} x {n}" for m, n in shapes],
        "m x n, delta = 1e-5",
    )
    return (
        alt.hconcat(left, right, spacing=36)
        .resolve_scale(color="independent", strokeDash="shared")
        .properties(
            title=alt.Title(
                "How many times too large MVG's noise is, at the least gamma there can be",
                anchor="start",
                fontSize=15,
                offset=14,
                color=INK,
            )
        )
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, gridOpacity=0.5)
        .configure_legend(labelFontSize=12, titleFontSize=12)
    )


def _short(value: float) -> str:
    """Return three digits, without an exponent below a million."""
    return f"{value:,.3g}" if value < 1000 else (
        f"{float(f'{value:.3g}'):,.0f}" if value < 1e6 else f"{value:.2g}"
    )  # fmt: skip


def main(folder: str = "out") -> None:
    """Print the tables, and write the picture into ``folder``."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    print(table(), experiments(), sep="\n\n")
    chart().save(out / "mvg-wasted.svg")
    print(f"\nWritten: {out / 'mvg-wasted.svg'}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
