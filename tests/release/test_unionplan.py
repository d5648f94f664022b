"""Marginals and other queries under one budget, against what either part must be by itself."""

import itertools

import numpy as np
import pandas as pd
import pytest
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
    work.where("q0 == 1 or q3 == 2", by="q2", stderr=9).prefixes("q0", by="q1", stderr=10)
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


def test_targets_are_met_at_less_than_both_parts_cost_apart(plan):
    assert plan.k <= 1
    others = ["q0 >= 3 or q1 < 2", "q0 == 1 or q3 == 2", "q0 up to"]
    names = [name for name in mixed().names if name not in others]
    apart = [ns.plan(mixed().only(part)).cost.mu_squared for part in (names, others)]
    assert float(plan.cost.mu_squared) < 0.999 * float(sum(apart))
    assert plan.certificate.lower >= 0.99 * max(float(part) for part in apart) / 1.01
    assert plan.certificate.lower <= float(plan.cost.mu_squared)
    assert plan.certificate.covers == "privacy cost mu^2 for these targets"


def test_the_share_of_the_marginals_is_the_cheapest_of_those_tried(monkeypatch):
    """Each share by itself: every target is met, and none costs less than the one that is taken."""
    schema = ns.Schema({"a": ns.integers(0, 4), "b": ns.integers(0, 4)})
    work = ns.Workload(schema).marginal("a", "b", stderr=10)
    for i, j in itertools.product(range(5), range(5)):
        work.where(f"a == {i} or b == {j}", stderr=30)
    best = unionplan.plan_union(work)
    for share in unionplan.SHARES:
        monkeypatch.setattr(unionplan, "SHARES", (share,))
        made = unionplan.plan_union(work)
        assert made.share == share
        assert made.k <= 1
        assert made.marginals.k == pytest.approx(share, rel=1e-6)
        assert best.cost.mu <= made.cost.mu * (1 + unionplan.ROUGH)


def test_errors_are_those_of_both_parts_together(plan):
    """Independent answers by precision, against one strategy written out."""
    schema = ns.Schema({"a": ns.integers(0, 2), "b": ns.integers(0, 2)})
    work = ns.Workload(schema).marginal("a", "b", stderr=10).where("a == 1 or b == 1", stderr=6)
    made = ns.plan(work, by="union")
    one, other = made.marginals.strategy.densify(), made.cells.strategy
    w = made.cells.queries
    told = one.asking(np.array([[float(i == 1 or j == 1) for i in range(4) for j in range(4)]]))
    assert made.variances == pytest.approx(1 / (1 / told.variance + 1 / other.variance))
    assert len(w.names) == 1
    assert made.cost.mu_squared == made.marginals.cost.mu_squared + made.cells.cost.mu_squared
    assert made.k == pytest.approx(1, abs=1e-3)


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
    parts = [part.answer("q0 >= 3 and q1 < 2") for part in (release.marginals, release.cells)]
    assert both.stderr == pytest.approx(sum(p.stderr**-2 for p in parts) ** -0.5)
    assert both.value == pytest.approx(((PEOPLE.q0 >= 3) & (PEOPLE.q1 < 2)).sum(), abs=1e-6)
    split = release.answer("q0 >= 3", by="q1")
    assert_allclose(split["value"][:5], PEOPLE[PEOPLE.q0 >= 3].groupby("q1").size(), atol=1e-6)
    alone = release.answer("q7 == 1 and q8 == 1")
    assert alone.value == pytest.approx(((PEOPLE.q7 == 1) & (PEOPLE.q8 == 1)).sum(), abs=1e-6)
    assert release.answer({"total": 1}).value == pytest.approx(500, abs=1e-6)
    with pytest.raises(NotSpanned):
        release.answer("q6 == 1 and q7 == 1 and q8 == 1")


def test_what_is_free_is_in_the_cells_and_more_is_answered_in_it(plan):
    slack = plan.slack()
    assert slack.shape == (len(plan.cells.queries.cells),)
    assert slack.max() > 0
    spare = int(np.argmax(slack))
    label = plan.cells.queries.cells[spare]
    condition = " and ".join(
        f"{name} == {text}" if text.isdigit() else f"{name} is {text}"
        for name, text in (part.split("=") for part in label.split(", "))
        if "+" not in text and "to" not in text
    )
    more = ns.Workload(SCHEMA, table="t").where(condition, stderr=500, name="further")
    try:
        extended = plan.extend(more)
    except BudgetExceeded:  # the condition touches cells without slack: they are named
        return
    assert extended.cost.mu_squared <= plan.refine().cost.mu_squared
    assert extended.names[-1] == "further"
    assert extended.k <= plan.k * (1 + 1e-6)


def test_refined_it_meets_the_same_targets_at_the_same_cost(plan):
    refined = plan.refine()
    assert refined.k <= 1 + 1e-6
    assert refined.cost.mu == pytest.approx(plan.cost.mu, rel=2e-3)
    assert refined.refine() is refined


def test_files_and_budgets(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    back = type(plan).load(tmp_path / "plan.json")
    assert (back.digest, back.cost, back.k) == (plan.digest, plan.cost, plan.k)
    spent = plan.within(ns.Budget(mu=0.2))
    assert spent.cost.mu == pytest.approx(0.2, rel=1e-8)
    assert spent.k == pytest.approx((plan.cost.mu / 0.2) ** 2, rel=1e-4)
    content = plan.to_json()
    content.pop("share")
    with pytest.raises(InvalidInput, match="lacks a part"):
        type(plan).from_json(content)
    only = ns.Workload(SCHEMA).all_marginals(1, stderr=1)
    with pytest.raises(InvalidInput, match="of marginals and of other queries"):
        ns.plan(only, by="union")
