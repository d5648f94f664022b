"""Rounded noise keeps the continuous curve; the discrete Gaussian of that sigma does not."""

import numpy as np
import pytest
from scipy.stats import norm

SHIFTS = [(0.5, 1), (1.0, 1), (10.0, 1), (10.0, 10)]


def continuous_delta(eps, mu):
    return norm.cdf(mu / 2 - eps / mu) - np.exp(eps) * norm.cdf(-mu / 2 - eps / mu)


def lattice_delta(eps, weights, shift):
    """delta of noise with these weights on -r..r, for values of f that differ by ``shift``."""
    here = np.pad(weights, (shift, 0))
    there = np.pad(weights, (0, shift))
    # here[i] is the chance that f + shift + noise lands where there[i] has f + noise.
    return np.maximum(here - np.exp(eps) * there, 0).sum()


def ratios(weights, sigma, shift):
    eps = np.arange(0, 12, 0.02)
    smooth = continuous_delta(eps, shift / sigma)
    kept = smooth >= 1e-8
    return (
        np.array([lattice_delta(e, weights, shift) for e in eps[kept]]) / smooth[kept],
        eps[kept],
    )


@pytest.mark.parametrize(("sigma", "shift"), SHIFTS)
def test_rounded_is_never_above_the_curve(sigma, shift, pmf):
    reach = int(12 * sigma) + shift
    ratio, _ = ratios(pmf(sigma, np.arange(-reach, reach + 1)), sigma, shift)
    assert ratio.max() <= 1 + 1e-7  # what is left of the last digits at delta 1e-8
    assert ratio.max() > 0.999  # and it is tight


@pytest.mark.parametrize(
    ("sigma", "shift", "least"), [(0.5, 1, 3.7), (1.0, 1, 2.1), (10.0, 1, 1.01), (10.0, 10, 1.014)]
)
def test_discrete_is_above_it(sigma, shift, least):
    reach = int(12 * sigma) + shift
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    ratio, _ = ratios(weights / weights.sum(), sigma, shift)
    assert ratio.max() > least


def test_discrete_at_half_is_2_3_times_the_curve():
    m = np.arange(-10, 11)
    weights = np.exp(-(m**2) / (2 * 0.5**2))
    eps = 5.375
    ratio = lattice_delta(eps, weights / weights.sum(), 1) / continuous_delta(eps, 2.0)
    assert ratio == pytest.approx(2.3347, abs=1e-3)
