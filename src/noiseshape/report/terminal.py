"""The same in a terminal: tables in colour, with small bars, through rich.

``rich.print(plan)`` shows any of these objects, and the command line does where it writes to a
terminal; into a file or a pipe it writes plain text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table as Drawn
from rich.text import Text

from ..privacy import Cost, Ledger
from ..release.planned import Planned, Released
from ..release.table import Table
from .svg import number

if TYPE_CHECKING:
    from ..tables import Schema, Workload

MOST = 40  # rows shown; a longer table shows its first and last twenty
WIDE = 10  # characters of a bar
_RATIO = "variance / target"


def bar(share: float, width: int = WIDE) -> str:
    """Return a bar of so many characters, to the eighth of one.

    Examples
    --------
    >>> bar(0.5, 4), bar(0, 4), bar(2, 4)
    ('██  ', '    ', '████')
    """
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    rest = " ▏▎▍▌▋▊▉"[eighths % 8].strip()
    return ("█" * (eighths // 8) + rest).ljust(width)


def table(shown: Table) -> RenderableType:
    """Return a table in colour; where it has ratios to targets, with a bar for each."""
    drawn = Drawn(caption=shown.note or None, title=shown.caption or None, title_justify="left")
    rows = list(shown.rows())
    barred = _RATIO in shown.columns
    for name in shown.columns:
        numeric = not isinstance(shown[name], tuple)
        drawn.add_column(Text(name), justify="right" if numeric else "left")
    if barred:
        drawn.add_column("of target", min_width=WIDE, no_wrap=True)
    cut = len(rows) > MOST
    for at, row in enumerate(rows):
        if cut and MOST // 2 <= at < len(rows) - MOST // 2:
            if at == MOST // 2:
                drawn.add_row(*["..."] * len(shown.columns))
            continue
        cells = [Text(number(v) if isinstance(v, float) else f"{v}") for v in row.values()]
        if barred:
            ratio = float(row[_RATIO])
            cells.append(Text(bar(ratio), style="blue" if ratio <= 1 + 1e-9 else "red"))
        drawn.add_row(*cells)
    return drawn


def of_cost(cost: Cost) -> RenderableType:
    """Return a cost at several deltas."""
    drawn = Drawn(title=f"mu {cost.mu:.6g}, rho {cost.rho:.6g}, {cost.neighbours} neighbours")
    drawn.add_column("delta", justify="right")
    drawn.add_column("epsilon", justify="right")
    drawn.add_column("", style="blue")
    deltas = (1e-3, 1e-6, 1e-9, 1e-12)
    epsilons = [cost.epsilon(delta) for delta in deltas]
    for delta, epsilon in zip(deltas, epsilons, strict=True):
        share = epsilon / max(epsilons[-1], 1e-300)
        drawn.add_row(f"{delta:g}", number(epsilon), bar(share))
    return drawn


def of_plan(plan: Planned) -> RenderableType:
    """Return what a plan comes to."""
    cost = plan.cost
    title = (
        f"Plan of {plan.count:,} answers: epsilon {number(cost.epsilon(1e-9))} at delta 1e-9 "
        f"(mu {number(cost.mu)}, {cost.neighbours})"
    )
    said = [Text(words) for words in plan.words()]
    return Group(Text(title, style="bold"), *said, table(plan.summary()))


def of_release(release: Released) -> RenderableType:
    """Return the answers of a release."""
    paid = "unrecorded" if release.stamp is None else f"ledger entry {release.stamp.number}"
    title = f"Release of {release.plan.count:,} answers, {release.when[:10]}, {paid}"
    return Group(Text(title, style="bold"), table(release.table()))


def of_ledger(ledger: Ledger) -> RenderableType:
    """Return what a ledger allows, and how much of it is spent."""
    cap, spent = float(ledger.budget.mu_squared), float(ledger.spent().mu_squared)
    drawn = Drawn(caption="mu squared is what adds", show_header=False)
    for name, share in (("spent", spent / cap), ("left", 1 - spent / cap)):
        drawn.add_row(name, f"{100 * share:.1f} %", Text(bar(share, 30), style="blue"))
    title = f"{ledger.budget.stated}; vintage {ledger.vintage or 'none'}"
    lines = [
        Text(f"  {e.number}  {e.when}  {e.charge.who}: {e.charge.what}") for e in ledger.history()
    ]
    return Group(Text(title, style="bold"), drawn, *lines)


def of_schema(schema: Schema) -> RenderableType:
    """Return the columns of a schema."""
    drawn = Drawn(title=f"Schema of {schema.cells:,} cells", title_justify="left")
    for name in ("column", "kind", "cells", "policies"):
        drawn.add_column(name, justify="right" if name == "cells" else "left")
    policies: dict[str, Any] = schema.policies()
    for name, domain in schema.columns.items():
        drawn.add_row(Text(name), domain.kind, f"{domain.size:,}", Text(policies[name]))
    return drawn


def of_workload(work: Workload) -> RenderableType:
    """Return the queries of a workload."""
    rows = work.listing()
    if not rows:
        return Text("Workload: nothing is asked yet")
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    return table(Table(columns, caption=repr(work)))
