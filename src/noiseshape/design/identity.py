"""The plain Gaussian mechanism, two ways: noise on the cells, and noise on the queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .design import Design
from .fit import workload


def identity(W: ArrayLike, variance: ArrayLike) -> Design:
    """Equal noise on every cell, scaled so that the worst query just meets its target.

    The baseline that the fitness-for-use paper's tables call GM: its text says noise on each query,
    its numbers and its authors' program are noise on the cells.

    Parameters
    ----------
    W : (m, d)
        Workload, one query a row.
    variance : (m,) or a number
        Target variance of each query.

    Returns
    -------
    Design
        Named "identity", ``mu**2 = max_j sum_i W_ji^2 / c_j``.
    """
    W, c = workload(W, variance)
    return Design("identity", W, c, np.eye(W.shape[1])).meeting_targets()


def per_query(W: ArrayLike, variance: ArrayLike, *, equal: bool = False) -> Design:
    """Independent noise on every query, the answers then made consistent by least squares.

    Parameters
    ----------
    W : (m, d)
        Workload, one query a row.
    variance : (m,) or a number
        Target variance of each query.
    equal
        The same noise on every query, as the fitness-for-use paper's text describes GM, rather
        than noise in proportion to the targets.

    Returns
    -------
    Design
        Named "per_query". Least squares takes no variance up and most down, so this costs at most
        :func:`unrebuilt_alpha`.
    """
    W, c = workload(W, variance)
    return Design("per_query", W, c, _measured(W, c, equal)).meeting_targets()


def unrebuilt_alpha(W: ArrayLike, variance: ArrayLike, *, equal: bool = False) -> float:
    """Return ``mu**2`` of noise on every query with the noisy answers left as they are.

    Parameters
    ----------
    W, variance, equal
        As in :func:`per_query`.
    """
    W, c = workload(W, variance)
    A = _measured(W, c, equal)
    return float(np.einsum("ij,ij->j", A, A).max())


def _measured(W: np.ndarray, c: np.ndarray, equal: bool) -> np.ndarray:
    """Return queries over their noise (m, d): the least noise for all, or each target's own."""
    A: np.ndarray = W / np.sqrt(c.min() if equal else c[:, None])
    return A
