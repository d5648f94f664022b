"""What is measured along one attribute: integer rows that sum to zero, and how they are undone.

The total of an attribute is measured elsewhere; a contrast measures what its values say beyond
it. Products of contrasts over a set of attributes are the residual of that set.

    Helmert(n)      all of it: rows (1, ..., 1, -j, 0, ...), j = 1 .. n-1
    Written(rows)   whatever a one-dimensional design chose, written out
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, floats, frozen, whole
from ..errors import InvalidInput, NotSpanned
from ..privacy import Profile
from .exact import Integers, integers, product, squares
from .sigma import scales, weights

# A row of a workload may stick out of what is measured by this share of its greatest entry.
SPAN = 1e-9

# Bits of an entry of a contrast's profile: rounded up, it loses 2^-60.
_BITS = 60


class Contrast(ABC):
    """k integer rows C over n values of an attribute, each with a scale, and an inverse of them.

    Attributes
    ----------
    sigma : shape (k,)
        Scale of each row: doubles, taken as the dyadic rationals they are. A residual's rows
        have the products of these, times one number a residual.
    """

    sigma: Floats

    whole: bool = False
    """Whether the total is measured along with the rest, in every residual, and not apart."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many values the attribute has: n."""

    @property
    def rows(self) -> int:
        """How many rows are measured: k."""
        return len(self.sigma)

    @property
    @abstractmethod
    def gain(self) -> int:
        """The greatest sum of absolute values of a row."""

    @property
    @abstractmethod
    def profile(self) -> Profile:
        """sum_j C_jx^2 / sigma_j^2 for each value x, (n,), rounded up."""

    @abstractmethod
    def apply(self, X: Integers) -> Integers:
        """Return C X along the first axis, exactly: (n, ...) -> (k, ...)."""

    @abstractmethod
    def undo(self, Y: Floats) -> Floats:
        """Return R Y along the first axis, (k, ...) -> (n, ...), C R C = C, 1^T R = 0."""

    @abstractmethod
    def written(self) -> Integers:
        """Return C, shape (k, n)."""

    @cached_property
    def greatest(self) -> Fraction:
        """The greatest entry of the profile."""
        return self.profile.greatest

    @cached_property
    def steady(self) -> bool:
        """Whether every value has the same profile."""
        units = self.profile.units
        return bool(np.all(units == units[0]))

    @cached_property
    def spread(self) -> Floats:
        """R diag(sigma), shape (n, k): the covariance of the values' errors is this squared."""
        return frozen(self.undo(np.eye(self.rows)) * self.sigma)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the values' errors at unit scale, (n, n)."""
        return frozen(self.spread @ self.spread.T)

    @cached_property
    def negative(self) -> float:
        """How negative two values' inner product can be, as a share of ``greatest``: rounded up."""
        C = np.asarray(self.written(), dtype=np.float64) / self.sigma[:, None]
        inner = C.T @ C
        least = float(inner.min())
        return max(0.0, -least / float(self.greatest)) * (1 + 1e-12) + 1e-12

    def forms(self, W: Floats) -> Floats:
        """Return the variance of each row of W (r, n) at unit scale, (r,).

        Without its mean, which is measured apart, unless the contrasts are ``whole``.
        """
        return np.asarray(((self._told(W) @ self.spread) ** 2).sum(axis=1))

    def _told(self, W: Floats) -> Floats:
        return W if self.whole else W - W.mean(axis=1, keepdims=True)

    def check_spans(self, W: Floats) -> None:
        """Refuse a workload (r, n) with a part that is not measured."""
        if self.rows == self.cells - (not self.whole):
            return
        contrast = self._told(W)
        C = np.asarray(self.written(), dtype=np.float64)
        outside = np.abs(contrast - (contrast @ self.spread / self.sigma) @ C).max(axis=1)
        if np.any(outside > SPAN * np.abs(W).max(axis=1)):
            raise NotSpanned("the question tells apart values of an attribute that were not.")


@dataclass(frozen=True, eq=False)
class Helmert(Contrast):
    """All contrasts of n values: row j is j ones and then -j, of variance j (j + 1).

    C^T diag(1 / (j (j + 1))) C = I - J/n: with these scales every value costs 1 - 1/n, and the
    errors of the values have covariance I - J/n.

    Examples
    --------
    >>> Helmert(3).written().tolist()
    [[1, -1, 0], [1, 1, -2]]
    """

    n: int

    def __post_init__(self) -> None:
        whole("the number of values of an attribute", self.n, least=2)

    @property
    def cells(self) -> int:
        """How many values there are."""
        return self.n

    @cached_property
    def _steps(self) -> NDArray[np.int64]:
        return np.arange(1, self.n, dtype=np.int64)

    @cached_property
    def sigma(self) -> Floats:  # type: ignore[override]
        """sqrt(j (j + 1)), rounded up: shape (n - 1,)."""
        square = self._steps * (self._steps + 1)
        root = np.sqrt(square.astype(np.float64))
        return frozen(np.nextafter(root, np.inf))

    @property
    def gain(self) -> int:
        """2 (n - 1), of the last row."""
        return 2 * (self.n - 1)

    @cached_property
    def profile(self) -> Profile:
        """1 - 1/n for every value: each sigma is at or above sqrt(j (j + 1))."""
        unit = -(-((self.n - 1) << _BITS) // self.n)
        return Profile(np.full(self.n, unit, dtype=object), _BITS)

    @property
    def greatest(self) -> Fraction:
        """1 - 1/n."""
        return Fraction(self.n - 1, self.n)

    @property
    def steady(self) -> bool:
        """Every value costs the same."""
        return True

    @property
    def negative(self) -> float:
        """1 / (n - 1)."""
        return float(np.nextafter(1 / (self.n - 1), 1.0)) if self.n > 2 else 1.0

    @cached_property
    def covariance(self) -> Floats:
        """I - J/n."""
        return frozen(np.eye(self.n) - 1 / self.n)

    def forms(self, W: Floats) -> Floats:
        """Return the squared length of each row without its mean."""
        return np.asarray(((W - W.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))

    def apply(self, X: Integers) -> Integers:
        """Return sums of the first j values minus j times the next, from running sums."""
        steps = self._steps.reshape(-1, *[1] * (X.ndim - 1))
        if X.dtype == object:
            steps = steps.astype(object)
        return np.asarray(np.cumsum(X[:-1], axis=0, dtype=X.dtype) - steps * X[1:])

    def undo(self, Y: Floats) -> Floats:
        """Return C^T diag(1 / (j (j + 1))) Y, from running sums from the end."""
        steps = self._steps.astype(np.float64).reshape(-1, *[1] * (Y.ndim - 1))
        each = Y / (steps * (steps + 1))
        found = np.zeros((self.n, *Y.shape[1:]))
        found[:-1] = np.cumsum(each[::-1], axis=0)[::-1]
        found[1:] -= steps * each
        return found

    def written(self) -> Integers:
        """Return the rows, (n - 1, n)."""
        return self.apply(np.eye(self.n, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Written(Contrast):
    """Contrasts that are written out: independent integer rows that each sum to zero.

    Parameters
    ----------
    matrix : integers, shape (k, n)
        C.
    sigma : shape (k,) or one number
        Scale of each row, at least 1.
    whole
        The rows need not sum to zero: they measure the total too, and are a factor of every
        residual.
    """

    matrix: Integers
    sigma: Floats
    whole: bool = False

    def __init__(self, matrix: ArrayLike, sigma: ArrayLike, *, whole: bool = False) -> None:
        rows = integers("the contrasts", matrix)
        object.__setattr__(self, "whole", bool(whole))
        if rows.ndim != 2 or 0 in rows.shape or rows.shape[0] > rows.shape[1] - (not whole):
            raise InvalidInput(f"contrasts are fewer rows than values, got shape {rows.shape}.")
        if not whole and np.any(rows.astype(object).sum(axis=1) != 0):
            raise InvalidInput("the rows of a contrast must each sum to zero.")
        rows.setflags(write=False)
        object.__setattr__(self, "matrix", rows)
        object.__setattr__(self, "sigma", scales(floats("sigma", sigma), len(rows)))
        if np.linalg.matrix_rank(self._weighted, tol=1e-11 * np.abs(self._weighted).max()) < len(
            rows
        ):
            raise InvalidInput("the rows of a contrast must not repeat each other.")

    @property
    def cells(self) -> int:
        """How many values there are."""
        return int(self.matrix.shape[1])

    @cached_property
    def gain(self) -> int:
        """The greatest sum of absolute values of a row."""
        return int(np.abs(self.matrix.astype(object)).sum(axis=1).max())

    @property
    def _weighted(self) -> Floats:
        return np.asarray(self.matrix, dtype=np.float64) / self.sigma[:, None]

    @cached_property
    def profile(self) -> Profile:
        """From the integers, exactly, but for each 1 / sigma^2, which is rounded up."""
        units, exponent = weights(self.sigma)
        total: Any = np.zeros(self.cells, dtype=object)
        for sigma in np.unique(self.sigma):
            chosen = np.flatnonzero(self.sigma == sigma)
            total = total + squares(self.matrix[chosen]).astype(object) * units[chosen[0]]
        return Profile(total, exponent)

    @cached_property
    def _inverse(self) -> Floats:
        return np.linalg.pinv(self._weighted, rcond=1e-13) / self.sigma

    def apply(self, X: Integers) -> Integers:
        """Return C X."""
        flat = product(self.matrix, X.reshape(len(X), -1))
        return np.asarray(flat.reshape(self.rows, *X.shape[1:]))

    def undo(self, Y: Floats) -> Floats:
        """Return the least-squares values, of sum zero unless ``whole``."""
        return np.asarray((self._inverse @ Y.reshape(len(Y), -1)).reshape(-1, *Y.shape[1:]))

    def written(self) -> Integers:
        """Return the rows."""
        return self.matrix
