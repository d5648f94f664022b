"""Errors over trials, by method: with the parameter fixed beforehand, and in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .harness import Mean, Row, Rows, distinct, mean, plus_minus, printed
from .pictures import dots


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


def errors(rows: Rows, **where: object) -> dict[tuple[str, str], list[float]]:
    """Return the errors over trials of each method and parameter, in order of appearance."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if "errors" in row and all(row.get(k) == v for k, v in where.items()):
            values = [float(text) for text in row["errors"].split()]
            found.setdefault((row["method"], row["parameter"]), []).extend(values)
    return found


def by_method(rows: Rows, **where: object) -> dict[str, list[float]]:
    """Return the errors of each method with its fixed parameter, the first that was run."""
    found: dict[str, list[float]] = {}
    for (method, _), values in errors(rows, **where).items():
        found.setdefault(method, values)
    return found


def hindsight(rows: Rows, **where: object) -> dict[str, tuple[str, list[float]]]:
    """Return the parameter of least mean error for each method that has several, and its errors."""
    every: dict[str, dict[str, list[float]]] = {}
    for (method, parameter), values in errors(rows, **where).items():
        every.setdefault(method, {})[parameter] = values
    return {
        method: min(of_one.items(), key=lambda item: mean(item[1]).mean)
        for method, of_one in every.items()
        if len(of_one) > 1
    }


def summary(name: str, rows: Rows, within: Sequence[str] = (), scale: float = 1.0) -> Rows:
    """Return a row for each method (and value of ``within``): printed, and measured by set-up."""
    known = printed(name).get("values", {})
    setups = distinct(rows, "setup")
    keys = dict.fromkeys((row["method"], *(row[w] for w in within)) for row in rows)
    order = {method: place for place, method in enumerate(distinct(rows, "method"))}
    lines: Rows = []
    for method, *rest in sorted(keys, key=lambda key: order[key[0]]):
        where = dict(zip(within, rest, strict=True))
        line: Row = {"method": method, **where}
        line["printed"] = _printed(known.get(method), scale)
        for setup in setups:
            mine = [r for r in rows if r["method"] == method]
            fixed = by_method(mine, setup=setup, **where).get(method)
            line[setup] = None if fixed is None else plus_minus(_scaled(mean(fixed), scale))
            best = hindsight(mine, setup=setup, **where).get(method)
            if best is not None:
                parameter, values = best
                line[f"{setup}, in hindsight"] = (
                    f"{plus_minus(_scaled(mean(values), scale))} ({parameter})"
                )
        lines.append(line)
    names = list(dict.fromkeys(key for line in lines for key in line))
    unit = f" (x {scale:g})" if scale != 1 else ""
    return [
        {(f"{n}{unit}" if n == "printed" or n in setups else n): line.get(n) for n in names}
        for line in lines
    ]


def pictured(name: str, rows: Rows, title: str, scale: float = 1.0, **where: object) -> Any:
    """Return each method's error with its interval, by set-up, beside what is printed."""
    known = printed(name).get("values", {})
    points: Rows = []
    for setup in distinct(rows, "setup"):
        for method, values in by_method(rows, setup=setup, **where).items():
            m = _scaled(mean(values), scale)
            ends = {"low": m.mean - m.half, "high": m.mean + m.half}
            # A logarithmic axis has no place for what is exactly nothing.
            if m.mean > 0 and ends["low"] > 0:
                points.append({"method": method, "error": m.mean, **ends, "by": setup})
            elif m.mean > 0:
                points.append({"method": method, "error": m.mean, "by": setup})
    points += [
        {"method": method, "error": value["mean"], "by": "printed"}
        for method, value in known.items()
        if value["mean"] > 0
    ]
    unit = f" (x {scale:g})" if scale != 1 else ""
    return dots(
        points, "error", "method", "by", title, log_x=True, x_title=f"error{unit}, log scale"
    )


def _scaled(m: Mean, scale: float) -> Mean:
    return Mean(m.mean * scale, m.half * scale)


def _printed(value: Row | None, scale: float) -> str | None:
    """Return a printed mean and interval; those of MVG's tables are scaled as printed."""
    del scale
    if value is None:
        return None
    return plus_minus(Mean(value["mean"], value.get("interval", 0.0)))
