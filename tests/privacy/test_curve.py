"""The curve against arb at 60 digits by the printed formula, dp-accounting, and its own laws."""

import itertools
import math
import os
import signal
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape._arb import precision
from noiseshape.errors import InvalidInput
from noiseshape.privacy import curve, delta, epsilon, log_delta, mu, privacy_bound

EPSILONS = [0.0, 1e-300, 1e-11, 1e-3, 0.1, 1.0, 5.0, 30.0, 700.0, 1e4, 5e5]
DELTAS = [1e-300, 1e-100, 1e-30, 1e-9, 1e-5, 0.1, 0.5, 0.9, 1 - 2**-53]
MUS = [1e-12, 1e-6, 1e-3, 0.1, 1.0, 2.0, 10.0, 100.0, 1e3]


def truth(eps, mu_):
    """The curve as printed, by arb with digits to spare: at least 60 are right.

    Written apart from the package: Phi by erfc of exact arguments, where arb is sharp.
    """
    with precision(8192):
        h, t = arb(mu_) / 2, arb(eps) / arb(mu_)
        root2 = arb(2).sqrt()

        def phi(x):
            return (-x / root2).mid().erfc() / 2

        value = phi(h - t) - arb(eps).exp() * phi(-h - t)
        assert value.rel_accuracy_bits() > 200
        return value


def ulps(a, b):
    """How many doubles b lies from a, counted one by one."""
    steps = 0
    while a != b and steps < 100:
        a, steps = math.nextafter(a, b), steps + 1
    return steps


class TestReferencePoints:
    """The points of design.md section 5; the fourth, as a double, lies above the truth."""

    POINTS = (
        (1.0, 1e-5, 0.26805112321129422),
        (0.1, 1e-9, 0.019916423412681466),
        (10.0, 1e-6, 1.8481322057670841),
        (0.0, 1e-5, 2.5066282746966239e-5),
    )

    @pytest.mark.parametrize(("eps", "d", "printed"), POINTS)
    def test_mu_is_within_four_ulps_and_never_unsafe(self, eps, d, printed):
        found = mu(eps, d)
        assert ulps(found, printed) <= 4
        assert truth(eps, found) <= arb(d)

    def test_the_next_double_is_unsafe(self):
        """A negative control: one step up breaks the promise, so the check above can fail."""
        for eps, d, _ in self.POINTS:
            assert not truth(eps, math.nextafter(mu(eps, d), 1e9)) <= arb(d)


@pytest.mark.parametrize(("eps", "m"), list(itertools.product(EPSILONS, MUS)))
def test_delta_is_the_least_double_above_the_truth(eps, m):
    value, log = delta(eps, m), log_delta(eps, m)
    exact = truth(eps, m)  # down to e^(-1e35), far below the smallest float
    assert value == 1.0 or exact <= arb(value)  # delta never exceeds 1
    assert not exact <= arb(math.nextafter(value, 0.0))
    with precision(512):
        assert log == 0.0 or exact.log() <= arb(log)
        assert not exact.log() <= arb(math.nextafter(log, -math.inf))


@pytest.mark.parametrize(("eps", "d"), list(itertools.product(EPSILONS, DELTAS)))
def test_mu_and_epsilon_are_safe_and_sharp(eps, d):
    m = mu(eps, d)
    assert delta(eps, m) <= d < delta(eps, math.nextafter(m, 1e9))
    back = epsilon(d, m)
    assert delta(back, m) <= d
    assert back <= eps
    assert back == 0 or d < delta(math.nextafter(back, 0), m)


def test_a_search_that_ends_on_the_unsafe_side_is_put_right(monkeypatch):
    """Newton's steps are not trusted: what they find is certified, or moved until it is."""
    honest = curve._newton
    monkeypatch.setattr(curve, "_newton", lambda *a, **k: honest(*a, **k) * (1 + 2e-15))
    assert truth(1.0, mu(1.0, 1e-5)) <= arb(1e-5)
    monkeypatch.setattr(curve, "_newton", lambda *a, **k: honest(*a, **k) * (1 - 2e-15))
    assert truth(epsilon(1e-5, 0.3), 0.3) <= arb(1e-5)


def test_where_logarithms_alone_err_by_13_percent():
    """eps = 1e-11, mu = 1e-12: the terms of the curve agree to 25 digits."""
    exact = truth(1e-11, 1e-12)
    assert exact <= arb(delta(1e-11, 1e-12)) <= exact * arb(1 + 5e-16)


def test_log_delta_below_the_smallest_float():
    """phi(t) h^0 ... : log delta = -t^2/2 + log(mu / (t^2 sqrt(2 pi))) up to O(1/t^2)."""
    m, t = 1e-3, 1e3
    expected = -((t - m / 2) ** 2) / 2 + math.log(m / t**2 / math.sqrt(2 * math.pi))
    assert log_delta(t * m, m) == pytest.approx(expected, rel=1e-10)
    assert delta(t * m, m) == 5e-324  # rounded up: never zero for a release that costs


def test_limits_by_name():
    assert delta(1.0, 0.0) == 0.0
    assert delta(0.0, 1e3) == 1.0
    assert log_delta(1.0, 0.0) == -math.inf
    assert epsilon(0.0, 1.0) == math.inf
    assert epsilon(0.0, 0.0) == 0.0
    assert epsilon(0.9, 0.1) == 0.0
    assert mu(1.0, 0.0) == 0.0


def test_shapes_broadcast():
    grid = delta(np.array([[0.5], [1.0]]), np.array([0.1, 0.2, 0.3]))
    assert grid.shape == (2, 3)
    assert grid[1, 2] == delta(1.0, 0.3)
    assert isinstance(delta(1.0, 0.3), float)


@pytest.mark.parametrize("eps", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("d", [1e-9, 1e-5, 0.01])
def test_dp_accounting_agrees_to_its_own_accuracy(eps, d):
    """Its search stops near 1e-12; it was seen to under-noise in the 14th digit."""
    assert 1 / get_sigma_gaussian(eps, d) == pytest.approx(mu(eps, d), rel=1e-12)
    assert get_epsilon_gaussian(1 / 0.7, d) == pytest.approx(epsilon(d, 0.7), rel=1e-12)


@pytest.mark.parametrize("eps", [0.0, 1e-100, 1e-11, 0.1, 1.0, 300.0, 1e20])
@pytest.mark.parametrize("d", [1e-320, 1e-100, 1e-12, 1e-5, 0.4, 1 - 2**-53])
def test_imgm_algorithm_2_is_a_second_derivation(eps, d):
    """The nearest double by one search, and the one below by the other: neighbours at most."""
    assert ulps(mu(eps, d), privacy_bound(eps, d)) <= 1


def test_imgm_algorithm_2_as_printed_is_wrong():
    """Line 7 prints u/T inside the first Phi: with T = 10 the errata gives B = 0.074."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def printed(u, eps=1.0, T=10):
        return ndtr(-math.sqrt(eps * u / T)) - math.exp(eps) * ndtr(-math.sqrt(eps * (u + 2)))

    u = brentq(lambda u: printed(u) - 1e-5, 0, 1e4)
    wrong = math.sqrt(2) / (math.sqrt(1 + u / 2) + math.sqrt(u / 2))
    assert wrong == pytest.approx(0.074, abs=5e-4)
    assert privacy_bound(1.0, 1e-5) == pytest.approx(0.268, abs=5e-4)


reals = st.floats(-9, 5).map(lambda x: 10.0**x)
costs = st.floats(-10, 3).map(lambda x: 10.0**x)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(eps=reals, m=costs, factor=st.floats(1.001, 10))
def test_monotone(eps, m, factor):
    assert log_delta(eps, m) <= log_delta(eps, m * factor)
    assert log_delta(eps * factor, m) <= log_delta(eps, m)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(eps=reals, d=st.floats(-250, -0.01).map(lambda x: 10.0**x))
def test_inverse_laws(eps, d):
    m = mu(eps, d)
    assert delta(eps, m) <= d
    assert delta(eps, m) == pytest.approx(d, rel=1e-6)
    assert epsilon(d, m) <= eps


@pytest.mark.parametrize("function", [delta, log_delta])
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "x", None])
def test_bad_epsilon_and_mu(function, bad):
    with pytest.raises(InvalidInput, match="epsilon"):
        function(bad, 1.0)
    with pytest.raises(InvalidInput, match="mu"):
        function(1.0, bad)


@pytest.mark.parametrize("bad", [-1e-9, 1.0, 2.0, math.nan, math.inf])
def test_bad_delta(bad):
    with pytest.raises(InvalidInput, match="delta must be at least 0 and below 1"):
        mu(1.0, bad)
    with pytest.raises(InvalidInput, match="delta must be at least 0 and below 1"):
        epsilon(bad, 1.0)


@pytest.mark.parametrize(
    "bad",
    [
        "1",
        b"1",
        True,
        1j,
        [1.0, None],
        [[1.0], [1.0, 2.0]],
        np.array([1 + 1j]),
        np.datetime64("2020"),
        np.ma.masked_array([1.0, 2.0], mask=[False, True]),
        np.longdouble("nan"),
    ],
    ids=str,
)
def test_what_is_no_real_number(bad):
    """numpy would read most of these: a string, a date, what a mask hides, half of a complex."""
    with pytest.raises(InvalidInput, match="epsilon must be a real number or an array of them"):
        mu(bad, 1e-5)


def test_what_doubles_cannot_hold_is_rounded_toward_privacy():
    most, tenth = Fraction(9, 10), Decimal("0.1")  # the nearest doubles lie above
    assert Fraction(float(most)) > most
    assert Fraction(float(tenth)) > tenth
    assert mu(0, most) == mu(0, math.nextafter(0.9, 0)) < mu(0, 0.9)
    assert mu(tenth, 1e-5) == mu(math.nextafter(0.1, 0), 1e-5)
    below = Fraction(1, 3)  # the nearest double lies below
    assert delta(1.0, below) == delta(1.0, math.nextafter(float(below), 1))
    assert mu([1, most], 1e-5).shape == (2,)
    assert mu(np.float32(1), 1e-5) == mu(np.int8(1), 1e-5) == mu(1.0, 1e-5)


@pytest.mark.parametrize("eps", [5e-324, 1e-200, 1e-20, 1e8, 1e20, 1e30])
@pytest.mark.parametrize("d", [5e-324, 1e-320, 1e-9, 0.5, 1 - 2**-53])
def test_the_ends_of_the_range(eps, d):
    m = mu(eps, d)
    assert delta(eps, m) <= d < delta(eps, math.nextafter(m, math.inf))
    assert delta(epsilon(d, m), m) <= d
    assert epsilon(d, 1e16) < math.inf


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: mu(1e308, 0.5), r"epsilon must be at least 0 and at most 1e\+30, got 1e\+308"),
        (lambda: mu(10**400, 0.5), r"epsilon must be at least 0 and at most 1e\+30"),
        (lambda: epsilon(1e-5, 1e154), r"mu must be at least 0 and at most 1e\+16, got 1e\+154"),
        (lambda: delta(1.0, Fraction(10**400)), r"mu must be at least 0 and at most 1e\+16"),
    ],
)
def test_beyond_the_range_is_one_sentence(call, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        call()


def test_shapes_that_do_not_broadcast():
    with pytest.raises(InvalidInput, match=r"\(2,\) and \(3,\)"):
        mu(np.ones(2), np.full(3, 0.1))


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, 1e31, 10**400, "1", b"1"])
def test_bad_epsilon_for_the_bound(bad):
    with pytest.raises(InvalidInput, match="epsilon"):
        privacy_bound(bad, 1e-5)


def test_a_fork_in_the_middle_of_another_threads_arithmetic_does_not_hang():
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            epsilon(1e-9, 0.3)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # a deadlock ends by a signal, which the parent sees
                os._exit(0 if mu(1.0, 1e-5) > 0 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
