"""Vectors clipped to a norm: one a row (features), or their sum (gradients)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, positive, whole
from ..errors import InvalidInput
from ..privacy import People
from ..strategies.changes import Ball, OneOf
from ..strategies.exact import Integers
from .features import power_of_two
from .identity import rows_public
from .query import MatrixQuery, numbered, replacing, within_memory
from .reading import array, columns_of, doubles, in_order, length_of, padded

# Steps of the default grid in the norm that vectors are clipped to.
_STEPS = 20
_BLOCK = 1 << 22  # entries that are clipped at a time


def clipped(X: NDArray[Any], radius: int) -> NDArray[np.int64]:
    """Return vectors in steps, cut to whole numbers toward 0, none longer than ``radius``.

    Total: what is no finite number is 0. Lengths are computed in doubles with a margin, and
    checked in integers; a vector that were too long all the same would count as 0.
    """
    X = np.where(np.isfinite(X), X, 0.0)
    # First by the greatest entry, so that no square overflows.
    top = np.abs(X).max(axis=1, initial=0.0, keepdims=True)
    X = X / np.maximum(top, radius) * radius
    length = np.linalg.norm(X, axis=1, keepdims=True)
    X = X * np.minimum(1.0, radius * (1 - 1e-12) / np.maximum(length, 1e-300))
    z = np.trunc(X).astype(np.int64)
    z[(z**2).sum(axis=1) > radius**2] = 0
    return z


@dataclass(frozen=True, eq=False, repr=False)
class ClippedRows:
    """Clipped vectors, to be read: the source of a release."""

    rows: Callable[[], Floats]
    query: Clipped

    def cells(self) -> int:
        """Return how many integers the data becomes."""
        return self.query.size

    def read(self) -> Integers:
        """Read the vectors; return them, or their sum."""
        q = self.query
        X = self.rows() / q.grid
        block = max(1, _BLOCK // q.m)
        parts = (clipped(X[at : at + block], q.radius) for at in range(0, len(X), block))
        if isinstance(q, Gradient):
            total = np.zeros(q.m, dtype=object)
            for part in parts:
                total += part.sum(axis=0)
            return total
        assert isinstance(q, Features)
        return padded(np.concatenate([np.zeros((0, q.m), dtype=np.int64), *parts]), q.n).ravel()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Clipped(MatrixQuery):
    """A question about vectors of length at most ``clip``.

    Attributes
    ----------
    m
        Entries of a vector.
    clip
        The norm to which each is clipped.
    grid
        The step, a power of two.
    """

    m: int
    clip: float
    grid: float

    def __post_init__(self) -> None:
        whole("m", self.m)
        positive("clip", self.clip)
        positive("step", self.grid)
        if not 1 <= self.clip / self.grid < 1 << 26:
            raise InvalidInput(
                f"clip must be 1 to 2^26 steps, got {self.clip / self.grid:.3g}: declare another "
                "step."
            )

    @property
    def radius(self) -> int:
        """The norm in steps, rounded down."""
        return int(Fraction(self.clip) / Fraction(self.grid))

    def source(self, data: Any) -> ClippedRows:
        """Return the rows to be clipped."""
        return ClippedRows(doubles(data, self.m), self)

    @property
    def selection(self) -> str:
        """Return in words what becomes of rows."""
        return f"every row, clipped to the norm {self.clip:g}; what is no number counts as 0"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the question."""
        said = {"m": self.m, "clip": self.clip, "grid": self.grid}
        return {"kind": self.kind, "people": self._people_json()} | said

    @classmethod
    def from_json(cls, **content: Any) -> Self:
        """Return the question that ``to_json`` said."""
        return cls(**content)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Gradient(Clipped):
    """The sum of one clipped vector a row, shape (m,).

    Attributes
    ----------
    count
        How many rows there are, if that is public; only gamma needs it.
    """

    kind = "gradient"
    count: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.people.unit != "rows":
            raise InvalidInput('one vector a person is summed: use the unit "rows".')

    @property
    def shape(self) -> tuple[int, ...]:
        """One vector."""
        return (self.m,)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Numbers of entries."""
        return (numbered("", self.m),)

    @cached_property
    def changes(self) -> Ball:
        """Any vector of length at most clip."""
        return Ball(self.m, self.radius)

    @cached_property
    def step(self) -> Floats:
        """The grid."""
        return np.full(self.m, self.grid)

    def s2(self) -> float:
        """Return clip, or twice it under replace: exact, but for the grid."""
        return self.changes.length(self.people.neighbours) * self.grid

    def gamma(self) -> float:
        """Return n clip."""
        if self.count is None:
            raise InvalidInput("gamma of a gradient needs the number of rows: count=...")
        return self.count * self.clip

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the question."""
        return super().to_json() | {"count": self.count}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Features(Clipped):
    """A matrix of feature vectors, shape (n, m), each clipped to the norm ``clip``."""

    kind = "features"
    n: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("n", self.n)
        replacing("a feature matrix", self.people)
        within_memory(self.n, self.m)

    @property
    def shape(self) -> tuple[int, ...]:
        """A vector a row."""
        return (self.n, self.m)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Numbers of rows and entries."""
        return numbered("", self.n), numbered("", self.m)

    @cached_property
    def changes(self) -> OneOf:
        """One row changes, from any vector of length at most clip to another."""
        return OneOf(Ball(self.m, self.radius), self.n)

    @cached_property
    def step(self) -> Floats:
        """The grid."""
        return np.full(self.n * self.m, self.grid)

    def source(self, data: Any) -> ClippedRows:
        """Return the rows to be clipped."""
        told = length_of(in_order(data))
        if told is not None and told != self.n:
            raise InvalidInput(f"the plan is about {self.n} rows, and the data has {told}.")
        return super().source(data)

    def s2(self) -> float:
        """Return twice clip: exact, but for the grid."""
        return 2 * self.radius * self.grid

    def gamma(self) -> float:
        """Return sqrt(n) clip."""
        return float(np.sqrt(self.n)) * self.clip

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the question."""
        return super().to_json() | {"n": self.n}


def gradient(
    rows: Any = None,
    *,
    clip: float,
    m: int | None = None,
    step: float | None = None,
    count: int | None = None,
    people: People | None = None,
) -> Gradient:
    """Ask for the sum of one vector a row, shape (m,), each clipped to the norm ``clip``.

    Parameters
    ----------
    rows
        The vectors: an array, or a frame of numbers.
    clip
        The greatest norm; longer vectors are shortened to it.
    m
        How long each is, where ``rows`` does not tell.
    step
        The grid; by default 2^20 steps in ``clip``. Vectors are cut toward 0, so that none gets
        longer.
    count
        How many rows there are, if that is public.
    people
        Whose privacy.
    """
    clip, grid = positive("clip", clip), _grid(clip, step)
    people = people or People()
    return Gradient(m=_width(rows, m), clip=clip, grid=grid, count=count, people=people, rows=rows)


def features(
    rows: Any = None,
    *,
    clip: float,
    m: int | None = None,
    n: int | None = None,
    step: float | None = None,
    people: People | None = None,
) -> Features:
    """Ask for a matrix of feature vectors, shape (n, m), each clipped to the norm ``clip``.

    Its shape tells how many rows there are, so that neighbours must be ``replace``.

    Parameters
    ----------
    rows, clip, m, step, people
        As :func:`gradient` has them.
    n
        How many rows there are, where ``rows`` does not tell without being read.
    """
    people = replacing("a feature matrix", people)
    clip, grid = positive("clip", clip), _grid(clip, step)
    return Features(
        m=_width(rows, m), n=rows_public(rows, n), clip=clip, grid=grid, people=people, rows=rows
    )


def _grid(clip: float, step: float | None) -> float:
    return power_of_two(positive("clip", clip) / 2**_STEPS if step is None else step)


def _width(rows: Any, m: int | None) -> int:
    if m is not None:
        return whole("m", m)
    if isinstance(rows, (np.ndarray, list, tuple)):
        return array(rows).shape[1]
    names = None if rows is None else columns_of(rows)
    if names is None:
        raise InvalidInput("say how long each vector is: m=...")
    return len(names)
