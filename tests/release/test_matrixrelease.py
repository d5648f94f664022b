"""Released matrices: noise as stated, answers unbiased, errors that are true, files that hold."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2

import noiseshape as ns
import noiseshape.release.measurement as door
from noiseshape import Budget, InvalidInput
from noiseshape.release import matrixrelease
from noiseshape.release.simulation import simulate_releases

# A right test fails once in a million runs; the wrong covariances below, always.
P = 1e-6


def whitened_errors(shape, times, Psi, Sigma):
    """Errors of released answers, (times, m, n), whitened by a stated covariance Psi x Sigma."""
    query = ns.identity(np.zeros(shape), bounds=(-1, 1))
    plan = ns.kronecker(query, rows=Psi, columns=Sigma)
    scale = plan.stderr[0, 0] ** 2 / (Psi[0, 0] * Sigma[0, 0])
    made = np.array([plan.release(unrecorded=True).answer for _ in range(times)])
    return made / np.sqrt(scale)


def passes(E, Psi, Sigma):
    """Whether errors look like N(0, Psi x Sigma): lengths, and products of two columns."""
    A1, A2 = (np.linalg.inv(np.linalg.cholesky(S)) for S in (Psi, Sigma))
    W = np.einsum("ij,tjk,lk->til", A1, E, A2)
    count = W.size
    total = (W**2).sum()
    fine = P < chi2.cdf(total, count) < 1 - P
    for axes in ("tij,tik->jk", "tij,tkj->ik"):  # columns, then rows, against each other
        C = np.einsum(axes, W, W)
        k = len(C)
        own = np.diag(C)
        # Correlations, of which any two are independent; products share the lengths' own chance.
        off = (C / np.sqrt(np.outer(own, own)))[np.triu_indices(k, 1)] * np.sqrt(count / k)
        fine = fine and (not off.size or P < chi2.cdf((off**2).sum(), off.size) < 1 - P)
        fine = fine and bool(np.all(chi2.sf(own, count / k) > P / k))
    return bool(fine)


def covariance(rng, n):
    """A random covariance, with every correlation moved by a half so that controls can tell it."""
    L = rng.standard_normal((n, n)) + 3 * np.eye(n)
    S = L @ L.T
    size = np.sqrt(np.diag(S))
    return 0.5 * S + 0.5 * np.outer(size, size)


@pytest.mark.parametrize(("shape", "times"), [((2, 2), 1600), ((5, 20), 60), ((200, 50), 3)])
def test_the_noise_has_the_covariance_that_is_stated(shape, times):
    rng = np.random.default_rng(shape[0])
    Psi, Sigma = covariance(rng, shape[0]), covariance(rng, shape[1])
    if shape[0] > 20:
        Psi = np.diag(rng.uniform(0.5, 4, shape[0]))
    E = whitened_errors(shape, times, Psi, Sigma)
    assert passes(E, Psi, Sigma)
    # Negative controls: a tenth more noise, and noise that is not correlated.
    assert not passes(1.1 * E, Psi, Sigma)
    assert not passes(E, Psi, np.diag(np.diag(Sigma)))


def test_entrywise_errors_are_those_stated_from_small_to_large():
    for n, times in ((2, 600), (50, 20)):
        query = ns.second_moment(columns=[f"x{i}" for i in range(n)], bounds=(-1, 1))
        plan = ns.directional(query, weights=np.arange(1.0, n + 1))
        z = np.array(
            [plan.release(np.zeros((0, n)), unrecorded=True).coordinates for _ in range(times)]
        ) / np.sqrt(plan.coordinates)
        assert P < chi2.cdf((z**2).sum(), z.size) < 1 - P
        assert not P < chi2.cdf(1.3 * (z**2).sum(), z.size) < 1 - P  # the negative control


def test_a_linear_answer_is_unbiased_with_exact_errors():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(300, 2))
    plan = ns.directional(ns.second_moment(X, bounds=(0, 1))).within(Budget(mu=1))
    made = np.array([plan.release(unrecorded=True).answer for _ in range(400)])
    off = (made.mean(axis=0) - X.T @ X) / (plan.stderr / np.sqrt(400))
    assert np.abs(off).max() < 5.5
    assert_allclose(made.std(axis=0), plan.stderr, rtol=0.2)


def test_simulated_errors_of_a_covariance_are_those_of_many_releases():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(3000, 2)) * [1, 4]
    query = ns.covariance(X, bounds=[(0, 1), (0, 4)], expected=3000)
    plan = ns.directional(query).within(Budget(mu=1))
    many = np.array([plan.release(unrecorded=True).answer for _ in range(150)])
    release = plan.release(unrecorded=True)
    assert_allclose(many.std(axis=0), release.stderr, rtol=0.35)
    assert_allclose(many.mean(axis=0), np.cov(X.T, bias=True), atol=6 * plan.stderr.max() / 12)
    # To first order and whatever the data: the plan's errors are at least the true ones.
    assert np.all(plan.stderr >= release.stderr * 0.9)
    assert "simulated" in release.table().note
    again = plan.release(unrecorded=True)
    assert np.array_equal(again.stderr, type(again).from_json(again.to_json()).stderr)


def test_simulations_have_the_noise_of_the_plan_and_need_no_data():
    query = ns.identity(np.zeros((3, 2)), bounds=(0, 1))
    plan = ns.kronecker(query, columns=[[2, 1], [1, 3]])
    release = plan.release(unrecorded=True)
    assert release.plan.query.rows is None
    drawn = np.array(list(simulate_releases(release, 4000))) - release.coordinates
    assert_allclose(drawn.std(axis=0), np.sqrt(plan.coordinates), rtol=0.06)


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(3)
    X = rng.multivariate_normal([0, 0, 0], [[4, 3, 0], [3, 4, 0], [0, 0, 0.01]], 4000)
    query = ns.covariance(X, bounds=(-8, 8), expected=4000)
    return ns.directional(query).within(Budget(mu=3)).release(unrecorded=True)


class TestProcessing:
    def test_nearest_psd_is_nearest(self, release):
        found = release.nearest_psd()
        M = release.answer
        assert np.linalg.eigvalsh(found.value)[0] >= -1e-9
        assert np.linalg.norm(found.value - M) <= np.linalg.norm(np.diag(np.diag(M)) - M) + 1
        values = np.linalg.eigvalsh(M)
        assert_allclose(
            np.linalg.norm(found.value - M), np.linalg.norm(np.minimum(values, 0)), atol=1e-9
        )
        assert "post-processed" in found.label

    def test_correlations_are_correlations(self, release):
        found = release.correlation()
        assert_allclose(np.diag(found.value), 1)
        assert np.abs(found.value).max() <= 1
        assert_allclose(found.value[0, 1], 0.75, atol=6 * found.stderr[0, 1])
        assert found.stderr[0, 1] > 0

    def test_symmetric_is_what_it_was(self, release):
        assert_allclose(release.symmetric().value, release.answer)

    def test_components_with_how_far_noise_turns_them(self, release):
        found = release.components(2)
        assert found.values.shape == (2,)
        assert found.vectors.shape == (3, 2)
        assert np.all(np.diff(found.values) < 0)
        truth = np.array([1, 1, 0]) / np.sqrt(2)
        turned = np.degrees(np.arccos(abs(truth @ found.vectors[:, 0])))
        assert turned < 3 * found.angle[0] + 1
        assert abs(found.values[0] - 7) < 8 * found.stderr[0] + 0.5
        assert found.table().columns[0] == "component"
        assert release.components().values.shape == (3,)

    def test_what_has_no_components(self, release):
        plain = ns.isotropic(ns.mean(np.ones((9, 2)), bounds=(0, 2), expected=9))
        other = plain.release(unrecorded=True)
        for ask in (other.nearest_psd, other.correlation, other.symmetric, other.components):
            with pytest.raises(InvalidInput, match="of square matrices"):
                ask()
        square = ns.identity(np.ones((2, 2)), bounds=(0, 2))
        with pytest.raises(InvalidInput, match="symmetric answer, and this one is not"):
            ns.isotropic(square).release(unrecorded=True).components()
        with pytest.raises(InvalidInput, match="has 3 components, and 4"):
            release.components(4)

    def test_a_column_without_variance_has_no_correlation(self):
        from noiseshape.release.processed import correlation

        R = correlation(np.diag([4.0, -1.0]))
        assert R[0, 0] == 1
        assert np.isnan(R[1, 1])


class TestFiles:
    def test_parts_are_told_by_name(self):
        X = np.array([[0.25, 0.5]] * 4)
        release = ns.directional(ns.covariance(X, bounds=(0, 1))).release(unrecorded=True)
        assert release.part("count").shape == (1,)
        assert release.part("sums").shape == (2,)
        assert release.part("products").shape == (3,)
        with pytest.raises(InvalidInput, match="there are count, sums, products"):
            release.part("means")

    def test_large_answers_lie_in_files_of_their_own(self, tmp_path, monkeypatch):
        monkeypatch.setattr(matrixrelease, "LISTED", 5)
        plan = ns.isotropic(ns.identity(np.ones((4, 2)), bounds=(0, 1)))
        release = plan.release(unrecorded=True, out=tmp_path / "out")
        names = sorted(p.name for p in (tmp_path / "out").iterdir())
        assert {"answer.npy", "values.int64"} < set(names)
        assert np.array_equal(np.load(tmp_path / "out" / "answer.npy"), release.answer)
        assert np.array_equal(ns.read(tmp_path / "out").answer, release.answer)
        raw = (tmp_path / "out" / "values.int64").read_bytes()
        (tmp_path / "out" / "values.int64").write_bytes(raw[::-1])
        with pytest.raises(InvalidInput, match="was altered since it was written, or is gone"):
            ns.read(tmp_path / "out")

    def test_the_files_say_every_entry_and_where_it_came_from(self, tmp_path):
        query = ns.second_moment(np.ones((4, 2)), bounds={"a": (0, 1), "b": (0, 1)})
        plan = ns.directional(query, stderr=2)
        plan.release(unrecorded=True, out=tmp_path / "out")
        lines = (tmp_path / "out" / "answers.csv").read_text().splitlines()
        assert lines[0] == "row,column,value,stderr,low,high,interval"
        assert [line.split(",")[:2] for line in lines[1:]] == [["a", "a"], ["a", "b"], ["b", "b"]]
        said = json.loads((tmp_path / "out" / "provenance.json").read_text())
        assert said["rows"]["query"]["features"]["high"] == [1.0, 1.0]
        assert said["design"]["certificate"]["covers"].startswith("privacy cost")

    def test_a_table_release_is_no_matrix_release(self, tmp_path):
        plan = ns.isotropic(ns.second_moment(np.ones((4, 2)), bounds=(0, 1)))
        plan.release(unrecorded=True, out=tmp_path / "out")
        with pytest.raises(InvalidInput, match="holds a matrix release"):
            ns.Release.read(tmp_path / "out")

    def test_values_of_another_plan_are_refused(self):
        plan = ns.isotropic(ns.second_moment(np.ones((4, 2)), bounds=(0, 1)))
        with pytest.raises(InvalidInput, match="measures 3 values"):
            ns.MatrixRelease(plan, [1, 2], None, "now")


def test_without_noise_every_shape_gives_the_plain_answer(monkeypatch):
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(50, 3))
    U = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    for query, plain in (
        (ns.second_moment(X, bounds=(0, 1)), X.T @ X),
        (ns.covariance(X, bounds=(0, 1), expected=50), np.cov(X.T, bias=True)),
        (ns.identity(X, bounds=(0, 1)), X),
    ):
        plans = [ns.isotropic(query), ns.directional(query), ns.directional(query, directions=U)]
        if query.kind == "identity":
            plans.append(ns.kronecker(query, columns=[[2, 1, 0], [1, 3, 0], [0, 0, 1]]))
        for plan in plans:
            found = plan.release(unrecorded=True).answer
            assert_allclose(found, plain, atol=3e-5 * max(1, np.abs(plain).max()))
