"""Refined privacy ordering: after the worst cells, the next worst; and what that leaves free.

Of all designs with the least ``mu`` the refined one has the lexicographically smallest sorted
profile, which is unique (FFU Definition 5, Theorem 10). Level by level: cells that carry weight
in the optimum can be no lower, so their level becomes a cap and the others are minimised next.
What the profile leaves below ``mu**2`` can be spent on further queries at no extra cost.
"""

from __future__ import annotations

import numpy as np

from .certificate import Level
from .coordinates import Coordinates
from .sides import Flags
from .solve import Problem, Solution, solve

MOST_LEVELS = 10
# Each level is certified to this; a level that is not ends the refinement at the one before.
LEVEL_GAP = 1e-5
# Caps are loosened by a share, the first level's (which is the cost) and the others': that keeps
# the next level feasible whatever rounding does. Where a cap is worth a million times what it
# caps, the least share leaves nothing that double precision could find: a level that does not
# converge in so many steps is tried again with the next shares, the first never above half the gap.
LOOSENED = ((3e-6, 3e-6), (3e-6, 3e-5), (3e-6, 3e-4), (3e-4, 3e-4))
ATTEMPT = 100


def refined(
    space: Coordinates, solution: Solution, gap: float, max_iterations: int
) -> tuple[Solution, tuple[Level, ...]]:
    """Return the solution with the smallest sorted profile, and its levels.

    Each level minimises the largest ``g_i`` over cells that are not settled, with the settled ones
    capped: the dual iteration with caps (docs/math/fit.md, "Refinement"), not a bisection.

    Parameters
    ----------
    space, solution
        The workload's coordinates and the solved first level.
    gap
        What the levels together may add to the cost.
    max_iterations
        For each level.
    """
    looser = list(LOOSENED[::-1])
    first, others = looser.pop()
    settled = np.full(space.people.n, np.inf)  # the level of each cell that has one
    levels: list[Level] = []
    while True:
        free = np.isinf(settled)
        tight = _tight(solution, free)
        levels.append(Level(solution.achieved, solution.lower, int(tight.sum())))
        settled[tight] = max(solution.achieved, solution.lower)
        if len(levels) == 1:
            top = tight
        free &= ~tight
        if not free.any():
            solution.reason += "; profile refined"
            return solution, tuple(levels)
        if len(levels) == MOST_LEVELS:
            solution.reason += f"; profile refined to level {MOST_LEVELS}: there are more"
            return solution, tuple(levels)
        taken = solution.iterations
        while True:
            caps = settled * (1 + np.where(top, min(first, gap / 2), others))
            following = solve(
                Problem(space.people, space.queries, caps=caps, ceiling=levels[-1].cost),
                np.where(free, 1 / free.sum(), solution.p),
                solution.q,
                gap=LEVEL_GAP / 2,
                max_iterations=min(ATTEMPT, max_iterations),
                warm=0,
            )
            taken += following.iterations
            if following.gap <= LEVEL_GAP or not looser:
                break
            first, others = looser.pop()
        if not following.gap <= LEVEL_GAP:
            solution.reason += (
                f"; profile refined to level {len(levels)}: the next did not converge"
            )
            return solution, tuple(levels)
        following.iterations = taken
        solution = following


def _tight(solution: Solution, free: Flags) -> Flags:
    """Return which free cells are at their level in every optimum: weight outweighs slack."""
    p = np.where(free, solution.p, 0.0)
    share = p / p.sum() * free.sum()
    slack = 1 - solution.g / solution.g[free].max()
    tight: Flags = free & (share > slack)
    tight[np.argmax(p)] = True
    return tight
