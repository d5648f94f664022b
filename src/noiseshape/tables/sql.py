"""From a layout to one SQL statement that counts rows: total, exact, and telling nothing else.

    values    what is in the file, read as the declared kind; NULL where it cannot be
    codes     the atom of each value by policy; NULL where the row leaves the table
    kept      of a person with an id, the first k rows by a hash of that person's own values
    counted   rows, and exact integer sums, of every combination of atoms that occurs

No function here can fail on a value: casts are tried, arithmetic stays within declared bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import InvalidInput
from ..privacy import People
from .domains import Bins, Booleans, Categories, Dates, Domain, Integers
from .layout import Coded, Layout
from .predicate import Leaf, Predicate
from .schema import Schema
from .steps import Steps

# What a column is declared as by its file or frame. "real" is every number that may have a
# fraction or pass 64 bits.
Kind = Literal["integer", "real", "text", "truth", "date"]

READABLE: dict[str, tuple[Kind, ...]] = {
    "integers": ("integer", "real", "text", "truth"),
    "categories": ("integer", "real", "text", "truth", "date"),
    "bins": ("integer", "real", "text", "truth"),
    "booleans": ("integer", "real", "text", "truth"),
    "dates": ("integer", "text", "date"),
}

# Columns declared with at most this many cells are grouped as they are, and coded afterwards.
_FEW = 1024
_GROUPS = 1 << 20
_EVERYTHING = Steps([0], [0])  # of all cells: whether a row stays
_NO_LIMIT = 1 << 60
_LEAF = 8  # values that are compared one by one

_NUMBER = "^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)? *$"
_GREATEST = "1.7976931348623157e308"
_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")


@dataclass(frozen=True)
class Dialect:
    """Where two engines' SQL differs.

    Attributes
    ----------
    text, wide
        Types of text and of exact integers of 38 digits.
    matches
        How a text is matched with a regular expression.
    finite
        Whether a double is a number and not infinite. To DuckDB this is no comparison: its files'
        least and greatest values leave NaN out, and comparisons are decided by them.
    escape
        Whether a backslash in a literal must be doubled.
    mark
        What quotes an identifier.
    stages
        Whether grouping first and coding afterwards pays.
    """

    text: str
    wide: str
    matches: str
    finite: str
    escape: bool
    mark: str
    stages: bool

    def name(self, name: str) -> str:
        """Return a quoted identifier."""
        return self.mark + name.replace(self.mark, self.mark * 2) + self.mark

    def literal(self, value: str | int | float) -> str:
        """Return a value as it is written."""
        if isinstance(value, str):
            value = value.replace("\\", "\\\\") if self.escape else value
            return "'" + value.replace("'", "\\'" if self.escape else "''") + "'"
        return str(value) if isinstance(value, int) else f"CAST('{value!r}' AS DOUBLE)"


DUCKDB = Dialect(
    "VARCHAR", "HUGEINT", "regexp_matches({0}, {1})", "isfinite({0})", False, '"', True
)
# NaN is greater than every number there.
SPARK = Dialect(
    "STRING", "DECIMAL(38, 0)", "{0} RLIKE {1}", f"abs({{0}}) <= {_GREATEST}", True, "`", False
)


def check_kinds(schema: Schema, people: People, kinds: Mapping[str, Kind | None]) -> None:
    """Refuse data that lacks a declared column, or holds it in a type that cannot be read so."""
    wanted = list(schema.columns) + ([] if people.unit == "rows" else [people.unit])
    missing = [name for name in wanted if name not in kinds]
    if missing:
        raise InvalidInput(
            f"the data has no column {missing[0]!r}, which is declared"
            + (f" (nor {len(missing) - 1} more)" if len(missing) > 1 else "")
            + f": it has {', '.join(list(kinds)[:20])}."
        )
    for name in wanted:
        kind, domain = kinds[name], schema.columns.get(name)
        allowed = READABLE["categories" if domain is None else domain.kind]
        by_month = isinstance(domain, Dates) and domain.by == "month"
        if kind not in allowed or (by_month and kind == "integer"):
            raise InvalidInput(
                f"column {name!r} holds {kind or 'values of a type that has no order or text'}, "
                f"and is declared as {domain.kind if domain else 'the id of a person'}, which is "
                f"read from {', '.join(allowed)}: convert the column, or declare it otherwise."
            )


def counting(
    layout: Layout, people: People, kinds: Mapping[str, Kind | None], source: str, sql: Dialect
) -> str:
    """Return the statement: the atom on every axis, then the count, then each sum."""
    return _Counting(layout, people, kinds, source, sql).statement()


def coding(
    coded: Coded, people: People, kinds: Mapping[str, Kind | None], source: str, sql: Dialect
) -> str:
    """Return the statement that gives the atom on every axis, k0, k1, ..., of each row that counts.

    What it gives are rows of people: it is read inside the engine, and never from it.
    """
    return _Counting(coded, people, kinds, source, sql).held(source)


def tabulating(coded: str, sets: Sequence[Sequence[int]], sizes: Sequence[int]) -> str:
    """Return the statement that counts the cells of several marginals in one pass.

    Parameters
    ----------
    coded
        What stands behind FROM: rows with columns k0, k1, ..., none of them NULL.
    sets
        The axes of each marginal.
    sizes
        Atoms of each axis.

    Three columns: the number of the marginal, the number of the cell in it with its last axis
    fastest, and how many rows are there. Cells without rows are left out.
    """
    cells = []
    for axes in sets:
        cell = "CAST(0 AS BIGINT)"
        for i in axes:
            cell = f"({cell} * {sizes[i]} + k{i})"
        cells.append(cell)
    names = [f"c{number}" for number in range(len(sets))]
    inner = ", ".join(f"{cell} AS {name}" for cell, name in zip(cells, names, strict=True))
    # A cell is never NULL by itself: where it is, another marginal is being counted.
    which = " ".join(f"WHEN {name} IS NOT NULL THEN {i}" for i, name in enumerate(names))
    groups = ", ".join(f"({name})" for name in names)
    return (
        f"SELECT CASE {which} END AS part, coalesce({', '.join(names)}, 0) AS cell, count(*) AS n "
        f"FROM (SELECT {inner} FROM {coded}) AS placed GROUP BY GROUPING SETS ({groups})"
    )


@dataclass(frozen=True)
class _Counting:
    layout: Layout | Coded
    people: People
    kinds: Mapping[str, Kind | None]
    source: str
    sql: Dialect

    def statement(self) -> str:
        careful = self._careful
        if self.people.unit != "rows" or not self.sql.stages:
            return careful(self.source)
        regular = self._regular()
        if regular is None:
            return careful(self.source)
        conditions, whole = regular
        fast = self._staged(_where(conditions))
        if whole:
            return fast
        # Rows with a value outside its domain, if there are any, take the careful way. Where the
        # engine knows the least and greatest values it knows that there are none.
        inside = " AND ".join(conditions)
        return f"{fast} UNION ALL {careful(self.source, f' WHERE ({inside}) IS NOT TRUE')}"

    def _careful(self, source: str, where: str = "") -> str:
        """Return the statement that reads every value by its policies, and counts."""
        return self._grouped(self.held(source, where))

    def held(self, source: str, where: str = "") -> str:
        """Return the statement that gives atoms, and what is summed, of each row that counts."""
        schema = self.layout.schema
        columns = ", ".join(
            f"{self._value(n, d)} AS v{i}" for i, (n, d) in enumerate(schema.columns.items())
        )
        person = ""
        if self.people.unit != "rows":
            unit = self.sql.name(self.people.unit)
            person = f", {text_of(unit, self.kinds[self.people.unit], self.sql)} AS person"
        values = f"SELECT {columns}{person} FROM {source}{where}"
        number = {name: i for i, name in enumerate(schema.columns)}
        codes = [
            f"{self._code(a.column, f'v{number[a.column]}', a.steps)} AS k{i}"
            for i, a in enumerate(self.layout.axes)
        ]
        sums = [
            f"{self._summed(t.column, f'v{number[t.column]}')} AS s{i}"
            for i, t in enumerate(self.layout.sums)
        ]
        counted = {axis.column for axis in self.layout.axes}
        told = [f"k{i} IS NOT NULL" for i in range(len(codes))]
        stays = [
            f"{self._code(name, f'v{number[name]}', _EVERYTHING)} IS NOT NULL"
            for name, domain in schema.columns.items()
            if name not in counted and domain.drops
        ]
        stays += [
            f"NOT {self._truth(zero, lambda name: f'v{number[name]}')}" for zero in schema.zeros
        ]
        if person:
            stays.append("person IS NOT NULL")
            codes += [f"{self._cells(number)} AS cells", "person"]
        held = f"SELECT {', '.join([*codes, *sums]) or '1 AS one'} FROM ({values}) AS given"
        held = f"SELECT * FROM ({held}{_where(stays)}) AS coded{_where(told)}"
        if person:
            held = (
                "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY person ORDER BY "
                f"md5(concat(person, '|', cells)), cells) AS nth FROM ({held}) AS known) AS ranked "
                f"WHERE nth <= {self.people.max_rows}"
            )
        return held

    def _grouped(self, rows: str, weight: str = "count(*)", summed: str = "s{0}") -> str:
        keys = [f"k{i}" for i in range(len(self.layout.axes))]
        sums = [
            f"sum(CAST({summed.format(i)} AS {self.sql.wide}))"
            for i in range(len(self.layout.sums))
        ]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, weight, *sums])} FROM ({rows}) AS held{group}"

    def _regular(self) -> tuple[list[str], bool] | None:
        """Return what lets a row be grouped as it is and coded afterwards; None where it may not.

        And whether all other rows leave the table, so that no other way is needed for them. Axes
        of few cells are grouped by their raw values. Of an axis that is only summed, all that
        stays is one atom, or its declared values are.
        """
        conditions, strange, groups, whole = [], [], 1, True
        schema, axes = self.layout.schema, {a.column: a for a in self.layout.axes}
        for name, domain in schema.columns.items():
            kind, quoted = self.kinds[name], self.sql.name(name)
            if name in axes and self._raw(name):
                groups *= domain.size
                continue
            if name not in axes and not domain.drops:
                continue
            native = isinstance(domain, Integers) and kind == "integer"
            if native and (name not in axes or axes[name].count == 1):
                assert isinstance(domain, Integers)
                within = f"BETWEEN {domain.low} AND {domain.high}"
                if domain.outside == "drop" and domain.missing == "drop":
                    conditions.append(f"{quoted} {within}")
                elif domain.outside == "drop":
                    strange.append(f"{quoted} NOT {within}")
                elif domain.missing == "drop":
                    conditions.append(f"{quoted} IS NOT NULL")
                continue
            if name in axes:
                whole = False
                regular = axes[name].steps.at(axes[name].steps.starts[
                    axes[name].steps.starts < domain.regular])  # fmt: skip
                if len(set(regular.tolist())) > 1 or kind != "integer":
                    return None
            if native:
                assert isinstance(domain, Integers)
                conditions.append(f"{quoted} BETWEEN {domain.low} AND {domain.high}")
            else:
                code = self._code(name, self._value(name, domain), _EVERYTHING)
                conditions.append(f"{code} IS NOT NULL")
        if strange:
            # All in one: measured, a third of the time of as many conditions joined by AND.
            conditions.append(f"({' OR '.join(strange)}) IS NOT TRUE")
        for zero in schema.zeros:
            conditions.append(
                f"NOT {self._truth(zero, lambda n: self._value(n, schema.columns[n]))}"
            )
        return (conditions, whole) if groups <= _GROUPS else None

    def _native(self, name: str) -> str:
        """Return what the rows that stay add to the sum of a column: nothing where NULL."""
        column, domain = self.sql.name(name), self.layout.schema.columns[name]
        assert isinstance(domain, Integers)
        low, high = domain.low, domain.high
        if domain.outside == "clamp":
            return f"CASE WHEN {column} < {low} THEN {low} WHEN {column} > {high} THEN {high} ELSE {column} END"  # noqa: E501
        if domain.outside == "other":
            return f"CASE WHEN {column} BETWEEN {low} AND {high} THEN {column} END"
        return column

    def _raw(self, name: str) -> bool:
        """Return whether a column is grouped by the values as they are in the file."""
        summed = {total.column for total in self.layout.sums}
        few = self.layout.schema.columns[name].size <= _FEW
        return few and name not in summed and self.kinds[name] in ("integer", "text", "truth")

    def _staged(self, where: str) -> str:
        """Return the statement that groups raw values first: most of its work is native."""
        schema = self.layout.schema
        raw = [axis.column for axis in self.layout.axes if self._raw(axis.column)]
        keys = [self.sql.name(name) for name in raw]
        sums = [
            f"sum({self._native(total.column)}) AS s{i}" for i, total in enumerate(self.layout.sums)
        ]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        inner = (
            f"SELECT {', '.join([*keys, 'count(*) AS n', *sums])} FROM {self.source}{where}{group}"
        )
        codes = []
        for i, axis in enumerate(self.layout.axes):
            domain = schema.columns[axis.column]
            code = str(int(axis.steps.values[0]))
            if axis.column in raw:
                code = self._code(axis.column, self._value(axis.column, domain), axis.steps)
            codes.append(f"{code} AS k{i}")
        passed = [f"s{i}" for i in range(len(sums))]
        # A limit that no table meets: without it, what is asked of groups is asked of every row.
        held = f"SELECT {', '.join([*codes, 'n', *passed])} FROM ({inner} LIMIT {_NO_LIMIT}) AS raw"
        told = [f"k{i} IS NOT NULL" for i in range(len(codes))]
        held = f"SELECT * FROM ({held}) AS coded{_where(told)}"
        return self._grouped(held, weight=f"sum(CAST(n AS {self.sql.wide}))")

    def _value(self, name: str, domain: Domain) -> str:
        """Return what a column holds, read as its domain's kind; NULL where it cannot be."""
        column, kind = self.sql.name(name), self.kinds[name]
        if isinstance(domain, Categories) and not domain.numeric:
            return text_of(column, kind, self.sql)
        if isinstance(domain, Booleans):
            return _truth_value(column, kind, self.sql)
        if isinstance(domain, Dates):
            return _date(column, kind, domain, self.sql)
        return number_of(column, kind, self.sql)

    def _code(self, name: str, v: str, steps: Steps | None) -> str:
        """Return ``steps`` at the cell of v (or the cell itself), NULL where the row leaves."""
        domain = self.layout.schema.columns[name]
        return _code(domain, v, steps, _is_real(domain, self.kinds[name]), self.sql)

    def _truth(self, predicate: Predicate, value: Callable[[str], str]) -> str:
        if isinstance(predicate, Leaf):
            code = self._code(
                predicate.column,
                value(predicate.column),
                Steps(predicate.steps.starts, predicate.steps.values.astype(np.int64)),
            )
            return f"(coalesce({code}, 0) = 1)"
        parts = [self._truth(part, value) for part in predicate.parts]
        if predicate.how == "not":
            return f"(NOT {parts[0]})"
        return f"({f' {predicate.how.upper()} '.join(parts)})"

    def _summed(self, name: str, v: str) -> str:
        """Return what a row adds to the sum of a column: a whole number within its bounds."""
        domain = self.layout.schema.columns[name]
        assert isinstance(domain, Integers)
        clamped = domain.outside == "clamp"
        whole, fraction = v, ""
        if self.kinds[name] != "integer":
            whole = f"TRY_CAST(floor({v}) AS BIGINT)"
            fraction = "" if clamped else f"WHEN {v} <> floor({v}) THEN 0 "
        return (
            f"CASE WHEN {v} IS NULL THEN 0 WHEN {v} < {domain.low} THEN "
            f"{domain.low if clamped else 0} WHEN {v} > {domain.high} THEN "
            f"{domain.high if clamped else 0} {fraction}ELSE {whole} END"
        )

    def _cells(self, number: Mapping[str, int]) -> str:
        """Return the cell of the whole table that a row is in, as text: what its order hangs on."""
        parts = []
        for name in self.layout.schema.columns:
            code = self._code(name, f"v{number[name]}", None)
            parts.append(f"CAST({code} AS {self.sql.text})")
        return f"concat_ws(',', {', '.join(parts)})"


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _is_real(domain: Domain, kind: Kind | None) -> bool:
    whole = isinstance(domain, (Dates, Booleans)) or kind in ("integer", "truth")
    return not whole


def _finite(x: str, sql: Dialect) -> str:
    return f"CASE WHEN {sql.finite.format(x)} THEN {x} END"


def number_of(column: str, kind: Kind | None, sql: Dialect) -> str:
    """Return what a column holds, read as a number; NULL where it is no finite one."""
    if kind == "integer":
        return column
    if kind == "truth":
        return f"CAST({column} AS INTEGER)"
    if kind == "text":
        told = sql.matches.format(column, sql.literal(_NUMBER))
        return _finite(f"(CASE WHEN {told} THEN TRY_CAST(trim({column}) AS DOUBLE) END)", sql)
    return _finite(f"TRY_CAST({column} AS DOUBLE)", sql)


def text_of(column: str, kind: Kind | None, sql: Dialect) -> str:
    """Return what a column holds, read as text."""
    if kind == "text":
        return column
    if kind == "truth":
        return f"CASE WHEN {column} THEN 'true' WHEN NOT {column} THEN 'false' END"
    if kind == "real":  # 1.0 is the text 1
        real = _finite(f"TRY_CAST({column} AS DOUBLE)", sql)
        # Not floor, which is a whole number of 64 bits to Spark, and stops on a greater one.
        whole = f"TRY_CAST(({real}) AS BIGINT)"
        return (
            f"CASE WHEN CAST({whole} AS DOUBLE) = ({real}) AND abs(({real})) < 9e15 "
            f"THEN CAST({whole} AS {sql.text}) ELSE CAST(({real}) AS {sql.text}) END"
        )
    return f"CAST({column} AS {sql.text})"


def _truth_value(column: str, kind: Kind | None, sql: Dialect) -> str:
    """Return 0 or 1, -1 for a number that is neither, NULL for what cannot be read."""
    if kind == "truth":
        return f"CAST({column} AS INTEGER)"
    if kind == "text":
        words = f"lower(trim({column}))"
        true, false = (", ".join(map(sql.literal, w)) for w in (_TRUE, _FALSE))
        return f"CASE WHEN {words} IN ({true}) THEN 1 WHEN {words} IN ({false}) THEN 0 END"
    number = number_of(column, kind, sql)
    return f"CASE ({number}) WHEN 1 THEN 1 WHEN 0 THEN 0 ELSE CASE WHEN ({number}) IS NOT NULL THEN -1 END END"  # noqa: E501


def _date(column: str, kind: Kind | None, domain: Dates, sql: Dialect) -> str:
    """Return the year, or the month counted from year 0."""
    month = domain.by == "month"
    if kind == "integer":
        return column
    if kind == "date":
        year = f"CAST(year({column}) AS BIGINT)"
        return f"({year} * 12 + month({column}) - 1)" if month else year
    pattern = "^[0-9]{4}-(0[1-9]|1[0-2])" if month else "^[0-9]{4}(-|$)"
    told = sql.matches.format(column, sql.literal(pattern))
    year = f"TRY_CAST(substr({column}, 1, 4) AS BIGINT)"
    ordinal = f"{year} * 12 + TRY_CAST(substr({column}, 6, 2) AS BIGINT) - 1" if month else year
    return f"CASE WHEN {told} THEN {ordinal} END"


def _code(domain: Domain, v: str, steps: Steps | None, real: bool, sql: Dialect) -> str:
    def at(cell: int | None) -> str:
        if cell is None:
            return "NULL"
        return str(cell if steps is None else int(steps.at(cell)))

    clamped = domain.outside == "clamp"
    below = at(0 if clamped else domain.other)
    above = at(domain.regular - 1 if clamped else domain.other)
    missing = f"WHEN {v} IS NULL THEN {at(domain.absent)}"
    if isinstance(domain, (Categories, Booleans)):
        values = domain.values if isinstance(domain, Categories) else (0, 1)
        pairs = sorted((value, int(at(i))) for i, value in enumerate(values))
        return f"CASE {missing} ELSE {_listed(pairs, v, below, sql)} END"
    fraction = ""
    if isinstance(domain, Bins):
        before = "<=" if domain.closed == "right" else "<"
        bounds = [sql.literal(edge) for edge in domain.edges]
        low, high = bounds[0], bounds[-1]
    else:
        assert isinstance(domain, (Integers, Dates))
        first = domain.low if isinstance(domain, Integers) else domain.span[0]
        before, low, high = "<", str(first), str(first + domain.regular - 1)
        if real and not clamped:
            fraction = f"WHEN {v} <> floor({v}) THEN {below} "
    whole = f"TRY_CAST(floor({v}) AS BIGINT)" if real else v
    if not isinstance(domain, Bins) and (steps is None or _is_identity(steps, domain)):
        found = f"({whole} - ({low}))"
    else:
        cells = np.arange(domain.regular) if steps is None else steps.starts
        cells = cells[cells < domain.regular]
        edges = [bounds[s] if isinstance(domain, Bins) else str(first + int(s)) for s in cells]
        found = _tree([int(at(int(s))) for s in cells], edges, v, before)
    return (
        f"CASE {missing} WHEN {v} < {low} THEN {below} WHEN {v} > {high} THEN {above} "
        f"{fraction}ELSE {found} END"
    )


def _is_identity(steps: Steps, domain: Domain) -> bool:
    """Return whether the code of a number is its distance from the least."""
    inner = steps.starts[steps.starts < domain.regular]
    return len(inner) == domain.regular and np.array_equal(steps.at(inner), inner)


def _tree(values: Sequence[int], bounds: Sequence[str], v: str, before: str) -> str:
    """Return values by halving: run i holds what is not ``before`` bounds[i]."""
    if len(values) == 1:
        return str(int(values[0]))
    half = len(values) // 2
    low, high = _tree(values[:half], bounds[:half], v, before), _tree(
        values[half:], bounds[half:], v, before
    )  # fmt: skip
    return f"CASE WHEN {v} {before} {bounds[half]} THEN {low} ELSE {high} END"


def _listed(pairs: Sequence[tuple[int | str, int]], v: str, outside: str, sql: Dialect) -> str:
    """Return the number beside the listed value that v is, by halving."""
    if len(pairs) <= _LEAF:
        whens = " ".join(f"WHEN {sql.literal(value)} THEN {n}" for value, n in pairs)
        return f"CASE {v} {whens} ELSE {outside} END"
    half = len(pairs) // 2
    low, high = (_listed(part, v, outside, sql) for part in (pairs[:half], pairs[half:]))
    return f"CASE WHEN {v} < {sql.literal(pairs[half][0])} THEN {low} ELSE {high} END"


def checking(
    schema: Schema,
    people: People,
    kinds: Mapping[str, Kind | None],
    source: str,
    sql: Dialect,
) -> str:
    """Return the statement of ``noiseshape check``: rows, then three counts for each column.

    Missing as the file has it; missing or unreadable; outside. Every domain must have the cells
    "other" and "missing". With a person's id: rows without it, then rows and people beyond
    ``max_rows``.
    """
    reader = _Counting(Layout(schema, ()), people, kinds, source, sql)
    values, told = [], ["count(*)"]
    for i, (name, domain) in enumerate(schema.columns.items()):
        assert domain.other is not None
        assert domain.absent is not None
        values += [
            f"CASE WHEN {sql.name(name)} IS NULL THEN 1 ELSE 0 END AS m{i}",
            f"{reader._value(name, domain)} AS v{i}",
        ]
        steps = Steps([0, domain.other, domain.absent], [0, 1, 2])
        code = reader._code(name, f"v{i}", steps)
        told += [
            f"sum(m{i})",
            f"sum(CASE WHEN {code} = 2 THEN 1 ELSE 0 END)",
            f"sum(CASE WHEN {code} = 1 THEN 1 ELSE 0 END)",
        ]
    counted = f"SELECT {', '.join(told)} FROM (SELECT {', '.join(values)} FROM {source}) AS given"
    if people.unit == "rows":
        return counted
    unit = text_of(sql.name(people.unit), kinds[people.unit], sql)
    persons = (
        f"SELECT person, count(*) AS n FROM (SELECT {unit} AS person FROM {source}) AS named "
        "GROUP BY person"
    )
    most = people.max_rows
    beyond = (
        "SELECT sum(CASE WHEN person IS NULL THEN n ELSE 0 END) AS p1, "
        f"sum(CASE WHEN person IS NOT NULL AND n > {most} THEN n - {most} ELSE 0 END) AS p2, "
        f"sum(CASE WHEN person IS NOT NULL AND n > {most} THEN 1 ELSE 0 END) AS p3 "
        f"FROM ({persons}) AS counted"
    )
    return f"SELECT * FROM ({counted}) AS columns_ CROSS JOIN ({beyond}) AS persons_"
