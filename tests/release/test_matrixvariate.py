"""Matrix-variate noise as integers, against the real covariance and the real cost."""

import numpy as np
import pytest

import noiseshape as ns
from noiseshape import Budget, People, TooLarge
from noiseshape import matrices as mx
from noiseshape.design.covariances import Covariances, Mode
from noiseshape.design.imgm import each, sigma, validate
from noiseshape.design.precision import binary, max_pnr
from noiseshape.errors import InvalidInput
from noiseshape.release.matrixplan import COARSE
from noiseshape.release.matrixvariate import imgm, learn_directions, mvg, planned, sides
from noiseshape.strategies import Dense, Diagonal, Kronecker

BOUNDS = (-1.0, 1.0)


def executed(query, noise):
    return planned(query, noise, shape="test").strategy


def mode(k, seed, *, turned=True, size=30.0):
    rng = np.random.default_rng(seed)
    variances = size * np.exp(rng.normal(0, 1, k))
    return Mode(variances, np.linalg.qr(rng.normal(size=(k, k)))[0] if turned else None)


def answered(strategy, query):
    """The covariance of the answer's entries, row by row, from that of the coordinates."""
    D = np.array([(query.answer(e) - query.answer(0 * e)).ravel() for e in np.eye(query.size)]).T
    units = D * query.step
    return units @ strategy.covariance() @ units.T


def designed(noise):
    return np.kron(noise.rows.covariance, noise.columns.covariance)


def symmetrised(noise):
    k = noise.shape[0]
    swap = np.eye(k * k).reshape(k, k, k, k).transpose(1, 0, 2, 3).reshape(k * k, k * k)
    P = (np.eye(k * k) + swap) / 2
    return P @ designed(noise) @ P


def off(strategy):
    """How far variances may be off: either factor of a product is rounded to COARSE, no more."""
    return 3 * COARSE if isinstance(strategy, Kronecker) else 5e-6


PLAIN = [
    mx.identity(bounds={"a": BOUNDS, "b": (0.0, 100.0), "c": BOUNDS}, n=4),
    mx.features(clip=1.0, m=3, n=4),
    mx.custom(np.asarray, shape=(4, 3), changes=mx.Ball(12, 500), step=0.01),
]


@pytest.mark.parametrize("query", PLAIN, ids=lambda q: q.kind)
@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_data_matrix(query, first, second):
    noise = Covariances(mode(4, 1, turned=first), mode(3, 2, turned=second))
    made = executed(query, noise)
    assert isinstance(made, Kronecker if first or second else Diagonal)
    exact = designed(noise)
    np.testing.assert_allclose(answered(made, query), exact, rtol=0, atol=off(made) * exact.max())
    cost = made.cost(query.people).mu
    assert cost <= noise.mu(query.s2()) * (1 + off(made))


def test_the_cost_over_a_ball_is_the_exact_condition():
    query = PLAIN[2]
    for seed in range(4):
        noise = Covariances(mode(4, seed), mode(3, seed + 9))
        made = executed(query, noise)
        cost = made.cost(query.people).mu
        assert cost == pytest.approx(noise.mu(query.s2()), rel=off(made))


@pytest.mark.parametrize(
    "query",
    [
        mx.second_moment(bounds={"a": BOUNDS, "b": (0.0, 8.0), "c": BOUNDS}, count=50),
        mx.gram(clip=1.0, n=3),
        mx.custom(np.asarray, shape=(3, 3), changes=mx.Ball(6, 9), step=0.5, symmetric=True),
    ],
    ids=lambda q: q.kind,
)
@pytest.mark.parametrize("turned", [0, 1])
def test_a_symmetric_answer(query, turned):
    both = mode(3, 3, turned=turned)
    noise = Covariances(both, both)
    made = executed(query, noise)
    assert isinstance(made, Dense if turned else Diagonal)
    exact = symmetrised(noise)
    np.testing.assert_allclose(answered(made, query), exact, rtol=0, atol=3e-6 * exact.max())
    bound = 2 if query.kind == "gram" else 1  # a star that is turned is bounded by a box
    assert made.cost(query.people).mu <= bound * noise.mu(query.s2()) * (1 + 2e-6)


def test_a_symmetric_ball_costs_what_the_whole_matrix_would():
    """Z on all m^2 entries, and (Z + Z^T) / 2 on half of them, cost the same."""
    counts = np.where(np.equal(*np.triu_indices(3)), 1, 2)
    query = mx.custom(
        np.asarray, shape=(3, 3), changes=mx.Ball(6, 9, counts), step=0.5, symmetric=True
    )
    both = mode(3, 4)
    noise = Covariances(both, both)
    cost = executed(query, noise).cost(query.people).mu
    assert query.s2() == pytest.approx(4.5)
    assert cost == pytest.approx(noise.mu(query.s2()), rel=3e-6)


@pytest.mark.parametrize("person", ["edge", "node"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_graphs(person, neighbours):
    people = People(neighbours=neighbours)
    for query in (mx.adjacency(nodes=4, person=person, people=people),
                  mx.laplacian(nodes=4, person=person, people=people)):  # fmt: skip
        for turned in (0, 1):
            both = mode(4, 5, turned=turned)
            made = executed(query, Covariances(both, both))
            P = np.linalg.inv(made.covariance())
            changes = _graph_changes(person, neighbours)
            worst = max(np.sqrt(d @ P @ d) for d in changes)
            assert worst <= made.cost(people).mu * (1 + 1e-6)


def _graph_changes(person, neighbours):
    """Every change of a graph of four nodes, by enumeration."""
    i, j = np.triu_indices(4, 1)
    if person == "node":
        for node in range(4):
            touched = (i == node) | (j == node)
            for bits in np.ndindex(3, 3, 3):
                d = np.zeros(6)
                d[touched] = np.array(bits) - 1.0
                yield d
        return
    for a in range(6):
        for b in range(6):
            for sign in (1, -1):
                d = np.zeros(6)
                d[a] = 1.0
                if neighbours == "replace" and b != a:
                    d[b] = sign
                yield d


def test_vectors_are_columns():
    query = mx.sum(bounds={"a": BOUNDS, "b": (0.0, 3.0)}, count=9)
    assert sides(query) == (2, 1)
    noise = Covariances(mode(2, 6), [1.0])
    exact = designed(noise)
    made = executed(query, noise)
    np.testing.assert_allclose(answered(made, query), exact, rtol=0, atol=3e-6 * exact.max())
    mean = mx.mean(bounds={"a": BOUNDS, "b": (0.0, 3.0)}, count=9)
    np.testing.assert_allclose(
        answered(executed(mean, noise), mean), exact, rtol=0, atol=3e-6 * exact.max()
    )


@pytest.mark.parametrize(
    ("query", "noise", "error", "says"),
    [
        (PLAIN[0], Covariances(np.ones(3), np.ones(4)), InvalidInput, "for 3 x 4 answers"),
        (
            mx.covariance(bounds=BOUNDS, columns=["a", "b"], expected=9),
            Covariances(np.ones(2), np.ones(2)),
            InvalidInput,
            "declare the number of rows",
        ),
        (
            mx.gram(clip=1.0, n=70),
            Covariances(mode(70, 1), mode(70, 1)),
            TooLarge,
            "use the standard basis",
        ),
        (
            mx.custom(np.asarray, shape=(2, 2, 2), changes=mx.Ball(8, 9), step=1.0),
            Covariances(np.ones(2), np.ones(2)),
            InvalidInput,
            "noise is for matrices",
        ),
    ],
)
def test_bad_input(query, noise, error, says):
    with pytest.raises(error, match=says):
        executed(query, noise)


BUDGET = Budget(epsilon=1.0, delta=1 / 248)
DATA = PLAIN[0]
MOMENT = mx.second_moment(bounds={"a": BOUNDS, "b": (0.0, 8.0), "c": BOUNDS}, count=50)


def orthogonal(k):
    return np.linalg.qr(np.random.default_rng(k).normal(size=(k, k)))[0]


class TestMvg:
    @pytest.mark.parametrize("directions", [None, orthogonal(3)])
    @pytest.mark.parametrize("query", [DATA, MOMENT], ids=["unimodal", "equi-modal"])
    def test_the_plan_has_the_noise_of_the_algorithm_and_its_true_cost(self, query, directions):
        design = mvg(query, directions=directions, precision=binary(3, [1], 0.7))
        told, plan = design.claim(BUDGET), design.within(BUDGET)
        noise = design.noise(BUDGET)
        exact = symmetrised(noise) if query.symmetric else designed(noise)
        variance = np.diag(exact).reshape(query.shape)
        np.testing.assert_allclose(plan.stderr**2, variance, rtol=off(plan.strategy))
        assert plan.cost.mu <= told.true_mu * (1 + 1e-5)
        assert told.mu == pytest.approx(BUDGET.mu)
        assert BUDGET.allows(plan.cost)
        assert f"is {told.wasted:.4g} times what the exact condition asks" in plan.note

    def test_exactly(self):
        """The same shape; all that the published calibration wastes, for free."""
        design = mvg(DATA, precision=binary(3, [1], 0.7))
        published, exact = design.within(BUDGET), design.within(BUDGET, exact=True)
        assert BUDGET.allows(exact.cost)
        assert exact.cost.mu == pytest.approx(BUDGET.mu, rel=1e-6)
        ratio = published.stderr / exact.stderr
        assert ratio.min() == pytest.approx(ratio.max(), rel=1e-6)
        assert ratio.min() >= design.claim(BUDGET).wasted * (
            1 - 1e-6
        )  # a box costs no more than a ball

    def test_theorem_3_needs_less_noise_and_a_semidefinite_answer(self):
        two, three = (mvg(MOMENT, theorem=t).within(BUDGET) for t in (2, 3))
        assert np.all(three.stderr < two.stderr)
        for query in (mx.gram(clip=1.0, n=3), mx.laplacian(nodes=4)):
            assert BUDGET.allows(mvg(query, theorem=3).within(BUDGET).cost)
        kernel = mx.gram(kernel=lambda X: X @ X.T, bounds=(-1, 1), n=3)
        for query in (DATA, mx.adjacency(nodes=4), kernel):
            with pytest.raises(InvalidInput, match=r"not known to be: use theorem=2"):
                mvg(query, theorem=3)

    def test_other_budgets_need_a_delta(self):
        design = mvg(DATA)
        with pytest.raises(InvalidInput, match="say at which delta"):
            design.within(Budget(mu=0.5))
        plan = design.within(Budget(mu=BUDGET.mu), delta=1 / 248)
        np.testing.assert_allclose(plan.stderr, design.within(BUDGET).stderr, rtol=1e-6)

    def test_rows_with_directions(self):
        design = mvg(DATA, mode="rows", directions=orthogonal(4), precision=binary(4, [0]))
        assert BUDGET.allows(design.within(BUDGET).cost)

    def test_max_pnr_depends_on_the_budget(self):
        design = mvg(DATA, precision=max_pnr([1e20, 1e19, 1e18]))
        first, second = (design.noise(Budget(epsilon=e, delta=1e-5)).columns for e in (1.0, 100.0))
        assert first.variances[2] / first.variances[0] > second.variances[2] / second.variances[0]

    def test_one_record_has_a_gamma_of_exactly_half_of_s2(self):
        query = mx.identity(bounds={"a": (-0.3, 0.3)}, n=1)  # s2 is of the grid, gamma is not
        assert BUDGET.allows(mvg(query).within(BUDGET).cost)

    @pytest.mark.parametrize("sampler", ["affine", "vec"])
    def test_simulated_answers_have_the_noise_that_is_planned(self, sampler):
        design = mvg(DATA, precision=binary(3, [1], 0.7), directions=orthogonal(3))
        f = np.arange(12.0).reshape(4, 3)
        draws = design.simulate_answers(f, BUDGET, size=4000, seed=1, sampler=sampler)
        error = (draws - f) / design.within(BUDGET).stderr
        assert np.abs((error**2).mean(axis=0) - 1).max() < 6 * np.sqrt(2 / 4000)
        assert np.abs(error.mean()) < 6 / np.sqrt(12 * 4000)
        with pytest.raises(InvalidInput, match=r"shape \(4, 3\)"):
            design.simulate_answers(f.T, BUDGET, seed=1)
        with pytest.raises(InvalidInput, match="sampler must be"):
            design.simulate_answers(f, BUDGET, seed=1, sampler="fast")

    def test_from_rows_to_a_paid_release(self, tmp_path):
        X = np.random.default_rng(0).uniform(0, 1, (50, 3))
        query = mx.second_moment(X, bounds=(0, 1), columns=["a", "b", "c"], count=50)
        ledger = ns.Ledger.create(tmp_path / "b.db", BUDGET, vintage="v")
        plan = mvg(query, theorem=3, precision=binary(3, [0])).within(BUDGET, exact=True)
        release = plan.release(ledger=ledger, out=tmp_path / "out")
        assert ledger.spent().mu == pytest.approx(plan.cost.mu)
        off = (release.answer - X.T @ X) / release.stderr
        assert np.abs(off).max() < 8
        assert np.array_equal(release.answer, release.answer.T)
        again = ns.read(tmp_path / "out")
        assert np.array_equal(again.answer, release.answer)
        assert again.plan.note == plan.note
        with pytest.raises(ns.BudgetExceeded):
            plan.release(ledger=ledger)


class TestImgm:
    def test_algorithm_1(self):
        plan = imgm(DATA).within(BUDGET)
        least = sigma(DATA.s2(), 1.0, 1 / 248)
        np.testing.assert_allclose(plan.stderr, least, rtol=1e-6)
        assert plan.cost.mu == pytest.approx(BUDGET.mu, rel=1e-6)

    def test_mvg_with_equal_precision_is_imgm_once_calibrated(self):
        plan = mvg(DATA).within(BUDGET, exact=True)
        np.testing.assert_allclose(plan.stderr, imgm(DATA).within(BUDGET).stderr, rtol=1e-6)

    def test_covariances_of_ones_own_cost_what_theorem_2_says(self):
        query = PLAIN[2]
        rows, columns = mode(4, 1).covariance, mode(3, 2).covariance
        plan = imgm(query, rows=rows, columns=columns)
        told = validate(rows, columns, s2=query.s2(), epsilon=1.0, delta=1 / 248)
        assert plan.cost.mu == pytest.approx(told.mu, rel=off(plan.strategy))
        valid = plan.within(BUDGET)
        np.testing.assert_allclose(valid.stderr / plan.stderr, told.factor, rtol=off(plan.strategy))
        assert "times the least that the same privacy needs" in plan.note

    def test_known_singular_values_cost_what_theorem_1_says(self):
        values = np.array([300.0, 200.0, 50.0])
        query = mx.custom(np.asarray, shape=(4, 3), changes=mx.Spectrum((4, 3), values), step=0.5)
        rows, columns = mode(4, 1).covariance, mode(3, 2).covariance
        plan = imgm(query, rows=rows, columns=columns)
        exact = Covariances(rows, columns).mu_of(0.5 * values)
        assert plan.cost.mu == pytest.approx(exact, rel=off(plan.strategy))
        assert exact < 0.9 * Covariances(rows, columns).mu(0.5 * np.linalg.norm(values))

    def test_releases_share_a_budget(self):
        plan = imgm(DATA).within(Budget(mu=each(BUDGET, 5)))
        assert BUDGET.allows(plan.cost * 5)
        assert not BUDGET.allows(plan.cost * 6)


class TestLearn:
    def test_two_releases_within_one_budget(self, tmp_path):
        rng = np.random.default_rng(1)
        W = orthogonal(3)
        X = np.clip((rng.normal(size=(5_000, 3)) * [0.4, 0.1, 0.02]) @ W.T, -1, 1)
        query = mx.identity(X, bounds=dict.fromkeys("abc", BOUNDS), n=len(X))
        ledger = ns.Ledger.create(tmp_path / "b.db", BUDGET, people=query.people, vintage="v")
        paid = learn_directions(query, epsilon=1.0, delta=1 / 248, ledger=ledger)
        assert np.abs(paid.directions[:, 0] @ W[:, 0]) > 0.99
        assert paid.spectrum[0] == pytest.approx(np.linalg.norm(X, 2) ** 2, rel=0.25)
        assert paid.release.stamp is not None
        first = ledger.spent().mu
        assert first == pytest.approx(Budget(epsilon=0.2, delta=0.2 / 248).mu, rel=1e-5)
        plan = mvg(
            query, directions=paid.directions, precision=max_pnr(paid.spectrum / len(X))
        ).within(paid.rest, exact=True)
        plan.release(ledger=ledger)
        assert ledger.spent().mu <= BUDGET.mu
        assert ledger.spent().mu > first

    def test_a_symmetric_answer_tells_its_own(self):
        query = mx.gram(np.eye(3), clip=1.0)
        paid = learn_directions(query, epsilon=1e4, delta=1e-5, share=0.5, unrecorded=True)
        np.testing.assert_allclose(np.sort(paid.spectrum), 1.0, atol=0.5)
        assert paid.release.plan.query.kind == "gram"

    def test_any_other_matrix_tells_those_of_its_columns(self):
        X = np.outer([3.0, -2.0, 1.0, 2.0], [0.6, 0.8, 0.0])
        query = mx.features(X, clip=2.0)
        paid = learn_directions(query, epsilon=1e6, delta=1e-5, unrecorded=True)
        assert np.abs(paid.directions[:, 0] @ [0.6, 0.8, 0.0]) > 0.99
        assert paid.directions.shape == (3, 3)

    def test_vectors_have_none(self):
        with pytest.raises(InvalidInput, match="hand in directions"):
            learn_directions(mx.gradient(clip=1.0, m=3), epsilon=1.0, delta=1e-5, unrecorded=True)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda: mvg(np.eye(3)), "noise is shaped for a matrix query, got ndarray"),
        (lambda: mvg(PLAIN[2]), "state gamma"),
        (lambda: mvg(PLAIN[2], gamma=0.1), "gamma must be at least s2 / 2"),
        (lambda: mvg(mx.second_moment(bounds=BOUNDS, columns=["a"])), r"declare it .*count=\.\.\."),
        (lambda: mvg(DATA, mode="sideways"), 'mode must be "rows"'),
        (lambda: mvg(MOMENT, theorem=3, mode="rows"), 'mode="both"'),
        (lambda: mvg(DATA, mode="both"), "needs a square matrix"),
        (lambda: mvg(DATA, theorem=1), "theorem must be 2 or 3"),
        (lambda: mvg(DATA, directions=np.ones((3, 3))), "must be orthonormal"),
        (lambda: mvg(DATA, precision=[0.5, 0.5, 0.5]), "sum to at most 1"),
        (lambda: mvg(DATA, precision=[0.5, 0.5, 0.0]), "noise without end"),
        (lambda: mvg(DATA).within(1.0), "a budget must be a Budget, got float"),
        (lambda: imgm(DATA, rows=np.ones(3)), "the covariances are for 3 x 3 answers"),
        (lambda: imgm(DATA, columns=[[1, 2, 0], [2, 1, 0], [0, 0, 1]]), "positive definite"),
    ],
)
def test_refusals(act, says):
    with pytest.raises(InvalidInput, match=says):
        act()


def test_what_shapes_the_noise_is_not_the_data():
    X = np.eye(3)
    query = mx.identity(X, bounds={"a": BOUNDS, "b": BOUNDS, "c": BOUNDS})
    for act in (
        lambda: mvg(query, directions=X),
        lambda: mvg(query, precision=X[0]),
        lambda: imgm(query, columns=X),
    ):
        with pytest.raises(InvalidInput, match="made of the rows"):
            act()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_example_1(neighbours):
    """MVG prints s2 = 2 m c^2 / n for X X^T / n; one row moves n f by sqrt 2 m c^2 at most."""
    people, c, m = People(neighbours=neighbours), 2.0, 3
    signed, plain = (
        mx.second_moment(bounds=b, columns=["a", "b", "c"], count=9, people=people)
        for b in ((-c, c), (0.0, c))
    )
    assert plain.s2() == pytest.approx(m * c**2)
    assert signed.s2() == pytest.approx(m * c**2 * (2**0.5 if neighbours == "replace" else 1))
    rng = np.random.default_rng(0)
    for query, low in ((signed, -c), (plain, 0.0)):
        x, y = rng.choice([low, 0.0, c], size=(2, 500, m))
        moved = np.einsum("si,sj->sij", x, x)
        if neighbours == "replace":
            moved = moved - np.einsum("si,sj->sij", y, y)
        worst = np.linalg.norm(moved, axis=(1, 2)).max()
        assert 0.9 * query.s2() <= worst <= query.s2() * (1 + 1e-12)
