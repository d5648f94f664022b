"""Whether a question is refused, and what is said of it, tells nothing of any value."""

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import noiseshape as ns
from noiseshape import matrices
from noiseshape.errors import InvalidInput
from noiseshape.learn.rows import target

REPLACE = ns.People(neighbours="replace")
# What one person may have written into a list of numbers: each of them is missing.
STRANGE = [None, "forty-two", "9" * 4000, 10**400, 2**70 * 1j, [1, 2], {}, object(), np.nan, b"x"]
FAILS = (
    "SELECT CAST(x AS DOUBLE) AS a FROM (VALUES ('1'), ('a secret')) AS given (x) "
    "WHERE CAST(x AS DOUBLE) > 0"
)


@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_no_list_is_refused_for_a_value(value):
    query = matrices.sum([[0.5], [value]], bounds=(0, 1))
    plain = matrices.sum([[0.5], [np.nan]], bounds=(0, 1))
    assert query.source(query.rows).read() == plain.source(plain.rows).read()
    np.testing.assert_array_equal(target([[1], [2]], [0.5, value]), [0.5, np.nan])
    graph = ns.adjacency(nodes=3)
    assert graph.source([[0, 1], [value, 2]]).read().tolist() == [1, 0, 0]


def test_lengths_are_told_and_ragged_lists_refused():
    with pytest.raises(InvalidInput, match="of equal length"):
        matrices.sum([[0.5], [1, 2]], bounds=(0, 1), columns=["a"]).source([[0.5], [1, 2]])


def test_how_long_a_text_is_is_not_said():
    for word in ("a", "a" * 77):
        with pytest.raises(InvalidInput) as said:
            matrices.sum(bounds=(0, 1), columns=["a"]).source(np.array([[word]]))
        assert "77" not in str(said.value)
        with pytest.raises(InvalidInput) as said:
            target([[1]], np.array([word]))
        assert "77" not in str(said.value)


@pytest.mark.parametrize(
    ("edges", "joined"),
    [
        ([[0, 1], [2**70, 1]], [(0, 1)]),
        ([[0, 1], [1.5, 2.0]], [(0, 1)]),
        ([[0, 1], [1.0, 2.0]], [(0, 1), (1, 2)]),
        (np.array([[0, 1], [2**63 + 1, 1]], dtype=np.uint64), [(0, 1)]),
        (np.array([[250, 251], [255, 0]], dtype=np.uint8), [(250, 251), (0, 255)]),
        (np.array([[0, 1], [-128, 3]], dtype=np.int8), [(0, 1)]),
        ([], []),
        (sparse.coo_array(([1, 1], ([0, 2], [1, 2])), shape=(3, 3)), [(0, 1)]),
    ],
)
def test_edges_are_read_whatever_they_are(edges, joined):
    n = 300
    plain = np.zeros((n, n))
    for i, j in joined:
        plain[i, j] = plain[j, i] = 1
    query = ns.adjacency(nodes=n)
    z = query.source(edges).read()
    assert z.dtype == np.int64
    np.testing.assert_array_equal(query.answer(z.astype(float)), plain)


def test_how_many_edges_there_are_is_not_said():
    with pytest.raises(InvalidInput) as said:
        ns.adjacency(nodes=3).source(np.zeros((7654, 3), dtype=int))
    assert "7654" not in str(said.value)


def test_a_relation_is_not_run_to_be_asked_about():
    """DuckDB's relations have a length, which runs their query: what stops it quotes a value."""
    relation = duckdb.sql(FAILS)
    with pytest.raises(duckdb.Error, match="a secret"):
        len(relation)
    for ask in (
        ns.identity,
        lambda rows, **said: ns.mean(rows, missing="middle", people=REPLACE, **said),
    ):
        with pytest.raises(InvalidInput, match="=\\.\\.\\."):
            ask(relation, bounds=(0, 1))
    query = ns.mean(relation, bounds=(0, 1), expected=2)
    with pytest.raises(ns.errors.ReleaseFailed) as said:
        ns.isotropic(query).release(unrecorded=True)
    assert "secret" not in str(said.value)


def test_rows_without_an_order_are_no_rows_of_an_answer():
    """Sorted by their values, rows all move when one is replaced."""
    relation = duckdb.sql("SELECT * FROM (VALUES (0.5), (0.25)) AS given (a) ORDER BY a")
    spread = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe", "columns": ["a"]})()
    for query in (
        ns.identity(bounds=(0, 1), columns=["a"], n=2),
        ns.features(clip=1.0, m=1, n=2),
        ns.gram(clip=1.0, n=2),
    ):
        for rows in (relation, spread):
            with pytest.raises(InvalidInput, match="no order that stays"):
                query.source(rows)


def test_a_column_that_may_lack_values_is_taken_whether_it_does_or_not():
    for last in (2, None):
        made = target([[1], [2]], pd.Series([1, last], dtype="Int64"))
        np.testing.assert_array_equal(made, [1, np.nan if last is None else 2])
