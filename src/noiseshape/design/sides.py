"""The two sides of a design: people, whom a direction costs, and queries, whom it serves.

Each side is a list of vectors in the coordinates of the basis; the dual iteration needs only
their weighted Gram matrix and their squared lengths after a linear map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats
from .certificate import pairs
from .reduce import Ints

Flags = NDArray[np.bool_]

# Rows worked on at a time: enough for BLAS to run at full speed, little enough that the copies
# that weights and maps need stay well below the workload's own size.
BLOCK = 256


class Side(Protocol):
    """Vectors ``v_1 .. v_n`` in ``k`` coordinates, one a row."""

    @property
    def n(self) -> int:
        """How many vectors."""
        ...

    @property
    def k(self) -> int:
        """In how many coordinates."""
        ...

    def gram(self, weights: Floats) -> Floats:
        """Return ``sum_i weights_i v_i v_i^T`` (k, k), or only its diagonal (k,) if that is all."""
        ...

    def forms(self, T: Floats) -> Floats:
        """Return the squared lengths (n,) of ``v_i^T T``."""
        ...

    def rows(self, T: Floats, out: Floats) -> None:
        """Write ``v_i^T T`` to the rows of ``out`` (n, k), in its precision."""
        ...


@dataclass(frozen=True, eq=False)
class Units:
    """The unit vectors: people when the basis is the cells themselves."""

    k: int

    @property
    def n(self) -> int:
        """How many vectors."""
        return self.k

    def gram(self, weights: Floats) -> Floats:
        """Return the weighted Gram matrix."""
        return weights

    def forms(self, T: Floats) -> Floats:
        """Return squared lengths after ``T``."""
        return np.einsum("ij,ij->i", T, T)

    def rows(self, T: Floats, out: Floats) -> None:
        """Write the vectors after ``T`` to ``out``."""
        out[:] = T


@dataclass(frozen=True, eq=False)
class UnitsAnd:
    """The unit vectors and a few more: people when ``k`` of the cells are the basis.

    Attributes
    ----------
    own : (k,)
        Positions of the unit vectors, in the order of coordinates.
    others : (n - k,)
        Positions of the rest.
    X : (n - k, k)
        The rest.
    """

    own: Ints
    others: Ints
    X: Floats

    @property
    def n(self) -> int:
        """How many vectors."""
        return len(self.own) + len(self.others)

    @property
    def k(self) -> int:
        """In how many coordinates."""
        return len(self.own)

    def gram(self, weights: Floats) -> Floats:
        """Return the weighted Gram matrix."""
        total: Floats = self.X.T @ (weights[self.others, None] * self.X)
        total[np.diag_indices(self.k)] += weights[self.own]
        return total

    def forms(self, T: Floats) -> Floats:
        """Return squared lengths after ``T``."""
        lengths = np.empty(self.n)
        lengths[self.own] = np.einsum("ij,ij->i", T, T)
        lengths[self.others] = ((self.X @ T) ** 2).sum(axis=1)
        return lengths

    def rows(self, T: Floats, out: Floats) -> None:
        """Write the vectors after ``T`` to ``out``."""
        out[self.own] = T
        out[self.others] = self.X @ T


@dataclass(frozen=True, eq=False)
class Vectors:
    """Any vectors: rows of ``V`` (n, k), each divided by the root of its target ``c`` (n,).

    The division is never carried out, so that ``V`` can be the workload itself and not a copy.
    """

    V: Floats
    c: Floats

    @property
    def n(self) -> int:
        """How many vectors."""
        return self.V.shape[0]

    @property
    def k(self) -> int:
        """In how many coordinates."""
        return self.V.shape[1]

    def gram(self, weights: Floats) -> Floats:
        """Return the weighted Gram matrix."""
        total = np.zeros((self.k, self.k))
        root = np.sqrt(weights / self.c)[:, None]
        for start in range(0, self.n, BLOCK):
            part = slice(start, start + BLOCK)
            block = self.V[part] * root[part]
            total += block.T @ block  # numpy sees the symmetry: half the work
        return total

    def forms(self, T: Floats) -> Floats:
        """Return squared lengths after ``T``."""
        lengths = np.empty(self.n)
        for start in range(0, self.n, BLOCK):
            block = self.V[start : start + BLOCK] @ T
            lengths[start : start + BLOCK] = np.einsum("ij,ij->i", block, block)
        lengths /= self.c
        return lengths

    def rows(self, T: Floats, out: Floats) -> None:
        """Write the vectors after ``T`` to ``out``."""
        T = T.astype(out.dtype)
        for start in range(0, self.n, BLOCK):
            part = slice(start, start + BLOCK)
            np.matmul(self.V[part].astype(out.dtype), T, out=out[part])
        out /= np.sqrt(self.c)[:, None].astype(out.dtype)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Differences of all pairs of rows of ``V`` (d, k), never formed: people under replace.

    A weighted sum of ``(v_i - v_j)(v_i - v_j)^T`` is ``V^T Lap V`` with the Laplacian of the
    weights; squared lengths follow from one Gram matrix.
    """

    V: Floats

    @property
    def n(self) -> int:
        """How many vectors."""
        d = self.V.shape[0]
        return d * (d - 1) // 2

    @property
    def k(self) -> int:
        """In how many coordinates."""
        return self.V.shape[1]

    def gram(self, weights: Floats) -> Floats:
        """Return the weighted Gram matrix."""
        d = self.V.shape[0]
        laplacian = np.zeros((d, d))
        laplacian[pairs(d)] = -weights
        laplacian += laplacian.T
        laplacian[np.diag_indices(d)] = -laplacian.sum(axis=1)
        product: Floats = self.V.T @ laplacian @ self.V
        return (product + product.T) / 2

    def forms(self, T: Floats) -> Floats:
        """Return squared lengths after ``T``."""
        Y = self.V @ T
        P = Y @ Y.T
        i, j = pairs(len(P))
        lengths = P.diagonal()
        result: Floats = lengths[i] + lengths[j] - 2 * P[i, j]
        return np.maximum(result, 0.0)

    def rows(self, T: Floats, out: Floats) -> None:
        """Write the vectors after ``T`` to ``out``."""
        Y = (self.V @ T).astype(out.dtype)
        i, j = pairs(len(Y))
        np.subtract(Y[i], Y[j], out=out)
