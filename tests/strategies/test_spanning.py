"""Structured strategies over one ordered attribute: each does what its dense form does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from noiseshape.errors import InvalidInput, TooLarge
from noiseshape.strategies import Diagonal, Haar, Kronecker, Spans, Toeplitz, Tree
from noiseshape.strategies.spanning import Spanning
from noiseshape.strategies.toeplitz import convolved, power_series, reciprocal, rounded_power

from .kit import REPLACE, check, check_errors, check_unbiased, written_out

RANGES = Spans([0, 2, 1, 6, 0], [7, 5, 2, 7, 3], 7)
ALL = Spans(*np.array([(i, j) for i in range(11) for j in range(i + 1, 12)]).T, 11)
COEFFICIENTS = np.array([9, 4, -3, 2, 2, 1, 1])

MEMBERS = {
    "binary tree": Tree(Spans.prefixes(8), [1, 2, 4, 8], [64.0, 70.5, 90.0, 81.0]),
    "tree cut short": Tree(RANGES, [1, 3, 6, 12], [2.0**21, 2.0**20, 3.0**13, 2.0**22]),
    "tree without a root": Tree(RANGES, [1, 2], [640.0, 320.0]),
    "tree of one level": Tree(RANGES, [1], [64.0]),
    "tree measured finer": Tree(RANGES, [1, 7], [64.0, 100.0], bits=3),
    "tree of one cell": Tree(Spans.each(1), [1, 2], [64.0, 65.0]),
    "square root": Toeplitz.power(Spans.prefixes(9), 0.5, 2.0**34),
    "other power": Toeplitz.power(RANGES, 0.3, 2.0**30),
    "cells": Toeplitz.power(RANGES, 0.0, 2.0**30),
    "blocks of rows": Toeplitz(RANGES, COEFFICIENTS, [64.0, 2.0**20, 3.0**9], [2, 4, 1]),
    "blocks over 11": Toeplitz(ALL, rounded_power(0.5, 11), [2.0**30, 3.0**19], [5, 6]),
    "any coefficients": Toeplitz(RANGES, COEFFICIENTS, [64.0]),
    "one coefficient": Toeplitz(Spans.each(1), [3], [64.0]),
    "wavelet": Haar(Spans.prefixes(8), [64.0, 70.0, 65.0, 90.0]),
    "wavelet cut short": Haar(RANGES, [2.0**21, 3.0**13, 2.0**20, 2.0**22]),
    "wavelet of 11": Haar(ALL, [640.0, 320.0, 1000.0, 450.0, 801.0]),
    "wavelet of one": Haar(Spans.each(1), [64.0]),
    "wavelet measured finer": Haar(RANGES, [64.0] * 4, bits=2),
}


@pytest.mark.parametrize("name", list(MEMBERS))
def test_conformance(name):
    strategy = MEMBERS[name]
    check(strategy, strategy.spans.written())


PRODUCTS = {
    "cells by prefixes": [Diagonal([64.0, 80.0]), MEMBERS["square root"]],
    "tree by power": [MEMBERS["tree cut short"].scaled(1e-3), MEMBERS["other power"].scaled(1e-3)],
    "wavelet by tree": [MEMBERS["wavelet"], MEMBERS["tree without a root"]],
}


@pytest.mark.parametrize("name", list(PRODUCTS))
def test_products_conform(name):
    factors = PRODUCTS[name]
    written = [f.spans.written() if isinstance(f, Spanning) else np.eye(2) for f in factors]
    check(Kronecker(factors), np.kron(*written))


def test_the_kit_fails_a_wrong_one():
    """Negative controls: least squares that weigh levels wrongly, and a series off by a step."""

    class Unweighed(Tree):
        @property
        def _noise(self):
            return np.ones(len(self.widths))

    class Late(Toeplitz):
        def mixed(self, low, high, unit):
            return super().mixed(np.maximum(low - 1, 0), high, unit)

    wrong = Unweighed(RANGES, [1, 3, 6, 12], [640.0, 320.0, 500.0, 900.0])
    with pytest.raises(AssertionError):
        check_errors(wrong, written_out(wrong), RANGES.written())
    late = Late(RANGES, COEFFICIENTS, [64.0])
    with pytest.raises(AssertionError):
        check_errors(late, written_out(late), RANGES.written())


@st.composite
def trees(draw):
    d = draw(st.integers(1, 40))
    widths = [1]
    for fan in draw(st.lists(st.integers(2, 5), max_size=4)):
        widths.append(widths[-1] * fan)
    sigma = draw(st.lists(st.floats(64, 1e4), min_size=len(widths), max_size=len(widths)))
    low = draw(st.integers(0, d - 1))
    return Tree(Spans([low, 0], [draw(st.integers(low + 1, d)), d], d), widths, sigma)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(tree=trees(), seed=st.integers(0, 9))
def test_every_tree_is_least_squares(tree, seed):
    """Closed form, whole rows, and matrices written out: three ways to one number."""
    dense = tree.densify()
    assert_allclose(tree.variance, dense.variance, rtol=1e-9)
    rows = [tree.weighed_variance(w) for w in tree.spans.written()]
    assert_allclose(tree.variance, rows, rtol=1e-9)
    y = np.random.default_rng(seed).integers(-(10**9), 10**9, tree.shape[0])
    assert_allclose(tree.rebuild(y), dense.rebuild(y), rtol=1e-7, atol=1e-3)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(d=st.integers(1, 40), power=st.floats(0, 1), data=st.data())
def test_every_series_and_wavelet_is_its_dense_form(d, power, data):
    low = data.draw(st.integers(0, d - 1))
    spans = Spans([low], [data.draw(st.integers(low + 1, d))], d)
    levels = (d - 1).bit_length() + 1
    for strategy in (
        Toeplitz.power(spans, power, 2.0**30),
        Haar(spans, np.linspace(64, 300, levels)),
    ):
        assert_allclose(strategy.variance, strategy.densify().variance, rtol=1e-8)
        assert_allclose(strategy.variance, strategy.weighed_variance(spans.written()[0]), rtol=1e-8)


def test_the_greatest_error_of_each_length_is_at_the_end():
    d = 23
    strategy = Toeplitz.power(Spans.prefixes(d), 0.4, 2.0**32)
    for length in range(1, d + 1):
        low = np.arange(d - length + 1)
        each = strategy.span_variance(low, low + length)
        assert_allclose(strategy.by_length()[length - 1], each.max(), rtol=1e-9)
        assert (np.diff(each) >= 0).all()


def test_replacing_is_bounded_beyond_the_pairs():
    """Blocks over 5,000 cells: no pair of columns is farther apart than the bound says."""
    d = 5000
    strategy = Toeplitz(Spans.prefixes(d), rounded_power(0.5, d), [2.0**20, 3.0**13], [9, d - 9])
    bound = strategy.cost(REPLACE).mu_squared
    assert strategy.cost().mu_squared < bound <= 2 * strategy.cost().mu_squared
    a, w = strategy.coefficients.astype(float), strategy.sigma**-2
    for i, j in ((0, 1), (0, 9), (0, 2500), (0, d - 1), (10, 4000)):
        one, other = (np.concatenate([np.zeros(k), a[: d - k]]) for k in (i, j))
        assert ((one - other) ** 2 * w).sum() <= float(bound) * (1 + 1e-9)


def test_series_multiply_exactly():
    rng = np.random.default_rng(3)
    for bits in (3, 40, 90):
        a, x = ([int(v) << bits for v in rng.integers(-99, 99, 12)] for _ in range(2))
        plain = [sum(a[i] * x[r - i] for i in range(r + 1)) for r in range(12)]
        made = convolved(np.array(a, dtype=object), np.array(x, dtype=object))
        assert [int(v) for v in made] == plain
    half = power_series(0.5, 2000)
    assert_allclose(np.convolve(half, half)[:2000], 1, rtol=1e-12)
    assert_allclose(reciprocal(half), power_series(-0.5, 2000), atol=1e-14)
    assert rounded_power(1.0, 3).tolist() == [1 << 20] * 3


def test_a_million_cells_are_a_matter_of_moments():
    """At 10^5 cells, where a matrix would take 80 GB: exact, unbiased, and errors as by rows."""
    d = 100_000
    spans = Spans([0, 17, 99_000], [d, 65_536, 99_999], d)
    x = np.arange(d) % 7
    for strategy in (
        Toeplitz.power(spans, 0.5, 2.0**34),
        Tree(spans, [1, 10, 100, 1000, 100_000], [64.0] * 5),
        Haar(spans, [64.0] * 18),
    ):
        truth = [x[a:b].sum() for a, b in zip(spans.low, spans.high, strict=True)]
        assert_allclose(strategy.rebuild(strategy.apply(x)), truth, atol=1e-5)
        w = np.zeros(d)
        w[17:65_536] = 1
        assert_allclose(strategy.variance[1], strategy.weighed_variance(w), rtol=1e-8)


def test_refusals():
    for low, high, said in (
        ([0], [0], "1 of 1 are not"),
        ([3], [9], "0 <= low < high <= 8"),
        ([0.5], [2], "integers"),
        ([0, 1], [2], "as many ends"),
        ([], [], "list of whole numbers"),
    ):
        with pytest.raises(InvalidInput, match=said):
            Spans(low, high, 8)
    spans = Spans.prefixes(8)
    for widths in ([2, 4], [1, 3, 4], [1, 1], []):
        with pytest.raises(InvalidInput, match="begin with 1"):
            Tree(spans, widths, [64.0] * len(widths))
    with pytest.raises(InvalidInput, match="each of 2 rows"):
        Tree(spans, [1, 2], [64.0] * 3)
    with pytest.raises(InvalidInput, match="sigma must be at least 1"):
        Haar(spans, [0.5] * 4)
    with pytest.raises(InvalidInput, match="first of them not 0"):
        Toeplitz(spans, [0] + [1] * 7, [64.0])
    with pytest.raises(InvalidInput, match="from 0"):
        Toeplitz.power(spans, 1.5, 64.0)
    wide = 1 << 20
    many = np.arange(1, 5000)
    with pytest.raises(TooLarge, match="4,999 different lengths"):
        Toeplitz.power(Spans(wide - many, np.full(4999, wide), wide), 0.5, 2.0**30).variance  # noqa: B018
    check_unbiased(Haar(spans, [64.0] * 4), None, spans.written())
