r"""MVG's two sufficient conditions, as printed and tight.

Chanyaswad, Dytso, Poor and Mittal, "A Differential Privacy Mechanism Design Under Matrix-Valued
Query" (full version): noise Z of covariance Psi x Sigma on vec, Sigma over the m rows and Psi over
the n columns of f(X). With

    r = min(m, n),  H_r = sum_{i<=r} 1/i,  H_r,1/2 = sum_{i<=r} 1/sqrt i
    alpha = (H_r + H_r,1/2) gamma^2 + 2 H_r gamma s2        (Theorem 2)
    omega = 4 H_r gamma s2                                  (Theorem 3: symmetric, Psi = Sigma)
    beta  = 2 (m n)^1/4 zeta(delta) H_r s2
    phi^2 = ||Sigma^-1||_F ||Psi^-1||_F

(epsilon, delta)-differential privacy follows from alpha phi^2 + beta phi <= 2 epsilon, or from the
same with omega for alpha. Neither is necessary, by far: what such noise truly costs is
``Covariances.mu``, and ``docs/math/mvg.md`` sets the two side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._checks import positive, probability, whole
from ..errors import InvalidInput
from ..privacy import curve

if TYPE_CHECKING:
    from .covariances import Covariances

Theorem = Literal[2, 3]
Zeta = Literal["printed", "tight"]


def harmonic(r: int, power: float = 1.0) -> float:
    """Return the generalised harmonic number, the sum of i^-power for i = 1, ..., r."""
    i = np.arange(1, whole("r", r) + 1, dtype=np.float64)
    return float((i**-power).sum())


def norm_bound(m: int, n: int, delta: float, zeta: Zeta = "printed") -> float:
    """Return zeta(delta), which ||N||_F of m x n standard normals passes with chance <= delta.

    Laurent and Massart bound the square: P(||N||_F^2 > z) <= delta for
    z = 2 sqrt(m n ln 1/delta) + 2 ln 1/delta + m n. MVG's Lemma 1 prints zeta = z, and
    ``||N||_F^2 <= zeta^2``: loose and safe ("printed", as in the paper's theorems). "tight" is
    zeta = sqrt z.
    """
    entries = whole("m", m) * whole("n", n)
    rare = -math.log(probability("delta", delta))
    square = 2 * math.sqrt(entries * rare) + 2 * rare + entries
    if zeta not in ("printed", "tight"):
        raise InvalidInput(f'zeta must be "printed" or "tight", got {zeta!r}.')
    return square if zeta == "printed" else math.sqrt(square)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What Theorem 2 or 3 asks of the noise on an m x n matrix.

    Attributes
    ----------
    m, n
        The shape of f(X).
    s2
        sup ||f(X) - f(X')||_F over neighbours, or a bound above it.
    gamma
        sup ||f(X)||_F over all data, or a bound above it: at least s2 / 2, as a true one always is.
    epsilon, delta
        What is claimed.
    theorem
        2 for any matrix; 3 for symmetric positive semi-definite ones, with Psi = Sigma.
    zeta
        As printed, or tight.

    Formal Guarantees:
      Noise that ``allows`` allows is (epsilon, delta)-differentially private, and its true cost
      ``mu`` is at most the bound of the exact curve, ``budget``. Proof in docs/math/mvg.md; a
      gamma below s2 / 2 is refused, since there it fails.

    Examples
    --------
    >>> c = Condition(m=6, n=248, s2=24**0.5, gamma=1488**0.5, epsilon=1, delta=1 / 248)
    >>> round(c.alpha), round(c.beta), f"{c.phi:.3g}"
    (9988, 250500, '7.98e-06')
    """

    m: int
    n: int
    s2: float
    gamma: float
    epsilon: float
    delta: float
    theorem: Theorem = 2
    zeta: Zeta = "printed"

    def __post_init__(self) -> None:
        for name in ("m", "n"):
            object.__setattr__(self, name, whole(name, getattr(self, name)))
        if self.gamma is None:
            raise InvalidInput(
                "MVG needs gamma, the greatest Frobenius norm of the answer over all allowed data: "
                "gamma=..., from declared bounds."
            )
        for name in ("s2", "gamma", "epsilon"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.delta == 0:
            raise InvalidInput(
                "MVG needs delta above 0: its bound on the norm of the noise has none at 0."
            )
        object.__setattr__(self, "delta", probability("delta", self.delta))
        if self.gamma < self.s2 / 2:
            raise InvalidInput(
                f"gamma must be at least s2 / 2 = {self.s2 / 2:g}, got {self.gamma:g}: two answers "
                "no longer than gamma are at most 2 gamma apart, and MVG's conditions fail for a "
                "smaller one."
            )
        if self.theorem not in (2, 3):
            raise InvalidInput(f"theorem must be 2 or 3, got {self.theorem!r}.")
        if self.theorem == 3 and self.m != self.n:
            raise InvalidInput(
                "Theorem 3 is for symmetric positive semi-definite matrices, and "
                f"{self.m} x {self.n} is not square: use theorem=2."
            )
        norm_bound(1, 1, 0.5, self.zeta)

    @property
    def r(self) -> int:
        """The smaller side."""
        return min(self.m, self.n)

    @property
    def alpha(self) -> float:
        """(H_r + H_r,1/2) gamma^2 + 2 H_r gamma s2."""
        H, root = harmonic(self.r), harmonic(self.r, 0.5)
        return (H + root) * self.gamma**2 + 2 * H * self.gamma * self.s2

    @property
    def omega(self) -> float:
        """4 H_r gamma s2."""
        return 4 * harmonic(self.r) * self.gamma * self.s2

    @property
    def beta(self) -> float:
        """2 (m n)^1/4 zeta(delta) H_r s2."""
        z = norm_bound(self.m, self.n, self.delta, self.zeta)
        return 2 * float(self.m * self.n) ** 0.25 * z * harmonic(self.r) * self.s2

    @property
    def phi(self) -> float:
        """The positive root of alpha phi^2 + beta phi = 2 epsilon (omega for alpha in Theorem 3).

        By 4 epsilon / (beta + sqrt(beta^2 + 8 alpha epsilon)), equal to what is printed,
        (-beta + sqrt(beta^2 + 8 alpha epsilon)) / (2 alpha), which loses all its digits for a
        small epsilon.
        """
        a = self.alpha if self.theorem == 2 else self.omega
        return 4 * self.epsilon / (self.beta + math.sqrt(self.beta**2 + 8 * a * self.epsilon))

    @property
    def budget(self) -> float:
        """The exact curve's mu at (epsilon, delta), IMGM's B: what is claimed, in one number."""
        return float(curve.mu(self.epsilon, self.delta))

    def precision_budget(self, iid: int | None = None) -> float:
        """Return the bound on the sum of precisions p_i = 1 / variance_i^2 over directions.

        Parameters
        ----------
        iid
            The size of the mode whose noise is independent, for noise with directions in the
            other mode only: phi^4 / iid (Theorem 5). None for equal covariances in both modes:
            phi^2 (Theorem 6). ("Precision" is MVG's word: the inverse of the *squared* variance.)
        """
        if iid is None:
            if self.m != self.n:
                raise InvalidInput(
                    "equal noise in rows and columns needs a square matrix, got "
                    f"{self.m} x {self.n}: let one mode have directions."
                )
            return self.phi**2
        if iid not in (self.m, self.n):
            raise InvalidInput(f"iid must be the size of a mode, {self.m} or {self.n}, got {iid}.")
        return self.phi**4 / iid

    def allows(self, noise: Covariances) -> bool:
        """Return whether the condition holds for covariances (Sigma, Psi)."""
        if noise.shape != (self.m, self.n):
            raise InvalidInput(f"the noise is {noise.shape}, and the answer {(self.m, self.n)}.")
        if self.theorem == 3 and not noise.rows.same(noise.columns):
            raise InvalidInput("Theorem 3 is for equal covariances in rows and columns.")
        return noise.phi <= self.phi


@dataclass(frozen=True)
class Comparison:
    """Theorem 4: where Theorem 3 allows less noise than Theorem 2, on an r x r matrix.

    Attributes
    ----------
    better
        Whether it does: omega <= alpha, (H_r + H_r,1/2) gamma >= 2 H_r s2. Exact.
    by_sensitivity
        s2 <= gamma, which suffices.
    by_size
        r > 12, which suffices where s2 <= sqrt 2 gamma, as for positive semi-definite answers (the
        paper's proof prints sqrt(2 gamma)).
    """

    better: bool
    by_sensitivity: bool
    by_size: bool


def theorem_4(r: int, s2: float, gamma: float) -> Comparison:
    """Return whether Theorem 3 allows less noise than Theorem 2, and by which of the two rules.

    Examples
    --------
    >>> theorem_4(12, 2**0.5, 1.0).better, theorem_4(13, 2**0.5, 1.0).better
    (False, True)
    """
    s2, gamma, H = positive("s2", s2), positive("gamma", gamma), harmonic(r)
    better = (H + harmonic(r, 0.5)) * gamma >= 2 * H * s2
    return Comparison(better, s2 <= gamma, r > 12 and s2 <= math.sqrt(2) * gamma)
