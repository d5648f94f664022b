"""Fitness-for-use, Table 8: random queries, random targets."""

from __future__ import annotations

import numpy as np
from benchmarks.workloads import Workload, random_queries

from .ratios import drawn


def draw(d: int, rng: np.random.Generator) -> Workload:
    """Return one draw of the workload over ``d`` cells."""
    return random_queries(d, 2 * d, rng)


EXPERIMENT = drawn(
    "ffu-table-8",
    title="random queries, random targets",
    what=(
        "2 d queries of signs a draw, +1 with probability 0.2; "
        "a tenth of the targets uniform on (1, 3), the others on (10, 15)"
    ),
    draw=draw,
    why="@@WHY8@@",
)
