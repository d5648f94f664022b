"""Sets of changes: the supremum of ||A D|| is one, for a million D, and it is attained where said.

The reference draws members of each set by its definition, and multiplies with A in doubles.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from noiseshape.errors import InvalidInput
from noiseshape.strategies import Dense, Diagonal, Kronecker
from noiseshape.strategies.changes import (
    Ball,
    Box,
    Columns,
    Custom,
    OneOf,
    Outer,
    Spectrum,
)

PAIRS = 1_000_000
BLOCK = 100_000


def ball(rng, n, size, radius, counts=1):
    v = rng.standard_normal((n, size)) / np.sqrt(counts)
    length = np.sqrt((counts * v**2).sum(axis=1, keepdims=True))
    return v / length * radius * rng.choice([1, 1, 0.5], (n, 1))


def box(rng, n, low, high):
    """Mostly corners, where the greatest are."""
    inside = rng.uniform(low, high, (n, len(low)))
    corners = np.where(rng.integers(0, 2, inside.shape), low, high)
    return np.where(rng.random((n, 1)) < 0.2, inside, corners)


def outer(rng, n, c, signed, kept):
    c = np.asarray(c, dtype=float)
    x = box(rng, n, -c if signed else 0 * c, c)
    i, j = np.triu_indices(len(c))
    parts = [np.ones((n, 1)), x, x[:, i] * x[:, j]]
    return np.hstack([p for p, keep in zip(parts, kept, strict=True) if keep])


def spectrum(rng, n, shape, values):
    m, k = shape
    out = np.empty((n, m * k))
    r = len(values)
    for start in range(0, n, 10_000):
        some = min(10_000, n - start)
        U = np.linalg.qr(rng.standard_normal((some, m, m)))[0][:, :, :r]
        V = np.linalg.qr(rng.standard_normal((some, k, k)))[0][:, :, :r]
        out[start : start + some] = np.einsum("nir,r,njr->nij", U, values, V).reshape(some, -1)
    return out


EVERY = (True, True, True)
# Name -> the set, and how members of it are drawn.
SETS = {
    "ball": (Ball(4, 7), lambda rng, n: ball(rng, n, 4, 7)),
    "counted ball": (
        Ball(3, 5, [1, 2, 1]),
        lambda rng, n: ball(rng, n, 3, 5, np.array([1, 2, 1])),
    ),
    "box": (Box([-3, 0, 1], [5, 4, 2]), lambda rng, n: box(rng, n, [-3, 0, 1], [5, 4, 2])),
    "outer": (Outer([2, 5, 1]), lambda rng, n: outer(rng, n, [2, 5, 1], True, EVERY)),
    "outer from 0": (
        Outer([3, 4], signed=False),
        lambda rng, n: outer(rng, n, [3, 4], False, EVERY),
    ),
    "products": (
        Outer([2, 5, 3], count=False, sums=False),
        lambda rng, n: outer(rng, n, [2, 5, 3], True, (False, False, True)),
    ),
    "signed sums": (
        Outer([2, 5], count=False, products=False),
        lambda rng, n: outer(rng, n, [2, 5], True, (False, True, False)),
    ),
    "columns": (
        Columns([[1, 0, 2], [0, 3, -1]]),
        lambda rng, n: np.array([[1, 0, 2], [0, 3, -1]]).T[rng.integers(0, 3, n)],
    ),
    "spectrum": (
        Spectrum((2, 3), [4.0, 1.0]),
        lambda rng, n: spectrum(rng, n, (2, 3), np.array([4.0, 1.0])),
    ),
}
# Whether the supremum for entrywise noise is exact, add-remove and replace.
EXACT = {
    "ball": (1, 1), "counted ball": (1, 1), "box": (1, 1), "outer": (1, 0), "outer from 0": (1, 1),
    "products": (1, 0), "signed sums": (1, 1), "columns": (1, 1), "spectrum": (0, 0),
}  # fmt: skip


def strategies_for(changes, rng):
    sigma = rng.uniform(64, 300, changes.size)
    yield Diagonal(sigma, changes)
    if isinstance(changes, Box | Outer):  # the closed form's own shape, where bounds are sharpest
        yield Diagonal(64 * np.maximum(changes.widest("add-remove"), 1), changes)
    rows = rng.integers(-9, 10, (changes.size, changes.size)) + 20 * np.eye(changes.size, dtype=int)
    yield Dense(rows, sigma, np.eye(changes.size), changes=changes)
    if isinstance(changes, Spectrum):
        first = Dense(np.array([[5, 1], [2, 7]]), 64.0, np.eye(2))
        yield Kronecker([first, Diagonal([64.0, 80.0, 200.0])], changes)


def lengths(strategy, D):
    A = strategy.densify().rows.astype(float) / strategy.sigma[:, None]
    return ((D @ A.T) ** 2).sum(axis=1)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("name", SETS)
def test_a_million_random_neighbours_never_cost_more(name, neighbours):
    changes, draw = SETS[name]
    rng = np.random.default_rng(7)
    made = list(strategies_for(changes, rng))
    greatest, wide = np.zeros(len(made)), np.zeros(changes.size)
    for _ in range(PAIRS // BLOCK // len(SETS) + 1):
        D = draw(rng, BLOCK)
        if neighbours == "replace":
            D = D - D[rng.permutation(BLOCK)]
        wide = np.maximum(wide, np.abs(D).max(axis=0))
        greatest = [max(g, lengths(s, D).max()) for g, s in zip(greatest, made, strict=True)]
    for found, strategy in zip(greatest, made, strict=True):
        stated = float(strategy.cost_of_one(neighbours))
        assert found <= stated * (1 + 1e-12)
        if isinstance(strategy, Diagonal) and EXACT[name][neighbours == "replace"]:
            assert found >= stated * 0.95, "it is never reached"
    assert np.all(wide <= changes.widest(neighbours) * (1 + 1e-12))


def test_a_cost_that_is_too_small_is_caught():
    """The negative control: one part in twenty off, and neighbours are found beyond it."""
    changes, draw = SETS["outer"]
    rng = np.random.default_rng(7)
    strategy = next(strategies_for(changes, rng))
    stated = float(strategy.cost_of_one("add-remove"))
    assert lengths(strategy, draw(rng, BLOCK)).max() > stated * 0.95


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("name", SETS)
def test_terms_tell_the_cost_of_entrywise_noise_exactly_or_from_above(name, neighbours):
    """``terms``, by which noise is designed, against ``square``, by which it is paid."""
    changes, _ = SETS[name]
    rng = np.random.default_rng(3)
    B = changes.terms(neighbours)
    for _ in range(5):
        sigma = rng.uniform(64, 300, changes.size)
        told = (B @ (1 / sigma**2)).max()
        paid = float(Diagonal(sigma, changes).cost_of_one(neighbours))
        if changes.tight(neighbours):
            assert_allclose(told, paid, rtol=1e-6)
        elif not isinstance(changes, Outer):
            assert told >= paid * (1 - 1e-9)


def test_signed_products_replaced_cost_at_most_twice_what_terms_say_half_of():
    """For weights that are products, the bound by which noise is designed is the one paid."""
    c, w = np.array([2, 5, 3]), np.array([1.0, 4.0, 0.5])
    changes = Outer(c, count=False, sums=False)
    i, j = np.triu_indices(3)
    a = w[i] * w[j] * np.where(i == j, 1, 2)
    sigma = 1e4 * np.sqrt(c[i] * c[j] / np.sqrt(a))
    told = (changes.terms("replace") @ (1 / sigma**2)).max()
    paid = float(Diagonal(sigma, changes).cost_of_one("replace"))
    assert_allclose(told, paid, rtol=1e-6)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_a_small_box_is_exact_over_its_corners(m):
    rng = np.random.default_rng(m)
    low, high = rng.integers(-5, 1, m), rng.integers(1, 6, m)
    rows = rng.integers(-9, 10, (m, m)) + 20 * np.eye(m, dtype=int)
    strategy = Dense(rows, 64.0, np.eye(m), changes=Box(low, high))
    for neighbours in ("add-remove", "replace"):
        ends = [(h - w, w - h) for w, h in zip(low, high, strict=True)]
        if neighbours == "add-remove":
            ends = list(zip(low, high, strict=True))
        corners = np.array(list(itertools.product(*ends)), dtype=object)
        exact = max(Fraction(int(((rows.astype(object) @ c) ** 2).sum()), 64**2) for c in corners)
        assert exact <= strategy.cost_of_one(neighbours) <= exact * (1 + Fraction(1, 10**9))


def test_a_large_box_has_a_bound_and_keeps_it():
    rng = np.random.default_rng(2)
    m = 20
    rows = rng.integers(-9, 10, (m, m)) + 40 * np.eye(m, dtype=int)
    strategy = Dense(rows, 64.0, np.eye(m), changes=Box([-4] * m, [4] * m))
    found = lengths(strategy, box(rng, BLOCK, [-4] * m, [4] * m)).max()
    # Random search, then climbing by one coordinate at a time.
    P = (rows.T @ rows) / 64**2
    s = np.sign(rng.standard_normal((200, m))) * 4
    for _ in range(10):
        for k in range(m):
            s[:, k] = 4 * np.sign((s @ P)[:, k] - s[:, k] * P[k, k] + 1e-30)
    found = max(found, np.einsum("ij,jk,ik->i", s, P, s).max())
    stated = float(strategy.cost_of_one("add-remove"))
    assert found <= stated <= found * 3


def test_one_row_of_many_costs_what_it_costs_alone():
    inner = Box([-2, 0], [2, 3])
    sigma = np.array([[64.0, 70.0], [90.0, 64.0], [64.0, 64.0]])
    many = Diagonal(sigma.ravel(), OneOf(inner, 3))
    for neighbours in ("add-remove", "replace"):
        alone = max(inner.square(Diagonal(row), neighbours) for row in sigma)
        assert many.cost_of_one(neighbours) == alone
    columns = Dense(np.array([[64, 3], [0, 64]]), 64.0, np.eye(2))
    rows = Diagonal([64.0, 80.0, 100.0])
    product = Kronecker([rows, columns], OneOf(inner, 3))
    expected = rows.profile().greatest * inner.square(columns, "replace")
    assert product.cost_of_one("replace") == expected
    with pytest.raises(InvalidInput, match="rows of a matrix are measured entry by entry"):
        Dense(np.eye(6, dtype=int), 64.0, np.eye(6), changes=OneOf(inner, 3)).cost()


def test_imgm_theorem_1_is_attained_in_the_directions_of_both_factors():
    first, second = np.diag([8, 3]), np.diag([5, 2, 7])
    values = [4.0, 1.0]
    product = Kronecker(
        [Dense(first, 64.0, np.eye(2)), Dense(second, 64.0, np.eye(3))], Spectrum((2, 3), values)
    )
    # The greatest values of each, in order: 8 and 3 with 7 and 5.
    exact = ((8 * 7 * 4) ** 2 + (3 * 5 * 1) ** 2) / 64**4
    assert exact <= float(product.cost_of_one("add-remove")) <= exact * (1 + 1e-9)
    assert float(product.cost_of_one("replace")) <= 4 * exact * (1 + 1e-9)
    D = np.zeros((2, 3))
    D[0, 2], D[1, 0] = values
    assert_allclose(((first @ D @ second.T) ** 2).sum() / 64**4, exact)


def test_the_callers_own_bound_is_used_and_raised_for_rounding():
    far = [3.0, 4.0]
    told = Custom(far, lambda P, neighbours: float(np.trace(P)) * 25)
    strategy = Diagonal([64.0, 64.0], told)
    assert float(strategy.cost_of_one("add-remove")) >= 2 * 25 / 64**2
    assert_allclose(float(strategy.cost_of_one("add-remove")), 50 / 64**2, rtol=1e-6)
    box_ = Diagonal([64.0, 64.0], Custom(far))
    assert_allclose(float(box_.cost_of_one("replace")), 25 / 64**2, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Ball(3, 0), "above 0"),
        (lambda: Ball(3, float("inf")), "finite"),
        (lambda: Ball(3, 1, [1, 1]), "a count of at least 1 for 3"),
        (lambda: Box([0, 0], [0, 0]), "has no sensitivity"),
        (lambda: Box([1], [0]), "low <= high"),
        (lambda: Box([0], [1, 2]), "a low and a high end"),
        (lambda: Outer([1, 0]), "a bound above 0"),
        (lambda: Outer([1], count=False, sums=False, products=False), "at least one"),
        (lambda: Columns([[0, 0]]), "not zero"),
        (lambda: Spectrum((2, 2), [1.0, 2.0]), "decreasing"),
        (lambda: Spectrum((2, 2), [0.0]), "not all 0"),
        (lambda: Spectrum((2, 2), [3.0, 2.0, 1.0]), "1 to 2 singular values"),
        (lambda: Custom([0.0]), "not all of them 0"),
        (lambda: Diagonal([64.0], Ball(2, 1)), "of 2 entries, and the strategy measures 1"),
    ],
)
def test_bad_input(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        make()
