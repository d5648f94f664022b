"""One conformance kit: whatever a strategy's structure, it does what its dense form does.

The reference is plain: rationals of Python for what must be exact, and matrices written out.
"""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from noiseshape.errors import InvalidInput
from noiseshape.privacy import People
from noiseshape.sampling import rounded_variance
from noiseshape.strategies import Strategy

REPLACE = People(neighbours="replace")


def written_out(strategy: Strategy):
    """A~ (k, d) of Python integers, found by applying the strategy to unit vectors."""
    d = strategy.shape[1]
    columns = [strategy.apply([int(i == j) for i in range(d)]) for j in range(d)]
    return np.array([[int(v) for v in column] for column in columns], dtype=object).T


def exact_profile(A, sigma):
    return [
        sum(Fraction(int(v)) ** 2 / Fraction(s) ** 2 for v, s in zip(column, sigma, strict=True))
        for column in A.T
    ]


def check(strategy: Strategy, workload) -> None:
    """Run the whole kit; ``workload`` is W written out by the test itself."""
    k, d = strategy.shape
    A, sigma = written_out(strategy), strategy.sigma.tolist()
    assert A.shape == (k, d)
    assert sigma == [float(s) for s in sigma]
    assert strategy.queries == len(workload)
    check_dense_form(strategy, A, workload)
    check_apply(strategy, A)
    check_unbiased(strategy, A, workload)
    check_costs(strategy, A, sigma)
    check_errors(strategy, A, workload)
    check_scaling(strategy)
    check_refusals(strategy)


def check_dense_form(strategy, A, workload):
    dense = strategy.densify()
    assert (dense.rows.astype(object) == A).all()
    assert (dense.sigma == strategy.sigma).all()
    assert_allclose(dense.workload, workload, atol=1e-12)


def check_apply(strategy, A):
    """Exact, whatever the size of the data: 3 bits, 63 bits, and beyond 64."""
    rng = np.random.default_rng(1)
    for bits in (3, 40, 62, 90):
        x = [int(v) << max(0, bits - 30) for v in rng.integers(-(2**30), 2**30, strategy.shape[1])]
        y = strategy.apply(np.array(x, dtype=object))
        assert [int(v) for v in y] == [sum(a * b for a, b in zip(row, x, strict=True)) for row in A]


def check_unbiased(strategy, A, workload):
    """R A~ = W: what is rebuilt without noise is the answer, to the last conversion."""
    rng = np.random.default_rng(2)
    for top in (10, 2**31, 2**60):
        x = rng.integers(0, top, strategy.shape[1])
        exact = [
            float(sum(Fraction(float(w)) * int(v) for w, v in zip(row, x, strict=True)))
            for row in workload
        ]
        error = np.sqrt(strategy.variance)
        off = np.abs(strategy.rebuild(strategy.apply(x)) - exact)
        # A double near 2^60 is itself 2^8 wide.
        assert np.all(off <= 1e-6 * error + 4e-16 * np.abs(exact))


def check_costs(strategy, A, sigma):
    profile = strategy.profile()
    for entry, truth in zip(profile.units, exact_profile(A, sigma), strict=True):
        value = Fraction(int(entry), 1 << profile.exponent)
        assert truth <= value <= truth * (1 + Fraction(1, 2**35))
    assert strategy.cost().mu_squared == profile.greatest
    pairs = [
        sum(
            (Fraction(int(a)) - int(b)) ** 2 / Fraction(s) ** 2
            for a, b, s in zip(A[:, i], A[:, j], sigma, strict=True)
        )
        for i in range(A.shape[1])
        for j in range(i)
    ] or [Fraction(0)]
    replaced = strategy.cost(REPLACE).mu_squared
    assert max(pairs) <= replaced <= max(pairs) * (1 + Fraction(1, 2**35))
    leave = strategy.cost(REPLACE, rows_may_leave=True).mu_squared
    assert leave == max(replaced, profile.greatest)
    three = People("id", 3)
    assert strategy.cost(three).mu_squared == 9 * profile.greatest
    assert strategy.cost(People("id", 3, "replace")).mu_squared == 9 * leave


def check_errors(strategy, A, workload):
    """The covariance of the least-squares answers, from matrices written out."""
    weighted = A.astype(float) / strategy.sigma[:, None]
    R = workload @ np.linalg.pinv(weighted) / strategy.sigma
    expected = (R * rounded_variance(strategy.sigma)) @ R.T
    scale = np.abs(expected).max()
    assert_allclose(strategy.covariance(), expected, atol=1e-9 * scale)
    assert_allclose(strategy.variance, np.diag(expected), rtol=1e-9, atol=1e-12 * scale)


def check_scaling(strategy):
    up, down = strategy.scaled(1.3), strategy.scaled(1.3, up=False)
    exact = [Fraction(s) * Fraction(1.3) for s in strategy.sigma.tolist()]
    assert all(Fraction(s) >= e for s, e in zip(up.sigma.tolist(), exact, strict=True))
    assert all(s >= t for s, t in zip(up.sigma, down.sigma, strict=True))
    assert_allclose(down.sigma, up.sigma, rtol=1e-9)
    assert type(up) is type(strategy)


def check_refusals(strategy):
    k, d = strategy.shape
    with pytest.raises(InvalidInput, match=f"{d} cells"):
        strategy.apply(np.zeros(d + 1, dtype=int))
    with pytest.raises(InvalidInput, match="integers"):
        strategy.apply(np.zeros(d))
    with pytest.raises(InvalidInput, match=f"{k} rows"):
        strategy.rebuild(np.zeros(k + 1, dtype=int))
    with pytest.raises(AttributeError):
        strategy.sigma = 1.0
    with pytest.raises(ValueError, match="read-only"):
        strategy.sigma[0] = 1.0
