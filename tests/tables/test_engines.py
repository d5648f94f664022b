"""Every engine counts what plain pandas counts: conformance over random worlds, and by hand."""

import contextlib
import csv
import gzip
import shutil
import tempfile
import threading
from pathlib import Path

import duckdb
import hypothesis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.tables.oracle import worlds
from typer.testing import CliRunner

import noiseshape as ns
from noiseshape.cli import app
from noiseshape.tables.engine import Rows
from noiseshape.tables.opening import opened

ARROW = {
    "integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "truth": pa.bool_(),
    "date": pa.date32(),
}  # fmt: skip
PANDAS = {"integer": "Int64", "real": "float64", "text": object, "truth": "boolean", "date": object}


def table(held):
    return pa.table({n: pa.array(v, ARROW[kind]) for n, (kind, v) in held.items()})


def written(held, path, delimiter=","):
    """Write rows as a CSV file, quoted where they must be."""
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        out = csv.writer(file, delimiter=delimiter)
        out.writerow(held)
        for row in zip(*(values for _, values in held.values()), strict=True):
            out.writerow(["" if v is None else v for v in row])
    return path


def parquet(held, folder):
    pq.write_table(table(held), folder / "rows.parquet")
    return folder / "rows.parquet"


def halves(held):
    for i, part in enumerate((slice(0, 7), slice(7, None))):
        yield i, {n: (kind, v[part]) for n, (kind, v) in held.items()}


def parquets(held, folder):
    for i, half in halves(held):
        pq.write_table(table(half), folder / f"part{i}.parquet")
    return str(folder / "part*.parquet")


def csvs(held, folder):
    for i, half in halves(held):
        written(half, folder / f"part{i}.csv")
    return str(folder / "part*.csv")


def frame(held):
    return pd.DataFrame({n: pd.Series(v, dtype=PANDAS[kind]) for n, (kind, v) in held.items()})


def relation(held):
    connection = duckdb.connect()
    return connection.from_arrow(table(held))


TYPED = {
    "parquet": parquet,
    "parquet, a pattern": parquets,
    "arrow": lambda held, _: table(held),
    "pandas": lambda held, _: frame(held),
    "polars": lambda held, _: pl.from_arrow(table(held)),
    "polars, lazy": lambda held, _: pl.from_arrow(table(held)).lazy(),
    "duckdb": lambda held, _: relation(held),
}
AS_TEXT = {
    "csv": lambda held, folder: written(held, folder / "rows.csv"),
    "csv.gz": lambda held, folder: written(held, folder / "rows.csv.gz"),
    "tsv": lambda held, folder: written(held, folder / "rows.tsv", "\t"),
    "csv, a pattern": csvs,
}
THOROUGH = settings(
    deadline=None, derandomize=True, suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)  # fmt: skip


@contextlib.contextmanager
def folder():
    made = Path(tempfile.mkdtemp())
    try:
        yield made
    finally:
        shutil.rmtree(made)


def counted(world, data):
    """Return the answers, without noise, as an engine counts them."""
    asked = world.work.compiled()
    x = Rows(opened(data), asked.layout, world.people).read()
    assert all(type(v) is int for v in x)
    return (asked.matrix @ x.astype(float)).tolist()


@contextlib.contextmanager
def expecting(world):
    """Yield what plain pandas answers; where a query can only be 0, it must be refused."""
    answers = world.answers()
    told = [[value for value in query if value is not None] for query in answers]
    if not all(told):
        with pytest.raises(ns.InvalidInput, match="whoever is counted"):
            world.work.compiled()
        hypothesis.reject()
    yield [value for query in told for value in query]


@settings(THOROUGH, max_examples=40)
@given(world=worlds())
def test_engines_count_as_pandas_does(world):
    with folder() as place, expecting(world) as expected:
        for name, given_as in TYPED.items():
            assert counted(world, given_as(world.held, place)) == expected, name


@settings(THOROUGH, max_examples=25)
@given(world=worlds())
def test_text_files_count_as_pandas_does(world):
    world = world.as_text()
    with folder() as place, expecting(world) as expected:
        for name, given_as in AS_TEXT.items():
            assert counted(world, given_as(world.held, place)) == expected, name


def test_a_schema_larger_than_memory_is_refused_and_nothing_is_spent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = ns.Ledger.create("b.db", ns.Budget(mu=1))
    pq.write_table(pa.table({name: [1, 2] for name in "abcd"}), "rows.parquet")
    columns = ", ".join(f"{name}: {{integers: [0, 9999]}}" for name in "abcd")
    spec = f"schema: {{{columns}}}\nqueries: [{{marginal: [a, b, c, d], stderr: 9}}]\n"
    Path("spec.yaml").write_text(spec)
    words = "release spec.yaml --data rows.parquet --out out --ledger b.db"
    refused = CliRunner().invoke(app, words.split())
    assert refused.exit_code == 2
    assert "GB" in refused.stderr
    assert "fewer columns together" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert ledger.history() == ()
    assert not Path("out").exists()


def test_an_engine_that_is_stopped_while_it_counts(tmp_path):
    """The debit stands, nothing is published, and the failure names its step alone."""
    plan = ns.plan(ns.Workload(ns.Schema({"age": ns.integers(0, 3)})).total(stderr=5))
    ledger = ns.Ledger.create(tmp_path / "b.db", ns.Budget(mu=plan.cost.mu))
    connection = duckdb.connect()
    rows = connection.sql("SELECT (i % 4)::INTEGER AS age FROM range(1000000000000) t(i)")
    done = threading.Event()

    def stop():
        while not done.wait(0.05):
            connection.interrupt()

    stopping = threading.Thread(target=stop)
    stopping.start()
    try:
        with pytest.raises(ns.ReleaseFailed) as failed:
            plan.release(rows, ledger=ledger, out=tmp_path / "out")
    finally:
        done.set()
        stopping.join()
    assert str(failed.value) == (
        "the release failed at the step 'read'. Ledger entry 1 stands: resume=1 continues it, "
        "without a new debit."
    )
    assert len(ledger.history()) == 1
    assert not (tmp_path / "out").exists()
    ages = pa.table({"age": [1, 2]})
    assert plan.release(ages, ledger=ledger, out=tmp_path / "out", resume=1).stamp.number == 1
