"""Slack, and further queries that cost nothing (FFU 3.2.1)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.design.workloads import random_workload

from noiseshape.design import Design, extend, fit, slack
from noiseshape.errors import BudgetExceeded, InvalidInput

B1 = np.array([[1.0, 1, 0], [0, 1, 1]])
seeds = st.integers(0, 10_000)


def identity_on_b1():
    return Design("identity on B1", B1, np.ones(2), B1)


def test_the_example_of_the_paper():
    design = identity_on_b1()
    np.testing.assert_allclose(slack(design), [1, 0, 1], atol=1e-12)
    more = extend(design, [[1, 0, 1]], 1.0)
    np.testing.assert_allclose(design.profile + more.profile, [2, 2, 2], rtol=1e-9)
    assert np.all(design.profile + more.profile <= design.alpha * (1 + 1e-12))
    assert more.variances == pytest.approx([1.0], rel=1e-8)
    assert more.certificate.covers.startswith("share of the slack")


def test_fit_itself_leaves_b1_no_slack():
    design = fit(B1, 1.0, refine=True)
    np.testing.assert_allclose(design.profile, 4 / 3, rtol=1e-5)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(seeds)
def test_an_extension_stays_within_the_slack(seed):
    W, c = random_workload(seed)
    design = fit(W, c, refine=True)
    room = np.flatnonzero(slack(design) > 0.05 * design.alpha)
    if not len(room):
        return
    rng = np.random.default_rng(seed)
    further = np.zeros((3, W.shape[1]))
    further[:, room] = rng.integers(1, 3, (3, len(room)))
    generous = 1e3 * (1 + (further**2).sum()) / design.alpha
    more = extend(design, further, generous)
    assert np.all(design.profile + more.profile <= design.alpha * (1 + 1e-9))
    assert np.all(more.ratios <= 1 + 1e-9)


def test_what_does_not_fit_says_by_how_much():
    with pytest.raises(BudgetExceeded, match=r"need 2 times the slack .* allow 2 times"):
        extend(identity_on_b1(), [[1, 0, 1]], 0.5)


def test_cells_without_slack_are_closed():
    with pytest.raises(BudgetExceeded, match="touch 1 cells that have no slack"):
        extend(identity_on_b1(), [[1, 1, 1]], 1.0)


def test_over_other_cells():
    with pytest.raises(InvalidInput, match="the same 3 cells, got 2"):
        extend(identity_on_b1(), [[1, 1]], 1.0)


def test_replace_has_no_costs_of_cells():
    with pytest.raises(InvalidInput, match="'replace' has no costs of single cells"):
        slack(Design("x", B1, np.ones(2), B1, neighbours="replace"))
