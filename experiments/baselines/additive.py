"""Independent Laplace noise, and Gaussian noise with the classic calibration."""

from __future__ import annotations

import math

import numpy as np

from ..harness import Floats


def laplace(values: Floats, sensitivity: float, epsilon: float, rng: np.random.Generator) -> Floats:
    """Return values plus Laplace noise of scale L1 sensitivity / epsilon (Dwork et al. 2006)."""
    return values + rng.laplace(scale=sensitivity / epsilon, size=values.shape)


def classic_sigma(s2: float, epsilon: float, delta: float) -> float:
    """Return s2 sqrt(2 ln(1.25 / delta)) / epsilon, as MVG's peers calibrate.

    Proved for epsilon < 1 only (Dwork and Roth 2014, Theorem A.1); MVG's experiments use it at
    epsilon = 1, where the exact curve still confirms it (a test does). The library's own refuses.
    """
    return s2 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def gaussian(values: Floats, sigma: float, rng: np.random.Generator) -> Floats:
    """Return values plus independent noise of standard deviation ``sigma``."""
    return values + rng.normal(scale=sigma, size=values.shape)


def symmetric(values: Floats, noise: Floats) -> Floats:
    """Return a symmetric matrix plus the upper triangle of a noise matrix, mirrored."""
    upper = np.triu(noise)
    return values + upper + np.triu(upper, 1).T
