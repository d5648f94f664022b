"""A spec of tables and matrices: planned together, all checked before the first is debited."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import noiseshape as ns
from noiseshape import parts
from noiseshape import spec as specs
from noiseshape.cli import app

TABLES = """
schema:
  sex: [F, M]
queries:
  - {name: sexes, marginal: sex, stderr: 5}
"""
MATRICES = """
matrices:
  - {name: moments, second_moment: [x, y], bounds: {x: [0, 1], y: [-2, 2]}, stderr: {x: 9, y: 30}}
  - {name: means, mean: [x], bounds: {x: [0, 1]}, expected: 200, stderr: 0.2, noise: isotropic}
"""


def rows():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], 200),
            "x": rng.uniform(size=200),
            "y": rng.uniform(-2, 2, 200),
        }
    )


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows().to_parquet("rows.parquet")
    (tmp_path / "spec.yaml").write_text(TABLES + MATRICES)

    def invoke(*words):
        return CliRunner().invoke(app, list(words))

    assert invoke("ledger", "create", "b.db", "--mu", "1").exit_code == 0
    return invoke


RELEASE = ("release", "spec.yaml", "--data", "rows.parquet", "--out", "out", "--ledger", "b.db")


def test_tables_and_matrices_are_released_alike_under_one_ledger(run, tmp_path):
    made = run(*RELEASE)
    assert made.exit_code == 0, made.stderr
    book = ns.Ledger.open("b.db")
    assert [e.charge.what for e in book.history()] == [
        "spec.yaml: tables", "spec.yaml: moments", "spec.yaml: means",
    ]  # fmt: skip
    releases = {name: ns.read(tmp_path / "out" / name) for name in ("tables", "moments", "means")}
    together = sum(r.plan.cost.mu_squared for r in releases.values())
    assert book.spent().mu_squared == together
    for release in releases.values():
        release.verify(book)
    assert releases["moments"].answer.shape == (2, 2)
    np.testing.assert_allclose(np.diag(releases["moments"].stderr), [9, 30], rtol=1e-4)
    named = [word for name in releases for word in ("--release", f"out/{name}")]
    assert run("ledger", "verify", "b.db", *named).exit_code == 0
    shown = run("report", "out")
    assert shown.exit_code == 0
    assert "moments: paid by ledger entry 2" in shown.stdout
    facts = json.loads(run("report", "out", "--json").stdout)
    assert set(facts["parts"]) == {"tables", "moments", "means"}


def test_a_plan_of_parts_says_each_and_all_together(run, tmp_path):
    shown = run("plan", "spec.yaml", "--save", "plans")
    assert shown.exit_code == 0, shown.stderr
    assert "Together: epsilon" in shown.stdout
    assert sorted(p.name for p in (tmp_path / "plans").iterdir()) == [
        "means.json", "moments.json", "tables.json",
    ]  # fmt: skip
    facts = json.loads(run("plan", "spec.yaml", "--json").stdout)
    total = sum(part["cost"]["rho"] for part in facts["parts"].values())
    assert facts["cost"]["rho"] == pytest.approx(total, rel=1e-12)
    saved = ns.load(tmp_path / "plans" / "moments.json")
    assert saved.digest == facts["parts"]["moments"]["plan"]
    again = run("release", "plans/moments.json", "--data", "rows.parquet", "--out", "o",
                "--ledger", "b.db")  # fmt: skip
    assert again.exit_code == 0, again.stderr
    assert "cannot be made" in run("plan", "spec.yaml", "--save", "plans").stderr


def test_the_custodian_is_told_of_rows_and_of_parts(run):
    shown = run("check", "spec.yaml", "--data", "rows.parquet")
    assert shown.exit_code == 0, shown.stderr
    assert "means: 1 answers." in shown.stdout
    assert "200 rows." in shown.stdout
    assert json.loads(run("check", "spec.yaml", "--json").stdout)["moments"] == {"answers": 3}


def test_more_answers_than_can_be_printed_are_counted(run, monkeypatch):
    monkeypatch.setattr("noiseshape.cli.PRINTED", 1)
    assert "3 answers, in the files." in run(*RELEASE).stdout


def test_all_parts_are_in_one_report(run, tmp_path):
    shown = run("plan", "spec.yaml", "--report", "plan.html", "--ledger", "b.db")
    assert "To be looked at: plan.html" in shown.stdout
    assert run(*RELEASE).exit_code == 0
    assert run("report", "out", "--out", "r.html", "--ledger", "b.db").exit_code == 0
    assert "To be looked at: out/report.html" in run("report", "out").stdout
    assert run("release", "spec.yaml", "--data", "rows.parquet", "--out", "out", "--ledger",
               "b.db").exit_code == 2  # fmt: skip
    for name in ("plan", "r", "out/report"):
        html = (tmp_path / f"{name}.html").read_text()
        for part in ("tables", "moments", "means"):
            assert f"{part}: what, and about whom" in html
        assert "What all parts cost together" in html
        assert len(set(re.findall(r'<section id="([^"]+)"', html))) == html.count("<section id=")
        assert ("the released numbers" in html) == (name != "plan")
    assert "The ledger allows" in (tmp_path / "r.html").read_text()


def test_matrices_alone_need_no_schema(run, tmp_path):
    (tmp_path / "spec.yaml").write_text(MATRICES)
    assert run(*RELEASE).exit_code == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["means", "moments"]
    checked = run("check", "spec.yaml", "--data", "rows.parquet")
    assert "moments: 3 answers." in checked.stdout


BAD = [
    # Whatever one part is refused for, no part is debited.
    ("bounds: {x: [0, 1], y: [-2, 2]}", "bounds: {x: [0, 1]}", 2, "y has no bounds"),
    ("bounds: {x: [0, 1], y: [-2, 2]}", "bounds: {x: [1, 0], y: [-2, 2]}", 2, "low < high"),
    ("mean: [x], bounds: {x", "mean: [z], bounds: {z", 2, "no column 'z'"),
    ("stderr: 0.2", "stderr: 0.0001", 3, "parts together cost mu = "),
    ("stderr: 0.2", "stderr: 0", 2, "matrices, means: the stderr of 'mean' must be above 0"),
    ("stderr: {x: 9, y: 30}", "stderr: {x: 9}", 2, "one number for each column: see 'y'"),
    ("expected: 200, ", "", 2, "depend on how many rows"),
    ("expected: 200, ", "n: 3, ", 2, "no key is called 'n'"),
    ("name: means", "name: moments", 2, "two matrices are called 'moments'"),
    ("name: means", "name: tables", 2, "published in a folder of its name"),
    ("name: means", "name: ../out", 2, "published in a folder of its name"),
    ("mean: [x]", "mean: [x], sum: [x]", 2, "sum and mean"),
    ("noise: isotropic", "noise: round", 2, "directional"),
    ("mean: [x]", "identity: [x]", 2, "goes with"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "sentence"), BAD)
def test_nothing_is_debited_unless_all_of_it_holds(run, tmp_path, old, new, code, sentence):
    text = TABLES + MATRICES
    assert old in text
    (tmp_path / "spec.yaml").write_text(text.replace(old, new))
    made = run(*RELEASE)
    assert made.exit_code == code, (made.stdout, made.stderr)
    assert sentence in made.stderr
    assert made.stderr.count("\n") == 1
    assert ns.Ledger.open("b.db").history() == ()
    assert not (tmp_path / "out").exists()


def test_a_ledger_of_other_people_or_another_vintage_is_found_before_the_first_debit(run, tmp_path):
    assert run("ledger", "create", "r.db", "--mu", "1", "--neighbours", "replace").exit_code == 0
    for words in ((*RELEASE[:-1], "r.db"), (*RELEASE, "--vintage", "w")):
        made = run(*words)
        assert made.exit_code == 2
        assert not (tmp_path / "out").exists()
    assert ns.Ledger.open("b.db").history() == ns.Ledger.open("r.db").history() == ()


def test_a_budget_is_for_all_parts_together(tmp_path):
    def planned(tail):
        return parts.planned(specs.parsed(TABLES + MATRICES + tail), tmp_path)

    free = parts.total(planned("")).mu
    with pytest.raises(ns.BudgetExceeded, match=r"targets of 3 parts together need .* times 4"):
        planned(f"budget: {{mu: {free / 2}}}\n")
    assert parts.total(planned(f"budget: {{mu: {free * 2}}}\n")).mu == free
    made = planned(f"budget: {{mu: {free / 2}}}\nprioritise: privacy\n")
    assert 1 - 1e-7 < parts.total(made).mu / (free / 2) <= 1
    assert [plan.k for plan in made.values()] == pytest.approx([4, 4, 4], rel=1e-3)
    with pytest.raises(ns.InvalidInput, match="spends a budget exactly"):
        planned("prioritise: privacy\n")


def test_a_run_that_failed_in_the_middle_is_continued(run, tmp_path, monkeypatch):
    from noiseshape.release.matrixplan import MatrixPlan

    honest, calls = MatrixPlan.measured, []

    def breaks(self, x):
        calls.append(self)
        if len(calls) == 2:
            raise OSError("row 17")
        return honest(self, x)

    with monkeypatch.context() as breaking:
        breaking.setattr(MatrixPlan, "measured", breaks)
        failed = run(*RELEASE)
    assert failed.exit_code == 1
    assert "means: the release failed at the step 'measure'. Ledger entry 3 stands" in failed.stderr
    assert "Published before it: tables, moments." in failed.stderr
    kept = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*.json")}
    assert "exists" in run(*RELEASE).stderr
    assert "paid for none of the parts" in run(*RELEASE, "--resume", "1").stderr
    again = run(*RELEASE, "--resume", "3")
    assert again.exit_code == 0, again.stderr
    assert len(ns.Ledger.open("b.db").history()) == 3
    assert all(path.read_bytes() == text for path, text in kept.items())
    assert ns.read(tmp_path / "out" / "means").stamp.number == 3


def test_the_schema_for_editors_knows_matrices():
    assert "matrices" in specs.json_schema()["properties"]
