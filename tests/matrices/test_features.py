"""Bounded columns on a grid: what is declared, what becomes of every number, and bad bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import noiseshape as ns
from noiseshape.errors import InvalidInput
from noiseshape.matrices.features import declared, power_of_two

ANYTHING = st.floats(allow_nan=True, allow_infinity=True)


@given(st.lists(ANYTHING, min_size=1, max_size=20))
def test_every_number_becomes_a_whole_one_within_bounds_or_is_missing(values):
    f = declared(["x"], (-1, 3))
    z, present = f.whole(np.array(values)[:, None])
    finite = np.isfinite(values)
    assert present.tolist() == finite.tolist()
    assert np.all((f.least <= z) & (z <= f.greatest))
    near = f.step * (f.origin + z[finite, 0])
    assert np.all(np.abs(near - np.clip(np.array(values)[finite], -1, 3)) <= f.step / 2)


def test_missing_values_are_dropped_or_count_as_the_middle():
    X = np.array([[0.5, np.nan], [1.0, 2.0]])
    z, present = declared(["a", "b"], (0, 2), missing="drop").whole(X)
    assert present.tolist() == [False, True]
    z, present = declared(["a", "b"], (0, 2), missing="middle").whole(X)
    assert present.all()
    assert z[0, 1] == 0


def test_the_grid_is_a_power_of_two_and_fine_enough():
    for bounds in ((0, 1), (-3, 5), (0, 200_000), (1e-9, 2e-9)):
        f = declared(["x"], bounds)
        (step,) = f.step
        assert step == power_of_two(step)
        assert (bounds[1] - bounds[0]) / step >= 2**15


BAD = [
    ({"bounds": None}, "need bounds, from public knowledge"),
    ({"bounds": (1, 0)}, "must be low < high"),
    ({"bounds": (1, 1)}, "must be low < high"),
    ({"bounds": (0, float("inf"))}, "must be finite"),
    ({"bounds": (float("nan"), 1)}, "must be finite"),
    ({"bounds": [(0, 1)]}, "2 features and 1 pairs of bounds"),
    ({"bounds": {"a": (0, 1)}}, "b has no bounds"),
    ({"bounds": [(0, 1), (0, 1, 2)]}, "must be a pair"),
    ({"bounds": (0, 1), "step": 2}, "wider than its bounds"),
    ({"bounds": (0, 1), "step": 1e-12}, "too fine"),
    ({"bounds": (0, 1), "step": 0}, "a step must be above 0"),
    ({"bounds": (0, 1), "step": [1, 1, 1]}, "one number, or one for each feature"),
    ({"bounds": (0, 1), "missing": "guess"}, "drop or middle"),
    ({"bounds": (0, 1), "columns": ["a", "a"]}, "names that differ"),
]


@pytest.mark.parametrize(("said", "sentence"), BAD)
def test_bad_declarations(said, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        ns.mean(**({"columns": ["a", "b"]} | said))
