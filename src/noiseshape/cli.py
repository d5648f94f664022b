"""The command line: from a spec and a file to published numbers, and the custodian's ledger.

Exit codes: 0 done; 2 the input is at fault; 3 the budget does not allow it; 1 ours.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from . import spec as specs
from ._progress import progress
from ._version import __version__
from .errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerAltered,
    LedgerError,
    NoiseshapeError,
    ReleaseFailed,
)
from .parts import planned as planned_parts
from .parts import released as released_parts
from .parts import total
from .privacy import Budget, Ledger, People, epsilon
from .release import MarginalsPlan, Planned, Released, RowsPlan
from .release import load as loaded
from .release import plan as designed
from .release.publication import published, writable
from .release.run import newest, paid_for, run, unfinished
from .release.table import Table
from .report import of_parts
from .tables import Workload
from .tables.check import WARNING
from .tables.check import check as looked_at
from .tables.opening import opened
from .tables.sql import check_kinds

app = typer.Typer(
    name="noiseshape",
    help="Statistics under differential privacy, with noise shaped to their use.",
    no_args_is_help=True,
    # A traceback of locals could print what nobody may see.
    pretty_exceptions_enable=False,
)
ledger = typer.Typer(help="Make, show and verify budget ledgers.", no_args_is_help=True)
app.add_typer(ledger, name="ledger")

# Answers that are made into a table to be printed, whose middle is then left out.
PRINTED = 1_000_000

# Weights, answers times cells, that are written out to check a spec.
WRITTEN = 1 << 24

File = Annotated[Path, typer.Argument(help="The ledger's file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Delta = Annotated[float, typer.Option(help="The delta at which epsilons are shown.")]


@contextmanager
def _plainly() -> Iterator[None]:
    """Turn what Noiseshape refuses into one sentence and an exit code."""
    ours = ""
    try:
        yield
        return
    except ReleaseFailed as error:
        said = re.sub(r"\bresume=(\d+)", r"--resume \1", str(error))  # in the words of this door
        typer.echo(f"noiseshape: {said}", err=True)
        code = 1
    except NoiseshapeError as error:
        typer.echo(f"noiseshape: {error}", err=True)
        code = 3 if isinstance(error, BudgetExceeded) else 2
    except KeyboardInterrupt:
        typer.echo(
            "noiseshape: stopped. A debit that was made stands: noiseshape ledger history names "
            "the runs that --resume continues.",
            err=True,
        )
        code = 130  # as shells say it
    except (typer.Exit, typer.Abort, BrokenPipeError):  # whoever reads may have read enough
        raise
    except Exception as error:
        # Its words may quote anything: only its kind and place are told.
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        line = "" if where is None else f" at {Path(where.tb_frame.f_code.co_filename).name}"
        line += "" if where is None else f", line {where.tb_lineno}"
        ours, code = f"{type(error).__name__}{line}", 1
    if ours:
        typer.echo(f"noiseshape: a fault of ours, {ours}: please report it.", err=True)
    raise typer.Exit(code)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Statistics under differential privacy, with noise shaped to their use."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


SpecFile = Annotated[Path, typer.Argument(help="The spec, in YAML.", show_default=False)]
Out = Annotated[Path | None, typer.Option(help="Folder to publish in; it must not exist.")]


@app.command()
def init(
    data: Annotated[str, typer.Argument(help="Parquet or CSV; a pattern in quotes for many.")],
    out: Annotated[Path | None, typer.Option(help="File to write, not only print.")] = None,
) -> None:
    """Begin a spec from the names and declared types of columns; no row is read.

    Example: noiseshape init census.parquet --out spec.yaml
    """
    with _plainly():
        place = data if out is None else os.path.relpath(data, out.parent)
        text = specs.begun(place, opened(data).kinds())
        if out is None:
            typer.echo(text, nl=False)
            return
        try:
            with out.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise InvalidInput(f"{out} exists: name another file.") from None
        except OSError:
            raise InvalidInput(f"{out} cannot be written: name a file in a folder.") from None
        typer.echo(f"{out} written: fill in its domains and targets, then noiseshape plan {out}.")


@app.command()
def plan(
    spec: SpecFile,
    save: Annotated[Path | None, typer.Option(help="File to keep the plan in.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="HTML file to write: the plan with pictures.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger that would pay, for the report.")
    ] = None,
    every: Annotated[bool, typer.Option(help="Every answer, not one line a query.")] = False,
    delta: Delta = 1e-9,
    as_json: AsJson = False,
) -> None:
    """Say what a spec costs and how accurate each answer will be; no data is touched.

    Example: noiseshape plan spec.yaml --save plan.json --report plan.html
    """
    with _plainly():
        epsilon(delta, 1.0)  # a delta that is none is found before the noise is designed
        if ledger is not None and report is None:
            raise InvalidInput("--ledger is for the report: name one, --report plan.html.")
        parts = _parts(spec)
        if parts is not None:
            if report is not None:
                book = None if ledger is None else Ledger.open(ledger)
                of_parts(parts, delta=delta, ledger=book).save(report)
            _show_parts(parts, save, every=every, delta=delta, as_json=as_json)
            if report is not None and not as_json:
                typer.echo(f"To be looked at: {report}.")
            return
        if save is not None and save.suffix != ".json":
            raise InvalidInput(f"{save} must end with .json, as plans do: --save plan.json.")
        made = _planned(spec)
        if save is not None:
            made.save(save)
        if report is not None:
            book = None if ledger is None else Ledger.open(ledger)
            made.report(report, delta=delta, ledger=book)
        if as_json:
            typer.echo(json.dumps(_plan_facts(made, delta), indent=2))
            return
        for line in _plan_lines(made, delta):
            typer.echo(line)
        typer.echo("")
        _show(made.errors() if every else made.summary())
        if save is not None:
            typer.echo(f"Kept in {save}.")
        if report is not None:
            typer.echo(f"To be looked at: {report}.")


@app.command()
def release(
    spec: Annotated[Path, typer.Argument(help="The spec, or a plan that was saved.")],
    data: Annotated[str | None, typer.Option(help="The rows: Parquet or CSV.")] = None,
    out: Out = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger that pays.")] = None,
    unrecorded: Annotated[bool, typer.Option(help="Release without a ledger, and say so.")] = False,
    who: Annotated[str, typer.Option(help="Who releases, for the ledger's history.")] = "",
    what: Annotated[str, typer.Option(help="What is released, for the ledger's history.")] = "",
    vintage: Annotated[str | None, typer.Option(help="The data's vintage, to be checked.")] = None,
    resume: Annotated[
        int | None, typer.Option(help="Ledger entry of an interrupted run to continue.")
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Pay again, though a run that was paid could continue.")
    ] = False,
    engine: Annotated[str, typer.Option(help="What counts the rows: duckdb or spark.")] = "duckdb",
    master: Annotated[
        str | None, typer.Option(help="Where Spark runs, such as local[2]; all cores by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Debit the ledger, count the rows, add exact noise, and publish a folder.

    Example: noiseshape release spec.yaml --data census.parquet --out published --ledger budget.db
    """
    with _plainly(), ExitStack() as held:
        if out is None:
            raise InvalidInput("name a new folder to publish in: --out published.")
        if ledger is None and not unrecorded:
            raise InvalidInput(
                "name the ledger that pays: --ledger budget.db, which noiseshape ledger create "
                "makes; or say --unrecorded, which the provenance will state."
            )
        if resume is None:
            writable(out)
        asked = None if spec.suffix == ".json" else specs.read(spec)
        rows = data or (asked.data if asked is not None else None)
        if rows is None:
            raise InvalidInput("name the rows: --data census.parquet, or data: in the spec.")
        if data is None and asked is not None:
            rows = str(spec.parent / rows)
        given_as = held.enter_context(_counted_by(engine, rows, master))
        label = vintage or (asked.vintage if asked is not None else None)
        # What cannot be read, or not be paid, is found before the noise is designed.
        if asked is not None:
            if asked.queries:
                work = asked.workload(spec.parent)
                check_kinds(work.schema, work.people, opened(given_as).kinds())
            if ledger is not None:
                _pays(Ledger.open(ledger), asked.said_people(), label)
        parts = _parts(spec)
        if parts is not None:
            with progress("Reading rows and adding noise"):
                each = released_parts(
                    parts,
                    given_as,
                    ledger=ledger,
                    out=out,
                    who=who,
                    what=what or f"{spec.name}",
                    vintage=label,
                    unrecorded=unrecorded,
                    resume=resume,
                )
            _show_released(each, out, ledger, as_json=as_json)
            return
        writable(out)
        made = _planned(spec)
        if ledger is not None and resume is None and not anew:
            _not_paid_already(Ledger.open(ledger), made)
        with progress("Counting rows and adding noise") as watch:
            given = run(
                made,
                made.source(given_as, watch)
                if isinstance(made, (RowsPlan, MarginalsPlan))
                else given_as,
                ledger=ledger,
                out=out,
                who=who,
                what=what or f"{spec.name}",
                vintage=vintage or (asked.vintage if asked is not None else None),
                unrecorded=unrecorded,
                resume=resume,
            )
        if as_json:
            typer.echo(json.dumps(_release_facts(given, out), indent=2))
            return
        _show_answers(given)
        typer.echo("")
        typer.echo(f"Published in {out}: {', '.join(_files(out))}. Look at {out / 'report.html'}.")
        if ledger is not None:
            typer.echo(f"Paid by {ledger}: {_left(ledger)}.")


@app.command()
def check(
    spec: SpecFile,
    data: Annotated[
        str | None, typer.Option(help="Look at these rows too: for the custodian's eyes only.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a spec; with --data, tell the custodian which values do not fit it.

    Example: noiseshape check spec.yaml --data census.parquet
    """
    with _plainly():
        asked = specs.read(spec)
        asked.ceiling()
        if asked.matrices:
            _check_parts(spec, asked, data, as_json=as_json)
            if data is None or not asked.queries or as_json:
                return
        work = asked.workload(spec.parent)
        if data is None:
            with progress("Compiling the queries"):
                answers, cells, told = _compiled(work, asked.shape)
            if as_json:
                typer.echo(json.dumps({"answers": answers, "cells": cells}))
                return
            typer.echo(f"{spec} holds together: {told}.")
            for line in work.schema.words(work.people):
                typer.echo(f"  {line}")
            return
        with progress("Looking at the rows"):
            rows, columns = looked_at(opened(data), work.schema, work.people)
        if as_json:
            typer.echo(json.dumps({"warning": WARNING, "rows": rows, "columns": columns}, indent=2))
            return
        typer.echo(WARNING)
        typer.echo(f"{rows:,} rows.")
        for column in columns:
            counts = [f"{k} {v:,}" for k, v in column.items() if k != "column"]
            typer.echo(f"  {column['column']}: {', '.join(counts)}.")


def _compiled(work: Workload, shape: str) -> tuple[int, int, str]:
    """Return how many answers and cells a workload has, checked as its plan would be.

    What is planned by marginals, or in the order of a column, is never written out over all cells.
    """
    if work.unwritten:
        ordered = work.ordered()
        answers, cells = ordered.groups * len(ordered.low), ordered.cells
        return answers, cells, f"{answers:,} answers over {cells:,} cells"
    if shape in ("fit", "total") and all(question.summed is None for question in work.asks):
        asked = work.products()
        cells = math.prod(asked.sizes)
        answers = sum(len(named.variance) for named in asked.named)
        if cells * answers > WRITTEN:
            return answers, cells, f"{answers:,} answers over {cells:,} cells"
    queries = work.compiled()
    return len(queries.names), len(queries.cells), f"{queries}"


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a published release.")],
    out: Annotated[
        Path | None,
        typer.Option(help="HTML file to write; report.html in the folder stays as it is."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger that paid: shows what is left of the budget.")
    ] = None,
    delta: Delta = 1e-9,
    as_json: AsJson = False,
) -> None:
    """Show what a published folder holds: privacy, accuracy, answers; as HTML with pictures too.

    Example: noiseshape report published --out report.html --ledger budget.db
    """
    with _plainly():
        epsilon(delta, 1.0)
        inside = _inside(folder)
        book = None if ledger is None else Ledger.open(ledger)
        if book is not None and out is None:
            raise InvalidInput(
                "what is left of a budget is no part of the published folder: name another file "
                "for the report, --out report.html."
            )
        page = out or folder / "report.html"
        if inside:
            if out is not None or not page.exists():
                of_parts(inside, delta=delta, ledger=book).save(page)
            _show_released(inside, folder, None, as_json=as_json)
            if not as_json:
                typer.echo(f"To be looked at: {page}.")
            return
        with progress("Reading the release"):
            given = published(folder)
        if out is not None or not page.exists():
            given.report(page, delta=delta, ledger=book)
        if as_json:
            typer.echo(json.dumps(_release_facts(given, folder), indent=2))
            return
        for line in _plan_lines(given.plan, delta):
            typer.echo(line)
        paid = "no ledger" if given.stamp is None else f"ledger entry {given.stamp.number}"
        typer.echo(f"Released {given.when}, paid by {paid}.")
        typer.echo("")
        _show(given.plan.summary())
        typer.echo("")
        _show_answers(given)
        typer.echo(f"To be looked at: {page}.")


@app.command()
def schema() -> None:
    """Print the JSON Schema of a spec, for editors that check and complete while you type.

    Example: noiseshape schema > spec.schema.json
    """
    typer.echo(json.dumps(specs.json_schema(), indent=2))


@contextmanager
def _counted_by(engine: str, rows: str, master: str | None) -> Iterator[Any]:
    """Yield rows for the engine that counts them: a path, or a frame of Spark."""
    if engine not in ("duckdb", "spark"):
        raise InvalidInput(f"rows are counted by duckdb or spark, got --engine {engine}.")
    if engine == "duckdb":
        if master is not None:
            raise InvalidInput("--master says where Spark runs: say --engine spark too.")
        opened(rows)  # what cannot be read is found first
        yield rows
        return
    from .tables.spark import reading

    with ExitStack() as session:
        with progress("Starting Spark"):
            frame = session.enter_context(reading(rows, master or "local[*]"))
        yield frame


def _left(path: Path) -> str:
    """Return what a ledger allows further; a release that is published is not failed by it."""
    try:
        return str(Ledger.open(path).remaining())
    except LedgerError:  # such as a disk that is full by now
        return "what remains cannot be read now, and noiseshape ledger show tells it later"


def _show(shown: Table) -> None:
    """Print a table: in colour with small bars on a terminal, as plain text into anything else."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(shown)
    else:
        typer.echo(shown)


def _planned(path: Path) -> Planned:
    """Return the plan that was saved, or the one that a spec asks for."""
    if path.suffix == ".json":
        with progress("Reading the plan"):
            return loaded(path)
    asked = specs.read(path)
    work = asked.workload(path.parent)
    with progress("Designing the noise") as watch:
        return designed(
            work,
            shape=asked.shape,
            budget=asked.ceiling(),
            prioritise=asked.prioritise,
            progress=lambda state: watch(state.words),
        )


def _show_answers(given: Released) -> None:
    """Print the answers, or how many there are where they would not fit in memory as text."""
    if given.plan.count > PRINTED:
        typer.echo(f"{given.plan.count:,} answers, in the files.")
    else:
        _show(given.table())


def _parts(path: Path) -> dict[str, Planned] | None:
    """Return the plans of a spec that has matrices, by name; None for any other."""
    if path.suffix == ".json":
        return None
    asked = specs.read(path)
    if not asked.matrices:
        return None
    with progress("Designing the noise") as watch:
        return planned_parts(asked, path.parent, lambda state: watch(state.words))


def _show_parts(
    parts: dict[str, Planned], save: Path | None, *, every: bool, delta: float, as_json: bool
) -> None:
    """Print the plans of several parts, and keep each in a file of its own in a new folder."""
    if save is not None:
        try:
            save.mkdir()
        except OSError:
            raise InvalidInput(
                f"{save} cannot be made: a spec with matrices has several plans, which are kept "
                "in a new folder; name one."
            ) from None
        for name, made in parts.items():
            made.save(save / f"{name}.json")
    together = total(parts)
    if as_json:
        cost = {"mu": together.mu, "rho": together.rho, "epsilon": together.epsilon(delta)}
        facts = {name: _plan_facts(made, delta) for name, made in parts.items()}
        typer.echo(json.dumps({"cost": cost | {"delta": delta}, "parts": facts}, indent=2))
        return
    for name, made in parts.items():
        typer.echo(f"{name}:")
        for line in _plan_lines(made, delta):
            typer.echo(line)
        typer.echo(f"{made.errors() if every else made.summary()}\n")
    typer.echo(
        f"Together: epsilon {together.epsilon(delta):.6g} at delta {delta:g}; rho "
        f"{together.rho:.6g}; mu {together.mu:.6g}."
    )
    if save is not None:
        typer.echo(f"Kept in {save}.")


def _show_released(
    each: dict[str, Released], out: Path, ledger: Path | None, *, as_json: bool
) -> None:
    """Print what was released in several parts, each in its own folder."""
    if as_json:
        facts = {name: _release_facts(given, out / name) for name, given in each.items()}
        typer.echo(json.dumps({"parts": facts}, indent=2))
        return
    for name, given in each.items():
        paid = "no ledger" if given.stamp is None else f"ledger entry {given.stamp.number}"
        typer.echo(f"{name}: paid by {paid}, in {out / name}: {', '.join(_files(out / name))}.")
        _show_answers(given)
        typer.echo("")
    if ledger is not None:
        typer.echo(f"Paid by {ledger}: {Ledger.open(ledger).remaining()}.")


def _check_parts(spec: Path, asked: specs.Spec, data: str | None, *, as_json: bool) -> None:
    """Say that a spec with matrices holds together; with data, that its columns are there."""
    parts = planned_parts(asked, spec.parent)
    rows = data or asked.data
    if rows is not None:
        for plan in parts.values():
            plan.source(rows if data is not None else str(spec.parent / rows))
    if as_json:
        typer.echo(json.dumps({name: {"answers": p.count} for name, p in parts.items()}))
        return
    for name, plan in parts.items():
        typer.echo(f"{name}: {plan.count:,} answers.")
        for line in plan.words():
            typer.echo(f"  {line.strip()}")


def _inside(folder: Path) -> dict[str, Released]:
    """Return the parts that were published in a folder, by name; none where it is a release."""
    if not folder.is_dir() or (folder / "release.json").exists():
        return {}
    found = sorted(path.parent for path in folder.glob("*/release.json"))
    return {path.name: published(path) for path in found}


def _pays(book: Ledger, people: People, vintage: str | None) -> None:
    """Refuse a ledger that is about other people, or of another vintage."""
    mine, theirs = ((p.unit, p.neighbours) for p in (people, book.people))
    if mine != theirs:
        raise InvalidInput(
            f"this ledger protects unit {theirs[0]!r} under {theirs[1]} neighbours, and the spec "
            f"unit {mine[0]!r} under {mine[1]}: say the same in both, such as noiseshape ledger "
            f"create FILE --unit {mine[0]} --neighbours {mine[1]}. Nothing was spent."
        )
    if vintage is not None and vintage != book.vintage:
        raise InvalidInput(
            f"the data is of vintage {vintage!r}, and the ledger of {book.vintage!r}: pay from "
            "the ledger of this vintage, or make one that covers both without a vintage."
        )


def _not_paid_already(book: Ledger, made: Planned) -> None:
    """Refuse to pay twice where a run that was paid for was stopped, and can be continued."""
    for entry in unfinished(book):
        if paid_for(entry.charge, made.charge(entry.charge.who, entry.charge.what)):
            raise InvalidInput(
                f"ledger entry {entry.number} paid for this very plan, and its run was stopped: "
                f"--resume {entry.number} continues it on the same data, without a new debit; "
                "--anew pays again. Nothing was spent."
            )


def _plan_lines(made: Planned, delta: float) -> Iterator[str]:
    people, cost = made.people, made.cost
    person = "one row" if people.unit == "rows" else f"up to {people.max_rows} rows of one person"
    change = "is there or not" if people.neighbours == "add-remove" else "has other values"
    answers = "1 answer" if made.count == 1 else f"{made.count:,} answers"
    yield f"{answers}; privacy for whether {person} {change}."
    yield (
        f"Cost: epsilon {cost.epsilon(delta):.6g} at delta {delta:g}; rho {cost.rho:.6g}; "
        f"mu {cost.mu:.6g}."
    )
    yield from made.words()


def _plan_facts(made: Planned, delta: float) -> dict[str, Any]:
    cost = {
        "mu": made.cost.mu,
        "rho": made.cost.rho,
        "epsilon": made.cost.epsilon(delta),
        "delta": delta,
    }
    return {"answers": made.count, "cost": cost, "plan": made.digest} | made.facts()


def _release_facts(given: Released, folder: Path) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "files": _files(folder),
        "ledger entry": None if given.stamp is None else given.stamp.number,
        "answers": list(given.table().rows()) if given.plan.count <= PRINTED else given.plan.count,
    }


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@ledger.command()
def create(
    file: File,
    epsilon: Annotated[float | None, typer.Option(help="Cap: epsilon, with --delta.")] = None,
    delta: Annotated[float | None, typer.Option(help="Cap: delta, with --epsilon.")] = None,
    rho: Annotated[float | None, typer.Option(help="Cap: rho of zCDP.")] = None,
    mu: Annotated[float | None, typer.Option(help="Cap: mu of Gaussian DP.")] = None,
    vintage: Annotated[
        str | None, typer.Option(help="Your name for one frozen body of data.")
    ] = None,
    unit: Annotated[str, typer.Option(help='"rows", or the column that names a person.')] = "rows",
    max_rows: Annotated[int, typer.Option(help="Most rows of one person.")] = 1,
    neighbours: Annotated[str, typer.Option(help="add-remove or replace.")] = "add-remove",
) -> None:
    """Make a ledger with a cap that can never be changed: the only way to make one.

    Example: noiseshape ledger create budget.db --epsilon 4 --delta 1e-9 --vintage "survey 2026"
    """
    with _plainly():
        budget = Budget(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
        people = People(unit, max_rows, neighbours)  # type: ignore[arg-type]  # it checks
        made = Ledger.create(file, budget, people=people, vintage=vintage)
        typer.echo(
            f"{file} made: it allows {made.budget.stated} (mu={made.budget.mu:.6g}) in all, "
            "which cannot be changed."
        )


@ledger.command()
def show(file: File, delta: Delta = 1e-9, as_json: AsJson = False) -> None:
    """Show what a ledger allows, what was spent, and what is left.

    Example: noiseshape ledger show budget.db --delta 1e-6
    """
    with _plainly():
        epsilon(delta, 1.0)
        with progress("Reading the ledger"):
            book = Ledger.open(file)
            left, spent = book.remaining(), book.spent()
        epsilons = left.epsilon(delta)
        facts: dict[str, Any] = {
            "vintage": book.vintage,
            "unit": book.people.unit,
            "neighbours": book.people.neighbours,
            "releases": len(book.history()),
            "cap": {"mu": book.budget.mu, "rho": book.budget.rho, "epsilon": epsilons.cap},
            "spent": {"mu": spent.mu, "rho": spent.rho, "epsilon": epsilons.spent},
            "left": {"mu": left.mu, "rho": left.rho, "epsilon": epsilons.left},
            "delta": delta,
            "head": book.head,
        }
        if as_json:
            typer.echo(json.dumps(facts, indent=2))
            return
        typer.echo(
            f"{file}: releases {facts['releases']}; unit {book.people.unit}, "
            f"{book.people.neighbours} neighbours; vintage {book.vintage or 'none'}"
        )
        names = ("cap", "spent", "left")
        columns: dict[str, Any] = {"": names}
        for unit in ("mu", "rho", "epsilon"):
            name = f"epsilon at delta {delta:g}" if unit == "epsilon" else unit
            columns[name] = [facts[n][unit] for n in names]
        note = "mu squared and rho add from release to release; mu and epsilon do not"
        _show(Table(columns, note=note))


@ledger.command()
def history(file: File, as_json: AsJson = False) -> None:
    """List every release that was paid for: when, who, what, and its cost.

    Example: noiseshape ledger history budget.db
    """
    with _plainly():
        with progress("Reading the ledger"):
            book = Ledger.open(file)
            entries = book.history()
        rows: list[dict[str, Any]] = [
            {
                "entry": e.number,
                "when": e.when,
                "who": e.charge.who,
                "what": e.charge.what,
                "mu": e.charge.cost.mu,
                "rho": e.charge.cost.rho,
                "plan": e.charge.spec_hash,
                "hash": e.hash,
            }
            for e in entries
        ]
        if as_json:
            typer.echo(json.dumps(rows, indent=2))
        elif not rows:
            typer.echo(f"{file}: nothing was released yet.")
        else:
            shown = ("entry", "when", "who", "what", "mu", "rho")
            columns: dict[str, Any] = {name: [row[name] for row in rows] for name in shown}
            columns["hash"] = [row["hash"][:12] for row in rows]
            _show(Table(columns))
            for entry in unfinished(book):
                typer.echo(
                    f"The run of entry {entry.number} was stopped before anything was published: "
                    f"noiseshape release with --resume {entry.number} continues it."
                )


@ledger.command()
def verify(
    file: File,
    release: Annotated[
        list[Path] | None, typer.Option(help="Folder of a release that it paid for; repeatable.")
    ] = None,
) -> None:
    """Check that a ledger holds together, and that it is the one that paid for releases.

    An older copy that was put back lacks the entries of later releases: name those releases. Two
    releases of one entry, which a run continued from a copy makes, are found when both are named.

    Example: noiseshape ledger verify budget.db --release published
    """
    with _plainly():
        book = Ledger.open(file)
        newest(book)
        measured: dict[int, tuple[Path, str]] = {}
        for folder in release or []:
            with progress(f"Reading {folder}"):
                made = published(folder)
                made.verify(book)
            assert made.stamp is not None
            first, known = measured.setdefault(made.stamp.number, (folder, made.fingerprint))
            if made.fingerprint != known:
                raise LedgerAltered(
                    f"{first} and {folder} are two measurements for ledger entry "
                    f"{made.stamp.number}, which paid for one: a run was continued from a copy of "
                    "it; count that cost twice, and use the ledger and its folder of runs in one "
                    "place only."
                )
            typer.echo(f"{folder}: paid by entry {made.stamp.number}.")
        typer.echo(f"{file} holds together; entries: {len(book.history())}.")


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments to run.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Name every experiment.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Full sizes: hours, not minutes.")] = False,
    again: Annotated[bool, typer.Option(help="Run again what is done already.")] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for the page, and for reproduction/ with all files.")
    ] = Path("out"),
) -> None:
    """Run the papers' tables and figures, ours beside what is printed; in a checkout of the source.

    Example: noiseshape reproduce ffu-table-4
    """
    with _plainly(), _with_development_extra():
        harness, document = _experiments()
        known = harness.experiments_by_name()
        chosen = [harness.named(name) for name in (known if every else names or [])]
        if listed:
            for name, experiment in known.items():
                typer.echo(f"{name:22} {experiment.group}: {experiment.title}")
            return
        if not chosen:
            raise InvalidInput("name experiments, or say --all; --list names them.")
        folder = out / document.FOLDER
        for number, experiment in enumerate(chosen, 1):
            with progress(f"{experiment.name}, {number} of {len(chosen)}") as watch:
                size = "full" if full else "default"
                record = harness.run(experiment, folder, size, again=again, watch=watch)
            verdict = experiment.verdict(record.rows)
            typer.echo(f"{experiment.name} ({record.seconds:.0f} s): {verdict.kind}. {verdict.why}")
        typer.echo(f"Written: {document.write(out)}, and tables and pictures in {folder}.")


def _experiments() -> tuple[Any, Any]:
    """Return the experiments' harness and document, which are in the source and not installed.

    They need the development extra, data and peers that no user of the library should have to
    install.
    """
    for root in (Path(__file__).resolve().parents[2], Path.cwd()):
        if (root / "experiments" / "printed.json").is_file():
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))
            names = ("experiments.harness", "experiments.document")
            harness, document = (importlib.import_module(name) for name in names)
            return harness, document
    raise InvalidInput(
        "the experiments come with Noiseshape's source and are not installed: clone it, "
        'pip install -e ".[dev]", and run noiseshape reproduce in its folder.'
    )


@contextmanager
def _with_development_extra() -> Iterator[None]:
    """Turn a module that is not there into what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"the experiments need {error.name}, of the development extra: "
            'pip install -e ".[dev]" in the checkout.'
        ) from None


if __name__ == "__main__":
    app()
