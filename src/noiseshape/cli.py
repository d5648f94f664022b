"""The command line: the custodian's ledger.

Exit codes: 0 done; 2 the input is at fault; 3 the budget does not allow it; 1 ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ._version import __version__
from .errors import BudgetExceeded, NoiseshapeError
from .privacy import Budget, Ledger, People
from .release.publication import published
from .release.table import Table

app = typer.Typer(
    name="noiseshape",
    help="Statistics under differential privacy, with noise shaped to their use.",
    no_args_is_help=True,
    # A traceback of locals could print what nobody may see.
    pretty_exceptions_enable=False,
)
ledger = typer.Typer(help="Make, show and verify budget ledgers.", no_args_is_help=True)
app.add_typer(ledger, name="ledger")

File = Annotated[Path, typer.Argument(help="The ledger's file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Delta = Annotated[float, typer.Option(help="The delta at which epsilons are shown.")]


@contextmanager
def _plainly() -> Iterator[None]:
    """Turn what Noiseshape refuses into one sentence and an exit code."""
    try:
        yield
    except NoiseshapeError as error:
        typer.echo(f"noiseshape: {error}", err=True)
        raise typer.Exit(3 if isinstance(error, BudgetExceeded) else 2) from None


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Statistics under differential privacy, with noise shaped to their use."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


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
    """Show what a ledger allows, what was spent, and what is left."""
    with _plainly():
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
        typer.echo(Table(columns, note=note))


@ledger.command()
def history(file: File, as_json: AsJson = False) -> None:
    """List every release that was paid for: when, who, what, and its cost."""
    with _plainly():
        entries = Ledger.open(file).history()
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
            typer.echo(Table(columns))


@ledger.command()
def verify(
    file: File,
    release: Annotated[
        list[Path] | None, typer.Option(help="Folder of a release that it paid for; repeatable.")
    ] = None,
) -> None:
    """Check that a ledger holds together, and that it is the one that paid for releases.

    An older copy that was put back lacks the entries of later releases: name those releases.

    Example: noiseshape ledger verify budget.db --release published
    """
    with _plainly():
        book = Ledger.open(file)
        for folder in release or []:
            made = published(folder)
            made.verify(book)
            assert made.stamp is not None
            typer.echo(f"{folder}: paid by entry {made.stamp.number}.")
        typer.echo(f"{file} holds together; entries: {len(book.history())}.")


if __name__ == "__main__":
    app()
