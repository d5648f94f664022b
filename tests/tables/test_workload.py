"""What is asked: every kind of query is the matrix that its words mean; nothing asked twice."""

import itertools

import numpy as np
import pytest

import noiseshape as ns
from noiseshape import InvalidInput, Schema, TooLarge, Workload

SCHEMA = Schema(
    {
        "age": ns.integers(0, 3, missing="drop"),
        "sex": ns.categories(["F", "M"], missing="drop"),
        "score": ns.integers(-5, 5, missing="drop"),
        "hours": ns.bins([0, 10, 20], missing="drop"),
        "born": ns.dates(2000, 2002, missing="drop"),
    },
    {"band": ns.recode("age", {"low": (0, 1), "high": (2, 3)})},
)
PEOPLE = list(itertools.product(range(4), "FM"))


def asked(ask):
    """Return the labels and the rows of one query over age x sex, told apart cell by cell."""
    work = Workload(SCHEMA).marginal("age", "sex", name="cells", stderr=1)
    ask(work)
    queries = work.compiled()
    assert len(queries.cells) == len(PEOPLE)
    query = queries.queries[1]
    return list(query.labels), query.rows.astype(int).tolist()


def rows(*conditions):
    return [[int(c(a, s)) for a, s in PEOPLE] for c in conditions]


KINDS = [
    (lambda w: w.total(stderr=1), [""], rows(lambda a, s: True)),
    (lambda w: w.total(by="band", stderr=1), ["band=low", "band=high"],
     rows(lambda a, s: a < 2, lambda a, s: a >= 2)),
    (lambda w: w.marginal("sex", stderr=1), ["sex=F", "sex=M"],
     rows(lambda a, s: s == "F", lambda a, s: s == "M")),
    (lambda w: w.marginal("sex", by="band", stderr=1),
     ["band=low, sex=F", "band=low, sex=M", "band=high, sex=F", "band=high, sex=M"],
     rows(lambda a, s: a < 2 and s == "F", lambda a, s: a < 2 and s == "M",
          lambda a, s: a >= 2 and s == "F", lambda a, s: a >= 2 and s == "M")),
    (lambda w: w.prefixes("age", stderr=1), ["age<=0", "age<=1", "age<=2", "age<=3"],
     rows(*(lambda a, s, b=b: a <= b for b in range(4)))),
    (lambda w: w.ranges("age", [(0, 1), (1, 1), (0, 3)], stderr=1),
     ["age=0-1", "age=1", "age=0-3"],
     rows(lambda a, s: a <= 1, lambda a, s: a == 1, lambda a, s: True)),
    (lambda w: w.all_ranges("age", by="sex", stderr=1), None,
     rows(*(lambda a, s, x=x, i=i, j=j: s == x and i <= a <= j
            for x in "FM" for i in range(4) for j in range(i, 4)))),
    (lambda w: w.where("age > 1 and sex == 'F'", stderr=1), [""],
     rows(lambda a, s: a > 1 and s == "F")),
    (lambda w: w.where("age > 1", by=["sex"], stderr=1), ["sex=F", "sex=M"],
     rows(lambda a, s: a > 1 and s == "F", lambda a, s: a > 1 and s == "M")),
    (lambda w: w.rows([[1, 0, 0, -2]], over="age", stderr=1), ["0"],
     [[(1, 0, 0, -2)[a] for a, s in PEOPLE]]),
    (lambda w: w.rows([[5, 7]], over="sex", by="band", stderr=1), ["band=low, 0", "band=high, 0"],
     [[(a < 2) * (5, 7)[s == "M"] for a, s in PEOPLE],
      [(a >= 2) * (5, 7)[s == "M"] for a, s in PEOPLE]]),
    (lambda w: w.rows(np.arange(8), over=["sex", "age"], stderr=1), ["0"],
     [[4 * (s == "M") + a for a, s in PEOPLE]]),
    (lambda w: w.sum("age", by="sex", stderr=1), ["sex=F", "sex=M"],
     [[a * (s == "F") for a, s in PEOPLE], [a * (s == "M") for a, s in PEOPLE]]),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "labels", "expected"), KINDS)
def test_each_kind_is_the_matrix_that_it_says(ask, labels, expected):
    told, matrix = asked(ask)
    assert matrix == expected
    assert labels is None or told == labels


def test_a_sum_is_of_what_values_add_within_their_bounds():
    work = Workload(SCHEMA).sum("score", by="sex", stderr=1)
    queries = work.compiled()
    assert queries.cells == (
        "sex=F, score=-5 to 5", "sex=M, score=-5 to 5",
        "excess of score: sex=F", "excess of score: sex=M",
    )  # fmt: skip
    assert queries.matrix.tolist() == [[-5, 0, 1, 0], [0, -5, 0, 1]]


def test_missing_values_of_a_summed_column_need_a_cell_only_where_no_value_adds_0():
    def cells(low):
        schema = Schema({"x": ns.integers(low, 9, outside="other")})
        return len(Workload(schema).sum("x", stderr=1).compiled().layout.shape and
                   [c for c in Workload(schema).sum("x", stderr=1).compiled().cells
                    if "excess" not in c])  # fmt: skip

    assert cells(0) == cells(-3) == 1
    assert cells(1) == 2


def test_only_what_is_told_apart_is_a_cell():
    wide = Schema({"age": ns.integers(0, 199_999, missing="drop"), "sex": ["F", "M"]})
    queries = Workload(wide).ranges("age", [(0, 17), (18, 64)], stderr=1).compiled()
    assert queries.cells == ("age=0 to 17", "age=18 to 64", "age=65 to 199999")


def test_what_is_impossible_leaves_the_workload():
    schema = Schema(dict(SCHEMA.columns), impossible=["age < 2 and sex == 'M'"])
    queries = Workload(schema).marginal("age", "sex", stderr=[*range(1, 9)]).compiled()
    assert len(queries.cells) == 6
    assert queries.labels == (
        "age=0, sex=F", "age=1, sex=F", "age=2, sex=F", "age=2, sex=M", "age=3, sex=F",
        "age=3, sex=M",
    )  # fmt: skip
    assert queries.variance.tolist() == [1, 9, 25, 36, 49, 64]  # targets stay with their cells


def test_names_say_what_is_asked_where_nobody_named_it():
    work = Workload(SCHEMA).total(stderr=1).marginal("sex", "band", stderr=1)
    work.prefixes("age", stderr=1).ranges("age", [(0, 1)], stderr=1).all_ranges("age", stderr=1)
    work.where("age  >  1", stderr=1).sum("score", stderr=1).rows([[1, 0]], over="sex", stderr=1)
    assert [q.name for q in work.compiled().queries] == [
        "total", "sex x band", "age up to", "age ranges", "age all ranges", "age > 1",
        "sum of score", "rows",
    ]  # fmt: skip
    assert repr(work) == "Workload(23 answers to 8 queries)"


def test_ranges_of_bins_and_dates():
    work = Workload(SCHEMA).ranges("hours", [(0, 10), (10, 20)], stderr=1)
    work.ranges("born", [("2000", "2001"), (2002, 2002)], stderr=1)
    assert work.compiled().labels == (
        "hours=0-10", "hours=10-20", "born=2000-2001", "born=2002",
    )  # fmt: skip


def fresh():
    return Workload(SCHEMA)


BAD = [
    (lambda: Workload({"age": 3}), "needs a Schema"),
    (lambda: Workload(SCHEMA, "id"), "must be People"),
    (lambda: fresh().compiled(), "nothing is asked yet"),
    (lambda: fresh().total(stderr=1).total(stderr=2), "named 'total' is asked already"),
    (lambda: fresh().total(stderr=1, name=" "), "needs a name"),
    (lambda: fresh().marginal(stderr=1), "needs columns"),
    (lambda: fresh().marginal("agee", stderr=1), "did you mean 'age'"),
    (lambda: fresh().marginal("age", "band", stderr=1), "age and band tell the same column"),
    (lambda: fresh().prefixes("age", by="band", stderr=1), "tell the same column"),
    (lambda: fresh().prefixes("sex", stderr=1), "sex has no order"),
    (lambda: fresh().all_ranges("band", stderr=1), "band has no order"),
    (lambda: fresh().ranges("age", [], stderr=1), "must be pairs"),
    (lambda: fresh().ranges("age", [3], stderr=1), "must be pairs"),
    (lambda: fresh().ranges("age", [(2, 1)], stderr=1), "within 0 to 3, got 2 to 1"),
    (lambda: fresh().ranges("age", [(0, 4)], stderr=1), "within 0 to 3"),
    (lambda: fresh().ranges("hours", [(0, 5)], stderr=1), "would cut an interval"),
    (lambda: fresh().ranges("born", [("2002", "2001")], stderr=1), "holds no cell"),
    (lambda: fresh().where("age > 9", stderr=1).compiled(), "asks nothing"),
    (lambda: fresh().sum("sex", stderr=1), "only columns of integers"),
    (lambda: fresh().sum("band", stderr=1), "only columns of integers"),
    (lambda: fresh().rows([[1]], over="age", stderr=1), "needs 4 columns.*of age; got \\(1, 1\\)"),
    (lambda: fresh().rows([[1]], over=["age", "sex"], stderr=1), "needs 4 x 2 = 8 columns"),
    (lambda: fresh().rows([[0] * 4], over="age", stderr=1), "all its weights are 0"),
    (lambda: fresh().rows([[1] * 4], over="band", stderr=1), "band is a recode"),
    (lambda: fresh().rows([[1] * 4], over="age", by="band", stderr=1), "weighed by the rows"),
    (lambda: fresh().rows([[1] * 16], over=["age", "age"], stderr=1), "must differ"),
]


@pytest.mark.parametrize(("make", "sentence"), BAD)
def test_refusals(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        make()


def test_a_query_that_is_refused_is_not_asked():
    work = fresh().total(stderr=1)
    with pytest.raises(InvalidInput):
        work.marginal("sex", stderr=-1)
    work.marginal("sex", stderr=1)
    assert len(work.compiled().queries) == 2


def test_too_large_says_what_it_needs_and_what_to_do():
    wide = Schema({f"c{i}": ns.integers(0, 399) for i in range(5)})
    with pytest.raises(InvalidInput, match=r"GB for their labels alone.*fewer columns together"):
        Workload(wide).marginal(*wide.columns, stderr=1)
    with pytest.raises(TooLarge, match=r"GB to plan, and .* GB are free: ask for fewer answers"):
        Workload(wide).marginal("c0", "c1", stderr=1).compiled()


@pytest.mark.parametrize("target", [{"stderr": 3}, {"margin": 7}, {"cv": 0.1, "reference": 50}])
def test_all_marginals_are_the_marginals_one_by_one(target):
    """Their shared target too; and one that is asked already is refused, whatever its size."""
    columns = ("age", "sex", "score")
    work, plain = Workload(SCHEMA).all_marginals(2, columns=columns, **target), Workload(SCHEMA)
    for chosen in [*((c,) for c in columns), *itertools.combinations(columns, 2)]:
        plain.marginal(*chosen, **target)
    assert work.listing() == plain.listing()
    assert work.names == plain.names
    one, other = work.products(), plain.products()
    for a, b in zip(one.named, other.named, strict=True):
        assert (a.ask.members, a.order, a.variance.tolist()) == (
            b.ask.members,
            b.order,
            b.variance.tolist(),
        )
    with pytest.raises(InvalidInput, match="asked already"):
        work.all_marginals(2, columns=columns, least=2, **target)
