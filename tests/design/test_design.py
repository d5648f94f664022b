"""Designs: cost, variances and scaling, each against a plain second derivation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.design.workloads import random_workload

from noiseshape.design import Design
from noiseshape.errors import InvalidInput, NotSpanned

seeds = st.integers(0, 10_000)
quietly = settings(deadline=None, derandomize=True, max_examples=60)


def plain_variances(W, A):
    return ((W @ np.linalg.pinv(A, rcond=1e-11)) ** 2).sum(axis=1)


def some_strategy(W, seed):
    """A strategy that spans W: square, wide, tall, or rank-deficient and tall."""
    rng = np.random.default_rng(seed)
    d, kind = W.shape[1], seed % 4
    if kind == 0:
        return rng.standard_normal((d, d)) + 3 * np.eye(d)
    basis = np.linalg.svd(W)[2][: np.linalg.matrix_rank(W)]
    if kind == 1:
        return rng.standard_normal((len(basis), len(basis))) @ basis
    if kind == 2:
        return np.vstack([np.eye(d), rng.standard_normal((3, d))])
    return np.vstack([basis, 2 * basis, basis.sum(axis=0)])


class TestVariances:
    @quietly
    @given(seeds)
    def test_match_the_pseudo_inverse(self, seed):
        W, c = random_workload(seed)
        A = some_strategy(W, seed)
        np.testing.assert_allclose(Design("x", W, c, A).variances, plain_variances(W, A), rtol=1e-6)

    @quietly
    @given(seeds)
    def test_no_unbiased_rebuild_does_better(self, seed):
        W, c = random_workload(seed)
        A = some_strategy(W, 2)
        R = W @ np.linalg.pinv(A)
        spare = np.linalg.svd(A.T)[2][A.shape[1] :]  # R + N spare also rebuilds
        other = R + np.random.default_rng(seed).standard_normal((len(W), len(spare))) @ spare
        np.testing.assert_allclose(other @ A, W, atol=1e-8)
        assert np.all((other**2).sum(axis=1) >= Design("x", W, c, A).variances * (1 - 1e-9))

    def test_survive_rows_of_very_different_scale(self):
        W, A = np.eye(3), np.diag([1e-9, 1.0, 1e9])
        np.testing.assert_allclose(
            Design("x", W, np.ones(3), A).variances, [1e18, 1.0, 1e-18], rtol=1e-12
        )

    @pytest.mark.parametrize(
        "A",
        [
            [[1.0, 1.0, 0.0]],
            [[1.0, 1.0, 1.0]],
            [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
            [[1.0, 0, 0], [0, 1, 0]],
            [[1.0, 0, 0], [2, 0, 0], [0, 0, 1]],
        ],
    )
    def test_a_strategy_that_does_not_span_is_refused(self, A):
        W = np.array([[1.0, 1, 0], [0, 1, 1]])
        with pytest.raises(NotSpanned, match=r"does not span . of 2 queries .* measure more"):
            Design("x", W, np.ones(2), np.array(A))


class TestCost:
    @quietly
    @given(seeds)
    def test_is_the_largest_move_of_one_neighbour(self, seed):
        W, c = random_workload(seed)
        A = some_strategy(W, seed)
        cells = range(W.shape[1])
        one = max(np.linalg.norm(A[:, i]) for i in cells)
        two = max(np.linalg.norm(A[:, i] - A[:, j]) for i in cells for j in cells)
        assert Design("x", W, c, A).mu == pytest.approx(one, rel=1e-12)
        design = Design("x", W, c, A, neighbours="replace")
        assert design.mu == pytest.approx(two, rel=1e-6, abs=1e-7)

    def test_of_replace_is_not_told_by_the_profile(self):
        shapes = [np.eye(2), np.array([[1.0, -1]]), np.array([[1.0, 1]])]
        designs = [Design("x", A, np.ones(len(A)), A, neighbours="replace") for A in shapes]
        assert [design.mu for design in designs] == pytest.approx([np.sqrt(2), 2.0, 0.0])
        assert all(design.profile == pytest.approx([1, 1]) for design in designs)

    def test_of_replace_in_blocks(self, monkeypatch):
        import sys

        monkeypatch.setattr(sys.modules["noiseshape.design.design"], "BLOCK", 3)
        A = np.random.default_rng(0).standard_normal((10, 10))
        i, j = np.triu_indices(10, 1)
        plain = np.linalg.norm(A[:, i] - A[:, j], axis=0).max()
        design = Design("x", A, np.ones(10), A, neighbours="replace")
        assert design.mu == pytest.approx(plain, rel=1e-12)


class TestScaling:
    @quietly
    @given(seeds, st.floats(1e-3, 1e3))
    def test_laws(self, seed, mu):
        W, c = random_workload(seed)
        design = Design("x", W, c, some_strategy(W, seed))
        within = design.within(mu)
        assert within.mu == pytest.approx(mu, rel=1e-12)
        assert within.profile.max() == pytest.approx(within.alpha, rel=1e-12)
        assert design.meeting_targets().k == pytest.approx(1, abs=1e-12)
        # FFU Theorem 5: variances and mu^2 trade one for one
        assert within.k * within.alpha == pytest.approx(design.k * design.alpha, rel=1e-12)
        np.testing.assert_allclose(
            within.variances, Design("x", W, c, within.A).variances, rtol=1e-9
        )
        assert np.all(within.ratios <= within.k)

    def test_within_takes_what_has_a_mu(self):
        design = Design("x", np.eye(2), np.ones(2), np.eye(2))
        assert design.within(Design("y", np.eye(2), np.ones(2), 3 * np.eye(2))).mu == 3

    def test_a_free_design_has_no_scale(self):
        free = Design("x", np.ones((1, 2)), np.ones(1), np.ones((1, 2)), neighbours="replace")
        with pytest.raises(InvalidInput, match="costs no privacy"):
            free.within(1.0)

    @pytest.mark.parametrize("mu", [0, -1, np.nan, np.inf, "much"])
    def test_only_to_a_positive_cost(self, mu):
        with pytest.raises(InvalidInput, match="mu must be"):
            Design("x", np.eye(2), np.ones(2), np.eye(2)).within(mu)


def test_errors_is_a_table():
    design = Design("x", np.eye(2), np.array([1.0, 4.0]), np.eye(2) / 2)
    table = design.errors()
    assert table.dtype.names == ("query", "target", "achieved", "ratio")
    assert table.tolist() == [(0, 1.0, 4.0, 4.0), (1, 4.0, 4.0, 1.0)]


def test_arrays_are_frozen_and_not_shared_with_the_caller():
    W, A = np.eye(2), np.eye(2)
    design = Design("x", W, np.ones(2), A)
    A[0, 0] = W[0, 0] = 7.0
    assert design.A[0, 0] == design.W[0, 0] == 1.0
    for array in (design.W, design.c, design.A, design.variances, design.profile):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_repr_says_what_it_costs():
    design = Design("identity", np.eye(2), np.ones(2), np.eye(2))
    assert repr(design) == (
        "Design(identity: 2 queries over 2 cells, add-remove, mu=1, k=1, no certificate)"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.eye(3)}, "same cells"),
        ({"c": np.ones(3)}, r"c must have shape \(2,\)"),
        ({"neighbours": "friends"}, "neighbours must be"),
    ],
)
def test_bad_input(change, message):
    fields = {"W": np.eye(2), "c": np.ones(2), "A": np.eye(2), "neighbours": "add-remove"}
    with pytest.raises(InvalidInput, match=message):
        Design("x", **(fields | change))
