"""Designs: a real-valued strategy for a workload, what it costs and what it achieves."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.linalg as sl

from .._checks import Floats, positive
from ..errors import InvalidInput, NotSpanned
from .certificate import Certificate, Neighbours

# A row of W may stick out of the row space of A by this much of its length: rounding in A does
# that much at condition 1e6, and a query that is truly not measured sticks out by far more.
SPAN = 1e-9
# Directions of A below this much of its largest singular value are taken as not measured.
RANK = 1e-13
BLOCK = 128


@dataclass(frozen=True, eq=False)
class Design:
    """A strategy for a workload: measure ``A x + N(0, I)``, rebuild ``R (...)`` with ``R A = W``.

    Formal guarantees: the release satisfies ``mu``-GDP for the stated neighbours; the answers are
    unbiased, with covariance ``R R^T``, ``R = W A^+`` (the least over all rebuilds). A design
    whose ``A`` does not span ``W`` is refused with :class:`~noiseshape.errors.NotSpanned`.

    Parameters
    ----------
    name
        How the strategy was chosen: "fit", "total", "identity", ...
    W : (m, d)
        Workload, one query a row.
    c : (m,)
        Target variance of each query.
    A : (k, d)
        Strategy with unit noise; ``A^T A`` is the precision of what is released, on cells.
    p, q
        Dual weights that prove the certificate: ``p`` (d,) on cells, or (d (d-1) / 2,) on pairs
        under replace; ``q`` (m,) on queries.
    certificate
        Proof of how far from optimal the shape is, for the scale at which targets are met.
    neighbours
        Whether a neighbour adds or removes one person, or replaces one by another.
    """

    name: str
    W: Floats = field(repr=False)
    c: Floats = field(repr=False)
    A: Floats = field(repr=False)
    p: Floats | None = field(default=None, repr=False)
    q: Floats | None = field(default=None, repr=False)
    certificate: Certificate | None = None
    neighbours: Neighbours = "add-remove"

    def __post_init__(self) -> None:
        for name in ("W", "c", "A", "p", "q"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _frozen(value))
        if self.W.ndim != 2 or self.A.ndim != 2 or self.W.shape[1] != self.A.shape[1]:
            raise InvalidInput(
                f"W {self.W.shape} and A {self.A.shape} must be matrices over the same cells."
            )
        if self.c.shape != self.W.shape[:1]:
            raise InvalidInput(f"c must have shape ({self.W.shape[0]},), got {self.c.shape}.")
        if self.neighbours not in ("add-remove", "replace"):
            raise InvalidInput(
                f"neighbours must be 'add-remove' or 'replace', got {self.neighbours!r}."
            )
        _ = self.variances  # refuses an A that does not span W

    @cached_property
    def profile(self) -> Floats:
        """Privacy profile (d,), FFU Definition 4: squared column norms of ``A``."""
        return _frozen(np.einsum("ij,ij->j", self.A, self.A))

    @cached_property
    def mu(self) -> float:
        """Privacy cost: the largest distance that one neighbour moves ``A x`` by."""
        if self.neighbours == "add-remove":
            return float(np.sqrt(self.profile.max(initial=0.0)))
        return float(np.sqrt(_largest_distance(self.A)))

    @property
    def alpha(self) -> float:
        """Squared privacy cost ``mu**2``, the objective of FFU Problem 1."""
        return self.mu**2

    @cached_property
    def variances(self) -> Floats:
        """Achieved variance of each query (m,): the diagonal of ``R R^T``."""
        return _frozen(rebuilt_variances(self.A, self.W))

    @property
    def ratios(self) -> Floats:
        """Achieved over target variance (m,)."""
        return self.variances / self.c

    @property
    def k(self) -> float:
        """Every query has variance at most ``k`` times its target: below 1, met with room."""
        return float(self.ratios.max())

    def errors(self) -> np.ndarray[Any, Any]:
        """Return a structured array (m,) of query, target, achieved (variances) and ratio."""
        table = np.zeros(
            len(self.c),
            dtype=[("query", "i8"), ("target", "f8"), ("achieved", "f8"), ("ratio", "f8")],
        )
        table["query"] = np.arange(len(self.c))
        table["target"], table["achieved"] = self.c, self.variances
        table["ratio"] = self.ratios
        return table

    def scaled(self, k: float) -> Self:
        """Return the same shape with every variance times ``k``, at ``mu`` divided by its root."""
        k = positive("k", k)
        twin = copy.copy(self)
        fields = vars(twin)
        for derived in ("profile", "mu"):
            fields.pop(derived, None)
        fields["A"] = _frozen(self.A / np.sqrt(k))
        fields["variances"] = _frozen(self.variances * k)
        return twin

    def certified(self, certificate: Certificate) -> Self:
        """Return the same design with another certificate."""
        twin = copy.copy(self)
        vars(twin)["certificate"] = certificate
        return twin

    def meeting_targets(self) -> Self:
        """Return the same shape scaled so that the worst query just meets its target."""
        return self.scaled(1 / self.k)

    def within(self, mu: Any) -> Self:
        """Return the same shape scaled to spend exactly ``mu`` (FFU Problem 2, Theorem 5).

        Parameters
        ----------
        mu
            A number, or anything that has one as ``.mu``, as a budget does. The factor by which
            targets are then met or missed is :attr:`k`; it is the least possible for an optimal
            shape.
        """
        wanted = positive("mu", getattr(mu, "mu", mu))
        if not self.mu > 0:
            raise InvalidInput(
                "This design costs no privacy under 'replace': no scale of it spends a budget."
            )
        return self.scaled((self.mu / wanted) ** 2)

    def __repr__(self) -> str:
        m, d = self.W.shape
        proof = "no certificate"
        if self.certificate is not None:
            proof = f"gap {self.certificate.gap:.1e}"
        return (
            f"Design({self.name}: {m} queries over {d} cells, {self.neighbours}, "
            f"mu={self.mu:.6g}, k={self.k:.6g}, {proof})"
        )


def _frozen(values: Floats) -> Floats:
    """Return a read-only float64 array; what is already read-only is shared, not copied."""
    values = np.asarray(values, dtype=np.float64)
    if values.flags.writeable:
        values = values.copy()
        values.flags.writeable = False
    return values


def _largest_distance(A: Floats) -> float:
    """Return the largest squared distance between two columns of ``A``."""
    # Taking a column off all changes no distance, and keeps rows that are nearly constant and
    # large, as a free total's is, from cancelling away the digits of the others.
    A = A - A[:, :1]
    squares = np.einsum("ij,ij->j", A, A)
    largest = 0.0
    for start in range(0, A.shape[1], BLOCK):
        part = slice(start, start + BLOCK)
        distance = squares[part, None] + squares[None, start:] - 2 * (A[:, part].T @ A[:, start:])
        largest = max(largest, float(distance.max()))
    return largest


def rebuilt_variances(A: Floats, W: Floats) -> Floats:
    """Return the diagonal of ``R R^T`` (m,), ``R = W A^+``; refuse a ``W`` that ``A`` spans not.

    By QR and triangular solves when ``A`` has full rank, which keeps twice the digits of normal
    equations; by SVD otherwise.
    """
    touched = np.flatnonzero((A != 0).any(axis=0))
    if len(touched) < A.shape[1]:
        outside = np.delete(np.arange(A.shape[1]), touched)
        if np.any(W[:, outside]):
            raise NotSpanned(_unspanned(np.flatnonzero(W[:, outside].any(axis=1)), len(W)))
        A, W = A[:, touched], W[:, touched]
    if A.shape[0] >= A.shape[1]:
        T = np.asarray(np.linalg.qr(A, mode="r"))
        if _well_conditioned(T):
            return _solved_norms(T.T, W, lower=True)
    else:
        Q, T = np.linalg.qr(A.T)
        if _well_conditioned(T):
            return _projected_norms(Q, W, lambda Y: _solved_norms(T, Y, lower=False))
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    kept = s > RANK * s.max(initial=0.0)
    return _projected_norms(Vt[kept].T, W, lambda Y: ((Y / s[kept]) ** 2).sum(axis=1))


def _well_conditioned(T: Floats) -> bool:
    """Whether the triangle ``T`` can be solved with, whatever the scale of its columns."""
    lengths = np.linalg.norm(T, axis=0)
    if T.size == 0 or not np.all(lengths > 0):
        return False
    rcond, _ = sl.lapack.dtrcon(np.asfortranarray(T / lengths))
    return bool(rcond > RANK)


def _solved_norms(T: Floats, Y: Floats, *, lower: bool) -> Floats:
    """Return the squared row norms of ``Y T^-T`` (rows ``T^-1 y_j``), a block of rows at a time."""
    norms = np.empty(len(Y))
    for start in range(0, len(Y), BLOCK):
        X = sl.solve_triangular(T, Y[start : start + BLOCK].T, lower=lower, check_finite=False)
        norms[start : start + BLOCK] = np.einsum("ij,ij->j", X, X)
    return norms


def _projected_norms(Q: Floats, W: Floats, norms: Any) -> Floats:
    """Apply ``norms`` to ``W Q`` after checking that the rows of ``W`` lie in the span of ``Q``."""
    result = np.empty(len(W))
    for start in range(0, len(W), BLOCK):
        rows = W[start : start + BLOCK]
        Y = rows @ Q
        residual = np.linalg.norm(rows - Y @ Q.T, axis=1)
        bad = np.flatnonzero(~(residual <= SPAN * np.linalg.norm(rows, axis=1)))
        if len(bad):
            raise NotSpanned(_unspanned(bad + start, len(W)))
        result[start : start + BLOCK] = norms(Y)
    return result


def _unspanned(bad: Any, m: int) -> str:
    return (
        f"The strategy does not span {len(bad)} of {m} queries (the first is query {bad[0]}): "
        "measure more, or leave those queries out."
    )
