"""How accurate: in four words, one for all or one a cell, against a public reference."""

import numpy as np
import pytest

import noiseshape as ns
from noiseshape import InvalidInput
from noiseshape.tables.targets import HALF_WIDTH, from_cv, variances

AXES, PARTS = ("sex", "band"), [("F", "low"), ("F", "high"), ("M", "low"), ("M", "high")]
EXPECTED = [100.0, 200.0, 50.0, 1000.0]


def stderrs(reference, cv=0.1):
    return from_cv("q", cv, reference, AXES, PARTS).tolist()


def test_a_margin_is_the_half_width_at_95_percent():
    assert pytest.approx(1.959963984540054, rel=1e-15) == HALF_WIDTH
    assert variances("q", 2, margin=10) == pytest.approx([(10 / HALF_WIDTH) ** 2] * 2)
    assert variances("q", 2, stderr=[3, 4]).tolist() == [9, 16]
    assert variances("q", 2, variance=5).tolist() == [5, 5]


@pytest.mark.parametrize(
    "reference",
    [
        EXPECTED,
        np.array(EXPECTED),
        dict(zip(PARTS, EXPECTED, strict=True)),
        dict(reversed(list(zip(PARTS, EXPECTED, strict=True)))) | {("X", "low"): 3},
    ],
)
def test_a_cv_is_a_share_of_what_a_public_table_expects(reference):
    assert stderrs(reference) == pytest.approx([10, 20, 5, 100])
    assert stderrs(reference, [0.1, 0.2, 0.1, 0.2]) == pytest.approx([10, 40, 5, 200])


def test_one_number_stands_for_all():
    assert stderrs(100) == pytest.approx([10] * 4)


def test_a_reference_from_a_public_file(tmp_path):
    path = tmp_path / "last.csv"
    lines = [f"{band},{n},{sex}" for (sex, band), n in zip(PARTS, EXPECTED, strict=True)]
    path.write_text("\n".join(["band,people,sex", *reversed(lines)]))
    assert stderrs(path) == pytest.approx([10, 20, 5, 100])
    assert stderrs(str(path)) == pytest.approx([10, 20, 5, 100])


def test_keys_of_one_axis_are_plain_and_of_none_empty():
    assert from_cv("q", 0.1, {"F": 10, "M": 20}, ("sex",), [("F",), ("M",)]).tolist() == [1, 2]
    assert from_cv("q", 0.1, {"": 10}, (), [()]).tolist() == [1]


def test_targets_of_a_workload_one_a_cell_or_one_for_all(tmp_path):
    schema = ns.Schema({"sex": ["F", "M"], "age": ns.integers(0, 1, missing="drop")})
    path = tmp_path / "r.csv"
    path.write_text("sex,age,n\nF,0,10\nF,1,20\nM,0,30\nM,1,40\nmissing,0,5\nmissing,1,5\n")
    work = ns.Workload(schema).marginal("sex", "age", cv=0.1, reference=path)
    work.total(by="age", variance=[4, 9])
    asked = work.compiled()
    assert asked.variance.tolist() == pytest.approx([1, 4, 9, 16, 0.25, 0.25, 4, 9])


BAD = [
    (lambda: variances("q", 2, variance=None, stderr=None), "'q' needs one target: variance or"),
    (lambda: variances("q", 2, stderr=1, margin=2), "got stderr and margin"),
    (lambda: variances("q", 2, stderr=[1, 2, 3]), "one for each of its 2 rows"),
    (lambda: variances("q", 2, stderr=0), "above 0, got 0"),
    (lambda: variances("q", 2, stderr=[1, -2]), "above 0, got -2"),
    (lambda: variances("q", 2, stderr=float("nan")), "finite"),
    (lambda: variances("q", 2, stderr="many"), "real numbers"),
    (lambda: stderrs(None), "give a public reference table"),
    (lambda: stderrs([1, 2, 3]), "one number for each row"),
    (lambda: stderrs([1, 2, 3, 0]), "above 0 in every row, and 1 of 4 are not"),
    (lambda: stderrs({("F", "low"): 3}), "lacks 3 of 4 rows, such as F, high"),
    (lambda: stderrs(EXPECTED, cv=0), "the cv of 'q' must be above 0"),
    (lambda: stderrs(EXPECTED, cv=[1, 2]), "one number, or one a row"),
    (lambda: stderrs("none.csv"), "there is no public file"),
]


@pytest.mark.parametrize(("make", "sentence"), BAD)
def test_refusals(make, sentence):
    # numpy's own words where what is given is no array of numbers
    with pytest.raises(InvalidInput, match=sentence):
        make()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sex,n\nF,1\n", "needs the columns sex, band and one more"),
        ("sex,band,n,m\nF,low,1,2\n", "needs the columns sex, band and one more"),
        ("sex,band,n\nF,low,many\n", "holds no numbers"),
        ("sex,band,n\nF,low,1\n", "lacks 3 of 4 rows"),
    ],
)
def test_files_that_are_no_reference(tmp_path, text, sentence):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        stderrs(tmp_path / "r.csv")


def test_a_reference_without_a_cv_is_refused():
    work = ns.Workload(ns.Schema({"sex": ["F", "M"]}))
    with pytest.raises(InvalidInput, match="is for a cv, and no cv is given"):
        work.total(stderr=1, reference=[3])
    with pytest.raises(InvalidInput, match="got stderr and cv"):
        work.total(stderr=1, cv=0.1, reference=[3])
    with pytest.raises(InvalidInput, match="has no use for 'stder'"):
        work.total(stder=1)
