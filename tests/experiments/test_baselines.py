"""The mechanisms that the papers compare with, against their definitions and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from experiments.baselines import additive, components, exponential, projection, ridge
from scipy import integrate, special, stats

from experiments import data
from noiseshape.privacy import delta


def rng(seed=1):
    return np.random.default_rng(seed)


class TestAdditive:
    def test_laplace_has_its_scale(self):
        noise = additive.laplace(np.zeros(20_000), 3.0, 0.5, rng())
        assert stats.kstest(noise, stats.laplace(scale=6).cdf).pvalue > 1e-3
        assert stats.kstest(noise, stats.laplace(scale=5.5).cdf).pvalue < 1e-6

    @pytest.mark.parametrize("d", [1e-2, 1 / 248, 1 / 10_176, 1e-6])
    def test_the_classic_calibration_still_holds_at_epsilon_1(self, d):
        assert delta(1.0, 1 / additive.classic_sigma(1.0, 1.0, d)) <= d

    def test_symmetric_noise_keeps_its_diagonal_and_mirrors_the_rest(self):
        noise = rng().normal(size=(4, 4))
        noisy = additive.symmetric(np.zeros((4, 4)), noise)
        np.testing.assert_array_equal(noisy, noisy.T)
        np.testing.assert_array_equal(np.triu(noisy), np.triu(noise))


class TestExponential:
    @pytest.mark.parametrize("centre", [-1.0, 0.2, 1.0])
    def test_draws_have_the_density(self, centre):
        scale = 0.7
        drawn = exponential.truncated_laplace(np.full(20_000, centre), scale, -1, 1, rng())

        def density(y):
            return math.exp(-abs(y - centre) / scale)

        def mass(low, high):
            points = [centre] if low < centre < high else None
            return integrate.quad(density, low, high, points=points)[0]

        for y in (-0.5, 0.0, 0.5):
            share = mass(-1, y) / mass(-1, 1)
            tolerance = 4 * math.sqrt(share * (1 - share) / len(drawn))
            assert np.mean(drawn <= y) == pytest.approx(share, abs=tolerance)

    def test_the_ratio_of_densities_is_within_epsilon(self):
        """One record goes from a corner to the opposite one: normalisers, too, change."""
        eps, features, low, high = 0.8, 3, -1.0, 1.0
        scale = 2 * features * (high - low) / eps

        def log_density(x, y):
            both = sum(-np.expm1(-(e - low) / scale) - np.expm1(-(high - e) / scale) for e in [x])
            return -abs(y - x) / scale - math.log(both * scale)

        worst = max(
            features * (log_density(low, y) - log_density(x, y))
            for y in np.linspace(low, high, 41)
            for x in np.linspace(low, high, 41)
        )
        assert 0.3 * eps < worst <= eps

    def test_a_database_is_drawn_at_twice_the_sensitivity_over_epsilon(self):
        """One record of 3 features, each within 2: 6, and so a scale of 2 * 6 / 0.8."""
        X = rng().uniform(-1, 1, size=(40, 3))
        drawn = exponential.database(X, -1.0, 1.0, 0.8, rng(2))
        expected = exponential.truncated_laplace(X, 15.0, -1.0, 1.0, rng(2))
        np.testing.assert_array_equal(drawn, expected)


class TestComponents:
    def test_in_two_dimensions_it_is_von_mises_of_twice_the_angle(self):
        kappa = 3.0  # x^T diag(a, b) x = mean + (a - b) / 2 cos(2 angle)
        drawn = components.bingham(np.diag([2 * kappa, 0.0]), 20_000, rng())
        cosine = np.cos(2 * np.arctan2(drawn[:, 1], drawn[:, 0]))
        expected = special.i1(kappa) / special.i0(kappa)
        assert cosine.mean() == pytest.approx(expected, abs=4 * cosine.std() / math.sqrt(20_000))

    @pytest.mark.parametrize("weights", [(5.0, 1.0, 0.0), (40.0, 39.0, 0.0), (0.0, 0.0, 0.0)])
    def test_in_three_its_second_moments_are_those_of_the_density(self, weights):
        K = np.diag(weights)
        drawn = components.bingham(K, 20_000, rng())
        np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1)
        z, azimuth = np.meshgrid(np.linspace(-1, 1, 801), np.linspace(0, 2 * np.pi, 401)[:-1])
        r = np.sqrt(1 - z**2)
        x = np.stack([r * np.cos(azimuth), r * np.sin(azimuth), z])
        f = np.exp(np.tensordot(weights, x**2 - 1, 1))
        f[:, [0, -1]] /= 2  # trapezoids in z; area is even in (z, azimuth)
        expected = (x**2 * f).sum(axis=(1, 2)) / f.sum()
        np.testing.assert_allclose((drawn**2).mean(axis=0), expected, atol=0.012)

    def test_any_basis_will_do(self):
        Q = np.linalg.qr(rng().normal(size=(4, 4)))[0]
        K = Q @ np.diag([30.0, 10.0, 5.0, 0.0]) @ Q.T
        drawn = components.bingham(K, 4000, rng(2))
        straight = components.bingham(np.diag([30.0, 10.0, 5.0, 0.0]), 4000, rng(3))
        turned = ((drawn @ Q) ** 2).mean(axis=0)
        np.testing.assert_allclose(turned, (straight**2).mean(axis=0), atol=0.02)

    def test_one_record_changes_the_exponent_by_half_of_epsilon(self):
        """What makes it epsilon-private: the rest comes from the normaliser."""
        X = np.array([[3.0, 4.0], [0.0, 1.0]])
        Y = np.array([[0.0, 0.0], [0.0, 1.0]])
        change = (X.T @ X - Y.T @ Y) * 0.6 / (2 * 5.0**2)
        assert np.linalg.norm(change, 2) == pytest.approx(0.6 / 2)

    def test_the_component_is_drawn_for_records_of_length_one(self):
        X = rng().normal(size=(30, 3))
        drawn = components.component(X, 7.0, 0.6, rng(2))
        units = X / 7.0
        K = 30 * 0.6 / 2 * (units.T @ units / 30)  # n (epsilon / 2) A
        np.testing.assert_allclose(drawn, components.bingham(K, 1, rng(2))[0])


class TestProjection:
    def test_a_sketch_estimates_the_lifted_moment(self):
        X = rng().normal(size=(50, 3))
        w = projection.threshold(400, 50.0, 0.01) * 0.01
        sketched = projection.sketch(X, 400, 0.01, 50.0, 0.01, rng(2))
        assert sketched.shape == (400, 3)
        lifted = X.T @ X + w**2 * np.eye(3)
        np.testing.assert_allclose(projection.moment(sketched), lifted, rtol=0.25, atol=10)

    def test_what_is_drawn_has_the_law_of_a_sketch_of_the_records(self):
        """By its covariance: rows are N(0, X^T X + w^2 I), independent."""
        X, rows = rng().normal(size=(20, 2)), 5
        w = projection.threshold(rows, 30.0, 0.1) * 0.5
        drawn = [projection.moment(projection.sketch(X, rows, 0.5, 30.0, 0.1, rng(k)))
                 for k in range(3000)]  # fmt: skip
        expected = X.T @ X + w**2 * np.eye(2)
        error = np.std(drawn, axis=0) / math.sqrt(3000)
        assert np.all(np.abs(np.mean(drawn, axis=0) - expected) < 5 * error)

    @pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (0.002, False)])
    def test_the_threshold_keeps_the_privacy_loss_within_epsilon(self, factor, holds):
        """A singular value of w that grows by 1 is the worst change; a 500th of w fails."""
        rows, eps, d = 8, 1.0, 0.05
        w = projection.threshold(rows, eps, d) * factor
        one, other = (w + 1) ** 2 + w**2, 2 * w**2
        squares = rng().standard_normal((100_000, rows)) ** 2 * one
        loss = rows / 2 * math.log(other / one) + squares.sum(axis=1) * (1 / other - 1 / one) / 2
        assert bool(np.mean(loss > eps) <= d) is holds


class TestRidge:
    def test_weights_solve_the_ridge_problem(self):
        X, y = rng().normal(size=(30, 3)), rng(2).normal(size=30)
        lifted = np.vstack([X, np.eye(3)])
        slope = np.linalg.lstsq(lifted, np.concatenate([y, np.zeros(3)]))[0]
        np.testing.assert_allclose(ridge.predicted(X, y, X, "linear"), X @ slope)

    def test_both_kernels_agree_with_the_dual(self):
        X, y = rng().normal(size=(30, 3)), rng(2).normal(size=30)
        for name, kernel in ridge.KERNELS.items():
            dual = np.linalg.solve(kernel(X, X) + np.eye(30), y)
            np.testing.assert_allclose(ridge.predicted(X, y, X[:5], name), kernel(X[:5], X) @ dual)

    def test_the_gaussian_kernel(self):
        K = ridge.gaussian_kernel(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0], [0.0, 0.0]]))
        np.testing.assert_allclose(K, [[math.exp(-1), 1]])


class TestData:
    def test_shapes_and_ranges(self):
        assert data.liver(centred=False).shape == (345, 6)
        assert data.liver(centred=True).min() == -1
        assert data.ctg().shape == (2126, 21)
        for values in (data.liver(centred=False), data.ctg()):
            np.testing.assert_array_equal(values.min(axis=0), 0)
            np.testing.assert_array_equal(values.max(axis=0), 1)
        assert data.movement().shape == (13_197, 4)
        assert np.abs(data.movement()).max() == 1

    def test_the_papers_counts_are_whole_sequences(self):
        """2,021 records are sequences 1 to 80, 10,176 are 1 to 255, all are 314."""
        _, values = data.read("movementaal")
        for sequences, records in ((80, 2021), (255, 10_176), (314, 13_197)):
            assert np.count_nonzero(values[:, 0] <= sequences) == records
            assert values[records - 1, 0] == sequences
