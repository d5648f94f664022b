"""Spark counts what plain pandas counts, in its own SQL; one session serves the whole run."""

import datetime
import traceback

import pytest
from hypothesis import given, settings
from tests.tables.oracle import worlds
from tests.tables.test_engines import THOROUGH, counted, expecting, table

import noiseshape as ns
from noiseshape.tables.engine import Rows
from noiseshape.tables.opening import opened
from noiseshape.tables.spark import Spark

pytestmark = pytest.mark.xdist_group("spark")


def test_spark_counts_as_pandas_does(spark):
    @settings(THOROUGH, max_examples=8)
    @given(world=worlds())
    def counts(world):
        with expecting(world) as expected:
            assert counted(world, spark.createDataFrame(table(world.held))) == expected

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


def test_a_failure_of_the_cluster_names_its_step_alone(spark):
    work = ns.Workload(ns.Schema({"age": ns.integers(0, 3)}))
    plan = ns.plan(work.total(stderr=5))

    made = spark.createDataFrame([("41",)], "age string").selectExpr(
        "cast(raise_error('person is 41') as string) age"
    )
    with pytest.raises(ns.NoiseshapeError) as failed:
        plan.release(made, unrecorded=True)
    assert "failed at the step 'read'" in str(failed.value)
    assert "41" not in "".join(traceback.format_exception(failed.value))
