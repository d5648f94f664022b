"""Refined designs: the smallest sorted profile, level by level, against the oracle."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.workloads import range_queries
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.design.oracle import least_cost
from tests.design.workloads import random_workload

from noiseshape.design import fit

seeds = st.integers(0, 10_000)


def test_a_level_that_does_not_converge_is_left_out_and_told(monkeypatch):
    monkeypatch.setattr(sys.modules["noiseshape.design.refine"], "LEVEL_GAP", 1e-30)
    certificate = fit(np.eye(2), [1, 4], refine=True).certificate
    assert len(certificate.levels) == 1
    assert certificate.reason.endswith("refined to level 1: the next did not converge")


def test_more_levels_than_ten_are_left_out_and_told():
    certificate = fit(np.eye(12), np.arange(1, 13.0), refine=True).certificate
    assert len(certificate.levels) == 10
    assert certificate.reason.endswith("refined to level 10: there are more")


@pytest.mark.parametrize("gap", [1e-6, 1e-7])
def test_a_smaller_gap_is_reached_too(gap):
    W, c = np.tril(np.ones((6, 6))), np.array([6.1, 3.2, 1.3, 1.1, 7.5, 8.3])
    certificate = fit(W, c, refine=True, gap=gap).certificate
    assert certificate.gap <= gap
    assert len(certificate.levels) == 2


def test_levels_of_high_prices_are_certified():
    # The caps here are worth up to a thousand million times what they cap.
    rng = np.random.default_rng(8)
    d = rng.integers(3, 30)
    W = rng.integers(0, 2, (rng.integers(3, 60), d)).astype(float)
    certificate = fit(W, 10 ** rng.uniform(-1.5, 1.5, len(W)), refine=True).certificate
    assert certificate.reason.endswith("; profile refined")
    assert sum(level.cells for level in certificate.levels) == d


@pytest.mark.parametrize("seed", [7, 13, 18, 21, 22, 26, 39])
def test_levels_that_hang_on_high_prices_are_reached_with_looser_caps(seed):
    # With caps as tight as the first ones these end at level 3 to 5, with cells to go.
    W = np.kron(np.tril(np.ones((2, 2))), np.vstack([np.ones((1, 4)), np.eye(4)]))
    design = fit(W, 10 ** np.random.default_rng(seed).uniform(-1, 1, 10), refine=True)
    certificate = design.certificate
    assert certificate.reason.endswith("; profile refined")
    assert sum(level.cells for level in certificate.levels) == 8
    assert certificate.gap <= 1e-3
    # Every cell costs its level, as far as caps were loosened and levels are known.
    costs = np.repeat([x.cost for x in certificate.levels], [x.cells for x in certificate.levels])
    assert np.all(np.sort(design.profile)[::-1] <= np.sort(costs)[::-1] * (1 + 4e-4))


@pytest.mark.parametrize("seed", [8, 23, 48])
def test_so_they_are_where_queries_are_many(seed):
    rng = np.random.default_rng(seed)
    W = (rng.random((60, 20)) < 0.12).astype(float)
    W = W[W.any(axis=1)]
    design = fit(W, 10 ** rng.uniform(-1, 1, len(W)), refine=True)
    assert design.certificate.reason.endswith("; profile refined")
    assert design.k == pytest.approx(1, abs=1e-9)


def test_two_cells():
    design = fit(np.eye(2), [1, 4], refine=True)
    np.testing.assert_allclose(design.profile, [1, 0.25], rtol=1e-5)
    plain = fit(np.eye(2), [1, 4]).profile
    assert plain[1] > 0.3  # the control: without refinement it is not


def test_independent_cells_each_cost_what_their_target_needs():
    c = np.array([1.0, 2, 2, 5, 9])
    design = fit(np.eye(5), c, refine=True)
    np.testing.assert_allclose(design.profile, 1 / c, rtol=1e-4)
    assert [level.cells for level in design.certificate.levels] == [1, 2, 1, 1]


@settings(deadline=None, derandomize=True, max_examples=40)
@given(seeds)
def test_levels_fall_and_are_certified(seed):
    W, c = random_workload(seed, most=10)
    design = fit(W, c, refine=True)
    levels = design.certificate.levels
    costs = [level.cost for level in levels]
    assert 1 <= len(levels) <= 10
    assert all(low <= high * (1 + 1e-5) for high, low in pairwise(costs))
    assert all(abs(level.cost / level.lower - 1) <= 1e-5 for level in levels)
    assert design.certificate.gap <= 1e-5
    assert "profile refined" in design.certificate.reason
    assert design.k == pytest.approx(1, abs=1e-9)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(seeds)
def test_the_sorted_profile_is_no_larger_than_the_plain_one(seed):
    W, c = random_workload(seed, most=10)
    refined = np.sort(fit(W, c, refine=True).profile)[::-1]
    plain = np.sort(fit(W, c, gap=1e-6).profile)[::-1]
    # lexicographic, up to the gap: at the first clear difference the refined one is smaller
    differ = np.flatnonzero(np.abs(refined - plain) > 1e-4 * plain[0])
    assert not len(differ) or refined[differ[0]] < plain[differ[0]]


@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_the_second_level_is_what_the_oracle_finds(seed):
    W, c = range_queries(8, 10, np.random.default_rng(seed))
    design = fit(W, c, refine=True)
    levels = design.certificate.levels
    assert len(levels) > 1
    first = design.profile > levels[0].cost * (1 - 1e-4)
    touched = design.profile > 0
    caps = np.where(first, levels[0].cost * (1 + 3e-6), np.where(touched, np.inf, 1.0))
    assert levels[1].cost == pytest.approx(least_cost(W, c, caps=caps), rel=1e-3)
