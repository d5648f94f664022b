"""Fitness-for-use, Table 4: the redistricting tables of PL 94-171."""

from __future__ import annotations

from typing import Any

from benchmarks.workloads import pl94

from noiseshape.design import hierarchy

from .harness import Case, Experiment, Rows, Size, Verdict, column, printed
from .ratios import mechanisms
from .tables import one_workload_picture, one_workload_table

NAME, LABEL = "ffu-table-4", "PL-94"
TREE = "HM, by attribute"


def cases(size: Size) -> list[Case]:
    """Return the one case."""
    trees = {
        TREE: lambda w: hierarchy(*w, sizes=(2, 2, 63), ordered=(False, False, False)),
    }

    def compute() -> Rows:
        return mechanisms(pl94(), with_sm2=size != "tiny", trees=trees)

    return [Case(LABEL, compute)]


def table(rows: Rows) -> Rows:
    """Return a row a mechanism beside what is printed."""
    return one_workload_table(NAME, LABEL, rows)


def verdict(rows: Rows) -> Verdict:
    """Compare the printed ratios with those of the workload as it is described."""
    known = printed(NAME)["values"][LABEL]
    gm, ca = (column(rows, "ratio", mechanism=m)[0] for m in ("GM", "CA"))
    text = column(rows, "ratio", mechanism="GM, noise on each query")[0]
    near = abs(gm / known["GM"] - 1) < 0.05 and abs(ca / known["CA"] - 1) < 0.05
    return Verdict(
        "agrees" if near else "differs",
        "The 319 queries as section 7.2 describes them give noise on the cells a ratio of "
        f"{gm:.2f} for the printed {known['GM']}, and least total error {ca:.2f} for "
        f"{known['CA']}: both ratios are of closed forms or certified optima, so the paper's "
        "workload or targets must have been others than it says. GM as the text describes it, the "
        f"same noise on each query, would give {text:.2f}. The conclusion holds: only fitted "
        "noise meets every target.",
    )


def picture(rows: Rows) -> Any:
    """Return measured and printed ratios."""
    return one_workload_picture(NAME, LABEL, rows, "PL 94-171: how far the worst query misses")


EXPERIMENT = Experiment(
    title="the redistricting tables",
    protocol=(
        "Queries and targets as section 7.2 describes them; every mechanism at fit's certified "
        "privacy cost. HM is a tree over the 252 cells in one row, or trees by attribute (cells "
        "and total of each); the paper does not say which. SM-II runs rebased with 20 conjugate "
        "steps, which reaches the same optimum sooner."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
