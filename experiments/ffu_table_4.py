"""Fitness-for-use, Table 4: the redistricting tables of PL 94-171."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from benchmarks.workloads import pl94

from noiseshape.design import fit, hierarchy
from noiseshape.design.sm2 import PUBLISHED, Model, Options, conjugate_gradients, solve

from .harness import Case, Experiment, Floats, Row, Rows, Size, Verdict, printed
from .ratios import GAP, mechanisms
from .tables import implied, one_workload_picture, one_workload_table

NAME, LABEL = "ffu-table-4", "PL-94"
TREE = "HM, by attribute"
LETTER = "SM-II, ended as printed"


def cases(size: Size) -> list[Case]:
    """Return a case of all mechanisms, and one of SM-II to the letter."""
    trees = {
        TREE: lambda w: hierarchy(*w, sizes=(2, 2, 63), ordered=(False, False, False)),
    }

    def compute() -> Rows:
        return mechanisms(pl94(), with_sm2=size != "tiny", trees=trees)

    made = [Case(LABEL, compute)]
    if size != "tiny":
        made.append(Case(LETTER, _to_the_letter))
    return made


def _to_the_letter() -> Rows:
    """Return SM-II whose sub-problems and schedule end as printed, in the basis B = U.

    A sub-problem at ``abs <s, grad F> < NTTOL``, without the factor t of the authors' program; all
    at ``(d + m) / t < TOL``, in our terms at a soft-max within this much of the maxima.
    """

    def direction(model: Model, options: Options) -> Floats:
        s = conjugate_gradients(model, options)
        return s if abs(np.vdot(s, model.gradient)) >= PUBLISHED.decrement else np.zeros_like(s)

    W, c = pl94()
    m, d = W.shape
    tolerance = PUBLISHED.tolerance * (np.log(d) + np.log(m)) / (d + m)
    options = Options(rebase=False, decrement=1e-300, tolerance=float(tolerance))
    begun = time.process_time()
    design = solve("sm2", direction, W, c, np.triu(np.ones((d, d))), None, options, None)
    seconds = time.process_time() - begun
    proof = design.certificate
    assert proof is not None
    least = fit(W, c, gap=GAP).alpha
    return [
        {
            "mechanism": LETTER,
            "ratio": design.alpha / least,
            "alpha": design.alpha,
            "gap": proof.gap,
            "seconds": seconds,
        }
    ]


def table(rows: Rows) -> Rows:
    """Return a row a mechanism beside what is printed."""
    return one_workload_table(NAME, LABEL, rows)


def verdict(rows: Rows) -> Verdict:
    """Compare the printed ratios with those of the workload as it is described."""
    known = printed(NAME)["values"][LABEL]
    row = {r["mechanism"]: r for r in rows}
    gm, ca = row["GM"]["ratio"], row["CA"]["ratio"]
    least, text = row["fit"]["alpha"], row["GM, noise on each query"]["ratio"]
    near = abs(gm / known["GM"] - 1) < 0.05 and abs(ca / known["CA"] - 1) < 0.05
    references = [implied(NAME, LABEL, row[m]) or 0.0 for m in ("GM", "HM, factor 16", "CA")]
    same = max(references) / min(references) < 1.01
    told = ", ".join(f"{value:.3f}" for value in references)
    why = (
        "These are one number: workload, targets and mechanisms are as described (HM with a "
        "branching factor of 16), and what the paper took for SM-II's cost is "
        f"{np.mean(references) / least - 1:.0%} above the certified least."
        if same
        else "These differ: the paper's workload or targets must have been others than it says."
    )
    return Verdict(
        "agrees" if near else "differs",
        f"Over the certified least mu^2 of {least:.4f}, noise on the cells has a ratio of "
        f"{gm:.2f} for the printed {known['GM']}, least total error {ca:.2f} for {known['CA']}. "
        f"The printed ratios of GM, HM and CA imply that they were taken over mu^2 = {told}. {why} "
        f"{_told_letter(row)}GM as the text describes it, the same noise on each query, would "
        f"give {text:.2f}. The conclusion holds: only fitted noise meets every target.",
    )


def _told_letter(row: dict[str, Row]) -> str:
    """Say what SM-II costs when it ends as the paper prints."""
    if LETTER not in row:
        return ""
    return (
        f"SM-II that ends as printed costs {row[LETTER]['alpha']:.2f} here, "
        f"{row[LETTER]['ratio'] - 1:.0%} above the least; to the tolerance of its authors' program "
        f"and rebased, {row['SM-II']['alpha']:.3f}. "
    )


def picture(rows: Rows) -> Any:
    """Return measured and printed ratios."""
    return one_workload_picture(NAME, LABEL, rows, "PL 94-171: how far the worst query misses")


EXPERIMENT = Experiment(
    title="the redistricting tables",
    protocol=(
        "Queries and targets as section 7.2 describes them; every mechanism at fit's certified "
        "privacy cost. HM is a tree over the 252 cells in one row, or trees by attribute (cells "
        "and total of each); the paper does not say which, nor the branching factor. SM-II runs "
        "rebased with 20 conjugate steps, which reaches the same optimum sooner, and to the "
        "letter, where sub-problems and schedule end as printed."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
