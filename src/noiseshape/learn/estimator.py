"""What the estimators share: declarations in, one release, and what follows from it."""

from __future__ import annotations

import inspect
import os
from abc import abstractmethod
from typing import Any, Literal, Self, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .._checks import Floats
from ..errors import InvalidInput
from ..matrices.features import Bounds, Missing
from ..matrices.moments import Covariance, covariance
from ..privacy import Budget, Cost, Ledger, People
from ..privacy.people import Neighbours
from ..release.matrixplan import MatrixPlan
from ..release.matrixrelease import MatrixRelease
from ..release.shapes import directional, isotropic
from .rows import is_elsewhere, is_framed, names, rows

Noise = Literal["directional", "isotropic"]

SEEDED = (
    "random_state is refused: the noise of a release comes from the operating system's secret "
    "bits, and whoever knew a seed could take it off again."
)


class Private(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Bounds, budget, ledger and noise of an estimator whose ``fit`` is one release.

    A constructor stores what it is given; ``plan`` and ``fit`` check it.
    """

    n_features_in_: int
    release_: MatrixRelease

    def __init__(
        self,
        bounds: Bounds | None = None,
        budget: Budget | None = None,
        *,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        unrecorded: bool = False,
        neighbours: Neighbours = "add-remove",
        missing: Missing = "drop",
        noise: Noise = "directional",
        weights: Any = None,
        count: int | None = None,
        expected: int | None = None,
    ) -> None:
        self.bounds = bounds
        self.budget = budget
        self.ledger = ledger
        self.unrecorded = unrecorded
        self.neighbours = neighbours
        self.missing = missing
        self.noise = noise
        self.weights = weights
        self.count = count
        self.expected = expected

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: ARG004  # __init__ has them
        """Refuse a seed by name; any other unknown parameter is refused as Python does."""
        _seedless(kwargs)
        return super().__new__(cls)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # What help() shows is what the constructor takes, not what __new__ does.
        of = inspect.signature(cls.__init__)
        cls.__signature__ = of.replace(parameters=list(of.parameters.values())[1:])

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn has it; ``random_state`` is refused."""
        _seedless(params)
        changed: Self = super().set_params(**params)
        return changed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True  # it follows the declared policy
        return tags

    @property
    def cost_(self) -> Cost:
        """What the fit cost, exactly, from the integers that were executed."""
        return self.release_.plan.cost

    @property
    def count_(self) -> float:
        """How many rows there were: released with noise, at least 1; or as declared."""
        return rows_counted(asked(self.release_), self.release_.coordinates)

    def _designed(self, query: Covariance, weights: Any) -> MatrixPlan:
        """Return the plan of a query within the budget."""
        if self.budget is None:
            raise InvalidInput(
                "a fit needs a budget: budget=Budget(epsilon=1, delta=1e-9), say, debited from a "
                "ledger that allows it."
            )
        if self.noise == "isotropic":
            if self.weights is not None:
                raise InvalidInput("weights shape directional noise: say noise='directional'.")
            return isotropic(query).within(self.budget)
        if self.noise != "directional":
            raise InvalidInput(
                f"noise must be 'directional' or 'isotropic', got {str(self.noise)!r}."
            )
        return directional(query, weights=weights).within(self.budget)

    def _asking(
        self, data: Any, names: tuple[str, ...], bounds: Any, told: int | None = None
    ) -> Covariance:
        """Return the question about the columns of rows; how many is told, where that is public."""
        people = People(neighbours=self.neighbours)
        public = people.neighbours == "replace" and self.missing == "middle"
        return covariance(
            data,
            bounds=bounds,
            columns=names,
            missing=self.missing,
            count=told if public and self.count is None else self.count,
            expected=self.expected,
            people=people,
        )

    def _released(self, plan: MatrixPlan, data: Any = None) -> MatrixRelease:
        """Debit, read, measure: the one door; without data, the rows that the query is asked of."""
        shape = " x ".join(map(str, plan.query.shape))
        return plan.release(
            data,
            ledger=self.ledger,
            unrecorded=self.unrecorded,
            what=f"{type(self).__name__}: {plan.query.kind}, {shape}",
        )

    def _named(self, X: Any, names: tuple[str, ...]) -> None:
        """Keep how many features there are, and their names, as scikit-learn does."""
        if X is None or (is_elsewhere(X) and not is_framed(X)):
            self.n_features_in_ = len(names)
            self.feature_names_in_ = np.array(names, dtype=object)
        else:
            validate_data(self, X, skip_check_array=True)


class OfColumns(Private):
    """An estimator about the covariance of the columns of X."""

    def plan(self, X: Any, y: Any = None) -> MatrixPlan:  # noqa: ARG002  # as scikit-learn has it
        """Return what ``fit(X)`` would execute, with its cost and errors: no row is read."""
        data = rows(X)
        return self._designed(
            self._asking(data, names(data, self.bounds), self.bounds), self.weights
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Release means and covariance of the rows, paid from the ledger, and what follows.

        Parameters
        ----------
        X
            An array, a frame, a table, a relation or a path: a row for each person.
        y
            Not used.
        """
        plan = self.plan(X, y)
        self._named(X, plan.query.labels[0])
        self.release_ = self._released(plan)
        self._follow(self.release_)
        return self

    @abstractmethod
    def _follow(self, release: MatrixRelease) -> None:
        """Set what follows from the release."""


def asked(release: MatrixRelease) -> Covariance:
    """Return the question that a release of an estimator answers."""
    return cast("Covariance", release.plan.query)


def rows_counted(query: Covariance, v: Floats) -> float:
    """Return how many rows there are: as declared, or as released in coordinates, at least 1."""
    return float(query.count or 1) if not query.counts else max(float(v[0]), 1.0)


def location(release: MatrixRelease, v: Floats | None = None) -> Floats:
    """Return the means of the columns, within their bounds; of other coordinates, if given."""
    query, v = asked(release), release.coordinates if v is None else v
    f, at = query.features, int(query.counts)
    mean = f.origin * f.step + v[at : at + len(f.names)] / rows_counted(query, v)
    return np.asarray(np.clip(mean, f.low, f.high))


def _seedless(given: dict[str, Any]) -> None:
    if "random_state" in given:
        raise InvalidInput(SEEDED)
