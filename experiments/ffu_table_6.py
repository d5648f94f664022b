"""Fitness-for-use, Table 6: range queries, random targets."""

from __future__ import annotations

import numpy as np
from benchmarks.workloads import Workload, range_queries

from .ratios import drawn
from .tables import TEXT


def draw(d: int, rng: np.random.Generator) -> Workload:
    """Return one draw of the workload over ``d`` cells."""
    return range_queries(d, 2 * d, rng)


EXPERIMENT = drawn(
    "ffu-table-6",
    title="range queries, random targets",
    what="2 d ranges a draw, both ends uniform over the d cells, targets uniform on (1, 10)",
    readings={TEXT: draw},
    why=(
        "Ratios under random targets hang on the draw of a few demanding targets: the paper's "
        "one draw lies about where ours spread. HM is nearer to the two-level tree of the "
        "authors' program than to Qardaji et al.'s, which does better."
    ),
)
