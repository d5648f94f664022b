"""By how much directional noise beats isotropic noise at equal epsilon and delta.

    python examples/directional.py

Every line compares the weighted total of the variances of all entries, at epsilon 1 and delta 1e-9.
``docs/matrices.md`` shows what this printed.
"""

from collections.abc import Callable

import numpy as np

import noiseshape as ns
from noiseshape import matrices

BUDGET = ns.Budget(epsilon=1, delta=1e-9)
NAMES = [f"x{i}" for i in range(8)]
EQUAL = dict.fromkeys(NAMES, (-1.0, 1.0))
UNEQUAL = {name: (-(2.0**i), 2.0**i) for i, name in enumerate(NAMES)}
FEW = np.array([1.0] * 2 + [0.01] * 6)  # two columns matter

Bounds = dict[str, tuple[float, float]]
QUERIES: dict[str, Callable[[Bounds], ns.MatrixQuery]] = {
    "sum of 8 columns": lambda bounds: matrices.sum(bounds=bounds),
    "mean, private count of about 10,000": lambda bounds: ns.mean(bounds=bounds, expected=10_000),
    "second moments, 8 x 8": lambda bounds: ns.second_moment(bounds=bounds),
    "covariance, 8 x 8, about 10,000 rows": lambda bounds: ns.covariance(
        bounds=bounds, expected=10_000
    ),
    "data matrix, 100 x 8": lambda bounds: ns.identity(bounds=bounds, columns=NAMES, n=100),
    "gradient, clipped to norm 1": lambda _: ns.gradient(clip=1.0, m=8),
}


def ratio(query: ns.MatrixQuery, weights: np.ndarray) -> float:
    """Return the weighted total variance of isotropic noise over that of directional noise."""
    full = np.outer(weights, weights) if query.symmetric else np.broadcast_to(weights, query.shape)
    each = full[query.entries] * query.twice
    isotropic = ns.isotropic(query).within(BUDGET)
    directional = ns.directional(query, weights=full).within(BUDGET)
    return float((each @ isotropic.variance) / (each @ directional.variance))


def main() -> None:
    """Print the table."""
    cases = {
        "equal bounds": (EQUAL, np.ones(8)),
        "bounds 1 to 128": (UNEQUAL, np.ones(8)),
        "two columns matter": (EQUAL, FEW),
        "both": (UNEQUAL, FEW),
    }
    print("| weighted total variance, isotropic / directional | " + " | ".join(cases) + " |")
    print("| --- |" + " --- |" * len(cases))
    for name, ask in QUERIES.items():
        found = [ratio(ask(bounds), weights) for bounds, weights in cases.values()]
        print(f"| {name} | " + " | ".join(f"{r:.2f}" for r in found) + " |")


if __name__ == "__main__":
    main()
