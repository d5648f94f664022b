"""Recodes: from mappings and public files, of columns and of each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import noiseshape as ns
from noiseshape import InvalidInput, Schema, recode

AGE = ns.integers(0, 9, outside="other")
PLACE = ns.categories(["a", "b", "c"])


def told(name, recodes, columns=None):
    view = Schema(columns or {"age": AGE, "place": PLACE}, recodes).view(name)
    steps = view.cells().at(np.arange(view.domain.size))
    return [view.labels[i] for i in steps]


def test_bands_of_an_integer():
    bands = {"young": (0, 3), "rest": [(6, 9), (4, 4), 5]}
    assert told("band", {"band": recode("age", bands)}) == (
        ["young"] * 4 + ["rest"] * 6 + ["other", "missing"]
    )


@given(st.lists(st.sampled_from("xyz"), min_size=10, max_size=10))
def test_any_mapping_of_single_values(labels):
    mapping = {label: [[i, i] for i in range(10) if labels[i] == label] for label in set(labels)}
    assert told("r", {"r": recode("age", mapping)})[:10] == labels


def test_categories_and_a_hierarchy():
    recodes = {
        "state": recode("county", {"south": ["A", "missing"], "north": "B"}),
        "county": recode("place", {"A": ["a", "c"], "B": "b"}),
    }
    assert told("county", recodes) == ["A", "B", "A", "missing"]
    assert told("state", recodes) == ["south", "north", "south", "south"]


def test_a_hierarchy_leaves_other_and_missing_what_they_are():
    recodes = {
        "band": recode("age", {"low": (0, 4), "high": (5, 9)}),
        "all": recode("band", {"every age": ["low", "high"]}),
    }
    assert told("all", recodes) == ["every age"] * 10 + ["other", "missing"]


def test_from_a_public_file(tmp_path):
    path = tmp_path / "places.csv"
    path.write_text("\ufeffcode,name,county\na,Alpha,North\nb,Beta,South\nc,Gamma,North\n")
    made = recode("place", path, source="code", target="county")
    assert told("county", {"county": made}) == ["North", "South", "North", "missing"]
    by_position = recode("place", path)
    assert told("named", {"named": by_position})[:3] == ["Alpha", "Beta", "Gamma"]
    ages = tmp_path / "ages.csv"
    ages.write_text(
        "age,band\n" + "".join(f"{i},{'odd' if i % 2 else 'even'}\n" for i in range(10))
    )
    assert told("parity", {"parity": recode("age", ages)})[:3] == ["even", "odd", "even"]


def test_they_survive_a_file_and_change_the_digest():
    schema = Schema({"age": AGE}, {"band": recode("age", {"low": (0, 4), "high": [(5, 9)]})})
    back = Schema.from_json(schema.to_json())
    assert back.to_json() == schema.to_json()
    assert back.digest == schema.digest != Schema({"age": AGE}).digest


BAD = [
    ({"r": recode("age", {"low": (0, 4)})}, "leaves values of age unmapped, such as 5"),
    ({"r": recode("age", {"low": (0, 4), "high": (4, 9)})}, "maps 4 twice"),
    ({"r": recode("age", {"low": (4, 0)})}, "whole numbers low <= high"),
    ({"r": recode("age", {"low": ["a"]})}, "whole numbers"),
    ({"r": recode("place", {"A": ["a", "b"]})}, "unmapped, such as c"),
    ({"r": recode("place", {"A": ["a", "b"], "B": ["b", "c"]})}, "maps 'b' twice"),
    ({"r": recode("place", {"A": ["a", "d"]})}, "'d' is not one of the categories"),
    ({"r": recode("when", {"A": 1})}, "recodes 'when', and no column"),
    ({"r": recode("s", {"A": 1}), "s": recode("r", {"A": 1})}, "and no column is called so"),
    ({"age": recode("place", {"A": ["a", "b", "c"]})}, "a column and a recode"),
    ({"r": {"A": 1}}, "r must be recode"),
]


@pytest.mark.parametrize(("recodes", "sentence"), BAD)
def test_refusals(recodes, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        Schema({"age": AGE, "place": PLACE}, recodes)


def test_only_integers_and_categories_are_recoded():
    with pytest.raises(InvalidInput, match="declare coarser bins or dates"):
        Schema({"x": ns.bins([0, 1])}, {"r": recode("x", {"A": 1})})


BAD_FILES = {
    "none.csv": (None, "there is no public file"),
    "empty.csv": ("", "empty or has uneven lines"),
    "uneven.csv": ("a,b\n1\n", "uneven"),
    "one.csv": ("a\n1\n", "needs two columns"),
    "quoted.csv": ('a,b\n"1,2\n', "cannot be read as CSV"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_are_no_recode(tmp_path, name):
    text, sentence = BAD_FILES[name]
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        recode("age", tmp_path / name)


def test_a_file_without_the_named_columns(tmp_path):
    (tmp_path / "f.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInput, match="has no column 'c'"):
        recode("age", tmp_path / "f.csv", source="c")
    with pytest.raises(InvalidInput, match="at least one label"):
        recode("age", {})
