"""Comparison: designs for one workload side by side, at equal privacy cost."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats, positive
from ..errors import InvalidInput
from .design import Design
from .fit import fit, workload
from .hierarchy import hierarchy
from .identity import identity, per_query
from .sm2 import sm2
from .total import total, weighted_total

DESIGNS: dict[str, Callable[[ArrayLike, ArrayLike], Design]] = {
    "fit": fit,
    "sm2": sm2,
    "total": total,
    "weighted_total": weighted_total,
    "hierarchy": hierarchy,
    "identity": identity,
    "per_query": per_query,
}
# All but SM-II, which takes up to a hundred times as long as the others together.
QUICK = ("fit", "weighted_total", "total", "hierarchy", "identity", "per_query")

# What a reader of the picture, who types none of these, is told.
NAMES = {
    "fit": "fitted to the targets",
    "sm2": "fitted by SM-II",
    "total": "least total error",
    "weighted_total": "least total of error / target",
    "hierarchy": "hierarchy",
    "identity": "same noise on every cell",
    "per_query": "noise on each query",
}

# Okabe and Ito's blue and vermilion: told apart with any colour vision, and in grey.
BLUE, VERMILION, INK = "#0072B2", "#D55E00", "#333333"
# Ratios that agree to this share are one tick of the picture, and a design has at most this many.
SAME, MOST_TICKS = 0.005, 300


class Row(NamedTuple):
    """One design of a comparison, at the common privacy cost.

    Attributes
    ----------
    design
        Its name.
    worst_ratio, median_ratio
        Of achieved to target variance, over the queries. Above 1, a target is missed.
    total_variance
        Sum of all variances.
    mu_for_targets
        Privacy cost at which this design would meet every target.
    """

    design: str
    worst_ratio: float
    median_ratio: float
    total_variance: float
    mu_for_targets: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Designs for one workload, each scaled to the same privacy cost.

    Attributes
    ----------
    designs
        The scaled designs by label, in the order asked for.
    mu
        The privacy cost of each.
    """

    designs: dict[str, Design] = field(repr=False)
    mu: float

    def rows(self) -> list[Row]:
        """Return one :class:`Row` a design, in order."""
        return [
            Row(
                label,
                design.k,
                float(np.median(design.ratios)),
                float(design.variances.sum()),
                design.meeting_targets().mu,
            )
            for label, design in self.designs.items()
        ]

    def errors(self) -> np.ndarray[Any, Any]:
        """Return a structured array of design, query, target, achieved and ratio."""
        width = max(map(len, self.designs))
        parts = []
        for label, design in self.designs.items():
            of_one = design.errors()
            part = np.zeros(len(of_one), dtype=[("design", f"U{width}"), *of_one.dtype.descr])
            part["design"] = label
            for name in of_one.dtype.names or ():
                part[name] = of_one[name]
            parts.append(part)
        return np.concatenate(parts)

    def to_csv(self, path: str | PathLike[str] | None = None, *, per_query: bool = False) -> str:
        """Return the rows as CSV, or each query's errors if ``per_query``; write it to ``path``."""
        header: Sequence[str] = Row._fields
        lines: list[Any] = list(self.rows())
        if per_query:
            errors = self.errors()
            header, lines = errors.dtype.names or (), errors.tolist()
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(lines)
        if path is not None:
            Path(path).write_text(buffer.getvalue(), encoding="utf-8")
        return buffer.getvalue()

    def __str__(self) -> str:
        """Return the rows as a plain table."""
        header = ("design", "worst ratio", "median ratio", "total variance", "mu for targets")
        cells = [[row.design, *(f"{value:,.4g}" for value in row[1:])] for row in self.rows()]
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        lines = [
            "  ".join(
                text.ljust(width) if at == 0 else text.rjust(width)
                for at, (text, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in [header, *cells]
        ]
        rule = "  ".join("-" * width for width in widths)
        return "\n".join([self._title(), "", lines[0], rule, *lines[1:]])

    def chart(self) -> Any:
        """Return an Altair chart: each query's ratio, each design's worst one, and its total.

        Needs altair (and vl-convert-python to save it as SVG or PNG).
        """
        try:
            import altair
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "A picture of a comparison needs altair: pip install altair vl-convert-python."
            ) from None
        alt: Any = altair  # half typed
        rows = [row._asdict() for row in self.rows()]
        ticks = [
            {"design": label, "ratio": ratio}
            for label, design in self.designs.items()
            for ratio in _ticks(design.ratios)
        ]
        spoken = f"{NAMES}[datum.value] || datum.value"
        axis = alt.Axis(labelLimit=240, labelExpr=spoken)
        y = alt.Y("design:N", sort=list(self.designs), title=None, axis=axis)
        log = alt.Scale(type="log", nice=False, padding=12)
        worst = alt.Chart(alt.Data(values=rows)).encode(y=y)
        ratios = alt.layer(
            alt.Chart(alt.Data(values=[{"target": 1}]))
            .mark_rule(color=INK, strokeDash=[4, 3])
            .encode(x=alt.X("target:Q")),
            alt.Chart(alt.Data(values=ticks))
            .mark_tick(color=BLUE, opacity=0.55, size=22, thickness=1.5)
            .encode(
                x=alt.X("ratio:Q", scale=log, title="achieved / target variance (log scale)"), y=y
            ),
            worst.mark_point(color=VERMILION, filled=True, size=90, opacity=1).encode(
                x="worst_ratio:Q"
            ),
            worst.mark_text(align="left", dx=9, color=INK, fontSize=12).encode(
                x="worst_ratio:Q", text=alt.Text("worst_ratio:Q", format=".3~r")
            ),
        ).properties(
            width=430,
            height=alt.Step(40),
            title=alt.Title(
                "How far each query is from its target",
                subtitle="a tick a query (equal ones coincide); dot: the worst; dashed: the target",
                anchor="start",
            ),
        )
        bars = worst.mark_bar(color=BLUE, height=14).encode(
            x=alt.X("total_variance:Q", title="sum of variances", axis=alt.Axis(tickCount=3)),
            y=alt.Y("design:N", sort=list(self.designs), title=None, axis=None),
        )
        totals = alt.layer(
            bars,
            bars.mark_text(align="left", dx=5, color=INK, fontSize=12).encode(
                text=alt.Text("total_variance:Q", format=",.4~r")
            ),
        ).properties(
            width=200,
            height=alt.Step(40),
            title=alt.Title("Total error", subtitle="over all queries", anchor="start"),
        )
        return (
            alt.hconcat(ratios, totals, spacing=36)
            .properties(title=alt.Title(self._title(), anchor="start", fontSize=15, offset=14))
            .configure_view(stroke=None)
            .configure_axis(labelFontSize=12, titleFontSize=12, gridOpacity=0.5)
        )

    def _title(self) -> str:
        design = next(iter(self.designs.values()))
        m, d = design.W.shape
        return f"{m} queries over {d} cells, every design at mu = {self.mu:.4g}"


def compare(
    W: ArrayLike,
    variance: ArrayLike,
    designs: Sequence[str | Design] = QUICK,
    *,
    mu: float | None = None,
) -> Comparison:
    """Compare designs for a workload at equal privacy cost.

    Parameters
    ----------
    W : (m, d)
        Workload, one query a row.
    variance : (m,) or a number
        Target variance of each query.
    designs
        Names out of "fit", "sm2" (slow), "total", "weighted_total", "hierarchy", "identity" and
        "per_query", or designs of the same workload and targets. A name that occurs again is
        numbered.
    mu
        The privacy cost that each is to spend; by default the least at which one of them meets
        every target, whose worst ratio is then 1.
    """
    W, c = workload(W, variance)
    made = [_made(design, W, c) for design in designs]
    if not made:
        raise InvalidInput("Comparing takes at least one design.")
    if len({design.neighbours for design in made}) > 1:
        raise InvalidInput("Designs for different neighbours do not compare: design for one.")
    if mu is None:
        mu = min(design.meeting_targets().mu for design in made)
    cost = positive("mu", mu)
    labels = _labels([design.name for design in made])
    return Comparison(
        {label: design.within(cost) for label, design in zip(labels, made, strict=True)}, cost
    )


def _made(design: str | Design, W: Floats, c: Floats) -> Design:
    """Return the design of that name, or check that a design is of this workload."""
    if isinstance(design, Design):
        if not (np.array_equal(design.W, W) and np.array_equal(design.c, c)):
            raise InvalidInput(f"Design {design.name!r} is for another workload or other targets.")
        return design
    if design not in DESIGNS:
        raise InvalidInput(f"No design is called {design!r}: choose from {', '.join(DESIGNS)}.")
    return DESIGNS[design](W, c)


def _labels(names: Sequence[str]) -> list[str]:
    """Return the names, those that occurred before numbered."""
    seen: Counter[str] = Counter()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return labels


def _ticks(ratios: Floats) -> list[float]:
    """Return ratios to draw: near-equal ones once, and of many every so-manyth, with both ends."""
    keys = np.round(np.log(ratios) / SAME)
    distinct = np.sort(ratios[np.unique(keys, return_index=True)[1]])
    kept = np.linspace(0, len(distinct) - 1, min(len(distinct), MOST_TICKS)).round().astype(int)
    ends = [ratios.min(), ratios.max()]
    return [float(x) for x in np.unique(np.concatenate([distinct[kept], ends]))]
