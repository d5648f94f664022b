"""Sealed files: what was altered, cut or is of another kind is refused in one sentence."""

import json
import os
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.archive import (
    digest_of,
    kind_of,
    pack,
    raw,
    read_text,
    sealed,
    unpack,
    unsealed,
    write_whole,
)
from noiseshape.errors import InvalidInput


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.one_of(
        st.lists(st.floats(allow_nan=False), max_size=9).map(lambda v: np.array(v, dtype=float)),
        st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9).map(
            lambda v: np.array(v, dtype=np.int64)
        ),
        st.lists(st.integers(-(2**200), 2**200), max_size=9).map(
            lambda v: np.array(v, dtype=object)
        ),
    )
)
def test_arrays_come_back_bit_for_bit(array):
    back = unpack(json.loads(json.dumps(pack(array))))
    assert back.dtype == array.dtype
    assert back.tolist() == array.tolist()
    if array.dtype == float:
        assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "packed",
    [
        {},
        None,
        {"type": "float64", "shape": [2], "data": "!!"},
        {"type": "float64", "shape": [2], "data": pack(np.ones(3))["data"]},
        {"type": "object", "shape": [1], "data": "gASVCwAAAAAAAAA="},
        {"type": "integers", "shape": [1], "data": ["x"]},
    ],
)
def test_damaged_arrays_are_refused(packed):
    with pytest.raises(InvalidInput, match="damaged"):
        unpack(packed)


TEXT = sealed("plan", 1, {"a": [1, 2], "b": "c"})


def test_a_sealed_text_opens():
    assert unsealed("plan", 1, TEXT, "here") == {"a": [1, 2], "b": "c"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "cut short"),
        ("[]", "not a Noiseshape plan file"),
        (TEXT[:-5], "cut short"),
        (TEXT.replace("1", "7", 1), "altered|format"),
        (TEXT.replace('"c"', '"d"'), "altered"),
        (sealed("release", 1, {}), "a Noiseshape release file"),
        (sealed("plan", 2, {}), "format 2"),
        (TEXT.replace('"c"', "1e999"), "altered"),
        ("[" * 100_000, "not a Noiseshape plan file"),
    ],
)
def test_what_is_not_whole_is_refused(text, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        unsealed("plan", 1, text, "here")


@settings(deadline=None, derandomize=True, max_examples=100)
@given(at=st.integers(0, len(TEXT) - 1), to=st.characters(codec="ascii"))
def test_no_change_of_a_character_goes_unseen(at, to):
    changed = TEXT[:at] + to + TEXT[at + 1 :]
    try:
        content = unsealed("plan", 1, changed, "here")
    except InvalidInput:
        return
    assert content == {"a": [1, 2], "b": "c"}  # white space only


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    write_whole(path, "one", mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def fails(handle):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, "two")
    assert path.read_text() == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_unreadable_files_are_one_sentence(tmp_path):
    with pytest.raises(InvalidInput, match="there is no plan file"):
        read_text(tmp_path / "none", "plan")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_text("a\0b", "plan")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_text(tmp_path, "plan")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_text(tmp_path / "binary", "plan")


def test_the_kind_of_a_file_is_told_by_its_seal():
    assert kind_of(sealed("plan", 1, {})) == "plan"
    for text in ("", "{}", "[1]", "no json"):
        assert kind_of(text) == ""


def test_bytes_of_integers_and_their_digest():
    values = np.array([1, -2, 1 << 62])
    assert np.array_equal(np.frombuffer(raw(values), dtype="<i8"), values)
    assert digest_of(values) == digest_of(values.astype(">i8"))
    assert digest_of(values) != digest_of(values[::-1])
