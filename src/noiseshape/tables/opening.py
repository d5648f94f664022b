"""From what a person hands in to the engine that holds its rows."""

from __future__ import annotations

import os
from typing import Any

from ..errors import InvalidInput
from .engine import Engine

ACCEPTED = (
    "a path to Parquet or CSV files, a pandas, Polars or Spark frame, an Arrow table, or a DuckDB "
    "relation"
)


def opened(data: Any) -> Engine:
    """Return the engine of a path, frame, table or relation: no row is read."""
    from . import duck

    if isinstance(data, (str, os.PathLike)):
        return duck.files(data)
    # Told by name, so that nothing is imported that the caller did not import.
    module, name = type(data).__module__.split(".")[0], type(data).__name__
    if module == "pandas" and name == "DataFrame":
        return duck.pandas(data)
    if module == "polars" and name in ("DataFrame", "LazyFrame"):
        return duck.polars(data)
    if module == "pyarrow" and name == "Table":
        return duck.arrow(data)
    if name == "DuckDBPyRelation":
        return duck.Relation(data)
    if module == "pyspark" and name == "DataFrame":
        from .spark import Spark

        return Spark(data)
    raise InvalidInput(f"the data must be {ACCEPTED}; got {type(data).__name__}.")
