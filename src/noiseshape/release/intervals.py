"""What may be said about released numbers: intervals, ratios, digits and flags.

Everything here is post-processing: it reads released values and the public strategy, never
data, so it costs no privacy, and floats will do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import binom

from .._checks import Floats, floats, probability, real, whole
from ..errors import InvalidInput
from ..strategies import Diagonal, Kronecker, Strategy

NOISE_ONLY = "noise only: not sampling or non-response error"
"""Shown wherever an interval is shown."""

DISPLAY = "rounded for display: post-processing, not part of the release"
RELIABILITY = "by the coefficient of variation of the noise: post-processing"

GOOD, CAUTION, UNRELIABLE = "good", "use with caution", "unreliable"

# Statistics Canada's release guidelines, which much of the field follows: coefficients of
# variation up to 16.5 % without restriction, up to 33.3 % "use with caution", above that
# "too unreliable to be published".
THRESHOLDS = (0.165, 0.333)

MOST_SIMULATED = 10_000  # answers; Sidak's value is exact enough beyond, and costs nothing

_DRAWS = 20_000  # and 400 beyond the quantile where the level is high, up to
_MOST_DRAWS = 200_000
_FEWEST_DRAWS = 2_000  # fewer, and the quantile's upper limit loses what the simulation gains
_EFFORT = 2**36  # multiplications spent on one simulation: some seconds on one core
_BLOCK = 2**22  # doubles held at a time by a simulation
_CONFIDENCE = 0.999  # that the simulated quantile is not below the true one
_SAME = 1e-9  # entries of normalised rows closer than this make two answers one


def percent(level: float) -> str:
    """Return a level in words that never round it to another.

    >>> percent(0.95), percent(0.9995)
    ('95 %', '99.95 %')
    """
    return f"{100 * level:.15g} %"


def critical(level: float) -> float:
    """Return c with P(|N| <= c) = level for one standard normal N.

    >>> round(critical(0.95), 6)
    1.959964
    """
    # From the upper tail: level itself cannot tell 1 - 1e-20 from 1, but its half can be small.
    return float(-ndtri((1 - probability("level", level)) / 2))


def sidak(level: float, answers: int) -> float:
    """Return c with P(all |z_j| <= c) >= level for standard normals z, however correlated.

    Formal Guarantees:
      For jointly normal z the probability is at least the product over j, with equality when
      they are independent (Sidak 1967, Theorem 1).

    >>> round(sidak(0.95, 10), 6)
    2.799625
    """
    level, answers = probability("level", level), whole("answers", answers)
    return float(-ndtri(-np.expm1(np.log(level) / answers) / 2))


def simultaneous(level: float, noise: Strategy | ArrayLike) -> float:
    """Return the critical value at which the intervals of all answers hold together.

    Parameters
    ----------
    level
        Probability that every interval covers its true answer, such as 0.95.
    noise : Strategy, or array of shape (m, r)
        What was measured; or any factor F of the covariance of the answers, F F^T.

    Formal Guarantees:
      Under normal noise ``|answer - truth| <= value * stderr`` holds for all answers at once with
      probability at least ``level``, save with a chance of 1 in 1,000 that the simulation drew
      badly. Answers that are multiples of one another count once, those without error not at all.
      For more than 10,000 answers, and where a simulation would take more than some seconds,
      the value is Sidak's, which has no such chance.

    The value is never below ``critical(level)``, nor above ``sidak(level, answers)``. It is
    the same whenever it is computed: the simulation touches public quantities only.
    """
    single = critical(level)
    if isinstance(noise, Strategy):
        answers = int(np.count_nonzero(noise.variance > 0))
        too_many = answers > MOST_SIMULATED or _too_wide(noise)
        if isinstance(noise, Diagonal) or too_many or answers < 2:
            return sidak(level, max(answers, 1))
        factors, variance = _rebuilding(noise), noise.noise_variance
    else:
        factors = [floats("the factor", noise, ndim=2)]
        variance = np.ones(factors[0].shape[1])
    factors = [_distinct(R) for R in factors]
    answers = math.prod(map(len, factors))
    bound = sidak(level, max(answers, 1))
    wanted = min(max(_DRAWS, math.ceil(400 / (1 - level))), _MOST_DRAWS)
    draws = min(wanted, _EFFORT // max(1, _effort(factors)))
    if answers < 2 or answers > MOST_SIMULATED or draws < _FEWEST_DRAWS:
        return bound
    greatest = simulate_greatest(factors, variance, draws)
    # The number of draws below the true quantile is binomial: above this many with a chance of
    # 1 - _CONFIDENCE only, so the draw of that rank errs wide.
    rank = int(binom.ppf(_CONFIDENCE, draws, level))
    if rank >= draws:
        return bound
    return float(np.clip(np.partition(greatest, rank)[rank], single, bound))


def _too_wide(strategy: Strategy) -> bool:
    """Return whether writing the strategy out is already more than a simulation may cost."""
    return not isinstance(strategy, Kronecker) and (
        strategy.shape[0] * max(strategy.queries, strategy.shape[1]) * _FEWEST_DRAWS > _EFFORT
    )


def _rebuilding(strategy: Strategy) -> list[Floats]:
    """Return R, answers = R y, as the matrices whose Kronecker product it is."""
    parts = strategy.factors if isinstance(strategy, Kronecker) else [strategy]
    return [part.densify()._rebuilding for part in parts]


def _distinct(R: Floats) -> Floats:
    """Return the rows that are not zero and not multiples of an earlier one, at length one."""
    size = np.abs(R).max(axis=1, initial=0.0)
    R = R[size > 0] / size[size > 0, None]  # first, so that no square is lost
    R = R / np.linalg.norm(R, axis=1, keepdims=True)
    if not R.size:
        return R
    sign = np.sign(R[np.arange(len(R)), (np.abs(R) > 0.5 / math.sqrt(R.shape[1])).argmax(axis=1)])
    grid = np.rint(R * sign[:, None] / _SAME) + 0.0  # + 0.0: there are two zeros
    return R[np.sort(np.unique(grid, axis=0, return_index=True)[1])]


def _effort(factors: list[Floats]) -> int:
    """Return the multiplications that one draw takes, one axis after the other."""
    total, size = 0, math.prod(R.shape[1] for R in factors)
    for R in factors:
        total += size * len(R)
        size = size // R.shape[1] * len(R)
    return total


def simulate_greatest(factors: list[Floats], variance: Floats, draws: int) -> Floats:
    """Return draws of max_j |z_j|, shape (draws,), z the standardised errors of the answers.

    Parameters
    ----------
    factors
        Matrices whose Kronecker product is R (m, k).
    variance : shape (k,)
        Variance of each measured number.

    Public quantities in, public quantities out: the fixed seed makes a published interval
    reproducible, and no noise for a release ever comes from here.
    """
    rng = np.random.default_rng(1967)
    spread = np.sqrt(variance)
    scale = np.sqrt(_product([R**2 for R in factors], variance[:, None]))
    block = max(1, _BLOCK // max(len(variance), scale.size))
    greatest = np.empty(draws)
    for start in range(0, draws, block):
        noise = rng.standard_normal((len(variance), min(block, draws - start)))
        z = _product(factors, noise * spread[:, None]) / scale
        greatest[start : start + block] = np.abs(z).max(axis=1)
    return greatest


def _product(factors: list[Floats], X: Floats) -> Floats:
    """Return ((R_1 x R_2 x ...) X)^T, shape (n, m), for X of shape (k, n)."""
    n = X.shape[1]
    for R in factors:
        # The axis treated is first and goes last; the n columns end in front.
        X = (R @ X.reshape(R.shape[1], -1)).T
    return X.reshape(n, -1)


Kind = Literal["bounded", "complement", "everything"]
Method = Literal["fieller", "simulated"]

_SENTENCES = {
    "bounded": "{level} interval {low:.6g} to {high:.6g}",
    "complement": "no bounded interval at {level}: the denominator is not clearly different "
    "from 0, and only ratios between {excluded[0]:.6g} and {excluded[1]:.6g} are ruled out",
    "everything": "no interval at {level}: the denominator is not clearly different from 0, "
    "and no ratio is ruled out",
}


@dataclass(frozen=True)
class RatioEstimate:
    """A ratio of two released numbers, and what the noise leaves possible.

    Attributes
    ----------
    value
        a / b; NaN if b is exactly 0.
    low, high
        Ends of the interval; infinite where it has none.
    kind
        ``bounded``; ``complement``: every ratio is possible except those strictly within
        ``excluded``; ``everything``: no ratio is ruled out. The last two mean that the
        denominator is not clearly different from 0 at this level.
    level
        Probability with which the noise leaves the true ratio inside.
    method
        ``fieller`` or ``simulated``.
    excluded
        What a ``complement`` rules out.
    note
        Of which error this speaks.
    """

    value: float
    low: float
    high: float
    kind: Kind
    level: float
    method: str = "fieller"
    excluded: tuple[float, float] | None = None
    note: str = NOISE_ONLY

    def __contains__(self, ratio: float) -> bool:
        if self.excluded and self.excluded[0] < ratio < self.excluded[1]:
            return False
        return self.low <= ratio <= self.high

    def __str__(self) -> str:
        sentence = _SENTENCES[self.kind].format(
            level=percent(self.level), low=self.low, high=self.high, excluded=self.excluded
        )
        return f"{self.value:.6g} ({sentence}; {self.note})"


def ratio(
    a: float,
    b: float,
    variance_a: float,
    variance_b: float,
    covariance: float = 0.0,
    level: float = 0.95,
    *,
    method: Method = "fieller",
) -> RatioEstimate:
    """Return a / b with the ratios that the noise leaves possible.

    Parameters
    ----------
    a, b
        Released numerator and denominator.
    variance_a, variance_b, covariance
        Of their errors, from the covariance of the answers.
    level
        Coverage wanted.
    method
        ``fieller``, or ``simulated`` (``simulate_ratio``) to compare with.

    Formal Guarantees:
      Fieller (1954): theta is kept when ``|a - theta b| <= c sd(a - theta b)``, c the
      critical value. For normal errors the true ratio is kept with probability exactly
      ``level``, whatever the denominator; the price is that the set is no bounded interval when
      b is within c standard errors of 0, and ``kind`` then says what it is.

    >>> print(ratio(30, 100, 4, 9))
    0.3 (95 % interval 0.257968 to 0.344113; noise only: not sampling or non-response error)
    """
    a, b, level = real("a", a), real("b", b), probability("level", level)
    va, vb, vab = _second_moments(variance_a, variance_b, covariance)
    if b == 0 and vb == 0:
        raise InvalidInput("the denominator is 0 without error: a ratio to it is not defined.")
    # In units of the greater of size and spread: no square overflows, and the result is theirs.
    ua, ub = max(abs(a), math.sqrt(va)) or 1.0, max(abs(b), math.sqrt(vb))
    unit = ua / ub
    args = (a / ua, b / ub, va / ua**2, vb / ub**2, vab / (ua * ub), level)
    if method == "fieller":
        kind, ends = _fieller(*args)
    elif method == "simulated":
        kind, ends = simulate_ratio(*args)
    else:
        raise InvalidInput(f"method must be 'fieller' or 'simulated', got {method!r}.")
    low, high = unit * ends[0], unit * ends[1]
    value = a / b if b else math.nan
    if kind == "complement":
        return RatioEstimate(value, -math.inf, math.inf, kind, level, method, (low, high))
    return RatioEstimate(value, low, high, kind, level, method)


def _second_moments(va: float, vb: float, vab: float) -> tuple[float, float, float]:
    va, vb = real("variance_a", va), real("variance_b", vb)
    vab = real("covariance", vab)
    if not min(va, vb) >= 0:
        raise InvalidInput(f"a variance must not be negative, got {min(va, vb):g}.")
    most = math.sqrt(va) * math.sqrt(vb)
    if not abs(vab) <= most * (1 + 1e-9):
        raise InvalidInput(
            f"the covariance must be at most sqrt(variance_a variance_b) = {most:g}, got {vab:g}."
        )
    return va, vb, min(max(vab, -most), most)


def _fieller(
    a: float, b: float, va: float, vb: float, vab: float, level: float
) -> tuple[Kind, tuple[float, float]]:
    """Return the kind and ends of {theta: (a - theta b)^2 <= c^2 var(a - theta b)}.

    That is P theta^2 - 2 Q theta + R <= 0, with P and R factored and Q^2 - P R multiplied out,
    because the differences of squares cancel.
    """
    c = critical(level)
    P = (abs(b) - c * math.sqrt(vb)) * (abs(b) + c * math.sqrt(vb))
    Q = a * b - c**2 * vab
    R = (abs(a) - c * math.sqrt(va)) * (abs(a) + c * math.sqrt(va))
    spread = (a**2 * vb - 2 * a * b * vab + b**2 * va) - c**2 * (va * vb - vab**2)
    if P > 0:
        root = c * math.sqrt(max(spread, 0.0))
        return "bounded", _roots(P, Q, R, root)
    if spread <= 0 or P == Q == 0:
        return "everything", (-math.inf, math.inf)
    if P < 0:
        return "complement", _roots(P, Q, R, c * math.sqrt(spread))
    end = R / (2 * Q)  # b is c standard errors from 0 to the last bit: one end is infinite
    return "complement", (-math.inf, end) if Q > 0 else (end, math.inf)


def _roots(P: float, Q: float, R: float, root: float) -> tuple[float, float]:
    """Return the roots of P theta^2 - 2 Q theta + R in order, without cancellation."""
    q = Q + math.copysign(root, Q)
    one = q / P
    two = R / q if q else one
    return min(one, two), max(one, two)


def simulate_ratio(
    a: float, b: float, va: float, vb: float, vab: float, level: float, draws: int = 200_000
) -> tuple[Kind, tuple[float, float]]:
    """Return the middle ``level`` of simulated ratios (a + e_a) / (b + e_b): kind and ends.

    The usual Monte Carlo interval. Where the denominator is many standard errors from 0 it
    agrees with Fieller's; nearer, simulated denominators change sign and it claims less; within c
    standard errors of 0 it gives none. The ranks taken err wide, and the seed is fixed: only
    public quantities come in, and no noise for a release ever comes from here.
    """
    if not abs(b) > critical(level) * math.sqrt(vb):
        return "everything", (-math.inf, math.inf)
    rng = np.random.default_rng(1954)
    first, second = rng.standard_normal((2, draws))
    numerator = a + math.sqrt(va) * first
    slope = vab / math.sqrt(va) if va else 0.0
    denominator = b + slope * first + math.sqrt(max(vb - slope**2, 0.0)) * second
    rank = int(binom.ppf(1 - _CONFIDENCE, draws, (1 - level) / 2))
    ranks = [max(rank - 1, 0), min(draws - rank, draws - 1)]
    ordered = np.partition(numerator / denominator, ranks)
    return "bounded", (float(ordered[ranks[0]]), float(ordered[ranks[1]]))


def display(values: ArrayLike, stderr: ArrayLike, *, digits: int = 2) -> Floats:
    """Return values rounded to the decimal place that their errors support.

    Parameters
    ----------
    values, stderr : shape (n,), or one stderr for all
        Released values and their standard errors.
    digits
        Significant digits of the standard error that are kept: 2, as the Guide to the Expression
        of Uncertainty in Measurement has it (7.2.6). The rounding then adds less than 0.05 % to
        the standard error; 1 adds up to 4.1 %.

    Post-processing: the label is ``DISPLAY``. Sums of rounded values may differ from the
    rounded sum; compute with the released values.

    >>> display([1234.567, 98.7654], [21.0, 0.5])
    array([1235. ,   98.77])
    """
    values, stderr = _aligned(values, stderr)
    digits = whole("digits", digits)
    rounded = [
        # One rounding in decimal, to the double nearest that decimal; + 0.0: there are two zeros.
        round(value, digits - 1 - _decade(error)) + 0.0 if error else value
        for value, error in zip(values.tolist(), stderr.tolist(), strict=True)
    ]
    return np.array(rounded, dtype=np.float64)


def _decade(x: float) -> int:
    """Return floor(log10 x), from 17 digits: log10 itself rounds 0.09999999999999999 to -1."""
    return int(f"{x:.16e}".partition("e")[2])


def reliability(
    values: ArrayLike, stderr: ArrayLike, thresholds: tuple[float, float] = THRESHOLDS
) -> tuple[str, ...]:
    """Return "good", "use with caution" or "unreliable" for each value.

    Parameters
    ----------
    values, stderr : shape (n,), or one stderr for all
        Released values and their standard errors.
    thresholds
        Greatest coefficients of variation, stderr / |value|, of "good" and of "use with caution".

    Post-processing of noisy values: the label is ``RELIABILITY``, and a flag may itself be wrong
    by chance near a threshold. A value known without error is good; a value of 0 with one is not.

    >>> reliability([1000.0, 100.0, 40.0], 20.0)
    ('good', 'use with caution', 'unreliable')
    """
    values, stderr = _aligned(values, stderr)
    good, caution = (real("a threshold", t) for t in thresholds)
    if not 0 <= good <= caution:
        raise InvalidInput(
            f"thresholds must be two coefficients of variation in order, got {good:g}, {caution:g}."
        )
    return tuple(
        GOOD if error <= good * size else CAUTION if error <= caution * size else UNRELIABLE
        for size, error in zip(np.abs(values).tolist(), stderr.tolist(), strict=True)
    )


def _aligned(values: ArrayLike, stderr: ArrayLike) -> tuple[Floats, Floats]:
    values, stderr = floats("values", values, ndim=1), floats("stderr", stderr)
    if stderr.ndim == 0:
        stderr = np.full(values.shape, float(stderr))
    if stderr.shape != values.shape:
        raise InvalidInput(
            f"stderr must be one number or one for each of {len(values)} values, "
            f"got shape {stderr.shape}."
        )
    if not np.all(stderr >= 0):
        raise InvalidInput(f"a standard error must not be negative, got {stderr.min():g}.")
    return values, stderr
