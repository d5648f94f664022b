"""Time of fit against the number of cells."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from benchmarks.workloads import random_queries, range_queries

from noiseshape.design import fit

from .harness import Case, Experiment, Rows, Size, Verdict, column, distinct, generator
from .pictures import lines

NAME = "ours-time"
GAPS = (1e-3, 1e-6)
SIZES: dict[Size, tuple[int, ...]] = {
    "tiny": (8, 16),
    "default": (32, 64, 128, 256, 512, 1024),
    "full": (32, 64, 128, 256, 512, 1024, 2048),
}
MAKERS = {"ranges": range_queries, "random signs": random_queries}


def cases(size: Size) -> list[Case]:
    """Return a case for each d and workload."""
    return [Case(f"d={d} {name}", partial(_rows, name, d)) for d in SIZES[size] for name in MAKERS]


def _rows(name: str, d: int) -> Rows:
    work = MAKERS[name](d, 2 * d, generator(NAME, name, d))
    rows: Rows = []
    for gap in GAPS:
        begun = time.process_time()
        design = fit(*work, gap=gap)
        seconds = time.process_time() - begun
        proof = design.certificate
        assert proof is not None
        rows.append(
            {
                "workload": name,
                "d": d,
                "asked": gap,
                "gap": proof.gap,
                "steps": proof.iterations,
                "seconds": seconds,
            }
        )
    return rows


def table(rows: Rows) -> Rows:
    """Return a row for each workload and d."""
    return [
        {
            "workload": name,
            "d": d,
            "queries": 2 * d,
            **{
                f"{what} to {gap:g}": column(rows, what, workload=name, d=d, asked=gap)[0]
                for gap in GAPS
                for what in ("seconds", "steps")
            },
        }
        for name in distinct(rows, "workload")
        for d in distinct(rows, "d")
    ]


def verdict(rows: Rows) -> Verdict:
    """Say how seconds grow."""
    d = distinct(rows, "d")
    told = []
    for name in distinct(rows, "workload"):
        seconds = column(rows, "seconds", workload=name, asked=GAPS[0])
        power = np.log2(seconds[-1] / seconds[-2]) / np.log2(d[-1] / d[-2])
        told.append(f"{name}: {seconds[-1]:.1f} s at d = {d[-1]}, growing like d^{power:.1f}")
    return Verdict("ours", f"To a proven 1e-3, {'; '.join(told)}.")


def picture(rows: Rows) -> Any:
    """Return seconds against d."""
    points = [{**r, "by": f"{r['workload']}, to {r['asked']:g}"} for r in rows]
    title = "Seconds of fit, one thread"
    return lines(points, "d", "seconds", "by", title, log_x=True, log_y=True)


EXPERIMENT = Experiment(
    title="time of fit against size",
    protocol=(
        "2 d queries over d cells with random targets, from the first call to the certified "
        "design, to gaps of 1e-3 and 1e-6; one draw a size."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
