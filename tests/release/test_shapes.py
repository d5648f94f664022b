"""Noise by shape: where directional noise beats isotropic, and by how much; targets; refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import noiseshape as ns
from noiseshape import Budget, InvalidInput, matrices
from noiseshape.release.matrixplan import entries, product, whitened
from noiseshape.strategies.changes import Ball, Box, Columns, Spectrum

B = Budget(epsilon=1.0, delta=1e-9)
WIDE = {"a": (-1, 1), "b": (-10, 10), "c": (-100, 100)}


def ratio(query, **weights):
    """Total weighted variance of isotropic noise over that of directional, at equal privacy."""
    w = np.asarray(weights.get("weights", 1.0))
    w = np.broadcast_to(w, query.shape)[query.entries] * query.twice
    both = (ns.isotropic(query), ns.directional(query, **weights))
    return np.divide(*(w @ plan.within(B).variance for plan in both))


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=6))
@settings(deadline=None, max_examples=25)
def test_on_a_box_directional_noise_wins_by_the_unevenness_of_the_bounds(halves):
    """m sum w^2 / (sum w)^2, exactly: 1 for equal bounds, up to m."""
    w = np.array(halves)
    query = matrices.sum(columns=[f"x{i}" for i in range(len(w))], bounds=[(-h, h) for h in w])
    w = query.features.far * query.features.step  # on the grid
    assert_allclose(ratio(query), len(w) * (w @ w) / w.sum() ** 2, rtol=1e-5)


def test_on_a_box_directional_noise_wins_by_the_unevenness_of_the_weights():
    """Equal bounds: m sum a / (sum sqrt a)^2."""
    query = matrices.sum(columns=["a", "b", "c"], bounds=(-1, 1))
    a = np.array([1.0, 25.0, 400.0])
    assert_allclose(ratio(query, weights=a), 3 * a.sum() / np.sqrt(a).sum() ** 2, rtol=1e-5)


def test_on_second_moments_it_wins_by_both():
    """Columns as wide as 1, 10 and 100: 2.9 times less total variance, and more with weights."""
    query = ns.second_moment(bounds=WIDE)
    c = query.features.far * query.features.step
    i, j = np.triu_indices(3)
    far, a = c[i] * c[j], np.where(i == j, 1.0, 2.0)
    # Isotropic: sigma^2 / a each, which costs sum a far^2 / sigma^2 and sums to 6 sigma^2.
    assert_allclose(ratio(query), 6 * (a @ far**2) / (np.sqrt(a) @ far) ** 2, rtol=1e-5)
    u = np.array([100.0, 10.0, 1.0])
    assert ratio(query, weights=np.outer(u, u)) > ratio(query) > 2


def test_on_a_ball_neither_beats_the_other_whatever_the_weights():
    query = ns.gradient(clip=3.0, m=4)
    assert_allclose(ratio(query), 1, rtol=1e-6)
    assert_allclose(ratio(query, weights=np.array([1, 2, 50, 7.0])), 1, rtol=1e-5)
    plan = ns.isotropic(query)
    assert plan.certificate.covers.endswith("any Gaussian noise")
    assert plan.certificate.gap < 1e-9


def test_isotropic_noise_is_equal_in_orthonormal_coordinates_of_each_part():
    """Off the diagonal, where an entry stands twice, half the variance."""
    query = ns.covariance(columns=list(WIDE), bounds=WIDE, expected=100)
    v = ns.isotropic(query).coordinates
    i, j = np.triu_indices(3)
    assert_allclose(v[1:4], v[1], rtol=1e-4)
    assert_allclose(v[4:] * np.where(i == j, 1, 2), v[4], rtol=1e-4)
    moment = ns.isotropic(ns.second_moment(bounds=WIDE)).coordinates
    assert_allclose(moment * np.where(i == j, 1, 2), moment[0], rtol=1e-4)


@pytest.mark.parametrize("ask", ["covariance", "mean", "identity"])
def test_elsewhere_it_is_never_worse(ask):
    more = {"n": 4} if ask == "identity" else {"expected": 1000}
    query = getattr(ns, ask)(columns=list(WIDE), bounds=WIDE, **more)
    assert ratio(query) > 1.5


def test_weights_one_a_column_are_products_for_a_symmetric_answer():
    query = ns.second_moment(bounds=WIDE)
    u = np.array([4.0, 1.0, 2.0])
    one, two = (ns.directional(query, weights=w) for w in (u, np.outer(u, u)))
    assert np.array_equal(one.strategy.sigma, two.strategy.sigma)
    flat = ns.identity(bounds=(0, 1), columns=["a", "b"], n=3)
    one = ns.directional(flat, weights=[1, 9])
    assert_allclose(one.stderr[:, 0] / one.stderr[:, 1], 9**0.25, rtol=1e-6)


def test_targets_are_met_and_the_tightest_just_so():
    for query in (
        ns.covariance(bounds=WIDE, columns=list(WIDE), expected=500),
        ns.second_moment(bounds=WIDE),
        ns.identity(bounds=(0, 1), columns=["a", "b"], n=3),
    ):
        for shaped in (ns.isotropic, ns.directional):
            plan = shaped(query, stderr=2.0)
            assert 1 - 1e-6 < plan.k <= 1
            assert plan.stderr.max() <= 2.0
        assert shaped(query, stderr=2.0).cost.mu <= ns.isotropic(query, stderr=2.0).cost.mu
        assert_allclose(ns.directional(query, margin=2.0).k, 1, rtol=1e-6)


def test_targets_one_an_entry_are_each_met_exactly_where_entries_are_measured_alone():
    query = ns.second_moment(bounds=WIDE)
    T = np.array([[1, 5, 30], [5, 20, 90], [30, 90, 400.0]])
    plan = ns.directional(query, stderr=T)
    assert_allclose(plan.stderr, T, rtol=1e-6)
    assert plan.certificate.gap <= 1e-6
    column = ns.directional(query, stderr=[1, 4, 9])
    assert_allclose(column.stderr, np.sqrt(np.outer([1, 4, 9], [1, 4, 9])), rtol=1e-4)


def test_a_finite_set_is_fitted_among_all_gaussian_noise():
    """Columns in one direction mostly: correlated noise is cheaper than any entry by entry."""
    E = np.array([[8, 9, 10], [10, 9, 8]])
    query = ns.custom(lambda X: X, shape=(2,), changes=Columns(E), step=1, people=ns.People())
    for asked in ({"stderr": 3.0}, {"weights": [1.0, 2.0]}):
        fitted = ns.directional(query, **asked)
        assert "independent" not in fitted.certificate.covers
        assert fitted.certificate.gap <= 1e-3
        alone = entries(query, np.sqrt(fitted.variance), shape="alone")
        assert fitted.cost.mu < 0.9 * alone.cost.mu
    box = ns.matrices.sum(columns=["a", "b"], bounds=(0, 1))  # from 0: not symmetric
    made = ns.directional(box)
    assert "independent" not in made.certificate.covers
    assert ns.directional(box, stderr=1).k <= 1


def test_the_certificate_says_what_it_covers():
    any_noise = ns.directional(matrices.sum(columns=["a", "b"], bounds=(-1, 1)))
    assert any_noise.certificate.covers.endswith("of any noise")
    own = ns.directional(ns.second_moment(columns=["a", "b"], bounds=(-1, 1)))
    assert "independent from entry to entry" in own.certificate.covers
    replaced = ns.second_moment(
        columns=["a", "b"], bounds=(-1, 1), people=ns.People(neighbours="replace")
    )
    assert ns.directional(replaced).certificate is None  # its cost is a bound


@pytest.mark.parametrize("ask", ["sum", "mean", "second_moment", "covariance", "identity"])
def test_directions_have_a_safe_cost(ask):
    """Whatever the directions: no row of the box, and no two, move A x by more than mu."""
    rng = np.random.default_rng(3)
    U = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    more = {"n": 2} if ask == "identity" else {}
    more |= {"expected": 100} if ask in ("mean", "covariance") else {}
    query = getattr(matrices, ask)(columns=list(WIDE), bounds=WIDE, **more)
    plan = ns.directional(query, directions=U)
    assert plan.cost.mu_squared <= 1
    assert "proved bound" in plan.note
    low, high = np.array(list(WIDE.values()), dtype=float).T
    X = np.where(rng.integers(0, 2, (400, 3)), low, high)
    A = plan.strategy.densify().rows.astype(float) / plan.strategy.sigma[:, None]
    f = query.features
    i, j = np.triu_indices(3)
    for x in X:
        z = f.whole(x[None])[0][0].astype(float)
        D = {
            "count": [1.0],
            "sums": z,
            "products": z[i] * z[j],
            "entries": np.r_[z - f.least, z * 0],
        }
        v = np.concatenate([D[part] for part in query.parts])
        assert ((A @ v) ** 2).sum() <= float(plan.cost.mu_squared)
    # Noise is independent along the directions.
    S = np.linalg.inv(A.T @ A)
    if ask == "sum":
        step = query.step
        along = U.T @ (step[:, None] * S * step) @ U
        assert_allclose(along, np.diag(np.diag(along)), atol=1e-5 * np.abs(along).max())


def test_a_product_has_the_covariance_that_was_asked_and_a_free_scale():
    query = ns.identity(columns=["a", "b"], bounds=[(0, 1), (0, 4)], n=3)
    Psi, Sigma = np.diag([1.0, 2.0, 5.0]), np.array([[2.0, 1.0], [1.0, 3.0]])
    plan = ns.kronecker(query, rows=Psi, columns=Sigma)
    assert 0.99 < plan.cost.mu <= 1
    R = np.linalg.inv(plan.strategy.densify().rows.astype(float) / plan.strategy.sigma[:, None])
    S = query.step[:, None] * (R @ R.T) * query.step
    wanted = np.kron(Psi, Sigma)
    assert_allclose(S / S[0, 0], wanted / wanted[0, 0], atol=1e-4)
    assert_allclose(plan.stderr**2 / S[0, 0], np.outer(np.diag(Psi), np.diag(Sigma)) / 2, rtol=1e-4)


def test_known_singular_values_cost_what_imgm_theorem_1_says():
    values = [9.0, 2.0]
    query = ns.custom(lambda X: X, shape=(2, 3), changes=Spectrum((2, 3), values), step=1)
    Psi, Sigma = np.diag([1.0, 4.0]), np.diag([1.0, 9.0, 16.0])
    plan = ns.kronecker(query, rows=Psi, columns=Sigma, variance=1e6)
    a, b = 1 / np.diag(Psi), 1 / np.diag(Sigma)
    scale = 1e6 / (4 * 16)
    exact = (a[0] * b[0] * values[0] ** 2 + a[1] * b[1] * values[1] ** 2) / scale
    assert_allclose(float(plan.cost.mu_squared), exact, rtol=1e-4)


def test_any_whitening_matrix_becomes_a_plan():
    """As other designs hand theirs in: A^T A is the inverse of the noise's covariance."""
    rng = np.random.default_rng(0)
    query = ns.custom(lambda X: X, shape=(3,), changes=Ball(3, 10), step=0.5)
    S = np.cov(rng.standard_normal((3, 50))) * 1e4
    plan = whitened(query, np.linalg.inv(np.linalg.cholesky(S)), shape="mine", note="as given")
    covariance = plan.strategy.covariance() * 0.25
    assert_allclose(covariance, S, rtol=1e-4)
    radius = 10 * 0.5
    assert_allclose(plan.cost.mu, radius / np.sqrt(np.linalg.eigvalsh(S)[0]), rtol=1e-4)
    assert (plan.shape, plan.note) == ("mine", "as given")
    alone = entries(query, [30.0, 40.0, 50.0], shape="mine")
    assert_allclose(alone.stderr, [30, 40, 50], rtol=1e-3)
    assert_allclose(alone.cost.mu, radius / 30, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1, 1e6])
def test_any_budget_is_spent_and_never_passed(scale):
    query = ns.covariance(columns=["a", "b"], bounds=(0, 1), expected=100)
    for plan in (ns.isotropic(query), ns.directional(query)):
        budget = Budget(mu=0.37 * min(scale, 1e5))
        made = plan.within(budget)
        assert 1 - 1e-8 < float(made.cost.mu_squared / budget.mu_squared) <= 1


ROWS = np.random.default_rng(0).uniform(size=(6, 2))
SUM = matrices.sum(ROWS, bounds=(0, 1))
MOMENT = ns.second_moment(ROWS, bounds=(0, 1))
DATA = ns.identity(ROWS, bounds=(0, 1))
TILT = np.array([[1.0, 0.1], [0.0, 1.0]])

BAD = [
    (lambda: ns.directional(SUM, weights=[1, 0]), "weights must be above 0, and 1 of 2 are not"),
    (lambda: ns.directional(SUM, weights=[1, -1]), "weights must be above 0"),
    (lambda: ns.directional(SUM, weights=[1, np.nan]), "must be finite"),
    (lambda: ns.directional(SUM, weights=[1, 2, 3]), "weights must have the answer's shape"),
    (lambda: ns.directional(MOMENT, weights=[[1, 2], [3, 1]]), "must be symmetric"),
    (lambda: ns.directional(SUM, weights=[1, 1], stderr=1), "leave one of them out"),
    (lambda: ns.directional(SUM, stderr=0), "must be above 0"),
    (lambda: ns.directional(SUM, stderr=1, variance=1), "needs one target"),
    (lambda: ns.directional(MOMENT, stderr=[[1, 2], [3, 1]]), "must be symmetric"),
    (lambda: ns.directional(MOMENT, stderr=np.ones((3, 3))), "have the answer's shape"),
    (lambda: ns.directional(SUM, directions=TILT), "differs from the identity by 0.1"),
    (lambda: ns.directional(SUM, directions=np.eye(3)), "one column for each of 2 features"),
    (lambda: ns.directional(ns.gram(ROWS, clip=1.0), directions=np.eye(6)), "no directions"),
    (lambda: ns.kronecker(MOMENT), "measures 3 coordinates"),
    (lambda: ns.kronecker(DATA, columns=-np.eye(2)), "positive definite"),
    (lambda: ns.kronecker(DATA, columns=TILT), "must be symmetric"),
    (lambda: ns.kronecker(DATA, columns=np.eye(3)), "must be 2 x 2"),
    (lambda: ns.kronecker(DATA, rows=[1, 1, 1, 1, 1, 0]), "above 0"),
    (lambda: ns.directional(ns.mean(ROWS, bounds=(0, 1)), stderr=1), "depend on how many rows"),
    (lambda: ns.isotropic(SUM).within(0.5), "a budget must be a Budget"),
    (lambda: whitened(SUM, np.ones((2, 2))), "rank"),
    (lambda: whitened(SUM, np.eye(3)), "one column for each of 2"),
    (lambda: entries(SUM, [1, 0]), "scales above 0"),
    (lambda: entries(SUM, [1, 1, 1]), "one entry for each of 2"),
    (lambda: product(DATA, np.ones(2), np.ones(2)), "their product must be that"),
    (lambda: ns.isotropic(SUM).k, "no targets"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "sentence"), BAD)
def test_bad_input(ask, sentence):
    with pytest.raises(ns.NoiseshapeError, match=sentence):
        ask()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ns.directional(DATA, weights=ROWS),
        lambda: ns.directional(DATA, weights=ROWS[0]),
        lambda: ns.directional(DATA, directions=ROWS[:2]),
        lambda: ns.directional(DATA, stderr=ROWS),
        lambda: ns.kronecker(DATA, columns=ROWS[2:4].T),
        lambda: ns.kronecker(DATA, rows=ROWS[:, 1]),
    ],
)
def test_arrays_that_are_the_private_ones_are_refused(ask):
    with pytest.raises(InvalidInput, match="made of the rows that the query is about"):
        ask()


def test_a_copy_of_public_numbers_is_taken():
    assert ns.directional(DATA, weights=np.ones(2)).cost.mu <= 1


def test_a_budget_below_the_targets_is_refused_with_the_factor():
    plan = ns.directional(SUM, stderr=0.1)
    with pytest.raises(ns.BudgetExceeded, match="it buys every target variance times 100"):
        plan.capped(Budget(mu=plan.cost.mu / 10))
    assert plan.capped(Budget(mu=plan.cost.mu * 2)) is plan
    assert plan.capped(None) is plan


def test_a_box_is_never_mistaken_for_symmetric():
    lopsided = ns.custom(lambda X: X, shape=(2,), changes=Box([0, -5], [9, 5]), step=1)
    assert "independent" not in ns.directional(lopsided).certificate.covers
