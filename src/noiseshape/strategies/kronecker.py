"""Products of strategies, one for each attribute, never written out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats
from ..errors import InvalidInput
from ..privacy import Profile
from .changes import Changes, check_size
from .dense import Dense
from .diagonal import Diagonal
from .exact import Integers, integers
from .sigma import outer_up
from .strategy import PAIRS, Strategy

if TYPE_CHECKING:
    from ..privacy.people import Neighbours


@dataclass(frozen=True, eq=False, init=False)
class Kronecker(Strategy):
    """A = A_1 x A_2 x ..., answering W_1 x W_2 x ... over the product of the cells.

    Parameters
    ----------
    factors
        Dense or diagonal strategies, in the order of the attributes (the last varies fastest).
        What one row can add is the product of what their reaches say.
    changes
        What one row can contribute, where that is anything else: stated for the product, since
        the factors' own sets would not say it.

    The scale of a row is the product of its factors' scales, rounded up to a double; the cost
    is the product of the factors' costs, which is then at or above what is executed.

    Examples
    --------
    >>> from .diagonal import Diagonal
    >>> Kronecker([Diagonal([8.0] * 2), Diagonal([8.0] * 3)]).cost().mu
    0.015625
    """

    factors: tuple[Strategy, ...]
    sigma: Floats
    changes: Changes | None = None

    def __init__(self, factors: Sequence[Strategy], changes: Changes | None = None) -> None:
        if not len(factors):
            raise InvalidInput("a product needs at least one factor.")
        for factor in factors:
            if not isinstance(factor, Strategy):
                raise InvalidInput(
                    f"a product is of strategies, got {type(factor).__name__}: see Dense, Diagonal."
                )
            if factor.changes is not None:
                raise InvalidInput(
                    "a factor's set of changes says nothing of the product's: make the factors "
                    "without one, and state what one row can do to the product, as in "
                    "Kronecker(factors, changes)."
                )
        object.__setattr__(self, "factors", tuple(factors))
        object.__setattr__(self, "sigma", outer_up(*(factor.sigma for factor in factors)))
        object.__setattr__(self, "changes", changes)
        check_size(changes, self.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows measured and cells: the products of the factors'."""
        return len(self.sigma), int(np.prod(self._cells))

    @property
    def _rows(self) -> list[int]:
        return [factor.shape[0] for factor in self.factors]

    @property
    def _cells(self) -> list[int]:
        return [factor.shape[1] for factor in self.factors]

    @property
    def queries(self) -> int:
        """How many questions are answered: the product of the factors'."""
        return int(np.prod([f.queries for f in self.factors]))

    def apply(self, x: ArrayLike) -> Integers:
        """Return A~ x exactly, one axis after the other: shape (k,)."""
        return self._apply_to(self._data(x))

    def _apply_to(self, X: Integers) -> Integers:
        return self._along_axes(X, self._cells, lambda f, part: f._apply_to(part))

    @cached_property
    def _profile(self) -> Profile:
        """The products of the factors' profiles, exactly."""
        profiles = [f.profile() for f in self.factors]
        units = reduce(np.multiply.outer, [p.units for p in profiles]).ravel()
        return Profile(units, sum(p.exponent for p in profiles))

    def cost_of_one(self, neighbours: Neighbours) -> Fraction:
        """Return mu^2 of one row; when one is added, the product of the factors', unlisted."""
        if self.changes is None and neighbours == "add-remove":
            return math.prod((f.profile().greatest for f in self.factors), start=Fraction(1))
        return super().cost_of_one(neighbours)

    @cached_property
    def _replaced(self) -> Fraction:
        """Return max ||a_i - a_j||^2 exactly up to 4,096 cells; beyond, a bound above it.

        Cells that differ in a factor whose cells are measured each on its own share no row.
        """
        if self.shape[1] <= PAIRS:
            return super()._replaced
        greatest = self.cost_of_one("add-remove") if self.changes is None else Fraction(0)
        others = [f for f in self.factors if not isinstance(f, Diagonal)]
        if self.changes is not None or len(others) > 1:
            return 4 * self.profile().greatest
        alone = [f.profile().greatest for f in self.factors if isinstance(f, Diagonal)]
        within = [f.cost_of_one("replace") for f in others]
        apart = 2 * greatest if any(isinstance(f, Diagonal) for f in self.factors) else Fraction(0)
        return max(apart, math.prod(alone + within, start=Fraction(1)) if within else Fraction(0))

    def covariance(self) -> Floats:
        """Return the covariance of the answers, shape (m, m)."""
        R = _kron([f.densify()._rebuilding for f in self.factors])
        return (R * self.noise_variance) @ R.T

    def _variance(self) -> Floats:
        # The rounding's 1/12 is not a product, so the rows' variances go through as they are.
        return self._rebuilt_variance(self.noise_variance)

    def _rebuilt_variance(self, variances: Floats) -> Floats:
        return self._along_axes(variances, self._rows, lambda f, part: f._rebuilt_variance(part))

    def densify(self) -> Dense:
        """Return the product written out."""
        dense = [f.densify() for f in self.factors]
        rows = reduce(_exact_kron, [f.rows for f in dense])
        workload = _kron([f.workload for f in dense])
        return Dense(rows, self.sigma, workload, _reach(dense), self.changes)

    def scaled(self, factor: float, *, up: bool = True) -> Kronecker:
        """Return the same shape with every sigma multiplied by ``factor`` (in the first factor)."""
        first, *rest = self.factors
        return Kronecker([first.scaled(factor, up=up), *rest], self.changes)

    def _approximate_to(self, R: Floats) -> Floats:
        return self._along_axes(R, self._rows, lambda f, part: f._approximate_to(part))

    def _ask_to(self, X: Integers) -> Integers:
        return self._along_axes(X, self._cells, lambda f, part: f._ask_to(part))

    @cached_property
    def _asked_bits(self) -> NDArray[np.int64]:
        return reduce(np.add.outer, [f._asked_bits for f in self.factors]).ravel()

    def _gross(self) -> float:
        return float(np.prod([f._gross() for f in self.factors]))

    def _along_axes(
        self,
        x: NDArray[Any],
        lengths: Iterable[int],
        act: Callable[[Strategy, NDArray[Any]], NDArray[Any]],
    ) -> NDArray[Any]:
        """Return what the factors do to each column of x, each along its own axis."""
        columns = x.shape[1:]
        for factor, length in zip(self.factors, lengths, strict=True):
            # The axis to treat is first, and goes last; after all of them the columns are first.
            x = act(factor, x.reshape(length, -1)).T
        return x.reshape(*columns, -1).T


def _reach(factors: Sequence[Dense]) -> Integers | None:
    if all(f.reach is None for f in factors):
        return None
    units = [np.eye(f.shape[1], dtype=np.int64) for f in factors]
    each = [u if f.reach is None else f.reach for u, f in zip(units, factors, strict=True)]
    return reduce(_exact_kron, each)


def _kron(matrices: Sequence[Floats]) -> Floats:
    total: Floats = np.ones((1, 1))
    for M in matrices:
        total = np.asarray(np.kron(total, M), dtype=np.float64)
    return total


def _exact_kron(A: Integers, B: Integers) -> Integers:
    wide = np.kron(A.astype(object), B.astype(object))
    return integers("rows", wide)
