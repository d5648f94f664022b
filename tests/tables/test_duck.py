"""Files and frames behind DuckDB: what is read, what is refused, and that nothing is guessed."""

import gzip
import stat
import tempfile
import traceback

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noiseshape as ns
from noiseshape import InvalidInput, Schema, Workload
from noiseshape.tables.duck import Duck, files, kind_of
from noiseshape.tables.engine import Rows
from noiseshape.tables.opening import opened


def counts(data, domain, column="x", people=None):
    """Return the count of every cell of one column."""
    work = Workload(Schema({column: domain}), people).marginal(column, stderr=1)
    return Rows(opened(data), work.compiled().layout, work.people).read().tolist()


AGES = ns.integers(0, 2, outside="other")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "end"])
def test_lines_end_as_they_may(tmp_path, ending, last):
    path = tmp_path / "x.csv"
    lines = ["x,y", "0,a", "1,b", "1,c"]
    path.write_bytes((ending.join(lines) + (ending if last else "")).encode())
    assert counts(path, AGES) == [1, 2, 0, 0, 0]


def test_text_as_rfc_4180_has_it(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(
        '\ufeff"x","a ""quoted"" name"\n"1","two\nlines, one ""row"""\n 2 ,b\n,\n"",c\n'
    )
    assert list(opened(path).kinds()) == ["x", 'a "quoted" name']
    assert counts(path, AGES) == [0, 1, 1, 0, 2]
    domain = ns.categories(["b", 'two lines, one "row"'], outside="other")
    assert counts(path, domain, 'a "quoted" name') == [1, 0, 2, 1]


def test_nothing_is_sniffed_from_rows(tmp_path):
    """Neither many numbers nor a first row decide what a column is."""
    path = tmp_path / "x.csv"
    path.write_text("x\n" + "1\n" * 30_000 + "one\n")
    assert opened(path).kinds() == {"x": "text"}
    assert counts(path, AGES) == [0, 30_000, 0, 0, 1]


def test_lines_that_are_no_rows_stop_nothing(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b'x,y\n1,a\n1\n1,a,more\n\xff\xfe,b\n1,"never closed\n2,c\n')
    told = counts(path, AGES)
    assert told[1] >= 2  # the first two; what becomes of the rest is the engine's, without a stop


@pytest.mark.parametrize("ending", [".tsv", ".txt", ".csv.gz", ".TSV", ".parquet", ".pq"])
def test_kinds_of_files_are_told_by_their_names(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    if ending in (".parquet", ".pq"):
        pq.write_table(pa.table({"x": [0, 1, 1], "y": ["a", "b", "c"]}), path)
    else:
        text = "x,y\n0,a\n1,b\n1,c\n".replace(",", "\t" if "tsv" in ending.lower() else ",")
        raw = text.encode()
        path.write_bytes(gzip.compress(raw) if ending.endswith("gz") else raw)
    assert counts(path, AGES) == [1, 2, 0, 0, 0]
    assert counts(str(path), AGES) == [1, 2, 0, 0, 0]


def test_patterns_name_many_files(tmp_path):
    for i in range(3):
        (tmp_path / f"part{i}.csv").write_text(f"x\n{i}\n")
    (tmp_path / "odd [1].csv").write_text("x\n2\n2\n")
    assert counts(tmp_path / "part*.csv", AGES) == [1, 1, 1, 0, 0]
    assert counts(tmp_path / "odd [1].csv", AGES) == [0, 0, 2, 0, 0]  # a file, not a pattern
    assert counts(str(tmp_path / "**/part?.csv"), AGES) == [1, 1, 1, 0, 0]


def test_files_of_one_pattern_must_agree(tmp_path):
    (tmp_path / "a1.csv").write_text("x\n1\n")
    (tmp_path / "a2.csv").write_text("y\n1\n")
    with pytest.raises(InvalidInput, match="do not all begin with the same line of names"):
        opened(tmp_path / "a*.csv")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b1.parquet")
    pq.write_table(pa.table({"x": ["1"]}), tmp_path / "b2.parquet")
    with pytest.raises(InvalidInput, match="do not all hold the same columns and types"):
        opened(tmp_path / "b*.parquet")
    with pytest.raises(InvalidInput, match="all of one kind"):
        opened(tmp_path / "*")


def test_an_engines_message_hangs_on_to_no_refusal(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 person 41 PAR1")
    with pytest.raises(InvalidInput) as refused:
        opened(tmp_path / "x.parquet")
    assert refused.value.__context__ is None
    assert "duckdb" not in "".join(traceback.format_exception(refused.value)).lower().replace(
        "duck.py", ""
    ).replace("test_duck", "").replace("duckdb.error", "")


def test_spill_folders_are_private_and_go(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "x.csv").write_text("x\n1\n")
    made = files(tmp_path / "x.csv")
    made.kinds()
    (spill,) = tmp_path.glob("noiseshape-*")
    assert stat.S_IMODE(spill.stat().st_mode) == 0o700
    (told,) = made.rows("select current_setting('temp_directory')")
    assert told == (str(spill),)
    del made
    assert not spill.exists()


def test_no_extension_is_fetched():
    (told,) = Duck("range(1)").rows(
        "select current_setting('autoinstall_known_extensions'), "
        "current_setting('autoload_known_extensions')"
    )
    assert told == (False, False)


@pytest.mark.parametrize(
    ("declared", "kind"),
    [("TINYINT", "integer"), ("BIGINT", "integer"), ("UBIGINT", "real"), ("HUGEINT", "real"),
     ("DECIMAL(9,2)", "real"), ("DOUBLE", "real"), ("VARCHAR", "text"), ("BOOLEAN", "truth"),
     ("DATE", "date"), ("TIMESTAMP", "date"), ("TIMESTAMP WITH TIME ZONE", None), ("BLOB", None),
     ("INTEGER[]", None), ("STRUCT(a INTEGER)", None), ("TIME", None), ("UUID", None)],
)  # fmt: skip
def test_declared_types(declared, kind):
    assert kind_of(declared) == kind


def test_columns_of_objects_are_text_whatever_the_first_row_holds():
    frame = pd.DataFrame(
        {"x": pd.Series([1, "one", None, 1.0, True, pd.NA, np.nan, [1]], dtype=object)}
    )
    assert opened(frame).kinds() == {"x": "text"}
    domain = ns.categories(["1", "one", "true", "[1]"])
    assert counts(frame, domain) == [2, 1, 1, 1, 3]


class Rude:
    def __str__(self):
        raise RuntimeError("person 41")


def test_an_object_that_cannot_be_told_is_missing():
    frame = pd.DataFrame({"x": pd.Series([Rude(), "\ud800", "a"], dtype=object)})
    assert counts(frame, ns.categories(["a"])) == [1, 2]


def test_pandas_types(tmp_path):
    frame = pd.DataFrame({
        "i": pd.array([1, None, 3], dtype="Int64"), "f": [1.0, np.nan, np.inf],
        "h": np.array([1, 2, 3], dtype="float16"), "c": pd.Categorical(["a", None, "b"]),
        "s": pd.array(["a", None, "b"], dtype="string"), "t": pd.to_datetime(["2020-01-01"] * 3),
        "z": pd.to_datetime(["2020-01-01"] * 3, utc=True), "b": [True, False, True],
        3: [1, 2, 3],
    })  # fmt: skip
    assert dict(opened(frame).kinds()) == {
        "i": "integer", "f": "real", "h": "text", "c": "text", "s": "text", "t": "date",
        "z": "text", "b": "truth",
    }  # fmt: skip
    assert counts(frame, ns.integers(0, 3), "i") == [0, 1, 0, 1, 1]
    assert counts(frame, ns.integers(0, 3), "f") == [0, 1, 0, 0, 2]
    assert counts(frame, ["a", "b"], "c") == [1, 1, 1]
    assert counts(frame, ns.dates(2020, 2021), "z") == [3, 0, 0]


def test_enums_dictionaries_and_unknown_arrow_types():
    table = pa.table({
        "d": pa.array(["a", "b", None]).dictionary_encode(),
        "u": pa.array([1, 2, 3], pa.uint64()),
        "m": pa.array([None] * 3, pa.month_day_nano_interval()),
        "x": pa.array([1, 2, 2]),
    })  # fmt: skip
    assert counts(table, ["a", "b"], "d") == [1, 1, 1]
    assert counts(table, ns.integers(0, 2), "u") == [0, 1, 1, 0]
    frame = pl.DataFrame({"e": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])),
                          "c": pl.Series(["a", None], dtype=pl.Categorical)})  # fmt: skip
    assert opened(frame).kinds() == {"e": "text", "c": "text"}
    assert counts(frame.lazy(), ["a", "b"], "e") == [1, 1, 0]


@pytest.mark.parametrize(
    "data",
    [pd.DataFrame([[1, 2]], columns=["x", "x"]), pa.table([[1], [2]], names=["x", "x"])],
)
def test_two_columns_of_one_name_are_refused(data):
    with pytest.raises(InvalidInput, match="two columns of one name"):
        opened(data)


def test_a_relation_is_counted_on_its_own_connection():
    connection = duckdb.connect()
    connection.execute("create temp table people as select i % 2 as x from range(10) t(i)")
    relation = connection.table("people").filter("x = 1")
    assert counts(relation, AGES) == [0, 5, 0, 0, 0]
    assert connection.execute("select count(*) from people").fetchone() == (10,)


@pytest.mark.parametrize("data", [3, None, ["x"], {"x": [1]}, pd.Series([1]), object()])
def test_anything_else_is_refused(data):
    with pytest.raises(InvalidInput, match=f"a DuckDB relation; got {type(data).__name__}"):
        opened(data)


def test_columns_and_no_rows_are_counted(tmp_path):
    (tmp_path / "x.csv").write_text("x")
    assert counts(tmp_path / "x.csv", AGES) == [0] * 5
    assert counts(pa.table({"x": pa.array([], pa.int64())}), AGES) == [0] * 5
    assert counts(pd.DataFrame({"x": []}), AGES) == [0] * 5


def test_which_rows_of_a_person_count_follows_from_that_persons_own():
    """Whoever else is there, and in whatever order rows come."""
    rng = np.random.default_rng(5)
    own = [("p", int(v)) for v in rng.integers(0, 40, 30)]
    others = [(f"q{i}", int(v)) for i, v in enumerate(rng.integers(0, 40, 200))]

    def table(rows):
        order = rng.permutation(len(rows))
        return pa.table({"id": [rows[i][0] for i in order], "x": [rows[i][1] for i in order]})

    def counted(rows):
        work = Workload(Schema({"x": ns.integers(0, 39)}), ns.People("id", 4)).marginal(
            "x", stderr=1
        )
        return Rows(opened(table(rows)), work.compiled().layout, work.people).read()

    alone = counted(own)
    assert alone.sum() == 4
    assert ((counted(own + others) - counted(others)) == alone).all()
    assert (counted(list(reversed(own))) == alone).all()
