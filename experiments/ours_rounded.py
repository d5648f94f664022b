"""Rounded against discrete Gaussian noise: the true delta of each, over the continuous curve."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr

from noiseshape.privacy import delta

from .harness import Case, Experiment, Floats, Rows, Size, Verdict, distinct
from .pictures import lines

PAIRS = ((0.5, 1), (1.0, 1), (2.0, 1), (4.0, 1), (10.0, 1), (10.0, 10), (100.0, 100))
LEAST = 1e-8  # of the continuous delta: below it doubles tell little


def cases(size: Size) -> list[Case]:
    """Return a case for each sigma and shift."""
    pairs = PAIRS[:2] if size == "tiny" else PAIRS
    return [Case(f"sigma {s:g}, shift {k}", partial(_rows, s, k)) for s, k in pairs]


def weights(sigma: float, shift: int) -> dict[str, Floats]:
    """Return the probabilities of both kinds of noise on -r..r, far into the tails."""
    z = np.arange(-int(12 * sigma) - shift, int(12 * sigma) + shift + 1)
    discrete = np.exp(-(z**2) / (2 * sigma**2))
    # On the side where both values are small, so that no digits cancel.
    near, far = (np.abs(z) - 0.5) / sigma, (np.abs(z) + 0.5) / sigma
    rounded = ndtr(-near) - ndtr(-far)
    return {"rounded": rounded, "discrete": discrete / discrete.sum()}


def true_delta(eps: float, probabilities: Floats, shift: int) -> float:
    """Return delta at epsilon of integer noise, for integers that differ by ``shift``."""
    here, there = np.pad(probabilities, (shift, 0)), np.pad(probabilities, (0, shift))
    return float(np.maximum(here - np.exp(eps) * there, 0).sum())


def _rows(sigma: float, shift: int) -> Rows:
    """Return delta of both, over the continuous one, where that is at least LEAST."""
    found = weights(sigma, shift)
    rows: Rows = []
    for eps in np.arange(0, 12, 0.02):
        smooth = float(delta(float(eps), shift / sigma))
        if smooth < LEAST:
            break
        row = {"sigma": sigma, "shift": shift, "epsilon": float(eps), "continuous": smooth}
        for name, p in found.items():
            row[f"{name} / continuous"] = true_delta(float(eps), p, shift) / smooth
        rows.append(row)
    return rows


def table(rows: Rows) -> Rows:
    """Return the worst ratio of each pair."""
    shown: Rows = []
    for sigma in distinct(rows, "sigma"):
        for shift in distinct(rows, "shift"):
            here = [r for r in rows if r["sigma"] == sigma and r["shift"] == shift]
            if here:
                worst = max(here, key=lambda r: r["discrete / continuous"])
                shown.append(
                    {
                        "sigma": sigma,
                        "shift": shift,
                        "rounded / continuous, worst": max(r["rounded / continuous"] for r in here),
                        "discrete / continuous, worst": worst["discrete / continuous"],
                        "at epsilon": worst["epsilon"],
                    }
                )
    return shown


def verdict(rows: Rows) -> Verdict:
    """Say that rounding is never worse, and how far the discrete Gaussian is."""
    rounded = max(r["rounded / continuous"] for r in rows)
    at = {(r["sigma"], r["shift"]): 0.0 for r in rows}
    for r in rows:
        key = (r["sigma"], r["shift"])
        at[key] = max(at[key], r["discrete / continuous"])
    first, last = min(at), max(key for key in at if key[0] <= 10)
    return Verdict(
        "ours",
        "Rounded noise, which is the continuous mechanism post-processed, never exceeds the curve "
        f"(worst ratio {rounded:.7f}, of which what passes 1 is rounding of these doubles); the "
        f"discrete Gaussian of the same sigma does, {at[first]:.2f} times at sigma {first[0]:g} "
        f"and still {at[last]:.4f} at sigma {last[0]:g} and shift {last[1]}.",
    )


def picture(rows: Rows) -> Any:
    """Return both ratios against epsilon for three pairs."""
    points = [
        {
            "epsilon": r["epsilon"],
            "ratio": r[f"{name} / continuous"],
            "by": f"{name}, sigma {r['sigma']:g}",
        }
        for r in rows
        for name in ("rounded", "discrete")
        if r["shift"] == 1 and r["sigma"] in (0.5, 1.0, 4.0)
    ]
    title = "True delta over the continuous curve, shift 1"
    return lines(points, "epsilon", "ratio", "by", title, points=False)


EXPERIMENT = Experiment(
    title="rounded against discrete Gaussian noise",
    protocol=(
        "The exact delta of integer noise for a query that changes by a whole shift, summed over "
        "the integers, over that of continuous noise of the same sigma, for epsilon from 0 until "
        "the continuous delta falls below 1e-8."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
