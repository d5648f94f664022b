"""The command line: what it says, and its exit codes, as a person would meet them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import noiseshape as ns
from noiseshape.cli import _left, app


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*words):
        return CliRunner().invoke(app, list(words))

    return invoke


@pytest.fixture
def book(run):
    made = run("ledger", "create", "b.db", "--epsilon", "4", "--delta", "1e-9", "--vintage", "v")
    assert made.exit_code == 0
    assert "epsilon=4, delta=1e-09" in made.stdout
    return ns.Ledger.open("b.db")


def released(out="out"):
    plan = ns.plan(ns.Queries(2).ask("x", np.eye(2), stderr=5))
    return plan.release([3, 4], ledger="b.db", who="ana", what="first", out=out)


def test_the_version(run):
    assert run("--version").stdout.strip() == ns.__version__


def test_show_history_and_verify(run, book):
    assert "nothing was released yet" in run("ledger", "history", "b.db").stdout
    release = released()
    shown = json.loads(run("ledger", "show", "b.db", "--json").stdout)
    assert shown["spent"]["mu"] == release.plan.cost.mu
    assert shown["head"] == release.stamp.hash
    (entry,) = json.loads(run("ledger", "history", "b.db", "--json").stdout)
    assert (entry["who"], entry["what"], entry["plan"]) == ("ana", "first", release.plan.digest)
    assert "first" in run("ledger", "history", "b.db").stdout
    assert "left" in run("ledger", "show", "b.db").stdout
    verified = run("ledger", "verify", "b.db", "--release", "out")
    assert verified.exit_code == 0
    assert "paid by entry 1" in verified.stdout


def test_a_restored_older_copy_is_found(run, book, tmp_path):
    import shutil

    shutil.copy("b.db", "older.db")
    released()
    found = run("ledger", "verify", "older.db", "--release", "out")
    assert found.exit_code == 2
    assert "older copy" in found.stderr


def test_two_measurements_for_one_entry_are_found(run, book, tmp_path):
    """As a copy makes them that was taken between debit and measurement, and was continued."""
    import shutil

    release = released()
    (kept,) = (tmp_path / "b.db.runs").iterdir()
    (kept / "measurement.json").unlink()
    (kept / "kept").unlink()
    plan = release.plan
    plan.release([3, 4], ledger="b.db", out="again", resume=1)
    shutil.copytree("out", "copy")
    named = (word for folder in ("out", "copy", "again") for word in ("--release", folder))
    found = run("ledger", "verify", "b.db", *named)
    assert found.exit_code == 2
    assert "out and again are two measurements for ledger entry 1" in found.stderr
    assert run("ledger", "verify", "b.db", "--release", "out", "--release", "copy").exit_code == 0


def test_a_plan_says_its_k_however_close_to_1(run):
    plan = ns.plan(ns.Queries(1).ask("x", [1], stderr=5))
    plan.within(ns.Budget(mu=plan.cost.mu * 0.998)).save("plan.json")
    assert "Every variance is at most 1.00401 times its target." in run("plan", "plan.json").stdout


def test_a_ledger_that_cannot_be_read_does_not_fail_what_is_published(run, book, tmp_path):
    """As on a disk that the release itself made full."""
    assert "Remaining" in _left(tmp_path / "b.db")
    (tmp_path / "b.db").rename(tmp_path / "gone.db")
    assert "cannot be read now" in _left(tmp_path / "b.db")


def test_an_unrecorded_release_was_paid_by_none(run, book):
    plan = ns.plan(ns.Queries(1).ask("x", [1], stderr=5))
    plan.release([3], unrecorded=True, out="free")
    assert run("ledger", "verify", "b.db", "--release", "free").exit_code == 2


BAD = [
    (("ledger", "show", "none.db"), "there is no ledger"),
    (("ledger", "create", "b.db", "--mu", "1"), "exists"),
    (("ledger", "create", "c.db"), "got nothing"),
    (("ledger", "create", "c.db", "--mu", "0"), "above 0"),
    (("ledger", "create", "c.db", "--mu", "1", "--neighbours", "swap"), "add-remove"),
    (("ledger", "create", "no/where/c.db", "--mu", "1"), "cannot be made"),
    (("ledger", "verify", "b.db", "--release", "nowhere"), "no release file"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD)
def test_refusals_are_one_sentence_and_exit_2(run, book, tmp_path, words, sentence):
    result = run(*words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.startswith("noiseshape: ")
    assert "Traceback" not in result.stderr + result.stdout
    assert not (tmp_path / "c.db").exists()


def test_every_command_has_help(run):
    for words in (
        (),
        ("ledger",),
        *(("ledger", c) for c in ("create", "show", "history", "verify")),
    ):
        assert run(*words, "--help").exit_code == 0
