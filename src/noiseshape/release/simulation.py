"""What noise of the kind that was drawn does to a function of a release: simulated, in doubles.

From the release alone: the measured coordinates stand for the true ones, fresh noise of the
executed scales is added, and the function is computed again. Seeded, so that whoever simulates
the same release finds the same; nothing here meets data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from .._checks import Floats

if TYPE_CHECKING:
    from .matrixrelease import MatrixRelease

DRAWS = 1000
_BLOCK = 1 << 22  # numbers drawn at a time


def simulate_releases(
    release: MatrixRelease, draws: int = DRAWS, seed: int = 0
) -> Iterator[Floats]:
    """Yield the coordinates of ``draws`` releases like this one, (size,) each."""
    plan = release.plan
    strategy, step = plan.strategy, plan.query.step
    rng = np.random.default_rng(seed)
    spread = np.sqrt(strategy.noise_variance)
    block = max(1, _BLOCK // len(spread))
    for start in range(0, draws, block):
        noise = rng.standard_normal((len(spread), min(block, draws - start))) * spread[:, None]
        cells = strategy.approximate(noise)
        for column in cells.T:
            yield release.coordinates + step * column


def simulate_spread(
    release: MatrixRelease, function: Callable[[Floats], Floats], draws: int = DRAWS
) -> Floats:
    """Return the standard deviation of a function of the coordinates, over simulated releases."""
    middle = np.asarray(function(release.coordinates), dtype=np.float64)
    total, squares = np.zeros_like(middle), np.zeros_like(middle)
    for coordinates in simulate_releases(release, draws):
        off = np.asarray(function(coordinates)) - middle
        total += off
        squares += off**2
    return np.asarray(np.sqrt(np.maximum(squares - total**2 / draws, 0) / (draws - 1)))
