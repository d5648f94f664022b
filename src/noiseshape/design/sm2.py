"""SM-II, the algorithm of the fitness-for-use paper: Newton's method on two soft-maxes.

Problem 4 of the paper replaces both maxima of Problem 3 by soft-maxes,

    F(S) = softmax_t1(b_i^T S^-1 b_i) + softmax_t2(l_j S l_j^T / c_j),
    softmax_t(z) = log(sum_i exp(t z_i)) / t,

and Algorithm 1 minimises it for growing t: Newton directions by a few steps of conjugate gradients
(Algorithm 2), a backtracking line search (Algorithm 3). What is printed there and does not hold is
mended here; docs/math/sm2.md sets the two side by side. `fit` solves the same problem faster and
with a proof; this is kept as the paper's own algorithm and as the peer to measure against.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike

from .._checks import Floats, floats, positive
from .._threads import where_small
from ..errors import InvalidInput, NotSpanned
from .certificate import EPS, Certificate, lower_bound
from .coordinates import RANK_TOLERANCE, row_space
from .design import Design
from .fit import workload
from .solve import Progress, Watch

# A query may miss the span of the basis by this share of its length: rounding does that much.
SPAN = 1e-9


@dataclass(frozen=True)
class Options:
    """Parameters of Algorithms 1 to 3, by the paper's names in brackets.

    Where the paper gives no number, the default is that of its authors' program.

    Attributes
    ----------
    growth
        Factor on ``t1`` and ``t2`` once a sub-problem is solved (MU, in {2, 5, 10}).
    decrement
        A sub-problem is solved when ``t |<s, grad F>|`` is below this (NTTOL). The paper prints it
        without ``t``, which ends sub-problems so early that its own Table 2 is missed by 4 to 9 %
        at d = 64; the authors' program has the ``t``.
    tolerance
        All is solved when the two soft-maxes exceed the maxima by less than this, of an
        objective that is at least 2 (TOL).
    conjugate_steps, conjugate_tolerance
        Steps of conjugate gradients (MAXCG), and the squared residual that ends them (TOL2).
    sufficient, shrink
        Share of the promised decrease that a step must bring (sigma); factor on steps (beta).
    max_iterations
        Newton directions in all (MAXITER).
    rebase
        Not in the paper. Before each direction, move to the basis in which the present ``S`` is the
        identity, as Theorem 4 allows: conjugate gradients then do not depend on the basis.
        Measured over 64 cells (benchmarks/sm2.py), with 20 conjugate steps: a gap 120 to 350 times
        smaller than as published, 4 to 22 times sooner.
    """

    growth: float = 2.0
    decrement: float = 1e-3
    tolerance: float = 1e-3
    conjugate_steps: int = 5
    conjugate_tolerance: float = 1e-10
    sufficient: float = 0.01
    shrink: float = 0.5
    max_iterations: int = 100_000
    rebase: bool = True

    def __post_init__(self) -> None:
        for name in ("decrement", "tolerance", "conjugate_tolerance"):
            positive(name, getattr(self, name))
        if not 1 < self.growth < np.inf:
            raise InvalidInput(f"growth must be above 1, or t never grows; got {self.growth}.")
        for name in ("sufficient", "shrink"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be between 0 and 1, got {getattr(self, name)}.")
        for name in ("conjugate_steps", "max_iterations"):
            if not getattr(self, name) >= 1:
                raise InvalidInput(f"{name} must be at least 1, got {getattr(self, name)}.")


# Algorithms 1 to 3 in one basis from start to end, to the letter save for what is mended.
PUBLISHED = Options(rebase=False)


@dataclass(frozen=True)
class Problem:
    """Problem 4 with the targets folded in: ``B (k, d)`` and ``L (m, k)``, row j over root c_j."""

    B: Floats
    L: Floats

    def at(self, S: Floats) -> Point | None:
        """Return the point ``S (k, k)``, or None if it is not positive definite."""
        return self._at(S, _quadratic(self.L, S))

    def along(self, point: Point, s: Floats) -> Callable[[float], Point | None]:
        """Return the line ``a -> S + a s``: variances are linear on it and computed once."""
        slope = _quadratic(self.L, s)
        return lambda a: self._at(point.S + a * s, point.h + a * slope)

    def _at(self, S: Floats, h: Floats) -> Point | None:
        C, failed = sl.lapack.dpotrf(S, lower=1, clean=1)
        if failed:
            return None
        Y = sl.solve_triangular(C, self.B, lower=True, check_finite=False)
        return Point(S, C, Y, np.einsum("ij,ij->j", Y, Y), h)

    def rebased(self, point: Point) -> tuple[Problem, Point]:
        """Return the problem and the point in the basis in which ``S`` is the identity."""
        L = self.L if point.C is None else self.L @ point.C
        return Problem(point.Y, L), replace(point, S=np.eye(len(point.S)), C=None)


@dataclass(frozen=True)
class Point:
    """A covariance ``S = C C^T``, with ``Y = C^-1 B``, the profile ``g`` and the variances ``h``.

    Shapes: S, C (k, k); Y (k, d); g (d,); h (m,). C is None if S is the identity.
    """

    S: Floats
    C: Floats | None
    Y: Floats
    g: Floats
    h: Floats

    def objective(self, t1: float, t2: float) -> float:
        """Return F (eq. 8)."""
        return softmax(self.g, t1)[0] + softmax(self.h, t2)[0]


class Model:
    """Gradient and Hessian of F at a point (eqs 9 to 14): all that a Newton direction needs.

    The Hessian is never formed. With ``X = S^-1``, ``v_i = b_i^T X P X b_i``,
    ``u_j = l_j P l_j^T / c_j`` and soft-max weights p and q,

        H P = X P G + G P X,  G = sum_i p_i X b_i b_i^T X      (t1 does not multiply this)
            + t1 sum_i p_i (v_i - mean v) X b_i b_i^T X
            + t2 sum_j q_j (u_j - mean u) l_j^T l_j / c_j,

    three products of a (k, k) by a (k, d) matrix and two of a (m, k) by a (k, k).
    """

    def __init__(self, problem: Problem, point: Point, t1: float, t2: float) -> None:
        p, q = softmax(point.g, t1)[1], softmax(point.h, t2)[1]
        # Weights below rounding leave every sum: late on, a tenth of the cells and queries stay.
        i, j = p > EPS * p.max(), q > EPS * q.max()
        self.t1, self.t2, self.p, self.q = t1, t2, p[i], q[j]
        self.L = problem.L[j]
        self.X, self.XB = _inverse_times(point.C, point.Y[:, i])
        left, right = self.XB * np.sqrt(self.p), self.L * np.sqrt(self.q)[:, None]
        self.gradient: Floats = right.T @ right - left @ left.T

    def times(self, P: Floats) -> Floats:
        """Return the Hessian times the symmetric direction ``P (k, k)``."""
        PXB = P @ self.XB
        v = np.einsum("ij,ij->j", self.XB, PXB)
        u = _quadratic(self.L, P)
        wv, wu = self.p * (v - self.p @ v), self.q * (u - self.q @ u)
        XPXBp = PXB * self.p if self.X is None else self.X @ (PXB * self.p)
        half = (XPXBp + self.XB * (self.t1 / 2 * wv)) @ self.XB.T
        total: Floats = half + half.T + (self.L.T * (self.t2 * wu)) @ self.L
        return total


def softmax(z: Floats, t: float) -> tuple[float, Floats]:
    """Return ``log(sum exp(t z)) / t``, which is at most ``log(n) / t`` above max z, and its slope.

    Shifted by the maximum, so that nothing overflows.
    """
    top = float(z.max())
    weights = np.exp(t * (z - top))
    total = float(weights.sum())
    return top + float(np.log(total)) / t, weights / total


def conjugate_gradients(model: Model, options: Options) -> Floats:
    """Return an approximate Newton direction, ``-H^-1 grad F`` (Algorithm 2)."""
    s = np.zeros_like(model.gradient)
    r = -model.gradient
    P, old = r, float(np.vdot(r, r))
    for _ in range(options.conjugate_steps):
        HP = model.times(P)
        curvature = float(np.vdot(P, HP))
        if not curvature > 0:  # F is convex: only rounding gets here
            break
        a = old / curvature
        s, r = s + a * P, r - a * HP
        new = float(np.vdot(r, r))
        if new <= options.conjugate_tolerance:
            break
        P, old = r + new / old * P, new
    return s


def line_search(
    line: Callable[[float], Point | None], start: float, slope: float, t: float, options: Options
) -> Point | None:
    """Return the first point on the line that is positive definite and low enough (Algorithm 3).

    None once steps are so short that rounding hides any decrease.
    """
    a = 1.0
    while a > EPS:
        point = line(a)  # None if not positive definite: tested before F is evaluated
        if point is not None and point.objective(t, t) <= start + a * options.sufficient * slope:
            return point
        a *= options.shrink
    return None


Report = Callable[[int, float, Point], None]


def minimise(
    problem: Problem,
    S: Floats,
    options: Options,
    report: Report | None = None,
    direction: Callable[[Model, Options], Floats] = conjugate_gradients,
) -> tuple[Point, float, int, str]:
    """Minimise F for growing t, from ``S (k, k)`` (Algorithm 1).

    Returns the last point, its t, the number of directions taken and why it stopped.
    """
    point = problem.at(S)
    if point is None:
        raise InvalidInput("The initial covariance must be positive definite.")
    t, iterations = 1.0, 0
    logs = np.log(problem.B.shape[1]) + np.log(len(problem.L))
    while iterations < options.max_iterations:
        if options.rebase:
            problem, point = problem.rebased(point)
        model = Model(problem, point, t, t)
        s = direction(model, options)
        slope = float(np.vdot(s, model.gradient))
        iterations += 1
        if report is not None:
            report(iterations, t, point)
        better = None
        if t * abs(slope) >= options.decrement:
            better = line_search(problem.along(point, s), point.objective(t, t), slope, t, options)
        if better is not None:
            point = better
            continue
        if logs / t < options.tolerance:
            return point, t, iterations, f"soft-max within {options.tolerance:g} of the maxima"
        t *= options.growth
    return point, t, iterations, f"stopped after {iterations} iterations, as told"


@where_small
def sm2(
    W: ArrayLike,
    variance: ArrayLike,
    *,
    basis: ArrayLike | None = None,
    initial: ArrayLike | None = None,
    options: Options = Options(),
    progress: Watch | None = None,
) -> Design:
    """Design noise by SM-II, the algorithm of the fitness-for-use paper.

    Parameters
    ----------
    W : (m, d)
        Workload, one query a row.
    variance : (m,) or a number
        Target variance of each query.
    basis : (k, d)
        Basis B of the row space of ``W``. By default the identity if W has rank d, else an
        orthonormal basis. The optimum does not depend on it (Theorem 4), but the path does, unless
        ``options.rebase``.
    initial : (r, d)
        Queries Q that independent noise would be a fair first guess for (section 6.3); by default
        the identity.
    options
        Parameters of the paper's algorithms.
    progress
        Called with a :class:`~noiseshape.design.solve.Progress` before each Newton step; its lower
        bound is renewed whenever ``t`` grows.

    Returns
    -------
    Design
        Named "sm2", scaled so that the worst query just meets its target. Its certificate bounds
        the gap truly reached, by the dual bound at the final soft-max weights, and says why the
        iteration stopped. The tolerance is the paper's, on its own objective: it does not promise
        that gap.
    """
    return solve("sm2", conjugate_gradients, W, variance, basis, initial, options, progress)


def solve(
    name: str,
    direction: Callable[[Model, Options], Floats],
    W: ArrayLike,
    variance: ArrayLike,
    basis: ArrayLike | None,
    initial: ArrayLike | None,
    options: Options,
    progress: Watch | None,
) -> Design:
    """Run :func:`sm2` with another way to find a direction, under another name."""
    W, c = workload(W, variance)
    start = time.perf_counter()
    B = _basis(W, basis)
    L = _represent(W, B, "basis")
    S = initial_covariance(W, c, B, initial)
    # F is not scale-invariant and its tolerances are absolute. Divided by the dual bound at equal
    # weights, alpha is at least 1, and F, the sum of two maxima, at least 2.
    m, d = W.shape
    unit = lower_bound(W, c, np.full(d, 1 / d), np.full(m, 1 / m))
    problem = Problem(B, L / np.sqrt(c * unit)[:, None])
    report = None if progress is None else _reporter(W, c, unit, start, progress)
    point, t, iterations, reason = minimise(problem, S * unit, options, report, direction)
    p, q = softmax(point.g, t)[1], softmax(point.h, t)[1]
    design = Design(name, W, c, point.Y, p, q).meeting_targets()
    certificate = Certificate(
        lower=lower_bound(W, c, p, q),
        achieved=design.alpha,
        iterations=iterations,
        seconds=time.perf_counter() - start,
        reason=reason,
        rank=len(B),
        tolerance=RANK_TOLERANCE,
    )
    return design.certified(certificate)


def _reporter(W: Floats, c: Floats, unit: float, start: float, progress: Watch) -> Report:
    """Return a callback that tells ``progress`` where the iteration stands, in the user's units."""
    lower, sharpness = unit, 1.0

    def report(iteration: int, t: float, point: Point) -> None:
        nonlocal lower, sharpness
        if t > sharpness:
            p, q = softmax(point.g, sharpness)[1], softmax(point.h, sharpness)[1]
            lower, sharpness = max(lower, lower_bound(W, c, p, q)), t
        achieved = float(point.g.max() * point.h.max()) * unit
        progress(
            Progress(iteration, lower, achieved, achieved / lower - 1, time.perf_counter() - start)
        )

    return report


def _basis(W: Floats, basis: ArrayLike | None) -> Floats:
    """Return a basis (k, d) of the row space of ``W``; refuse one that is not."""
    d = W.shape[1]
    Q = row_space(W)
    k = d if Q is None else Q.shape[1]
    if basis is None:
        return np.eye(d) if Q is None else np.ascontiguousarray(Q.T)
    B = floats("basis", basis, ndim=2)
    if B.shape != (k, d):
        raise InvalidInput(
            f"basis must have shape ({k}, {d}), as many rows as the workload's rank; got {B.shape}."
        )
    spread = np.linalg.svd(B, compute_uv=False)
    if not spread[-1] > RANK_TOLERANCE * spread[0]:
        raise InvalidInput("basis must have linearly independent rows.")
    return B


def _represent(W: Floats, B: Floats, name: str) -> Floats:
    """Return ``L (m, k)`` with ``L B = W``, or refuse a ``B`` that does not span the workload."""
    L = np.linalg.lstsq(B.T, W.T, rcond=RANK_TOLERANCE)[0].T.astype(np.float64)
    missed = np.linalg.norm(W - L @ B, axis=1) > SPAN * np.linalg.norm(W, axis=1)
    if np.any(missed):
        raise NotSpanned(
            f"{name} does not span {np.count_nonzero(missed)} of {len(W)} queries "
            f"(the first is query {np.flatnonzero(missed)[0]}): add rows to it."
        )
    return L


def initial_covariance(W: Floats, c: Floats, B: Floats, initial: ArrayLike | None) -> Floats:
    """Return ``S = sigma^2 B Q^+ Q^+T B^T (k, k)`` , which meets targets with 1 % spare.

    ``Q (r, d)`` is ``initial``, or the identity.
    """
    d = W.shape[1]
    Q = np.eye(d) if initial is None else floats("initial", initial, ndim=2)
    if Q.shape[1] != d:
        raise InvalidInput(f"initial must have {d} columns, as the workload; got {Q.shape}.")
    WQ, BQ = _represent(W, Q, "initial"), _represent(B, Q, "initial")  # W Q^+, B Q^+
    sigma2 = 0.99 * float(np.min(c / np.einsum("ij,ij->i", WQ, WQ)))
    S: Floats = sigma2 * (BQ @ BQ.T)
    return S


def _quadratic(L: Floats, S: Floats) -> Floats:
    """Return ``l_j S l_j^T`` for every row of ``L``."""
    values: Floats = np.einsum("ij,ij->i", L @ S, L)
    return values


def _inverse_times(C: Floats | None, Y: Floats) -> tuple[Floats | None, Floats]:
    """Return ``X = (C C^T)^-1`` and ``C^-T Y``; None and ``Y`` for no C, which is the identity."""
    if C is None:
        return None, Y
    lower = np.tril(sl.lapack.dpotri(C, lower=1)[0])
    X = lower + np.tril(lower, -1).T
    return X, sl.solve_triangular(C, Y, lower=True, trans="T", check_finite=False)
