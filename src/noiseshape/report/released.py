"""Pictures of released answers: which picture a query gets is told by its labels alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .._checks import Floats
from ..release.intervals import critical
from ..release.table import Table
from .grid import Axis, Grid, grid_of
from .picture import Picture
from .svg import (
    WIDTH,
    Scale,
    across,
    bar,
    brief,
    line,
    number,
    path,
    short,
    spanning,
    text,
    upright,
    whisker,
    width_of,
)

if TYPE_CHECKING:
    from ..release.release import Release

MOST_BARS = 40
FEW = 16  # answers along two axes that still are bars, with their intervals
MOST_LINES = 4
MOST_ROWS, MOST_COLUMNS, MOST_SHADES = 60, 130, 4_000
MOST_SAID = 1_500  # shades that still say their number where the pointer rests
LEAST_LINE = 12  # labels from which on numbers are drawn as a line
LEAST_PYRAMID = 8
WRITTEN = 120  # cells of a heat map that still have room for their numbers
_KINDS = ("blue", "orange", "green", "purple")


class _Answers:
    """The answers of one query, in the order of its labels."""

    def __init__(self, name: str, labels: tuple[str, ...], value: Floats, stderr: Floats) -> None:
        width = critical(0.95)
        self.name, self.labels = name, labels
        self.value, self.stderr = value, stderr
        self.low, self.high = value - width * stderr, value + width * stderr
        self.widest = float(width * stderr.max())  # of the plan, not of what was measured

    def said(self, i: int) -> str:
        """Return one answer in words."""
        return (
            f"{self.labels[i] or self.name}: {number(float(self.value[i]))} "
            f"({number(float(self.low[i]))} to {number(float(self.high[i]))})"
        )

    def sized(self, i: int) -> float:
        """Return an answer to two digits of its error: what is drawn needs no more."""
        value, error = float(self.value[i]), float(self.stderr[i])
        return round(value, 1 - math.floor(math.log10(error))) if error > 0 else value

    def table(self) -> Table:
        return Table(
            {
                "cell": tuple(label or self.name for label in self.labels),
                "value": self.value,
                "stderr": self.stderr,
                "low": self.low,
                "high": self.high,
            },
            note="single 95 % intervals, of the noise only",
        )


def pictures(release: Release) -> list[Picture]:
    """Return a picture of every query; single numbers share one."""
    found, single = [], []
    at = 0
    for query in release.plan.queries.queries:
        size = len(query.labels)
        part = slice(at, at + size)
        mine = _Answers(query.name, query.labels, release.answers[part], release.stderr[part])
        at += size
        if size == 1:
            single.append(mine)
        else:
            found.append(drawn(mine))
    if single:
        together = _Answers(
            "Single numbers",
            tuple(f"{a.name}: {a.labels[0]}" if a.labels[0] else a.name for a in single),
            np.concatenate([a.value for a in single]),
            np.concatenate([a.stderr for a in single]),
        )
        found.insert(0, _numbers(together))
    return found


def of_answers(name: str, labels: tuple[str, ...], value: Floats, stderr: Floats) -> Picture:
    """Return the picture of one query's answers."""
    mine = _Answers(name, labels, value, stderr)
    return drawn(mine) if len(labels) > 1 else _numbers(mine)


def drawn(mine: _Answers) -> Picture:
    """Return the picture that fits how the labels lie."""
    grid = grid_of(mine.labels)
    regular = grid.regular()
    last = regular.axes[-1]
    if len(grid.axes) == 1:
        if last.numbers and len(last.labels) >= LEAST_LINE:
            return _lines(mine, regular)
        return _bars(mine, grid)
    if len(mine.labels) <= FEW:
        return _bars(mine, grid)
    if len(grid.axes) == 2:
        first = regular.axes[0]
        numeric = last.numbers and len(last.labels) >= LEAST_PYRAMID
        if numeric and last.sign == "=" and len(first.labels) == 2:
            return _pyramid(mine, regular)
        if numeric and len(first.labels) <= MOST_LINES and len(last.labels) >= LEAST_LINE:
            return _lines(mine, regular)
    return _heat(mine, grid)


def _picture(
    mine: _Answers, drawn: list[str], height: float, said: str, note: str = "", title: str = ""
) -> Picture:
    return Picture(
        title or mine.name, said, "".join(drawn), height, mine.table(), note, derived=True
    )


def _numbers(mine: _Answers) -> Picture:
    """Write numbers of any size beside each other, not drawn to one scale."""
    drawn, at = [], 8.0
    left = width_of(mine.labels, 300)
    for i, label in enumerate(mine.labels):
        drawn.append(text(left - 10, at + 22, short(label, left), "label", "end"))
        drawn.append(text(left + 4, at + 24, number(float(mine.value[i])), "big"))
        drawn.append(text(left + 190, at + 22,
                          f"{number(float(mine.low[i]))} to {number(float(mine.high[i]))}",
                          "label"))  # fmt: skip
        at += 34
    return _picture(
        mine,
        drawn,
        at + 6,
        "Written out: " + ", ".join(mine.labels) + ".",
        "Each with its 95 % interval.",
    )


def _bars(mine: _Answers, grid: Grid) -> Picture:
    """Draw bars with intervals; ranges of a column also show where they lie on it."""
    axis = grid.axes[0]
    count = min(len(mine.labels), MOST_BARS)
    labels = [
        ", ".join(a.labels[k] for a, k in zip(grid.axes, grid.at[i], strict=True))
        for i in range(count)
    ]
    spans = axis.spans if len(grid.axes) == 1 else None
    banded = spans is not None and any(low < high for low, high in spans)
    left = width_of(labels)
    track = 130.0 if banded else 0.0
    low, high = spanning([*mine.low[:count], *mine.high[:count]])
    x = Scale(low, high, left + track, WIDTH - 80)
    top = 22.0 if banded else 10.0
    bottom = top + 24 * count
    drawn = [across(x, top, bottom, "")]
    if banded and spans is not None:
        whole = Scale(min(s[0] for s in spans), max(s[1] for s in spans), left + 8, left + 112)
        drawn.append(text(left + 60, top - 8, f"from {whole.low:g} to {whole.high:g}", "tick",
                          "middle"))  # fmt: skip
    for i, label in enumerate(labels):
        at = top + 24 * (i + 0.5)
        value = float(mine.value[i])
        if banded and spans is not None:
            begin, end = spans[grid.at[i, 0]]
            drawn.append(line(whole(whole.low), at, whole(whole.high), at, "grid"))
            drawn.append(bar(whole(begin), at - 3, max(whole(end), whole(begin) + 2), at + 3,
                             "blue"))  # fmt: skip
        drawn.append(bar(x(0), at - 8, x(value), at + 8, "blue soft", mine.said(i)))
        drawn.append(whisker(x(float(mine.low[i])), x(float(mine.high[i])), at))
        drawn.append(text(left - 8, at + 4, short(label, left), "label", "end"))
        drawn.append(text(WIDTH - 72, at + 4, brief(mine.sized(i)), "value"))
    left_out = len(mine.labels) - count
    more = f" The first {count} of {len(mine.labels):,} are drawn." if left_out else ""
    by = f" by {' and '.join(a.name for a in grid.axes)}" if axis.name else ""
    note = "Bars are answers, the lines on them 95 % intervals." + more
    return _picture(
        mine,
        drawn,
        bottom + 24,
        f"{len(mine.labels):,} answers{by}, as bars with intervals.{more}",
        note,
    )


def _lines(mine: _Answers, grid: Grid) -> Picture:
    """Draw lines along numbers with bands of 95 %."""
    axis = grid.axes[-1]
    place = grid.lookup().reshape(-1, len(axis.labels))
    groups = grid.axes[0].labels if len(grid.axes) == 2 else ("",)
    at = [float(label) for label in axis.labels]
    held = place[place >= 0]
    low, high = spanning([*mine.low[held], *mine.high[held]])
    x = Scale(at[0], at[-1], 78.0, WIDTH - 24)
    y = Scale(low, high, 292.0, 40.0)
    drawn = [upright(y, x.start, x.end, ""), across(x, y.end, y.start, _spoken(axis))]
    key = x.start
    for k, label in enumerate(groups):
        kind = _KINDS[k % len(_KINDS)]
        row = [(a, int(i)) for a, i in zip(at, place[k], strict=True) if i >= 0]
        band = [(x(a), y(float(mine.high[i]))) for a, i in row]
        band += [(x(a), y(float(mine.low[i]))) for a, i in reversed(row)]
        drawn.append(path(band, f"{kind} faint-fill", closed=True))
        drawn.append(path([(x(a), y(float(mine.value[i]))) for a, i in row],
                          f"{kind}-line d{k}"))  # fmt: skip
        if label:
            drawn.append(line(key, 14, key + 22, 14, f"{kind}-line d{k}"))
            drawn.append(text(key + 28, 18, label, "label"))
            key += 50 + width_of([label])
    return _picture(
        mine, drawn, 330, f"{len(mine.labels):,} answers along {axis.name or 'numbers'}.",
        f"Bands are 95 % intervals, at most \u00b1{number(mine.widest)} wide: where none is "
        "seen, it is thinner than the line.",
    )  # fmt: skip


def _pyramid(mine: _Answers, grid: Grid) -> Picture:
    """Draw two groups back to back, the numbers upward."""
    groups, axis = grid.axes
    place = grid.lookup()
    held = place[place >= 0]
    at = [float(label) for label in axis.labels]
    most = max(float(mine.high[held].max()), 1e-9)
    middle = WIDTH / 2 + 10
    half = (WIDTH - 120) / 2
    step = max(2.6, min(9.0, 420 / len(at)))
    top = 34.0
    bottom = top + step * len(at)
    sides = (Scale(0, most, middle - 17, middle - half), Scale(0, most, middle + 17, middle + half))
    drawn = []
    for k, (side, kind) in enumerate(zip(sides, ("orange", "blue"), strict=True)):
        for value in side.ticks(4):
            drawn.append(line(side(value), top, side(value), bottom, "grid"))
            drawn.append(text(side(value), bottom + 15, brief(value), "tick", "middle"))
        drawn.append(text((side.start + side.end) / 2, 20, _named(groups, groups.labels[k]),
                          "strong", "middle"))  # fmt: skip
        for j in range(len(at)):
            i = int(place[k, j])
            if i < 0:
                continue
            mid = bottom - step * (j + 0.5)
            drawn.append(bar(side(0), mid - step * 0.42, side.clipped(float(mine.value[i])),
                             mid + step * 0.42, f"{kind} soft", mine.said(i)))  # fmt: skip
            drawn.append(line(side.clipped(float(mine.low[i])), mid,
                              side.clipped(float(mine.high[i])), mid, "hair"))  # fmt: skip
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100, len(at)) if len(at) <= 14 * n)
    for j, label in enumerate(axis.labels):
        if at[j] % every == 0:
            drawn.append(text(middle, bottom - step * (j + 0.5) + 4, label, "tick", "middle"))
    drawn.append(text(middle, top - 6, axis.name, "tick", "middle"))
    return _picture(
        mine, drawn, bottom + 24,
        f"{groups.labels[0]} at the left, {groups.labels[1]} at the right, "
        f"{axis.name or 'numbers'} from {axis.labels[0]} below to {axis.labels[-1]} above.",
        "Bars are answers, the lines at their ends 95 % intervals. What noise takes below 0 "
        "is drawn as "
        "0; the table has it as it is.",
    )  # fmt: skip


def _heat(mine: _Answers, grid: Grid) -> Picture:
    """Draw a field of shades: the last axis along, all others down."""
    along = grid.axes[-1]
    place = grid.lookup().reshape(-1, len(along.labels))
    down = _products(grid.axes[:-1])
    if len(along.labels) > MOST_COLUMNS or len(place) > MOST_ROWS:
        place, down = place[:MOST_ROWS, :MOST_COLUMNS], down[:MOST_ROWS]
    place = place[: max(1, MOST_SHADES // place.shape[1])]
    rows, columns = place.shape
    held = place[place >= 0]
    low, high = spanning(mine.value[held])
    left = width_of(down)
    wide = min((WIDTH - left - 12) / columns, 90.0)
    tall = 24.0 if rows <= 30 else 14.0
    written = wide >= 44 and rows * columns <= WRITTEN
    room = width_of(along.labels, 90.0)
    turned = max(len(label) for label in along.labels) * 7 > wide - 2 and columns <= 40
    top = (room * 0.75 + 18 if turned else 24.0) if columns <= 40 else 24.0
    drawn = [text(left, 12, _spoken(along), "axis")] if along.name and not turned else []
    top += 14 if drawn else 0
    shade = Scale(low, high, 0.04, 0.92)
    for i in range(rows):
        for j in range(columns):
            if place[i, j] < 0:
                continue
            n = int(place[i, j])
            value = float(mine.value[n])
            x, y = left + j * wide, top + i * tall
            told = mine.said(n) if held.size <= MOST_SAID else ""
            drawn.append(bar(x, y, x + wide, y + tall, "blue", told, shade=shade(value)))
            if written:
                drawn.append(text(x + wide / 2, y + tall / 2 + 4, brief(mine.sized(n)),
                                  "on", "middle"))  # fmt: skip
        if tall >= 14:
            drawn.append(text(left - 8, top + (i + 0.5) * tall + 4, short(down[i], left), "label",
                              "end"))  # fmt: skip
    every = 1 if columns <= 40 else round(columns / 12)
    for j in range(0, columns, every):
        x = left + (j + 0.5) * wide
        if turned and every == 1:
            drawn.append(text(x + 3, top - 6, short(along.labels[j], 90), "tick", "start", -50))
        else:
            drawn.append(text(x, top - 6, short(along.labels[j], max(wide * every, 26)), "tick",
                              "middle"))  # fmt: skip
    bottom = top + rows * tall
    drawn.append(
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide * columns:.1f}" '
        f'height="{tall * rows:.1f}" class="frame"/>'
    )
    drawn.append(text(left, bottom + 28, number(low), "tick", "end"))
    for k in range(20):
        drawn.append(bar(left + 8 + 8 * k, bottom + 18, left + 16 + 8 * k, bottom + 30, "blue",
                         shade=0.04 + 0.88 * k / 19))  # fmt: skip
    drawn.append(text(left + 176, bottom + 28, number(high), "tick"))
    cut = len(mine.labels) - len(held)
    more = f" {cut:,} answers more are in the files." if cut else ""
    return _picture(
        mine, drawn, bottom + 44,
        f"{len(mine.labels):,} answers: {' and '.join(a.name or 'labels' for a in grid.axes)}.",
        f"Each is within \u00b1{number(mine.widest)} of the truth with 95 % confidence, or "
        f"nearer.{more}",
    )  # fmt: skip


def _products(axes: tuple[Axis, ...]) -> list[str]:
    found = [""]
    for axis in axes:
        found = [f"{one}, {label}" if one else label for one in found for label in axis.labels]
    return found


def _spoken(axis: Axis) -> str:
    return f"{axis.name}, up to" if axis.sign == "<=" else axis.name


def _named(axis: Axis, label: str) -> str:
    return f"{axis.name} {label}" if axis.name and len(label) <= 2 else label
