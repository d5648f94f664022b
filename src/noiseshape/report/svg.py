"""Drawing: scales, axes and marks as SVG text, with colours and fonts left to the style sheet.

Written out here, by hand, because every release publishes its report: Altair with vl-convert
needs 1.9 seconds and 140 MB to draw a first picture, 0.2 s for each further one
(benchmarks/report.py), and starts a JavaScript engine between the debit and the publication. A
picture here is the same on every machine, and follows the reader's dark or light page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 680.0
_LETTER = 7.1  # width of a letter at 12 pixels, about, in the widest of usual fonts


@dataclass(frozen=True)
class Scale:
    """A map from values to pixels, linear or logarithmic.

    Examples
    --------
    >>> x = Scale(0, 10, 100, 200)
    >>> x(5), x.ticks(5)
    (150.0, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def clipped(self, value: float) -> float:
        """Return the pixel of the nearest value that is on the scale."""
        return self(min(max(value, self.low), self.high))

    def ticks(self, count: int = 5) -> list[float]:
        """Return round values on the scale, about ``count`` of them."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            if last - first >= 1:
                step = max(1, math.ceil((last - first) / count))
                return [10.0**k for k in range(first, last + 1, step)]
            return _round_values(self.low, self.high, count)
        return _round_values(self.low, self.high, count)


def _round_values(low: float, high: float, count: int) -> list[float]:
    if not high > low:
        return [low]
    raw = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step + 0.0 for k in range(first, last + 1)]


def spanning(values: Iterable[float], *, zero: bool = True) -> tuple[float, float]:
    """Return ends of a scale that holds the values, and 0, and is never of no length."""
    held = [float(v) for v in values if math.isfinite(v)]
    low, high = min(held, default=0.0), max(held, default=1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 0:
        high = low + (abs(low) or 1.0)
    return low, high


def number(value: float) -> str:
    """Return a number as people read it: thousands separated, four digits where it is small."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size >= 1e15 or size < 1e-4:
        digits, power = f"{value:.3e}".split("e")
        digits = digits.rstrip("0").rstrip(".")
        return f"{digits}e{int(power)}".replace("-", "\u2212")
    places = 0 if size >= 1000 else max(0, 3 - math.floor(math.log10(size)))
    text = f"{value:,.{min(places, 7)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "\u2212")


def chance(delta: float) -> str:
    """Return a small chance as it is written: 1e-9."""
    return f"{delta:g}".replace("e-0", "e-")


def brief(value: float) -> str:
    """Return a number in the room that a picture has: millions and more in words' first letters."""
    for size, name in ((1e12, "T"), (1e9, "bn"), (1e6, "m")):
        if size <= abs(value) < 1e15:
            return f"{number(float(f'{value / size:.4g}'))} {name}"
    return number(value)


def fixed(value: float) -> str:
    """Return a pixel as it is written."""
    return f"{value:.1f}"


def text(
    x: float, y: float, content: str, kind: str = "", anchor: str = "start", turn: float = 0
) -> str:
    """Return a text; ``anchor`` is start, middle or end."""
    turned = f' transform="rotate({turn:g} {fixed(x)} {fixed(y)})"' if turn else ""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{fixed(x)}" y="{fixed(y)}"{_kind(kind)}{at}{turned}>{escape(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line."""
    a, b, c, d = map(fixed, (x1, y1, x2, y2))
    return f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}"{_kind(kind)}/>'


def bar(
    x1: float, y1: float, x2: float, y2: float, kind: str, said: str = "", *, shade: float = 1
) -> str:
    """Return a filled box between two corners; ``said`` is shown where the pointer rests."""
    x, y, w, h = min(x1, x2), min(y1, y2), abs(x2 - x1), abs(y2 - y1)
    shaded = "" if shade == 1 else f' fill-opacity="{shade:.2f}"'
    box = f'<rect x="{fixed(x)}" y="{fixed(y)}" width="{fixed(w)}" height="{fixed(h)}"'
    return _told(f"{box}{_kind(kind)}{shaded}", "rect", said)


def dot(x: float, y: float, r: float, kind: str, said: str = "") -> str:
    """Return a filled circle."""
    circle = f'<circle cx="{fixed(x)}" cy="{fixed(y)}" r="{fixed(r)}"{_kind(kind)}'
    return _told(circle, "circle", said)


def path(points: Sequence[tuple[float, float]], kind: str, *, closed: bool = False) -> str:
    """Return a line through points, or the area that they enclose."""
    steps = " ".join(f"{fixed(x)},{fixed(y)}" for x, y in points)
    name = "polygon" if closed else "polyline"
    return f'<{name} points="{steps}"{_kind(kind)}/>'


def whisker(low: float, high: float, at: float, kind: str = "whisker") -> str:
    """Return a horizontal interval with ends."""
    return (
        line(low, at, high, at, kind)
        + line(low, at - 3, low, at + 3, kind)
        + line(high, at - 3, high, at + 3, kind)
    )


def across(x: Scale, top: float, bottom: float, title: str, *, count: int = 5) -> str:
    """Return the axis below a drawing, with its grid."""
    parts = []
    for value in x.ticks(count):
        at = x(value)
        parts += [line(at, top, at, bottom, "grid"), text(at, bottom + 15, brief(value), "tick",
                                                          "middle")]  # fmt: skip
    if title:
        parts.append(text((x.start + x.end) / 2, bottom + 33, title, "axis", "middle"))
    return "".join(parts)


def upright(y: Scale, left: float, right: float, title: str, *, count: int = 5) -> str:
    """Return the axis at the left of a drawing, with its grid; its title is above it."""
    parts = []
    for value in y.ticks(count):
        at = y(value)
        parts += [line(left, at, right, at, "grid"), text(left - 6, at + 4, brief(value), "tick",
                                                          "end")]  # fmt: skip
    if title:
        parts.append(text(left, min(y.start, y.end) - 9, title, "axis", "start"))
    return "".join(parts)


def width_of(labels: Iterable[str], most: float = 230.0) -> float:
    """Return how much room labels need, at most so much."""
    return max(40.0, min(most, max((len(label) for label in labels), default=0) * _LETTER + 14))


def short(label: str, room: float) -> str:
    """Return a label cut to a room in pixels."""
    letters = max(4, int((room - 10) / _LETTER))
    return label if len(label) <= letters else label[: letters - 1] + "\u2026"


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _told(begun: str, name: str, said: str) -> str:
    return f"{begun}><title>{escape(said)}</title></{name}>" if said else f"{begun}/>"
