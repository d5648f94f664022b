"""Marginals in the residual basis, against the dense designs of the same queries."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from noiseshape.design import fit, marginals, total
from noiseshape.design.certificate import lower_bound
from noiseshape.design.marginals import Residuals, solved
from noiseshape.errors import InvalidInput, NotConverged


def written_out(n, asked, c):
    """W and c with every cell of every marginal, the plain way."""
    blocks, targets = [], []
    for members, target in zip(asked, c, strict=True):
        block = np.ones((1, 1))
        for i, size in enumerate(n):
            block = np.kron(block, np.eye(size) if i in members else np.ones((1, size)))
        blocks.append(block)
        targets.append(np.full(len(block), target))
    return np.vstack(blocks), np.concatenate(targets)


@st.composite
def problems(draw, most=24):
    n = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3).filter(
        lambda n: math.prod(n) <= most))  # fmt: skip
    every = [t for k in range(len(n) + 1) for t in combinations(range(len(n)), k)]
    asked = draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True))
    c = draw(st.lists(st.floats(0.5, 200), min_size=len(asked), max_size=len(asked)))
    return n, asked, np.array(c)


@settings(max_examples=40, deadline=None)
@given(problems())
def test_it_agrees_with_the_dense_optimum(problem):
    n, asked, c = problem
    made = marginals(n, asked, c, gap=1e-5)
    W, targets = written_out(n, asked, c)
    dense = fit(W, targets, gap=1e-5)
    assert made.certificate.gap <= 1e-5
    assert made.k <= 1 + 1e-12
    assert made.certificate.lower <= dense.alpha * (1 + 1e-9)
    assert dense.certificate.lower <= made.alpha * (1 + 1e-9)
    assert made.alpha == pytest.approx(dense.alpha, rel=2.1e-5)


@settings(max_examples=25, deadline=None)
@given(problems(most=16), st.booleans())
def test_it_agrees_with_the_dense_optimum_when_people_are_replaced(problem, may_leave):
    n, asked, c = problem
    made = marginals(n, asked, c, neighbours="replace", rows_may_leave=may_leave, gap=1e-3)
    W, targets = written_out(n, asked, c)
    dense = fit(np.pad(W, ((0, 0), (0, int(may_leave)))), targets, neighbours="replace", gap=1e-3)
    assert made.alpha == pytest.approx(dense.alpha, rel=2.1e-3, abs=1e-12)
    assert made.certificate.lower <= dense.alpha * (1 + 1e-9)


@settings(max_examples=15, deadline=None)
@given(problems(), st.booleans())
def test_sums_agree_with_the_dense_total(problem, weighted):
    n, asked, c = problem
    W, targets = written_out(n, asked, c)
    sizes = np.array([math.prod(n[i] for i in t) for t in asked])
    each = np.linspace(1, 3, len(asked)) if weighted else np.ones(len(asked))
    made = marginals(n, asked, c, objective="sum", weights=each * sizes if weighted else None)
    dense = total(W, targets, weights=np.repeat(each, sizes), gap=1e-6)
    assert made.certificate.achieved == pytest.approx(dense.certificate.achieved, rel=1e-5)
    assert made.certificate.gap < 1e-9


@settings(max_examples=20, deadline=None)
@given(problems())
def test_the_lower_bound_is_the_nuclear_norm_of_the_whole_table(problem):
    """Second derivation: uniform p on cells, q spread over each marginal's cells."""
    n, asked, c = problem
    made = marginals(n, asked, c)
    W, targets = written_out(n, asked, c)
    sizes = [math.prod(n[i] for i in t) for t in asked]
    q = np.repeat(made.q / sizes, sizes)
    norm = lower_bound(W, targets, np.full(W.shape[1], 1 / W.shape[1]), q)
    assert made.certificate.lower == pytest.approx(norm, rel=1e-7)


@settings(max_examples=20, deadline=None)
@given(problems())
def test_costs_and_variances_are_those_of_the_precision_written_out(problem):
    n, asked, c = problem
    made = marginals(n, asked, c)
    lattice = made.problem.lattice
    P = np.zeros((math.prod(n),) * 2)
    for number, u in enumerate(made.u):
        block = np.ones((1, 1))
        for i, size in enumerate(n):
            J = np.ones((size, size))
            block = np.kron(block, np.eye(size) - J / size if i in lattice.members(number) else J)
        P += block / u
    assert_allclose(np.diag(P), made.alpha, rtol=1e-9)
    W, _ = written_out(n, asked, c)
    variances = np.diag(W @ np.linalg.pinv(P, rcond=1e-10) @ W.T)
    sizes = [math.prod(n[i] for i in t) for t in asked]
    assert_allclose(variances, np.repeat(made.variances, sizes), rtol=1e-6)


def test_attributes_of_equal_size_are_not_one_attribute():
    """Keyed by size, these two would swap their noise, or share it."""
    sizes = {"home": 4, "work": 4}
    made = marginals(sizes, [("home",), ("work",)], [1.0, 400.0], gap=1e-6)
    swapped = marginals(sizes, [("home",), ("work",)], [400.0, 1.0], gap=1e-6)
    lattice = made.problem.lattice
    home, work = lattice.number([0]), lattice.number([1])
    assert made.u[home] < made.u[work] / 10
    assert_allclose(swapped.u[[work, home]], made.u[[home, work]], rtol=1e-3)
    both = marginals(sizes, [("home",), ("work",), ("home", "work")], [1.0, 400.0, 9.0], gap=1e-6)
    dense = fit(*written_out([4, 4], [(0,), (1,), (0, 1)], [1.0, 400.0, 9.0]), gap=1e-6)
    assert both.alpha == pytest.approx(dense.alpha, rel=1e-5)


def test_a_hundred_attributes():
    sets = [t for k in (1, 2) for t in combinations(range(100), k)]
    c = np.random.default_rng(0).uniform(1, 1000, len(sets))
    made = marginals([10] * 100, sets, c)
    assert made.certificate.gap <= 1e-3
    assert made.k == pytest.approx(1)


def test_within_and_scaled():
    made = marginals([3, 4], [(0, 1), ()], [4.0, 9.0])
    assert made.within(0.5).mu == pytest.approx(0.5)
    assert made.scaled(2).k == pytest.approx(2)
    assert made.within(0.5).certificate is made.certificate


def test_the_number_of_people_is_public_when_they_are_replaced():
    made = marginals([3, 4], [()], 4.0, neighbours="replace")
    assert made.alpha == 0
    assert made.certificate.gap == 0


def test_many_attributes_replaced_are_bounded_from_both_sides():
    sets = list(combinations(range(10), 2))
    made = marginals([3] * 10, sets, 9.0, neighbours="replace", gap=1e-3)
    few = marginals([3] * 8, list(combinations(range(8), 2)), 9.0, neighbours="replace")
    assert few.certificate.gap <= 1e-3
    # Beyond eight attributes the bound above is not that of the average pair.
    assert 1e-3 < made.certificate.gap <= 0.5 + 1e-3


def test_a_set_asked_twice_keeps_the_tighter_target_and_says_so():
    made = marginals({"a": 3, "b": 4}, [("a", "b"), ("b", "a"), ("a",)], [100.0, 25.0, 50.0])
    assert made.variances[0] == made.variances[1] <= 25
    (note,) = made.notes
    assert "a, b" in note
    assert "standard error of 5" in note
    assert not marginals({"a": 3}, [("a",), ("a",)], 4.0).notes


def test_an_optimum_that_is_not_reached_says_so():
    with pytest.raises(NotConverged, match="after 2 steps"):
        marginals([3, 4], [(0, 1), (0,), ()], [9, 4, 1], gap=1e-9, max_iterations=2)


def test_a_wrong_coefficient_is_found():
    """Negative control: means counted once instead of squared break the agreement."""
    n, asked, c = [3, 4], [(0, 1), (0,)], np.array([4.0, 9.0])
    right = marginals(n, asked, c, gap=1e-6)
    problem = right.problem
    wrong = problem.B.copy()
    wrong.data = np.where(wrong.data < 0.5, np.sqrt(wrong.data), wrong.data)
    made = solved(Residuals(problem.lattice, wrong, problem.c, problem.G, problem.above), gap=1e-6)
    dense = fit(*written_out(n, asked, c), gap=1e-6)
    assert right.alpha == pytest.approx(dense.alpha, rel=3e-6)
    assert made.alpha != pytest.approx(dense.alpha, rel=1e-2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (({"a": 1, "b": 2}, [("b",)], 4.0), "'a' has one value and tells nobody apart"),
        (({"a": 0}, [("a",)], 4.0), "'a' has no value"),
        (({"a": 2.5}, [("a",)], 4.0), "whole number"),
        (({}, [()], 4.0), "need attributes"),
        (({"a": 3}, [], 4.0), "nothing is asked"),
        (({"a": 3}, ["a"], 4.0), "is a list of attributes"),
        (({"a": 3}, [("b",)], 4.0), "'b', which is not among the 1 attributes"),
        (({"a": 3}, [("a", "a")], 4.0), "names an attribute twice"),
        (({"a": 3}, [("a",)], -1.0), "above 0"),
        (({"a": 3}, [("a",)], np.nan), "finite"),
        (({"a": 3}, [("a",)], [1.0, 2.0]), "one for each of 1"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        marginals(*arguments)


def test_bad_objectives():
    with pytest.raises(InvalidInput, match='"max", or "sum"'):
        marginals([3], [(0,)], 1.0, objective="least")
    with pytest.raises(InvalidInput, match='"max", or "sum"'):
        marginals([3], [(0,)], 1.0, weights=[1.0])
    with pytest.raises(InvalidInput, match="above 0"):
        marginals([3], [(0,)], 1.0, objective="sum", weights=[0.0])
    with pytest.raises(InvalidInput, match="add-remove"):
        marginals([3], [(0,)], 1.0, neighbours="swap")
