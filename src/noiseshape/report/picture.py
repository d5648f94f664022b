"""A picture with what it shows in words and as a table: none is handed out without both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from ..release.table import Table
from .svg import WIDTH, fixed

# Around what follows from measured numbers: the tests take it out to compare neighbouring data.
DERIVED, END = "<!--y-->", "<!--/y-->"


@dataclass(frozen=True, eq=False, repr=False)
class Picture:
    """A drawing, its title, what it says for those who do not see it, and the table behind it.

    Attributes
    ----------
    title
        What is drawn.
    said
        One or two sentences in its place.
    drawn
        The inside of an SVG, ``WIDTH`` by ``height`` pixels.
    table
        The numbers.
    note
        What a reader must know, shown below.
    derived
        Whether it follows from measured numbers, and not from the plan alone.
    """

    title: str
    said: str
    drawn: str
    height: float
    table: Table
    note: str = ""
    derived: bool = False

    def svg(self) -> str:
        """Return the drawing by itself; its colours come from the page's style sheet."""
        inside = f"{DERIVED}{self.drawn}{END}" if self.derived else self.drawn
        return (
            f'<svg viewBox="0 0 {fixed(WIDTH)} {fixed(self.height)}" role="img" '
            f'aria-label="{escape(self.title)}. {escape(self.said)}">{inside}</svg>'
        )

    def html(self, most: int = 2_000) -> str:
        """Return a figure: title, drawing, note, and the table in a drawer."""
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        return (
            f"<figure><figcaption>{escape(self.title)}</figcaption>"
            f'<div class="wide" tabindex="0" role="group" aria-label="{escape(self.title)}">'
            f"{self.svg()}</div>{note}{drawer(self.table, about=self.title, most=most)}</figure>"
        )


def tabled(columns: Mapping[str, Any], note: str = "") -> Table:
    """Return a table of lists."""
    return Table(dict(columns), note=note)


def drawer(
    table: Table, title: str = "The numbers as a table", *, about: str = "", most: int = 2_000
) -> str:
    """Return a table that is shown when asked for; ``about`` tells its name from others'."""
    named = f' aria-label="{escape(about)}: {escape(title.lower())}"' if about else ""
    rows = f"{len(table):,} row" + ("s" if len(table) != 1 else "")
    return (
        f"<details><summary{named}>{escape(title)} <small>({rows})</small></summary>"
        f"{html_table(table, most=most)}</details>"
    )


def html_table(table: Table, *, most: int = 2_000) -> str:
    """Return a table in HTML, its first column heading the rows; at most so many of them."""
    from .svg import number

    names = list(table.data)
    numeric = {n: not isinstance(table.data[n], tuple) for n in names}
    head = "".join(
        f'<th scope="col"{" class=n" if numeric[n] else ""}>{escape(n)}</th>' for n in names
    )
    lines = []
    for row in list(table.rows())[:most]:
        cells = []
        for i, name in enumerate(names):
            value = row[name]
            said = number(value) if isinstance(value, float) else escape(f"{value}")
            if isinstance(value, int) and not isinstance(value, bool):
                said = f"{value:,}"
            if name in MEASURED:
                said = f"{DERIVED}{said}{END}"
            tag = "th scope=row" if i == 0 else ("td class=n" if numeric[name] else "td")
            cells.append(f"<{tag}>{said}</{tag.split()[0]}>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    left = len(table) - most
    more = f"<p class=note>And {left:,} rows more, which the files hold.</p>" if left > 0 else ""
    caption = " ".join(filter(None, [table.caption, table.note]))
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="wide" tabindex="0" role="group" aria-label="table"><table>{said}'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>{more}"
    )


# Columns of releases' tables that may follow from what was measured.
MEASURED = ("value", "stderr", "low", "high", "mean")
