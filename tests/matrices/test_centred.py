"""A covariance as one matrix of whole numbers: exact, and moved by one person as far as is said."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from noiseshape import Budget, People, imgm, load, mvg
from noiseshape import matrices as mx
from noiseshape.errors import InvalidInput
from noiseshape.matrices.centred import Centred, centred
from noiseshape.matrices.query import from_json

BOUNDS = {"a": (-1.0, 1.0), "b": (0.0, 50.0), "c": (-3.0, 5.0)}


def asked(n, neighbours="add-remove", missing="drop", **options):
    people = People(neighbours=neighbours, **options)
    made = mx.covariance(bounds=BOUNDS, count=n, missing=missing, people=people)
    return centred(made)


def rows(n, seed):
    low, high = np.array(list(BOUNDS.values())).T
    u = np.random.default_rng(seed).uniform(-0.2, 1.2, (n, 3))
    return low + (high - low) * np.round(u * 2) / 2  # corners and middles, and beyond


def exact(query, X):
    """C in rationals, from the same grid."""
    z, _ = query.features.whole(X)
    unit = [Fraction(s) for s in query.features.step.tolist()]
    Z = [[Fraction(int(v)) * u for v, u in zip(row, unit, strict=True)] for row in z]
    n, m = query.count, 3
    mean = [sum(r[i] for r in Z) / n for i in range(m)]
    return [
        [sum(r[i] * r[j] for r in Z) / n - mean[i] * mean[j] for j in range(m)] for i in range(m)
    ]


def test_what_is_read_is_the_covariance_exactly():
    query = asked(17)
    X = rows(17, 1)
    v = query.source(X).read()
    unit = Fraction(float(query.step[0]))
    assert Fraction(query.features.step.min()) ** 2 / 17**2 == pytest.approx(unit)
    for value, i, j in zip(v, *query.entries, strict=True):
        scaled = exact(query, X)[i][j] * 17**2 / Fraction(query.features.step.min()) ** 2
        assert scaled == int(value)
    kept, _ = query.features.whole(X)
    plain = np.cov((kept * query.features.step).T, bias=True)
    np.testing.assert_allclose(query.answer(v * query.step), plain, atol=1e-9)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_no_person_moves_it_by_more_than_the_ball_has(neighbours):
    query = asked(6, neighbours, missing="middle")
    far = query.changes.length(neighbours) * query.step[0]
    assert far == pytest.approx(query.s2(), rel=1e-9)
    i, j = query.entries
    times = np.where(i == j, 1, 2)
    worst = 0.0
    for seed in range(300):
        X, other = rows(6, seed), rows(6, seed + 10_000)
        Y = X[1:] if neighbours == "add-remove" else np.vstack([other[:1], X[1:]])
        moved = (query.source(X).read() - query.source(Y).read()) * query.step
        length = float(np.sqrt((times * moved.astype(float) ** 2).sum()))
        assert length <= query.s2()
        worst = max(worst, length)
    assert worst > 0.3 * query.s2()


def test_people_of_several_rows_and_rows_that_leave():
    """s2 holds all of them already, and the cost counts them once."""
    for people in (People("person_id", max_rows=3), People(neighbours="replace")):
        made = mx.covariance(bounds=BOUNDS, count=40, people=people)
        query = centred(made)
        plan = imgm(query)
        assert plan.cost.mu == pytest.approx(1.0, rel=1e-6)
        assert query.s2() == made.s2()


def test_it_is_semidefinite_and_linear_and_keeps_what_was_asked():
    query = asked(9)
    assert query.semidefinite
    assert query.linear
    assert isinstance(query, Centred)
    assert centred(query) is query
    again = from_json(query.to_json())
    assert isinstance(again, Centred)
    assert again.digest() == query.digest()
    private = mx.covariance(bounds=BOUNDS, expected=9)
    assert centred(private) is private
    with pytest.raises(InvalidInput, match="number of rows is public"):
        Centred(features=private.features, people=private.people)


def test_a_covariance_has_mvg_noise_and_is_released(tmp_path):
    budget = Budget(epsilon=1e4, delta=1e-5)
    X = rows(200, 3)
    query = mx.covariance(X, bounds=BOUNDS, columns=["a", "b", "c"], count=200)
    plan = mvg(query, theorem=3).within(budget, exact=True)
    plan.save(tmp_path / "plan.json")
    assert load(tmp_path / "plan.json").digest == plan.digest
    release = plan.release(unrecorded=True)
    told = (release.answer - np.array(exact(centred(query), X), dtype=float)) / release.stderr
    assert np.abs(told).max() < 8
    assert plan.cost.mu == pytest.approx(budget.mu, rel=1e-6)


def test_numbers_beyond_64_bits_are_measured():
    query = asked(10**9)
    plan = imgm(query).within(Budget(mu=1.0))
    x = np.full(query.size, 1 << 90, dtype=object)
    y = plan.measured(x)
    assert np.all(np.abs((plan.strategy.rebuild(y) - 2.0**90) * query.step) < 10 * query.s2())


@pytest.mark.parametrize("missing", ["drop", "middle"])
@pytest.mark.parametrize("people", [People(), People(neighbours="replace")])
def test_a_count_that_is_too_small_costs_nobody_their_privacy(people, missing, tmp_path):
    """A thousand rows where ten were declared: each would move the answer a hundredfold."""
    query = centred(
        mx.covariance(
            bounds=(-1, 1), columns=["x", "y"], step=0.25, count=10, missing=missing, people=people
        )
    )
    X = np.ones((1000, 2))
    Y = np.vstack([X[1:], [[1, -0.5]]]) if people.neighbours == "replace" else X[1:]
    if query.count_public:
        with pytest.raises(InvalidInput, match="about 10 rows, and the data has 1000"):
            query.source(X)
        pd.DataFrame(X, columns=["x", "y"]).to_csv(tmp_path / "rows.csv", index=False)
        with pytest.raises(InvalidInput, match="more rows than were declared"):
            query.source(tmp_path / "rows.csv").read()
        return
    change = query.source(X).read() - query.source(Y).read()
    length = np.sqrt(float(np.sum(query.changes.counts * change.astype(float) ** 2)))
    assert 0 < length <= query.changes.length(people.neighbours)
