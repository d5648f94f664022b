"""Consistent cells are the constrained optimum, and keep what was fixed, against plain references.

Two references: every set of zeros tried in turn, in rationals (small), and cvxpy (larger).
"""

import itertools
from fractions import Fraction

import cvxpy as cp
import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from noiseshape.errors import InvalidInput, NotConverged, NotSpanned, TooLarge
from noiseshape.release import consistency
from noiseshape.release.consistency import CONSISTENT, Consistent, consistent
from noiseshape.strategies import Dense, Diagonal, Kronecker

TREE = np.array(
    [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 1, 1, 1],
    ]
)
PREFIXES = np.tril(np.ones((4, 4)))
HIERARCHY = Dense(TREE, [8.0, 8, 8, 8, 4, 4, 2], PREFIXES)
# Two by three cells of which only the margins are measured: the cells are not determined.
MARGINS = np.vstack([np.kron(np.eye(2), np.ones(3)), np.kron(np.ones(2), np.eye(3))]).astype(int)
ONLY_MARGINS = Dense(MARGINS, 4.0, MARGINS.astype(float))


def weighted(strategy):
    return strategy.densify().rows.astype(float) / strategy.sigma[:, None]


def objective(strategy, x, y):
    return float(np.sum((weighted(strategy) @ x - np.asarray(y, float) / strategy.sigma) ** 2))


def measured(strategy, x, seed=0):
    noise = np.rint(strategy.sigma * np.random.default_rng(seed).standard_normal(strategy.shape[0]))
    return strategy.apply(np.asarray(x)) + noise.astype(int)


def brute_force(strategy, y, fixed):
    """The least objective over every choice of zeros, exactly, in rationals.

    The optimum with most zeros is the only minimiser on its own cells, so that choices with more
    than one minimiser can be passed over.
    """
    scale = [Fraction(float(s)) for s in strategy.sigma]
    A = [[Fraction(int(v)) / s for v in row] for row, s in zip(strategy.rows, scale, strict=True)]
    b = [Fraction(int(v)) / s for v, s in zip(y, scale, strict=True)]
    found = []
    for free in itertools.product([False, True], repeat=strategy.shape[1]):
        at = np.flatnonzero(free).tolist()
        rows = [[int(row[i]) for i in at] + [int(value)] for row, value in fixed]
        reduced, rank = flint.fmpq_mat(rows).rref() if rows else (None, 0)
        kept = reduced.tolist()[:rank] if rows else []
        if any(not any(row[:-1]) for row in kept):  # 0 = 1: no such cells keep the constants
            continue
        n = len(at)
        system = [[0] * (n + rank) for _ in range(n + rank)]
        right = [[0] for _ in range(n + rank)]
        for i in range(n):
            for j in range(n):
                system[i][j] = rational(sum(row[at[i]] * row[at[j]] for row in A))
            right[i][0] = rational(sum(row[at[i]] * v for row, v in zip(A, b, strict=True)))
            for r in range(rank):
                system[i][n + r] = system[n + r][i] = kept[r][i]
        for r in range(rank):
            right[n + r][0] = kept[r][-1]
        try:
            x = flint.fmpq_mat(system).solve(flint.fmpq_mat(right)).tolist()[:n] if n else []
        except ZeroDivisionError:
            continue
        if all(v[0] >= 0 for v in x):
            cells = dict(zip(at, (Fraction(int(v[0].p), int(v[0].q)) for v in x), strict=True))
            sums = [sum((row[i] * v for i, v in cells.items()), Fraction(0)) for row in A]
            found.append(sum((u - v) ** 2 for u, v in zip(sums, b, strict=True)))
    return float(min(found))


def rational(value):
    value = Fraction(value)
    return flint.fmpq(value.numerator, value.denominator)


def check_optimal(strategy, y, found, fixed=(), nonnegative=True):
    """Feasibility and the Karush-Kuhn-Tucker conditions, multipliers found by linear programming.

    The gradient must be F^T multipliers + z with z >= 0, and z = 0 where x > 0.
    """
    A, x = weighted(strategy), found.cells
    rows = np.array([row for row, _ in fixed], float).reshape(len(fixed), len(x))
    values = np.array([value for _, value in fixed], float)
    assert not nonnegative or x.min() >= 0
    assert np.all(np.abs(rows @ x - values) <= 1e-9 * (1 + np.abs(rows) @ np.abs(x)))
    gradient = A.T @ (A @ x - y / strategy.sigma)
    scale = np.abs(A).max() * (1 + found.moved)
    n, d = rows.shape
    # minimise e  subject to  -e <= gradient - F^T multipliers - z <= e
    one, z = np.ones((d, 1)), np.eye(d)
    upper = np.block([[-rows.T, -z, -one], [rows.T, z, -one]])
    top = np.where((x > 1e-9 * (1 + x.max())) | (not nonnegative), 0.0, np.inf)
    bounds = [(None, None)] * n + [(0, t) for t in top] + [(0, None)]
    cost = np.append(np.zeros(n + d), 1.0)
    result = linprog(
        cost, A_ub=upper / scale, b_ub=np.append(-gradient, gradient) / scale, bounds=bounds
    )
    assert result.status == 0
    assert result.fun / scale < 1e-6
    assert found.within <= consistency.TOLERANCE * max(1.0, found.moved)


# What it is


def test_answers_are_labelled_and_additive_and_know_what_changed():
    found = consistent(HIERARCHY, [40, -9, 12, 5, 30, 18, 50])
    assert isinstance(found, Consistent)
    assert found.label == CONSISTENT
    assert "post-processing" in found.label
    assert "intervals" in found.label
    assert found.answers == pytest.approx(PREFIXES @ found.cells)
    assert found.unbiased == pytest.approx(HIERARCHY.rebuild([40, -9, 12, 5, 30, 18, 50]))
    assert found.stderr == pytest.approx(np.sqrt(HIERARCHY.variance))
    assert found.cells[1] == 0
    assert found.changed.tolist() == (np.abs(found.answers - found.unbiased) > 1e-6).tolist()
    assert found.changed.any()
    assert repr(found).startswith(f"Consistent(4 answers, {found.changed.sum()} changed, moved ")
    with pytest.raises(AttributeError):
        found.cells = None


def test_answers_that_are_possible_stay_as_they_are():
    for strategy, x in ((HIERARCHY, [900, 800, 700, 600]), (Diagonal([2.0] * 3), [50, 60, 70])):
        found = consistent(strategy, measured(strategy, x))
        assert found.answers == pytest.approx(found.unbiased, rel=1e-12)
        assert not found.changed.any()
        assert found.moved < 1e-6
        assert found.within == 0
    cells = Diagonal([2.0, 2.0, 2.0])
    free = consistent(cells, [-5, 3, 0], nonnegative=False)
    assert free.cells == pytest.approx([-5, 3, 0])
    assert not free.changed.any()


def test_cells_measured_alone_are_cut_at_zero():
    found = consistent(Diagonal([2.0, 5.0, 9.0]), [-7, 4, -1])
    assert found.cells.tolist() == [0, pytest.approx(4), 0]
    assert found.changed.tolist() == [True, False, True]
    assert found.moved == pytest.approx(np.hypot(7 / 2, 1 / 9))


def test_one_cell():
    one = Diagonal([4.0])
    assert consistent(one, [-3]).cells == [0]
    assert consistent(one, [3], integer=True).cells.tolist() == [3]
    assert consistent(one, [3], fixed=[([2], 9)]).cells == pytest.approx([4.5])
    assert consistent(one, [3], fixed=[([1], 0)]).cells.tolist() == [0]


def test_a_known_total_is_shared_out_by_the_noise():
    """By hand: minimise sum (x - y)^2 / s^2 with sum x = T moves each by its share of variance."""
    found = consistent(Diagonal([10.0, 20.0]), [100, 200], fixed=[([1, 1], 350)])
    assert found.cells == pytest.approx([100 + 50 * 100 / 500, 200 + 50 * 400 / 500], rel=1e-12)
    assert found.cells.sum() == pytest.approx(350, rel=1e-15)


def test_noise_weighs_not_the_number_of_rows():
    """Twice measured with 8 and once with 2: the weights are 1/64, 1/64 and 1/4."""
    cells = Dense([[1], [1], [1]], [8.0, 8.0, 2.0], [[1.0]])
    assert consistent(cells, [10, 14, 20]).cells == pytest.approx(
        [(10 / 64 + 14 / 64 + 20 / 4) / (2 / 64 + 1 / 4)]
    )


def test_a_product_and_its_dense_form_agree():
    product = Kronecker([Dense([[1, 1], [1, -1]], 3.0, np.eye(2)), Diagonal([4.0, 9.0])])
    y = [31, -12, 3, 20]
    one, two = consistent(product, y), consistent(product.densify(), y)
    assert one.cells == pytest.approx(two.cells)
    assert one.answers == pytest.approx(two.answers)


def test_other_questions_can_be_asked():
    y = [40, -9, 12, 5, 30, 18, 50]
    found = consistent(HIERARCHY, y, workload=[[1, 1, 1, 1], [0, 0, 1, 0]])
    assert found.answers == pytest.approx([found.cells.sum(), found.cells[2]])
    assert found.unbiased == pytest.approx(
        HIERARCHY.asking([[1, 1, 1, 1], [0, 0, 1, 0]]).rebuild(y)
    )
    with pytest.raises(NotSpanned):
        consistent(ONLY_MARGINS, [9, 9, 6, 6, 6], workload=np.eye(6))


def test_it_is_a_function_of_what_was_released():
    y = measured(HIERARCHY, [3, 0, 1, 0])
    one, two = (consistent(HIERARCHY, y, fixed=[(np.ones(4), 4)]) for _ in range(2))
    assert one.cells.tobytes() == two.cells.tobytes()


# Optimal


@st.composite
def problems(draw, *, most=5):
    d, k = draw(st.integers(1, most)), draw(st.integers(1, 7))
    entries = st.lists(st.integers(-2, 2), min_size=d, max_size=d).filter(any)
    rows = np.array(draw(st.lists(entries, min_size=k, max_size=k)))
    sigma = 2.0 ** np.array(draw(st.lists(st.integers(0, 8), min_size=k, max_size=k)))
    top = draw(st.sampled_from([3, 100, 10**6]))
    x = np.array(draw(st.lists(st.integers(0, top), min_size=d, max_size=d)))
    # Constants that the true cells meet, so that there is something to find.
    fixed = [(row, int(row @ x)) for row in map(np.array, draw(st.lists(entries, max_size=2)))]
    strategy = Dense(rows, sigma, rows.astype(float))
    return strategy, x, measured(strategy, x, draw(st.integers(0, 10**6))), fixed


@settings(deadline=None, derandomize=True, max_examples=200)
@given(problems())
def test_no_choice_of_zeros_does_better(problem):
    strategy, x, y, fixed = problem
    found = consistent(strategy, y, fixed=fixed)
    check_optimal(strategy, y, found, fixed)
    least = brute_force(strategy, y, fixed)
    reached = objective(strategy, found.cells, y)
    # sqrt: distances in standard errors, within what the bound and sums of squares can tell.
    sums = (abs(weighted(strategy)) @ found.cells + abs(y) / strategy.sigma).max()
    rounding = 1e-15 * sums * (1 + np.sqrt(least)) * strategy.shape[0]
    away = np.sqrt(max(reached - least - rounding, 0))
    assert away <= found.within + 1e-5 * (1 + np.sqrt(least))
    assert reached <= objective(strategy, x, y) * (1 + 1e-9) + 1e-9


def test_a_direction_that_only_rounding_measures_is_not_moved_in():
    """The constant takes away all that was measured of the first and third cell."""
    strategy = Dense(np.array([[1, 0, -1, 1]]), np.array([1.0]), np.array([[1.0, 0, -1, 1]]))
    found = consistent(strategy, [-1], fixed=[([1, 0, -1, 0], 0)])
    assert found.cells.max() < 1
    assert np.allclose(found.answers, 0)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(problems(most=8))
def test_true_cells_are_never_farther_than_before(problem):
    """Projection on a convex set that holds the truth: the guarantee in the docstring."""
    strategy, x, y, fixed = problem
    A = weighted(strategy)
    before = np.linalg.lstsq(A, y / strategy.sigma, rcond=None)[0]
    found = consistent(strategy, y, fixed=fixed)
    assert (
        np.linalg.norm(A @ (found.cells - x))
        <= np.linalg.norm(A @ (before - x)) + 1e-4 + found.within
    )


@settings(deadline=None, derandomize=True, max_examples=100)
@given(problems(most=8))
def test_without_signs_the_optimum_is_the_closed_form(problem):
    strategy, _, y, fixed = problem
    found = consistent(strategy, y, fixed=fixed, nonnegative=False)
    check_optimal(strategy, y, found, fixed, nonnegative=False)


def random_case(seed, d=40, top=50):
    """An upper triangular strategy, as a designed one is, sparse counts, three constants."""
    rng = np.random.default_rng(seed)
    rows = np.triu(rng.integers(-40, 41, (d, d))) + 300 * np.eye(d, dtype=int)
    x = rng.integers(0, top, d) * rng.integers(0, 2, d)
    strategy = Dense(rows, 300.0 * rng.choice([1.0, 8.0], d), np.tril(np.ones((d, d))))
    blocks = [np.ones(d), np.arange(d) < d // 2, np.arange(d) % 5 == 0]
    return strategy, x, measured(strategy, x, seed), [(row, float(row @ x)) for row in blocks]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("constants", [0, 3])
def test_it_agrees_with_another_solver(seed, constants):
    strategy, _, y, fixed = random_case(seed)
    fixed = fixed[:constants]
    found = consistent(strategy, y, fixed=fixed)
    check_optimal(strategy, y, found, fixed)
    x = cp.Variable(strategy.shape[1], nonneg=True)
    A = weighted(strategy)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(A @ x - y / strategy.sigma)),
        [row @ x == value for row, value in fixed],
    )
    problem.solve(solver=cp.OSQP, eps_abs=1e-10, eps_rel=1e-10, max_iter=200_000)
    assert np.linalg.norm(A @ (found.cells - x.value)) < 1e-4
    assert objective(strategy, found.cells, y) <= problem.value * (1 + 1e-9)


def test_the_bound_holds_and_sees_a_wrong_solution():
    """Negative control: a point that is only nearly optimal has a bound above its distance."""
    strategy, _, y, _ = random_case(1)
    A, b = weighted(strategy), y / strategy.sigma
    exact = consistent(strategy, y).cells
    centre = np.linalg.lstsq(A, b, rcond=None)[0]
    none = np.zeros((0, len(exact)))
    problem = consistency._Problem(A, centre, none, np.zeros(0), True, len(exact))
    assert consistency._bound(problem, exact, exact == 0, np.zeros(0))[2] < 1e-9
    rng = np.random.default_rng(2)
    for size in (1e-3, 1e-1, 10.0):
        x = exact * (1 + size * rng.random(len(exact)))
        bound = consistency._bound(problem, x, x == 0, np.zeros(0))[2]
        distance = np.linalg.norm(A @ (x - exact))
        assert distance <= bound
        assert bound > 10 * consistency.TOLERANCE * distance


def test_zeros_that_are_wrong_are_mended_without_the_solver():
    strategy, _, y, fixed = random_case(3)
    exact = consistent(strategy, y, fixed=fixed)
    A, b = weighted(strategy), y / strategy.sigma
    centre = np.linalg.lstsq(A, b, rcond=None)[0]
    F, f = consistency._independent(*map(np.array, zip(*fixed, strict=True)))
    problem = consistency._Problem(A, centre, F, f, True, len(centre))
    start = consistency._solve(problem, centre, problem.first_step())
    x, multipliers, active, _ = start
    wrong = active.copy()
    wrong[[0, 3, 9, 20]] ^= True
    found, within = consistency._finish(problem, problem.feasible(x, wrong), wrong, multipliers)
    assert within < consistency.TOLERANCE
    assert found == pytest.approx(exact.cells, abs=1e-6)


@pytest.mark.parametrize("top", [10**3, 10**6, 10**9])
def test_counts_may_be_a_million_times_the_noise(top):
    strategy, x, y, fixed = random_case(5, top=top)
    found = consistent(strategy, y, fixed=fixed)
    check_optimal(strategy, y, found, fixed)
    assert [row @ found.cells for row, _ in fixed] == pytest.approx(
        [v for _, v in fixed], rel=1e-12
    )
    assert np.all(np.abs(found.cells - x) < 20 * 8)


@pytest.mark.parametrize("seed", range(3))
def test_cells_that_were_not_measured_are_chosen_possible(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 10**6, 6) * rng.integers(0, 2, 6)
    y = measured(ONLY_MARGINS, x, seed)
    found = consistent(ONLY_MARGINS, y)
    check_optimal(ONLY_MARGINS, y, found)
    assert found.answers == pytest.approx(MARGINS @ found.cells)
    fixed = [(np.ones(6), int(x.sum())), (np.eye(6)[1], int(x[1]))]
    check_optimal(ONLY_MARGINS, y, consistent(ONLY_MARGINS, y, fixed=fixed), fixed)


def test_among_equal_cells_those_near_the_least_norm():
    """The estimate of least norm has a negative cell: the nearest equal cells without one."""
    y = np.array([30, 3, 1, 16, 16])
    start = np.linalg.pinv(MARGINS) @ y
    assert start.min() < -3
    x = cp.Variable(6, nonneg=True)
    cp.Problem(cp.Minimize(cp.sum_squares(x - start)), [MARGINS @ x == y]).solve(
        solver=cp.OSQP, eps_abs=1e-10, eps_rel=1e-10, max_iter=100_000
    )
    found = consistent(ONLY_MARGINS, y)
    assert not found.changed.any()
    assert found.cells == pytest.approx(x.value, abs=1e-3)
    assert consistent(ONLY_MARGINS, [30, 30, 20, 20, 20]).cells == pytest.approx([10] * 6)


# Each was found by search to need one precaution of the method, which it names: rows, sigma, y,
# constants.
HARD = {
    "the solver's multipliers where free cells do not determine them": (
        [
            [-3, -1, -2, 1, 3, 2, 1], [2, -2, -1, -1, -1, -3, -2], [-3, 3, 1, 0, 0, 3, -2],
            [1, 0, -1, -2, 1, -1, -3], [3, -1, 1, 0, 3, -3, 3], [2, 1, -3, 2, 1, 3, -2],
            [3, 2, -1, -3, 3, 2, 2], [0, 1, -1, 1, 0, 1, -1],
        ],
        [512, 1, 16, 16, 64, 2048, 16, 512],
        [-54128890, 61808759, -222991888, 90594089, 408872081, 156226434, 385722886, -16114914],
        [
            ([0, 0, 1, 1, 1, 1, 0], 61278659),
            ([-2, -2, -1, 2, -1, -2, -2], -220682669),
            ([1, 0, 0, 1, 0, 1, 1], 79702005),
        ],
    ),
    "cells that must vanish": (
        [
            [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1], [1, 0, 1],
            [0, 1, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1],
        ],
        [32, 16, 512, 512, 1, 64, 4, 64, 512, 1],
        [830579215, 830579219, -169, -86, 830579201, 41, 4, -84, 830579244, 830579200],
        [([1, 0, 1], 830579202), ([-2, 2, 1], -1661158404), ([1, 2, -1], 830579202)],
    ),
    "a ridge where cells are not measured": (
        [
            [-1, 1, 0, -2, 3, 0, 0, 3, 2, 3, -2, 1], [2, 2, 2, -1, -1, 1, 0, 3, 1, -3, 2, 1],
            [3, 0, -3, -2, 3, -2, 2, 3, 0, 1, 3, 3], [1, -1, -3, 2, 2, 2, 1, -2, -2, 1, 2, -2],
            [-2, 3, 0, -2, 1, 3, -1, -1, 2, 3, 0, 0],
        ],
        [1024, 2, 4, 1024, 1],
        [1914748, 773565, 386779, 3013798, 4443183],
        [],
    ),
    "bounds in the size of their cells": (
        [
            [2, -1], [1, 2], [-3, -2], [1, -2], [1, -2], [0, -2], [-2, -3], [-1, 0],
            [-1, 0], [3, 1], [-3, -2], [-1, 3], [-1, 2], [0, -1], [3, 1], [-2, -3],
        ],
        [512, 2048, 8, 4, 4, 2, 32, 2048, 2, 8, 2, 32, 2, 16, 1, 2048],
        [
            -959216428, 1918433833, -1918433798, -1918433792, -1918433796, -1918433794,
            -2877650685, 575, 1, 959216903, -1918433794, 2877650696, 1918433797, -959216901,
            959216897, -2877648969,
        ],
        [([0, -2], -1918433796), ([1, 1], 959216900)],
    ),
    "steps that end a hair below 0": (
        [[0, 1, 1, 1, 1], [1, 0, 1, 0, 1], [0, 0, 1, 0, 1]],
        [16, 64, 16],
        [1361528147, 13, -8],
        [
            ([2, -1, 1, 2, 2], 1356639486),
            ([1, 1, 0, 0, 1], 455472254),
            ([0, 0, 1, 1, 1], 906055870),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(HARD))
def test_hard_cases_found_by_search(name):
    rows, sigma, y, fixed = HARD[name]
    strategy = Dense(rows, np.array(sigma, float), np.array(rows, float))
    found = consistent(strategy, y, fixed=fixed)
    # Data a hundred million times the noise: the bound is what was proved, multipliers by LP
    # are not that fine.
    assert found.within <= consistency.TOLERANCE * max(1.0, found.moved)
    assert found.cells.min() >= 0
    for row, value in fixed:
        assert row @ found.cells == pytest.approx(value, rel=1e-12, abs=1e-6)


def test_constraints_hold_or_do_not():
    problem = consistency._Problem(
        np.eye(2), np.array([3.0, 1e6]), np.ones((1, 2)), np.array([5.0]), True, 2
    )
    assert problem.holds(np.array([2.0, 3.0]))
    assert not problem.holds(np.array([-1e-9, 5.0]))
    assert not problem.holds(np.array([2.0, 3.0 + 1e-8]))
    drifted = problem.feasible(np.array([-1e-17, 4.0]), np.zeros(2, dtype=bool))
    assert problem.holds(drifted)


# Constants


def test_constants_that_leave_no_room_are_kept():
    """Subtotals of 0, and a total equal to one of its parts: some cells must be 0."""
    y = [40, 9, 12, 5, 30, 18, 50]
    found = consistent(HIERARCHY, y, fixed=[([1, 1, 0, 0], 0)])
    assert found.cells[:2].tolist() == [0, 0]
    check_optimal(HIERARCHY, y, found, [([1, 1, 0, 0], 0)])
    equal = [([1, 1, 1, 1], 33), ([1, 0, 0, 1], 33)]
    found = consistent(HIERARCHY, y, fixed=equal)
    assert found.cells[1:3].tolist() == [0, 0]
    check_optimal(HIERARCHY, y, found, equal)
    assert consistent(HIERARCHY, y, fixed=[(np.ones(4), 0)]).cells.tolist() == [0] * 4


def test_constants_may_repeat_each_other():
    fixed = [(np.ones(4), 33), (2 * np.ones(4), 66), ([1, 1, 0, 0], 20), ([0, 0, 1, 1], 13)]
    found = consistent(HIERARCHY, [40, 9, 12, 5, 30, 18, 50], fixed=fixed)
    assert found.cells.sum() == pytest.approx(33, rel=1e-14)
    check_optimal(HIERARCHY, [40, 9, 12, 5, 30, 18, 50], found, fixed)


def test_constants_at_odds_with_the_measurement_show_in_how_far_cells_moved():
    y = measured(HIERARCHY, [400, 90, 120, 50])
    near = consistent(HIERARCHY, y, fixed=[(np.ones(4), 660)])
    far = consistent(HIERARCHY, y, fixed=[(np.ones(4), 6600)])
    assert near.moved < 5
    assert far.moved > 1000


@pytest.mark.parametrize(
    ("fixed", "options", "named"),
    [
        ([([1, 1, 0, 0], 5), ([1, 0, 0, 0], 9)], {}, r"fixed\[0\] = 5, fixed\[1\] = 9:"),
        (
            [([1, 1, 1, 1], 50), ([0, 1, 0, 0], 3), ([1, 1, 1, 1], 49), ([1, 0, 0, 0], 2)],
            {},
            r"non-negative cells satisfy fixed\[0\] = 50, fixed\[2\] = 49:",
        ),
        ([([1, 0, 0, 0], -2)], {}, r"non-negative cells satisfy fixed\[0\] = -2:"),
        (
            [([1, 1, 0, 0], 5), ([2, 2, 0, 0], 11)],
            {"nonnegative": False},
            r"no cells satisfy fixed\[0\] = 5, fixed\[1\] = 11:",
        ),
        (
            [([2, 4, 6, 0], 7)],
            {"integer": True},
            r"non-negative whole cells satisfy fixed\[0\] = 7:",
        ),
        (
            [([2, -2, 0, 0], 1)],
            {"integer": True, "nonnegative": False},
            r"no whole cells satisfy fixed\[0\] = 1:",
        ),
    ],
)
def test_contradictions_are_refused_by_name(fixed, options, named):
    with pytest.raises(InvalidInput, match=named):
        consistent(HIERARCHY, [40, 9, 12, 5, 30, 18, 50], fixed=fixed, **options)


# Whole cells


def largest_remainders(x, total):
    whole = np.floor(x)
    short = round(total - whole.sum())
    whole[np.argsort(whole - x, kind="stable")[:short]] += 1
    return whole


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.integers(-5, 400), min_size=1, max_size=12), st.integers(0, 3000))
def test_with_a_total_alone_whole_cells_have_the_largest_remainders(y, total):
    cells = Diagonal([16.0] * len(y))
    fixed = [(np.ones(len(y)), total)]
    real, whole = (consistent(cells, y, fixed=fixed, integer=i).cells for i in (False, True))
    assert whole.dtype.kind == "i"
    assert whole.sum() == total
    assert whole.min() >= 0
    best = np.abs(largest_remainders(real, total) - real).sum()
    assert np.abs(whole - real).sum() == pytest.approx(best, abs=1e-6)


def least_whole(x, weight, fixed, around=2):
    """The least weighted distance over every whole table near x that keeps the constants."""
    ranges = [range(max(0, int(v) - around), int(v) + around + 2) for v in x]
    distances = [
        float(weight @ np.abs(np.array(n) - x))
        for n in itertools.product(*ranges)
        if all(np.dot(row, n) == value for row, value in fixed)
    ]
    return min(distances, default=np.inf)


@pytest.mark.parametrize("seed", range(24))
def test_no_whole_table_is_nearer(seed):
    rng = np.random.default_rng(seed)
    strategy = Dense(TREE, 2.0 ** rng.integers(0, 6, len(TREE)), PREFIXES)
    x = rng.integers(0, 9, 4)
    y = measured(strategy, x, seed)
    fixed = [(row, int(row @ x)) for row in ([0, 1, -1, 0], [1, 2, 0, 0], [1, 1, 1, 1])[: seed % 4]]
    real = consistent(strategy, y, fixed=fixed)
    whole = consistent(strategy, y, fixed=fixed, integer=True)
    for row, value in fixed:
        assert int(np.dot(row, whole.cells)) == value
    weight = np.linalg.norm(weighted(strategy), axis=0)
    reached = float(weight @ np.abs(whole.cells - real.cells))
    assert reached == pytest.approx(least_whole(real.cells, weight, fixed), abs=1e-6)
    assert whole.answers == pytest.approx(PREFIXES @ whole.cells)


def test_whole_cells_stay_above_zero_where_below_would_be_nearer():
    """3 a + 5 b = 10 near (10/3, 0): (5, -1) is nearer than (0, 2)."""
    found = consistent(Diagonal([4.0, 4.0]), [4, -8], fixed=[([3, 5], 10)], integer=True)
    assert found.cells.tolist() == [0, 2]


def test_the_cell_measured_best_is_rounded_least():
    """4 more than measured, shared 4/13 to the first and 16/13 to each other: one rounds up.

    The first has the greatest remainder, 0.31 for 0.23, and twice the weight.
    """
    found = consistent(Diagonal([4.0, 8, 8, 8]), [10] * 4, fixed=[([1] * 4, 44)], integer=True)
    assert found.cells[0] == 10
    assert sorted(found.cells[1:]) == [11, 11, 12]


def test_whole_hierarchies_add_up_exactly():
    strategy, _, y, fixed = random_case(7, d=64, top=10**6)
    found = consistent(strategy, y, fixed=fixed, integer=True)
    assert found.cells.dtype.kind == "i"
    assert found.cells.min() >= 0
    for row, value in fixed:
        assert sum(int(v) for v, r in zip(found.cells, row, strict=True) if r) == value


def test_whole_cells_may_be_negative_where_signs_are_free():
    found = consistent(Diagonal([4.0, 4.0]), [-7, 4], integer=True, nonnegative=False)
    assert found.cells.tolist() == [-7, 4]
    found = consistent(
        Diagonal([4.0, 4.0]), [-7, 4], fixed=[([1, 1], -20)], integer=True, nonnegative=False
    )
    assert found.cells.sum() == -20
    assert abs(found.cells[0] + 15.5) == 0.5


# Bad input


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"fixed": [[1, 2, 3]]}, r"fixed\[0\] must be a pair"),
        ({"fixed": [3]}, r"fixed\[0\] must be a pair"),
        ({"fixed": [([1, 1], 3)]}, r"fixed\[0\] must have one entry for each of 4 cells"),
        ({"fixed": [([1, 1, 1, np.nan], 3)]}, r"row of fixed\[0\] must be finite"),
        ({"fixed": [([1, 1, 1, 1], np.inf)]}, r"value of fixed\[0\] must be finite"),
        ({"fixed": [([0, 0, 0, 0], 0)]}, r"row of fixed\[0\] is all zeros"),
        ({"fixed": [([1, 1, 1, 0.5], 3)], "integer": True}, r"fixed\[0\] must be whole"),
        ({"fixed": [([1, 1, 1, 1], 3.5)], "integer": True}, r"fixed\[0\] must be whole"),
        ({"workload": [[1.0, 2.0]]}, "4 cells"),
    ],
)
def test_bad_input_gets_one_sentence(options, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        consistent(HIERARCHY, [40, 9, 12, 5, 30, 18, 50], **options)


def test_only_a_measurement_is_made_consistent():
    with pytest.raises(InvalidInput, match="7 rows"):
        consistent(HIERARCHY, [1, 2, 3])
    with pytest.raises(InvalidInput, match="must hold integers"):
        consistent(HIERARCHY, [1.5] * 7)


def test_too_many_cells_are_refused_before_anything_is_written_out():
    cells = Diagonal([4.0] * (consistency.MOST_CELLS + 1))
    with pytest.raises(TooLarge, match="at most 5,000, got 5,001"):
        consistent(cells, np.zeros(cells.shape[0], dtype=int))


def test_what_is_not_proved_is_not_returned(monkeypatch):
    """Whatever the solver says of itself, a bad solution is refused by its bound."""
    strategy, _, y, _ = random_case(2)

    def unfinished(problem, x, active, multipliers):
        return x, consistency._bound(problem, x, active, multipliers)[2]

    monkeypatch.setattr(consistency, "_finish", unfinished)
    assert consistent(strategy, y).within < 1e-4  # the solver alone, asked for 1e-10
    monkeypatch.setattr(consistency, "_ROUNDS", 1)
    monkeypatch.setattr(consistency, "_SOLVER", 1e6)
    with pytest.raises(NotConverged, match=r"standard errors, and 0\.0.* is asked"):
        consistent(strategy, y)


def test_numbers_beyond_exact_doubles_are_refused_before_the_search(monkeypatch):
    monkeypatch.setattr(consistency, "milp", None)
    with pytest.raises(InvalidInput, match=r"below 2\^53"):
        consistent(Diagonal([4.0]), [3], fixed=[([1], 2**60)], integer=True)


def test_a_search_that_runs_out_of_time_returns_nothing(monkeypatch):
    monkeypatch.setattr(consistency, "_SECONDS", 0.0)
    with pytest.raises(NotConverged, match="fix fewer"):
        consistent(
            HIERARCHY, [40, 9, 12, 5, 30, 18, 50], fixed=[([3, 7, 9, 11], 400)], integer=True
        )
