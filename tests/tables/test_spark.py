"""Spark counts what plain pandas counts, in its own SQL; one session serves the whole run."""

import datetime
import os
import subprocess
import sys
import textwrap
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from tests.tables.oracle import worlds
from tests.tables.test_engines import (
    THOROUGH,
    counted,
    expecting,
    folder,
    parquets,
    table,
    written,
)
from typer.testing import CliRunner

import noiseshape as ns
from noiseshape.cli import app
from noiseshape.tables.engine import Rows
from noiseshape.tables.opening import opened
from noiseshape.tables.spark import Spark, reading

pytestmark = pytest.mark.xdist_group("spark")

MASTER = "local[2, 4]"  # of the session that the tests share


def test_spark_counts_as_pandas_does(spark):
    @settings(THOROUGH, max_examples=8)
    @given(world=worlds())
    def counts(world):
        with expecting(world) as expected:
            assert counted(world, spark.createDataFrame(table(world.held))) == expected

    counts()


def test_files_that_spark_reads_count_the_same(spark):
    @settings(THOROUGH, max_examples=3)
    @given(world=worlds())
    def counts(world):
        with (
            folder() as place,
            expecting(world) as expected,
            reading(parquets(world.held, place), MASTER) as frame,
        ):
            assert frame.rdd.getNumPartitions() > 1
            assert counted(world, frame) == expected
        world = world.as_text()
        with (
            folder() as place,
            expecting(world) as expected,
            reading(str(written(world.held, place / "rows.csv")), MASTER) as frame,
        ):
            assert counted(world, frame) == expected

    counts()


def test_compiled_statements_count_the_same(spark):
    work = ns.Workload(ns.Schema({"age": ns.integers(0, 3, missing="drop"), "sex": ["F", "M"]}))
    work.marginal("age", "sex", stderr=1)
    rows = [(i % 6, "FMX"[i % 3]) for i in range(60)] + [(None, "F")]
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    try:
        told = counted_rows(work, spark.createDataFrame(rows, "age int, sex string"))
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", "false")
        spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    assert told.sum() == sum(age is not None and age <= 3 and sex != "X" for age, sex in rows)


def counted_rows(work, data):
    return Rows(opened(data), work.compiled().layout, work.people).read()


def test_declared_types_are_told_without_rows(spark):
    made = spark.createDataFrame([], (
        "a tinyint, b bigint, c float, d decimal(9, 2), e string, f boolean, g date, "
        "h timestamp_ntz, i timestamp, j array<int>, k binary"
    ))  # fmt: skip
    assert list(Spark(made).kinds().values()) == [
        "integer", "integer", "real", "real", "text", "truth", "date", "date", None, None, None,
    ]  # fmt: skip


def test_exact_sums_pass_64_bits_of_doubles(spark):
    work = ns.Workload(ns.Schema({"x": ns.integers(0, 2**53 - 2, missing="drop")}))
    work.sum("x", stderr=1e16)
    asked = work.compiled()
    values = [2**53 - 2, 2**53 - 3, 7] * 500
    rows = spark.createDataFrame([(v,) for v in values], "x bigint")
    x = Rows(opened(rows), asked.layout, work.people).read()
    assert sum(x[1:]) == sum(values)


def test_its_name_in_the_session_goes_after_counting_and_after_a_failure(spark):
    made = Spark(spark.createDataFrame([(1,)], "a int"))
    assert made.rows(f"select a from {made.source}") == [(1,)]
    with pytest.raises(Exception, match="nonsense"):
        made.rows("nonsense")
    assert made.source not in [view.name for view in spark.catalog.listTables()]


def test_a_release_from_spark(spark, tmp_path):
    work = ns.Workload(ns.Schema({"age": ns.integers(0, 3), "day": ns.dates(2020, 2021)}))
    plan = ns.plan(work.marginal("age", "day", stderr=5))
    rows = spark.createDataFrame([(1, datetime.date(2020, 1, 1))] * 9, "age int, day date")
    release = plan.release(rows, unrecorded=True, out=tmp_path / "o")
    assert len(release.table()) == 5 * 3
    lacking = spark.createDataFrame([(1,)], "age int")
    with pytest.raises(ns.InvalidInput, match="no column 'day'"):
        plan.release(lacking, unrecorded=True)


def test_no_number_is_too_large_to_be_read(spark):
    """Spark's floor is a whole number of 64 bits, and stops on a greater one."""
    values = [1e300, -1e300, 2.0**63, 0.5, 1.0, float("nan"), float("inf"), None]
    frame = spark.createDataFrame([(v,) for v in values], "a double").repartition(3)
    asked = ns.Workload(ns.Schema({"a": ns.categories(["1", "0.5"])})).marginal("a", stderr=1)
    layout = asked.compiled().layout
    held = pa.table({"a": pa.array(values, pa.float64())})
    one, two = (Rows(opened(data), layout, asked.people).read() for data in (held, frame))
    assert one.tolist() == two.tolist() == [1, 1, 3]  # what is no number is left out


def test_a_failure_of_the_cluster_names_its_step_alone(spark, capfd):
    work = ns.Workload(ns.Schema({"age": ns.integers(0, 3)}))
    plan = ns.plan(work.total(stderr=5))

    made = spark.createDataFrame([("41",)], "age string").selectExpr(
        "cast(raise_error('person is 41') as string) age"
    )
    with pytest.raises(ns.NoiseshapeError) as failed:
        plan.release(made, unrecorded=True)
    assert "failed at the step 'read'" in str(failed.value)
    assert "41" not in "".join(traceback.format_exception(failed.value))
    assert "41" not in "".join(capfd.readouterr())


def people(n=400):
    """Rows of persons with up to three rows each, some of them missing or out of bounds."""
    i = np.arange(n)
    x = np.where(i % 11 == 0, np.nan, (i * 37 % 101) / 50 - 0.5)
    return pa.table({
        "person": (i // 3) % (n // 4), "age": i * 7 % 13, "born": i % 5,
        "sex": pa.array(["FMX"[k % 3] for k in i]),
        "x": x, "y": (i * 53 % 97) / 97,
    })  # fmt: skip


def test_everything_that_is_counted_is_what_duckdb_counts(spark):
    """Sums, marginals and second moments of people, at most two rows each, in three partitions."""
    rows = people()
    frame = spark.createDataFrame(rows.to_pandas()).repartition(3)
    assert frame.rdd.getNumPartitions() == 3
    persons = ns.People("person", 2)
    schema = ns.Schema({"age": ns.integers(0, 9), "sex": ["F", "M"], "born": ns.integers(0, 4)})
    work = ns.Workload(schema, persons).marginal("sex", stderr=9).sum("age", by="sex", stderr=9)
    layout = work.compiled().layout
    counts = [Rows(opened(data), layout, persons).read().tolist() for data in (rows, frame)]
    assert counts[0] == counts[1]
    marginals = ns.plan(ns.Workload(schema, persons).all_marginals(2, stderr=20), by="marginals")
    told = [
        {sets: table.tolist() for sets, table in marginals.source(data).read()}
        for data in (rows, frame)
    ]
    assert told[0] == told[1]
    assert sum(map(len, told[0].values())) > 0
    bounds = {"x": (0, 1), "y": (-1, 2)}
    for asked in (
        ns.second_moment(bounds=bounds, people=persons),
        ns.covariance(bounds=bounds),
        ns.mean(bounds=bounds, people=persons),
    ):
        one, two = (asked.source(data).read().tolist() for data in (rows, frame))
        assert one == two


def test_what_spark_held_goes_when_nobody_needs_it(spark):
    engine = Spark(spark.createDataFrame([(1,), (2,)], "a int"))
    held = engine.hold(f"select a + 1 as b from {engine.source}")
    assert engine.rows(f"select sum(b) from {held}") == [(5,)]
    assert spark.catalog.tableExists(held)
    del engine
    assert not spark.catalog.tableExists(held)


SPEC = """
schema: {age: {integers: [0, 9]}, sex: [F, M]}
queries: [{marginal: [sex], stderr: 20}, {sum: age, by: sex, stderr: 90}]
matrices: [{name: moments, second_moment: [x, y], bounds: {x: [0, 1], y: [-1, 2]}, stderr: 5}]
"""


def test_the_command_line_counts_on_spark(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = people()
    pq.write_table(rows.slice(0, 150), "part0.parquet")
    pq.write_table(rows.slice(150), "part1.parquet")
    (tmp_path / "spec.yaml").write_text(SPEC)
    ledger = ns.Ledger.create("b.db", ns.Budget(mu=9))
    words = "release spec.yaml --data part*.parquet --out out --ledger b.db --engine spark"
    told = CliRunner().invoke(app, [*words.split(), "--master", MASTER])
    assert told.exit_code == 0, told.output
    assert len(ledger.history()) == 2
    tables, moments = ns.read("out/tables"), ns.read("out/moments")
    exact = np.array([r is not None and r in "FM" for r in rows["sex"].to_pylist()]).sum()
    assert abs(sum(list(tables.table()["value"])[:2]) - exact) < 6 * 2**0.5 * 20
    z = np.nan_to_num(np.clip(rows["y"].to_numpy(), -1, 2))
    assert moments.answer.shape == (2, 2)
    assert abs(moments.answer[1, 1] - (z**2)[np.isfinite(rows["x"].to_numpy())].sum()) < 30
    assert spark.sql("select 1").collect()  # a session that was there is left as it was
    for wrong, sentence in (
        (["--engine", "spark", "--master", "local[7]"], "is running at local[2, 4]"),
        (["--master", "local[2]"], "say --engine spark too"),
        (["--engine", "flink"], "duckdb or spark"),
    ):
        words = "release spec.yaml --data part*.parquet --out no --ledger b.db"
        refused = CliRunner().invoke(app, [*words.split(), *wrong])
        assert refused.exit_code == 2
        assert sentence in refused.stderr
    assert len(ledger.history()) == 2


def alone(code, **environment):
    """Run Python in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300,
        env={k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | environment,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lacking", "sentence"),
    [
        ("sys.modules['pyspark'] = None", "pip install 'noiseshape[spark]'"),
        ("os.environ['PATH'] = ''", "Spark needs Java 17 or later, and there is no java on the"),
        ("os.environ['JAVA_HOME'] = os.getcwd()", "there is no java in JAVA_HOME="),
    ],
)
def test_what_spark_lacks_is_one_sentence_and_nothing_is_spent(lacking, sentence, tmp_path):
    pq.write_table(people(), tmp_path / "rows.parquet")
    (tmp_path / "spec.yaml").write_text(SPEC)
    ledger = ns.Ledger.create(tmp_path / "b.db", ns.Budget(mu=9))
    told = alone(f"""
        import os, sys
        os.chdir({str(tmp_path)!r})
        {lacking}
        from noiseshape.cli import app
        app("release spec.yaml --data rows.parquet --out o --ledger b.db --engine spark".split())
    """)
    assert told.returncode == 2
    assert sentence in told.stderr
    assert told.stderr.startswith("noiseshape: ")
    assert told.stderr.count("\n") == 1
    assert ledger.history() == ()
    assert not (tmp_path / "o").exists()


def test_a_cluster_that_dies_while_it_counts(tmp_path):
    """Its Java process is killed in the middle: the debit stands, and nothing is published."""
    plan = ns.plan(ns.Workload(ns.Schema({"age": ns.integers(0, 3)})).total(stderr=5))
    ledger = ns.Ledger.create(tmp_path / "b.db", ns.Budget(mu=plan.cost.mu))
    plan.save(tmp_path / "plan.json")
    told = alone(f"""
        import os, signal, sys, threading, time
        import noiseshape as ns
        from noiseshape.tables.spark import _started
        os.chdir({str(tmp_path)!r})
        session = _started("local[1]")
        java = session._jvm.java.lang.ProcessHandle.current().pid()
        frame = session.range(10**13).selectExpr("cast(id % 4 as int) age")
        def kill():
            while not session.sparkContext.statusTracker().getActiveJobsIds():
                time.sleep(0.05)
            time.sleep(0.3)
            os.kill(java, signal.SIGKILL)
        threading.Thread(target=kill, daemon=True).start()
        try:
            ns.load("plan.json").release(frame, ledger="b.db", out="out")
        except ns.ReleaseFailed as error:
            print(error)
            os._exit(0)
        os._exit(1)
    """)
    assert told.returncode == 0, told.stderr
    assert told.stdout == (
        "the release failed at the step 'read'. Ledger entry 1 stands: resume=1 continues it, "
        "without a new debit.\n"
    )
    assert len(ledger.history()) == 1
    assert not (tmp_path / "out").exists()
    ages = pa.table({"age": [1, 2]})
    assert plan.release(ages, ledger=ledger, out=tmp_path / "out", resume=1).stamp.number == 1
