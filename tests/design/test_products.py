"""Questions about marginals in products of contrasts, against the dense designs of the same."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from noiseshape.design import fit, marginals
from noiseshape.design.marginals import COST, solved
from noiseshape.design.products import PRODUCTS, fitted, frontier, problem_of, products
from noiseshape.errors import InvalidInput
from noiseshape.strategies import Residual
from noiseshape.strategies.contrast import Helmert
from noiseshape.tables.asks import Ask, everything


def up_to(n):
    return np.tril(np.ones((n, n)))


def written_out(sizes, asks, variance):
    blocks, targets = [], []
    for ask, target in zip(asks, variance, strict=True):
        rows = ask.written(sizes)
        shape = [n if i in ask.members else 1 for i, n in enumerate(sizes)]
        wide = np.broadcast_to(rows.reshape(len(rows), *shape), (len(rows), *sizes))
        blocks.append(wide.reshape(len(rows), -1))
        targets.append(np.broadcast_to(target, (len(rows),)))
    return np.vstack(blocks), np.concatenate(targets)


def executed(design, asks):
    return Residual.of(design.contrasts, design.made.problem.lattice, design.made.u, asks)


MIXED = (
    (8, 2, 3),
    [
        Ask((0, 1), (up_to(8), None)),
        everything((0, 2)),
        Ask((1, 2), weights=np.arange(12.0).reshape(2, 2, 3) - 3),
        Ask((0,), (np.array([[1.0] * 4 + [0] * 4, [0] * 4 + [1.0] * 4]),)),
        everything(()),
    ],
    [np.linspace(4, 9, 16), np.array([9.0]), np.array([30.0, 50.0]), np.array([2.0]),
     np.array([1.0])],
)  # fmt: skip


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_what_it_states_is_what_is_executed(neighbours):
    """Variances and costs of the problem, against the strategy and the table written out."""
    sizes, asks, variance = MIXED
    design = products(sizes, asks, variance, neighbours=neighbours)
    strategy = executed(design, asks)
    W, c = written_out(sizes, asks, variance)
    ratio = strategy.variance / c
    assert ratio.max() == pytest.approx(1, rel=1e-6)
    assert_allclose(np.diag(strategy.densify().covariance()), strategy.variance, rtol=1e-8)
    cost = float(strategy.cost_of_one(neighbours))
    assert cost <= design.made.alpha * (1 + 1e-9)
    if neighbours == "add-remove":
        assert cost == pytest.approx(design.made.alpha, rel=1e-9)
    assert design.made.certificate.covers == PRODUCTS
    dense = fit(W, c, neighbours=neighbours)
    assert dense.certificate.lower <= cost * (1 + 1e-9)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_marginals_alone_are_the_design_of_marginals(data):
    sizes = data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    sets = data.draw(st.lists(st.sets(st.integers(0, len(sizes) - 1)), min_size=1, max_size=4))
    sets = [tuple(sorted(s)) for s in sets]
    c = data.draw(st.lists(st.floats(1, 99), min_size=len(sets), max_size=len(sets)))
    design = products(sizes, [everything(s) for s in sets], [np.array([v]) for v in c], gap=1e-6)
    plain = marginals(sizes, sets, c, gap=1e-6)
    assert design.made.alpha == pytest.approx(plain.alpha, rel=3e-6)
    assert design.made.certificate.covers == COST


def test_contrasts_of_its_own_cost_less_than_helmerts():
    """Ranges by another attribute: fitted contrasts, against Helmert's for the same questions."""
    ranges = np.array(
        [[float(i <= x <= j) for x in range(16)] for i in range(16) for j in range(i, 16)]
    )
    asks, variance = [Ask((0, 1), (ranges, None)), everything((1,))], [np.ones(1)] * 2
    design = products((16, 3), asks, variance)
    plain = [Helmert(16), Helmert(3)]
    problem, _ = problem_of(plain, asks, variance)
    assert design.made.alpha < 0.75 * solved(problem).alpha


@pytest.mark.parametrize(
    ("sizes", "asks", "variance"),
    [
        ((12,), [Ask((0,), (up_to(12),))], [np.ones(1)]),
        ((12, 3), [Ask((0, 1), (up_to(12), None))], [np.ones(1)]),
        ((6, 5), [Ask((0, 1), (up_to(6), up_to(5)))], [np.ones(1)]),
        ((10, 3), [Ask((0, 1), (up_to(10), None)), everything((1,))],
         [np.linspace(1, 5, 30), np.full(1, 2.0)]),
    ],
)  # fmt: skip
def test_products_of_fitted_attributes_are_the_optimum_of_all_where_that_is_a_product(
    sizes, asks, variance
):
    """An attribute that is always asked about is measured whole, and costs what fit costs."""
    design = products(sizes, asks, variance)
    assert design.contrasts[0].whole
    dense = fit(*written_out(sizes, asks, variance))
    assert design.made.alpha == pytest.approx(dense.alpha, rel=6e-3)
    strategy = executed(design, asks)
    _, c = written_out(sizes, asks, variance)
    assert (strategy.variance / c).max() == pytest.approx(1, rel=1e-6)


def test_an_attribute_with_structure_keeps_it_beside_one_of_equal_size():
    """Prefixes of one attribute, cells of another of as many values: each its own contrasts."""
    asks = [Ask((0,), (up_to(6),)), everything((1,))]
    design = products((6, 6), asks, [np.ones(1), np.ones(1)])
    first, second = design.contrasts
    assert isinstance(second, Helmert)
    assert not isinstance(first, Helmert)
    swapped = products((6, 6), [Ask((1,), (up_to(6),)), everything((0,))], [np.ones(1)] * 2)
    assert isinstance(swapped.contrasts[0], Helmert)
    assert swapped.made.alpha == pytest.approx(design.made.alpha, rel=1e-3)


def test_sums_count_every_answer():
    sizes, asks, variance = (5, 3), [everything((0, 1)), everything((1,))], [np.ones(1)] * 2
    made = products(sizes, asks, variance, total=True).made
    plain = marginals(sizes, [(0, 1), (1,)], 1.0, objective="sum")
    assert made.certificate.achieved == pytest.approx(plain.certificate.achieved, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_the_frontier_holds_what_nothing_exceeds(pairs):
    inside, outside = np.array(pairs, dtype=float).T
    kept = set(zip(*(side.tolist() for side in frontier(inside, outside)), strict=True))
    for a, b in pairs:
        beaten = any((x >= a and y >= b) and (x, y) != (a, b) for x, y in pairs)
        assert ((a, b) in kept) == (not beaten)


def test_many_answers_with_one_target_are_told_by_the_worst(monkeypatch):
    from noiseshape.design import products as module

    asks, variance = [Ask((0, 1), (up_to(12), up_to(12)))], [np.ones(1)]
    close = products((12, 12), asks, variance)
    monkeypatch.setattr(module, "MOST_CLASSES", 4)
    safe = products((12, 12), asks, variance)
    assert executed(safe, asks).variance.max() <= 1 + 1e-6
    assert safe.made.alpha >= close.made.alpha * (1 - 1e-3)


def test_fitted_contrasts_sum_to_zero_and_span_what_is_asked():
    W = np.vstack([up_to(9), np.eye(9)])
    made = fitted(W, np.ones(18))
    assert (made.matrix.astype(object).sum(axis=1) == 0).all()
    made.check_spans(W)
    assert fitted(np.ones((1, 4)), np.ones(1)) is None
    narrow = fitted(np.array([[1.0, 1, 0, 0]]), np.ones(1))
    assert narrow.rows == 1


def test_one_value_tells_nobody_apart():
    with pytest.raises(InvalidInput, match="attribute 1 has one value"):
        products((3, 1), [everything((0,))], [np.ones(1)])
    assert math.isfinite(products((3, 2), [everything((0,))], [np.ones(1)]).made.alpha)
