"""From a designed strategy, real, to the one that is executed, integer.

A design gives A with unit noise. Measuring T A instead, T orthogonal, costs and tells the
same, so A is first made triangular: k rows for rank k, and a matrix that is invertible exactly
when its diagonal holds no zero. Its entries times 2^q are rounded, and sigma = 2^q:

    A = G B,   G~ = round(2^q G),   A~ = G~ B,   sigma = 2^q

B is the identity when every cell can be told apart, and otherwise an integer basis of the
workload's row space, so that A~ spans the workload exactly whatever G~ became.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr, solve_triangular

from .._checks import Floats, floats, positive
from .._threads import where_small
from ..errors import InvalidInput, NotSpanned
from .dense import MOVED, Dense, exact_rank
from .exact import Integers, magnitude, nearest, product

# Share of mu that rounding may cost, unless the caller says otherwise.
LOSS = 1e-6

# A row counts toward the rank when it stands this far out of the span of the others, relative
# to its own greatest entry. Doubles carry 2e-16; sums over 4,000 cells lose 1e-13.
RANK = 1e-11

# Where a strategy measures more than is asked, what stands out by less than this is rounding.
BEYOND = 1e-9

_SPARE_BITS = 2  # the search for q begins where the greatest column of A~ has 1 / loss, less these
_MOST_BITS = 44


@dataclass(frozen=True)
class Rounded:
    """An executed strategy, and what rounding did to the designed one.

    Attributes
    ----------
    strategy
        Integer rows and dyadic scales, meeting every variance of the designed strategy.
    loss
        mu of the executed strategy over that of the designed one, minus 1.
    moved
        Greatest change of an entry of the workload, relative to its greatest, to fit the
        integer basis; 0 where the workload is spanned as it stands.
    """

    strategy: Dense
    loss: float
    moved: float


@where_small
def rounded(
    A: ArrayLike, workload: ArrayLike, *, loss: float = LOSS, reach: Integers | None = None
) -> Rounded:
    """Return integers that execute the strategy A, at almost its cost and at its accuracy.

    Parameters
    ----------
    A : shape (k, d)
        A strategy with unit noise whose row space holds the workload's.
    workload : shape (m, d)
        W. Its answers have, rounded noise included, at most the variances that A gives.
    loss
        Greatest relative change of mu, and of one standard error against another; smaller
        asks for longer integers.
    reach : integers, shape (d, c), or None
        What one row can add to the data, as ``Dense`` has it.

    Formal Guarantees:
      Every variance of the executed strategy, as ``strategy.variance`` states it, is at most
      that of A. The cost is for ``strategy.cost()`` to say, from the integers.
    """
    A, W = floats("A", A, ndim=2), floats("workload", workload, ndim=2)
    loss = positive("loss", loss)
    if A.shape[1] != W.shape[1] or 0 in A.shape or 0 in W.shape:
        raise InvalidInput(f"A and workload must share cells, got {A.shape} and {W.shape}.")
    if not 1e-100 <= np.abs(A).max() <= 1e100:
        raise InvalidInput(
            f"the greatest entry of A must lie between 1e-100 and 1e100, got {np.abs(A).max():g}: "
            "state the workload in another unit."
        )
    span, moved = _span(W, A)
    G = _triangular(A if span is None else span.coordinates(A))
    L = W if span is None else span.coordinates(W)
    mu = float(np.sqrt(((A if reach is None else A @ reach) ** 2).sum(axis=0).max()))
    wanted = _variances(G, L)
    # An error of 1/2 in G~ moves A~ by at most a row of B: begin where that is about loss of mu.
    width = 1 if span is None else magnitude(span.B)
    if reach is not None:
        width *= int(np.abs(reach).sum(axis=0).max())
    start = int(np.ceil(-np.log2(loss))) - _SPARE_BITS
    q = max(6, start + width.bit_length() - int(np.floor(np.log2(mu))))
    for bits in range(q, q + _MOST_BITS, 4):
        whole = nearest(G, bits)
        # What k x k triangles rule out need not be written out over all cells.
        if not np.all(np.diag(whole)) or not _close(wanted, whole, L, bits, loss):
            continue
        rows = whole if span is None else product(whole, span.B)
        strategy = Dense(rows, np.full(len(G), 2.0**bits), W, reach)
        # Down, so that no target is missed; the cost is that of the scales as they come out.
        asked = wanted > 0  # a query of zeros has no error
        slack = wanted[asked] / strategy.variance[asked]
        strategy = strategy.scaled(np.sqrt(slack.min()), up=False)
        lost = strategy.cost().mu / mu - 1
        # Rounding may also make a strategy cheaper, if it was not optimal: then it is another
        # one. It is this one when standard errors stand to each other as they did.
        if abs(lost) <= loss and slack.max() - slack.min() <= 2 * loss:
            return Rounded(strategy, lost, moved)
    raise InvalidInput(
        f"the strategy is too ill-conditioned to be rounded at a loss of {loss:g} in mu: "
        "allow a greater loss, or relax the tightest targets."
    )


def integer_basis(W: Floats, A: Floats | None = None) -> tuple[Integers | None, float]:
    """Return (B, moved): integer rows with the row space of W, and how far W moved to fit.

    ``None`` stands for the identity, when the columns are independent: nothing moves. Where A
    measures more than W asks, rows for the rest follow; those may be rounded, W may not.
    """
    span, moved = _span(W, A)
    return None if span is None else span.B, moved


class _Span:
    """The row space of integers B (k, d), factored once: B^T = Q T."""

    def __init__(self, B: Integers) -> None:
        self.B = B
        self.Q, self.T = qr(np.asarray(B.T, dtype=np.float64), mode="economic", check_finite=False)

    def coordinates(self, A: Floats) -> Floats:
        """Return G with G B = A, for A in the row space."""
        return np.asarray(solve_triangular(self.T, (A @ self.Q).T, check_finite=False).T)

    def project(self, A: Floats) -> Floats:
        """Return the part of A in the row space."""
        return np.asarray((A @ self.Q) @ self.Q.T)


def _span(W: Floats, A: Floats | None) -> tuple[_Span | None, float]:
    """Return what ``integer_basis`` does, with the basis factored."""
    rows = _independent(W, RANK)
    if not len(rows):
        raise InvalidInput("the workload asks nothing: every entry is 0.")
    span, moved = (None, 0.0) if len(rows) == W.shape[1] else _basis(W, rows)
    if A is None or span is None:
        return span, moved
    rest = _independent(A - span.project(A), BEYOND, np.abs(A).max())
    if len(rows) + len(rest) == W.shape[1]:
        return None, 0.0
    if not len(rest):
        return span, moved
    return _Span(np.vstack([span.B.astype(object), _whole(rest, bits=30)])), moved


def _independent(W: Floats, tolerance: float, unit: float | None = None) -> Floats:
    """Return rows of W, in order, that span all of them; smaller remainders count as none.

    Remainders are relative to each row's own greatest entry, or all to one ``unit``.
    """
    sizes = np.abs(W).max(axis=1, keepdims=True) if unit is None else np.full((len(W), 1), unit)
    level = W / np.where(sizes > 0, sizes, 1)
    if np.sqrt(np.einsum("ij,ij->i", level, level).max(initial=0.0)) <= tolerance:
        return W[:0]  # pivots begin with the longest row
    triangle, order = qr(level.T, mode="r", pivoting=True, check_finite=False)
    k = int(np.count_nonzero(np.abs(np.diag(triangle)) > tolerance))
    return W[np.sort(order[:k])]


def _basis(W: Floats, rows: Floats) -> tuple[_Span, float]:
    """Return rows of W as integers, and how far W is from their span; refuse one too far."""
    # Few binary places: then integers are exact.
    short = np.all(np.rint(np.ldexp(W, 30)) == np.ldexp(W, 30)) and np.abs(W).max() < 2.0**20
    B = np.ldexp(rows, 30).astype(np.int64) if short else _whole(rows, bits=53)
    B = B >> int(np.min(_trailing_zeros(B)))
    span = _Span(B)
    asked = W[np.abs(W).max(axis=1) > 0]
    off = np.abs(asked - span.project(asked)).max(axis=1)
    moved = float((off / np.abs(asked).max(axis=1)).max())
    if not moved <= MOVED:
        raise NotSpanned(
            f"the workload has no clear rank: on an integer basis of {len(B)} rows its entries "
            f"would move by {moved:.1e} of their row's greatest, above {MOVED:g}; round its "
            "entries, or drop the queries that nearly repeat others."
        )
    if short and _exactly_spans(span, np.ldexp(W, 30).astype(np.int64)):
        moved = 0.0
    return span, moved


def _exactly_spans(span: _Span, whole: Integers) -> bool:
    """Return whether integers (m, d), below 2^50, are rational combinations of the basis.

    Queries of the usual kinds are whole combinations of each other, or sixtieths: those are
    guessed in doubles and multiplied out in integers, which proves it at a thousandth of the
    price of a rank (613 rows over 2,405 cells: 2 s). Any other combination is left to the rank.
    """
    L = span.coordinates(whole.astype(np.float64))
    if np.abs(L).max() < 2.0**40:
        for share in (1, 60):
            guess = np.rint(L * share).astype(np.int64)
            if np.array_equal(product(guess, span.B), whole * share):
                return True
    return exact_rank(np.vstack([span.B, whole])) == len(span.B)


def _whole(rows: Floats, bits: int) -> Integers:
    """Return each row rounded on a grid of 2^-bits of its greatest entry, in units of it."""
    _, exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True))
    return np.rint(np.ldexp(rows, bits - exponents)).astype(np.int64)


def _trailing_zeros(B: Integers) -> Integers:
    nonzero = B[B != 0]
    return np.log2((nonzero & -nonzero).astype(np.float64)).astype(np.int64)


def _triangular(G: Floats) -> Floats:
    """Return upper triangular G, (k, k), with the same G^T G."""
    triangle = np.triu(qr(G, mode="r", check_finite=False)[0][: G.shape[1]])
    size = np.abs(np.diag(triangle))
    # A small diagonal may be steep scales only: then the rows, each by its own size, tell.
    short = len(G) < G.shape[1] or size.min() <= RANK * size.max()
    if short and (rank := len(_independent(G, RANK))) < G.shape[1]:
        raise NotSpanned(
            f"the strategy does not span the workload: it has {rank} independent rows for a "
            f"workload of rank {G.shape[1]}; measure more rows or ask less."
        )
    return triangle


def _close(wanted: Floats, whole: Integers, L: Floats, bits: int, loss: float) -> bool:
    """Return whether standard errors of G~ may stand to each other as those of G, in doubles."""
    asked = wanted > 0
    got = _variances(np.ldexp(whole.astype(np.float64), -bits), L[asked])
    slack = wanted[asked] / got
    return bool(slack.max() - slack.min() <= 3 * loss)  # a hair more than is asked of it at last


def _variances(G: Floats, L: Floats) -> Floats:
    """Return the variances of L that a triangular strategy G gives with unit noise, shape (m,)."""
    R = solve_triangular(G, L.T, trans="T", check_finite=False)
    return np.asarray((R**2).sum(axis=0))
