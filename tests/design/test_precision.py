"""Allocations of precision: water-filling by its own conditions, by cvxpy, and by competitors."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.design.condition import Condition
from noiseshape.design.covariances import Covariances
from noiseshape.design.precision import (
    allocated,
    binary,
    filled,
    filled_exactly,
    max_pnr,
    theorem_7,
    uniform,
)
from noiseshape.errors import InvalidInput

SPECTRA = st.lists(st.floats(-6, 6).map(lambda p: 10**p), min_size=1, max_size=12)


def gain(values, w):
    return np.log1p(np.asarray(values) * w).sum()


class TestFilled:
    @given(SPECTRA, st.floats(-6, 6), st.floats(0, 0.9))
    @settings(max_examples=150, deadline=None)
    def test_karush_kuhn_tucker(self, values, log_budget, share):
        """Slopes equal above the floor, and no greater at it: for a concave gain, the optimum."""
        values, d = np.array(values), 10**log_budget
        least = share * d / len(values)
        w = filled(values, d, floor=least)
        assert w.sum() == pytest.approx(d, rel=1e-9)
        assert np.all(w >= least * (1 - 1e-12))
        slope = values / (1 + values * w)
        above = w > least * (1 + 1e-9) + 1e-12 * d
        if above.any():
            np.testing.assert_allclose(slope[above], slope[above].max(), rtol=1e-6)
            assert slope.max() <= slope[above].max() * (1 + 1e-6)

    def test_zero_variances_stay_at_the_floor(self):
        w = filled([4.0, 0.0, 1.0, 0.0], 10.0, floor=0.5)
        assert w[[1, 3]].tolist() == [0.5, 0.5]
        assert w.sum() == pytest.approx(10)

    def test_cvxpy_agrees(self):
        values = np.array([5.0, 1.0, 0.3, 0.02])
        for d, floor in ((0.5, 0.0), (2.0, 0.05), (400.0, 0.0)):
            x = cp.Variable(4)
            found = cp.Problem(
                cp.Maximize(cp.sum(cp.log(1 + cp.multiply(values, x)))),
                [cp.sum(x) == d, x >= floor],
            ).solve(solver=cp.CLARABEL)
            assert gain(values, filled(values, d, floor=floor)) == pytest.approx(found, rel=1e-6)

    def test_the_printed_c_holds_only_where_every_entry_is_positive(self):
        values = np.array([5.0, 1.0, 0.02])

        def printed(d):
            return (d + (1 / values).sum()) / 3 - 1 / values

        np.testing.assert_allclose(filled(values, 400.0), printed(400.0))
        assert printed(1.0).min() < 0
        assert filled(values, 1.0).min() == 0

    @given(SPECTRA, st.floats(-6, 6))
    @settings(max_examples=80, deadline=None)
    def test_problem_1_itself(self, values, log_budget):
        values, d = np.array(values), 10**log_budget
        w = filled_exactly(values, d)
        assert np.linalg.norm(w) == pytest.approx(d)
        slope = values / (1 + values * w) / w  # proportional to w at the optimum
        np.testing.assert_allclose(slope, slope[0], rtol=1e-6)
        assert gain(values, w) >= gain(values, filled(values, d)) * (1 - 1e-12)


class TestMaxPnr:
    def test_allowed_by_theorem_2_and_not_without_the_root_of_n(self):
        c = Condition(m=6, n=248, s2=24**0.5, gamma=1488**0.5, epsilon=1.0, delta=1 / 248)
        spectrum = np.geomspace(50, 1, 6) * 1e9
        P = c.precision_budget(iid=248)
        for problem in (1, 2):
            theta = max_pnr(spectrum, problem=problem)(P)
            assert theta.sum() <= 1 + 1e-12
            assert c.allows(Covariances((theta * P) ** -0.5 * (1 + 1e-9), np.ones(248)))
        as_printed = filled(spectrum, c.phi**2)
        assert not c.allows(Covariances(1 / np.maximum(as_printed, 1e-300), np.ones(248)))

    def test_better_than_uniform_and_binary(self):
        spectrum, P = np.array([100.0, 10.0, 1.0, 0.1]), 0.04
        ratios = [
            gain(spectrum, np.sqrt(theta * P))
            for theta in (
                max_pnr(spectrum, problem=1)(P),
                max_pnr(spectrum)(P),
                uniform(4) / 4,  # the same sum of inverse variances
            )
        ]
        assert ratios == sorted(ratios, reverse=True)

    def test_every_direction_has_some_precision(self):
        theta = max_pnr([1e6, 1e-6, 0.0])(1e-6)
        assert np.all(theta > 0)
        allocated(theta, 3)


class TestTheorem7:
    def random_K(self, rng, k=6):
        M = rng.normal(size=(k, k))
        return M @ M.T + 0.01 * np.eye(k)

    def test_no_other_noise_of_the_same_budget_has_a_greater_ratio(self):
        rng = np.random.default_rng(1)
        K, d = self.random_K(rng), 3.0
        best = theorem_7(K, d, (2, 3), floor=1e-6)
        S = best.covariance
        assert np.trace(np.linalg.inv(S)) == pytest.approx(d)

        def log_pnr(S):
            return np.linalg.slogdet(K + S)[1] - np.linalg.slogdet(S)[1]

        assert best.log_pnr == pytest.approx(log_pnr(S))
        for _ in range(200):
            M = rng.normal(size=(6, 6)) * np.exp(rng.normal(size=6))
            inverse = M @ M.T + 1e-9 * np.eye(6)
            other = np.linalg.inv(inverse * d / np.trace(inverse))
            assert log_pnr(other) <= best.log_pnr * (1 + 1e-6)

    def test_the_printed_order_of_q_is_another_covariance_with_less(self):
        rng = np.random.default_rng(2)
        K = self.random_K(rng)
        best = theorem_7(K, 3.0, (2, 3))
        _, Q = np.linalg.eigh(K)
        printed = (Q.T / best.precision) @ Q
        ratio = np.linalg.slogdet(K + printed)[1] - np.linalg.slogdet(printed)[1]
        assert ratio < best.log_pnr - 0.01

    def test_the_optimum_need_not_be_a_product(self):
        product = np.kron(np.diag([3.0, 1.0, 0.5]), np.diag([2.0, 1.0]))
        assert theorem_7(product, 3.0, (2, 3)).product_gap > 0.01
        assert theorem_7(np.eye(6), 3.0, (2, 3)).product_gap < 1e-12

    def test_its_true_cost(self):
        rng = np.random.default_rng(3)
        best = theorem_7(self.random_K(rng), 3.0, (2, 3))
        A = np.linalg.inv(np.linalg.cholesky(best.covariance))
        assert best.mu(2.0) == pytest.approx(2 * np.linalg.norm(A, 2), rel=1e-8)


def test_binary():
    assert binary(6, [0, 5], 0.55).tolist() == pytest.approx([0.275] + [0.1125] * 4 + [0.275])
    assert uniform(4).tolist() == [0.25] * 4
    assert allocated([0.1] * 10, 10).tolist() == [0.1] * 10


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda: allocated([0.5, 0.6], 2), "must sum to at most 1, got 1.1"),
        (lambda: allocated([0.5, 0.0], 2), "must be above 0 in every direction, and 1 of 2"),
        (lambda: allocated([0.5, float("nan")], 2), "must be finite"),
        (lambda: allocated([0.5], 2), "a share for each of 2 directions, got 1"),
        (lambda: binary(4, []), "some, and not all"),
        (lambda: binary(4, [0, 1, 2, 3]), "some, and not all"),
        (lambda: binary(4, [4]), "directions 0 to 3"),
        (lambda: binary(4, [0], share=1.0), "below 1"),
        (lambda: filled([0.0, 0.0], 1.0), "not all of them 0"),
        (lambda: filled([1.0, -1.0], 1.0), "at least 0"),
        (lambda: filled([1.0, 1.0], 1.0, floor=0.6), "passes the budget"),
        (lambda: filled_exactly([1.0, 0.0], 1.0), "above 0"),
        (lambda: max_pnr([1.0], problem=3), "1 or 2"),
        (lambda: max_pnr([1.0], floor=0.0), "floor must be above 0"),
        (lambda: theorem_7(np.eye(5), 1.0, (2, 3)), "K_f must be symmetric, of shape"),
        (lambda: theorem_7(np.eye(6), 1.0, (2, 3), floor=0.0), "floor must be above 0"),
    ],
)
def test_bad_input(act, says):
    with pytest.raises(InvalidInput, match=says):
        act()
