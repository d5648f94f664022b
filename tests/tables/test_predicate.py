"""The words of where: what they mean, against Python's own, and where they stop being read."""

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.oracle import conditions

import noiseshape as ns
from noiseshape import InvalidInput, Schema
from noiseshape.tables.predicate import Leaf

SCHEMA = Schema(
    {
        "age": ns.integers(0, 9),
        "sex": ns.categories(["F", "M"], outside="other"),
        "it's so": ns.booleans(),
        "married": ns.booleans(missing="drop"),
    },
    {"band": ns.recode("age", {"young": (0, 4), "old": (5, 9)})},
)


def holds(predicate, cells):
    if isinstance(predicate, Leaf):
        return bool(predicate.steps.at(cells[predicate.column]))
    told = [holds(part, cells) for part in predicate.parts]
    return not told[0] if predicate.how == "not" else (all if predicate.how == "and" else any)(told)


def cells(age=0, sex=0, so=0, married=0):
    return {"age": age, "sex": sex, "it's so": so, "married": married}


PEOPLE = [cells(a, s, o, m) for a in range(11) for s in range(4) for o in range(3) for m in (0, 1)]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(conditions(dict(SCHEMA.columns)))
def test_conditions_mean_what_they_say(condition):
    read = SCHEMA.condition(str(condition))
    for person in PEOPLE:
        assert holds(read, person) == condition.holds(SCHEMA, person), str(condition)


SAME = [
    ("18 > age", "age < 18"),
    ("3 <= age < 7", "age >= 3 and age < 7"),
    ("age = 3", "age == 3"),
    ("age in (1, 2)", "age == 1 or age == 2"),
    ("age not in (1, 2)", "not (age == 1 or age == 2)"),
    ("age in (1)", "age == 1"),
    ("married", "married == true"),
    ("NOT married AND age > 2", "(not married) and (age > 2)"),
    ("age > 2 or age < 1 and married", "age > 2 or (age < 1 and married)"),
    ("not age > 2 and married", "(not (age > 2)) and married"),
    ("band == 'old'", "age >= 5"),
    ("band != 'old'", "age < 5 or age is missing"),  # a recode's missing is a label like others
    ("sex is not other", "not (sex is other)"),
    ("age > 2.5", "age >= 3"),
    ("age >= -1", "age is not missing"),
    ("age < 1e1", "age <= 9"),
    ("`it's so`", "`it's so` == true"),
    ('sex == "F"', "sex == 'F'"),
    ("age\n>\t3", "age > 3"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_ways_of_saying_the_same(one, other):
    first, second = SCHEMA.condition(one), SCHEMA.condition(other)
    assert [holds(first, p) for p in PEOPLE] == [holds(second, p) for p in PEOPLE]


def test_a_comparison_with_a_missing_value_is_false_and_its_opposite_holds():
    missing = cells(age=10)
    assert not holds(SCHEMA.condition("age < 5"), missing)
    assert not holds(SCHEMA.condition("age >= 5"), missing)
    assert holds(SCHEMA.condition("not (age < 5)"), missing)


# The text, with ! before the character that must be pointed at.
STOPS = [
    ("!", "it is empty"),
    ("age >!", "expected a value"),
    ("age > !sex", "a text is quoted: 'sex'"),
    ("age !~ 3", "not understood"),
    ("age!", "expected a comparison after age"),
    ("age > 3 !age", "expected and, or, or the end"),
    ("(age > 3!", "closing parenthesis"),
    ("age in !3", "expected a list"),
    ("age in (1, !)", "expected a value"),
    ("age in (1 !2)", "expected a comma"),
    ("age is !3", "missing or other"),
    ("age not !3", "expected in after not"),
    ("age > -!sex", "a number after the minus"),
    ("3!", "expected a comparison such as <="),
    ("3 < !5", "expected the name of a column"),
    ("age > 3 and !agee > 2", "(did you mean age?)"),
    ("!zzzz == 1", "(there are age, sex"),
    ("sex == !'X'", "not one of the categories: F, M"),
    ("sex < !'F'", "no order"),
    ("age == !'F'", "compare with numbers"),
    ("band < !'old'", "band compares by =="),
    ("age > 3 !and", "expected the name"),
    ("age > !3abc", "not understood"),
    ("!__import__('os') == 1", "no column is called __import__"),
    ("age.!__class__ == 1", "not understood"),
    ("(" * 50 + "!(" + "age > 1" + ")" * 51, "nested more than 50 deep"),
]


@pytest.mark.parametrize(("text", "what"), STOPS)
def test_it_points_at_the_character(text, what):
    at, text = text.index("!"), text.replace("!", "", 1)
    if text.endswith("and"):
        at = len(text)
    if text.startswith("age."):
        at = 3
    with pytest.raises(InvalidInput) as refused:
        SCHEMA.condition(text)
    first, shown, pointer = str(refused.value).split("\n")
    assert f"at character {at + 1}: " in first
    assert what in first
    assert first.endswith(".")
    assert shown == f"  {text}"
    assert pointer == " " * (2 + at) + "^"


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_with_a_pointer(text):
    said = "the condition cannot be read at character 1:"
    with contextlib.suppress(InvalidInput):
        SCHEMA.condition(text)
        return
    with pytest.raises(InvalidInput) as refused:
        SCHEMA.condition(text)
    assert re.sub(r"\d+:", "1:", str(refused.value)).startswith(said)


def test_only_text_is_read():
    with pytest.raises(InvalidInput, match="must be text, got int"):
        SCHEMA.condition(3)
