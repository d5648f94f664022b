"""A lower bound on prefix sums at any size, against the dual and the optimum where they run."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from noiseshape.design import fit
from noiseshape.design.certificate import lower_bound
from noiseshape.design.spectrum import _weights as weights
from noiseshape.design.spectrum import (
    nuclear_bound,
    orthogonal_factor,
    prefix_bound,
    stretched,
)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 120])
def test_the_factor_is_orthogonal_and_that_of_the_prefixes(n):
    U, M = orthogonal_factor(n), np.tril(np.ones((n, n)))
    assert_allclose(U @ U.T, np.eye(n), atol=1e-13)
    left, _, right = np.linalg.svd(M)
    assert_allclose(U, left @ right, atol=1e-12)
    assert_allclose(nuclear_bound(n), (np.linalg.svd(M)[1].sum() / n) ** 2, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 64, 300])
def test_the_bound_is_what_matrices_give(n):
    """Convolution and blocks against u^T (M o U) v written out, for unlike targets."""
    c = 1.0 + np.arange(n) % 5
    u, v = weights(1 / np.sqrt(c))
    K = np.tril(orthogonal_factor(n)) / np.sqrt(c)[:, None]
    value = max((u @ K @ v) / np.linalg.norm(u) / np.linalg.norm(v), 1.0)
    assert_allclose(prefix_bound(c), value**2, rtol=3e-9)
    assert prefix_bound(c) <= value**2


@pytest.mark.parametrize("n", [2, 16, 64])
def test_no_design_is_below_it_and_the_dual_is_above(n):
    c = np.linspace(1, 1.2, n)
    W = np.tril(np.ones((n, n)))
    best = fit(W, c, gap=1e-4).certificate
    assert nuclear_bound(n) / 1.2 <= prefix_bound(c) <= best.achieved
    assert prefix_bound(c) >= 0.97 * best.lower
    u, v = weights(1 / np.sqrt(c))
    # The dual at p = v^2, q = u^2 is a nuclear norm, of which the bound is one inner product.
    assert prefix_bound(c) <= lower_bound(W, c, v**2, u**2) * (1 + 1e-9)
    # A negative control: a bound one percent above is refuted by a design.
    assert prefix_bound(c) * 1.04 > best.achieved


def test_a_million_sums_are_bounded():
    """At 2^17, by weights found at 1,024: better than equal weights, and below what is achieved."""
    n = 1 << 17
    bound = prefix_bound(np.ones(n))
    root = (np.log(16 * n) + np.euler_gamma) / np.pi  # the square root's, at large n
    assert 1.01 * nuclear_bound(n) < bound < root**2
    assert_allclose(stretched(np.arange(5.0), 5), np.arange(5.0))
