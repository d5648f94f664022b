import cvxpy as cp
import numpy as np
import pytest

from noiseshape.learn.feasible import feasible

rng = np.random.default_rng(5)


def symmetric(m, scale):
    M = rng.normal(0, scale, (m, m))
    return (M + M.T) / 2


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_it_is_the_nearest(m, scale):
    """By a general solver: no matrix of the set is nearer."""
    M, most = symmetric(m, scale), rng.uniform(0.5, 2, m)
    found = feasible(M, most)
    assert np.linalg.eigvalsh(found).min() >= -1e-9 * most.max()
    assert np.all(np.diag(found) <= most * (1 + 1e-12))
    C = cp.Variable((m, m), PSD=True)
    cp.Problem(cp.Minimize(cp.sum_squares(C - M)), [cp.diag(C) <= most]).solve(solver=cp.CLARABEL)
    assert found == pytest.approx(C.value, abs=1e-4 * max(1, scale))


def test_what_is_feasible_stays():
    C = np.cov(rng.uniform(-1, 1, (50, 4)).T, ddof=0)
    assert feasible(C, np.ones(4)) == pytest.approx(C, abs=1e-12)


def test_it_is_never_farther_from_the_truth():
    C = np.cov(rng.uniform(-1, 1, (50, 4)).T, ddof=0)
    for scale in (0.1, 1.0, 10.0):
        M = C + symmetric(4, scale)
        assert np.linalg.norm(feasible(M, np.ones(4)) - C) < np.linalg.norm(M - C)
