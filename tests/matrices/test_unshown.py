"""Rows that were handed in with a question are shown nowhere, and written nowhere."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import noiseshape as ns
from noiseshape import matrices
from noiseshape.release.planned import Planned

SECRET = 0.4242421875  # on every grid here
X = np.array([[SECRET, 0.0], [SECRET, 1.0], [0.0, SECRET]])
HELD = {"bounds": (0, 1), "step": 2.0**-12}
QUESTIONS = {
    "sum": lambda: matrices.sum(X, **HELD),
    "mean": lambda: ns.mean(X, **HELD),
    "second moment": lambda: ns.second_moment(X, **HELD),
    "covariance": lambda: ns.covariance(X, **HELD, expected=3),
    "centred": lambda: matrices.centred.centred(ns.covariance(X, **HELD, count=3)),
    "identity": lambda: ns.identity(X, **HELD),
    "features": lambda: ns.features(X, clip=1.0),
    "gradient": lambda: ns.gradient(X, clip=1.0),
    "gram": lambda: ns.gram(X, clip=1.0),
    "custom": lambda: ns.custom(
        np.sum, X, shape=(1,), changes=matrices.Box([0], [1]), step=0.5
    ),
    "framed": lambda: ns.mean(pd.DataFrame(X, columns=["a", "b"]), **HELD, expected=3),
}  # fmt: skip


def tells(said):
    """Whether a text or bytes hold the secret, as a decimal or as a double."""
    data = said if isinstance(said, bytes) else said.encode()
    return b"0.4242" in data or np.float64(SECRET).tobytes() in data


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=list(QUESTIONS))
def test_a_question_is_shown_copied_and_pickled_without_its_rows(ask):
    query = ask()
    assert not tells(repr(query))
    assert not tells(repr(query.source(query.rows)))
    assert tells(pickle.dumps(query.rows))  # what would be found, if it were there
    for other in (pickle.loads(pickle.dumps(query)), copy.deepcopy(query), copy.copy(query)):
        assert other.rows is None
        assert other.digest() == query.digest()
    if "custom" not in query.kind:
        assert not tells(pickle.dumps(query))


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=list(QUESTIONS))
def test_a_plan_is_shown_saved_and_pickled_without_rows(ask, tmp_path):
    plan = ns.isotropic(ask())
    assert isinstance(plan, Planned)
    plan.save(tmp_path / "plan.json")
    shown = [repr(plan), plan._repr_html_(), repr(plan.source(None)), plan.text()]
    shown += [(tmp_path / "plan.json").read_text(), pickle.dumps(plan), repr(vars(plan))]
    if plan.query.kind in ("identity", "features"):
        cut = plan.row_by_row(3, rows=2)
        shown += [repr(cut), pickle.dumps(cut), repr(cut.source(None)), repr(vars(cut))]
    assert not any(map(tells, shown))


def test_edges_are_not_shown():
    edges = np.array([[123454321, 7]])
    assert "123454321" not in repr(ns.adjacency(edges, nodes=3).source(edges))
