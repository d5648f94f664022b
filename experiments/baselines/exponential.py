"""The exponential mechanism over databases, as Blum, Ligett and Roth (2013) run on a net.

Their mechanism draws a database D' of the domain with probability in proportion to
``exp(epsilon q(D, D') / (2 sensitivity of q))``. Over a net of databases for a general class of
queries this takes exponential time, and MVG does not say what it ran. With the quality
``q = -sum_ij |X_ij - Y_ij|``, over all databases of as many records in the domain, the density
factorises into truncated Laplace densities, one an entry, and can be drawn exactly. One record
changes q by at most the sum of its features' ranges.
"""

from __future__ import annotations

import numpy as np

from ..harness import Floats


def database(
    X: Floats, low: float, high: float, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Return a database of the domain [low, high]^features, drawn as above; epsilon-private.

    Parameters
    ----------
    X : (records, features)
        One record may be replaced by another.
    """
    sensitivity = X.shape[1] * (high - low)
    return truncated_laplace(X, 2 * sensitivity / epsilon, low, high, rng)


def truncated_laplace(
    centre: Floats, scale: float, low: float, high: float, rng: np.random.Generator
) -> Floats:
    """Return draws on [low, high] of density in proportion to exp(-|y - centre| / scale)."""
    # Masses of the two sides, from the centre down to low and up to high.
    below = -np.expm1(-(centre - low) / scale)
    above = -np.expm1(-(high - centre) / scale)
    u = rng.random(centre.shape) * (below + above)
    down = u < below
    mass = np.where(down, u, u - below)
    step = -scale * np.log1p(-mass)
    drawn = np.where(down, centre - step, centre + step)
    return np.clip(drawn, low, high)
