"""What outgrows memory and a few columns: matrices row by row, wide tables, and many rows.

    python -m benchmarks scale                  small: seconds
    SCALE=full python -m benchmarks scale       10^9 entries, 20 million x 14, 10^8 x 4: minutes

Each part runs in a process of its own, whose greatest memory is told: its libraries included.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import duckdb
import numpy as np

import noiseshape as ns
from noiseshape.tables.engine import Rows
from noiseshape.tables.opening import opened

# rows by row: columns and rows; wide: rows of 14 columns; many: rows of 4 columns
SMALL = {"entries": (8, 250_000), "wide": 200_000, "many": 2_000_000}
FULL = {"entries": (8, 125_000_000), "wide": 20_000_000, "many": 100_000_000}
WIDE = [85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2]  # values of each column
MANY = [100, 2, 50, 5]


def main() -> None:
    sizes = FULL if os.environ.get("SCALE") == "full" else SMALL
    print(f"{os.cpu_count()} cores.")
    with tempfile.TemporaryDirectory(dir=os.environ.get("SCALE_FOLDER")) as folder:
        for name, size in sizes.items():
            words = [str(n) for n in (size if isinstance(size, tuple) else (size,))]
            subprocess.run(
                [sys.executable, "-m", "benchmarks.scale", name, folder, *words], check=True
            )


def written(path: Path, columns: str, rows: int) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{path}'")


def told(what: str, seconds: float) -> None:
    # Not getrusage, which counts what the parent held when it forked.
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    print(f"{what}: {seconds:,.1f} s, {peak:,.0f} MB at the most", flush=True)


def entries(folder: Path, width: int, rows: int) -> None:
    """Release the data matrix, from Parquet to Parquet, paid from a ledger."""
    path = folder / "rows.parquet"
    made = ", ".join(f"(hash(i * {width} + {j}) % 65536) / 65536.0 AS x{j}"
                     for j in range(width))  # fmt: skip
    written(path, made, rows)
    bounds = {f"x{j}": (0, 1) for j in range(width)}
    plan = ns.isotropic(ns.identity(bounds=bounds, n=1), stderr=0.1).row_by_row(rows)
    ledger = ns.Ledger.create(folder / "b.db", ns.Budget(mu=plan.cost.mu), people=plan.people)
    begun = perf_counter()
    release = plan.release(str(path), ledger=ledger, out=folder / "out")
    seconds = perf_counter() - begun
    told(f"{rows * width:,} entries row by row, {plan.chunks} chunks", seconds)
    z = (release.rows(plan.chunks - 1) - 0.5).std()
    assert abs(z - math.hypot(0.1, 12**-0.5)) < 0.01


def table(folder: Path, name: str, sizes: list[int], rows: int) -> Path:
    """People whose columns hang together a little: each value is drawn from two hashes."""
    path = folder / f"{name}.parquet"
    made = ", ".join(
        f"((hash(i * {len(sizes)} + {j}) % {n} + hash(i) % 3) % {n})::SMALLINT AS c{j}"
        for j, n in enumerate(sizes)
    )
    written(path, made, rows)
    return path


def schema(sizes: list[int]) -> ns.Schema:
    return ns.Schema({f"c{j}": ns.integers(0, n - 1) for j, n in enumerate(sizes)})


def wide(folder: Path, rows: int) -> None:
    """All marginals of up to three of 14 columns, each counted."""
    path = table(folder, "wide", WIDE, rows)
    begun = perf_counter()
    plan = ns.plan(ns.Workload(schema(WIDE)).all_marginals(3, stderr=100), by="marginals")
    planned = perf_counter() - begun
    begun = perf_counter()
    cells = tables = 0
    for members, counts in plan.source(str(path)).read():
        assert counts.sum() == rows, members
        tables, cells = tables + 1, cells + counts.size
    seconds = perf_counter() - begun
    asked = sum(math.comb(len(WIDE), k) for k in range(4))
    told(f"{rows:,} rows x {len(WIDE)}: {asked} marginals planned in {planned:.1f} s; "
         f"{tables} tables of {cells:,} cells counted", seconds)  # fmt: skip


def many(folder: Path, rows: int) -> None:
    """One table of four columns, counted in DuckDB."""
    path = table(folder, "many", MANY, rows)
    work = ns.Workload(schema(MANY)).marginal(*(f"c{j}" for j in range(4)), stderr=100)
    layout = ns.tables.Layout.of(work.schema, work.asks)
    begun = perf_counter()
    counts = Rows(opened(path), layout, work.people).read()
    seconds = perf_counter() - begun
    assert np.sum(counts) == rows
    told(f"{rows:,} rows x 4: one table of {math.prod(MANY):,} cells counted", seconds)


if __name__ == "__main__":
    parts = {"entries": entries, "wide": wide, "many": many}
    parts[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))  # type: ignore[operator]
