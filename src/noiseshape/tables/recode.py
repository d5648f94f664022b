"""Recodes: a coarser reading of a column, from public knowledge: ages to bands, tracts to counties.

A recode is no column of its own: a person's county follows from the tract, so it adds no cell.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidInput
from .domains import Categories, Domain, Integers
from .steps import Steps


@dataclass(frozen=True)
class Recode:
    """What each value of a column (or of another recode) counts as.

    Parameters
    ----------
    of
        The column, or another recode: tract, county, state make a hierarchy.
    mapping
        Each new label -> the values that it stands for: a value, a list of values, or a pair
        (low, high) of an integer column, both included. "other" and "missing" stay what they are.
    """

    of: str
    mapping: Mapping[str, Any]

    def steps(self, name: str, domain: Domain) -> tuple[tuple[str, ...], Steps]:
        """Return the new labels, and which of them each cell of the column becomes."""
        labels = list(self.mapping)
        if isinstance(domain, Integers):
            starts, values = self._ranges(name, domain)
        elif isinstance(domain, Categories):
            starts, values = list(range(domain.regular)), self._members(name, domain)
        else:
            raise InvalidInput(
                f"{name} recodes {self.of}, which is neither integers nor categories: declare "
                "coarser bins or dates instead."
            )
        missed = [s for s, v in zip(starts, values, strict=True) if v < 0]
        if missed:
            first = ", ".join(domain.label(s) for s in missed[:5])
            raise InvalidInput(f"{name} leaves values of {self.of} unmapped, such as {first}.")
        for cell, label in ((domain.other, "other"), (domain.absent, "missing")):
            if cell is not None:
                starts.append(cell)
                values.append(len(labels))
                labels.append(label)
        return tuple(labels), Steps(starts, values).merged()

    def _members(self, name: str, domain: Categories) -> list[int]:
        """Return which label each category becomes; -1 where none was said."""
        found = [-1] * domain.regular
        for i, members in enumerate(self.mapping.values()):
            for value in _list(members):
                cell = domain.cell(_whole(value) if domain.numeric else value)
                if found[cell] >= 0:
                    raise InvalidInput(f"{name} maps {value!r} twice: map it once.")
                found[cell] = i
        return found

    def _ranges(self, name: str, domain: Integers) -> tuple[list[int], list[int]]:
        """Return where the bands of an integer column start, and which each is."""
        bands = []
        for i, given in enumerate(self.mapping.values()):
            members = _list(given)
            pair = len(members) == 2 and all(isinstance(v, (int, np.integer)) for v in members)
            for band in [given] if pair else members:
                ends = [_whole(v) for v in _list(band)]
                low, high = ends if len(ends) == 2 else ends * 2
                if not all(isinstance(v, int) for v in (low, high)) or low > high:
                    raise InvalidInput(f"{name} needs whole numbers low <= high, got {band!r}.")
                bands.append((max(low, domain.low), min(high, domain.high), i))
        starts: list[int] = []
        values: list[int] = []
        expected = domain.low
        for low, high, i in sorted(b for b in bands if b[0] <= b[1]):
            if low < expected:
                raise InvalidInput(f"{name} maps {low} twice: bands must not overlap.")
            if low > expected:
                starts.append(expected - domain.low)
                values.append(-1)
            starts.append(low - domain.low)
            values.append(i)
            expected = high + 1
        if expected <= domain.high:
            starts.append(expected - domain.low)
            values.append(-1)
        return starts, values


def recode(
    of: str,
    mapping: Mapping[str, Any] | str | os.PathLike[str],
    *,
    source: str | None = None,
    target: str | None = None,
) -> Recode:
    """Return a recode of a column, from a mapping or from a public CSV file.

    Parameters
    ----------
    of
        The column, or another recode.
    mapping
        New label -> values; or a CSV file with a column of values and one of labels.
    source, target
        The file's two columns; by default its first two.

    Examples
    --------
    >>> recode("AGEP", {"minor": (0, 17), "adult": (18, 99)}).of
    'AGEP'
    """
    if isinstance(mapping, Mapping):
        if not mapping:
            raise InvalidInput(f"a recode of {of} needs at least one label.")
        return Recode(of, {str(k): v for k, v in mapping.items()})
    rows = public_rows(mapping)
    names = list(rows[0]) if rows else []
    if len(names) < 2:
        raise InvalidInput(f"{os.fspath(mapping)} needs two columns: a value and its label.")
    source, target = source or names[0], target or names[1]
    for name in (source, target):
        if name not in names:
            raise InvalidInput(f"{os.fspath(mapping)} has no column {name!r}.")
    made: dict[str, Any] = {}
    for row in rows:
        made.setdefault(row[target], []).append(row[source])
    return Recode(of, made)


def public_rows(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read a public CSV file with a header: of values and labels, never of people."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file, strict=True))
    except FileNotFoundError:
        raise InvalidInput(f"there is no public file at {os.fspath(path)}.") from None
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InvalidInput(f"the public file {os.fspath(path)} cannot be read as CSV.") from None
    if not rows or any(None in row or None in row.values() for row in rows):
        raise InvalidInput(f"the public file {os.fspath(path)} is empty or has uneven lines.")
    return rows


def _whole(value: Any) -> Any:
    """Return a whole number that a file holds as text, and anything else as it is."""
    if isinstance(value, np.integer):
        return int(value)
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value


def _list(members: Any) -> Sequence[Any]:
    if isinstance(members, Sequence) and not isinstance(members, str):
        return members
    return [members]
