"""Second moments and covariances of bounded columns."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._checks import Floats
from ..errors import InvalidInput
from ..privacy import People
from ..strategies.changes import Outer
from .features import Bounds, Missing, columns_declared
from .query import length
from .sums import OverRows


class SecondMoment(OverRows):
    """The sum over rows of x x^T, shape (m, m): linear, measured for i <= j."""

    kind = "second moment"
    sums = False
    products = True

    @property
    def symmetric(self) -> bool:
        """Both are."""
        return True

    @property
    def semidefinite(self) -> bool:
        """Both are."""
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        """A row and a column for each feature."""
        return (len(self.features.names),) * 2

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The columns, twice."""
        return (self.features.names,) * 2

    @cached_property
    def changes(self) -> Outer:
        """X x^T of one row of bounded features."""
        f = self.features
        return Outer(f.far, f.signed, count=False, sums=False)

    @cached_property
    def step(self) -> Floats:
        """The product of two columns' steps."""
        i, j = self.entries
        return self.features.step[i] * self.features.step[j]

    def s2(self) -> float:
        """Return sum_i c_i^2 (m c^2 for equal bounds); replaced, at most sqrt 2 times it.

        MVG's Example 1 prints 2 m c^2 / n for x x^T / n; sqrt 2 m c^2 / n suffices.
        """
        return length(self, self.twice)

    def gamma(self) -> float:
        """Return n sum_i c_i^2 (MVG, Example 1: m c^2 after division by n)."""
        return self._declared_count("gamma") * float(np.square(self._ends()).sum())


class Covariance(SecondMoment):
    """The covariance of the columns, shape (m, m), divided by n.

    From a count (private or declared), sums and second moments about the middle of the bounds.
    """

    kind = "covariance"
    sums = True
    divides = True

    @property
    def linear(self) -> bool:
        """The means are multiplied with each other."""
        return False

    @cached_property
    def changes(self) -> Outer:
        """Count, x and x x^T of one row of bounded features."""
        f = self.features
        return Outer(f.far, f.signed, count=self.counts)

    @cached_property
    def step(self) -> Floats:
        """1, each column's own, and their products."""
        i, j = self.entries
        f = self.features.step
        return np.concatenate([np.ones(int(self.counts)), f, f[i] * f[j]])

    def answer(self, v: Floats) -> Floats:
        """Return products / n - (sums / n)(sums / n)^T; a count below 1 is taken as 1."""
        m, at = len(self.features.names), int(self.counts)
        n = max(float(v[0]), 1.0) if self.counts else float(self.count or 1)
        mean = v[at : at + m] / n
        return self._mirrored(v[at + m :] / n) - np.outer(mean, mean)

    def spread(self) -> sparse.csr_array:
        """Return G, to first order and at most, whatever the data are within their bounds.

        With h the half ranges: 1/n^2 for the product, h_j^2 / n^2 and h_i^2 / n^2 for the sums
        (4 h_i^2 / n^2 for i = j), and h_i^2 h_j^2 / n^2 for the count, since
        |m_i m_j - C_ij| <= h_i h_j.
        """
        n, m, h = self.rows_about, len(self.features.names), self._half
        i, j = self.entries
        at, pairs = int(self.counts), np.arange(len(i))
        same = i == j
        rows = [pairs, pairs, pairs[~same]]
        columns = [at + m + pairs, at + i, at + j[~same]]
        values = [np.ones(len(i)), np.where(same, 4.0, 1.0) * h[j] ** 2, h[i[~same]] ** 2]
        if self.counts:
            rows.append(pairs)
            columns.append(np.zeros(len(i), dtype=np.int64))
            values.append((h[i] * h[j]) ** 2)
        placed = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        return sparse.csr_array(placed, shape=(len(i), self.size)) / n**2

    def s2(self) -> float:
        """Return a bound, for a declared count n and half ranges h.

        Replaced: 4 (n - 1) / n^2 sum h^2. With the row out, the rest has mean m within the bounds,
        and C changes by (n - 1) / n^2 (u u^T - v v^T), u and v the old and new row less m, both in
        one box of edges 2 h around 0: no entry changes by more than 4 h_i h_j. Added or removed at
        a fixed divisor: (3 + 1/n) / n sum h^2, where the sums of the others are within n h.
        """
        n = self._declared_count("s2")
        square = float(np.square(self._half).sum())
        if self.people.neighbours == "replace" and not self.rows_may_leave:
            return 4 * (n - 1) / n**2 * square
        k = self.people.max_rows * (2 if self.people.neighbours == "replace" else 1)
        return k * (3 + k / n) / n * square

    def gamma(self) -> float:
        """Return sum h^2: ||C||_F is at most its trace."""
        half = (self.features.high - self.features.low) / 2
        return float(np.square(half).sum())


def second_moment(
    rows: Any = None,
    *,
    bounds: Bounds | None = None,
    columns: ArrayLike | None = None,
    step: ArrayLike | None = None,
    missing: Missing = "drop",
    count: int | None = None,
    people: People | None = None,
) -> SecondMoment:
    """Ask for the sum over rows of x x^T, shape (m, m): linear, measured for i <= j.

    Parameters
    ----------
    rows, bounds, columns, step, missing, count, people
        As :func:`~noiseshape.matrices.sum` has them.
    """
    if missing == "middle":
        raise InvalidInput(
            "a second moment is about 0, and what is no number has no place there: missing='drop', "
            "or ask for a covariance."
        )
    features = columns_declared(rows, columns, bounds, step, "zero", missing)
    return SecondMoment(features=features, people=people or People(), rows=rows, count=count)


def covariance(
    rows: Any = None,
    *,
    bounds: Bounds | None = None,
    columns: ArrayLike | None = None,
    step: ArrayLike | None = None,
    missing: Missing = "drop",
    count: int | None = None,
    expected: int | None = None,
    people: People | None = None,
) -> Covariance:
    """Ask for the covariance of the columns, shape (m, m), divided by n.

    From a noisy (or public) count, sums and second moments, all about the middle of the bounds,
    where they cost least. Not linear: a release simulates its errors, a plan bounds them to
    first order, whatever the data.

    Parameters
    ----------
    rows, bounds, columns, step, missing, count, expected, people
        As :func:`~noiseshape.matrices.mean` has them.
    """
    features = columns_declared(rows, columns, bounds, step, "middle", missing)
    return Covariance(
        features=features, people=people or People(), rows=rows, count=count, expected=expected
    )
