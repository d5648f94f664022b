"""What any row may hold, and what it can do all the same: no neighbour costs more than is paid.

Rows here hold what is no number, what is far outside, corners and middles; what their change does
is measured in exact rationals, from the integers that are executed.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import noiseshape as ns
from noiseshape import matrices
from noiseshape.matrices.centred import centred
from noiseshape.release.matrixplan import entries, whitened

ADD, REPLACE = ns.People(), ns.People(neighbours="replace")
NAMES = ("a", "b")
STRANGE = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -0.0, 5e-324]

# A second moment refuses to count what is missing as anything.
KINDS = [("second_moment", "drop")] + [
    (kind, missing)
    for kind in ("sum", "mean", "covariance", "centred")
    for missing in ("drop", "middle")
]
# Bounds on one side of 0, and around it: 0 itself is then no allowed value, or is one.
BOUNDS = {"beside 0": [(5, 10), (-7.7, -6.7)], "around 0": [(-5, 7), (0, 1)]}


def a_row(rng, bounds):
    return [
        rng.choice([*STRANGE, low, high, (low + high) / 2, low - 1, high + 1])
        for low, high in bounds
    ]


def moved(strategy, change):
    """||A change||^2, exactly."""
    through = strategy.apply(np.array([int(v) for v in change], dtype=object))
    weighed = zip(through, np.broadcast_to(strategy.sigma, through.shape), strict=True)
    return sum(Fraction(int(v)) ** 2 / Fraction(float(s)) ** 2 for v, s in weighed)


def plans(rng, query):
    sigma = query.step * np.exp(rng.normal(0, 1.5, query.size))
    yield entries(query, sigma, shape="of one's own")
    A = rng.normal(size=(query.size, query.size)) / sigma
    yield whitened(query, A, shape="of one's own")


def asked(kind, **said):
    if kind == "centred":
        return centred(ns.covariance(**said))
    return getattr(matrices, kind)(**said)


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=list(BOUNDS))
@pytest.mark.parametrize("people", [ADD, REPLACE], ids=["add-remove", "replace"])
@pytest.mark.parametrize(("kind", "missing"), KINDS)
def test_no_row_whatever_it_holds_moves_more_than_is_paid(kind, missing, people, bounds):
    rng, n = np.random.default_rng(7), 4
    query = asked(
        kind, bounds=bounds, columns=NAMES, people=people, missing=missing, step=0.25, count=n
    )
    chosen = list(plans(rng, query))
    greatest = Fraction(0)
    for _ in range(40):
        X = np.array([a_row(rng, bounds) for _ in range(n)])
        Y = X[1:] if people == ADD else np.vstack([a_row(rng, bounds), X[1:]])
        change = query.source(X).read() - query.source(Y).read()
        for plan in chosen:
            share = moved(plan.strategy, change) / plan.cost.mu_squared
            assert share <= 1, (X, Y)
            greatest = max(greatest, share)
    assert greatest > (0.95 if kind in ("sum", "mean") else 0.02)


def test_what_is_missing_in_a_sum_counts_as_the_middle_of_its_bounds_in_every_engine():
    query = matrices.sum(bounds=(5, 10), columns=NAMES, missing="middle", people=REPLACE)
    X = np.array([[np.nan, 6.0], [8.0, np.inf]])
    found = [query.source(rows).read() for rows in (X, pd.DataFrame(X, columns=NAMES))]
    for z in found:
        np.testing.assert_array_equal(query.step * z.astype(float), [7.5 + 8, 6 + 7.5])
