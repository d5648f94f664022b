"""Fitness-for-use, Table 8: random queries, random targets."""

from __future__ import annotations

import numpy as np
from benchmarks.workloads import Workload, random_queries

from .ratios import drawn
from .tables import TEXT


def draw(d: int, rng: np.random.Generator) -> Workload:
    """Return one draw of the workload over ``d`` cells, as section 7.4 describes it."""
    return random_queries(d, 2 * d, rng)


def fair(d: int, rng: np.random.Generator) -> Workload:
    """Return one draw with fair coins: the same targets, +1 with probability 1/2."""
    _, c = draw(d, rng)
    return np.where(rng.random((2 * d, d)) < 0.5, 1.0, -1.0), c


EXPERIMENT = drawn(
    "ffu-table-8",
    title="random queries, random targets",
    what=(
        "2 d queries of signs a draw, +1 with probability 0.2 as described, and 1/2 beside it; "
        "a tenth of the targets uniform on (1, 3), the others on (10, 15)"
    ),
    readings={TEXT: draw, "with fair coins": fair},
    why=(
        "Fair coins explain GM here too, and CA is near either way; single draws of targets "
        "spread as widely as what is left. The conclusion, that fitted noise is far ahead, "
        "holds for both."
    ),
)
