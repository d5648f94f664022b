"""Johnson-Lindenstrauss sketches: r secret Gaussian combinations of the records.

Blocki, Blum, Datta and Sheffet (2012), Algorithm 3, for neighbours whose matrices differ by a
record's change of length at most 1: with

    w = 16 sqrt(r ln(2 / delta)) / epsilon * ln(16 r / delta)

replace the singular values s of X by sqrt(s^2 + w^2) and publish ``M X``, M (r, n) of standard
normals that stay secret. ``(M X)^T (M X) / r`` then estimates ``X^T X + w^2 I``. Upadhyay (2014)
gives such sketches for any matrix whose singular values pass such a threshold; where they do not,
they are lifted in the same way, and the threshold is Blocki et al.'s here for both.

Since M is secret, and has to be, only second moments can be learnt from a sketch.
"""

from __future__ import annotations

import math

import numpy as np

from ..harness import Floats


def threshold(rows: int, epsilon: float, delta: float) -> float:
    """Return w."""
    root = math.sqrt(rows * math.log(2 / delta))
    return 16 * root / epsilon * math.log(16 * rows / delta)


def sketch(
    X: Floats,
    rows: int,
    change: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> Floats:
    """Return the sketch (rows, features) of X (records, features), in X's own units.

    Parameters
    ----------
    rows
        r.
    change
        Greatest length by which one record may change.
    """
    w = threshold(rows, epsilon, delta) * change
    # M U is a Gaussian matrix again, for U of orthonormal columns: records are not needed.
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    M = rng.standard_normal((rows, len(s)))
    return np.asarray(M * np.sqrt(s**2 + w**2)) @ Vt


def moment(sketched: Floats) -> Floats:
    """Return the estimate of ``X^T X + w^2 I`` (features, features)."""
    return sketched.T @ sketched / len(sketched)
