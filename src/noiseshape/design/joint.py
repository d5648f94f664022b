"""Mixed workloads: the cells of some attributes and residuals of the rest, designed together.

V are the attributes that some query tells apart without symmetry; all queries beyond V are
marginals. Noise of the form

    precision = P (over the cells of V, spread evenly)  +  sum over T not within V of R_T / u_T

costs a person in cell v of V ``g_v = P_vv + sum_T s_T / u_T``, and answers query j, whose part over
the cells of V is a row l_j, with ``h_j = (a_j l_j P^-1 l_j^T + sum_T b_jT u_T) / c_j``. With
weights p on cells and q on queries, and ``z_T = sum_j q_j b_jT / c_j`` (docs/math/marginals.md,
"Unions"),

    F(p, q) = |diag(q a / c)^1/2 W diag(p)^1/2|_* + sum_T sqrt(s_T z_T),

and F^2 bounds the cost of this form, with equality at the best p and q. ``everywhere`` bounds all
Gaussian noise by the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._checks import Floats
from ..errors import NotConverged
from .certificate import Neighbours, lower_bound
from .coordinates import row_space
from .dual import evaluate, multiplied
from .sides import Side, Units, Vectors

MAX_ITERATIONS = 1000
# Steps towards what bounds all noise, and how often growth is looked at.
STEPS, EVERY = 400, 20
# Work of those steps: cells times rank squared of every block, and a million for having one. A
# thousand cells of full rank get 60 steps.
WORK = 60_000_000_000
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Mixed:
    """Queries seen over the cells of V and in the residuals beyond.

    Attributes
    ----------
    W : (r, cells)
        Distinct rows over the cells of V.
    row : integers, (m,)
        The row of each query.
    c : (m,)
        Target variances.
    B : sparse (m, t)
        Variance of each query for a unit of ``u`` in each residual not within V.
    s : (t,)
        What a unit of ``1 / u`` costs.
    apart : sparse (m, a)
        For each set A of attributes outside V, none first: how much of a query is told by it,
        ``s_A^2 product over the rest of 1/n^2``. Its first column is a.
    """

    W: Floats
    row: NDArray[np.int64]
    c: Floats
    B: sparse.csr_array
    s: Floats
    apart: sparse.csc_array

    @cached_property
    def a(self) -> Floats:
        """Share of each query that is its row's answer, squared: (m,)."""
        return np.asarray(self.apart[:, [0]].toarray()[:, 0])

    def on_rows(self, weights: Floats) -> Floats:
        """Return weights of queries summed over those that have a row in common, (r,)."""
        return np.asarray(np.bincount(self.row, weights, len(self.W)), dtype=np.float64)

    @cached_property
    def _constant(self) -> NDArray[np.bool_]:
        """Which sets A have one row, of ones: their blocks are one number each."""
        ones = np.flatnonzero((self.W == 1).all(axis=1))
        on = self.apart.tocoo()
        other = ~np.isin(self.row[on.row], ones)
        found = np.bincount(on.col[other], minlength=self.apart.shape[1]) == 0
        found[0] = False
        return np.asarray(found)

    @cached_property
    def even(self) -> sparse.csc_array:
        """What queries tell of sets A whose block is one number, (m, those sets)."""
        return sparse.csc_array(self.apart[:, np.flatnonzero(self._constant)])

    @cached_property
    def blocks(self) -> list[Block]:
        """What queries tell of each other set A."""
        found = []
        for A in np.flatnonzero(~self._constant).tolist():
            part = slice(self.apart.indptr[A], self.apart.indptr[A + 1])
            who = self.apart.indices[part]
            rows, place = np.unique(self.row[who], return_inverse=True)
            found.append(Block(A == 0, rows, who, place.ravel(), self.apart.data[part]))
        return found


@dataclass(frozen=True, eq=False)
class JointDesign:
    """The best residuals beside the best rows over cells, and what proves them.

    Attributes
    ----------
    mixed
        What is asked.
    u : (t,)
        Variance of each residual, at the scale at which targets are met.
    p, q
        Dual weights: on cells of V and on queries.
    lower, achieved
        Bounds on the cost of this form: F^2, and max g * max h.
    iterations
        How many steps it took.
    """

    mixed: Mixed
    u: Floats
    p: Floats
    q: Floats
    lower: float
    achieved: float
    iterations: int

    def beyond(self) -> Floats:
        """Return the variance of each query that its residuals leave, (m,)."""
        return np.asarray(self.mixed.B @ self.u)

    def everywhere(self, neighbours: Neighbours = "add-remove") -> float:
        """Return a lower bound on mu^2 of all Gaussian noise that meets the targets.

        The nuclear norm of the whole problem at p, spread evenly beyond V, and q: one block for
        each set A of attributes outside V. Under replace, two people are drawn alike and
        independently.
        """
        mixed, replaced = self.mixed, neighbours == "replace"
        p, q = self.p / self.p.sum(), self.q / self.q.sum()
        total = float(np.sqrt(mixed.even.T @ (q / mixed.c)).sum())
        for block in mixed.blocks:
            w = block.weights(q / mixed.c)
            if not w.sum() > 0:
                continue
            W = mixed.W[block.rows]
            # Who is replaced is still in the total, which is in the first block alone.
            if replaced and block.first:
                W = W - (W @ p)[:, None]
            total += (lower_bound(W, np.ones(len(w)), p, w) * float(w.sum())) ** 0.5
        total *= 1 - 8 * EPS * (mixed.apart.shape[1] + len(mixed.c))
        return (2.0 if replaced else 1.0) * max(total, 0.0) ** 2

    def proving(self, cost: float, *, gap: float = 1e-3, steps: int = STEPS) -> JointDesign:
        """Return the same design with weights that prove more about all Gaussian noise.

        They are best for this form; noise of any form has other best weights, and the same steps
        lead there, from here: until what is proved is within ``gap`` of ``cost``, for add-remove,
        or no longer grows.
        """
        mixed, p, q = self.mixed, self.p / self.p.sum(), self.q / self.q.sum()
        sides = [block.sides(mixed.W) for block in mixed.blocks]
        before = 0.0
        each = sum(len(p) * people.k**2 + 1_000_000 for people, _ in sides)
        steps = min(steps, WORK // each)
        for step in range(steps):
            x = q / mixed.c
            even = np.sqrt(mixed.even.T @ x)
            F = float(even.sum())
            g = np.full(len(p), F)
            h = mixed.even @ (1 / even)
            state = None
            for block, (people, queries) in zip(mixed.blocks, sides, strict=True):
                state = evaluate(people, queries, p, block.weights(x))
                if state is None:
                    return replace(self, p=p, q=q)
                F, g = F + state.F, g + state.g
                h[block.who] += block.share * state.h[block.place]
            if F * F * (1 + gap) >= cost or state is None:
                break
            if step % EVERY == EVERY - 1:
                if before * (1 + gap / 100) > F:
                    break
                before = F
            p, q = multiplied(replace(state, p=p, q=q, F=F, g=g, h=h / mixed.c), both=True)
        return replace(self, p=p, q=q)


@dataclass(frozen=True, eq=False)
class Block:
    """What queries tell of one set A of attributes outside V, over the cells of V.

    Attributes
    ----------
    first
        Whether A is empty.
    rows : integers
        The rows of W that are in it.
    who, place : integers
        The queries that are, and for each of them its row among those.
    share
        How much of each is.
    """

    first: bool
    rows: NDArray[np.int64]
    who: NDArray[np.int64]
    place: NDArray[np.int64]
    share: Floats

    def weights(self, x: Floats) -> Floats:
        """Return weights over targets, of all queries, summed on the rows."""
        found = np.bincount(self.place, self.share * x[self.who], len(self.rows))
        return np.asarray(found, dtype=np.float64)

    def sides(self, W: Floats) -> tuple[Side, Side]:
        """Return cells and rows in coordinates of the span of the rows."""
        return _sides(W[self.rows])


def joint(mixed: Mixed, *, gap: float = 1e-3, max_iterations: int = MAX_ITERATIONS) -> JointDesign:
    """Return the best noise of this form, by multiplicative steps on both sides.

    Both parts are one nuclear norm, of a matrix with blocks: the steps of ``fit`` never lower it
    (docs/math/fit.md, "Exponents").
    """
    people, queries = _sides(mixed.W)
    m, cells = len(mixed.c), mixed.W.shape[1]
    p, q = np.full(cells, 1 / cells), np.full(m, 1 / m)
    scaled = sparse.csr_array(sparse.diags_array(1 / mixed.c) @ mixed.B)
    back = sparse.csr_array(scaled.T)
    iteration = 0
    while iteration < max_iterations:
        iteration += 1
        state = evaluate(people, queries, p, mixed.on_rows(q * mixed.a / mixed.c))
        if state is None:
            break
        z = back @ q
        root = np.sqrt(mixed.s * z)
        u = root / z
        F = state.F + float(root.sum())
        g = state.g + float((mixed.s / u).sum())
        h = state.h[mixed.row] * mixed.a / mixed.c + scaled @ u
        reached = float(g.max() * h.max())
        if reached <= F * F * (1 + gap):
            break
        p, q = multiplied(replace(state, p=p, q=q, F=F, g=g, h=h), both=True)
    if state is None:
        raise NotConverged(
            "the union of marginals and other queries is too ill-conditioned to be designed: ask "
            "for targets that differ less, or say by='marginals'."
        )
    return JointDesign(mixed, u / float(h.max()), p, q, F * F, reached, iteration)


def _sides(W: Floats) -> tuple[Side, Side]:
    """Return cells and rows in coordinates of the span of the rows."""
    ones = np.ones(len(W))
    Q = row_space(W)
    if Q is None:
        return Units(W.shape[1]), Vectors(W, ones)
    return Vectors(Q, np.ones(len(Q))), Vectors(W @ Q, ones)
