"""What is handed to fit, told by its shape and types alone: no value is looked at.

scikit-learn's own validation reads every value, and stops on NaN: that a fit stopped would tell of
one person for free. Here what is no number follows the declared policy, inside the release.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from .._checks import kept_as
from ..errors import InvalidInput
from ..matrices.features import Bounds
from ..matrices.moments import Covariance
from ..matrices.reading import array, columns_of
from ..strategies.exact import Integers


@dataclass(frozen=True, eq=False, repr=False)
class Beside:
    """Rows of an array and one column more, put together when they are read: a source."""

    X: NDArray[Any]
    y: NDArray[Any]
    query: Covariance

    def cells(self) -> int:
        """Return how many integers the data becomes."""
        return self.query.size

    def read(self) -> Integers:
        """Read the rows, and return the exact sums."""
        return self.query.source(np.column_stack([self.X, self.y])).read()


def is_elsewhere(X: Any) -> bool:
    """Return whether rows are read by an engine: a path, a frame, a table, a relation."""
    return isinstance(X, (str, os.PathLike)) or columns_of(X) is not None


def is_framed(X: Any) -> bool:
    """Return whether scikit-learn takes the names of its columns for the features'."""
    # Told by name, so that nothing is imported that the caller did not import.
    kind = type(X)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] in ("pandas", "polars")


def rows(X: Any) -> Any:
    """Return rows as a matrix query takes them; refuse what its shape and types rule out."""
    if sparse.issparse(X):
        raise InvalidInput("sparse rows are not read: hand in X.toarray(), or a file.")
    if is_framed(X) and not all(isinstance(name, str) for name in X.columns):
        return X.set_axis([str(name) for name in X.columns], axis=1)  # engines know texts alone
    if is_elsewhere(X):
        return X
    if not isinstance(X, (np.ndarray, list, tuple)):
        X = np.asarray(X)
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise InvalidInput("Complex data not supported: rows must hold real numbers.")
    made = array(X)
    if not made.shape[1]:
        # Its shape is not told, as scikit-learn would: how many rows there are is private.
        raise InvalidInput("rows have 0 feature(s): hand in at least one column.")
    return made


def names(X: Any, bounds: Bounds | None) -> tuple[str, ...]:
    """Return the features' names: of a frame's columns, of the bounds, or x0, x1, ..."""
    if is_framed(X):
        return tuple(str(name) for name in X.columns)
    if isinstance(bounds, Mapping):
        return tuple(str(name) for name in bounds)
    found = columns_of(X)
    if found is not None:
        return found
    if isinstance(X, (str, os.PathLike)):
        raise InvalidInput("name the columns of a file by its bounds: bounds={'age': (0, 99)}.")
    return tuple(f"x{i}" for i in range(X.shape[1]))


def target(X: Any, y: Any) -> NDArray[Any]:
    """Return the target beside rows in memory: one number for each."""
    if y is None:
        raise InvalidInput(
            "a ridge regression requires y to be passed, but the target y is None: hand in one "
            "number for each row, or the name of its column in a frame or file."
        )
    made = _column(y)
    if np.iscomplexobj(made):
        raise InvalidInput("Complex data not supported: y must hold real numbers.")
    if made.ndim == 2 and made.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: it is taken as one.",
            DataConversionWarning,
            stacklevel=4,
        )
        made = made[:, 0]
    if made.ndim != 1 or made.dtype.kind not in "biuf":
        raise InvalidInput(
            f"y must be one list of numbers, got {made.ndim} axes of {kept_as(made.dtype)}: one "
            "target at a time."
        )
    if len(made) != len(X):
        raise InvalidInput("X and y must have as many rows as each other.")
    return made


def _column(y: Any) -> NDArray[Any]:
    """Return a target as an array, by its declared type; of what declares none, by its lengths."""
    counted = hasattr(y, "__len__") and hasattr(y, "__iter__")
    if isinstance(getattr(y, "dtype", None), np.dtype) or not counted:
        return np.asarray(y)
    # A column that may lack values is numbers or objects to numpy, by whether it lacks any.
    given = list(y)
    if not given:
        return np.zeros(0)
    if all(isinstance(value, (list, tuple, np.ndarray)) for value in given):
        return array(given)
    return array([[value] for value in given])[:, 0]


def called(y: Any, features: tuple[str, ...]) -> str:
    """Return the target's name: its own, where it has one that no feature has."""
    name = getattr(y, "name", None)
    label = name if isinstance(name, str) and name else "y"
    while label in features:
        label += "_"
    return label


def joined(X: Any, y: NDArray[Any], name: str) -> Any:
    """Return a pandas frame with the target as one more column."""
    if type(X).__module__.split(".")[0] != "pandas":
        raise InvalidInput(
            "beside an array or a pandas frame y may be an array; of other frames and of files, "
            "name its column: fit(X, 'income')."
        )
    return X.assign(**{name: y})
