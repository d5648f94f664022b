"""Cost and Budget: what a release spends and what may be spent, as exact rationals.

Both hold mu^2 exactly, since that is what adds: independent Gaussian releases of cost mu_1,
mu_2, ... cost sqrt(mu_1^2 + mu_2^2 + ...) together (IMGM's Theorem 4 for equal ones). Only
what is printed is rounded: a cost up, a budget down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, TypeVar

from .._arb import fraction_down, fraction_up, sqrt_down, sqrt_up
from .._checks import exact, exact_positive, positive, probability, whole
from ..errors import InvalidInput
from . import curve
from .people import Neighbours
from .profile import Profile

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, repr=False)
class Cost:
    """The privacy cost of Gaussian releases: mu^2, exactly, under one relation of neighbours.

    Formal Guarantees:
      The releases are mu-GDP for every mu at or above ``cost.mu``; (alpha, alpha mu^2 / 2)-RDP
      at every order alpha above 1; mu^2 / 2-zCDP; and (epsilon, delta)-DP if and only if delta
      is on or above the curve.

    Examples
    --------
    >>> one = Cost(Fraction(1, 4))
    >>> one.mu, one.rho, (one + one).mu_squared
    (0.5, 0.125, Fraction(1, 2))
    >>> one * 4
    Cost(mu=1, rho=0.5, add-remove)
    """

    mu_squared: Fraction
    neighbours: Neighbours = "add-remove"

    def __post_init__(self) -> None:
        if not isinstance(self.mu_squared, Fraction) or not self.mu_squared >= 0:
            raise InvalidInput("mu_squared must be a Fraction of at least 0.")
        if self.neighbours not in ("add-remove", "replace"):
            raise InvalidInput(
                f'neighbours must be "add-remove" or "replace", got {self.neighbours!r}.'
            )

    @classmethod
    def of(cls, mu: float, neighbours: Neighbours = "add-remove") -> Cost:
        """Return the cost of a release that is exactly mu-GDP (the float is taken exactly)."""
        return cls(exact_positive("mu", mu) ** 2, neighbours)

    @property
    def mu(self) -> float:
        """The cost as the parameter of Gaussian differential privacy, rounded up."""
        return sqrt_up(self.mu_squared)

    @property
    def rho(self) -> float:
        """The cost as zero-concentrated differential privacy, mu^2 / 2, rounded up."""
        return fraction_up(self.mu_squared / 2)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at ``delta`` (Fitness-for-use, equation 6), rounded up."""
        return _scalar("delta", curve.epsilon(delta, self.mu))

    def delta(self, epsilon: float) -> float:
        """Return the least delta at ``epsilon``, rounded up."""
        return _scalar("epsilon", curve.delta(epsilon, self.mu))

    def log_delta(self, epsilon: float) -> float:
        """Return the logarithm of the least delta at ``epsilon``, rounded up."""
        return _scalar("epsilon", curve.log_delta(epsilon, self.mu))

    def rdp(self, alpha: float) -> float:
        """Return the Renyi divergence of order ``alpha`` > 1: alpha mu^2 / 2, rounded up.

        IMGM's Appendix B prints another formula, which is not the Gaussian's.
        """
        return fraction_up(_order(alpha) * self.mu_squared / 2)

    def __add__(self, other: Cost) -> Cost:
        """Return the cost of both releases, each on its own noise (adaptive choice included)."""
        if not isinstance(other, Cost):
            return NotImplemented
        if self.neighbours != other.neighbours:
            raise InvalidInput(
                f"costs under {self.neighbours} and {other.neighbours} neighbours do not add: "
                "state both under one relation."
            )
        return Cost(self.mu_squared + other.mu_squared, self.neighbours)

    def __mul__(self, times: int) -> Cost:
        """Return the cost of ``times`` such releases (IMGM's Theorem 4: sqrt(T) mu)."""
        return Cost(self.mu_squared * whole("times", times), self.neighbours)

    __rmul__ = __mul__

    def _repr_html_(self) -> str:
        from ..report.scraps import of_cost

        return of_cost(self)

    def __rich__(self) -> Any:
        from ..report.terminal import of_cost

        return of_cost(self)

    def __repr__(self) -> str:
        return f"Cost(mu={self.mu:.6g}, rho={self.rho:.6g}, {self.neighbours})"


@dataclass(frozen=True, init=False, repr=False)
class Budget:
    """What may be spent: stated as (epsilon, delta), rho or mu, held as the cap on mu^2.

    Two budgets are equal when they allow the same costs, however they were stated.

    Parameters
    ----------
    epsilon, delta
        Together: epsilon at least 0, delta above 0 and below 1.
    rho
        The parameter of zero-concentrated differential privacy; buys mu = sqrt(2 rho).
    mu
        The parameter of Gaussian differential privacy.

    Attributes
    ----------
    pair
        (epsilon, delta) as doubles, rounded down, where the budget was stated so; else None.

    Formal Guarantees:
      ``mu_squared`` is an exact rational, never above what was stated.

    Examples
    --------
    >>> Budget(rho=0.5) == Budget(mu=1.0)
    True
    >>> Budget(epsilon=1.0, delta=1e-5)
    Budget(epsilon=1, delta=1e-05: mu=0.268051)
    """

    mu_squared: Fraction
    stated: str = field(compare=False)
    pair: tuple[float, float] | None = field(default=None, compare=False)

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
    ) -> None:
        given = {k: v for k, v in locals().items() if k != "self" and v is not None}
        match sorted(given):
            case ["delta", "epsilon"]:
                chance = exact("delta", delta)
                if not 0 < chance < 1:
                    raise InvalidInput(
                        f"delta must be above 0 and below 1, got {fraction_down(chance):g}."
                    )
                pair = fraction_down(exact("epsilon", epsilon)), fraction_down(chance)
                object.__setattr__(self, "pair", pair)
                bound = curve.mu(*pair)
                square = Fraction(float(bound)) ** 2
            case ["rho"]:
                square = 2 * exact_positive("rho", rho)
            case ["mu"]:
                square = exact_positive("mu", mu) ** 2
            case names:
                raise InvalidInput(
                    "a budget is stated as epsilon and delta together, or as rho, or as mu; "
                    f"got {', '.join(names) or 'nothing'}."
                )
        if square == 0:
            raise InvalidInput("a budget of zero allows no release: state one above zero.")
        if square > 10**12:
            raise InvalidInput("a budget above mu = 1e6 protects nobody: state one below.")
        object.__setattr__(self, "mu_squared", square)
        object.__setattr__(self, "stated", ", ".join(f"{k}={float(v):g}" for k, v in given.items()))

    @property
    def mu(self) -> float:
        """The greatest mu that is allowed, rounded down."""
        return sqrt_down(self.mu_squared)

    @property
    def rho(self) -> float:
        """The greatest rho that is allowed, mu^2 / 2, rounded down."""
        return fraction_down(self.mu_squared / 2)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at ``delta`` once all of it is spent, rounded up."""
        return Cost(self.mu_squared).epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """Return the least delta at ``epsilon`` once all of it is spent, rounded up."""
        return Cost(self.mu_squared).delta(epsilon)

    def rdp(self, alpha: float) -> float:
        """Return the Renyi divergence of order ``alpha`` once all of it is spent, rounded up."""
        return Cost(self.mu_squared).rdp(alpha)

    def in_its_words(self, cost: Cost) -> str:
        """Return what a cost is in the terms in which this budget was stated."""
        stated = dict(part.split("=") for part in self.stated.split(", "))
        if "delta" in stated:
            delta = float(stated["delta"])
            return f"epsilon={cost.epsilon(delta):.6g} at delta={stated['delta']}"
        return f"rho={cost.rho:.6g}" if "rho" in stated else f"mu={cost.mu:.6g}"

    def allows(self, cost: Cost) -> bool:
        """Return whether ``cost`` is within the budget, by comparing exact rationals."""
        return cost.mu_squared <= self.mu_squared

    def __repr__(self) -> str:
        return f"Budget({self.stated}: mu={self.mu:.6g})"


def compose(costs: Iterable[Cost]) -> Cost:
    """Return the cost of a sequence of Gaussian releases: the sum of their mu^2, exactly.

    Formal Guarantees:
      Holds for queries and noise chosen adaptively if the sum stays below a cap fixed before
      the first release on every transcript; the amount spent at a data-dependent stopping
      time is not itself a guarantee. (IMGM's Theorem 4 for T equal releases: sqrt(T) mu.)
    """
    return reduce(add, _all("compose", Cost, costs))


def compose_profiles(profiles: Iterable[Profile]) -> Profile:
    """Return the profile of several releases to people who sit in the same cells in each.

    Formal Guarantees:
      Under add-remove neighbours the releases together cost max_i of the sum of the profiles
      at cell i, which is at most, and often below, the sum of the maxima: parallel
      composition, generalised. Only for releases of one frozen vintage of the data.
    """
    return reduce(add, _all("compose_profiles", Profile, profiles))


def mu_from_rho(rho: float) -> float:
    """Return the mu of the Gaussian release that is exactly rho-zCDP, rounded down."""
    return sqrt_down(2 * exact_positive("rho", rho))


def mu_from_rdp(alpha: float, divergence: float) -> float:
    """Return the mu whose Renyi divergence of order ``alpha`` is ``divergence``, rounded down."""
    return sqrt_down(2 * exact_positive("divergence", divergence) / _order(alpha))


def classic_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the classic noise scale sqrt(2 ln(1.25/delta)) sensitivity / epsilon.

    Kept for comparison (Dwork and Roth 2014, Theorem A.1): it is wasteful, and proved only
    for epsilon below 1. Calibrate with ``Budget`` instead.
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    sensitivity = positive("sensitivity", sensitivity)
    if not epsilon < 1:
        raise InvalidInput(
            f"the classic calibration holds only for epsilon below 1, got {epsilon:g}: "
            "use Budget(epsilon=..., delta=...).mu, which is exact at every epsilon."
        )
    # Logarithms apart: 1.25 / delta passes the doubles for the smallest deltas.
    sigma = math.sqrt(2 * (math.log(1.25) - math.log(delta))) * sensitivity / epsilon
    if not math.isfinite(sigma):
        raise InvalidInput(
            "the classic calibration passes 1.8e308 here: ask for a greater epsilon, or state the "
            "sensitivity in another unit."
        )
    return sigma


def _order(alpha: float) -> Fraction:
    order = exact_positive("alpha", alpha)
    if not order > 1:
        raise InvalidInput(f"alpha must be above 1, got {float(order):g}.")
    return order


def _scalar(name: str, value: Any) -> float:
    if not isinstance(value, float):
        raise InvalidInput(
            f"{name} must be one number here, got an array: noiseshape.privacy has the curve for "
            "arrays, as epsilon(delta, cost.mu)."
        )
    return value


def _all(name: str, kind: type[_Kind], values: Iterable[_Kind]) -> list[_Kind]:
    """Return the values, at least one, all of one kind."""
    found = list(values)
    if not found:
        raise InvalidInput(f"{name} needs at least one {kind.__name__}.")
    for value in found:
        if not isinstance(value, kind):
            raise InvalidInput(f"{name} takes each a {kind.__name__}, got {type(value).__name__}.")
    return found
