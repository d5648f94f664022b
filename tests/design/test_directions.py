"""Directions of noise, and what learning them costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape import Budget
from noiseshape.design.directions import Learnt, orthonormal, shares, standard
from noiseshape.errors import InvalidInput


def test_orthonormal_directions_lose_their_rounding():
    W = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    told = orthonormal(W + 1e-10, 5)
    assert np.abs(told.T @ told - np.eye(5)).max() < 1e-14
    assert np.abs(told - W).max() < 1e-9
    assert np.array_equal(standard(3), np.eye(3))


@pytest.mark.parametrize(
    ("W", "says"),
    [
        (np.eye(4) * 1.001, "departs from the identity by 2.0e-03"),
        (np.ones((4, 4)), "must be orthonormal"),
        (np.eye(3), r"got shape \(3, 3\)"),
        (np.full((4, 4), np.nan), "must be finite"),
    ],
)
def test_directions_that_are_none(W, says):
    with pytest.raises(InvalidInput, match=says):
        orthonormal(W, 4)


class TestLearnt:
    def test_symmetric(self):
        rng = np.random.default_rng(1)
        W = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        told = Learnt.of((W * [5.0, 3.0, 1.0, -0.5]) @ W.T)
        np.testing.assert_allclose(told.spectrum, [5, 3, 1, 0], atol=1e-12)
        np.testing.assert_allclose(np.abs(told.directions.T @ W), np.eye(4), atol=1e-12)

    def test_any_matrix_tells_the_directions_of_its_columns(self):
        X = np.random.default_rng(2).normal(size=(7, 3))
        told, plain = Learnt.of(X), Learnt.of(X.T @ X)
        np.testing.assert_allclose(told.spectrum, plain.spectrum)
        np.testing.assert_allclose(
            np.abs(told.directions.T @ plain.directions), np.eye(3), atol=1e-10
        )
        assert orthonormal(Learnt.of(X.T).directions, 7).shape == (7, 7)


@given(
    st.floats(-4, 2).map(lambda p: 10**p),
    st.floats(0.1, 30).map(lambda p: 10**-p),
    st.floats(0.01, 0.99),
)
@settings(max_examples=60, deadline=None)
def test_two_shares_cost_at_most_the_whole(epsilon, delta, share):
    first, rest = shares(epsilon, delta, share)
    whole = Budget(epsilon=epsilon, delta=delta)
    assert first.mu_squared + rest.mu_squared <= whole.mu_squared


def test_shares_are_of_epsilon_and_of_delta():
    first, rest = shares(1.0, 1e-5)
    assert first == Budget(epsilon=0.2, delta=0.2e-5)
    assert rest.mu == pytest.approx(Budget(epsilon=0.8, delta=0.8e-5).mu)


@pytest.mark.parametrize("share", [0, 1, -0.2, 1.5])
def test_a_share_is_a_part(share):
    with pytest.raises(InvalidInput, match="share must be above 0 and below 1"):
        shares(1.0, 1e-5, share)


def test_without_delta_nothing_is_learnt():
    with pytest.raises(InvalidInput, match="delta above 0"):
        shares(1.0, 0.0)
