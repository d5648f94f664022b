"""Kernel ridge regression: weights ``(K + ridge I)^-1 y``, predictions ``k(x) . weights``.

MVG names no kernel and no parameters. Fixed beforehand here: the Gaussian kernel
``exp(-|x - x'|^2 / features)`` and the linear one, ridge 1.
"""

from __future__ import annotations

import numpy as np

from ..harness import Floats

RIDGE = 1.0


def gaussian_kernel(X: Floats, Y: Floats, width: float | None = None) -> Floats:
    """Return ``exp(-|x - y|^2 / width)`` (rows of X, rows of Y); width the number of features."""
    squares = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1)[None, :] - 2 * X @ Y.T
    return np.exp(-np.maximum(squares, 0) / (X.shape[1] if width is None else width))


def linear_kernel(X: Floats, Y: Floats) -> Floats:
    """Return inner products (rows of X, rows of Y)."""
    return X @ Y.T


KERNELS = {"Gaussian": gaussian_kernel, "linear": linear_kernel}


def predicted(
    train: Floats, y: Floats, test: Floats, kernel: str = "Gaussian", ridge: float = RIDGE
) -> Floats:
    """Return predictions (test records,) after training on (records, features) and y (records,)."""
    k = KERNELS[kernel]
    if kernel == "linear":  # the same, by the features' own small system
        G = train.T @ train + ridge * np.eye(train.shape[1])
        return test @ np.linalg.solve(G, train.T @ y)
    weights = np.linalg.solve(k(train, train) + ridge * np.eye(len(train)), y)
    return k(test, train) @ weights


def rmse(predictions: Floats, truth: Floats) -> float:
    """Return the root mean square error."""
    return float(np.sqrt(np.mean((predictions - truth) ** 2)))
