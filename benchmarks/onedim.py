"""A million ordered values, and products of ten million cells: times, memory, errors, bounds.

With ``--large`` at full size, some five minutes and three gigabytes; without, at a fiftieth of it.
"""

from __future__ import annotations

import math
import resource
import sys
from time import perf_counter

import numpy as np

import noiseshape as ns
from noiseshape.design import Targets, kronecker, ordered
from noiseshape.design.ordered import _met as met
from noiseshape.design.spectrum import nuclear_bound, orthogonal_factor, prefix_bound
from noiseshape.release import measure
from noiseshape.strategies import Haar, Spans, Strategy, Toeplitz, Tree

LARGE = "--large" in sys.argv
VALUES = 1_000_000 if LARGE else 20_000
AXES = (2500, 4000) if LARGE else (400, 500)


def main() -> None:
    bounds()
    prefixes()
    all_ranges()
    products()


def bounds() -> None:
    print(
        "Lower bounds on mu^2 of prefixes at unit targets: nuclear norm over n; ours; refined dual."
    )
    for n in (64, 256, 1024, VALUES):
        refined = f"{dual(n):9.4f}" if n <= 1024 else "        -"
        print(f"{n:>9,} {nuclear_bound(n):9.4f} {prefix_bound(np.ones(n)):9.4f} {refined}")


def dual(n: int) -> float:
    """Return the dual after ten steps of u, v and the orthogonal factor of diag(u) M diag(v)."""
    M = np.tril(np.ones((n, n)))
    U, best = orthogonal_factor(n), 0.0
    for _ in range(10):
        left, _, right = np.linalg.svd(M * U)
        u, v = np.abs(left[:, 0]), np.abs(right[0])
        left, values, right = np.linalg.svd(u[:, None] * M * v)
        best, U = max(best, values.sum() ** 2), left @ right
    return float(best)


def prefixes() -> None:
    print(f"\nPrefixes of {VALUES:,} values, each with a standard error of 100.")
    work = ns.Workload(ns.Schema({"x": ns.integers(0, VALUES - 1, missing="drop")}))
    start = perf_counter()
    plan = ns.plan(work.prefixes("x", stderr=100))
    assert isinstance(plan, ns.OrderedPlan)
    assert plan.certificate is not None
    print(f"plan: {perf_counter() - start:.1f} s; {plan.why}")
    print(f"mu^2 x 10^4 = {1e4 * float(plan.cost.mu_squared):.4f}, gap {plan.certificate.gap:.4f}")
    x = np.random.default_rng(0).integers(0, 1000, VALUES)
    executed(plan.strategy, x, plan.cost)
    targets = Targets(Spans.prefixes(VALUES), np.full(VALUES, 1e4))
    spans, h = targets.spans, (VALUES - 1).bit_length()
    print("mu^2 x 10^4 of others at the same targets:")
    for name, strategy in {
        "square root, one scale": Toeplitz.power(spans, 0.5, 2.0**40),
        "wavelet, equal levels": Haar(spans, np.full(h + 1, 2.0**20)),
        "binary tree, equal levels": Tree(spans, [2**i for i in range(h + 1)], [2.0**20] * (h + 1)),
    }.items():
        print(f"  {name:<28}{1e4 * float(met(targets, strategy).cost().mu_squared):9.3f}")
    for family in ("wavelet", "tree"):
        made = ordered(targets, families=[family])
        print(f"  {family + ', levels designed':<28}{1e4 * made.certificate.achieved:9.3f}")
    print(f"  {'each prefix on its own':<28}{VALUES:9,}")
    print(f"  {'cells':<28}{VALUES:9,}")


def all_ranges() -> None:
    print(f"\nAll ranges of {VALUES:,} values, each with a standard error of at most 100.")
    work = ns.Workload(ns.Schema({"x": ns.integers(0, VALUES - 1, missing="drop")}))
    start = perf_counter()
    plan = ns.plan(work.all_ranges("x", stderr=100))
    assert isinstance(plan, ns.OrderedPlan)
    assert plan.certificate is not None
    print(f"plan: {perf_counter() - start:.1f} s, gap {plan.certificate.gap:.3f}")
    print(f"mu^2 x 10^4 = {1e4 * float(plan.cost.mu_squared):.4f}")
    for length in (1, 10, 1000, VALUES // 2, VALUES):
        print(
            f"  ranges of {length:>9,}: stderr at most {math.sqrt(plan.by_length[length - 1]):.2f}"
        )
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(0, VALUES + 1, (2, 4000)), axis=0)
    low, high = ends[:, ends[0] < ends[1]]
    sampled = Targets(Spans(low, high, VALUES), np.full(len(low), 1e4))
    for family in ("wavelet", "tree"):
        made = ordered(sampled, families=[family])
        print(f"  {family}: at least {1e4 * made.certificate.achieved:.3f}, for 4,000 ranges alone")
    few = Targets(Spans.prefixes(100), np.ones(100), np.ones(100))
    made = ordered(few)
    print(f"At 100 values: achieved {made.certificate.achieved:.3f}, dense bound "
          f"{made.certificate.lower:.3f}, prefixes' {prefix_bound(np.ones(100)):.3f}")  # fmt: skip


def products() -> None:
    print(f"\nPrefixes by prefixes over {AXES[0]:,} x {AXES[1]:,} cells, standard error 1,000.")
    start = perf_counter()
    made = kronecker([ordered(Targets(Spans.prefixes(n), np.ones(n))) for n in AXES], variance=1e6)
    took, gap = perf_counter() - start, made.certificate.gap
    print(f"design: {took:.1f} s, mu {math.sqrt(made.certificate.achieved):.4f}, gap {gap:.3f}")
    x = np.random.default_rng(0).integers(0, 100, math.prod(AXES))
    executed(made.strategy, x, made.strategy.cost())


def executed(strategy: Strategy, x: np.ndarray, cost: ns.Cost) -> None:
    start = perf_counter()
    measured = measure(strategy, x, cost)
    middle = perf_counter()
    answers = measured.answers()
    end = perf_counter()
    assert np.isfinite(answers).all()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"measure {middle - start:.1f} s, rebuild {end - middle:.1f} s, peak so far {peak:.2f} GB"
    )
