"""Entrywise noise: closed forms, the dual bound, and a numerical optimiser that does no better."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from noiseshape.design.entrywise import entrywise, isotropic


def problem(rng, people, size, entries):
    B = sparse.random_array((people, size), density=0.6, rng=rng) + sparse.csr_array(
        np.eye(people, size)[:, rng.permutation(size)]
    )
    B = sparse.csr_array(
        B
        + sparse.csr_array(
            (np.ones(size), (np.arange(size) % people, range(size))), shape=(people, size)
        )
    )
    G = sparse.csr_array(
        sparse.random_array((entries, size), density=0.4, rng=rng) + sparse.eye_array(entries, size)
    )
    return B, G


def optimum(B, G, weights=None, variance=None):
    """By an interior-point solver, from the definition: v = sigma^2, mu^2 = max sum B / v."""
    B, G = B.toarray(), G.toarray()
    v = cp.Variable(B.shape[1], pos=True)
    costs = [B[i] @ cp.inv_pos(v) for i in range(len(B))]
    if weights is not None:
        program = cp.Problem(cp.Minimize(weights @ (G @ v)), [c <= 1 for c in costs])
    else:
        program = cp.Problem(cp.Minimize(cp.maximum(*costs)), [G @ v <= variance])
    return program.solve(solver="CLARABEL")


@pytest.mark.parametrize("seed", range(6))
def test_no_numerical_optimiser_does_better(seed):
    rng = np.random.default_rng(seed)
    B, G = problem(rng, 2 + seed % 3, 6, 6)
    for asked in ({"weights": rng.uniform(0.1, 5, 6)}, {"variance": rng.uniform(0.1, 5, 6)}):
        made = entrywise(B, G, **asked)
        best = optimum(B, G, **asked)
        assert made.certificate.gap <= 1e-6
        assert_allclose(made.certificate.achieved, best, rtol=1e-5)
        assert made.certificate.lower <= best * (1 + 1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_is_of_the_scales_that_come_with_it(seed):
    rng = np.random.default_rng(seed)
    B, G = problem(rng, 4, 8, 8)
    w, c = rng.uniform(0.1, 5, (2, 8))
    made = entrywise(B, G, weights=w)
    assert_allclose((B @ (1 / made.sigma**2)).max(), 1)
    assert_allclose(w @ (G @ made.sigma**2), made.certificate.achieved)
    made = entrywise(B, G, variance=c)
    assert_allclose(((G @ made.sigma**2) / c).max(), 1)
    assert_allclose((B @ (1 / made.sigma**2)).max(), made.certificate.achieved)


@given(st.lists(st.tuples(st.floats(0.1, 50), st.floats(0.01, 100)), min_size=1, max_size=12))
@settings(deadline=None, max_examples=50)
def test_the_closed_form_of_a_box(pairs):
    """sigma_i^2 = (w_i / sqrt a_i) sum_j w_j sqrt a_j, at mu = 1 (design.md, section 7)."""
    w, a = np.array(pairs).T
    made = entrywise(sparse.csr_array(w[None, :] ** 2), sparse.eye_array(len(w)).tocsr(), weights=a)
    assert_allclose(made.sigma**2, w / np.sqrt(a) * (w @ np.sqrt(a)), rtol=1e-9)
    assert made.certificate.iterations == 1
    assert_allclose(made.certificate.lower, (w @ np.sqrt(a)) ** 2, rtol=1e-9)


def test_a_symmetric_box_is_served_best_of_all_gaussian_noise():
    """Against every covariance, by semi-definite programming over the corners."""
    rng = np.random.default_rng(4)
    w, a = rng.uniform(0.5, 4, 3), rng.uniform(0.2, 5, 3)
    corners = w * np.array([[1, i, j] for i in (-1, 1) for j in (-1, 1)])
    S = cp.Variable((3, 3), PSD=True)
    limits = [cp.matrix_frac(corner, S) <= 1 for corner in corners]
    best = cp.Problem(cp.Minimize(a @ cp.diag(S)), limits).solve(solver="CLARABEL")
    made = entrywise(sparse.csr_array(w[None, :] ** 2), sparse.eye_array(3).tocsr(), weights=a)
    assert_allclose(made.certificate.achieved, best, rtol=1e-5)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            st.lists(st.floats(0.01, 100), min_size=n, max_size=n),
            st.lists(st.floats(-2, 2), min_size=n * n, max_size=n * n),
        )
    )
)
@settings(deadline=None, max_examples=40)
def test_isotropic_noise_is_the_best_for_a_ball(drawn):
    """Whatever the covariance: at mu = 1 for the unit ball it is at least I, in every trace."""
    a, entries = np.array(drawn[0]), np.array(drawn[1])
    n = len(a)
    L = entries.reshape(n, n) + 2 * np.eye(n)
    S = L @ L.T + 1e-3 * np.eye(n)
    S *= np.linalg.eigvalsh(np.linalg.inv(S))[-1]  # scaled to mu = 1: sup D^T S^-1 D = 1
    unit = isotropic(sparse.eye_array(n).tocsr(), a, (n,), np.ones(n), np.ones(n))
    assert_allclose(unit, 1)
    assert a @ np.diag(S) >= a.sum() * (1 - 1e-9)
    made = entrywise(sparse.eye_array(n).tocsr(), sparse.eye_array(n).tocsr(), weights=a)
    assert_allclose(a @ made.sigma**2, a.sum(), rtol=2e-6)


def test_isotropic_noise_is_what_a_numerical_optimiser_finds_for_a_ball():
    rng = np.random.default_rng(1)
    a = rng.uniform(0.1, 5, 4)
    S = cp.Variable((4, 4), PSD=True)
    # sup over the ball of D^T S^-1 D <= 1 is S >= I.
    best = cp.Problem(cp.Minimize(a @ cp.diag(S)), [S >> np.eye(4)]).solve(solver="CLARABEL")
    assert_allclose(best, a.sum(), rtol=1e-6)


def test_parts_share_the_cost_as_a_numerical_optimiser_would():
    rng = np.random.default_rng(2)
    parts, size = (1, 3, 2), 6
    far, step = rng.uniform(1, 9, size), rng.uniform(0.1, 3, size)
    a, counts = rng.uniform(0.1, 5, size), rng.integers(1, 3, size).astype(float)
    B = sparse.csr_array(far[None, :] ** 2)
    sigma = isotropic(B, a, parts, counts, step)
    assert_allclose((far**2 / sigma**2).sum(), 1)
    s2 = sigma**2 * step**2 * counts  # equal within each part
    part = np.repeat(range(3), parts)
    for k in range(3):
        assert_allclose(s2[part == k], s2[part == k][0])
    v = cp.Variable(3, pos=True)
    own = cp.hstack([v[k] for k in part])
    cost = cp.sum(cp.multiply(far**2 * step**2 * counts, cp.inv_pos(own)))
    best = cp.Problem(cp.Minimize((a / counts) @ own), [cost <= 1]).solve(solver="CLARABEL")
    assert_allclose(a @ (sigma**2 * step**2), best, rtol=1e-6)


def test_what_nobody_moves_or_nobody_asks_costs_nearly_nothing():
    B = sparse.csr_array([[1.0, 0.0, 1.0]])
    G = sparse.csr_array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    made = entrywise(B, G, weights=np.ones(2))
    assert_allclose(made.certificate.achieved, 1, rtol=1e-6)
    assert made.sigma[1] < 1e-3  # nobody moves it
    assert made.sigma[2] > 1e3  # nobody asks


def test_a_certificate_that_is_too_good_would_be_seen():
    """The negative control: the bound for other weights lies above what is achieved."""
    rng = np.random.default_rng(0)
    B, G = problem(rng, 3, 6, 6)
    one, two = entrywise(B, G, weights=np.ones(6)), entrywise(B, G, weights=np.full(6, 1.01))
    assert two.certificate.lower > one.certificate.achieved
