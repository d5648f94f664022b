"""SM-II against fit, in one run: seconds, and the gap that each truly reached.

SM-II runs twice: as published, in the bases of the paper's section 7, and at its best, which is not
in the paper: with the basis moved along (`rebase`) and 20 conjugate steps for 5. Its gap is what
the dual bound proves at its own soft-max weights, its loss is over fit's certified lower bound.
Then Tables 2 and 3 of the paper at small d: gradient descent, and an interior-point solver.

    python -m benchmarks.sm2 [--slow]      also as published beyond d = 64: many minutes
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from noiseshape.design import Design, fit
from noiseshape.design.reduce import reduce
from noiseshape.design.sm2 import PUBLISHED, Options, sm2

from .peers.descent import descent
from .peers.interior import interior
from .workloads import (
    Workload,
    age_pyramids,
    pl94,
    prefixes,
    random_queries,
    range_queries,
)

# Beyond this many cells fit runs alone: SM-II takes from several minutes to hours.
MOST_COMPARED = 256
AT_ITS_BEST = Options(conjugate_steps=20)
Timed = tuple[Design, float]


def main() -> None:
    slow = "--slow" in sys.argv
    print("SM-II to the paper's tolerance, fit to a certified 1e-3; one run, this machine.")
    print("gap: to its own dual bound; loss: above fit's certified lower bound of mu^2.\n")
    print(_line("workload", "d", "design", "seconds", "x fit", "steps", "gap", "loss"))
    for d in (64, 128, 256, 512, 1024):
        rng = np.random.default_rng(d)
        ranges = _merged(range_queries(d, 2 * d, rng))
        _compare("ranges", d, ranges, np.triu(np.ones((ranges[0].shape[1],) * 2)), slow)
        _compare("random", d, random_queries(d, 2 * d, rng), np.eye(d), slow)
    for name, work in (("PL-94", pl94()), ("ages", age_pyramids())):
        d = work[0].shape[1]
        _compare(name, d, work, np.triu(np.ones((d, d))), slow)
    print("\nPrefixes, unit targets: seconds and mu^2 (Tables 2 and 3 of the paper)\n")
    solvers = ("fit", "SM-II", "descent", "interior")
    print(_line("d", *solvers, "mu^2:", *solvers[1:]))
    for d in (2, 4, 8, 16):
        _small(d)


def _compare(name: str, d: int, work: Workload, basis: np.ndarray, slow: bool) -> None:
    W, c = work
    fitted, least = _timed(lambda: fit(W, c))
    designs: dict[str, Callable[[], Design]] = {}
    if d <= MOST_COMPARED:
        designs["SM-II, at its best"] = lambda: sm2(W, c, options=AT_ITS_BEST)
    if d <= (MOST_COMPARED if slow else 64):
        designs["SM-II, published"] = lambda: sm2(W, c, basis=basis, options=PUBLISHED)
    _row(name, d, "fit", fitted, least, fitted, least)
    for label, design in designs.items():
        _row(name, d, label, *_timed(design), fitted, least)


def _row(
    name: str, d: int, label: str, design: Design, seconds: float, fitted: Design, least: float
) -> None:
    proof, best = design.certificate, fitted.certificate
    assert proof is not None
    assert best is not None
    print(
        _line(
            name,
            d,
            label,
            f"{seconds:.3f}",
            f"{seconds / least:.0f}",
            proof.iterations,
            f"{proof.gap:.1e}",
            f"{design.alpha / best.lower - 1:.1e}",
        ),
        flush=True,
    )


def _small(d: int) -> None:
    W, c = prefixes(d)
    # Descent is stopped at 20,000 steps: to SM-II's tolerance it would take far longer.
    options = Options(rebase=False, max_iterations=20_000)
    designs: list[Callable[[], Design]] = [
        lambda: fit(W, c),
        lambda: sm2(W, c, options=PUBLISHED),
        lambda: descent(W, c, options=options),
        lambda: interior(W, c),
    ]
    timed = [_timed(design) for design in designs]
    seconds = [f"{seconds:.3f}" for _, seconds in timed]
    costs = [f"{design.alpha:.5f}" for design, _ in timed[1:]]
    print(_line(d, *seconds, "", *costs), flush=True)


def _merged(work: Workload) -> Workload:
    """Return the workload with cells that no query tells apart merged, which loses nothing.

    With them the triangular basis of the paper has more rows than the rank, and is none.
    """
    reduced = reduce(*work)
    return reduced.W, reduced.c


def _timed(design: Callable[[], Design]) -> Timed:
    start = time.perf_counter()
    made = design()
    return made, time.perf_counter() - start


def _line(*cells: object) -> str:
    widths = (9, 9, 18, 10, 9, 9, 9, 9, 9)
    return " ".join(str(cell).rjust(width) for cell, width in zip(cells, widths, strict=False))


if __name__ == "__main__":
    main()
