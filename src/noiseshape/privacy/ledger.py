"""The ledger: what may be spent on one body of data, and what was, in one file.

    Ledger.create    fixes the cap, whose privacy, and the vintage; the only way to make one
    Ledger.debit     checks and spends in one transaction, or refuses and spends nothing
    Ledger.open      follows the whole hash chain before anything else

The file is SQLite. Every number in it is an exact rational, written as text in hexadecimal
(``int`` reads decimals of a few thousand digits only). Every row is hashed together with the
hash of the row before it, and nothing is kept beside the rows: what was spent is added up from
them. ``docs/ledger.md`` says what this finds and what it cannot.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property, reduce
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from .._arb import fraction_down, sqrt_down
from ..errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerAltered,
    LedgerError,
    LedgerLocked,
    LedgerMissing,
)
from .cost import Budget, Cost
from .people import People
from .profile import Profile

FORMAT = 1

# Says "this SQLite file is a Noiseshape ledger" in the file's own header: the letters NSHL.
_APPLICATION = 0x4E53484C

# Seconds to wait for other processes. A debit took 10 ms, with a million cells under a second.
_PATIENCE = 30.0

_ROWS = People()

_GENESIS = (
    "CREATE TABLE genesis (format TEXT, nonce TEXT, made TEXT, cap TEXT, stated TEXT, "
    "unit TEXT, max_rows TEXT, neighbours TEXT, vintage TEXT, hash TEXT)"
)
_ENTRY = (
    "CREATE TABLE entry (number INTEGER PRIMARY KEY, nonce TEXT, made TEXT, who TEXT, what TEXT, "
    "unit TEXT, max_rows TEXT, neighbours TEXT, mu_squared TEXT, profile TEXT, "
    "schema_hash TEXT, selection TEXT, spec_hash TEXT, previous TEXT, hash TEXT)"
)

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Charge:
    """What one release costs, who asked for it, and what for: all that a ledger learns of it.

    Parameters
    ----------
    who, what
        One line of text each: who releases, and what.
    people
        Whose privacy; unit and neighbours must be the ledger's.
    cost
        mu^2 under ``people``, its k^2 for k rows per person included; above zero.
    profile : Profile of d cells, or None
        The cost in each cell, k^2 included; its greatest entry is ``cost``. Only under
        add-remove neighbours, since it does not tell the cost of replacing a person.
    schema_hash, selection, spec_hash
        Digests of the schema (cells and policies), of the row selection, and of the whole
        specification.
    """

    who: str
    what: str
    people: People
    cost: Cost
    profile: Profile | None
    schema_hash: str
    selection: str
    spec_hash: str

    def __post_init__(self) -> None:
        for name in ("who", "what", "schema_hash", "selection", "spec_hash"):
            _line(name, getattr(self, name))
        if not isinstance(self.people, People) or not isinstance(self.cost, Cost):
            raise InvalidInput("a charge needs people as People and cost as Cost.")
        if self.cost.neighbours != self.people.neighbours:
            raise InvalidInput(
                f"the cost is stated under {self.cost.neighbours} neighbours and the people rule "
                f"under {self.people.neighbours}: state both under one relation."
            )
        if not self.cost.mu_squared > 0:
            raise InvalidInput("a charge must cost more than 0: a release of nothing needs none.")
        if self.profile is not None:
            self._check_profile(self.profile)

    def _check_profile(self, profile: Profile) -> None:
        if self.people.neighbours != "add-remove":
            raise InvalidInput(
                f"a profile tells the cost under add-remove neighbours only, not under "
                f"{self.people.neighbours}: charge without one."
            )
        # A negative entry would give back what another release spent in its cell.
        negative = int((profile.units < 0).sum())
        if negative:
            raise InvalidInput(
                f"a profile's entries must be at least 0: {negative} of {len(profile)} are not."
            )
        if profile.greatest != self.cost.mu_squared:
            raise InvalidInput(
                f"the profile's greatest entry, {float(profile.greatest):.6g}, must be the cost, "
                f"mu^2 = {float(self.cost.mu_squared):.6g}, exactly (k^2 included in both)."
            )


@dataclass(frozen=True)
class Entry:
    """A charge that was debited.

    Attributes
    ----------
    number
        1 for the first entry, and so on without gaps.
    when
        The time of the debit by the host's clock, UTC, as ISO 8601 text.
    charge
        What was debited.
    previous, hash
        The hashes, in hexadecimal, of the entry before and of this one. A release carries
        ``hash``: see ``Ledger.verify``.
    """

    number: int
    when: str
    charge: Charge
    previous: str
    hash: str


class Epsilons(NamedTuple):
    """Three epsilons at one delta, each rounded up; epsilons do not add, so neither do they.

    Attributes
    ----------
    spent
        Of all that was debited, together.
    left
        Of one further release that takes all that remains, seen by itself.
    cap
        Of everything that the ledger can ever allow, together: the ledger's guarantee.
    """

    spent: float
    left: float
    cap: float


@dataclass(frozen=True, repr=False)
class Remaining:
    """What is left of a ledger's cap: mu^2, exactly, since that is what adds.

    Attributes
    ----------
    cap, spent
        What may be spent in all, and what was.
    """

    cap: Cost
    spent: Cost

    @property
    def mu_squared(self) -> Fraction:
        """What is left, exactly; it may be spent to the last unit."""
        return self.cap.mu_squared - self.spent.mu_squared

    @property
    def mu(self) -> float:
        """The greatest mu of one further release, rounded down."""
        return sqrt_down(self.mu_squared)

    @property
    def rho(self) -> float:
        """What is left as rho = mu^2 / 2, rounded down."""
        return fraction_down(self.mu_squared / 2)

    def epsilon(self, delta: float) -> Epsilons:
        """Return epsilon at ``delta`` of what is spent, of what is left by itself, of the cap.

        Epsilons at one delta do not add: ``cap`` is usually well below ``spent + left``. Plan
        further releases with ``mu_squared`` or ``rho``, which do.
        """
        left = Cost(self.mu_squared, self.cap.neighbours)
        return Epsilons(self.spent.epsilon(delta), left.epsilon(delta), self.cap.epsilon(delta))

    def __repr__(self) -> str:
        return f"Remaining(mu={self.mu:.6g}, rho={self.rho:.6g}, {self.cap.neighbours})"


class Ledger:
    """A cap on privacy spending that outlives the process, in one file.

    Make one with ``Ledger.create`` and open it with ``Ledger.open``. A ledger may be used from
    many threads and processes, and across forks: each operation opens the file, and closes it.

    Formal Guarantees:
      The releases debited are together B-GDP, with B = ``budget.mu``, for queries and noise
      chosen adaptively: mu^2 adds (IMGM, Theorem 4) and stays within a cap that was fixed
      before the first. Under add-remove neighbours and with a ``vintage``, charges of equal
      schema, selection and people rule cost max_i of the sum of their profiles at cell i
      (Fitness-for-use, section 3.2); all others add their maxima. The custodian promises by
      the vintage that these releases see one frozen body of data, in which a person's rows
      stay in their cells. What was spent at a time that depends on results is not itself a
      guarantee: the cap is.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "budget.db")
    >>> ledger = Ledger.create(path, Budget(mu=1.0))
    >>> cost = Cost(Fraction(1, 4))
    >>> entry = ledger.debit(Charge("ana", "by age", People(), cost, None, "s", "all", "d"))
    >>> entry.number, ledger.spent().mu_squared, ledger.remaining().mu_squared
    (1, Fraction(1, 4), Fraction(3, 4))
    """

    def __init__(self, path: Path, genesis: _Genesis, book: _Book) -> None:
        self._path = path
        self._genesis = genesis
        self._book = book  # what this process has verified; it only ever grows

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        budget: Budget,
        *,
        people: People = _ROWS,
        vintage: str | None = None,
    ) -> Ledger:
        """Make a new ledger, readable and writable by its owner alone.

        Parameters
        ----------
        path
            Where; nothing may be there.
        budget
            The cap on everything that will ever be debited; it cannot be changed.
        people
            Whose privacy. Unit and neighbours hold for every debit; ``max_rows`` is a default.
        vintage
            The custodian's name for one frozen body of data, such as "survey 2026, frozen
            2026-10-01". Without one no two releases are taken to see the same data, and
            profiles do not add cell by cell.
        """
        if not isinstance(budget, Budget) or not isinstance(people, People):
            raise InvalidInput("a ledger needs a Budget, and people as People.")
        if vintage is not None:
            _line("vintage", vintage)
        path = _named(path)
        genesis = _Genesis.new(budget, people, vintage)
        _claim(path)
        try:
            with _ONE_AT_A_TIME, _connected(path) as connection:
                _log_ahead(connection, path)
                _write_genesis(connection, genesis)
        except BaseException:
            for name in (path, *_companions(path)):
                name.unlink(missing_ok=True)
            raise
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Open a ledger, after following its whole hash chain.

        A file that is missing, is not a ledger, or does not hold together is refused.
        """
        path = _named(path)
        with _transaction(path, "DEFERRED") as connection:
            genesis, book = _audit(connection, path)
        return cls(path, genesis, book)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def budget(self) -> Budget:
        """The cap, fixed when the ledger was made."""
        return self._genesis.budget

    @property
    def people(self) -> People:
        """Whose privacy: unit and neighbours hold for every entry."""
        return self._genesis.people

    @property
    def vintage(self) -> str | None:
        """The custodian's name for the frozen body of data, or None."""
        return self._genesis.vintage

    @property
    def head(self) -> str:
        """The hash, in hexadecimal, of the newest entry now in the file (of none: the start)."""
        return self._now().head

    def debit(self, charge: Charge) -> Entry:
        """Spend ``charge`` in one transaction, or raise and spend nothing.

        Raises
        ------
        BudgetExceeded
            It would pass the cap, compared as exact rationals.
        InvalidInput
            It is stated for other people than the ledger's.
        LedgerError
            The ledger is missing, altered, locked or cannot be written.
        """
        self._check(charge)
        terms = _fields(charge)  # before the lock: 0.6 s for a profile of a million cells
        with _ONE_AT_A_TIME:
            with _transaction(self._path, "IMMEDIATE") as connection:
                before = self._catch_up(connection)
                after = self._within_cap(before, charge)
                # Keeps apart two copies of a ledger that pay for the same in the same second.
                nonce = secrets.token_hex(16)
                fields = (before.number + 1, nonce, _utc_now(), *terms, before.head)
                row = (*fields, _digest(*fields))
                _insert(connection, "entry", row)
            self._book = after.at(row)  # committed, and not before
        return _entry(row, charge)

    def would_cost(self, charge: Charge) -> Cost:
        """Return what a debit of ``charge`` would add to what is spent; nothing is spent.

        Zero for a release whose profile fits in the slack of those before it.
        """
        self._check(charge)
        before = self._now()
        increment = before.plus(charge).total - before.total
        return Cost(increment, self.people.neighbours)

    def spent(self) -> Cost:
        """Return what all entries cost together."""
        return Cost(self._now().total, self.people.neighbours)

    def remaining(self) -> Remaining:
        """Return what is left of the cap."""
        return Remaining(Cost(self.budget.mu_squared, self.people.neighbours), self.spent())

    def history(self) -> tuple[Entry, ...]:
        """Return every entry, oldest first, after following the whole chain anew."""
        with _transaction(self._path, "DEFERRED") as connection:
            self._same(_read_genesis(connection, self._path))
            return tuple(e for e, _ in _follow(connection, self._path, self._genesis.book()))

    def verify(self, head: str) -> None:
        """Raise unless this ledger holds the entry whose hash a release carries.

        The whole chain is followed anew. A release whose entry is not found was paid for from
        another ledger, or from this one before an older copy of it was put back.
        """
        if not isinstance(head, str) or len(head) != 64 or set(head) - set("0123456789abcdef"):
            raise InvalidInput("head must be the hash of an entry: 64 digits, 0 to 9 and a to f.")
        if head not in {self._genesis.hash, *(entry.hash for entry in self.history())}:
            raise LedgerAltered(
                f"{self._path} holds no entry {head[:12]}...: it is an older copy put back, or "
                "not the ledger that paid for that release. Find the newest copy, and spend "
                "nothing from this one."
            )

    def _repr_html_(self) -> str:
        from ..report.scraps import of_ledger

        return of_ledger(self)

    def __rich__(self) -> Any:
        from ..report.terminal import of_ledger

        return of_ledger(self)

    def __repr__(self) -> str:
        return f"Ledger({str(self._path)!r}, {self.budget!r})"

    def _check(self, charge: Charge) -> None:
        if not isinstance(charge, Charge):
            raise InvalidInput(f"a debit needs a Charge, got {type(charge).__name__}.")
        mine, theirs = self.people, charge.people
        if (mine.unit, mine.neighbours) != (theirs.unit, theirs.neighbours):
            raise InvalidInput(
                f"this ledger protects unit {mine.unit!r} under {mine.neighbours} neighbours, and "
                f"the release unit {theirs.unit!r} under {theirs.neighbours}: costs under two "
                "rules do not add, so state the release under the ledger's. Nothing was spent."
            )

    def _within_cap(self, before: _Book, charge: Charge) -> _Book:
        after = before.plus(charge)
        over = after.total - self.budget.mu_squared
        if over > 0:
            cost = Cost(after.total - before.total)
            left = Remaining(Cost(self.budget.mu_squared), Cost(before.total))
            raise BudgetExceeded(
                f"the release costs mu = {cost.mu:.6g} and mu = {left.mu:.6g} remains (too much by "
                f"mu^2 = {Cost(over).rho * 2:.3g}): ask for less accuracy or for fewer queries. "
                "Nothing was spent."
            )
        return after

    def _now(self) -> _Book:
        with _transaction(self._path, "DEFERRED") as connection:
            return self._catch_up(connection)

    def _catch_up(self, connection: sqlite3.Connection) -> _Book:
        """Verify what was appended since this process last looked.

        What it saw before is not read again: sums are carried on from memory, which an edit of
        the file cannot reach, and an edited old row is found when the file is next opened. That
        the file still continues from there is checked: the entry last seen must be in its place.
        """
        self._same(_read_genesis(connection, self._path))
        seen = self._book
        if seen.number:
            query = "SELECT hash FROM entry WHERE number = ?"
            if connection.execute(query, (seen.number,)).fetchone() != (seen.head,):
                raise _altered(self._path, f"entry {seen.number} is no longer what it was")
        self._book = _last(_follow(connection, self._path, seen), seen)
        return self._book

    def _same(self, genesis: _Genesis) -> None:
        if genesis.hash != self._genesis.hash:
            raise _altered(self._path, "it is another ledger than the one that was opened")


# What the rows amount to.


@dataclass(frozen=True)
class _Genesis:
    """What is fixed when a ledger is made; its hash starts the chain."""

    nonce: str
    made: str
    budget: Budget
    people: People
    vintage: str | None
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hash", _digest(*self.fields()))

    @classmethod
    def new(cls, budget: Budget, people: People, vintage: str | None) -> _Genesis:
        # The nonce makes two ledgers of equal terms two: their hashes never meet.
        return cls(secrets.token_hex(32), _utc_now(), budget, people, vintage)

    @classmethod
    def read(cls, row: Row) -> _Genesis:
        _, nonce, made, cap, stated, unit, max_rows, neighbours, vintage, _ = row
        budget = object.__new__(Budget)  # Budget() takes doubles, and the cap is exact
        object.__setattr__(budget, "mu_squared", _read_rational(cap))
        object.__setattr__(budget, "stated", stated)
        return cls(nonce, made, budget, _read_people(unit, max_rows, neighbours), vintage)

    def fields(self) -> Row:
        cap = _rational(self.budget.mu_squared)
        terms = (cap, self.budget.stated, *_people_fields(self.people), self.vintage)
        return (str(FORMAT), self.nonce, self.made, *terms)

    def book(self) -> _Book:
        return _Book(0, self.hash, self.vintage is not None, self.budget.mu_squared)


class _Group(NamedTuple):
    """Charges whose profiles add cell by cell: a person sits in the same cells in all of them."""

    schema_hash: str
    selection: str
    people: People


@dataclass(frozen=True)
class _Book:
    """What the chain amounts to up to one entry: sums of profiles, and of all other costs."""

    number: int
    head: str
    frozen: bool
    cap: Fraction
    maxima: Fraction = Fraction(0)
    profiles: Mapping[_Group, Profile] = field(default_factory=dict)

    @cached_property
    def total(self) -> Fraction:
        """mu^2 of everything: each group's greatest sum, and everything else's maxima."""
        return self.maxima + sum(p.greatest for p in self.profiles.values())

    def plus(self, charge: Charge) -> _Book:
        """Return what the sums would be with ``charge``, at the same entry."""
        if charge.profile is None or not self.frozen:
            maxima = self.maxima + charge.cost.mu_squared
            return _Book(self.number, self.head, self.frozen, self.cap, maxima, self.profiles)
        group = _Group(charge.schema_hash, charge.selection, charge.people)
        before = self.profiles.get(group)
        if before is not None and len(before) != len(charge.profile):
            raise InvalidInput(
                f"the profile has {len(charge.profile)} cells, and earlier ones of the same schema "
                f"have {len(before)}: give each schema its own schema_hash. Nothing was spent."
            )
        profile = charge.profile if before is None else before + charge.profile
        profiles = {**self.profiles, group: profile}
        return _Book(self.number, self.head, self.frozen, self.cap, self.maxima, profiles)

    def at(self, row: Row) -> _Book:
        """Return the same sums at the entry of ``row``."""
        return _Book(row[0], row[-1], self.frozen, self.cap, self.maxima, self.profiles)


# Rows: text to what it says and back.


def _digest(*fields: Any) -> str:
    """Return the hash of a row; JSON keeps apart what differs in type or in where a field ends."""
    return sha256(json.dumps(fields).encode("ascii")).hexdigest()


def _rational(value: Fraction) -> str:
    return f"{value.numerator:x}/{value.denominator:x}"


def _read_rational(text: str) -> Fraction:
    numerator, denominator = text.split("/")
    return Fraction(int(numerator, 16), int(denominator, 16))


def _profile(profile: Profile | None) -> str | None:
    """Write units over a power of two, with runs counted: profiles of marginals are constant."""
    if profile is None:
        return None
    runs = ((unit, sum(1 for _ in same)) for unit, same in groupby(profile.units))
    return f"{profile.exponent:x}: " + " ".join(f"{unit:x}*{count:x}" for unit, count in runs)


def _read_profile(text: str | None) -> Profile | None:
    if text is None:
        return None
    exponent, runs = text.split(": ")
    units: list[int] = []
    for run in runs.split(" "):
        unit, count = run.split("*")
        units += [int(unit, 16)] * int(count, 16)
    return Profile(units, int(exponent, 16))  # type: ignore[arg-type]  # it makes the array


def _people_fields(people: People) -> tuple[str, str, str]:
    return people.unit, f"{people.max_rows:x}", people.neighbours


def _read_people(unit: str, max_rows: str, neighbours: Any) -> People:
    return People(unit, int(max_rows, 16), neighbours)


def _fields(charge: Charge) -> Row:
    people, cost = _people_fields(charge.people), _rational(charge.cost.mu_squared)
    digests = (charge.schema_hash, charge.selection, charge.spec_hash)
    return (charge.who, charge.what, *people, cost, _profile(charge.profile), *digests)


def _read_charge(row: Row) -> Charge:
    _, _, _, who, what, unit, max_rows, neighbours, cost, profile, *digests, _, _ = row
    people = _read_people(unit, max_rows, neighbours)
    mu_squared = Cost(_read_rational(cost), people.neighbours)
    return Charge(who, what, people, mu_squared, _read_profile(profile), *digests)


def _entry(row: Row, charge: Charge) -> Entry:
    return Entry(row[0], row[2], charge, row[-2], row[-1])


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _line(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InvalidInput(f"{name} must be one line of printable text, and not empty.")


# Reading the chain.


def _audit(connection: sqlite3.Connection, path: Path) -> tuple[_Genesis, _Book]:
    """Read everything in the file, and refuse what does not hold together."""
    # The chain covers what rows say; this, that SQLite will find and append rows in their place.
    if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise _altered(path, "the file is damaged")
    genesis = _read_genesis(connection, path)
    start = genesis.book()
    return genesis, _last(_follow(connection, path, start), start)


def _read_genesis(connection: sqlite3.Connection, path: Path) -> _Genesis:
    # A trigger or a view would change what reading and appending mean.
    tables = connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid").fetchall()
    rows = connection.execute("SELECT * FROM genesis").fetchall() if len(tables) == 2 else []
    if tables != [(_GENESIS,), (_ENTRY,)] or len(rows) != 1:
        raise _altered(path, "its tables are not a ledger's")
    with _legible(path, "its first row"):
        genesis = _Genesis.read(rows[0])
        if (*genesis.fields(), genesis.hash) != rows[0]:
            raise _altered(path, "its first row was changed")
    return genesis


def _follow(
    connection: sqlite3.Connection, path: Path, book: _Book
) -> Iterator[tuple[Entry, _Book]]:
    """Yield each entry after ``book``, verified, and what the chain amounts to with it."""
    query = "SELECT * FROM entry WHERE number > ? ORDER BY number"
    # Closed here: a cursor that a refusal's traceback keeps alive would keep the file open, too.
    with closing(connection.execute(query, (book.number,))) as rows:
        for row in rows:
            with _legible(path, f"entry {book.number + 1}"):
                *fields, hash_ = row
                if (row[0], row[-2], hash_) != (book.number + 1, book.head, _digest(*fields)):
                    raise _altered(path, f"entry {book.number + 1} was changed, moved or removed")
                charge = _read_charge(row)
                book = book.plus(charge).at(row)
            yield _entry(row, charge), book
    if connection.execute("SELECT count(*) FROM entry").fetchone() != (book.number,):
        raise _altered(path, "entries were added or removed")
    if book.total > book.cap:
        raise _altered(path, "its entries cost more than its cap")


def _last(followed: Iterator[tuple[Entry, _Book]], book: _Book) -> _Book:
    return reduce(lambda _, step: step[1], followed, book)


@contextmanager
def _legible(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except LedgerAltered:
        raise
    except (ValueError, TypeError, AttributeError, ArithmeticError):
        raise _altered(path, f"{what} was changed") from None


def _altered(path: Path, what: str) -> LedgerAltered:
    return LedgerAltered(
        f"{path} does not hold together ({what}): spend nothing from it, and put back the newest "
        "copy that holds every release's entry (Ledger.verify). Nothing was spent."
    )


# The file.

# One operation at a time in a process, and none while it forks: SQLite's own notes of who holds
# which lock must not be copied into a child half-way through another thread's transaction.
_ONE_AT_A_TIME = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_ONE_AT_A_TIME.acquire,
        after_in_parent=_ONE_AT_A_TIME.release,
        after_in_child=_ONE_AT_A_TIME.release,
    )


def _named(path: str | os.PathLike[str]) -> Path:
    if "\0" in os.fspath(path):
        raise LedgerError(f"{os.fspath(path)!r} is no name of a file: it holds a null character.")
    return Path(path).absolute()


def _claim(path: Path) -> None:
    """Make an empty file where there is none, or refuse."""
    try:
        remains = [name.name for name in _companions(path) if _is_there(name)]
    except OSError as error:  # such as a name that is too long with what SQLite adds to it
        raise _unmade(path, error) from None
    if remains:
        # SQLite would replay them into the new ledger.
        raise LedgerError(
            f"{path} cannot be made beside {', '.join(remains)}, which belongs to a ledger that "
            "is gone: move that away, or choose another name."
        )
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise LedgerError(
            f"{path} exists: a ledger is never replaced. Open it with Ledger.open, or choose "
            "another name."
        ) from None
    except OSError as error:
        raise _unmade(path, error) from None


def _unmade(path: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"{path} cannot be made ({error.strerror}): name a file in a directory that exists and "
        "that you may write to."
    )


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _companions(path: Path) -> list[Path]:
    """Return the files that SQLite keeps beside its own."""
    return [path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal")]


def _write_genesis(connection: sqlite3.Connection, genesis: _Genesis) -> None:
    # One transaction: a process killed here leaves an empty file, which is no ledger.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute(_GENESIS)
    connection.execute(_ENTRY)
    _insert(connection, "genesis", (*genesis.fields(), genesis.hash))
    connection.execute("COMMIT")


def _insert(connection: sqlite3.Connection, table: str, row: Row) -> None:
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _log_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """Keep a write-ahead log: readers never wait, and FULL means on the disk at every commit."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise LedgerError(
            f"{path} is on a file system that cannot keep a write-ahead log: keep the ledger on a "
            "disk of this machine, in a directory that you may write to. Nothing was spent."
        )


@contextmanager
def _transaction(path: Path, kind: str) -> Iterator[sqlite3.Connection]:
    """Open the ledger for one transaction: committed at the end of the block, or not at all."""
    with _ONE_AT_A_TIME:
        _check_file(path)
        with _connected(path) as connection:
            _identify(connection, path)
            connection.execute(f"BEGIN {kind}")
            yield connection
            connection.execute("COMMIT")


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file for the block, and replace what SQLite says by one sentence on the ledger."""
    # mode=rw: SQLite must never make the file. Commits are ours to state (isolation_level).
    uri = f"{path.as_uri()}?mode=rw"
    try:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)
        ) as connection:
            # A debit is on the disk when it returns: a release follows it. (macOS: fullfsync.)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA cell_size_check = ON")
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # (UnicodeDecodeError: sqlite3 fails to decode SQLite's own message on a damaged file.)
        raise _sentence(path, error) from None


def _check_file(path: Path) -> None:
    # Only ever stat: opening and closing the file here would drop the locks that SQLite holds on
    # it in this process (POSIX locks belong to the process, not to the descriptor).
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise LedgerMissing(
            f"there is no ledger at {path}: name the file that it is in, or make one with "
            "Ledger.create or `noiseshape ledger create FILE`."
        ) from None
    except OSError as error:
        raise LedgerError(f"{path} cannot be looked at ({error.strerror}).") from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a plain file"
        raise LedgerError(f"{path} is {kind}: name the ledger's file.")
    if status.st_nlink > 1:
        # SQLite's log goes by the file's name: under two names two processes would not see
        # each other's debits.
        raise LedgerError(
            f"{path} has {status.st_nlink} names (hard links), each of which would keep its own "
            "log: remove all but one, and copy a ledger instead of linking it."
        )
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        # SQLite would read it, and leave a log beside it that nobody may write to either.
        raise _read_only(path)


def _read_only(path: Path) -> LedgerError:
    return LedgerError(
        f"{path} cannot be opened for writing: you need permission to write to the file, to its "
        "directory and to what is beside it under its name (-wal, -shm). Nothing was spent."
    )


def _identify(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse another program's file before anything is done to it."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise LedgerError(
            f"{path} is not a ledger: name the ledger's file. (If it is empty because making it "
            "was interrupted, remove it and make it again with Ledger.create.)"
        )
    if version != FORMAT:
        raise LedgerError(
            f"{path} is a ledger of format {version}, and this version of Noiseshape reads format "
            f"{FORMAT}: use the version that wrote it, or a later one."
        )
    # Does nothing, unless a tool that copied the file took it out of this mode.
    _log_ahead(connection, path)


def _sentence(path: Path, error: Exception) -> LedgerError:
    # The low byte is the kind; the rest, details. Errors of decoding text carry no code.
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return LedgerLocked(
                f"{path} was locked by another process for more than {_PATIENCE:g} seconds: try "
                "again when that process has ended. Nothing was spent."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return _read_only(path)
        case sqlite3.SQLITE_NOTADB:
            return LedgerError(f"{path} is not a ledger, nor any database: name the ledger's file.")
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_NOMEM:
            return LedgerError(
                f"{path} could not be read or written (disk full or failing, or no memory): see "
                "to that and try again. Nothing was released."
            )
        case sqlite3.SQLITE_TOOBIG:
            return LedgerError("the charge is too large for a ledger: charge without a profile.")
        case _:
            return _altered(path, "the file is damaged")
