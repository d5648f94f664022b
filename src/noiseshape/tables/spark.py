"""Rows counted by Spark, on the cluster: frames, and files that it reads.

Needs the extra ``spark``.

What a session that is started here tells nobody: its web page, its log of events and its log are
off, since each of them may quote rows.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
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

# Where the time of a cast is told by a zone, every machine of a cluster has the same.
_QUIET = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
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
        with self._named():
            return [tuple(row) for row in self._frame.sparkSession.sql(statement).collect()]

    def each(
        self,
        statement: str,
        wanted: Sequence[int],
        rows: int,
        n: int,
        width: int,
        act: Callable[[int, NDArray[np.int64], NDArray[np.float64]], None],
    ) -> None:
        """Bring the rows of each chunk together on the cluster, and act on them there.

        Parameters
        ----------
        statement
            Gives the number of each row, and then columns of doubles.
        wanted
            The chunks to be made: chunk i has the numbers from i * rows; those from n on, and those
            below 0, are in none.
        act
            Is called with a chunk's number, and the numbers (from its first) and values of its rows
            in any order: once or more often, since tasks fail and are run twice. Also for a chunk
            without rows.
        """
        names = [f"v{i}" for i in range(width)]

        def of_chunk(table: Any) -> Any:
            import pyarrow as pa

            number = int(table["chunk"][0].as_py())
            there = table.filter(table["row_"].is_valid())
            X = [there[name].to_numpy(zero_copy_only=False) for name in names]
            at = there["row_"].to_numpy(zero_copy_only=False).astype(np.int64)
            act(number, at - number * rows, np.column_stack(X).astype(np.float64, copy=False))
            return pa.table({"chunk": pa.array([number], pa.int64())})

        session = self._frame.sparkSession
        with self._named():
            given = session.sql(
                f"SELECT row_ DIV {rows} AS chunk, * FROM ({statement}) AS numbered "
                f"WHERE row_ >= 0 AND row_ < {n}"
            )
        # An empty row for each chunk: which of them are measured does not hang on who is there.
        chosen = session.createDataFrame([(int(c),) for c in wanted], "chunk bigint")
        given = given.join(chosen, "chunk", "left_semi")
        given = given.unionByName(chosen, allowMissingColumns=True)
        with _unsaid():
            done = given.groupBy("chunk").applyInArrow(of_chunk, "chunk bigint").collect()
        if {row[0] for row in done} != set(wanted):
            raise RuntimeError("the cluster did not come back with every chunk")

    def hold(self, statement: str) -> str:
        """Have the cluster keep what a statement gives; return what stands for it.

        Kept in its memory and on its disks as long as this engine is; what a machine loses is
        computed again, from the same rows and so to the same.
        """
        from pyspark import StorageLevel

        held = f"{self.source}_held"
        with self._named():
            kept = self._frame.sparkSession.sql(statement).persist(StorageLevel.MEMORY_AND_DISK)
        kept.createOrReplaceTempView(held)
        weakref.finalize(self, _let_go, kept, held)
        return held

    @contextmanager
    def _named(self) -> Iterator[None]:
        with _unsaid():
            self._frame.createOrReplaceTempView(self.source)
            try:
                yield
            finally:
                self._frame.sparkSession.catalog.dropTempView(self.source)


@contextmanager
def _unsaid() -> Iterator[None]:
    """Keep Spark from writing its exceptions, which may quote rows, to standard error."""
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _let_go(kept: Any, name: str) -> None:
    try:
        kept.sparkSession.catalog.dropTempView(name)
        kept.unpersist()
    except Exception:  # the session is gone, and what it kept with it
        pass


@contextmanager
def reading(path: str, master: str = "local[*]") -> Iterator[Any]:
    """Yield the frame of Parquet or CSV files, in a session that ends with the block.

    Parameters
    ----------
    path
        One file or a pattern, as :func:`noiseshape.tables.duck.files` has it; or an address that
        the cluster reads by itself, such as ``hdfs://place/people.parquet``.
    master
        Where Spark runs. A session of this process that runs there already is used, and stays.
    """
    running = _running()
    if running is not None and running.sparkContext.master != master:
        raise InvalidInput(
            f"a Spark session is running at {running.sparkContext.master}, and one process has "
            f"one: stop it, or name it as the master instead of {master}."
        )
    session = running or _started(master)
    try:
        yield _frame(session, path)
    finally:
        if running is None:
            session.stop()


def _running() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InvalidInput(
            "Spark is not installed: pip install 'noiseshape[spark]', or leave --engine out."
        ) from None
    return SparkSession.getActiveSession()


def _started(master: str) -> Any:
    """Return a new session, or say what it lacks."""
    from pyspark.sql import SparkSession

    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if home is None else shutil.which("java", path=f"{home}/bin")
    if java is None:
        place = "on the path" if home is None else f"in JAVA_HOME={home}"
        raise InvalidInput(
            f"Spark needs Java 17 or later, and there is no java {place}: install it, set "
            "JAVA_HOME, or leave --engine out."
        )
    session = None
    try:
        made = SparkSession.builder.master(master).appName("noiseshape")
        for name, value in _QUIET.items():
            made = made.config(name, value)
        if master.startswith("local"):
            # Tasks here are of this very Python, which has the package.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            made = made.config("spark.driver.bindAddress", "127.0.0.1")
            made = made.config("spark.driver.host", "127.0.0.1")
        session = made.getOrCreate()
    except Exception:
        pass
    # Raised here, so that no engine's message hangs on to it.
    if session is None:
        raise InvalidInput(
            f"Spark cannot be started at {master}: see that Java is 17 or later, and that the "
            "master is one, such as local[2] or spark://place:7077."
        )
    return session


def _frame(session: Any, path: str) -> Any:
    """Return the frame of files: of text files every column is text, and nothing is guessed."""
    from . import duck

    plain = path.lower().removesuffix(".gz")
    columns: list[str] | None = None
    names, made = [path], None
    if "://" not in path:
        # What is refused in files is refused alike, wherever they are counted.
        columns = list(duck.files(path).kinds())
        names = [str(Path(name).absolute()) for name in duck.expanded(path)]
    try:
        if plain.endswith((".parquet", ".pq")):
            made = session.read.parquet(*names)
        elif plain.endswith((".csv", ".tsv", ".txt")):
            made = _text(session, names, columns, "\t" if plain.endswith(".tsv") else ",")
    except Exception:
        pass
    if made is None:
        raise InvalidInput(
            f"{path} cannot be read by Spark: name Parquet (.parquet) or text (.csv, .tsv, with or "
            "without .gz) that every machine of the cluster can read."
        )
    return made


def _text(session: Any, names: list[str], columns: list[str] | None, separator: str) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    reader = session.read.options(
        header=True, inferSchema=False, multiLine=True, quote='"', escape='"', nullValue="",
        emptyValue="", sep=separator,
    )  # fmt: skip
    if columns is not None:
        reader = reader.schema(StructType([StructField(name, StringType()) for name in columns]))
    return reader.csv(names)
