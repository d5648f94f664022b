"""Axes are read from labels, and a picture is chosen by them alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import noiseshape as ns
from noiseshape.report.grid import grid_of

WORDS = st.text("abcXYZ 019", min_size=1, max_size=6).filter(lambda t: t == t.strip())


@given(st.lists(WORDS, min_size=1, max_size=4, unique=True),
       st.lists(WORDS, min_size=1, max_size=4, unique=True))  # fmt: skip
def test_products_come_back_as_axes(rows, columns):
    grid = grid_of([f"one={r}, two<={c}" for r in rows for c in columns])
    assert [(a.name, a.sign, list(a.labels)) for a in grid.axes] == [
        ("one", "=", rows),
        ("two", "<=", columns),
    ]
    want = np.arange(len(rows) * len(columns)).reshape(len(rows), -1)
    assert np.array_equal(grid.lookup(), want)


def test_cells_that_are_left_out_leave_holes():
    grid = grid_of(["a=1, b=x", "a=1, b=y", "a=2, b=y"])
    assert grid.lookup().tolist() == [[0, 1], [-1, 2]]


@pytest.mark.parametrize(
    "labels",
    [["a", "b"], ["a=1", "b=1"], ["a=1, b=2", "a=1"], ["a=1, a=1", "a=1, a=1"], [""], ["a=1", ""]],
)
def test_labels_that_tell_no_axes_are_one_list(labels):
    grid = grid_of(labels)
    assert [axis.labels for axis in grid.axes] == [tuple(labels)]


def test_words_and_numbers_are_two_axes_where_all_combinations_are_there():
    labels = [f"{sex} {age}" for sex in ("male", "female") for age in range(9)]
    assert [len(axis.labels) for axis in grid_of(labels).axes] == [2, 9]
    assert len(grid_of(labels[:-1]).axes) == 1


def test_spans_and_numbers():
    (axis,) = grid_of(["age=0-17", "age=18 to 64", "age=-3"]).axes
    assert axis.spans == ((0, 17), (18, 64), (-3, -3))
    assert not axis.numbers
    (axis,) = grid_of(["age=1", "age=2", "age=missing"]).axes
    assert axis.spans is None
    assert grid_of(["age=1", "age=2", "age=missing"]).regular().axes[0].numbers


def test_every_query_gets_the_picture_that_fits_it(plan, release):
    from noiseshape.report.released import pictures

    drawn = {p.title: p.drawn for p in pictures(release)}
    assert list(drawn) == [
        "Single numbers", "sex", "age ranges", "sex x age", "age up to", "by sex", "region x sex",
    ]  # fmt: skip
    assert drawn["age ranges"].count('class="whisker"') == 9
    assert drawn["sex x age"].count("orange soft") == 16
    assert drawn["by sex"].count("<polygon") == drawn["by sex"].count("<polyline") == 2
    assert drawn["region x sex"].count("<title>") == 27
    # The third sex is "missing": in the table, and no side of a pyramid.
    tables = {p.title: p.table for p in pictures(release)}
    assert len(tables["sex x age"]) == 48


def test_what_is_drawn_is_where_the_table_says():
    """Two derivations: bars' ends, read back from the drawing by its own ticks."""
    import re

    queries = ns.Queries(["a", "b", "c"]).ask("x", np.eye(3), stderr=3)
    release = ns.plan(queries).release([100, 250, 40], unrecorded=True)
    from noiseshape.report.released import pictures

    (picture,) = pictures(release)
    ticks = [
        (float(x), float(said.replace(",", "").replace("\u2212", "-")))
        for x, said in re.findall(
            r'<text x="([\d.]+)" y="[\d.]+" class="tick"[^>]*>([^<]+)<', picture.drawn
        )
    ]
    (x0, v0), (x1, v1) = ticks[0], ticks[-1]
    ends = re.findall(
        r'<rect x="([\d.]+)"[^>]* width="([\d.]+)"[^>]*class="blue soft"', picture.drawn
    )
    found = [v0 + (float(x) + float(w) - x0) * (v1 - v0) / (x1 - x0) for x, w in ends]
    assert found == pytest.approx(release.answers.tolist(), abs=0.5)
