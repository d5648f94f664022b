"""Noise for a matrix of 10,000 x 1,000 against float normals, and second moments inside an engine.

numpy's normal draws are the floor: floats that leak, from a seed. Ratios are within one run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import duckdb
import numpy as np

import noiseshape as ns
from noiseshape.release.matrixplan import MatrixPlan
from noiseshape.sampling import rounded_gaussian

T = TypeVar("T")
Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 10_000, 1_000
PEOPLE, FEATURES = 10_000_000, 50


def main() -> None:
    noise()
    moments()


def noise() -> None:
    """Print what noise for a data matrix costs in time, by the shape of its noise."""
    rng = np.random.default_rng(1)
    names = [f"x{i}" for i in range(COLUMNS)]
    bounds = [(0.0, float(h)) for h in rng.uniform(1, 10, COLUMNS)]
    query = ns.identity(columns=names, bounds=bounds, n=ROWS)
    L = rng.standard_normal((COLUMNS, COLUMNS)) / COLUMNS**0.5 + 2 * np.eye(COLUMNS)
    plans = {
        "isotropic": lambda: ns.isotropic(query),
        "diagonal": lambda: ns.directional(query, weights=rng.uniform(1, 9, COLUMNS)),
        "Kronecker": lambda: ns.kronecker(query, columns=L @ L.T),
    }
    print(f"Noise for {ROWS:,} x {COLUMNS:,} entries, seconds; the floor: numpy's float normals")
    print("of the same covariance.")
    print(f"{'noise':>10} {'plan':>7} {'draw':>7} {'floor':>7} {'ratio':>6}   measure + rebuild")
    for name, make in plans.items():
        plan, made = timed(make)
        _, drawn = timed(partial(rounded_gaussian, plan.strategy.sigma))
        factor = L if name == "Kronecker" else None
        _, floor = timed(partial(normals, rng, plan, factor))
        data = np.zeros(ROWS * COLUMNS, dtype=np.int64)
        y, measured = timed(partial(plan.measured, data))
        _, rebuilt = timed(partial(plan.strategy.rebuild, y))
        print(
            f"{name:>10} {made:7.2f} {drawn:7.2f} {floor:7.2f} {drawn / floor:6.2f}   "
            f"{measured:.2f} + {rebuilt:.2f}",
            flush=True,
        )
        del plan, y


def normals(rng: np.random.Generator, plan: MatrixPlan, factor: Array | None) -> Array:
    """Return float normals with the plan's covariance."""
    Z = rng.standard_normal((ROWS, COLUMNS))
    if factor is not None:
        return np.asarray(Z @ factor.T)
    Z *= plan.strategy.sigma.reshape(ROWS, COLUMNS)
    return Z


def moments() -> None:
    """Print what exact second moments of a file cost against numpy's floats in memory."""
    columns = ", ".join(f"random() AS x{i}" for i in range(FEATURES))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        query = f"SELECT {columns} FROM range({PEOPLE})"
        duckdb.execute(f"COPY ({query}) TO '{path}' (ROW_GROUP_SIZE 200000)")
        asked = ns.second_moment(columns=[f"x{i}" for i in range(FEATURES)], bounds=(0, 1))
        found, exact = timed(lambda: asked.source(str(path)).read())
        held, loading = timed(lambda: _held(path))
        plain, floats = timed(lambda: held.T @ held)
        _, gridded = timed(lambda: asked.source(held).read())
    i, j = asked.entries
    off = np.abs(found.astype(float) * asked.step - plain[i, j]) / PEOPLE
    print(f"\nSecond moments of {PEOPLE:,} x {FEATURES} rows, seconds.")
    print(f"exact integers, Parquet through DuckDB  {exact:7.1f}")
    print(f"numpy floats: loading                   {loading:7.1f}")
    print(f"numpy floats: X^T X in memory           {floats:7.1f}")
    print(f"exact integers of the array in memory   {gridded:7.1f}")
    print(
        f"ratio, DuckDB from the file over numpy's loading and product: "
        f"{exact / (loading + floats):.1f}; the grid moves a mean product by {off.max():.1e}"
    )


def _held(path: Path) -> Array:
    """Return the rows as doubles, a column at a time: there is room for them once."""
    X = np.empty((PEOPLE, FEATURES), order="F")
    for i in range(FEATURES):
        X[:, i] = duckdb.execute(f"SELECT x{i} FROM '{path}'").fetchnumpy()[f"x{i}"]
    return X


def timed(act: Callable[[], T]) -> tuple[T, float]:
    """Return what ``act`` returns, and the seconds that it took."""
    start = perf_counter()
    result = act()
    return result, perf_counter() - start


if __name__ == "__main__":
    main()
