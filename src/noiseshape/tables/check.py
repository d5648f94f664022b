"""What does not fit its declaration: exact counts of private data, for the custodian's eyes only.

A release never tells how many values a policy met. Before one, the custodian may look.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..errors import InvalidInput
from ..privacy import People
from .engine import Engine
from .schema import Schema
from .sql import check_kinds, checking

WARNING = (
    "FOR THE CUSTODIAN'S EYES ONLY: exact counts of private data. Publish none of them, and let "
    "none of them choose a domain or a budget."
)


def check(engine: Engine, schema: Schema, people: People) -> tuple[int, list[dict[str, Any]]]:
    """Read all rows; return how many there are, and for each column how many values do not fit.

    Under a person's id, ``max_rows`` is checked as well: a last entry tells how many rows have no
    id, and how many rows of how many people are beyond the limit.
    """
    check_kinds(schema, people, engine.kinds())
    open_ended = Schema(
        {
            name: replace(domain, outside="other", missing="own-cell")  # type: ignore[type-var]
            for name, domain in schema.columns.items()
        }
    )
    statement = checking(open_ended, people, engine.kinds(), engine.source, engine.dialect)
    found: Sequence[Any] | None = None
    with suppress(Exception):  # an engine's message may quote a row, even to the custodian's log
        (found,) = engine.rows(statement)
    if found is None:
        raise InvalidInput("the rows cannot be read: check that the file is whole.")
    numbers = [int(value or 0) for value in found]
    rows, rest = numbers[0], numbers[1:]
    listed: list[dict[str, Any]] = [
        {"column": name, "missing": rest[3 * i], "unreadable": rest[3 * i + 1] - rest[3 * i],
         "outside": rest[3 * i + 2]}
        for i, name in enumerate(schema.columns)
    ]  # fmt: skip
    if people.unit != "rows":
        no_id, beyond, persons = rest[3 * len(schema.columns) :]
        listed.append(
            {"column": people.unit, "rows without it": no_id, "rows beyond max_rows": beyond,
             "people beyond max_rows": persons}
        )  # fmt: skip
    return rows, listed
