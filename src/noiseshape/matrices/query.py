"""Matrix-valued questions, as whole numbers of a declared grid.

A query says how rows become a vector of integers (its coordinates), what one row can contribute to
them, and how the answer is put together from them. Values are clipped to declared bounds and
rounded to a declared grid; whatever a value is, nothing stops on it.

    sums.py        sum, mean                    sums over rows: add-remove, or replace
    moments.py     second_moment, covariance
    centred.py     a covariance measured as one matrix
    clipped.py     gradient, features           vectors clipped to a norm
    identity.py    identity                     the data matrix: replace
    gram.py        gram                         inner products or a kernel: replace
    graph.py       adjacency, laplacian         edges, or whole nodes
    custom.py      custom                       any function with a declared set of changes
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._checks import Floats
from ..archive import digest
from ..errors import InvalidInput, TooLarge
from ..privacy import People
from ..strategies import Diagonal
from ..strategies.changes import Changes
from ..strategies.exact import Integers

# Entries that are measured in memory: at 100 bytes each, 10 GB.
MOST_ENTRIES = 100_000_000


class Rows(Protocol):
    """Data that becomes coordinates: what a release reads from."""

    def cells(self) -> int:
        """Return how many integers the data becomes, from declarations alone."""

    def read(self) -> Integers:
        """Read the rows, for the first time, and return the coordinates. Total."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MatrixQuery(ABC):
    """What is asked of rows of numbers.

    Attributes
    ----------
    people
        Whose privacy, and which neighbours.
    rows
        The data, if it was handed in with the question; neither plans' files nor pickles hold it.
    """

    kind: ClassVar[str]

    people: People = field(default_factory=People)
    rows: Any = None

    @property
    def linear(self) -> bool:
        """Whether the answer is a linear function of the coordinates."""
        return True

    @property
    def sized(self) -> bool:
        """Whether what was declared tells how large errors are: about how many rows, say."""
        return True

    @property
    def symmetric(self) -> bool:
        """Whether the answer is symmetric, and measured once: i <= j."""
        return False

    @property
    def semidefinite(self) -> bool:
        """Whether the answer is symmetric and positive semi-definite, whatever the data."""
        return False

    @property
    def rows_may_leave(self) -> bool:
        """Whether a policy can take a row out altogether: its absence is then a change too."""
        return False

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer."""

    @property
    @abstractmethod
    def changes(self) -> Changes:
        """What one row can contribute to the coordinates, in whole steps."""

    @property
    @abstractmethod
    def step(self) -> Floats:
        """What one unit of each coordinate is worth, shape (size,)."""

    @property
    @abstractmethod
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Names along each axis of the answer."""

    @abstractmethod
    def source(self, data: Any) -> Rows:
        """Return what will be read, checked as far as declarations tell: no row is read."""

    @abstractmethod
    def s2(self) -> float:
        """Return sup ||f(X) - f(X')||_F over neighbours: the papers' s2, or a bound above it."""

    @abstractmethod
    def gamma(self) -> float:
        """Return sup ||f(X)||_F over all allowed data: MVG's gamma, or a bound above it."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the question; nothing of any data."""

    @property
    def size(self) -> int:
        """How many integers the data becomes."""
        return self.changes.size

    @property
    def selection(self) -> str:
        """Return in words which rows count."""
        return "every row"

    @property
    def parts(self) -> dict[str, int]:
        """What the coordinates are, in order, and how many of each; units differ between parts."""
        return {"entries": self.size}

    @cached_property
    def entries(self) -> tuple[NDArray[np.int64], ...]:
        """The entries of the answer that differ, as indices along each axis: i <= j."""
        if self.symmetric:
            i, j = np.triu_indices(self.shape[0])
            return i.astype(np.int64), j.astype(np.int64)
        return tuple(axis.ravel() for axis in np.indices(self.shape))

    @cached_property
    def twice(self) -> Floats:
        """How often each of ``entries`` stands in the answer: off the diagonal twice."""
        if not self.symmetric:
            return np.ones(int(np.prod(self.shape)))
        i, j = self.entries
        return np.where(i == j, 1.0, 2.0)

    def answer(self, v: Floats) -> Floats:
        """Return the answer from the coordinates in their own units, (size,)."""
        if not self.symmetric:
            return v.reshape(self.shape)
        return self._mirrored(v)

    def _mirrored(self, values: Floats) -> Floats:
        M = np.empty(self.shape)
        i, j = self.entries
        M[i, j] = values
        M[j, i] = values
        return M

    def spread(self) -> Any:
        """Return G, sparse (entries, size): G v is the variance of each entry, v of coordinates.

        For an answer that is not linear: a bound to first order, whatever the data.
        """
        return sparse.eye_array(self.size)

    def digest(self) -> str:
        """Return a digest of the question: equal for plans that ask the same."""
        return digest(self.to_json())

    def without_rows(self) -> Self:
        """Return the same question, without the data."""
        return replace(self, rows=None)

    def _people_json(self) -> dict[str, Any]:
        return {
            "unit": self.people.unit,
            "max_rows": self.people.max_rows,
            "neighbours": self.people.neighbours,
        }

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle or a copy holds: the question, and never the rows."""
        return {name: value for name, value in vars(self).items() if name != "rows"}

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return f"MatrixQuery({self.kind}, {shape}, {self.people.neighbours})"


def from_json(content: dict[str, Any]) -> MatrixQuery:
    """Return the question that ``to_json`` said, checked as if asked anew."""
    from .centred import Centred
    from .clipped import Features, Gradient
    from .custom import CustomQuery
    from .gram import Gram
    from .graph import Graph
    from .identity import Identity
    from .moments import Covariance, SecondMoment
    from .sums import Mean, Sum

    members: list[Any] = [
        Sum, Mean, SecondMoment, Covariance, Centred, Identity, Features, Gradient, Gram, Graph,
        CustomQuery,
    ]  # fmt: skip
    readers: dict[str, Callable[..., MatrixQuery]] = {m.kind: m.from_json for m in members}
    content = dict(content)
    kind = content.pop("kind")
    if kind not in readers:
        raise InvalidInput(f"no matrix query is called {kind!r}: there are {', '.join(readers)}.")
    return readers[kind](people=People(**content.pop("people")), **content)


def replacing(what: str, people: People | None) -> People:
    """Return people under replace neighbours, by default; refuse others for ``what``."""
    people = people or People(neighbours="replace")
    if people.neighbours != "replace":
        raise InvalidInput(
            f"the shape of {what} tells how many rows there are, which add-remove neighbours keep "
            'private: use People(neighbours="replace").'
        )
    if people.unit != "rows":
        raise InvalidInput(f'each row of {what} is one person: use the unit "rows".')
    return people


def within_memory(*shape: int) -> tuple[int, ...]:
    """Return a shape, or refuse one with too many entries to be measured in memory."""
    entries = int(np.prod([int(s) for s in shape], dtype=object))
    if entries > MOST_ENTRIES:
        raise TooLarge(
            f"{' x '.join(f'{s:,}' for s in shape)} entries are more than the {MOST_ENTRIES:,} "
            "that are measured in memory: release their moments; or, where each row is a person, "
            "plan one of them, n=1, and release all row by row, plan.row_by_row(n)."
        )
    return tuple(shape)


def length(query: MatrixQuery, weights: Floats) -> float:
    """Return sup ||diag(sqrt weights) step D||_2 over changes: s2 of a linear answer."""
    scale = query.step * np.sqrt(weights)
    least = 1 / scale.max()
    # The strategy with sigma = 1 / scale: its mu is the length.
    unit = Diagonal(1 / scale / least, query.changes)
    cost = unit.cost(query.people, rows_may_leave=query.rows_may_leave)
    return cost.mu / least


def numbered(prefix: str, size: int) -> tuple[str, ...]:
    """Return names for an axis without any: x0, x1, ..."""
    return tuple(f"{prefix}{i}" for i in range(size))
