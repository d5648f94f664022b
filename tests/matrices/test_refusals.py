"""Questions that cannot be asked: one sentence each, before any row is read."""

import numpy as np
import pytest

import noiseshape as ns
from noiseshape import matrices
from noiseshape.errors import InvalidInput, TooLarge

X = np.ones((5, 2))
ADD, REPLACE = ns.People(), ns.People(neighbours="replace")
BOX = matrices.Box([0], [1])

BAD = [
    (lambda: ns.identity(X, bounds=(0, 1), people=ADD), "add-remove neighbours keep private"),
    (lambda: ns.gram(X, clip=1.0, people=ADD), "add-remove neighbours keep private"),
    (lambda: ns.features(X, clip=1.0, people=ADD), "add-remove neighbours keep private"),
    (lambda: ns.identity(bounds=(0, 1), columns=["a"]), "say how many rows there are"),
    (lambda: ns.identity(X, bounds=(0, 1), people=ns.People("id", 1, "replace")), 'unit "rows"'),
    (lambda: ns.identity(bounds=(0, 1), columns=["a"], n=0), "at least 1"),
    (lambda: ns.covariance(X), "need bounds"),
    (lambda: ns.covariance(X, bounds=(1, 0)), "low < high"),
    (lambda: ns.covariance(X, bounds=(0, np.inf)), "finite"),
    (lambda: ns.covariance(bounds=(0, 1)), "name the columns"),
    (lambda: ns.mean(bounds=(0, 1), columns=["a"], people=REPLACE, missing="middle"),
     "declare it, count="),
    (lambda: ns.second_moment(X, bounds=(0, 1), missing="middle"), "has no place there"),
    (lambda: ns.mean(X, bounds=(0, 1), count=0), "count must be at least 1"),
    (lambda: ns.gradient(X, clip=0), "clip must be above 0"),
    (lambda: ns.gradient(X, clip=float("nan")), "clip must be finite"),
    (lambda: ns.gradient(X, clip=1.0, step=1e-12), "1 to 2\\^26 steps"),
    (lambda: ns.gradient(clip=1.0), "how long each vector is"),
    (lambda: ns.gradient(X, clip=1.0, people=ns.People("id", 2)), 'unit "rows"'),
    (lambda: ns.gram(X), "needs clip, for inner products, or a kernel"),
    (lambda: ns.gram(X, kernel=lambda X: X, bounds=None), "a kernel needs bounds"),
    (lambda: ns.gram(X, kernel=lambda X: X, bounds=(1, 0)), "low < high"),
    (lambda: ns.gram(clip=1.0, n=30_000), "more than the 100,000,000"),
    (lambda: ns.adjacency(nodes=1), "at least 2"),
    (lambda: ns.adjacency(nodes=3, person="edgy"), '"edge" or "node"'),
    (lambda: ns.adjacency(nodes=3).source([[1, 2, 3]]), "pairs of nodes"),
    (lambda: ns.adjacency(nodes=3).source(np.array([[0.5, 1]])), "must hold integers"),
    (lambda: ns.custom(np.sum, X, shape=(1,), changes=BOX), "a declared grid: step="),
    (lambda: ns.custom(np.sum, X, shape=(1,), step=1), "a declared set of changes"),
    (lambda: ns.custom("sum", X, shape=(1,), changes=BOX, step=1), "needs a function"),
    (lambda: ns.custom(np.sum, X, shape=(2,), changes=BOX, step=1), "2 entries are measured"),
    (lambda: ns.custom(np.sum, X, shape=(), changes=BOX, step=1), "one axis or more"),
    (lambda: ns.custom(np.sum, X, shape=(2, 3), changes=BOX, step=1, symmetric=True), "\\(n, n\\)"),
    (lambda: ns.custom(np.sum, X, shape=(1,), changes=BOX, step=0), "step must be above 0"),
    (lambda: matrices.Box([0], [0]), "no sensitivity"),
    (lambda: ns.isotropic("covariance"), "noise is shaped for a matrix query, got str"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "sentence"), BAD)
def test_questions_that_cannot_be_asked(ask, sentence):
    with pytest.raises((InvalidInput, TooLarge), match=sentence):
        ask()


def test_a_data_set_of_another_size_is_refused_by_its_declared_length():
    query = ns.identity(bounds=(0, 1), columns=["a", "b"], n=4)
    with pytest.raises(InvalidInput, match="about 4 rows, and the data has 5"):
        query.source(X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, 0.3])
def test_a_custom_function_is_total_on_its_grid(value):
    """Nothing stops on a value: whatever it is, it becomes a whole number of steps."""
    query = ns.custom(
        lambda X: np.array([value]), X, shape=(1,), changes=matrices.Ball(1, 2), step=0.1
    )
    assert query.grid == 2.0**-4  # rounded down to a power of two
    (z,) = query.source(X).read()
    assert z == {0.3: 5}.get(value, z)
    assert abs(int(z)) <= 1 << 60


def test_a_custom_function_that_fails_names_its_step(tmp_path):
    def broken(X):
        raise ValueError(f"row {X[0]}")

    query = ns.custom(broken, X, shape=(1,), changes=matrices.Ball(1, 2), step=1)
    with pytest.raises(ns.ReleaseFailed, match="'read'") as info:
        ns.isotropic(query).release(unrecorded=True)
    assert "row" not in str(info.value)


def test_what_no_file_can_hold_is_not_released_from_a_file(tmp_path):
    query = ns.custom(np.sum, X, shape=(1,), changes=matrices.Ball(1, 20), step=1)
    plan = ns.isotropic(query)
    plan.save(tmp_path / "plan.json")
    again = ns.load(tmp_path / "plan.json")
    assert (again.digest, again.cost) == (plan.digest, plan.cost)
    with pytest.raises(InvalidInput, match="ask again in Python"):
        again.release(X, unrecorded=True)
    kernel = ns.gram(X, kernel=lambda X: X @ X.T, bounds=(0, 2))
    ns.isotropic(kernel).save(tmp_path / "kernel.json")
    with pytest.raises(InvalidInput, match="no file holds a kernel"):
        ns.load(tmp_path / "kernel.json").release(X, unrecorded=True)
