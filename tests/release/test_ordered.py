"""One ordered column, from the question to the published range."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import noiseshape as ns
import noiseshape.release.measurement as door
from noiseshape import InvalidInput, NotSpanned, TooLarge

N = 5000  # more values than are written out
DAYS = ns.Schema({"day": ns.integers(0, N - 1), "sex": ["F", "M"]})
ROWS = pd.DataFrame(
    {"day": np.arange(4 * N) * 7 % N, "sex": list("FFM") * (4 * N // 3) + ["M"] * 2}
)


@pytest.fixture
def silent(monkeypatch):
    """Releases without noise: what is published is then the truth."""
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))


def test_many_values_are_planned_in_order_and_the_plan_says_why():
    plan = ns.plan(ns.Workload(DAYS).prefixes("day", stderr=10))
    assert isinstance(plan, ns.OrderedPlan)
    assert "5,001 values in order" in plan.why
    assert "integer series" in plan.why
    assert plan.k <= 1 < plan.k * (1 + 1e-6)
    assert plan.certificate.gap < 0.1
    assert "nested sums" in " ".join(plan.words())
    assert plan.facts()["errors"][0]["answers"] == N
    few = ns.Schema({"day": ns.integers(0, 99)})
    assert isinstance(ns.plan(ns.Workload(few).prefixes("day", stderr=10)), ns.Plan)


def test_every_cell_asked_is_published_and_true(silent, tmp_path):
    work = ns.Workload(DAYS).prefixes("day", by="sex", stderr=10).total(by="sex", stderr=5)
    work.ranges("day", [(10, 19), (3, 4999)], by="sex", stderr=9)
    work.marginal("sex", "day", stderr=30)
    plan = ns.plan(work)
    release = plan.release(ROWS, unrecorded=True, out=tmp_path / "out")
    groups = [ROWS[ROWS.sex == sex].day.to_numpy() for sex in "FM"] + [np.zeros(0, dtype=int)]
    prefixes = np.concatenate([(g[:, None] <= [0, 17, N - 1]).sum(axis=0) for g in groups])
    told = release.query("day up to").reshape(3, N)[:, [0, 17, N - 1]].ravel()
    assert_allclose(told, prefixes, atol=1e-3)
    assert_allclose(release.query("total"), [len(g) for g in groups], atol=1e-3)
    ranges = [((lo <= g) & (g <= hi)).sum() for g in groups for lo, hi in ((10, 19), (3, 4999))]
    assert_allclose(release.query("day ranges"), ranges, atol=1e-3)
    cells = np.concatenate([np.bincount(g, minlength=N + 1) for g in groups])
    assert_allclose(release.query("sex x day"), cells, atol=1e-3)
    file = pd.read_parquet(tmp_path / "out" / "answers.parquet")
    assert len(file) == plan.count == 3 * (N + 1 + 2 + N + 1)
    assert file.cell[0] == "sex=F, day<=0"
    back = ns.read(tmp_path / "out")
    assert_allclose(back.query("total"), release.query("total"))
    assert back.plan.digest == plan.digest


def test_ranges_are_derived_with_their_exact_error(silent):
    plan = ns.plan(ns.Workload(DAYS).prefixes("day", by="sex", stderr=10))
    release = plan.release(ROWS, unrecorded=True)
    answer = release.answer("day >= 100 and day < 300 and sex == 'F'")
    inside = (ROWS.day >= 100) & (ROWS.day < 300)
    assert answer.value == pytest.approx((inside & (ROWS.sex == "F")).sum(), abs=1e-3)
    assert answer.stderr == pytest.approx(plan.range_stderr(100, 300), rel=1e-12)
    w = np.zeros(N + 1)
    w[100:300] = 1
    assert answer.stderr**2 == pytest.approx(plan.factor.weighed_variance(w), rel=1e-9)
    split = release.answer("day >= 100 and day < 300", by="sex")
    assert_allclose(split["stderr"], answer.stderr)
    whole = release.answer("day == 3 or day == 77")
    w[:] = 0
    w[[3, 77]] = 1
    assert whole.stderr**2 == pytest.approx(3 * plan.factor.weighed_variance(w), rel=1e-9)
    pair = {("day up to", "sex=M, day<=299"): 1, ("day up to", "sex=M, day<=99"): -1}
    assert release.answer(pair).stderr == pytest.approx(answer.stderr, rel=1e-9)
    with pytest.raises(NotSpanned, match="split by sex"):
        release.answer("day < 3", by="day")


def test_all_ranges_have_errors_by_length(silent):
    work = ns.Workload(DAYS).all_ranges("day", lengths=[1, 100, N], stderr=[5, 10, 20])
    plan = ns.plan(work)
    errors = plan.errors()
    assert errors["ranges of"] == ("1 to 1 values", "2 to 100 values", "101 to 5,000 values")
    assert (errors["stderr"] <= np.array([5, 10, 20])).all()
    assert max(errors["variance / target"]) == plan.k > 1 - 1e-6
    # By band, what no range passes; the last range of a length attains it.
    rng = np.random.default_rng(5)
    low = rng.integers(0, N - 100, 200)
    length = rng.integers(2, 101, 200)
    each = plan.factor.span_variance(low, low + length)
    assert (each <= plan.by_length[length - 1] * (1 + 1e-12)).all()
    assert plan.range_stderr(N - 100, N) ** 2 == pytest.approx(plan.by_length[99])
    assert plan.count == N
    release = plan.release(ROWS, unrecorded=True)
    true = ((ROWS.day >= 7) & (ROWS.day <= 70)).sum()
    assert release.answer("day >= 7 and day <= 70").value == pytest.approx(true, abs=1e-3)


def test_small_columns_take_bands_of_length_too():
    work = ns.Workload(ns.Schema({"x": ns.integers(0, 7)}))
    work.all_ranges("x", lengths=[2, 8], variance=[4, 100])
    assert sorted(set(work.compiled().variance.tolist())) == [4, 100]
    assert isinstance(ns.plan(work), ns.Plan)
    plan = ns.plan(work, by="ordered")
    assert plan.k <= 1
    assert plan.cost.mu_squared >= ns.plan(work, gap=1e-4).certificate.lower


def test_budgets_scale_it():
    plan = ns.plan(ns.Workload(DAYS).prefixes("day", stderr=10))
    budget = ns.Budget(mu=plan.cost.mu / 2)
    less = plan.within(budget)
    assert budget.allows(less.cost)
    assert less.k == pytest.approx(4, rel=1e-6)
    with pytest.raises(ns.BudgetExceeded, match="target variance times 4"):
        ns.plan(ns.Workload(DAYS).prefixes("day", stderr=10), budget=budget)


def test_a_person_of_many_rows_and_other_neighbours():
    once = ns.plan(ns.Workload(DAYS).prefixes("day", stderr=10))
    many = ns.plan(ns.Workload(DAYS, ns.People("pid", 3)).prefixes("day", stderr=10))
    assert many.cost.mu_squared == 9 * once.cost.mu_squared
    assert many.certificate.gap == pytest.approx(once.certificate.gap, rel=1e-6)
    other = ns.People(neighbours="replace")
    whole = ns.Schema({"day": ns.integers(0, N - 1, outside="clamp")})
    replaced = ns.plan(ns.Workload(whole, other).prefixes("day", stderr=10))
    assert replaced.certificate.lower <= replaced.cost.mu_squared
    assert replaced.certificate.neighbours == "replace"


def test_the_hierarchy_is_there_to_compare():
    work = ns.Workload(DAYS).prefixes("day", stderr=10)
    assert ns.plan(work, shape="hierarchy").cost.mu > ns.plan(work).cost.mu


REFUSED = {
    "another column too": (lambda w: w.marginal("sex", stderr=5), "'sex' is no prefix or range"),
    "a condition": (lambda w: w.where("day > 5", stderr=5), "is no prefix or range"),
    "a sum": (lambda w: w.sum("day", stderr=5), "is no prefix or range"),
    "split otherwise": (lambda w: w.prefixes("day", by="sex", name="b", stderr=5), "other columns"),
    "the same name": (lambda w: w.prefixes("day", stderr=5), "asked already"),
    "no target": (lambda w: w.prefixes("day", name="b"), "needs one target"),
    "a share": (lambda w: w.prefixes("day", name="b", cv=0.1), "no use here for 'cv'"),
    "bands that end early": (
        lambda w: w.all_ranges("day", lengths=[10, 20], stderr=[1, 2]),
        "the last is all 5,000 values",
    ),
    "one target for two bands": (
        lambda w: w.all_ranges("day", lengths=[10, N], stderr=[1, 2, 3]),
        "2 rows",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_bad_questions_get_one_sentence(name):
    act, said = REFUSED[name]
    work = ns.Workload(DAYS).prefixes("day", stderr=10)
    with pytest.raises(InvalidInput, match=said):
        ns.plan(act(work))


def test_bad_plans_get_one_sentence(monkeypatch):
    work = ns.Workload(DAYS).prefixes("day", stderr=10)
    for by in ("cells", "marginals"):
        with pytest.raises(TooLarge, match="planned on their own"):
            ns.plan(work, by=by)
    with pytest.raises(InvalidInput, match="or 'hierarchy'"):
        ns.plan(work, shape="identity")
    with pytest.raises(InvalidInput, match="not refined"):
        ns.plan(work, refine=True)
    with pytest.raises(InvalidInput, match="nothing is asked in the order"):
        ns.plan(ns.Workload(DAYS).marginal("sex", stderr=5), by="ordered")
    plan = ns.plan(work)
    with pytest.raises(InvalidInput, match="no slack"):
        plan.slack()
    with pytest.raises(InvalidInput, match="5001 cells"):
        plan.release(ns.Counts([1, 2]), unrecorded=True)
    with pytest.raises(InvalidInput, match="all ranges are asked"):
        plan.by_length  # noqa: B018
    monkeypatch.setattr("noiseshape.release.orderedplan.free_memory", lambda: 10**6)
    with pytest.raises(TooLarge, match="GB are free"):
        ns.plan(work)


def test_a_damaged_plan_is_refused():
    content = ns.plan(ns.Workload(DAYS).prefixes("day", stderr=10)).to_json()
    assert len(json.dumps(content)) < 100_000  # prefixes are said by their number
    for change in ({"factor": {"kind": "poem"}}, {"asked": {}}):
        with pytest.raises(InvalidInput):
            ns.OrderedPlan.from_json({**content, **change})
