"""Matrices that memory does not hold, measured row by row: chunks, kills, cuts and copies."""

import os
import signal
import sys
import tempfile
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noiseshape as ns
import noiseshape.release.measurement as door
from noiseshape.matrices.streams import Cut, _regrouped, _stretches, streamed
from noiseshape.release import chunks, publication, rowsplan
from noiseshape.release.chunks import Chunks

BOUNDS = {"x": (0, 1), "y": (-2, 2)}
N = 53


def made(n=N, rows=10, stderr=(0.05, 0.2), **options):
    row = ns.identity(bounds=BOUNDS, n=1)
    return ns.directional(row, stderr=list(stderr)).row_by_row(n, rows=rows, **options)


def people(n=N):
    """Rows with missing and infinite values, and some beyond the bounds."""
    i = np.arange(n)
    x = np.where(i % 9 == 4, np.nan, (i * 37 % 101) / 80 - 0.1)
    return pa.table({"other": i, "y": np.where(i % 13 == 5, np.inf, i % 7 - 3.0), "x": x})


def array(table):
    return np.column_stack([table[name].to_numpy() for name in BOUNDS])


@pytest.fixture
def silent(monkeypatch):
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))


def book(folder, plan, times=1.0):
    return ns.Ledger.create(folder / "b.db", ns.Budget(mu=plan.cost.mu * times), people=plan.people)


def answers(release):
    return np.concatenate(list(release))


def parquets(table, folder):
    for i, part in enumerate((table.slice(0, 17), table.slice(17))):
        pq.write_table(part, folder / f"part{i}.parquet", row_group_size=7)
    return str(folder / "part*.parquet")


def csv(table, folder):
    pa.csv.write_csv(table, folder / "rows.csv")
    return str(folder / "rows.csv")


SOURCES = {
    "parquet": parquets,
    "csv": csv,
    "array": lambda table, _: array(table),
    "arrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table).lazy(),
}


@pytest.mark.parametrize("source", list(SOURCES))
def test_chunks_are_the_matrix(source, silent, tmp_path):
    """Without noise: what the plan of the whole matrix gives, wherever the rows are."""
    whole = ns.directional(ns.identity(bounds=BOUNDS, n=N), stderr=[[0.05, 0.2]] * N)
    expected = whole.release(array(people()), unrecorded=True)
    plan = made()
    release = plan.release(SOURCES[source](people(), tmp_path), unrecorded=True)
    assert [len(part) for part in release] == [10] * 5 + [3]
    assert np.array_equal(answers(release), expected.answer)
    assert np.allclose(release.stderr, expected.stderr[0], rtol=1e-6)
    assert (plan.cost.mu, plan.count) == (pytest.approx(whole.cost.mu, rel=1e-6), whole.count)


@pytest.mark.parametrize("n", [40, 53, 61])
def test_there_are_as_many_rows_as_were_declared(n, silent, tmp_path):
    release = made(n).release(parquets(people(), tmp_path), unrecorded=True, out=tmp_path / "out")
    found = answers(release)
    assert found.shape == (n, 2)
    assert np.array_equal(found[:40], answers(made().release(people(), unrecorded=True))[:40])
    assert np.all(found[N:] == [0.5, 0])  # the middle of the bounds, as what is no number
    assert len(list((tmp_path / "out").glob("answers-*.parquet"))) == -(-n // 10)


PLANS = {
    "directional": lambda: made(),
    "product": lambda: ns.kronecker(
        ns.identity(bounds=BOUNDS, n=2), columns=[[2, 1], [1, 3]], stderr=0.4
    ).row_by_row(N, rows=10),
    "features": lambda: ns.isotropic(ns.features(m=2, clip=1.5, n=1), stderr=0.3).row_by_row(
        N, rows=10
    ),
}


@pytest.mark.parametrize("name", list(PLANS))
def test_one_row_costs_what_is_paid_and_no_chunk_more(name, monkeypatch):
    """From rows to integers: one person changes one row of one chunk, by at most the cost."""
    plan = PLANS[name]()
    X = np.clip(np.nan_to_num(array(people())), -1, 1)
    Y = X.copy()
    Y[31] = -3 * np.sign(X[31] + 0.1)
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))
    one, two = (plan.release(data, unrecorded=True) for data in (X, Y))
    apart = []
    for number in range(plan.chunks):
        sigma = plan.of(plan.length(number)).strategy.sigma
        pairs = zip(one.kept.read(number), two.kept.read(number), sigma, strict=True)
        apart.append(sum(((int(a) - int(b)) / Fraction(float(s))) ** 2 for a, b, s in pairs))
    assert [at for at, far in enumerate(apart) if far] == [3]
    assert 0 < apart[3] <= plan.cost.mu_squared


@pytest.mark.parametrize("name", list(PLANS))
def test_errors_are_as_stated(name):
    """Over 4,000 rows: 6 standard errors of a variance are a false alarm in 10^8."""
    few = PLANS[name]().few
    plan = few.row_by_row(4000, rows=900)
    release = plan.release(np.zeros((4000, 2)), unrecorded=True)
    true = np.array([0, 0]) if name == "features" else np.array([0.0, 0.0])
    z = (answers(release) - true) / release.stderr
    assert np.abs(z.mean(axis=0)).max() * 4000**0.5 < 6
    assert np.abs((z**2).mean(axis=0) - 1).max() * 2000**0.5 < 6
    assert np.abs(((z / 0.8) ** 2).mean(axis=0) - 1).min() * 2000**0.5 > 6  # a planted error


def killed_after(done, plan, folder, **options):
    """Run a release in a child that dies, without any cleaning up, after so many chunks."""
    child = os.fork()
    if child == 0:

        def dies(state):
            if state.startswith(f"{done} of"):
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            plan.release(str(folder / "part*.parquet"), ledger=folder / "b.db",
                         out=folder / "out", progress=dies, **options)  # fmt: skip
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    return {p.name: p.read_bytes() for p in (folder / "b.db.runs").glob("*/chunks/*.y")}


def test_a_run_that_is_killed_goes_on_with_what_is_missing(tmp_path, monkeypatch):
    plan = made()
    data = parquets(people(), tmp_path)
    ledger = book(tmp_path, plan)
    kept = killed_after(2, plan, tmp_path)
    assert len(kept) == 2
    more = killed_after(5, plan, tmp_path, resume=1)
    assert len(more) == 5
    assert kept.items() <= more.items()
    drawn = []
    honest = door.rounded_gaussian
    monkeypatch.setattr(
        door, "rounded_gaussian", lambda sigma: drawn.append(len(sigma)) or honest(sigma)
    )
    told = []
    release = plan.release(
        data, ledger=ledger, out=tmp_path / "out", resume=1, progress=told.append
    )
    assert told == ["6 of 6 chunks"]
    assert drawn == [3 * 2]  # of the last chunk alone
    assert {p.name: p.read_bytes() for p in release.kept.path.glob("*.y")}.items() >= more.items()
    assert len(ledger.history()) == 1
    again = plan.release(data, ledger=ledger, out=tmp_path / "again", resume=1)
    assert drawn == [6]
    for one in (tmp_path / "out").iterdir():
        assert one.read_bytes() == (tmp_path / "again" / one.name).read_bytes()
    back = ns.read(tmp_path / "out")
    back.verify(ledger)
    assert np.array_equal(answers(back), answers(again))


DISK = {"open", "fsync", "link", "write", "close", "unlink", "mkdir", "replace"}


@pytest.fixture
def memory(tmp_path):
    """A place in memory, if there is one: a process that is killed loses nothing it wrote."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        dir=place if os.access(place, os.W_OK) else tmp_path
    ) as folder:
        yield Path(folder)


def test_killed_at_every_moment_of_keeping(memory, monkeypatch):
    """Whatever is there by then under a chunk's name is there, to the byte, in the end."""
    monkeypatch.setattr(publication, "_report", lambda release: "drawn")
    plan, X = made(3, rows=2), np.zeros((3, 2))
    states = set()
    for n in range(1, 1000):
        folder = memory / str(n)
        folder.mkdir()
        ledger = book(folder, plan)
        child = os.fork()
        if child == 0:
            moments = 0

            def watch(frame, event, argument, n=n):
                nonlocal moments
                if frame.f_code.co_filename == chunks.__file__ and (
                    not event.startswith("c_") or getattr(argument, "__name__", "") in DISK
                ):
                    moments += 1
                    if moments == n:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.setprofile(watch)
            try:
                plan.release(X, ledger=ledger, out=folder / "out")
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            break
        kept = {p.name: p.read_bytes() for p in folder.glob("b.db.runs/*/chunks/*.y")}
        states.add(len(kept))
        if not list(folder.glob("b.db.runs/*/lock")):
            continue  # spent, and nothing was measured: as for every plan
        release = plan.release(X, ledger=ledger, resume=1)
        now = {p.name: p.read_bytes() for p in release.kept.path.glob("*.y")}
        assert kept.items() <= now.items(), "a chunk was measured twice"
        assert len(ledger.history()) == 1
        assert not list(release.kept.path.glob(".*.partial"))
    assert states == {0, 1, 2}
    assert n > 40


def test_other_files_than_the_run_began_with_are_refused(tmp_path):
    plan, ledger = made(), None
    data = parquets(people(), tmp_path)
    ledger = book(tmp_path, plan)
    killed_after(2, plan, tmp_path)
    pq.write_table(people().slice(0, 18), tmp_path / "part0.parquet")
    with pytest.raises(ns.InvalidInput, match="some rows would be measured twice"):
        plan.release(data, ledger=ledger, out=tmp_path / "out", resume=1)
    with pytest.raises(ns.InvalidInput, match="some rows would be measured twice"):
        plan.release(array(people()), ledger=ledger, out=tmp_path / "out", resume=1)
    assert not (tmp_path / "out").exists()


def test_of_many_draws_for_a_chunk_one_is_kept(tmp_path):
    """Processes that race to keep what each of them drew: all of them then read the same."""
    kept = Chunks(tmp_path, "entry", 4, 4)
    gate_read, gate_write = os.pipe()
    children = []
    for i in range(12):
        child = os.fork()
        if child == 0:
            try:
                os.close(gate_write)
                os.read(gate_read, 1)
                kept.keep(0, np.arange(4) + 10 * i)
                (tmp_path / f"saw{i}").write_text(str(kept.read(0).tolist()))
            finally:
                os._exit(0)
        children.append(child)
    os.close(gate_read)
    os.close(gate_write)
    for child in children:
        os.waitpid(child, 0)
    saw = {(tmp_path / f"saw{i}").read_text() for i in range(12)}
    assert saw == {str(kept.read(0).tolist())}
    assert not list(tmp_path.glob(".*"))


def test_integers_beyond_64_bits_are_kept_too(tmp_path):
    kept = Chunks(tmp_path, "entry", 2, 3)
    kept.keep(0, np.array([1 << 80, -1], dtype=object))
    kept.keep(1, np.array([7]))
    assert [kept.read(i).tolist() for i in range(2)] == [[1 << 80, -1], [7]]
    assert kept.missing() == []


def test_what_was_altered_or_exchanged_is_found(tmp_path):
    plan = made()
    ledger = book(tmp_path, plan)
    release = plan.release(array(people()), ledger=ledger, out=tmp_path / "out")
    first, second = release.kept.file(0), release.kept.file(1)
    held = first.read_bytes()
    first.write_bytes(held[:-1] + bytes([held[-1] ^ 1]))
    with pytest.raises(ns.InvalidInput, match="was altered"):
        release.rows(0)
    for bad in (second.read_bytes(), b"", b"{}\n"):
        first.write_bytes(bad)
        with pytest.raises(ns.InvalidInput, match="was altered"):
            plan.release(array(people()), ledger=ledger, resume=1)
    other = Chunks(release.kept.path, release.kept.entry, 20, 106)
    first.unlink()
    other.keep(0, np.arange(20))
    with pytest.raises(ns.InvalidInput, match="are not those that were kept"):
        plan.release(array(people()), ledger=ledger, resume=1)
    published = tmp_path / "out" / "answers-000002.parquet"
    pq.write_table(pa.table({"x": [1.0] * 10, "y": [1.0] * 10}), published)
    with pytest.raises(
        ns.InvalidInput, match=r"answers-000002\.parquet of this release was altered"
    ):
        ns.read(tmp_path / "out")


def test_how_it_is_laid_out_is_told_by_the_plan_alone(tmp_path):
    plan = made()
    for name, X in (("a", np.zeros((N, 2))), ("b", array(people()))):
        plan.release(X, unrecorded=True, out=tmp_path / name)
    for one in (tmp_path / "a").glob("answers*"):
        two = tmp_path / "b" / one.name
        assert pq.read_schema(one) == pq.read_schema(two)
        assert pq.read_metadata(one).num_rows == pq.read_metadata(two).num_rows
    assert len(os.listdir(tmp_path / "a")) == len(os.listdir(tmp_path / "b")) == 6 + 3


def test_a_plan_is_a_file_and_a_release_one_command(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from noiseshape.cli import app

    monkeypatch.chdir(tmp_path)
    plan = made()
    plan.save("plan.json")
    assert ns.load("plan.json").digest == plan.digest
    book(tmp_path, plan)
    parquets(people(), tmp_path)
    words = "release plan.json --data part*.parquet --out out --ledger b.db"
    told = CliRunner().invoke(app, words.split())
    assert told.exit_code == 0, told.output
    assert "answers-000005.parquet" in told.stdout
    assert len(ns.read("out").table()) == 2 * N
    assert CliRunner().invoke(app, ["report", "out"]).exit_code == 0
    many = plan.few.row_by_row(6000, rows=3000).release(np.zeros((6000, 2)), unrecorded=True)
    assert many.table()["column"] == ("x", "y")


SPEC = """
people: {neighbours: replace}
matrices:
  - {name: everybody, identity: [x, y], bounds: {x: [0, 1], y: [-2, 2]}, count: 53,
     row_by_row: true, stderr: {x: 0.05, y: 0.2}}
"""


def test_a_spec_may_ask_for_it(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from noiseshape.cli import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC)
    parquets(people(), tmp_path)
    words = "release spec.yaml --data part*.parquet --out out --unrecorded"
    told = CliRunner().invoke(app, words.split())
    assert told.exit_code == 0, told.output
    release = ns.read("out/everybody")
    assert release.plan.few.digest == made().few.digest
    assert answers(release).shape == (N, 2)
    wrong = SPEC.replace("count: 53,", "")
    (tmp_path / "spec.yaml").write_text(wrong)
    refused = CliRunner().invoke(app, ["plan", "spec.yaml"])
    assert refused.exit_code == 2
    assert "row_by_row goes with an identity and its count" in refused.stderr


def test_what_does_not_fit_is_refused_before_anything_is_spent(tmp_path, monkeypatch):
    with pytest.raises(ns.TooLarge, match=r"1,000,000,000 x 2 entries .*row_by_row"):
        ns.identity(bounds=BOUNDS, n=10**9)
    plan = made(10**9, rows=10**9)
    ledger = book(tmp_path, plan)
    read = []
    monkeypatch.setattr(rowsplan.RowsPlan, "measured", lambda *given: read.append(given))
    rows = parquets(people(), tmp_path)
    with pytest.raises(ns.TooLarge, match="a chunk of 1,000,000,000 rows x 2 columns needs about"):
        plan.release(rows, ledger=ledger, out=tmp_path / "out")
    assert (ledger.history(), read) == ((), [])
    assert not (tmp_path / "out").exists()


def test_bad_input():
    row = ns.identity(bounds=BOUNDS, n=1)
    for act, sentence in (
        (lambda: ns.isotropic(ns.second_moment(bounds=BOUNDS)).row_by_row(9), "is no matrix with"),
        (lambda: ns.isotropic(row).row_by_row(0), "n must be"),
        (lambda: made().release(array(people(9)), unrecorded=True), "about 53 rows, and the data"),
        (lambda: made(key="other").release(people(), unrecorded=True), "a key is for Spark"),
        (lambda: made().release(people().select(["x"]), unrecorded=True), "no column 'y'"),
        (lambda: made().release(duckdb.sql("SELECT 1.0 AS x, 2.0 AS y"), unrecorded=True),
         "write this relation to Parquet first"),
        (lambda: made().release(unrecorded=True), "hand in the rows"),
        (lambda: PLANS["features"]().release(people(), unrecorded=True), "rows have 3 columns"),
        (lambda: made().release(people(), unrecorded=True).rows(6), "there are 6 chunks"),
        (lambda: ns.directional(
            ns.identity(bounds=BOUNDS, n=2), stderr=[[1, 1], [1, 2]]).row_by_row(4),
         "each row is measured alike"),
    ):  # fmt: skip
        with pytest.raises(ns.InvalidInput, match=sentence):
            act()


@settings(deadline=None, max_examples=60)
@given(parts=st.lists(st.integers(0, 9), max_size=8), rows=st.integers(1, 7))
def test_parts_of_any_length_become_chunks(parts, rows):
    ends = np.cumsum([0, *parts])
    given_rows = (np.arange(a, b)[:, None] + 0.0 for a, b in pairwise(ends))
    cut = _regrouped(given_rows, rows, 1)
    n = sum(parts)
    found = [next(cut) for _ in range(-(-n // rows) + 2)]
    assert np.concatenate(found).ravel().tolist() == list(range(n))
    assert all(len(part) == rows for part in found[: n // rows])


@given(wanted=st.sets(st.integers(0, 12)).map(sorted))
def test_stretches_are_what_was_wanted(wanted):
    found = list(_stretches(wanted))
    assert [i for start, stop in found for i in range(start, stop)] == wanted
    assert all(a[1] < b[0] for a, b in pairwise(found))


@settings(deadline=None, max_examples=12)
@given(wanted=st.sets(st.integers(0, 5)).map(sorted))
def test_any_chunks_can_be_read_alone(wanted):
    stream = streamed(made().query, Cut(N, 10), people(), None)
    every, some = {}, {}
    stream.feed(range(6), lambda number, z: every.update({number: z.tolist()}))
    stream.feed(wanted, lambda number, z: some.update({number: z.tolist()}))
    assert list(some) == wanted
    assert all(every[number] == z for number, z in some.items())
    assert pd.Series(every).map(len).tolist() == [20] * 5 + [6]
