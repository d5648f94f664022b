"""What every matrix question promises: exact coordinates, true bounds on what one person does.

The reference is plain numpy on the clipped and rounded rows.
"""

import json
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

import noiseshape as ns
from noiseshape import matrices
from noiseshape.matrices.query import from_json
from noiseshape.strategies import Diagonal

ADD, REPLACE = ns.People(), ns.People(neighbours="replace")
BOUNDS = [(0, 1), (-2, 3), (10, 11)]
NAMES = ["a", "b", "c"]
N = 6


def rows(rng, n=N):
    X = rng.uniform(*np.array(BOUNDS, dtype=float).T, (n, 3))
    corners = np.array(BOUNDS, dtype=float)[range(3), rng.integers(0, 2, (n, 3))]
    return np.where(rng.random((n, 1)) < 0.7, corners, X)


def kernel(X):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))


def edges(rng, n=5):
    i, j = np.triu_indices(n, 1)
    kept = rng.random(len(i)) < 0.5
    return np.column_stack([i, j])[kept]


def another_edge(rng, E):
    """One edge more, or one less."""
    i, j = np.triu_indices(5, 1)
    there = {tuple(e) for e in E.tolist()}
    pair = tuple(int(v) for v in np.column_stack([i, j])[rng.integers(len(i))])
    return np.array(sorted(there ^ {pair}), dtype=int).reshape(-1, 2)


def moved_edge(rng, E):
    """One edge for another, where there is one to move."""
    there = {tuple(e) for e in E.tolist()}
    every = {(int(i), int(j)) for i, j in zip(*np.triu_indices(5, 1), strict=True)}
    if not there or there == every:
        return E
    out = sorted(there)[rng.integers(len(there))]
    new = sorted(every - there)[rng.integers(len(every) - len(there))]
    return np.array(sorted((there - {out}) | {new}), dtype=int).reshape(-1, 2)


def another_node(rng, E):
    """One node's edges, to any others."""
    node = rng.integers(5)
    kept = [tuple(e) for e in E.tolist() if node not in e]
    kept += [(min(node, k), max(node, k)) for k in range(5) if k != node and rng.random() < 0.5]
    return np.array(sorted(kept), dtype=int).reshape(-1, 2)


def removed(rng, X):
    return np.delete(X, rng.integers(len(X)), axis=0)


def replaced(rng, X):
    Y = X.copy()
    Y[rng.integers(len(X))] = rows(rng, 1)[0]
    return Y


def spoiled(rng, X):
    """Another row, or one that a missing value takes out."""
    if rng.random() < 0.5:
        return replaced(rng, X)
    Y = X.copy()
    Y[rng.integers(len(Y)), rng.integers(3)] = np.nan
    return Y


def swapped(rng, X):
    """Whatever norms rows have: vectors clipped by the query."""
    Y = X.copy()
    Y[rng.integers(len(X))] = -3 * Y[0]
    return Y


def centred(X):
    return np.cov(X.T, bias=True)


class Case(NamedTuple):
    ask: object
    data: object
    plain: object
    neighbour: object


BOTH = {"bounds": BOUNDS, "columns": NAMES}
CASES = {
    "sum": Case(lambda: matrices.sum(**BOTH), rows, lambda X: X.sum(axis=0), removed),
    "sum, replace": Case(
        lambda: matrices.sum(**BOTH, people=REPLACE), rows, lambda X: X.sum(axis=0), replaced
    ),
    "mean": Case(lambda: ns.mean(**BOTH, expected=N), rows, lambda X: X.mean(axis=0), removed),
    "mean, public": Case(
        lambda: ns.mean(**BOTH, count=N, people=REPLACE, missing="middle"),
        rows,
        lambda X: X.mean(axis=0),
        replaced,
    ),
    "second moment": Case(lambda: ns.second_moment(**BOTH), rows, lambda X: X.T @ X, removed),
    "second moment, replace": Case(
        lambda: ns.second_moment(**BOTH, people=REPLACE), rows, lambda X: X.T @ X, replaced
    ),
    "covariance": Case(lambda: ns.covariance(**BOTH, expected=N), rows, centred, removed),
    "covariance, public": Case(
        lambda: ns.covariance(**BOTH, count=N, people=REPLACE, missing="middle"),
        rows,
        centred,
        replaced,
    ),
    "covariance, replaced or dropped": Case(
        lambda: ns.covariance(**BOTH, expected=N, people=REPLACE), rows, centred, spoiled
    ),
    "identity": Case(lambda: ns.identity(**BOTH, n=N), rows, lambda X: X, replaced),
    "gradient": Case(lambda: ns.gradient(clip=40.0, m=3), rows, lambda X: X.sum(axis=0), removed),
    "features": Case(lambda: ns.features(clip=40.0, m=3, n=N), rows, lambda X: X, swapped),
    "gram": Case(lambda: ns.gram(clip=40.0, n=N), rows, lambda X: X @ X.T, swapped),
    "kernel": Case(
        lambda: ns.gram(kernel=kernel, bounds=(0, 1), n=N), rows, kernel, replaced
    ),
    "adjacency": Case(lambda: ns.adjacency(nodes=5), edges, None, another_edge),
    "adjacency, replace": Case(
        lambda: ns.adjacency(nodes=5, people=REPLACE), edges, None, moved_edge
    ),
    "adjacency of nodes": Case(
        lambda: ns.adjacency(nodes=5, person="node"), edges, None, another_node
    ),
    "laplacian": Case(lambda: ns.laplacian(nodes=5), edges, None, another_edge),
    "laplacian, replace": Case(
        lambda: ns.laplacian(nodes=5, people=REPLACE), edges, None, moved_edge
    ),
    "laplacian of nodes": Case(
        lambda: ns.laplacian(nodes=5, person="node"), edges, None, another_node
    ),
    "custom": Case(
        lambda: ns.custom(
            lambda X: np.sort(np.clip(X[:, 0], 0, 1))[:: max(1, len(X) - 1)][[0, -1]],
            shape=(2,),
            changes=ns.matrices.Box([-1025] * 2, [1025] * 2),
            step=1 / 1024,
        ),
        rows,
        lambda X: np.sort(X[:, 0])[[0, -1]],
        removed,
    ),
}  # fmt: skip


def graph(E, n=5, laplacian=False):
    A = np.zeros((n, n))
    for i, j in E:
        A[i, j] = A[j, i] = 1
    return np.diag(A.sum(axis=1)) - A if laplacian else A


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def read(query, data):
    return np.array([int(v) for v in query.source(data).read()], dtype=object)


def exact(query, data):
    return query.answer(query.step * read(query, data).astype(float))


def test_without_noise_answers_are_the_plain_computation(case):
    rng = np.random.default_rng(1)
    query = case.ask()
    for _ in range(5):
        data = case.data(rng)
        plain = case.plain or (lambda E: graph(E, laplacian=query.laplacian))
        found = exact(query, data)
        assert found.shape == query.shape
        # Values move by at most half a step of the grid each.
        assert_allclose(found, plain(data), atol=2e-2 * np.abs(plain(data)).max() / 100 + 1e-3)


def test_no_neighbour_moves_coordinates_by_more_than_is_paid(case):
    """From rows to coordinates: ||A (z - z')||^2 <= mu^2, for noise of every shape."""
    rng = np.random.default_rng(2)
    query = case.ask()
    sigma = rng.uniform(64, 300, query.size)
    strategy = Diagonal(sigma, query.changes)
    paid = strategy.cost(query.people, rows_may_leave=query.rows_may_leave).mu_squared
    widest = query.changes.widest(query.people.neighbours)
    if query.people.neighbours == "replace" and query.rows_may_leave:
        widest = np.maximum(widest, query.changes.widest("add-remove"))
    greatest = 0.0
    for _ in range(200):
        data = case.data(rng)
        D = (read(query, data) - read(query, case.neighbour(rng, data))).astype(float)
        assert np.all(np.abs(D) <= widest)
        greatest = max(greatest, ((D / sigma) ** 2).sum())
    assert 0 < greatest <= float(paid)
    tame = query.kind == "second moment" and query.people == REPLACE  # [10, 11] counts as [0, 11]
    if query.kind not in ("custom", "gram", "features", "graph", "gradient") and not tame:
        assert greatest > float(paid) / 12, "the neighbours that were tried are too tame"


def test_s2_and_gamma_bound_what_they_say(case):
    """MVG's s2 and gamma, against random neighbours; s2 in the answer's Frobenius norm."""
    rng = np.random.default_rng(3)
    query = case.ask()
    if query.kind == "custom":
        with pytest.raises(ns.InvalidInput, match="no declared bound on its values"):
            query.gamma()
        return
    private = "count" in query.parts
    if private:
        with pytest.raises(ns.InvalidInput, match="needs the number of rows, which is private"):
            query.s2()
        return
    s2 = query.s2()
    try:
        gamma = query.gamma()
    except ns.InvalidInput:
        assert query.kind in ("sum", "second moment", "gradient")
        gamma = np.inf
    moved = size = 0.0
    for _ in range(200):
        data = case.data(rng)
        M = exact(query, data)
        moved = max(moved, np.linalg.norm(M - exact(query, case.neighbour(rng, data))))
        size = max(size, np.linalg.norm(M))
    # Bounds are those of the declared ones, and the grid may reach half a step beyond.
    assert 0 < moved <= s2 * (1 + 1e-4)
    assert size <= gamma * (1 + 1e-4)


def test_a_question_is_a_file_that_holds_nothing_of_the_data(case):
    query = case.ask()
    said = json.loads(json.dumps(query.to_json()))
    if query.kind == "gram" and query.kernel is not None:
        assert "kernel" not in said
    again = from_json(said)
    assert again.digest() == query.digest()
    assert (again.shape, again.labels, again.people) == (query.shape, query.labels, query.people)
    assert np.array_equal(again.step, query.step)
    assert again.rows is None


def test_plans_of_every_question_are_released_and_read_again(case, tmp_path):
    rng = np.random.default_rng(4)
    query, data = case.ask(), case.data(rng)
    shaped = {name: make(query) for name, make in SHAPES.items()}
    for name, plan in shaped.items():
        assert plan.cost.mu_squared <= 1, name
        assert plan.cost.mu > 0.99, "not all that was allowed is used"
        release = plan.release(data, unrecorded=True, out=tmp_path / name)
        assert release.answer.shape == release.stderr.shape == query.shape
        assert np.all(np.isfinite(release.stderr))
        back = ns.read(tmp_path / name)
        assert isinstance(back, ns.MatrixRelease)
        assert np.array_equal(back.answer, release.answer)
        assert (back.plan.digest, back.plan.cost) == (plan.digest, plan.cost)
    # Directional noise is never worse in total (in its own bounds), by its own design.
    if query.kind not in ("custom", "graph"):
        assert shaped["directional"].total <= shaped["isotropic"].total * (1 + 1e-5)


SHAPES = {"isotropic": ns.isotropic, "directional": ns.directional}


def test_rows_are_in_no_plan_and_no_release(tmp_path):
    X = np.full((40, 2), 0.8172635)
    plan = ns.directional(ns.covariance(X, bounds=(0, 1), expected=40))
    plan.save(tmp_path / "plan.json")
    assert "8172635" not in (tmp_path / "plan.json").read_text() + repr(plan) + repr(plan.query)
    release = plan.release(unrecorded=True)
    assert release.plan.query.rows is None
    assert "8172635" not in repr(vars(release))
    again = ns.MatrixPlan.load(tmp_path / "plan.json")
    assert (again.digest, again.cost) == (plan.digest, plan.cost)
    assert again.query.rows is None
    with pytest.raises(ns.InvalidInput, match="hand in the rows"):
        again.release(unrecorded=True)
    assert again.release(X, unrecorded=True).answer.shape == (2, 2)


def test_one_row_of_a_gram_matrix_goes_from_one_end_to_the_other():
    """All rows alike, and one of them turned round: every inner product with it changes sign."""
    X = np.tile([3.0, 4.0], (5, 1))
    Y = X.copy()
    Y[2] = -Y[2]
    query = ns.gram(clip=5.0, n=5)
    D = (read(query, X) - read(query, Y)).astype(float)
    paid = Diagonal(np.full(query.size, 64.0), query.changes).cost(query.people).mu_squared
    # The row's own square stays; the bound allows it to go from 0 to its greatest.
    assert 0.9 * 16 / 17 * float(paid) < (D**2).sum() / 64**2 <= float(paid)
