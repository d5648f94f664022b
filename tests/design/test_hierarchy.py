"""Trees: their shape, their variance against brute force, and how the branching is chosen."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from benchmarks.workloads import age_pyramids, pl94, prefixes
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.design.hierarchy import (
    _least_branching,
    average_range_variance,
    hierarchy,
    optimal_branching,
    tree,
    two_level_tree,
)
from noiseshape.errors import InvalidInput, NoiseshapeError, TooLarge


def all_ranges(d: int) -> np.ndarray:
    cells = np.arange(d)
    return np.array([(i <= cells) & (cells <= j) for i in range(d) for j in range(i, d)], float)


def range_variance(H: np.ndarray) -> float:
    """Return the mean variance over all ranges at mu = 1, by brute force."""
    R = all_ranges(H.shape[1]) @ np.linalg.pinv(H)
    return float((R**2).sum(axis=1).mean() * (H**2).sum(axis=0).max())


# ---- trees --------------------------------------------------------------------------------------


def test_a_complete_tree():
    expected = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4)]
    np.testing.assert_array_equal(tree(4, 2), expected)


def test_a_ragged_tree():
    expected = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1], *np.eye(5)]
    np.testing.assert_array_equal(tree(5, 3), expected)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(d=st.integers(1, 200), branching=st.integers(2, 20))
def test_every_cell_lies_in_one_node_of_each_level(d, branching):
    H = tree(d, branching)
    levels = next(h for h in range(10) if branching**h >= d) + 1
    np.testing.assert_array_equal(H.sum(axis=0), levels)
    assert set(np.unique(H)) <= {0.0, 1.0}
    np.testing.assert_array_equal(H[0], 1)
    np.testing.assert_array_equal(H[-d:], np.eye(d))


def test_two_level_tree_of_a_square():
    H = two_level_tree(9)
    assert H.shape == (1 + 3 + 9, 9)
    np.testing.assert_array_equal(H[1:4], np.kron(np.eye(3), np.ones(3)))
    np.testing.assert_array_equal(H.sum(axis=0), 3)


def test_two_level_tree_leaves_the_last_cells_in_no_block():
    H = two_level_tree(11)
    assert H.shape == (1 + 3 + 11, 11)
    np.testing.assert_array_equal(H.sum(axis=0), [3] * 9 + [2] * 2)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_two_level_tree_of_few_cells_has_no_blocks(d):
    np.testing.assert_array_equal(two_level_tree(d), np.vstack([np.ones(d), np.eye(d)]))


# ---- the branching factor -----------------------------------------------------------------------


@pytest.mark.parametrize(("b", "h"), [(2, 1), (2, 4), (3, 3), (4, 2), (7, 1), (25, 1), (5, 2)])
def test_average_range_variance_against_brute_force(b, h):
    assert average_range_variance(b, h) == pytest.approx(range_variance(tree(b**h, b)))


def mean_nodes(b: int, h: int) -> float:
    """Return the mean number of nodes that a range of a complete tree is the disjoint sum of."""
    d = b**h

    def held(s: int) -> float:  # ranges that hold a node of s cells, over all such nodes
        a = np.arange(0, d, s, dtype=float)
        return float(((a + 1) * (d - a - s + 1)).sum())

    sizes = [b**level for level in range(h, -1, -1)]
    used = held(d) + sum(held(s) - b * held(parent) for parent, s in itertools.pairwise(sizes))
    return used / (d * (d + 1) / 2)


@pytest.mark.parametrize(("b", "h"), [(2, 20), (4, 10), (16, 5), (32, 4)])
def test_the_leading_term_of_qardaji_et_al(b, h):
    assert mean_nodes(b, h) == pytest.approx((b - 1) * h - 2 * (b + 1) / 3, rel=1e-3)


def test_sixteen_is_for_laplace_noise_and_five_for_gaussian():
    # Nodes of a range times the noise of a node, as d grows: (b - 1) h^(1 + power), h = log_b d.
    b = np.arange(2, 60)
    laplace, gaussian = ((b - 1) / np.log(b) ** (1 + power) for power in (2, 1))
    assert abs(b[laplace.argmin()] - 16) <= 1
    assert b[gaussian.argmin()] == 5


@pytest.mark.parametrize("d", [5, 16, 27, 50, 81])
def test_optimal_branching_is_the_best_of_complete_trees(d):
    best = optimal_branching(d)

    def variance(b: int) -> float:
        height = next(h for h in range(10) if b**h >= d)
        return average_range_variance(b, height)

    assert variance(best) == pytest.approx(min(variance(b) for b in range(2, d + 1)))


@settings(deadline=None, derandomize=True, max_examples=200)
@given(d=st.integers(1, 10**6), height=st.integers(1, 20))
def test_least_branching_is_the_least(d, height):
    b = _least_branching(d, height)
    assert b**height >= d
    assert b == 2 or (b - 1) ** height < d


@pytest.mark.parametrize(("d", "height", "b"), [(27, 3, 3), (125, 3, 5), (10**6, 6, 10)])
def test_least_branching_of_exact_powers(d, height, b):
    assert _least_branching(d, height) == b


@pytest.mark.parametrize(("d", "b"), [(1, 2), (2, 2), (4, 4), (16, 4), (64, 2), (256, 2)])
def test_optimal_branching_examples(d, b):
    assert optimal_branching(d) == b


# ---- designs ------------------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, max_examples=30)
@given(d=st.integers(1, 40), seed=st.integers(0, 1000), two_level=st.booleans())
def test_a_hierarchy_meets_its_targets_with_equal_noise_on_nodes(d, seed, two_level):
    c = np.random.default_rng(seed).uniform(1, 9, size=d)
    design = hierarchy(prefixes(d)[0], c, two_level=two_level)
    assert design.name == "hierarchy"
    assert design.ratios.max() == pytest.approx(1, abs=1e-9)
    weights = design.A[design.A != 0]
    np.testing.assert_allclose(weights, weights[0])
    H = two_level_tree(d) if two_level else tree(d, optimal_branching(d))
    R = prefixes(d)[0] @ np.linalg.pinv(H)
    k = ((R**2).sum(axis=1) / c).max()
    assert design.alpha == pytest.approx(k * H.sum(axis=0).max())


def test_a_given_branching_is_used():
    designs = [hierarchy(*prefixes(16), branching=b) for b in (2, 4, 16)]
    assert [len(design.A) for design in designs] == [31, 21, 17]
    assert hierarchy(*prefixes(16)).alpha == designs[1].alpha


def test_several_attributes_are_a_kronecker_product():
    W, c = age_pyramids()
    design = hierarchy(W, c, sizes=(2, 116), ordered=(False, True))
    shape = np.kron(np.vstack([np.ones((1, 2)), np.eye(2)]), tree(116, optimal_branching(116)))
    np.testing.assert_allclose(design.A / design.A.max(), shape)
    # Knowing the attributes beats a tree across both sexes in one row.
    assert design.alpha < hierarchy(W, c).alpha


def test_categories_have_their_cells_and_their_total():
    design = hierarchy(*pl94(), sizes=(2, 2, 63), ordered=(False,) * 3)
    assert design.A.shape == (3 * 3 * 64, 252)
    np.testing.assert_allclose(design.profile, design.alpha)
    sizes_of_one = hierarchy(np.eye(3), 1, sizes=(1, 3, 1), ordered=(False,) * 3)
    assert sizes_of_one.A.shape == (4, 3)


def test_cells_that_are_ruled_out_are_left_out_of_the_product():
    kept = np.array([True, True, False, True, True, True])
    W = np.tril(np.ones((5, 5)))
    design = hierarchy(W, 1, sizes=(2, 3), ordered=(False, True), branching=3, kept=kept)
    shape = np.kron(np.vstack([np.ones((1, 2)), np.eye(2)]), tree(3, 3))[:, kept]
    np.testing.assert_allclose(design.A / design.A.max(), shape)


def test_no_attribute_is_one_cell():
    assert hierarchy([[1.0]], 4, sizes=(), ordered=()).alpha == pytest.approx(1 / 4)


def test_all_attributes_are_ordered_unless_told():
    W = np.kron(prefixes(4)[0], prefixes(3)[0])
    design = hierarchy(W, 1, sizes=(4, 3), branching=2)
    assert len(design.A) == len(tree(4, 2)) * len(tree(3, 2))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"branching": 1}, "branching"),
        ({"branching": 2.5}, "branching"),
        ({"branching": math.nan}, "branching"),
        ({"sizes": (2, 3)}, "multiply to the workload's 4 cells"),
        ({"sizes": (-2, -2)}, "positive"),
        ({"sizes": ()}, "positive"),
        ({"sizes": (2, 2), "ordered": (True,)}, "each of 2 attributes"),
        ({"sizes": (2, 3), "kept": [True] * 5 + [False]}, "of which 5 are kept, .* 4 cells"),
        ({"sizes": (2, 3), "kept": [True] * 4}, "multiply to the workload's 4 cells"),
        ({"kept": [1, 1, 1, 1]}, "kept must hold truth values, got int64"),
    ],
)
def test_bad_trees_are_refused(bad, words):
    with pytest.raises(InvalidInput, match=words):
        hierarchy(*prefixes(4), **bad)


def test_a_strategy_too_large_for_memory_is_refused_before_it_is_formed():
    sizes = (2,) * 13  # 3^13 nodes over 2^13 cells: 300 GB
    with pytest.raises(TooLarge, match=r"1594323 nodes over 8192 cells needs about 313.5 GB"):
        hierarchy(np.ones((1, 2**13)), 1, sizes=sizes)


def test_bad_workloads_are_refused():
    with pytest.raises(NoiseshapeError, match="zero"):
        hierarchy([[0, 0], [1, 1]], 1)
