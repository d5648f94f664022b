"""Fitness-for-use, Table 5: range queries, uniform targets."""

from __future__ import annotations

import numpy as np
from benchmarks.workloads import Workload, range_queries

from .ratios import drawn
from .tables import TEXT


def draw(d: int, rng: np.random.Generator) -> Workload:
    """Return one draw of the workload over ``d`` cells."""
    return range_queries(d, 2 * d, rng)[0], np.ones(2 * d)


EXPERIMENT = drawn(
    "ffu-table-5",
    title="range queries, uniform targets",
    what="2 d ranges a draw, both ends uniform over the d cells, every target 1",
    readings={TEXT: draw},
    why=(
        "The printed GM and CA come out, and HM to 256 cells with the two-level tree of the "
        "authors' program; a tree with Qardaji et al.'s branching factor, as the text has it, "
        "does better, and keeps its ratio as d grows."
    ),
)
