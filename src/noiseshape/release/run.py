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
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InvalidInput, ReleaseFailed
from ..privacy.ledger import Charge, Entry, Ledger
from .measurement import measure
from .publication import publish, writable
from .release import Release, Stamp
from .source import Counts, Source
from .staging import Staging

if TYPE_CHECKING:
    from ..strategies.exact import Integers
    from .plan import Plan

T = TypeVar("T")


def run(
    plan: Plan,
    data: Source | Any,
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    who: str = "",
    what: str = "",
    vintage: str | None = None,
    unrecorded: bool = False,
    resume: int | None = None,
) -> Release:
    """Release what a plan asks, about data, paid from a ledger.

    Parameters
    ----------
    plan
        What is measured and what it costs.
    data
        A :class:`~noiseshape.release.source.Source`, or whole numbers, one for each cell.
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
    source = data if isinstance(data, Source) else Counts(data)
    _check(plan, source, ledger, out, unrecorded, resume)
    if ledger is None:
        y = _measure(plan, source, None)
        stamp, when = None, _now()
    else:
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        if vintage is not None and vintage != book.vintage:
            raise InvalidInput(
                f"the data is of vintage {vintage!r}, and the ledger of {book.vintage!r}: pay from "
                "the ledger of this vintage, or make one that covers both without a vintage."
            )
        charge = _charge(plan, who, what)
        entry = book.debit(charge) if resume is None else _entry(book, resume, charge)
        stamp, when = Stamp(entry.number, entry.hash), entry.when
        root = Path(f"{book.path}.runs")
        staging = Staging(root, entry.number, entry.hash, resume=resume is not None)
        y = _measured_once(plan, source, staging, stamp)
    release = _step("rebuild", stamp, lambda: _rebuilt(Release(plan, y, stamp, when)))
    if out is not None:
        folder = out
        _step("publish", stamp, lambda: publish(release, folder))
    return release


def _check(
    plan: Plan,
    source: Source,
    ledger: Ledger | str | os.PathLike[str] | None,
    out: str | os.PathLike[str] | None,
    unrecorded: bool,
    resume: int | None,
) -> None:
    """Refuse what can be refused before anything is spent or read."""
    cells = len(plan.queries.cells)
    if source.cells() != cells:
        raise InvalidInput(f"the plan is about {cells} cells, and the data has {source.cells()}.")
    if ledger is None and not unrecorded:
        raise InvalidInput(
            "a release is paid from a ledger: name one (Ledger.create makes it), or say "
            "unrecorded=True, which the provenance will state."
        )
    if ledger is not None and unrecorded:
        raise InvalidInput("unrecorded=True is for a release without a ledger: leave one out.")
    if resume is not None and ledger is None:
        raise InvalidInput("resume continues the run of a ledger entry: name the ledger.")
    if out is not None:
        writable(out)


def _charge(plan: Plan, who: str, what: str) -> Charge:
    asked = plan.queries
    return Charge(
        who=who or getpass.getuser(),
        what=what or f"{len(asked.names)} answers about {len(asked.cells)} cells",
        people=asked.people,
        cost=plan.cost,
        profile=plan.profile if asked.people.neighbours == "add-remove" else None,
        schema_hash=asked.domain,
        selection=asked.selection,
        spec_hash=plan.digest,
    )


def _entry(book: Ledger, number: int, charge: Charge) -> Entry:
    """Return the entry to resume, if it paid for this very plan."""
    for entry in book.history():
        if entry.number == number:
            if entry.charge.spec_hash != charge.spec_hash:
                raise InvalidInput(
                    f"ledger entry {number} paid for another plan: resume with the plan it names."
                )
            return entry
    raise InvalidInput(f"the ledger has no entry {number}: its history tells which there are.")


def _measured_once(plan: Plan, source: Source, staging: Staging, stamp: Stamp) -> Integers:
    """Return the entry's one measurement: the one that was kept, or the first."""
    with staging:  # what it refuses, it refuses before a row is read, in its own words
        y = staging.measured()
        if y is None:
            y = _measure(plan, source, stamp)
            kept = y
            _step("keep", stamp, lambda: staging.keep(kept))
    return y


def _measure(plan: Plan, source: Source, stamp: Stamp | None) -> Integers:
    asked = plan.queries
    x = _step("read", stamp, source.read)
    return _step(
        "measure",
        stamp,
        lambda: (
            measure(
                plan.strategy,
                x,
                plan.cost,
                people=asked.people,
                rows_may_leave=asked.rows_may_leave,
            ).values
        ),
    )


def _rebuilt(release: Release) -> Release:
    _ = release.answers  # kept by the release: nothing is left to fail later
    return release


def _step(name: str, stamp: Stamp | None, act: Callable[[], T]) -> T:
    """Return what ``act`` returns; whatever goes wrong becomes a sentence with the step alone."""
    try:
        return act()
    except Exception:
        pass  # said below, outside the handler: no chained exception can quote a row
    paid = (
        "Nothing was recorded, and nothing was published."
        if stamp is None
        else f"Ledger entry {stamp.number} stands: resume={stamp.number} continues it, "
        "without a new debit."
    )
    raise ReleaseFailed(f"the release failed at the step {name!r}. {paid}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
