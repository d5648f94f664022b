"""Every cell measured on its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, floats, whole
from ..errors import InvalidInput
from ..privacy import Profile
from .changes import Changes, check_size
from .dense import Dense
from .exact import Integers, shifted
from .sigma import PREFERRED, refined, scaled, scales, weights
from .strategy import Strategy, doubles


@dataclass(frozen=True, eq=False)
class Diagonal(Strategy):
    """Each of d cells with its own sigma; the answers are the cells.

    Parameters
    ----------
    sigma : shape (d,)
        Noise scale of each row, at least 1.
    changes
        What one row can contribute, where that is more than one cell.
    bits
        Each cell is measured 2^bits times over, A~ = 2^bits I, so that noise below one unit of
        the data is still well above the integers' grid.

    Examples
    --------
    >>> cells = Diagonal([64.0, 128.0])
    >>> cells.rebuild([3, 4]), cells.cost().mu
    (array([3., 4.]), 0.015625)
    """

    sigma: Floats
    changes: Changes | None = None
    bits: int = 0

    def __post_init__(self) -> None:
        size = np.size(self.sigma)
        if not size:
            raise InvalidInput("a diagonal strategy needs at least one cell.")
        object.__setattr__(self, "sigma", scales(np.ravel(self.sigma), size))
        object.__setattr__(self, "bits", whole("bits", self.bits, least=0))
        check_size(self.changes, size)

    @classmethod
    def of(cls, sigma: ArrayLike, changes: Changes | None = None) -> Diagonal:
        """Return noise of these scales, rounded up, however far below one unit of the data."""
        wanted = floats("sigma", sigma, ndim=1)
        if not np.all(wanted > 0):
            raise InvalidInput("noise needs scales above 0: a coordinate without is not private.")
        finest = min(1.0, float(wanted.min()) / PREFERRED)
        bits = max(0, -math.frexp(finest)[1] + 1) if finest < 1 else 0
        return cls(scaled(np.ldexp(wanted, bits), 1.0, up=True), changes, bits)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows measured and cells: (d, d)."""
        return len(self.sigma), len(self.sigma)

    @property
    def queries(self) -> int:
        """How many questions are answered: d."""
        return len(self.sigma)

    def apply(self, x: ArrayLike) -> Integers:
        """Return 2^bits x, checked: shape (d,)."""
        return self._apply_to(self._data(x))

    def _apply_to(self, X: Integers) -> Integers:
        return shifted(X, self.bits)

    def rebuild(self, y: ArrayLike) -> Floats:
        """Return y / 2^bits, shape (d,): each the nearest double."""
        return doubles(self._measured(y), self.bits)

    def own_weights(self) -> tuple[NDArray[np.object_], int]:
        """Return 4^bits / sigma^2 of each cell as integers over 2^exponent, rounded up."""
        units, exponent = weights(self.sigma)
        return units << (2 * self.bits) if self.bits else units, exponent

    @cached_property
    def _profile(self) -> Profile:
        """4^bits / sigma_i^2 for each cell, rounded up."""
        return Profile(*self.own_weights())

    @cached_property
    def _replaced(self) -> Fraction:
        # Two cells share no row: ||a_i - a_j||^2 = ||a_i||^2 + ||a_j||^2 at the two greatest.
        profile = self.profile()
        top = sorted(profile.units)[-2:] if len(profile) > 1 else [0]
        return Fraction(sum(top), 1 << profile.exponent)

    def covariance(self) -> Floats:
        """Return the covariance of the cells, shape (d, d): diagonal."""
        return np.diag(self._variance())

    def _variance(self) -> Floats:
        return np.ldexp(self.noise_variance, -2 * self.bits)

    def densify(self) -> Dense:
        """Return the identity written out."""
        identity = np.eye(len(self.sigma))
        rows = shifted(identity.astype(np.int64), self.bits)
        return Dense(rows, self.sigma, identity, changes=self.changes)

    def scaled(self, factor: float, *, up: bool = True) -> Diagonal:
        """Return the same shape with every sigma multiplied by ``factor``."""
        sigma, finer = refined(scaled(self.sigma, factor, up=up), 1 << self.bits)
        return replace(self, sigma=sigma, bits=self.bits + finer)

    def _approximate_to(self, R: Floats) -> Floats:
        return np.ldexp(R, -self.bits)

    def _ask_to(self, X: Integers) -> Integers:
        return X

    @cached_property
    def _asked_bits(self) -> NDArray[np.int64]:
        return np.zeros(len(self.sigma), dtype=np.int64)

    def _rebuilt_variance(self, variances: Floats) -> Floats:
        return np.ldexp(variances, -2 * self.bits)

    def _gross(self) -> float:
        return 1.0
