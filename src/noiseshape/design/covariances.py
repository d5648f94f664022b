"""Matrix-variate Gaussian noise: a covariance over rows, and one over columns.

    Z ~ MVG(0, Sigma, Psi):  cov(vec Z) = Psi x Sigma,  cov(Z_ij, Z_kl) = Sigma_ik Psi_jl

vec stacks columns, as in the papers. What is here is real: it designs, states and simulates. A
release executes integers (strategies/rounding.py), and states its cost from those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .._checks import Floats, floats, frozen, positive, whole
from ..errors import InvalidInput

# Asymmetry, and departures from orthonormality, up to this are taken as rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Mode:
    """The noise along one mode of a matrix: W diag(variances) W^T.

    Attributes
    ----------
    variances : shape (k,)
        One a direction, above 0.
    directions : shape (k, k), or None
        W, orthonormal columns; None for the standard basis.
    """

    variances: Floats
    directions: Floats | None = None

    @staticmethod
    def of(name: str, covariance: ArrayLike) -> Mode:
        """Return a mode from its covariance, (k, k), or from its diagonal, (k,)."""
        if np.ndim(covariance) == 1:
            v = floats(name, covariance)
            if not v.size or not np.all(v > 0):
                raise InvalidInput(f"{name} must be positive definite: a variance is not above 0.")
            return Mode(frozen(v))
        S = definite(name, covariance)
        if np.array_equal(S, np.diag(np.diag(S))):
            return Mode(frozen(np.diag(S).copy()))
        values, vectors = np.linalg.eigh(S)
        # Eigenvalues err by rounding of the greatest: down, so that no cost is understated.
        values = values - 4 * len(S) * 2.0**-52 * values[-1]
        return Mode(frozen(values), frozen(vectors))

    def __len__(self) -> int:
        """How many directions there are."""
        return len(self.variances)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance, (k, k)."""
        W = self.directions
        return np.diag(self.variances) if W is None else (W * self.variances) @ W.T

    @property
    def diagonal(self) -> Floats:
        """The variance of each entry, (k,)."""
        W = self.directions
        return self.variances if W is None else W**2 @ self.variances

    @property
    def whitening(self) -> Floats:
        """A with A^T A the inverse of the covariance, (k, k)."""
        scale = self.variances**-0.5
        return np.diag(scale) if self.directions is None else scale[:, None] * self.directions.T

    @property
    def root(self) -> Floats:
        """B with B B^T the covariance, (k, k)."""
        scale = np.sqrt(self.variances)
        return np.diag(scale) if self.directions is None else self.directions * scale

    def same(self, other: Mode) -> bool:
        """Return whether another mode's noise is this one's, to rounding."""
        if self is other:
            return True
        if len(self) != len(other):
            return False
        near = ROUNDING * float(self.variances.max())
        return np.allclose(self.covariance, other.covariance, rtol=0, atol=near)


@dataclass(frozen=True, eq=False, init=False)
class Covariances:
    """Sigma over the rows and Psi over the columns of an m x n answer.

    Parameters
    ----------
    rows : shape (m, m), or (m,) for a diagonal one, or a Mode
        Sigma (IMGM's Sigma_1), symmetric and positive definite.
    columns : shape (n, n), or (n,), or a Mode
        Psi (IMGM's Sigma_2).

    Examples
    --------
    >>> noise = Covariances([[4.0, 0.0], [0.0, 1.0]], [[1.0]])
    >>> noise.variance.tolist(), round(noise.mu(3.0), 6)
    ([[4.0], [1.0]], 3.0)
    """

    rows: Mode
    columns: Mode

    def __init__(self, rows: ArrayLike | Mode, columns: ArrayLike | Mode) -> None:
        for name, value in (("rows", rows), ("columns", columns)):
            mode = value
            if not isinstance(mode, Mode):
                mode = Mode.of(f"the covariance of {name}", mode)
            object.__setattr__(self, name, mode)

    @property
    def shape(self) -> tuple[int, int]:
        """The answer's: (m, n)."""
        return len(self.rows), len(self.columns)

    @property
    def variance(self) -> Floats:
        """The variance of each entry, (m, n)."""
        return np.outer(self.rows.diagonal, self.columns.diagonal)

    @property
    def phi(self) -> float:
        """The left side of MVG's conditions: sqrt(||Sigma^-1||_F ||Psi^-1||_F)."""
        first, second = (np.linalg.norm(1 / k.variances) for k in (self.rows, self.columns))
        return float(np.sqrt(first * second))

    def mu(self, s2: float) -> float:
        """Return the true cost over every change of Frobenius norm s2 (IMGM, Theorem 2).

        s2 / sqrt(lambda_min(Sigma) lambda_min(Psi)): attained by a change of rank one along the
        two least noisy directions.
        """
        return self.mu_of([positive("s2", s2)])

    def mu_of(self, singular_values: ArrayLike) -> float:
        """Return the cost over every change with these singular values (IMGM, Theorem 1).

        The root of sum_i sigma_i(Delta)^2 / (lambda_(i)(Sigma) lambda_(i)(Psi)), lambda_(i) the
        i-th least: attained when the directions of Delta are those of the noise.
        """
        values = singular("the singular values", singular_values, self.shape)
        first, second = (
            np.sort(mode.variances)[: len(values)] for mode in (self.rows, self.columns)
        )
        return above(float(np.sqrt((values**2 / (first * second)).sum())))

    def scaled(self, factor: float) -> Covariances:
        """Return the noise with every standard deviation multiplied by ``factor``."""
        times = positive("factor", factor) ** 2
        return Covariances(Mode(self.rows.variances * times, self.rows.directions), self.columns)

    def log_pnr(self, rows: ArrayLike, columns: ArrayLike | None = None) -> float:
        """Return the logarithm of the power-to-noise ratio |K_f + K_Z| / |K_Z| (equation 24).

        Parameters
        ----------
        rows, columns
            The answer's own covariances, K_f = columns x rows; without ``columns``, K_f is given
            whole, (m n, m n), over vec.

        From public knowledge or a paid release, never from the private answer.
        """
        m, n = self.shape
        if columns is not None:
            pairs = ((self.rows, rows), (self.columns, columns))
            each = [_relative(mode.whitening, K, len(mode)) for mode, K in pairs]
            return float(np.log1p(np.clip(np.multiply.outer(*each), 0, None)).sum())
        A: Floats = np.asarray(
            np.kron(self.columns.whitening, self.rows.whitening), dtype=np.float64
        )
        return float(np.log1p(np.clip(_relative(A, rows, m * n), 0, None)).sum())

    def mutual_information(self, rows: ArrayLike, columns: ArrayLike | None = None) -> float:
        """Return I(f(X); f(X) + Z) in nats if f(X) is Gaussian: half the log of the PNR.

        Theorems 8 and 9 take f(X) as Gaussian, by a central limit theorem for sums over records:
        an approximation there, and no more than a diagnostic elsewhere (where it is an upper
        bound, by Lemma 8).
        """
        return self.log_pnr(rows, columns) / 2

    def simulate_affine(self, size: int, seed: int) -> Floats:
        """Return ``size`` draws in doubles, (size, m, n), as B_1 N B_2^T (section 6.3.2).

        From seeded doubles: for experiments. Releases draw exact integers.
        """
        rng = np.random.default_rng(seed)
        first, second = self.rows.root, self.columns.root
        N = rng.standard_normal((whole("size", size), *self.shape))
        return np.asarray(first @ N @ second.T)

    def simulate_vec(self, size: int, seed: int) -> Floats:
        """Return ``size`` draws in doubles, (size, m, n), from N(0, Psi x Sigma) (section 6.3.1).

        The covariance is written out: (m n)^2 numbers, and (m n)^3 steps to factor it.
        """
        rng = np.random.default_rng(seed)
        m, n = self.shape
        root = np.linalg.cholesky(np.kron(self.columns.covariance, self.rows.covariance))
        draws = rng.standard_normal((whole("size", size), m * n)) @ root.T
        return draws.reshape(size, n, m).transpose(0, 2, 1)


def definite(name: str, values: ArrayLike) -> Floats:
    """Return a symmetric positive definite matrix, or refuse what is not."""
    S = floats(name, values, ndim=2)
    if S.shape[0] != S.shape[1] or not S.size:
        raise InvalidInput(f"{name} must be square, got shape {S.shape}.")
    if not np.allclose(S, S.T, rtol=0, atol=ROUNDING * np.abs(S).max()):
        raise InvalidInput(f"{name} must be symmetric: {np.abs(S - S.T).max():.1e} is its worst.")
    S = (S + S.T) / 2
    if np.all(np.diag(np.diag(S)) == S):
        least, greatest = np.diag(S).min(), np.diag(S).max()
    else:
        values_of = np.linalg.eigvalsh(S)
        least, greatest = values_of[0], values_of[-1]
    # Below this an eigenvalue is rounding, and no noise at all may be what it says.
    if not least > 64 * len(S) * 2.0**-52 * greatest:
        raise InvalidInput(
            f"{name} must be positive definite: its least eigenvalue is {least:.3g} beside a "
            f"greatest of {greatest:.3g}; a direction without noise has no privacy."
        )
    return S


def singular(name: str, values: ArrayLike, shape: tuple[int, int]) -> Floats:
    """Return singular values in decreasing order, or refuse what cannot be those of a matrix."""
    found = floats(name, values, ndim=1)
    if not 0 < len(found) <= min(shape) or not np.all(found >= 0):
        raise InvalidInput(
            f"{name} of a {shape[0]} x {shape[1]} change are 1 to {min(shape)} numbers of at least "
            f"0, got {len(found)}."
        )
    return np.sort(found)[::-1]


def product_gap(covariance: ArrayLike, shape: tuple[int, int]) -> float:
    """Return how far a covariance (m n, m n) is from any Psi x Sigma: 0 where it is one.

    The second singular value over the first of the matrix whose rows are its blocks.
    """
    m, n = shape
    S = floats("the covariance", covariance, ndim=2)
    if S.shape != (m * n, m * n):
        raise InvalidInput(f"the covariance must have shape {(m * n, m * n)}, got {S.shape}.")
    blocks = S.reshape(n, m, n, m).transpose(0, 2, 1, 3).reshape(n * n, m * m)
    values = np.linalg.svd(blocks, compute_uv=False)
    return float(values[1] / values[0]) if len(values) > 1 else 0.0


def _relative(A: Floats, K: ArrayLike, size: int) -> Floats:
    """Return the eigenvalues of A K A^T, K of shape (size, size)."""
    known = floats("K_f", K, ndim=2)
    if known.shape != (size, size):
        raise InvalidInput(f"K_f must have shape {(size, size)}, got {known.shape}.")
    return np.asarray(np.linalg.eigvalsh(A @ known @ A.T), dtype=np.float64)


def above(number: float) -> float:
    """Return a double above a number that errs by a few roundings."""
    return math.nextafter(number * (1 + 2.0**-48), math.inf)
