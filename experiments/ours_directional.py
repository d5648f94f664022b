"""Where directional noise pays: importance, ranges and the set of changes."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np

from .harness import Case, Experiment, Floats, Rows, Size, Verdict, generator
from .matrix_noise import box_cost, box_sigma, weighted
from .pictures import lines

NAME = "ours-directional"
SHAPES = ((6, 1), (6, 2), (21, 3), (100, 5))
WEIGHTS = {"tiny": (1.0, 100.0), "default": (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0, 10_000.0)}


def cases(size: Size) -> list[Case]:
    """Return a case for each number of features and of important ones."""
    weights = WEIGHTS["tiny" if size == "tiny" else "default"]
    return [
        Case(f"{few} of {features}", partial(_rows, features, few, weights))
        for features, few in SHAPES
    ]


def _rows(features: int, few: int, weights: tuple[float, ...]) -> Rows:
    """Return weighted error of equal noise over that of ours, over two sets of changes."""
    rows: Rows = []
    for weight in weights:
        a = weighted(features, range(few), weight)
        ours = box_sigma(1.0, a, 1.0)
        equal = np.full(features, np.sqrt(features))  # at mu = 1, for features that change by 1
        rows.append(
            {
                "features": features,
                "important": few,
                "weight": weight,
                "gain, one record's features": float((a @ equal**2) / (a @ ours**2)),
                "mu of ours": box_cost(1.0, ours),
                "mu by search": searched(ours),
                "important features' error": float(ours[0] ** 2 / features),
                "others' error": float(ours[-1] ** 2 / features),
                # Over every change of one norm the least noisy direction sets the cost.
                "gain, every change": float(
                    (a @ equal**2) / (a @ (ours * np.sqrt(features) / ours.min()) ** 2)
                ),
            }
        )
    return rows


def searched(sigma: Floats) -> float:
    """Return the greatest mu over changes of the box that were tried: corners and random ones."""
    m = len(sigma)
    if m <= 8:
        changes = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=m)))
    else:
        rng = generator(NAME, m, float(sigma[0]))
        changes = np.vstack([rng.uniform(-1, 1, (2000, m)), rng.choice([-1.0, 1.0], (200, m))])
    return float(np.linalg.norm(changes / sigma, axis=1).max())


def table(rows: Rows) -> Rows:
    """Return the rows without the check."""
    return [{k: v for k, v in r.items() if not k.startswith("mu ")} for r in rows]


def verdict(rows: Rows) -> Verdict:
    """Say how much is gained, and over which changes."""
    best = max(rows, key=lambda r: r["gain, one record's features"])
    never = max(r["gain, every change"] for r in rows)
    checked = max(abs(r["mu by search"] / r["mu of ours"] - 1) for r in rows)
    ten = [r["gain, one record's features"] for r in rows if r["weight"] == 10.0]
    told = f"; at a weight of 10, {min(ten):.2f} to {max(ten):.2f} times" if ten else ""
    return Verdict(
        "ours",
        "Where a record's features each change by at most their range, noise by importance costs "
        "no privacy and cuts the weighted error "
        f"{best['gain, one record' + chr(39) + 's features']:.1f} times for "
        f"{best['important']} important features of {best['features']} with weight "
        f"{best['weight']:g}{told} (costs checked by search, to {checked:.0e}). Over every change "
        f"of one Frobenius norm it never pays (at most {never:.3f} times), as IMGM proves.",
    )


def picture(rows: Rows) -> Any:
    """Return the gain against the weight."""
    points = [
        {
            "weight": r["weight"],
            "gain": r["gain, one record's features"],
            "by": f"{r['important']} of {r['features']} features",
        }
        for r in rows
    ]
    points += [
        {
            "weight": r["weight"],
            "gain": r["gain, every change"],
            "by": "every change, 2 of 6",
        }
        for r in rows
        if (r["features"], r["important"]) == (6, 2)
    ]
    return lines(
        points,
        "weight",
        "gain",
        "by",
        "Weighted error of equal noise over ours",
        log_x=True,
        log_y=True,
        x_title="weight of the important features",
    )


EXPERIMENT = Experiment(
    title="where directional noise pays",
    protocol=(
        "Features of which a few are important, with a weight in the error. Equal noise and ours "
        "(the optimum over all covariances for a box of changes) at the same cost: gain in the "
        "weighted error, if one record's features each change by at most their range, and if "
        "every change of one Frobenius norm is possible."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
