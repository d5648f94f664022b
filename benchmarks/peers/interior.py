"""Fitness for use by a general interior-point solver: the oracle for small workloads.

Problem 1 of the paper as a semidefinite program: with T standing for B^T S^-1 B,

    minimise max_i T_ii   subject to   l_j S l_j^T <= c_j,   [[S, B], [B^T, T]] >= 0.

One constraint of k + d rows; the solver's time grows as its sixth power, which is why the paper
stops at d = 64. Needs cvxpy and Clarabel, of the development extra.
"""

from __future__ import annotations

import time
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike

from noiseshape._checks import Floats
from noiseshape.design import Certificate, Design
from noiseshape.design.coordinates import row_space
from noiseshape.design.fit import workload
from noiseshape.errors import NotConverged


def interior(W: ArrayLike, variance: ArrayLike, *, tolerance: float = 1e-9) -> Design:
    """Design noise by semidefinite programming, to the solver's tolerance.

    Parameters
    ----------
    W : (m, d)
        Workload, one query a row.
    variance : (m,) or a number
        Target variance of each query.
    tolerance
        Absolute and relative gap, and feasibility, that Clarabel is to reach.

    Returns
    -------
    Design
        Named "interior", scaled so that the worst query just meets its target. The certificate's
        lower bound is the solver's objective: its claim, not ours.
    """
    W, c = workload(W, variance)
    start = time.perf_counter()
    Q = row_space(W)
    B = np.eye(W.shape[1]) if Q is None else Q.T
    L = np.linalg.lstsq(B.T, W.T, rcond=None)[0].T / np.sqrt(c)[:, None]
    S, problem = _solved(B, L, tolerance)
    A = sl.solve_triangular(np.linalg.cholesky(S), B, lower=True)
    design = Design("interior", W, c, A).meeting_targets()
    certificate = Certificate(
        lower=float(problem.value),
        achieved=design.alpha,
        iterations=problem.solver_stats.num_iters,
        seconds=time.perf_counter() - start,
        reason=f"Clarabel: {problem.status}",
        rank=len(B),
    )
    return design.certified(certificate)


def _solved(B: Floats, L: Floats, tolerance: float) -> tuple[Floats, Any]:
    """Return the covariance S (k, k) that Clarabel finds, and cvxpy's solved problem."""
    k, d = B.shape
    lib: Any = cp  # untyped
    block = lib.Variable((k + d, k + d), PSD=True)
    S, T = block[:k, :k], block[k:, k:]
    problem = lib.Problem(
        lib.Minimize(lib.max(lib.diag(T))),
        [block[:k, k:] == B, lib.sum(lib.multiply(L @ S, L), axis=1) <= 1],
    )
    problem.solve(
        solver=lib.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance
    )
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise NotConverged(f"Clarabel ended with {problem.status!r}: try a larger tolerance.")
    return (S.value + S.value.T) / 2, problem
