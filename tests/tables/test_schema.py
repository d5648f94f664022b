"""The declared table: what it refuses, what it is called, which rows it says are counted."""

import pytest

import noiseshape as ns
from noiseshape import InvalidInput, Schema

COLUMNS = {
    "age": ns.integers(0, 9, missing="drop"),
    "sex": ["F", "M"],
    "income": ns.bins([0, 10, 20], outside="clamp"),
    "married": ns.booleans(),
    "born": ns.dates(2000, 2002, outside="other"),
}


def schema(**more):
    return Schema(COLUMNS, {"band": ns.recode("age", {"low": (0, 4), "high": (5, 9)})}, **more)


def test_it_survives_a_file_with_everything_in_it():
    made = schema(impossible=["age < 2 and married", "band == 'low' and born is other"])
    back = Schema.from_json(made.to_json())
    assert back.to_json() == made.to_json()
    assert back.digest == made.digest
    assert (back.columns, back.excluded) == (made.columns, made.excluded)


@pytest.mark.parametrize(
    "other",
    [
        Schema(COLUMNS),
        schema(impossible="age < 2 and married"),
        Schema(COLUMNS | {"age": ns.integers(0, 9, missing="own-cell")}),
        Schema(COLUMNS | {"age": ns.integers(0, 9, missing="drop", outside="clamp")}),
        Schema(dict(reversed(COLUMNS.items()))),
    ],
)
def test_the_digest_tells_policies_recodes_and_zeros_apart(other):
    assert schema().digest != other.digest


def test_cells_are_counted_policies_included():
    assert schema().cells == 10 * 3 * 3 * 3 * 5


def test_conditions_that_nobody_meets_can_be_said_later_too():
    text = "age < 2 and married"
    said, later = schema(impossible=text), schema().impossible(text)
    assert (later.digest, later.rows_may_leave) == (said.digest, True)
    assert later.impossible("born is other").excluded == (text, "born is other")


def test_rows_may_leave_where_a_policy_drops_or_a_cell_is_impossible():
    total = {"a": ns.integers(0, 3, outside="clamp"), "b": ns.categories(["x"], outside="other")}
    assert not Schema(total).rows_may_leave
    assert Schema(total, impossible="a == 1 and b == 'x'").rows_may_leave
    assert Schema(total | {"c": ["x"]}).rows_may_leave
    assert Schema({"a": ns.integers(0, 3, outside="clamp", missing="drop")}).rows_may_leave


def test_it_says_in_words_which_rows_are_counted():
    said = schema(impossible="age < 2 and married").words(ns.People("id", 3))
    assert said == [
        "age: rows with a value outside are left out; rows with a missing value are left out.",
        'sex: rows with a value outside are left out; missing values count as "missing".',
        'income: values outside count as the nearest inside; missing values count as "missing".',
        'married: rows with a value outside are left out; missing values count as "missing".',
        'born: values outside count as "other"; missing values count as "missing".',
        "Impossible, and left out: age < 2 and married.",
        "Rows without id, and beyond 3 of one, are left out.",
    ]


def test_names_are_found_or_the_nearest_is_suggested():
    assert schema().view("band").labels == ("low", "high")
    with pytest.raises(InvalidInput, match="no column is called 'bnad': did you mean 'band'"):
        schema().view("bnad")
    with pytest.raises(InvalidInput, match="there are age, sex, income, married, born, band"):
        schema().view("zzz")


BAD = [
    (lambda: Schema({}), "needs columns"),
    (lambda: Schema(["age"]), "needs columns"),
    (lambda: Schema({"age": 3}), "age needs a domain.*got int"),
    (lambda: Schema({"age": "FM"}), "age needs a domain.*got str"),
    (lambda: Schema({"": ["F"]}), "printable text"),
    (lambda: Schema({"a`b": ["F"]}), "without backticks"),
    (lambda: Schema({3: ["F"]}), "printable text"),
    (lambda: Schema({"Age": ["F"], "AGE": ["F"]}), "more than their case, and Age and AGE"),
    (lambda: schema(impossible="age > "), "cannot be read at character 6"),
    (lambda: schema(impossible=["agee > 1"]), "did you mean age"),
]


@pytest.mark.parametrize(("make", "sentence"), BAD)
def test_refusals(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        make()


def test_conditions_in_the_place_of_recodes_are_refused():
    with pytest.raises(InvalidInput, match="recodes are a mapping"):
        Schema({"sex": ["F", "M"]}, ["sex == 'F'"])
