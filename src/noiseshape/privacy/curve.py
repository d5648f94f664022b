r"""The privacy curve of Gaussian noise, in both directions, never promising too much.

A release whose noise has whitening operator A costs ``mu = sup ||A (f(x) - f(x'))||`` over
neighbours, and satisfies (epsilon, delta)-differential privacy if and only if

    delta >= Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)            (curve)

(Balle and Wang 2018, Theorem 8; IMGM's Lemma 3, where the root in mu is called B; equation 6
of Fitness-for-use). The right side rises with mu and falls with epsilon, so each of the three
numbers follows from the other two.

Formal Guarantees:
  Every result is computed in interval arithmetic and rounded toward privacy: ``delta`` and
  ``epsilon`` are never below the truth, ``mu`` never above it, and each is within one unit
  in the last place of it. No floating-point formula has to be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from .._arb import double_down, double_up, fraction_down, fraction_up, precision
from .._checks import is_masked
from ..errors import InvalidInput

Result = float | NDArray[np.float64]

# Far beyond any use (design: mu from 1e-12 to 1e3), and as far as the searches have been tried.
MOST_EPSILON = 1e30
_MOST = {"epsilon": MOST_EPSILON, "mu": 1e16}

# Relative accuracy asked of delta before it is rounded to a double (which holds 53 bits), and
# the precision where the search gives up; the widest need seen, mu = 1e-300, takes 2,200 bits.
_ACCURATE_BITS = 80
_MOST_BITS = 1 << 16


def delta(epsilon: ArrayLike, mu: ArrayLike) -> Result:
    """Return the least delta for which a release of cost ``mu`` is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, mu
        At least 0, at most 1e30 and 1e16; scalars or arrays that broadcast. What a double
        cannot hold (a Fraction, say) is rounded toward privacy.

    Returns
    -------
    float or array
        At or above the true value by less than one unit in the last place. A delta below
        the smallest float is rounded up to it: ``log_delta`` tells it.

    Examples
    --------
    >>> delta(1.0, 0.26805112321129422) <= 1e-5
    True
    >>> delta(0.0, 0.0)
    0.0
    """
    return _elementwise(_delta, epsilon=epsilon, mu=mu)


def log_delta(epsilon: ArrayLike, mu: ArrayLike) -> Result:
    """Return the natural logarithm of ``delta(epsilon, mu)``, rounded up; -inf where mu is 0."""
    return _elementwise(_log_delta, epsilon=epsilon, mu=mu)


def epsilon(delta: ArrayLike, mu: ArrayLike) -> Result:
    """Return the least epsilon for which a release of cost ``mu`` is (epsilon, delta)-DP.

    Zero where ``delta`` alone covers the release, infinite where ``delta`` is 0 and mu is not.
    The least double that interval arithmetic certifies.
    """
    return _elementwise(_epsilon, delta=delta, mu=mu)


def mu(epsilon: ArrayLike, delta: ArrayLike) -> Result:
    """Return the greatest cost that is (epsilon, delta)-DP: the privacy bound B of IMGM.

    The greatest double that interval arithmetic certifies; 0 where ``delta`` is 0.
    """
    return _elementwise(_mu, epsilon=epsilon, delta=delta)


def _elementwise(function: Callable[[float, float], float], **arguments: ArrayLike) -> Result:
    names, values = list(arguments), []
    for name, value in arguments.items():
        array = _doubles(name, value)
        inside = (array >= 0) & ((array < 1) if name == "delta" else (array <= _MOST[name]))
        if not np.all(inside):
            range_ = "below 1" if name == "delta" else f"at most {_MOST[name]:g}"
            worst = float(array[~inside].flat[0])
            raise InvalidInput(f"{name} must be at least 0 and {range_}, got {worst:g}.")
        values.append(array)
    try:
        first, second = np.broadcast_arrays(*values)
    except ValueError:
        raise InvalidInput(
            f"{names[0]} and {names[1]} must have shapes that broadcast, "
            f"got {values[0].shape} and {values[1].shape}."
        ) from None
    pairs = zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
    result = np.array([function(a, b) for a, b in pairs]).reshape(first.shape)
    return float(result) if result.ndim == 0 else result


def _doubles(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return what was given as doubles: epsilon and delta rounded down, mu up."""
    try:
        given = np.asarray(value)
        if is_masked(value) or given.dtype.kind not in "iufO":
            raise TypeError
        if given.dtype.kind == "f" and given.dtype.itemsize <= 8:
            return given.astype(np.float64)
        toward = fraction_up if name == "mu" else fraction_down
        exact = [toward(Fraction(*each.as_integer_ratio())) for each in given.ravel().tolist()]
        return np.array(exact, dtype=np.float64).reshape(given.shape)
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a real number or an array of them.") from None


def _curve(eps: Any, mu: Any) -> Any:
    """Return an arb that holds delta, at the current precision; ``eps`` and ``mu`` are arbs."""
    h, t = mu / 2, eps / mu
    return upper_tail(t - h) - eps.exp() * upper_tail(t + h)


def _sharp(eps: float, mu: float) -> Any:
    """Return an arb that holds delta to ``_ACCURATE_BITS``."""
    return sharp(lambda: _curve(arb(eps), arb(mu)))


def sharp(compute: Callable[[], Any]) -> Any:
    """Return the arb that is computed, at a precision where it has ``_ACCURATE_BITS``.

    The two terms of the curve cancel (by a factor mu for small mu, mu / t for large t =
    eps / mu), so the precision grows until what is left is sharp.
    """
    bits = 192
    while bits <= _MOST_BITS:
        with precision(bits):
            value = compute()
            if value.rel_accuracy_bits() >= _ACCURATE_BITS:
                return value
        bits *= 2
    raise ArithmeticError(f"the privacy curve is not sharp at {_MOST_BITS} bits")


def _delta(eps: float, mu: float) -> float:
    return 0.0 if mu == 0 else min(1.0, double_up(_sharp(eps, mu)))


def _log_delta(eps: float, mu: float) -> float:
    if mu == 0:
        return -math.inf
    value = _sharp(eps, mu)
    with precision(192):
        return min(0.0, double_up(value.log()))


def _mu(eps: float, delta: float) -> float:
    if delta == 0:
        return 0.0
    with precision(192):
        e, d = arb(eps), arb(delta)
        # Two lower bounds of the root: delta <= Phi(h - t), and delta(eps) <= delta(0). In
        # (log mu, log delta) the curve is increasing and concave, so that Newton's steps
        # from the left never pass the root.
        z = _upper_quantile(d)
        steep = 2 * e / ((z * z + 2 * e).sqrt() + z) if z > 0 else (z * z + 2 * e).sqrt() - z
        flat = 2 * arb(2).sqrt() * d.erfinv()
        start = max(float(steep.mid()), float(flat.mid()))

    def step(x: float) -> tuple[Any, Any]:
        value = _sharp(eps, x)
        with precision(192):
            m = arb(x)
            slope = m * _density(m / 2 - arb(eps) / m) / value  # d log delta / d log mu
            return (value / arb(delta)).log(), slope

    root = _newton(step, start, logarithmic=True)
    guess = double_down(root)
    while not _sharp(eps, guess) <= arb(delta):  # the certificate: certainly not above
        guess = math.nextafter(guess, 0.0)
    return guess


def _epsilon(delta: float, mu: float) -> float:
    if mu == 0 or (delta > 0 and bool(_sharp(0.0, mu) <= arb(delta))):
        return 0.0
    if delta == 0:
        return math.inf
    with precision(192):
        m = arb(mu)
        # delta <= Phi(h - t) gives an upper bound of the root; log delta is decreasing and
        # concave in epsilon, so that Newton's steps from the right never pass the root.
        start = max(0.0, float((m * (m / 2 + _upper_quantile(arb(delta)))).mid()))

    def step(x: float) -> tuple[Any, Any]:
        value = _sharp(x, mu)
        with precision(192):
            e, m = arb(x), arb(mu)
            slope = -e.exp() * upper_tail(e / m + m / 2) / value  # d log delta / d epsilon
            return (value / arb(delta)).log(), slope

    root = _newton(step, start, logarithmic=False)
    guess = max(0.0, double_up(root))
    while not _sharp(guess, mu) <= arb(delta):
        guess = math.nextafter(guess, math.inf)
    return guess


def _newton(step: Callable[[float], tuple[Any, Any]], x: float, *, logarithmic: bool) -> Any:
    """Return an arb next to the root, from the double ``x`` on the side where steps are safe.

    The result is not certified: its callers check the double that they return.
    """
    for _ in range(200):
        value, slope = step(x)
        with precision(192):
            change = -(value / slope).mid()
            root = arb(x) * change.exp() if logarithmic else arb(x) + change
            new = max(0.0, float(root.mid()))
            if abs(new - x) <= 1e-13 * abs(x):
                # The next error is the square of this one: far below a unit in the last place.
                return root.mid()
        x = new
    raise ArithmeticError("the search on the privacy curve did not settle")


def _density(u: Any) -> Any:
    return (-u * u / 2).exp() / (2 * arb.pi()).sqrt()


def upper_tail(u: Any) -> Any:
    """Return Q(u) = P(N > u)."""
    if u < 8:
        return (u / arb(2).sqrt()).erfc() / 2
    # Further out arb's erfc of a ball grows too wide (useless from 1e6); Mills' ratio does not:
    # Q(u) / phi(u) = U(1/2, 1/2, u^2/2) / sqrt 2 (DLMF 13.6.8).
    half = arb(1) / 2
    return _density(u) * (u * u / 2).hypgeom_u(half, half) / arb(2).sqrt()


def _upper_quantile(p: Any) -> Any:
    """Return z with Q(z) = p for an arb 0 < p < 1: negative above one half."""
    return arb(2).sqrt() * (2 * p).erfcinv().mid()
