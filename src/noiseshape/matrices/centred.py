"""A covariance measured as one matrix, for noise that is added to the matrix itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._checks import Floats
from ..errors import InvalidInput
from ..strategies.changes import Ball
from ..strategies.exact import Integers
from .moments import Covariance
from .query import MatrixQuery
from .reading import Numbers, length_of, numbers


@dataclass(frozen=True, eq=False, repr=False)
class CentredRows:
    """Rows whose n^2 C is to be computed: the source of a release."""

    rows: Numbers
    query: Centred

    def cells(self) -> int:
        """Return how many integers the data becomes."""
        return self.query.size

    def read(self) -> Integers:
        """Read the rows, and return n sum z z^T - (sum z)(sum z)^T for i <= j, on one grid.

        What one row can do hangs on how many others there are. Where that is private, sums beyond
        those that n rows can have are cut to them, so that s2 holds however many there are; where
        it is public, more rows than were declared are refused.
        """
        q = self.query
        assert q.count is not None
        v = self.rows.moments(count=True, sums=True, products=True)
        m = len(q.features.names)
        sums, products = v[1 : 1 + m].astype(object), v[1 + m :].astype(object)
        if q.count_public and v[0] > q.count:
            raise InvalidInput("there are more rows than were declared, count=...")
        far = q.features.far.astype(object) * q.count
        sums = np.clip(sums, -far, far)
        i, j = q.entries
        times = q.times.astype(object)
        return (q.count * products - sums[i] * sums[j]) * times[i] * times[j]


class Centred(Covariance):
    """The covariance with a declared count n, as whole numbers: n^2 C is one.

    Linear in what is measured, which is the answer itself: noise on it may have any covariance. A
    person moves it by at most s2, in whatever direction. Noise on the sums and products, as a
    covariance has it otherwise, costs less for the same accuracy: this is for the papers' designs.
    """

    kind = "centred covariance"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count is None:
            raise InvalidInput(
                "a covariance is measured as one matrix where the number of rows is public: "
                "declare it, count=..."
            )

    @property
    def linear(self) -> bool:
        """It is what is measured."""
        return True

    @property
    def parts(self) -> dict[str, int]:
        """Entries i <= j."""
        return {"entries": self.size}

    @property
    def times(self) -> Integers:
        """Each column's step in the finest of all, a power of two."""
        return np.rint(self.features.step / self.features.step.min()).astype(np.int64)

    @cached_property
    def changes(self) -> Ball:  # type: ignore[override]  # of another shape than a covariance's
        """Any change of length s2; a Ball is of one row, and doubled where one is replaced."""
        i, j = self.entries
        people = self.people
        each = people.max_rows * (2 if people.neighbours == "replace" else 1)
        # s2 is a double of a few operations: up by more than they may have lost.
        far = Fraction(self.s2()) * (1 + Fraction(1, 1 << 44)) / Fraction(float(self.step[0]))
        return Ball(len(i), far / each, np.where(i == j, 1, 2))

    @cached_property
    def step(self) -> Floats:
        """The finest step, squared, over n^2."""
        assert self.count is not None
        m = len(self.features.names)
        unit = float(self.features.step.min()) ** 2 / self.count**2
        return np.full(m * (m + 1) // 2, unit)

    def source(self, data: Any) -> Any:
        """Return the rows to be read; refuse another number of them than the public one."""
        told = length_of(data) if self.count_public else None
        if told is not None and told != self.count:
            raise InvalidInput(f"the question is about {self.count} rows, and the data has {told}.")
        return CentredRows(numbers(data, self.features, self.people), self)

    def answer(self, v: Floats) -> Floats:
        """Return the matrix."""
        return self._mirrored(v)

    def spread(self) -> sparse.csr_array:
        """Return the identity: each entry is a coordinate."""
        return sparse.csr_array(sparse.eye_array(self.size))


def centred(query: MatrixQuery) -> MatrixQuery:
    """Return a covariance with a declared count as one matrix; any other question as it is."""
    if isinstance(query, Covariance) and not isinstance(query, Centred) and query.count is not None:
        return Centred(
            features=query.features, people=query.people, rows=query.rows, count=query.count,
            expected=query.expected,
        )  # fmt: skip
    return query
