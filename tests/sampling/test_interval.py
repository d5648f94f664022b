"""Each word is settled as a slow reference settles it, on every path."""

import threading
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape._arb import ball, precision, to_fraction
from noiseshape.sampling import interval
from noiseshape.sampling.interval import (
    ABSOLUTE,
    RELATIVE,
    TAIL,
    settle_exactly,
    settle_quickly,
    tail_midpoint,
)

SIGN = 1 << 63
SIGMAS = [
    Fraction(1, 100),
    Fraction(1, 3),
    Fraction(1),
    Fraction(10, 3),
    Fraction(1000),
    Fraction(2**40 + 1, 7),
    Fraction(2**40),
    Fraction(2**60),
    Fraction(2**80),
]


def quickly(words, sigma):
    m, settled = settle_quickly(np.array(words, dtype=np.uint64), np.float64(float(sigma)))
    return m, settled


def straddling(tail, m: int, sigma: Fraction, words: int) -> list[int]:
    """The words whose interval holds the tail probability of the edge between m and m + 1."""
    width = 64 * words
    with precision(width + 200):
        scaled = tail(ball(Fraction(2 * m + 1, 2) / sigma)) * 2**width
        k = int(scaled.floor().unique_fmpz())
    return [(k >> 64 * i) % 2**64 for i in reversed(range(words))]


# ---------------------------------------------------------------- margins


@pytest.mark.parametrize(
    "region",
    ["anywhere", "near one half", "between the two formulas of ndtri", "tail"],
)
def test_float_error_is_far_inside_the_margin(region, tail):
    # 100,000 intervals in four regions. The true |N| of either end of the interval must lie
    # within a quarter of the margin of what doubles said (worst in ten million: see the docs).
    rng = np.random.default_rng(20261101)
    count = 25_000
    p = {
        "anywhere": lambda: rng.uniform(TAIL, 0.5, count),
        "near one half": lambda: 0.5 - 2.0 ** -rng.uniform(2, 52, count),
        "between the two formulas of ndtri": lambda: (
            np.exp(-2) * (1 + rng.choice([-1, 1], count) * 2.0 ** -rng.uniform(3, 40, count))
        ),
        "tail": lambda: 2.0 ** -rng.uniform(1, 17, count),
    }[region]()
    words = np.minimum(p * 2.0**64, 2.0**63 - 1024).astype(np.uint64)
    words += rng.integers(0, 1024, count, dtype=np.uint64)  # low bits that p cannot hold
    sigma = Fraction(10, 3)
    worst = worst_share_of_margin(words, sigma, tail)
    assert 0.01 < worst < 0.25, f"{region}: {worst}"


def worst_share_of_margin(words, sigma, tail, error=0.0):
    """The largest error of the doubles in units of the margin, over all the intervals."""
    x = np.abs(interval.ndtri(tail_midpoint(words)) * float(sigma)) * (1 + error)
    worst = 0.0
    with precision(128):
        scale = 1 / ball(sigma)
        for k, xi in zip(words.tolist(), x.tolist(), strict=True):
            t = ball(xi) * scale
            q = tail(t)
            # |t - N| = |Q(t) - p| / phi(somewhere between), p the farther end of the interval;
            # phi varies by less than 1e-9 between, as p >= 2^-17.
            gap = float(abs(q - ball(Fraction(2 * k + 1, 2**65)))) + 2.0**-65
            t = float(t)
            distance = gap / (np.exp(-t * t / 2) / np.sqrt(2 * np.pi)) * (1 + 1e-9)
            worst = max(worst, distance / (RELATIVE * t + ABSOLUTE))
    return worst


def test_the_margin_test_would_see_a_bad_inverse(tail):
    words = np.random.default_rng(0).integers(2**50, 2**63, 200, dtype=np.uint64)
    assert worst_share_of_margin(words, Fraction(1), tail, error=2.0**-46) > 1


@pytest.mark.parametrize("sigma", [Fraction(2**40), Fraction(2**43) / 3])
def test_draws_that_are_only_just_settled_are_right(sigma, reference):
    # At large sigma the margin is a visible share of an integer, so that many words end
    # just inside it; those are where a margin too thin would show.
    words = np.random.default_rng(7).integers(2**48, 2**64, 40_000, dtype=np.uint64)
    m, settled = quickly(words, sigma)
    x = np.abs(interval.ndtri(tail_midpoint(words)) * float(sigma))
    slack = 0.5 - ABSOLUTE * float(sigma) - np.abs(x - np.rint(x)) - RELATIVE * x
    narrow = np.flatnonzero(settled & (slack < 0.003))
    assert narrow.size > 100
    assert not settled[slack < -1e-6].any()
    for i in narrow:
        # The reference asserts that both ends of the interval round alike.
        assert reference([int(words[i])], sigma) == m[i]


# ---------------------------------------------------------------- both tiers against the reference


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    word=st.integers(0, 2**64 - 1),
    sigma=st.fractions(min_value=Fraction(1, 100), max_value=2**30, max_denominator=10**6),
)
def test_both_tiers_say_what_the_words_say(word, sigma):
    m, settled = quickly([word], sigma)
    exact = settle_exactly(word, sigma)
    if settled[0]:
        assert exact == m[0]
    assert settle_exactly(word ^ SIGN, sigma) == -exact or not settled[0]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_exact_tier_agrees_with_the_reference(sigma, reference, chosen_bits):
    rng = np.random.default_rng(11)
    for _ in range(40):
        words = [int(w) for w in rng.integers(0, 2**64, 3, dtype=np.uint64)]
        left = chosen_bits(words[1:])
        m = settle_exactly(words[0], sigma)
        used = words[: 3 - len(left)]
        assert m == reference(used, sigma)
        # What was decided early stays decided, whatever bits come later.
        assert m == reference(words, sigma)


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("word", [0, SIGN], ids=["positive", "negative"])
def test_an_open_tail_takes_more_bits(sigma, word, reference, chosen_bits):
    left = chosen_bits([0, 12345, 678, 9])
    m = settle_exactly(word, sigma)
    used = [word, 0, 12345, 678, 9][: 5 - len(left)]
    assert len(used) >= 3
    assert m == reference(used, sigma)
    assert m == 0 or (m < 0) == (word == SIGN)


@pytest.mark.parametrize("sigma", SIGMAS[1:])
@pytest.mark.parametrize("refinements", [1, 2, 3])
@pytest.mark.parametrize("above", [False, True], ids=["inside", "outside"])
def test_a_word_on_an_edge_is_refined_until_it_is_off(
    sigma, refinements, above, tail, reference, chosen_bits
):
    m = max(1, int(sigma))
    # Beyond 2^62 one word spans many integers: it takes a second to be on one edge only.
    words_on_edge = refinements + (sigma > 2**62)
    on_edge = straddling(tail, m, sigma, words_on_edge)
    # All ones lies above the edge's tail probability, so closer in: m; all zeros gives m + 1.
    last = 0 if above else 2**64 - 1
    words = [*on_edge, last, last, last]
    left = chosen_bits(words[1:])
    assert settle_exactly(words[0], sigma) == (m + 1 if above else m)
    used = words[: len(words) - len(left)]
    assert len(used) > words_on_edge
    assert reference(used, sigma) == (m + 1 if above else m)


@pytest.mark.parametrize("sigma", SIGMAS[1:])
def test_doubles_never_settle_an_edge_nor_the_far_tail(sigma, tail):
    ms = sorted({0, 1, int(sigma), 2 * int(sigma)})
    edges = [straddling(tail, m, sigma, 1)[0] for m in ms]
    beside = [w + step for w in edges for step in (-2, -1, 0, 1, 2) if 2 < w < SIGN - 2]
    assert not quickly(beside, sigma)[1].any()
    assert not quickly([0, 1, 2, 2**46, SIGN, SIGN + 5], sigma)[1].any()


def test_doubles_settle_nearly_everything_up_to_2_to_the_40():
    words = np.random.default_rng(3).integers(0, 2**64, 200_000, dtype=np.uint64)
    for sigma, most in ((0.01, 1e-4), (1e3, 1e-4), (1e9, 2e-4), (2.0**40, 0.03)):
        assert np.mean(~quickly(words, sigma)[1]) < most


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    ks=st.lists(st.integers(2**40, 2**63 - 1), min_size=2, max_size=20, unique=True),
    sigma=st.sampled_from(SIGMAS[:7]),
)
def test_less_tail_is_never_less_noise(ks, sigma):
    m, settled = quickly(sorted(ks), sigma)
    assert (np.diff(m[settled]) <= 0).all()


def test_one_sigma_a_draw_or_one_for_all_is_the_same():
    words = np.random.default_rng(5).integers(0, 2**64, 1000, dtype=np.uint64)
    one = settle_quickly(words, np.float64(12.5))
    many = settle_quickly(words, np.full(1000, 12.5))
    assert np.array_equal(one[0], many[0])
    assert np.array_equal(one[1], many[1])


# ---------------------------------------------------------------- precision and threads


def test_the_process_precision_is_left_alone():
    before = ctx.prec
    settle_exactly(2**62 + 12345, Fraction(2**70, 3))
    assert ctx.prec == before


def test_threads_that_share_the_precision_decide_alike(monkeypatch):
    monkeypatch.setattr(interval.bits, "secret_words", lambda n: np.full(n, 2**63 + 99, np.uint64))
    words = [int(w) for w in np.random.default_rng(2).integers(1, 2**64, 150, dtype=np.uint64)]
    sigmas = [Fraction(2**70, 3), Fraction(2**45, 7), Fraction(3)]
    alone = {s: [settle_exactly(w, s) for w in words] for s in sigmas}
    together: dict[Fraction, list[int]] = {}

    def work(s: Fraction) -> None:
        together[s] = [settle_exactly(w, s) for w in words]

    threads = [threading.Thread(target=work, args=(s,)) for s in sigmas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_midpoints_are_within_their_stated_error():
    words = [0, 1, 2**52, 2**53 + 1, 2**62 + 1, 2**63 - 1, 2**63, 2**64 - 1]
    words += np.random.default_rng(4).integers(0, 2**64, 2000, dtype=np.uint64).tolist()
    p = tail_midpoint(np.array(words, dtype=np.uint64))
    for word, pi in zip(words, p.tolist(), strict=True):
        true = Fraction(2 * (word % SIGN) + 1, 2**65)
        assert abs(Fraction(pi) - true) <= true / 2**52
        assert 0 < pi <= 0.5
    assert to_fraction(ball(p[0])) == Fraction(1, 2**65)
