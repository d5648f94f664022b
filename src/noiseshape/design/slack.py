"""Slack: what a design's profile leaves below its cost, and further queries that fit in it.

Two releases cost ``max_i (profile1_i + profile2_i)`` when every person sits in the same cell both
times, so a second one whose profile stays below ``mu**2 - profile1`` costs nothing (FFU 3.2.1).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats
from ..errors import BudgetExceeded, InvalidInput
from .design import Design
from .fit import fit, workload

# Below this share of mu^2 slack is rounding, and no measurement fits in it.
NO_SLACK = 1e-9
# Targets that use up the slack exactly may come out this much over it: they are then missed by
# as little, and the slack is not exceeded.
ROUNDING = 1e-9


def slack(design: Design) -> Floats:
    """Return what each cell's cost is below the design's: ``mu**2 - profile`` (d,).

    It is largest, in the order of FFU Definition 5, for a design made with
    ``fit(..., refine=True)``. These are the numbers of the real-valued design: what can be
    promised is computed from the integers that are executed.
    """
    if design.neighbours == "replace":
        raise InvalidInput(
            "Slack is counted by cells, and 'replace' has no costs of single cells: "
            "use a design for 'add-remove'."
        )
    return design.alpha - design.profile


def extend(design: Design, W: ArrayLike, variance: ArrayLike, *, gap: float = 1e-6) -> Design:
    """Design further queries within the slack of ``design``, at no extra cost.

    Formal guarantees: ``profile + design.profile <= mu**2`` in every cell, and every further
    query meets its target from the new measurements alone.

    Parameters
    ----------
    design
        What is released already, or will be; for add-remove.
    W : (m, d)
        Further queries over the same cells.
    variance : scalar or (m,)
        Their target variances.
    gap
        How close to the least use of the slack to come.

    Returns
    -------
    Design
        Its certificate is about the share of the slack that the targets use.
    """
    return fill(slack(design), W, variance, least=NO_SLACK * design.alpha, gap=gap)


def fill(
    left: Floats, W: ArrayLike, variance: ArrayLike, *, least: float, gap: float = 1e-6
) -> Design:
    """Design queries whose profile stays within ``left`` (d,); cells below ``least`` are full.

    What :func:`extend` does with the slack of a real-valued design, a plan does with that of
    the integers that it executes.
    """
    W, c = workload(W, variance)
    if W.shape[1] != len(left):
        raise InvalidInput(
            f"Further queries must be over the same {len(left)} cells, got {W.shape[1]}."
        )
    open_ = left > least
    blocked = int(np.count_nonzero(W[:, ~open_].any(axis=0)))
    if blocked:
        raise BudgetExceeded(
            f"The queries touch {blocked} cells that have no slack: leave those cells out, or "
            "design all queries together."
        )
    # A strategy with columns scaled to the slack must have no column longer than one.
    root = np.sqrt(np.where(open_, left, 0.0))
    inner = fit(W / np.where(open_, root, 1.0), c, gap=gap)
    if not inner.alpha <= 1 + ROUNDING:
        raise BudgetExceeded(
            f"These targets need {inner.alpha:.6g} times the slack there is: "
            f"allow {inner.alpha:.6g} times the variance, or design all queries together."
        )
    assert inner.certificate is not None
    certificate = replace(inner.certificate, covers="share of the slack that these targets use")
    A = inner.A * root * min(1.0, 1 / inner.mu)
    return Design("extension", W, c, A, certificate=certificate)
