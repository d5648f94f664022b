"""Real columns, declared: bounds from public knowledge, and the grid that values are rounded to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, positive, real
from ..errors import InvalidInput

Missing = Literal["drop", "middle"]
Bounds = tuple[float, float] | Sequence[tuple[float, float]] | Mapping[str, tuple[float, float]]

# Steps of the default grid: the range of a feature is at least 2^15 of them, which adds less than
# 1e-9 of the range squared to any variance.
_STEPS = 15
# Products of two values on the grid must fit in 62 bits, and sums over 2^40 rows in 38 digits.
_MOST = 1 << 31


@dataclass(frozen=True, eq=False)
class Features:
    """m bounded columns on a grid: value = step * (origin + z), z a whole number.

    Attributes
    ----------
    names : m texts
    low, high : shape (m,)
        Declared bounds; values are clipped to them.
    step : shape (m,)
        The grid, a power of two each, so that nothing is lost by dividing.
    origin : integers, shape (m,)
        Where z is 0, in steps.
    missing
        A missing value: its row is dropped, or it counts as the middle of its bounds: a value that
        was allowed, so that it moves nothing further than ``least`` and ``greatest`` say.
    """

    names: tuple[str, ...]
    low: Floats
    high: Floats
    step: Floats
    origin: NDArray[np.int64]
    missing: Missing = "drop"
    far: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        far = np.maximum(np.maximum(np.abs(self.least), np.abs(self.greatest)), 1)
        object.__setattr__(self, "far", far)
        for array in (self.low, self.high, self.step, self.origin, far):
            array.setflags(write=False)

    @property
    def least(self) -> NDArray[np.int64]:
        """The least z of each feature."""
        return np.floor(self.low / self.step).astype(np.int64) - self.origin

    @property
    def greatest(self) -> NDArray[np.int64]:
        """The greatest z of each feature."""
        return np.ceil(self.high / self.step).astype(np.int64) - self.origin

    @property
    def absent(self) -> NDArray[np.int64]:
        """What a missing value counts as: the z in the middle of each range, within its bounds."""
        return np.rint((self.low + self.high) / 2 / self.step).astype(np.int64) - self.origin

    @property
    def half(self) -> Floats:
        """Half the range of each feature."""
        return (self.high - self.low) / 2

    @property
    def signed(self) -> bool:
        """Whether some z may be negative."""
        return bool(np.any(self.least < 0))

    def whole(self, X: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return (z, present): rows on the grid, (n, m), and which of them stay.

        Total: every number is clipped to its bounds, and what is no finite number is missing.
        """
        X = np.asarray(X, dtype=np.float64)
        gone = ~np.isfinite(X)
        clipped = np.clip(np.where(gone, 0.0, X), self.low, self.high)
        z = np.floor(clipped / self.step + 0.5).astype(np.int64) - self.origin
        z = np.where(gone, self.absent, z)
        present = ~gone.any(axis=1) if self.missing == "drop" else np.ones(len(X), dtype=bool)
        return z, present

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the declaration."""
        return {
            "names": list(self.names),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "step": self.step.tolist(),
            "origin": self.origin.tolist(),
            "missing": self.missing,
        }

    @staticmethod
    def from_json(content: dict[str, Any]) -> Features:
        """Return the features that ``to_json`` said."""
        return declared(
            content["names"],
            list(zip(content["low"], content["high"], strict=True)),
            step=content["step"],
            origin=content["origin"],
            missing=content["missing"],
        )


def declared(
    names: Sequence[str],
    bounds: Bounds | None,
    *,
    step: ArrayLike | None = None,
    origin: Literal["zero", "middle"] | Sequence[int] = "middle",
    missing: Missing = "drop",
) -> Features:
    """Return features with their bounds checked.

    Parameters
    ----------
    names
        One for each column.
    bounds
        (low, high) for all, or one pair a column, in order or by name.
    step
        The grid; by default at least 2^15 steps in each range. Rounded down to a power of two.
    origin
        Where z is 0: in the middle of each range, or at 0.
    """
    names = tuple(names)
    if not names or len(set(names)) != len(names):
        raise InvalidInput("features need names that differ from each other.")
    if bounds is None:
        raise InvalidInput(
            "features need bounds, from public knowledge: bounds=(0, 1), or a pair for each."
        )
    if missing not in ("drop", "middle"):
        raise InvalidInput(f"missing must be drop or middle, got {missing!r}.")
    pairs = _pairs(names, bounds)
    low, high = (np.array(ends, dtype=np.float64) for ends in zip(*pairs, strict=True))
    given = np.broadcast_to(_steps(low, high, step), low.shape)
    grid = np.array([power_of_two(s) for s in given.tolist()])
    if not np.all(grid <= high - low):
        raise InvalidInput(
            f"the step of {names[int((grid / (high - low)).argmax())]} is wider than its bounds: "
            "declare a finer one."
        )
    if isinstance(origin, str):
        middle = (low + high) / 2 if origin == "middle" else np.zeros(len(names))
        at = np.rint(middle / grid)
    else:
        at = np.asarray(origin, dtype=np.float64)
    reach = np.maximum(np.abs(low), np.abs(high)) / grid + np.abs(at)
    if not np.all(reach < _MOST):
        raise InvalidInput(
            f"the grid of {names[int(reach.argmax())]} is too fine: its values reach "
            f"{reach.max():.3g} steps, at most {_MOST:,}; declare a coarser step."
        )
    return Features(names, low, high, grid, at.astype(np.int64), missing)


def columns_declared(
    rows: Any,
    columns: ArrayLike | None,
    bounds: Bounds | None,
    step: ArrayLike | None,
    origin: Literal["zero", "middle"],
    missing: Missing,
) -> Features:
    """Return the declared columns: named by the caller, by the bounds, or by a frame."""
    if columns is not None:
        names = [str(name) for name in np.atleast_1d(np.asarray(columns, dtype=object))]
    elif isinstance(bounds, Mapping):
        names = [str(name) for name in bounds]
    else:
        names = _names(rows)
    return declared(names, bounds, step=step, origin=origin, missing=missing)


def _names(rows: Any) -> list[str]:
    if isinstance(rows, (np.ndarray, list, tuple)):
        shape = np.shape(rows) if isinstance(rows, np.ndarray) else _lengths(rows)
        if len(shape) == 2 and shape[1]:
            return [f"x{i}" for i in range(shape[1])]
        raise InvalidInput(f"rows must be a matrix with a row for each person, got {shape}.")
    names = getattr(rows, "column_names", None) or getattr(rows, "columns", None)
    if rows is None or isinstance(rows, str) or names is None:
        raise InvalidInput("name the columns: columns=[...], or bounds by name.")
    return [str(name) for name in names]


def _lengths(rows: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of a list of rows, by its first one: what rows hold is not looked at."""
    pairs = bool(rows) and isinstance(rows[0], (list, tuple, np.ndarray))
    return (len(rows), len(rows[0])) if pairs else (len(rows),)


def power_of_two(step: float) -> float:
    """Return the greatest power of two that is not above a step: dividing by it is exact."""
    return 2.0 ** math.floor(math.log2(positive("a step", step)))


def _pairs(names: tuple[str, ...], bounds: Bounds) -> list[tuple[float, float]]:
    if isinstance(bounds, Mapping):
        lacking = [name for name in names if name not in bounds]
        if lacking:
            raise InvalidInput(f"{lacking[0]} has no bounds: declare them from public knowledge.")
        listed: list[Any] = [bounds[name] for name in names]
    else:
        given: list[Any] = list(bounds)
        alike = len(given) == 2 and all(np.ndim(v) == 0 for v in given)
        listed = [tuple(given)] * len(names) if alike else given
    if len(listed) != len(names):
        raise InvalidInput(f"there are {len(names)} features and {len(listed)} pairs of bounds.")
    pairs = []
    for name, pair in zip(names, listed, strict=True):
        if np.ndim(pair) != 1 or len(pair) != 2:
            raise InvalidInput(f"the bounds of {name} must be a pair (low, high).")
        low, high = (real(f"a bound of {name}", v) for v in pair)
        if not low < high:
            raise InvalidInput(f"the bounds of {name} must be low < high, got {low:g}, {high:g}.")
        pairs.append((low, high))
    return pairs


def _steps(low: Floats, high: Floats, step: ArrayLike | None) -> Floats:
    if step is None:
        return (high - low) / 2**_STEPS
    found = np.asarray(step, dtype=np.float64)
    if found.shape not in ((), low.shape):
        raise InvalidInput("step must be one number, or one for each feature.")
    return found
