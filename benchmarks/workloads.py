"""Workloads of the papers, and random ones, each as ``(W, c)``: queries and target variances."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Workload = tuple[Floats, Floats]


def prefixes(d: int) -> Workload:
    """Every prefix of ``d`` ordered cells, unit targets (FFU 7.1.1)."""
    return np.tril(np.ones((d, d))), np.ones(d)


def range_queries(d: int, m: int, rng: np.random.Generator) -> Workload:
    """``m`` random ranges over ``d`` ordered cells, targets uniform on (1, 10) (FFU 7.3)."""
    ends = np.sort(rng.integers(0, d, size=(m, 2)), axis=1)
    cells = np.arange(d)
    W = (ends[:, :1] <= cells) & (cells <= ends[:, 1:])
    return W.astype(np.float64), rng.uniform(1, 10, size=m)


def random_queries(d: int, m: int, rng: np.random.Generator) -> Workload:
    """``m`` queries of signs, +1 with probability 0.2; one in ten is important (FFU 7.4)."""
    W = np.where(rng.random((m, d)) < 0.2, 1.0, -1.0)
    important = rng.permutation(m) < m // 10
    c = np.where(important, rng.uniform(1, 3, size=m), rng.uniform(10, 15, size=m))
    return W, c


def pl94() -> Workload:
    """PL 94-171 as FFU 7.2 describes it: 319 queries over 2 x 2 x 63 cells.

    Marginals of voting age and of ethnicity and the six single races (target 1), the 57
    combinations of races (target 2), and every cell (target 4).
    """
    races = [s for r in range(1, 7) for s in itertools.combinations(range(6), r)]
    age = np.kron(np.eye(2), np.ones((1, 2 * 63)))
    ethnicity = np.kron(np.ones((1, 2)), np.kron(np.eye(2), np.ones((1, 63))))
    race = np.kron(np.ones((1, 4)), np.eye(63))
    W = np.vstack([age, ethnicity, race, np.eye(252)])
    of_race = [1.0 if len(s) == 1 else 2.0 for s in races]
    return W, np.array([1.0] * 4 + of_race + [4.0] * 252)


def age_pyramids() -> Workload:
    """Age pyramids as FFU 7.5 describes them: 351 queries over 2 sexes x 116 ages.

    Prefixes and [18, 115] for males, for females and for both; target 1 for [0, 17] and
    [18, 115], 10 for the others.
    """
    ages = np.vstack([np.tril(np.ones((116, 116))), (np.arange(116) >= 18).astype(float)])
    sexes = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    c = np.full(117, 10.0)
    c[[17, 116]] = 1.0
    return np.kron(sexes, ages), np.tile(c, 3)


def marginals(attributes: int, way: int, levels: int = 2) -> Workload:
    """Marginals of FFU 7.6: one-way, or two-way with the first attribute (``way`` = 1 or 2).

    The ``i``-th marginal has target ``i`` for each of its cells.
    """
    sets = [(i,) for i in range(attributes)] if way == 1 else [(0, i) for i in range(1, attributes)]
    rows: list[Floats] = []
    c: list[float] = []
    for target, kept in enumerate(sets, start=1):
        block: Floats = np.ones((1, 1))
        for i in range(attributes):
            side = np.eye(levels) if i in kept else np.ones((1, levels))
            block = np.asarray(np.kron(block, side), dtype=np.float64)
        rows.append(block)
        c += [float(target)] * len(block)
    return np.vstack(rows), np.array(c)
