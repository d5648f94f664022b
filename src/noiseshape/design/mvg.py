"""MVG: noise with directions, calibrated by its own conditions, beside what it truly costs.

Algorithm 1 (unimodal): directions W and precisions theta_i P in one mode, independent noise in
the other. Algorithm 2 (equi-modal): the same in both. P is the precision budget of Theorems 5 and
6; variances are 1 / sqrt(theta_i P).

    algorithm_1, algorithm_2    the papers' mathematics, on numbers alone
    mvg(query, ...)             the same for a question, to be planned, released and paid for

What is here claims (epsilon, delta) by a sufficient condition, and reports the mu it really has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from .condition import Condition
from .covariances import Covariances, Mode
from .directions import orthonormal
from .precision import Allocation, allocated, uniform

if TYPE_CHECKING:
    from ..privacy import Budget

Modes = Literal["rows", "columns", "both"]


def algorithm_1(
    condition: Condition,
    precision: ArrayLike | Allocation | None = None,
    directions: ArrayLike | None = None,
    *,
    mode: Literal["rows", "columns"] = "rows",
) -> Covariances:
    """Return unimodal noise: directions in one mode, independent in the other.

    Parameters
    ----------
    condition
        What Theorem 2 asks. (The paper has Algorithm 1 with Theorem 2 alone: Theorem 3 wants equal
        noise in both modes.)
    precision : shape (k,), or an Allocation
        theta, above 0, at most 1 together; k the size of the mode. None: equal.
    directions : shape (k, k)
        Orthonormal columns; None for the standard basis.
    mode
        Which mode has directions: "rows" (Sigma, as in the paper) or "columns" (Psi).

    Formal Guarantees:
      ``condition.allows`` the result.
    """
    if condition.theorem != 2:
        raise InvalidInput("noise in one mode goes by Theorem 2: theorem=2.")
    if mode not in ("rows", "columns"):
        raise InvalidInput(f'mode must be "rows" or "columns" here, got {mode!r}.')
    m, n = condition.m, condition.n
    size, other = (m, n) if mode == "rows" else (n, m)
    directed = _mode(condition.precision_budget(iid=other), precision, directions, size)
    plain = Mode(np.ones(other))
    return Covariances(directed, plain) if mode == "rows" else Covariances(plain, directed)


def algorithm_2(
    condition: Condition,
    precision: ArrayLike | Allocation | None = None,
    directions: ArrayLike | None = None,
) -> Covariances:
    """Return equi-modal noise: the same directions and precisions in rows and columns.

    Parameters
    ----------
    condition
        What Theorem 2 or 3 asks.
    precision, directions
        As ``algorithm_1`` has them.

    Formal Guarantees:
      ``condition.allows`` the result.
    """
    both = _mode(condition.precision_budget(), precision, directions, condition.m)
    return Covariances(both, both)


def _mode(
    budget: float,
    precision: ArrayLike | Allocation | None,
    directions: ArrayLike | None,
    size: int,
) -> Mode:
    given = uniform(size) if precision is None else precision
    theta = allocated(given(budget) if callable(given) else given, size)
    # Rounded up by more than the roundings before: then the condition holds in doubles too.
    variances = (theta * budget) ** -0.5 * (1 + 1e-12)
    return Mode(variances, None if directions is None else orthonormal(directions, size))


@dataclass(frozen=True)
class Claim:
    """What MVG claims for its noise, and what it truly costs.

    Attributes
    ----------
    epsilon, delta
        The claim.
    theorem, zeta
        By which condition.
    mu
        The least mu that the claim needs: IMGM's B at (epsilon, delta).
    true_mu
        What the noise costs over every change of norm s2, exactly (IMGM, Theorem 2).
    """

    epsilon: float
    delta: float
    theorem: int
    zeta: str
    mu: float
    true_mu: float

    @property
    def wasted(self) -> float:
        """By how much every standard deviation could be divided, and the claim still hold."""
        return self.mu / self.true_mu

    def __str__(self) -> str:
        return (
            f"MVG's Theorem {self.theorem} ({self.zeta} zeta) claims epsilon={self.epsilon:.6g} at "
            f"delta={self.delta:.3g}, which mu={self.mu:.6g} gives; the noise truly costs "
            f"mu={self.true_mu:.6g}: every standard deviation is {self.wasted:.4g} times what the "
            "claim needs"
        )


def claim(condition: Condition, noise: Covariances) -> Claim:
    """Return what a condition claims for noise that it allows, beside the truth."""
    if not condition.allows(noise):
        raise InvalidInput(
            f"Theorem {condition.theorem} does not allow this noise: its norm is "
            f"{noise.phi:.6g}, and {condition.phi:.6g} is allowed; multiply every standard "
            f"deviation by {noise.phi / condition.phi:.6g}."
        )
    return Claim(
        condition.epsilon,
        condition.delta,
        condition.theorem,
        condition.zeta,
        condition.budget,
        noise.mu(condition.s2),
    )


def wasted(condition: Condition) -> float:
    """Return the factor that equal noise on every entry wastes: ``Claim.wasted``, in closed form.

    B (m n)^1/4 / (s2 phi): at least 1, by the guarantee of ``Condition``.
    """
    return (
        condition.budget * float(condition.m * condition.n) ** 0.25 / (condition.s2 * condition.phi)
    )


def stated(budget: Budget, delta: float | None) -> tuple[float, float]:
    """Return the (epsilon, delta) of a budget: as it was stated, or at a delta of the caller's."""
    if delta is None:
        if budget.pair is None:
            raise InvalidInput(
                f"MVG's conditions are about epsilon and delta, and this budget is stated as "
                f"{budget.stated}: say at which delta, delta=..., or state it as epsilon and delta."
            )
        return budget.pair
    return budget.epsilon(delta), delta
