"""The report: one HTML file without scripts and without a network, for people to look at."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .._version import __version__
from ..archive import write_whole
from ..errors import InvalidInput
from .picture import Picture
from .style import PAGE

# The browser itself refuses whatever a report might ask of a network, were there anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Section:
    """A part of a report under a heading of its own; an empty one is left out."""

    name: str
    title: str
    body: str


@dataclass(frozen=True, repr=False)
class Report:
    """A report: HTML that holds nothing but what may be published.

    Attributes
    ----------
    title
        What it is about.
    html
        The whole file.
    """

    title: str
    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file; it is whole, or not there."""
        try:
            write_whole(path, self.html)
        except (OSError, ValueError):
            raise InvalidInput(
                f"the report cannot be written to {os.fspath(path)}: name a file in a folder that "
                "exists and can be written in."
            ) from None

    def _repr_html_(self) -> str:
        return (
            f'<iframe sandbox title="{escape(self.title)}" srcdoc="{escape(self.html)}" '
            'style="width:100%;height:40rem;border:1px solid #888"></iframe>'
        )

    def __repr__(self) -> str:
        return (
            f"Report({self.title!r}, {len(self.html.encode()) / 1e3:,.0f} kB: save(path) writes it)"
        )


def page(
    title: str,
    kicker: str,
    lead: str,
    facts: Sequence[tuple[str, str]],
    sections: Sequence[Section],
) -> Report:
    """Put a report together: a heading, facts at a glance, contents, sections."""
    held = [section for section in sections if section.body]
    contents = "".join(f'<li><a href="#{s.name}">{escape(s.title)}</a></li>' for s in held)
    glance = "".join(f"<li><b>{escape(b)}</b><span>{escape(said)}</span></li>" for b, said in facts)
    body = "".join(
        f'<section id="{s.name}" aria-labelledby="{s.name}-title">'
        f'<h2 id="{s.name}-title">{escape(s.title)}</h2>{s.body}</section>'
        for s in held
    )
    html = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{PAGE}</style></head><body>"
        '<a class="skip" href="#main">To the contents</a>'
        f'<header><p class="kicker">{escape(kicker)}</p><h1>{escape(title)}</h1>'
        f'<p class="lead">{escape(lead)}</p><ul class="facts">{glance}</ul>'
        f'<nav aria-label="Contents"><ol>{contents}</ol></nav></header>'
        f'<main id="main">{body}</main>'
        f"<footer><p>Made by Noiseshape {escape(__version__)}. This page holds no script and asks "
        "nothing of any network; behind each picture is its table. Errors and intervals are of the "
        "noise alone, not of sampling, coverage or non-response.</p></footer></body></html>\n"
    )
    return Report(title, html)


def said(*paragraphs: str) -> str:
    """Return paragraphs of plain text."""
    return "".join(f"<p>{escape(p)}</p>" for p in paragraphs if p)


def shown(picture: Picture | str | None) -> str:
    """Return a picture in HTML, or the sentence that stands in its place."""
    if picture is None:
        return ""
    return said(picture) if isinstance(picture, str) else picture.html()


def listed(items: Sequence[str]) -> str:
    """Return a list of plain texts."""
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def pairs(facts: Sequence[tuple[str, str]]) -> str:
    """Return names and values, plain texts, as a table without a head."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in facts
    )
    return (
        '<div class="wide" tabindex="0" role="group" aria-label="facts">'
        f"<table>{rows}</table></div>"
    )
