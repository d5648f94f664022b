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
from scipy.linalg import lstsq, qr, solve_triangular

from .._checks import Floats, floats, positive
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
    B, moved = integer_basis(W, A)
    G = _triangular(A, B)
    mu = float(np.sqrt(((A if reach is None else A @ reach) ** 2).sum(axis=0).max()))
    wanted = _variances(G, B, W)
    # An error of 1/2 in G~ moves A~ by at most a row of B: begin where that is about loss of mu.
    width = 1 if B is None else magnitude(B)
    if reach is not None:
        width *= int(np.abs(reach).sum(axis=0).max())
    start = int(np.ceil(-np.log2(loss))) - _SPARE_BITS
    q = max(6, start + width.bit_length() - int(np.floor(np.log2(mu))))
    for bits in range(q, q + _MOST_BITS, 4):
        strategy = _executed(G, B, W, reach, bits)
        if strategy is None:
            continue
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
    rows = _independent(W, RANK)
    if not len(rows):
        raise InvalidInput("the workload asks nothing: every entry is 0.")
    B, moved = (None, 0.0) if len(rows) == W.shape[1] else _basis(W, rows)
    if A is None or B is None:
        return B, moved
    rest = _independent(A - _project(A, B), BEYOND, np.abs(A).max())
    if len(B) + len(rest) == W.shape[1]:
        return None, 0.0
    return np.vstack([B.astype(object), _whole(rest, bits=30)]), moved


def _independent(W: Floats, tolerance: float, unit: float | None = None) -> Floats:
    """Return rows of W, in order, that span all of them; smaller remainders count as none.

    Remainders are relative to each row's own greatest entry, or all to one ``unit``.
    """
    sizes = np.abs(W).max(axis=1, keepdims=True) if unit is None else np.full((len(W), 1), unit)
    level = W / np.where(sizes > 0, sizes, 1)
    _, triangle, order = qr(level.T, mode="economic", pivoting=True, check_finite=False)
    k = int(np.count_nonzero(np.abs(np.diag(triangle)) > tolerance))
    return W[np.sort(order[:k])]


def _basis(W: Floats, rows: Floats) -> tuple[Integers, float]:
    """Return rows of W as integers, and how far W is from their span; refuse one too far."""
    # Few binary places: then integers are exact.
    short = np.all(np.rint(np.ldexp(W, 30)) == np.ldexp(W, 30)) and np.abs(W).max() < 2.0**20
    B = np.ldexp(rows, 30).astype(np.int64) if short else _whole(rows, bits=53)
    B = B >> int(np.min(_trailing_zeros(B)))
    asked = W[np.abs(W).max(axis=1) > 0]
    off = np.abs(asked - _project(asked, B)).max(axis=1)
    moved = float((off / np.abs(asked).max(axis=1)).max())
    if not moved <= MOVED:
        raise NotSpanned(
            f"the workload has no clear rank: on an integer basis of {len(B)} rows its entries "
            f"would move by {moved:.1e} of their row's greatest, above {MOVED:g}; round its "
            "entries, or drop the queries that nearly repeat others."
        )
    if short and exact_rank(np.vstack([B, np.ldexp(W, 30).astype(np.int64)])) == len(B):
        moved = 0.0
    return B, moved


def _whole(rows: Floats, bits: int) -> Integers:
    """Return each row rounded on a grid of 2^-bits of its greatest entry, in units of it."""
    _, exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True))
    return np.rint(np.ldexp(rows, bits - exponents)).astype(np.int64)


def _trailing_zeros(B: Integers) -> Integers:
    nonzero = B[B != 0]
    return np.log2((nonzero & -nonzero).astype(np.float64)).astype(np.int64)


def _coordinates(A: Floats, B: Integers) -> Floats:
    """Return G with G B = A, for A in the row space of B."""
    return lstsq(np.asarray(B.T, dtype=np.float64), A.T, check_finite=False)[0].T


def _project(A: Floats, B: Integers) -> Floats:
    """Return the part of A in the row space of B."""
    Q, _ = qr(np.asarray(B.T, dtype=np.float64), mode="economic")
    return (A @ Q) @ Q.T


def _triangular(A: Floats, B: Integers | None) -> Floats:
    """Return upper triangular G, (k, k), with the same A^T A as A = G B."""
    G = A if B is None else _coordinates(A, B)
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


def _executed(
    G: Floats, B: Integers | None, W: Floats, reach: Integers | None, bits: int
) -> Dense | None:
    """Return the strategy with G~ = round(2^bits G), or None where that is singular."""
    whole = nearest(G, bits)
    if not np.all(np.diag(whole)):
        return None
    rows = whole if B is None else product(whole, B)
    return Dense(rows, np.full(len(G), 2.0**bits), W, reach)


def _variances(G: Floats, B: Integers | None, W: Floats) -> Floats:
    """Return the variances that the real strategy gives, shape (m,)."""
    L = W if B is None else _coordinates(W, B)
    R = solve_triangular(G, L.T, trans="T", check_finite=False)
    return np.asarray((R**2).sum(axis=0))
