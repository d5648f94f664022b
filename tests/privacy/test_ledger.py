"""The ledger: it adds as it should, never overspends, and finds what was done to its file."""

import contextlib
import functools
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import stat
import tempfile
import threading
import time
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy import ledger_worker as worker
from tests.privacy.ledger_worker import charge

from noiseshape.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerAltered,
    LedgerError,
    LedgerLocked,
    LedgerMissing,
)
from noiseshape.privacy import Budget, Cost, People, Profile, compose_profiles
from noiseshape.privacy import ledger as module
from noiseshape.privacy.ledger import Charge, Entry, Ledger

REPLACE = People(neighbours="replace")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def raw(path):
    """Somebody with the sqlite3 command: a connection that runs any SQL on the closed ledger."""

    def run(*statements, at=None):
        with contextlib.closing(sqlite3.connect(at or path)) as connection, connection:
            return [connection.execute(sql).fetchall() for sql in statements]

    return run


@pytest.fixture
def four(path):
    """A ledger with four entries, two of which share a group."""
    ledger = Ledger.create(path, Budget(mu=2.0), vintage="frozen 2026")
    for units in ([4, 1, 1], None, [1, 4, 1], None):
        ledger.debit(charge(units=units))
    return ledger


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.privacy.ledger_worker"])
    return context


def killed(context, step, moment, prepare, path):
    """Run what ``prepare`` returns in a process that dies at ``step``."""
    child = context.Process(target=worker.die_at, args=(step, moment, prepare, path))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL


# What it says of itself.


def test_what_was_fixed_is_what_is_read_back(path):
    people = People("person_id", 3, "replace")
    made = Ledger.create(path, Budget(epsilon=1.0, delta=1e-9), people=people, vintage="v 1")
    for ledger in (made, Ledger.open(str(path))):
        assert ledger.path == path
        assert ledger.budget == Budget(epsilon=1.0, delta=1e-9)
        assert repr(ledger.budget) == repr(Budget(epsilon=1.0, delta=1e-9))
        assert (ledger.people, ledger.vintage) == (people, "v 1")
        assert ledger.spent() == Cost(Fraction(0), "replace")
        assert ledger.history() == ()
        assert ledger.head == made.head
    assert "budget.db" in repr(made)


def test_history_tells_who_what_when_and_chains(four):
    history = four.history()
    assert history == Ledger.open(four.path).history()
    assert [e.number for e in history] == [1, 2, 3, 4]
    assert history[2].charge == charge(units=[1, 4, 1])
    assert all(e.when.endswith("+00:00") for e in history)
    assert [e.previous for e in history[1:]] == [e.hash for e in history[:-1]]
    assert four.head == history[-1].hash
    assert len({e.hash for e in history}) == 4


def test_two_copies_that_both_go_on_never_agree(four, path, monkeypatch):
    """Even where both pay for the same in the same second: a release tells which one paid."""
    monkeypatch.setattr(module, "_utc_now", lambda: "2026-01-01T00:00:00+00:00")
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    mine, theirs = (ledger.debit(charge()) for ledger in (four, Ledger.open(copy)))
    assert (mine.number, mine.when, mine.charge) == (theirs.number, theirs.when, theirs.charge)
    assert mine.hash != theirs.hash
    for ledger, entry in ((four, theirs), (Ledger.open(copy), mine)):
        with pytest.raises(LedgerAltered, match="not the ledger that paid"):
            ledger.verify(entry.hash)


def test_debit_returns_the_entry_that_history_shows(path):
    entry = Ledger.create(path, Budget(mu=1.0)).debit(charge())
    assert isinstance(entry, Entry)
    assert (entry,) == Ledger.open(path).history()


def test_a_hash_never_changes_its_meaning():
    """Ledgers outlive versions: computed by sha256sum from the text [1, "a", null, "1/4"]."""
    digest = "57b3c50f22ae26d550b08db1fe2d25450ed4c46b84eabcb88fa42544c27b81e9"
    assert module._digest(1, "a", None, "1/4") == digest


def test_two_ledgers_of_equal_terms_are_two(tmp_path):
    first, second = (Ledger.create(tmp_path / n, Budget(mu=1.0)) for n in ("a", "b"))
    assert first.head != second.head


def test_remaining_is_exact_and_rounded_down_when_printed(path):
    ledger = Ledger.create(path, Budget(rho=0.5))
    ledger.debit(charge(Fraction(1, 3)))
    left = ledger.remaining()
    assert left.mu_squared == Fraction(2, 3)
    assert Fraction(left.mu) ** 2 < left.mu_squared < Fraction(np.nextafter(left.mu, 1)) ** 2
    assert Fraction(left.rho) < Fraction(1, 3) < Fraction(np.nextafter(left.rho, 1))
    assert "mu=0.816497" in repr(left)


def test_epsilons_are_of_what_is_spent_of_what_is_left_and_of_the_cap(path):
    ledger = Ledger.create(path, Budget(epsilon=1.0, delta=1e-9))
    half = Cost(ledger.budget.mu_squared / 2)
    ledger.debit(charge(half.mu_squared))
    spent, left, cap = ledger.remaining().epsilon(1e-9)
    assert spent == left == half.epsilon(1e-9)
    assert cap == pytest.approx(1.0, abs=1e-12)
    assert cap < spent + left  # they do not add


# How it adds.


def oracle(charges, vintage):
    """The rule, spelt out: groups cost their greatest sum, everything else its maxima."""
    groups, total = {}, Fraction(0)
    for c in charges:
        if c.profile is None or vintage is None:
            total += c.cost.mu_squared
        else:
            key = (c.schema_hash, c.selection, c.people.unit, c.people.max_rows)
            groups.setdefault(key, []).append(c.profile)
    return total + sum(compose_profiles(profiles).greatest for profiles in groups.values())


charges = st.builds(
    lambda units, schema, selection, rows, plain: charge(
        Fraction(max(units), 16) if plain else 0,
        units=None if plain else units,
        schema_hash=schema,
        selection=selection,
        people=People("id", rows),
    ),
    st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any),
    st.sampled_from(["s1", "s2"]),
    st.sampled_from(["all", "adults"]),
    st.sampled_from([1, 2]),
    st.booleans(),
)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(charges, min_size=1, max_size=7), st.sampled_from([None, "v"]))
def test_spent_is_the_rule_after_every_debit(many, vintage):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "budget.db")
        ledger = Ledger.create(path, Budget(mu=10.0), people=People("id", 2), vintage=vintage)
        for i, one in enumerate(many):
            increment = ledger.would_cost(one)
            before = ledger.spent()
            ledger.debit(one)
            assert ledger.spent() == before + increment
            assert ledger.spent().mu_squared == oracle(many[: i + 1], vintage)
        assert Ledger.open(path).spent() == ledger.spent()
        assert ledger.spent().mu_squared <= sum(c.cost.mu_squared for c in many)


def test_profiles_of_one_vintage_share_cells(path):
    ledger = Ledger.create(path, Budget(mu=1.0), vintage="v")
    ledger.debit(charge(units=[16, 0]))
    assert ledger.remaining().mu_squared == 0
    free = charge(units=[0, 16])
    assert ledger.would_cost(free).mu_squared == 0
    ledger.debit(free)  # nothing remains, and it costs nothing
    with pytest.raises(BudgetExceeded):
        ledger.debit(charge(units=[0, 1]))


@pytest.mark.parametrize(
    "other",
    [
        {"schema_hash": "other"},
        {"selection": "other"},
        {"people": People("id", 2)},
    ],
)
def test_profiles_that_may_meet_a_person_elsewhere_add_their_maxima(path, other):
    ledger = Ledger.create(path, Budget(mu=2.0), people=People("id"), vintage="v")
    ledger.debit(charge(units=[16, 0], people=People("id")))
    second = charge(units=[0, 16], **{"people": People("id"), **other})
    assert ledger.would_cost(second).mu_squared == 1


def test_without_a_vintage_maxima_add(path):
    ledger = Ledger.create(path, Budget(mu=2.0))
    ledger.debit(charge(units=[16, 0]))
    assert ledger.would_cost(charge(units=[0, 16])).mu_squared == 1


def test_under_replace_maxima_add(path):
    ledger = Ledger.create(path, Budget(mu=1.0), people=REPLACE, vintage="v")
    ledger.debit(charge(Fraction(3, 4), people=REPLACE))
    ledger.debit(charge(Fraction(1, 4), people=REPLACE))
    assert ledger.spent() == Cost(Fraction(1), "replace")


def test_the_cap_may_be_spent_to_the_last_unit_and_not_beyond(path):
    ledger = Ledger.create(path, Budget(mu=1.0))
    for _ in range(3):
        ledger.debit(charge(Fraction(1, 3)))
    assert ledger.remaining().mu_squared == 0
    assert ledger.remaining().mu == ledger.remaining().rho == 0
    # A float would lose this one, and so let it pass for ever.
    least = charge(Fraction(1, 10**5000))
    with pytest.raises(BudgetExceeded, match="Nothing was spent"):
        ledger.debit(least)
    assert len(ledger.history()) == 3


def test_a_refusal_says_what_it_costs_and_what_remains(path):
    ledger = Ledger.create(path, Budget(mu=1.0))
    ledger.debit(charge(Fraction(3, 4)))
    head = ledger.head
    with pytest.raises(BudgetExceeded, match=r"costs mu = 1 and mu = 0\.5 remains .*mu\^2 = 0\.75"):
        ledger.debit(charge(1))
    assert ledger.head == head


def test_numbers_of_any_length_come_back(path):
    ledger = Ledger.create(path, Budget(mu=1e-160))
    cost = Fraction(1, 3**20000)  # more digits than int() reads by default
    ledger.debit(charge(cost))
    again = Ledger.open(path)
    assert again.spent().mu_squared == cost
    assert again.budget == Budget(mu=1e-160)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.integers(0, 2**70), min_size=1, max_size=9), st.integers(0, 200))
def test_profiles_come_back_from_their_text(units, exponent):
    profile = Profile(np.array(units, dtype=object), exponent)
    again = module._read_profile(module._profile(profile))
    assert again == profile
    assert again.exponent == exponent


def test_equal_cells_are_written_once():
    assert module._profile(Profile(np.array([5] * 1000, dtype=object), 4)) == "4: 5*3e8"


# Charges that are refused.


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"who": ""}, "who must be one line"),
        ({"what": "a\nb"}, "what must be one line"),
        ({"selection": None}, "selection must be one line"),
        ({"schema_hash": "\ud800"}, "schema_hash must be one line"),
        ({"spec_hash": 3}, "spec_hash must be one line"),
        ({"cost": 0}, "more than 0"),
        ({"units": [0, 0]}, "more than 0"),
        ({"units": [4, -1]}, "at least 0: 1 of 2 are not"),
        ({"units": [4], "people": REPLACE}, "under add-remove neighbours only"),
    ],
)
def test_charges_that_make_no_sense(fields, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        charge(**fields)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"people": "rows"}, "people as People"),
        ({"cost": 0.25}, "cost as Cost"),
        ({"cost": Cost(Fraction(1), "replace")}, "state both under one relation"),
        ({"cost": Cost(Fraction(1, 2))}, "must be the cost"),
    ],
)
def test_charges_that_contradict_themselves(fields, sentence):
    good = vars(charge(units=[4, 1]))
    with pytest.raises(InvalidInput, match=sentence):
        Charge(**{**good, **fields})


@pytest.mark.parametrize("people", [REPLACE, People("person_id")])
def test_a_charge_for_other_people_is_refused(path, people):
    ledger = Ledger.create(path, Budget(mu=1.0))
    for ask in (ledger.debit, ledger.would_cost):
        with pytest.raises(InvalidInput, match="costs under two rules do not add"):
            ask(charge(people=people))
    assert ledger.history() == ()


def test_another_limit_of_rows_is_the_charges_own(path):
    ledger = Ledger.create(path, Budget(mu=1.0), people=People("id", 3))
    ledger.debit(charge(people=People("id", 5)))
    assert ledger.history()[0].charge.people.max_rows == 5


def test_one_schema_hash_has_one_number_of_cells(path):
    ledger = Ledger.create(path, Budget(mu=2.0), vintage="v")
    ledger.debit(charge(units=[4, 4]))
    with pytest.raises(InvalidInput, match="3 cells, and earlier ones of the same schema have 2"):
        ledger.debit(charge(units=[4, 4, 4]))
    assert len(ledger.history()) == 1


def test_only_a_charge_can_be_debited(four):
    with pytest.raises(InvalidInput, match="needs a Charge, got Cost"):
        four.debit(Cost(Fraction(1)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"budget": 1.0}, "needs a Budget"),
        ({"people": "rows"}, "people as People"),
        ({"vintage": ""}, "vintage must be one line"),
        ({"vintage": "a\tb"}, "vintage must be one line"),
    ],
)
def test_ledgers_that_make_no_sense(path, arguments, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        Ledger.create(path, **{"budget": Budget(mu=1.0), **arguments})
    assert not path.exists()


# The file.


def test_the_file_is_its_owners_alone_and_leaves_nothing_beside_it(four):
    assert os.listdir(four.path.parent) == ["budget.db"]
    assert stat.S_IMODE(four.path.stat().st_mode) == 0o600
    with contextlib.closing(sqlite3.connect(four.path)) as reader:
        reader.execute("SELECT count(*) FROM entry").fetchall()
        four.debit(charge())
        beside = sorted(p.name for p in four.path.parent.iterdir())
        assert beside == ["budget.db", "budget.db-shm", "budget.db-wal"]
        assert {stat.S_IMODE(p.stat().st_mode) for p in four.path.parent.iterdir()} == {0o600}


def test_commits_reach_the_disk(four):
    with module._connected(four.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_the_file_holds_what_charges_say_and_no_more(four, raw):
    ((*_, row),) = raw("SELECT * FROM entry LIMIT 1")
    entry = four.history()[0]
    assert row == (
        *(1, row[1], entry.when, "ana", "by age", "rows", "1", "add-remove", "1/4"),
        *("4: 4*1 1*2", "5c", "a1", "d3", entry.previous, entry.hash),
    )


def test_names_with_odd_letters(tmp_path):
    path = tmp_path / "a?b#c%20d&mode=ro é.db"
    Ledger.create(path, Budget(mu=1.0)).debit(charge())
    assert len(Ledger.open(path).history()) == 1
    assert os.listdir(tmp_path) == [path.name]


def test_a_ledger_stays_itself_when_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made, opened = Ledger.create("budget.db", Budget(mu=1.0)), Ledger.open("budget.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert made.debit(charge()).number == 1
    assert opened.debit(charge()).number == 2


def test_an_existing_file_is_never_replaced(path):
    ledger = Ledger.create(path, Budget(mu=1.0))
    ledger.debit(charge())
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="never replaced"):
        Ledger.create(path, Budget(mu=9.0))
    assert path.read_bytes() == before


def test_not_even_a_link_to_nothing_is_replaced(path):
    path.symlink_to("nothing")
    with pytest.raises(LedgerError, match="never replaced"):
        Ledger.create(path, Budget(mu=1.0))
    assert not path.exists()


def test_a_failed_creation_leaves_nothing(path, monkeypatch):
    def fail(connection, genesis):
        connection.execute("CREATE TABLE half (x)")
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_write_genesis", fail)
    with pytest.raises(KeyboardInterrupt):
        Ledger.create(path, Budget(mu=1.0))
    assert os.listdir(path.parent) == []


def test_remains_of_a_ledger_that_is_gone_are_not_replayed(four):
    wal = four.path.with_name("budget.db-wal")
    with contextlib.closing(sqlite3.connect(four.path)) as reader:
        reader.execute("SELECT * FROM entry").fetchall()
        four.debit(charge())
        kept = wal.read_bytes()
    four.path.unlink()
    wal.write_bytes(kept)
    with pytest.raises(LedgerError, match=r"beside budget\.db-wal"):
        Ledger.create(four.path, Budget(mu=1.0))
    assert not four.path.exists()


@pytest.mark.parametrize("ending", ["", "/deeper"])
def test_a_missing_file_is_an_error_and_never_a_new_budget(path, ending):
    with pytest.raises(LedgerMissing, match=r"Ledger\.create or `noiseshape ledger create FILE`"):
        Ledger.open(f"{path}{ending}")
    assert not path.exists()


def test_what_no_file_can_be_called_is_said_so(path):
    for make in (Ledger.open, lambda name: Ledger.create(name, Budget(mu=1.0))):
        with pytest.raises(LedgerError, match="is no name of a file"):
            make(f"{path}\0")


@pytest.mark.parametrize("length", [247, 248, 255, 256])
def test_a_name_leaves_room_for_what_sqlite_adds(path, length):
    long = path.with_name("x" * length)
    if length == 247:  # and -journal makes 255
        assert Ledger.create(long, Budget(mu=1.0)).debit(charge()).number == 1
        return
    with pytest.raises(LedgerError, match=r"cannot be made \(File name too long\)"):
        Ledger.create(long, Budget(mu=1.0))
    with pytest.raises(LedgerError):
        Ledger.open(long)
    assert not os.listdir(path.parent)


def test_a_file_that_vanishes_as_it_is_opened_is_not_made(path, monkeypatch):
    monkeypatch.setattr(module, "_check_file", lambda path: None)  # it was there just now
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger.open(path)
    assert not path.exists()


def test_a_file_that_vanishes_is_missing(four):
    four.path.unlink()
    for ask in (four.spent, four.history, lambda: four.debit(charge())):
        with pytest.raises(LedgerMissing):
            ask()
    assert not four.path.exists()


def test_below_a_plain_file_there_is_no_ledger(four):
    with pytest.raises(LedgerMissing):
        Ledger.open(four.path / "budget.db")


def test_creating_where_there_is_no_directory(path):
    with pytest.raises(LedgerError, match="directory that exists"):
        Ledger.create(path / "budget.db", Budget(mu=1.0))


def test_a_directory_is_not_a_ledger(tmp_path):
    with pytest.raises(LedgerError, match="is a directory"):
        Ledger.open(tmp_path)


def test_a_pipe_is_not_a_ledger(path):
    os.mkfifo(path)
    with pytest.raises(LedgerError, match="not a plain file"):
        Ledger.open(path)


def test_a_text_file_is_not_a_ledger_and_is_left_alone(path):
    path.write_text("name,age\nana,31\n" * 100)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger") as refusal:
        Ledger.open(path)
    assert "ana" not in str(refusal.value)
    assert path.read_bytes() == before


def test_another_programs_database_is_left_alone(path, raw):
    raw("CREATE TABLE genesis (x)", "CREATE TABLE entry (number INTEGER PRIMARY KEY)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is not a ledger"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_an_empty_file_says_how_it_may_have_come_about(path):
    path.touch()
    with pytest.raises(LedgerError, match="interrupted, remove it and make it again"):
        Ledger.open(path)


def test_a_newer_format_asks_for_a_newer_version(four, raw):
    raw("PRAGMA user_version = 2")
    with pytest.raises(LedgerError, match=r"of format 2, .* reads format 1"):
        Ledger.open(four.path)


def test_two_names_would_be_two_books(four):
    os.link(four.path, four.path.with_name("other.db"))
    with pytest.raises(LedgerError, match="2 names"):
        four.debit(charge())


def test_a_ledger_copied_out_of_its_mode_goes_back_to_it(four, raw):
    raw("PRAGMA journal_mode = DELETE")
    assert Ledger.open(four.path).debit(charge()).number == 5
    assert raw("PRAGMA journal_mode") == [[("wal",)]]


def test_locked_for_longer_than_is_waited(four, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    with contextlib.closing(sqlite3.connect(four.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerLocked, match=r"more than 0\.1 seconds.*Nothing was spent"):
            four.debit(charge())
        assert len(four.history()) == 4  # reading goes on
    four.debit(charge())


def test_a_debit_waits_for_another(four):
    other = sqlite3.connect(four.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, other.close).start()
    assert four.debit(charge()).number == 5


@contextlib.contextmanager
def nobody(*paths):
    """Act as a user who owns ``paths`` and is not the superuser, whom no permission stops."""
    if os.geteuid() != 0:
        yield
        return
    for each in paths:
        os.chown(each, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_cannot_be_written_is_refused(what):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "budget.db")
        Ledger.create(path, Budget(mu=1.0))
        with nobody(directory, path):
            (path if what == "file" else Path(directory)).chmod(0o400 if what == "file" else 0o500)
            with pytest.raises(LedgerError, match=r"permission to write.*Nothing was spent"):
                Ledger.open(path).debit(charge())
            if what == "directory":
                with pytest.raises(LedgerError, match="Permission denied"):
                    Ledger.create(Path(directory, "new.db"), Budget(mu=1.0))
            assert os.listdir(directory) == ["budget.db"]  # no log that nobody may write to
            Path(directory).chmod(0o700)
            path.chmod(0o600)
            assert Ledger.open(path).debit(charge()).number == 1


def test_a_full_disk_spends_nothing(four, monkeypatch):
    connect = sqlite3.connect

    def small(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 1")  # at least what there is already
        return connection

    monkeypatch.setattr(module.sqlite3, "connect", small)
    with pytest.raises(LedgerError, match="disk full"):
        four.debit(charge(what="x" * 100_000))
    monkeypatch.undo()
    assert len(Ledger.open(four.path).history()) == 4


# What is done to the file is found.

COLUMNS = [
    (table, column.split()[0])
    for table, sql in (("genesis", module._GENESIS), ("entry", module._ENTRY))
    for column in sql.partition("(")[2].rstrip(")").split(", ")
]


def plausible(column):
    """SQL for another value of the column that would pass for one."""
    swaps = {
        "number": "40",
        "cap": "'9/1'",
        "mu_squared": "'1/400'",
        "profile": "'4: 1*1 4*1 0*1'",
        "max_rows": "'2'",
        "unit": "'id'",
        "neighbours": "'replace'",
        "format": "'2'",
    }
    return swaps.get(column, "'other'")


EDITS = [
    (table, column, value)
    for table, column in COLUMNS
    for value in ("plausible", "NULL", "x'00ff'", "1.5", "'\\' || char(0)")
    if column != "number" or value == "plausible"  # SQLite itself refuses the others there
]


@pytest.mark.parametrize(("table", "column", "value"), EDITS)
def test_an_edit_of_any_field_is_found(four, raw, table, column, value):
    where = "WHERE number = 3" if table == "entry" else "WHERE 1"
    sql = plausible(column) if value == "plausible" else value
    ((changes,),) = raw(f"SELECT count(*) FROM {table} {where} AND {column} IS NOT {sql}")[0]
    assert changes == 1
    raw(f"UPDATE {table} SET {column} = {sql} {where}")
    with pytest.raises(LedgerAltered, match=r"does not hold together .*Nothing was spent"):
        Ledger.open(four.path)


def test_the_list_of_columns_is_whole(four, raw):
    found = [
        (table, name)
        for table in ("genesis", "entry")
        for (_, name, *_) in raw(f"PRAGMA table_info({table})")[0]
    ]
    assert found == COLUMNS


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM entry WHERE number = 1",
        "DELETE FROM entry WHERE number = 2",
        "UPDATE entry SET number = number + 10",
        "UPDATE entry SET number = 5 - number WHERE number IN (1, 4)",
        "UPDATE entry SET number = -number WHERE number = 4",
        "INSERT INTO entry SELECT 5, nonce, made, who, what, unit, max_rows, neighbours, "
        "mu_squared, profile, schema_hash, selection, spec_hash, previous, hash FROM entry "
        "WHERE number = 4",
        "INSERT INTO entry SELECT 0, nonce, made, who, what, unit, max_rows, neighbours, "
        "mu_squared, profile, schema_hash, selection, spec_hash, previous, hash FROM entry "
        "WHERE number = 4",
        "DELETE FROM genesis",
        "INSERT INTO genesis SELECT * FROM genesis",
        "CREATE TABLE more (x)",
        "CREATE INDEX faster ON entry (who)",
        "CREATE VIEW mine AS SELECT * FROM entry",
        "CREATE TRIGGER undo AFTER INSERT ON entry BEGIN DELETE FROM entry WHERE number > 4; END",
        "ALTER TABLE entry ADD COLUMN more TEXT",
        "ALTER TABLE entry RENAME TO entries",
        "ALTER TABLE entry RENAME COLUMN who TO whom",
        "DROP TABLE entry",
    ],
)
def test_rows_and_tables_that_come_or_go_are_found(four, raw, sql):
    if "5 - number" in sql:  # swapped in two steps, as the numbers are unique
        raw("UPDATE entry SET number = 99 WHERE number = 1")
        raw("UPDATE entry SET number = 1 WHERE number = 4")
        raw("UPDATE entry SET number = 4 WHERE number = 99")
    else:
        raw(sql)
    with pytest.raises(LedgerAltered):
        Ledger.open(four.path)
    with pytest.raises(LedgerAltered):
        four.history()
    if sql != "DELETE FROM genesis":
        with pytest.raises(LedgerAltered):
            four.debit(charge())


@pytest.mark.parametrize("sql", ["who = what, what = who", "who = who || ' by', what = 'age'"])
def test_text_that_moves_between_fields_is_found(four, raw, sql):
    raw(f"UPDATE entry SET {sql} WHERE number = 4")
    with pytest.raises(LedgerAltered, match="entry 4"):
        Ledger.open(four.path)


def rehash(raw, number):
    """Put the right hash to an edited row, as a forger would who knows how."""
    ((row,),) = raw(f"SELECT * FROM entry WHERE number = {number}")
    raw(f"UPDATE entry SET hash = '{module._digest(*row[:-1])}' WHERE number = {number}")


def test_a_row_forged_with_its_hash_is_found_by_the_next(four, raw):
    raw("UPDATE entry SET mu_squared = '1/400' WHERE number = 2")
    rehash(raw, 2)
    with pytest.raises(LedgerAltered, match="entry 3"):
        Ledger.open(four.path)


def test_a_forged_end_is_found_by_the_release_it_paid_for(four, raw):
    head = four.head
    raw("UPDATE entry SET mu_squared = '1/400' WHERE number = 4")
    rehash(raw, 4)
    forged = Ledger.open(four.path)  # the chain alone cannot know
    with pytest.raises(LedgerAltered, match="not the ledger that paid for that release"):
        forged.verify(head)
    with pytest.raises(LedgerAltered):  # nor does a process that saw the true end go on from it
        four.debit(charge())


def test_a_forgery_beyond_the_cap_is_found_without_a_release(four, raw):
    raw("UPDATE entry SET mu_squared = '400/1' WHERE number = 4")
    rehash(raw, 4)
    with pytest.raises(LedgerAltered, match="cost more than its cap"):
        Ledger.open(four.path)


def test_a_forgery_that_means_nothing_is_found(four, raw):
    raw("UPDATE entry SET mu_squared = '1/0' WHERE number = 4")
    rehash(raw, 4)
    with pytest.raises(LedgerAltered, match="entry 4 was changed"):
        Ledger.open(four.path)


def test_every_release_finds_its_entry(four):
    for entry in four.history():
        four.verify(entry.hash)
    four.verify(Ledger.open(four.path).head)


def test_an_older_copy_put_back_is_found_by_a_release(four, path):
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    early, late = four.head, four.debit(charge()).hash
    shutil.copy(copy, path)
    restored = Ledger.open(path)
    restored.verify(early)
    with pytest.raises(LedgerAltered, match="older copy put back"):
        restored.verify(late)
    for ask in (four.spent, lambda: four.debit(charge())):
        with pytest.raises(LedgerAltered, match="entry 5 is no longer what it was"):
            ask()
    restored.debit(charge(what="instead"))  # as long again, and still another history
    with pytest.raises(LedgerAltered):
        four.debit(charge())
    with pytest.raises(LedgerAltered):
        restored.verify(late)


def test_an_older_copy_under_a_newer_log_is_whole_or_refused(four, path):
    old = path.read_bytes()
    wal = path.with_name("budget.db-wal")
    with contextlib.closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT * FROM entry").fetchall()
        for i in range(5):
            four.debit(charge(Fraction(1, 64), what="x" * 3000 * i or "x"))
        log = wal.read_bytes()
    truth = four.history()
    path.write_bytes(old)
    wal.write_bytes(log)
    with contextlib.suppress(LedgerError):
        found = Ledger.open(path).history()
        assert found == truth[: len(found)]
        assert len(found) >= 4


def test_another_ledger_in_its_place_is_found(four, tmp_path):
    head = four.head
    Ledger.create(tmp_path / "other.db", Budget(mu=9.0))
    os.replace(tmp_path / "other.db", four.path)
    for ask in (four.history, four.spent, lambda: four.debit(charge())):
        with pytest.raises(LedgerAltered, match="another ledger"):
            ask()
    with pytest.raises(LedgerAltered):
        Ledger.open(four.path).verify(head)


def test_an_old_row_edited_while_a_process_runs_misleads_nobody(four, raw):
    spent = four.spent()
    raw("UPDATE entry SET mu_squared = '1/400' WHERE number = 2")
    assert four.spent() == spent  # from memory, that an edit does not reach
    with pytest.raises(BudgetExceeded):
        four.debit(charge(four.remaining().mu_squared + Fraction(1, 10**9)))
    for ask in (four.history, lambda: four.verify(four.head), lambda: Ledger.open(four.path)):
        with pytest.raises(LedgerAltered, match="entry 2"):
            ask()


@pytest.mark.parametrize("head", ["", "abc", "g" * 64, "A" * 64, None, b"0" * 64])
def test_a_head_is_a_hash(four, head):
    with pytest.raises(InvalidInput, match="64 digits"):
        four.verify(head)


def test_messages_do_not_repeat_what_the_file_says(four, raw):
    raw("UPDATE entry SET who = 'a name', what = 'a diagnosis' WHERE number = 3")
    with pytest.raises(LedgerAltered) as refusal:
        Ledger.open(four.path)
    assert "name" not in str(refusal.value)
    assert "diagnosis" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The bytes of a ledger of several pages, and its history."""
    path = tmp_path_factory.mktemp("sample") / "budget.db"
    ledger = Ledger.create(path, Budget(mu=2.0), vintage="v")
    rng = np.random.default_rng(0)
    for _ in range(6):
        ledger.debit(charge(units=rng.integers(0, 5, 300).tolist()))
    return path.read_bytes(), ledger.history()


def found_or_unchanged(data, sample, path):
    """Whether damage is found; if it is not, check that nothing that matters was touched."""
    path.write_bytes(data)
    for companion in module._companions(path):
        companion.unlink(missing_ok=True)
    _, history = sample
    try:
        ledger = Ledger.open(path)
    except LedgerError:
        return True
    assert ledger.history() == history
    with contextlib.suppress(LedgerError):
        ledger.debit(charge(Fraction(1, 64)))
        assert Ledger.open(path).history()[:6] == history
        assert len(Ledger.open(path).history()) == 7
    return False


def test_a_ledger_cut_short_anywhere_is_found(sample, path):
    data, _ = sample
    assert len(data) > 4 * 4096
    ends = {0, 1, 15, 16, 99, 100, 101, *range(4096, len(data), 4096)}
    ends |= {e + d for e in range(4096, len(data) + 1, 4096) for d in (-1, 1)} | set(
        range(0, len(data), 331)
    )
    for end in sorted(e for e in ends if e < len(data)):
        assert found_or_unchanged(data[:end], sample, path), end


def test_every_byte_of_the_header_is_checked_or_harmless(sample, path):
    data, _ = sample
    found = 0
    for place in range(100):
        for flip in (1, 128, 255):
            changed = bytearray(data)
            changed[place] ^= flip
            found += found_or_unchanged(bytes(changed), sample, path)
    assert 100 < found < 300  # some of it matters, and some does not


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_flipped_byte_is_found_or_harmless(sample, place, flip):
    content = bytearray(sample[0])
    content[place % len(content)] ^= flip
    with tempfile.TemporaryDirectory() as directory:
        found_or_unchanged(bytes(content), sample, Path(directory, "budget.db"))


def test_flips_within_what_rows_say_are_all_found(sample, path):
    data, history = sample
    for text in (history[3].hash, history[2].when, "by age", "add-remove"):
        place = data.index(text.encode())
        changed = bytearray(data)
        changed[place] ^= 1
        assert found_or_unchanged(bytes(changed), sample, path)


def test_damage_to_what_holds_the_rows_is_found(sample, path):
    data, _ = sample
    changed = bytearray(data)
    changed[39] += 1  # SQLite would one day write an entry to a free page that is not there
    path.write_bytes(changed)
    with pytest.raises(LedgerAltered, match="the file is damaged"):
        Ledger.open(path)


def test_damage_that_breaks_sqlites_own_messages_is_found(sample, path):
    data, _ = sample
    changed = bytearray(data)
    changed[data.index(b"genesis")] ^= 128  # the name of a table is no longer text
    assert found_or_unchanged(bytes(changed), sample, path)


def descriptors(path):
    """How many of this process's open files are ``path``."""
    file, found = path.stat(), 0
    for descriptor in range(1024):
        with contextlib.suppress(OSError):
            found += os.path.samestat(os.fstat(descriptor), file)
    return found


@pytest.mark.parametrize("flip", [1, 128])
@pytest.mark.parametrize("where", ["an entry", "a table"])
def test_a_refusal_that_somebody_keeps_does_not_keep_the_file_open(sample, path, where, flip):
    data, history = sample
    changed = bytearray(data)
    text = history[1].hash.encode() if where == "an entry" else b"TABLE entry"
    changed[data.index(text)] ^= flip
    path.write_bytes(changed)
    with pytest.raises(LedgerError) as kept:
        Ledger.open(path)
    assert kept.tb is not None
    assert descriptors(path) == 0


# Threads, forks, races and kills.


@pytest.mark.parametrize(("count", "times"), [(2, 6), (50, 1)])
def test_processes_race_for_the_last_of_a_budget(path, processes, count, times):
    ledger = Ledger.create(path, Budget(mu=1.0))
    ledger.debit(charge(Fraction(1, 2)))
    ready, results = processes.Barrier(count), processes.Queue()
    arguments = (path, Fraction(1, 14), times, ready, results)
    racers = [processes.Process(target=worker.race, args=arguments) for _ in range(count)]
    for racer in racers:
        racer.start()
    allowed = [results.get(timeout=120) for _ in racers]
    for racer in racers:
        racer.join(60)
        assert racer.exitcode == 0
    assert sum(allowed) == 7  # exactly what half of the budget affords
    final = Ledger.open(path)
    assert final.remaining().mu_squared == 0
    assert len(final.history()) == 8
    assert ledger.remaining().mu_squared == 0


def test_threads_share_one_ledger(path):
    ledger = Ledger.create(path, Budget(mu=1.0))
    outcomes = []

    def work():
        for _ in range(3):
            try:
                outcomes.append(ledger.debit(charge(Fraction(1, 10))).number)
            except BudgetExceeded:
                outcomes.append(None)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(n for n in outcomes if n) == list(range(1, 11))
    assert outcomes.count(None) == 14


def test_a_fork_in_the_middle_of_other_threads_debits(path):
    ledger = Ledger.create(path, Budget(mu=1.0))
    stop = threading.Event()
    small = charge(Fraction(1, 2**20))

    def work():
        while not stop.is_set():
            ledger.debit(small)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # later Pythons warn of forks beside threads
                child = os.fork()
            if child == 0:
                status = 1
                try:
                    signal.alarm(20)  # a lock that is never released ends here
                    ledger.debit(charge(Fraction(1, 2**20), who="child"))
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    who = [entry.charge.who for entry in Ledger.open(path).history()]
    assert who.count("child") == 10
    assert ledger.spent().mu_squared == Fraction(len(who), 2**20)


@pytest.fixture
def steps(monkeypatch):
    """Count the steps that SQLite is asked for in this process."""
    monkeypatch.setattr(worker.Steps, "taken", [])
    connect = functools.partial(sqlite3.connect, factory=worker.Steps)
    monkeypatch.setattr(module.sqlite3, "connect", connect)
    return worker.Steps.taken


def test_killed_at_any_step_of_a_debit(path, processes, steps):
    ledger = Ledger.create(path, Budget(mu=2.0))
    ledger.debit(charge())
    fresh = path.read_bytes()
    steps.clear()
    ledger.debit(charge())
    names = list(steps)
    commit = names.index("COMMIT") + 1
    assert "BEGIN IMMEDIATE" in names
    assert names[-1] == "close"
    for step in range(1, len(names) + 1):
        for moment in ("before", "after"):
            for companion in module._companions(path):
                companion.unlink(missing_ok=True)
            path.write_bytes(fresh)
            killed(processes, step, moment, worker.debit, path)
            stands = step > commit or (step, moment) == (commit, "after")
            after = Ledger.open(path)
            who = [entry.charge.who for entry in after.history()]
            assert who == ["ana", "the one who was killed"][: 1 + stands], (step, moment)
            assert after.spent().mu_squared == Fraction(1 + stands, 4)
            assert after.debit(charge()).number == 2 + stands


def test_killed_at_any_step_of_creation(path, processes, steps):
    Ledger.create(path, Budget(mu=1.0))
    names = list(steps)
    commit = names.index("COMMIT") + 1  # the second is that of opening it again
    for step in range(1, commit + 2):
        for moment in ("before", "after"):
            for name in (path, *module._companions(path)):
                name.unlink(missing_ok=True)
            killed(processes, step, moment, worker.creation, path)
            if step > commit or (step, moment) == (commit, "after"):
                assert Ledger.open(path).remaining().mu_squared == 1
            else:
                with pytest.raises(LedgerError, match="interrupted, remove it"):
                    Ledger.open(path)
            with pytest.raises(LedgerError):
                Ledger.create(path, Budget(mu=1.0))


def test_killed_at_any_time(path, processes):
    ledger = Ledger.create(path, Budget(mu=1.0))
    chance = random.Random(0)
    stood = 0
    for _ in range(12):
        mine, theirs = processes.Pipe(duplex=False)
        child = processes.Process(target=worker.debit_until_killed, args=(path, theirs))
        child.start()
        theirs.close()
        told = mine.recv()  # it runs
        time.sleep(chance.uniform(0, 0.03))
        child.kill()
        child.join(60)
        with contextlib.suppress(EOFError):
            while True:
                told = mine.recv()
        mine.close()
        found = [entry.number for entry in Ledger.open(path).history()]
        assert found == list(range(1, len(found) + 1))
        assert told <= len(found) <= told + 1
        assert told > stood
        stood = len(found)
    assert ledger.debit(charge()).number == stood + 1
