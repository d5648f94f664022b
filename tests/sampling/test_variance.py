"""The variance by two derivations, against arb, against the law and against draws."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape._arb import ball, precision
from noiseshape.errors import InvalidInput
from noiseshape.sampling import rounded_gaussian, rounded_variance
from noiseshape.sampling.variance import tail_sum, theta_series


def by_poisson_summation(sigma: Fraction) -> float:
    """The theta series in arb, with as many terms as it takes."""
    with precision(2000):
        square = ball(sigma) ** 2
        total = square + arb(1) / 12
        for j in range(1, 400):
            decay = (-2 * (arb.pi() * j) ** 2 * square).exp()
            total += (-1) ** j * decay * (4 * square + 1 / (arb.pi() * j) ** 2)
        return float(total)


def ulps(a: float, b: float) -> float:
    return abs(a - b) / np.spacing(abs(b))


@pytest.mark.parametrize("sigma", np.geomspace(0.05, 8, 41).tolist())
def test_two_derivations_agree(sigma):
    truth = by_poisson_summation(Fraction(sigma))
    assert ulps(rounded_variance(sigma), truth) <= 4
    # Each also on the other's side of the seam, as far as it holds there.
    assert ulps(tail_sum(Fraction(sigma)), truth) <= 1
    if sigma >= 0.5:
        assert ulps(float(theta_series(np.array([sigma]))[0]), truth) <= 4


def test_a_wrong_formula_would_be_seen():
    # One theta term less, and a tail sum one term short, are both far outside 4 ulps.
    sigma = 0.6
    truth = by_poisson_summation(Fraction(sigma))
    assert ulps(sigma**2 + 1 / 12, truth) > 1e6


@pytest.mark.parametrize("sigma", [Fraction(1, 10), 0.3, Fraction(1, 2), 1, Fraction(10, 3)])
def test_it_is_the_second_moment_of_the_law(sigma, pmf):
    m = np.arange(-60, 61)
    assert rounded_variance(sigma) == pytest.approx((m**2 * pmf(sigma, m)).sum(), rel=1e-14)


def test_it_is_the_variance_of_the_draws():
    # The fourth moment is about 3 v^2, so the mean square errs by v sqrt(2/n); 8 of those.
    n = 10**6
    for sigma in (Fraction(3, 5), Fraction(1), Fraction(10, 3)):
        square = (rounded_gaussian(sigma, n).astype(float) ** 2).mean()

        def off(s, square=square):
            return abs(square / rounded_variance(s) - 1) / np.sqrt(2 / n)

        assert off(sigma) < 8
        assert off(sigma * Fraction(103, 100)) > 16


def test_numbers_of_the_design():
    assert 1 + 1 / 12 - rounded_variance(1.0) == pytest.approx(1.1e-8, rel=0.02)
    assert rounded_variance(64) == 64**2 + 1 / 12
    assert rounded_variance(2.0**80) == 2.0**160


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    a=st.fractions(min_value=Fraction(1, 100), max_value=100, max_denominator=10**6),
    b=st.fractions(min_value=Fraction(1, 100), max_value=100, max_denominator=10**6),
)
def test_more_sigma_is_more_variance_and_never_above_the_bound(a, b):
    low, high = sorted([a, b])
    v = rounded_variance([low, high])
    assert v[0] <= v[1] * (1 + 1e-15)
    assert (v <= (np.array([float(low), float(high)]) ** 2 + 1 / 12) * (1 + 1e-15)).all()


def test_shapes_and_mixed_sizes():
    assert isinstance(rounded_variance(0.3), float)
    sigma = [0.3, 5.0, Fraction(1, 7), 0.3]
    each = [rounded_variance(s) for s in sigma]
    assert rounded_variance(sigma).tolist() == each
    assert rounded_variance(np.array([])).shape == (0,)
    assert rounded_variance(2.0**-7) == 0.0


def test_bad_input():
    with pytest.raises(InvalidInput, match="above 0"):
        rounded_variance(0.0)
    with pytest.raises(InvalidInput, match="between"):
        rounded_variance([1.0, 2.0**90])
