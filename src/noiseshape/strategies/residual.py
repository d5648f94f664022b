"""Residuals of marginals: what each set of attributes tells beyond its subsets, measured apart.

    measure    y_T = 2^b (product over T of C_i) (T-marginal of x) + round(sigma N)
    rebuild    U-marginal = sum over T within U of (R_T y_T, spread evenly over U minus T)
    account    mu^2 = sum_T (product over T of the greatest entry of C_i's profile) / base_T^2

C_i are integer contrasts of attribute i: Helmert's rows, or those of a one-dimensional design. A
row of residual T has sigma ``base_T`` times the product of its contrasts' sigmas. Contrasts belong
to attributes, never to sizes. The whole table is never formed: only marginals are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arb import fraction_up
from .._checks import Floats, floats, frozen
from ..errors import InvalidInput, NotConverged, NotSpanned, TooLarge
from ..privacy import Profile
from ..sampling import rounded_variance
from ..tables.asks import Ask
from .contrast import Contrast, Helmert
from .dense import Dense
from .exact import Integers, difference, magnitude, nearest, shifted
from .lattice import Lattice
from .sigma import GREATEST, WIDEST, outer_up
from .strategy import RESIDUAL, Strategy, exact_integers

if TYPE_CHECKING:
    from ..privacy.people import Neighbours

# Sigmas of rows are at or above this, so that rounding the noise adds less than 1e-9 of its
# variance, and what is said of every cell of a marginal is one number.
FINE = 2.0**14

_SCALE = 34  # bits of each base, rounded up: 2^-33 of the noise at most
_COST_BITS = 44  # of the least residual's cost

# What one row can do is compared pair by pair up to this many cells of the table, and by the
# attributes in which two rows differ up to this many attributes.
WRITTEN_OUT = 256
MOST_DIFFERING = 8

_KEPT = 1 << 16  # rows of a residual whose scales are kept for the next of its kind


def forms(contrast: Contrast, W: Floats | None) -> tuple[Floats, Floats]:
    """Return the variance of rows beyond their mean, at unit scale, and their squared mean.

    Of the rows of W (r, n), or of every value by itself; of length 1 where all are alike.
    """
    n = contrast.cells
    if W is not None:
        return contrast.forms(W), W.mean(axis=1) ** 2
    if isinstance(contrast, Helmert):
        return np.array([1 - 1 / n]), np.array([1 / n**2])
    return np.diag(contrast.covariance), np.array([1 / n**2])


def halves(weights: Floats, contrasts: Sequence[Contrast], kept: Sequence[bool]) -> Floats:
    """Return the share of questions (r, n_1, ...) in each row of a residual, (r, rows).

    At unit scale: the sum of squares is the variance.
    """
    part = weights
    for contrast, inside in zip(contrasts, kept, strict=True):
        # The axis after the questions is treated, and goes last; what is averaged goes away.
        part = np.tensordot(part, contrast.spread, ([1], [0])) if inside else part.mean(axis=1)
    return np.asarray(part.reshape(len(weights), -1))


def with_whole(ask: Ask, whole: Sequence[int], sizes: Sequence[int]) -> Ask:
    """Return the same question about more attributes, of which it takes the total."""
    missing = [i for i in whole if i not in ask.members]
    if not missing:
        return ask
    members = tuple(sorted((*ask.members, *missing)))
    if ask.weights is None:
        known = dict(zip(ask.members, ask.factors, strict=True))
        ones = {i: np.ones((1, sizes[i])) for i in missing}
        return Ask(members, tuple(ones[i] if i in ones else known[i] for i in members))
    weights = ask.weights
    for i in missing:
        weights = np.expand_dims(weights, 1 + members.index(i))
    shape = (len(weights), *(sizes[i] for i in members))
    return Ask(members, weights=np.ascontiguousarray(np.broadcast_to(weights, shape)))


@dataclass(frozen=True, eq=False)
class Residual(Strategy):
    """Residuals of sets of attributes, each with its own scale; answers about their marginals.

    Parameters
    ----------
    contrasts
        What is measured along each attribute: one an attribute, whatever its size.
    lattice
        The sets whose residuals are measured.
    base : shape (t,)
        sigma of a residual's rows over the product of its contrasts' sigmas, in integer units.
    bits : integers, shape (t,)
        Rows of a residual are multiplied by 2^bits, so that noise is well above the grid.
    asked
        The questions.

    Cells of the table are in the order of the attributes, the last fastest. ``Residual.of`` makes
    one from the variance of each residual.
    """

    contrasts: tuple[Contrast, ...]
    lattice: Lattice
    base: Floats
    bits: NDArray[np.int64]
    asked: tuple[Ask, ...] = ()
    changes = None
    _outer: dict[tuple[int, ...], Floats] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if any(i in self.whole for i in np.unique(self.lattice.last[1:]).tolist()):
            raise InvalidInput("what is measured whole is in every residual, and in no set.")
        least, most = (
            _every(self.lattice, self.contrasts, [float(f(c.sigma)) for c in self.contrasts])
            * self.base
            for f in (np.min, np.max)
        )
        if not (np.all(least >= 1) and np.all(most <= GREATEST)):
            raise InvalidInput(
                f"the noise of the residuals would range from {least.min():.3g} to "
                f"{most.max():.3g} in integer units, beyond what is drawn: ask for targets that "
                "differ less, or in another unit."
            )
        object.__setattr__(self, "_least", least)
        for array in (self.base, self.bits):
            array.setflags(write=False)

    @staticmethod
    def of(
        contrasts: Sequence[Contrast], lattice: Lattice, u: Floats, asked: Sequence[Ask] = ()
    ) -> Residual:
        """Return residuals of these variances, (t,), rounded up by 2^-32 or less."""
        if len(contrasts) != lattice.attributes:
            raise InvalidInput(
                f"{lattice.attributes} attributes need a contrast each, got {len(contrasts)}."
            )
        return _fine(tuple(contrasts), lattice, np.sqrt(floats("u", u)), tuple(asked), up=True)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(contrast.cells for contrast in self.contrasts)

    @cached_property
    def whole(self) -> tuple[int, ...]:
        """The attributes that are measured whole: a factor of every residual."""
        return tuple(i for i, contrast in enumerate(self.contrasts) if contrast.whole)

    def attributes(self, number: int) -> tuple[int, ...]:
        """Return the attributes of a residual's table, increasing."""
        found = self.lattice.members(number)
        return tuple(sorted((*found, *self.whole))) if self.whole else found

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """How many rows each residual has, shape (t,)."""
        count = _every(self.lattice, self.contrasts, [float(c.rows) for c in self.contrasts])
        if not np.all(count < 2.0**40):
            raise TooLarge(f"a residual of {count.max():.3g} rows is more than can be measured.")
        return np.rint(count).astype(np.int64)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each residual's rows begin, and the end, shape (t + 1,)."""
        return np.concatenate([[0], np.cumsum(self.rows)])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows measured, and cells of the whole table: (k, d)."""
        return int(self.starts[-1]), math.prod(self.sizes)

    @property
    def queries(self) -> int:
        """How many questions are answered: m."""
        return sum(math.prod(ask.shape(self.sizes)) for ask in self.asked)

    @cached_property
    def u(self) -> Floats:
        """Variance of each residual at unit scale, rounding of the noise included, (t,)."""
        least: Floats = self._least  # type: ignore[attr-defined]
        scale = np.ldexp(self.base, -self.bits)
        return frozen(scale**2 * (1 + 1 / (12 * least**2)))

    def members(self, number: int) -> list[Contrast]:
        """Return the contrasts of a residual."""
        return [self.contrasts[i] for i in self.attributes(number)]

    def scales(self, number: int) -> Floats:
        """Return the sigma of each row of a residual: never below the exact product."""
        contrasts = self.members(number)
        key = tuple(map(id, contrasts))  # the same object, not the same size
        outer = self._outer.get(key)
        if outer is None:
            outer = outer_up(*(c.sigma for c in contrasts))
            if len(outer) <= _KEPT and len(self._outer) < _KEPT >> 4:
                self._outer[key] = outer
        return outer_up(outer, self.base[number : number + 1])

    @cached_property
    def sigma(self) -> Floats:  # type: ignore[override]
        """Noise scale of every row, shape (k,)."""
        return frozen(np.concatenate([self.scales(i) for i in range(len(self.lattice))]))

    # Measuring.

    def measures(self, number: int, table: Integers) -> Integers:
        """Return the rows of one residual, exactly, from the marginal of its attributes."""
        contrasts = self.members(number)
        bits = int(self.bits[number])
        gain = math.prod(c.gain for c in contrasts)
        if magnitude(table) * gain >> (62 - min(bits, 62)):
            table = table.astype(object)
        for contrast in contrasts:
            # The axis to treat is first, and goes last.
            table = np.moveaxis(contrast.apply(table), 0, -1)
        return shifted(np.ascontiguousarray(table).reshape(-1), bits)

    @cached_property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The marginals that have to be counted: those that no other one holds."""
        held = np.zeros(len(self.lattice), dtype=bool)
        wanted = []
        for number in range(len(self.lattice) - 1, -1, -1):  # larger sets come last
            if not held[number]:
                members = self.attributes(number)
                wanted.append(members)
                for subset, _ in self._subsets(members):
                    held[subset] = True
        return tuple(reversed(wanted))

    def _subsets(self, members: Sequence[int]) -> Iterator[tuple[int, tuple[bool, ...]]]:
        """Yield the number of every subset that is measured, and which attributes it has."""
        for kept in self._choices(members):
            number = self._number(members, kept)
            if number is not None:
                yield number, kept

    def _choices(self, members: Sequence[int]) -> Iterator[tuple[bool, ...]]:
        """Yield which of some attributes a residual can have: all that are measured whole."""
        return itertools.product(*([True] if i in self.whole else [False, True] for i in members))

    def _number(self, members: Sequence[int], kept: Sequence[bool]) -> int | None:
        inside = itertools.compress(members, kept)
        return self.lattice.number([i for i in inside if i not in self.whole])

    def parts(
        self, tables: Iterable[tuple[Sequence[int], Integers]]
    ) -> Iterator[tuple[int, Integers]]:
        """Yield every residual once, with its rows exactly, from marginals that hold them all.

        Parameters
        ----------
        tables
            Attributes, increasing, and the marginal's counts, (n_1, n_2, ...): ``self.tables``.
        """
        done = np.zeros(len(self.lattice), dtype=bool)
        for members, table in tables:
            for number, kept in self._subsets(members):
                if not done[number]:
                    done[number] = True
                    away = tuple(axis for axis, inside in enumerate(kept) if not inside)
                    yield number, self.measures(number, np.asarray(table.sum(axis=away)))
        if not done.all():
            raise InvalidInput(f"{int((~done).sum()):,} residuals are in none of the tables.")

    def apply(self, x: ArrayLike) -> Integers:
        """Return A~ x exactly, from the whole table: shape (k,)."""
        return self._apply_to(self._data(x))

    def _apply_to(self, X: Integers) -> Integers:
        if X.ndim > 1:
            return np.stack([self._apply_to(column) for column in X.T], axis=1)
        if magnitude(X).bit_length() + len(X).bit_length() > 62:
            X = X.astype(object)
        table = X.reshape(self.sizes)
        parts = [self.measures(i, self._marginal(table, i)) for i in range(len(self.rows))]
        if any(part.dtype == object for part in parts):
            parts = [part.astype(object) for part in parts]
        return np.concatenate(parts)

    def _marginal(self, table: Integers, number: int) -> Integers:
        kept = self.attributes(number)
        return np.asarray(table.sum(axis=tuple(i for i in range(table.ndim) if i not in kept)))

    # Accounting.

    def _shares(self, each: Sequence[float]) -> Floats:
        """Return at or above each product of ``each`` over a set, over base^2: (t,)."""
        scale = np.ldexp(self.base, -self.bits)
        # A few dozen roundings of 2^-53 each: far below the margin.
        return _every(self.lattice, self.contrasts, each) / scale**2 * (1 + 2.0**-44)

    def _summed(self, shares: Floats) -> tuple[int, int]:
        """Return (units, exponent): units / 2^exponent is at or above the sum of the shares."""
        positive = shares[shares > 0]
        if not positive.size:
            return 0, 0
        exponent = max(0, _COST_BITS - int(np.floor(np.log2(positive.min()))))
        if exponent + np.log2(positive.max()) < 1000:
            units = np.ceil(np.ldexp(positive, exponent))
            return sum(map(int, units.tolist())), exponent  # whole doubles are exact
        return sum(-(-(Fraction(s) * (1 << exponent)) // 1) for s in positive.tolist()), exponent

    @property
    def _greatest(self) -> list[float]:
        return [fraction_up(c.greatest) for c in self.contrasts]

    @property
    def steady(self) -> bool:
        """Whether a person costs the same in every cell."""
        told = {int(i) for i in np.unique(self.lattice.last[1:])} | set(self.whole)
        return all(self.contrasts[i].steady for i in told)

    @cached_property
    def _profile(self) -> Profile:
        d = self.shape[1]
        if self.steady:
            units, exponent = self._summed(self._shares(self._greatest))
            return Profile(np.full(d, units, dtype=object), exponent)
        total: Any = 0
        scale = [Fraction(b) / (1 << int(q)) for b, q in zip(self.base, self.bits, strict=True)]
        # 60 bits below the least residual's weight.
        exponent = 60 + max(0, max((s**2).numerator.bit_length() for s in scale))
        for number, s in enumerate(scale):
            weight = -(-(1 << exponent) // s**2)
            part: Any = np.full((1,) * len(self.sizes), int(weight), dtype=object)
            for i in self.attributes(number):
                profile = self.contrasts[i].profile
                shape = [1] * len(self.sizes)
                shape[i] = -1
                part = -(-(part * profile.units.reshape(shape)) >> profile.exponent)
            total = total + part
        return Profile(np.broadcast_to(total, self.sizes).ravel(), exponent)

    def cost_of_one(self, neighbours: Neighbours) -> Fraction:
        """Return mu^2 of one row: exact but for rounding up, or under replace a bound above.

        Under replace it is exact for small tables, and for up to eight attributes measured in
        full; else sum_T 2 (greatest) (1 + the most negative inner product) / base^2.
        """
        if neighbours == "replace":
            return self._replaced
        if self.steady or self.shape[1] > WRITTEN_OUT:
            units, exponent = self._summed(self._shares(self._greatest))
            return Fraction(units, 1 << exponent)
        return self.profile().greatest

    @cached_property
    def _replaced(self) -> Fraction:
        told = np.unique(self.lattice.last[1:])
        plain = not self.whole and all(isinstance(self.contrasts[i], Helmert) for i in told)
        if plain and len(told) <= MOST_DIFFERING:
            return self._differing(told)
        if self.shape[1] <= WRITTEN_OUT:
            return self.densify().greatest_difference()
        return self._replaced_at_most()

    def _replaced_at_most(self) -> Fraction:
        """Return a bound above what residuals cost when a row is replaced."""
        shares = 2 * self._shares(self._greatest)
        worst = np.array([c.negative for c in self.contrasts])
        if not self.whole:
            shares[0] = 0  # everybody is in the total
        most = max((worst[i] for i in self.whole), default=0.0)
        shares *= 1 + np.maximum(self.lattice.greatest(worst), most)
        return Fraction(*_over(self._summed(shares * (1 + 2.0**-44))))

    def _differing(self, told: NDArray[np.int64]) -> Fraction:
        """Return the greatest cost over the sets of attributes in which two rows can differ."""
        n = np.array(self.sizes, dtype=np.float64)
        shares = self._shares(self._greatest)
        greatest = Fraction(0)
        for bits in itertools.product([False, True], repeat=len(told)):
            each = np.ones(len(n))
            each[told] = np.where(bits, -1 / (n[told] - 1), 1.0)
            # 1 - product is off by an ulp or two of 1 a factor; where it is 0 it is exactly so.
            moved = 1 - self.lattice.product(each)
            moved = np.where(moved > 0, moved + 2.0**-46, 0.0)
            summed = self._summed(2 * shares * moved * (1 + 2.0**-46))
            greatest = max(greatest, Fraction(*_over(summed)))
        return greatest

    # Rebuilding.

    def check_spans(self, ask: Ask) -> None:
        """Refuse a question that tells apart what was not measured apart."""
        ask = with_whole(ask, self.whole, self.sizes)
        self._numbers(ask)
        for axis, i in enumerate(ask.members):
            contrast = self.contrasts[i]
            if contrast.rows < contrast.cells - (not contrast.whole):
                if ask.weights is not None:
                    W = np.moveaxis(ask.weights, 1 + axis, -1).reshape(-1, contrast.cells)
                else:
                    factor = ask.factors[axis]
                    W = np.eye(contrast.cells) if factor is None else factor
                contrast.check_spans(W)

    def estimate(self, number: int, y: Integers) -> tuple[Floats, float]:
        """Return a residual as a table over its attributes, and how far rounding may be off.

        With orthonormal rows the sums that make it up are as long as what they give, and n of them
        along an axis lose n ulps of that length; rows that are written out lose more.
        """
        contrasts = self.members(number)
        bits = int(self.bits[number])
        table = np.ldexp(np.asarray(y, dtype=np.float64), -bits)
        length = float(np.linalg.norm(table * (np.ldexp(self.base[number], -bits)
                                               / self.scales(number))))  # fmt: skip
        loss = 2.0**-52 * (8 + 2 * sum(c.cells for c in contrasts))
        for contrast in contrasts:
            if not isinstance(contrast, Helmert):
                length *= float(np.linalg.norm(contrast.spread, 2))
                loss += 1e-12
        table = table.reshape([c.rows for c in contrasts])
        for contrast in contrasts:
            table = np.moveaxis(contrast.undo(table), 0, -1)
        return np.asarray(table), loss * length

    def answers(
        self, ask: Ask, y_of: Callable[[int], Integers], tables: dict[int, Any] | None = None
    ) -> Floats:
        """Return the answers to one question, in its shape.

        Parameters
        ----------
        y_of
            The measured rows of a residual by its number.
        tables
            What ``estimate`` gave already; more is put in.

        In doubles where that is proved to lose less than a millionth of a standard error, and
        in integers where counts are so large that it might.
        """
        tables = {} if tables is None else tables
        shape = ask.shape(self.sizes)
        ask = with_whole(ask, self.whole, self.sizes)
        numbers = self._numbers(ask)
        for number, _ in numbers:
            if number not in tables:
                tables[number] = self.estimate(number, y_of(number))
        off = sum(
            error + 2.0**-50 * float(np.abs(table).max(initial=0.0))
            for table, error in (tables[number] for number, _ in numbers)
        )
        gross = self._gross_of(ask)
        error = float(np.sqrt(self.variances(ask).min()))
        if not 4 * gross * off <= RESIDUAL * error:
            exact = self._answers_exactly(ask, numbers, y_of, error / max(gross, 1.0))
            return exact.reshape(shape)
        total: Any = 0.0
        for number, kept in numbers:
            shared = math.prod(
                self.sizes[i] for i, inside in zip(ask.members, kept, strict=True) if not inside
            )
            total = total + self._spread_out(tables[number][0], kept) / shared
        return self._asked_of(ask, np.asarray(total)).reshape(shape)

    def _numbers(self, ask: Ask) -> list[tuple[int, tuple[bool, ...]]]:
        """Return the residuals within a marginal, and which of its attributes each has."""
        found = []
        for kept in self._choices(ask.members):
            number = self._measured_number(ask, kept)
            if number is not None:
                found.append((number, kept))
        return found

    def _measured_number(self, ask: Ask, kept: Sequence[bool]) -> int | None:
        """Return the residual of some attributes of a question; None where it has no part in it."""
        number = self._number(ask.members, kept)
        if number is None and self._needs(ask, kept):
            raise NotSpanned(
                "the question needs attributes together that were not measured together: "
                "ask for their marginal in the plan."
            )
        return number

    def _needs(self, ask: Ask, kept: Sequence[bool]) -> bool:
        """Return whether a question has a part in a residual."""
        if ask.weights is None:
            return not any(
                inside and i not in self.whole and W is not None and not np.ptp(W, axis=1).any()
                for i, inside, W in zip(ask.members, kept, ask.factors, strict=True)
            )
        weights = ask.weights
        for axis, (i, inside) in enumerate(zip(ask.members, kept, strict=True), start=1):
            if i in self.whole:
                continue
            mean = weights.mean(axis=axis, keepdims=True)
            weights = weights - mean if inside else mean
        return bool(np.abs(weights).max() > 1e-12 * np.abs(ask.weights).max())

    @staticmethod
    def _spread_out(table: NDArray[Any], kept: Sequence[bool]) -> NDArray[Any]:
        sizes = iter(table.shape)
        return table.reshape([next(sizes) if inside else 1 for inside in kept])

    def _asked_of(self, ask: Ask, table: Floats) -> Floats:
        """Return the answers from the marginal that they are about."""
        sizes = [self.sizes[i] for i in ask.members]
        table = np.broadcast_to(table, sizes)
        if ask.weights is not None:
            return ask.weights.reshape(len(ask.weights), -1) @ table.reshape(-1)
        for W in ask.factors:  # the axis to treat is first, and goes last
            table = np.moveaxis(table if W is None else np.tensordot(W, table, 1), 0, -1)
        return table

    def _gross_of(self, ask: Ask) -> float:
        """Return the greatest sum of absolute weights of an answer."""
        if ask.weights is not None:
            return float(np.abs(ask.weights).reshape(len(ask.weights), -1).sum(axis=1).max())
        return math.prod(float(np.abs(W).sum(axis=1).max()) for W in ask.factors if W is not None)

    def _answers_exactly(
        self,
        ask: Ask,
        numbers: list[tuple[int, tuple[bool, ...]]],
        y_of: Callable[[int], Integers],
        error: float,
    ) -> Floats:
        """Return the answers from integers: one division at the end."""
        bits = max(0, 40 - math.floor(math.log2(error)))
        total: Any = 0
        for number, kept in numbers:
            refined = self._refined(number, y_of(number), bits, error)
            total = total + self._spread_out(refined, kept)
        sizes = [self.sizes[i] for i in ask.members]
        table: Integers = np.broadcast_to(np.asarray(total, dtype=object), sizes)
        over = math.prod(self.sizes[i] for i in ask.members if i not in self.whole) << bits
        if ask.weights is not None:
            W, places = exact_integers(ask.weights.reshape(len(ask.weights), -1))
            found = W.astype(object) @ table.reshape(-1)
            return np.array([int(v) / (over << int(b)) for v, b in zip(found, places, strict=True)])
        places = np.zeros((1,) * len(sizes), dtype=np.int64)
        for axis, factor in enumerate(ask.factors):
            if factor is not None:
                W, at = exact_integers(factor)
                table = np.tensordot(W.astype(object), table, 1)
                places = places + at.reshape([-1 if i == axis else 1 for i in range(len(sizes))])
            table = np.moveaxis(table, 0, -1)
        each = zip(table.flat, np.broadcast_to(places, table.shape).flat, strict=True)
        return np.array([int(v) / (over << int(b)) for v, b in each]).reshape(table.shape)

    def _refined(self, number: int, y: Integers, bits: int, error: float) -> Integers:
        """Return a residual's table times its cells as integers over 2^bits.

        To a billionth of ``error`` before it is multiplied, and of sum zero along every axis: what
        contrasts do not see, rounding of the first step has put in.
        """
        shape = [c.cells for c in self.members(number)]
        target = shifted(y.astype(object), bits)
        X: Integers = np.zeros(shape, dtype=object)
        for _ in range(12):
            rest = difference(target, self.measures(number, X)).astype(object)
            left = np.array([int(v) / (1 << bits) for v in rest])
            step = nearest(self._undone(number, left), bits)
            X = np.asarray(X + step.astype(object), dtype=object)
            if magnitude(step) <= max(1, int(error * 1e-9 * 2.0**bits)):
                for axis, contrast in enumerate(self.members(number)):
                    if not contrast.whole:
                        X = X * contrast.cells - X.sum(axis=axis, keepdims=True)
                return X
        raise NotConverged(
            "a marginal cannot be rebuilt to a millionth of its standard error: its contrasts are "
            "too ill-conditioned."
        )

    def _undone(self, number: int, y: Floats) -> Floats:
        contrasts = self.members(number)
        table = np.ldexp(y, -int(self.bits[number])).reshape([c.rows for c in contrasts])
        for contrast in contrasts:
            table = np.moveaxis(contrast.undo(table), 0, -1)
        return np.asarray(table)

    def rebuild(self, y: ArrayLike) -> Floats:
        """Return the answers, shape (m,), from the measured integers y, shape (k,)."""
        measured, tables = self._measured(y), {}  # type: ignore[var-annotated]

        def y_of(number: int) -> Integers:
            return measured[self.starts[number] : self.starts[number + 1]]

        found = [self.answers(ask, y_of, tables).reshape(-1) for ask in self.asked]
        return np.concatenate(found)

    # Errors.

    def variances(self, ask: Ask) -> Floats:
        """Return the variance of each answer to one question, broadcast to its shape.

        Rounding of the noise is counted at its most: at most 3e-10 above the truth.
        """
        published = ask.shape(self.sizes)
        ask = with_whole(ask, self.whole, self.sizes)
        shape = ask.shape(self.sizes)
        if ask.weights is not None:
            parts = ((self._half(ask.weights, kept, ask), n) for n, kept in self._numbers(ask))
            found: Any = sum(self.u[n] * (half**2).sum(axis=1) for half, n in parts)
            return np.asarray(found)
        along = []
        for axis, (i, W) in enumerate(zip(ask.members, ask.factors, strict=True)):
            inside, outside = forms(self.contrasts[i], W)
            sizes = [-1 if a == axis else 1 for a in range(len(shape))]
            along.append((inside.reshape(sizes), outside.reshape(sizes)))
        total: Any = 0.0
        for number, kept in self._numbers(ask):
            part: Any = np.asarray(self.u[number])
            for pair, within in zip(along, kept, strict=True):
                part = part * pair[0 if within else 1]
            total = total + part
        return np.broadcast_to(np.asarray(total), shape).reshape(published)

    def _half(self, weights: Floats, kept: Sequence[bool], ask: Ask) -> Floats:
        return halves(weights, [self.contrasts[i] for i in ask.members], kept)

    def covariances(self, one: Ask, other: Ask) -> Floats:
        """Return the covariance of the answers to two questions, (r, r'), of what is executed."""
        one, other = (with_whole(ask, self.whole, self.sizes) for ask in (one, other))
        common = set(one.members) & set(other.members)
        found = np.zeros((math.prod(one.shape(self.sizes)), math.prod(other.shape(self.sizes))))
        first, second = one.written(self.sizes), other.written(self.sizes)
        places = dict(self._numbers(other))
        for number, kept in self._numbers(one):
            if set(self.lattice.members(number)) <= common:
                unit = self.scales(number)
                noise = np.asarray(rounded_variance(unit)) / unit**2
                noise = noise * np.ldexp(self.base[number], -int(self.bits[number])) ** 2
                left = self._half(first, kept, one) * noise
                found += left @ self._half(second, places[number], other).T
        return found

    def covariance(self) -> Floats:
        """Return the covariance of the answers, shape (m, m)."""
        return np.block([[self.covariances(a, b) for b in self.asked] for a in self.asked])

    def _variance(self) -> Floats:
        return np.concatenate([self.variances(ask).reshape(-1) for ask in self.asked])

    # The rest of the protocol.

    def densify(self) -> Dense:
        """Return the same strategy over the whole table, with every matrix written out."""
        if self.shape[0] * self.shape[1] > 2**24:
            raise TooLarge(
                f"{self.shape[0]:,} rows over {self.shape[1]:.3g} cells are not written out."
            )
        rows = [self._written_out(number) for number in range(len(self.lattice))]
        return Dense(np.vstack(rows), self.sigma, self._workload())

    def _written_out(self, number: int) -> Integers:
        """Return the rows of a residual over the whole table."""
        kept = self.attributes(number)
        each = [
            contrast.written() if i in kept else np.ones((1, contrast.cells), dtype=np.int64)
            for i, contrast in enumerate(self.contrasts)
        ]
        wide = reduce(np.kron, [m.astype(object) for m in each])
        return shifted(np.asarray(wide, dtype=object), int(self.bits[number]))

    def _workload(self) -> Floats:
        """Return W over the whole table."""
        found = []
        for ask in self.asked:
            weights = ask.written(self.sizes)
            shape = [self.sizes[i] if i in ask.members else 1 for i in range(len(self.sizes))]
            wide = np.broadcast_to(
                weights.reshape(len(weights), *shape), (len(weights), *self.sizes)
            )
            found.append(wide.reshape(len(weights), -1))
        return np.vstack(found) if found else np.zeros((0, self.shape[1]))

    def scaled(self, factor: float, *, up: bool = True) -> Residual:
        """Return the same shape with every sigma multiplied by ``factor``."""
        scale = np.ldexp(self.base, -self.bits) * floats("factor", factor)
        made = _fine(self.contrasts, self.lattice, scale, self.asked, up=up, least=self.bits)
        return replace(made, _outer=self._outer)

    def _approximate_to(self, R: Floats) -> Floats:
        return self.densify()._approximate_to(R)

    def _ask_to(self, X: Integers) -> Integers:
        return self.densify()._ask_to(X)

    @property
    def _asked_bits(self) -> NDArray[np.int64]:
        return self.densify()._asked_bits

    def _rebuilt_variance(self, variances: Floats) -> Floats:
        return self.densify()._rebuilt_variance(variances)

    def _gross(self) -> float:
        return max(self._gross_of(ask) for ask in self.asked)


def _every(lattice: Lattice, contrasts: Sequence[Contrast], each: Sequence[float]) -> Floats:
    """Return the product of a number of each attribute over every residual's table, (t,)."""
    always = math.prod(x for x, contrast in zip(each, contrasts, strict=True) if contrast.whole)
    return lattice.product(np.array(each)) * always


def _over(summed: tuple[int, int]) -> tuple[int, int]:
    units, exponent = summed
    return units, 1 << exponent


def _fine(
    contrasts: tuple[Contrast, ...],
    lattice: Lattice,
    scale: Floats,
    asked: tuple[Ask, ...],
    *,
    up: bool,
    least: NDArray[np.int64] | None = None,
) -> Residual:
    """Return residuals of these scales, each rounded up (or down), on a grid that is fine."""
    if not np.all((scale > 0) & np.isfinite(scale)):
        raise InvalidInput("the scale of a residual must be above 0 and finite.")
    finest = _every(lattice, contrasts, [float(c.sigma.min()) for c in contrasts]) * scale
    bits = np.maximum(0, np.ceil(np.log2(FINE / finest))).astype(np.int64)
    if least is not None:
        bits = np.maximum(bits, least)
    if bits.max(initial=0) > WIDEST:
        raise InvalidInput(
            f"noise of {finest.min():.3g} would need integers beyond 2^{WIDEST}, and protects "
            "nobody: relax the tightest targets."
        )
    mantissa, exponent = np.frexp(scale)
    # The product of two doubles rounds by 2^-53, and so does a row's sigma: stay clear of both.
    if up:
        mantissa = np.ceil(mantissa * (1 + 2.0**-45) * 2.0**_SCALE)
    else:
        mantissa = np.floor(mantissa * (1 - 2.0**-45) * 2.0**_SCALE)
    return Residual(contrasts, lattice, np.ldexp(mantissa, exponent + bits - _SCALE), bits, asked)
