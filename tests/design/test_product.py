"""Products of designs: costs, errors and bounds multiply."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from noiseshape.design import fit
from noiseshape.design.certificate import lower_bound
from noiseshape.design.ordered import Targets, ordered
from noiseshape.design.product import kronecker, union
from noiseshape.errors import InvalidInput
from noiseshape.privacy import People
from noiseshape.strategies import Diagonal, Kronecker, Spans, Tree

W1, C1 = np.tril(np.ones((5, 5))), np.linspace(1, 2, 5)
W2, C2 = np.vstack([np.eye(3), np.ones((1, 3))]), np.array([1.0, 1.0, 1.0, 4.0])


def test_the_dual_is_multiplicative():
    """F(p x p', q x q') = F(p, q) F(p', q'), whatever the weights."""
    rng = np.random.default_rng(0)
    p1, q1, p2, q2 = (rng.dirichlet(np.ones(n)) for n in (5, 5, 3, 4))
    both = lower_bound(np.kron(W1, W2), np.kron(C1, C2), np.kron(p1, p2), np.kron(q1, q2))
    alone = lower_bound(W1, C1, p1, q1) * lower_bound(W2, C2, p2, q2)
    assert_allclose(both, alone, rtol=1e-10)


def test_the_product_of_optima_is_the_optimum_of_the_product():
    made = kronecker([fit(W1, C1, gap=1e-5), fit(W2, C2, gap=1e-5)], variance=50.0)
    whole = fit(np.kron(W1, W2), 50 * np.kron(C1, C2), gap=1e-4).certificate
    assert made.certificate.gap < 1e-4
    assert whole.lower <= made.certificate.achieved
    assert made.certificate.lower <= whole.achieved
    assert_allclose(made.certificate.achieved, whole.achieved, rtol=3e-4)
    variance = made.strategy.densify().variance / (50 * np.kron(C1, C2))
    assert 1 - 1e-6 < variance.max() <= 1


def test_structured_factors_are_never_written_out():
    """80,000 cells, of which a matrix would take 50 GB: true answers, exact errors."""
    age = ordered(Targets(Spans.prefixes(200), 1.0))
    day = ordered(Targets(Spans.prefixes(400), 1.0))
    made = kronecker([age, day], variance=400.0)
    assert_allclose(
        made.certificate.lower, age.certificate.lower * day.certificate.lower / 400, rtol=1e-9
    )
    assert made.certificate.gap < (1 + age.certificate.gap) * (1 + day.certificate.gap) - 1 + 1e-6
    x = np.arange(80_000) % 11
    truth = x.reshape(200, 400).cumsum(axis=0).cumsum(axis=1).ravel()
    assert_allclose(made.strategy.rebuild(made.strategy.apply(x)), truth, atol=1e-4)
    assert 1 - 1e-6 < made.strategy.variance.max() / 400 <= 1


def test_a_union_is_bounded_by_its_parts():
    rows, cells = fit(W1, C1, gap=1e-4), fit(np.eye(5), 1.0, gap=1e-4)
    parts = [kronecker([rows, cells]), kronecker([cells, rows])]
    W = np.vstack([np.kron(W1, np.eye(5)), np.kron(np.eye(5), W1)])
    c = np.concatenate([np.kron(C1, np.ones(5)), np.kron(np.ones(5), C1)])
    best = fit(W, c, gap=1e-3).certificate
    assert union(parts) <= best.achieved
    assert union(parts) > 0.5 * best.lower


def test_costs_of_a_product_are_told_without_its_profile():
    tree = Tree(Spans.prefixes(3000), [1, 10, 3000], [64.0, 70.0, 90.0])
    made = Kronecker([Diagonal([64.0, 80.0]), tree])
    assert made.cost().mu_squared == made.profile().greatest
    replace = People(neighbours="replace")
    # Cells of two groups share no row, and those of one are the tree's.
    bound = made.cost(replace).mu_squared
    assert 2 * made.cost().mu_squared >= bound >= tree.cost(replace).mu_squared / 64**2
    small = Tree(Spans.prefixes(30), [1, 10, 30], [64.0, 70.0, 90.0])
    exact = Kronecker([Diagonal([64.0, 80.0]), small]).densify().greatest_difference()
    assert exact <= bound


def test_refusals():
    with pytest.raises(InvalidInput, match="at least one design"):
        kronecker([])
    with pytest.raises(InvalidInput, match="at least one product"):
        union([])
    replaced = fit(W1, C1, neighbours="replace", gap=1e-2)
    with pytest.raises(InvalidInput, match="certified by its factors"):
        kronecker([replaced])
    with pytest.raises(InvalidInput, match="above 0"):
        kronecker([fit(W1, C1, gap=1e-2)], variance=-1)
