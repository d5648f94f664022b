"""The order of events: checks, debit, rows, measurement, answers, publication."""

import stat
import traceback

import numpy as np
import pytest

import noiseshape as ns
import noiseshape.release.measurement as door
from noiseshape import Budget, BudgetExceeded, InvalidInput, Ledger, People, Queries, ReleaseFailed
from noiseshape.errors import LedgerMissing


@pytest.fixture(scope="module")
def plan():
    queries = (
        Queries(["a", "b", "c", "d"])
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
    assert release.answers == pytest.approx(plan.queries.matrix @ data, rel=1e-13)


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
        ([1, 2, 3, 4], {"out": "."}, InvalidInput, "exists"),
        ([1, 2, 3, 4], {"out": "no/such/folder"}, InvalidInput, "not a folder"),
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

    def test_without_its_staging_folder_an_entry_pays_for_nothing_more(self, plan, ledger):
        plan.release([1, 2, 3, 4], ledger=ledger)
        root = ledger.path.with_name("budget.db.runs")
        root.rename(root.with_name("gone"))
        with pytest.raises(InvalidInput, match="pay for a new release"):
            plan.release([1, 2, 3, 4], ledger=ledger, resume=1)

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

    def test_a_staging_folder_that_cannot_be_made(self, plan, ledger):
        ledger.path.with_name("budget.db.runs").write_text("in the way")
        with pytest.raises(ReleaseFailed, match=r"cannot be made .* entry 1 stands"):
            plan.release([1, 2, 3, 4], ledger=ledger)


def test_the_public_interface_takes_no_sampler_and_no_seed(plan):
    import inspect

    for call in (ns.measure, plan.release, ns.plan, plan.within):
        names = set(inspect.signature(call).parameters)
        assert not names & {"seed", "rng", "random_state", "sampler", "noise", "bits"}


def test_profiles_add_within_a_vintage(tmp_path):
    """Two releases about different cells of one frozen vintage cost one, not two."""
    ledger = Ledger.create(tmp_path / "b.db", Budget(mu=1.0), vintage="frozen")
    left, right = (ns.plan(Queries(2).ask("x", row, stderr=1.001)) for row in ([1, 0], [0, 1]))
    left.release([5, 6], ledger=ledger)
    right.release([5, 6], ledger=ledger)
    assert ledger.spent().mu_squared == max(left.cost.mu_squared, right.cost.mu_squared)
    with pytest.raises(BudgetExceeded):
        left.release([5, 6], ledger=ledger)


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
