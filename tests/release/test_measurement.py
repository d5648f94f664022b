"""The one door: the budget first, then data, then exact noise, and honest errors."""

from fractions import Fraction

import numpy as np
import pytest

import noiseshape.release.measurement as door
from noiseshape import Budget, BudgetExceeded, Cost, InvalidInput, People, TooLarge, measure
from noiseshape.strategies import Dense, Diagonal, Kronecker, rounded

PREFIXES = np.tril(np.ones((4, 4)))
TREE = np.vstack([np.eye(4), [[1, 1, 0, 0], [0, 0, 1, 1]], np.ones((1, 4))]).astype(int)
SHAPES = {
    "dense": Dense(TREE, 6.0, PREFIXES),
    "rounded": rounded(np.linalg.inv(PREFIXES + np.eye(4)), PREFIXES).strategy,
    "diagonal": Diagonal([64.0, 3.0, 1.0, 20.0]),
    "product": Kronecker([Diagonal([2.0, 5.0]), Dense([[1, 1], [1, -1]], 3.0, np.eye(2))]),
}
PLENTY = Budget(mu=100.0)


def draws(strategy, data, n=6000):
    return np.array([measure(strategy, data, PLENTY).answers() for _ in range(n)])


def distance(answers, mean, covariance):
    """The greatest deviation of the empirical mean and covariance, in standard errors."""
    n, spread = len(answers), np.sqrt(np.diag(covariance))
    first = np.abs(answers.mean(axis=0) - mean) / (spread / np.sqrt(n))
    noise = (answers - mean) / spread
    correlation = covariance / np.outer(spread, spread)
    second = np.abs(noise.T @ noise / n - correlation) / np.sqrt((1 + correlation**2) / n)
    return max(first.max(), second.max())


@pytest.mark.parametrize("name", list(SHAPES))
def test_released_answers_have_the_stated_mean_and_covariance(name):
    """True randomness: at 7.5 standard errors over some 20 entries a false alarm is below 1e-11."""
    strategy, data = SHAPES[name], np.array([1000, 20, 3, 77])
    truth = strategy.rebuild(strategy.apply(data))
    answers = draws(strategy, data)
    assert distance(answers, truth, strategy.covariance()) < 7.5
    # Negative controls: a bias of a quarter, or a variance a third off, must be seen.
    assert distance(answers, truth + 0.25 * np.sqrt(strategy.variance), strategy.covariance()) > 7.5
    assert distance(answers, truth, strategy.covariance() * 1.35) > 7.5


def test_without_noise_the_answers_are_exact(monkeypatch):
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))
    for strategy in SHAPES.values():
        data = np.array([10**6, 20, 3, 77])
        expected = strategy.densify().workload @ data
        assert measure(strategy, data, PLENTY).answers() == pytest.approx(expected, rel=1e-12)


def test_what_is_published_is_integers_and_their_cost():
    release = measure(Diagonal([64.0] * 3), [5, 6, 7], PLENTY)
    assert release.values.dtype == np.int64
    assert release.cost == Diagonal([64.0] * 3).cost()
    assert release.stderr() == pytest.approx(np.sqrt(64**2 + 1 / 12))
    with pytest.raises(AttributeError):
        release.cost = Cost.of(0.0001)


def test_data_beyond_64_bits_is_measured():
    wide = [1 << 80, -(1 << 70), 0]
    release = measure(Diagonal([64.0] * 3), np.array(wide, dtype=object), PLENTY)
    assert all(abs(int(v) - w) < 64 * 20 for v, w in zip(release.values, wide, strict=True))


class Untouchable:
    """Data that fails the test when anybody looks at it."""

    def __array__(self, *args, **kwargs):
        raise AssertionError("data was read before the budget was checked")


def test_the_budget_is_checked_before_data_is_looked_at():
    with pytest.raises(BudgetExceeded, match=r"costs mu = 0\.015625, and 0\.01 is allowed") as info:
        measure(Diagonal([64.0]), Untouchable(), Budget(mu=0.01))
    assert "scale its noise by 1.5625" in str(info.value)
    with pytest.raises(AssertionError):
        measure(Diagonal([64.0]), Untouchable(), Budget(mu=1.0))


def test_the_last_of_a_budget_can_be_spent_and_not_a_hair_more():
    strategy = Diagonal([64.0, 64.0])
    exact = strategy.cost()
    measure(strategy, [1, 2], exact)
    with pytest.raises(BudgetExceeded):
        measure(strategy, [1, 2], Cost(exact.mu_squared - Fraction(1, 10**60)))
    with pytest.raises(BudgetExceeded):
        measure(strategy, [1, 2], exact, people=People("id", 2))


def test_a_budget_of_zero_is_exceeded():
    for nothing in (Cost(Fraction(0)), Budget(mu=Fraction(1, 10**400))):
        with pytest.raises(BudgetExceeded, match="and 0 is allowed: allow more"):
            measure(Diagonal([64.0]), Untouchable(), nothing)


@pytest.mark.parametrize("allowance", [1.0, None, "all", (1.0, 1e-9)])
def test_an_allowance_is_a_budget_or_a_cost(allowance):
    with pytest.raises(InvalidInput, match=r"must be a Budget or a Cost, got .*: Budget\(epsilon"):
        measure(Diagonal([64.0]), Untouchable(), allowance)


def test_a_matrix_is_not_yet_a_strategy():
    with pytest.raises(InvalidInput, match="must be a Strategy, got ndarray"):
        measure(np.eye(2), Untouchable(), PLENTY)


def test_answers_beyond_doubles_are_one_sentence():
    release = measure(Diagonal([64.0]), [10**400], PLENTY)
    with pytest.raises(TooLarge, match="passes 1e308"):
        release.answers()


def test_only_integers_are_measured():
    for data in ([1.0, 2.0], [1.5, 2.0], [np.nan, 1.0]):
        with pytest.raises(InvalidInput, match="must hold integers, got float64"):
            measure(Diagonal([64.0, 64.0]), data, PLENTY)
    with pytest.raises(InvalidInput, match="2 cells"):
        measure(Diagonal([64.0, 64.0]), [1, 2, 3], PLENTY)
    with pytest.raises(InvalidInput, match="equal length"):
        measure(Diagonal([64.0, 64.0]), [[1], [1, 2]], PLENTY)


def test_two_measurements_have_different_noise():
    strategy = Diagonal([2.0**30] * 8)
    one, two = (measure(strategy, [0] * 8, PLENTY).values.tolist() for _ in range(2))
    assert one != two


@pytest.mark.parametrize("exact", [(1 << 62) - 1, 1 << 62, (1 << 62) + 40])
@pytest.mark.parametrize("noise", [-50, 50])
def test_how_a_measurement_is_laid_out_follows_from_its_sum_alone(exact, noise, monkeypatch):
    """What the data passed and the noise took back again must not show in a file's layout."""
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.array([noise]))
    total = measure(Diagonal([64.0]), np.array([exact], dtype=object), PLENTY).values
    assert total.tolist() == [exact + noise]
    assert (total.dtype == object) == (exact + noise >= 1 << 62)
