"""Fitness-for-use, Table 7: random queries, uniform targets."""

from __future__ import annotations

import numpy as np
from benchmarks.workloads import Workload, random_queries

from .ratios import drawn
from .tables import TEXT


def draw(d: int, rng: np.random.Generator) -> Workload:
    """Return one draw of the workload over ``d`` cells, as section 7.4 describes it."""
    return random_queries(d, 2 * d, rng)[0], np.ones(2 * d)


def fair(d: int, rng: np.random.Generator) -> Workload:
    """Return one draw with fair coins: the same targets, +1 with probability 1/2."""
    _, c = draw(d, rng)
    return np.where(rng.random((2 * d, d)) < 0.5, 1.0, -1.0), c


EXPERIMENT = drawn(
    "ffu-table-7",
    title="random queries, uniform targets",
    what=(
        "2 d queries of signs a draw, +1 with probability 0.2 as described, and 1/2 beside it; "
        "every target 1"
    ),
    readings={TEXT: draw, "with fair coins": fair},
    why=(
        "With fair coins GM and CA come out to two digits, and HM with two levels from 256 "
        "cells on; with +1 of probability 0.2, as section 7.4 says, they would be higher: the "
        "paper's coins were fair. Its HM at 64 and 128 cells is none of the trees, but what "
        "noise on each query gives. The conclusion, that all but trees do nearly as well as "
        "fitted noise, holds for fair coins only."
    ),
)
