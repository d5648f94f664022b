"""The same integers from arrays, frames, tables, files and engines; total, and exact."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noiseshape as ns
from noiseshape import matrices
from noiseshape.errors import InvalidInput

BOUNDS = {"x": (0, 1), "y": (-5, 5)}
NASTY = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -0.0, 5e-324, 1.0, 2.0**-16, 3 * 2.0**-17]


def rows():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 2, (200, 2)) * [1, 4]
    X[: len(NASTY), 0] = NASTY
    X[5 : 5 + len(NASTY), 1] = NASTY[::-1]
    return X


def frame(X):
    return pd.DataFrame(X, columns=["x", "y"])


def files(X, folder):
    pq.write_table(pa.table({"x": X[:, 0], "y": X[:, 1]}), folder / "rows.parquet")
    frame(X).to_csv(folder / "rows.csv", index=False)
    return str(folder / "rows.parquet"), str(folder / "rows.csv")


def queries():
    yield matrices.sum(bounds=BOUNDS)
    yield ns.mean(bounds=BOUNDS, missing="middle")
    yield ns.second_moment(bounds=BOUNDS)
    yield ns.covariance(bounds=BOUNDS)
    yield ns.covariance(bounds=BOUNDS, step=[2.0**-30, 2.0**-26], missing="middle")
    yield ns.identity(bounds=BOUNDS, n=200)


def test_every_engine_gives_what_an_array_gives(tmp_path):
    X = rows()
    named = frame(X)
    parquet, csv = files(X, tmp_path)
    relation = duckdb.sql("SELECT * FROM named")
    held = [named, pl.from_pandas(named), pa.Table.from_pandas(named), parquet, csv, relation]
    for query in queries():
        plain = [int(v) for v in query.source(X).read()]
        for data in held:
            if data is relation and query.kind == "identity":  # whose order nobody promised
                continue
            assert [int(v) for v in query.source(data).read()] == plain, (query, type(data))


def test_sums_are_exact_where_doubles_are_not():
    """Products of 2^60 each, against Python's integers."""
    X = np.full((3000, 1), 1.0)
    X[::2] = 0.999999
    query = ns.second_moment(columns=["x"], bounds=(0, 1), step=2.0**-30)
    z = [round(v * 2**30) for v in X[:, 0].tolist()]
    (found,) = query.source(X).read()
    assert int(found) == sum(v * v for v in z) > 2**70
    (inside,) = query.source(pd.DataFrame({"x": X[:, 0]})).read()
    assert int(inside) == int(found)


def test_a_person_with_an_id_keeps_at_most_k_rows():
    data = pd.DataFrame({"id": ["a"] * 5 + ["b", None], "x": [0.5] * 7})
    query = ns.matrices.sum(columns=["x"], bounds=(0, 1), people=ns.People("id", 2))
    (found,) = query.source(data).read()
    assert float(found) * query.step[0] == 3 * 0.5
    assert query.source(data.iloc[::-1]).read().tolist() == [found]
    with pytest.raises(InvalidInput, match="no column 'id' to tell people by"):
        query.source(np.ones((3, 1)))


def test_a_cost_with_k_rows_is_k_squared():
    one, three = (
        ns.matrices.sum(columns=["x"], bounds=(0, 1), people=people)
        for people in (ns.People(), ns.People("id", 3))
    )
    made = matrices_plan(one), matrices_plan(three)
    assert made[1].cost.mu_squared == 9 * made[0].cost.mu_squared


def matrices_plan(query):
    return ns.directional(query, stderr=7)


def test_a_data_matrix_has_as_many_rows_as_declared_whatever_the_file_holds(tmp_path):
    """What is over is left out, what lacks is the origin: nothing stops on how many there are."""
    X = np.full((4, 1), 1.0)
    pq.write_table(pa.table({"x": X[:, 0]}), tmp_path / "rows.parquet")
    for n in (3, 6):
        query = ns.identity(columns=["x"], bounds=(0, 1), n=n)
        read = query.source(str(tmp_path / "rows.parquet")).read()
        assert len(read) == n
    assert read[-1] == 0


BAD = [
    (np.ones(3), "must be a matrix"),
    (np.ones((3, 3)), "3 columns, and 2 are declared"),
    ([[1, 2], [3]], "equal length"),
    (np.array([["a", "b"]]), "must hold numbers"),
    (np.ma.masked_array(np.ones((2, 2)), mask=True), "must not be masked"),
    (pd.DataFrame({"x": [1.0]}), "no column 'y'"),
    (pd.DataFrame({"x": [1.0], "y": ["a"]}), None),
    (pd.DataFrame({"x": [1.0], "y": pd.to_datetime(["2020-01-01"])}), "numbers are due"),
]


@pytest.mark.parametrize(("data", "sentence"), BAD)
def test_bad_rows_are_refused_before_anything_is_read(data, sentence):
    query = matrices.sum(bounds=BOUNDS)
    if sentence is None:  # text may hold numbers: what does not is missing, and nothing stops
        assert query.source(data).read().tolist() == [0, 0]
        return
    with pytest.raises(InvalidInput, match=sentence):
        query.source(data)


@pytest.mark.xdist_group("spark")
def test_spark_gives_what_an_array_gives(spark):
    X = rows()
    held = spark.createDataFrame([tuple(row) for row in X.tolist()], "x double, y double")
    for query in list(queries())[1::3]:  # the middle of bounds for what is missing; a fine grid
        plain = [int(v) for v in query.source(X).read()]
        assert [int(v) for v in query.source(held).read()] == plain, query
    fine = ns.second_moment(columns=["x"], bounds=(0, 1), step=2.0**-30)
    many = spark.createDataFrame([(0.999999,)] * 3000, "x double")
    assert int(fine.source(many).read()[0]) == 3000 * round(0.999999 * 2**30) ** 2 > 2**70
