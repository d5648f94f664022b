import numpy as np
import pytest
from sklearn.decomposition import PCA

import noiseshape as ns
from noiseshape.learn import PrivatePCA

rng = np.random.default_rng(2)
X = np.clip(rng.normal(0, 1, (500, 4)) @ np.diag([1.0, 0.6, 0.3, 0.1]), -3, 3)
X[:, 1] += 0.5 * X[:, 0]


def made(n_components=None, mu=1e6, **further):
    return PrivatePCA(n_components, (-4, 4), ns.Budget(mu=mu), unrecorded=True, **further)


def test_without_noise_to_speak_of_it_is_scikit_learns():
    ours, theirs = made(3).fit(X), PCA(3).fit(X)
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))
    assert ours.components_ == pytest.approx(theirs.components_ * signs[:, None], abs=1e-2)
    assert ours.explained_variance_ == pytest.approx(theirs.explained_variance_ * 499 / 500, 1e-2)
    assert ours.explained_variance_ratio_ == pytest.approx(theirs.explained_variance_ratio_, 1e-2)
    assert ours.transform(X) == pytest.approx(theirs.transform(X) * signs, abs=2e-2)
    assert ours.inverse_transform(ours.transform(X)) == pytest.approx(
        theirs.inverse_transform(theirs.transform(X)), abs=2e-2
    )


def test_the_largest_entry_of_each_component_is_positive():
    C = made(mu=0.05).fit(X).components_
    assert np.all(C[np.arange(4), np.abs(C).argmax(axis=1)] > 0)
    assert pytest.approx(np.eye(4), abs=1e-9) == C @ C.T


def test_a_share_of_the_variance():
    shares = made().fit(X).explained_variance_ratio_
    for share in (0.3, 0.8, 0.99):
        k = made(share).fit(X).n_components_
        assert shares[:k].sum() >= share
        assert shares[: k - 1].sum() < share


def test_a_release_of_noise_alone_has_no_negative_variance():
    fitted = made(0.9, mu=1e-3).fit(X[:0])
    assert np.all(fitted.explained_variance_ >= 0)
    assert 1 <= fitted.n_components_ <= 4


def test_errors_say_how_sure_a_direction_is():
    sure, unsure = made(mu=100).fit(X).errors().data, made(mu=0.01).fit(X).errors().data
    assert sure["angle (degrees, 95 %)"][0] < 10 < unsure["angle (degrees, 95 %)"][0]


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (0, "at least 1"),
        (5, "at most the 4"),
        (True, "whole number"),
        (1.5, "below 1"),
        ("mle", "one real number"),
    ],
)
def test_bad_numbers_of_components(n, said):
    with pytest.raises(ns.InvalidInput, match=said):
        made(n).fit(X)
