"""Small random workloads for tests: every shape, rank and kind that a design must take."""

import numpy as np

KINDS = ("real", "signs", "predicates", "low rank", "repeated")


def random_workload(seed, *, most=8, spread=1.0):
    """A workload without zero rows and its targets, both from a seed."""
    rng = np.random.default_rng(seed)
    d, m = rng.integers(1, most + 1), rng.integers(1, 2 * most + 1)
    kind = KINDS[rng.integers(len(KINDS))]
    if kind == "real":
        W = rng.standard_normal((m, d))
    elif kind == "signs":
        W = rng.integers(-1, 2, (m, d)).astype(float)
    elif kind == "predicates":
        W = rng.integers(0, 2, (m, d)).astype(float)
    elif kind == "low rank":
        r = rng.integers(1, min(m, d) + 1)
        W = (rng.integers(-2, 3, (m, r)) @ rng.integers(-1, 2, (r, d))).astype(float)
    else:
        W = np.eye(d)[rng.integers(0, d, m)] * rng.integers(1, 3, (m, 1))
    W = W[W.any(axis=1)]
    if not len(W):
        W = np.ones((1, d))
    return W, 10 ** rng.uniform(-spread, spread, len(W))
