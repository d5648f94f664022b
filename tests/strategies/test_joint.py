"""A block of cells beside residuals, by the kit that every strategy passes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from noiseshape.errors import InvalidInput, NotSpanned
from noiseshape.strategies import Dense, Residual
from noiseshape.strategies.contrast import Helmert
from noiseshape.strategies.joint import Joint
from noiseshape.strategies.lattice import Lattice
from noiseshape.tables.asks import Ask, everything

from . import kit

SIZES = (2, 3, 2)
rng = np.random.default_rng(8)
OTHER = Ask((1, 2), weights=rng.integers(0, 2, (2, 3, 2)) + np.eye(3, 2)[None])


def made():
    """Attributes 1 and 2 cell by cell, attribute 0 in residuals beside them."""
    asked = (everything((0, 1)), everything((0,)), everything((2,)), OTHER, everything(()))
    closed = Lattice.of([(0, 1), (0,), (2,)], 3)
    u = np.linspace(1, 2, len(closed))
    residual = Residual.of([Helmert(n) for n in SIZES], closed, u, asked)
    rows = rng.integers(-3, 9, (8, 6)) * 2**10
    return Joint.joining(residual, (1, 2), Dense(rows, np.full(8, 2.0**14), np.eye(6)))


def workload(strategy):
    wide = []
    for ask in strategy.asked:
        W = ask.written(SIZES)
        shape = [n if i in ask.members else 1 for i, n in enumerate(SIZES)]
        wide.append(np.broadcast_to(W.reshape(-1, *shape), (len(W), *SIZES)).reshape(len(W), -1))
    return np.vstack(wide)


def test_it_conforms():
    strategy = made()
    kit.check(strategy, workload(strategy))


def test_parts_are_the_same_from_the_tables_that_it_wants():
    strategy = made()
    x = rng.integers(0, 50, SIZES)
    tables = [
        (members, x.sum(axis=tuple(i for i in range(3) if i not in members)))
        for members in strategy.tables
    ]
    y = strategy.apply(x.ravel())
    for number, part in strategy.parts(tables):
        assert (part == y[strategy.starts[number] : strategy.starts[number + 1]]).all()
    with pytest.raises(InvalidInput, match="in none of the tables"):
        list(strategy.parts(tables[:-1]))


def test_covariances_are_those_of_both_parts():
    strategy = made()
    whole = strategy.densify().covariance()
    ends = np.cumsum([0, *(len(ask.written(SIZES)) for ask in strategy.asked)])
    for i, one in enumerate(strategy.asked):
        for j, other in enumerate(strategy.asked):
            part = whole[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
            assert_allclose(strategy.covariances(one, other), part, rtol=1e-6, atol=1e-9)


def test_what_was_not_measured_together_is_refused():
    strategy = made()
    with pytest.raises(NotSpanned, match="measured together"):
        strategy.check_spans(everything((0, 2)))
    strategy.check_spans(everything((1, 2)))
    with pytest.raises(InvalidInput, match="6 cells"):
        Joint.joining(strategy, (1, 2), Dense(np.eye(4, dtype=int), np.ones(4), np.eye(4)))
