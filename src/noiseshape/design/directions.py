"""Directions of noise: the standard basis, any orthonormal matrix, or what a paid release tells.

Directions learnt from the data are paid for: ``learn_directions`` takes a share of epsilon and of
delta, 20 % as in MVG's experiments, for a noisy second moment, and its eigenvectors and eigenvalues
are then free to use, as anything computed from a release is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from .._arb import fraction_down
from .._checks import Floats, exact, floats, frozen, real, whole
from ..errors import InvalidInput
from ..privacy import Budget

ORTHONORMAL = 1e-8


def standard(size: int) -> Floats:
    """Return the standard basis: each entry of the mode is a direction."""
    return np.eye(whole("size", size))


def orthonormal(W: ArrayLike, size: int) -> Floats:
    """Return directions in columns, (size, size), or refuse what is not orthonormal.

    Rounding is taken out: what is returned is the nearest orthonormal matrix.
    """
    given = floats("directions", W, ndim=2)
    if given.shape != (size, size):
        raise InvalidInput(
            f"directions need {size} columns of {size} numbers, one column a direction; "
            f"got shape {given.shape}."
        )
    off = float(np.abs(given.T @ given - np.eye(size)).max())
    if not off <= ORTHONORMAL:
        raise InvalidInput(
            f"directions must be orthonormal: W^T W departs from the identity by {off:.1e}; "
            "use numpy.linalg.qr(W)[0]."
        )
    U, _, V = np.linalg.svd(given)
    return frozen(np.asarray(U @ V))


@dataclass(frozen=True, eq=False)
class Learnt:
    """Directions and a spectrum from a released matrix: nothing in it is private.

    Attributes
    ----------
    directions : shape (k, k)
        Eigenvectors in columns, the greatest first.
    spectrum : shape (k,)
        Eigenvalues, decreasing; what noise made negative is 0.
    """

    directions: Floats
    spectrum: Floats

    @staticmethod
    def of(released: ArrayLike) -> Learnt:
        """Return the directions of a released symmetric matrix: private PCA, after the fact.

        For a released matrix that is not square, those of its columns: the right singular vectors.
        """
        M = floats("the released matrix", released, ndim=2)
        if M.shape[0] != M.shape[1] or not np.allclose(M, M.T, rtol=1e-9, atol=0):
            _, values, V = np.linalg.svd(M, full_matrices=True)
            spectrum = np.zeros(M.shape[1])
            spectrum[: len(values)] = values**2
            return Learnt(V.T, spectrum)
        values, vectors = np.linalg.eigh((M + M.T) / 2)
        return Learnt(vectors[:, ::-1], np.clip(values[::-1], 0, None))


def shares(epsilon: float, delta: float, share: float = 0.2) -> tuple[Budget, Budget]:
    """Return what directions may cost, and what is left: shares of epsilon and delta.

    Formal Guarantees:
      The two budgets' mu^2 add to at most that of (epsilon, delta): what both allow together is
      (epsilon, delta)-differentially private, and a ledger of that budget pays for both.

    Examples
    --------
    >>> first, rest = shares(1.0, 1e-5)
    >>> first, rest
    (Budget(epsilon=0.2, delta=2e-06: mu=0.0549173), Budget(epsilon=0.8, delta=8e-06: mu=0.215704))
    """
    part = exact("share", share)
    if not 0 < part < 1:
        raise InvalidInput(f"share must be above 0 and below 1, got {real('share', share):g}.")
    eps, d = exact("epsilon", epsilon), exact("delta", delta)
    if d == 0:
        raise InvalidInput("directions from a private release need delta above 0.")

    def budget(of: Fraction) -> Budget:
        return Budget(epsilon=fraction_down(eps * of), delta=fraction_down(d * of))

    return budget(part), budget(1 - part)
