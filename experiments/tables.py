"""Tables, pictures and verdicts that experiments share; nothing here is computed with.

Ratios of variance to target (Tables 4 to 9 of fitness-for-use) by mechanism, and errors over trials
(MVG's) by method, with the parameter that was fixed beforehand and with the best in hindsight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from .harness import (
    Mean,
    Row,
    Rows,
    Verdict,
    capital,
    column,
    distinct,
    mean,
    plus_minus,
    printed,
)
from .pictures import dots, lines

GM, PER_QUERY, CA, SM2, FIT = "GM", "GM, noise on each query", "CA", "SM-II", "fit"
HM, HM2, HM16 = "HM", "HM, two levels", "HM, factor 16"
ORDER = (GM, PER_QUERY, HM, HM2, HM16, CA, SM2, FIT)
TEXT = "as described"
# Draws that tell how one more would spread; half a unit of the last printed digit.
ENOUGH, PRINTED_TO = 5, 0.005


# ---------------------------------------------------------------- draws of a workload


def drawn_table(name: str, rows: Rows) -> Rows:
    """Return, for each d, what is printed and what each reading measures."""
    known = printed(name)["values"]
    shown: Rows = []
    for d in distinct(rows, "d"):
        line: Row = {"d": d, "": "printed"}
        line |= {mechanism: known.get(str(d), {}).get(mechanism) for mechanism in ORDER[:-1]}
        shown.append(line)
        for reading in distinct(rows, "reading"):
            here = [r for r in rows if r["d"] == d and r["reading"] == reading]
            draws = len(distinct(here, "draw"))
            line = {"d": d, "": reading}
            for mechanism in ORDER[:-1]:
                found = column(here, "ratio", mechanism=mechanism)
                line[mechanism] = plus_minus(found) if found else None
            line["draws"] = draws
            for mechanism in (FIT, SM2, CA):
                gaps = column(here, "gap", mechanism=mechanism)
                line[f"gap of {mechanism}"] = max(gaps) if gaps else None
            for mechanism in (FIT, SM2, CA, HM, GM):
                seconds = column(here, "seconds", mechanism=mechanism)
                line[f"seconds of {mechanism}"] = mean(seconds).mean if seconds else None
            shown.append(line)
    return shown


def drawn_picture(name: str, rows: Rows, title: str) -> Any:
    """Return measured and printed ratios against d, a panel a mechanism."""
    points: Rows = []
    for shown, mechanism in (("GM", GM), ("HM (two levels)", HM2), ("CA", CA)):
        for reading in distinct(rows, "reading"):
            for d in distinct(rows, "d"):
                m = mean(column(rows, "ratio", d=d, mechanism=mechanism, reading=reading))
                ends = {"low": m.mean - m.half, "high": m.mean + m.half}
                if ends["low"] <= 0:  # two draws tell next to nothing, and an axis of logs less
                    ends = {}
                said = "measured" if reading == TEXT else f"measured, {reading}"
                points.append({"d": d, "ratio": m.mean, **ends, "by": said, "panel": shown})
        points += [
            {
                "d": int(d),
                "ratio": row[HM if mechanism == HM2 else mechanism],
                "by": "printed",
                "panel": shown,
            }
            for d, row in printed(name)["values"].items()
        ]
    said = capital(title)
    return lines(points, "d", "ratio", "by", said, log_x=True, log_y=True, panels="panel")


def shares(name: str, rows: Rows) -> dict[str, tuple[float, float]]:
    """Return, for each mechanism, the least and greatest of measured over printed, over d."""
    known = printed(name)["values"]
    found: dict[str, tuple[float, float]] = {}
    for mechanism in (GM, HM, HM2, HM16, CA, SM2):
        each = [
            mean(measured).mean / known[str(d)][HM if mechanism in (HM2, HM16) else mechanism]
            for d in distinct(rows, "d")
            if str(d) in known and (measured := column(rows, "ratio", d=d, mechanism=mechanism))
        ]
        if each:
            found[mechanism] = min(each), max(each)
    return found


def compared(name: str, rows: Rows, why: str) -> Verdict:
    """Return the verdict on Tables 5 to 8: how far each column is from what is printed.

    The paper has one draw of each workload: its numbers for GM and CA, whose mechanisms leave
    nothing open, are held against where one more draw lies with 95 % chance, at sizes with enough
    draws to tell.
    """
    said, near = [], False
    for reading in distinct(rows, "reading"):
        here = [r for r in rows if r["reading"] == reading]
        told = ", ".join(
            f"{m} {low:.2f}" + (f" to {high:.2f}" if high - low > 0.005 else "")
            for m, (low, high) in shares(name, here).items()
        )
        within, of = _within_one_draw(name, here)
        if reading == TEXT:
            near = within == of
        said.append(
            f"Measured over printed, by d, {reading}: {told or 'no printed size'}; of {of} printed "
            f"GM and CA at sizes with {ENOUGH} draws, {within} lie where one draw would."
        )
    return Verdict("agrees" if near else "differs", " ".join([*said, why]))


def _within_one_draw(name: str, rows: Rows) -> tuple[int, int]:
    """Return how many printed GM and CA lie in the 95 % interval of one more draw, of how many."""
    known = printed(name)["values"]
    found = []
    for mechanism in (GM, CA):
        for d in distinct(rows, "d"):
            draws = column(rows, "ratio", d=d, mechanism=mechanism)
            if str(d) in known and len(draws) >= ENOUGH:
                n, spread = len(draws), float(np.std(draws, ddof=1))
                half = float(student.ppf(0.975, n - 1)) * spread * math.sqrt(1 + 1 / n)
                off = abs(known[str(d)][mechanism] - float(np.mean(draws)))
                found.append(off <= half + PRINTED_TO)
    return sum(found), len(found)


def _printed(known: Row, value: object, mechanism: str) -> float | None:
    """Return what is printed; both readings of HM stand beside the one that is printed."""
    number: float | None = known.get(str(value), {}).get(
        HM if mechanism in (HM2, HM16) else mechanism
    )
    return number


# ---------------------------------------------------------------- one workload


def one_workload_table(name: str, label: str, rows: Rows) -> Rows:
    """Return a row a mechanism, and reading, for a workload that is not drawn."""
    known = printed(name)["values"]
    several = len(distinct(rows, "reading")) > 1
    return [
        {
            **({"reading": row["reading"]} if several else {}),
            "mechanism": row["mechanism"],
            "printed": _printed(known, label, row["mechanism"].replace(", by attribute", "")),
            "measured": row["ratio"],
            "mu^2 to meet all targets": row["alpha"],
            "reference that the printed ratio implies": implied(name, label, row),
            "gap": row.get("gap"),
            "seconds": row.get("seconds"),
        }
        for row in rows
    ]


def implied(name: str, label: str, row: Row) -> float | None:
    """Return the mu^2 that a mechanism's printed ratio was taken over, if its own is the row's."""
    number = _printed(printed(name)["values"], label, row["mechanism"])
    fitted = row["mechanism"].startswith((FIT, SM2))
    return None if number is None or fitted else float(row["alpha"] / number)


def one_workload_picture(name: str, label: str, rows: Rows, title: str) -> Any:
    """Return measured and printed ratios as dots."""
    known = printed(name)["values"][label]
    points = [
        {"mechanism": r["mechanism"], "ratio": r["ratio"], "by": r.get("reading", "measured")}
        for r in rows
    ]
    points += [{"mechanism": m, "ratio": value, "by": "printed"} for m, value in known.items()]
    x_title = "greatest variance / target (log scale)"
    return dots(points, "ratio", "mechanism", "by", title, log_x=True, x_title=x_title)


# ---------------------------------------------------------------- errors over trials


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
        line["printed"] = _printed_error(known.get(method), scale)
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


def _printed_error(value: Row | None, scale: float) -> str | None:
    """Return a printed mean and interval; those of MVG's tables are scaled as printed."""
    del scale
    if value is None:
        return None
    return plus_minus(Mean(value["mean"], value.get("interval", 0.0)))
