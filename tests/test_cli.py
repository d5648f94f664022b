"""The command line: what it says, and its exit codes, as a person would meet them."""

import gzip
import json
from pathlib import Path

import duckdb
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


def test_a_report_of_a_plan_and_of_a_release(run, book, tmp_path):
    ns.plan(ns.Queries(2).ask("x", np.eye(2), stderr=5)).save("plan.json")
    done = run("plan", "plan.json", "--report", "plan.html", "--ledger", "b.db")
    assert "To be looked at: plan.html" in done.stdout
    assert "this plan" in (tmp_path / "plan.html").read_text()
    released()
    assert "To be looked at: out/report.html" in run("report", "out").stdout
    assert run("report", "out", "--out", "r.html", "--ledger", "b.db").exit_code == 0
    assert "The ledger allows" in (tmp_path / "r.html").read_text()
    assert "The ledger allows" not in (tmp_path / "out" / "report.html").read_text()
    (tmp_path / "out" / "report.html").unlink()
    run("report", "out")
    assert (tmp_path / "out" / "report.html").exists()


def test_what_a_report_refuses(run, book):
    ns.plan(ns.Queries(1).ask("x", [1], stderr=5)).save("plan.json")
    released()
    for words, sentence in (
        (("plan", "plan.json", "--ledger", "b.db"), "--ledger is for the report"),
        (("plan", "plan.json", "--report", "no/where.html"), "cannot be written"),
        (("report", "out", "--ledger", "b.db"), "no part of the published folder"),
        (("report", "out", "--out", "no/where.html"), "cannot be written"),
        (("report", "out", "--out", "r.html", "--delta", "2"), "delta"),
    ):
        result = run(*words)
        assert result.exit_code == 2, words
        assert sentence in result.stderr


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


# --- a spec and a file, from the first command to the last --------------------------------------

SPEC = """\
schema:
  age: {integers: [0, 9], missing: drop}
  sex: [F, M]
  income: {integers: [0, 1000], outside: clamp}
recodes:
  band: {of: age, ranges: {young: [0, 4], old: [5, 9]}}
impossible: ["age < 1 and income > 500"]
table: persons
vintage: v
queries:
  - {name: everybody, total: true, stderr: 5}
  - {name: bands, marginal: [sex, band], stderr: 8}
  - {name: poor, where: "age >= 5 and income <= 500", by: sex, margin: 20}
  - {name: income, sum: income, by: band, stderr: 9000}
"""
SHORT = """\
schema:
  age: {integers: [0, 9]}
  sex: [F, M]
queries:
  - {name: all, total: true, stderr: 10}
"""


def rows(path="people.csv", count=40):
    lines = [f"{i % 10},{'FM'[i % 2]},{i * 37 % 1200}" for i in range(count)]
    Path(path).write_text("\n".join(["age,sex,income", *lines]) + "\n")
    return path


@pytest.fixture
def survey(run, book):
    Path("spec.yaml").write_text(SPEC)
    rows()
    return run


def test_from_a_spec_to_published_files(survey, tmp_path):
    planned = survey("plan", "spec.yaml", "--save", "plan.json")
    assert planned.exit_code == 0
    assert "Impossible, and left out: age < 1 and income > 500." in planned.stdout
    assert "age: rows with a value outside are left out; rows with a missing" in planned.stdout
    assert "Kept in plan.json." in planned.stdout
    told = survey("release", "plan.json", "--data", "people.csv", "--out", "o", "--ledger", "b.db")
    assert told.exit_code == 0, told.stderr
    assert "Paid by b.db" in told.stdout
    assert (tmp_path / "o" / "answers.csv").exists()
    reported = survey("report", "o")
    assert reported.exit_code == 0
    assert "paid by ledger entry 1" in reported.stdout
    assert told.stdout.split("\n\n")[0] in reported.stdout  # the very table of the release
    said = json.loads((tmp_path / "o" / "provenance.json").read_text())["rows"]
    assert said["columns"]["income"].startswith("values outside count as the nearest inside")
    assert said["impossible, and left out"] == ["age < 1 and income > 500"]


def test_what_prints_a_table_prints_json_too(survey):
    planned = json.loads(survey("plan", "spec.yaml", "--json").stdout)
    assert planned["answers"] == len(planned["errors"]) == 12
    assert {row["query"] for row in planned["errors"]} == {"everybody", "bands", "poor", "income"}
    told = survey("release", "spec.yaml", "--data", "people.csv", "--out", "o", "--ledger", "b.db",
                  "--json")  # fmt: skip
    given = json.loads(told.stdout)
    assert given["ledger entry"] == 1
    shown = json.loads(survey("report", "o", "--json").stdout)["answers"]
    for one, two in zip(shown, given["answers"], strict=True):
        assert list(one.values()) == [
            v if isinstance(v, str) else pytest.approx(v, rel=1e-12) for v in two.values()
        ]
    checked = json.loads(survey("check", "spec.yaml", "--json").stdout)
    assert checked["answers"] == 12
    looked = json.loads(survey("check", "spec.yaml", "--data", "people.csv", "--json").stdout)
    assert looked["rows"] == 40
    assert looked["warning"].startswith("FOR THE CUSTODIAN'S EYES ONLY")
    assert [c["outside"] for c in looked["columns"]] == [0, 0, 5]  # incomes above 1,000
    assert json.loads(survey("ledger", "show", "b.db", "--json").stdout)["releases"] == 1
    assert json.loads(survey("ledger", "history", "b.db", "--json").stdout)[0]["what"] == (
        "spec.yaml"
    )
    described = json.loads(survey("schema").stdout)
    assert set(described["properties"]) >= {"schema", "people", "queries", "budget"}


def test_what_does_not_fit_is_told_to_the_custodian_alone(survey):
    looked = survey("check", "spec.yaml", "--data", "people.csv")
    assert looked.exit_code == 0
    assert looked.stdout.startswith("FOR THE CUSTODIAN'S EYES ONLY")
    assert "income: missing 0, unreadable 0, outside 5." in looked.stdout
    told = survey("release", "spec.yaml", "--data", "people.csv", "--out", "o", "--ledger", "b.db")
    assert "outside 5" not in told.stdout + told.stderr


def test_a_spec_says_what_python_says(survey):
    """The same release in the other words: one digest."""
    schema = ns.Schema(
        {
            "age": ns.integers(0, 9, missing="drop"),
            "sex": ["F", "M"],
            "income": ns.integers(0, 1000, outside="clamp"),
        },
        {"band": ns.recode("age", {"young": (0, 4), "old": (5, 9)})},
        ["age < 1 and income > 500"],
    )
    work = ns.Workload(schema, table="persons").total(name="everybody", stderr=5)
    work.marginal("sex", "band", name="bands", stderr=8)
    work.where("age >= 5 and income <= 500", by="sex", name="poor", margin=20)
    work.sum("income", by="band", name="income", stderr=9000)
    planned = json.loads(survey("plan", "spec.yaml", "--json").stdout)
    assert planned["plan"] == ns.plan(work).digest


def test_a_budget_can_be_spent_whole(survey):
    Path("spec.yaml").write_text(SPEC + "budget: {mu: 2.0}\nprioritise: privacy\n")
    assert json.loads(survey("plan", "spec.yaml", "--json").stdout)["cost"]["mu"] == (
        pytest.approx(2, rel=1e-6)
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema: {day: {integers: [0, 99999]}}\nqueries: [{prefixes: day, stderr: 9}]",
         "100,000 answers over 100,001 cells"),
        ("schema: {a: {integers: [0, 299]}, b: {integers: [0, 299]}, c: {integers: [0, 299]}}\n"
         "queries: [{all_marginals: 1, stderr: 9}]", "903 answers over 27,270,901 cells"),
    ],
)  # fmt: skip
def test_what_is_never_written_out_is_checked_as_it_is_planned(run, text, said):
    Path("s.yaml").write_text(text)
    assert f"s.yaml holds together: {said}." in run("check", "s.yaml").stdout
    answers = json.loads(run("check", "s.yaml", "--json").stdout)["answers"]
    assert f"{answers:,} answers; privacy for" in run("plan", "s.yaml").stdout


def test_control_c_after_the_debit_says_that_it_stands(survey, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(ns.Plan, "measured", stop)
    told = survey("release", "spec.yaml", "--data", "people.csv", "--ledger", "b.db", "--out", "o")
    assert (told.exit_code, told.stdout) == (130, "")
    assert "A debit that was made stands" in told.stderr
    assert "--resume 1" in survey("ledger", "history", "b.db").stdout


def test_a_stopped_run_is_continued_and_not_paid_for_twice(survey, monkeypatch):
    words = ("release", "spec.yaml", "--data", "people.csv", "--ledger", "b.db")
    with monkeypatch.context() as broken:
        broken.setattr(ns.Plan, "measured", lambda *args: 1 / 0)
        stopped = survey(*words, "--out", "o")
    assert stopped.exit_code == 1
    assert "Ledger entry 1 stands: --resume 1 continues it" in stopped.stderr
    assert "run of entry 1 was stopped" in survey("ledger", "history", "b.db").stdout
    again = survey(*words, "--out", "o")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "entry 1 paid for this very plan" in again.stderr
    assert len(ns.Ledger.open("b.db").history()) == 1
    assert survey(*words, "--out", "o", "--anew").exit_code == 0
    assert survey(*words, "--out", "o2", "--resume", "1").exit_code == 0
    told = survey("ledger", "history", "b.db").stdout
    assert "stopped" not in told
    assert len(ns.Ledger.open("b.db").history()) == 2


def test_an_older_copy_is_found_without_naming_releases(run, book):
    import shutil

    shutil.copy("b.db", "older.db")
    released()
    shutil.copy("older.db", "b.db")
    found = run("ledger", "verify", "b.db")
    assert found.exit_code == 2
    assert "1 of 1 runs that b.db has no entry for" in found.stderr


def test_columns_and_no_rows_are_released_like_any_other(survey):
    rows("none.csv", 0)
    told = survey("release", "spec.yaml", "--data", "none.csv", "--out", "o", "--ledger", "b.db")
    assert told.exit_code == 0
    assert len(told.stdout.splitlines()) > 12


def test_a_release_without_a_ledger_must_be_said(survey):
    told = survey("release", "spec.yaml", "--data", "people.csv", "--out", "o", "--unrecorded")
    assert told.exit_code == 0
    assert "paid by no ledger" in survey("report", "o").stdout


def test_data_beside_the_spec_and_any_folder(survey, tmp_path, monkeypatch):
    Path("spec.yaml").write_text(SPEC + "data: people.csv\n")
    monkeypatch.chdir(tmp_path.parent)
    folder = tmp_path.name
    told = survey("release", f"{folder}/spec.yaml", "--out", f"{folder}/o", "--ledger",
                  f"{folder}/b.db")  # fmt: skip
    assert told.exit_code == 0, told.stderr


def test_init_begins_a_spec_that_must_be_filled_in(run):
    rows()
    assert run("init", "people.csv", "--out", "spec.yaml").exit_code == 0
    begun = Path("spec.yaml").read_text()
    assert "NEVER FROM THE" in begun
    assert "age: {categories: FILL_IN}   # holds text" in begun  # CSV is text: nothing is sniffed
    assert "A CSV file declares no types" in begun
    refused = run("plan", "spec.yaml")
    assert (refused.exit_code, refused.stdout) == (2, "")
    filled = begun
    for column, domain in (("age", "{integers: [0, 9]}"), ("sex", "[F, M]"),
                           ("income", "{integers: [0, 1000]}")):  # fmt: skip
        filled = filled.replace(f"{column}: {{categories: FILL_IN}}", f"{column}: {domain}")
    Path("spec.yaml").write_text(filled.replace("stderr: FILL_IN", "stderr: 10"))
    assert run("plan", "spec.yaml").exit_code == 0
    assert run("init", "people.csv").stdout.startswith("# What is released")


# --- bad input: one sentence, an exit code, nothing lost, nothing half-made ----------------------


def asking(query, extra=""):
    return f"{SHORT}  - {query}\n{extra}"


def typed(age="{integers: [0, 9]}", sex="[F, M]"):
    return SHORT.replace("{integers: [0, 9]}", age).replace("[F, M]", sex)


BAD_SPECS = [
    # unknown columns
    (asking("{name: x, marginal: [agee], stderr: 1}"), "queries, 2: no column is called 'agee': "
     "did you mean 'age'?"),
    (asking("{name: x, total: true, by: place, stderr: 1}"), "there are age, sex."),
    (SHORT + "recodes: {r: {of: agex, ranges: {a: [0, 9]}}}", "no column is called so"),
    (SHORT + "recodes: {r: {of: age, ranges: {a: [0, 3]}}}", "unmapped, such as 4"),
    (SHORT + "recodes: {r: {of: age, file: none.csv}}", "there is no public file at none.csv"),
    # duplicate names
    (asking("{name: all, marginal: age, stderr: 1}"), "a query named 'all' is asked already"),
    (asking("{total: true, stderr: 1}", "queries: []"), "the key 'queries' stands here twice"),
    # conditions
    (asking("{name: x, where: 'age >= 3 and agee > 4', stderr: 1}"), "(did you mean age?).\n"
     "  age >= 3 and agee > 4\n" + " " * 15 + "^"),
    (asking("{name: x, where: 'age >= 3 and (sex == ''F''', stderr: 1}"), "character 25: expected "
     "a closing parenthesis"),
    (asking("{name: x, where: 'age ~ 3', stderr: 1}"), "age ~ 3\n      ^"),
    (asking("{name: x, where: '', stderr: 1}"), "it is empty"),
    (SHORT + "impossible: ['age < 3 and']", "age < 3 and\n             ^"),
    (SHORT + "impossible: ['age >= 0 or age is missing']", "every cell is impossible"),
    # keys
    (asking("{name: x, marginl: age, stderr: 1}"), "no key is called 'marginl' in queries, 2: did "
     "you mean 'marginal'?"),
    (asking("{name: x, total: true, stder: 1}"), "did you mean 'stderr'?"),
    (SHORT.replace("schema:", "schemas:"), "did you mean 'schema'?"),
    (SHORT.replace("integers", "integer"), "in schema, age: did you mean 'integers'?"),
    (SHORT + "people: {unit: rows, neighbors: replace}", "did you mean 'neighbours'?"),
    (SHORT + "budget: {epsilom: 1, delta: 1e-9}", "did you mean 'epsilon'?"),
    ("schema: {a: [F]}", "the key 'queries' is missing"),
    # targets
    (asking("{name: x, marginal: age}"), "'x' needs one target: variance, stderr, margin or cv"),
    (asking("{name: x, total: true, stderr: 1, margin: 3}"), "got stderr and margin"),
    (asking("{name: x, total: true, stderr: -1}"), "must be above 0, got -1"),
    (asking("{name: x, total: true, stderr: .nan}"), "must be a number"),
    (asking("{name: x, total: true, cv: 0.1}"), "give a public reference table"),
    (asking("{name: x, marginal: age, stderr: [1, 2]}"), "one for each of its 11 rows"),
    # declarations
    (typed(age="{integers: [0, nine]}"), "schema, age, integers, 2: must be a whole number"),
    (typed(age="{integers: [9, 0]}"), "schema, age: integers need low <= high"),
    (typed(age="{integers: [0, 9], outside: stop}"), "must be 'drop', 'clamp' or 'other'"),
    (typed(age="{integers: [0, 9], missing: stop}"), "must be 'own-cell' or 'drop'"),
    (typed(sex="[F, F]"), "schema, sex: categories must differ"),
    (typed(sex="{categories: {file: none.csv, column: a}}"), "no public file at none.csv"),
    (typed(sex="{bins: [3, 2]}"), "edges that increase"),
    (asking("{name: x, prefixes: sex, stderr: 1}"), "sex has no order"),
    (asking("{name: x, ranges: {age: [[3, 1]]}, stderr: 1}"), "must lie within 0 to 9"),
    (asking("{name: x, sum: sex, stderr: 1}"), "only columns of integers can"),
    (asking("{name: x, rows: [[1, 2]], over: [age], stderr: 1}"), "needs 11 columns"),
    (SHORT + "people: {unit: rows, max_rows: 0}", "max_rows must be at least 1"),
    (SHORT + "budget: {epsilon: 1}", "delta"),
    # no spec at all
    ("a: [", "cannot be read at line 1, column 5"),
    ("- 3", "must hold keys such as schema"),
    ("\x00", "is not YAML"),
    # too large for memory
    (typed(age="{integers: [0, 99999999]}") + "  - {all_ranges: age, stderr: 1}",
     "makes 100,000,001 cells, and at most 67,108,864"),
    (typed(age="{integers: [0, 99999999]}") + "  - {prefixes: age, stderr: 1}",
     "makes 100,000,001 cells, and at most 67,108,864"),
    (typed(age="{integers: [0, 299]}", sex="{integers: [0, 299]}\n  b: {integers: [0, 299]}")
     + "  - {marginal: [age, sex, b], stderr: 1}", "would need 14.0 GB for their labels alone"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), BAD_SPECS)
def test_a_spec_that_is_wrong_is_refused_in_one_sentence(run, tmp_path, text, sentence):
    Path("s.yaml").write_text(text)
    for words in (("check", "s.yaml"), ("plan", "s.yaml", "--save", "plan.json")):
        result = run(*words)
        assert result.exit_code == 2, result.stderr
        assert sentence in result.stderr
        assert result.stderr.startswith("noiseshape: ")
        first, *pointer = result.stderr.splitlines()
        assert first[-1] in ".?"  # one sentence, and where it points to
        assert len(pointer) == (2 if "character" in first else 0)
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["s.yaml"]


def half(path):
    with gzip.open(path, "wb") as file:
        file.write(b"age,sex\n" * 1000)
    path.write_bytes(path.read_bytes()[:5])


BAD_DATA = {
    "none.parquet": (lambda path: None, "there is no file 'none.parquet'"),
    "bad.parquet": (lambda path: path.write_bytes(b"PAR1"), "cannot be read as Parquet"),
    "bad.csv": (lambda path: path.write_bytes(b"\xff\xfe\x00"), "must be UTF-8 text"),
    "empty.csv": (lambda path: path.write_bytes(b""), "must be UTF-8 text that begins with names"),
    "twice.csv": (lambda path: path.write_text("age,AGE\n"), "names two columns alike"),
    "cut.csv.gz": (half, "cannot be read"),
    "rows.xlsx": (lambda path: path.touch(), "must be Parquet (.parquet) or text"),
    "lack.csv": (
        lambda path: path.write_text("age,sax\n1,F\n"),
        "no column 'sex', which is declared: it has age, sax",
    ),
    "odd.parquet": (
        lambda path: duckdb.sql(f"copy (select [1] as age, 'F' as sex) to '{path}'"),
        "column 'age' holds values of a type that has no order or text",
    ),
    "dated.parquet": (
        lambda path: duckdb.sql(f"copy (select date '2020-01-01' as age, 'F' as sex) to '{path}'"),
        "column 'age' holds date, and is declared as integers",
    ),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_data_that_cannot_be_read_costs_nothing(run, book, tmp_path, name):
    make, sentence = BAD_DATA[name]
    make(tmp_path / name)
    Path("s.yaml").write_text(SHORT)
    before = sorted(p.name for p in tmp_path.iterdir())
    result = run("release", "s.yaml", "--data", name, "--out", "o", "--ledger", "b.db")
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert book.history() == ()
    assert run("check", "s.yaml", "--data", name).exit_code == 2


RELEASE = ("release", "s.yaml", "--data", "people.csv")
BAD_RELEASES = [
    ((*RELEASE, "--ledger", "b.db"), 2, "--out published"),
    ((*RELEASE, "--out", "o"), 2, "name the ledger that pays: --ledger"),
    ((*RELEASE, "--out", "o", "--ledger", "none.db"), 2, "there is no ledger"),
    ((*RELEASE, "--out", "no/o", "--ledger", "b.db"), 2, "cannot be made"),
    ((*RELEASE, "--out", "s.yaml", "--ledger", "b.db"), 2, "exists"),
    (("release", "s.yaml", "--out", "o", "--ledger", "b.db"), 2, "name the rows"),
    (("release", "none.yaml", "--data", "people.csv", "--out", "o", "--ledger", "b.db"), 2,
     "there is no spec"),
    ((*RELEASE, "--out", "o", "--ledger", "b.db", "--vintage", "w"), 2, "of vintage 'w'"),
    ((*RELEASE, "--out", "o", "--ledger", "b.db", "--resume", "7"), 2, "has no entry 7"),
    ((*RELEASE, "--out", "o", "--ledger", "b.db", "--unrecorded"), 2, "leave one out"),
    (("plan", "s.yaml", "--save", "people.csv"), 2, "must end with .json"),
    (("plan", "s.yaml", "--save", "no/plan.json"), 2, "cannot be written"),
    (("plan", "s.yaml", "--delta", "2"), 2, "below 1"),
    (("plan", "none.json"), 2, "there is no plan"),
    (("report", "none"), 2, "no release file"),
    (("init", "none.csv"), 2, "there is no file"),
    (("init", "people.csv", "--out", "s.yaml"), 2, "exists"),
    (("init", "people.csv", "--out", "no/s.yaml"), 2, "cannot be written"),
    (("ledger", "show", "b.db", "--delta", "-1"), 2, "delta"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "code", "sentence"), BAD_RELEASES)
def test_words_that_cannot_be_done(run, book, tmp_path, words, code, sentence):
    Path("s.yaml").write_text(SHORT)
    rows()
    before = {p.name: p.stat().st_size for p in tmp_path.iterdir()}
    result = run(*words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    after = {p.name: p.stat().st_size for p in tmp_path.iterdir() if p.name != "b.db.runs"}
    assert after == before
    assert book.history() == ()


def test_a_budget_that_does_not_allow_it_is_exit_3(run, book):
    rows()
    Path("s.yaml").write_text(SHORT.replace("10}", "0.5}") + "budget: {mu: 1}\n")
    planned = run("plan", "s.yaml")
    assert (planned.exit_code, planned.stdout) == (3, "")
    assert "relax the targets" in planned.stderr
    Path("s.yaml").write_text(SHORT.replace("10}", "0.5}"))
    refused = run(*RELEASE, "--out", "o", "--ledger", "b.db")
    assert refused.exit_code == 3
    assert "Nothing was spent" in refused.stderr
    assert not Path("o").exists()
    assert book.history() == ()


def test_a_ledger_of_other_people_is_refused_before_anything_is_designed(run, book, monkeypatch):
    rows()
    Path("s.yaml").write_text(SHORT + "people: {unit: income, max_rows: 2}\n")
    monkeypatch.setattr("noiseshape.cli.designed", None)  # would be a fault of ours
    result = run(*RELEASE, "--out", "o", "--ledger", "b.db")
    assert result.exit_code == 2
    assert "ledger create FILE --unit income --neighbours add-remove" in result.stderr


def test_a_fault_of_ours_is_exit_1_and_quotes_nothing(run, monkeypatch):
    def quotes(*_):
        raise RuntimeError("row 7 holds 36")

    Path("s.yaml").write_text(SHORT)
    monkeypatch.setattr("noiseshape.cli.specs.read", quotes)
    result = run("plan", "s.yaml")
    assert result.exit_code == 1
    assert "a fault of ours, RuntimeError at test_cli.py, line" in result.stderr
    assert "36" not in result.stderr.replace("line", "")


def test_a_release_that_fails_after_its_debit_is_exit_1_and_names_its_step(survey, monkeypatch):
    def quotes(self, statement):
        raise RuntimeError("row 7 holds 36")

    monkeypatch.setattr("noiseshape.tables.duck.Duck.rows", quotes)
    told = survey("release", "spec.yaml", "--data", "people.csv", "--out", "o", "--ledger", "b.db")
    assert (told.exit_code, told.stdout) == (1, "")
    assert "failed at the step 'read'" in told.stderr
    assert "row 7" not in told.stderr
    assert not Path("o").exists()
    monkeypatch.undo()


def test_whatever_takes_longer_than_a_second_says_so(survey, monkeypatch):
    monkeypatch.setattr("noiseshape._progress._PATIENCE", 0.001)
    monkeypatch.setattr("noiseshape._progress._EVERY", 0.01)
    release = ("release", "spec.yaml", "--data", "people.csv", "--out", "o", "--ledger", "b.db")
    told = survey(*release)
    assert "Counting rows and adding noise, 0 s" in told.stderr
    assert "Designing the noise, 0 s" in told.stderr
    assert "Counting" not in told.stdout


def test_shell_completion(run):
    asked = {
        "_NOISESHAPE_COMPLETE": "complete_bash",
        "COMP_WORDS": "noiseshape led",
        "COMP_CWORD": "1",
    }
    found = CliRunner().invoke(app, [], env=asked, prog_name="noiseshape")
    assert found.stdout.split() == ["ledger"]
    assert "_NOISESHAPE_COMPLETE" in CliRunner().invoke(
        app, [], env={"_NOISESHAPE_COMPLETE": "source_bash"}, prog_name="noiseshape"
    ).stdout  # fmt: skip


def every_command(group=None, words=()):
    import typer.main

    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        yield (*words, name), command
        if hasattr(command, "commands"):
            yield from every_command(command, (*words, name))


def test_every_command_has_help_with_an_example(run):
    found = dict(every_command())
    named = ["init", "plan", "release", "check", "report", "schema"]
    assert set(found) >= {(name,) for name in named}
    assert set(found) >= {("ledger", name) for name in ("create", "show", "history", "verify")}
    for words, command in found.items():
        told = run(*words, "--help")
        assert told.exit_code == 0
        if not hasattr(command, "commands"):
            assert f"Example: noiseshape {' '.join(words)}" in " ".join(told.stdout.split())


def test_documents_name_every_command():
    told = (Path(__file__).parent.parent / "docs" / "commands.md").read_text()
    for words, command in every_command():
        if not hasattr(command, "commands"):
            assert f"    noiseshape {' '.join(words)}" in told, words
