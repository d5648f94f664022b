"""Figures 2 and 3 of fitness-for-use: marginals of binary attributes, and far beyond them.

To 16 attributes the workload is written out and every mechanism runs on it. Beyond, the same
designs are made in the residual basis, where the table is never formed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarks.workloads import marginals

from noiseshape.design import Design, fit, hierarchy, sm2, total
from noiseshape.design import marginals as residual

from .harness import Case, Experiment, Row, Rows, Size, Verdict, capital, column, distinct
from .pictures import lines
from .ratios import AT_ITS_BEST, GAP
from .tables import CA, FIT, GM, HM, HM2, SM2

# Dense trees of 2^d nodes, and SM-II, stop here.
MOST_TREES = {"tiny": 4, "default": 10, "full": 12}
MOST_SM2 = {"tiny": 4, "default": 10, "full": 14}
# Of the picture: noise on the cells dwarfs the others soon after.
MOST_DRAWN = 16


def cases(way: int, size: Size) -> list[Case]:
    """Return a case for each number of attributes."""
    dense = [2, 4] if size == "tiny" else [2, 3, 4, 5, 6, 8, 10, 12, 14, 16]
    beyond = [20] if size == "tiny" else [20, 50, 100, 200]
    return [Case(f"d={d}", partial(_dense, way, d, size)) for d in dense] + [
        Case(f"d={d}", partial(_beyond, way, d)) for d in beyond
    ]


def _dense(way: int, d: int, size: Size) -> Rows:
    """Return a row a mechanism for ``d`` attributes, 2^d cells."""
    W, c = marginals(d, way)
    designs: dict[str, Callable[[], Design]] = {
        FIT: lambda: fit(W, c, gap=GAP),
        CA: lambda: total(W, c, gap=GAP),
    }
    if d <= MOST_SM2[size]:
        designs[SM2] = lambda: sm2(W, c, options=AT_ITS_BEST)
    if d <= MOST_TREES[size]:
        designs[HM] = lambda: hierarchy(W, c)
        designs[HM2] = lambda: hierarchy(W, c, two_level=True)
    rows: Rows = []
    for name, design in designs.items():
        begun = time.process_time()
        made = design()
        rows.append(_row(d, name, made.alpha, time.process_time() - begun, made))
    # Noise on the cells in closed form: its strategy would be the identity over 2^d cells.
    rows.append(_row(d, GM, float(((W**2).sum(axis=1) / c).max()), None, None))
    least = rows[0]["alpha"]
    return [{**row, "ratio": row["alpha"] / least} for row in rows]


def _beyond(way: int, d: int) -> Rows:
    """Return fit, CA and GM for 2^d cells that are never formed."""
    first: tuple[int, ...] = () if way == 1 else (0,)
    asked = [(*first, i) for i in range(way - 1, d)]
    c = np.arange(1, len(asked) + 1)
    rows: Rows = []
    for name, objective in ((FIT, "max"), (CA, "sum")):
        begun = time.process_time()
        made = residual([2] * d, asked, c, objective=objective, gap=GAP)  # type: ignore[arg-type]
        made = made.scaled(1 / made.k)
        seconds = time.process_time() - begun
        rows.append(_row(d, name, made.alpha, seconds, made))
    rows.append(_row(d, GM, 2.0 ** (d - way), None, None))
    least = rows[0]["alpha"]
    return [{**row, "ratio": row["alpha"] / least} for row in rows]


def _row(d: int, name: str, alpha: float, seconds: float | None, design: Any) -> Row:
    proof = None if design is None else design.certificate
    gap = None if proof is None else proof.gap
    return {"attributes": d, "mechanism": name, "alpha": alpha, "gap": gap, "seconds": seconds}


def table(rows: Rows) -> Rows:
    """Return a row for each number of attributes, the ratios side by side."""
    shown: Rows = []
    for d in distinct(rows, "attributes"):
        line: Row = {"attributes": d, "cells": f"2^{d}"}
        for name in (GM, HM, HM2, CA, SM2):
            found = column(rows, "ratio", attributes=d, mechanism=name)
            line[name] = found[0] if found else None
        here = [r for r in rows if r["attributes"] == d]
        line["mu^2 of fit"] = column(here, "alpha", mechanism=FIT)[0]
        for name in (FIT, SM2, CA):
            for what in ("gap", "seconds"):
                found = column(here, what, mechanism=name)
                line[f"{what} of {name}"] = found[0] if found else None
        shown.append(line)
    return shown


def verdict(rows: Rows) -> Verdict:
    """Check what the paper says of its curves: who is ahead, and that CA falls behind."""
    ds = sorted(distinct(rows, "attributes"))
    ca = [column(rows, "ratio", attributes=d, mechanism=CA)[0] for d in ds]
    ahead = all(
        r["ratio"] >= column(rows, "ratio", attributes=r["attributes"], mechanism=CA)[0]
        for r in rows
        if r["mechanism"] in (GM, HM, HM2) and r["attributes"] > 2
    )
    widens = bool(np.all(np.diff(ca) > 0))
    sm = max(column(rows, "ratio", mechanism=SM2))
    return Verdict(
        "agrees" if ahead and widens else "differs",
        f"SM-II (at most {sm:.4f} of the certified least) and CA are ahead of GM and HM, and CA's "
        f"ratio grows from {ca[0]:.2f} at {ds[0]} attributes to {ca[-1]:.2f} at {ds[-1]}, as the "
        "text says of its figure to 16; it prints no number on the curves.",
    )


def picture(rows: Rows, title: str) -> Any:
    """Return ratios against the number of attributes."""
    return lines(
        [r for r in rows if r["mechanism"] != FIT and r["attributes"] <= MOST_DRAWN],
        "attributes",
        "ratio",
        "mechanism",
        title,
        log_y=True,
        x_title="binary attributes",
        y_title="greatest variance / target",
    )


def figure(way: int, title: str, what: str) -> Experiment:
    """Return the experiment of one-way (2) or two-way (3) marginals."""
    return Experiment(
        title=title,
        protocol=(
            f"{what} of d binary attributes, the i-th marginal with target i in each of its cells; "
            "every mechanism at fit's certified privacy cost. Trees (HM) lie over the 2^d cells in "
            "one row, and stop where they no longer fit; noise on the cells (GM) is in closed "
            "form. Beyond 16 attributes fit and CA are designed in the residual basis."
        ),
        cases=lambda size: cases(way, size),
        table=table,
        verdict=verdict,
        picture=lambda rows: picture(rows, capital(title)),
    )
