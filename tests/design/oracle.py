"""The same programs by an independent solver: cvxpy with Clarabel, for ranks up to 16."""

import warnings

import cvxpy as cp
import numpy as np


def least_cost(W, c, neighbours="add-remove", caps=None):
    """``alpha* = min max_i b_i^T S^-1 b_i`` subject to ``l_j S l_j^T <= c_j``, as an SDP.

    ``X >= P^-1`` is one linear matrix inequality in twice the rank; ``P`` is the precision and
    ``X`` the covariance on an orthonormal basis. With ``caps`` (d,), those that are finite bound
    ``b_i^T P b_i``, and the maximum is over the other cells.
    """
    U, s, Vt = np.linalg.svd(W / np.sqrt(c)[:, None], full_matrices=False)
    k = int((s > 1e-10 * s[0]).sum())
    B, L = Vt[:k], U[:, :k] * s[:k]
    if neighbours == "replace":
        i, j = np.triu_indices(B.shape[1], 1)
        B = B[:, i] - B[:, j]
    if not B.shape[1]:  # one cell: nobody can be replaced by another
        return 0.0
    caps = np.full(B.shape[1], np.inf) if caps is None else caps
    X, P, t = (
        cp.Variable((k, k), symmetric=True),
        cp.Variable((k, k), symmetric=True),
        cp.Variable(),
    )
    constraints = [cp.bmat([[X, np.eye(k)], [np.eye(k), P]]) >> 0]
    constraints += [
        cp.trace(np.outer(b, b) @ P) <= (t if np.isinf(cap) else cap)
        for b, cap in zip(B.T, caps, strict=True)
    ]
    constraints += [cp.trace(np.outer(row, row) @ X) <= 1 for row in L]
    problem = cp.Problem(cp.Minimize(t), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the tests' tolerance allows for it
        problem.solve(solver=cp.CLARABEL)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return float(t.value)
