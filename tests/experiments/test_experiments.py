"""What experiments compute with, against plain computations and the library's own."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from benchmarks.workloads import marginals, pl94
from experiments.harness import column
from experiments.matrix_noise import Setup, box_cost, box_sigma, weighted
from experiments.ratios import mechanisms
from experiments.tables import by_method, hindsight, summary
from experiments.trials import packed
from scipy import sparse
from scipy.stats import norm

from experiments import marginal_figures, matrix_noise, mvg_table_4, mvg_table_5, ours_rounded
from noiseshape.design import fit, identity, total
from noiseshape.design.entrywise import entrywise
from noiseshape.strategies.changes import Box, Outer

SIGNED, POSITIVE = Setup("signed", 50, 4, -1.0, 1.0), Setup("positive", 50, 4, 0.0, 1.0)


class TestRatios:
    def test_a_ratio_is_how_far_the_worst_query_misses_at_fits_cost(self):
        W, c = pl94()
        rows = mechanisms((W, c), with_sm2=False)
        mu = fit(W, c, gap=1e-4).mu
        for name, design in (("GM", identity(W, c)), ("CA", total(W, c, gap=1e-4))):
            (ratio,) = column(rows, "ratio", mechanism=name)
            assert design.within(mu).k == pytest.approx(ratio, rel=1e-9)

    def test_tables_with_random_workloads_draw_their_readings(self):
        """Shares of +1 are 0.2 as described, and 1/2 with fair coins."""
        import experiments.ffu_table_7 as script

        rng = np.random.default_rng(1)
        for draw, share in ((script.draw, 0.2), (script.fair, 0.5)):
            W, c = draw(64, rng)
            assert W.shape == (128, 64)
            assert np.mean(W == 1) == pytest.approx(share, abs=0.03)
            assert np.all(c == 1)


@pytest.mark.parametrize("way", [1, 2])
def test_figures_2_and_3_agree_where_both_ways_to_compute_them_reach(way):
    dense = {r["mechanism"]: r["alpha"] for r in marginal_figures._dense(way, 5, "tiny")}
    beyond = {r["mechanism"]: r["alpha"] for r in marginal_figures._beyond(way, 5)}
    for name, alpha in beyond.items():
        assert alpha == pytest.approx(dense[name], rel=3e-4), name
    W, c = marginals(5, way)
    assert beyond["GM"] == pytest.approx(identity(W, c).alpha)


class TestBoxes:
    def test_noise_costs_what_is_stated_and_weighs_least(self):
        rng = np.random.default_rng(1)
        weights = rng.uniform(0.1, 10, size=5)
        best = box_sigma(2.0, weights, 0.7)
        assert box_cost(2.0, best) == pytest.approx(0.7)
        for _ in range(200):
            other = best * np.exp(rng.normal(scale=0.3, size=5))
            other *= box_cost(2.0, other) / 0.7
            assert weights @ other**2 >= weights @ best**2

    @pytest.mark.parametrize("weight", [1.0, 10.0])
    def test_the_library_designs_the_same_noise(self, weight):
        weights = weighted(4, [1], weight)
        box = Box([-1] * 4, [1] * 4).terms("replace")
        made = entrywise(box, sparse.eye_array(4, format="csr"), weights=weights)
        np.testing.assert_allclose(made.sigma, box_sigma(2.0, weights, 1.0), rtol=1e-6)
        assert made.certificate.gap < 1e-5
        moments = Outer([1] * 4, signed=False, count=False, sums=False).terms("replace")
        pairs = np.sqrt(np.outer(weights, weights))[np.triu_indices(4)]
        eye = sparse.eye_array(10, format="csr")
        made = entrywise(moments, eye, weights=pairs)
        each = np.sqrt(weights)
        ours = matrix_noise.outer_sigma(POSITIVE, np.outer(each, each), 1.0)
        order = np.triu_indices(4)
        np.testing.assert_allclose(made.sigma / POSITIVE.records, ours[order], rtol=1e-6)

    def test_equal_weights_are_imgm_on_the_identity_query(self):
        sigma = box_sigma(SIGNED.width, np.ones(4), SIGNED.budget(1.0))
        np.testing.assert_allclose(sigma, SIGNED.change / SIGNED.budget(1.0))


def corners(setup):
    """Records at the corners and the middle of their domain, as many as features allow."""
    return [np.array(x) for x in itertools.product((setup.low, 0.0, setup.high), repeat=4)]


@pytest.mark.parametrize("setup", [SIGNED, POSITIVE], ids=lambda s: s.name)
class TestMoments:
    def test_the_sensitivity_is_reached_and_not_passed(self, setup):
        found = max(
            np.linalg.norm(np.outer(x, x) - np.outer(y, y)) / setup.records
            for x, y in itertools.combinations(corners(setup), 2)
        )
        bound = matrix_noise.moment_change(setup)
        assert 0.99 * bound < found <= bound * (1 + 1e-12)
        assert matrix_noise.moment_change(setup) < matrix_noise.printed_change(setup)

    @pytest.mark.parametrize("weight", [1.0, 10.0, 1000.0])
    def test_no_replaced_record_costs_more_than_the_budget(self, setup, weight):
        each = np.sqrt(weighted(4, [0, 3], weight))
        sigma = matrix_noise.outer_sigma(setup, np.outer(each, each), 0.3)
        upper = np.triu_indices(4)
        worst = max(
            np.linalg.norm((np.outer(x, x) - np.outer(y, y))[upper] / sigma[upper])
            for x, y in itertools.combinations(corners(setup), 2)
        )
        assert 0.3 * 0.5 < worst / setup.records <= 0.3 * (1 + 1e-12)


def test_lost_variance_and_residuals_are_zero_for_the_truth():
    S = np.diag([3.0, 1.0, 0.5])
    assert mvg_table_4.lost(mvg_table_4.component(S), S) == pytest.approx(0)
    assert mvg_table_4.lost(np.array([0, 1.0, 0]), S) == pytest.approx(2)
    assert mvg_table_5.residual(S, S) == pytest.approx(0)
    # Components in the opposite order: (3 - 0.5)^2 twice.
    assert mvg_table_5.residual(-S, S) == pytest.approx(12.5)


ROWS = packed(
    [
        {"setup": "a", "method": "m", "parameter": p, "trial": t, "error": e}
        for p, errors in (("fixed", (2.0, 4.0)), ("lucky", (1.0, 2.0)))
        for t, e in enumerate(errors)
    ]
)


class TestTrials:
    def test_trials_are_packed_and_parts_of_them_add_up(self):
        assert [row["errors"] for row in ROWS] == ["2 4", "1 2"]
        fact = {"method": "facts", "sigma": 3.0}
        assert packed([fact]) == [fact]
        more = packed([{"setup": "a", "method": "m", "parameter": "fixed", "error": 1 / 3}])
        assert by_method([*ROWS, *more]) == {"m": [2.0, 4.0, 0.33333]}

    def test_what_was_fixed_comes_first_and_hindsight_picks_the_least(self):
        assert by_method(ROWS) == {"m": [2.0, 4.0]}
        assert hindsight(ROWS) == {"m": ("lucky", [1.0, 2.0])}

    def test_summary_shows_both(self):
        (line,) = summary("ours-time", ROWS)
        assert line["a"].startswith("3 ±")
        assert line["a, in hindsight"].startswith("1.5 ±")
        assert line["a, in hindsight"].endswith("(lucky)")


def test_probabilities_of_both_kinds_of_noise():
    for sigma, shift in ((0.5, 1), (4.0, 1)):
        found = ours_rounded.weights(sigma, shift)
        z = np.arange(-int(12 * sigma) - shift, int(12 * sigma) + shift + 1)
        cells = norm.cdf((z + 0.5) / sigma) - norm.cdf((z - 0.5) / sigma)
        np.testing.assert_allclose(found["rounded"], cells, atol=1e-15)
        for p in found.values():
            assert p.sum() == pytest.approx(1)


def test_mvgs_noise_is_what_its_algorithm_prescribes():
    """By hand: p_i = theta_i P, P of equation 23, variance 1 / sqrt(p_i)."""
    setup = Setup("full version", 248, 6, -1.0, 1.0)
    m, n, s2, gamma, d = 6, 248, 2 * math.sqrt(6), math.sqrt(6 * 248), 1 / 248
    H = sum(1 / i for i in range(1, 7))
    root = sum(i**-0.5 for i in range(1, 7))
    zeta = 2 * math.sqrt(-m * n * math.log(d)) - 2 * math.log(d) + m * n
    alpha = (H + root) * gamma**2 + 2 * H * gamma * s2
    beta = 2 * (m * n) ** 0.25 * zeta * H * s2
    P = (-beta + math.sqrt(beta**2 + 8 * alpha)) ** 4 / (16 * alpha**4 * n)
    sigma = matrix_noise.binary_sigma(setup, 1.0, [2, 5], 0.75)
    assert sigma[2] == pytest.approx((0.75 / 2 * P) ** -0.25, rel=1e-4)  # cancellation as printed
    assert sigma[0] == pytest.approx((0.25 / 4 * P) ** -0.25, rel=1e-4)
    assert 6e5 < sigma[2] < sigma[0] < 1.1e6
