"""Numbers on a declared grid, in SQL: total, exact, and nothing but sums leaves the engine.

    v    what a column holds, read as a double; NULL where it is no finite number
    z    floor(min(max(v, low), high) / step + 1/2) - origin, a whole number
    kept of a person with an id, the first k rows by a hash of that person's own values

Sums cannot overflow: |z| < 2^31 by declaration (features.py), so that products stay below 2^62 and
their sums over 2^40 rows below 2^102; DuckDB's HUGEINT holds 2^127, Spark's DECIMAL(38, 0) 2^126.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInput
from ..privacy import People
from ..tables.sql import READABLE, Dialect, Kind, number_of, text_of
from .features import Features

# Sums in one statement: an engine plans thousands of expressions, but not any number.
_SUMS = 3000


def check_kinds(names: Sequence[str], people: People, kinds: Mapping[str, Kind | None]) -> None:
    """Refuse data that lacks a declared column, or holds it in a type that is no number."""
    wanted = [*names] + ([] if people.unit == "rows" else [people.unit])
    lacking = [name for name in wanted if name not in kinds]
    if lacking:
        raise InvalidInput(
            f"the data has no column {lacking[0]!r}, which is declared: it has "
            f"{', '.join(list(kinds)[:20])}."
        )
    for name in names:
        if kinds[name] not in READABLE["bins"]:
            raise InvalidInput(
                f"column {name!r} holds {kinds[name] or 'values of another type'}, and numbers are "
                "due: convert it, or leave it out."
            )
    if people.unit != "rows" and kinds[people.unit] not in READABLE["categories"]:
        raise InvalidInput(f"column {people.unit!r} cannot be read as the id of a person.")


@dataclass(frozen=True)
class Reader:
    """Rows on the grid, as a subquery."""

    features: Features
    people: People
    kinds: Mapping[str, Kind | None]
    source: str
    sql: Dialect

    @property
    def z(self) -> list[str]:
        """The names of the columns on the grid."""
        return [f"z{i}" for i in range(len(self.features.names))]

    def rows(self) -> str:
        """Return the subquery: one column a feature, rows that stay."""
        f, sql = self.features, self.sql
        values = [
            f"{number_of(sql.name(n), self.kinds[n], sql)} AS v{i}" for i, n in enumerate(f.names)
        ]
        by_id = self.people.unit != "rows"
        if by_id:
            unit = self.people.unit
            values.append(f"{text_of(sql.name(unit), self.kinds[unit], sql)} AS person")
        codes = [self._on_grid(i) for i in range(len(f.names))]
        whole = f"SELECT {', '.join(codes + ['person'] * by_id)} FROM (SELECT {', '.join(values)} "
        whole += f"FROM {self.source}) AS given"
        stays = [f"{z} IS NOT NULL" for z in self.z] if f.missing == "drop" else []
        stays += ["person IS NOT NULL"] * by_id
        if stays:
            whole = f"SELECT * FROM ({whole}) AS coded WHERE {' AND '.join(stays)}"
        if by_id:
            texts = ", ".join(f"CAST({z} AS {sql.text})" for z in self.z)
            cells = f"concat_ws(',', {texts})"
            whole = (
                "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY person ORDER BY "
                f"md5(concat(person, '|', cells)), cells) AS nth FROM (SELECT *, {cells} AS cells "
                f"FROM ({whole}) AS known) AS told) AS ranked WHERE nth <= {self.people.max_rows}"
            )
        return whole

    def _on_grid(self, i: int) -> str:
        f, sql = self.features, self.sql
        low, high, step = (sql.literal(float(a[i])) for a in (f.low, f.high, f.step))
        clipped = f"least(greatest(v{i}, {low}), {high})"
        # Whole numbers below 2^31, and so integers of 32 bits: half the work of 64.
        z = f"CAST(floor({clipped} / {step} + 0.5) AS BIGINT) - ({int(f.origin[i])})"
        absent = "NULL" if f.missing == "drop" else f"({int(f.absent[i])})"
        return f"CASE WHEN v{i} IS NULL THEN {absent} ELSE CAST({z} AS INTEGER) END AS z{i}"

    def grid(self, n: int) -> str:
        """Return the statement that reads the first n rows themselves."""
        return f"SELECT {', '.join(self.z)} FROM ({self.rows()}) AS rows_ LIMIT {n}"


def moments(reader: Reader, *, count: bool, sums: bool, products: bool) -> Iterator[str]:
    """Yield statements that give, one after the other, the count, the sums and the products."""
    z, far, wide = reader.z, reader.features.far.astype(object), reader.sql.wide
    i, j = np.triu_indices(len(z))
    wanted = ["count(*)"] * count
    wanted += [_sum(name, wide) for name in z] if sums else []
    if products:
        small = bool(np.max(far) ** 2 < 1 << 31)
        first = "{0}" if small else "CAST({0} AS BIGINT)"
        wanted += [_sum(f"{first.format(z[a])} * {z[b]}", wide) for a, b in zip(i, j, strict=True)]
    for start in range(0, len(wanted), _SUMS):
        yield f"SELECT {', '.join(wanted[start : start + _SUMS])} FROM ({reader.rows()}) AS rows_"


def _sum(expression: str, wide: str) -> str:
    # DuckDB sums integers as HUGEINT by itself, and faster than after a cast.
    return f"sum({expression})" if wide == "HUGEINT" else f"sum(CAST({expression} AS {wide}))"


def plain(
    names: Sequence[str],
    kinds: Mapping[str, Kind | None],
    source: str,
    sql: Dialect,
    *,
    key: str | None = None,
) -> str:
    """Return the statement that reads columns as doubles, after the number of each row if asked."""
    values = [f"{number_of(sql.name(n), kinds[n], sql)} AS v{i}" for i, n in enumerate(names)]
    given = [f"CAST(v{i} AS DOUBLE) AS v{i}" for i in range(len(names))]
    if key is not None:
        values, given = (
            [f"{sql.name(key)} AS row_", *values],
            ["CAST(row_ AS BIGINT) AS row_", *given],
        )
    return f"SELECT {', '.join(given)} FROM (SELECT {', '.join(values)} FROM {source}) AS given"
