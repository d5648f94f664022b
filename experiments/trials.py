"""Errors over trials, packed to be kept; ``tables`` shows them."""

from __future__ import annotations

from typing import Any

from .harness import Row, Rows


def packed(rows: Rows) -> Rows:
    """Return a row for each method and parameter, with the errors of its trials in one text.

    To five digits: a page of a thousand trials is then small enough to keep.
    """
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if "error" not in row:
            found[len(found), ""] = row
            continue
        same = {k: v for k, v in row.items() if k not in ("trial", "error")}
        line = found.setdefault(tuple(same.values()), {**same, "trials": 0, "errors": ""})
        line["trials"] += 1
        line["errors"] = f"{line['errors']} {row['error']:.5g}".lstrip()
    return list(found.values())
