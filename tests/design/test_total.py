"""Total error: the matrix mechanism in closed form, its certificate, and its weights."""

import numpy as np
import pytest
from benchmarks.workloads import pl94
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.design.workloads import random_workload

from noiseshape.design import Design, fit, total, weighted_total
from noiseshape.errors import InvalidInput

seeds = st.integers(0, 10_000)
relations = st.sampled_from(["add-remove", "replace"])
quietly = settings(deadline=None, derandomize=True, max_examples=50)


def test_theorem_6():
    design = total([[1, 1], [1, 0]], 1.0, gap=1e-8).within(2.0)
    R = design.W @ np.linalg.pinv(design.A)
    a, d = 1 + 1 / np.sqrt(5), 0.5 + 0.3 * np.sqrt(5)
    np.testing.assert_allclose(R @ R.T * 4, [[a, a / 2], [a / 2, d]], rtol=2e-4)
    assert design.variances.sum() * 4 == pytest.approx(1.5 + np.sqrt(5) / 2, rel=1e-8)


def test_pl94_misses_by_5_82():
    W, c = pl94()
    cost = fit(W, c, gap=1e-4)
    assert total(W, c, gap=1e-6).within(cost).k == pytest.approx(5.82, abs=0.005)


@quietly
@given(seeds, relations)
def test_certificate_and_targets(seed, neighbours):
    W, c = random_workload(seed)
    w = np.random.default_rng(seed).uniform(0.1, 5, len(c))
    design = total(W, c, weights=w, gap=1e-5, neighbours=neighbours)
    certificate = design.certificate
    assert design.k == pytest.approx(1, abs=1e-9)
    assert certificate.gap <= 1e-5
    assert certificate.achieved == pytest.approx(design.alpha * (w @ design.variances), rel=1e-12)
    assert certificate.covers.startswith("total")
    # the bound holds for any rival, that of fit among them
    A = np.random.default_rng(seed + 1).standard_normal((W.shape[1],) * 2)
    rivals = [fit(W, c, neighbours=neighbours), Design("x", W, c, A, neighbours=neighbours)]
    for rival in rivals:
        assert certificate.lower <= rival.alpha * (w @ rival.variances) * (1 + 1e-9)


@quietly
@given(seeds)
def test_targets_set_the_scale_only(seed):
    W, c = random_workload(seed)
    one, two = total(W, c, gap=1e-6), total(W, 1.0, gap=1e-6)
    assert one.certificate.achieved == pytest.approx(two.certificate.achieved, rel=2e-6)


@pytest.mark.parametrize("unit", [1e-6, 1e3, 1e10])
@pytest.mark.parametrize("gap", [1e-3, 1e-6])
def test_units_do_not_matter(unit, gap):
    W = np.tril(np.ones((8, 8)))
    design = total(unit * W, 1.0, gap=gap)
    assert design.mu == pytest.approx(unit * total(W, 1.0, gap=gap).mu, rel=1e-3)
    assert design.certificate.iterations < 20


@quietly
@given(seeds)
def test_errors_in_units_of_their_targets(seed):
    """Uniform weights on the dual; no other design has a smaller sum of ratios for its mu."""
    W, c = random_workload(seed)
    design = weighted_total(W, c, gap=1e-6)
    np.testing.assert_allclose(design.q, 1 / len(c), rtol=1e-9)
    plain = total(W, c, weights=1 / c, gap=1e-6).certificate
    assert design.certificate.achieved == pytest.approx(plain.achieved, rel=2e-6)
    assert design.alpha * design.ratios.sum() == pytest.approx(design.certificate.achieved)
    for rival in (fit(W, c), total(W, c)):
        assert design.certificate.lower <= rival.alpha * rival.ratios.sum() * (1 + 1e-9)


def test_repeated_queries_count_as_often_as_they_are_asked():
    W = np.array([[1.0, 0], [0, 1]])
    twice = total(W[[0, 0, 1]], 1.0, gap=1e-7)
    weighted = total(W, 1.0, weights=[2, 1], gap=1e-7)
    assert twice.certificate.achieved == pytest.approx(weighted.certificate.achieved, rel=1e-6)


@pytest.mark.parametrize("weights", [[1.0, 0.0], [1.0], [-1.0, 1.0]])
def test_weights_are_above_zero(weights):
    with pytest.raises(InvalidInput, match="weights must be 2 numbers above 0"):
        total(np.eye(2), 1.0, weights=weights)
