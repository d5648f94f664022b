"""Counting 20 million rows: our statement against the group-by that one would write by hand.

The group-by by hand knows that the rows are clean and trusts them: no policy, no declared bound,
no missing value. Ours reads every value by its declaration. Both run in the same process, turn by
turn, on the same threads; each round starts with the other. Peaks of memory are of a process each.

Run ``python -m benchmarks.tables [rows]``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
import numpy as np

import noiseshape as ns
from noiseshape.tables.engine import Rows
from noiseshape.tables.opening import opened

ROWS = 20_000_000
ROUNDS = 5
SUMMED = [f"income{i}" for i in range(8)]
WORKLOADS = ("counts", "sums")


def main(rows: int = ROWS) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        made(path, rows)
        print(f"\n{rows:,} rows, 100 ages x 4 regions; seconds, median of {ROUNDS}; peak memory of")
        print("a process that only does this, its libraries included.")
        print(f"{'':28} {'ours':>7} {'by hand':>8} {'ratio':>6} {'peak':>8} {'by hand':>9}")
        for source in ("parquet", "parquet, some outside", "duckdb table", "arrow"):
            for asked in WORKLOADS:
                ours, plain = measured(source, asked, path)
                peaks = [peak(source, asked, path, whose) for whose in ("ours", "plain")]
                print(
                    f"{source + ', ' + asked:28} {ours:7.3f} {plain:8.3f} {ours / plain:6.2f} "
                    f"{peaks[0]:5.0f} MB {peaks[1]:6.0f} MB",
                    flush=True,
                )


def made(path: Path, rows: int) -> None:
    """Write people: uniform ages and regions, eight incomes; and again with a few strange ones."""
    incomes = ", ".join(
        f"(hash(i * 8 + {i}) % 200001)::INTEGER AS {name}" for i, name in enumerate(SUMMED)
    )
    people = (
        f"SELECT (hash(i) % 100)::INTEGER AS age, (hash(-i) % 4)::TINYINT AS region, {incomes} "
        f"FROM range({rows}) t(i)"
    )
    strange = people.replace("(hash(i) % 100)::INTEGER", "(hash(i) % 103)::INTEGER - 1")
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({people}) TO '{path}'")
        connection.execute(f"COPY ({strange}) TO '{strange_one(path)}'")


def strange_one(path: Path) -> Path:
    return path.with_name("strange.parquet")


def workload(asked: str) -> ns.Workload:
    columns: dict[str, Any] = {"age": ns.integers(0, 99), "region": list(range(4))}
    if asked == "sums":
        columns |= {name: ns.integers(0, 200_000) for name in SUMMED}
    work = ns.Workload(ns.Schema(columns))
    work.marginal("age", "region", stderr=10)
    for name in SUMMED if asked == "sums" else []:
        work.sum(name, by=["age", "region"], stderr=1e6)
    return work


def by_hand(asked: str, source: str) -> str:
    sums = "".join(f", sum({name})" for name in (SUMMED if asked == "sums" else []))
    return f"SELECT age, region, count(*){sums} FROM {source} GROUP BY age, region"


def both(source: str, asked: str, path: Path) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return what counts the rows our way, and what counts them by hand."""
    if source == "parquet, some outside":
        path = strange_one(path)
    layout = laid_out(workload(asked))
    connection = duckdb.connect()
    data: Any = path
    held = f"read_parquet('{path}')"
    if source == "duckdb table":
        connection.execute(f"CREATE TABLE people AS FROM {held}")
        data, held = connection.table("people"), "people"
    elif source == "arrow":
        data = connection.sql(f"FROM {held}").to_arrow_table()
        connection.register("people", data)
        held = "people"
    rows = Rows(opened(data), layout, ns.People())
    statement = by_hand(asked, held)
    return rows.read, lambda: connection.execute(statement).fetchall()


def laid_out(work: ns.Workload) -> Any:
    """Return where the rows are counted; W is not compiled, which counting does not need."""
    return ns.tables.Layout.of(work.schema, work.asks)


def measured(source: str, asked: str, path: Path) -> tuple[float, float]:
    ours, plain = both(source, asked, path)
    agreed(asked, ours(), plain()) if "outside" not in source else (ours(), plain())
    times: dict[bool, list[float]] = {True: [], False: []}
    for i in range(ROUNDS):
        for mine in (True, False) if i % 2 else (False, True):
            start = perf_counter()
            (ours if mine else plain)()
            times[mine].append(perf_counter() - start)
    return median(times[True]), median(times[False])


def agreed(asked: str, ours: Any, plain: list[tuple[int, ...]]) -> None:
    """Check that both counted the same: the ratio is of equal work."""
    layout = laid_out(workload(asked))
    grid = np.zeros((101, 5), dtype=object)  # a cell more of each for what is missing
    for age, region, count, *_ in plain:
        grid[age, region] = count
    assert (ours[: layout.cells] == grid.ravel()).all()
    assert sum(ours[layout.cells :]) == sum(sum(row[3:]) for row in plain)


def peak(source: str, asked: str, path: Path, whose: str) -> float:
    """Return the most memory that a process of its own had, in megabytes."""
    words = [sys.executable, "-m", "benchmarks.tables", "--peak", source, asked, str(path), whose]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def alone(source: str, asked: str, path: str, whose: str) -> None:
    both(source, asked, Path(path))[whose != "ours"]()
    # Not getrusage, which counts what the parent held when it forked.
    told = Path("/proc/self/status").read_text()
    print(int(told.split("VmHWM:")[1].split()[0]) / 1024)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        alone(*sys.argv[2:])
    else:
        main(*map(int, sys.argv[1:2]))
