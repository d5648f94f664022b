"""Fit: the least privacy cost at which every query meets its target, with proof."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats, floats, positive, whole
from .._memory import free_memory
from .._threads import where_small
from ..errors import InvalidInput, NotConverged, TooLarge
from .certificate import COST, Certificate, Level, Neighbours, lower_bound
from .coordinates import MOST_PAIRED, RANK_TOLERANCE, Coordinates, coordinates
from .design import Design
from .newton import most_active
from .refine import refined
from .solve import Problem, Steps, Watch, solve

SMALLEST_GAP = 1e-8
# The first level of a refined design, at most: its cap is that much too high for the others.
FIRST_GAP = 1e-6
MAX_ITERATIONS = 500
# Powers of ten that a query's greatest entry, and its ratio to a target standard deviation, may
# span: beyond, squares and products of single precision overflow.
LARGEST_SIZE, LARGEST_RATIO = 15, 15
TOTAL = "total of weighted variances times mu^2"
OnGap = Literal["raise", "label"]


@where_small
def fit(
    W: ArrayLike,
    variance: ArrayLike,
    *,
    basis: ArrayLike | None = None,
    gap: float = 1e-3,
    neighbours: Neighbours = "add-remove",
    refine: bool = False,
    progress: Watch | None = None,
    max_iterations: int = MAX_ITERATIONS,
    on_gap: OnGap = "raise",
) -> Design:
    """Design the noise that meets every target at the least privacy cost (FFU Problem 1).

    Formal guarantees: every query's variance is at most its target; the certificate's ``lower``
    bounds ``mu**2`` of any Gaussian noise that meets the targets, and ``achieved`` is this
    design's.

    Parameters
    ----------
    W : (m, d)
        Workload, one linear query a row, of any rank.
    variance : scalar or (m,)
        Target variance of each query.
    basis : (k, d), optional
        Independent rows with the span of ``W`` to compute in. The design does not depend on it
        (FFU Theorem 4); by default an orthonormal one is taken.
    gap
        Relative distance between the two bounds at which to stop.
    neighbours
        "add-remove" one person, or "replace" one by another. Up to 256 cells the design for
        replace is optimal; beyond, it has the shape of one for add-remove, its cost is the true
        one, and the certificate says how far from optimal that may be.
    refine
        Minimise the whole sorted profile, level by level, and not only its largest entry (FFU
        Definition 5): of all optimal designs the one that leaves the most slack. For add-remove.
    progress
        Called with a :class:`~noiseshape.design.solve.Progress` after each iteration, and when
        its result is checked.
    max_iterations
        When to give up.
    on_gap
        What to do if the gap is not reached: "raise" NotConverged, or "label" the certificate
        (its ``reason`` says so, its ``gap`` is true).

    Notes
    -----
    The dual of the problem has one weight for each person and query,
    ``alpha* = max F(p, q)**2``; docs/math/fit.md derives it and the iteration.
    """
    options = Options(gap, neighbours, max_iterations, on_gap, progress, refine)
    W, c = workload(W, variance)
    B = None if basis is None else floats("basis", basis, ndim=2)
    space = coordinates(W, c, neighbours, basis=B)
    return designed("fit", W, c, space, options)


@dataclass(frozen=True)
class Options:
    """How far to go, checked; the same for every design that this iteration makes."""

    gap: float = 1e-3
    neighbours: Neighbours = "add-remove"
    max_iterations: int = MAX_ITERATIONS
    on_gap: OnGap = "raise"
    progress: Watch | None = None
    refine: bool = False
    begun: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        if not positive("gap", self.gap) >= SMALLEST_GAP:
            raise InvalidInput(
                f"gap must be at least {SMALLEST_GAP:g}, got {self.gap:g}: "
                "double precision proves no less."
            )
        if self.neighbours not in ("add-remove", "replace"):
            raise InvalidInput(
                f"neighbours must be 'add-remove' or 'replace', got {self.neighbours!r}."
            )
        if self.on_gap not in ("raise", "label"):
            raise InvalidInput(f"on_gap must be 'raise' or 'label', got {self.on_gap!r}.")
        if self.refine and self.neighbours == "replace":
            raise InvalidInput(
                "refine orders the costs of single cells, which 'replace' does not have: "
                "refine for 'add-remove', or leave it out."
            )
        whole("max_iterations", self.max_iterations)


def designed(
    name: str,
    W: Floats,
    c: Floats,
    space: Coordinates,
    options: Options,
    weights: Floats | None = None,
) -> Design:
    """Design, verify, and raise or label what falls short of the gap.

    With ``weights`` (m,) on queries the objective is their weighted total error times ``mu**2``;
    without, it is ``mu**2`` at the targets.
    """
    if space.queries.k == 0:
        return _free(name, W, c, space, options, COST if weights is None else TOTAL)
    design, iterations, reason = _certified(name, W, c, space, options, weights)
    certificate = design.certificate
    assert certificate is not None
    if options.neighbours == "replace" and not space.paired:
        reason = f"shape of add-remove: replace is optimised up to {MOST_PAIRED} cells"
    elif certificate.gap > options.gap:
        if options.on_gap == "raise":
            raise NotConverged(
                f"The gap is {certificate.gap:.2g} after {iterations} iterations, and "
                f"{options.gap:g} was asked for ({reason}): allow more iterations or a larger "
                "gap, or take what there is with on_gap='label'."
            )
        reason = "gap not reached: " + reason
    return design.certified(
        replace(
            certificate,
            iterations=iterations,
            seconds=time.perf_counter() - options.begun,
            reason=reason,
            rank=space.rank,
            tolerance=RANK_TOLERANCE,
        )
    )


def _certified(
    name: str,
    W: Floats,
    c: Floats,
    space: Coordinates,
    options: Options,
    weights: Floats | None,
) -> tuple[Design, int, str]:
    """Solve and verify: bounds recomputed from the workload, not from the iteration's own numbers.

    The iteration aims a little closer than the gap; where rounding in the bounds still spoils
    that, once more and closer.
    """
    reduced, neighbours = space.reduced, options.neighbours
    p = np.full(space.people.n, 1 / space.people.n)
    if weights is None:
        q, factor = np.full(space.queries.n, 1 / space.queries.n), 1.0
        problem = Problem(space.people, space.queries)
    else:
        q, factor = weights * c / (weights @ c), float(weights @ c)
        problem = Problem(space.people, space.queries, q=q)
    iterations, wanted = 0, 0.85 * options.gap
    if options.refine:  # caps take half of the gap
        wanted = min(wanted / 4, FIRST_GAP)
    levels: tuple[Level, ...] = ()
    steps = Steps(options.progress)
    for _ in range(3):
        solution = solve(
            problem,
            p,
            q,
            gap=wanted,
            max_iterations=max(options.max_iterations - iterations, 1),
            progress=steps.each,
        )
        steps.begin("checking")
        iterations += solution.iterations
        p, q = solution.p / solution.p.sum(), solution.q / solution.q.sum()
        lower = lower_bound(reduced.W, reduced.c, p, q, neighbours, products=not space.paired)
        if options.refine:
            solution, levels = refined(space, solution, options.gap, options.max_iterations)
        largest_h = solution.achieved / solution.g.max()
        A = space.strategy(solution.Ti, spare=options.gap / 10 * largest_h)
        full_p, full_q = reduced.expand_p(p, paired=space.paired), reduced.expand_q(q)
        design = Design(name, W, c, A, full_p, full_q, None, neighbours).meeting_targets()
        error = 1.0 if weights is None else float(weights @ design.variances)
        certificate = Certificate(
            lower * factor,
            design.alpha * error,
            neighbours=neighbours,
            covers=COST if weights is None else TOTAL,
            levels=levels,
        )
        design = design.certified(certificate)
        wanted /= 4
        # Of a shape made for add-remove, no closer a one proves more under replace.
        foreign = neighbours == "replace" and not space.paired
        if foreign or certificate.gap <= options.gap or iterations >= options.max_iterations:
            break
    reason = solution.reason
    if certificate.gap > options.gap:
        reason = reason.replace("gap reached", "rounding keeps the verified bounds apart")
    return design, iterations, reason


def _free(
    name: str, W: Floats, c: Floats, space: Coordinates, options: Options, covers: str
) -> Design:
    """Design a workload of nothing but the number of people, which replace gives away."""
    A = space.strategy(np.zeros((0, 0)), spare=1.0)
    certificate = Certificate(
        0.0,
        0.0,
        seconds=time.perf_counter() - options.begun,
        reason="the number of people is public under replace",
        neighbours="replace",
        covers=covers,
        rank=1,
        tolerance=RANK_TOLERANCE,
    )
    return Design(name, W, c, A, None, None, certificate, "replace").meeting_targets()


def workload(W: ArrayLike, variance: ArrayLike) -> tuple[Floats, Floats]:
    """Check a workload and its targets; return them as read-only float64 (m, d) and (m,).

    What a design would need in memory is checked before anything is copied.
    """
    try:
        shape = np.shape(W)
    except ValueError:
        raise InvalidInput("W must be a matrix: its rows differ in length.") from None
    if len(shape) != 2 or 0 in shape:
        raise InvalidInput(f"W must be a matrix with a query in each row, got shape {shape}.")
    _check_memory(*shape)
    m = shape[0]
    queries = floats("W", W, ndim=2)
    c = floats("variance", variance)
    if c.shape not in ((), (m,)):
        raise InvalidInput(f"variance must be one number or have shape ({m},), got {c.shape}.")
    c = np.broadcast_to(c, (m,)).copy()
    bad = np.flatnonzero(~(c > 0))
    if len(bad):
        raise InvalidInput(
            f"A target variance must be above 0: {len(bad)} of {m} are not (the first is of "
            f"query {bad[0]})."
        )
    zero = np.flatnonzero(~queries.any(axis=1))
    if len(zero):
        raise InvalidInput(
            f"A query must touch some cell: {len(zero)} of {m} are all zeros (the first is query "
            f"{zero[0]}): leave them out, their answer is 0."
        )
    sizes = np.maximum(queries.max(axis=1), -queries.min(axis=1))
    tame = (np.abs(np.log10(sizes)) < LARGEST_SIZE) & (
        np.abs(np.log10(sizes) - np.log10(c) / 2) < LARGEST_RATIO
    )
    wild = np.flatnonzero(~tame)
    if len(wild):
        raise InvalidInput(
            f"A query's greatest entry must be within 1e+-{LARGEST_SIZE} of 1, and within "
            f"1e+-{LARGEST_RATIO} of its target standard deviation: {len(wild)} of {m} are not "
            f"(the first is query {wild[0]}): use other units."
        )
    queries.flags.writeable = c.flags.writeable = False
    return queries, c


def _check_memory(m: int, d: int) -> None:
    """Refuse what would not fit, before it is tried."""
    k = min(m, d)
    active = min(m + d, most_active(k))
    needed = 8 * (4 * m * d + 3 * k * k) + 4 * active * (active + k)
    free = free_memory()
    if needed > free:
        raise TooLarge(
            f"Designing {m} queries over {d} cells needs about {needed / 1e9:.1f} GB and "
            f"{free / 1e9:.1f} GB are free: merge cells that no query tells apart, ask for fewer "
            "queries, or use marginals, whose design never forms the table."
        )
