"""A published release: a folder that is whole under its name, or not there at all.

answers.csv, answers.parquet    every answer with its error and interval
provenance.json                 who, what, how, at what cost: for readers and programs
release.json                    y and A, to combine with later releases; altered files are found
"""

from __future__ import annotations

import glob
import json
import os
import platform
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import Floats
from .._version import __version__
from ..archive import digest, read_text, sealed, sync, unsealed, write_whole
from ..errors import InvalidInput
from .intervals import NOISE_ONLY
from .table import Table

if TYPE_CHECKING:
    from .release import Release

FORMAT = 1

INTERVAL = f"95 %; {NOISE_ONLY}"

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


def publish(release: Release, out: str | os.PathLike[str]) -> None:
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
        table = release.table()
        # A CSV file keeps no note: what its intervals are of goes with every one of them.
        table = Table({**table.data, "interval": (INTERVAL,) * len(table)}, note=table.note)
        table.to_csv(partial / "answers.csv")
        table.to_parquet(partial / "answers.parquet")
        text = json.dumps(provenance(release), indent=2, ensure_ascii=False) + "\n"
        write_whole(partial / "provenance.json", text)
        write_whole(partial / "release.json", sealed("release", FORMAT, release.to_json()))
        for path in partial.iterdir():
            sync(path)
        sync(partial)
        if os.path.lexists(out):
            raise FileExistsError(out)
        partial.rename(out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync(out.parent)


def _partial(out: Path, paid: str) -> Path:
    return out.absolute().with_name(f".{out.name}.{paid}.{secrets.token_hex(8)}.partial")


def published(out: str | os.PathLike[str]) -> Release:
    """Read a published folder; refuse what is altered or is no release."""
    from .release import Release

    path = Path(out) / "release.json"
    return Release.from_json(
        unsealed("release", FORMAT, read_text(path, "release"), os.fspath(path))
    )


def provenance(release: Release) -> dict[str, Any]:
    """Return how the numbers were made, in words and numbers that anybody may read."""
    plan, cost = release.plan, release.plan.cost
    people, asked = plan.queries.people, plan.queries
    person = "one row" if people.unit == "rows" else f"up to {people.max_rows} rows of one person"
    change = (
        f"the presence of {person}"
        if people.neighbours == "add-remove"
        else f"the values of {person}"
    )
    return {
        "mechanism": "integer linear measurements with rounded Gaussian noise, drawn exactly",
        "people": {
            "unit": people.unit,
            "max_rows": people.max_rows,
            "neighbours": people.neighbours,
            "in words": f"Data sets are neighbours when they differ in {change}.",
        },
        "privacy": {
            "mu": cost.mu,
            "mu_squared": str(cost.mu_squared),
            "rho_zcdp": cost.rho,
            "epsilon": {f"{delta:g}": cost.epsilon(delta) for delta in DELTAS},
            "in words": "epsilon at each delta; all numbers are rounded up",
        },
        "accuracy": {
            "errors": [
                {
                    "query": query.name,
                    "answers": len(query.labels),
                    "greatest target stderr": float(np.sqrt(query.variance.max())),
                    "greatest stderr": float(achieved.max() ** 0.5),
                    "greatest variance / target": float((achieved / query.variance).max()),
                }
                for query, achieved in zip(asked.queries, _variances(release), strict=True)
            ],
            "targets met up to a factor of variance": plan.k,
            "errors are of": NOISE_ONLY,
            "intervals": release.table().note,
        },
        "design": {
            "shape": plan.shape,
            "refined": plan.refined,
            "workload moved by": plan.moved,
            "certificate": plan.to_json()["certificate"],
        },
        "rows": {"selection": asked.selection} | _rows(release),
        "ledger": (
            "unrecorded: no ledger accounts for this release"
            if release.stamp is None
            else {"entry": release.stamp.number, "hash": release.stamp.hash}
        ),
        "when": release.when,
        "plan sha256": plan.digest,
        "values sha256": digest(release.to_json()["values"]),
        "versions": {
            "noiseshape": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }


def _rows(release: Release) -> dict[str, Any]:
    """Return which rows are counted, by which policies; never how many a policy met."""
    asked = release.plan.queries
    if asked.layout is None:
        return {}
    schema, people = asked.layout.schema, asked.people
    said: dict[str, Any] = {"table": asked.table, "columns": schema.policies()}
    if schema.impossible:
        said["impossible, and left out"] = list(schema.impossible)
    if people.unit != "rows":
        said["of each person"] = (
            f"at most {people.max_rows} rows of one {people.unit}, chosen by a hash of that "
            f"person's own values; rows without {people.unit} are left out"
        )
    return said


def _variances(release: Release) -> list[Floats]:
    ends = np.cumsum([len(query.labels) for query in release.plan.queries.queries])
    return np.split(release.plan.strategy.variance, ends[:-1])
