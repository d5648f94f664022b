"""The two development peers, against closed forms and the certified designs."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.peers.descent import descent
from benchmarks.peers.interior import interior
from benchmarks.workloads import prefixes
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.design import fit
from noiseshape.design.sm2 import Options, sm2
from noiseshape.errors import InvalidInput


@pytest.mark.parametrize(("d", "alpha"), [(2, 1.33333), (4, 1.75860), (8, 2.28156), (16, 2.90525)])
def test_interior_point_on_table_2(d, alpha):
    design = interior(*prefixes(d))
    assert design.alpha == pytest.approx(alpha, abs=1e-5)
    assert design.ratios.max() == pytest.approx(1)
    assert design.certificate.gap == pytest.approx(0, abs=1e-6)


@settings(deadline=None, derandomize=True, max_examples=20)
@given(seed=st.integers(0, 10_000), shape=st.sampled_from([(3, 3, 3), (6, 4, 4), (5, 6, 3)]))
def test_interior_point_agrees_with_both_designs(seed, shape):
    m, d, k = shape
    rng = np.random.default_rng(seed)
    W, c = rng.normal(size=(m, k)) @ rng.normal(size=(k, d)), rng.uniform(0.5, 5, size=m)
    oracle = interior(W, c).alpha
    certified = fit(W, c, gap=1e-5)
    assert certified.certificate.lower * (1 - 1e-6) <= oracle <= certified.alpha * (1 + 1e-6)
    assert sm2(W, c).alpha == pytest.approx(oracle, rel=2e-3)


@pytest.mark.parametrize("d", [2, 3])
def test_descent_arrives_and_takes_longer(d):
    options = Options(rebase=False, tolerance=1e-2)
    slow, newton = (design(*prefixes(d), options=options) for design in (descent, sm2))
    assert slow.name == "descent"
    assert slow.ratios.max() == pytest.approx(1)
    assert slow.alpha == pytest.approx(newton.alpha, rel=1e-2)
    assert slow.certificate.lower <= newton.alpha
    assert slow.certificate.iterations > 3 * newton.certificate.iterations


def test_peers_refuse_what_designs_refuse():
    for peer in (interior, descent):
        with pytest.raises(InvalidInput, match="all zeros"):
            peer(np.zeros((1, 2)), 1)
