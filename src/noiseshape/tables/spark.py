"""Spark frames, counted by Spark: rows stay on the cluster. Needs the extra ``spark``."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .sql import SPARK, Kind

_KINDS: dict[str, Kind] = {
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "real",
    "double": "real",
    "string": "text",
    "boolean": "truth",
    "date": "date",
    "timestamp_ntz": "date",
}


class Spark:
    """The rows of a Spark frame, under a name of their own while they are counted."""

    dialect = SPARK

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.source = f"noiseshape_{secrets.token_hex(8)}"

    def kinds(self) -> Mapping[str, Kind | None]:
        """Return what each column is declared as."""
        return {
            name: "real" if declared.startswith("decimal") else _KINDS.get(declared)
            for name, declared in self._frame.dtypes
        }

    def arrays(self, statement: str) -> list[Any]:
        """Read rows, by column."""
        rows = list(self.rows(statement))
        return [
            np.ma.array([v or 0 for v in column], mask=[v is None for v in column])
            for column in zip(*rows, strict=True)
        ]

    def rows(self, statement: str) -> Iterable[tuple[Any, ...]]:
        """Read rows."""
        self._frame.createOrReplaceTempView(self.source)
        try:
            return [tuple(row) for row in self._frame.sparkSession.sql(statement).collect()]
        finally:
            self._frame.sparkSession.catalog.dropTempView(self.source)
