"""IMGM: the exact condition for matrix-variate Gaussian noise.

Yang, Xiang, Li, Liu and Wang, "Improved Matrix Gaussian Mechanism for Differential Privacy". With
B the root in mu of the privacy curve (Lemma 3; Algorithm 2 is ``noiseshape.privacy.imgm``, and
``noiseshape.privacy.mu`` returns it rounded toward privacy):

    Theorem 1   sum_i sigma_i(Delta)^2 / (lambda_(i)(Sigma_1) lambda_(i)(Sigma_2)) <= B^2
    Theorem 2   s2^2 / (lambda_min(Sigma_1) lambda_min(Sigma_2)) <= B^2
    Theorem 4   s2^2 T / (...) <= B^2 for T equal releases; in general the sum of mu_t^2 <= B^2

lambda_(i): the i-th least eigenvalue. Theorem 2's "if and only if" is for every change of norm at
most s2, in all directions: a smaller set of changes allows less noise (``matrices``' own sets).
Least noise: Sigma_k in proportion to the identity (Algorithm 1), ``sigma``.

RDP: the release satisfies (order, order mu^2 / 2), ``Cost.rdp``. Appendix B prints
``(2a + 1) B / (2 (a - 1)) exp(B (a^2 + a) / 2)``, which is not the Gaussian's: ``printed_rdp``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._arb import sqrt_down
from .._checks import Floats, floats, positive, whole
from ..errors import InvalidInput
from ..privacy import Budget
from .condition import Condition, Theorem, Zeta, harmonic
from .covariances import Covariances, Mode, above


def sigma(s2: float, epsilon: float, delta: float, *, releases: int = 1) -> float:
    """Return the standard deviation s2 sqrt(T) / B of every entry: Algorithm 1, rounded up.

    Parameters
    ----------
    s2
        sup ||f(X) - f(X')||_F.
    releases
        T, how many such releases the budget is to cover (Theorem 4).

    Examples
    --------
    >>> round(sigma(1.0, 1.0, 1e-5), 6), round(sigma(1.0, 1.0, 1e-5, releases=4), 6)
    (3.730632, 7.461263)
    """
    return above(positive("s2", s2) / each(Budget(epsilon=epsilon, delta=delta), releases))


def each(budget: Budget, releases: int) -> float:
    """Return the greatest mu of each of T equal releases within a budget: B / sqrt(T)."""
    return sqrt_down(budget.mu_squared / whole("releases", releases))


@dataclass(frozen=True)
class Validity:
    """Whether covariances are enough, and by how much they are not.

    Attributes
    ----------
    mu
        The cost over the changes that were stated.
    bound
        The greatest that is allowed: B, over sqrt(T) for T releases.
    factor
        The least factor on every standard deviation that makes them valid: below 1 where there is
        more noise than needed.
    """

    mu: float
    bound: float

    @property
    def valid(self) -> bool:
        """Whether mu is at most the bound."""
        return self.mu <= self.bound

    @property
    def factor(self) -> float:
        """The bound's share that mu takes, rounded up."""
        return above(self.mu / self.bound)

    def __str__(self) -> str:
        if self.valid:
            return f"valid: mu = {self.mu:.6g}, of {self.bound:.6g} that are allowed"
        return (
            f"not valid: mu = {self.mu:.6g} is above {self.bound:.6g}; multiply every standard "
            f"deviation by {self.factor:.6g}"
        )


def validate(
    rows: ArrayLike | Mode,
    columns: ArrayLike | Mode,
    *,
    epsilon: float,
    delta: float,
    s2: float | None = None,
    singular_values: ArrayLike | None = None,
    releases: int = 1,
) -> Validity:
    """Return whether Sigma_1 and Sigma_2 give (epsilon, delta)-differential privacy, exactly.

    Parameters
    ----------
    rows, columns : shapes (m, m), (n, n)
        Sigma_1 and Sigma_2: any symmetric positive definite ones, in any directions.
    s2
        The greatest norm of a change (Theorem 2); or
    singular_values
        the greatest singular values of one, where those are known (Theorem 1).
    releases
        T releases of this noise (Theorem 4).

    Examples
    --------
    >>> print(validate([1.0, 4.0], [9.0], s2=1.0, epsilon=1, delta=1e-5))
    not valid: mu = 0.333333 is above 0.268051; multiply every standard deviation by 1.24354
    """
    noise = Covariances(rows, columns)
    if (s2 is None) == (singular_values is None):
        raise InvalidInput("state what can change once: as s2, or as singular_values.")
    values = [positive("s2", s2)] if singular_values is None else singular_values
    bound = each(Budget(epsilon=epsilon, delta=delta), releases)
    return Validity(noise.mu_of(values), bound)


def printed_rdp(order: float, B: float) -> float:
    """Return what Appendix B prints for the Renyi divergence; ``Cost.rdp`` has what holds."""
    a, B = positive("order", order), positive("B", B)
    if not a > 1:
        raise InvalidInput(f"order must be above 1, got {a:g}.")
    return (2 * a + 1) * B / (2 * (a - 1)) * math.exp(B * (a * a + a) / 2)


def overhead(rows: ArrayLike | Mode, columns: ArrayLike | Mode) -> float:
    """Return the mean variance over the least that the same privacy needs: section 4.1.

    tr(Sigma_1) tr(Sigma_2) / (m n lambda_min(Sigma_1) lambda_min(Sigma_2)), at least 1, and 1 for
    independent noise alone: over all changes of one norm, directions only add noise.
    """
    noise = Covariances(rows, columns)
    each = [k.variances.mean() / k.variances.min() for k in (noise.rows, noise.columns)]
    return float(each[0] * each[1])


@dataclass(frozen=True, eq=False)
class Region:
    """Section 4.1 for a 2 x 1 answer: the least second standard deviation for each first.

    Attributes
    ----------
    first : shape (k,)
        Standard deviations along the first direction.
    imgm, mvg : shape (k,)
        The least along the second that is allowed; infinite where none is.
    """

    first: Floats
    imgm: Floats
    mvg: Floats


def region(
    first: ArrayLike,
    *,
    s2: float,
    gamma: float,
    epsilon: float,
    delta: float,
    zeta: Zeta = "printed",
) -> Region:
    """Return the borders of what IMGM and MVG's Theorem 2 allow, to plot (section 4.1).

    IMGM's is a corner: each standard deviation at least s2 / B, and nothing to trade. MVG's is a
    curve, sigma_1^-4 + sigma_2^-4 <= phi^4, inside it.
    """
    values = floats("first", first, ndim=1)
    if not np.all(values > 0):
        raise InvalidInput("standard deviations must be above 0.")
    asked = Condition(m=2, n=1, s2=s2, gamma=gamma, epsilon=epsilon, delta=delta, zeta=zeta)
    least = sigma(s2, epsilon, delta)
    imgm = np.where(values >= least, least, np.inf)
    rest = asked.phi**4 - values**-4.0
    with np.errstate(divide="ignore", invalid="ignore"):
        mvg = np.where(rest > 0, np.abs(rest) ** -0.25, np.inf)
    return Region(values, imgm, mvg)


@dataclass(frozen=True, eq=False)
class Growth:
    """Section 4.2: standard deviations of independent noise as a quantity grows or shrinks.

    Attributes
    ----------
    at : shape (k,)
        The number of entries m n, or epsilon.
    mvg, imgm : shape (k,)
        What each mechanism asks.
    rate : shape (k,)
        MVG's, by its leading term alone, set equal at the end of the range.
    """

    at: Floats
    mvg: Floats
    imgm: Floats
    rate: Floats


def independent(condition: Condition) -> float:
    """Return the standard deviation that MVG asks of equal noise: (m n)^1/4 / phi."""
    return float(condition.m * condition.n) ** 0.25 / condition.phi


def with_size(
    shapes: list[tuple[int, int]],
    *,
    s2: float,
    gamma: float,
    epsilon: float,
    delta: float,
    theorem: Theorem = 2,
    zeta: Zeta = "printed",
) -> Growth:
    """Return the noise for matrices of these shapes (section 4.2, high dimension).

    The bound phi^2 falls as (m n)^-5/2 H_r^-2 (equation 16 prints m n^-5/2; with the tight zeta,
    (m n)^-3/2 H_r^-2), so that MVG's standard deviation grows as (m n)^3/2 H_r, or m n H_r.
    IMGM's is s2 / B at every size.
    """
    conditions = [
        Condition(m=m, n=n, s2=s2, gamma=gamma, epsilon=epsilon, delta=delta,
                  theorem=theorem, zeta=zeta)
        for m, n in shapes
    ]  # fmt: skip
    entries = np.array([float(m * n) for m, n in shapes])
    return _growth(entries, conditions, _sizes(conditions, zeta))


def with_epsilon(
    epsilons: ArrayLike,
    *,
    m: int,
    n: int,
    s2: float,
    gamma: float,
    delta: float,
    theorem: Theorem = 2,
    zeta: Zeta = "printed",
) -> Growth:
    """Return the noise for these epsilons (section 4.2, high privacy).

    MVG's grows without end, as 1 / epsilon; IMGM's has a limit, s2 / (2 Phi^-1((1 + delta) / 2)).
    """
    values = floats("epsilons", epsilons, ndim=1)
    conditions = [
        Condition(m=m, n=n, s2=s2, gamma=gamma, epsilon=eps, delta=delta,
                  theorem=theorem, zeta=zeta)
        for eps in values.tolist()
    ]  # fmt: skip
    return _growth(values, conditions, 1 / values)


def _sizes(conditions: list[Condition], zeta: Zeta) -> Floats:
    power = 1.5 if zeta == "printed" else 1.0
    return np.array([float(c.m * c.n) ** power * harmonic(c.r) for c in conditions])


def _growth(at: Floats, conditions: list[Condition], shape: Floats) -> Growth:
    if not conditions:
        raise InvalidInput("at least one point is needed.")
    mvg = np.array([independent(c) for c in conditions])
    imgm = np.array([sigma(c.s2, c.epsilon, c.delta) for c in conditions])
    # The leading term rules at the end with the most noise.
    end = int(np.argmax(mvg))
    return Growth(at, mvg, imgm, shape / shape[end] * mvg[end])
