"""Total error: the matrix mechanism's objective, by the same iteration and with its own proof."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats, floats
from .._threads import where_small
from ..errors import InvalidInput
from .certificate import Neighbours
from .coordinates import coordinates
from .design import Design
from .fit import MAX_ITERATIONS, OnGap, Options, designed, workload
from .solve import Watch


@where_small
def total(
    W: ArrayLike,
    variance: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    basis: ArrayLike | None = None,
    gap: float = 1e-3,
    neighbours: Neighbours = "add-remove",
    progress: Watch | None = None,
    max_iterations: int = MAX_ITERATIONS,
    on_gap: OnGap = "raise",
) -> Design:
    """Design the noise with the least total variance for its privacy cost, then meet the targets.

    This is the optimal matrix mechanism, CA in the papers (FFU Equation 5 and Theorem 6 solve
    two queries in closed form). Single queries may be answered better than they need, at the
    expense of others: ``fit`` costs less wherever every query has a target.

    Formal guarantees: the certificate bounds ``mu**2 * sum_j weights_j variance_j`` over all
    Gaussian noise; the design is scaled so that the worst query just meets its target.

    Parameters
    ----------
    W : (m, d)
        Workload, one linear query a row, of any rank.
    variance : scalar or (m,)
        Target variance of each query; it sets the scale, not the shape.
    weights : (m,), optional
        Positive weight of each query's variance; all 1 by default.
    basis, gap, neighbours, progress, max_iterations, on_gap
        As in :func:`~noiseshape.design.fit.fit`.
    """
    options = Options(gap, neighbours, max_iterations, on_gap, progress)
    W, c = workload(W, variance)
    w = np.ones(len(c)) if weights is None else floats("weights", weights, ndim=1)
    if w.shape != c.shape or not np.all(w > 0):
        raise InvalidInput(f"weights must be {len(c)} numbers above 0, one for each query.")
    B = None if basis is None else floats("basis", basis, ndim=2)
    return _least("total", W, c, w, B, options)


@where_small
def weighted_total(W: ArrayLike, variance: ArrayLike, *, gap: float = 1e-3) -> Design:
    """Design the noise with the least total of variances over their targets, then meet those.

    The fairest that a total can be to targets: :func:`total` with weights ``1 / variance``, and so
    with the dual weights on queries all equal.

    Parameters
    ----------
    W, variance, gap
        As in :func:`~noiseshape.design.fit.fit`.
    """
    W, c = workload(W, variance)
    return _least("weighted_total", W, c, 1 / c, None, Options(gap))


def _least(
    name: str, W: Floats, c: Floats, weights: Floats, basis: Floats | None, options: Options
) -> Design:
    space = coordinates(W, c, options.neighbours, basis=basis, every_query=True)
    return designed(name, W, c, space, options, weights=weights)
