"""Pictures that are told apart with any colour vision, in grey, and without colour: shapes too."""

from __future__ import annotations

from typing import Any

from .harness import Rows

# Okabe and Ito's palette; the same order for shapes and dashes.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F"]
SHAPES = [
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [10, 3], [1, 3], [5, 1]]
INK = "#333333"


def altair() -> Any:
    """Return Altair, of the development extra, once what writes its SVG is there too."""
    import altair as alt
    import vl_convert  # noqa: F401

    return alt


def lines(
    rows: Rows,
    x: str,
    y: str,
    by: str,
    title: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    points: bool = True,
    x_title: str | None = None,
    y_title: str | None = None,
    panels: str | None = None,
) -> Any:
    """Return y against x, a line for each value of ``by``, with intervals from ``low`` to ``high``.

    With ``panels``, a picture beside the others for each value of that column.
    """
    alt = altair()
    rows = [row for row in rows if row.get(x) is not None and row.get(y) is not None]
    order = list(dict.fromkeys(row[by] for row in rows))

    def drawn(rows: Rows, y_title: str | None) -> Any:
        base = alt.Chart(alt.Data(values=rows)).encode(
            x=alt.X(f"{_field(x)}:Q", title=x_title or x, scale=_scale(alt, log_x)),
            color=_coloured(alt, by, order),
        )
        vertical = alt.Y(f"{_field(y)}:Q", title=y_title, scale=_scale(alt, log_y))
        dashes, shapes = _cycle(alt, order, DASHES), _cycle(alt, order, SHAPES)
        layers = [
            base.mark_line(strokeWidth=2).encode(
                y=vertical,
                strokeDash=alt.StrokeDash(f"{_field(by)}:N", title=None, sort=order, scale=dashes),
            )
        ]
        if points:
            layers.append(
                base.mark_point(filled=True, size=60, opacity=1).encode(
                    y=vertical,
                    shape=alt.Shape(f"{_field(by)}:N", title=None, sort=order, scale=shapes),
                )
            )
        if any(row.get("low") is not None for row in rows):
            ends = base.transform_filter("isValid(datum.low)")
            layers.append(ends.mark_rule().encode(y=alt.Y("low:Q", title=y_title), y2="high:Q"))
        return alt.layer(*layers)

    if panels is None:
        return _finished(alt, drawn(rows, y_title or y).properties(width=460, height=300), title)
    charts = [
        drawn(
            [row for row in rows if row[panels] == panel], (y_title or y) if first else None
        ).properties(width=190, height=240, title=alt.Title(panel, anchor="middle", fontSize=12))
        for first, panel in zip(
            [True, *([False] * len(rows))], dict.fromkeys(row[panels] for row in rows), strict=False
        )
    ]
    return _finished(alt, alt.hconcat(*charts, spacing=24), title)


def dots(
    rows: Rows,
    x: str,
    label: str,
    by: str,
    title: str,
    *,
    log_x: bool = False,
    x_title: str | None = None,
) -> Any:
    """Return a dot for each label and value of ``by``, with intervals from ``low`` to ``high``."""
    alt = altair()
    rows = [row for row in rows if row.get(x) is not None]
    order = list(dict.fromkeys(row[by] for row in rows))
    labels = list(dict.fromkeys(row[label] for row in rows))
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y(
            f"{_field(label)}:N", title=None, sort=labels, axis=alt.Axis(labelLimit=300, grid=True)
        ),
        yOffset=alt.YOffset(f"{_field(by)}:N", sort=order),
        color=alt.Color(
            f"{_field(by)}:N", title=None, sort=order, scale=_cycle(alt, order, COLOURS)
        ),
    )
    scale = _scale(alt, log_x)
    layers = [
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x=alt.X(f"{_field(x)}:Q", title=x_title or x, scale=scale),
            shape=alt.Shape(
                f"{_field(by)}:N", title=None, sort=order, scale=_cycle(alt, order, SHAPES)
            ),
        )
    ]
    if any(row.get("low") is not None for row in rows):
        layers.append(
            base.transform_filter("isValid(datum.low)")
            .mark_rule(strokeWidth=2)
            .encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
        )
    height = max(120, len(labels) * (14 + 13 * len(order)))
    return _finished(alt, alt.layer(*layers).properties(width=460, height=height), title)


def _coloured(alt: Any, by: str, order: list[Any]) -> Any:
    scale = _cycle(alt, order, COLOURS)
    return alt.Color(f"{_field(by)}:N", title=None, sort=order, scale=scale)


def _scale(alt: Any, log: bool) -> Any:
    return alt.Scale(type="log", nice=False, padding=12) if log else alt.Scale(zero=False)


def _cycle(alt: Any, order: list[Any], values: list[Any]) -> Any:
    chosen = [values[i % len(values)] for i in range(len(order))]
    return alt.Scale(domain=order, range=chosen)


def _field(name: str) -> str:
    """Return a column's name as Vega-Lite reads it: dots and colons mean something else there."""
    return name.replace(".", r"\.").replace(":", r"\:").replace("[", r"\[").replace("]", r"\]")


def _finished(alt: Any, chart: Any, title: str) -> Any:
    return (
        chart.properties(title=alt.Title(title, anchor="start", fontSize=14))
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, gridOpacity=0.4, titleColor=INK)
        .configure_legend(labelFontSize=12, labelLimit=320, symbolSize=90)
    )
