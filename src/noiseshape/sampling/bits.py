"""Secret bits, from the operating system and nowhere else."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray


def secret_words(count: int) -> NDArray[np.uint64]:
    """Return ``count`` words of 64 independent secret bits, shape (count,).

    Nothing is kept between calls, so that threads and forked processes can never
    be handed the same bits; there is no seed.
    """
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
