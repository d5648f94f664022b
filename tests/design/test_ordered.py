"""Structured designs of an ordered attribute: targets met, costs exact, bounds below them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from noiseshape.design import fit
from noiseshape.design.ordered import Targets, least, ordered
from noiseshape.design.spectrum import prefix_bound
from noiseshape.errors import InvalidInput, TooLarge
from noiseshape.strategies import Spans, Toeplitz

D = 60
BLOCKS = np.arange(0, D, 10)
CASES = {
    "prefixes": Targets(Spans.prefixes(D), 9.0),
    "prefixes of unlike targets": Targets(Spans.prefixes(D), np.linspace(4, 40, D)),
    "blocks and cells": Targets(
        Spans(np.r_[BLOCKS, np.arange(D)], np.r_[BLOCKS + 10, np.arange(1, D + 1)], D),
        np.r_[np.full(len(BLOCKS), 9.0), np.full(D, 9.0)],
    ),
    "some ranges": Targets(Spans([3, 0, 50, 20], [9, 60, 60, 30], D), [4.0, 9.0, 1.0, 2.0]),
    "all ranges": Targets(Spans.prefixes(D), 900.0, np.full(D, 9.0)),
    "ranges by length": Targets(Spans.prefixes(D), 90.0, np.r_[[4.0] * 5, [30.0] * 55]),
}


def all_spans(targets):
    return targets.listed()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("name", list(CASES))
def test_targets_are_met_between_two_bounds(name, neighbours):
    """Dense from the integers that are executed, and the optimum that no design is below."""
    targets = CASES[name]
    made = ordered(targets, neighbours=neighbours)
    low, high, c = all_spans(targets)
    W = Spans(low, high, D).written()
    dense = made.strategy.densify().asking(W)
    assert (dense.variance / c).max() <= 1
    assert (dense.variance / c).max() > 1 - 1e-6
    assert_allclose(float(dense.cost_of_one(neighbours)), made.certificate.achieved, rtol=1e-9)
    best = fit(W, np.array(c), neighbours=neighbours, gap=1e-3).certificate
    assert made.certificate.lower <= best.achieved
    assert made.certificate.achieved >= best.lower
    assert made.considered[made.name] ** 2 == pytest.approx(made.certificate.achieved)
    assert made.considered[made.name] == min(made.considered.values())


def test_each_family_is_the_best_somewhere():
    assert ordered(CASES["prefixes"]).name == "series"
    assert ordered(CASES["blocks and cells"]).name in ("tree", "wavelet")
    assert ordered(CASES["prefixes"], families=["tree"]).name == "tree"
    # Blocks of 60 in an odd chain: only a tree of those widths has them as nodes.
    a, d = np.arange(0, 3000, 60), 3000
    spans = Spans(np.r_[a, np.arange(d)], np.r_[a + 60, np.arange(1, d + 1)], d)
    made = ordered(Targets(spans, 100.0))
    assert (made.name, made.strategy.widths) == ("tree", (1, 60))
    # Two levels of equal error cost (1 + small)^2 of one: sqrt 2 + 1 over sqrt 2 at the very most.
    assert made.certificate.achieved < 0.02


def test_prefixes_come_within_a_tenth_of_the_bound():
    for d in (1000, 5000):
        made = ordered(Targets(Spans.prefixes(d), 100.0))
        assert made.certificate.gap < 0.1
        assert len(made.strategy.level_rows) > 1
        # One scale for all rows, the square root as published, costs a tenth more.
        plain = Toeplitz.power(Spans.prefixes(d), 0.5, 2.0**40)
        worst = float(plain.variance.max()) / 100
        assert float(plain.cost().mu_squared) * worst > 1.08 * made.certificate.achieved


def test_bounds_from_contained_sums():
    """Nested sums anywhere, from either end; single answers; never above what a design costs."""
    d = 400
    low = np.arange(d - 1)
    suffixes = Targets(Spans(low, np.full(d - 1, d), d), 1.0)
    prefixes = Targets(Spans.prefixes(d - 1), 1.0)
    assert least(suffixes)[0] == pytest.approx(least(prefixes)[0], rel=1e-12)
    assert "399 nested sums" in least(suffixes)[1]
    alone = Targets(Spans([3], [9], d), 0.25)
    assert least(alone) == (4.0, "a single answer")
    assert least(alone, "replace")[0] == 0
    bands = Targets(Spans.prefixes(d), 1e9, np.r_[np.full(50, 1.0), np.full(350, 1e6)])
    assert least(bands)[0] == pytest.approx(prefix_bound(np.ones(50)), rel=1e-9)


def test_refusals():
    spans = Spans.prefixes(8)
    with pytest.raises(InvalidInput, match="above 0"):
        Targets(spans, 0.0)
    with pytest.raises(InvalidInput, match="by length"):
        Targets(spans, 1.0, np.ones(9))
    with pytest.raises(InvalidInput, match="families are"):
        ordered(Targets(spans, 1.0), families=["poem"])
    # Ranges of thousands of lengths far from the first cell: no series states them one by one.
    d, n = 1 << 20, 4000
    many = Targets(Spans(d - np.arange(1, n + 1), np.full(n, d), d), 1.0)
    with pytest.raises(TooLarge, match="ask for fewer"):
        ordered(many, families=["series"])
