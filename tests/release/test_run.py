"""The order of events: checks, debit, rows, measurement, answers, publication."""

import contextlib
import inspect
import sqlite3
import stat
import traceback
import warnings

import numpy as np
import pytest

import noiseshape as ns
import noiseshape.release.measurement as door
from noiseshape import Budget, BudgetExceeded, InvalidInput, Ledger, People, Queries, ReleaseFailed
from noiseshape.archive import sealed
from noiseshape.errors import LedgerAltered, LedgerLocked, LedgerMissing, NotConverged
from noiseshape.privacy import ledger as ledger_module
from noiseshape.release.run import runs_of, unfinished
from noiseshape.release.staging import Staging


@pytest.fixture(scope="module")
def plan():
    queries = (
        Queries(["a", "b", "c", "d"], table="letters")
        .ask("up to", np.tril(np.ones((4, 4))), stderr=3)
        .ask("cells", np.eye(4), stderr=5)
    )
    return ns.plan(queries)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "budget.db", Budget(mu=2.0), vintage="v1")


@pytest.fixture
def no_noise(monkeypatch):
    """The test build: a sampler of zeros, which nothing public can put there."""
    monkeypatch.setattr(door, "rounded_gaussian", lambda sigma: np.zeros(len(sigma), dtype=int))


class Recorded:
    """A source that writes down when it is asked, and what the ledger held at that moment."""

    def __init__(self, values, ledger=None):
        self.values, self.ledger, self.events = values, ledger, []

    def cells(self):
        self.events.append("cells")
        return len(self.values)

    def read(self):
        self.events.append(("read", len(self.ledger.history()) if self.ledger else None))
        return np.array(self.values)


def test_rows_are_read_once_and_after_the_debit(plan, ledger):
    source = Recorded([1, 2, 3, 4], ledger)
    plan.release(source, ledger=ledger)
    assert source.events == ["cells", ("read", 1)]


def test_without_noise_answers_equal_the_plain_computation(plan, ledger, no_noise):
    data = np.array([10, 200, 3000, 40000])
    release = plan.release(data, ledger=ledger)
    assert release.answers.tolist() == (plan.queries.matrix @ data).tolist()


def test_the_debit_is_the_plans_cost_with_its_profile(plan, ledger):
    plan.release([1, 2, 3, 4], ledger=ledger, who="ana", what="first")
    (entry,) = ledger.history()
    assert (entry.charge.who, entry.charge.what) == ("ana", "first")
    assert entry.charge.cost == plan.cost == ledger.spent()
    assert entry.charge.profile == plan.profile
    assert entry.charge.spec_hash == plan.digest


def test_staging_is_private(plan, ledger):
    plan.release([1, 2, 3, 4], ledger=ledger)
    root = ledger.path.with_name("budget.db.runs")
    folders = [root, *(p for p in root.iterdir())]
    assert [stat.S_IMODE(p.stat().st_mode) for p in folders] == [0o700, 0o700]
    for file in folders[1].iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_ledger_may_be_named_by_its_file(plan, ledger):
    plan.release([1, 2, 3, 4], ledger=str(ledger.path))
    assert len(ledger.history()) == 1


def test_an_unrecorded_release_says_so(plan, tmp_path):
    release = plan.release([1, 2, 3, 4], unrecorded=True, out=tmp_path / "out")
    assert release.stamp is None
    assert "unrecorded: no ledger" in (tmp_path / "out" / "provenance.json").read_text()


class TestRefusalsSpendNothing:
    CASES = (
        ([1, 2, 3], {}, InvalidInput, "about 4 cells, and the data has 3"),
        ([1.0, 2, 3, 4], {}, InvalidInput, "must hold integers, got float64"),
        ([1, 2, 3, -4], {}, InvalidInput, "must not be negative"),
        ([[1, 2, 3, 4]], {}, InvalidInput, "one list"),
        ([1, 2, 3, 1 << 63], {}, InvalidInput, "below 2"),
        ([1, 2, 3, 4], {"unrecorded": True}, InvalidInput, "leave one out"),
        ([1, 2, 3, 4], {"ledger": None}, InvalidInput, "paid from a ledger"),
        ([1, 2, 3, 4], {"ledger": None, "unrecorded": True, "resume": 1}, InvalidInput, "resume"),
        ([1, 2, 3, 4], {"resume": 7}, InvalidInput, "no entry 7"),
        ([1, 2, 3, 4], {"resume": True}, InvalidInput, "resume must be a whole number"),
        ([[1], [2, 3]], {}, InvalidInput, "must hold integers"),
        ([1, 2, 3, 4], {"out": "."}, InvalidInput, "exists"),
        ([1, 2, 3, 4], {"out": "no/such/folder"}, InvalidInput, "cannot be made"),
        ([1, 2, 3, 4], {"out": "x" * 300}, InvalidInput, "cannot be made"),
        ([1, 2, 3, 4], {"out": "a\0b"}, InvalidInput, "cannot be made"),
        ([1, 2, 3, 4], {"out": "x" * 215}, InvalidInput, "cannot be made"),
        ([1, 2, 3, 4], {"ledger": "a\0b"}, ns.LedgerError, "no name of a file"),
        ([1, 2, 3, 4], {"ledger": 5}, InvalidInput, "must be a Ledger"),
        (np.ma.masked_array([1, 2, 3, 4], mask=[0, 0, 0, 1]), {}, InvalidInput, "masked"),
        ([1, 2, 3, 4], {"ledger": "none.db"}, LedgerMissing, "no ledger"),
        ([1, 2, 3, 4], {"vintage": "v2"}, InvalidInput, "vintage 'v2', and the ledger of 'v1'"),
        ([1, 2, 3, 4], {"who": "two\nlines"}, InvalidInput, "one line"),
    )

    @pytest.mark.parametrize(("data", "options", "error", "sentence"), CASES)
    def test_before_the_debit(self, plan, ledger, monkeypatch, data, options, error, sentence):
        tmp_path = ledger.path.parent
        monkeypatch.chdir(tmp_path)
        with pytest.raises(error, match=sentence):
            plan.release(data, **({"ledger": ledger} | options))
        assert ledger.history() == ()
        assert sorted(p.name for p in tmp_path.iterdir() if "-" not in p.name) == ["budget.db"]

    def test_a_budget_that_is_exhausted(self, plan, tmp_path):
        ledger = Ledger.create(tmp_path / "b.db", Budget(mu=plan.cost.mu * 1.2))
        plan.release([1, 2, 3, 4], ledger=ledger)
        source = Recorded([1, 2, 3, 4])
        with pytest.raises(BudgetExceeded, match="remains"):
            plan.release(source, ledger=ledger, out=tmp_path / "out")
        assert source.events == ["cells"]
        assert not (tmp_path / "out").exists()
        assert len(ledger.history()) == 1

    def test_a_ledger_that_is_locked(self, plan, ledger, tmp_path, monkeypatch):
        monkeypatch.setattr(ledger_module, "_PATIENCE", 0.1)
        source = Recorded([1, 2, 3, 4])
        with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerLocked, match="Nothing was spent"):
                plan.release(source, ledger=ledger.path, out=tmp_path / "out")
        assert source.events == ["cells"]
        assert sorted(p.name for p in tmp_path.iterdir()) == ["budget.db"]
        assert ledger.history() == ()

    def test_a_ledger_for_other_people(self, plan, tmp_path):
        other = Ledger.create(tmp_path / "b.db", Budget(mu=9.0), people=People("id", 3))
        with pytest.raises(InvalidInput, match="protects unit 'id'"):
            plan.release([1, 2, 3, 4], ledger=other)

    def test_resuming_what_paid_for_another_plan(self, plan, ledger):
        plan.release([1, 2, 3, 4], ledger=ledger)
        other = plan.within(Budget(mu=0.1))
        with pytest.raises(InvalidInput, match="paid for another plan"):
            other.release([1, 2, 3, 4], ledger=ledger, resume=1)


class Broken:
    """A source whose failure quotes a row, as engines' messages do."""

    def cells(self):
        return 4

    def read(self):
        raise RuntimeError("could not cast 'Jane Doe, 1962' to an integer")


def test_after_the_debit_a_failure_names_its_step_and_nothing_else(plan, ledger):
    with pytest.raises(ReleaseFailed) as info:
        plan.release(Broken(), ledger=ledger)
    assert str(info.value) == (
        "the release failed at the step 'read'. Ledger entry 1 stands: resume=1 continues it, "
        "without a new debit."
    )
    assert "Jane" not in "".join(traceback.format_exception(info.value))
    assert info.value.__context__ is None
    assert info.value.__cause__ is None
    assert len(ledger.history()) == 1


@pytest.mark.parametrize("values", [[1, 2, 3], [1.5, 2, 3, 4], ["x"] * 4, None])
def test_a_source_that_breaks_its_word_fails_at_a_step(plan, ledger, values):
    source = Recorded([1, 2, 3, 4])
    source.read = lambda: values
    with pytest.raises(ReleaseFailed, match="at the step 'measure'"):
        plan.release(source, ledger=ledger)


@pytest.mark.parametrize("way", ["older copy", "made anew"])
def test_a_ledger_that_lacks_a_run_beside_it_is_refused(plan, ledger, tmp_path, way):
    """What it forgets would be spent again: the folder of runs remembers."""
    plan.release([1, 2, 3, 4], ledger=ledger)
    older = ledger.path.read_bytes()
    plan.release([1, 2, 3, 4], ledger=ledger)
    if way == "older copy":
        ledger.path.write_bytes(older)
    else:
        ledger.path.unlink()
        Ledger.create(ledger.path, Budget(mu=2.0), vintage="v1")
    book = Ledger.open(ledger.path)
    before = book.history()
    source = Recorded([1, 2, 3, 4])
    missing = "1 of 2" if way == "older copy" else "2 of 2"
    with pytest.raises(LedgerAltered, match=rf"holds {missing} runs .*an older copy was put back"):
        plan.release(source, ledger=book)
    assert source.events == ["cells"]
    assert Ledger.open(ledger.path).history() == before
    (tmp_path / "budget.db.runs").rename(tmp_path / "elsewhere")
    assert plan.release(source, ledger=book).stamp.number == len(before) + 1


def test_runs_that_were_stopped_are_told_from_those_under_way(plan, ledger):
    assert unfinished(ledger) == ()
    plan.release([1, 2, 3, 4], ledger=ledger)
    with pytest.raises(ReleaseFailed):
        plan.release(Broken(), ledger=ledger)
    (entry,) = unfinished(ledger)
    assert entry.number == 2
    with Staging(runs_of(ledger.path), 2, entry.hash, resume=True):
        assert unfinished(ledger) == ()
    plan.release([1, 2, 3, 4], ledger=ledger, resume=2)
    assert unfinished(ledger) == ()


def refuses(*args):
    raise NotConverged("the strategy of Jane Doe is ill-conditioned")


def test_a_strategy_that_cannot_be_rebuilt_is_found_before_the_debit(plan, ledger, monkeypatch):
    monkeypatch.setattr(type(plan.strategy), "rebuild", refuses)
    with pytest.raises(NotConverged):
        plan.release([1, 2, 3, 4], ledger=ledger)
    assert ledger.history() == ()


def test_answers_are_rebuilt_before_a_release_is_handed_out(plan, ledger, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(ns.Release, "answers", property(refuses))
        with pytest.raises(ReleaseFailed, match="at the step 'rebuild'") as info:
            plan.release([1, 2, 3, 4], ledger=ledger)
    assert "Jane" not in "".join(traceback.format_exception(info.value))
    assert plan.release([1, 2, 3, 4], ledger=ledger, resume=1).stamp.number == 1


class TestResuming:
    def test_a_failed_read_is_continued_without_a_new_debit(self, plan, ledger):
        with pytest.raises(ReleaseFailed):
            plan.release(Broken(), ledger=ledger)
        release = plan.release([1, 2, 3, 4], ledger=ledger, resume=1)
        assert release.stamp.number == 1
        assert len(ledger.history()) == 1

    def test_what_was_measured_is_not_measured_again(self, plan, ledger, tmp_path):
        first = plan.release([1, 2, 3, 4], ledger=ledger)
        source = Recorded([1, 2, 3, 4])
        again = plan.release(source, ledger=ledger, resume=1, out=tmp_path / "out")
        assert again.values.tolist() == first.values.tolist()
        assert source.events == ["cells"]  # no row was read
        assert again.when == first.when

    def test_a_publication_that_failed_is_continued(self, plan, ledger, tmp_path, monkeypatch):
        import noiseshape.release.publication as publication

        def full(*args):
            raise OSError("disk full of Jane Doe")

        with monkeypatch.context() as broken:
            broken.setattr(publication, "provenance", full)
            with pytest.raises(ReleaseFailed, match="'publish'"):
                plan.release([1, 2, 3, 4], ledger=ledger, out=tmp_path / "out")
        assert not list(tmp_path.glob("*out*")), "a half-written folder was left"
        release = plan.release([1, 2, 3, 4], ledger=ledger, out=tmp_path / "out", resume=1)
        assert ns.Release.read(tmp_path / "out").values.tolist() == release.values.tolist()

    @pytest.mark.parametrize("way", ["folder", "file"])
    def test_what_came_in_the_way_meanwhile_is_left_alone(self, plan, ledger, tmp_path, way):
        """An empty folder, which a rename alone would replace without a word."""
        out, source = tmp_path / "out", Recorded([1, 2, 3, 4])
        source.read = lambda: (out.mkdir() if way == "folder" else out.touch()) or [1, 2, 3, 4]
        with pytest.raises(ReleaseFailed, match="'publish'"):
            plan.release(source, ledger=ledger, out=out)
        assert not list(out.iterdir()) if way == "folder" else out.read_bytes() == b""
        assert plan.release(source, ledger=ledger, out=tmp_path / "other", resume=1)

    def test_half_a_release_is_cleaned_away_and_nobody_elses(self, plan, ledger, tmp_path):
        release = plan.release([1, 2, 3, 4], ledger=ledger)
        mine, theirs = (
            tmp_path / f".[x]*.{paid[:16]}.0.partial" for paid in (release.stamp.hash, "a" * 64)
        )
        for left in (mine, theirs):
            left.mkdir()
        plan.release([1, 2, 3, 4], ledger=ledger, out=tmp_path / "[x]*", resume=1)
        assert not mine.exists()
        assert theirs.exists()

    def test_without_its_staging_folder_an_entry_pays_for_nothing_more(self, plan, ledger):
        plan.release([1, 2, 3, 4], ledger=ledger)
        root = ledger.path.with_name("budget.db.runs")
        root.rename(root.with_name("gone"))
        with pytest.raises(InvalidInput, match="pay for a new release"):
            plan.release([1, 2, 3, 4], ledger=ledger, resume=1)

    def test_a_measurement_that_vanished_is_not_drawn_again(self, plan, ledger):
        plan.release([1, 2, 3, 4], ledger=ledger)
        (kept,) = ledger.path.with_name("budget.db.runs").glob("*/measurement.json")
        kept.unlink()
        with pytest.raises(InvalidInput, match="is gone from its staging"):
            plan.release([1, 2, 3, 4], ledger=ledger, resume=1)

    def test_measurements_are_not_swapped_between_entries(self, plan, tmp_path):
        book = Ledger.create(tmp_path / "b.db", Budget(mu=9.0))
        plan.release([1, 2, 3, 4], ledger=book)
        plan.release([1, 2, 3, 4], ledger=book)
        one, two = (tmp_path / "b.db.runs").glob("*/measurement.json")
        one.write_text(two.read_text())
        number = next(e.number for e in book.history() if e.hash == one.parent.name)
        with pytest.raises(InvalidInput, match="belongs to another"):
            plan.release([1, 2, 3, 4], ledger=book, resume=number)

    def test_a_symlink_is_the_same_ledger(self, plan, ledger, tmp_path):
        (tmp_path / "link.db").symlink_to(ledger.path)
        first = plan.release([1, 2, 3, 4], ledger=tmp_path / "link.db")
        again = plan.release([1, 2, 3, 4], ledger=ledger, resume=1)
        assert again.values.tolist() == first.values.tolist()

    def test_an_altered_staging_folder_is_refused(self, plan, ledger):
        plan.release([1, 2, 3, 4], ledger=ledger)
        (kept,) = ledger.path.with_name("budget.db.runs").glob("*/measurement.json")
        kept.write_text(kept.read_text()[:-20])
        with pytest.raises(InvalidInput, match="cut short"):
            plan.release([1, 2, 3, 4], ledger=ledger, resume=1)

    def test_two_processes_do_not_continue_one_entry(self, plan, ledger):
        class Nested(Recorded):
            def read(self):
                with pytest.raises(InvalidInput, match="another process is working"):
                    plan.release([1, 2, 3, 4], ledger=ledger, resume=1)
                return super().read()

        plan.release(Nested([1, 2, 3, 4]), ledger=ledger)

    @pytest.mark.parametrize("way", ["file", "link"])
    def test_a_staging_folder_that_is_in_the_way_is_found_before_the_debit(self, plan, ledger, way):
        root = ledger.path.with_name("budget.db.runs")
        root.write_text("in the way") if way == "file" else root.symlink_to("no/such/folder")
        with pytest.raises(InvalidInput, match=r"runs cannot be made .* Nothing was spent"):
            plan.release([1, 2, 3, 4], ledger=ledger)
        assert ledger.history() == ()

    def test_a_staging_folder_of_somebody_else_is_found_before_the_debit(
        self, plan, ledger, monkeypatch
    ):
        root = ledger.path.with_name("budget.db.runs")
        root.mkdir(mode=0o777)

        def not_yours(*args):
            raise PermissionError

        with monkeypatch.context() as other:
            other.setattr("noiseshape.release.staging.Path.chmod", not_yours)
            with pytest.raises(InvalidInput, match=r"a folder of your own. Nothing was spent"):
                plan.release([1, 2, 3, 4], ledger=ledger)
        assert ledger.history() == ()

    def test_a_folder_that_is_there_already_is_no_new_runs(self, plan, ledger, tmp_path):
        """What is in it was measured for somebody: it is continued, or it is left."""
        one, two = (Staging(tmp_path / "runs", 1, "ab" * 32, resume=False) for _ in range(2))
        with one:
            pass
        with pytest.raises(ReleaseFailed, match=r"cannot be made .*nothing was measured"):
            two.__enter__()

    def test_a_staging_folder_that_cannot_be_made(self, plan, ledger, monkeypatch):
        monkeypatch.setattr("noiseshape.release.run.usable", lambda root: None)
        ledger.path.with_name("budget.db.runs").write_text("in the way")
        with pytest.raises(ReleaseFailed, match=r"cannot be made .* entry 1 stands"):
            plan.release([1, 2, 3, 4], ledger=ledger)

    def test_a_staging_folder_that_cannot_be_used(self, plan, ledger):
        plan.release([1, 2, 3, 4], ledger=ledger)
        (lock,) = ledger.path.with_name("budget.db.runs").glob("*/lock")
        lock.unlink()
        lock.mkdir()
        with pytest.raises(ReleaseFailed, match=r"cannot be used \(.*resume=1 continues it"):
            plan.release([1, 2, 3, 4], ledger=ledger, resume=1)

    def test_a_measurement_whose_mark_was_not_reached_is_marked_when_it_is_shown(
        self, plan, ledger
    ):
        """Killed between the two: who continues shows the measurement, so that it is the one."""
        plan.release([1, 2, 3, 4], ledger=ledger)
        (kept,) = ledger.path.with_name("budget.db.runs").glob("*/measurement.json")
        kept.with_name("kept").unlink()
        plan.release([1, 2, 3, 4], ledger=ledger, resume=1)
        kept.unlink()
        with pytest.raises(InvalidInput, match="is gone from its staging"):
            plan.release([1, 2, 3, 4], ledger=ledger, resume=1)

    def test_a_measurement_without_values_is_refused(self, plan, ledger):
        plan.release([1, 2, 3, 4], ledger=ledger)
        (kept,) = ledger.path.with_name("budget.db.runs").glob("*/measurement.json")
        kept.write_text(sealed("measurement", 1, {"entry": kept.parent.name}))
        with pytest.raises(InvalidInput, match="damaged"):
            plan.release([1, 2, 3, 4], ledger=ledger, resume=1)

    @pytest.mark.parametrize("harm", ["flipped", "cut", "gone"])
    def test_many_integers_in_a_file_of_their_own_are_known_by_their_digest(
        self, plan, ledger, monkeypatch, harm
    ):
        monkeypatch.setattr("noiseshape.release.staging.LISTED", 0)
        first = plan.release([1, 2, 3, 4], ledger=ledger)
        again = plan.release([1, 2, 3, 4], ledger=ledger, resume=1)
        assert again.values.tolist() == first.values.tolist()
        (array,) = ledger.path.with_name("budget.db.runs").glob("*/measurement.int64")
        held = array.read_bytes()
        array.unlink()
        if harm != "gone":
            array.write_bytes(bytes([held[0] ^ 1]) + held[1:] if harm == "flipped" else held[:-8])
        with pytest.raises(InvalidInput, match="was altered since it was written, or is gone"):
            plan.release([1, 2, 3, 4], ledger=ledger, resume=1)

    def test_integers_that_a_killed_process_did_not_get_to_keep_are_gone(
        self, plan, ledger, monkeypatch
    ):
        """Nobody was shown them; were they left, two measurements would lie beside one debit."""
        monkeypatch.setattr("noiseshape.release.staging.LISTED", 0)
        plan.release([1, 2, 3, 4], ledger=ledger)
        (run,) = ledger.path.with_name("budget.db.runs").iterdir()
        for name in ("measurement.json", "kept"):
            (run / name).unlink()
        with pytest.raises(ReleaseFailed):
            plan.release(Broken(), ledger=ledger, resume=1)
        assert not (run / "measurement.int64").exists()

    def test_a_plan_designed_anew_elsewhere_is_told_where_the_paid_one_is(
        self, plan, ledger, monkeypatch
    ):
        """Other processors and threads sum in other orders: the last digits of a design differ."""
        with pytest.raises(ReleaseFailed):
            plan.release(Broken(), ledger=ledger)
        (entry,) = ledger.history()
        elsewhere = plan.within(Budget(mu=plan.cost.mu * (1 + 1e-9)))
        with pytest.raises(InvalidInput, match="differ in its last digits") as info:
            elsewhere.release([1, 2, 3, 4], ledger=ledger, resume=1)
        kept = ledger.path.with_name("budget.db.runs") / entry.hash / "plan.json"
        assert str(kept) in str(info.value)
        again = ns.Plan.load(kept)
        assert again.release([1, 2, 3, 4], ledger=ledger, resume=1).stamp.number == 1

    def test_a_plan_made_again_continues(self, plan, ledger):
        with pytest.raises(ReleaseFailed):
            plan.release(Broken(), ledger=ledger)
        again = ns.plan(plan.queries)
        assert again.release([1, 2, 3, 4], ledger=ledger, resume=1).stamp.number == 1


def test_the_public_interface_takes_no_sampler_and_no_seed():
    """Of everything in ``noiseshape`` but its simulations, which release nothing."""
    calls = [(name, getattr(ns, name)) for name in ns.__all__ if callable(getattr(ns, name))]
    for name, made in list(calls):
        if inspect.isclass(made):
            calls += [(f"{name}.{n}", f) for n, f in inspect.getmembers(made, callable)]
    asked = {}
    for name, call in calls:
        with contextlib.suppress(TypeError, ValueError):  # built-in ones say nothing
            asked[name] = set(inspect.signature(call).parameters)
    assert {"measure", "Plan.release", "MatrixPlan.release", "mvg"} <= set(asked)
    chosen = {"seed", "rng", "random_state", "sampler", "noise", "bits", "generator"}
    found = {name for name, names in asked.items() if names & chosen}
    assert all("simulat" in name for name in found), found


def releases_of(tables, folder):
    """Two releases, each about one of two cells, of tables by these names; what they spent."""
    ledger = Ledger.create(folder / "b.db", Budget(mu=2.0), vintage="frozen")
    plans = [
        ns.plan(Queries(2, table=table).ask("x", row, stderr=1.001))
        for table, row in zip(tables, ([1, 0], [0, 1]), strict=True)
    ]
    for plan in plans:
        plan.release([5, 6], ledger=ledger)
    costs = [plan.cost.mu_squared for plan in plans]
    return ledger.spent().mu_squared, costs


def test_profiles_add_within_a_vintage_of_one_named_table(tmp_path):
    spent, costs = releases_of(["people", "people"], tmp_path)
    assert spent == max(costs)


@pytest.mark.parametrize("tables", [["ages", "incomes"], [None, None], ["ages", None]])
def test_cells_of_other_or_nameless_tables_never_merge(tmp_path, tables):
    """Equal labels may stand for other cells: a person may sit in the dear one of each."""
    spent, costs = releases_of(tables, tmp_path)
    assert spent == sum(costs)


class Panic(BaseException):
    """As engines written in other languages raise: no Exception, and it quotes a row."""


@pytest.mark.parametrize("kind", [Panic, SystemExit, GeneratorExit])
def test_panics_name_the_step_and_nothing_else(plan, ledger, kind):
    source = Recorded([1, 2, 3, 4])

    def read():
        warnings.warn("row 17 is Jane Doe", stacklevel=1)
        raise kind("Jane Doe")

    source.read = read
    with pytest.raises(ReleaseFailed, match="'read'") as info:
        plan.release(source, ledger=ledger)
    assert "Jane" not in "".join(traceback.format_exception(info.value))


def frames_of(error):
    """What a debugger, or a log with local variables, would show of our frames."""
    frames, at = [], error.__traceback__
    while at is not None:
        if "noiseshape" in at.tb_frame.f_code.co_filename:
            frames.append(repr(at.tb_frame.f_locals))
        at = at.tb_next
    assert frames
    return "".join(frames)


def test_no_frame_of_a_failure_holds_what_was_read(plan, ledger):
    source = Recorded([1, 2, 3, 4])
    source.read = lambda: np.array([1.5, 918273645.0])
    with pytest.raises(ReleaseFailed) as info:
        plan.release(source, ledger=ledger)
    assert "918273645" not in frames_of(info.value)


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_no_frame_shows_a_measurement_that_was_not_kept(plan, ledger, monkeypatch, kind):
    """It may be drawn again: whoever saw both would have two measurements for one debit."""
    drawn = []

    def full(self, values):
        drawn.extend(values)
        raise kind("disk full")

    monkeypatch.setattr("noiseshape.release.staging.Staging.keep", full)
    error = ReleaseFailed if kind is OSError else KeyboardInterrupt
    with pytest.raises(error) as info:
        plan.release([1, 2, 3, 4], ledger=ledger)
    assert kind is KeyboardInterrupt or "at the step 'keep'" in str(info.value)
    assert drawn
    assert not any(str(value) in frames_of(info.value) for value in drawn)


def test_an_interrupt_stays_an_interrupt(plan, ledger):
    source = Recorded([1, 2, 3, 4])

    def read():
        raise KeyboardInterrupt("Jane Doe")

    source.read = read
    with pytest.raises(KeyboardInterrupt) as info:
        plan.release(source, ledger=ledger)
    assert info.value.args == ()
    assert info.value.__context__ is None


def test_a_release_is_paid_by_its_own_entry(plan, ledger, tmp_path):
    honest = plan.release([1, 2, 3, 4], ledger=ledger)
    honest.verify(ledger)
    louder = plan.within(Budget(mu=90.0))
    forged = ns.Release(louder, louder.strategy.apply([1, 2, 3, 4]), honest.stamp, honest.when)
    with pytest.raises(InvalidInput, match="paid for another release"):
        forged.verify(ledger)
    with pytest.raises(InvalidInput, match="unrecorded"):
        plan.release([1, 2, 3, 4], unrecorded=True).verify(ledger)


def test_a_release_finds_its_ledger(plan, ledger, tmp_path):
    import shutil

    shutil.copy(ledger.path, tmp_path / "older.db")
    release = plan.release([1, 2, 3, 4], ledger=ledger)
    ledger.verify(release.stamp.hash)
    with pytest.raises(ns.NoiseshapeError, match="older copy"):
        Ledger.open(tmp_path / "older.db").verify(release.stamp.hash)


def test_counts_are_checked_when_they_are_wrapped():
    with pytest.raises(InvalidInput, match="negative"):
        ns.Counts([-1])
    assert repr(ns.Counts([1, 2])) == "Counts(2 cells)"
    assert "1" not in repr(ns.Counts([1, 1, 1])).replace("Counts", "")
