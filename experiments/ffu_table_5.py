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
        "The printed GM and CA come out. HM is nearest to the two-level tree of the authors' "
        "program, which at 256 cells is also that of a branching factor of 16, save at 512 "
        "cells; the factor that Qardaji et al.'s rule gives for Gaussian noise does better, and "
        "keeps its ratio as d grows."
    ),
)
