"""Every experiment at tiny size, what is kept of an interrupted run, the page, and the command."""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from experiments.harness import Case, Experiment, Verdict
from typer.testing import CliRunner

from experiments import document, harness
from noiseshape import cli
from noiseshape.errors import InvalidInput

NAMES = list(harness.experiments_by_name())
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run of everything at tiny size, with the printed numbers out of reach."""
    out = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            harness, "_printed", lambda: pytest.fail("a printed number was computed with")
        )
        patch.setattr(harness, "write", lambda *_: None)
        records = {n: harness.run(harness.named(n), out / document.FOLDER, "tiny") for n in NAMES}
    return out, records


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_writes_its_table_picture_and_verdict(name, runs, tmp_path):
    experiment, record = harness.named(name), runs[1][name]
    harness.write(experiment, record, tmp_path)
    with (tmp_path / f"{name}.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(record.rows) > 0
    assert (tmp_path / f"{name}.svg").read_text().startswith("<svg")
    text = (tmp_path / f"{name}.md").read_text()
    assert f"{name}.svg" in text
    verdict = experiment.verdict(record.rows)
    assert verdict.kind in ("agrees", "differs", "cannot be reproduced", "ours")
    assert verdict.why in text
    lines = list(harness.markdown(experiment.table(record.rows)))
    assert len({line.count("|") for line in lines}) == 1
    assert "nan" not in text.lower().split()
    assert (verdict.kind == "ours") == name.startswith("ours")


def test_a_script_an_experiment_a_printed_table():
    scripts = {
        p.stem for p in harness.HERE.glob("*_*.py") if p.stem.split("_")[0] in harness.GROUPS
    }
    assert {name.replace("-", "_") for name in NAMES} == scripts
    known = json.loads((harness.HERE / "printed.json").read_text())
    papers = {name for name in NAMES if not name.startswith("ours")}
    assert papers == set(known) - {"note"}
    assert all({"paper", "table", "place", "says"} <= set(known[name]) for name in papers)


def test_every_size_has_cases_with_keys_of_their_own():
    for name in NAMES:
        for size in ("tiny", "default", "full"):
            keys = [case.key for case in harness.named(name).cases(size)]
            assert len(keys) == len(set(keys)) > 0, (name, size)


def counted(calls, fail_at=None):
    """An experiment of three cases that counts what it computes."""

    def compute(k):
        if k == fail_at:
            raise KeyboardInterrupt
        calls.append(k)
        return [{"k": k, "value": np.float64(k) / 3}]

    def picture(rows):
        from experiments.pictures import lines

        return lines([{**r, "by": "a"} for r in rows], "k", "value", "by", "title")

    return Experiment(
        title="three",
        protocol="counts",
        cases=lambda _: [Case(f"k={k}", lambda k=k: compute(k)) for k in range(3)],
        table=lambda rows: rows,
        verdict=lambda _: Verdict("ours", "three"),
        picture=picture,
        name="ours-rounded",  # whose script stands for this one's
    )


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    calls = []
    with pytest.raises(KeyboardInterrupt):
        harness.run(counted(calls, fail_at=2), tmp_path)
    seen = []
    record = harness.run(counted(calls), tmp_path, watch=seen.append)
    assert calls == [0, 1, 2]
    assert [row["k"] for row in record.rows] == [0, 1, 2]
    assert seen == [f"case {k + 1} of 3: k={k}" for k in range(3)]
    assert harness.run(counted(calls), tmp_path).rows == record.rows
    assert calls == [0, 1, 2]
    harness.run(counted(calls), tmp_path, again=True)
    assert calls == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("change", [{"script": "another"}, {"version": "0"}, {"size": "full"}])
def test_what_another_script_version_or_size_computed_is_not_used(tmp_path, change):
    calls = []
    harness.run(counted(calls), tmp_path)
    path = tmp_path / "ours-rounded.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    harness.run(counted(calls), tmp_path)
    assert len(calls) == 6


def test_a_damaged_record_is_computed_again(tmp_path):
    calls = []
    harness.run(counted(calls), tmp_path)
    (tmp_path / "ours-rounded.json").write_text("{")
    harness.run(counted(calls), tmp_path)
    assert len(calls) == 6


def test_a_script_is_known_with_what_it_computes_with(monkeypatch, tmp_path):
    """Helpers count, in whatever way they are imported; words, tables and pictures do not."""
    shutil.copytree(harness.HERE, tmp_path / "e", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(harness, "HERE", tmp_path / "e")

    def changed(name, place, old, new):
        experiment = harness.named(name)
        before, path = harness.script(experiment), tmp_path / "e" / place
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return harness.script(experiment) != before

    assert changed("ffu-figure-2", "ratios.py", "GAP = 1e-4", "GAP = 1e-5")
    assert changed("mvg-section-10-2", "baselines/ridge.py", "RIDGE = 1.0", "RIDGE = 2.0")
    assert changed("ffu-table-7", "ffu_table_7.py", "< 0.5", "< 0.4")
    assert not changed("ffu-table-7", "ffu_table_7.py", "With fair coins GM", "With coins GM")
    assert not changed("ours-time", "ours_time.py", "one thread", "a thread")
    assert not changed("mvg-table-3", "mvg_table_3.py", "nothing of the data", "nought of the data")
    assert not changed("ffu-table-5", "tables.py", "Measured over printed", "Over printed")
    assert not changed("mvg-table-3", "mvg_table_3.py", "# Cases of so many", "# So many")


def test_seeds_are_of_the_words_alone():
    assert harness.seed("a", 1) == harness.seed("a", 1)
    assert len({harness.seed("a", 1), harness.seed("a", 2), harness.seed("a1")}) == 3
    assert harness.generator("a").random() == harness.generator("a").random()


def test_intervals_are_students():
    found = harness.mean([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5
    assert found.half == pytest.approx(3.182446 * math.sqrt(5 / 3) / 2, rel=1e-6)
    assert harness.mean([7.0]) == (7.0, 0.0)
    rng = np.random.default_rng(1)
    draws = rng.normal(size=(2000, 5))
    covered = np.mean([abs(m.mean) <= m.half for m in map(harness.mean, draws)])
    assert covered == pytest.approx(0.95, abs=0.02)


def test_numbers_as_tables_show_them():
    shown = [harness.shown(v) for v in (None, 1.0, 0.0, 12345, 12345.6, 1.23456e-7, "a", True)]
    assert shown == ["", "1", "0", "12,345", "12,346", "1.23e-07", "a", "True"]


def test_rows_hold_what_files_can_hold():
    with pytest.raises(TypeError, match="not ndarray"):
        harness.plain(np.zeros(2))


def test_the_page_holds_what_was_run_and_says_what_was_not(runs, tmp_path):
    out, records = runs
    shutil.copytree(out / document.FOLDER, tmp_path / document.FOLDER)
    missing = {"ours-rounded", "ours-time"}
    (tmp_path / document.FOLDER / "ours-time.json").unlink()
    stale = tmp_path / document.FOLDER / "ours-rounded.json"
    stale.write_text(json.dumps(json.loads(stale.read_text()) | {"script": "another"}))
    text = document.write(tmp_path).read_text()
    assert "Not run: ours-rounded, ours-time." in text
    for name in records:
        if name not in missing:
            assert f"\n## {name}: " in text
            assert f"({document.FOLDER}/{name}.svg)" in text
            anchor = text.split(f"[{name}](#")[1].split(")")[0]
            assert anchor.startswith(name)
    assert "numpy" in text
    assert "](errata.md)" not in text  # which is not there
    assert document.write(tmp_path / "empty") is None


def test_the_page_in_the_docs_is_what_its_records_give(tmp_path):
    shutil.copytree(ROOT / "docs" / document.FOLDER, tmp_path / document.FOLDER)
    (tmp_path / "errata.md").touch()
    assert document.write(tmp_path).read_text() == (ROOT / "docs" / document.PAGE).read_text()
    assert "Not run" not in (ROOT / "docs" / document.PAGE).read_text()


class TestCommand:
    def invoke(self, *words):
        return CliRunner().invoke(cli.app, ["reproduce", *words])

    def test_list_names_every_experiment(self):
        listed = self.invoke("--list").stdout
        assert [line.split()[0] for line in listed.splitlines()] == NAMES

    def test_a_name_runs_and_says_where_it_wrote(self, tmp_path):
        run = self.invoke("imgm-composition", "--out", str(tmp_path))
        assert run.exit_code == 0
        assert run.stdout.startswith("imgm-composition (")
        assert (tmp_path / document.PAGE).is_file()
        for ending in ("csv", "md", "svg", "json"):
            assert (tmp_path / document.FOLDER / f"imgm-composition.{ending}").is_file()

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [(("ffu-table-1",), "no experiment is called 'ffu-table-1'"), ((), "--list names them")],
    )
    def test_refusals(self, words, sentence):
        run = self.invoke(*words)
        assert run.exit_code == 2
        assert sentence in run.stderr

    @pytest.mark.parametrize("module", ["altair", "vl_convert"])
    def test_without_the_development_extra_it_says_what_is_missing(
        self, module, tmp_path, monkeypatch
    ):
        monkeypatch.setitem(sys.modules, module, None)
        run = self.invoke("imgm-composition", "--out", str(tmp_path))
        assert run.exit_code == 2
        assert f"the experiments need {module}, of the development extra" in run.stderr

    def test_without_the_source_it_says_where_the_experiments_are(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cli, "__file__", str(tmp_path / "site" / "noiseshape" / "cli.py"))
        monkeypatch.chdir(tmp_path)
        run = self.invoke("--list")
        assert run.exit_code == 2
        assert "are not installed: clone it" in run.stderr


def test_unknown_names_are_one_sentence():
    with pytest.raises(InvalidInput, match="choose from ffu-figure-1"):
        harness.named("x")
