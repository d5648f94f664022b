"""IMGM, Theorem 4: noise of each of T releases, against other rules of composition."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from scipy.optimize import brentq

from noiseshape.design.imgm import sigma
from noiseshape.privacy import mu

from .harness import Case, Experiment, Rows, Size, Verdict
from .pictures import lines

EPSILON, DELTA = 1.0, 1e-5
COUNTS = {"tiny": (1, 4), "default": (1, 2, 5, 10, 30, 100, 300, 1000, 3000, 10_000)}


def cases(size: Size) -> list[Case]:
    """Return the one case."""
    return [Case("all", partial(_rows, COUNTS["tiny" if size == "tiny" else "default"]))]


def advanced(releases: int) -> float:
    """Return each release's epsilon by advanced composition, half of delta for the composition.

    Dwork, Rothblum and Vadhan: sqrt(2 T ln(1/delta')) e + T e (exp(e) - 1) = epsilon.
    """

    def excess(e: float) -> float:
        spread = math.sqrt(2 * releases * math.log(2 / DELTA)) * e
        return spread + releases * e * math.expm1(e) - EPSILON

    return float(brentq(excess, 1e-12, EPSILON))


def _rows(counts: tuple[int, ...]) -> Rows:
    """Return each release's standard deviation for s2 = 1."""
    rows: Rows = []
    for T in counts:
        e = advanced(T) if T > 1 else EPSILON
        d = DELTA / (2 * T) if T > 1 else DELTA
        rows.append(
            {
                "releases": T,
                "exact (Theorem 4)": sigma(1.0, EPSILON, DELTA, releases=T),
                "basic, epsilon / T": 1 / float(mu(EPSILON / T, DELTA / T)),
                "advanced": 1 / float(mu(e, d)),
            }
        )
    return rows


def table(rows: Rows) -> Rows:
    """Return the rows with what the other rules take more."""
    return [
        {
            **row,
            "basic / exact": row["basic, epsilon / T"] / row["exact (Theorem 4)"],
            "advanced / exact": row["advanced"] / row["exact (Theorem 4)"],
        }
        for row in rows
    ]


def verdict(rows: Rows) -> Verdict:
    """Check the square root."""
    first, last = rows[0], rows[-1]
    grown = last["exact (Theorem 4)"] / first["exact (Theorem 4)"]
    root = math.sqrt(last["releases"] / first["releases"])
    basic = last["basic, epsilon / T"] / last["exact (Theorem 4)"]
    more = last["advanced"] / last["exact (Theorem 4)"]
    return Verdict(
        "agrees" if abs(grown / root - 1) < 1e-9 else "differs",
        f"Over {last['releases']:,} releases the noise of each grows by {grown:.6g}, the root of "
        f"their number ({root:.6g}): mu^2 adds, exactly. Splitting epsilon and delta evenly would "
        f"take {basic:.1f} times that noise, advanced composition {more:.2f} times.",
    )


def picture(rows: Rows) -> Any:
    """Return standard deviations against the number of releases."""
    names = [name for name in rows[0] if name != "releases"]
    points = [
        {"releases": r["releases"], "sigma": r[name], "by": name} for name in names for r in rows
    ]
    title = "Noise of each of T releases, epsilon = 1 and delta = 1e-5 in all"
    return lines(points, "releases", "sigma", "by", title, log_x=True, log_y=True)


EXPERIMENT = Experiment(
    title="composition of T releases",
    protocol=(
        "The standard deviation of each of T releases with s2 = 1 that together keep epsilon = 1 "
        "at delta = 1e-5: by Theorem 4, by basic composition (epsilon / T and delta / T each, on "
        "the exact curve), and by advanced composition (Dwork, Rothblum and Vadhan)."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
