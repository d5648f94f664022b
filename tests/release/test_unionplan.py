"""Marginals and other queries under one budget, against the optimum of all noise."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import noiseshape as ns
from noiseshape.errors import BudgetExceeded, InvalidInput, NotSpanned
from noiseshape.release import measurement as door
from noiseshape.release import unionplan

COLUMNS = [f"q{i}" for i in range(9)]
SCHEMA = ns.Schema({name: ns.integers(0, 4) for name in COLUMNS})
rng = np.random.default_rng(6)
PEOPLE = pd.DataFrame({name: rng.integers(0, 5, 500) for name in COLUMNS})


def mixed(people=None):
    work = ns.Workload(SCHEMA, people, table="t").where("q0 >= 3 or q1 < 2", stderr=3)
    work.all_marginals(2, stderr=12)
    work.where("q0 == 1 or q2 == 2", by="q1", stderr=9).prefixes("q0", by="q1", stderr=10)
    return work.total(stderr=30)


@pytest.fixture(scope="module")
def plan():
    return ns.plan(mixed())


@pytest.fixture
def silent(monkeypatch):
    """Releases without noise: what is counted and rebuilt, alone."""
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))


def test_it_is_chosen_where_it_costs_less_and_says_so(plan):
    assert isinstance(plan, ns.UnionPlan)
    residual = ns.plan(mixed(), by="marginals")
    assert plan.cost.mu < residual.cost.mu
    assert f"{residual.cost.mu:.4g} in residuals" in plan.why
    assert "too many to be designed at once" in plan.why
    assert plan.why in plan.words()[0]
    # Where the others are met by the marginals anyway, residuals are all there is to pay.
    loose = ns.Workload(SCHEMA).all_marginals(2, stderr=5).where("q0 == 1 or q1 == 1", stderr=60)
    made = ns.plan(loose)
    assert isinstance(made, ns.MarginalsPlan)
    assert "in a union" in made.why


def test_targets_are_met_near_what_any_noise_must_cost(plan):
    assert plan.k <= 1
    others = ["q0 >= 3 or q1 < 2", "q0 == 1 or q2 == 2", "q0 up to"]
    names = [name for name in mixed().names if name not in others]
    apart = [ns.plan(mixed().only(part)).cost.mu_squared for part in (names, others)]
    assert float(plan.cost.mu_squared) < 0.95 * float(sum(apart))
    assert plan.certificate.gap < 0.02
    assert plan.certificate.lower >= max(float(part) for part in apart) / 1.01
    assert plan.certificate.covers == "privacy cost mu^2 for these targets"
    assert 0 < plan.share < 1


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(1, 2), min_size=3, max_size=3), st.data())
def test_the_cost_is_near_the_optimum_over_all_cells_and_the_bound_below_it(each, data):
    """Dense ``fit`` of the same workload: above the bound, and never cheaper than the gap says."""
    names = "abcd"[: len(each)]
    schema = ns.Schema({name: ns.integers(0, n) for name, n in zip(names, each, strict=True)})
    neighbours = data.draw(st.sampled_from(["add-remove", "replace"]))
    work = ns.Workload(schema, ns.People(neighbours=neighbours))
    sets = [part for k in range(len(each)) for part in combinations(names, k)]
    for part in data.draw(st.lists(st.sampled_from(sets), min_size=1, max_size=4, unique=True)):
        stderr = data.draw(st.integers(1, 9))
        work = work.marginal(*part, stderr=stderr) if part else work.total(stderr=stderr)
    work.where("a == 0 or b == 0", stderr=data.draw(st.integers(1, 9)))
    work.prefixes("a", stderr=data.draw(st.integers(1, 9)))
    union, dense = unionplan.plan_union(work), ns.plan(work, by="cells")
    proof, cost = dense.certificate, float(union.cost.mu_squared)
    assert union.k <= 1
    assert union.certificate.lower <= proof.achieved * (1 + 1e-9)
    assert cost >= proof.lower * (1 - 1e-9)
    if neighbours == "add-remove":
        # Residuals cost the same in every cell of V; what that may lose is within the stated gap.
        assert cost <= proof.achieved * 1.1
        assert union.certificate.lower >= 0.99 * proof.lower
    written = union.strategy.densify()
    assert_allclose(written.variance, union.strategy.variance, rtol=1e-6)
    people = union.people
    whole = written.cost(people, rows_may_leave=union.asked.rows_may_leave)
    assert whole.mu_squared <= union.cost.mu_squared  # rounded up, and by a bound under replace
    if neighbours == "add-remove":
        assert float(whole.mu_squared) == pytest.approx(cost, rel=1e-9)


def test_within_the_cells_alone_it_is_the_optimum():
    """Where V is all that is asked about, a union is the design over all cells."""
    schema = ns.Schema({"a": ns.integers(0, 4), "b": ns.integers(0, 4)})
    work = ns.Workload(schema).marginal("a", "b", stderr=10).where("a == 1 or b == 1", stderr=6)
    union, dense = unionplan.plan_union(work), ns.plan(work, by="cells")
    assert union.cost.mu == pytest.approx(dense.cost.mu, rel=1e-3)
    assert union.certificate.gap <= 1.1e-3
    assert union.share == 1


def test_where_it_cannot_be_planned_so_it_says_why():
    cut = ns.Schema(
        {name: ns.integers(0, 4) for name in COLUMNS}, impossible=["q0 == 1 and q1 == 1"]
    )
    work = ns.Workload(cut).all_marginals(2, stderr=5).where("q0 == 1 or q1 == 2", stderr=3)
    assert unionplan.plan_union(work) is None
    made = ns.plan(work)
    assert isinstance(made, ns.MarginalsPlan)
    assert "beside impossible ones" in made.why


def test_what_is_counted_and_rebuilt(silent, plan):
    release = plan.release(PEOPLE, unrecorded=True)
    table = release.table()
    assert tuple(dict.fromkeys(table["query"])) == mixed().names
    value = dict(zip(zip(table["query"], table["cell"], strict=True), table["value"], strict=True))
    held = (PEOPLE.q0 >= 3) | (PEOPLE.q1 < 2)
    assert value["q0 >= 3 or q1 < 2", ""] == pytest.approx(held.sum(), abs=1e-6)
    pair = ((PEOPLE.q1 == 2) & (PEOPLE.q2 == 3)).sum()
    assert value["q1 x q2", "q1=2, q2=3"] == pytest.approx(pair, abs=1e-6)
    by = ((PEOPLE.q0 <= 2) & (PEOPLE.q1 == 4)).sum()
    assert value["q0 up to", "q1=4, q0<=2"] == pytest.approx(by, abs=1e-6)
    both = release.answer("q0 >= 3 and q1 < 2")
    row = plan.cells.queries.layout.rows(ns.Workload(SCHEMA).question("q0 >= 3 and q1 < 2"))
    over = plan.cells.strategy.asking(row).variance[0]
    assert both.stderr == pytest.approx(over**0.5)
    assert both.value == pytest.approx(((PEOPLE.q0 >= 3) & (PEOPLE.q1 < 2)).sum(), abs=1e-6)
    split = release.answer("q0 >= 3", by="q1")
    assert_allclose(split["value"][:5], PEOPLE[PEOPLE.q0 >= 3].groupby("q1").size(), atol=1e-6)
    alone = release.answer("q7 == 1 and q8 == 1")
    assert alone.value == pytest.approx(((PEOPLE.q7 == 1) & (PEOPLE.q8 == 1)).sum(), abs=1e-6)
    assert release.answer({"total": 1}).value == pytest.approx(500, abs=1e-6)
    with pytest.raises(NotSpanned):
        release.answer("q6 == 1 and q7 == 1 and q8 == 1")


def test_what_is_free_is_in_the_cells_and_more_is_answered_in_it():
    """Cells that the tight query leaves out have slack, and a query of them alone fits in it."""
    schema = ns.Schema({name: ns.integers(0, 2) for name in "abc"})
    work = ns.Workload(schema, table="t").marginal("a", "c", stderr=20).where(
        "a == 1 or b == 1", stderr=2
    )  # fmt: skip
    plan = unionplan.plan_union(work)
    slack = plan.slack()
    assert slack.shape == (len(plan.cells.queries.cells),)
    assert slack.max() > 0.1 * plan.cost.mu**2
    further = ns.Workload(schema, table="t").where(
        "a == 0 and not (b == 1)", stderr=4, name="further"
    )
    extended = plan.extend(further)
    assert extended.cost.mu_squared <= plan.refine().cost.mu_squared
    assert extended.asked.named[-1].name == "further"
    assert extended.k <= 1 + 1e-6
    back = type(plan).from_json(extended.to_json())
    assert back.digest == extended.digest
    rows = pd.DataFrame({"a": [0, 0, 1], "b": [0, 0, 2], "c": [1, 2, 2]})
    assert extended.release(rows, unrecorded=True).answer({"further": 1}).stderr <= 4
    with pytest.raises(BudgetExceeded):
        plan.extend(ns.Workload(schema, table="t").where("b == 1", stderr=0.1, name="more"))
    with pytest.raises(NotSpanned):
        plan.extend(ns.Workload(schema, table="t").where("c == 1", stderr=9, name="more"))
    with pytest.raises(InvalidInput, match="planned already"):
        plan.extend(ns.Workload(schema, table="t").marginal("a", "c", stderr=9))


def test_refined_it_meets_the_same_targets_at_the_same_cost(plan):
    refined = plan.refine()
    assert refined.k <= 1 + 1e-6
    assert refined.cost.mu == pytest.approx(plan.cost.mu, rel=2e-3)
    assert refined.refine() is refined


def test_files_and_budgets(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    back = type(plan).load(tmp_path / "plan.json")
    assert (back.digest, back.cost) == (plan.digest, plan.cost)
    assert back.k == pytest.approx(plan.k, rel=1e-12)
    spent = plan.within(ns.Budget(mu=0.2))
    assert spent.cost.mu == pytest.approx(0.2, rel=1e-8)
    assert spent.k == pytest.approx((plan.cost.mu / 0.2) ** 2, rel=1e-4)
    content = plan.to_json()
    content.pop("inside")
    with pytest.raises(InvalidInput, match="lacks a part"):
        type(plan).from_json(content)
    only = ns.Workload(SCHEMA).all_marginals(1, stderr=1)
    with pytest.raises(InvalidInput, match="of marginals and of other queries"):
        ns.plan(only, by="union")


def test_counting_says_how_far_it_is(plan):
    said = []
    for _ in plan.source(PEOPLE, said.append).read():
        pass
    assert said[0] == f"table 0 of {len(plan.strategy.tables):,}"
    assert "rebuilding" in said[-1]
