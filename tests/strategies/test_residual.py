"""Residuals of marginals, by the kit that every strategy passes: against the table written out."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from noiseshape.errors import InvalidInput, NotSpanned, TooLarge
from noiseshape.sampling import rounded_gaussian
from noiseshape.strategies import Residual
from noiseshape.strategies.contrast import Helmert, Written
from noiseshape.strategies.lattice import Lattice
from noiseshape.tables.asks import Ask, everything

from .kit import REPLACE, check, check_unbiased

TREE = [[1, 1, -1, -1], [1, -1, 1, -1], [3, -1, -1, -1]]


def made(contrasts, sets, asked=None, scale=9.0):
    closed = Lattice.of(sets, len(contrasts))
    u = scale * np.linspace(0.3, 2.2, len(closed))
    return Residual.of(contrasts, closed, u, asked or [everything(s) for s in sets])


WHOLE = Written(np.tril(np.ones((4, 4), dtype=int)), [64.0, 70.0, 75.5, 80.0], whole=True)


def with_a_whole_attribute():
    closed = Lattice.of([(0, 2)], 3)
    asked = [
        everything((0, 2)),
        Ask((1,), (np.tril(np.ones((4, 4))),)),
        everything((0, 1)),
        Ask((0, 2), weights=np.arange(12.0).reshape(2, 3, 2)),
        everything(()),
    ]
    u = 9 * np.linspace(0.3, 2.2, len(closed))
    return Residual.of([Helmert(3), WHOLE, Helmert(2)], closed, u, asked)


def written_out(strategy):
    """W over the whole table, one answer at a time."""
    rows = []
    for ask in strategy.asked:
        shape = ask.shape(strategy.sizes)
        for place in itertools.product(*map(range, shape)):
            row = np.zeros(strategy.sizes)
            for cell in itertools.product(*map(range, strategy.sizes)):
                inside = tuple(cell[i] for i in ask.members)
                if ask.weights is not None:
                    row[cell] = ask.weights[place][inside]
                else:
                    row[cell] = math.prod(
                        float(x == j) if W is None else W[j, x]
                        for W, j, x in zip(ask.factors, place, inside, strict=True)
                    )
            rows.append(row.ravel())
    return np.array(rows)


rng = np.random.default_rng(5)
MEMBERS = {
    "marginals of three attributes": made(
        [Helmert(3), Helmert(2), Helmert(3)], [(0, 1), (2,), (), (0, 2)]
    ),
    "one attribute": made([Helmert(5)], [(0,)], scale=1e6),
    "only the total": made([Helmert(4)], [()]),
    "a designed attribute": made(
        [Helmert(3), Written(TREE, [64.0, 70.0, 81.5])],
        [(0, 1)],
        [
            everything((0, 1)),
            Ask((0, 1), (None, np.tril(np.ones((4, 4))))),
            Ask((1,), (np.array([[1.0, 1, 0, 0], [0, 0, 0.5, -1]]),)),
            Ask((0, 1), weights=rng.integers(-3, 4, (2, 3, 4)).astype(float)),
        ],
    ),
}

MEMBERS["an attribute measured whole"] = with_a_whole_attribute()


@pytest.mark.parametrize("name", list(MEMBERS))
def test_conformance(name):
    check(MEMBERS[name], written_out(MEMBERS[name]))


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(2, 4), min_size=1, max_size=3),
    st.data(),
)
def test_conformance_of_random_marginals(sizes, data):
    every = [s for k in range(len(sizes) + 1) for s in itertools.combinations(range(len(sizes)), k)]
    sets = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    strategy = made([Helmert(n) for n in sizes], sets, scale=data.draw(st.floats(1e-3, 1e6)))
    W = written_out(strategy)
    check_unbiased(strategy, None, W)
    dense = strategy.densify()
    assert_allclose(strategy.covariance(), dense.covariance(), rtol=1e-9, atol=1e-12)
    assert_allclose(strategy.variance, np.diag(strategy.covariance()), rtol=1e-9)
    for neighbours in ("add-remove", "replace"):
        mine, exact = strategy.cost_of_one(neighbours), dense.cost_of_one(neighbours)
        assert exact <= mine * (1 + Fraction(1, 2**39))
        assert mine <= exact * (1 + Fraction(1, 2**35)) + Fraction(1, 2**60)


def test_the_kit_fails_a_residual_that_is_keyed_by_size():
    """Two attributes of four values, measured in different rows: swapped, everything breaks."""
    strategy = MEMBERS["a designed attribute"]
    pair = made([Helmert(4), Written(TREE, 64.0)], [(0,), (1,)])
    check_unbiased(pair, None, written_out(pair))

    class BySize(Residual):
        def members(self, number):
            first = {c.cells: c for c in reversed(self.contrasts)}
            return [first[c.cells] for c in super().members(number)]

    wrong = BySize(pair.contrasts, pair.lattice, pair.base, pair.bits, pair.asked)
    x = np.arange(16)
    assert not (wrong.apply(x) == pair.apply(x)).all()
    assert strategy.contrasts[1] is not pair.contrasts[1]


def test_equal_sizes_with_different_roles_keep_their_own_noise():
    """What is charged is what is drawn: the covariance of each is that of its own contrasts."""
    pair = made([Helmert(4), Written(TREE, [64.0, 90.0, 200.0])], [(0,), (1,)])
    check(pair, written_out(pair))
    home, work = pair.covariances(*[pair.asked[0]] * 2), pair.covariances(*[pair.asked[1]] * 2)
    assert not np.allclose(home / home[0, 0], work / work[0, 0], rtol=0.05)


def test_costs_of_large_tables_bound_those_of_small_ones():
    """The sums in doubles, rounded up, against exact rationals."""
    strategy = made([Helmert(7), Helmert(9), Helmert(5)], [(0, 1), (1, 2)], scale=7.7)
    units = strategy.profile()
    scale = [Fraction(b) / (1 << int(q)) for b, q in zip(strategy.base, strategy.bits, strict=True)]
    exact = sum(
        math.prod(Fraction(strategy.sizes[i] - 1, strategy.sizes[i])
                  for i in strategy.lattice.members(n)) / s**2
        for n, s in enumerate(scale)
    )  # fmt: skip
    assert exact <= units.greatest <= exact * (1 + Fraction(1, 2**38))
    assert strategy.cost().mu_squared == units.greatest


def test_many_attributes_replaced_cost_at_most_the_bound():
    strategy = made([Helmert(2)] * 9, [(i,) for i in range(9)], scale=50.0)
    bound = strategy.cost(REPLACE).mu_squared
    exact = strategy._differing(np.arange(9))
    assert exact <= bound <= 2 * exact


def test_stated_covariances_are_those_of_what_is_measured():
    """Draws, against the stated covariance; 30 % more noise in one residual is found."""
    strategy = made([Helmert(3), Helmert(2)], [(0, 1), (0,), ()], scale=4.0)
    k, n = strategy.shape[0], 4000
    unit = 1 << 30
    R = np.array([strategy.rebuild(row) for row in unit * np.eye(k, dtype=np.int64)]).T / unit
    noise = rounded_gaussian(strategy.sigma, (k, n)).astype(np.float64)
    value, vector = np.linalg.eigh(strategy.covariance())
    kept = value > 1e-9 * value.max()  # the answers repeat each other

    def chance(noise):
        z = vector[:, kept].T @ R @ noise / np.sqrt(value[kept])[:, None]
        squares = (z**2).sum(axis=1)  # each a chi-squared of n, if the covariance is right
        p = 2 * np.minimum(stats.chi2.cdf(squares, n), stats.chi2.sf(squares, n))
        cross = z @ z.T / np.sqrt(n)
        far = np.abs(cross[np.triu_indices(len(z), 1)]).max()
        return min(p.min() * len(z), 2 * stats.norm.sf(far) * len(z) ** 2)

    assert chance(noise) > 1e-4
    louder = np.where(np.arange(k) == 1, 1.3, 1.0)
    assert chance(noise * louder[:, None]) < 1e-6
    mixed = noise.copy()
    mixed[2] += 0.3 * noise[3] * strategy.sigma[2] / strategy.sigma[3]
    assert chance(mixed) < 1e-6


def test_answers_of_a_hundred_attributes_from_their_marginals_alone():
    """10^100 cells: what is measured and rebuilt needs none of them."""
    sets = [(3, 7, 50), (7, 99), (50,)]
    strategy = made([Helmert(10)] * 100, sets)
    assert strategy.shape[1] == 10**100
    assert strategy.cost().mu > 0
    assert strategy.cost(REPLACE).mu > 0
    rows = rng.integers(0, 10, (1000, 100))
    y = []
    for number in range(len(strategy.lattice)):
        kept = strategy.lattice.members(number)
        cell = (rows[:, kept] * 10 ** np.arange(len(kept))[::-1]).sum(axis=1)
        table = np.bincount(cell, minlength=10 ** len(kept)).reshape([10] * len(kept))
        y.append(strategy.measures(number, table))
    answers = strategy.answers(everything((3, 7, 50)), y.__getitem__)
    counted = np.zeros((10, 10, 10))
    np.add.at(counted, tuple(rows[:, (3, 7, 50)].T), 1)
    assert_allclose(answers, counted, atol=1e-9)
    with pytest.raises(NotSpanned, match="measured together"):
        strategy.answers(everything((3, 99)), y.__getitem__)
    with pytest.raises(TooLarge, match="not written out"):
        strategy.densify()


def test_a_question_needs_only_the_residuals_it_has_a_part_in():
    """3 by 99 was not measured; a sum over all of 99 asks nothing about it."""
    strategy = made([Helmert(3), Helmert(4)], [(0,), (1,)])
    y = strategy.apply(np.arange(12))
    blocks = [y[strategy.starts[n] : strategy.starts[n + 1]] for n in range(3)]
    ask = Ask((0, 1), (None, np.ones((1, 4))))
    expected = np.arange(12).reshape(3, 4).sum(axis=1, keepdims=True)
    assert_allclose(strategy.answers(ask, blocks.__getitem__), expected, atol=1e-9)
    weights = np.broadcast_to(np.arange(3.0)[None, :, None], (1, 3, 4)).copy()
    both = strategy.answers(Ask((0, 1), weights=weights), blocks.__getitem__)
    assert_allclose(both, [np.arange(3) @ expected[:, 0]], atol=1e-9)
    with pytest.raises(NotSpanned):
        strategy.answers(everything((0, 1)), blocks.__getitem__)


def test_what_is_measured_whole_is_in_every_table_and_in_no_set():
    strategy = with_a_whole_attribute()
    assert strategy.tables == ((0, 1, 2),)
    assert strategy.attributes(0) == (1,)
    with pytest.raises(InvalidInput, match="in every residual, and in no set"):
        Residual.of([Helmert(3), WHOLE], Lattice.of([(0, 1)], 2), np.ones(4))
    part = Written([[1, 1, 0, 0]], 64.0, whole=True)
    made_ = Residual.of([Helmert(2), part], Lattice.of([(0,)], 2), np.ones(2))
    made_.check_spans(Ask((0, 1), (None, np.array([[1.0, 1, 0, 0]]))))
    with pytest.raises(NotSpanned, match="tells apart"):
        made_.check_spans(everything((0,)))  # its total over the other attribute was not measured


def test_contrasts_that_were_not_measured_are_refused():
    strategy = made(
        [Written([[1, 1, -1, -1]], 64.0)], [(0,)], [Ask((0,), (np.eye(2).repeat(2, 1),))]
    )
    strategy.check_spans(strategy.asked[0])
    with pytest.raises(NotSpanned, match="tells apart"):
        strategy.check_spans(everything((0,)))
    with pytest.raises(NotSpanned, match="tells apart"):
        strategy.check_spans(Ask((0,), weights=np.array([[1.0, 0, 0, 0]])))


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 40))
def test_helmert_rows(n):
    """C^T diag(1 / (j (j + 1))) C = I - J/n, and undo inverts apply up to the mean."""
    contrast = Helmert(n)
    C = contrast.written()
    j = np.arange(1, n)
    assert_allclose(C.T @ (C / (j * (j + 1))[:, None]), np.eye(n) - 1 / n, atol=1e-12)
    x = rng.integers(0, 1000, (n, 2))
    assert (contrast.apply(x) == C @ x).all()
    assert_allclose(contrast.undo((C @ x).astype(float)), x - x.mean(axis=0), atol=1e-9)
    assert_allclose(contrast.spread @ contrast.spread.T, contrast.covariance, atol=1e-12)
    assert all(
        Fraction(s) ** 2 >= int(k)
        for s, k in zip(contrast.sigma.tolist(), j * (j + 1), strict=True)
    )
    assert int(np.abs(C).sum(axis=1).max()) == contrast.gain


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: Helmert(1), "at least 2"),
        (lambda: Written([[1, 1, -1]], 64.0), "sum to zero"),
        (lambda: Written([[1, -1]] * 2, 64.0), "fewer rows"),
        (lambda: Written([[1, -1, 0], [2, -2, 0]], 64.0), "repeat each other"),
        (lambda: made([Helmert(2)], [(0,)], scale=0.0), "above 0"),
        (lambda: made([Helmert(2)], [(0,)], scale=2.0**170), "beyond what is drawn"),
        (lambda: made([Helmert(2)], [(0,)], scale=2.0**-900), "protects nobody"),
        (
            lambda: Residual.of([Helmert(2)], Lattice.of([(0,), (1,)], 2), np.ones(3)),
            "2 attributes need a contrast each",
        ),
    ],
)
def test_bad_input(act, words):
    with pytest.raises(InvalidInput, match=words):
        act()
