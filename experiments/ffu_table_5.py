"""Fitness-for-use, Table 5: range queries, uniform targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workloads import Workload, range_queries

from .harness import Case, Experiment, Rows, Size, Verdict, generator
from .pictures import lines
from .ratios import compared, picture_rows, table_cases
from .ratios import table as ratio_table

NAME = "ffu-table-5"


def draw(d: int, number: int, name: str = NAME) -> Workload:
    """Return one draw of the workload."""
    W, _ = range_queries(d, 2 * d, generator(name, d, number))
    return W, np.ones(len(W))


def cases(size: Size) -> list[Case]:
    """Return a case for each d and draw."""
    return table_cases(NAME, size, draw)


def table(rows: Rows) -> Rows:
    """Return a row for each mechanism and d."""
    return ratio_table(NAME, rows)


def verdict(rows: Rows) -> Verdict:
    """Compare the ratios with what is printed."""
    return compared(NAME, rows, WHY)


def picture(rows: Rows) -> Any:
    """Return ratios against d, measured and printed."""
    points = picture_rows(NAME, rows)
    title = "Range queries, uniform targets"
    return lines(points, "d", "ratio", "by", title, log_x=True, log_y=True)


WHY = "@@WHY5@@"

EXPERIMENT = Experiment(
    title="range queries, uniform targets",
    protocol=(
        "2 d ranges a draw, both ends uniform over the d cells, targets 1; fresh draws, means over them with 95 % intervals "
        "(the paper has one draw). Every mechanism at fit's certified privacy cost; SM-II only "
        "where it takes seconds (all sizes with --full), rebased, with 20 conjugate steps."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
