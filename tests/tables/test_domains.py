"""Domains: every cell, every comparison, every refusal; placing is the oracle's, value by value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.oracle import OPERATORS, columns

import noiseshape as ns
from noiseshape import InvalidInput, TooLarge
from noiseshape.tables.domains import from_json

EACH = {
    "integers": ns.integers(-2, 2, outside="other"),
    "categories": ns.categories(["b", "a"], outside="other"),
    "bins": ns.bins([-1, 0, 2.5, 4], outside="other"),
    "booleans": ns.booleans(outside="other"),
    "dates": ns.dates("2019-11", "2020-02", by="month", outside="other"),
}


def test_labels_follow_the_declaration_then_other_then_missing():
    assert [domain.labels() for domain in EACH.values()] == [
        ("-2", "-1", "0", "1", "2", "other", "missing"),
        ("b", "a", "other", "missing"),
        ("-1 to 0", "0-2.5", "2.5-4", "other", "missing"),
        ("false", "true", "other", "missing"),
        ("2019-11", "2019-12", "2020-01", "2020-02", "other", "missing"),
    ]


@pytest.mark.parametrize("outside", ["drop", "clamp", "other"])
@pytest.mark.parametrize("missing", ["drop", "own-cell"])
def test_policies_have_a_cell_or_none_and_are_said(outside, missing):
    domain = ns.integers(0, 2, outside=outside, missing=missing)
    assert domain.size == 3 + (outside == "other") + (missing == "own-cell")
    assert (domain.other is None) == (outside != "other")
    assert (domain.absent is None) == (missing == "drop")
    assert domain.drops == ("drop" in (outside, missing))
    first, second = domain.policies().split("; ")
    assert {"drop": "left out", "clamp": "nearest", "other": "other"}[outside] in first
    assert {"drop": "left out", "own-cell": '"missing"'}[missing] in second


@given(columns())
def test_they_survive_a_file(made):
    domain = made[0]
    assert from_json(domain.to_json()) == domain


@given(st.sampled_from(sorted(OPERATORS)), st.one_of(st.integers(-5, 5), st.floats(-5, 5)))
def test_integers_compare_as_numbers(operator, value):
    domain = ns.integers(-2, 2, outside="other")
    told = domain.compare(operator, value).at(np.arange(7)).tolist()
    assert told == [OPERATORS[operator](v, value) for v in range(-2, 3)] + [False, False]


@given(st.sampled_from(sorted(OPERATORS)), st.integers(2017, 2023))
def test_dates_compare_as_years(operator, value):
    domain = ns.dates(2019, 2021)
    told = domain.compare(operator, str(value)).at(np.arange(4)).tolist()
    assert told == [OPERATORS[operator](v, value) for v in (2019, 2020, 2021)] + [False]
    assert told == domain.compare(operator, value).at(np.arange(4)).tolist()


def test_a_year_is_all_of_its_months():
    told = EACH["dates"].compare("==", "2019").at(np.arange(6)).tolist()
    assert told == [True, True, False, False, False, False]


@pytest.mark.parametrize(("closed", "good", "bad"), [("right", "<=", "<"), ("left", "<", "<=")])
def test_bins_are_cut_at_their_edges_alone(closed, good, bad):
    domain = ns.bins([0, 10, 20], closed=closed)
    assert domain.compare(good, 10).at([0, 1, 2]).tolist() == [True, False, False]
    with pytest.raises(InvalidInput, match=r"would cut an interval in two.*at 10"):
        domain.compare(bad, 10)
    with pytest.raises(InvalidInput, match="would cut"):
        domain.compare(good, 11)
    assert domain.compare("<=", 20).at([0, 1, 2]).tolist() == [True, True, False]
    assert domain.compare(">", 20).at([0, 1, 2]).tolist() == [False, False, False]
    assert domain.compare(">=", 0).at([0, 1, 2]).tolist() == [True, True, False]


BAD = [
    (lambda: ns.integers(3, 2), "low <= high, got 3 and 2"),
    (lambda: ns.integers(0, 2.5), "whole bounds, got float"),
    (lambda: ns.integers(False, 2), "whole bounds, got bool"),
    (lambda: ns.integers(0, 2**53), "below 2\\^53"),
    (lambda: ns.integers(0, 2, outside="stop"), "drop, clamp or other, got 'stop'"),
    (lambda: ns.integers(0, 2, missing="stop"), "own-cell or drop, got 'stop'"),
    (lambda: ns.categories([]), "at least one"),
    (lambda: ns.categories("FM"), "a list"),
    (lambda: ns.categories(["F", "F"]), "differ"),
    (lambda: ns.categories([1, "1"]), "differ"),
    (lambda: ns.categories([1.5]), "texts or whole numbers"),
    (lambda: ns.categories([True]), "booleans"),
    (lambda: ns.categories(["\n"]), "printable"),
    (lambda: ns.categories([2**53]), "below 2\\^53"),
    (lambda: ns.categories(["F"], outside="clamp"), "no order to clamp in"),
    (lambda: ns.booleans(outside="clamp"), "no order to clamp in"),
    (lambda: ns.bins([1]), "two edges that increase"),
    (lambda: ns.bins([1, 1]), "two edges that increase"),
    (lambda: ns.bins([0, float("nan")]), "finite"),
    (lambda: ns.bins([0, 1], closed="both"), "right or left"),
    (lambda: ns.dates("2020", "soon"), "written 2020, 2020-03"),
    (lambda: ns.dates("2020-13", "2021"), "written 2020"),
    (lambda: ns.dates(2021, 2020), "first <= last"),
    (lambda: ns.dates(2020, 2021, by="week"), "by year or by month"),
    (lambda: ns.categories(["F"]).compare("<", "F"), "no order"),
    (lambda: ns.categories(["F"]).compare("==", "G"), "not one of the categories: F"),
    (lambda: ns.categories([1]).compare("==", True), "not one of"),
    (lambda: ns.integers(0, 2).compare("==", "1"), "compare with numbers"),
    (lambda: ns.booleans().compare("==", 1), "== true"),
    (lambda: ns.bins([0, 1]).compare("==", 1), "single numbers"),
    (lambda: ns.dates(2020, 2021).compare("<", 2020.5), "compare with '2020'"),
    (lambda: ns.dates(2020, 2021).compare("<", "2020-03"), "names less than one"),
    (lambda: from_json({"kind": "circles"}), "no domain is called 'circles'"),
]


@pytest.mark.parametrize(("make", "sentence"), BAD)
def test_refusals(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        make()


def test_too_many_cells_are_compared_and_never_listed():
    wide = ns.integers(0, 10**9)
    assert wide.compare("<", 5 * 10**8).at([0, 5 * 10**8]).tolist() == [True, False]
    with pytest.raises(TooLarge, match="1,000,000,002 cells are too many"):
        wide.labels()
