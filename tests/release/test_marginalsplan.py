"""Workloads planned and released by their marginals, against the same planned over all cells."""

import itertools

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import noiseshape as ns
from noiseshape.errors import BudgetExceeded, InvalidInput, NotSpanned, TooLarge
from noiseshape.release import MarginalsPlan, Plan, marginalsplan, marginalsrelease
from noiseshape.release import measurement as door

SCHEMA = ns.Schema(
    {"age": ns.integers(0, 5), "sex": ["F", "M"], "home": ["a", "b", "c"]},
    recodes={"old": ns.recode("age", {"young": (0, 2), "old": (3, 5)})},
)
rng = np.random.default_rng(3)
PEOPLE = pd.DataFrame(
    {
        "age": rng.integers(0, 7, 300),  # 6 is outside, and left out
        "sex": rng.choice(["F", "M", None], 300),
        "home": rng.choice(["a", "b", "c"], 300),
    }
)


def mixed(people=None):
    work = ns.Workload(SCHEMA, people, table="t").marginal("sex", "age", stderr=3)
    work.marginal("home", stderr=2).prefixes("age", by="home", stderr=4).total(stderr=1)
    work.where("age >= 2 and sex == 'F'", by="home", stderr=3)
    work.where("age < 1 or sex == 'M'", stderr=2).marginal("old", "home", margin=9)
    return work.rows(np.arange(12).reshape(1, -1), over=["sex", "home"], variance=400)


@pytest.fixture
def silent(monkeypatch):
    """Releases without noise: what is counted and rebuilt, alone."""
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))


def test_every_query_is_counted_and_rebuilt_as_over_the_cells(silent):
    by = {how: ns.plan(mixed(), by=how).release(PEOPLE, unrecorded=True).table()
          for how in ("cells", "marginals")}  # fmt: skip
    assert by["marginals"]["query"] == by["cells"]["query"]
    assert by["marginals"]["cell"] == by["cells"]["cell"]
    assert_allclose(by["marginals"]["value"], by["cells"]["value"], atol=1e-8)


def test_stated_errors_and_covariances_are_those_of_the_table_written_out():
    plan = ns.plan(mixed(), by="marginals")
    dense = plan.strategy.densify()
    at = 0
    for named in plan.asked.named:
        rows = len(named.variance)
        part = dense.variance[at : at + rows].reshape(named.ask.shape(plan.asked.sizes))
        assert_allclose(plan.variance(named.name), named.published(part), rtol=1e-8)
        at += rows
    assert plan.k == pytest.approx(1, abs=1e-6)
    assert plan.k <= 1
    one, other = ("sex x age", "sex=F, age=1"), ("home", "home=b")
    rows = [np.zeros(plan.strategy.sizes) for _ in range(2)]
    rows[0][1, 0, :], rows[1][:, :, 1] = 1, 1
    covariance = dense.asking(np.array([row.ravel() for row in rows])).covariance()
    assert plan.covariance(one, other) == pytest.approx(covariance[0, 1], rel=1e-8)
    assert plan.covariance(one, one) == pytest.approx(covariance[0, 0], rel=1e-8)


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_marginals_alone_cost_what_the_design_over_all_cells_costs(data):
    every = [c for k in (1, 2, 3) for c in itertools.combinations(SCHEMA.columns, k)]
    chosen = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    neighbours = data.draw(st.sampled_from(["add-remove", "replace"]))
    work = ns.Workload(SCHEMA, ns.People(neighbours=neighbours))
    for columns in chosen:
        work.marginal(*columns, stderr=data.draw(st.floats(1, 50)))
    made, dense = (ns.plan(work, by=how) for how in ("marginals", "cells"))
    assert made.certificate.gap <= 1.01e-3
    assert float(made.cost.mu_squared) == pytest.approx(float(dense.cost.mu_squared), rel=2.5e-3)
    assert float(made.cost.mu_squared) >= dense.certificate.lower * (1 - 1e-6)
    assert "among" not in made.certificate.covers


def test_a_small_mixed_workload_has_a_bound_over_all_noise():
    made, dense = (ns.plan(mixed(), by=how) for how in ("marginals", "cells"))
    assert made.certificate.covers == "privacy cost mu^2 for these targets"
    assert made.certificate.lower == pytest.approx(dense.certificate.lower, rel=1e-2)
    assert dense.cost.mu < made.cost.mu
    assert made.certificate.achieved == pytest.approx(float(made.cost.mu_squared), rel=1e-6)


def test_persons_with_several_rows_pay_for_each():
    one, three = (ns.plan(mixed(p), by="marginals") for p in (None, ns.People("pid", 3)))
    assert float(three.cost.mu_squared) == pytest.approx(9 * float(one.cost.mu_squared))
    assert three.certificate.achieved == pytest.approx(9 * one.certificate.achieved)


def test_the_plan_is_chosen_by_how_many_cells_there_are_and_says_why():
    few = ns.plan(ns.Workload(SCHEMA).marginal("age", "sex", stderr=3))
    assert isinstance(few, Plan)
    wide = ns.Schema({f"c{i:02}": [*"abcdefghi"] for i in range(40)})
    work = ns.Workload(wide).all_marginals(2, stderr=9)
    many = ns.plan(work)
    assert isinstance(many, MarginalsPlan)
    assert "10^40 cells" in many.why
    assert "the optimum of all" in many.why
    assert many.why in many.words()[0]
    assert len(many.asked.named) == 40 + 780
    odd = ns.plan(work.where("c00 == 'a' or c01 == 'b'", stderr=5), by="marginals")
    assert "among products" in odd.certificate.covers


def test_answers_of_all_kinds(silent):
    release = ns.plan(mixed(), by="marginals").release(PEOPLE, unrecorded=True)
    counted = PEOPLE[PEOPLE.age < 6]
    held = counted[counted.sex == "F"]
    answer = release.answer("age <= 1 and sex == 'F'")
    assert answer.value == pytest.approx((held.age <= 1).sum(), abs=1e-8)
    assert answer.low < answer.value < answer.high
    table = release.answer("age <= 1", by=["sex"])
    expected = counted[counted.age <= 1].sex.value_counts(dropna=False)
    assert table["cell"] == ("sex=F", "sex=M", "sex=missing")
    assert_allclose(table["value"][:2], expected[["F", "M"]], atol=1e-8)
    share = release.answer({"total": 1, ("home", "home=a"): -1})
    assert share.value == pytest.approx((counted.home != "a").sum(), abs=1e-8)
    direct = release.answer("home != 'a' or home is missing")
    assert share.stderr == pytest.approx(direct.stderr, rel=1e-6)
    whole = release.answer({"sex x age": 1})
    assert whole.value == pytest.approx(len(counted), abs=1e-8)
    apart = ns.Workload(SCHEMA).marginal("old", stderr=1).marginal("sex", stderr=1)
    release = ns.plan(apart, by="marginals").release(PEOPLE, unrecorded=True)
    with pytest.raises(NotSpanned, match="measured together"):
        release.answer("age < 3", by="sex")
    with pytest.raises(NotSpanned, match="more detail"):
        release.answer("age == 1")


def test_questions_that_are_none():
    release = ns.plan(mixed(), by="marginals").release(PEOPLE, unrecorded=True)
    for question, words in (
        ({}, "is empty"),
        ({"nothing": 1}, "no query is called 'nothing'"),
        ({("home", "home=z"): 1}, "no answer labelled 'home=z'"),
        ({"home": np.nan}, "finite"),
        ("home", "as a mapping"),
        (3, "a condition, as text, or a mapping"),
    ):
        with pytest.raises(InvalidInput, match=words):
            release.answer(question)
    with pytest.raises(InvalidInput, match="only a condition"):
        release.answer({"home": 1}, by="sex")


def test_many_answers_go_to_parquet_a_part_at_a_time(tmp_path, monkeypatch):
    """What is in which file is told by the plan alone: two releases have the same rows in each."""
    monkeypatch.setattr(marginalsrelease, "LISTED", 10)
    monkeypatch.setattr(marginalsrelease, "GROUP", 12)
    monkeypatch.setattr(marginalsrelease, "FILE", 24)
    plan = ns.plan(mixed(), by="marginals")
    releases = [plan.release(PEOPLE.head(n), unrecorded=True, out=tmp_path / str(n))
                for n in (300, 0)]  # fmt: skip
    layouts = []
    for n in (300, 0):
        files = sorted((tmp_path / str(n) / "answers").iterdir())
        layouts.append([(f.name, pq.ParquetFile(f).metadata.num_rows) for f in files])
    assert layouts[0] == layouts[1]
    assert len(layouts[0]) > 1
    assert sum(rows for _, rows in layouts[0]) == plan.count
    stored = pq.read_table(tmp_path / "300" / "answers").to_pydict()
    back = ns.read(tmp_path / "300")
    monkeypatch.setattr(marginalsrelease, "LISTED", 1000)
    table = releases[0].table()
    assert tuple(stored["query"]) == table["query"]
    assert tuple(stored["cell"]) == table["cell"]
    assert_allclose(stored["value"], table["value"])
    assert_allclose(stored["high"], table["high"])
    assert back.fingerprint == releases[0].fingerprint
    assert_allclose(back.query("home"), releases[0].query("home"))


def test_more_answers_than_a_table_holds_are_summed_up(monkeypatch):
    release = ns.plan(mixed(), by="marginals").release(PEOPLE, unrecorded=True)
    monkeypatch.setattr(marginalsrelease, "LISTED", 10)
    assert "answers" in release.table().columns
    assert len(release.table("home")) == 4
    with pytest.raises(TooLarge, match="Parquet"):
        release.table("sex x age")


def test_scaled_to_a_budget_and_within_one():
    plan = ns.plan(mixed(), by="marginals")
    budget = ns.Budget(mu=0.3)
    spent = plan.within(budget)
    assert budget.allows(spent.cost)
    assert spent.cost.mu == pytest.approx(0.3, rel=1e-8)
    assert spent.k == pytest.approx((plan.cost.mu / 0.3) ** 2, rel=1e-6)
    assert ns.plan(mixed(), by="marginals", budget=budget, prioritise="privacy").k == spent.k
    with pytest.raises(BudgetExceeded, match="it buys every target variance times"):
        ns.plan(mixed(), by="marginals", budget=budget)


def test_sums_of_variances_by_marginals():
    work = ns.Workload(SCHEMA).marginal("age", "sex", stderr=3).marginal("home", stderr=1)
    made, dense = (ns.plan(work, shape="total", by=how) for how in ("marginals", "cells"))
    assert made.cost.mu == pytest.approx(dense.cost.mu, rel=1e-3)
    assert made.k <= 1


def test_a_marginal_asked_twice_says_which_target_holds():
    work = ns.Workload(SCHEMA).marginal("age", "sex", stderr=9)
    work.marginal("sex", "age", stderr=3, name="again")
    plan = ns.plan(work, by="marginals")
    (note,) = plan.notes
    assert "age, sex" in note
    assert "standard error of 3," in note
    assert note in "".join(plan.words())
    assert max(plan.variance("age x sex")) <= 9


def test_there_is_no_slack_and_it_says_so():
    plan = ns.plan(ns.Workload(SCHEMA).marginal("age", stderr=3), by="marginals")
    with pytest.raises(InvalidInput, match="no slack: a person costs the same"):
        plan.slack()
    with pytest.raises(InvalidInput, match="does not tell slack cell by cell"):
        ns.plan(ns.Workload(SCHEMA).prefixes("age", stderr=3), by="marginals").slack()
    with pytest.raises(InvalidInput, match="plan all queries together"):
        plan.extend(mixed())


def test_bad_input(monkeypatch):
    only = ns.Schema({"a": ns.categories(["x"], missing="drop"), "b": ["y", "z"]})
    with pytest.raises(InvalidInput, match="'a' has one value here and tells nobody apart"):
        ns.plan(ns.Workload(only).marginal("a", "b", stderr=1), by="marginals")
    with pytest.raises(InvalidInput, match="by must be"):
        ns.plan(mixed(), by="rows")
    with pytest.raises(InvalidInput, match="only a Workload"):
        ns.plan(ns.Queries(2).ask("q", [1, 1], stderr=1), by="marginals")
    with pytest.raises(InvalidInput, match="leave refine out"):
        ns.plan(mixed(), by="marginals", refine=True)
    with pytest.raises(InvalidInput, match="'fit' or 'total'"):
        ns.plan(mixed(), by="marginals", shape="identity")
    with pytest.raises(InvalidInput, match="a sum is planned with every cell"):
        ns.plan(mixed().sum("age", stderr=1), by="marginals")
    with pytest.raises(InvalidInput, match="marginals of 1 to 4 of 3 columns"):
        ns.Workload(SCHEMA).all_marginals(4, stderr=1)
    monkeypatch.setattr(marginalsplan, "MOST_PUBLISHED", 50)
    with pytest.raises(TooLarge, match=r"is about 84 cells, 0\.0 GB .* at most 50"):
        ns.plan(ns.Workload(SCHEMA).marginal("age", "sex", "home", stderr=1), by="marginals")


def test_a_plan_file_whose_parts_do_not_fit_is_refused():
    content = ns.plan(mixed(), by="marginals").to_json()
    for edit in (
        lambda c: c.pop("base"),
        lambda c: c.update(base=c["bits"] | {"shape": [1]}),
        lambda c: c["contrasts"].__setitem__(1, 7),
        lambda c: c["asked"].update(axes=[]),
    ):
        broken = {**content, "contrasts": list(content["contrasts"]),
                  "asked": dict(content["asked"])}  # fmt: skip
        edit(broken)
        with pytest.raises(InvalidInput):
            MarginalsPlan.from_json(broken)
