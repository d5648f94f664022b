"""The order of events of a release. It is fixed, and everything else is built around it.

1. check    what plan, declared cells, ledger and folders tell, before any row is read
2. debit    the ledger, in one transaction; from here on the debit stands, whatever happens
3. read     rows, for the first time
4. measure  A~ f(x) in exact integers plus exact noise, kept whole in the private staging folder
5. rebuild  answers
6. publish  by rename

After the third step no message, file name or exit path depends on values: a failure names its
step, and nothing else. An interrupted run is continued with ``resume``: what was measured for
its entry is used again, and only what is missing is drawn.
"""

from __future__ import annotations

import getpass
import os
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .._checks import whole
from ..errors import InvalidInput, LedgerAltered, ReleaseFailed
from ..privacy.ledger import Charge, Entry, Ledger
from .planned import InChunks, Planned, Released, Stamp
from .publication import publish, writable
from .source import Source
from .staging import Staging, plan_of, stopped, usable

if TYPE_CHECKING:
    from ..strategies.exact import Integers

T = TypeVar("T")


def run(
    plan: Planned,
    data: Source | Any,
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    who: str = "",
    what: str = "",
    vintage: str | None = None,
    unrecorded: bool = False,
    resume: int | None = None,
) -> Released:
    """Release what a plan asks, about data, paid from a ledger.

    Parameters
    ----------
    plan
        What is measured and what it costs.
    data
        As the plan takes it. For a plan of a workload: a path to Parquet or CSV files, a pandas,
        Polars or Spark frame, an Arrow table or a DuckDB relation, counted where it is. For a plan
        of queries: whole numbers, one for each cell. Or any
        :class:`~noiseshape.release.source.Source`.
    ledger
        The budget ledger, or its file.
    out
        Folder to publish in; it must not exist yet. Without one, the result is only returned.
    who, what
        Words for the ledger's history: who releases, and what.
    vintage
        The custodian's label of this data; one that is not the ledger's is refused, since
        profiles add cell by cell only over one frozen body of data.
    unrecorded
        Release without a ledger. The provenance will say so.
    resume
        Number of the ledger entry of an interrupted run to continue, without a new debit.

    Formal Guarantees:
      No measurement without a debit; at most one measurement a debit that anybody is shown;
      no file that looks whole and is not.
    """
    source = plan.source(data)
    _check(plan, ledger, out, unrecorded, resume)
    if ledger is None:
        y = _measure(plan, source, None, None)
        return _finish(plan, y, None, _now(), out)
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    if vintage is not None and vintage != book.vintage:
        raise InvalidInput(
            f"the data is of vintage {vintage!r}, and the ledger of {book.vintage!r}: pay from "
            "the ledger of this vintage, or make one that covers both without a vintage."
        )
    charge = plan.charge(who or _user(), what)
    root, resumed = runs_of(book.path), resume is not None
    if not resumed:
        usable(root)
        newest(book)
    entry = book.debit(charge) if resume is None else _entry(book, resume, charge, root)
    stamp = Stamp(entry.number, entry.hash)
    # What staging refuses, it refuses before a row is read, in its own words. It is held to the
    # end, so that no two processes publish one entry at once.
    with Staging(root, entry.number, entry.hash, resume=resumed) as staging:
        if isinstance(plan, InChunks):
            staging.same(source.known())  # type: ignore[attr-defined]  # rows in chunks tell it
        y = _measured_once(plan, source, staging, stamp)
        return _finish(plan, y, stamp, entry.when, out)


def _measured_once(plan: Planned, source: Source, staging: Staging, stamp: Stamp) -> Integers:
    """Return the entry's one measurement: the one that was kept, or the first."""
    kept = staging.measured()
    return _measure(plan, source, staging, stamp) if kept is None else kept


def _finish(
    plan: Planned,
    y: Integers,
    stamp: Stamp | None,
    when: str,
    out: str | os.PathLike[str] | None,
) -> Released:
    """Rebuild the answers now, so that nothing is left to fail later, and publish."""
    release = _step(["rebuild"], stamp, lambda: _settled(plan.released(y, stamp, when)))
    if out is not None:
        _step(["publish"], stamp, lambda: publish(release, out))
    return release


def _settled(release: Released) -> Released:
    release.settle()
    return release


def runs_of(ledger: Path) -> Path:
    """Return the folder of a ledger's runs: one, whatever name the ledger is reached by."""
    return Path(f"{ledger.resolve()}.runs")


def newest(book: Ledger) -> None:
    """Refuse a ledger that lacks the entry of a run beside it: it is not the newest.

    The folder of runs goes with the ledger's name and not with its content: an older copy that is
    put back, or a ledger made anew where one was lost, would forget what those runs cost.
    """
    root = runs_of(book.path)
    # Listed before the history is read: a debit comes before its folder.
    runs = sorted(path.name for path in root.glob("*") if len(path.name) == 64)
    lost = set(runs) - {entry.hash for entry in book.history()}
    if lost:
        raise LedgerAltered(
            f"{root} holds {len(lost)} of {len(runs)} runs that {book.path.name} has no entry "
            "for: an older copy was put back, or a ledger made anew where one was lost, which "
            "forgets what those runs cost. Put the newest ledger back; or, if they were about "
            "other data, move that folder away. Nothing was spent."
        )


def unfinished(book: Ledger) -> tuple[Entry, ...]:
    """Return the entries whose run was stopped before its measurement was kept."""
    root = runs_of(book.path)
    return tuple(e for e in book.history() if stopped(root / e.hash))


def _check(
    plan: Planned,
    ledger: Ledger | str | os.PathLike[str] | None,
    out: str | os.PathLike[str] | None,
    unrecorded: bool,
    resume: int | None,
) -> None:
    """Refuse what can be refused before anything is spent or read."""
    if ledger is not None and not isinstance(ledger, (Ledger, str, os.PathLike)):
        raise InvalidInput("ledger must be a Ledger, or the file of one.")
    if ledger is None and not unrecorded:
        raise InvalidInput(
            "a release is paid from a ledger: name one (Ledger.create makes it), or say "
            "unrecorded=True, which the provenance will state."
        )
    if ledger is not None and unrecorded:
        raise InvalidInput("unrecorded=True is for a release without a ledger: leave one out.")
    if resume is not None and ledger is None:
        raise InvalidInput("resume continues the run of a ledger entry: name the ledger.")
    if resume is not None:
        whole("resume", resume)
    if out is not None:
        if not isinstance(out, (str, os.PathLike)):
            raise InvalidInput("out must be the path of a new folder.")
        writable(out)
    # A strategy that cannot be rebuilt is found now, and not after the debit.
    plan.rehearse()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have a number and no name
        return f"uid {os.getuid()}"


def _entry(book: Ledger, number: int, charge: Charge, root: Path) -> Entry:
    """Return the entry to resume, if it paid for this very plan."""
    for entry in book.history():
        if entry.number == number:
            if not paid_for(entry.charge, charge):
                raise InvalidInput(
                    f"ledger entry {number} paid for another plan (designed anew, with other "
                    "threads or elsewhere, a plan may differ in its last digits): resume with "
                    f"the one that it paid for, {plan_of(root / entry.hash)}."
                )
            return entry
    raise InvalidInput(f"the ledger has no entry {number}: its history tells which there are.")


def paid_for(paid: Charge, wanted: Charge) -> bool:
    """Return whether two charges are for the same plan: all but who and what."""
    mine, theirs = (
        (c.spec_hash, c.cost, c.people, c.profile, c.schema_hash, c.selection)
        for c in (paid, wanted)
    )
    return mine == theirs


def _measure(
    plan: Planned, source: Source, staging: Staging | None, stamp: Stamp | None
) -> Integers:
    if staging is not None:
        _step(["stage"], stamp, lambda: staging.describe(plan.text()))
    at = ["read"]
    return _step(at, stamp, lambda: _read_measure_keep(plan, source, staging, at))


def _read_measure_keep(
    plan: Planned, source: Source, staging: Staging | None, at: list[str]
) -> Integers:
    """Read the rows, measure them, and keep the measurement; ``at`` tells what failed.

    All in one step: a measurement that could not be kept, and may be drawn again, is in no frame
    of a traceback.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning may quote a value
        x = source.read()
        at[0] = "measure"
        if staging is not None and isinstance(plan, InChunks):
            y = plan.measured(x, plan.kept_in(staging.chunks(), staging.path.name))
        else:
            y = plan.measured(x)
    if staging is not None:
        at[0] = "keep"
        staging.keep(y)
    return y


def _step(at: list[str], stamp: Stamp | None, act: Callable[[], T]) -> T:
    """Return what ``act`` returns; whatever goes wrong becomes a sentence with the step alone.

    It is raised outside the handler: no chained exception, and no frame of the traceback, holds
    what the step was working on.
    """
    interrupted = False
    try:
        return act()
    except KeyboardInterrupt:
        interrupted = True
    except BaseException:  # engines' panics are no Exceptions, and quote rows
        pass
    if interrupted:
        raise KeyboardInterrupt
    paid = (
        "Nothing was recorded, and nothing was published."
        if stamp is None
        else f"Ledger entry {stamp.number} stands: resume={stamp.number} continues it, "
        "without a new debit."
    )
    raise ReleaseFailed(f"the release failed at the step {at[0]!r}. {paid}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
