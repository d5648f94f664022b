"""Fitness-for-use, Figure 1: the curve of (epsilon, delta) for several privacy costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from noiseshape.privacy import delta, privacy_bound

from .harness import Case, Experiment, Rows, Size, Verdict, column, distinct
from .pictures import lines

COSTS = (0.1, 0.2, 0.5, 1.0, 2.0)
SHOWN = (0.0, 0.5, 1.0, 2.0, 4.0)


def cases(size: Size) -> list[Case]:
    """Return one case a cost."""
    points = 5 if size == "tiny" else 41

    def compute(cost: float) -> Rows:
        eps = np.linspace(0.0, 4.0, points)
        deltas = np.asarray(delta(eps, cost))
        # The second derivation inverts the curve: Algorithm 2 of IMGM, from (epsilon, delta) to mu.
        return [
            {
                "Delta": cost,
                "epsilon": float(e),
                "delta": float(d),
                "Delta again": privacy_bound(float(e), float(d)) if d > 1e-280 else None,
            }
            for e, d in zip(eps, deltas, strict=True)
        ]

    return [Case(f"Delta={cost:g}", lambda cost=cost: compute(cost)) for cost in COSTS]  # type: ignore[misc]


def table(rows: Rows) -> Rows:
    """Return delta at a few epsilons, a row a cost."""
    return [
        {
            "Delta": cost,
            **{
                f"delta at epsilon {r['epsilon']:g}": r["delta"]
                for r in rows
                if r["Delta"] == cost and r["epsilon"] in SHOWN
            },
        }
        for cost in distinct(rows, "Delta")
    ]


def verdict(rows: Rows) -> Verdict:
    """Compare the shape that the text describes: one curve a cost, higher for more."""
    ordered = all(
        np.all(np.diff(column(rows, "delta", epsilon=e)) > 0) for e in distinct(rows, "epsilon")
    )
    again = max(abs(r["Delta again"] / r["Delta"] - 1) for r in rows if r["Delta again"])
    return Verdict(
        "agrees" if ordered else "differs",
        "Curves of smaller cost lie strictly below those of greater cost, as Corollary 1 says; "
        f"inverting each point by another algorithm gives the cost back to {again:.1e}. The paper "
        "prints no number to compare with.",
    )


def picture(rows: Rows) -> Any:
    """Return delta against epsilon, a line a cost."""
    points = [{**r, "by": f"Delta = {r['Delta']:g}"} for r in rows if r["delta"] > 1e-8]
    return lines(points, "epsilon", "delta", "by", "Privacy of one cost", log_y=True, points=False)


EXPERIMENT = Experiment(
    title="one number is the whole curve of (epsilon, delta)",
    protocol=(
        "The certified curve at 41 values of epsilon for five costs (the figure's own, but for "
        "0.2, are not in the text), and each point inverted by IMGM's Algorithm 2."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
