"""IMGM: exact validity, composition, Renyi divergence, and the comparison with MVG."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from noiseshape import Budget, Cost
from noiseshape.design.condition import Condition
from noiseshape.design.imgm import (
    overhead,
    printed_rdp,
    region,
    sigma,
    validate,
    with_epsilon,
    with_size,
)
from noiseshape.errors import InvalidInput
from noiseshape.privacy import curve
from noiseshape.privacy.imgm import privacy_bound

EPS, DELTA = 1.0, 1e-5


def random_definite(k, rng):
    W = np.linalg.qr(rng.normal(size=(k, k)))[0]
    return (W * np.exp(rng.normal(size=k))) @ W.T


class TestValidity:
    @given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1), st.integers(1, 20))
    @settings(max_examples=60, deadline=None)
    def test_the_factor_is_the_least_that_makes_them_valid(self, m, n, seed, releases):
        rng = np.random.default_rng(seed)
        rows, columns = random_definite(m, rng), random_definite(n, rng)
        options = {"s2": 2.0, "epsilon": EPS, "delta": DELTA, "releases": releases}
        told = validate(rows, columns, **options)
        again = validate(rows * (told.factor * (1 + 1e-12)) ** 2, columns, **options)
        short = validate(rows * (told.factor * (1 - 1e-6)) ** 2, columns, **options)
        assert again.valid
        assert not short.valid
        assert told.valid == (told.factor <= 1 + 1e-15)

    def test_algorithm_1_is_valid_and_the_least(self):
        sd = sigma(3.0, EPS, DELTA)
        told = validate([sd**2] * 4, [1.0] * 5, s2=3.0, epsilon=EPS, delta=DELTA)
        assert told.factor == pytest.approx(1, abs=1e-12)
        assert told.mu <= told.bound * (1 + 1e-15)
        assert sd == pytest.approx(3 / privacy_bound(EPS, DELTA))

    def test_known_singular_values_allow_more(self):
        rows, columns = [1.0, 4.0], [1.0, 9.0]
        one, two = (
            validate(rows, columns, epsilon=EPS, delta=DELTA, **what).mu
            for what in ({"s2": 5.0}, {"singular_values": [4.0, 3.0]})
        )
        assert one == pytest.approx(5.0)
        assert two == pytest.approx(np.sqrt(16 + 9 / 36))

    def test_theorem_4(self):
        """T releases at sqrt(T) times the noise cost B together, and no more."""
        for T in (1, 2, 10, 1000):
            sd = sigma(1.0, EPS, DELTA, releases=T)
            total = Cost.of(1.0 / sd) * T
            assert total.mu <= curve.mu(EPS, DELTA)
            assert total.mu == pytest.approx(curve.mu(EPS, DELTA))

    def test_words(self):
        rows, columns = [1.0, 4.0], [100.0]
        said = str(validate(rows, columns, s2=1.0, epsilon=EPS, delta=DELTA))
        assert said.startswith("valid: mu = 0.1")
        said = str(validate(rows, [1.0], s2=1.0, epsilon=EPS, delta=DELTA))
        assert "multiply every standard deviation by 3.73" in said


def test_renyi_divergence_against_its_integral():
    """What holds agrees with the definition; what Appendix B prints does not."""
    mu = 0.7
    for order in (1.5, 2.0, 5.0):

        def integrand(x, order=order):
            p, q = stats.norm.logpdf(x, mu), stats.norm.logpdf(x)
            return np.exp(order * p + (1 - order) * q)

        moment = integrate.quad(integrand, -20, 20)[0]
        exact = np.log(moment) / (order - 1)
        assert Cost.of(mu).rdp(order) == pytest.approx(exact, rel=1e-7)
        assert printed_rdp(order, mu) > 1.5 * exact


class TestAgainstMvg:
    def test_overhead_is_the_mean_variance_at_equal_privacy(self):
        rng = np.random.default_rng(0)
        rows, columns = random_definite(3, rng), random_definite(4, rng)
        mu = validate(rows, columns, s2=1.0, epsilon=EPS, delta=DELTA).mu
        mean = np.outer(np.diag(rows), np.diag(columns)).mean()
        assert overhead(rows, columns) == pytest.approx(mean * mu**2, rel=1e-9)
        assert overhead(np.eye(3) * 2, np.eye(2)) == pytest.approx(1)

    def test_mvgs_region_lies_inside(self):
        first = np.geomspace(0.1, 1e4, 60)
        told = region(first, s2=1.0, gamma=2.0, epsilon=EPS, delta=DELTA)
        assert np.all(told.mvg >= told.imgm)
        assert np.isfinite(told.imgm[-1])
        c = Condition(m=2, n=1, s2=1.0, gamma=2.0, epsilon=EPS, delta=DELTA)
        on = np.isfinite(told.mvg)
        assert on.any()
        np.testing.assert_allclose(first[on] ** -4 + told.mvg[on] ** -4, c.phi**4)

    @pytest.mark.parametrize(("zeta", "power"), [("printed", 1.5), ("tight", 1.0)])
    def test_growth_with_size(self, zeta, power):
        """At two rows H_r is constant: the slope of the deviation in m n is 3/2, or 1."""
        shapes = [(2, 10**k) for k in range(1, 10)]
        told = with_size(shapes, s2=1.0, gamma=1.0, epsilon=EPS, delta=DELTA, zeta=zeta)
        slope = np.diff(np.log(told.mvg)) / np.diff(np.log(told.at))
        assert slope[-1] == pytest.approx(power, abs=1e-3)
        np.testing.assert_allclose(told.mvg[-2:], told.rate[-2:], rtol=1e-2)
        assert np.ptp(told.imgm) == 0

    def test_growth_as_epsilon_falls(self):
        told = with_epsilon(np.geomspace(1, 1e-9, 10), m=4, n=6, s2=1.0, gamma=1.0, delta=1e-5)
        slope = np.diff(np.log(told.mvg)) / np.diff(np.log(told.at))
        assert slope[-1] == pytest.approx(-1, abs=1e-6)
        limit = 1 / (2 * stats.norm.ppf((1 + 1e-5) / 2))
        assert told.imgm[-1] == pytest.approx(limit, rel=1e-3)
        assert Budget(epsilon=0.0, delta=1e-5).mu == pytest.approx(1 / limit)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda: validate([1.0], [1.0], epsilon=1, delta=1e-5), "state what can change once"),
        (
            lambda: validate([1.0], [1.0], s2=1, singular_values=[1], epsilon=1, delta=1e-5),
            "state what can change once",
        ),
        (lambda: validate([-1.0], [1.0], s2=1, epsilon=1, delta=1e-5), "positive definite"),
        (lambda: validate([1.0], [1.0], s2=1, epsilon=1, delta=0), "delta must be above 0"),
        (lambda: sigma(1.0, 1.0, 1e-5, releases=0), "releases must be at least 1"),
        (lambda: printed_rdp(1.0, 0.3), "order must be above 1"),
        (
            lambda: region([0.0], s2=1, gamma=1, epsilon=1, delta=1e-5),
            "standard deviations must be above 0",
        ),
        (lambda: with_size([], s2=1, gamma=1, epsilon=1, delta=1e-5), "at least one point"),
    ],
)
def test_bad_input(act, says):
    with pytest.raises(InvalidInput, match=says):
        act()
