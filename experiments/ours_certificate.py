"""How fast the two bounds of fit close on each other."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.workloads import Workload, age_pyramids, pl94, random_queries, range_queries

from noiseshape.design import Progress, fit

from .harness import Case, Experiment, Rows, Size, Verdict, distinct, generator
from .pictures import lines

NAME = "ours-certificate"
GAP = 1e-6


def _work(name: str, d: int) -> Workload:
    rng = generator(NAME, name, d)
    makers = {
        "ranges": lambda: range_queries(d, 2 * d, rng),
        "random signs": lambda: random_queries(d, 2 * d, rng),
        "PL-94": pl94,
        "age pyramids": age_pyramids,
    }
    return makers[name]()


def cases(size: Size) -> list[Case]:
    """Return a case a workload."""
    d = 16 if size == "tiny" else 256
    names = ["ranges", "random signs"] + ([] if size == "tiny" else ["PL-94", "age pyramids"])
    return [Case(name, partial(_rows, name, d)) for name in names]


def _rows(name: str, d: int) -> Rows:
    seen: list[Progress] = []
    work = _work(name, d)
    design = fit(*work, gap=GAP, progress=seen.append)
    proof = design.certificate
    assert proof is not None
    rows: Rows = [
        {
            "workload": name,
            "queries": len(work[1]),
            "cells": work[0].shape[1],
            "step": state.iteration,
            "seconds": state.seconds,
            "lower": state.lower,
            "achieved": state.achieved,
            "gap": state.gap,
        }
        for state in seen
    ]
    last = {**rows[-1], "step": rows[-1]["step"] + 1, "gap": proof.gap, "seconds": proof.seconds}
    return [*rows, {**last, "lower": proof.lower, "achieved": proof.achieved}]


def table(rows: Rows) -> Rows:
    """Return the first step and time at which each gap is proved."""
    shown: Rows = []
    for name in distinct(rows, "workload"):
        here = [r for r in rows if r["workload"] == name]
        line = {"workload": name, "queries": here[0]["queries"], "cells": here[0]["cells"]}
        for gap in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
            at = next((r for r in here if r["gap"] <= gap), None)
            line[f"steps to {gap:g}"] = None if at is None else at["step"]
            line[f"seconds to {gap:g}"] = None if at is None else at["seconds"]
        shown.append({**line, "mu^2": here[-1]["achieved"]})
    return shown


def verdict(rows: Rows) -> Verdict:
    """Say how many steps it takes, and that bounds never cross."""
    steps = {name: max(r["step"] for r in rows if r["workload"] == name)
             for name in distinct(rows, "workload")}  # fmt: skip
    sound = all(
        max(r["lower"] for r in rows if r["workload"] == name)
        <= min(r["achieved"] for r in rows if r["workload"] == name) * (1 + 1e-9)
        for name in steps
    )
    return Verdict(
        "ours",
        f"A gap of {GAP:g} is proved in {min(steps.values())} to {max(steps.values())} steps; "
        + ("no lower bound ever passed any value achieved." if sound else "BOUNDS CROSSED."),
    )


def picture(rows: Rows) -> Any:
    """Return the gap against the step."""
    points = [{**r, "by": r["workload"], "gap": max(r["gap"], 1e-12)} for r in rows]
    return lines(points, "step", "gap", "by", "Proven gap after each step", log_y=True)


EXPERIMENT = Experiment(
    title="convergence of the certificate",
    protocol=(
        "fit to a gap of 1e-6; at each step the lower bound on mu^2 of any Gaussian noise that "
        "meets the targets, and the value of the design so far. Ranges and random signs over 256 "
        "cells with 512 queries, random targets; PL-94; age pyramids."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
