"""The first principal component by the exponential mechanism: PPCA of Chaudhuri et al. (2012).

For records of length at most 1, v on the unit sphere is drawn with density in proportion to
``exp(n (epsilon / 2) v^T A v)``, A = X^T X / n: a Bingham distribution. They ran a Gibbs sampler;
here it is drawn exactly, by Kent, Ganeiban and Mardia's rejection from an angular central Gaussian
("A new method to simulate the Bingham and related distributions", 2013).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from ..harness import Floats


def component(X: Floats, length: float, epsilon: float, rng: np.random.Generator) -> Floats:
    """Return a unit vector (features,), epsilon-private when a record may be replaced.

    Parameters
    ----------
    X : (records, features)
    length
        Greatest length that a record may have.
    """
    return bingham(X.T @ X * (epsilon / (2 * length**2)), 1, rng)[0]


def bingham(K: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Return draws (size, q) on the unit sphere of density in proportion to exp(x^T K x)."""
    values, Q = np.linalg.eigh(K)
    weights = values[-1] - values  # exp(-sum weights y^2) in the eigenvectors' coordinates
    q = len(weights)
    b = _best(weights)
    omega = 1 + 2 * weights / b
    drawn: list[Floats] = []
    while len(drawn) < size:
        y = rng.standard_normal((4 * size, q)) / np.sqrt(omega)
        y /= np.linalg.norm(y, axis=1, keepdims=True)
        log_f = -(y**2 @ weights)
        log_g = -q / 2 * np.log(y**2 @ omega)
        log_m = -(q - b) / 2 + q / 2 * np.log(q / b)
        accepted = np.log(rng.random(len(y))) < log_f - log_g - log_m
        drawn.extend(y[accepted])
    return np.array(drawn[:size]) @ Q.T


def _best(weights: Floats) -> float:
    """Return the b of the tightest envelope: the root of sum 1 / (b + 2 weights) = 1."""
    q = len(weights)
    if not np.any(weights > 0):
        return float(q)
    return float(brentq(lambda b: np.sum(1 / (b + 2 * weights)) - 1, 1e-12, q))
