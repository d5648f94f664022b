"""Compare designs for the PL 94-171 redistricting tables: a table, two CSV files, a picture.

Run: python examples/compare.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from noiseshape.design import compare, hierarchy
from noiseshape.design.compare import QUICK


def redistricting() -> tuple[np.ndarray, np.ndarray]:
    """Return queries and target variances over 2 ages x 2 ethnicities x 63 races.

    Both ages, both ethnicities and six single races are to have variance 1, the 57 combinations
    of races 2, and every cell 4.
    """
    age = np.kron(np.eye(2), np.ones((1, 126)))
    ethnicity = np.kron(np.ones((1, 2)), np.kron(np.eye(2), np.ones((1, 63))))
    race = np.kron(np.ones((1, 4)), np.eye(63))
    W = np.vstack([age, ethnicity, race, np.eye(252)])
    return W, np.repeat([1.0, 2.0, 4.0], [10, 57, 252])


def main(folder: str = "out") -> None:
    """Print the comparison and write its files into ``folder``."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    W, c = redistricting()
    # Three categorical attributes: their cells and totals, and no tree over all 252 cells.
    lattice = hierarchy(W, c, sizes=(2, 2, 63), ordered=(False, False, False))
    designs = [lattice if name == "hierarchy" else name for name in QUICK]
    comparison = compare(W, c, designs)
    print(comparison)
    comparison.to_csv(out / "comparison.csv")
    comparison.to_csv(out / "comparison_queries.csv", per_query=True)
    chart = comparison.chart()
    chart.save(out / "comparison.svg")
    chart.save(out / "comparison.png", scale_factor=2)
    print("\nWritten: " + ", ".join(str(path) for path in sorted(out.glob("comparison*"))))


if __name__ == "__main__":
    main(*sys.argv[1:2])
