"""Intervals cover what they say they cover, jointly and for ratios; a narrower one is caught."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from noiseshape.errors import InvalidInput
from noiseshape.release import intervals
from noiseshape.release.intervals import (
    NOISE_ONLY,
    critical,
    display,
    ratio,
    reliability,
    sidak,
    simulate_ratio,
    simultaneous,
)
from noiseshape.strategies import Dense, Diagonal, Kronecker

PREFIXES = np.tril(np.ones((30, 30)))


def missed_by(n, level, covered):
    """By how many binomial standard errors the share covered falls short of ``level``."""
    return (level - covered / n) / math.sqrt(level * (1 - level) / n)


# One interval, and all together


def test_the_critical_value_is_the_normal_quantile():
    for level in (0.5, 0.9, 0.95, 0.99, 1 - 1e-12):
        root = brentq(lambda c, p=level: math.erfc(c / math.sqrt(2)) - (1 - p), 0, 10, xtol=1e-14)
        assert critical(level) == pytest.approx(root, rel=1e-12)


def test_sidak_is_the_quantile_of_independent_maxima():
    for level, m in ((0.95, 1), (0.95, 7), (0.99, 1000), (0.9, 10**9)):
        assert math.log1p(-2 * norm.sf(sidak(level, m))) * m == pytest.approx(math.log(level))
    assert sidak(0.95, 1) == pytest.approx(critical(0.95), rel=1e-14)


def test_independent_answers_have_sidak_s_value_and_copies_the_single_one():
    assert simultaneous(0.95, np.eye(12)) == sidak(0.95, 12)
    assert simultaneous(0.95, Diagonal([2.0, 64.0, 9.0])) == sidak(0.95, 3)
    copies = np.array([[1.0, -2.0], [-3.0, 6.0], [0.1, -0.2], [0.0, 0.0]])
    assert simultaneous(0.95, copies) == critical(0.95)
    # Two independent answers, each asked five times with different factors, and three zeros.
    twice = np.vstack([np.eye(2) * f for f in (1, -1, 3, 1 / 3, 1e-200)] + [np.zeros((3, 2))])
    assert simultaneous(0.9, twice) == sidak(0.9, 2)
    assert simultaneous(0.9, np.zeros((3, 2))) == critical(0.9)


CELLS = np.eye(5, dtype=int)
SHAPES = {
    "prefixes": Dense(np.eye(30, dtype=int), 64.0, PREFIXES),
    "more rows than cells": Dense(np.vstack([CELLS, [[1] * 5] * 2]), 20.0, PREFIXES[:5, :5]),
    "product": Kronecker(
        [Dense([[1, 1], [1, -1]], 3.0, [[1, 0], [1, 1]]), Dense(CELLS, 9.0, PREFIXES[:5, :5])]
    ),
}


def coverage(covariance, value, n=40_000):
    """How many of n draws have every |z| within ``value``: an independent simulation."""
    spread = np.sqrt(np.diag(covariance))
    weights, vectors = np.linalg.eigh(covariance / np.outer(spread, spread))
    root = vectors * np.sqrt(np.maximum(weights, 0))
    z = root @ np.random.default_rng(5).standard_normal((len(root), n))
    return int(np.count_nonzero(np.abs(z).max(axis=0) <= value)), n


@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_simultaneous_intervals_cover_together(name, level):
    strategy = SHAPES[name]
    value = simultaneous(level, strategy)
    assert critical(level) < value <= sidak(level, strategy.queries)
    covered, n = coverage(strategy.covariance(), value)
    assert missed_by(n, level, covered) < 4
    # It errs wide by little; and a value 5 % smaller must be caught.
    assert missed_by(n, level, covered) > -9
    covered, n = coverage(strategy.covariance(), 0.95 * value)
    assert missed_by(n, level, covered) > 4


def test_a_factor_and_the_strategy_agree_and_the_value_is_the_same_each_time():
    strategy = SHAPES["prefixes"]
    factor = np.linalg.cholesky(strategy.covariance())
    value = simultaneous(0.95, strategy)
    assert value < 0.9 * sidak(0.95, 30)
    assert simultaneous(0.95, strategy) == value
    assert simultaneous(0.95, factor) == pytest.approx(value, rel=0.01)
    product = SHAPES["product"]
    assert simultaneous(0.95, product.densify()) == pytest.approx(
        simultaneous(0.95, product), rel=0.01
    )


def test_rows_that_no_answer_uses_and_answers_without_error_are_left_out():
    W = np.vstack([np.zeros((4, 2)), [[1.0, 0.0], [2.0, 0.0]]])
    assert simultaneous(0.95, Dense(np.eye(2, dtype=int), 8.0, W)) == critical(0.95)


def test_many_answers_get_sidak_s_value_without_a_simulation(monkeypatch):
    def refuse(*_):
        raise AssertionError("simulated")

    monkeypatch.setattr(intervals, "simulate_greatest", refuse)
    cells = Dense(np.eye(101, dtype=int), 8.0, np.tril(np.ones((101, 101))))
    assert simultaneous(0.95, Kronecker([cells, cells])) == sidak(0.95, 101**2)
    wide = np.ones((10_001, 1)) * np.arange(1, 3)
    assert simultaneous(0.95, wide) == critical(0.95)  # copies: one answer
    distinct = np.column_stack([np.ones(10_001), np.arange(10_001)])
    assert simultaneous(0.95, distinct) == sidak(0.95, 10_001)
    assert simultaneous(0.95, Diagonal([2.0, 64.0, 9.0])) == sidak(0.95, 3)
    with pytest.raises(AssertionError, match="simulated"):
        simultaneous(0.95, np.tril(np.ones((5, 5))))
    monkeypatch.setattr(intervals, "_EFFORT", 5 * 5 * 1999)
    assert simultaneous(0.95, np.tril(np.ones((5, 5)))) == sidak(0.95, 5)
    with_zeros = np.vstack([np.zeros((4, 5)), np.tril(np.ones((5, 5)))])
    assert simultaneous(0.95, Dense(np.eye(5, dtype=int), 8.0, with_zeros)) == sidak(0.95, 5)


def test_too_few_draws_for_a_high_level_leave_sidak_s_value():
    assert simultaneous(1 - 1e-9, np.tril(np.ones((5, 5)))) == sidak(1 - 1e-9, 5)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.integers(1, 8), st.integers(1, 5), st.integers(0, 10**6), st.floats(0.05, 0.999))
def test_the_value_lies_between_the_single_one_and_sidak_s(m, r, seed, level):
    F = np.random.default_rng(seed).integers(-2, 3, (m, r)).astype(float)
    value = simultaneous(level, F)
    assert critical(level) <= value <= max(sidak(level, m), critical(level))
    # More answers never need less, beyond what the simulation errs wide by.
    assert simultaneous(level, F[:1]) <= value


# Ratios


def fieller_holds(theta, a, b, va, vb, vab, level):
    """The definition: |a - theta b| against its own standard error."""
    return (a - theta * b) ** 2 <= critical(level) ** 2 * (va - 2 * theta * vab + theta**2 * vb)


numbers = st.floats(-1e3, 1e3)
spreads = st.floats(1e-3, 1e2)


@settings(deadline=None, derandomize=True, max_examples=400)
@given(numbers, numbers, spreads, spreads, st.floats(-0.99, 0.99), st.floats(0.5, 0.99))
def test_fieller_keeps_exactly_the_ratios_of_its_definition(a, b, sa, sb, rho, level):
    va, vb, vab = sa**2, sb**2, rho * sa * sb
    found = ratio(a, b, va, vb, vab, level)
    if b:
        assert found.value == a / b
        assert found.value in found
    ends = [e for e in (*(found.excluded or ()), found.low, found.high) if math.isfinite(e)]
    width = max((abs(e) for e in ends), default=1.0)
    around = [e + d * width for e in ends for d in (-0.01, 0.01)]
    assume(all(abs(e - t) > 1e-4 * width for e in ends for t in around))
    for theta in (*around, -1e7, 0.0, 1e7):
        if all(abs(theta - e) > 1e-6 * max(abs(theta), abs(e)) for e in ends):
            assert (theta in found) == fieller_holds(theta, a, b, va, vb, vab, level)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(numbers, numbers, spreads, spreads, st.integers(-60, 60), st.integers(-60, 60))
def test_units_do_not_matter(a, b, sa, sb, p, q):
    assume(b)
    one = ratio(a, b, sa**2, sb**2)
    s, t = 2.0**p, 2.0**q
    two = ratio(a * s, b * t, (sa * s) ** 2, (sb * t) ** 2)
    assert two.kind == one.kind
    assert (two.low * t / s, two.high * t / s) == pytest.approx((one.low, one.high))


@pytest.mark.parametrize("b", [0.0, 1.0, 2.0, 4.0, 50.0])
def test_fieller_covers_whatever_the_denominator(b):
    """Also at 0, where the true ratio is infinite: there a = 0 decides nothing."""
    rng, n, level, rho = np.random.default_rng(11), 4000, 0.9, 0.4
    a = 3.0
    e, f = rng.standard_normal((2, n))
    b = b or 0.01
    noisy = zip(a + 2 * e, b + rho * e + math.sqrt(1 - rho**2) * f, strict=True)
    found = [ratio(x, y, 4.0, 1.0, 2 * rho, level) for x, y in noisy]
    assert abs(missed_by(n, level, sum(a / b in f for f in found))) < 4
    # Negative control: intervals at 80 % do not pass for 90 %.
    noisy = zip(a + 2 * e, b + rho * e + math.sqrt(1 - rho**2) * f, strict=True)
    narrow = sum(a / b in ratio(x, y, 4.0, 1.0, 2 * rho, 0.8) for x, y in noisy)
    assert missed_by(n, level, narrow) > 4


def test_the_kinds_by_name():
    clear = ratio(30, 100, 4, 9)
    assert clear.kind == "bounded"
    assert clear.low < 0.3 < clear.high
    vague = ratio(10, 1, 1, 1)
    assert vague.kind == "complement"
    assert (vague.low, vague.high) == (-math.inf, math.inf)
    assert vague.excluded[0] < 0 < vague.excluded[1]
    assert 0.0 not in vague
    assert 10.0 in vague
    nothing = ratio(0.5, 0.5, 1, 1)
    assert nothing.kind == "everything"
    assert nothing.excluded is None
    assert math.isnan(ratio(1, 0, 1, 1).value)


def test_every_kind_says_what_it_is_and_of_which_error_it_speaks():
    said = {
        "to": ratio(30, 100, 4, 9),
        "ruled out": ratio(10, 1, 1, 1),
        "denominator is not clearly different from 0, and no ratio": ratio(0.5, 0.5, 1, 1),
    }
    for words, found in said.items():
        assert words in str(found)
        assert NOISE_ONLY in str(found)


def test_a_denominator_on_the_very_edge_rules_out_one_side():
    c = critical(0.95)
    kind, (low, high) = intervals._fieller(5.0, c, 1.0, 1.0, 0.0, 0.95)
    assert (kind, low) == ("complement", -math.inf)
    assert 0 < high < 5 / c
    assert fieller_holds(high * 1.001, 5.0, c, 1.0, 1.0, 0.0, 0.95)
    assert not fieller_holds(high * 0.999, 5.0, c, 1.0, 1.0, 0.0, 0.95)
    assert intervals._fieller(-5.0, c, 1.0, 1.0, 0.0, 0.95) == (kind, (-high, math.inf))


def test_what_is_known_without_error_has_no_width():
    assert (ratio(1, 4, 0, 0).low, ratio(1, 4, 0, 0).high) == (0.25, 0.25)
    same = ratio(70.0, 70.0, 9.0, 9.0, 9.0)  # a proportion of itself
    assert (same.low, same.high) == pytest.approx((1.0, 1.0), rel=1e-12)
    exact = ratio(30, 100, 4, 0)
    assert exact.high - 0.3 == pytest.approx(critical(0.95) * 2 / 100)
    assert ratio(0, 100, 0, 4).high == 0


def test_the_simulated_interval_agrees_where_the_denominator_is_clear():
    args = (30.0, 100.0, 4.0, 9.0, 3.0)
    fieller, simulated = ratio(*args), ratio(*args, method="simulated")
    assert simulated.method == "simulated"
    assert (simulated.low, simulated.high) == pytest.approx((fieller.low, fieller.high), abs=0.001)
    assert simulated.high - simulated.low >= fieller.high - fieller.low
    assert ratio(30, 1, 4, 1, method="simulated").kind == "everything"
    assert ratio(1, 4, 0, 0, method="simulated").low == 0.25


def test_the_simulated_interval_covers_where_the_denominator_is_clear():
    rng, n, level = np.random.default_rng(3), 1500, 0.9
    inside = {0.9: 0, 0.75: 0}
    for e, f in rng.standard_normal((n, 2)):
        for tried in inside:
            _, (low, high) = simulate_ratio(3.0 + e, 20.0 + f, 1.0, 1.0, 0.0, tried, 20_000)
            inside[tried] += low <= 3 / 20 <= high
    assert missed_by(n, level, inside[0.9]) < 4
    assert missed_by(n, level, inside[0.75]) > 4


# Digits and flags


@pytest.mark.parametrize(
    ("value", "stderr", "digits", "shown"),
    [
        (1234.567, 21.0, 2, 1235.0),
        (1234.567, 21.0, 1, 1230.0),
        (1234567.0, 2345.0, 2, 1234600.0),
        (0.123456, 0.0234, 2, 0.123),
        (0.30000000000000004, 0.1, 2, 0.3),
        (-3.0, 1000.0, 2, 0.0),
        (7.77, 0.0, 2, 7.77),
        (123456.0, 1000.0, 2, 123500.0),
        (5.25, 0.09999999999999999, 1, 5.25),
    ],
)
def test_values_are_shown_to_the_digits_of_their_error(value, stderr, digits, shown):
    (found,) = display([value], stderr, digits=digits)
    assert found == shown
    assert math.copysign(1, found) == math.copysign(1, shown)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e9), st.integers(1, 4))
def test_rounding_for_display_stays_below_its_error(value, stderr, digits):
    (once,) = display([value], [stderr], digits=digits)
    assert abs(once - value) <= 0.5 * 10.0 ** (1 - digits) * stderr * (1 + 1e-9) + 1e-15 * abs(
        value
    )
    assert display([once], [stderr], digits=digits)[0] == once


def test_flags_follow_the_coefficient_of_variation():
    values = [1000.0, -1000.0, 165.0, 164.0, 333.0, 300.0, 0.0]
    errors = [165.0, 166.0, 0.0, 27.06, 110.889, 100.0, 5.0]
    assert reliability(values, errors) == (
        "good", "use with caution", "good", "good", "use with caution", "unreliable", "unreliable",
    )  # fmt: skip
    assert reliability([0.0], 0.0) == ("good",)
    assert reliability([10.0, 10.0, 10.0], [0.5, 1.5, 3.0], thresholds=(0.1, 0.2)) == (
        "good", "use with caution", "unreliable",
    )  # fmt: skip


# Bad input


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: critical(1.0), "level must be above 0 and below 1, got 1"),
        (lambda: critical(math.nan), "level must be finite"),
        (lambda: sidak(0.95, 0), "answers must be at least 1"),
        (lambda: simultaneous(95, np.eye(2)), "level must be above 0 and below 1, got 95"),
        (lambda: simultaneous(0.95, np.ones(3)), r"2 axes, got shape \(3,\)"),
        (lambda: simultaneous(0.95, [[np.inf]]), "1 of 1 entries"),
        (lambda: ratio(1, 0, 1, 0), "denominator is 0 without error"),
        (lambda: ratio(1, 2, -1, 1), "variance must not be negative, got -1"),
        (lambda: ratio(1, 2, 1, math.nan), "variance_b must be finite"),
        (lambda: ratio(1, 2, 1, 4, 2.1), r"at most sqrt\(variance_a variance_b\) = 2, got 2.1"),
        (lambda: ratio(1, 2, 1, 1, method="delta"), "'fieller' or 'simulated', got 'delta'"),
        (lambda: display([1.0, 2.0], [1.0]), r"one for each of 2 values, got shape \(1,\)"),
        (lambda: display([1.0], [-1.0]), "standard error must not be negative, got -1"),
        (lambda: display([np.nan], [1.0]), "values must be finite"),
        (lambda: display([1.0], [1.0], digits=0), "digits must be at least 1"),
        (lambda: reliability([1.0], 1.0, (0.3, 0.1)), "in order, got 0.3, 0.1"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        call()
