"""Ridge regression from one release of sufficient statistics.

The covariance of [X, y] together is released once: count, sums, second moments, with noise shaped
to them. In units where every column runs from -1 to 1 (u = (x - middle) / half range, so that the
penalty means the same for all), with C the covariance nearest to the released one that bounded
columns can have (feasible.py):

    w = (C_xx + (alpha / n) I)^-1 C_xy

which minimises sum (u_y - w u_x)^2 + alpha ||w||^2 over centred rows. By default alpha is the
expected spectral norm of the noise on the second moments of X: as much is added to each eigenvalue
as noise may have taken from it. It follows from the scales that are executed, so that choosing it
reads nothing and costs nothing.
"""

from __future__ import annotations

import os
from typing import Any, Literal, Self, cast

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._checks import Floats, real
from ..errors import InvalidInput
from ..matrices.features import Bounds, Missing, declared
from ..matrices.moments import Covariance
from ..matrices.reading import columns_of
from ..privacy import Budget, Ledger
from ..privacy.people import Neighbours
from ..release.matrixplan import MatrixPlan
from ..release.matrixrelease import MatrixRelease
from ..release.simulation import simulate_spread
from ..release.table import Table
from .estimator import Noise, Private, asked, location, rows_counted
from .feasible import feasible
from .rows import Beside, called, is_elsewhere, joined, names, rows, target

DRAWS = 200  # the mean of so many norms is within a few hundredths of the expected one
REPEATS = 250  # the spread of so many coefficients is within a tenth of their standard error


class PrivateRidge(RegressorMixin, Private):  # type: ignore[misc]  # scikit-learn has no types
    """Linear regression with an L2 penalty, from one release of count, sums and second moments.

    Parameters
    ----------
    bounds
        (low, high) for all features, or one pair a feature, in order or by name: from public
        knowledge, and needed. Values are clipped to them.
    y_bounds : (low, high)
        Those of the target; needed.
    budget : Budget
        What one fit may cost; it costs just that. Needed.
    alpha : "noise" or a number of at least 0
        The penalty, in units where each column runs from -1 to 1 between its bounds. "noise": the
        expected spectral norm of the noise on the second moments of X, which costs nothing to
        know. A number tried out on the data would have to be paid for.
    ledger, unrecorded, neighbours, missing, noise, count, expected
        As :class:`PrivateCovariance` has them; a row counts as missing for its target too.
    weights : shape (m + 1,) or (m + 1, m + 1), optional
        What the variance of each entry of the covariance of [X, y] counts for. By default every
        column by its range, so that units do not matter.

    Attributes
    ----------
    coef_ : shape (m,)
        Coefficients, in the features' own units.
    intercept_ : float
        From the released means.
    alpha_ : float
        The penalty that was taken.
    count_, cost_, release_, n_features_in_, feature_names_in_
        How many rows (with noise), what the fit cost, the release.

    Formal Guarantees:
      Everything that is fitted is post-processing of ``release_``, which costs ``cost_``.
      ``score`` on private rows is as private as they are.
    """

    coef_: Floats
    intercept_: float
    alpha_: float

    def __init__(
        self,
        bounds: Bounds | None = None,
        y_bounds: tuple[float, float] | None = None,
        budget: Budget | None = None,
        *,
        alpha: float | Literal["noise"] = "noise",
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
        self.y_bounds = y_bounds
        self.alpha = alpha

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def plan(self, X: Any, y: Any) -> MatrixPlan:
        """Return what ``fit(X, y)`` would execute, with its cost and errors: no row is read."""
        return self._planned(X, y)[0]

    def fit(self, X: Any, y: Any) -> Self:
        """Release the moments of rows and target, paid from the ledger; solve for coefficients.

        Parameters
        ----------
        X
            An array, a frame, a table, a relation or a path: a row for each person.
        y
            One number for each row; or, of a frame or a file, the name of its column.
        """
        plan, data = self._planned(X, y)
        self._named(None if isinstance(y, str) else X, plan.query.labels[0][:-1])
        self.release_ = release = self._released(plan, data)
        self.alpha_ = simulate_norm(plan) if self.alpha == "noise" else float(self.alpha)
        found = _solved(release, release.coordinates, self.alpha_)
        self.coef_, self.intercept_ = found[:-1], float(found[-1])
        return self

    def predict(self, X: Any) -> Floats:
        """Return predictions, (n,): as private as the rows are."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        return np.asarray(X @ self.coef_ + self.intercept_)

    def errors(self) -> Table:
        """Return coefficients and intercept with their standard errors.

        Simulated from the release alone, over 250 releases like it.
        """
        check_is_fitted(self)
        release = self.release_
        spread = simulate_spread(release, lambda v: _solved(release, v, self.alpha_), REPEATS)
        entries = (*release.plan.query.labels[0][:-1], "intercept")
        return Table(
            {
                "coefficient": entries,
                "value": np.append(self.coef_, self.intercept_),
                "stderr": spread,
            },
            note="of the noise only, simulated from the release; a penalty draws towards 0",
        )

    def _planned(self, X: Any, y: Any) -> tuple[MatrixPlan, Any]:
        """Return the plan, and the rows with their target where they lie apart."""
        penalty = self.alpha
        if not isinstance(penalty, str) and not real("alpha", penalty) >= 0:
            raise InvalidInput(f"alpha must be 'noise' or at least 0, got {penalty:g}.")
        if isinstance(penalty, str) and penalty != "noise":
            raise InvalidInput(f"alpha must be 'noise' or a number, got {penalty!r}.")
        data = rows(X)
        listed = names(data, self.bounds)
        if isinstance(y, str):
            held = columns_of(data)
            if held is not None and y not in held:
                raise InvalidInput(
                    f"the target {y!r} is no column of the rows: they have {', '.join(held)}."
                )
            features = tuple(name for name in listed if name != y)
            return self._shaped(data, features, y, told=None), None
        beside, label = target(data, y), called(y, listed)
        if is_elsewhere(data):
            return self._shaped(joined(data, beside, label), listed, label, told=None), None
        plan = self._shaped(None, listed, label, told=len(data))
        return plan, Beside(data, beside, cast("Covariance", plan.query))

    def _shaped(
        self, data: Any, features: tuple[str, ...], label: str, told: int | None
    ) -> MatrixPlan:
        """Return the plan for the moments of features and target, each weighed by its range."""
        if self.y_bounds is None:
            raise InvalidInput(
                "a fit needs bounds of the target too, from public knowledge: y_bounds=(0, 1)."
            )
        if not features:
            raise InvalidInput("a regression needs at least one feature beside its target.")
        pairs = [
            pair
            for some, bounds in ((features, self.bounds), ((label,), [self.y_bounds]))
            for pair in _pairs(some, bounds)
        ]
        query = self._asking(data, (*features, label), pairs, told)
        weights = self.weights
        if weights is None and self.noise == "directional":
            weights = 1 / query.features.half**2
        return self._designed(query, weights)


def simulate_norm(plan: MatrixPlan, draws: int = DRAWS) -> float:
    """Return the expected spectral norm of the noise on the second moments of X, in ranges.

    From the scales of a plan alone; seeded, so that the same plan has the same.
    """
    query = cast("Covariance", plan.query)
    m, h = query.shape[0] - 1, query.features.half
    E = np.zeros((m + 1, m + 1))
    i, j = query.entries
    E[i, j] = np.sqrt(plan.coordinates[-len(i) :]) / (h[i] * h[j])
    E = E[:m, :m] + np.triu(E[:m, :m], 1).T
    noise = np.triu(np.random.default_rng(0).standard_normal((draws, m, m)))
    noise += np.swapaxes(np.triu(noise, 1), 1, 2)
    return float(np.abs(np.linalg.eigvalsh(E * noise)).max(axis=1).mean())


def _solved(release: MatrixRelease, v: Floats, alpha: float) -> Floats:
    """Return coefficients and intercept, (m + 1,), from released coordinates."""
    query = asked(release)
    h = query.features.half
    C = feasible(query.answer(v) / np.outer(h, h), np.ones(len(h)))
    C[np.diag_indices(len(h))] += alpha / rows_counted(query, v)
    # The least of all solutions where alpha is 0 and columns hang together.
    w = np.linalg.lstsq(C[:-1, :-1], C[:-1, -1], rcond=1e-12)[0]
    coef = w * h[-1] / h[:-1]
    mean = location(release, v)
    return np.append(coef, mean[-1] - mean[:-1] @ coef)


def _pairs(names: tuple[str, ...], bounds: Bounds | None) -> list[tuple[float, float]]:
    """Return bounds as a pair for each name, checked."""
    found = declared(names, bounds)
    return list(zip(found.low.tolist(), found.high.tolist(), strict=True))
