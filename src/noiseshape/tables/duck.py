"""The embedded engine: files, frames and Arrow tables through DuckDB."""

from __future__ import annotations

import contextlib
import csv
import glob
import gzip
import math
import os
import re
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import numpy as np
import pyarrow as pa

from ..errors import InvalidInput
from .sql import DUCKDB, Kind

_INTEGERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
}  # fmt: skip
_REALS = {"FLOAT", "DOUBLE", "HUGEINT", "UBIGINT", "UHUGEINT"}
_DATES = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_US"}

_PARQUET = (".parquet", ".pq")
_DELIMITED = {".csv": ",", ".tsv": "\t", ".txt": ","}

# A line of CSV longer than this is no row of a table; a first line, no names.
_LINE = 1 << 26
_HEADER = 1 << 20


def kind_of(declared: str) -> Kind | None:
    """Return what a DuckDB type is read as."""
    name = declared.upper()
    if name in _INTEGERS:
        return "integer"
    if name in _REALS or name.startswith("DECIMAL"):
        return "real"
    if name == "VARCHAR" or name.startswith("ENUM"):
        return "text"
    if name == "BOOLEAN":
        return "truth"
    return "date" if name in _DATES else None


class Duck:
    """Rows behind a DuckDB connection of their own, which spills into a private folder.

    Parameters
    ----------
    source
        What stands behind FROM.
    register
        Arrow data to be known as ``rows``, made when rows are read.
    empty
        The same without rows: what its columns are declared as.
    files
        Where the rows are, if they are in files.
    """

    dialect = DUCKDB

    def __init__(
        self,
        source: str,
        *,
        register: Callable[[], Any] | None = None,
        empty: Any = None,
        files: Sequence[str] = (),
    ) -> None:
        self.source, self._register, self._empty = source, register, empty
        self.files = tuple(files)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._kinds: dict[str, Kind | None] | None = None

    def _connect(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            spill = tempfile.mkdtemp(prefix="noiseshape-")  # mode 0700
            self._connection = duckdb.connect(
                config={
                    "temp_directory": spill,
                    "autoinstall_known_extensions": False,
                    "autoload_known_extensions": False,
                }
            )
            weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
            # What has been read of the rows is nobody's to see: progress is told by time alone.
            self._connection.execute("SET enable_progress_bar = false")
        return self._connection

    def kinds(self) -> Mapping[str, Kind | None]:
        """Return what each column is declared as."""
        if self._kinds is None:
            connection = self._connect()
            if self._empty is not None:
                connection.register("rows", self._empty)
            described = connection.execute(f"DESCRIBE SELECT * FROM {self.source}").fetchall()
            self._kinds = {
                name: "text" if declared.upper().startswith("ENUM") else kind_of(declared)
                for name, declared, *_ in described
            }
        return self._kinds

    def rows(self, statement: str) -> Iterable[tuple[Any, ...]]:
        """Read rows."""
        return self._run(statement, lambda found: found.fetchall())

    def arrays(self, statement: str) -> list[Any]:
        """Read rows, by column."""
        return self._run(statement, lambda found: list(found.fetchnumpy().values()))

    def batches(self, statement: str, rows: int) -> Generator[Any]:
        """Read columns of doubles, about so many rows at a time, in their order: NaN for NULL.

        Memory holds a few batches, however many rows there are.
        """
        # On a connection of its own to the same place, which may end before the rows do.
        with self._connect().cursor() as connection:
            if self._register is not None:
                connection.register("rows", self._register())
            reader: Any = connection.sql(statement).to_arrow_reader(rows)
            for batch in reader:
                columns = [c.to_numpy(zero_copy_only=False) for c in batch.columns]
                yield np.column_stack(columns).astype(np.float64, copy=False)

    def hold(self, statement: str) -> str:
        """Read rows once into a table of the private connection; return what stands for it."""
        self.rows(f"CREATE OR REPLACE TEMP TABLE held AS {statement}")
        return "held"

    def _run(self, statement: str, fetch: Callable[[duckdb.DuckDBPyConnection], list[Any]]) -> Any:
        connection = self._connect()
        if self._register is not None:
            connection.register("rows", self._register())
        try:
            return fetch(connection.execute(statement))
        finally:
            if self._register is not None:
                connection.unregister("rows")


class Relation:
    """A DuckDB relation, used as it is, on its own connection."""

    dialect = DUCKDB
    source = "noiseshape_rows"

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def kinds(self) -> Mapping[str, Kind | None]:
        """Return what each column is declared as."""
        declared = zip(self._relation.columns, self._relation.types, strict=True)
        return {name: kind_of(str(type_)) for name, type_ in declared}

    def rows(self, statement: str) -> Iterable[tuple[Any, ...]]:
        """Read rows."""
        found = self._relation.query(self.source, statement)
        return [] if found is None else found.fetchall()

    def arrays(self, statement: str) -> list[Any]:
        """Read rows, by column."""
        found = self._relation.query(self.source, statement)
        return [] if found is None else list(found.fetchnumpy().values())


def files(path: str | os.PathLike[str]) -> Duck:
    """Return the rows of Parquet or CSV files: one, or a pattern such as ``data/*.parquet``."""
    names = expanded(os.fspath(path))
    plain = [name.removesuffix(".gz") for name in names]
    if all(name.lower().endswith(_PARQUET) for name in names):
        return _parquet(names)
    delimiters = {_DELIMITED.get(Path(name.lower()).suffix) for name in plain}
    if len(delimiters) != 1 or None in delimiters:
        raise InvalidInput(
            f"{os.fspath(path)} must be Parquet (.parquet) or text (.csv, .tsv, with or without "
            ".gz), told by the end of its name: name such files, all of one kind."
        )
    return _csv(names, str(delimiters.pop()))


def expanded(pattern: str) -> list[str]:
    """Return the files that a path or a pattern names, in order; refuse one that names none."""
    if Path(pattern).is_file():
        return [pattern]
    names = sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())
    if not names:
        raise InvalidInput(
            f"there is no file {pattern!r}: name a Parquet or CSV file, or a pattern of many."
        )
    return names


def _parquet(names: Sequence[str]) -> Duck:
    listed = _list_of(names)
    read = f"read_parquet({listed}, union_by_name = false, hive_partitioning = false)"
    made = Duck(read, files=names)
    unreadable = differs = False
    try:
        made.kinds()
        if len(names) > 1:
            connection = made._connect()
            schemas = {tuple(connection.execute(_described(n)).fetchall()) for n in names}
            differs = len(schemas) > 1
    except duckdb.Error:
        unreadable = True
    # Raised here, so that no engine's message hangs on to it.
    if unreadable:
        raise InvalidInput(f"{_named(names)} cannot be read as Parquet.")
    if differs:
        raise InvalidInput(f"{_named(names)} do not all hold the same columns and types.")
    return made


def _described(name: str) -> str:
    return f"DESCRIBE SELECT * FROM read_parquet({_list_of([name])})"


def _csv(names: Sequence[str], delimiter: str) -> Duck:
    headers = {_header(name, delimiter) for name in names}
    if len(headers) != 1:
        raise InvalidInput(f"{_named(names)} do not all begin with the same line of names.")
    header = headers.pop()
    columns = ", ".join(f"{DUCKDB.literal(name)}: 'VARCHAR'" for name in header)
    # Nothing is sniffed: every column is text, and a line that is no row is left out. Not in
    # parallel, where the engine stops on a value that holds the end of a line.
    return Duck(
        f"read_csv({_list_of(names)}, auto_detect = false, header = true, columns = "
        f"{{{columns}}}, delim = {DUCKDB.literal(delimiter)}, quote = '\"', escape = '\"', "
        "nullstr = '', null_padding = true, strict_mode = false, ignore_errors = true, "
        f"max_line_size = {_LINE}, parallel = false)",
        files=names,
    )


def _header(name: str, delimiter: str) -> tuple[str, ...]:
    header: list[str] | None = None
    try:
        opener: Any = gzip.open if name.lower().endswith(".gz") else open
        with opener(name, "rb") as file:
            text = _first_line(file).decode("utf-8-sig")  # no byte of a row decides anything
        header = next(csv.reader([text], delimiter=delimiter), None)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error):
        pass
    if not header:
        raise InvalidInput(f"{name} cannot be read: it must be UTF-8 text that begins with names.")
    if len({column.lower() for column in header}) != len(header):
        raise InvalidInput(f"{name} names two columns alike, but for their case.")
    return tuple(header)


def _first_line(file: BinaryIO) -> bytes:
    """Return a file's first line, where the end of a line within quotes ends none."""
    held = b""
    while part := file.readline(_HEADER):
        held += part
        if held.count(b'"') % 2 == 0 or len(held) > _HEADER:
            break
    found = re.match(rb'(?:[^"\r\n]|"[^"]*")*', held)
    return found[0] if found else b""


def _list_of(names: Sequence[str]) -> str:
    return f"[{', '.join(DUCKDB.literal(name) for name in names)}]"


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more files"


def arrow(table: pa.Table) -> Duck:
    """Return the rows of an Arrow table."""
    if len(set(table.column_names)) != len(table.column_names):
        raise InvalidInput("the table has two columns of one name: rename one.")
    for at in _unknown(table.schema):
        field = pa.field(table.schema.names[at], pa.null())
        table = table.set_column(at, field, pa.nulls(len(table)))
    return Duck("rows", register=lambda: table, empty=table.schema.empty_table())


def _unknown(schema: pa.Schema) -> list[int]:
    """Return which columns hold what the engine has no type for."""
    with duckdb.connect() as connection:

        def known(part: pa.Schema) -> bool:
            with contextlib.suppress(duckdb.Error):
                connection.register("rows", part.empty_table())
                connection.execute("DESCRIBE SELECT * FROM rows").fetchall()
                return True
            return False

        if known(schema):
            return []
        return [i for i, field in enumerate(schema) if not known(pa.schema([field]))]


def polars(frame: Any) -> Duck:
    """Return the rows of a Polars frame, lazy or not."""
    schema = frame.collect_schema() if hasattr(frame, "collect_schema") else frame.schema
    empty = frame.clear() if not hasattr(frame, "collect") else None

    def made() -> Any:
        return (frame.collect() if hasattr(frame, "collect") else frame).to_arrow()

    if empty is None:
        import polars as pl

        empty = pl.DataFrame(schema=schema)
    return Duck("rows", register=made, empty=empty.to_arrow())


def pandas(frame: Any) -> Duck:
    """Return the rows of a pandas frame.

    What a column of objects holds is told by its values alone: all of them are read as text, so
    that no engine looks at some rows to guess a type.
    """
    names = [name for name in frame.columns if isinstance(name, str)]
    if len(set(names)) != len(names):
        raise InvalidInput("the frame has two columns of one name: rename one.")
    native = {name for name in names if _is_native(frame[name].dtype)}

    def made(rows: Any = frame) -> pa.Table:
        columns = {
            name: pa.array(rows[name].array, from_pandas=True)
            if name in native
            else pa.array(map(_as_text, rows[name].astype(object)), pa.string())
            for name in names
        }
        return pa.table(columns)

    return Duck("rows", register=made, empty=made(frame.iloc[:0]))


def _is_native(dtype: Any) -> bool:
    """Return whether a pandas column has one type that the engine knows, and no time zone."""
    kind = getattr(dtype, "kind", "O")
    if kind == "f" and dtype.itemsize == 2:
        return False
    return kind in "iufb" or (kind == "M" and getattr(dtype, "tz", None) is None)


def _as_text(value: Any) -> str | None:
    """Return an object as text, whatever it is; None where it is missing."""
    try:
        if value is None or value != value:
            return None
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            return str(int(value))
        text = "true" if value is True else "false" if value is False else str(value)
        text.encode()
    except Exception:  # nothing stops on a value: what cannot be told is missing
        return None
    return None if text == "<NA>" else text
