"""Whose privacy: bad rules are refused in one sentence."""

import pytest

from noiseshape.errors import InvalidInput
from noiseshape.privacy import People


def test_the_default_is_rows_added_or_removed():
    assert People() == People("rows", 1, "add-remove")
    assert People("id", 3).max_rows == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"unit": ""}, "name of a column"),
        ({"unit": 3}, "name of a column"),
        ({"unit": "two\nlines", "max_rows": 2}, "name of a column"),
        ({"unit": "\ud800", "max_rows": 2}, "name of a column"),  # half a character: no text
        ({"max_rows": 2}, "max_rows must be 1"),
        ({"unit": "id", "max_rows": 0}, "at least 1"),
        ({"unit": "id", "max_rows": 1.5}, "whole number"),
        ({"neighbours": "swap"}, "add-remove"),
    ],
)
def test_refusals(arguments, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        People(**arguments)
