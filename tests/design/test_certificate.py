"""Certificates: the lower bound never exceeds the truth, whatever the weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.design.workloads import random_workload

from noiseshape.design import Certificate, fit
from noiseshape.design.certificate import lower_bound, pairs, recompute
from noiseshape.errors import InvalidInput

seeds = st.integers(0, 10_000)
relations = st.sampled_from(["add-remove", "replace"])
quietly = settings(deadline=None, derandomize=True, max_examples=80)


def some_weights(W, neighbours, seed):
    rng = np.random.default_rng(seed)
    n = W.shape[1] if neighbours == "add-remove" else len(pairs(W.shape[1])[0])
    return rng.exponential(size=n) ** 2 + 1e-300, rng.exponential(size=len(W)) ** 2


def plain_bound(W, c, p, q, neighbours):
    """``tr (M^1/2 N M^1/2)^1/2`` squared, by eigenvalues of the product ``M N`` on the cells."""
    moves = np.eye(W.shape[1])
    if neighbours == "replace":
        i, j = pairs(W.shape[1])
        moves = moves[:, i] - moves[:, j]
    M = moves * p @ moves.T / p.sum()
    N = (W.T * (q / c)) @ W / q.sum()
    values = np.linalg.eigvals(M @ N).real
    return np.sqrt(np.maximum(values, 0)).sum() ** 2


@quietly
@given(seeds, relations)
def test_the_bound_is_the_formula(seed, neighbours):
    W, c = random_workload(seed)
    if neighbours == "replace" and W.shape[1] == 1:
        return
    p, q = some_weights(W, neighbours, seed)
    bound = lower_bound(W, c, p, q, neighbours)
    # eigenvalues of a product are good to half the digits
    assert bound == pytest.approx(plain_bound(W, c, p, q, neighbours), rel=1e-5, abs=1e-6)


@quietly
@given(seeds, relations)
def test_any_weights_bound_any_design_from_below(seed, neighbours):
    W, c = random_workload(seed)
    if neighbours == "replace" and W.shape[1] == 1:
        return
    p, q = some_weights(W, neighbours, seed)
    A = np.random.default_rng(seed + 1).standard_normal((W.shape[1],) * 2)
    lower, achieved = recompute(W, c, p, q, A, neighbours)
    assert lower <= achieved * (1 + 1e-9)


@quietly
@given(seeds)
def test_products_of_cell_weights_bound_replace_too(seed):
    W, c = random_workload(seed)
    if W.shape[1] == 1:
        return
    p, q = some_weights(W, "add-remove", seed)
    i, j = pairs(W.shape[1])
    bound = lower_bound(W, c, p, q, "replace", products=True)
    assert bound == pytest.approx(lower_bound(W, c, p[i] * p[j], q, "replace"), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rest", [1e-3, 1e-11, 1e-13, 1e-15])
def test_products_bound_from_below_where_one_cell_has_nearly_all_the_weight(rest):
    W = np.random.default_rng(0).standard_normal((5, 4))
    p, q = np.array([1, rest, rest / 3, rest / 7]), np.ones(5)
    i, j = pairs(4)
    plain = lower_bound(W, np.ones(5), p[i] * p[j], q, "replace")
    assert 0 <= lower_bound(W, np.ones(5), p, q, "replace", products=True) <= plain * (1 + 1e-12)


def test_products_of_one_cell_bound_nothing():
    assert (
        lower_bound(np.ones((1, 1)), np.ones(1), np.ones(1), np.ones(1), "replace", products=True)
        == 0
    )


@quietly
@given(seeds, st.floats(1e-6, 1e6))
def test_scale_of_weights_does_not_matter(seed, factor):
    W, c = random_workload(seed)
    p, q = some_weights(W, "add-remove", seed)
    assert lower_bound(W, c, p * factor, q / factor) == pytest.approx(
        lower_bound(W, c, p, q), rel=1e-9
    )


def test_a_bound_with_a_floor_would_be_false():
    # The eigenvalue floor that once gave F^2 = 1.0001 where the optimum is exactly 1.
    c = np.full(1000, 4.0)
    c[0] = 1.0
    W = np.eye(1000)
    p = q = np.where(np.arange(1000) == 0, 1.0, 1e-12)
    assert lower_bound(W, c, p, q) <= 1
    values = np.linalg.eigvalsh(np.diag(p * q / c))
    assert np.sqrt(np.maximum(values, 1e-14)).sum() ** 2 / (p.sum() * q.sum()) > 1  # the control


def test_wide_ranges_of_pair_weights_keep_their_digits():
    # One path of cells, its links weighted from 1 down to 1e-12: F is a sum of square roots.
    weights = 10.0 ** -np.arange(0, 13, 3)
    d = len(weights) + 1
    i, j = pairs(d)
    p = np.zeros(len(i))
    p[j == i + 1] = weights
    W = np.tril(np.ones((d, d)))[:-1]  # prefixes: each link moves exactly one of them
    bound = lower_bound(W, np.ones(d - 1), p, np.ones(d - 1), "replace")
    exact = np.sqrt(weights).sum() ** 2 / weights.sum() / (d - 1)
    assert exact * (1 - 1e-10) <= bound <= exact


@pytest.mark.parametrize("p", [np.array([-1.0, 2.0]), np.zeros(2), np.array([np.nan, 1.0])])
def test_weights_must_be_weights(p):
    with pytest.raises(InvalidInput, match="Weights p"):
        lower_bound(np.eye(2), np.ones(2), p, np.ones(2))


def test_gap():
    assert Certificate(lower=2.0, achieved=2.5).gap == 0.25
    assert Certificate(lower=0.0, achieved=0.0).gap == 0
    assert Certificate(lower=0.0, achieved=1.0).gap > 0


def test_recompute_agrees_with_the_certificate():
    W, c = random_workload(3)
    for neighbours in ("add-remove", "replace"):
        design = fit(W, c, neighbours=neighbours)
        lower, achieved = recompute(W, c, design.p, design.q, design.A, neighbours)
        assert lower == pytest.approx(design.certificate.lower, rel=1e-9)
        assert achieved == pytest.approx(design.certificate.achieved, rel=1e-9)
