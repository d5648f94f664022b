"""Reduction loses nothing: the optimum stays, and what is expanded is as good."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.design.workloads import random_workload

from noiseshape.design import Design
from noiseshape.design.certificate import lower_bound
from noiseshape.design.reduce import reduce

seeds = st.integers(0, 10_000)
quietly = settings(deadline=None, derandomize=True, max_examples=60)
relations = st.sampled_from(["add-remove", "replace"])


def padded(seed):
    """A workload with zero, repeated and negated columns and proportional rows put in."""
    W, c = random_workload(seed, most=5)
    rng = np.random.default_rng(seed)
    d = W.shape[1]
    columns = rng.integers(0, d, d + 4)
    W = np.hstack([W, np.zeros((len(W), 2)), W[:, columns] * rng.choice([-1, 1], len(columns))])
    rows = rng.integers(0, len(W), 5)
    factors = rng.choice([-2.0, 0.5, 1, 4], 5)  # powers of two: exact for real rows too
    W = np.vstack([W, W[rows] * factors[:, None]])
    c = np.concatenate([c, rng.uniform(0.1, 10, 5)])
    order, cells = rng.permutation(len(W)), rng.permutation(W.shape[1])
    return W[order][:, cells], c[order]


@quietly
@given(seeds, relations)
def test_what_is_kept_stands_for_the_rest(seed, neighbours):
    W, c = padded(seed)
    small = reduce(W, c, neighbours)
    full_columns = small.W[:, small.cells] * small.signs
    np.testing.assert_array_equal(full_columns, W[small.queries])
    if neighbours == "replace":
        assert np.all(small.signs == 1)
    # every dropped query is a multiple of a kept one that is at least as strict
    for row, target in zip(W, c, strict=True):
        kept = W[small.queries]
        at = np.flatnonzero(row)[0]
        factors = np.divide(row[at], kept[:, at], out=np.zeros(len(kept)), where=kept[:, at] != 0)
        same = np.isclose(factors[:, None] * kept, row).all(axis=1)
        assert same.sum() == 1
        assert (factors**2 * small.c)[same][0] <= target * (1 + 1e-12)


@quietly
@given(seeds)
def test_nothing_redundant_is_left(seed):
    W, c = padded(seed)
    small = reduce(W, c).W
    for matrix, by_columns in ((small, False), (small.T, True)):
        assert matrix.any(axis=1).all()
        unit = matrix / np.linalg.norm(matrix, axis=1)[:, None]
        cosines = np.abs(unit @ unit.T) - np.eye(len(unit))
        equal = cosines > 1 - 1e-12
        if by_columns:  # only columns equal up to sign are merged, not proportional ones
            lengths = np.linalg.norm(matrix, axis=1)
            equal &= np.isclose(lengths[:, None], lengths)
        assert not equal.any()


@quietly
@given(seeds, relations)
def test_expansion_is_as_good_in_both_bounds(seed, neighbours):
    W, c = padded(seed)
    small = reduce(W, c, neighbours)
    rng = np.random.default_rng(seed)
    d, paired = small.W.shape[1], neighbours == "replace"
    if paired and d == 1:
        return
    A = rng.standard_normal((d, d)) + 2 * np.eye(d)
    p = rng.uniform(0.1, 1, d * (d - 1) // 2 if paired else d)
    q = rng.uniform(0.1, 1, len(small.c))
    inner = Design("x", small.W, small.c, A, neighbours=neighbours)
    outer = Design("x", W, c, small.expand(A), neighbours=neighbours)
    assert outer.mu == pytest.approx(inner.mu, rel=1e-9)
    assert outer.k == pytest.approx(inner.k, rel=1e-9)
    full = (small.expand_p(p, paired=paired), small.expand_q(q))
    assert lower_bound(W, c, *full, neighbours) == pytest.approx(
        lower_bound(small.W, small.c, p, q, neighbours), rel=1e-9
    )


def test_signs_merge_for_add_remove_only():
    W = np.array([[1.0, -1.0, 0.0]])
    assert reduce(W, np.ones(1)).W.shape == (1, 1)
    assert reduce(W, np.ones(1), "replace").W.shape == (1, 3)


def test_zero_columns_stay_under_replace_as_one_cell():
    W = np.array([[1.0, 0.0, 0.0]])
    assert reduce(W, np.ones(1), "replace").W.tolist() == [[1.0, 0.0]]


def test_minus_zero_is_zero():
    W = np.array([[1.0, 1.0, 0.0], [0.0, -0.0, 1.0]])
    assert reduce(W, np.ones(2)).cells.tolist() == [0, 0, 1]


def test_integer_rows_merge_whatever_their_factor():
    W = np.outer([3.0, 7.0, -5.0, 11.0], [2.0, -3.0, 0.0, 13.0])
    assert reduce(W, np.ones(4)).queries.tolist() == [3]


def test_every_query_can_be_kept():
    W = np.array([[1.0], [2.0]])
    assert len(reduce(W, np.ones(2)).c) == 1
    assert len(reduce(W, np.ones(2), every_query=True).c) == 2


def test_colliding_hashes_merge_nothing_unequal(monkeypatch):
    import sys

    module = sys.modules["noiseshape.design.reduce"]
    monkeypatch.setattr(module, "_hashes", lambda rows, among: np.zeros(len(among), np.uint64))
    W = np.array([[1.0, 2.0, 1.0], [0.0, 1.0, 0.0]])
    small = reduce(W, np.ones(2))
    np.testing.assert_array_equal(small.W[:, small.cells] * small.signs, W[small.queries])
