"""Every cell measured on its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats
from ..errors import InvalidInput
from ..privacy import Profile
from .changes import Changes, check_size
from .dense import Dense
from .exact import Integers
from .sigma import scaled, scales, weights
from .strategy import Strategy


@dataclass(frozen=True, eq=False)
class Diagonal(Strategy):
    """Each of d cells with its own sigma; the answers are the cells.

    Parameters
    ----------
    sigma : shape (d,)
        Noise scale of each cell, at least 1.
    changes
        What one row can contribute, where that is more than one cell.

    Examples
    --------
    >>> cells = Diagonal([64.0, 128.0])
    >>> cells.rebuild([3, 4]), cells.cost().mu
    (array([3., 4.]), 0.015625)
    """

    sigma: Floats
    changes: Changes | None = None

    def __post_init__(self) -> None:
        size = np.size(self.sigma)
        if not size:
            raise InvalidInput("a diagonal strategy needs at least one cell.")
        object.__setattr__(self, "sigma", scales(np.ravel(self.sigma), size))
        check_size(self.changes, size)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows measured and cells: (d, d)."""
        return len(self.sigma), len(self.sigma)

    @property
    def queries(self) -> int:
        """How many questions are answered: d."""
        return len(self.sigma)

    def apply(self, x: ArrayLike) -> Integers:
        """Return x itself, checked: shape (d,)."""
        return self._data(x)

    @cached_property
    def _profile(self) -> Profile:
        """1 / sigma_i^2 for each cell, rounded up."""
        return Profile(*weights(self.sigma))

    @cached_property
    def _replaced(self) -> Fraction:
        # Two cells share no row: ||a_i - a_j||^2 = ||a_i||^2 + ||a_j||^2 at the two greatest.
        profile = self.profile()
        top = sorted(profile.units)[-2:] if len(profile) > 1 else [0]
        return Fraction(sum(top), 1 << profile.exponent)

    def covariance(self) -> Floats:
        """Return the covariance of the cells, shape (d, d): diagonal."""
        return np.diag(self.noise_variance)

    def _variance(self) -> Floats:
        return self.noise_variance

    def densify(self) -> Dense:
        """Return the identity written out."""
        identity = np.eye(len(self.sigma))
        return Dense(identity.astype(np.int64), self.sigma, identity, changes=self.changes)

    def scaled(self, factor: float, *, up: bool = True) -> Diagonal:
        """Return the same shape with every sigma multiplied by ``factor``."""
        return replace(self, sigma=scaled(self.sigma, factor, up=up))

    def _approximate(self, r: Floats) -> Floats:
        return r

    def _ask(self, X: Integers) -> tuple[Integers, NDArray[np.int64]]:
        return X, np.zeros(len(X), dtype=np.int64)

    def _gross(self) -> float:
        return 1.0
