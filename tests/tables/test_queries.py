"""What is asked: targets in three words, and refusals in one sentence."""

import numpy as np
import pytest

from noiseshape import InvalidInput, People, Queries


def asked():
    return (
        Queries(["a", "b", "c"], People("id", 2))
        .ask("total", [1, 1, 1], variance=4)
        .ask("cells", np.eye(3), stderr=[1, 2, 3], labels=["a", "b", "c"])
        .ask("half", [[1, 1, 0]], margin=1.959963984540054)
    )


def test_targets_are_variances():
    queries = asked()
    assert queries.variance == pytest.approx([4, 1, 4, 9, 1])
    assert queries.names == ("total", "cells", "cells", "cells", "half")
    assert queries.labels == ("", "a", "b", "c", "")
    assert queries.matrix.shape == (5, 3)


def test_asking_leaves_what_was_asked_before_alone():
    before = Queries(2)
    before.ask("x", [1, 0], variance=1)
    assert before.queries == ()


def test_they_survive_a_file():
    queries = asked()
    back = Queries.from_json(queries.to_json())
    assert back.to_json() == queries.to_json()
    assert (back.cells, back.people) == (queries.cells, queries.people)
    assert (back.matrix == queries.matrix).all()


def test_the_domain_is_the_cells():
    assert Queries(3).domain == Queries(["0", "1", "2"]).domain != Queries(4).domain


def test_arrays_are_the_callers_no_more():
    rows = np.ones((1, 2))
    queries = Queries(2).ask("x", rows, variance=1)
    rows[:] = 0
    assert queries.matrix.tolist() == [[1, 1]]
    with pytest.raises(ValueError, match="read-only"):
        queries.matrix[0, 0] = 2


BAD = [
    (lambda: Queries([]), "at least one cell"),
    (lambda: Queries(["a", "a"]), "differ"),
    (lambda: Queries(2).matrix, "nothing is asked"),
    (lambda: Queries(2).ask("x", [1, 1, 1], variance=1), "each of 2 cells"),
    (lambda: Queries(2).ask("x", [1, np.nan], variance=1), "finite"),
    (lambda: Queries(2).ask("x", [0, 0], variance=1), "asks nothing"),
    (lambda: Queries(2).ask("x", [1, 1]), "got none"),
    (lambda: Queries(2).ask("x", [1, 1], variance=1, stderr=1), "variance and stderr"),
    (lambda: Queries(2).ask("x", [1, 1], variance=0), "above 0"),
    (lambda: Queries(2).ask("x", [1, 1], stderr=-1), "above 0"),
    (lambda: Queries(2).ask("x", [1, 1], stderr=np.inf), "finite"),
    (lambda: Queries(2).ask("x", [1, 1], stderr=[1, 2]), "each of its 1 rows"),
    (lambda: Queries(2).ask("x", np.eye(2), variance=1, labels=["a"]), "2 labels"),
    (lambda: Queries(2).ask("x", np.eye(2), variance=1, labels=["a", "a"]), "differ"),
    (lambda: Queries(2).ask("x", np.eye(2), variance=1, labels="ab"), "list of texts"),
    (lambda: Queries(2).ask("", [1, 1], variance=1), "needs a name"),
    (lambda: Queries(2).ask("\ud800", [1, 1], variance=1), "printable"),
    (lambda: Queries(2).ask(3, [1, 1], variance=1), "printable text, got int"),
    (lambda: Queries("abc"), "list of labels"),
    (lambda: Queries(None), "list of labels"),
    (lambda: Queries(2, "patient"), "must be People"),
    (lambda: Queries(2).ask("x", [1j, 1], variance=1), "real numbers"),
    (
        lambda: Queries(2).ask("x", [1, 1], variance=1).ask("x", [1, 0], variance=1),
        "asked already",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), BAD)
def test_refusals(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        make()
