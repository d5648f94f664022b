"""The values that one column may take, declared by people, and what becomes of all others.

A domain is an ordered list of cells. Every value a file can hold belongs to exactly one of them
or leaves the table: policies are total, and nothing stops on a value.

    integers(0, 99)             one cell a whole number
    categories(["F", "M"])      one cell a value
    bins([0, 20, 40, 100])      0 to 20, above 20 to 40, above 40 to 100
    booleans()                  false, true
    dates("2020", "2024", by="month")

After the regular cells come "other", where ``outside="other"``, and "missing", where
``missing="own-cell"``. What cannot be read as the declared kind (text where a number is due)
counts as missing.
"""

from __future__ import annotations

import itertools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from .._checks import real
from ..errors import InvalidInput, TooLarge
from .steps import Steps, between, on_cells

Outside = Literal["drop", "clamp", "other"]
Missing = Literal["own-cell", "drop"]
Operator = Literal["==", "!=", "<", "<=", ">", ">="]
Literals = int | float | str | bool

# Doubles tell whole numbers apart up to here, and engines hand numbers over as doubles.
_FURTHEST = 2**53

# Cells that can be listed one by one; a column may have more, if no query lists them.
MOST_LISTED = 1_000_000


class Domain(ABC):
    """The cells of one column, and the policies for everything else.

    Parameters
    ----------
    outside
        A value outside the domain: its row is dropped, the value is clamped to the nearest cell
        (ordered domains), or it goes to the cell "other".
    missing
        A missing or unreadable value: a cell of its own, or its row is dropped.
    """

    kind: ClassVar[str]
    ordered: ClassVar[bool] = True
    outside: Outside
    missing: Missing

    @property
    @abstractmethod
    def regular(self) -> int:
        """How many cells hold declared values."""

    @abstractmethod
    def _label(self, cell: int) -> str: ...

    @abstractmethod
    def compare(self, operator: Operator, value: Literals) -> Steps:
        """Return the truth of "operator value" over the cells; refuse what would split one."""

    def _check_policies(self) -> None:
        if self.outside not in ("drop", "clamp", "other"):
            raise InvalidInput(f"outside must be drop, clamp or other, got {self.outside!r}.")
        if self.missing not in ("own-cell", "drop"):
            raise InvalidInput(f"missing must be own-cell or drop, got {self.missing!r}.")
        if self.outside == "clamp" and not self.ordered:
            raise InvalidInput(f"{self.kind} have no order to clamp in: say outside drop or other.")

    @property
    def other(self) -> int | None:
        """The cell of values outside the domain, if they have one."""
        return self.regular if self.outside == "other" else None

    @property
    def absent(self) -> int | None:
        """The cell of missing values, if they have one."""
        return self.size - 1 if self.missing == "own-cell" else None

    @property
    def size(self) -> int:
        """How many cells there are in all."""
        return self.regular + (self.outside == "other") + (self.missing == "own-cell")

    @property
    def drops(self) -> bool:
        """Whether some value takes its row out of the table."""
        return self.outside == "drop" or self.missing == "drop"

    def label(self, cell: int) -> str:
        """Return the name of a cell."""
        if cell == self.absent:
            return "missing"
        return "other" if cell == self.other else self._label(cell)

    def labels(self) -> tuple[str, ...]:
        """Return the names of all cells, in order."""
        if self.size > MOST_LISTED:
            raise TooLarge(
                f"{self.size:,} cells are too many to list one by one, at most {MOST_LISTED:,}: "
                "ask for ranges or bands, or for the sum."
            )
        return tuple(self.label(i) for i in range(self.size))

    def is_missing(self) -> Steps:
        """Return the truth of "is missing" over the cells."""
        return on_cells([] if self.absent is None else [self.absent], self.size)

    def is_other(self) -> Steps:
        """Return the truth of "is other" over the cells."""
        return on_cells([] if self.other is None else [self.other], self.size)

    def is_regular(self) -> Steps:
        """Return where the declared values are."""
        return between(0, self.regular, self.size)

    def _span(self, operator: Operator, first: int, after: int) -> Steps:
        """Return the comparison with a value that fills cells first, ..., after - 1."""
        low, high = {
            "==": (first, after),
            "!=": (first, after),
            "<": (0, first),
            "<=": (0, after),
            ">": (after, self.regular),
            ">=": (first, self.regular),
        }[operator]
        low, high = max(low, 0), min(high, self.regular)
        found = between(low, high, self.size)
        if operator != "!=":
            return found
        regular = self.is_regular()
        starts = np.union1d(found.starts, regular.starts)
        return Steps(starts, regular.at(starts) & ~found.at(starts)).merged()

    def policies(self) -> str:
        """Return in words what becomes of values outside the domain and of missing ones."""
        outside = {
            "drop": "rows with a value outside are left out",
            "clamp": "values outside count as the nearest inside",
            "other": 'values outside count as "other"',
        }[self.outside]
        missing = {
            "drop": "rows with a missing value are left out",
            "own-cell": 'missing values count as "missing"',
        }[self.missing]
        return f"{outside}; {missing}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the declaration."""
        return {"kind": self.kind} | {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]  # each member is one


def from_json(content: dict[str, Any]) -> Domain:
    """Return the domain that ``to_json`` said, checked as if typed anew."""
    members: list[Any] = [Integers, Categories, Bins, Booleans, Dates]
    kinds = {member.kind: member for member in members}
    arguments = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    kind = arguments.pop("kind")
    if kind not in kinds:
        raise InvalidInput(f"no domain is called {kind!r}: there are {', '.join(kinds)}.")
    made: Domain = kinds[kind](**arguments)
    return made


@dataclass(frozen=True)
class Integers(Domain):
    """Whole numbers from ``low`` to ``high``, both included.

    A number between two whole ones is outside; clamped, it counts as the one below.
    """

    kind: ClassVar[str] = "integers"
    low: int
    high: int
    outside: Outside = "drop"
    missing: Missing = "own-cell"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            bound = getattr(self, name)
            if isinstance(bound, bool) or not isinstance(bound, (int, np.integer)):
                raise InvalidInput(f"integers need whole bounds, got {type(bound).__name__}.")
            if not -_FURTHEST < bound < _FURTHEST:
                raise InvalidInput("integers need bounds below 2^53 in size.")
            object.__setattr__(self, name, int(bound))
        if not self.low <= self.high:
            raise InvalidInput(f"integers need low <= high, got {self.low} and {self.high}.")
        self._check_policies()

    @property
    def regular(self) -> int:
        """How many whole numbers there are."""
        return self.high - self.low + 1

    def _label(self, cell: int) -> str:
        return str(self.low + cell)

    def compare(self, operator: Operator, value: Literals) -> Steps:
        """Return the comparison with a number, whole or not."""
        number = _number(self.kind, value)
        # Beyond the domain all comparisons are alike; clipped before it is made an index.
        number = min(max(number, self.low - 1), self.high + 1)
        below = math.floor(number) - self.low
        exact = float(number).is_integer()
        return self._span(operator, below if exact else below + 1, below + 1)


@dataclass(frozen=True)
class Categories(Domain):
    """One cell for each declared value: all numbers, compared as numbers, or all text."""

    kind: ClassVar[str] = "categories"
    ordered: ClassVar[bool] = False
    values: tuple[int | str, ...]
    outside: Outside = "drop"
    missing: Missing = "own-cell"

    def __post_init__(self) -> None:
        values = _listed("categories are a list of values.", self.values)
        values = tuple(int(v) if isinstance(v, np.integer) else v for v in values)
        if any(isinstance(v, bool) or not isinstance(v, (int, str)) for v in values):
            raise InvalidInput("categories must be texts or whole numbers; booleans() are others.")
        if any(isinstance(v, str) for v in values):
            values = tuple(str(v) for v in values)
        if any(isinstance(v, int) and abs(v) >= _FURTHEST for v in values):
            raise InvalidInput("categories that are numbers must be below 2^53 in size.")
        if any(isinstance(v, str) and not v.isprintable() for v in values):
            raise InvalidInput("categories must be printable text.")
        if not values:
            raise InvalidInput("categories need at least one value.")
        if len(set(values)) != len(values):
            raise InvalidInput("categories must differ from each other.")
        object.__setattr__(self, "values", values)
        self._check_policies()

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers."""
        return isinstance(self.values[0], int)

    @property
    def regular(self) -> int:
        """How many values there are."""
        return len(self.values)

    @cached_property
    def cells(self) -> dict[int | str, int]:
        """The cell of each value."""
        return {value: i for i, value in enumerate(self.values)}

    def _label(self, cell: int) -> str:
        return str(self.values[cell])

    def cell(self, value: Literals) -> int:
        """Return the cell of a declared value."""
        key = value if self.numeric else str(value)
        if isinstance(value, bool) or key not in self.cells:
            raise InvalidInput(f"{value!r} is not one of the categories: {_some(self.values)}.")
        return self.cells[key]  # type: ignore[index]  # it is in it

    def compare(self, operator: Operator, value: Literals) -> Steps:
        """Return "== value" or "!= value"; categories have no order."""
        if operator not in ("==", "!="):
            raise InvalidInput(f"categories have no order: use ==, != or in, not {operator}.")
        cell = self.cell(value)
        return self._span(operator, cell, cell + 1)


@dataclass(frozen=True)
class Bins(Domain):
    """Intervals of numbers between edges: "0-20" is 0 to 20, "20-40" above 20 and up to 40.

    ``closed="left"`` counts an edge with the interval above it instead; the last edge always
    counts with the last interval, and the first with the first.
    """

    kind: ClassVar[str] = "bins"
    edges: tuple[float, ...]
    closed: Literal["right", "left"] = "right"
    outside: Outside = "drop"
    missing: Missing = "own-cell"

    def __post_init__(self) -> None:
        given = _listed("bins are a list of edges.", self.edges)
        edges = tuple(real("an edge of bins", e) for e in given)
        if len(edges) < 2 or any(not a < b for a, b in itertools.pairwise(edges)):
            raise InvalidInput("bins need at least two edges that increase.")
        if self.closed not in ("right", "left"):
            raise InvalidInput(f"closed must be right or left, got {self.closed!r}.")
        object.__setattr__(self, "edges", edges)
        self._check_policies()

    @property
    def regular(self) -> int:
        """How many intervals there are."""
        return len(self.edges) - 1

    def _label(self, cell: int) -> str:
        low, high = (f"{e:.17g}" if e % 1 else f"{e:.0f}" for e in self.edges[cell : cell + 2])
        return f"{low}-{high}" if self.edges[cell] >= 0 else f"{low} to {high}"

    def compare(self, operator: Operator, value: Literals) -> Steps:
        """Return the comparison with a number that cuts no interval."""
        number = _number(self.kind, value)
        first, last = self.edges[0], self.edges[-1]
        right = self.closed == "right"
        if operator in ("==", "!="):
            raise InvalidInput(
                "bins do not tell single numbers apart: compare with <, <=, > or >=."
            )
        upward = operator in (">", ">=")
        # "> e" and "<= e" cut just after e; ">= e" and "< e" just before it.
        after = operator in (">", "<=")
        if number < first or (number == first and not after):
            cut = 0
        elif number > last or (number == last and after):
            cut = self.regular
        elif number in self.edges[1:-1] and after == right:
            cut = self.edges.index(number)
        else:
            sign = {True: ("> or <="), False: (">= or <")}[right]
            raise InvalidInput(
                f"{operator} {number:g} would cut an interval in two: with {sign} the bins can be "
                f"cut at {_some([f'{e:g}' for e in self.edges[1:-1]]) or 'no number'}."
            )
        first_cell, after_cell = (cut, self.regular) if upward else (0, cut)
        return between(first_cell, after_cell, self.size)


@dataclass(frozen=True)
class Booleans(Domain):
    """False and true: also 0 and 1, and the words false/true, f/t, no/yes, n/y."""

    kind: ClassVar[str] = "booleans"
    ordered: ClassVar[bool] = False
    outside: Outside = "drop"
    missing: Missing = "own-cell"

    def __post_init__(self) -> None:
        self._check_policies()

    @property
    def regular(self) -> int:
        """Two."""
        return 2

    def _label(self, cell: int) -> str:
        return ("false", "true")[cell]

    def compare(self, operator: Operator, value: Literals) -> Steps:
        """Return "== true" and the like."""
        if operator not in ("==", "!=") or not isinstance(value, bool):
            raise InvalidInput("booleans compare as == true, == false, or by their name alone.")
        return self._span(operator, int(value), int(value) + 1)


_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-\d{2})?)?")


@dataclass(frozen=True)
class Dates(Domain):
    """Years, or months, from ``first`` to ``last``, both included: "2020" or "2020-03"."""

    kind: ClassVar[str] = "dates"
    first: str
    last: str
    by: Literal["year", "month"] = "year"
    outside: Outside = "drop"
    missing: Missing = "own-cell"

    def __post_init__(self) -> None:
        if self.by not in ("year", "month"):
            raise InvalidInput(f"dates are by year or by month, got {self.by!r}.")
        for name in ("first", "last"):
            object.__setattr__(self, name, str(getattr(self, name)))
        if not self.span[0] <= self.span[1]:
            raise InvalidInput(f"dates need first <= last, got {self.first} and {self.last}.")
        self._check_policies()

    @cached_property
    def span(self) -> tuple[int, int]:
        """First and last year, or month counted from year 0."""
        return self._ordinals(self.first)[0], self._ordinals(self.last)[1]

    def _ordinals(self, text: str) -> tuple[int, int]:
        """Return the first and the last year or month that a date names."""
        match = _DATE.fullmatch(text)
        if not match or (match[2] and not 1 <= int(match[2]) <= 12):
            raise InvalidInput(f"a date is written 2020, 2020-03 or 2020-03-31, got {text!r}.")
        year, month = int(match[1]), match[2]
        if self.by == "year":
            return year, year
        return (year * 12 + int(month) - 1,) * 2 if month else (year * 12, year * 12 + 11)

    @property
    def regular(self) -> int:
        """How many years or months there are."""
        return self.span[1] - self.span[0] + 1

    def _label(self, cell: int) -> str:
        ordinal = self.span[0] + cell
        if self.by == "year":
            return f"{ordinal:04d}"
        return f"{ordinal // 12:04d}-{ordinal % 12 + 1:02d}"

    def compare(self, operator: Operator, value: Literals) -> Steps:
        """Return the comparison with a year or month, as text or as a whole number of years."""
        if isinstance(value, (bool, float)):
            raise InvalidInput("dates compare with '2020' or '2020-03'.")
        text = f"{value:04d}" if isinstance(value, int) else value
        if self.by == "year" and len(text) > 4:
            raise InvalidInput(f"the column holds years, and {text!r} names less than one.")
        first, last = (o - self.span[0] for o in self._ordinals(text))
        first, last = (min(max(o, -1), self.regular) for o in (first, last))
        return self._span(operator, first, last + 1)


def integers(
    low: int, high: int, *, outside: Outside = "drop", missing: Missing = "own-cell"
) -> Integers:
    """Return the domain of whole numbers from ``low`` to ``high``, both included."""
    return Integers(low, high, outside, missing)


def categories(
    values: Sequence[int | str], *, outside: Outside = "drop", missing: Missing = "own-cell"
) -> Categories:
    """Return the domain of the declared values, in their order."""
    return Categories(_listed("categories are a list of values.", values), outside, missing)


def bins(
    edges: Sequence[float],
    *,
    closed: Literal["right", "left"] = "right",
    outside: Outside = "drop",
    missing: Missing = "own-cell",
) -> Bins:
    """Return the domain of intervals between edges; an edge counts with the interval below."""
    return Bins(_listed("bins are a list of edges.", edges), closed, outside, missing)


def booleans(*, outside: Outside = "drop", missing: Missing = "own-cell") -> Booleans:
    """Return the domain of false and true."""
    return Booleans(outside, missing)


def dates(
    first: str | int,
    last: str | int,
    *,
    by: Literal["year", "month"] = "year",
    outside: Outside = "drop",
    missing: Missing = "own-cell",
) -> Dates:
    """Return the domain of years or months from ``first`` to ``last``, both included."""
    return Dates(str(first), str(last), by, outside, missing)


def _listed(sentence: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
        raise InvalidInput(sentence)
    return tuple(values)


def _number(kind: str, value: Literals) -> float:
    if isinstance(value, (bool, str)):
        raise InvalidInput(f"{kind} compare with numbers, got {value!r}.")
    return value


def _some(values: Sequence[object]) -> str:
    shown = ", ".join(str(v) for v in values[:8])
    return shown + (f", ... ({len(values)} in all)" if len(values) > 8 else "")
