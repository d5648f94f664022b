"""A published release: a folder that is whole under its name, or not there at all.

report.html        all of it, to be looked at
provenance.json    who, what, how, at what cost: for readers and programs
release.json       y and A, to combine with later releases; altered files are found
and the answers, in the files that each kind of release has
"""

from __future__ import annotations

import glob
import json
import os
import platform
import secrets
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._version import __version__
from ..archive import sealed, sync, write_whole
from ..errors import InvalidInput
from .planned import FORMAT, opened

if TYPE_CHECKING:
    from ..privacy import Cost, People
    from .planned import Released, Stamp

# The deltas at which the provenance states epsilon; the curve tells it for any other.
DELTAS = (1e-6, 1e-9, 1e-12)

_PAID = 16  # digits of the entry's hash in the name of a folder that is being written


def writable(out: str | os.PathLike[str]) -> None:
    """Refuse a folder that exists, or that cannot be made."""
    out = Path(out)
    if os.path.lexists(out):
        raise InvalidInput(f"{out} exists: a release is published in a new folder; name another.")
    try:
        trial = _partial(out, "trial".ljust(_PAID, "-"))  # as long a name as it will be
        trial.mkdir()
        trial.rmdir()
    except (OSError, ValueError):
        raise InvalidInput(
            f"{out} cannot be made: name a new folder in one that exists and can be written in."
        ) from None


def publish(release: Released, out: str | os.PathLike[str]) -> None:
    """Write the folder beside its place, and rename it into it."""
    out = Path(out).absolute()
    paid = "unrecorded" if release.stamp is None else release.stamp.hash[:_PAID]
    if release.stamp is not None:
        # Left by a process that was killed here: the entry's lock is held, so it is no other's.
        for left in out.parent.glob(f".{glob.escape(out.name)}.{paid}.*.partial"):
            shutil.rmtree(left, ignore_errors=True)
    partial = _partial(out, paid)
    partial.mkdir()
    try:
        release.files(partial)
        text = json.dumps(provenance(release), indent=2, ensure_ascii=False) + "\n"
        write_whole(partial / "provenance.json", text)
        write_whole(partial / "release.json", sealed(release.kind, FORMAT, release.to_json()))
        write_whole(partial / "report.html", _report(release))
        for path in partial.rglob("*"):
            sync(path)
        sync(partial)
        if os.path.lexists(out):
            raise FileExistsError(out)
        partial.rename(out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync(out.parent)


def _report(release: Released) -> str:
    """Return the report, or what to do without: no picture keeps back what was paid for."""
    try:
        return release.report().html
    except Exception:
        return _UNDRAWN


_UNDRAWN = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Release</title>
<p>The pictures of this release could not be drawn, which is a fault of ours: please report it.
All of its numbers are in the other files of this folder; <code>noiseshape report</code> tries
again.</p></html>
"""


def _partial(out: Path, paid: str) -> Path:
    return out.absolute().with_name(f".{out.name}.{paid}.{secrets.token_hex(8)}.partial")


def published(out: str | os.PathLike[str]) -> Released:
    """Read a published folder, of any kind; refuse what is altered or is no release."""
    return opened(Path(out) / "release.json")


def provenance(release: Released) -> dict[str, Any]:
    """Return how the numbers were made, in words and numbers that anybody may read."""
    told = release.told()
    return {
        "mechanism": told["mechanism"],
        "people": _people(release.plan.people),
        "privacy": _privacy(release.plan.cost),
        "accuracy": told["accuracy"],
        "design": told["design"],
        "rows": told["rows"],
        "ledger": _ledger(release.stamp),
        "when": release.when,
        "plan sha256": release.plan.digest,
        "values sha256": release.fingerprint,
        "versions": {"python": platform.python_version()} | _versions(),
    }


def _versions() -> dict[str, str]:
    """Return the versions of what the numbers went through."""
    through = ("numpy", "scipy", "python-flint", "duckdb")
    return {"noiseshape": __version__} | {name: version(name) for name in through}


def _people(people: People) -> dict[str, Any]:
    person = "one row" if people.unit == "rows" else f"up to {people.max_rows} rows of one person"
    change = (
        f"the presence of {person}"
        if people.neighbours == "add-remove"
        else f"the values of {person}"
    )
    return {
        "unit": people.unit,
        "max_rows": people.max_rows,
        "neighbours": people.neighbours,
        "in words": f"Data sets are neighbours when they differ in {change}.",
    }


def _privacy(cost: Cost) -> dict[str, Any]:
    return {
        "mu": cost.mu,
        "mu_squared": str(cost.mu_squared),
        "rho_zcdp": cost.rho,
        "epsilon": {f"{delta:g}": cost.epsilon(delta) for delta in DELTAS},
        "in words": "epsilon at each delta; all numbers are rounded up",
    }


def _ledger(stamp: Stamp | None) -> Any:
    if stamp is None:
        return "unrecorded: no ledger accounts for this release"
    return {"entry": stamp.number, "hash": stamp.hash}
