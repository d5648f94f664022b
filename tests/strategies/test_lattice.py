"""Subsets of sets, against itertools."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.errors import TooLarge
from noiseshape.strategies.lattice import Lattice

sets = st.lists(st.sets(st.integers(0, 8), max_size=4), min_size=1, max_size=8)


def grouped(asked):
    groups = []
    for k in sorted({len(u) for u in asked}):
        rows = [sorted(u) for u in asked if len(u) == k]
        groups.append(np.array(rows, dtype=np.int64).reshape(len(rows), k))
    return groups


@settings(max_examples=60, deadline=None)
@given(sets)
def test_it_holds_every_subset_once_and_finds_it(asked):
    groups = grouped(asked)
    lattice, numbers = Lattice.under(groups, 9)
    expected = {t for u in asked for k in range(len(u) + 1) for t in combinations(sorted(u), k)}
    found = [lattice.members(i) for i in range(len(lattice))]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert [lattice.number(t) for t in found] == list(range(len(found)))
    assert [len(t) for t in found] == lattice.sizes.tolist()
    for group, number in zip(groups, numbers, strict=True):
        for row, places in zip(group.tolist(), number.tolist(), strict=True):
            for mask, place in enumerate(places):
                assert found[place] == tuple(x for i, x in enumerate(row) if mask >> i & 1)
    missing = [t for k in range(4) for t in combinations(range(9), k) if t not in expected]
    assert all(lattice.number(t) is None for t in missing)


@settings(max_examples=30, deadline=None)
@given(sets, st.lists(st.floats(0.1, 3), min_size=9, max_size=9))
def test_products_and_greatest_over_sets(asked, each):
    lattice, _ = Lattice.under(grouped(asked), 9)
    members = [list(lattice.members(i)) for i in range(len(lattice))]
    values = np.array(each)
    np.testing.assert_allclose(lattice.product(values), [values[t].prod() for t in members])
    np.testing.assert_allclose(
        lattice.greatest(values), [values[t].max(initial=0.0) for t in members]
    )


def test_far_apart_attributes_are_sorted_instead_of_flagged():
    group = np.array([[0, 1_000_000], [5, 1_000_000], [0, 3]])
    lattice, numbers = Lattice.under([group], 1_000_001)
    assert lattice.members(int(numbers[0][1, 3])) == (5, 1_000_000)


def test_too_many_subsets_are_refused_before_they_are_written_out():
    with pytest.raises(TooLarge, match="1,073,741,824 subsets"):
        Lattice.under([np.arange(30)[None, :]], 30)
