"""MVG's conditions: closed forms twice, and what they imply about the true cost."""

from fractions import Fraction
from math import log, sqrt

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from noiseshape.design.condition import Condition, harmonic, norm_bound, theorem_4
from noiseshape.design.covariances import Covariances, Mode
from noiseshape.errors import InvalidInput
from noiseshape.privacy import curve

PLAIN = {"m": 6, "n": 248, "s2": sqrt(24), "gamma": sqrt(1488), "epsilon": 1.0, "delta": 1 / 248}

SIDES = st.integers(0, 40).map(lambda k: round(10 ** (k / 10)))  # 1 to 10,000


@st.composite
def conditions(draw):
    theorem = draw(st.sampled_from([2, 3]))
    m = draw(SIDES)
    s2 = 10 ** draw(st.floats(-6, 6))
    return Condition(
        m=m,
        n=m if theorem == 3 else draw(SIDES),
        s2=s2,
        gamma=s2 / 2 * 10 ** draw(st.one_of(st.just(0.0), st.floats(0, 4))),
        epsilon=10 ** draw(st.floats(-6, 3)),
        delta=10 ** -draw(st.floats(0.01, 60)),
        theorem=theorem,
        zeta=draw(st.sampled_from(["printed", "tight"])),
    )


class TestClosedForms:
    @pytest.mark.parametrize("r", [1, 2, 12, 13, 400])
    def test_harmonic_numbers(self, r):
        assert harmonic(r) == pytest.approx(float(sum(Fraction(1, i) for i in range(1, r + 1))))
        assert harmonic(r, 0.5) == pytest.approx(sum(i**-0.5 for i in range(1, r + 1)))

    def test_by_hand(self):
        c = Condition(**PLAIN)
        H, root = 2.45, sum(i**-0.5 for i in range(1, 7))
        z = 2 * sqrt(1488 * log(248)) + 2 * log(248) + 1488
        assert c.alpha == pytest.approx((H + root) * 1488 + 2 * H * sqrt(1488 * 24))
        assert c.omega == pytest.approx(4 * H * sqrt(1488 * 24))
        assert c.beta == pytest.approx(2 * 1488**0.25 * z * H * sqrt(24))

    @given(conditions())
    @settings(max_examples=60, deadline=None)
    def test_phi_is_the_printed_root(self, c):
        a, b = (arb(c.alpha if c.theorem == 2 else c.omega), arb(c.beta))
        bits, ctx.prec = ctx.prec, 400
        try:
            printed = (-b + (b * b + 8 * a * arb(c.epsilon)).sqrt()) / (2 * a)
        finally:
            ctx.prec = bits
        assert c.phi == pytest.approx(float(printed), rel=1e-12)
        assert c.precision_budget(c.n) == pytest.approx(float(printed) ** 4 / c.n, rel=1e-11)

    def test_precision_budgets_are_where_the_condition_is_tight(self):
        """Theorems 5 and 6: precisions with that sum stand exactly at the border."""
        rng = np.random.default_rng(1)
        for theorem, m, n in ((2, 4, 7), (2, 5, 5), (3, 5, 5)):
            c = Condition(**PLAIN | {"m": m, "n": n, "theorem": theorem, "epsilon": 30.0})
            if theorem == 2:
                theta = rng.dirichlet(np.ones(m))
                v = (theta * c.precision_budget(iid=n)) ** -0.5
                assert Covariances(v, np.ones(n)).phi == pytest.approx(c.phi)
                w = (rng.dirichlet(np.ones(n)) * c.precision_budget(iid=m)) ** -0.5
                assert Covariances(np.ones(m), w).phi == pytest.approx(c.phi)
            if m == n:
                v = (rng.dirichlet(np.ones(m)) * c.precision_budget()) ** -0.5
                both = Covariances(v, v)
                assert both.phi == pytest.approx(c.phi)
                more, less = Mode(v * 1.0001), Mode(v * 0.9999)
                assert c.allows(Covariances(more, more))
                assert not c.allows(Covariances(less, less))

    @pytest.mark.parametrize("zeta", ["printed", "tight"])
    @pytest.mark.parametrize("delta", [0.5, 1e-3, 1e-12])
    def test_zeta_bounds_the_norm_of_the_noise(self, zeta, delta):
        for m, n in ((1, 1), (3, 4), (40, 50)):
            assert stats.chi2.sf(norm_bound(m, n, delta, zeta) ** 2, m * n) <= delta

    def test_a_zeta_that_is_too_small_is_found_by_the_same_check(self):
        assert stats.chi2.sf((0.9 * norm_bound(40, 50, 1e-3, "tight")) ** 2, 2000) > 1e-3


class TestTrueCost:
    @given(conditions())
    @settings(max_examples=250, deadline=None)
    def test_no_design_that_is_allowed_costs_more_than_the_exact_bound(self, c):
        """Every design has mu <= s2 phi: mu^2 takes the greatest of what phi^2 takes the norm."""
        assert c.s2 * c.phi <= c.budget

    @given(conditions(), st.integers(0, 2**32 - 1))
    @settings(max_examples=60, deadline=None)
    def test_designs_at_the_border(self, c, seed):
        rng = np.random.default_rng(seed)
        m, n = min(c.m, 30), min(c.n, 30)
        c = Condition(**{k: getattr(c, k) for k in c.__dataclass_fields__} | {"m": m, "n": n})
        rows = np.exp(rng.normal(0, rng.choice([0.01, 1, 10]), m))
        columns = rows if c.theorem == 3 else np.exp(rng.normal(0, 1, n))
        noise = Covariances(rows, columns)
        scale = (noise.phi / c.phi) * (1 + 1e-9)
        if c.theorem == 3:
            mode = Mode(rows * scale)
            noise = Covariances(mode, mode)
        else:
            noise = noise.scaled(scale)
        assert c.allows(noise)
        assert noise.mu(c.s2) <= c.budget

    def test_a_smaller_gamma_fails_and_is_refused(self):
        """At 0.3 s2 the tight Theorem 2 allows mu = 1.12 B: no guarantee, and so refused."""
        c = Condition(m=1, n=1, s2=1.0, gamma=0.5, epsilon=1e5, delta=1e-5, zeta="tight")
        object.__setattr__(c, "gamma", 0.3)
        assert c.s2 * c.phi == pytest.approx(1.12 * c.budget, rel=0.01)
        with pytest.raises(InvalidInput, match=r"gamma must be at least s2 / 2 = 0\.5, got 0\.3"):
            Condition(m=1, n=1, s2=1.0, gamma=0.3, epsilon=300.0, delta=0.5)

    def test_the_budget_is_the_curves(self):
        assert Condition(**PLAIN).budget == curve.mu(1.0, 1 / 248)


class TestTheorem4:
    @given(st.integers(1, 400), st.floats(0.01, 2.0))
    @settings(max_examples=80, deadline=None)
    def test_both_rules_suffice_and_better_is_exact(self, r, ratio):
        told = theorem_4(r, ratio, 1.0)
        assert told.better or not (told.by_sensitivity or told.by_size)
        two, three = (
            Condition(m=r, n=r, s2=ratio, gamma=1.0, epsilon=1.0, delta=1e-5, theorem=t)
            for t in (2, 3)
        )
        assert told.better == (three.omega <= two.alpha)
        assert (three.phi >= two.phi) == told.better or two.phi == pytest.approx(three.phi)

    def test_twelve_is_the_last_size_that_fails(self):
        assert [theorem_4(r, sqrt(2), 1.0).better for r in (11, 12, 13, 14)] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"gamma": None}, "MVG needs gamma"),
        ({"delta": 0}, "delta above 0"),
        ({"delta": 1.0}, "delta must be above 0 and below 1"),
        ({"delta": float("nan")}, "delta must be finite"),
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"s2": -1.0}, "s2 must be above 0"),
        ({"theorem": 4}, "theorem must be 2 or 3"),
        ({"theorem": 3}, "not square"),
        ({"zeta": "loose"}, "printed"),
        ({"m": 0}, "m must be at least 1"),
    ],
)
def test_bad_input(change, says):
    with pytest.raises(InvalidInput, match=says):
        Condition(**PLAIN | change)


def test_noise_of_another_kind_is_refused():
    c = Condition(**PLAIN | {"n": 6, "theorem": 3})
    with pytest.raises(InvalidInput, match="equal covariances"):
        c.allows(Covariances(np.ones(6), np.arange(1.0, 7.0)))
    with pytest.raises(InvalidInput, match="the answer"):
        c.allows(Covariances(np.ones(5), np.ones(5)))
    with pytest.raises(InvalidInput, match="square"):
        Condition(**PLAIN).precision_budget()
    with pytest.raises(InvalidInput, match="size of a mode"):
        Condition(**PLAIN).precision_budget(iid=7)
