"""Fitness-for-use, Table 3: seconds of SM-II and of gradient descent on prefix queries."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.peers.descent import descent
from benchmarks.workloads import prefixes

from noiseshape.design import Design, fit
from noiseshape.design.sm2 import PUBLISHED, Options, sm2

from .harness import Case, Experiment, Rows, Size, Verdict, column, distinct, printed
from .pictures import lines

NAME = "ffu-table-3"
STEPS = {"tiny": 200, "default": 20_000, "full": 2_000_000}


def cases(size: Size) -> list[Case]:
    """Return one case for each d and solver."""
    options = Options(rebase=False, max_iterations=STEPS[size])
    solvers: dict[str, Callable[[int], Design]] = {
        "fit": lambda d: fit(*prefixes(d), gap=1e-3),
        "SM-II": lambda d: sm2(*prefixes(d), options=PUBLISHED),
        "gradient descent": lambda d: descent(*prefixes(d), options=options),
    }

    def compute(d: int, name: str) -> Rows:
        begun = time.process_time()
        design = solvers[name](d)
        seconds = time.process_time() - begun
        proof = design.certificate
        assert proof is not None
        return [
            {
                "d": d,
                "solver": name,
                "seconds": seconds,
                "steps": proof.iterations,
                "mu^2": design.alpha,
                "gap": proof.gap,
                "ended": not proof.reason.startswith("stopped after"),
            }
        ]

    return [
        Case(f"d={d} {name}", lambda d=d, name=name: compute(d, name))  # type: ignore[misc]
        for d in ([2, 4] if size == "tiny" else [2, 4, 8, 16])
        for name in solvers
    ]


def table(rows: Rows) -> Rows:
    """Return a row for each d and solver beside what is printed."""
    known = printed(NAME)["values"]
    return [
        {
            "d": r["d"],
            "solver": r["solver"],
            "printed seconds": known.get(r["solver"], {}).get(str(r["d"])),
            "seconds": r["seconds"],
            "steps": r["steps"],
            "mu^2": r["mu^2"],
            "gap": r["gap"],
            "ended": "by itself" if r["ended"] else "stopped",
        }
        for r in rows
    ]


def verdict(rows: Rows) -> Verdict:
    """Compare who is faster: seconds of two machines do not compare."""
    descent_s = {r["d"]: r for r in rows if r["solver"] == "gradient descent"}
    newton = {r["d"]: r["seconds"] for r in rows if r["solver"] == "SM-II"}
    quick = {r["d"]: r["seconds"] for r in rows if r["solver"] == "fit"}
    slower = [descent_s[d]["seconds"] / newton[d] for d in newton]
    stopped = [d for d, r in descent_s.items() if not r["ended"]]
    end = max(newton)
    return Verdict(
        "agrees" if min(slower) > 1 else "differs",
        f"Gradient descent is {min(slower):.0f} to {max(slower):.0f} times slower than SM-II here "
        + (f"(and was stopped unfinished at d = {', '.join(map(str, stopped))})" if stopped else "")
        + "; the paper's machine and step rule differ, its conclusion does not. At d = "
        f"{end} fit takes {quick[end]:.3f} s, with a proof.",
    )


def picture(rows: Rows) -> Any:
    """Return seconds against d, measured and printed."""
    known = printed(NAME)["values"]
    points = [{**r, "by": f"{r['solver']}, measured"} for r in rows]
    points += [
        {"d": int(d), "seconds": value, "by": f"{solver}, printed"}
        for solver, values in known.items()
        for d, value in values.items()
        if int(d) in distinct(rows, "d")
    ]
    assert column(rows, "seconds")
    return lines(points, "d", "seconds", "by", "Seconds on prefix queries", log_x=True, log_y=True)


EXPERIMENT = Experiment(
    title="SM-II against gradient descent",
    protocol=(
        "The prefixes of Table 2. Gradient descent on SM-II's own objective with its line search "
        "and its schedule of t, in the basis B = I, stopped after 20,000 steps (2,000,000 with "
        "--full); the paper does not say how its descent chose steps or when it ended."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
