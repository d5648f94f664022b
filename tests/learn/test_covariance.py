import numpy as np
import pytest

import noiseshape as ns
from noiseshape.learn import PrivateCovariance

rng = np.random.default_rng(1)
X = np.column_stack([rng.uniform(0, 1, 400), rng.uniform(0, 100, 400)])
X[:, 1] += 30 * X[:, 0]
BOUNDS = [(0, 1), (0, 100)]


def fitted(mu=0.5, **further):
    return PrivateCovariance(BOUNDS, ns.Budget(mu=mu), unrecorded=True, **further).fit(X)


def test_without_noise_to_speak_of_it_is_numpys():
    clipped = np.clip(X, 0, [1, 100])
    made = fitted(mu=1e6)
    assert made.covariance_ == pytest.approx(np.cov(clipped.T, ddof=0), rel=1e-3)
    assert made.location_ == pytest.approx(clipped.mean(axis=0), rel=1e-3)


def test_errors_are_what_they_say():
    """The spread of many fits is the simulated one; one that is 30 % off would be found."""
    many = [fitted(expected=400) for _ in range(600)]
    spread = np.std([m.release_.answer for m in many], axis=0)
    stated = np.mean([m.release_.stderr for m in many[:120]], axis=0)
    ratio = spread / stated
    assert np.all(abs(ratio - 1) < 0.15)
    assert np.any(abs(1.3 * ratio - 1) > 0.15)
    table = many[0].errors()
    assert len(table) == 3


def test_it_is_positive_semi_definite_and_within_bounds_whatever_the_noise():
    for _ in range(5):
        made = fitted(mu=0.01)
        assert np.linalg.eigvalsh(made.covariance_).min() >= -1e-9 * np.abs(made.covariance_).max()
        assert np.all((made.location_ >= 0) & (made.location_ <= [1, 100]))


def test_directional_noise_is_never_worse_and_weights_shape_it():
    kinds = {"expected": 400}
    equal = PrivateCovariance(BOUNDS, ns.Budget(mu=0.5), noise="isotropic", **kinds).plan(X)
    shaped = PrivateCovariance(BOUNDS, ns.Budget(mu=0.5), **kinds).plan(X)
    first = PrivateCovariance(BOUNDS, ns.Budget(mu=0.5), weights=[1e4, 1], **kinds).plan(X)
    assert shaped.total < equal.total
    assert first.stderr[0, 0] < shaped.stderr[0, 0]
    assert first.stderr[1, 1] > shaped.stderr[1, 1]
