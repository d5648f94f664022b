"""IMGM, section 4.2: noise of MVG and IMGM as matrices grow and as epsilon falls."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm

from noiseshape.design.condition import Condition, Zeta, harmonic
from noiseshape.design.imgm import independent, sigma

from .harness import Case, Experiment, Row, Rows, Size, Verdict
from .pictures import lines

NAME = "imgm-section-4-2"
DELTA = 1e-5
ZETAS: tuple[Zeta, ...] = ("printed", "tight")
SIDES = {"tiny": (2, 8), "default": (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)}
EPSILONS = {"tiny": (1e-3, 1.0), "default": (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)}


def cases(size: Size) -> list[Case]:
    """Return a case for sizes and one for epsilons."""
    which = "tiny" if size == "tiny" else "default"
    return [
        Case("sizes", partial(_rows, [(side, 1.0) for side in SIDES[which]], "size")),
        Case("epsilons", partial(_rows, [(8, eps) for eps in EPSILONS[which]], "epsilon")),
    ]


def _rows(points: list[tuple[int, float]], part: str) -> Rows:
    """Return the standard deviations asked of equal noise, for s2 = gamma = 1."""
    rows: Rows = []
    for side, eps in points:
        row: Row = {"part": part, "m = n": side, "entries": side**2, "epsilon": eps}
        row["IMGM"] = sigma(1.0, eps, DELTA)
        for zeta in ZETAS:
            condition = Condition(
                m=side, n=side, s2=1.0, gamma=1.0, epsilon=eps, delta=DELTA, zeta=zeta
            )
            row[f"MVG, {zeta} zeta"] = independent(condition)
            row[f"phi^2, {zeta} zeta"] = condition.phi**2
        row["H_r"] = harmonic(side)
        rows.append(row)
    return rows


def table(rows: Rows) -> Rows:
    """Return the standard deviations."""
    names = ("m = n", "epsilon", "IMGM", *(f"MVG, {zeta} zeta" for zeta in ZETAS))
    return [{name: row[name] for name in names} for row in rows]


def slope(rows: Rows, zeta: Zeta) -> float:
    """Return how phi^2 H_r^2 grows with the entries, between the two largest sizes."""
    first, last = [r for r in rows if r["part"] == "size"][-2:]
    values = [r[f"phi^2, {zeta} zeta"] * r["H_r"] ** 2 for r in (first, last)]
    return float(np.log(values[1] / values[0]) / np.log(last["entries"] / first["entries"]))


def verdict(rows: Rows) -> Verdict:
    """Compare the exponents and the limit."""
    limit = 1 / (2 * norm.ppf(DELTA / 2 + 0.5))
    least = min((r for r in rows if r["part"] == "epsilon"), key=lambda r: r["epsilon"])
    sizes = [r for r in rows if r["part"] == "size"]
    apart = max(r["IMGM"] for r in sizes) / min(r["IMGM"] for r in sizes)
    printed_slope, tight = (slope(rows, zeta) for zeta in ZETAS)
    near = abs(printed_slope + 2.5) < 0.1 and apart == 1
    return Verdict(
        "agrees" if near else "differs",
        f"MVG's bound phi^2 times H_r^2 falls as the entries to the power {printed_slope:.2f} "
        f"(the paper's -5/2, and a factor H_r^-2 that its equation 16 leaves out; with the tight "
        f"zeta {tight:.2f}); IMGM's noise is the same at every size. At epsilon = "
        f"{least['epsilon']:g} IMGM asks {least['IMGM']:.6g}, its limit at 0 is {limit:.6g}, and "
        f"MVG asks {least['MVG, printed zeta']:.1e}.",
    )


def picture(rows: Rows) -> Any:
    """Return standard deviations against entries."""
    points = [
        {"entries": r["entries"], "sigma": r[name], "by": name}
        for r in rows
        if r["part"] == "size"
        for name in ("IMGM", *(f"MVG, {zeta} zeta" for zeta in ZETAS))
    ]
    title = "Noise of an entry as the matrix grows, epsilon = 1"
    return lines(points, "entries", "sigma", "by", title, log_x=True, log_y=True)


EXPERIMENT = Experiment(
    title="noise as matrices grow and epsilon falls",
    protocol=(
        "The standard deviation that each asks of equal, independent noise on a square matrix, for "
        "s2 = gamma = 1 and delta = 1e-5: by IMGM's exact condition and by MVG's Theorem 2, with "
        "zeta as printed and tight. First epsilon = 1 and growing sides, then 8 x 8 and falling "
        "epsilon."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
