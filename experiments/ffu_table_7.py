"""Fitness-for-use, Table 7: random queries, uniform targets."""

from __future__ import annotations

import numpy as np
from benchmarks.workloads import Workload, random_queries

from .ratios import drawn


def draw(d: int, rng: np.random.Generator) -> Workload:
    """Return one draw of the workload over ``d`` cells."""
    return random_queries(d, 2 * d, rng)[0], np.ones(2 * d)


EXPERIMENT = drawn(
    "ffu-table-7",
    title="random queries, uniform targets",
    what="2 d queries of signs a draw, +1 with probability 0.2, every target 1",
    draw=draw,
    why="@@WHY7@@",
)
