"""The one door through which data meets noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats
from ..errors import BudgetExceeded, InvalidInput
from ..privacy import Budget, Cost, People
from ..sampling import rounded_gaussian
from ..strategies import Residual, Strategy
from ..strategies.exact import Integers, magnitude

_TOGETHER = 1 << 18  # rows of small residuals that are drawn at once


@dataclass(frozen=True, eq=False)
class Measurement:
    """Integers that may be published, and what they cost.

    Attributes
    ----------
    strategy
        What was measured; it rebuilds the answers and states their errors.
    values : integers, shape (k,)
        y = A~ x + round(sigma N).
    cost
        What the measurement cost, from the integers that were executed.
    """

    strategy: Strategy
    values: Integers
    cost: Cost

    def answers(self) -> Floats:
        """Return the answers to the strategy's workload, shape (m,): unbiased."""
        return self.strategy.rebuild(self.values)

    def stderr(self) -> Floats:
        """Return the standard error of each answer, shape (m,), of the noise only."""
        return np.sqrt(self.strategy.variance)


def measure(
    strategy: Strategy,
    data: ArrayLike,
    allowance: Budget | Cost,
    *,
    people: People | None = None,
    rows_may_leave: bool = False,
) -> Measurement:
    """Measure integers with exact noise, if what it costs is within ``allowance``.

    Parameters
    ----------
    strategy
        The integer rows and scales to execute.
    data : integers, shape (d,)
        f(x): counts, or real data rounded to a declared grid beforehand.
    allowance
        The most that may be spent; compared as exact rationals before data is looked at.
    people, rows_may_leave
        Whose privacy; see ``Strategy.cost``.

    Formal Guarantees:
      The result is mu-GDP for every mu at or above ``cost.mu``, given true secret bits:
      A~ f(x) + round(sigma N) = round(A~ f(x) + sigma N) is post-processing of the Gaussian
      mechanism (docs/math/exact-noise.md). Nothing real-valued is added to data.
    """
    if not isinstance(strategy, Strategy):
        raise InvalidInput(
            f"what is measured must be a Strategy, got {type(strategy).__name__}: see "
            "noiseshape.strategies, as rounded(A, workload).strategy."
        )
    cost = _paid(strategy, allowance, people, rows_may_leave)
    exact = strategy.apply(data)
    noise = rounded_gaussian(strategy.sigma)
    return Measurement(strategy, _sum(exact, noise), cost)


def measure_tables(
    strategy: Residual,
    tables: Iterable[tuple[Sequence[int], Integers]],
    allowance: Budget | Cost,
    *,
    people: People | None = None,
    rows_may_leave: bool = False,
) -> Measurement:
    """Measure marginals that are counted one after the other, as ``measure`` measures a table.

    Parameters
    ----------
    tables
        Attributes, and the exact counts of their marginal: those of ``strategy.tables``, taken
        one at a time, so that memory holds one of them and what was measured.

    Formal Guarantees:
      Those of ``measure``: the cost is that of the whole strategy, and each of its rows is drawn
      once.
    """
    cost = _paid(strategy, allowance, people, rows_may_leave)
    y: Integers = np.zeros(strategy.shape[0], dtype=np.int64)
    for numbers, parts in _together(strategy.parts(tables)):
        exact = np.concatenate(parts)
        noise = rounded_gaussian(np.concatenate([strategy.scales(n) for n in numbers]))
        total = _sum(exact, noise)
        if total.dtype == object:
            y = y.astype(object)
        at = 0
        for number in numbers:
            begin, end = strategy.starts[number], strategy.starts[number + 1]
            y[begin:end] = total[at : at + end - begin]
            at += end - begin
    return Measurement(strategy, y, cost)


def _together(
    parts: Iterable[tuple[int, Integers]],
) -> Iterator[tuple[list[int], list[Integers]]]:
    """Yield residuals by the hundred thousand rows: small ones cost more to begin than to draw."""
    numbers: list[int] = []
    held: list[Integers] = []
    rows = 0
    for number, exact in parts:
        numbers.append(number)
        held.append(exact)
        rows += len(exact)
        if rows >= _TOGETHER:
            yield numbers, held
            numbers, held, rows = [], [], 0
    if numbers:
        yield numbers, held


def _paid(
    strategy: Strategy, allowance: Budget | Cost, people: People | None, rows_may_leave: bool
) -> Cost:
    """Return what a measurement costs, or refuse one that costs more than is allowed."""
    if not isinstance(allowance, (Budget, Cost)):
        raise InvalidInput(
            f"what is allowed must be a Budget or a Cost, got {type(allowance).__name__}: "
            "Budget(epsilon=1, delta=1e-9), Budget(rho=0.1) or Budget(mu=0.5)."
        )
    cost = strategy.cost(people, rows_may_leave=rows_may_leave)
    if isinstance(allowance, Cost) and allowance.neighbours != cost.neighbours:
        raise InvalidInput(
            f"the allowance is stated under {allowance.neighbours} neighbours, and the measurement "
            f"costs what it costs under {cost.neighbours}: state both under one relation."
        )
    if not cost.mu_squared <= allowance.mu_squared:
        raise BudgetExceeded(
            f"the measurement costs mu = {cost.mu:.6g}, and {allowance.mu:.6g} is allowed: "
            f"{_remedy(cost.mu, allowance.mu)}allow more. Nothing was measured."
        )
    return cost


def _sum(exact: Integers, noise: Integers) -> Integers:
    """Return the sum, which cannot overflow: as int64 where it is below 2^62, and else as objects.

    A hundred million Python integers would be four gigabytes. Which of the two it is follows from
    the sum alone: files are laid out by it, and may tell of nothing but what is measured.
    """
    if magnitude(exact) >> 62 == magnitude(noise) >> 62 == 0:
        total = exact.astype(np.int64, copy=False) + noise.astype(np.int64, copy=False)
    else:
        total = exact.astype(object) + noise.astype(object)
    return np.asarray(total.astype(object if magnitude(total) >> 62 else np.int64, copy=False))


def _remedy(needed: float, allowed: float) -> str:
    return f"scale its noise by {needed / allowed:.6g}, or " if allowed > 0 else ""
