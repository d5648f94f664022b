"""Releases: what is published is what the integers say, with errors that are true."""

import json
import os

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest

import noiseshape as ns
import noiseshape.release.measurement as door
from noiseshape import InvalidInput, NotSpanned, People, Queries, Release
from noiseshape.sampling import rounded_variance

CELLS = ["a", "b", "c", "d"]
DATA = np.array([1000, 20, 3, 77])


def queries(people=None):
    return (
        Queries(CELLS, people)
        .ask("up to", np.tril(np.ones((4, 4))), stderr=[3, 4, 5, 6], labels=CELLS)
        .ask("halves", np.kron(np.eye(2), np.ones(2)), stderr=4, labels=["ab", "cd"])
    )


@pytest.fixture(scope="module")
def plan():
    return ns.plan(queries())


@pytest.fixture
def exact(plan, monkeypatch):
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))
    return plan.release(DATA, unrecorded=True)


@pytest.mark.parametrize("shape", ["fit", "total", "hierarchy", "identity", "sm2"])
def test_the_empirical_mean_and_covariance_are_the_stated_ones(shape):
    """True noise. At 7.5 standard errors over 27 entries a false alarm is below 1e-11."""
    n, plan = 3000, ns.plan(queries(), shape=shape)
    releases = [plan.release(DATA, unrecorded=True) for _ in range(n)]
    answers = np.array([release.answers for release in releases])
    error, covariance = releases[0].table()["stderr"], releases[0].covariance()
    assert np.sqrt(np.diag(covariance)) == pytest.approx(error, rel=1e-12)
    noise = (answers - plan.queries.matrix @ DATA) / error
    correlation = covariance / np.outer(error, error)
    spread = np.sqrt((1 + correlation**2) / n)
    off = np.abs(noise.T @ noise / n - correlation) / spread
    assert np.abs(noise.mean(axis=0)).max() * np.sqrt(n) < 7.5
    assert off.max() < 7.5
    # Negative controls: errors stated a fifth too small, and correlations left out.
    assert (np.abs(noise.T @ noise / n * 1.44 - correlation) / spread).max() > 7.5
    if shape != "identity":
        assert (np.abs(noise.T @ noise / n - np.eye(6)) / spread).max() > 7.5


def test_intervals_cover_as_often_as_they_say(plan):
    """Coverage over 4,000 releases, in binomial standard errors: 7 is a false alarm in 10^11.

    Each single interval on its own, so that the releases are independent; and all six at once.
    """
    n, truth = 4000, plan.queries.matrix @ DATA
    answers = np.array([plan.release(DATA, unrecorded=True).answers for _ in range(n)])
    table = plan.release(DATA, unrecorded=True).table
    half = {
        kind: t["high"] - t["value"]
        for kind, t in (("one", table()), ("all", table(together=True)))
    }

    def off(kind, scale=1.0):
        inside = np.abs(answers - truth) <= scale * half[kind]
        covered = inside.mean(axis=0) if kind == "one" else inside.all(axis=1).mean()
        return np.abs(covered - 0.95).max() / np.sqrt(0.95 * 0.05 / n)

    assert off("one") < 7
    # The simultaneous width is an upper confidence limit: it may cover a little more often.
    assert off("all") < 9
    # Negative controls: a seventh too narrow, a quarter too wide.
    assert min(off("one", 0.85), off("one", 1.25)) > 7
    assert min(off("all", 0.88), off("all", 1.25)) > 9


def test_every_answer_is_published_in_the_order_asked(exact):
    table = exact.table()
    assert list(table["query"]) == ["up to"] * 4 + ["halves"] * 2
    assert list(table["cell"]) == [*CELLS, "ab", "cd"]
    assert table["value"] == pytest.approx(exact.plan.queries.matrix @ DATA, rel=1e-13)
    assert "noise only: not sampling or non-response error" in str(table)


def test_display_rounding_is_labelled(exact):
    table = exact.table(rounded=True)
    assert {"value (rounded for display)", "reliability"} <= set(table.columns)
    assert table["value"] == pytest.approx(exact.answers)  # the exact value stays beside it


class TestAnswers:
    def test_any_linear_combination_with_its_exact_error(self, exact):
        row = np.array([1.0, -1.0, 0.5, 0.0])
        answer = exact.answer(row)
        strategy = exact.plan.strategy
        A = strategy.rows.astype(float) / strategy.sigma[:, None]
        R = row @ np.linalg.pinv(A) / strategy.sigma
        assert answer.value == pytest.approx(row @ DATA, rel=1e-12)
        assert answer.stderr**2 == pytest.approx(R**2 @ rounded_variance(strategy.sigma))
        assert answer.high - answer.value == pytest.approx(1.959964 * answer.stderr, rel=1e-6)

    def test_printed_with_the_digits_that_the_error_supports(self, exact):
        said = str(exact.answer([1.0, 0, 0, 0]))
        assert said.startswith("1000.00 +- 3.0") or said.startswith("1,000.0 +- 3.0")
        assert "noise only" in said

    def test_by_name(self, exact):
        gap = exact.answer({"halves": 1, ("up to", "a"): -2})
        assert gap.value == pytest.approx(DATA.sum() - 2 * DATA[0], rel=1e-12)

    def test_planned_answers_come_out_the_same(self, exact):
        table = exact.table()
        for i, row in enumerate(exact.plan.queries.matrix):
            answer = exact.answer(row)
            assert answer.value == pytest.approx(table["value"][i], rel=1e-12)
            assert answer.stderr == pytest.approx(table["stderr"][i], rel=1e-9)

    def test_outside_the_span_says_which_part_is_not_measured(self, monkeypatch):
        monkeypatch.setattr(door, "rounded_gaussian", lambda s: np.zeros(len(s), dtype=int))
        halves = Queries(CELLS).ask("h", np.kron(np.eye(2), np.ones(2)), stderr=4)
        release = ns.plan(halves).release(DATA, unrecorded=True)
        with pytest.raises(NotSpanned, match=r"tells apart cells .* 'a', 'b' first") as info:
            release.answer([1, 0, 0, 0])
        assert "Of it, 0.5 x 'a' + 0.5 x 'b' was measured" in str(info.value)
        with pytest.raises(NotSpanned, match="Of it, nothing was measured"):
            release.answer([1, -1, 0, 0])
        with pytest.raises(NotSpanned, match="'c' and so on over 4 cells was measured"):
            release.ratio([1, 1, 1, 0], {"h": 1})
        inside = release.measurable([1, 0, 0, 0])
        assert inside == pytest.approx([0.5, 0.5, 0, 0])
        assert release.answer(inside).value == pytest.approx(510)

    @pytest.mark.parametrize(
        ("question", "sentence"),
        [
            ([1, 2, 3], "each of 4 cells"),
            ({"nobody": 1}, "no answer is named 'nobody'"),
            ({("halves", "a"): 1}, "no answer is named"),
            ([np.nan] * 4, "finite"),
            ("halves", "ask by name as a mapping"),
            ({}, "empty"),
            ({"halves": "a"}, "one real number"),
        ],
    )
    def test_refusals(self, exact, question, sentence):
        with pytest.raises(InvalidInput, match=sentence):
            exact.answer(question)

    def test_ratios_have_intervals_by_fieller(self, exact):
        share = exact.ratio([1, 0, 0, 0], {"halves": 1})
        assert share.value == pytest.approx(1000 / 1100)
        assert share.low < share.value < share.high
        # A denominator that may be 0 bounds nothing, and says so.
        hopeless = exact.ratio([1, 0, 0, 0], [0, 0, 1, 0])
        assert not np.isfinite([hopeless.low, hopeless.high]).all()

    def test_ratios_have_simulated_intervals_too(self, exact):
        share, drawn = (
            exact.ratio([1, 0, 0, 0], {"halves": 1}, method=m) for m in ("fieller", "simulated")
        )
        assert drawn.method == "simulated"
        assert (drawn.low, drawn.high) == pytest.approx((share.low, share.high), rel=1e-3)

    def test_whatever_shows_an_interval_says_of_which_error(self, exact):
        answer, share = exact.answer([1, 0, 0, 0]), exact.ratio([1, 0, 0, 0], {"halves": 1})
        for shown in (answer, share, exact.table()):
            assert "noise only" in str(shown)
        assert "noise only" in repr(answer)
        # A level that is not a whole number of percent is not rounded to one.
        for level, said in ((0.999, "99.9 % interval"), (1 - 1e-6, "99.9999 % interval")):
            assert said in exact.table(level=level).note
            assert said in str(exact.answer([1, 0, 0, 0], level=level))
            assert said in str(exact.ratio([1, 0, 0, 0], {"halves": 1}, level=level))
        assert "noise only" in repr(share)

    def test_consistent_answers_are_nonnegative_whole_and_additive(self, plan):
        release = plan.release(np.zeros(4, dtype=int), unrecorded=True)
        mended = release.consistent(integer=True)
        assert np.all(mended.cells >= 0)
        assert mended.answers == pytest.approx(plan.queries.matrix @ mended.cells)
        table = release.table(mended=mended)
        assert table["consistent"] == pytest.approx(mended.answers)
        assert table["interval changed"].tolist() == mended.changed.tolist()
        assert "post-processing" in table.note

    def test_constants_typed_by_the_caller_are_kept(self, plan):
        release = plan.release(DATA, unrecorded=True)
        mended = release.consistent(integer=True, fixed=[({"halves": 1}, 1100), ([0, 0, 1, 0], 3)])
        assert mended.cells.sum() == 1100
        assert mended.cells[2] == 3
        with pytest.raises(InvalidInput, match="pairs of a question"):
            release.consistent(fixed=3)


class TestFiles:
    def test_a_published_release_comes_back(self, plan, tmp_path):
        release = plan.release(DATA, unrecorded=True)
        release.write(tmp_path / "out")
        back = Release.read(tmp_path / "out")
        assert back.values.tolist() == release.values.tolist()
        assert back.answers == pytest.approx(release.answers, rel=1e-12)
        assert back.plan.digest == plan.digest
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
            "answers.csv",
            "answers.parquet",
            "provenance.json",
            "release.json",
            "report.html",
        ]

    def test_parquet_and_csv_say_the_same(self, plan, tmp_path):
        release = plan.release(DATA, unrecorded=True)
        release.write(tmp_path / "out")
        table = parquet.read_table(tmp_path / "out" / "answers.parquet")
        lines = (tmp_path / "out" / "answers.csv").read_text().splitlines()
        assert lines[0] == "query,cell,value,stderr,low,high,interval"
        assert all(line.endswith(",95 %; noise only: not sampling or non-response error")
                   for line in lines[1:])  # fmt: skip
        assert [float(line.split(",")[2]) for line in lines[1:]] == table["value"].to_pylist()
        assert table["value"].to_pylist() == release.answers.tolist()

    def test_the_provenance_says_what_was_done(self, plan, tmp_path):
        plan.release(DATA, unrecorded=True, out=tmp_path / "out")
        said = json.loads((tmp_path / "out" / "provenance.json").read_text())
        assert said["privacy"]["mu"] == plan.cost.mu
        assert said["privacy"]["epsilon"]["1e-09"] == plan.cost.epsilon(1e-9)
        assert said["people"]["neighbours"] == "add-remove"
        assert said["plan sha256"] == plan.digest
        assert said["design"]["certificate"]["lower"] <= plan.cost.mu**2 * (1 + 1e-6)
        assert said["accuracy"]["errors are of"].startswith("noise only")
        assert said["accuracy"]["intervals"].startswith("single 95 % intervals, noise only")
        ratios = plan.errors()["variance / target"]
        worst = [e["greatest variance / target"] for e in said["accuracy"]["errors"]]
        assert worst == [ratios[:4].max(), ratios[4:].max()]

    def test_nothing_in_the_files_is_a_true_value(self, tmp_path):
        """Nine digits that noise of 10^6 gives back once in a million runs must not appear."""
        plan = ns.plan(Queries(CELLS).ask("up to", np.tril(np.ones((4, 4))), stderr=1e6))
        telltale = np.array([918273645, 192837465, 564738291, 827364519])
        plan.release(telltale, unrecorded=True, out=tmp_path / "out")
        for path in (tmp_path / "out").iterdir():
            content = path.read_bytes()
            assert not any(str(v).encode() in content for v in telltale)

    def test_a_folder_by_any_name_that_the_system_takes(self, plan, tmp_path):
        for name in ("\u00fc [x]*", "two\nlines", os.fsdecode(b"\xff"), "x" * 200):
            release = plan.release(DATA, unrecorded=True, out=tmp_path / name)
            assert Release.read(tmp_path / name).values.tolist() == release.values.tolist()

    def test_an_altered_release_is_refused(self, plan, tmp_path):
        plan.release(DATA, unrecorded=True, out=tmp_path / "out")
        path = tmp_path / "out" / "release.json"
        path.write_text(path.read_text().replace('"when": "2', '"when": "3'))
        with pytest.raises(InvalidInput, match="altered"):
            Release.read(tmp_path / "out")
        with pytest.raises(InvalidInput, match="no release file"):
            Release.read(tmp_path)

    def test_a_folder_is_never_written_over(self, plan, tmp_path):
        release = plan.release(DATA, unrecorded=True)
        release.write(tmp_path / "out")
        with pytest.raises(InvalidInput, match="exists"):
            release.write(tmp_path / "out")


def test_people_are_named_in_words(tmp_path):
    plan = ns.plan(queries(People("patient", 3, "replace")))
    plan.release(DATA, unrecorded=True, out=tmp_path / "out")
    said = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert "the values of up to 3 rows of one person" in said["people"]["in words"]


def test_releases_are_frozen(exact):
    with pytest.raises(AttributeError):
        exact.when = "yesterday"
    with pytest.raises(ValueError, match="read-only"):
        exact.values[0] = 0
    assert repr(exact).startswith("Release(6 answers, Cost(mu=")


def test_a_mean_says_what_it_needs():
    schema = ns.Schema({"ward": ["A", "B"], "age": ns.integers(18, 90)})
    rows = pd.DataFrame({"ward": ["A", "B"] * 9, "age": [50] * 18})
    asked = ns.Workload(schema).total(by="ward", stderr=1).sum("age", by="ward", stderr=9)
    release = ns.plan(asked).release(rows, unrecorded=True)
    with pytest.raises(
        NotSpanned, match=r"ask in the plan for sum\('age'\) and for where\('age is"
    ):
        release.mean("age", by="ward")
    asked.where("age is not missing", by="ward", stderr=1)
    told = ns.plan(asked).release(rows, unrecorded=True).mean("age", by="ward")
    assert told["cell"] == ("ward=A", "ward=B", "ward=missing")
