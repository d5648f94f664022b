"""The page that is generated from the runs: every experiment's table, picture and verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .harness import Record, Rows, experiments_by_name, load, markdown, printed, section

PAGE = "reproduction.md"
FOLDER = "reproduction"

INTRODUCTION = """\
# Reproduction

Every table and figure of the three papers that Noiseshape implements, side by side with what we
measure, and what we claim ourselves. This page is generated: `noiseshape reproduce --all --out
docs` in a checkout writes it from the runs of the scripts in `experiments/`; `--list` names them,
`--full` runs them at full size.

What the papers print is in `experiments/printed.json`, typed from their texts. It is shown beside
what was measured, and goes into no computation. The protocol was fixed before results were looked
at: every draw of noise is fresh; generators are seeded by the hash of the experiment's and the
case's name, so that a run can be repeated; means come with 95 % intervals by Student's t; what a
paper leaves open is said. Where a printed number does not come out, the reason is given as far as
it is known, and nothing is tuned towards it. The slips themselves are in [errata.md](errata.md).
These are experiments, in doubles; releases draw their noise exactly and have no seed. Seconds of a
mechanism are processor time, so that a shared machine does not count; those of a whole experiment
are by the clock.
"""


def write(out: Path) -> Path | None:
    """Write the page from the records that are whole in ``out/reproduction``; None without any."""
    records = {}
    for name, experiment in experiments_by_name().items():
        record = load(experiment, out / FOLDER)
        if record is not None:
            records[name] = record
    if not records:
        return None
    path = out / PAGE
    text = "\n".join(_lines(records)) + "\n"
    if not (out / "errata.md").is_file():  # which is in the docs, and nowhere else
        text = text.replace("[errata.md](errata.md)", "`docs/errata.md`")
    path.write_text(text, encoding="utf-8")
    return path


def _lines(records: dict[str, Record]) -> Iterator[str]:
    known = experiments_by_name()
    yield INTRODUCTION
    yield from _machines(records)
    yield ""
    yield "## Verdicts"
    yield ""
    yield from markdown(_summary(records))
    missing = [name for name in known if name not in records]
    if missing:
        yield ""
        yield f"Not run: {', '.join(missing)}."
    for name, record in records.items():
        yield ""
        yield from section(known[name], record, level=2, folder=f"{FOLDER}/")


def _machines(records: dict[str, Record]) -> Iterator[str]:
    """Say where the records were made, once for each machine and set of versions."""
    where: dict[str, list[str]] = {}
    for name, record in records.items():
        facts = ", ".join(f"{key} {value}" for key, value in record.machine.items())
        where.setdefault(f"Noiseshape {record.version}; {facts}", []).append(name)
    total = sum(record.seconds for record in records.values())
    for facts, names in where.items():
        which = "All experiments" if len(where) == 1 else ", ".join(names)
        yield f"{which}: {facts}."
    yield f"{total / 60:.0f} minutes in all, one process."


def _summary(records: dict[str, Record]) -> Rows:
    known = experiments_by_name()
    return [
        {
            "experiment": f"[{name}](#{_anchor(name, known[name].title)})",
            "of": f"{known[name].group}{', ' + p['table'] if (p := printed(name)) else ''}",
            "what": known[name].title,
            "verdict": known[name].verdict(record.rows).kind,
            "seconds": round(record.seconds),
        }
        for name, record in records.items()
    ]


def _anchor(name: str, title: str) -> str:
    """Return a heading's anchor, as sites that show Markdown make it."""
    text = f"{name}: {title}".lower()
    kept = "".join(c for c in text if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")
