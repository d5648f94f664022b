"""Reports as files: what they say is true, and nothing else is in them."""

import re
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

import noiseshape as ns
from noiseshape.privacy import Cost
from noiseshape.report import planned, words
from noiseshape.report.svg import Scale, brief, number

TAGS = re.compile(r"<style>.*?</style>|<[^>]*>", re.DOTALL)


def text(report):
    return re.sub(r"\s+", " ", TAGS.sub(" ", report.html))


def test_a_release_says_what_a_committee_asks(release, plan, book):
    said = text(release.report(ledger=book))
    for sentence in (
        "Statistics about people of nowhere",
        "Two data sets are neighbours when they differ in the presence of one row",
        "rows with a missing value are left out",
        f"{plan.cost.epsilon(1e-9):.4g}",
        "Every target against what it gets, tightest first",
        "Which targets the privacy is spent on",
        "How the noise of answers goes together",
        "Proven: any Gaussian noise, of whatever shape",
        "The ledger allows epsilon=4, delta=1e-09 in all",
        f"ledger entry {release.stamp.number}, {release.stamp.hash}",
        plan.digest,
        release.fingerprint,
        "Source: Statistics about people of nowhere",
    ):
        assert sentence in said, sentence


def test_it_is_a_function_of_the_release_alone(release, tmp_path):
    release.write(tmp_path / "out")
    html = (tmp_path / "out" / "report.html").read_text()
    assert html == release.report().html
    # Read back, the last digits of doubles may differ.
    again = ns.Release.read(tmp_path / "out").report().html
    shape = [re.sub(r"<svg.*?</svg>|[\d.,]+", "", h, flags=re.DOTALL) for h in (html, again)]
    assert shape[0] == shape[1]


def test_a_plan_that_does_not_fit_says_so(plan, tmp_path):
    small = ns.Ledger.create(tmp_path / "small.db", ns.Budget(mu=1e-3))
    assert "does not fit into what is left" in text(plan.report(ledger=small))


def test_large_releases_stay_below_three_megabytes():
    """12,000 answers, each drawn or counted as left out."""
    n = 2_400
    cells = [f"a={i // 60}, b={i % 60}" for i in range(n)]
    asked = ns.Queries(2)
    for name in "abcde":
        asked = asked.ask(name, np.tile([[1, 1]], (n, 1)), stderr=5, labels=cells)
    report = ns.plan(asked).release([3, 4], unrecorded=True).report()
    assert 1e5 < len(report.html.encode()) < 3e6
    assert "rows more, which the files hold" in report.html
    assert "answers are in the files" in report.html
    assert report.html.count("<figure>") > 5


def test_the_dear_target_is_named_first(cells):
    asked = ns.Queries(3).ask("cheap", [1, 1, 1], stderr=50).ask("dear", np.eye(3), stderr=1)
    picture = planned.prices(ns.plan(asked))
    assert picture.said.startswith("The dearest is dear, with 100 %")
    assert planned.prices(ns.plan(asked, shape="identity")) is None


def test_room_is_what_can_be_had_for_free(cells):
    """W = I with variances 1 and 4: profile (1, 1/4), so cell 1 again at variance 4/3."""
    picture = planned.room(cells)
    assert picture.table["stderr of one more count of it, for free"][0] == pytest.approx(
        (4 / 3) ** 0.5, rel=2e-3
    )
    error = float(picture.table["stderr of one more count of it, for free"][0])
    more = cells.extend(ns.Queries(2).ask("again", [0, 1], stderr=error * 1.01))
    assert more.cost.mu_squared <= cells.cost.mu_squared
    assert "nothing more" in planned.room(ns.plan(ns.Queries(2).ask("x", np.eye(2), stderr=1)))


def test_scaled_plans_say_by_how_much_they_miss(cells):
    plan = cells.within(ns.Budget(mu=0.5))
    said = text(plan.report())
    assert "2\u00d7 the worst standard error, over its target" in said
    assert "targets are missed up to 4 fold" in plan.report().html


@pytest.mark.parametrize("mu", [1e-3, 0.3, 1.0, 4.0])
def test_guesses_are_those_of_two_normals(mu):
    """Against an integral, and never below it: two normals that lie mu apart."""
    least = lambda x: min(stats.norm.pdf(x), stats.norm.pdf(x - mu))  # noqa: E731
    right = 1 - integrate.quad(least, -12, mu / 2, limit=200)[0] / 2
    right -= integrate.quad(least, mu / 2, 12 + mu, limit=200)[0] / 2
    assert right <= words.guess(Cost.of(mu)) <= right + 1.1e-4
    threshold = stats.norm.isf(0.05)
    power = integrate.quad(lambda x: stats.norm.pdf(x - mu), threshold, threshold + mu + 40)[0]
    assert power - 1e-9 <= words.found(Cost.of(mu)) <= power + 1.1e-4


def test_the_curve_marks_its_point():
    cost = Cost(Fraction(1, 16))
    picture = planned.curve(cost, 1e-6)
    assert f"epsilon {number(cost.epsilon(1e-6))} at delta 1e-6" in picture.drawn
    assert cost.epsilon(1e-9) in picture.table["epsilon"]


def test_nothing_breaks_a_publication(plan, release, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ArithmeticError("secret")

    monkeypatch.setattr("noiseshape.report.of_release", broken)
    release.write(tmp_path / "out")
    said = (tmp_path / "out" / "report.html").read_text()
    assert "could not be drawn" in said
    assert "secret" not in said
    assert (ns.Release.read(tmp_path / "out").values == release.values).all()


def test_only_what_answers_questions_is_said_to():
    """The answer of a matrix is an array, and its errors are not those of sums alone."""
    asked = ns.covariance(np.full((9, 2), 0.5), bounds=(0, 1), expected=9)
    matrix = ns.isotropic(asked).within(ns.Budget(mu=1)).release(unrecorded=True)
    table = ns.plan(ns.Queries(2).ask("x", np.eye(2), stderr=5)).release([3, 4], unrecorded=True)
    for made in (matrix, table):
        page = made.report().html
        assert ("release.answer(...)" in page) == (made is table)
        assert ("redraw noise" in page) == (made is matrix)


def test_a_report_that_cannot_be_written(plan):
    with pytest.raises(ns.InvalidInput, match="cannot be written"):
        plan.report("no/such/folder/report.html")


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (12.3456, "12.35"), (1234.5, "1,234"), (-3.25, "\u22123.25"), (1e-9, "1e\u22129"),
     (0.00123, "0.00123"), (2.5e20, "2.5e20"), (999.96, "1,000"), (100000.0, "100,000")],
)  # fmt: skip
def test_numbers_as_people_read_them(value, said):
    assert number(value) == said


def test_millions_are_short_in_pictures():
    assert [brief(v) for v in (218_895_340, -3e9, 999)] == ["218.9 m", "\u22123 bn", "999"]


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [(0, 10, False), (-3, 7.5, False), (1e-12, 1, True), (0.8, 1.2, True), (5, 5, False)],
)
def test_ticks_are_on_the_scale(low, high, log):
    scale = Scale(low, high, 10, 20, log=log)
    ticks = scale.ticks(5)
    assert 1 <= len(ticks) <= 12
    assert all(10 - 1e-6 <= scale(t) <= 20 + 1e-6 for t in ticks)


class TestMatrices:
    def test_a_matrix_is_drawn_with_its_errors(self, matrix):
        said = text(matrix.report())
        for sentence in ("Covariance, 3 x 3", "The standard error of every entry", "directional",
                         "Total error at the same privacy", matrix.fingerprint):  # fmt: skip
            assert sentence in said, sentence
        (cell,) = re.findall(r"<title>x0, x1: ([^,]+), standard error ([^<]+)</title>",
                             matrix.report().html)[:1]  # fmt: skip
        assert cell == (number(matrix.answer[0, 1]), number(matrix.stderr[0, 1]))

    def test_vectors_and_wide_answers(self):
        rows = np.random.default_rng(3).uniform(size=(300, 60))
        budget = ns.Budget(mu=1)
        for asked in (
            ns.mean(rows, bounds=(0, 1), expected=300),
            ns.mean(rows, bounds=(0, 1)),
            ns.identity(rows, bounds=(0, 1)),
        ):
            plan = ns.isotropic(asked).within(budget)
            release = plan.release(unrecorded=True)
            assert "are drawn" in release.report().html
            assert len(plan.report().html) < 3e6
            assert "<svg" in release._repr_html_()
            assert "Plan of" in plan._repr_html_()


class TestMarginals:
    def test_it_says_and_draws_every_query(self, marginals):
        said = text(marginals.report())
        for sentence in ("Statistics about three", "Planned by marginals", "a x c",
                         "What the privacy is spent on", marginals.fingerprint):  # fmt: skip
            assert sentence in said, sentence
        assert "<svg" in marginals._repr_html_()
        assert "Plan of" in marginals.plan._repr_html_()

    def test_shares_add_up_to_the_cost(self, marginals):
        """docs/math/marginals.md: mu^2 is the sum of s_T / u_T."""
        from noiseshape.report.marginals import _residuals

        table = _residuals(marginals.plan).table
        sizes, strategy = marginals.plan.strategy.sizes, marginals.plan.strategy
        each = {}
        for i in range(len(strategy.lattice)):
            members = strategy.lattice.members(i)
            name = " x ".join("abc"[k] for k in members) or "total"
            each[name] = np.prod([1 - 1 / sizes[k] for k in members]) / strategy.u[i]
        assert sum(each.values()) == pytest.approx(marginals.plan.cost.mu**2, rel=1e-6)
        for name, share in zip(table["columns"], table["share of mu\u00b2, %"], strict=True):
            assert share == pytest.approx(100 * each[name] / sum(each.values()), abs=1e-3)

    def test_plain_noise_is_what_comparing_over_cells_says(self, marginals):
        """Two derivations: closed forms, and designs over the whole table."""
        schema = marginals.plan.asked.schema
        work = ns.Workload(schema).total(stderr=5).marginal("a", "b", stderr=9)
        work.marginal("a", "c", stderr=12).marginal("c", stderr=10)
        over = ns.plan(work, by="cells")
        mu = marginals.plan.cost.mu
        (cells,) = over.compare(designs=["identity"], mu=mu).rows()
        W, c = over.queries.matrix, over.queries.variance
        alone = (W**2 / c[:, None]).sum(axis=0).max() / mu**2  # unit noise on w_j / sqrt(c_j)
        said = text(marginals.report())
        assert f"plain: on every cell of the table {number(cells.worst_ratio)} " in said
        assert f"plain: on each answer by itself {number(alone)} " in said


def test_kinds_without_pages_of_their_own_are_drawn_by_queries(union):
    report = union.report()
    assert report.html.count("<figure>") == len(set(union.table()["query"])) + 2
    assert "Every query against its target" in report.html
    assert "Plan of" in union.plan._repr_html_()
    assert "Release of" in union._repr_html_()


class TestNotebooks:
    """What notebooks show, and that it holds together as HTML of its own."""

    def test_every_object_shows_itself(self, plan, release, book):
        schema = plan.queries.layout.schema
        work = ns.Workload(schema).total(stderr=3)
        for thing, words_of_it in (
            (plan, "Plan of"),
            (release, "Release of"),
            (plan.cost, "neighbours"),
            (book, "Ledger: epsilon=4"),
            (schema, "Schema of"),
            (work, "total"),
            (ns.Workload(schema), "nothing is asked yet"),
            (plan.report(), "srcdoc"),
        ):
            html = thing._repr_html_()
            assert words_of_it in html
            assert "<script" not in html
        assert plan._repr_html_().count("<svg") == 2
        assert release._repr_html_().count("<svg") == 3

    def test_names_are_text_and_never_markup(self):
        asked = ns.Queries(["<i>a"]).ask("<script>x", [1], stderr=1)
        plan = ns.plan(asked)
        release = plan.release([3], unrecorded=True)
        for html in (plan._repr_html_(), release._repr_html_(), release.report().html):
            assert "<script" not in html
            assert "<i>a" not in html
