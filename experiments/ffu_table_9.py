"""Fitness-for-use, Table 9: age pyramids."""

from __future__ import annotations

from typing import Any

from benchmarks.workloads import age_pyramids

from noiseshape.design import hierarchy

from .harness import Case, Experiment, Rows, Size, Verdict, column, printed
from .ratios import mechanisms
from .tables import one_workload_picture, one_workload_table

NAME, LABEL = "ffu-table-9", "age pyramids"
TREE = "HM, by attribute"


def cases(size: Size) -> list[Case]:
    """Return the one case."""
    trees = {TREE: lambda w: hierarchy(*w, sizes=(2, 116), ordered=(False, True))}

    def compute() -> Rows:
        return mechanisms(age_pyramids(), with_sm2=size != "tiny", trees=trees)

    return [Case(LABEL, compute)]


def table(rows: Rows) -> Rows:
    """Return a row a mechanism beside what is printed."""
    return one_workload_table(NAME, LABEL, rows)


def verdict(rows: Rows) -> Verdict:
    """Compare the printed ratios with those of the workload as it is described."""
    known = printed(NAME)["values"][LABEL]
    gm = column(rows, "ratio", mechanism="GM")[0]
    alpha = column(rows, "alpha", mechanism="GM")[0]
    least = column(rows, "alpha", mechanism="fit")[0]
    near = abs(gm / known["GM"] - 1) < 0.05
    return Verdict(
        "agrees" if near else "differs",
        f"[18, 115] for both sexes sums 196 cells at target 1, so noise on the cells costs mu^2 = "
        f"{alpha:.0f}, and the certified least is {least:.4f}: a ratio of {gm:.1f}, where "
        f"{known['GM']} is printed. No workload that holds that query at that target can give the "
        "printed number for GM unless its own least cost is five times ours. The conclusion, that "
        "fitted noise is far ahead, holds all the more.",
    )


def picture(rows: Rows) -> Any:
    """Return measured and printed ratios."""
    return one_workload_picture(NAME, LABEL, rows, "Age pyramids: how far the worst query misses")


EXPERIMENT = Experiment(
    title="age pyramids",
    protocol=(
        "351 queries over 2 sexes and 116 ages as section 7.5 describes them; every mechanism at "
        "fit's certified privacy cost. HM is a tree over the 232 cells in one row, or a tree over "
        "ages times the sexes and their total; the paper does not say which."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
