"""Counting marginals in the engine, against plain pandas."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import noiseshape as ns
from noiseshape.errors import InvalidInput
from noiseshape.tables import tabulate
from noiseshape.tables.opening import opened
from noiseshape.tables.tabulate import Tables

SCHEMA = ns.Schema(
    {"a": ns.integers(0, 3), "b": ["x", "y"], "c": ns.bins([0, 1, 5], outside="clamp")},
    impossible=["a == 0 and b == 'x'"],
)


def rows(n=400):
    rng = np.random.default_rng(8)
    return pd.DataFrame(
        {
            "pid": rng.integers(0, 60, n).astype(str),
            "a": rng.integers(-1, 5, n),
            "b": rng.choice(["x", "y", "z", None], n),
            "c": rng.normal(1, 3, n),
        }
    )


def plainly(frame):
    """The codes of rows that count, the slow way."""
    kept = frame[frame.a.between(0, 3) & frame.b.isin(["x", "y"]) | frame.a.between(0, 3)
                 & frame.b.isna()]  # fmt: skip
    kept = kept[~((kept.a == 0) & (kept.b == "x"))]
    b = kept.b.map({"x": 0, "y": 1}).fillna(2).astype(int)
    c = np.where(kept.c <= 1, 0, 1)
    return np.stack([kept.a.to_numpy(), b.to_numpy(), c], axis=1)


SETS = tuple(t for k in range(4) for t in itertools.combinations(range(3), k))


def tables(data, people=None, sets=SETS):
    work = ns.Workload(SCHEMA, people).marginal("a", "b", "c", stderr=1)
    made = work.products()
    return Tables(opened(data), made.coded, made.people, sets)


@pytest.mark.parametrize("together", [1, 3, 32])
def test_each_marginal_is_counted(together, monkeypatch):
    monkeypatch.setattr(tabulate, "TOGETHER", together)
    codes = plainly(rows())
    found = dict(tables(rows()).read())
    assert tuple(found) == SETS
    for members, table in found.items():
        expected = np.zeros_like(table)
        np.add.at(expected, tuple(codes[:, i] for i in members), 1)
        expected = expected if members else np.array(len(codes))
        assert (table == expected).all(), members


def test_files_relations_and_frames_count_alike(tmp_path: Path):
    import duckdb

    frame = rows()
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    relation = duckdb.from_df(frame)
    expected = dict(tables(frame).read())
    for data in (tmp_path / "rows.parquet", tmp_path / "rows.csv", relation):
        found = dict(tables(data).read())
        for members, table in found.items():
            assert (table == expected[members]).all(), (data, members)


def test_of_a_person_at_most_so_many_rows_count():
    people = ns.People("pid", 2)
    ((_, total),) = tables(rows(), people, ((),)).read()
    codes = plainly(rows())
    kept = rows().loc[plainly_index(rows())]
    assert total == kept.groupby("pid").size().clip(upper=2).sum()
    assert total < len(codes)


def plainly_index(frame):
    """Which rows count."""
    inside = frame.a.between(0, 3) & (frame.b.isin(["x", "y"]) | frame.b.isna())
    return frame.index[inside & ~((frame.a == 0) & (frame.b == "x"))]


def test_nobody_is_counted_as_nobody():
    for members, table in tables(rows().head(0)).read():
        assert table.shape == tuple((5, 3, 3)[i] for i in members)
        assert not table.any()


def test_marginals_are_taken_again_and_say_how_far_they_are(monkeypatch):
    said = []
    monkeypatch.setattr(tabulate, "FEW", 10)
    made = tables(rows())
    made = Tables(made.engine, made.coded, made.people, made.sets, said.append)
    counted = made.read()
    assert [t.sum() for _, t in counted] == [t.sum() for _, t in counted]
    assert said == ["table 0 of 8", "all 8 tables counted, rebuilding answers"] * 2
    assert made.cells() == 1 + 5 + 3 + 3 + 15 + 15 + 9 + 45


def test_a_column_that_is_not_there_is_refused_before_anything_is_read():
    with pytest.raises(InvalidInput, match="no column 'c'"):
        tables(rows().drop(columns="c"))


def test_spark_counts_what_the_embedded_engine_counts(spark):
    """The same statements on a cluster, a person's rows among them."""
    frame = rows(150)
    held = [(r.pid, int(r.a), r.b, float(r.c)) for r in frame.itertuples()]
    there = spark.createDataFrame(held, "pid string, a int, b string, c double")
    sets, people = ((), (0,), (0, 1)), ns.People("pid", 2)
    expected = dict(tables(frame, people, sets).read())
    for members, table in tables(there, people, sets).read():
        assert (table == expected[members]).all(), members
