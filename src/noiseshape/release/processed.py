"""What follows from a released matrix: nearest positive semi-definite, correlations, components.

All of it is post-processing of the release, so it costs nothing more; none of it is unbiased. How
far noise moves it is simulated from the release alone (simulation.py), and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._checks import Floats, whole
from ..errors import InvalidInput
from .simulation import DRAWS, simulate_releases
from .table import Table

if TYPE_CHECKING:
    from .matrixrelease import MatrixRelease

LABEL = "post-processed, so not unbiased; spread simulated from the release"


@dataclass(frozen=True, eq=False)
class Processed:
    """A function of a released answer, and how far noise moves it.

    Attributes
    ----------
    value
        The function of the released answer.
    stderr
        Standard deviation over simulated releases, of value's shape.
    shift
        By how much noise moves it on average, over simulated releases around the released one:
        about the bias that it has. Not taken off.
    label
        What its reader must know.
    """

    value: Floats
    stderr: Floats
    shift: Floats
    label: str


@dataclass(frozen=True, eq=False)
class Components:
    """Eigenvalues and eigenvectors of a released symmetric matrix, greatest first.

    Attributes
    ----------
    values : shape (k,)
        Eigenvalues of the released matrix.
    vectors : shape (m, k)
        Their directions, one a column, the greatest entry of each positive.
    stderr, shift : shape (k,)
        As :class:`Processed` has them, of the eigenvalues.
    angle : shape (k,)
        In degrees: 95 % of simulated releases have their direction within it. Near 90, noise tells
        nothing of that direction.
    label
        What its reader must know.
    """

    values: Floats
    vectors: Floats
    stderr: Floats
    shift: Floats
    angle: Floats
    label: str

    def table(self) -> Table:
        """Return a line for each component."""
        return Table(
            {
                "component": tuple(str(i + 1) for i in range(len(self.values))),
                "eigenvalue": self.values,
                "stderr": self.stderr,
                "shift": self.shift,
                "angle (degrees, 95 %)": self.angle,
            },
            note=self.label,
        )


def nearest_psd(M: Floats) -> Floats:
    """Return the positive semi-definite matrix nearest to a symmetric one, in Frobenius norm.

    Its eigenvalues below 0 are 0.
    """
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    out: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (out + out.T) / 2


def correlation(M: Floats) -> Floats:
    """Return the correlations of a covariance, made positive semi-definite first.

    A column whose variance is then 0 has none: NaN.
    """
    C = nearest_psd(M)
    d = np.sqrt(np.diag(C))
    d = np.where(d > 1e-12 * d.max(initial=0.0), d, np.nan)
    R = np.clip(C / np.outer(d, d), -1, 1)
    R[np.diag_indices(len(d))] = np.where(np.isnan(d), np.nan, 1.0)
    return R


def components(M: Floats, k: int) -> tuple[Floats, Floats]:
    """Return the k greatest eigenvalues and their directions, (k,) and (m, k)."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    vectors = vectors[:, ::-1][:, :k]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(k)])
    return values[::-1][:k], vectors * signs


def square(release: MatrixRelease) -> None:
    """Refuse an answer that is no square matrix."""
    shape = release.plan.query.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InvalidInput(
            f"this is of square matrices, and the answer has shape {shape}: ask for a covariance, "
            "a second moment or a Gram matrix."
        )


def processed(
    release: MatrixRelease, function: Callable[[Floats], Floats], what: str, draws: int = DRAWS
) -> Processed:
    """Return a function of the answer, with its simulated spread."""
    value = function(release.answer)
    total, squares = np.zeros_like(value), np.zeros_like(value)
    for coordinates in simulate_releases(release, draws):
        off = function(np.asarray(release.plan.query.answer(coordinates))) - value
        total += off
        squares += off**2
    spread = np.sqrt(np.maximum(squares - total**2 / draws, 0) / (draws - 1))
    return Processed(value, spread, total / draws, f"{what}: {LABEL}")


def decomposed(release: MatrixRelease, k: int | None, draws: int = DRAWS) -> Components:
    """Return the greatest eigenvalues and their directions, with simulated spreads."""
    square(release)
    m = release.plan.query.shape[0]
    if not release.plan.query.symmetric:
        raise InvalidInput("components are of a symmetric answer, and this one is not.")
    k = m if k is None else whole("the number of components", k)
    if k > m:
        raise InvalidInput(f"the answer has {m} components, and {k} are asked for.")
    values, vectors = components(release.answer, k)
    found, angles = [], []
    for coordinates in simulate_releases(release, draws):
        each, directions = components(np.asarray(release.plan.query.answer(coordinates)), k)
        found.append(each)
        cosines = np.abs(np.einsum("ij,ij->j", directions, vectors))
        angles.append(np.degrees(np.arccos(np.minimum(cosines, 1.0))))
    return Components(
        values,
        vectors,
        np.std(found, axis=0, ddof=1),
        np.mean(found, axis=0) - values,
        np.quantile(angles, 0.95, axis=0),
        f"components: {LABEL}",
    )
