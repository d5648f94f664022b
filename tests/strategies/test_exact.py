"""Products that cannot overflow, against Python's integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.errors import InvalidInput
from noiseshape.strategies.exact import difference, integers, product, shifted, squares

bits = st.integers(0, 200)


@st.composite
def of_bits(draw, shape):
    top = 1 << draw(bits)
    flat = draw(st.lists(st.integers(-top, top), min_size=int(np.prod(shape)), max_size=64))
    return integers("x", np.array(flat[: int(np.prod(shape))], dtype=object).reshape(shape))


@settings(deadline=None, derandomize=True, max_examples=200)
@given(A=of_bits((3, 4)), x=of_bits((4,)), y=of_bits((4, 2)))
def test_product_is_exact_at_every_size(A, x, y):
    assert (product(A, x).astype(object) == A.astype(object) @ x.astype(object)).all()
    assert (product(A, y).astype(object) == A.astype(object) @ y.astype(object)).all()


@settings(deadline=None, derandomize=True, max_examples=100)
@given(A=of_bits((3, 4)), x=of_bits((4,)), y=of_bits((4,)), s=st.integers(0, 80))
def test_squares_differences_and_shifts_are_exact(A, x, y, s):
    assert (squares(A).astype(object) == (A.astype(object) ** 2).sum(axis=0)).all()
    assert (difference(x, y).astype(object) == x.astype(object) - y.astype(object)).all()
    assert (shifted(x, s).astype(object) == x.astype(object) * 2**s).all()


@pytest.mark.parametrize("extreme", [2**63 - 1, -(2**63), 2**63, 2**64])
def test_at_the_edges_of_64_bits(extreme):
    A, x = np.array([[1, 1], [-1, 1]]), integers("x", np.array([extreme, extreme], dtype=object))
    assert product(A, x).tolist() == [2 * extreme, 0]
    assert difference(x, -x.astype(object)).tolist() == [2 * extreme] * 2


def test_int64_minimum_as_a_machine_integer():
    least = np.array([np.iinfo(np.int64).min])
    assert product(np.array([[-1]]), least).tolist() == [2**63]
    assert difference(np.zeros(1, int), least).tolist() == [2**63]


@pytest.mark.parametrize(
    "values", [[1.0], [1.5], [np.nan], ["1"], [True], [None], np.array([1.0], dtype=object)]
)
def test_only_integers_are_integers(values):
    """By type alone: 1.0 is refused as 1.5 is, so that acceptance says nothing of the data."""
    with pytest.raises(InvalidInput, match="must hold integers"):
        integers("counts", values)


def test_unsigned_and_wide_integers_are_kept():
    assert integers("x", np.array([2**64 - 1], dtype=np.uint64)).tolist() == [2**64 - 1]
    assert integers("x", np.array([7], dtype=np.uint8)).dtype == np.int64
