"""What every kind of plan promises at the one door, whatever it measures.

The order of events; failures that name their step alone; a debit that stands and pays for one
measurement; runs that continue without a new draw; and a cost that neighbouring data stay within.
"""

import json
import os
import traceback
from fractions import Fraction

import numpy as np
import pytest
from tests.release.kinds import KINDS, planned, release_type

import noiseshape as ns
import noiseshape.release.measurement as door
from noiseshape import Budget, BudgetExceeded, InvalidInput, Ledger, ReleaseFailed
from noiseshape.release import planned as protocol
from noiseshape.release import run as running
from noiseshape.release import staging as staged
from noiseshape.release.staging import Staging

pytestmark = pytest.mark.parametrize("name", list(KINDS))


def book_for(plan, folder, times=1.0):
    budget = Budget(mu=float(plan.cost.mu) * times**0.5 * (1 + 1e-12))
    return Ledger.create(folder / "b.db", budget, people=plan.people, vintage="v")


def tapped(monkeypatch, owner, name, happen):
    """Let ``happen`` see the arguments of every call, before it is made."""
    honest = getattr(owner, name)

    def tap(*args, **options):
        happen(*args)
        return honest(*args, **options)

    monkeypatch.setattr(owner, name, tap)


def parts(name, data):
    """Who does what for this kind of plan: owners and names of functions."""
    plan, release = type(planned(name)), release_type(name)
    source = type(planned(name).source(data))
    return {
        "source": (plan, "source"),
        "rehearse": (plan, "rehearse"),
        "charge": (plan, "charge"),
        "debit": (Ledger, "debit"),
        "stage": (Staging, "describe"),
        "read": (source, "read"),
        "noise": (door, "rounded_gaussian"),
        "keep": (Staging, "keep"),
        "released": (plan, "released"),
        "settle": (release, "settle"),
        "publish": (running, "publish"),
        "files": (release, "files"),
        "told": (release, "told"),
        "write": (release, "to_json"),
    }


ORDER = (
    *("source", "rehearse", "charge", "debit", "stage", "read", "noise", "keep"),
    *("released", "settle", "publish", "files", "told", "write"),
)


def recorded(monkeypatch, name, data):
    """The list in which events are written down as they happen, each once in a row."""
    events = []
    for event, (owner, function) in parts(name, data).items():

        def happen(*args, event=event):
            if events[-1:] != [event]:
                events.append(event)

        tapped(monkeypatch, owner, function, happen)
    return events


def test_the_order_of_events(name, tmp_path, monkeypatch):
    plan, data = planned(name), KINDS[name].one()
    ledger = book_for(plan, tmp_path)
    events = recorded(monkeypatch, name, data)
    held = []
    tapped(monkeypatch, *parts(name, data)["read"], lambda *_: held.append(ledger.history()))
    plan.release(data, ledger=ledger, out=tmp_path / "out", who="ana", what="first")
    assert tuple(events) == ORDER
    ((entry,),) = held  # read once, and there was one entry by then
    assert (entry.charge.who, entry.charge.what) == ("ana", "first")
    assert entry.charge.cost == plan.cost
    assert entry.charge.spec_hash == plan.digest


def test_what_is_refused_before_the_debit_reads_and_spends_nothing(name, tmp_path, monkeypatch):
    plan, data = planned(name), KINDS[name].one()
    ledger = book_for(plan, tmp_path, times=1.5)
    plan.release(data, ledger=ledger)
    read = []
    tapped(monkeypatch, *parts(name, data)["read"], read.append)
    (tmp_path / "there").mkdir()
    for error, options in (
        (BudgetExceeded, {"ledger": ledger, "out": tmp_path / "out"}),
        (InvalidInput, {"ledger": ledger, "out": tmp_path / "there"}),
        (InvalidInput, {"ledger": ledger, "vintage": "w"}),
        (InvalidInput, {"ledger": ledger, "resume": 2}),
        (InvalidInput, {"ledger": ledger, "unrecorded": True}),
        (InvalidInput, {}),
        (ns.LedgerMissing, {"ledger": tmp_path / "none.db"}),
    ):
        with pytest.raises(error):
            plan.release(data, **options)
    assert not read
    assert len(ledger.history()) == 1
    assert sorted(os.listdir(tmp_path)) == ["b.db", "b.db.runs", "there"]


class Panic(BaseException):
    """As engines written in other languages raise: no Exception, and it quotes a row."""


# What breaks, and the step that its failure names.
BREAKS = {
    **{"stage": "stage", "read": "read", "noise": "measure", "keep": "keep"},
    **{"released": "rebuild", "settle": "rebuild"},
    **{"files": "publish", "told": "publish", "write": "publish"},
}


@pytest.mark.parametrize("broken", list(BREAKS))
def test_a_failure_names_its_step_and_its_run_is_continued(name, tmp_path, monkeypatch, broken):
    plan, data = planned(name), KINDS[name].one()
    ledger = book_for(plan, tmp_path)

    def panic(*args):
        raise Panic("Jane Doe, 1962")

    with monkeypatch.context() as breaking:
        tapped(breaking, *parts(name, data)[broken], panic)
        with pytest.raises(ReleaseFailed) as info:
            plan.release(data, ledger=ledger, out=tmp_path / "out")
    assert str(info.value) == (
        f"the release failed at the step {BREAKS[broken]!r}. Ledger entry 1 stands: resume=1 "
        "continues it, without a new debit."
    )
    assert "Jane" not in "".join(traceback.format_exception(info.value))
    assert (info.value.__context__, info.value.__cause__) == (None, None)
    assert len(ledger.history()) == 1
    assert sorted(os.listdir(tmp_path)) == ["b.db", "b.db.runs"]  # nothing half-published
    kept = held(tmp_path)
    whole = BREAKS[broken] in ("rebuild", "publish")
    assert bool(kept) == whole

    events = recorded(monkeypatch, name, data)
    again = plan.release(data, ledger=ledger, out=tmp_path / "out", resume=1)
    # Chunks are kept one by one, before the whole is: what was drawn of them is not drawn again.
    drawn = not whole and not (broken == "keep" and isinstance(plan, protocol.InChunks))
    assert ("read" in events, "noise" in events, "keep" in events) == (not whole, drawn, not whole)
    assert "debit" not in events
    assert not whole or held(tmp_path) == kept
    assert len(ledger.history()) == 1
    assert type(again).read(tmp_path / "out").fingerprint == again.fingerprint


def held(folder):
    """The measurements that are kept beside the ledger: their bytes, by name."""
    return {p.name: p.read_bytes() for p in (folder / "b.db.runs").glob("*/measurement*")}


@pytest.mark.parametrize("listed", [staged.LISTED, 0])
def test_a_debit_pays_for_one_measurement(name, tmp_path, monkeypatch, listed):
    """Every row is drawn once, at no more than was paid; who continues is handed the same."""
    monkeypatch.setattr(staged, "LISTED", listed)  # in a file of its own, or not
    plan, data = planned(name), KINDS[name].one()
    ledger = book_for(plan, tmp_path)
    made, drawn = [], []
    tapped(monkeypatch, door, "Measurement", lambda *given: made.append(given))
    tapped(monkeypatch, door, "rounded_gaussian", lambda sigma: drawn.append(np.size(sigma)))
    kept = []
    tapped(monkeypatch, Staging, "keep", lambda _, values: kept.append(values))
    first = plan.release(data, ledger=ledger, out=tmp_path / "out")
    (y,) = kept
    assert sum(drawn) == np.size(y) == sum(np.size(values) for _, values, _ in made)
    (entry,) = ledger.history()
    assert sum(cost.mu_squared for *_, cost in made) <= entry.charge.cost.mu_squared
    again = plan.release(data, ledger=ledger, resume=1, out=tmp_path / "again")
    assert (len(kept), sum(drawn)) == (1, np.size(y))
    assert again.fingerprint == first.fingerprint
    for file in (tmp_path / "out").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), file.name


def test_two_releases_are_two_measurements(name, tmp_path):
    plan, data = planned(name), KINDS[name].one()
    ledger = book_for(plan, tmp_path, times=2)
    one, two = (plan.release(data, ledger=ledger) for _ in range(2))
    assert one.fingerprint != two.fingerprint
    assert len(ledger.history()) == 2
    with pytest.raises(BudgetExceeded):
        plan.release(data, ledger=ledger)


def test_neighbours_differ_by_no_more_than_what_is_paid(name, monkeypatch):
    """The whole way, from rows to measured integers: ||(y - y') / sigma||^2 <= mu^2, exactly."""
    plan = planned(name)
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))
    both = []
    for data in (KINDS[name].one(), KINDS[name].two()):
        with monkeypatch.context() as listening:
            made = []
            tapped(listening, door, "Measurement", lambda *given, made=made: made.append(given))
            plan.release(data, unrecorded=True)
        both.append(made)
    apart = sum(
        ((int(a) - int(b)) / Fraction(float(sigma))) ** 2
        for (strategy, ys, _), (_, zs, _) in zip(*both, strict=True)
        for a, b, sigma in zip(ys, zs, strategy.sigma, strict=True)
    )
    assert 0 < apart <= plan.cost.mu_squared


def test_errors_are_as_stated(name, monkeypatch):
    """True noise, over 700 releases: 6.5 standard errors are a false alarm in 10^9."""
    n, plan, data = 700, planned(name), KINDS[name].one()
    if not KINDS[name].linear:  # they follow from each release, which must say so
        said = plan.release(data, unrecorded=True).told()["accuracy"]
        assert said["errors are"] == "simulated from the release"
        return
    with monkeypatch.context() as silent:
        silent.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))
        truth = plan.release(data, unrecorded=True).table()["value"]
    source = plan.source(data).read()
    drawn = (plan.released(plan.measured(source), None, "now").table() for _ in range(n))
    z = np.array([(table["value"] - truth) / table["stderr"] for table in drawn])

    def off(z):
        return np.abs(z.mean(axis=0)).max() * n**0.5, np.abs((z**2).mean(axis=0) - 1).max() * (
            n / 2
        ) ** 0.5

    assert max(off(z)) < 6.5
    # Negative controls: a bias of half an error, errors a fifth too small, or too great by
    # half (of one answer, a fifth would pass once in three times).
    assert off(z + 1 / 2)[0] > 6.5
    assert min(off(z / 0.8)[1], off(z / 1.5)[1]) > 6.5


def test_a_plan_is_a_file_that_is_refused_when_altered(name, tmp_path):
    plan = planned(name)
    plan.save(tmp_path / "plan.json")
    for back in (type(plan).load(tmp_path / "plan.json"), protocol.load(tmp_path / "plan.json")):
        assert type(back) is type(plan)
        assert (back.digest, back.cost, back.people) == (plan.digest, plan.cost, plan.people)
    text = (tmp_path / "plan.json").read_text()
    for edit, sentence in (
        (lambda body: body["content"].update(more=1), "was altered"),
        (lambda body: body.update(format=99), "format 99"),
        (lambda body: body.update(noiseshape="poem"), "poem file"),
        (lambda body: body.pop("sha256"), "cut short"),
    ):
        body = json.loads(text)
        edit(body)
        (tmp_path / "plan.json").write_text(json.dumps(body))
        for load in (type(plan).load, protocol.load):
            with pytest.raises(InvalidInput, match=sentence):
                load(tmp_path / "plan.json")


def test_the_provenance_says_who_what_how_and_at_what_cost(name, tmp_path):
    plan = planned(name)
    ledger = book_for(plan, tmp_path)
    release = plan.release(KINDS[name].one(), ledger=ledger, out=tmp_path / "out")
    said = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert said["people"]["unit"] == plan.people.unit
    assert said["people"]["max_rows"] == plan.people.max_rows
    assert said["people"]["neighbours"] == plan.people.neighbours
    assert Fraction(said["privacy"]["mu_squared"]) == plan.cost.mu_squared
    for delta, epsilon in said["privacy"]["epsilon"].items():
        assert epsilon == plan.cost.epsilon(float(delta))
    assert said["mechanism"]
    assert {"accuracy", "design", "rows", "versions", "when"} <= set(said)
    assert said["ledger"] == {"entry": 1, "hash": ledger.head}
    assert said["plan sha256"] == plan.digest == ledger.history()[0].charge.spec_hash
    assert "noise only" in json.dumps(said["accuracy"])
    release.verify(ledger)
    assert ns.__version__ in said["versions"].values()


def test_an_altered_release_or_one_that_nobody_paid_for_is_found(name, tmp_path):
    plan = planned(name)
    ledger = book_for(plan, tmp_path)
    release = plan.release(KINDS[name].one(), ledger=ledger, out=tmp_path / "out")
    free = plan.release(KINDS[name].one(), unrecorded=True, out=tmp_path / "free")
    said = json.loads((tmp_path / "free" / "provenance.json").read_text())
    assert said["ledger"].startswith("unrecorded")
    with pytest.raises(InvalidInput, match="unrecorded"):
        free.verify(ledger)
    other = Ledger.create(tmp_path / "other.db", ledger.budget, people=plan.people)
    with pytest.raises(ns.LedgerAltered, match="holds no entry"):
        release.verify(other)
    sealed = tmp_path / "out" / "release.json"
    body = json.loads(sealed.read_text())
    body["content"]["when"] = "2001-01-01T00:00:00+00:00"
    sealed.write_text(json.dumps(body))
    with pytest.raises(InvalidInput, match="was altered"):
        type(release).read(tmp_path / "out")
