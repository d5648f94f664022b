"""Cells that are non-negative, whole and additive, and keep known constants.

The released answers are unbiased, and so they may be negative, fractional or at odds with a
total that everybody knows. Here the nearest cells x that are not are found from the measured
integers, weighted by their noise:

    minimise ||A x - y / sigma||^2    subject to    x >= 0,   F x = f,   x whole

and every answer is W x for that one x, so sums add up. It reads y, the public strategy and
constants typed by the caller, never data: post-processing, which costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import clarabel
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import lstsq, null_space, qr
from scipy.optimize import Bounds, LinearConstraint, milp

from .._checks import Floats, floats, real
from ..errors import InvalidInput, NotConverged, TooLarge
from ..strategies import Strategy
from ..strategies.exact import Integers, integers

CONSISTENT = (
    "made consistent: post-processing; where changed, the standard errors and intervals are "
    "those of the unbiased answers and no longer centre on the value"
)

# Every answer must be within this many of its standard errors of the exact minimiser's, and
# of the whole move if that is greater: a thousandth of what anybody could see.
TOLERANCE = 1e-4

# Dense d x d systems: 8 s and 16 s with constants and whole cells at d = 2,000 on one core, and
# fifteen times that here.
MOST_CELLS = 5_000

# What tells equally good cells apart where A has not full rank, beside measurements of 1.
_RIDGE = 1e-9
_RANK = 1e-10  # of the greatest singular value: below, a direction counts as not measured
_SOLVER = 1e-10  # relative tolerance asked of Clarabel; the proof of TOLERANCE is separate
_ROUNDS = 3  # of the solver, each in units a thousandth of the last; one is the rule
_STEPS = 200  # of the active set that finishes a round; two or three are the rule
_SECONDS = 60.0  # for the search of whole numbers; exceeded, nothing is returned

Flags = NDArray[np.bool_]
Fixed = Sequence[tuple[ArrayLike, float]]


@dataclass(frozen=True, eq=False)
class Consistent:
    """Answers that belong to one table of possible cells.

    Attributes
    ----------
    cells : shape (d,)
        x: integers if whole cells were asked for. Where the measurement does not determine
        them, some near the least-squares estimate of least norm: no question that was not
        measured should be answered from them.
    answers : shape (m,)
        W x: additive, because all come from one x.
    unbiased : shape (m,)
        The answers as they were released.
    stderr : shape (m,)
        Standard errors of the unbiased answers, of the noise only.
    changed : shape (m,)
        Where an answer moved: its interval is no longer one about the value.
    moved
        ||A (x - x0)||, how far the cells moved in standard errors. A great number says that
        the constants and the measurement contradict each other.
    within
        Bound on the distance of every answer from the exact solution's (before whole numbers
        are chosen), in its standard errors.
    label
        What to print beside the answers.
    """

    cells: Floats | Integers
    answers: Floats
    unbiased: Floats
    stderr: Floats
    changed: Flags
    moved: float
    within: float
    label: str = CONSISTENT

    def __repr__(self) -> str:
        """Say how many answers there are and how many moved: thousands of numbers tell nothing."""
        return (
            f"Consistent({self.answers.size:,} answers, {int(self.changed.sum()):,} changed, "
            f"moved {self.moved:.3g} standard errors)"
        )


def consistent(
    strategy: Strategy,
    y: ArrayLike,
    *,
    nonnegative: bool = True,
    integer: bool = False,
    fixed: Fixed | None = None,
    workload: ArrayLike | None = None,
) -> Consistent:
    """Return the nearest answers that one table of possible cells can give.

    Parameters
    ----------
    strategy
        What was measured, over d cells.
    y : integers, shape (k,)
        The released measurement.
    nonnegative
        Cells are at least 0.
    integer
        Cells are whole: those at the least distance from the weighted least-squares solution,
        the sum over cells of ||a_i|| |n_i - x_i|, that keep the constants exactly.
    fixed
        Pairs of a row over the cells, shape (d,), and the value that its sum is known to have.
        Public knowledge typed by the caller; a constant computed from the data is a release
        that nobody paid for.
    workload : shape (m, d)
        Questions to answer; by default the strategy's.

    Formal Guarantees:
      A function of y and public arguments: it satisfies whatever y satisfies. If the true cells
      meet the constraints, then ``||A (x - true)|| <= ||A (x0 - true)||`` for the unbiased
      estimate x0: the weighted error never grows, before whole numbers are chosen. Single
      answers become biased, most of all where true counts are near 0. ``within`` is proved
      from the gradient: see docs/math/intervals.md.
    """
    d = strategy.shape[1]
    if d > MOST_CELLS:
        raise TooLarge(
            f"consistency works on all cells at once, at most {MOST_CELLS:,}, got {d:,}: "
            "use the unbiased answers, or measure a coarser table."
        )
    F, f = _constants(fixed, d, integer)
    _check_possible(F, f, nonnegative, integer)
    dense = strategy.densify()
    asked = dense if workload is None else dense.asking(workload)
    unbiased, stderr = asked.rebuild(y), np.sqrt(asked.variance)
    A = dense.rows.astype(np.float64) / dense.sigma[:, None]
    b = integers("y", y).astype(np.float64) / dense.sigma
    x, within = _constrained(A, b, F, f, nonnegative)
    cells = _whole(x, np.linalg.norm(A, axis=0), F, f, nonnegative) if integer else x
    W = asked.workload
    answers = W @ cells
    # Beyond what rounding does to a sum of cells.
    visible = 1e-6 * stderr + 1e-12 * (np.abs(W) @ np.abs(cells))
    changed = np.abs(answers - unbiased) > visible
    moved = float(np.linalg.norm(A @ (cells - _estimate(A, b)[0])))
    return Consistent(cells, answers, unbiased, stderr, changed, moved, within)


def _constants(fixed: Fixed | None, d: int, integer: bool) -> tuple[Floats, Floats]:
    """Return F (n, d) and f (n,), or say which constant is none."""
    rows, values = [np.empty((0, d))], []
    for i, pair in enumerate(fixed or ()):
        try:
            row, value = pair
        except (TypeError, ValueError):
            raise InvalidInput(
                f"fixed[{i}] must be a pair of a row over the cells and the value of its sum."
            ) from None
        row, value = floats(f"the row of fixed[{i}]", row), real(f"the value of fixed[{i}]", value)
        if row.shape != (d,):
            raise InvalidInput(
                f"the row of fixed[{i}] must have one entry for each of {d} cells, "
                f"got shape {row.shape}."
            )
        if not row.any():
            raise InvalidInput(f"the row of fixed[{i}] is all zeros: it fixes nothing; drop it.")
        if integer and not (np.all(row == np.rint(row)) and value == round(value)):
            raise InvalidInput(
                f"fixed[{i}] must be whole, row and value, for whole cells to keep it exactly; "
                "multiply both by their common denominator, or drop integer=True."
            )
        if integer:
            _int64(np.append(row, value))
        rows.append(row[None, :])
        values.append(value)
    return np.vstack(rows), np.array(values)


def _check_possible(F: Floats, f: Floats, nonnegative: bool, integer: bool) -> None:
    """Refuse constants that no cells satisfy, naming ones that contradict each other."""
    if _possible(F, f, nonnegative, integer):
        return
    kept = list(range(len(f)))
    for i in range(len(f)):  # what can go without curing it is not to blame
        rest = [j for j in kept if j != i]
        if not _possible(F[rest], f[rest], nonnegative, integer):
            kept = rest
    cells = " ".join(["non-negative"] * nonnegative + ["whole"] * integer + ["cells"])
    named = ", ".join(f"fixed[{i}] = {f[i]:.15g}" for i in kept)
    raise InvalidInput(f"no {cells} satisfy {named}: correct or drop one of them.")


def _possible(F: Floats, f: Floats, nonnegative: bool, integer: bool) -> bool:
    """Return whether cells with F x = f exist."""
    if not len(f):
        return True
    d = F.shape[1]
    size = np.ones(len(f)) if integer else np.abs(F).max(axis=1)
    low = 0.0 if nonnegative else -np.inf
    found = milp(
        np.zeros(d),
        constraints=LinearConstraint(sparse.csr_array(F / size[:, None]), f / size, f / size),
        bounds=Bounds(low, np.inf),
        integrality=np.full(d, int(integer)),
        options={"time_limit": _SECONDS},
    )
    if found.status not in (0, 2):
        raise NotConverged(
            f"whether cells exist that keep the {len(f)} constants was not settled in "
            f"{_SECONDS:.0f} seconds; fix fewer."
        )
    return bool(found.status == 0)


def _estimate(A: Floats, b: Floats) -> tuple[Floats, int]:
    """Return the least-squares cells of least norm, and the rank of A."""
    x, _, rank, _ = lstsq(A, b, cond=_RANK, lapack_driver="gelsy")
    # Once more on what is left: counts of 1e9 with noise of 20 lose nothing visible.
    return x + _least(A, b - A @ x), int(rank)


def _constrained(
    A: Floats, b: Floats, F: Floats, f: Floats, nonnegative: bool
) -> tuple[Floats, float]:
    """Return x minimising ||A x - b|| under the constraints, and a bound on its distance."""
    x = np.zeros(A.shape[1])
    kept = ~_must_vanish(F, f) if nonnegative and len(f) else x == 0
    if not kept.any():
        return x, 0.0
    centre, rank = _estimate(A[:, kept], b)
    problem = _Problem(A[:, kept], centre, *_independent(F[:, kept], f), nonnegative, rank)
    x[kept], within = _nearest(problem)
    return x, within


def _nearest(problem: _Problem) -> tuple[Floats, float]:
    """Return the x nearest to the estimate in ||A .|| under the constraints, and a bound.

    Counts may be a million times the noise, and cells that were not measured may have to move
    as far. So the solver is asked for a move u = x' - x in the units of that move, the zeros it
    finds start an active set, and where that does not end at the optimum, once more from there.
    """
    if problem.holds(problem.centre):
        return problem.centre, 0.0
    x, step, status = problem.centre, problem.first_step(), "not needed"
    active, multipliers = np.zeros(len(x), dtype=bool), np.zeros(len(problem.f))
    within, most = np.inf, 0.0
    for _ in range(_ROUNDS):
        if problem.nonnegative:
            x, multipliers, active, status = _solve(problem, x, step)
        x, within = _finish(problem, problem.feasible(x, active), active, multipliers)
        most = problem.tolerance(x)
        if within <= most and problem.holds(x):
            return x, within
        step *= 1e-3
    raise NotConverged(
        f"consistent cells were found to {within:.3g} standard errors, and {most:.3g} is asked "
        f"(solver: {status}): the constants, or the strategy, are too ill-conditioned; fix fewer."
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """Minimise ||A (x - centre)|| with F x = f and, if ``nonnegative``, x >= 0."""

    A: Floats
    centre: Floats
    F: Floats
    f: Floats
    nonnegative: bool
    rank: int

    def residual(self, x: Floats) -> Floats:
        """Return A (x - centre), in standard errors."""
        return self.A @ (x - self.centre)

    def tolerance(self, x: Floats) -> float:
        """Return the greatest bound to accept at x."""
        return TOLERANCE * max(1.0, float(np.linalg.norm(self.residual(x))))

    def first_step(self) -> float:
        """Return how far cells must move, roughly."""
        fixed = _least(self.F, self.f - self.F @ self.centre)
        below = -float(self.centre.min(initial=0.0)) if self.nonnegative else 0.0
        return max(float(np.abs(fixed).max(initial=0.0)), below) or 1.0

    def holds(self, x: Floats) -> bool:
        """Return whether x meets the constraints: exactly, and to the rounding of sums."""
        missed = np.abs(self.F @ x - self.f)
        sums = np.abs(self.F) @ np.abs(x) + np.abs(self.f)
        scale = max(np.abs(x).max(), np.abs(self.centre).max())
        close = missed <= 1e-12 * sums + 1e-15 * scale
        return bool(np.all(close)) and not (self.nonnegative and np.any(x < 0))

    def feasible(self, x: Floats, active: Flags) -> Floats:
        """Return x with exact zeros and the constants kept to rounding."""
        x = np.where(active, 0.0, x)
        for _ in range(3):
            x[~active] += _least(self.F[:, ~active], self.f - self.F @ x)
            x = np.maximum(x, 0.0) if self.nonnegative else x
        return x


def _solve(problem: _Problem, x: Floats, step: float) -> tuple[Floats, Floats, Flags, str]:
    """Return x moved to the constrained minimum, the multipliers of F, the zeros, the status.

    In u = (x' - x) / step: minimise ||A (x + step u - centre)||^2 with F u = (f - F x) / step and
    u >= -x / step; where A has not full rank also a little of ||u||^2.
    """
    A, F = problem.A, problem.F
    n, d = F.shape
    P = A.T @ A
    unit = float(P.diagonal().max()) or 1.0
    P /= unit
    P[np.diag_indices(d)] += _RIDGE if problem.rank < d else 0.0
    # A cell far above 0 has its bound scaled down to the size of the others.
    size = np.maximum(1.0, np.abs(x) / step)
    cones = [clarabel.ZeroConeT(n)] * (n > 0) + [clarabel.NonnegativeConeT(d)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "faer"  # P is dense: 5 times as fast as QDLDL at d = 2,000
    settings.max_threads = 1  # sums in one order: the same answers each time
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _SOLVER
    found = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(P)),
        A.T @ problem.residual(x) / (unit * step),
        sparse.csc_matrix(sparse.vstack([sparse.csc_array(F), sparse.diags_array(-1 / size)])),
        np.concatenate([problem.f - F @ x, x / size]) / step,
        cones,
        settings,
    ).solve()
    u, z, s = np.array(found.x), np.array(found.z), np.array(found.s)
    if not np.all(np.isfinite(u)):
        raise NotConverged(f"consistent cells were not found: the solver says {found.status}.")
    return x + step * u, -z[:n] * unit * step, s[n:] < z[n:], str(found.status)


def _finish(
    problem: _Problem, x: Floats, active: Flags, multipliers: Floats
) -> tuple[Floats, float]:
    """Return the end of a primal active-set method from x, and the bound there.

    Every step is a least-squares problem in A itself: P = A^T A would lose half the digits.
    """
    A, F = problem.A, problem.F
    active, within = active.copy(), np.inf
    for _ in range(_STEPS):
        free = ~active
        move = _free_move(A[:, free], F[:, free], -problem.residual(x))
        stop = _first_to_vanish(x[free], move) if problem.nonnegative else None
        if stop is not None:
            x[free] += stop[1] * move
            hit = np.flatnonzero(free)[stop[0]]
            active[hit] = True
            x = problem.feasible(x, active)
            continue
        x[free] += move
        x = problem.feasible(x, active)  # steps drift by their rounding
        multipliers, slack, within = _bound(problem, x, active, multipliers)
        if within <= problem.tolerance(x) or not np.any(slack[active] < 0):
            break
        active[np.flatnonzero(active)[np.argmin(slack[active])]] = False
    return x, within


def _free_move(A: Floats, F: Floats, target: Floats) -> Floats:
    """Return v minimising ||A v - target|| with F v = 0, of least norm."""
    if not len(F):
        return _least(A, target)
    N = null_space(F)
    AN = A @ N
    # What F leaves may be measured by nothing: rounding of A N is no direction to move in.
    if np.linalg.norm(AN) <= _RANK * np.linalg.norm(A):
        return np.zeros(A.shape[1])
    return np.asarray(N @ _least(AN, target))


def _first_to_vanish(x: Floats, move: Floats) -> tuple[int, float] | None:
    """Return the cell that the move makes 0 first and the share of the move until then, if any."""
    falling = np.flatnonzero(x + move < 0)
    if not falling.size:
        return None
    share = x[falling] / -move[falling]
    first = int(np.argmin(share))
    return int(falling[first]), float(share[first])


def _bound(
    problem: _Problem, x: Floats, active: Flags, multipliers: Floats
) -> tuple[Floats, Floats, float]:
    """Return multipliers of F, those of x >= 0, and a bound on ||A (x - exact x)||.

    The gradient is written as F^T multipliers + slack + A^T y, y as short as can be; with slack
    0 where x is not, and nowhere negative, the bound is ||y||. See docs/math/intervals.md.
    """
    A, F, free = problem.A, problem.F, ~active
    rho = problem.residual(x)
    multipliers = multipliers + _least(F[:, free].T, (A.T @ rho - F.T @ multipliers)[free])
    both = np.hstack([A[:, free].T, F[:, free].T])
    found = _least(both, (A.T @ rho - F.T @ multipliers)[free])
    y, multipliers = found[: len(A)], multipliers + found[len(A) :]
    slack = A.T @ (rho - y) - F.T @ multipliers
    # What the rounding of these sums alone may be counts as 0.
    rounding = 1e-14 * (np.abs(A.T) @ np.abs(rho) + np.abs(F.T) @ np.abs(multipliers))
    slack[np.abs(slack) <= rounding] = 0.0
    rest = float(np.linalg.norm(np.where(active, np.minimum(slack, 0.0), slack)))
    within = float(np.linalg.norm(y)) + np.sqrt(rest * 2 * float(np.linalg.norm(x)))
    return multipliers, slack, within


def _least(A: Floats, b: Floats) -> Floats:
    """Return the least-squares solution of least norm, also of systems with no rows or columns."""
    if 0 in A.shape:
        return np.zeros(A.shape[1])
    return np.asarray(lstsq(A, b, cond=_RANK, lapack_driver="gelsy")[0])


def _independent(F: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Return rows of length one, without those that follow from the others."""
    if not F.size:
        return F[:0], f[:0]
    size = np.linalg.norm(F, axis=1)
    F, f = F[size > 0] / size[size > 0, None], f[size > 0] / size[size > 0]
    _, R, order = qr(F.T, mode="economic", pivoting=True)
    kept = np.sort(order[: int(np.count_nonzero(np.abs(np.diag(R)) > _RANK))])
    return F[kept], f[kept]


def _must_vanish(F: Floats, f: Floats) -> Flags:
    """Return which cells are 0 in every x >= 0 with F x = f: subtotals of 0, equal totals.

    Without them the constraints leave room on all sides, as an interior point method needs. One
    linear program: maximise sum t with t <= x, t <= 1, F x = scale f, scale >= 1.
    """
    n, d = F.shape
    size = np.abs(F).max(axis=1, initial=1.0)
    F, f = F / size[:, None], f / size
    rows = sparse.hstack(
        [sparse.csr_array(F), sparse.csr_array((n, d)), sparse.csr_array(-f[:, None])]
    )
    order = sparse.hstack([-sparse.eye_array(d), sparse.eye_array(d), sparse.csr_array((d, 1))])
    found = milp(
        np.concatenate([np.zeros(d), -np.ones(d), [0.0]]),
        constraints=[LinearConstraint(rows, 0, 0), LinearConstraint(order, -np.inf, 0)],
        bounds=Bounds(
            np.concatenate([np.zeros(2 * d), [1.0]]),
            np.concatenate([np.full(d, np.inf), np.ones(d), [np.inf]]),
        ),
    )
    if found.status != 0:
        return np.zeros(d, dtype=bool)
    return np.asarray(found.x[d : 2 * d] < 0.5)


def _whole(x: Floats, weight: Floats, F: Floats, f: Floats, nonnegative: bool) -> Integers:
    """Return whole n with F n = f that minimise sum_i weight_i |n_i - x_i|.

    n = floor(x) + b + up - down, b 0 or 1: costs that are linear on each, so that where F is
    totally unimodular (totals, hierarchies) the relaxation is whole already.
    """
    if not len(f):
        return _int64(np.rint(x))
    d = len(x)
    floor = np.floor(x)
    share = np.maximum(
        weight / (weight.max() or 1.0), 1e-4
    )  # a cell that nobody measured still costs
    ceiling = np.concatenate(
        [np.ones(d), np.full(d, np.inf), floor if nonnegative else np.full(d, np.inf)]
    )
    found = milp(
        np.concatenate([share * (1 - 2 * (x - floor)), share, share]),
        constraints=LinearConstraint(
            sparse.csr_array(np.hstack([F, F, -F])), f - F @ floor, f - F @ floor
        ),
        bounds=Bounds(0.0, ceiling),
        integrality=np.ones(3 * d),
        options={"time_limit": _SECONDS, "mip_rel_gap": 0.0},
    )
    if found.status != 0:
        raise NotConverged(
            f"the nearest whole cells were not found in {_SECONDS:.0f} seconds; fix fewer "
            "constants, or drop integer=True."
        )
    b, up, down = np.rint(found.x).reshape(3, d)
    n = _int64(floor + b + up - down)
    if np.any(_int64(F).astype(object) @ n.astype(object) != _int64(f).astype(object)):
        raise NotConverged(
            "the nearest whole cells miss a constant; fix fewer, or drop integer=True."
        )
    return n


def _int64(values: Floats) -> Integers:
    if not np.all(np.abs(values) < 2.0**53):
        raise InvalidInput("whole cells and constants must be below 2^53: drop integer=True.")
    return values.astype(np.int64)
