"""Plans: costs and errors of what is executed, ceilings, scaling, slack, and files."""

import json
import zlib
from fractions import Fraction

import numpy as np
import pytest

import noiseshape as ns
from noiseshape import Budget, BudgetExceeded, InvalidInput, People, Plan, Queries, archive
from noiseshape.archive import sealed
from noiseshape.design.hierarchy import optimal_branching, tree
from noiseshape.release.plan import plan_digest
from noiseshape.sampling import rounded_variance
from noiseshape.strategies import Dense
from noiseshape.strategies.changes import Ball


def prefixes(d=8, stderr=1.0, people=None):
    W = np.tril(np.ones((d, d)))
    return Queries(d, people).ask("prefixes", W, stderr=stderr)


def exact_cost(plan):
    """mu^2 again, by rationals, from the integers alone."""
    rows, sigma = plan.strategy.rows.astype(object), plan.strategy.sigma.tolist()
    weights = [1 / Fraction(s) ** 2 for s in sigma]
    return max(sum(int(v) ** 2 * w for v, w in zip(c, weights, strict=True)) for c in rows.T)


SHAPES = ["fit", "total", "hierarchy", "identity", "sm2"]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_meets_its_targets_at_the_stated_cost(shape):
    queries = prefixes().ask("pairs", np.kron(np.eye(4), np.ones(2)), stderr=[1, 2, 3, 4])
    plan = ns.plan(queries, shape=shape)
    truth = exact_cost(plan)
    assert truth <= plan.cost.mu_squared <= truth * (1 + Fraction(1, 2**35))
    table = plan.errors()
    assert np.all(table["variance / target"] <= 1)
    assert plan.k == pytest.approx(1, abs=1e-6)
    # The variance of what is executed, by matrices written out.
    A = plan.strategy.rows.astype(float) / plan.strategy.sigma[:, None]
    R = queries.matrix @ np.linalg.pinv(A) / plan.strategy.sigma
    assert table["stderr"] ** 2 == pytest.approx(R**2 @ rounded_variance(plan.strategy.sigma))


def test_the_cost_is_the_least_there_is():
    plan = ns.plan(prefixes(), gap=1e-6)
    assert plan.cost.mu_squared == pytest.approx(2.28156, rel=4e-6)
    assert plan.certificate.gap <= 1e-6
    for shape in SHAPES[1:4]:
        assert ns.plan(prefixes(), shape=shape).cost.mu > plan.cost.mu


@pytest.mark.parametrize("target", [1.0, 1.1, 1.7, 2.3])
def test_an_extension_that_fills_the_slack_is_scaled_below_it(target):
    """Scales are rounded down to meet targets: as they come out, they cost a hair too much."""
    plan = ns.plan(Queries(2).ask("cells", np.eye(2), stderr=[target, 2 * target])).refine()
    least = 1 / (plan.slack()[1] * (1 - 1e-5))
    more = plan.extend(Queries(2).ask("second", [[0, 1]], variance=least))
    assert more.cost.mu_squared <= plan.cost.mu_squared
    assert more.profile.greatest <= plan.cost.mu_squared
    assert more.k <= 1


class TestHierarchy:
    """Trees on ordered columns, cells and total on categories, and never one tree over both."""

    SCHEMA = ns.Schema(
        {
            "sex": ns.categories(["F", "M"], missing="drop"),
            "age": ns.integers(0, 8, missing="drop"),
        },
        impossible=["sex == 'M' and age > 6"],
    )

    def workload(self, **people):
        return ns.Workload(self.SCHEMA, People(**people)).prefixes("age", by="sex", stderr=1)

    def strategy(self):
        """The Kronecker product: the last two ages of M left out."""
        nodes = tree(9, optimal_branching(9))
        return np.kron([[1, 1], [1, 0], [0, 1]], nodes)[:, :16]

    def test_it_knows_the_columns(self):
        plan = ns.plan(self.workload(), shape="hierarchy")
        A = self.strategy()
        W = plan.queries.matrix
        worst = np.einsum("ij,ij->i", W @ np.linalg.pinv(A), W @ np.linalg.pinv(A)).max()
        assert plan.cost.mu_squared == pytest.approx(worst * (A**2).sum(axis=0).max(), rel=1e-5)

    @pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
    def test_so_does_the_comparison(self, neighbours):
        work = self.workload(unit="id", max_rows=2, neighbours=neighbours)
        plan = ns.plan(work, shape="hierarchy")
        row = next(r for r in plan.compare().rows() if r.design == "hierarchy")
        assert 2 * row.mu_for_targets == pytest.approx(plan.cost.mu, rel=1e-5)

    def test_of_nothing_but_the_total(self):
        plan = ns.plan(ns.Workload(self.SCHEMA).total(stderr=2), shape="hierarchy")
        assert plan.cost.mu == pytest.approx(0.5, rel=1e-5)


def test_k_rows_multiply_mu_by_k():
    one = ns.plan(prefixes())
    three = ns.plan(prefixes(people=People("id", 3)))
    assert three.cost.mu_squared == 9 * one.cost.mu_squared
    assert three.profile.greatest == three.cost.mu_squared


def test_replace_costs_the_exact_maximum_over_pairs():
    plan = ns.plan(prefixes(people=People(neighbours="replace")))
    A = plan.strategy.rows.astype(float) / plan.strategy.sigma[:, None]
    pairs = ((A[:, :, None] - A[:, None, :]) ** 2).sum(axis=0)
    assert float(plan.cost.mu_squared) == pytest.approx(pairs.max(), rel=1e-9)
    assert plan.cost.neighbours == "replace"


class TestAbsence:
    """Under replace, a person who may also be absent pays for each column on its own."""

    CASES = (
        ({"people": People(neighbours="replace"), "rows_may_leave": True}, 1),
        ({"people": People("id", 2, "replace")}, 4),
    )

    @pytest.mark.parametrize(("options", "rows"), CASES)
    @pytest.mark.parametrize(
        ("W", "c"), [([[1, 1], [1, 0]], [1e-4, 1]), ([[1, 1, 1], [-1, -1, 0]], [1, 1])]
    )
    def test_the_certificate_is_of_that_cost(self, options, rows, W, c):
        queries = Queries(len(W[0]), **options).ask("x", W, variance=c)
        plan = ns.plan(queries)
        added = ns.plan(Queries(len(W[0])).ask("x", W, variance=c))
        # A replacement is at most a removal and an addition.
        assert plan.cost.mu_squared <= 4 * rows * added.cost.mu_squared * (1 + Fraction(1, 100))
        assert plan.certificate.achieved == pytest.approx(float(plan.cost.mu_squared), rel=1e-5)
        assert plan.certificate.lower <= float(plan.cost.mu_squared) * (1 + 1e-9)
        assert plan.certificate.gap <= 1e-3


def test_a_strategy_for_other_queries_is_refused():
    one, two = ns.plan(prefixes(4)), ns.plan(prefixes(5))
    with pytest.raises(InvalidInput, match="other queries"):
        Plan(one.queries, two.strategy)
    swapped = Queries(2).ask("x", [[1, 0], [0, 1]], stderr=1)
    straight = Queries(2).ask("x", [[0, 1], [1, 0]], stderr=1)
    with pytest.raises(InvalidInput, match="other queries"):
        Plan(swapped, ns.plan(straight).strategy)


def test_what_a_row_can_add_is_not_for_the_strategy_to_say():
    """One count is a change of 1, whatever else the strategy could be told."""
    asked = Queries(2).ask("cells", np.eye(2), stderr=3)
    tiny = Dense(np.eye(2, dtype=int), 1.0, np.eye(2), changes=Ball(2, 1e-6))
    assert tiny.cost().mu == pytest.approx(1e-6)
    with pytest.raises(InvalidInput, match="told by the plan's queries"):
        Plan(asked, tiny)
    assert Plan(asked, Dense(np.eye(2, dtype=int), 1.0, np.eye(2))).cost.mu == 1


class TestBudgets:
    def test_a_ceiling_spends_what_the_targets_need(self):
        free, capped = ns.plan(prefixes()), ns.plan(prefixes(), budget=Budget(mu=100.0))
        assert capped.cost == free.cost

    def test_a_ceiling_too_low_says_what_is_needed_and_what_it_buys(self):
        with pytest.raises(BudgetExceeded) as info:
            ns.plan(prefixes(), budget=Budget(mu=0.5))
        assert "need mu=1.51" in str(info.value)
        assert "the budget is mu=0.5" in str(info.value)
        assert "variance times 9.1" in str(info.value)
        assert "prioritise='privacy'" in str(info.value)

    def test_refusals_speak_as_the_budget_was_stated(self):
        with pytest.raises(BudgetExceeded, match=r"need epsilon=[\d.]+ at delta=1e-09") as info:
            ns.plan(prefixes(), budget=Budget(epsilon=0.1, delta=1e-9))
        assert "the budget is epsilon=0.1, delta=1e-09" in str(info.value)
        with pytest.raises(BudgetExceeded, match="need rho="):
            ns.plan(prefixes(), budget=Budget(rho=0.1))

    @pytest.mark.parametrize("mu", [0.013, 0.5, 7.0])
    def test_privacy_first_spends_the_budget_and_never_more(self, mu):
        budget = Budget(mu=mu)
        plan = ns.plan(prefixes(), budget=budget, prioritise="privacy")
        assert budget.allows(plan.cost)
        assert plan.cost.mu == pytest.approx(mu, rel=1e-8)
        assert plan.k == pytest.approx(2.28156 / mu**2, rel=2e-3)

    def test_k_says_by_how_much_targets_are_missed(self):
        plan = ns.plan(prefixes()).within(Budget(epsilon=0.1, delta=1e-9))
        assert np.max(plan.errors()["variance / target"]) == plan.k > 1

    def test_scaling_twice_is_scaling_once(self):
        plan = ns.plan(prefixes())
        there = plan.within(Budget(mu=0.3)).within(Budget(mu=0.7))
        assert there.strategy.sigma == pytest.approx(plan.within(Budget(mu=0.7)).strategy.sigma)


class TestSlack:
    """W = I with variances 1 and 4: the refined profile is (1, 1/4) (FFU, Problem 4)."""

    def queries(self):
        return Queries(2).ask("cells", np.eye(2), variance=[1, 4])

    def test_slack_is_that_of_the_refined_profile(self):
        slack = ns.plan(self.queries()).slack()
        assert slack[0] == pytest.approx(0, abs=1e-4)
        assert slack[1] == pytest.approx(3 / 4, rel=1e-3)

    def test_slack_never_promises_more_than_there_is(self):
        plan = ns.plan(self.queries(), refine=True)
        for entry, room in zip(plan.profile.units, plan.slack(), strict=True):
            spent = Fraction(int(entry), 1 << plan.profile.exponent)
            assert spent + Fraction(room) <= plan.cost.mu_squared

    def test_extension_is_free_and_exact(self):
        plan = ns.plan(self.queries(), refine=True)
        more = Queries(2).ask("again", [0, 1], variance=1.4)
        both = plan.extend(more)
        assert both.cost.mu_squared <= plan.cost.mu_squared
        assert np.all(both.errors()["variance / target"] <= 1)
        assert list(both.errors()["query"]) == ["cells", "cells", "again"]

    def test_an_extension_that_does_not_fit_says_by_how_much(self):
        plan = ns.plan(self.queries(), refine=True)
        with pytest.raises(BudgetExceeded, match=r"allow 1\.33\d* times the variance"):
            plan.extend(Queries(2).ask("again", [0, 1], variance=1.0))
        with pytest.raises(BudgetExceeded, match="touch 1 cells that have no slack"):
            plan.extend(Queries(2).ask("again", [1, 0], variance=100.0))

    def test_an_extension_must_be_about_the_same(self):
        plan = ns.plan(self.queries(), refine=True)
        with pytest.raises(InvalidInput, match="same cells, people, table"):
            plan.extend(Queries(3).ask("again", [0, 1, 0], variance=9.0))
        with pytest.raises(InvalidInput, match="same cells, people, table and selection"):
            plan.extend(Queries(2, selection="children").ask("again", [0, 1], variance=9.0))
        with pytest.raises(InvalidInput, match="planned already"):
            plan.extend(Queries(2).ask("cells", [0, 1], variance=9.0))

    def test_replace_has_no_slack_to_tell(self):
        queries = Queries(2, People(neighbours="replace")).ask("c", np.eye(2), variance=1)
        with pytest.raises(InvalidInput, match="add-remove"):
            ns.plan(queries).slack()


class TestPrices:
    """What each target costs: the certificate's weights q."""

    def two(self, times=1.0, **options):
        """Prefixes and cells with targets of their own; prefixes relaxed by ``times``."""
        asked = Queries(6).ask("up to", np.tril(np.ones((6, 6))), variance=np.full(6, 2.0) * times)
        return ns.plan(asked.ask("cells", np.eye(6), variance=1.3), gap=1e-6, **options)

    @pytest.mark.parametrize("times", [1.01, 2.0, 50.0])
    def test_nothing_saves_more_than_it_says(self, times):
        plan, relaxed = self.two(), self.two(times)
        least = plan.certificate.lower * (1 - plan.saving(times, "up to"))
        assert relaxed.certificate.achieved >= least * (1 - 1e-9)

    def test_a_small_relaxation_saves_what_it_says(self):
        plan, relaxed = self.two(), self.two(1.001)
        saved = 1 - relaxed.cost.mu**2 / plan.cost.mu**2
        assert saved == pytest.approx(plan.saving(1.001, "up to"), rel=0.02)
        assert 2e-4 < saved < 9e-4  # some of the price is the cells'

    def test_all_targets_together_have_the_whole_price(self):
        assert self.two().saving(4.0) == pytest.approx(3 / 4)

    def test_a_query_that_binds_nothing_is_free(self):
        plan = ns.plan(prefixes(3).ask("again", [1, 0, 0], variance=1e6))
        assert plan.saving(100.0, "again") < 1e-6

    def test_prices_are_kept_scaled_and_extended(self, tmp_path):
        plan = self.two(refine=True)
        plan.save(tmp_path / "plan.json")
        assert np.array_equal(Plan.load(tmp_path / "plan.json").prices, plan.prices)
        assert plan.prices.sum() == pytest.approx(1)
        assert np.array_equal(plan.within(Budget(mu=0.1)).prices, plan.prices)
        two = ns.plan(Queries(2).ask("cells", np.eye(2), variance=[1, 4]), refine=True)
        both = two.extend(Queries(2).ask("b", [0, 1], variance=1.4))
        assert both.saving(2.0, "b") == 0

    @pytest.mark.parametrize("shape", ["total", "identity", "hierarchy"])
    def test_another_objective_knows_none(self, shape):
        with pytest.raises(InvalidInput, match="knows no prices"):
            ns.plan(prefixes(3), shape=shape).saving(2.0)

    def test_refusals(self):
        plan = ns.plan(prefixes(3))
        with pytest.raises(InvalidInput, match="no query is called 'x'"):
            plan.saving(2.0, "x")
        for times in (0.5, -1.0, float("nan")):
            with pytest.raises(InvalidInput):
                plan.saving(times)
        with pytest.raises(InvalidInput, match="one for each answer"):
            Plan(plan.queries, plan.strategy, prices=np.ones(2))


class TestFiles:
    def test_a_plan_comes_back_as_it_was(self, tmp_path):
        plan = ns.plan(prefixes(people=People("id", 2)))
        plan.save(tmp_path / "plan.json")
        back = Plan.load(tmp_path / "plan.json")
        assert back.digest == plan.digest
        assert (back.cost, repr(back)) == (plan.cost, repr(plan))
        assert back.k == pytest.approx(plan.k, rel=1e-12)

    def test_an_altered_plan_is_refused(self, tmp_path):
        ns.plan(prefixes()).save(tmp_path / "plan.json")
        text = (tmp_path / "plan.json").read_text()
        (tmp_path / "plan.json").write_text(text.replace('"max_rows": 1', '"max_rows": 2'))
        with pytest.raises(InvalidInput, match="was altered"):
            Plan.load(tmp_path / "plan.json")

    def test_costs_are_not_believed_from_a_file(self, tmp_path):
        """There is no cost in the file to believe."""
        ns.plan(prefixes()).save(tmp_path / "plan.json")
        content = json.loads((tmp_path / "plan.json").read_text())["content"]
        assert not {"mu", "cost", "profile", "variance"} & set(content)

    def test_a_plan_made_again_is_the_same_plan(self, monkeypatch):
        """A run that was interrupted is continued with the plan that its description gives."""
        once, again = ns.plan(prefixes()), ns.plan(prefixes())
        assert once.certificate.seconds != again.certificate.seconds
        assert once.digest == again.digest
        # Compressors differ from machine to machine, and from one version to the next.
        slower, said = zlib.compress, once.to_json()
        monkeypatch.setattr(archive.zlib, "compress", lambda raw, level: slower(raw, 0))
        elsewhere = Plan.from_json(said)
        assert elsewhere.to_json() != said
        assert elsewhere.digest == once.digest

    @pytest.mark.parametrize(
        "part", ["rows", "sigma", "queries", "moved", "shape", "certificate", "prices"]
    )
    def test_another_plan_has_another_digest(self, part):
        one, other = (ns.plan(prefixes(d)).to_json() for d in (4, 5))
        swapped = {**one, part: {**one, "moved": 0.5, "shape": "total"}[part]}
        if part not in ("moved", "shape"):
            swapped[part] = other[part]
        assert plan_digest(swapped) != plan_digest(one)

    def test_a_refined_plan_comes_back_with_its_levels(self, tmp_path):
        plan = ns.plan(prefixes(), refine=True)
        plan.save(tmp_path / "plan.json")
        assert Plan.load(tmp_path / "plan.json").certificate == plan.certificate

    @pytest.mark.parametrize(
        ("part", "value"), [("moved", "far"), ("moved", None), ("certificate", {"levels": [3]})]
    )
    def test_a_plan_with_parts_that_are_none_is_refused(self, tmp_path, part, value):
        content = ns.plan(prefixes()).to_json() | {part: value}
        (tmp_path / "plan.json").write_text(sealed("plan", 1, content))
        with pytest.raises(InvalidInput, match="make the plan anew"):
            Plan.load(tmp_path / "plan.json")

    def test_no_plan_there(self, tmp_path):
        with pytest.raises(InvalidInput, match="there is no plan file"):
            Plan.load(tmp_path / "plan.json")


class TestComparing:
    def test_shapes_compare_under_the_neighbours_of_the_plan(self):
        """Opposite cells differ by twice what one costs; a common shift costs nothing."""
        rows = [[1, -1, 0], [1, 1, 0], [1, 1, 5]]
        added, replaced = (
            ns.plan(Queries(3, People(neighbours=kind)).ask("x", rows, stderr=[1, 100, 3]))
            for kind in ("add-remove", "replace")
        )
        for plan in (added, replaced):
            fitted = next(row for row in plan.compare().rows() if row.design == "fit")
            assert fitted.mu_for_targets == pytest.approx(plan.cost.mu, rel=2e-3)
        assert replaced.cost.mu > 1.1 * added.cost.mu

    def test_who_may_be_absent_counts(self):
        rows = Queries(2, People(neighbours="replace"), rows_may_leave=True)
        plan = ns.plan(rows.ask("x", [[1, 1], [1, 0]], stderr=[0.01, 1]))
        fitted = next(row for row in plan.compare().rows() if row.design == "fit")
        assert fitted.mu_for_targets == pytest.approx(plan.cost.mu, rel=1e-3)

    def test_chosen_shapes_and_costs(self):
        plan = ns.plan(prefixes(4, people=People(neighbours="replace")))
        compared = plan.compare(designs=["fit", "identity"], mu=0.5)
        assert [row.design for row in compared.rows()] == ["fit", "identity"]
        for row in plan.compare(designs=["identity"]).rows():
            # Each cell measured by itself: two cells change.
            assert row.mu_for_targets == pytest.approx(np.sqrt(2 * 4), rel=1e-6)


@pytest.mark.parametrize("wrong", [None, np.eye(2), 3])
def test_what_is_no_queries_or_budget_is_said_so(wrong):
    made = ns.plan(prefixes(2))
    for call in (lambda: ns.plan(wrong), lambda: made.extend(wrong)):
        with pytest.raises(InvalidInput, match="a plan is of a Workload or of Queries"):
            call()
    with pytest.raises(InvalidInput, match="must be a Budget"):
        made.within(wrong)


@pytest.mark.parametrize("where", [".", "no/such/plan.json"])
def test_a_plan_that_cannot_be_written(where):
    with pytest.raises(InvalidInput, match="cannot be written"):
        ns.plan(prefixes(2)).save(where)


BAD = [
    ({"shape": "round"}, "one of fit"),
    ({"prioritise": "speed"}, "accuracy"),
    ({"prioritise": "privacy"}, "give one"),
    ({"shape": "total", "refine": True}, "only the shape 'fit'"),
]


@pytest.mark.parametrize(("options", "sentence"), BAD)
def test_refusals(options, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        ns.plan(prefixes(2), **options)


def test_nothing_asked():
    with pytest.raises(InvalidInput, match="nothing is asked"):
        ns.plan(Queries(2))
