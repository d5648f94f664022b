import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import noiseshape as ns
from noiseshape.learn import PrivateRidge
from noiseshape.learn.ridge import simulate_norm

rng = np.random.default_rng(3)
X = np.column_stack([rng.uniform(0, 1, 600), rng.uniform(10, 90, 600)])
y = 5 * X[:, 0] - 0.1 * X[:, 1] + rng.normal(0, 0.5, 600)
BOUNDS, Y_BOUNDS = [(0, 1), (0, 100)], (-12, 8)


def made(mu=1e6, **further):
    return PrivateRidge(BOUNDS, Y_BOUNDS, ns.Budget(mu=mu), unrecorded=True, **further)


@pytest.mark.parametrize("alpha", [0.0, 5.0, 200.0])
def test_without_noise_to_speak_of_it_is_scikit_learns_on_scaled_columns(alpha):
    fitted = made(alpha=alpha).fit(X, y)
    half = np.array([0.5, 50.0])
    theirs = Ridge(alpha=alpha).fit(X / half, y / 10)
    assert fitted.coef_ == pytest.approx(theirs.coef_ * 10 / half, rel=2e-3)
    assert fitted.intercept_ == pytest.approx(theirs.intercept_ * 10, abs=2e-2)
    assert fitted.alpha_ == alpha
    assert fitted.predict(X) == pytest.approx(theirs.predict(X / half) * 10, abs=2e-2)


def test_the_penalty_is_the_expected_norm_of_the_noise():
    """One column: E|N| = sqrt(2 / pi) sigma; many: Wigner's 2 sigma sqrt(m), a little less."""
    one = PrivateRidge((0, 4), (0, 2), ns.Budget(mu=0.1), unrecorded=True).plan(X[:, :1], y)
    sigma = np.sqrt(one.coordinates[-3])  # count, two sums, three products: x x first
    sigma /= 4  # in half ranges of 2
    assert simulate_norm(one, 20_000) == pytest.approx(np.sqrt(2 / np.pi) * sigma, rel=0.02)
    m = 80
    many = PrivateRidge((-1, 1), (-1, 1), ns.Budget(mu=0.1), noise="isotropic", unrecorded=True)
    plan = many.plan(np.zeros((5, m)), np.zeros(5))
    i, j = plan.query.entries
    off = np.sqrt(plan.coordinates[-len(i) :][i != j])
    assert off.std() < 1e-6 * off[0]
    assert 0.9 < simulate_norm(plan, 20) / (2 * off[0] * np.sqrt(m)) <= 1.0


def test_the_penalty_reads_nothing():
    first, second = (made(mu=0.5).fit(X[:n], y[:n]) for n in (600, 3))
    assert first.alpha_ == second.alpha_ == simulate_norm(first.release_.plan)


def test_units_do_not_matter():
    """By default every column counts by its range: dollars or cents, the same noise."""
    plain = made(mu=0.5).plan(X, y)
    scaled = PrivateRidge([(0, 4), (0, 100)], Y_BOUNDS, ns.Budget(mu=0.5)).plan(X * [4, 1], y)
    assert scaled.strategy.variance == pytest.approx(plain.strategy.variance, rel=1e-9)


def test_errors_are_what_they_say():
    many = [made(mu=1.0, alpha=1.0).fit(X, y) for _ in range(100)]
    spread = np.std([[*m.coef_, m.intercept_] for m in many], axis=0)
    stated = np.array(many[0].errors().data["stderr"])
    assert np.all(abs(spread / stated - 1) < 0.4)
    assert np.any(abs(1.6 * spread / stated - 1) > 0.4)
    assert many[0].errors().data["coefficient"] == ("x0", "x1", "intercept")


def test_noise_alone_still_gives_a_finite_model_within_bounds():
    for rows in (0, 600):
        fitted = made(mu=1e-4).fit(X[:rows], y[:rows])
        assert np.all(np.isfinite(fitted.predict(X)))
        assert np.abs(fitted.coef_).max() < 1e3


def test_columns_that_hang_together_have_a_solution():
    twin = np.column_stack([X[:, 0], X[:, 0]])
    fitted = PrivateRidge((0, 1), Y_BOUNDS, ns.Budget(mu=1e6), alpha=0, unrecorded=True)
    assert np.all(np.isfinite(fitted.fit(twin, y).coef_))


@pytest.mark.parametrize(
    ("given", "target", "said"),
    [
        ({"y_bounds": None}, y, "bounds of the target"),
        ({"y_bounds": (1, 0)}, y, "low < high"),
        ({"alpha": -1}, y, "alpha must be 'noise' or at least 0"),
        ({"alpha": float("nan")}, y, "alpha must be finite"),
        ({"alpha": "cv"}, y, "alpha must be 'noise' or a number"),
        ({}, None, "requires y to be passed, but the target y is None"),
        ({}, y[:5], "as many rows"),
        ({}, np.column_stack([y, y]), "one target at a time"),
        ({}, y.astype(complex), "Complex data not supported"),
        ({}, np.array(["a"] * 600), "one list of numbers"),
    ],
)
def test_bad_input(given, target, said):
    estimator = made().set_params(**given)
    with pytest.raises(ns.InvalidInput, match=said):
        estimator.fit(X, target)
    assert not hasattr(estimator, "release_")


def test_a_target_beside_a_frame_that_is_not_pandas():
    import polars as pl

    with pytest.raises(ns.InvalidInput, match="name its column"):
        PrivateRidge(
            {"a": (0, 1), "b": (0, 100)}, Y_BOUNDS, ns.Budget(mu=1.0), unrecorded=True
        ).fit(pl.DataFrame(X, schema=["a", "b"]), y)


def test_a_target_that_is_mistyped_is_named():
    frame = pd.DataFrame({"age": [1.0, 2.0], "stay": [3.0, 4.0]})
    ridge = PrivateRidge(
        bounds={"age": (0, 9)}, y_bounds=(0, 9), budget=ns.Budget(mu=1), unrecorded=True
    )
    with pytest.raises(ns.InvalidInput, match=r"'stays' is no column of the rows: .* age, stay\."):
        ridge.fit(frame, "stays")
    assert ridge.fit(frame, "stay").coef_.shape == (1,)
