"""What all estimators promise: one release a fit, paid first; no seed; nothing private kept."""

import pickle
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import validation

import noiseshape as ns
from noiseshape.learn import PrivateCovariance, PrivatePCA, PrivateRidge
from noiseshape.matrices import reading

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 3))
y = X @ [1.0, -0.5, 0.25] + rng.normal(0, 0.1, 300)
BUDGET = ns.Budget(mu=0.5)
KINDS = [PrivateCovariance, PrivatePCA, PrivateRidge]


def made(kind, **further):
    given = {"bounds": (-1, 1), "budget": BUDGET, "unrecorded": True} | further
    if kind is PrivateRidge:
        given = {"y_bounds": (-2, 2)} | given
    return kind(**given)


@pytest.fixture
def ledger(tmp_path):
    return ns.Ledger.create(tmp_path / "budget.db", ns.Budget(mu=1.0), vintage="frozen")


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_debited_before_a_row_is_read(kind, ledger, monkeypatch):
    found = []
    honest = reading.Held.moments

    def moments(self, **asked):
        found.append(len(list(ledger.history())))
        return honest(self, **asked)

    monkeypatch.setattr(reading.Held, "moments", moments)
    estimator = made(kind, ledger=ledger, unrecorded=False).fit(X, y)
    assert found == [1]
    assert estimator.cost_.mu_squared == ledger.spent().mu_squared
    assert estimator.cost_.mu <= 0.5
    (entry,) = ledger.history()
    assert entry.charge.what.startswith(kind.__name__)
    estimator.release_.verify(ledger)


@pytest.mark.parametrize("kind", KINDS)
def test_every_fit_pays_and_none_overspends(kind, ledger):
    estimator = made(kind, ledger=ledger.path, unrecorded=False, budget=ns.Budget(mu=0.7))
    estimator.fit(X, y)
    estimator.fit(X, y)
    with pytest.raises(ns.BudgetExceeded):
        estimator.fit(X, y)
    assert len(list(ledger.history())) == 2


def test_a_search_pays_for_each_of_its_fits(tmp_path):
    ledger = ns.Ledger.create(tmp_path / "budget.db", ns.Budget(mu=3.0))
    ridge = made(PrivateRidge, ledger=ledger, unrecorded=False)
    GridSearchCV(ridge, {"alpha": [1.0, 10.0]}, cv=2).fit(X, y)
    assert len(list(ledger.history())) == 2 * 2 + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_tells_what_the_fit_executes(kind):
    estimator = made(kind)
    plan = estimator.plan(X, y)
    assert not hasattr(estimator, "release_")
    assert estimator.fit(X, y).release_.plan.digest == plan.digest


@pytest.mark.parametrize("kind", KINDS)
def test_fit_never_validates_values_as_scikit_learn_does(kind, monkeypatch):
    estimator = made(kind)
    bad = X.copy()
    bad[0], bad[1], bad[2] = np.nan, np.inf, 1e300

    def refused(*args, **kwargs):
        raise AssertionError("values were looked at")

    for name in ("check_array", "check_X_y", "_assert_all_finite", "assert_all_finite"):
        monkeypatch.setattr(validation, name, refused)
    estimator.fit(bad, np.where(np.arange(300) == 3, -np.inf, y))
    if kind is not PrivateCovariance:
        with pytest.raises(AssertionError, match="looked at"):
            (estimator.predict if kind is PrivateRidge else estimator.transform)(X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["drop", "middle"])
def test_what_is_no_number_follows_the_policy(kind, missing):
    bad = np.vstack([X, [[np.nan, 0.5, 0.5]], [[0.0, -np.inf, 0.0]]])
    plenty = made(kind, missing=missing, budget=ns.Budget(mu=1e6))
    fitted = plenty.fit(bad, np.append(y, [0.0, 0.0]))
    assert fitted.count_ == pytest.approx(300 if missing == "drop" else 302, abs=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_rows_fit_too(kind):
    """How many rows there are is private: even none."""
    assert made(kind).fit(X[:0], y[:0]).count_ >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_public_counts(kind):
    fitted = made(kind, neighbours="replace", missing="middle").fit(X, y)
    assert fitted.count_ == 300
    assert "count" not in fitted.release_.plan.query.parts
    assert made(kind, neighbours="replace", missing="middle", count=299).fit(X, y).count_ == 299


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_is_refused_with_the_reason(kind):
    for refused in (
        lambda: kind(random_state=0),
        lambda: made(kind).set_params(random_state=0),
        lambda: kind(bounds=(0, 1), random_state=None),
    ):
        with pytest.raises(ns.InvalidInput, match="secret bits"):
            refused()
    with pytest.raises(TypeError, match="unexpected keyword"):
        kind(nonsense=1)
    assert "random_state" not in kind().get_params()


@pytest.mark.parametrize("kind", KINDS)
def test_help_shows_the_constructor(kind):
    import inspect

    assert list(inspect.signature(kind).parameters)[-1] == "expected"
    assert set(inspect.signature(kind).parameters) == set(kind().get_params())


@pytest.mark.parametrize("kind", KINDS)
def test_clones_share_the_ledger(kind, ledger):
    estimator = clone(made(kind, ledger=ledger, unrecorded=False))
    estimator.fit(X, y)
    assert len(list(ledger.history())) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_fitted_holds_no_row(kind):
    fitted = made(kind).fit(X, y)
    kept = pickle.dumps(fitted)
    for value in (X[0, 0], X[-1, -1], y[7]):
        assert np.float64(value).tobytes() not in kept
        assert np.float64(value).tobytes() in pickle.dumps([X, y])
    again = pickle.loads(kept)
    assert again.release_.fingerprint == fitted.release_.fingerprint
    assert again.errors().rows() is not None


@pytest.mark.parametrize("kind", KINDS)
def test_rows_wherever_they_are(kind, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    path = tmp_path / "rows.parquet"
    frame.assign(y=y).to_parquet(path)
    bounds = {"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}
    estimator = made(kind, bounds=bounds, budget=ns.Budget(mu=1e6))
    joint = frame.assign(y=y) if kind is PrivateRidge else frame
    places = [
        (frame, y),
        (joint, "y"),
        (pl.from_pandas(joint), "y"),
        (pl.from_pandas(joint).to_arrow(), "y"),
        (duckdb.from_df(joint), "y"),
        (str(path), "y"),
        (X, pd.Series(y, name="y")),
    ]
    digests, middles = set(), []
    for data, target in places:
        fitted = clone(estimator).fit(data, target)
        digests.add(fitted.release_.plan.digest)
        middles.append(fitted.release_.answer)
        assert fitted.n_features_in_ == 3
        if data is not X:
            assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert len(digests) == 1
    for one in middles[1:]:
        assert one == pytest.approx(middles[0], abs=1e-3)


def test_in_a_pipeline(tmp_path):
    ledger = ns.Ledger.create(tmp_path / "budget.db", ns.Budget(mu=2.0))
    # Steps before a private one must not learn from the rows: this one does not.
    pipe = make_pipeline(
        FunctionTransformer(np.abs), made(PrivateRidge, ledger=ledger, unrecorded=False)
    ).fit(X, y)
    assert pipe.predict(X).shape == (300,)
    assert len(list(ledger.history())) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bounds": None}, "need bounds, from public knowledge"),
        ({"bounds": (1, -1)}, "low < high"),
        ({"bounds": (-np.inf, 1)}, "must be finite"),
        ({"bounds": [(-1, 1)] * 2}, "2 pairs of bounds"),
        ({"budget": None}, "needs a budget"),
        ({"budget": 1.0}, "must be a Budget"),
        ({"unrecorded": False}, "ledger"),
        ({"neighbours": "none"}, "neighbours must be"),
        ({"missing": "zero"}, "missing must be"),
        ({"noise": "loud"}, "noise must be 'directional' or 'isotropic'"),
        ({"noise": "isotropic", "weights": [1, 1, 1]}, "weights shape directional noise"),
        ({"weights": [1, -1, 1, 1]}, "weights must"),
        ({"count": 0}, "count must be at least 1"),
    ],
)
def test_bad_declarations(kind, given, said):
    estimator = made(kind, **given)
    with pytest.raises(ns.InvalidInput, match=said):
        estimator.fit(X, y)
    assert not hasattr(estimator, "release_")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (X[0], "a matrix"),
        (X[:, :0], "0 feature"),
        (X.astype(complex), "Complex data not supported"),
        (np.array([["a", "b", "c"]] * 300), "must hold numbers"),
        (np.ma.masked_array(X), "masked"),
        ([[1.0], [1.0, 2.0]], "equal length"),
    ],
)
def test_bad_rows(kind, rows, said):
    with pytest.raises(ns.InvalidInput, match=said):
        made(kind).fit(rows, y)


def test_without_scikit_learn_one_sentence():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import noiseshape\n"
        "try:\n    import noiseshape.learn\n"
        "except ImportError as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == (
        "noiseshape.learn needs scikit-learn, which is not installed: "
        "pip install 'noiseshape[learn]'."
    )
