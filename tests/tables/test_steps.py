"""Functions by runs of cells, against plain arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from noiseshape.tables.steps import Steps, between, on_cells, partition

SIZE = 12


@st.composite
def functions(draw):
    starts = sorted({0, *draw(st.lists(st.integers(1, SIZE - 1), max_size=5))})
    values = draw(st.lists(st.integers(0, 2), min_size=len(starts), max_size=len(starts)))
    return Steps(starts, values)


def dense(steps):
    return steps.at(np.arange(SIZE)).tolist()


@given(functions())
def test_merging_changes_no_value_and_leaves_no_equal_neighbours(steps):
    merged = steps.merged()
    assert dense(merged) == dense(steps)
    assert (merged.values[1:] != merged.values[:-1]).all()


@given(st.lists(st.integers(0, SIZE - 1)))
def test_chosen_cells(cells):
    assert dense(on_cells(cells, SIZE)) == [i in cells for i in range(SIZE)]


@given(st.integers(0, SIZE), st.integers(0, SIZE))
def test_a_run_of_cells(low, high):
    assert dense(between(low, high, SIZE)) == [low <= i < high for i in range(SIZE)]


@given(st.lists(functions(), max_size=3))
def test_a_partition_tells_what_the_functions_tell_and_no_more(told):
    number = dense(partition(told))
    rows = list(zip(*(dense(f) for f in told), strict=True)) or [()] * SIZE
    for i in range(SIZE):
        for j in range(SIZE):
            assert (number[i] == number[j]) == (rows[i] == rows[j])
    firsts = list(dict.fromkeys(number))
    assert firsts == list(range(len(firsts)))  # numbers follow the first cell


def test_functions_of_several_values_are_told_apart_by_all_of_them():
    wide = Steps([0, 3, 6], [[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    assert dense(partition([wide])) == [0] * 3 + [1] * 3 + [0] * 6
