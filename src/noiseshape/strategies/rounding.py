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
from .dense import Dense
from .exact import Integers, product

# Share of mu that rounding may cost, unless the caller says otherwise.
LOSS = 1e-6

# What a workload may move, relative to its greatest entry, to fit an integer basis.
MOVED = 1e-12

# A row of the workload counts toward its rank when it stands this far out of the span of the
# others, relative to the greatest row. Doubles carry 2e-16; sums over 4,000 cells lose 1e-13.
RANK = 1e-11

_START_BITS = 18  # of the greatest column of A~: where the search for q begins
_MOST_BITS = 44  # more would pass 62 bits in G~


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


def rounded(A: ArrayLike, workload: ArrayLike, *, loss: float = LOSS) -> Rounded:
    """Return integers that execute the strategy A, at almost its cost and at its accuracy.

    Parameters
    ----------
    A : shape (k, d)
        A strategy with unit noise; its row space is the workload's.
    workload : shape (m, d)
        W. Its answers have, rounded noise included, at most the variances that A gives.
    loss
        Greatest relative increase of mu; smaller asks for longer integers.

    Formal Guarantees:
      Every variance of the executed strategy, as ``strategy.variance`` states it, is at most
      that of A. The cost is for ``strategy.cost()`` to say, from the integers.
    """
    A, W = floats("A", A, ndim=2), floats("workload", workload, ndim=2)
    loss = positive("loss", loss)
    if A.shape[1] != W.shape[1] or 0 in A.shape or 0 in W.shape:
        raise InvalidInput(f"A and workload must share cells, got {A.shape} and {W.shape}.")
    B, moved = integer_basis(W)
    G = _triangular(A, B)
    mu = np.sqrt((A**2).sum(axis=0).max())
    wanted = _variances(G, B, W)
    q = max(6, _START_BITS - int(np.floor(np.log2(np.abs(G).max()))))
    for bits in range(q, q + _MOST_BITS, 4):
        strategy = _executed(G, B, W, bits)
        if strategy is None:
            continue
        # Down, so that no target is missed; the cost is that of the scales as they come out.
        asked = wanted > 0  # a query of zeros has no error
        slack = (wanted[asked] / strategy.variance[asked]).min()
        strategy = strategy.scaled(np.sqrt(slack), up=False)
        lost = strategy.cost().mu / mu - 1
        if lost <= loss:
            return Rounded(strategy, lost, moved)
    raise InvalidInput(
        f"the strategy is too ill-conditioned to be rounded at a loss of {loss:g} in mu: "
        "allow a greater loss, or relax the tightest targets."
    )


def integer_basis(W: Floats) -> tuple[Integers | None, float]:
    """Return (B, moved): integer rows with the row space of W, and how far W moved to fit.

    ``None`` stands for the identity, when the columns of W are independent: nothing moves.
    """
    _, triangle, order = qr(W.T, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(np.diag(triangle))
    k = int(np.count_nonzero(size > RANK * size[0]))
    if k == 0:
        raise InvalidInput("the workload asks nothing: every entry is 0.")
    if k == W.shape[1]:
        return None, 0.0
    B = _whole(W[np.sort(order[:k])])
    return B, _moved(W, B)


def _whole(rows: Floats) -> Integers:
    """Return the rows times a power of two as integers, exactly for at most 30 binary places."""
    for bits in range(31):
        grid = np.ldexp(rows, bits)
        if np.all(grid == np.rint(grid)) and np.abs(grid).max() < 2.0**40:
            return grid.astype(np.int64)
    # Each row on its own grid of 2^-53 of its greatest entry: a double's own rounding.
    _, exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True))
    return np.rint(np.ldexp(rows, 53 - exponents)).astype(np.int64)


def _moved(W: Floats, B: Integers) -> float:
    """Return how far W is from the span of B, or refuse a workload that is too far."""
    Q, _ = qr(np.asarray(B.T, dtype=np.float64), mode="economic")
    moved = float(np.abs(W - (W @ Q) @ Q.T).max() / np.abs(W).max())
    whole = bool(np.all(np.rint(W) == W))
    if whole and moved <= MOVED:
        return 0.0  # integers this close to the span of integers are in it
    if not moved <= MOVED:
        raise NotSpanned(
            f"the workload has no clear rank: on an integer basis of {len(B)} rows its entries "
            f"would move by {moved:.1e} of the greatest, above {MOVED:g}; round its entries, or "
            "drop the queries that nearly repeat others."
        )
    return moved


def _triangular(A: Floats, B: Integers | None) -> Floats:
    """Return upper triangular G, (k, k), with the same A^T A as A = G B."""
    if B is None:
        G = A
    else:
        G = lstsq(np.asarray(B.T, dtype=np.float64), A.T, check_finite=False)[0].T
        missed = np.abs(G @ B - A).max() / np.abs(A).max()
        if missed > 1e-8:
            raise NotSpanned(
                f"A measures what the workload does not ask ({missed:.1e} of its greatest entry): "
                "project it on the workload's row space first."
            )
    if len(G) < G.shape[1]:
        raise NotSpanned(
            f"the strategy does not span the workload: it has {len(G)} rows for a workload of "
            f"rank {G.shape[1]}; measure more rows or ask less."
        )
    return np.triu(qr(G, mode="r", check_finite=False)[0][: G.shape[1]])


def _executed(G: Floats, B: Integers | None, W: Floats, bits: int) -> Dense | None:
    """Return the strategy with G~ = round(2^bits G), or None where that is singular."""
    grid = np.rint(np.ldexp(G, bits))
    if not np.all(np.diag(grid)):
        return None
    whole = grid.astype(np.int64)
    rows = whole if B is None else product(whole, B)
    return Dense(rows, np.full(len(G), 2.0**bits), W)


def _variances(G: Floats, B: Integers | None, W: Floats) -> Floats:
    """Return the variances that the real strategy gives, shape (m,)."""
    L = W if B is None else lstsq(np.asarray(B.T, dtype=np.float64), W.T, check_finite=False)[0].T
    R = solve_triangular(G, L.T, trans="T", check_finite=False)
    return np.asarray((R**2).sum(axis=0))
