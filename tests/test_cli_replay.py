"""The whole command line on neighbouring files: only the measured integers may differ.

One person more, whose values fit, or fit nothing, or cannot be read: everything that is printed,
every exit code, every file, its size and its place in the order of writing must be the same.
"""

import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.release.test_replay import DERIVED, public, recorder, size
from typer.testing import CliRunner

import noiseshape as ns
from noiseshape.cli import app

SPEC = """\
schema:
  age: {integers: [0, 9], missing: drop}
  sex: {categories: [F, M], outside: other}
  income: {integers: [0, 1000], outside: clamp}
  born: {dates: [2000, 2004]}
recodes:
  band: {of: age, ranges: {young: [0, 4], old: [5, 9]}}
impossible: ["age < 1 and income > 500"]
table: persons
people: {unit: id, max_rows: 2}
queries:
  - {name: everybody, total: true, stderr: 5}
  - {name: bands, marginal: [sex, band], stderr: 8}
  - {name: recent, where: "born >= 2002", by: sex, stderr: 8}
  - {name: income, sum: income, by: band, stderr: 9000}
data: people.csv
"""
NAMES = ["id", "age", "sex", "income", "born"]
ROWS = [[f"p{i // 2}", i % 10, "FM"[i % 2], i * 37 % 1200, 2000 + i % 5] for i in range(40)]
PERSONS = {
    "fits": [["new", 3, "F", 500, 2003]],
    "has more rows than count": [["new", i, "F", 500, 2003] for i in range(5)],
    "fits nothing": [["new", 99, "X", -7, 1950]],
    "cannot be read": [["new", "forty", "", "1e999", "soon"]],
    "is impossible": [["new", 0, "F", 900, 2000]],
    "has no id": [["", 3, "F", 500, 2003]],
    "breaks lines": [['n"e,w', "3\n4", 'F"', "\t", "2003-13"]],
    "is very long": [["new" * 3000, 3, "F" * 70_000, 500, 2003]],
}

assert recorder  # a fixture: no noise, a stopped clock, no nonce


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """How long something took is told on standard error, and not promised to be hidden."""
    monkeypatch.setattr("noiseshape._progress._PATIENCE", 1e6)


def written(rows, path):
    """Write rows as CSV, or as Parquet with a type for each column."""
    if path.suffix == ".csv":
        quoted = [",".join('"' + str(v).replace('"', '""') + '"' for v in row) for row in rows]
        path.write_text("\n".join([",".join(NAMES), *quoted]) + "\n", newline="")
        return
    kinds = [str, int, str, float, str]
    held = {n: [typed(row[i], kinds[i]) for row in rows] for i, n in enumerate(NAMES)}
    pq.write_table(pa.table(held), path)


def typed(value, kind):
    """Return a value of one type; what cannot be one is missing, as it must be in such a file."""
    try:
        return kind(value)
    except ValueError:
        return None


def seen(folder, rows, name):
    """Everything that an onlooker sees of all the commands, one after the other."""
    folder.mkdir()
    before = Path.cwd()
    os.chdir(folder)
    try:
        data = Path(name)
        written(rows, data)
        Path("spec.yaml").write_text(SPEC)
        said = []
        for words in (
            f"init {data} --out begun.yaml",
            "check spec.yaml",
            "plan spec.yaml --save plan.json",
            "ledger create b.db --mu 9 --unit id --max-rows 2",
            f"release plan.json --data {data} --out text --ledger b.db",
            f"release spec.yaml --data {data} --out o --ledger b.db --json",
            "report o --json",
            "ledger show b.db --json",
            "ledger history b.db --json",
            "ledger verify b.db --release o --release text",
        ):
            told = CliRunner().invoke(app, words.split())
            said.append((words, told.exit_code, told.stderr, without_answers(told.stdout)))
        data.unlink()
    finally:
        os.chdir(before)
    everything = sorted((str(p.relative_to(folder)), p.stat().st_mode) for p in folder.rglob("*"))
    paths = [p for p in folder.rglob("*") if p.is_file()]
    order = [str(p.relative_to(folder)) for p in sorted(paths, key=lambda p: p.stat().st_mtime_ns)]
    files = {str(p.relative_to(folder)): shown(p, folder) for p in paths}
    sizes = {
        str(p.relative_to(folder)): size(p) - len(timed(p))
        for p in paths
        if p.suffix not in (".parquet", ".html")
    }
    return json.loads(json.dumps([said, everything, order, files, sizes]))


def shown(path, folder):
    text = public(path, folder) if path.suffix != ".yaml" else path.read_text()
    # What the clock said of the design, before any row was read; how well measured integers pack.
    return re.sub(r'"(seconds|data)": [0-9.e-]+', "", text) if isinstance(text, str) else text


def timed(path):
    """Return the digits in a file that tell how long the design took."""
    if path.suffix != ".json":
        return ""
    return "".join(re.findall(r'"seconds": ([0-9.e-]+)', path.read_text()))


def without_answers(text):
    """Return what was printed without the answers, and how wide they are."""
    try:
        told = json.loads(text)
    except ValueError:
        if text.startswith("query"):
            table, _, rest = text.partition("\n\n")
            return [line.split()[0] for line in table.splitlines()], rest
        return text
    for row in told["answers"] if isinstance(told, dict) and "answers" in told else []:
        for key in DERIVED:
            row.pop(key)
    return told


def difference(one, two, at=""):
    """Return where two records differ, for whoever must mend it."""
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        return [d for k in one for d in difference(one[k], two[k], f"{at}/{k}")]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        keys = range(len(one))
        return [d for k in keys for d in difference(one[k], two[k], f"{at}/{k}")]
    return [] if one == two else [f"{at}: {str(one)[:300]} | {str(two)[:300]}"]


def one_more(person):
    return ROWS[:17] + PERSONS[person] + ROWS[17:]


@pytest.mark.parametrize("person", PERSONS)
def test_nothing_tells_whether_somebody_is_there(recorder, tmp_path, person):
    one, two = (
        seen(tmp_path / "1", ROWS, "people.csv"),
        seen(tmp_path / "2", one_more(person), "people.csv"),
    )
    assert [code for _, code, *_ in one[0]] == [0] * 10, one[0]
    assert not (told := difference(one, two)), "\n".join(told)


def test_nor_in_a_parquet_file(recorder, tmp_path):
    one, two = (
        seen(tmp_path / str(i), rows, "people.parquet")
        for i, rows in enumerate([ROWS, one_more("cannot be read")])
    )
    assert [code for _, code, *_ in one[0]] == [0] * 10, one[0]
    assert not (told := difference(one, two)), "\n".join(told)


def tells(count):
    print(f"{count} rows counted")


def stops(count):
    if count % 2:
        raise ns.InvalidInput("age is outside its domain")


def leaves_a_file(count):
    Path("cache" + "x" * (count % 2)).touch()


def writes_the_spec_again(count):
    if count % 2:
        Path("spec.yaml").touch()


@pytest.mark.parametrize("leak", [tells, stops, leaves_a_file, writes_the_spec_again])
def test_a_planted_leak_is_caught(recorder, tmp_path, monkeypatch, leak):
    from noiseshape.tables.duck import Duck

    honest = Duck.rows

    def leaky(self, statement):
        found = list(honest(self, statement))
        leak(sum(row[4] for row in found))
        return found

    monkeypatch.setattr(Duck, "rows", leaky)
    one, two = (
        seen(tmp_path / "1", ROWS, "people.csv"),
        seen(tmp_path / "2", one_more("fits"), "people.csv"),
    )
    assert difference(one, two)
