"""The one iteration behind fit, total and refined designs: multiply far away, Newton near."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from .._checks import Floats
from .dual import State, evaluate, multiplied
from .newton import CAREFUL, QUICK, Precision, Program, direction, most_active
from .sides import Flags, Side

# Newton takes over at this gap, or after that many multiplicative steps, which are half the price
# of Newton's. Measured over a dozen workloads with d from 48 to 400, time is flat to a tenth for
# gaps from 0.05 to 0.2 and for 5 to 10 steps.
NEAR = 0.1
WARM = 8
# Where so many Newton steps leave more than this share of the gap and of the complementarity, as
# they do where thousands of people count alike, many multiplicative steps come first. (Either
# alone misleads: the gap may rise while multipliers of 1e-9 are still on their way.)
PATIENCE = 4
STALLED = 0.7
LONG = 60
# Newton aims at this share of the complementarity it has, and stays this far inside the boundary.
CENTRING = 0.06
INSIDE = 0.98
# The last complementarity aimed at is this share of the gap wanted.
FINISH = 0.1
# The barrier function may fall by this share of its terms, which is rounding, and no more.
ROUNDING = 1e-11

# Caps may be exceeded by this share: they are levels that were themselves found to a gap.
CAP_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Progress:
    """Where a design stands: handed to the ``progress`` callback after each iteration.

    Once more with the same numbers when another ``step`` begins: "checking", or "rounding".
    """

    iteration: int
    lower: float
    achieved: float
    gap: float
    seconds: float
    step: str = "designing"

    @property
    def words(self) -> str:
        """What is being done, in a word or two."""
        return f"gap {self.gap:.1e}" if self.step == "designing" else self.step


Watch = Callable[[Progress], object]


@dataclass(eq=False)
class Steps:
    """Tells a watch, if there is one, which step begins after the iteration."""

    watch: Watch | None
    last: Progress | None = None

    @property
    def each(self) -> Watch | None:
        """What the iteration calls."""
        return None if self.watch is None else self._seen

    def _seen(self, state: Progress) -> None:
        self.last = state
        if self.watch is not None:
            self.watch(state)

    def begin(self, step: str) -> None:
        """Say that another step begins, where the design stands as it did."""
        if self.watch is not None and self.last is not None:
            self.watch(replace(self.last, step=step))


@dataclass(frozen=True, eq=False)
class Problem:
    """People and queries (targets scaled to one), what is free and what is fixed.

    Attributes
    ----------
    people, queries
        The two sides.
    q : (m,) or None
        Fixed weights on queries: the objective is then ``max g * q.h``, a total error.
    caps : (n,) or None
        Upper limits on ``g`` for people whose level is settled; infinite for the others.
    ceiling
        A value known to be achievable: a lower bound above it can only be rounding.
    """

    people: Side
    queries: Side
    q: Floats | None = None
    caps: Floats | None = None
    ceiling: float = np.inf

    @property
    def free(self) -> Flags:
        """Whether each person's ``g`` is part of the maximum that is minimised."""
        if self.caps is None:
            return np.ones(self.people.n, dtype=bool)
        return np.isinf(self.caps)

    def program(self) -> Program:
        """Return the linear parts of the dual, as Newton's step needs them."""
        free = self.free
        a = np.zeros(self.people.n) if self.caps is None else np.where(free, 0.0, self.caps)
        e = free.astype(np.float64)
        if self.q is None:
            a = np.concatenate([a, np.ones(self.queries.n)])
            e = np.concatenate([e, np.zeros(self.queries.n)])
        return Program(a, e)

    def bounds(self, state: State) -> tuple[float, float]:
        """Return the lower bound that ``state`` proves and the value that it achieves."""
        if self.q is not None:
            return state.lower, float(state.g.max() * (self.q @ state.h) / self.q.sum())
        if self.caps is None:
            return state.lower, float(state.g.max() * state.h.max())
        free, h = self.free, float(state.h.max())
        share = float(state.p[free].sum())
        linear = float(state.p[~free] @ self.caps[~free] + state.q.sum())
        excess = float((state.g[~free] / self.caps[~free]).max(initial=0.0)) * h
        achieved = float(state.g[free].max()) * h if excess <= 1 + CAP_TOLERANCE else np.inf
        return (2 * state.F - linear) / share, achieved


@dataclass(eq=False)
class Solution:
    """The best weights and the best covariance seen, and how it ended."""

    lower: float = 0.0
    achieved: float = np.inf
    iterations: int = 0
    reason: str = ""
    p: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    q: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    Ti: Floats = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    g: Floats = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def gap(self) -> float:
        """Relative distance between the bounds (with caps, either may be the larger by a hair)."""
        return abs(self.achieved / self.lower - 1) if self.lower > 0 else np.inf

    def see(self, state: State, lower: float, achieved: float, *, together: bool) -> None:
        """Keep what is better in ``state`` than anything before it; both bounds or none together.

        With caps only bounds of one state compare: prices of 1e6 turn what one state exceeds its
        caps by into a value that none within them achieves.
        """
        self.iterations += 1
        tighter, cheaper = lower > self.lower, achieved < self.achieved
        if together:
            tighter = cheaper = lower > 0 and abs(achieved / lower - 1) < self.gap
        if tighter:
            self.lower, self.p, self.q = lower, state.p, state.q
        if cheaper:
            self.achieved, self.Ti, self.g = achieved, state.Ti, state.g


def solve(
    problem: Problem,
    p: Floats,
    q: Floats,
    *,
    gap: float,
    max_iterations: int,
    progress: Watch | None = None,
    warm: int = WARM,
    near: float = NEAR,
) -> Solution:
    """Iterate from weights ``p, q`` until the two bounds are within ``gap`` of each other.

    Multiplicative steps until the gap is ``near``, at most ``warm``, then Newton steps; where one
    of those fails (its matrix is singular, or the dual would fall) they go on in double precision,
    and where that fails too multiplicative steps follow, which never lower the dual.
    """
    begun = time.perf_counter()
    solution = Solution()
    people, queries, program = problem.people, problem.queries, problem.program()
    state = evaluate(people, queries, p, q)
    precision = QUICK if problem.caps is None else CAREFUL
    slacks: Floats | None = None
    # Beyond, conjugate gradients solve roughly anyway, and a better matrix helps them little.
    careful_pays = people.n + queries.n <= most_active(people.k)
    ready, tried, before = True, 0, (np.inf, np.inf)
    while state is not None:
        lower, achieved = problem.bounds(state)
        solution.see(state, lower, achieved, together=problem.caps is not None)
        if progress is not None:
            progress(
                Progress(
                    solution.iterations,
                    solution.lower,
                    solution.achieved,
                    solution.gap,
                    time.perf_counter() - begun,
                )
            )
        if solution.gap <= gap:
            solution.reason = "gap reached"
            return solution
        if solution.iterations >= max_iterations:
            solution.reason = f"stopped after {max_iterations} iterations"
            return solution
        if lower > problem.ceiling * (1 + gap):
            break
        if warm == 0 or (solution.gap <= near and ready):
            stuck = False
            if problem.caps is None and tried % PATIENCE == 0:
                left = solution.gap, _complementarity(state, slacks)
                stuck = all(now > STALLED * then for now, then in zip(left, before, strict=True))
                before = left
            tried += 1
            # The program's own optimum: that of t, or with q fixed of t + q.h = 2 F.
            value = max(lower, solution.lower, 0.0) if problem.q is None else state.F
            stepped = (
                None if stuck else _newton(problem, program, state, slacks, gap * value, precision)
            )
            if stepped is not None:
                state, slacks = stepped
                continue
            tried, before = 0, (np.inf, np.inf)
            if precision is QUICK and careful_pays:
                precision = CAREFUL
                state = evaluate(people, queries, state.p, state.q)
                continue
            if problem.caps is not None:
                break  # multiplicative steps know no caps
            slacks, warm, ready, precision = None, WARM, False, QUICK
            if stuck:  # from the best weights, and not from where the barrier has led
                warm = LONG
                state = evaluate(people, queries, solution.p, solution.q)
                if state is None:
                    break
        state = _multiply(problem, state)
        warm = max(warm - 1, 0)
    solution.reason = "no further progress in double precision"
    return solution


def _multiply(problem: Problem, state: State) -> State | None:
    p, q = multiplied(state, both=problem.q is None)
    state.shed()
    # With q summing to F^2 the covariance has max h close to 1, as Newton's program wants it.
    q = q * state.lower if problem.q is None else problem.q
    return evaluate(problem.people, problem.queries, p, q)


def _newton(
    problem: Problem,
    program: Program,
    state: State,
    s: Floats | None,
    wanted: float,
    precision: Precision,
) -> tuple[State, Floats] | None:
    """Return the state after one Newton step, and its slacks; None if no step raises the dual."""
    both, split = problem.q is None, problem.people.n
    u = np.concatenate([state.p, state.q]) if both else state.p
    G = np.concatenate([state.g, state.h]) if both else state.g
    a = program.a
    if s is None:
        s = _first_slacks(program, u, G)
    tau = max(CENTRING * float(u @ s), FINISH * wanted) / len(u)
    step = _direction(problem, program, state, u, G, s, tau, precision)
    if step is None:
        return None
    du, ds = step
    length = _inside(u, du)
    merit = 2 * state.F - a @ u + tau * np.log(u).sum()
    for _ in range(3):
        trial = u + length * du
        after = evaluate(
            problem.people, problem.queries, trial[:split], trial[split:] if both else state.q
        )
        if after is not None:
            risen = 2 * after.F - a @ trial + tau * np.log(trial).sum() - merit
            if risen >= -ROUNDING * (2 * state.F + a @ u):
                return after, s + _inside(s, ds) * ds
        length /= 4
    return None


def _complementarity(state: State, slacks: Floats | None) -> float:
    """Return ``u.s``, which Newton's steps drive down; infinite before the first."""
    if slacks is None:
        return np.inf
    split = len(state.p)
    return float(state.p @ slacks[:split] + state.q[: len(slacks) - split] @ slacks[split:])


def _first_slacks(program: Program, u: Floats, G: Floats) -> Floats:
    """Return slacks at multipliers ``u``: what is left of each constraint, or its share of it."""
    nu = float((u * program.e) @ G)
    left = program.a + nu * program.e - G
    tau = float(u @ np.abs(left)) / len(u)
    result: Floats = np.maximum(left, tau / u)
    return result


def _inside(u: Floats, du: Floats) -> float:
    """Return the longest step, at most 1, that keeps ``u`` well above zero."""
    steepest = float((-du / u).max())
    return min(1.0, INSIDE / steepest) if steepest > 0 else 1.0


def _direction(
    problem: Problem,
    program: Program,
    state: State,
    u: Floats,
    G: Floats,
    s: Floats,
    tau: float,
    precision: Precision,
) -> tuple[Floats, Floats] | None:
    """Gather the vectors of all multipliers and solve for Newton's step."""
    split = problem.people.n
    dtype = np.float32 if precision.single else np.float64
    Z = np.empty((len(u), len(state.sigma)), dtype=dtype)
    problem.people.rows(state.Ti, Z[:split])
    if len(u) > split:
        problem.queries.rows(state.T, Z[split:])
    signs = np.where(np.arange(len(u)) < split, 1.0, -1.0)
    state.shed()
    return direction(program, Z, signs, state.sigma, G, u, s, tau, precision)
