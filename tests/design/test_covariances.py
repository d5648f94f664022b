"""Matrix-variate Gaussian noise: exact covariance, both samplers, true cost, PNR."""

import numpy as np
import pytest
from scipy import stats

from noiseshape.design.covariances import Covariances, Mode, product_gap
from noiseshape.errors import InvalidInput


def random_definite(k, rng, spread=1.0):
    W = np.linalg.qr(rng.normal(size=(k, k)))[0]
    return (W * np.exp(rng.normal(0, spread, k))) @ W.T


@pytest.fixture
def noise():
    rng = np.random.default_rng(7)
    return Covariances(random_definite(3, rng), random_definite(4, rng))


def vec(Z):
    """Columns on top of each other, as in the papers: (size, m n)."""
    return Z.transpose(0, 2, 1).reshape(len(Z), -1)


def p_value(draws, covariance):
    """Likelihood ratio against a covariance, the mean known: chi-squared for many draws."""
    k = len(covariance)
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    M = root @ (draws.T @ draws / len(draws)) @ root.T
    ratio = len(draws) * (np.trace(M) - np.linalg.slogdet(M)[1] - k)
    return stats.chi2.sf(ratio, k * (k + 1) / 2)


@pytest.mark.parametrize("sampler", ["simulate_affine", "simulate_vec"])
class TestSamplers:
    def test_covariance_is_psi_kron_sigma(self, noise, sampler):
        draws = vec(getattr(noise, sampler)(40_000, seed=11))
        Sigma, Psi = noise.rows.covariance, noise.columns.covariance
        assert p_value(draws, np.kron(Psi, Sigma)) > 1e-3

    def test_another_covariance_is_found(self, noise, sampler):
        """The same test: 3 % more, or the factors in the other order."""
        draws = vec(getattr(noise, sampler)(40_000, seed=11))
        Sigma, Psi = noise.rows.covariance, noise.columns.covariance
        assert p_value(draws, 1.03 * np.kron(Psi, Sigma)) < 1e-6
        assert p_value(draws, np.kron(Sigma, Psi)) < 1e-6

    def test_entries(self, noise, sampler):
        Z = getattr(noise, sampler)(40_000, seed=3)
        Sigma, Psi = noise.rows.covariance, noise.columns.covariance
        found = np.einsum("sij,skl->ijkl", Z, Z) / len(Z)
        exact = np.einsum("ik,jl->ijkl", Sigma, Psi)
        assert np.abs(found - exact).max() < 0.1 * exact.max()
        assert Z.mean() == pytest.approx(0, abs=0.05 * np.sqrt(exact.max()))
        np.testing.assert_allclose(noise.variance, np.einsum("ijij->ij", exact))

    def test_normal(self, noise, sampler):
        A, C = noise.rows.whitening, noise.columns.whitening
        white = A @ getattr(noise, sampler)(2_000, seed=5) @ C.T
        assert stats.kstest(white.ravel(), "norm").pvalue > 1e-3
        assert stats.kstest(1.05 * white.ravel(), "norm").pvalue < 1e-2

    def test_same_seed_same_draws(self, noise, sampler):
        draw = getattr(noise, sampler)
        assert np.array_equal(draw(2, seed=1), draw(2, seed=1))
        assert not np.array_equal(draw(2, seed=1), draw(2, seed=2))


class TestTrueCost:
    def test_norm_two_ways(self, noise):
        """sup ||A_1 D A_2^T||_F over ||D||_F = s2 is s2 times the norm of the product."""
        dense = np.kron(noise.columns.whitening, noise.rows.whitening)
        assert noise.mu(3.0) == pytest.approx(3 * np.linalg.norm(dense, 2), rel=1e-9)

    def test_no_change_of_the_same_singular_values_costs_more_and_one_attains_it(self, noise):
        rng = np.random.default_rng(2)
        values = np.array([2.0, 1.0, 0.5])
        A, C = noise.rows.whitening, noise.columns.whitening

        def cost(U, V):
            return np.linalg.norm(A @ (U * values) @ V.T @ C.T)

        worst = noise.mu_of(values)
        for _ in range(300):
            U = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            V = np.linalg.qr(rng.normal(size=(4, 3)))[0]
            assert cost(U, V) <= worst
        first, second = (
            mode.directions[:, np.argsort(mode.variances)] for mode in (noise.rows, noise.columns)
        )
        assert cost(first, second[:, :3]) == pytest.approx(worst, rel=1e-9)

    def test_one_singular_value_is_theorem_2(self, noise):
        assert noise.mu_of([5.0]) == noise.mu(5.0)
        assert noise.mu_of([3.0, 4.0]) < noise.mu(5.0)

    def test_scaling(self, noise):
        assert noise.scaled(2.0).mu(1.0) == pytest.approx(noise.mu(1.0) / 2)
        np.testing.assert_allclose(noise.scaled(2.0).variance, 4 * noise.variance)

    def test_a_nearly_singular_covariance_is_never_cheaper_than_it_is(self):
        rng = np.random.default_rng(5)
        for decades in (3, 6, 9):
            W = np.linalg.qr(rng.normal(size=(5, 5)))[0]
            v = np.geomspace(1.0, 10.0**-decades, 5)
            noise = Covariances((W * v) @ W.T, [1.0])
            exact = v[-1] ** -0.5
            assert exact <= noise.mu(1.0) <= exact * (1 + 1e-4)


class TestPowerToNoise:
    def test_log_determinants(self, noise):
        rng = np.random.default_rng(4)
        K1, K2 = random_definite(3, rng), random_definite(4, rng)
        S = np.kron(noise.columns.covariance, noise.rows.covariance)
        K = np.kron(K2, K1)
        plain = np.linalg.slogdet(K + S)[1] - np.linalg.slogdet(S)[1]
        assert noise.log_pnr(K1, K2) == pytest.approx(plain)
        assert noise.log_pnr(K) == pytest.approx(plain)
        assert noise.mutual_information(K) == pytest.approx(plain / 2)

    def test_mutual_information_by_simulation(self):
        """E log p(y | f) / p(y) over Gaussian f, as Theorems 8 and 9 assume."""
        rng = np.random.default_rng(9)
        noise = Covariances([[2.0, 0.5], [0.5, 1.0]], [1.5])
        K = np.array([[3.0, -1.0], [-1.0, 2.0]])
        f = rng.multivariate_normal([0, 0], K, size=100_000)
        Z = noise.simulate_affine(100_000, seed=10)[:, :, 0]
        S = noise.rows.covariance * 1.5
        given = stats.multivariate_normal.logpdf(Z, cov=S)
        alone = stats.multivariate_normal.logpdf(f + Z, cov=K + S)
        assert noise.mutual_information(K) == pytest.approx((given - alone).mean(), abs=0.01)

    def test_shapes_are_checked(self, noise):
        with pytest.raises(InvalidInput, match=r"K_f must have shape \(12, 12\)"):
            noise.log_pnr(np.eye(3))
        with pytest.raises(InvalidInput, match=r"K_f must have shape \(4, 4\)"):
            noise.log_pnr(np.eye(3), np.eye(3))


def test_product_gap():
    rng = np.random.default_rng(8)
    A, C = random_definite(3, rng), random_definite(4, rng)
    assert product_gap(np.kron(C, A), (3, 4)) < 1e-12
    assert product_gap(random_definite(12, rng), (3, 4)) > 1e-3
    with pytest.raises(InvalidInput, match="shape"):
        product_gap(np.eye(5), (3, 4))


def test_modes():
    rng = np.random.default_rng(3)
    S = random_definite(4, rng)
    mode = Mode.of("S", S)
    np.testing.assert_allclose(mode.covariance, S, atol=1e-12)
    np.testing.assert_allclose(mode.root @ mode.root.T, S, atol=1e-12)
    np.testing.assert_allclose(mode.whitening @ S @ mode.whitening.T, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(mode.diagonal, np.diag(S))
    assert Mode.of("S", np.diag([1.0, 2.0])).directions is None
    assert mode.same(Mode.of("S", S.copy()))
    assert not mode.same(Mode.of("S", 2 * S))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "must be positive definite: its least eigenvalue is -1"),
        ([[1.0, 1.0], [1.0, 1.0]], "must be positive definite"),
        ([[1.0, 0.5], [0.0, 1.0]], "must be symmetric"),
        ([[1.0, 2.0]], "must be square"),
        ([1.0, 0.0], "must be positive definite"),
        ([[1.0, float("nan")], [0.0, 1.0]], "must be finite"),
        ([["a"]], "real numbers"),
    ],
)
def test_covariances_that_are_none(rows, says):
    with pytest.raises(InvalidInput, match=says):
        Covariances(rows, [1.0])
    with pytest.raises(InvalidInput, match="the covariance of columns"):
        Covariances([1.0], rows)


@pytest.mark.parametrize("values", [[], [1.0, 1.0, 1.0, 1.0], [-1.0]])
def test_singular_values_that_are_none(noise, values):
    with pytest.raises(InvalidInput, match="singular values"):
        noise.mu_of(values)
