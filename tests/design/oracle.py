"""The same program by an independent solver: cvxpy with Clarabel, for k up to 16."""

import cvxpy as cp
import numpy as np


def columns(B, neighbours):
    """The differences that one neighbour makes."""
    if neighbours == "add-remove":
        return B
    i, j = np.triu_indices(B.shape[1], 1)
    return B[:, i] - B[:, j]


def least_cost(W, c, neighbours="add-remove"):
    """``alpha* = min max b_i^T S^-1 b_i`` subject to ``l_j S l_j^T <= c_j``, as an SDP.

    ``X >= P^-1`` is one linear matrix inequality in twice the rank; ``P`` is the precision.
    """
    U, s, Vt = np.linalg.svd(W / np.sqrt(c)[:, None], full_matrices=False)
    k = int((s > 1e-10 * s[0]).sum())
    B, L = Vt[:k], U[:, :k] * s[:k]
    moves = columns(B, neighbours)
    X, P = cp.Variable((k, k), symmetric=True), cp.Variable((k, k), symmetric=True)
    t = cp.Variable()
    constraints = [cp.bmat([[X, np.eye(k)], [np.eye(k), P]]) >> 0]
    constraints += [cp.trace(np.outer(b, b) @ P) <= t for b in moves.T]
    constraints += [cp.trace(np.outer(row, row) @ X) <= 1 for row in L]
    problem = cp.Problem(cp.Minimize(t), constraints)
    problem.solve(solver=cp.CLARABEL)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return float(t.value)
