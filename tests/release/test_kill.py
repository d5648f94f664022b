"""A systematic kill sweep: whatever moment a process dies at, the promises stand.

A child process runs a release and kills itself, without any cleaning up, at the n-th call or
return of a function of the release core, the ledger or the file system; for every n there is.
Then another process picks up what it left.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import noiseshape as ns
from noiseshape import Budget, InvalidInput, Ledger, Queries, Release, archive
from noiseshape.release import measurement, publication, run, staging

# Modules in which every call and return is a moment to die at; and below them, C functions that
# touch the disk.
WATCHED = {m.__file__ for m in (run, staging, publication, archive, measurement)}
WATCHED.add(sys.modules[Ledger.__module__].__file__)
DISK = {
    "open",
    "fsync",
    "replace",
    "rename",
    "mkdir",
    "write",
    "execute",
    "flock",
    "close",
    "unlink",
}


@pytest.fixture(scope="module")
def plan():
    return ns.plan(Queries(2).ask("up to", np.tril(np.ones((2, 2))), stderr=3))


@pytest.fixture
def folders(tmp_path):
    """A place in memory, if there is one: a process that is killed loses nothing it has written.

    What a power cut loses is another question: see the test of what is on the disk, and when.
    """
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Drawing the report writes nothing, and takes seconds where every call is watched."""
    monkeypatch.setattr(publication, "_report", lambda release: "drawn")


def release(plan, folder, **options):
    return plan.release([10, 20], **({"ledger": folder / "b.db", "out": folder / "out"} | options))


def killed_at(n, plan, folder, **options):
    """Run a release in a child that dies at its n-th moment; False when it outlived them all."""
    child = os.fork()
    if child == 0:
        moments = 0

        def watch(frame, event, argument):
            nonlocal moments
            watched = frame.f_code.co_filename in WATCHED
            if event.startswith("c_"):
                watched = watched and getattr(argument, "__name__", "") in DISK
            if watched:
                moments += 1
                if moments == n:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(watch)
        try:
            release(plan, folder, **options)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def left_behind(folder):
    """What the dead process left: entries, the kept measurement, the published release."""
    entries = Ledger.open(folder / "b.db").history()
    kept = list((folder / "b.db.runs").glob("*/measurement.json"))
    out = folder / "out"
    published = Release.read(out).values.tolist() if out.exists() else None
    return len(entries), kept, published


def measured(folder):
    """What was measured, as it is kept: in one file, or in two."""
    return {p.name: p.read_bytes() for p in (folder / "b.db.runs").glob("*/measurement.*")}


def yield_whole(folder):
    """What is named as whole is whole; what is not whole is named so."""
    if (folder / "out").exists():
        assert len(list((folder / "out").iterdir())) == 5


def check(plan, folder):
    """The promises, after a death; returns what was found, for the sweep to show its reach."""
    entries, kept, published = left_behind(folder)
    assert entries <= 1
    assert len(kept) <= entries, "a measurement without a debit"
    assert not published or kept, "a release that was not kept first"
    before = measured(folder) if kept else None
    yield_whole(folder)
    if entries == 0:
        assert release(plan, folder).stamp.number == 1
        return "unpaid"
    options = {"resume": 1}
    if published:
        with pytest.raises(InvalidInput, match="exists"):
            release(plan, folder, **options)
        again = plan.release([10, 20], ledger=folder / "b.db", **options)
        assert again.values.tolist() == published
        return "published"
    if not list((folder / "b.db.runs").glob("*/")):
        # Paid, and dead before the folder was made: spent, never leaked.
        with pytest.raises(InvalidInput, match="staging folder"):
            release(plan, folder, **options)
        assert not (folder / "out").exists()
        return "paid"
    again = release(plan, folder, **options)
    leftovers = [p for p in folder.rglob("*.partial") if "out" not in p.name or kept]
    assert not leftovers, "a second measurement, or half a release, was left lying"
    assert Release.read(folder / "out").values.tolist() == again.values.tolist()
    if before is not None:
        assert measured(folder) == before, "one debit was measured twice"
        return "kept"
    return "staged"


def test_killed_at_every_moment(plan, folders):
    found = {}
    for n in range(1, 10_000):
        folder = folders / str(n)
        folder.mkdir()
        Ledger.create(folder / "b.db", Budget(mu=plan.cost.mu))  # for one release, not for two
        if not killed_at(n, plan, folder):
            break
        state = check(plan, folder)
        found[state] = found.get(state, 0) + 1
        assert len(Ledger.open(folder / "b.db").history()) == 1
    else:
        raise AssertionError("the release never finished")
    # The sweep reached every state that there is between nothing and everything.
    assert set(found) == {"unpaid", "paid", "staged", "kept", "published"}, found
    assert sum(found.values()) > 100, found


@pytest.mark.parametrize("before", ["staged", "unmarked"])
def test_killed_again_at_every_moment_of_the_run_that_continues(plan, folders, monkeypatch, before):
    monkeypatch.setattr(staging, "LISTED", 0)  # in two files: one more moment to die at
    left, states = folders / "left", set()
    left.mkdir()
    ledger = Ledger.create(left / "b.db", Budget(mu=plan.cost.mu))
    first = plan.release([10, 20], ledger=ledger)
    (run,) = (left / "b.db.runs").iterdir()
    # As a process leaves it that is killed before it keeps, or between file and mark.
    (run / "kept").unlink()
    if before == "staged":
        for file in run.glob("measurement.*"):
            file.unlink()
    for n in range(1, 10_000):
        folder = folders / str(n)
        shutil.copytree(left, folder)
        out = folder / "out" if before == "unmarked" else None  # once is enough
        if not killed_at(n, plan, folder, resume=1, out=out):
            break
        state = check(plan, folder)
        states.add(state)
        if before == "unmarked":
            assert Release.read(folder / "out").values.tolist() == first.values.tolist()
            assert (folder / "b.db.runs" / run.name / "kept").exists()
        assert len(Ledger.open(folder / "b.db").history()) == 1
    else:
        raise AssertionError("the release never finished")
    assert states == ({"staged", "kept"} if before == "staged" else {"kept", "published"})


def test_what_is_named_is_on_the_disk_before_anything_relies_on_it(plan, tmp_path, monkeypatch):
    """A power cut: a file is synced before it has its name, and the name right after."""
    events = []

    def synced(handle, honest=os.fsync):
        events.append(("synced", os.fstat(handle).st_ino))
        honest(handle)

    def naming(honest):
        def named(old, new):
            old = Path(old)
            inside = [old, *old.iterdir()] if old.is_dir() else [old]
            parent = Path(new).parent.stat().st_ino
            events.append(("named", Path(new).name, {p.stat().st_ino for p in inside}, parent))
            honest(old, new)

        return named

    def made(path, *mode, honest=os.mkdir):
        honest(path, *mode)
        if not str(path).endswith(".partial"):
            events.append(("named", Path(path).name, set(), Path(path).parent.stat().st_ino))

    Ledger.create(tmp_path / "b.db", Budget(mu=9.0))
    monkeypatch.setattr(staging, "LISTED", 0)
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", naming(os.rename))
    monkeypatch.setattr(os, "replace", naming(os.replace))
    monkeypatch.setattr(os, "mkdir", made)
    stamp = release(plan, tmp_path).stamp
    named = [i for i, event in enumerate(events) if event[0] == "named"]
    assert [events[i][1] for i in named] == [
        *("b.db.runs", stamp.hash, "plan.json", "measurement.int64", "measurement.json", "kept"),
        *("provenance.json", "release.json", "report.html", "out"),
    ]
    for i in named:
        _, name, inside, parent = events[i]
        assert inside <= {event[1] for event in events[:i] if event[0] == "synced"}, name
        assert events[i + 1] == ("synced", parent), name


def test_the_sweep_can_fail(plan, tmp_path, monkeypatch):
    """A planted error: keeping is skipped, so that a published release could be drawn again."""
    monkeypatch.setattr(staging.Staging, "keep", lambda self, values: None)
    Ledger.create(tmp_path / "b.db", Budget(mu=plan.cost.mu))
    release(plan, tmp_path)
    with pytest.raises(AssertionError, match="not kept first"):
        check(plan, tmp_path)


@pytest.mark.parametrize("racers", [2, 50])
def test_processes_race_for_the_last_of_a_budget(plan, tmp_path, racers):
    affordable = 1 if racers == 2 else 7
    budget = Budget(mu=plan.cost.mu * (affordable + 0.5) ** 0.5)
    path = Ledger.create(tmp_path / "b.db", budget).path
    gate_read, gate_write = os.pipe()
    children = []
    for i in range(racers):
        child = os.fork()
        if child == 0:
            try:
                os.close(gate_write)
                os.read(gate_read, 1)  # all at once, when the gate closes
                plan.release([10, 20], ledger=path, out=tmp_path / f"out{i}")
                os._exit(0)
            except ns.BudgetExceeded:
                os._exit(3)
            finally:
                os._exit(1)
        children.append(child)
    os.close(gate_read)
    os.close(gate_write)
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert codes == [0] * affordable + [3] * (racers - affordable)
    ledger = Ledger.open(path)
    assert len(ledger.history()) == affordable
    assert ledger.budget.allows(ledger.spent())
    outs = [p for p in Path(tmp_path).iterdir() if p.name.startswith("out")]
    values = {tuple(Release.read(out).values) for out in outs}
    assert len(outs) == affordable
    assert len(values) > 1 or affordable == 1, "independent noise"
