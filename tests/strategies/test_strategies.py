"""Every member passes the kit, and the kit can fail."""

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq_mat, fmpz_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.errors import InvalidInput, NotConverged, NotSpanned
from noiseshape.privacy import People
from noiseshape.strategies import Dense, Diagonal, Kronecker
from noiseshape.strategies.changes import Ball

from .kit import REPLACE, check, check_costs, check_unbiased, written_out

rng = np.random.default_rng(0)
PREFIXES = np.tril(np.ones((5, 5)))
SQUARE = rng.integers(-9, 10, (4, 4)) + 20 * np.eye(4, dtype=int)
TREE = np.vstack([np.eye(4), [[1, 1, 0, 0], [0, 0, 1, 1]], np.ones((1, 4))]).astype(int)
SUMS = np.vstack([np.kron(np.eye(2), np.ones(3)), np.kron(np.ones(2), np.eye(3))]).astype(int)

MEMBERS = {
    "prefixes by triangle": (Dense(PREFIXES.astype(int), 64.0, PREFIXES), PREFIXES),
    "unlike sigmas": (
        Dense(SQUARE, [64.0, 100.25, 3.5, 7e9], rng.normal(size=(6, 4))),
        None,
    ),
    "more rows than cells": (Dense(TREE, [8.0] * 4 + [11.0, 12.0, 20.0], np.eye(4)), np.eye(4)),
    "rows that repeat each other": (Dense(SUMS, [50.0] * 2 + [70.0] * 3, 1.0 * SUMS), 1.0 * SUMS),
    "fewer rows than cells": (Dense(SUMS[:4], 64.0, 1.0 * SUMS), 1.0 * SUMS),
    "one row": (Dense([[1, 1, 1]], 64.0, np.full((1, 3), 0.1)), np.full((1, 3), 0.1)),
    "rows beyond 64 bits": (
        Dense(np.array([[1 << 70, 3], [5, 1 << 66]], dtype=object), [2.0**70, 2.0**66], np.eye(2)),
        np.eye(2),
    ),
    "a question about nothing": (Dense(np.eye(2, dtype=int), 9.0, [[0.0, 0], [1, 1]]), None),
    "diagonal": (Diagonal([64.0, 65.0, 1.0]), np.eye(3)),
    "one cell": (Diagonal([64.0]), np.eye(1)),
    "product": (
        Kronecker([Dense(TREE, 9.0, np.tril(np.ones((4, 4)))), Diagonal([6.0, 7.5, 8.0])]),
        np.kron(np.tril(np.ones((4, 4))), np.eye(3)),
    ),
    "product of three": (
        Kronecker([Diagonal([3.1, 3.7]), Dense(SUMS, 5.3, 1.0 * SUMS), Diagonal([2.9, 1.1])]),
        np.kron(np.kron(np.eye(2), SUMS), np.eye(2)),
    ),
    "product of one": (Kronecker([Diagonal([64.0, 65.0])]), np.eye(2)),
}


@pytest.mark.parametrize("name", list(MEMBERS))
def test_conformance(name):
    strategy, workload = MEMBERS[name]
    check(strategy, strategy.workload if workload is None else workload)


def test_the_kit_fails_a_wrong_strategy():
    """Negative controls: a bias of one unit in one row, and a cost a millionth too low."""

    class Biased(Dense):
        def apply(self, x):
            return super().apply(x) + 1

    class Cheap(Dense):
        def profile(self):
            return Dense(self.rows, self.sigma * (1 + 1e-6), self.workload).profile()

    args = (PREFIXES.astype(int), 64.0, PREFIXES)
    with pytest.raises(AssertionError):
        check_unbiased(Biased(*args), None, PREFIXES)
    with pytest.raises(AssertionError):
        check_costs(Cheap(*args), written_out(Dense(*args)), [64.0] * 5)


matrices = st.integers(1, 5).flatmap(
    lambda d: st.lists(
        st.lists(st.integers(-50, 50), min_size=d, max_size=d), min_size=1, max_size=7
    )
)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(rows=matrices, data=st.data())
def test_any_integer_matrix_rebuilds_what_it_spans(rows, data):
    A = np.array(rows)
    if not A.any():
        return
    mix = data.draw(
        st.lists(
            st.lists(st.integers(-3, 3), min_size=len(A), max_size=len(A)), min_size=1, max_size=4
        )
    )
    sigma = data.draw(st.lists(st.floats(1, 1e6), min_size=len(A), max_size=len(A)))
    W = (np.array(mix) @ A).astype(float)
    check_unbiased(Dense(A, sigma, W), None, W)


class TestRelations:
    """design.md section 5: profile [1, 1] each; replacing costs sqrt 2, 2 and 0."""

    @pytest.mark.parametrize(
        ("rows", "square"), [(np.eye(2), 2), ([[1, -1]], 4), ([[1, 1]], 0)], ids=str
    )
    def test_replace_is_not_told_by_the_profile(self, rows, square):
        strategy = Dense(np.array(rows).astype(int), 1.0, np.array(rows, dtype=float))
        assert strategy.cost().mu_squared == 1
        assert strategy.cost(REPLACE).mu_squared == square
        assert strategy.cost(REPLACE, rows_may_leave=True).mu_squared == max(square, 1)

    def test_diagonal_pairs_without_writing_them_out(self):
        wide = Diagonal(np.full(5000, 64.0))
        assert wide.cost(REPLACE).mu_squared == Fraction(2, 64**2)

    def test_beyond_the_pairs_a_bound_holds(self):
        tall = Kronecker([Diagonal(np.full(90, 8.0)), Diagonal(np.full(90, 8.0))])
        assert tall.cost(REPLACE).mu_squared == 2 * tall.cost().mu_squared  # no row is shared

    def test_the_relation_is_on_the_cost(self):
        assert Diagonal([64.0]).cost(People(neighbours="replace")).neighbours == "replace"


BAD = [
    (lambda: Dense([[1, 1]], 64.0, np.eye(2)), NotSpanned, "2 of 2 queries"),
    (lambda: Dense([[1.0, 0.5]], 64.0, np.eye(2)), InvalidInput, "integers, got float64"),
    (lambda: Dense(np.zeros((0, 2), int), 64.0, np.eye(2)), InvalidInput, "rows and cells"),
    (lambda: Dense(np.eye(2, dtype=int), 64.0, np.eye(3)), InvalidInput, "2 cells"),
    (lambda: Dense(np.eye(2, dtype=int), 64.0, np.eye(2) * np.nan), InvalidInput, "finite"),
    (lambda: Dense(np.eye(2, dtype=int), 0.0, np.eye(2)), InvalidInput, "at least 1"),
    (lambda: Dense(np.eye(2, dtype=int), -4.0, np.eye(2)), InvalidInput, "at least 1"),
    (lambda: Dense(np.eye(2, dtype=int), 0.99, np.eye(2)), InvalidInput, "same power of two"),
    (lambda: Dense(np.eye(2, dtype=int), [64.0], np.eye(2)), InvalidInput, "each of 2 rows"),
    (lambda: Diagonal([np.inf]), InvalidInput, "finite"),
    (lambda: Diagonal([np.nan]), InvalidInput, "finite"),
    (lambda: Diagonal([]), InvalidInput, "at least one cell"),
    (lambda: Kronecker([]), InvalidInput, "at least one factor"),
    (lambda: Kronecker([np.eye(2)]), InvalidInput, "of strategies, got ndarray"),
    (
        lambda: Kronecker([Diagonal([64.0]), Diagonal([64.0], Ball(1, 10))]),
        InvalidInput,
        "says nothing of the product's",
    ),
    (lambda: Dense([[1]], 64.0, [[1.0]], [[5]], Ball(1, 5)), InvalidInput, "stated once"),
    (lambda: Dense([[1 << 200]], 64.0, [[1.0]], [[1 << 200]]), InvalidInput, "at most 2.350"),
    (lambda: Diagonal([64.0]).cost([]), InvalidInput, "by a People, got list"),
    (lambda: Kronecker([Diagonal([2.0**50])] * 2), InvalidInput, "at most 2.80 .*, got 1.27e.30"),
    (lambda: Kronecker([Diagonal([2.0**80])] * 14), InvalidInput, "at most 2.80"),
    (lambda: Dense([[1 << 1100]], 64.0, [[1.0]]), InvalidInput, "at most 2.350"),
    (lambda: Dense([[1]], 64.0, [[1e200]]), InvalidInput, "at most 2.350"),
    (lambda: Dense([[1]], 64.0, [[1.0], [1e-200]]), InvalidInput, "between 2.-350 and 2.350"),
]


@pytest.mark.parametrize(("make", "error", "sentence"), BAD)
def test_refusals(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


def test_a_strategy_too_ill_conditioned_refuses_to_answer():
    """cond 2^120, determinant 1: doubles see one row twice, and would state wrong errors."""
    A = np.array([[1 << 60, (1 << 60) + 1], [(1 << 60) - 1, 1 << 60]], dtype=object)
    with pytest.raises(InvalidInput, match="doubles tell 1 of its 2 directions apart"):
        Dense(A, 64.0, np.eye(2))


class TestRowsOfUnlikeScale:
    """Each query is judged, rounded and rebuilt by its own size, not by the greatest of all."""

    @pytest.mark.parametrize("size", [1e-6, 1e-9, 1e-15, 1e-100, 1e100])
    def test_small_rows_are_answered_as_well_as_great_ones(self, size):
        strategy = Dense(np.eye(2, dtype=int), 1.0, np.diag([1.0, size]))
        x = np.array([10, 10**15])
        answers = strategy.rebuild(strategy.apply(x))
        assert answers == pytest.approx([10, size * 1e15], rel=1e-15)

    def test_entries_of_unlike_scale_in_one_row(self):
        W = np.array([[1.0, 1e-30], [1 / 3, 1e-5]])
        strategy = Dense(np.eye(2, dtype=int), 1.0, W)
        x = [10, 10**40]
        exact = [sum(Fraction(w) * v for w, v in zip(row, x, strict=True)) for row in W.tolist()]
        assert strategy.rebuild(np.array(x, dtype=object)).tolist() == [float(v) for v in exact]

    @pytest.mark.parametrize(
        "workload", [[[1, 0], [0, 1e-10]], [[0, 1e-10]], [[1e9, 0.5]], [[1e11, 0.5]]]
    )
    def test_what_is_not_measured_is_refused_however_small(self, workload):
        with pytest.raises(NotSpanned):
            Dense([[1, 0]], 1.0, np.array(workload, dtype=float))

    def test_the_span_is_exact_where_doubles_doubt(self):
        """Whole rows of condition 1e9: the projection errs, and the rank does not."""
        rows = np.array([[10**9, 10**9 + 1, 5], [10**9 - 1, 10**9, 7]])
        W = (np.array([[3, -2], [1, 1]]) @ rows).astype(float)
        strategy = Dense(rows, 64.0, W)
        assert strategy.rebuild(strategy.apply([3, 4, 5])) == pytest.approx(W @ [3, 4, 5])
        with pytest.raises(NotSpanned):
            Dense(rows, 64.0, np.add(W, [[1, -1, 0], [0, 0, 0]]))


def test_masked_data_is_refused_by_type():
    hidden = np.ma.masked_array([5, -7], mask=[False, True])
    with pytest.raises(InvalidInput, match="masked"):
        Diagonal([64.0, 64.0]).apply(hidden)
    with pytest.raises(InvalidInput, match="masked"):
        Dense(np.eye(2, dtype=int), 64.0, np.ma.masked_array(np.eye(2), mask=np.eye(2)))


class TestSloppyInverse:
    """Whatever left inverse doubles hold, answers come out right to a millionth, or not at all."""

    @pytest.mark.parametrize("share", [0.9, 1.1])
    def test_it_takes_more_steps(self, share, monkeypatch):
        plain = Dense._approximate_to
        monkeypatch.setattr(Dense, "_approximate_to", lambda self, r: share * plain(self, r))
        strategy = Dense(SQUARE, 3.0, np.eye(4))
        x = [10, 200, 30, 4]
        off = np.abs(strategy.rebuild(strategy.apply(x)) - x)
        assert np.all(off <= 1e-6 * np.sqrt(strategy.variance))

    def test_or_refuses(self, monkeypatch):
        plain = Dense._approximate_to
        monkeypatch.setattr(Dense, "_approximate_to", lambda self, r: 0.1 * plain(self, r))
        strategy = Dense(SQUARE, 3.0, np.eye(4))
        with pytest.raises(NotConverged, match="millionth of their standard errors"):
            strategy.rebuild(strategy.apply([10, 200, 30, 4]))


def test_what_one_row_adds_to_a_product_is_the_product_of_what_it_adds_to_the_factors():
    """Against the same strategy and reach, both written out here."""
    one, two = np.array([[3, 0, 7], [1, 2, -4]]), np.array([[1, 5], [2, 0], [0, 1]])
    rows = Dense([[1, 1], [1, -2]], 8.0, np.eye(2), one)
    plain, reached = (
        Diagonal([5.0, 6.0]),
        Dense(np.eye(3, dtype=int), [7.0, 8.0, 9.0], np.eye(3), two),
    )
    for second, reach in ((plain, np.eye(2, dtype=int)), (reached, two)):
        product = Kronecker([rows, second])
        written = Dense(
            np.kron(rows.rows, second.densify().rows),
            product.sigma,
            np.eye(2 * second.shape[1]),
            np.kron(one, reach),
        )
        for people in (People(), REPLACE, People("id", 3, "replace")):
            cost = written.cost(people).mu_squared
            assert product.densify().cost(people).mu_squared == cost
            assert cost <= product.cost(people).mu_squared <= cost * (1 + Fraction(1, 2**35))
        assert product.cost().mu_squared > Kronecker([plain, second]).cost().mu_squared


def test_scales_of_a_product_are_at_least_the_products_of_scales():
    a, b = [1 + 2**-31, 3.0], [1 + 3 * 2**-31, 7 / 3]  # 62 bits, of which doubles hold 53
    sigma = Kronecker([Diagonal(a), Diagonal(b)]).sigma.tolist()
    exact = [Fraction(x) * Fraction(y) for x in a for y in b]
    assert any(float(e) < e for e in exact)
    assert all(
        e <= Fraction(s) <= e * (1 + Fraction(1, 2**51)) for s, e in zip(sigma, exact, strict=True)
    )


def test_noise_near_the_grid_gets_a_finer_grid():
    strategy = Dense(np.array([[1, 1], [1, -1]]), 64.0, np.eye(2))
    fine = strategy.scaled(1e-9)
    assert fine.sigma.min() >= 32
    assert fine.cost().mu == pytest.approx(strategy.cost().mu * 1e9, rel=1e-9)
    check_unbiased(fine, None, np.eye(2))
    with pytest.raises(InvalidInput, match="at most 2"):
        strategy.scaled(1e30)


@pytest.mark.parametrize("factor", [1e-300, Fraction(1, 10**400), 10**400])
@pytest.mark.parametrize("strategy", [Dense([[1, 1]], 64.0, [[1.0, 1.0]]), Diagonal([64.0])])
def test_scaling_beyond_what_doubles_hold_is_refused(strategy, factor):
    for up in (True, False):
        with pytest.raises(InvalidInput, match="sigma"):
            strategy.scaled(factor, up=up)


def test_differences_beyond_the_exact_ones_are_bounded_by_rounding_alone(monkeypatch):
    """Against the exact maximum, over rows whose columns nearly cancel too."""
    rng = np.random.default_rng(5)
    for scale in (10, 10**9):
        rows = rng.integers(-scale, scale, (6, 300)) + scale * 50
        sigma = rng.uniform(64, 1e6, 6)
        exact = Dense(rows, sigma, rows.astype(float)).greatest_difference()
        with monkeypatch.context() as patched:
            patched.setattr("noiseshape.strategies.dense.PAIRS", 100)
            bound = Dense(rows, sigma, rows.astype(float)).cost(People(neighbours="replace"))
        assert exact <= bound.mu_squared <= exact * (1 + Fraction(1, 10**9))
        # Not the bound from the profile, which is far off for columns that nearly cancel.
        profile = Dense(rows, sigma, rows.astype(float)).profile()
        assert bound.mu_squared < profile.replace_bound() / 10


def test_differences_through_doubles_are_those_in_python_integers():
    """One scale for all rows goes through BLAS, entries of any size exactly; others do not."""
    rng = np.random.default_rng(6)
    for scale in (3, 10**5, 2**24, 2**26, 10**12):
        rows = rng.integers(-scale, scale, (6, 300)) + scale * 50
        found = Dense(rows, 64.0, rows.astype(float)).greatest_difference()
        wide = rows.astype(object)
        plain = max(
            int(((wide[:, i, None] - wide[:, i + 1 :]) ** 2).sum(axis=0).max()) for i in range(299)
        )
        assert found == Fraction(plain, 64**2)
    opposite = np.array([[1, -1]] * 6) * int(2**29.9)  # whose distance passes 2^63
    found = Dense(opposite, 64.0, opposite.astype(float)).greatest_difference()
    assert found == Fraction(6 * (2 * int(2**29.9)) ** 2, 64**2)


def test_data_in_small_and_in_large_steps_stand_in_one_strategy():
    """Columns that differ by 2^60 in size are independent all the same, and rebuilt exactly."""
    rows = np.array([[3 << 60, 1, 0], [1 << 59, 5, 2], [0, 1, 7]], dtype=object)
    strategy = Dense(rows, 64.0, np.eye(3))
    x = [5, -(10**17), 3 * 10**17]
    np.testing.assert_allclose(strategy.rebuild(strategy.apply(x)), x, rtol=1e-9)
    with pytest.raises(NotSpanned):  # a column that is a multiple of another still is one
        Dense(np.array([[1 << 40, 1], [1 << 41, 2]]), 64.0, np.eye(2))


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=6))
def test_noise_of_any_scale_is_rounded_up_and_by_little(wanted):
    made = Diagonal.of(wanted)
    executed = np.ldexp(made.sigma, -made.bits)
    assert np.all(executed >= wanted)
    np.testing.assert_allclose(executed, wanted, rtol=1e-9)
    assert made.bits == 0 or made.sigma.min() >= 64


@pytest.mark.parametrize("sigma", [[0.0], [-1.0], [np.nan]])
def test_noise_without_a_scale_is_refused(sigma):
    with pytest.raises(InvalidInput):
        Diagonal.of(sigma)


@pytest.mark.parametrize("size", [2**20, 2**35, 2**58])
def test_measurements_near_64_bits_are_rebuilt_as_python_integers_would(size):
    """Whole cells first, then what they leave: the exact solution, to a millionth of its error."""
    rng = np.random.default_rng(3)
    rows = rng.integers(-9, 10, (4, 4)) + 20 * np.eye(4, dtype=int)
    strategy = Dense(rows, 64.0, np.vstack([np.eye(4), np.ones((1, 4)) / 4]))
    y = rng.integers(-size, size, 4)
    cells = fmpq_mat(fmpz_mat(rows.tolist())).solve(fmpq_mat(fmpz_mat([[int(v)] for v in y])))
    exact = [Fraction(int(cells[i, 0].p), int(cells[i, 0].q)) for i in range(4)]
    exact.append(sum(exact, Fraction(0)) / 4)
    for found, true, variance in zip(strategy.rebuild(y), exact, strategy.variance, strict=True):
        assert abs(Fraction(float(found)) - true) <= 1e-6 * variance**0.5 + abs(true) * 2.0**-52
