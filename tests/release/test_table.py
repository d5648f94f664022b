"""The table: what goes in comes out, on the screen, in CSV, in Parquet, the same every time."""

import csv
import io
import sys
import types
from html.parser import HTMLParser

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.errors import InvalidInput
from noiseshape.release.table import Table

NASTY = ["plain", "comma, here", 'a "quote"', "two\nlines", "", " spaced ", "é ü 人", "a\r\nb"]
SMALL = {"label": ["a", "b"], "n": np.array([1, -2]), "x": [0.1, np.inf], "ok": [True, False]}


def written(table, tmp_path):
    table.to_csv(tmp_path / "t.csv")
    return (tmp_path / "t.csv").read_bytes()


def read_back(raw):
    return list(csv.reader(io.StringIO(raw.decode("utf-8"), newline="")))


def test_columns_rows_and_length():
    table = Table(SMALL, caption="c", note="n")
    assert len(table) == 2
    assert table.columns == ("label", "n", "x", "ok")
    assert table["label"] == ("a", "b")
    assert table["n"].tolist() == [1, -2]
    assert list(table.rows()) == [
        {"label": "a", "n": 1, "x": 0.1, "ok": True},
        {"label": "b", "n": -2, "x": np.inf, "ok": False},
    ]
    assert [type(v) for v in next(table.rows()).values()] == [str, int, float, bool]
    assert repr(table) == "Table(2 rows: label, n, x, ok)"


def test_a_table_is_frozen_and_keeps_a_copy():
    source = np.array([1.0, 2.0])
    table = Table({"x": source})
    source[0] = 9
    assert table["x"][0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        table["x"][0] = 3
    with pytest.raises(AttributeError):
        table.note = "other"
    with pytest.raises(TypeError):
        table.data["y"] = source


def test_plain_text_is_aligned():
    table = Table({"a": ["x", "long"], "n": [1, 1000], "v": [2.5, -30.0]}, "Title", "Note")
    assert str(table).splitlines() == [
        "Title",
        "a        n    v",
        "----  ----  ---",
        "x        1  2.5",
        "long  1000  -30",
        "Note",
    ]


def test_long_tables_show_their_ends():
    lines = str(Table({"i": np.arange(21)})).splitlines()
    numbers = [f"{i:3d}" for i in range(21)]
    assert lines[2:] == [*numbers[:10], "...", *numbers[11:], "21 rows"]
    assert "..." not in str(Table({"i": np.arange(20)}))


def test_control_characters_do_not_break_the_lines():
    assert len(str(Table({"a": ["x\ny", "t\tu", "\x1b[31m"]})).splitlines()) == 5
    assert "\x1b" not in str(Table({"a": ["\x1b[31m"]}))


class Cells(HTMLParser):
    """Collect the text of captions, headings and cells, and every tag that was met."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.attributes = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def test_html_is_escaped_and_accessible():
    page = Table({"<b>": ["<script>alert(1)</script>", "&"], "n": [1, 2]}, "A & B", "n<o")
    cells = Cells(page._repr_html_())
    assert set(cells.tags) == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert cells.text == [
        "A & B (2 rows) n<o",
        "<b>",
        "n",
        "<script>alert(1)</script>",
        "1",
        "&",
        "2",
    ]
    assert all(a == {"scope": "col"} for tag, a in cells.attributes if tag == "th")
    assert Cells(Table({"i": np.arange(99)})._repr_html_()).tags.count("tr") == 22


def test_csv_reads_back(tmp_path):
    doubles = [0.1, 1 / 3, 1e300, 5e-324, -0.0, 123456789.123, np.inf, -np.inf]
    raw = written(Table({"te,xt": NASTY, "x": doubles}), tmp_path)
    head, *rows = read_back(raw)
    assert head == ["te,xt", "x"]
    assert [row[0] for row in rows] == NASTY
    assert np.array([float(row[1]) for row in rows]).tobytes() == np.array(doubles).tobytes()
    assert b"0.1\n" in raw
    assert b'\n" spaced ",' in raw  # readers that trim must not


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_any_text_reads_back_from_csv_but_for_the_guard(tmp_path_factory, texts):
    raw = written(Table({"a": texts, "b": texts}), tmp_path_factory.getbasetemp())
    for row, text in zip(read_back(raw)[1:], texts, strict=True):
        assert row[0] == row[1]
        assert row[0].removeprefix("'") == text.removeprefix("'")


def test_text_is_never_a_formula(tmp_path):
    dangerous = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-5 to 0"]
    for row, text in zip(
        read_back(written(Table({"=a": dangerous}), tmp_path)), ["=a", *dangerous], strict=True
    ):
        assert row == ["'" + text]
    harmless = ["-5", "+3.25", "-1e-3", "a=b", "0-4", "5+"]
    assert [r[0] for r in read_back(written(Table({"a": harmless}), tmp_path))[1:]] == harmless


def test_parquet_reads_back_with_its_note(tmp_path):
    table = Table({**SMALL, "text": ["=1", ""]}, "what", "noise only")
    table.to_parquet(tmp_path / "t.parquet")
    arrow = pq.read_table(tmp_path / "t.parquet")
    assert arrow.to_pylist() == list(table.rows())
    assert [str(t) for t in arrow.schema.types] == ["string", "int64", "double", "bool", "string"]
    assert arrow.schema.metadata == {b"caption": b"what", b"note": b"noise only"}


def test_equal_tables_write_equal_bytes(tmp_path):
    one, two = Table(SMALL, "c"), Table({k: list(v) for k, v in SMALL.items()}, "c")
    assert written(one, tmp_path) == written(two, tmp_path)
    for name, table in (("1", one), ("2", two)):
        table.to_parquet(tmp_path / name)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_no_rows_is_a_table_too(tmp_path):
    empty = Table({"a": [], "n": np.array([])})
    assert len(empty) == 0
    assert list(empty.rows()) == []
    assert str(empty) == "a  n\n-  -"
    assert written(empty, tmp_path) == b"a,n\n"
    assert empty.to_arrow().num_rows == 0


def test_pandas_is_used_when_there_and_asked_for_when_not(monkeypatch):
    class Frame(dict):
        def __init__(self, data):
            super().__init__(data)
            self.attrs = {}

    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=Frame))
    frame = Table({"a": ["x"], "n": [1]}, "c", "n").to_pandas()
    assert frame == {"a": ["x"], "n": [1]}
    assert frame.attrs == {"caption": "c", "note": "n"}
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="install pandas, or use to_arrow"):
        Table({"a": ["x"]}).to_pandas()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "at least one column"),
        ({"a": [1], "b": [1, 2]}, r"equally long, got {'a': 1, 'b': 2}"),
        ({"a": [[1, 2]]}, r"one axis .* shape \(1, 2\)"),
        ({"a": ["x", None]}, "column 'a' must be one axis of text"),
        ({"a": [1 << 80]}, "at most 64 bits"),
        ({"a": [1j]}, "complex128"),
        ({1: [1]}, "a column's name must be text, got int"),
        ({"a": ["\ud800"]}, "half a character"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(data, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        Table(data)


def test_an_unknown_column_is_refused_by_name():
    with pytest.raises(InvalidInput, match="no column is called 'z': there are label, n, x, ok"):
        Table(SMALL)["z"]
