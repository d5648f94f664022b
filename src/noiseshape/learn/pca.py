"""Principal components of rows, as an estimator."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._checks import Floats, probability, whole
from ..errors import InvalidInput
from ..matrices.features import Bounds, Missing
from ..privacy import Budget, Ledger
from ..privacy.people import Neighbours
from ..release.matrixplan import MatrixPlan
from ..release.matrixrelease import MatrixRelease
from ..release.processed import components
from ..release.table import Table
from .estimator import Noise, OfColumns, asked, location
from .feasible import feasible


class PrivatePCA(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn has no types
    TransformerMixin,  # type: ignore[misc]
    OfColumns,
):
    """Principal components of bounded columns, from one release of their covariance.

    Parameters
    ----------
    n_components : int, float below 1, or None
        How many components; a float: as many as have that share of the released variance.
    bounds, budget, ledger, unrecorded, neighbours, missing, noise, weights, count, expected
        As :class:`PrivateCovariance` has them.

    Attributes
    ----------
    components_ : shape (k, m)
        Eigenvectors of the covariance that :class:`PrivateCovariance` has, one a row, the greatest
        entry of each positive.
    explained_variance_ : shape (k,)
        Its eigenvalues; divided by n, where scikit-learn divides by n - 1.
    explained_variance_ratio_ : shape (k,)
        Their shares of the sum of all.
    mean_ : shape (m,)
        The means, within their bounds.
    n_components_, count_, cost_, release_, n_features_in_, feature_names_in_
        How many components, rows (with noise), what the fit cost, the release.

    Formal Guarantees:
      Everything that is fitted is post-processing of ``release_``, which costs ``cost_``. What
      ``transform`` returns is as private as the rows it is given.
    """

    components_: Floats
    explained_variance_: Floats
    explained_variance_ratio_: Floats
    mean_: Floats
    n_components_: int

    def __init__(
        self,
        n_components: int | float | None = None,
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
        super().__init__(
            bounds=bounds,
            budget=budget,
            ledger=ledger,
            unrecorded=unrecorded,
            neighbours=neighbours,
            missing=missing,
            noise=noise,
            weights=weights,
            count=count,
            expected=expected,
        )
        self.n_components = n_components

    def plan(self, X: Any, y: Any = None) -> MatrixPlan:
        """Return what ``fit(X)`` would execute, with its cost and errors: no row is read."""
        plan = super().plan(X, y)
        wanted, m = self.n_components, plan.query.shape[0]
        if wanted is None:
            return plan
        if isinstance(wanted, (int, np.integer)):
            if whole("n_components", wanted) > m:
                raise InvalidInput(f"n_components must be at most the {m} features, got {wanted}.")
        else:
            probability("n_components, where it is a share of the variance,", wanted)
        return plan

    def _follow(self, release: MatrixRelease) -> None:
        m = release.plan.query.shape[0]
        C = feasible(release.answer, asked(release).features.half ** 2)
        values, vectors = components(C, m)
        values = np.maximum(values, 0.0)  # but for rounding they are
        total = float(values.sum())
        shares = values / total if total > 0 else np.zeros(m)
        k = self._as_many(shares)
        self.n_components_ = k
        self.components_ = vectors.T[:k]
        self.explained_variance_ = values[:k]
        self.explained_variance_ratio_ = shares[:k]
        self.mean_ = location(release)

    def _as_many(self, shares: Floats) -> int:
        wanted = self.n_components
        if wanted is None:
            return len(shares)
        if isinstance(wanted, (int, np.integer)):
            return int(wanted)
        return min(len(shares), 1 + int(np.searchsorted(np.cumsum(shares), wanted)))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def transform(self, X: Any) -> Floats:
        """Return rows along the components, (n, k): as private as the rows are."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        return np.asarray((X - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Return rows in the features' own units, (n, m), from their components."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_)

    def errors(self) -> Table:
        """Return each component's eigenvalue with its error, shift and angle.

        Simulated from the release alone; of the released matrix, whose eigenvalues may be below 0.
        """
        check_is_fitted(self)
        return self.release_.components(self.n_components_).table()
