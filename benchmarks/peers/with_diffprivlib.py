"""diffprivlib's LinearRegression and PCA on given rows: run in an environment of its own.

It needs scikit-learn 1.6.1 (``benchmarks/learn.py`` makes the environment), so nothing of
Noiseshape is imported here. Reads arrays and settings, writes what was fitted:

    python with_diffprivlib.py in.npz out.npz

in.npz: X (n, m) and bounds (m, 2), both clipped to them already; y (n,) and y_bounds, in the same
way; epsilons, fits; for PCA ``unit``, the rows in units of their bounds, and norms, (k,).
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from diffprivlib.models import PCA, LinearRegression


def regressions(given: Any, epsilon: float) -> list[list[float]]:
    """Return coefficients and intercept of each fit."""
    bounds, y_bounds = given["bounds"], given["y_bounds"]
    found = []
    for _ in range(int(given["fits"])):
        model = LinearRegression(
            epsilon=epsilon, bounds_X=(bounds[:, 0], bounds[:, 1]), bounds_y=tuple(y_bounds)
        ).fit(given["X"], given["y"])
        found.append([*np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])])
    return found


def components(given: Any, epsilon: float, norm: float) -> tuple[list[Any], list[Any]]:
    """Return components and variances of each fit, all of them."""
    directions, variances = [], []
    for _ in range(int(given["fits"])):
        model = PCA(epsilon=epsilon, bounds=(-1, 1), data_norm=norm).fit(given["unit"].copy())
        directions.append(model.components_)
        variances.append(model.explained_variance_)
    return directions, variances


def main(source: str, out: str) -> None:
    """Fit all that is asked."""
    warnings.simplefilter("ignore")
    given = np.load(source)
    kept: dict[str, Any] = {}
    for at, epsilon in enumerate(given["epsilons"].tolist()):
        kept[f"ridge {at}"] = regressions(given, epsilon)
        for k, norm in enumerate(given["norms"].tolist()):
            kept[f"directions {at} {k}"], kept[f"variances {at} {k}"] = components(
                given, epsilon, norm
            )
    np.savez(out, **kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
