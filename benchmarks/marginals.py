"""How planning and releasing marginals grows with attributes, order and sizes.

Beside the dense ``fit`` where both run: the same queries, one after the other in one process.

    python -m benchmarks marginals
    ADULT=path/to/adult_discretized_pgm.csv.gz python -m benchmarks marginals    a release too
"""

from __future__ import annotations

import math
import os
import resource
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import numpy as np

import noiseshape as ns
from noiseshape.design import MarginalsDesign, fit, marginals

T = TypeVar("T")
Set = tuple[int, ...]

# Adult as private-pgm discretises it (Apache-2.0): how many values each of its columns has.
ADULT = {
    "age": 85, "workclass": 9, "fnlwgt": 100, "education-num": 16, "marital-status": 7,
    "occupation": 15, "relationship": 6, "race": 5, "sex": 2, "capital-gain": 100,
    "capital-loss": 100, "hours-per-week": 99, "native-country": 42, "income>50K": 2,
}  # fmt: skip


def main() -> None:
    marginals([3, 4], [(0, 1), (1,)], 1.0)  # imports, and what libraries set up once
    _grow()
    _dense()
    _adult()


def _timed(act: Callable[[], T], times: int = 3) -> tuple[T, float]:
    """Return what ``act`` gives and the least time of a few."""
    best = math.inf
    for _ in range(times):
        begun = time.perf_counter()
        made = act()
        best = min(best, time.perf_counter() - begun)
    return made, best


def _grow() -> None:
    print("\nAll marginals of up to k attributes, targets over three powers of ten, to 1e-3.")
    print("Time is of the whole call, set-up and certificate included; memory the most held.\n")
    print(f"{'attributes':>11}{'values':>8}{'k':>3}{'marginals':>11}{'residuals':>11}"
          f"{'seconds':>9}{'steps':>7}{'gap':>9}{'MB':>7}")  # fmt: skip
    cases = [(10, 10, 3), (100, 10, 2), (100, 10, 3), (100, 1000, 3), (20, 10, 5), (400, 10, 2)]
    for attributes, values, most in cases:
        sets = [s for k in range(1, most + 1) for s in combinations(range(attributes), k)]
        c = 10 ** np.random.default_rng(0).uniform(0, 3, len(sets))
        act = partial(marginals, [values] * attributes, sets, c)
        design, seconds = _timed(act)
        peak = _peak(act)
        proof = design.certificate
        print(f"{attributes:>11}{values:>8}{most:>3}{len(sets):>11,}{len(design.u):>11,}"
              f"{seconds:>9.2f}{proof.iterations:>7}{proof.gap:>9.1e}"
              f"{peak / 1e6:>7.0f}")  # fmt: skip


def _peak(act: Callable[[], MarginalsDesign]) -> int:
    tracemalloc.start()
    act()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def _dense() -> None:
    print("\nThe same marginals by fit over all cells: pairs and singles of three attributes.\n")
    print(f"{'cells':>7}{'answers':>9}{'by marginals':>14}{'by cells':>10}{'ratio':>8}"
          f"{'cost / cost':>13}")  # fmt: skip
    for size in (4, 6, 8):
        sets = [s for k in (1, 2) for s in combinations(range(3), k)]
        c = 10 ** np.random.default_rng(size).uniform(0, 2, len(sets))
        W, targets = _written_out([size] * 3, sets, c)
        made, quick = _timed(partial(marginals, [size] * 3, sets, c))
        dense, slow = _timed(partial(fit, W, targets), 1)
        print(f"{size**3:>7}{len(W):>9}{quick:>12.4f} s{slow:>8.2f} s{slow / quick:>8.0f}"
              f"{made.alpha / dense.alpha:>13.6f}")  # fmt: skip


def _written_out(
    n: Sequence[int], sets: Sequence[Set], c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    blocks = [
        _product([np.eye(s) if i in members else np.ones((1, s)) for i, s in enumerate(n)])
        for members in sets
    ]
    return np.vstack(blocks), np.repeat(c, [len(block) for block in blocks])


def _product(factors: Sequence[np.ndarray]) -> np.ndarray:
    found = factors[0]
    for factor in factors[1:]:
        found = np.kron(found, factor)
    return found


def _adult() -> None:
    schema = ns.Schema({c: ns.integers(0, n - 1, missing="drop") for c, n in ADULT.items()})

    def planned() -> ns.MarginalsPlan:
        made = ns.plan(ns.Workload(schema).all_marginals(3, stderr=50))
        assert isinstance(made, ns.MarginalsPlan)
        return made

    plan, seconds = _timed(planned)
    print(f"\nAdult, all marginals of up to three of 14 columns: {plan.count:,} answers to 469 "
          f"queries\nworkload and plan: {seconds:.3f} s")  # fmt: skip
    path = os.environ.get("ADULT")
    if path is None:
        print("released: name the file of private-pgm's discretised Adult in ADULT to measure it.")
        return
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        plan.release(path, unrecorded=True, out=Path(folder) / "out")
        seconds = time.perf_counter() - begun
        size = sum(p.stat().st_size for p in (Path(folder) / "out").rglob("*") if p.is_file())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"counted, measured, rebuilt, published: {seconds:.0f} s, {memory:.1f} GB at the most, "
          f"{size / 1e9:.2f} GB of files")  # fmt: skip


if __name__ == "__main__":
    main()
