"""Noise on cells and noise on queries, against closed forms and the figures of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.workloads import age_pyramids, pl94
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.design.identity import identity, per_query, unrebuilt_alpha
from noiseshape.errors import NoiseshapeError

# The certified optimum of PL 94-171 as FFU 7.2 describes it, and of the age pyramids of 7.5.
PL94_ALPHA = 2.36332
workloads = st.builds(
    lambda seed, m, d: (
        np.random.default_rng(seed).normal(size=(m, d)),
        np.random.default_rng(seed + 1).uniform(0.5, 5, size=m),
    ),
    seed=st.integers(0, 10_000),
    m=st.integers(1, 8),
    d=st.integers(1, 6),
)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(workloads)
def test_identity_in_closed_form(workload):
    W, c = workload
    design = identity(W, c)
    assert design.name == "identity"
    assert design.ratios.max() == pytest.approx(1, abs=1e-9)
    assert design.alpha == pytest.approx(((W**2).sum(axis=1) / c).max())
    np.testing.assert_allclose(design.profile, design.alpha)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(workloads, st.booleans())
def test_least_squares_never_costs_more_than_the_answers_as_they_are(workload, equal):
    W, c = workload
    design = per_query(W, c, equal=equal)
    assert design.name == "per_query"
    assert design.ratios.max() == pytest.approx(1, abs=1e-9)
    assert design.alpha <= unrebuilt_alpha(W, c, equal=equal) * (1 + 1e-9)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(workloads)
def test_independent_queries_gain_nothing_from_least_squares(workload):
    W, c = workload
    W, c = W[: W.shape[1]], c[: W.shape[1]]  # no more queries than cells: independent
    assert per_query(W, c).alpha == pytest.approx(unrebuilt_alpha(W, c))
    np.testing.assert_allclose(per_query(W, c).variances, c)


def test_unrebuilt_cost_in_closed_form():
    W, c = np.array([[1.0, 1], [1, 0], [0, 1]]), np.array([1.0, 2, 4])
    assert unrebuilt_alpha(W, c) == pytest.approx(1 + 1 / 2)
    assert unrebuilt_alpha(W, c, equal=True) == pytest.approx(2)


def test_pl94_at_equal_cost():
    W, c = pl94()
    ratios = {
        "cells": identity(W, c).alpha / PL94_ALPHA,
        "equal noise on queries": unrebuilt_alpha(W, c, equal=True) / PL94_ALPHA,
        "noise by target": unrebuilt_alpha(W, c) / PL94_ALPHA,
    }
    assert ratios["cells"] == pytest.approx(53.31, abs=5e-3)
    assert ratios["equal noise on queries"] == pytest.approx(1.69, abs=5e-3)
    assert ratios["noise by target"] == pytest.approx(1.375, abs=5e-4)


def test_age_pyramids_at_equal_cost():
    # 196 cells in [18, 115] of both sexes at target 1, over the optimum 1.7643: about 111.1.
    assert identity(*age_pyramids()).alpha == pytest.approx(196)


@pytest.mark.parametrize("design", [identity, per_query, unrebuilt_alpha])
def test_bad_input_is_refused(design):
    with pytest.raises(NoiseshapeError, match="zero"):
        design([[0, 0], [1, 1]], 1)
    with pytest.raises(NoiseshapeError, match="above 0"):
        design(np.eye(2), [1, 0])
