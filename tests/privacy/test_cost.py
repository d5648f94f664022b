"""Costs and budgets are exact; what is printed is rounded toward privacy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.errors import InvalidInput
from noiseshape.privacy import (
    Budget,
    Cost,
    Profile,
    classic_sigma,
    compose,
    compose_profiles,
    delta,
    mu_from_rdp,
    mu_from_rho,
)

squares = st.fractions(min_value=Fraction(1, 10**12), max_value=10**6)


@settings(deadline=None, derandomize=True)
@given(square=squares)
def test_mu_is_rounded_up_for_a_cost(square):
    cost = Cost(square)
    assert Fraction(cost.mu) ** 2 >= square
    assert Fraction(math.nextafter(cost.mu, 0)) ** 2 < square
    assert Fraction(cost.rho) >= square / 2
    assert Fraction(cost.rdp(3.5)) >= Fraction(7, 2) * square / 2


@settings(deadline=None, derandomize=True)
@given(a=squares, b=squares, c=squares)
def test_composition_is_exact_and_a_commutative_sum(a, b, c):
    assert Cost(a) + Cost(b) == Cost(b) + Cost(a)
    assert compose([Cost(a), Cost(b), Cost(c)]).mu_squared == a + b + c
    assert Cost(a) * 3 == 3 * Cost(a) == compose([Cost(a)] * 3)


def test_t_fold_is_sqrt_t_times_mu():
    """IMGM, Theorem 4."""
    assert (Cost.of(0.5) * 16).mu == 2.0


@settings(deadline=None, derandomize=True)
@given(mu=st.floats(1e-6, 1e3))
def test_renyi_divergence_by_numerical_integration(mu):
    """The Renyi divergence of N(mu, 1) from N(0, 1), by quadrature, at order 2.5."""
    alpha = 2.5
    if mu < 5:
        x, weights = np.polynomial.hermite_e.hermegauss(120)
        ratio = np.exp((alpha - 1) * (mu * x + mu**2 / 2))
        value = math.log(weights @ ratio / weights.sum()) / (alpha - 1)
        assert Cost.of(mu).rdp(alpha) == pytest.approx(value, rel=1e-8, abs=1e-12)
    assert mu_from_rdp(alpha, Cost.of(mu).rdp(alpha)) == pytest.approx(mu, rel=1e-14)
    assert mu_from_rho(Cost.of(mu).rho) == pytest.approx(mu, rel=1e-14)


@settings(deadline=None, derandomize=True)
@given(amount=st.floats(1e-9, 1e6), alpha=st.floats(1.01, 1e3))
def test_what_an_amount_buys_is_the_greatest_double_that_it_covers(amount, alpha):
    """In rationals: never more privacy loss than was stated, and the next double is more."""
    for bought, factor in (
        (mu_from_rho(amount), Fraction(1, 2)),
        (mu_from_rdp(alpha, amount), Fraction(alpha) / 2),
    ):
        assert Fraction(bought) ** 2 * factor <= Fraction(amount)
        assert Fraction(math.nextafter(bought, 1e9)) ** 2 * factor > Fraction(amount)


def test_a_budget_is_equal_to_another_that_allows_the_same():
    assert Budget(rho=0.5) == Budget(mu=1.0)
    assert hash(Budget(rho=0.5)) == hash(Budget(mu=1.0))
    assert Budget(mu=1.0) != Budget(mu=math.nextafter(1.0, 2))
    assert Budget(epsilon=1.0, delta=1e-5) == Budget(delta=1e-5, epsilon=1.0)
    assert Budget(mu=1.0) != Cost.of(1.0)


def test_a_budget_never_allows_more_than_was_stated():
    budget = Budget(epsilon=1.0, delta=1e-5)
    spent = Cost(budget.mu_squared)
    assert budget.allows(spent)
    assert spent.delta(1.0) <= 1e-5
    assert spent.epsilon(1e-5) <= 1.0
    assert not budget.allows(Cost(budget.mu_squared + Fraction(1, 10**40)))


def test_rationals_are_not_rounded_up_on_their_way_into_a_budget():
    exact = Budget(epsilon=Fraction(1, 10), delta=Fraction(9, 10))  # doubles lie above both
    assert exact == Budget(epsilon=math.nextafter(0.1, 0), delta=math.nextafter(0.9, 0))
    assert exact.mu_squared < Budget(epsilon=0.1, delta=0.9).mu_squared


def test_a_budget_says_what_spending_all_of_it_promises():
    budget = Budget(rho=0.125)
    spent = Cost(budget.mu_squared)
    assert budget.epsilon(1e-9) == spent.epsilon(1e-9)
    assert budget.delta(1.0) == spent.delta(1.0)
    assert budget.rdp(8) == 1.0
    assert Budget(epsilon=1.0, delta=1e-5).epsilon(1e-5) <= 1.0


def test_a_cost_beyond_doubles_is_infinite_in_them():
    cost = Cost(Fraction(10**700))
    assert cost.mu == cost.rho == math.inf
    assert repr(cost) == "Cost(mu=inf, rho=inf, add-remove)"
    with pytest.raises(InvalidInput, match="mu must be at least 0"):
        cost.epsilon(1e-9)


def test_a_cost_in_the_words_of_a_budget():
    cost = Cost.of(0.5)
    assert Budget(mu=1.0).in_its_words(cost) == "mu=0.5"
    assert Budget(rho=1.0).in_its_words(cost) == "rho=0.125"
    said = Budget(epsilon=1.0, delta=1e-5).in_its_words(cost)
    assert said == f"epsilon={cost.epsilon(1e-5):.6g} at delta=1e-05"


def test_cost_on_the_curve():
    cost = Cost.of(0.7)
    assert cost.delta(0.5) == delta(0.5, 0.7)
    assert cost.epsilon(cost.delta(0.5)) <= 0.5
    assert cost.log_delta(0.5) == pytest.approx(math.log(cost.delta(0.5)))


def test_frozen_and_readable():
    cost, budget = Cost.of(0.25), Budget(epsilon=1.0, delta=1e-5)
    for thing, name in [(cost, "mu_squared"), (budget, "mu_squared")]:
        with pytest.raises(AttributeError):
            setattr(thing, name, Fraction(0))
    assert repr(cost) == "Cost(mu=0.25, rho=0.03125, add-remove)"
    assert repr(budget) == "Budget(epsilon=1, delta=1e-05: mu=0.268051)"


def test_relations_do_not_mix():
    with pytest.raises(InvalidInput, match="one relation"):
        Cost.of(1.0) + Cost.of(1.0, "replace")
    assert Cost.of(1.0) != Cost.of(1.0, "replace")


class TestProfiles:
    def test_cells_add_and_the_maximum_is_below_the_sum_of_maxima(self):
        one = Profile(np.array([4, 1]), 2)
        two = Profile(np.array([1, 8]), 3)
        both = compose_profiles([one, two])
        assert both == Profile(np.array([9, 10]), 3)
        assert both.greatest == Fraction(10, 8) < one.greatest + two.greatest

    def test_equality_means_the_same_rationals(self):
        assert Profile(np.array([1, 2]), 1) == Profile(np.array([2, 4]), 2)
        assert Profile(np.array([1, 2]), 1) != Profile(np.array([2, 2]), 1)
        assert Profile(np.array([1, 2]), 1) != Profile(np.array([1]), 1)

    def test_values_are_rounded_up(self):
        profile = Profile(np.array([2**60 + 1, 3]), 61)
        assert Fraction(profile.values()[0]) > Fraction(2**60 + 1, 2**61)
        assert profile.values()[1] == 3 / 2**61

    @settings(deadline=None, derandomize=True)
    @given(st.lists(st.integers(-50, 50), min_size=4, max_size=12))
    def test_the_bound_for_replace_is_never_exceeded(self, entries):
        A = np.array(entries[: len(entries) // 2 * 2]).reshape(2, -1)
        pairs = ((A[:, :, None] - A[:, None, :]) ** 2).sum(0)
        bound = Profile((A**2).sum(0), 0).replace_bound()
        if A.shape[1] > 1:
            assert pairs.max() <= bound

    def test_the_profile_alone_does_not_tell_the_cost_of_replacing(self):
        """design.md section 5: profile [1, 1] each, and costs sqrt 2, 2 and 0."""
        assert Profile(np.array([1, 1]), 0).replace_bound() == 4

    def test_a_profile_beyond_doubles_can_be_shown(self):
        assert repr(Profile([10**400, 1], 0)) == "Profile(2 cells, greatest inf)"

    def test_refusals(self):
        with pytest.raises(InvalidInput, match="2 and 3 cells"):
            Profile(np.array([1, 2]), 0) + Profile(np.array([1, 2, 3]), 0)
        with pytest.raises(InvalidInput, match="at least one cell"):
            Profile(np.array([]), 0)
        with pytest.raises(InvalidInput, match="at least 0: 1 of 2 are not"):
            Profile(np.array([4, -1]), 0)
        with pytest.raises(InvalidInput, match="at least 0: 2 of 2 are not"):
            Profile(np.array([4, 1]), 0) * -1
        with pytest.raises(InvalidInput, match="at least one"):
            compose_profiles([])


def test_the_classic_calibration_takes_the_smallest_deltas():
    """ln(1.25/delta) where 1.25/delta is no double: 320 ln 10 + ln 1.25 = 737.05."""
    assert classic_sigma(0.5, 1e-320) == pytest.approx(2 * math.sqrt(2 * 737.05), rel=1e-4)


def test_the_classic_calibration_is_wasteful_and_refuses_large_epsilon():
    sigma = classic_sigma(0.5, 1e-5, sensitivity=2.0)
    assert sigma == pytest.approx(4 * math.sqrt(2 * math.log(1.25e5)))
    assert 2 / sigma < Budget(epsilon=0.5, delta=1e-5).mu
    with pytest.raises(InvalidInput, match="only for epsilon below 1, got 1"):
        classic_sigma(1.0, 1e-5)


BAD = [
    ({}, "got nothing"),
    ({"epsilon": 1.0}, "got epsilon"),
    ({"mu": 1.0, "rho": 1.0}, "got mu, rho"),
    ({"epsilon": -1.0, "delta": 0.1}, "epsilon must be at least 0"),
    ({"epsilon": math.nan, "delta": 0.1}, "epsilon must be finite"),
    ({"epsilon": math.inf, "delta": 0.1}, "epsilon must be finite"),
    ({"epsilon": 1.0, "delta": 1.0}, "delta must be above 0 and below 1"),
    ({"epsilon": 1.0, "delta": 0.0}, "delta must be above 0 and below 1"),
    ({"epsilon": 1.0, "delta": -0.1}, "delta must be above 0 and below 1"),
    ({"mu": 0.0}, "mu must be above 0"),
    ({"mu": Fraction(10**400)}, "protects nobody"),
    ({"rho": 0.0}, "rho must be above 0"),
    ({"rho": math.inf}, "rho must be finite"),
    ({"mu": "much"}, "mu must be an int, a float or a Fraction"),
    ({"mu": True}, "mu must be an int, a float or a Fraction, got bool"),
    ({"epsilon": "1", "delta": 0.1}, "epsilon must be an int, a float or a Fraction, got str"),
    ({"epsilon": 1.0, "delta": "0.1"}, "delta must be an int, a float or a Fraction, got str"),
    ({"epsilon": 1e308, "delta": 0.1}, "at most 1e\\+30"),
    ({"epsilon": 1.0, "delta": math.nan}, "delta must be finite"),
]


@pytest.mark.parametrize(("stated", "sentence"), BAD)
def test_a_bad_budget_is_one_clear_sentence(stated, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        Budget(**stated)


def test_other_refusals():
    for call, sentence in [
        (lambda: Cost(0.5), "Fraction"),
        (lambda: Cost(Fraction(-1)), "at least 0"),
        (lambda: Cost(Fraction(1), "swap"), "neighbours"),
        (lambda: Cost.of(-1.0), "mu must be above 0, got -1"),
        (lambda: Cost.of(Fraction(-1, 10**400)), "mu must be above 0, got -4.9"),
        (lambda: Cost.of(1.0).epsilon([0.1, 0.2]), "delta must be one number here, got an array"),
        (lambda: Cost.of(1.0).delta([]), "epsilon must be one number here"),
        (lambda: compose([Cost.of(1.0), 1.0]), "compose takes each a Cost, got float"),
        (lambda: compose_profiles([1, 2]), "takes each a Profile, got int"),
        (lambda: classic_sigma(1e-320, 1e-5), "passes 1.8e308"),
        (lambda: classic_sigma(0.5, 1e-5, 10**400), "sensitivity must be at most 1.8e308"),
        (lambda: Cost.of(1.0) * 0, "at least 1"),
        (lambda: Cost.of(1.0) * 1.5, "whole number"),
        (lambda: Cost.of(1.0).rdp(1.0), "above 1"),
        (lambda: compose([]), "at least one"),
    ]:
        with pytest.raises(InvalidInput, match=sentence):
            call()
