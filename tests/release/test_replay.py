"""Replay on neighbouring data: nothing but the measured integers may differ.

The noise is replaced by a recorder that adds nothing, so that whatever differs between two runs
came from the data. Everything that an onlooker could see is written down: what was printed and
raised, which files there are, in which order they were made, their sizes, and their contents
with the measured integers (and what is computed from them) taken out.
"""

import contextlib
import csv
import io
import json
import logging
import re
import traceback
import warnings
from dataclasses import replace

import numpy as np
import pytest
from tests.release.kinds import KINDS, planned

import noiseshape as ns
import noiseshape.release.measurement as door
from noiseshape import Budget, Ledger, Queries
from noiseshape.privacy import ledger as ledger_module

DERIVED = ("value", "low", "high")
SIMULATED = "simulated from the release"  # errors that follow from what was measured
ERROR = re.compile(r'(?<=stderr": )[^,\n}]+')
DRAWN = re.compile(r"<!--y-->.*?<!--/y-->", re.DOTALL)  # what the report draws from them


@pytest.fixture(scope="module")
def plan():
    return ns.plan(
        Queries(4).ask("up to", np.tril(np.ones((4, 4))), stderr=3).ask("c", np.eye(4), stderr=5)
    )


@pytest.fixture
def recorder(monkeypatch):
    """No noise, a stopped clock and no nonce: what is left to differ is the data's."""
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))
    monkeypatch.setattr(ledger_module, "_utc_now", lambda: "2026-01-01T00:00:00+00:00")
    monkeypatch.setattr(ledger_module.secrets, "token_hex", lambda n=32: "0" * 2 * n)


class Source:
    """Rows that are read when they are asked for, as an engine does."""

    def __init__(self, values, read=None):
        self.values, self._read = np.array(values), read

    def cells(self):
        return len(self.values)

    def read(self):
        return self._read(self.values) if self._read else self.values


@contextlib.contextmanager
def listening(said):
    """Whatever is printed, warned or logged, at any level."""
    handler, root = logging.StreamHandler(said), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    try:
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            warnings.catch_warnings(record=True, action="always") as warned,
        ):
            yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
    said.writelines(str(warning.message) for warning in warned)


def seen(plan, source, folder):
    """Everything that an onlooker sees of one release."""
    folder.mkdir()
    said, raised = io.StringIO(), ""
    ledger = Ledger.create(folder / "b.db", Budget(mu=9.0), people=plan.people)
    with listening(said):
        try:
            release = plan.release(source, ledger=ledger, out=folder / "out")
            said.write(repr(release))
        except Exception as error:
            raised = "".join(traceback.format_exception(error))
    held = [*map(repr, ledger.history()), repr(ledger.remaining())]
    everything = sorted((str(p.relative_to(folder)), p.stat().st_mode) for p in folder.rglob("*"))
    paths = [p for p in folder.rglob("*") if p.is_file()]
    order = sorted(paths, key=lambda p: p.stat().st_mtime_ns)
    named = {str(p.relative_to(folder)): p for p in order}
    files = {name: public(p, folder) for name, p in named.items()}
    # Numbers in Parquet are compressed, as well as they are.
    sizes = {name: size(p) for name, p in named.items() if p.suffix != ".parquet"}
    text = said.getvalue() + raised
    return text.replace(str(folder), "FOLDER"), list(named), files, sizes, everything, held


def size(path):
    """A file's size, but for the digits of the measured integers and what follows from them."""
    digits = []
    if path.name == "answers.csv":
        with path.open() as file:
            digits = [row[k] for row in csv.DictReader(file) for k in derived(path.parent)]
    elif path.name in ("release.json", "measurement.json"):
        digits = json.loads(path.read_text())["content"]["values"]["data"]
    elif path.name == "provenance.json" and SIMULATED in path.read_text():
        digits = ERROR.findall(path.read_text())
    elif path.name == "report.html":
        digits = DRAWN.findall(path.read_text())
    return path.stat().st_size - sum(len(text.encode()) for text in digits)


def derived(folder):
    """The columns of answers that follow from the measured integers."""
    simulated = SIMULATED in (folder / "provenance.json").read_text()
    return (*DERIVED, "stderr") if simulated else DERIVED


def public(path, folder):
    """A file's contents without the measured integers and what follows from them."""
    if path.name == "answers.csv":
        gone = derived(path.parent)
        with path.open() as file:
            return [[v for k, v in row.items() if k not in gone] for row in csv.DictReader(file)]
    if path.name == "report.html":
        return DRAWN.sub("", path.read_text())
    if path.suffix == ".json":
        text = path.read_text()
        content = json.loads(ERROR.sub("0", text) if SIMULATED in text else text)
        inner = content.get("content", content)
        # Their number and order stay; only the integers go, listed or packed.
        if "values" in inner:
            data = inner["values"]["data"]
            inner["values"]["data"] = len(data) if isinstance(data, list) else None
        inner.pop("files", None)  # digests of answers
        content.pop("sha256", None)
        content.pop("values sha256", None)
        return json.dumps(content, sort_keys=True).replace(str(folder), "FOLDER")
    if path.name.startswith("answers-"):  # row by row: nothing but answers
        import pyarrow.parquet as parquet

        read = parquet.read_metadata(path)
        return [read.num_rows, read.num_row_groups, str(parquet.read_schema(path))]
    if path.name == "answers.parquet":
        import pyarrow.parquet as parquet

        table = parquet.read_table(path).drop_columns(list(derived(path.parent)))
        return json.dumps([str(parquet.read_schema(path)), table.to_pylist()])
    return path.stat().st_size  # the ledger, its log, the lock


NEIGHBOURS = [
    ([5, 6, 7, 8], [5, 6, 8, 8]),
    ([5, 0, 7, 8], [5, 1, 7, 8]),
    ([15, 61, 79, 38], [15, 61, 79, 39]),
]


@pytest.mark.parametrize(("one", "two"), NEIGHBOURS)
def test_nothing_but_the_measured_integers_differs(plan, recorder, tmp_path, one, two):
    assert seen(plan, Source(one), tmp_path / "1") == seen(plan, Source(two), tmp_path / "2")


@pytest.mark.parametrize("name", list(KINDS))
def test_nor_for_any_kind_of_plan(name, recorder, tmp_path):
    kind = KINDS[name]
    one = seen(planned(name), kind.one(), tmp_path / "1")
    two = seen(planned(name), kind.two(), tmp_path / "2")
    assert one == two
    assert not one[0].count("Traceback")


def fails(values):
    raise ValueError(f"row {values.tolist()} does not fit")


def wrong_length(values):
    return values[: int(values.sum() % 3)]


@pytest.mark.parametrize("read", [fails, wrong_length])
def test_failures_do_not_differ_either(plan, recorder, tmp_path, read):
    one, two = (seen(plan, Source(v, read), tmp_path / str(v[2])) for v in NEIGHBOURS[0])
    assert one == two
    assert "failed at the step" in one[0]


def quotes(values):
    warnings.warn(f"{values.sum()} people", stacklevel=1)
    return values


def test_what_an_engine_warns_of_is_not_heard(plan, recorder, tmp_path):
    one, two = (seen(plan, Source(v, quotes), tmp_path / str(v[2])) for v in NEIGHBOURS[0])
    assert one == two


def says(values):
    print("counted", values.sum(), "people")
    return values


def test_a_planted_leak_in_what_is_printed_is_caught(plan, recorder, tmp_path):
    one, two = (seen(plan, Source(v, says), tmp_path / str(v[2])) for v in NEIGHBOURS[0])
    assert one != two


def warns(count):
    warnings.warn(f"{count} people", stacklevel=1)


def logs(count):
    logging.getLogger("noiseshape").debug("%s people", count)


@pytest.mark.parametrize("leak", [warns, logs])
def test_a_planted_leak_in_what_is_warned_or_logged_is_caught(
    plan, recorder, tmp_path, monkeypatch, leak
):
    import noiseshape.release.publication as publication

    honest = publication.provenance

    def leaky(release):
        leak(int(release.answers[3]))  # exact: nothing was added
        return honest(release)

    monkeypatch.setattr(publication, "provenance", leaky)
    one, two = (seen(plan, Source(v), tmp_path / str(v[2])) for v in NEIGHBOURS[0])
    assert one != two


def test_a_planted_leak_in_a_file_is_caught(plan, recorder, tmp_path, monkeypatch):
    import noiseshape.release.publication as publication

    honest = publication.provenance

    def leaky(release):
        return honest(release) | {"records": int(release.answers[3])}  # exact: nothing was added

    monkeypatch.setattr(publication, "provenance", leaky)
    one, two = (seen(plan, Source(v), tmp_path / str(v[2])) for v in NEIGHBOURS[0])
    assert one != two


def test_a_planted_leak_in_the_report_is_caught(plan, recorder, tmp_path, monkeypatch):
    import noiseshape.report.compose as compose

    def leaky(release, subject):
        return f"<p>{release.answers[3]:.0f} people</p>"  # exact: nothing was added

    monkeypatch.setattr(compose, "_cite", leaky)
    one, two = (seen(plan, Source(v), tmp_path / str(v[2])) for v in NEIGHBOURS[0])
    assert one != two


def test_the_report_draws_what_was_measured_and_marks_it(plan, tmp_path):
    """A pattern that matches nothing would find nothing to differ."""
    plan.release([5, 6, 7, 8], unrecorded=True, out=tmp_path / "out")
    marked = DRAWN.findall((tmp_path / "out" / "report.html").read_text())
    assert sum("<rect" in part for part in marked) == 2
    assert len(marked) > 8 * len(DERIVED)


def test_a_planted_leak_in_the_order_of_files_is_caught(plan, recorder, tmp_path, monkeypatch):
    import noiseshape.release.publication as publication

    honest = publication.publish

    def leaky(release, out):
        honest(release, out)
        if release.answers[3] > 26:
            (out / "answers.csv").touch()  # the last to be written, and not the first

    monkeypatch.setattr("noiseshape.release.run.publish", leaky)
    one, two = (seen(plan, Source(v), tmp_path / str(v[2])) for v in NEIGHBOURS[0])
    assert one != two


@pytest.mark.parametrize("name", ["provenance.json", "release.json", "report.html"])
def test_a_planted_leak_in_a_size_is_caught(plan, recorder, tmp_path, monkeypatch, name):
    import noiseshape.release.publication as publication

    honest = publication.publish

    def leaky(release, out):
        honest(release, out)
        path = out / name
        path.write_text(path.read_text() + " " * int(release.answers[3] > 26))

    monkeypatch.setattr("noiseshape.release.run.publish", leaky)
    one, two = (seen(plan, Source(v), tmp_path / str(v[2])) for v in NEIGHBOURS[0])
    assert one != two


@pytest.mark.parametrize(
    "leak",
    [
        lambda out, book: (out / "large").mkdir(),
        lambda out, book: (out / "answers.csv").chmod(0o600),
        lambda out, book: book.debit(replace(book.history()[0].charge, what="many people")),
    ],
)
def test_a_planted_leak_in_folders_modes_or_the_ledger_is_caught(
    plan, recorder, tmp_path, monkeypatch, leak
):
    import noiseshape.release.publication as publication

    honest = publication.publish

    def leaky(release, out):
        honest(release, out)
        if release.answers[3] > 26:
            leak(out, Ledger.open(out.parent / "b.db"))

    monkeypatch.setattr("noiseshape.release.run.publish", leaky)
    one, two = (seen(plan, Source(v), tmp_path / str(v[2])) for v in NEIGHBOURS[0])
    assert one != two


def test_a_planted_leak_in_which_files_there_are_is_caught(plan, recorder, tmp_path, monkeypatch):
    import noiseshape.release.publication as publication

    honest = publication.publish

    def leaky(release, out):
        honest(release, out)
        if release.answers[3] > 26:
            (out / "large").touch()

    monkeypatch.setattr("noiseshape.release.run.publish", leaky)
    one, two = (seen(plan, Source(v), tmp_path / str(v[2])) for v in NEIGHBOURS[0])
    assert one != two
