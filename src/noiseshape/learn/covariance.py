"""The covariance of rows, as an estimator."""

from __future__ import annotations

from sklearn.utils.validation import check_is_fitted

from .._checks import Floats
from ..release.matrixrelease import MatrixRelease
from ..release.table import Table
from .estimator import OfColumns, asked, location
from .feasible import feasible


class PrivateCovariance(OfColumns):
    """Means and covariance of bounded columns, released once with noise shaped to them.

    Parameters
    ----------
    bounds
        (low, high) for all features, or one pair a feature, in order or by name: from public
        knowledge, and needed. Values are clipped to them.
    budget : Budget
        What one fit may cost; it costs just that. Needed.
    ledger : Ledger or path
        What pays. Every ``fit`` is debited, before a row is read.
    unrecorded
        Fit without a ledger.
    neighbours
        "add-remove" or "replace".
    missing
        What is no finite number: "drop" its row, or count it as the "middle" of its bounds.
        Nothing stops on a value.
    noise
        "directional": the least error, weighted by ``weights``, for its cost. "isotropic": equal
        noise in every direction.
    weights : shape (m,) or (m, m), optional
        What the variance of each entry counts for, as :func:`noiseshape.directional` has them.
    count, expected : int, optional
        How many rows there are, if that is public; or about how many, to plan errors by.

    Attributes
    ----------
    covariance_ : shape (m, m)
        Divided by n; of the matrices that are positive semi-definite, with variances that values
        within the bounds can have, the nearest to the released one. That one, unbiased to first
        order, is ``release_.answer``, its errors ``release_.stderr``.
    location_ : shape (m,)
        The means, within their bounds.
    count_, cost_, release_, n_features_in_, feature_names_in_
        How many rows (with noise), what the fit cost, the release: all of it may be published.

    Formal Guarantees:
      Everything that is fitted is post-processing of ``release_``, which costs ``cost_``.
    """

    covariance_: Floats
    location_: Floats

    def _follow(self, release: MatrixRelease) -> None:
        self.covariance_ = feasible(release.answer, asked(release).features.half ** 2)
        self.location_ = location(release)

    def errors(self) -> Table:
        """Return every entry of the released covariance with its error and interval."""
        check_is_fitted(self)
        return self.release_.table()
