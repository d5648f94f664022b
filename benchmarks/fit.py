"""How fast fit proves its gap, how that grows with size, and what it is made of.

SM-II stands beside it at 64 cells; ``python -m benchmarks sm2`` compares the two at length.

    python -m benchmarks.fit [--large] [--largest]     512 and 1,024 cells; 2,048 cells
"""

from __future__ import annotations

import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from noiseshape.design import Design, fit
from noiseshape.design.coordinates import coordinates
from noiseshape.design.solve import Problem, solve

from .workloads import Workload, age_pyramids, pl94, random_queries, range_queries

GAPS = (1e-3, 1e-6)
T = TypeVar("T")


def main() -> None:
    threads = os.environ.get("OPENBLAS_NUM_THREADS", f"up to {os.cpu_count()}")
    load = f"{os.getloadavg()[0]:.1f}"
    print(f"Threads of OpenBLAS: {threads}; load of the machine at the start: {load}.")
    _warm_up()
    _table(_sizes())
    _replace()
    _steps()
    _sm2()


def _sizes() -> list[int]:
    sizes = [64, 128, 256]
    if "--large" in sys.argv or "--largest" in sys.argv:
        sizes += [512, 1024]
    return [*sizes, 2048] if "--largest" in sys.argv else sizes


def _ranges(d: int) -> Workload:
    return range_queries(d, 2 * d, np.random.default_rng(d))


def _random(d: int) -> Workload:
    return random_queries(d, 2 * d, np.random.default_rng(d))


def _table(sizes: list[int]) -> None:
    print("\nTwice as many queries as cells; times from the first call to the certified design.")
    print("memory: most that was held at once, over the workload's own, to the first gap.\n")
    print(
        _line("workload", "m x d", *(f"to {gap:g}" for gap in GAPS), "ratio", "steps", "", "memory")
    )
    for name, make in (("ranges", _ranges), ("random", _random)):
        seconds = [_row(name, make(d)) for d in sizes]
        growth = np.log2(seconds[-1] / seconds[-2]) / np.log2(sizes[-1] / sizes[-2])
        print(f"{'':>8} last two sizes: seconds grow like d^{growth:.1f}")
    _row("PL-94", pl94())
    _row("ages", age_pyramids())


def _row(name: str, work: Workload) -> float:
    designs, seconds = zip(*(_timed(partial(fit, *work, gap=gap)) for gap in GAPS), strict=True)
    steps = [design.certificate.iterations for design in designs]
    ratio = f"{seconds[1] / seconds[0]:.1f}"
    times = (f"{s:.3f} s" for s in seconds)
    shape = f"{work[0].shape[0]} x {work[0].shape[1]}"
    print(_line(name, shape, *times, ratio, *steps, f"{_memory(work):.1f}"), flush=True)
    return float(seconds[0])


def _memory(work: Workload) -> float:
    """Return the peak of traced memory during a fit, over the size of the workload."""
    tracemalloc.start()
    fit(*work)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / work[0].nbytes


def _replace() -> None:
    print("\nUnder replace, all pairs of cells, to 1e-3\n")
    print(_line("workload", "m x d", "pairs", "seconds", "steps", "", "mu, of add-remove's shape"))
    for name, work in (("random", _random(64)), ("ranges", _ranges(64)), ("PL-94", pl94())):
        design, seconds = _timed(partial(fit, *work, neighbours="replace"))
        other = fit(*work)
        shape = Design("", other.W, other.c, other.A, neighbours="replace").meeting_targets()
        d = work[0].shape[1]
        assert design.certificate is not None
        print(
            _line(
                name,
                f"{work[0].shape[0]} x {d}",
                d * (d - 1) // 2,
                f"{seconds:.2f} s",
                design.certificate.iterations,
                "",
                f"{shape.mu / design.mu:.3f} times",
            ),
            flush=True,
        )


def _steps() -> None:
    print("\nSteps and seconds: multiplicative steps alone, and with Newton's (gap, at most 400)\n")
    print(_line("workload", "m x d", "gap", "alone", "", "Newton", ""))
    cases = {
        "ranges": _ranges(128),
        "random": _random(128),
        "PL-94": pl94(),
        "ages": age_pyramids(),
    }
    for name, (W, c) in cases.items():
        space = coordinates(W, c, "add-remove")
        problem = Problem(space.people, space.queries)
        p, q = (np.full(side.n, 1 / side.n) for side in (space.people, space.queries))
        for gap in GAPS:
            cells: list[object] = []
            for warm, near in ((10**9, 0.0), (8, 0.1)):
                run = partial(solve, problem, p, q, gap=gap, max_iterations=400)
                found, seconds = _timed(partial(run, warm=warm, near=near))
                cells += [found.iterations if found.gap <= gap else "> 400", f"{seconds:.3f} s"]
            print(_line(name, f"{W.shape[0]} x {W.shape[1]}", f"{gap:g}", *cells), flush=True)


def _sm2() -> None:
    try:
        from noiseshape.design.sm2 import sm2
    except ImportError:
        return
    print("\nSM-II beside it (its gap by the dual bound at its own weights), at 64 cells\n")
    print(_line("workload", "", "fit", "SM-II", "times", "gap of", "SM-II"))
    for name, work in (("ranges", _ranges(64)), ("random", _random(64))):
        _, ours = _timed(partial(fit, *work))
        theirs, seconds = _timed(partial(sm2, *work))
        assert theirs.certificate is not None
        gap = f"{theirs.certificate.gap:.1e}"
        print(
            _line(name, "", f"{ours:.3f} s", f"{seconds:.3f} s", f"{seconds / ours:.0f}", "", gap)
        )


def _warm_up() -> None:
    """Load LAPACK and start its threads before anything is timed."""
    fit(*_ranges(32))


def _timed(design: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    made = design()
    return made, time.perf_counter() - start


def _line(*cells: object) -> str:
    widths = (8, 12, 11, 11, 7, 7, 7, 9)
    return " ".join(str(cell).rjust(width) for cell, width in zip(cells, widths, strict=False))


if __name__ == "__main__":
    main()
