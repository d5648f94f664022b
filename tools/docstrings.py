"""Docstrings as the reference needs them: what follows a list of parameters becomes a note.

Our docstrings state guarantees under ``Formal Guarantees:`` and may end with plain sentences;
numpy's form, by which the reference reads them, would take both for further parameters.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

_HEAD = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_FORMAL = re.compile(r"^Formal [Gg]uarantees?:", re.MULTILINE)
_LISTS = ("Parameters", "Attributes", "Returns", "Raises")


def noted(text: str) -> str:
    """Return a docstring whose plain paragraphs behind a list have a heading of their own."""
    parts, section = [], ""
    for part in re.split(r"\n\s*\n", text):
        head = _HEAD.match(part)
        if head:
            section = head[1]
        elif _FORMAL.match(part):
            first, *rest = part.split("\n")
            said = " ".join([first.split(":", 1)[1].strip(), *(line.strip() for line in rest)])
            part, section = f"Notes\n-----\n**Formal guarantees.** {said.strip()}", "Notes"
        elif section in _LISTS and _plain(part):
            part, section = f"Notes\n-----\n{part}", "Notes"
        parts.append(part)
    return "\n\n".join(parts)


def _plain(part: str) -> bool:
    """Whether a paragraph is sentences, and not further entries of a list."""
    lines = part.split("\n")
    entry = not lines[0].startswith(" ") and len(lines) > 1 and lines[1].startswith("    ")
    return not entry and not lines[0].startswith(" ")


class Docstrings(Extension):
    """Rewrites every docstring of a package once it is loaded."""

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """Walk the package."""
        self._walk(pkg, set())

    def _walk(self, thing: Any, seen: set[int]) -> None:
        if thing.is_alias or id(thing) in seen:
            return
        seen.add(id(thing))
        if thing.docstring is not None:
            thing.docstring.value = noted(thing.docstring.value)
        for member in thing.members.values():
            self._walk(member, seen)
