"""What the custodian is told before a release, and nobody else."""

import traceback

import pandas as pd
import pyarrow as pa
import pytest

import noiseshape as ns
from noiseshape import InvalidInput, People, Schema
from noiseshape.tables.check import WARNING, check
from noiseshape.tables.opening import opened

SCHEMA = Schema(
    {
        "age": ns.integers(0, 9, missing="drop", outside="clamp"),
        "sex": ["F", "M"],
        "hours": ns.bins([0, 10]),
        "born": ns.dates(2000, 2001),
        "married": ns.booleans(),
    },
    impossible="age < 3 and married",
)
ROWS = pd.DataFrame(
    {
        "age": ["1", "x", None, "99", "2.5", "-1"],
        "sex": ["F", "m", None, "M", "", "F"],
        "hours": ["0", "10", "10.5", "nan", "1e1", None],
        "born": ["2000-05-01", "2002", "soon", None, "2001", "99"],
        "married": ["yes", "no", "2", "maybe", "T", None],
        "id": ["a", "a", "a", None, "b", "b"],
    }
)


def test_each_column_tells_what_is_missing_unreadable_and_outside():
    rows, columns = check(opened(ROWS), SCHEMA, People())
    assert rows == 6
    assert columns == [
        {"column": "age", "missing": 1, "unreadable": 1, "outside": 3},
        {"column": "sex", "missing": 1, "unreadable": 0, "outside": 2},
        {"column": "hours", "missing": 1, "unreadable": 1, "outside": 1},
        {"column": "born", "missing": 1, "unreadable": 2, "outside": 1},
        {"column": "married", "missing": 1, "unreadable": 2, "outside": 0},
    ]


def test_people_beyond_their_rows_are_told():
    _, columns = check(opened(ROWS), SCHEMA, People("id", 2))
    assert columns[-1] == {
        "column": "id", "rows without it": 1, "rows beyond max_rows": 1,
        "people beyond max_rows": 1,
    }  # fmt: skip


def test_no_rows_are_no_error():
    rows, columns = check(opened(ROWS.iloc[:0]), SCHEMA, People("id", 2))
    assert rows == 0
    assert all(v == 0 for column in columns for k, v in column.items() if k != "column")


def test_columns_that_lack_are_refused():
    with pytest.raises(InvalidInput, match="no column 'married'"):
        check(opened(ROWS.drop(columns="married")), SCHEMA, People())
    with pytest.raises(InvalidInput, match="no column 'person'"):
        check(opened(ROWS), SCHEMA, People("person"))


def test_an_engines_message_is_not_passed_on(monkeypatch):
    def quotes(self, statement):
        raise RuntimeError("row 7 holds 41")

    made = opened(pa.table({"age": [1]}))
    monkeypatch.setattr(type(made), "rows", quotes)
    with pytest.raises(InvalidInput, match="the rows cannot be read") as refused:
        check(made, Schema({"age": ns.integers(0, 9)}), People())
    assert "41" not in "".join(traceback.format_exception(refused.value))


def test_it_warns_whom_it_is_for():
    assert WARNING.startswith("FOR THE CUSTODIAN'S EYES ONLY")
