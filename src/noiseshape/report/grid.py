"""How the answers of a query lie: along which axes, read from their labels.

Labels come from the plan, so that how a picture is laid out never depends on a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

_PART = re.compile(r"([^=]+?)(<=|=)(.*)")
_NUMBER = r"-?\d+(?:\.\d+)?"
_SPAN = re.compile(rf"({_NUMBER})(?:(?:-| to )({_NUMBER}))?")
_LAST = re.compile(r"(.*\S)\s+(\d+)")
_SPECIAL = ("other", "missing")


@dataclass(frozen=True)
class Axis:
    """One thing that answers are split by.

    Attributes
    ----------
    name, sign
        What it is called, and "=" or, for prefixes, "<=".
    labels
        Its values, in the order of the plan.
    """

    name: str
    sign: str
    labels: tuple[str, ...]

    @cached_property
    def spans(self) -> tuple[tuple[float, float], ...] | None:
        """Ends of what each label stands for; None unless all are numbers or ranges of them."""
        found = []
        for label in self.labels:
            match = _SPAN.fullmatch(label)
            if match is None:
                return None
            low = float(match[1])
            found.append((low, low if match[2] is None else float(match[2])))
        return tuple(found)

    def regular(self) -> Axis:
        """Return the axis without its last labels "other" and "missing"."""
        labels = self.labels
        while labels and labels[-1] in _SPECIAL:
            labels = labels[:-1]
        return Axis(self.name, self.sign, labels)

    @property
    def numbers(self) -> bool:
        """Whether the labels are single numbers, increasing: what a line may be drawn along."""
        spans = self.spans
        return spans is not None and all(
            low == high and (i == 0 or low > spans[i - 1][0]) for i, (low, high) in enumerate(spans)
        )


@dataclass(frozen=True, eq=False)
class Grid:
    """Answers along axes.

    Attributes
    ----------
    axes
        At least one.
    at : integers, shape (r, axes)
        Where each answer is.
    """

    axes: tuple[Axis, ...]
    at: NDArray[np.int64]

    def lookup(self) -> NDArray[np.int64]:
        """Return the number of the answer at every place, -1 where there is none."""
        found = np.full(tuple(len(axis.labels) for axis in self.axes), -1, dtype=np.int64)
        inside = (self.at < found.shape).all(axis=1)  # special labels come last
        found[tuple(self.at[inside].T)] = np.flatnonzero(inside)
        return found

    def regular(self) -> Grid:
        """Return the grid without "other" and "missing": those are in the table behind."""
        axes = tuple(axis.regular() for axis in self.axes)
        return Grid(axes, self.at) if all(axis.labels for axis in axes) else self


def grid_of(labels: Sequence[str]) -> Grid:
    """Return the axes along which labels lie; one axis of all of them where they tell no more."""
    parts = [[_PART.fullmatch(part) for part in label.split(", ")] for label in labels]
    if all(all(p) for p in parts) and len({len(p) for p in parts}) == 1:
        named = [[(m[1], m[2], m[3]) for m in p if m is not None] for p in parts]
        heads = {tuple((name, sign) for name, sign, _ in p) for p in named}
        if len(heads) == 1:
            head = heads.pop()
            return _built(head, [[value for _, _, value in p] for p in named], labels)
    counted = [_LAST.fullmatch(label) for label in labels]
    if len(labels) > 1 and all(counted):
        pairs = [[m[1], m[2]] for m in counted if m is not None]
        groups = {first for first, _ in pairs}
        if len(groups) * 4 <= len(pairs) and math.prod(
            len({p[i] for p in pairs}) for i in (0, 1)
        ) == len(pairs):
            return _built((("", "="), ("", "=")), pairs, labels)
    return Grid((Axis("", "=", tuple(labels)),), np.arange(len(labels))[:, None])


def _built(
    head: tuple[tuple[str, str], ...], values: list[list[str]], labels: Sequence[str]
) -> Grid:
    axes, columns = [], []
    for i, (name, sign) in enumerate(head):
        each = [row[i] for row in values]
        known = {value: k for k, value in enumerate(dict.fromkeys(each))}
        axes.append(Axis(name, sign, tuple(known)))
        columns.append([known[value] for value in each])
    at = np.array(columns, dtype=np.int64).T
    if len(np.unique(at, axis=0)) != len(labels):  # labels that repeat themselves
        return Grid((Axis("", "=", tuple(labels)),), np.arange(len(labels))[:, None])
    return Grid(tuple(axes), at)
