"""MVG's algorithms: step by step against the paper, and what they claim against the truth."""

import importlib.util
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape import Budget
from noiseshape.design.condition import Condition
from noiseshape.design.covariances import Covariances
from noiseshape.design.mvg import algorithm_1, algorithm_2, claim, stated, wasted
from noiseshape.design.precision import binary, max_pnr
from noiseshape.errors import InvalidInput

ASKED = Condition(m=6, n=8, s2=2.0, gamma=9.0, epsilon=1.0, delta=1e-5)
SQUARE = Condition(m=5, n=5, s2=2.0, gamma=9.0, epsilon=1.0, delta=1e-5, theorem=3)


def orthogonal(k, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(k, k)))[0]


class TestAlgorithms:
    @pytest.mark.parametrize("mode", ["rows", "columns"])
    def test_algorithm_1_line_by_line(self, mode):
        size, other = (6, 8) if mode == "rows" else (8, 6)
        theta, W = binary(size, [1, 2], 0.7), orthogonal(size)
        a, b, eps = ASKED.alpha, ASKED.beta, ASKED.epsilon
        P = (-b + sqrt(b**2 + 8 * a * eps)) ** 4 / (16 * a**4 * other)
        plain = (W * (theta * P) ** -0.5) @ W.T
        noise = algorithm_1(ASKED, theta, W, mode=mode)
        directed, iid = (
            (noise.rows, noise.columns) if mode == "rows" else (noise.columns, noise.rows)
        )
        np.testing.assert_allclose(directed.covariance, plain, rtol=1e-6)
        np.testing.assert_array_equal(iid.covariance, np.eye(other))
        assert ASKED.allows(noise)
        assert not ASKED.allows(noise.scaled(1 - 1e-9))

    @pytest.mark.parametrize("theorem", [2, 3])
    def test_algorithm_2_line_by_line(self, theorem):
        c = Condition(
            m=5, n=5, s2=2.0, gamma=9.0, epsilon=1.0, delta=1e-5, theorem=theorem, zeta="tight"
        )
        theta, W = binary(5, [0], 0.5), orthogonal(5)
        a, b = (c.alpha if theorem == 2 else c.omega), c.beta
        P = (-b + sqrt(b**2 + 8 * a)) ** 2 / (4 * a**2)
        noise = algorithm_2(c, theta, W)
        plain = (W * (theta * P) ** -0.5) @ W.T
        np.testing.assert_allclose(noise.rows.covariance, plain, rtol=1e-6)
        assert noise.rows.same(noise.columns)
        assert c.allows(noise)

    def test_directions_change_nothing_about_the_cost(self):
        theta = binary(6, [0], 0.6)
        one = algorithm_1(ASKED, theta)
        two = algorithm_1(ASKED, theta, orthogonal(6))
        assert one.mu(2.0) == pytest.approx(two.mu(2.0))
        assert one.phi == pytest.approx(two.phi)

    def test_more_precision_is_less_noise_there(self):
        theta, W = binary(6, [3], 0.9), orthogonal(6)
        noise = algorithm_1(ASKED, theta, W)
        along = np.diag(W.T @ noise.rows.covariance @ W)
        assert np.argmin(along) == 3
        assert along[0] / along[3] == pytest.approx(sqrt(0.9 / 0.02))

    def test_an_allocation_may_depend_on_the_budget(self):
        noise = algorithm_1(ASKED, max_pnr([1e9, 1e8, 1e7, 1e6, 1e5, 0.0]))
        assert ASKED.allows(noise)
        assert np.all(np.diff(noise.rows.variances) >= 0)


class TestClaim:
    @given(
        st.integers(1, 30),
        st.integers(1, 30),
        st.floats(-3, 2).map(lambda p: 10**p),
        st.floats(0.3, 12).map(lambda p: 10**-p),
        st.sampled_from(["printed", "tight"]),
        st.integers(0, 2**32 - 1),
    )
    @settings(max_examples=60, deadline=None)
    def test_the_truth_is_within_the_claim(self, m, n, epsilon, delta, zeta, seed):
        rng = np.random.default_rng(seed)
        c = Condition(m=m, n=n, s2=1.0, gamma=0.5, epsilon=epsilon, delta=delta, zeta=zeta)
        theta = np.maximum(rng.dirichlet(np.full(m, 0.3)), 1e-9)
        told = claim(c, algorithm_1(c, theta / theta.sum(), orthogonal(m, seed)))
        assert told.mu == c.budget
        assert told.wasted >= 1

    def test_what_equal_noise_wastes_two_ways(self):
        for c, noise in ((ASKED, algorithm_1(ASKED)), (SQUARE, algorithm_2(SQUARE))):
            assert claim(c, noise).wasted == pytest.approx(wasted(c), rel=1e-9)
            assert "every standard deviation is" in str(claim(c, noise))

    def test_noise_that_is_not_allowed_is_refused(self):
        short = algorithm_1(ASKED).scaled(0.5)
        with pytest.raises(InvalidInput, match=r"multiply every standard deviation by 2\."):
            claim(ASKED, short)
        assert Covariances(short.rows, short.columns).mu(2.0) < ASKED.budget  # and costs less


def test_the_pair_of_a_budget():
    assert stated(Budget(epsilon=1.0, delta=1 / 248), None) == (1.0, 1 / 248)
    eps, delta = stated(Budget(mu=0.5), 1e-6)
    assert delta == 1e-6
    assert Budget(epsilon=eps, delta=delta).mu == pytest.approx(0.5)
    with pytest.raises(InvalidInput, match=r"stated as mu=0\.5: say at which delta"):
        stated(Budget(mu=0.5), None)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda: algorithm_1(SQUARE), "goes by Theorem 2"),
        (lambda: algorithm_1(ASKED, mode="both"), '"rows" or "columns"'),
        (lambda: algorithm_1(ASKED, [0.5, 0.5]), "each of 6 directions"),
        (lambda: algorithm_1(ASKED, [0.3] * 6), "sum to at most 1, got 1.8"),
        (lambda: algorithm_1(ASKED, [0.2] * 5 + [0.0]), "a share of 0 is noise without end"),
        (lambda: algorithm_1(ASKED, directions=np.ones((6, 6))), "must be orthonormal"),
        (lambda: algorithm_2(ASKED), "needs a square matrix"),
    ],
)
def test_bad_input(act, says):
    with pytest.raises(InvalidInput, match=says):
        act()


def test_the_documented_tables_are_what_the_example_prints():
    root = Path(__file__).parents[2]
    spec = importlib.util.spec_from_file_location("example_mvg", root / "examples" / "mvg.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    text = (root / "docs" / "math" / "mvg.md").read_text()
    assert example.table() in text
    assert example.experiments() in text
