"""Lossless preprocessing: a smaller workload with the same optimum, and the way back.

Cells that no query touches cost nothing; cells whose columns are equal up to sign move the
answers equally (under replace: only equal columns do); of queries that are multiples of each
other, ``w_j = a w_i``, the one with the least ``c / a^2`` implies the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats
from .certificate import Neighbours, pairs

Ints = NDArray[np.int64]
BLOCK = 256


@dataclass(frozen=True)
class Reduced:
    """A workload without redundant cells and queries, and where each cell and query went.

    Attributes
    ----------
    full : (m, d)
        The workload as it was.
    c : (m',)
        Targets of the kept queries.
    queries : (m',)
        Index of each kept query in the full workload.
    cells : (d,)
        Column of ``W`` that stands for each full cell, or -1 for a cell that no query touches.
    signs : (d,)
        The full column is ``signs * W[:, cells]``: +1, -1, or 0 for a cell that is left out.
    neighbours
        The relation under which the reduction is lossless.
    """

    full: Floats
    c: Floats
    queries: Ints
    cells: Ints
    signs: Floats
    neighbours: Neighbours

    @property
    def W(self) -> Floats:
        """Kept rows and columns (m', d'), as they were; made when asked for, to save memory."""
        kept = self.representatives
        if self.full.shape == (len(self.queries), len(kept)):
            return self.full
        return self.full[np.ix_(self.queries, kept)]

    @property
    def representatives(self) -> Ints:
        """Index (d',) of the full cell that each kept column was taken from."""
        kept = np.flatnonzero(self.cells >= 0)
        first = np.unique(self.cells[kept], return_index=True)[1]
        return kept[first]

    def expand(self, A: Floats) -> Floats:
        """Return the strategy (k, d) on full cells from one (k, d') on kept cells."""
        if len(self.cells) == A.shape[1] and np.array_equal(self.cells, np.arange(A.shape[1])):
            return A
        expanded: Floats = A[:, self.cells]
        expanded *= self.signs
        return expanded

    def expand_p(self, p: Floats, *, paired: bool = False) -> Floats:
        """Return weights on full cells, or, if ``paired``, on pairs of full cells.

        Under add-remove a merged cell's weight is shared equally; under replace it stays with the
        cell that stands for it.
        """
        if paired:
            return self._expand_pairs(p)
        if self.neighbours == "replace":
            full = np.zeros(len(self.cells))
            full[self.representatives] = p
            return full
        counts = np.bincount(self.cells[self.cells >= 0], minlength=len(p))
        return np.where(self.cells >= 0, (p / counts)[self.cells], 0.0)

    def _expand_pairs(self, p: Floats) -> Floats:
        d = len(self.cells)
        i, j = pairs(len(self.representatives))
        a, b = self.representatives[i], self.representatives[j]
        low, high = np.minimum(a, b), np.maximum(a, b)
        full = np.zeros(d * (d - 1) // 2)
        full[low * (2 * d - low - 1) // 2 + high - low - 1] = p
        return full

    def expand_q(self, q: Floats) -> Floats:
        """Return weights (m,) on full queries: 0 for a query that another one implies."""
        full = np.zeros(len(self.full))
        full[self.queries] = q
        return full


def reduce(
    W: Floats, c: Floats, neighbours: Neighbours = "add-remove", *, every_query: bool = False
) -> Reduced:
    """Drop what is redundant: ``alpha*`` is unchanged, and any design of the result expands.

    Parameters
    ----------
    W : (m, d)
        Workload without zero rows.
    c : (m,)
        Positive targets.
    every_query
        Keep all queries, as an objective that adds their variances up must.
    """
    d = W.shape[1]
    signs = np.ones(d)
    if neighbours == "add-remove":
        signs = _first_nonzero_sign(W)
        touched = np.flatnonzero(signs)
    else:  # a zero column differs from the others: it is a cell like any other
        touched = np.arange(d)
    columns = W.T if np.all(signs[touched] == 1) else W.T * signs[:, None]
    groups = _groups(columns, touched)
    first, inverse = np.unique(groups, return_index=True, return_inverse=True)[1:]
    cells = np.full(d, -1)
    # Kept columns stay in their order: ranges and prefixes stay recognisable.
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    cells[touched] = rank[inverse]
    kept = touched[first[order]]
    smaller = W if len(kept) == d else W[:, kept]
    queries = np.arange(len(c)) if every_query else _least_targets(smaller, c)
    # signs are relative to the representative, which keeps its own
    signs[touched] *= signs[kept][cells[touched]]
    return Reduced(W, c[queries], queries, cells, signs, neighbours)


def _first_nonzero_sign(W: Floats) -> Floats:
    """Return the sign (d,) of the first nonzero entry of each column, 0 for a zero column."""
    signs = np.zeros(W.shape[1])
    for start in range(0, len(W), BLOCK):
        open_ = np.flatnonzero(signs == 0)
        if not len(open_):
            break
        rows = W[start : start + BLOCK, open_]
        at = (rows != 0).argmax(axis=0)
        signs[open_] = np.sign(rows[at, np.arange(len(open_))])
    return signs


def _least_targets(W: Floats, c: Floats) -> Ints:
    """Return the queries to keep: of rows that are multiples of each other, the strictest."""
    at = (W != 0).argmax(axis=1)
    leading = W[np.arange(len(W)), at]
    rows = W if np.all(leading == 1) else W / leading[:, None]
    groups = _groups(rows, np.arange(len(W)))
    strictness = np.lexsort((c / leading**2, groups))
    first = np.unique(groups[strictness], return_index=True)[1]
    return np.sort(strictness[first])


def _groups(rows: Floats, among: Ints) -> Ints:
    """Return, for each of the rows ``among``, the position of the first row equal to it.

    Rows are hashed by their bits and then compared exactly, so equal means equal. (A row that
    shares its hash with an unlike first row stays alone, which loses nothing but size.)
    """
    hashes = _hashes(rows, among)
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    leaders = first[inverse]
    followers = np.flatnonzero(leaders != np.arange(len(among)))
    for start in range(0, len(followers), BLOCK):
        part = followers[start : start + BLOCK]
        unlike = np.any(rows[among[part]] != rows[among[leaders[part]]], axis=1)
        leaders[part[unlike]] = part[unlike]
    return leaders


def _hashes(rows: Floats, among: Ints) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row: its bits times odd multipliers, added modulo 2^64."""
    counter = np.arange(1, rows.shape[1] + 1, dtype=np.uint64)
    multipliers = _mix(counter) | np.uint64(1)
    hashes = np.empty(len(among), dtype=np.uint64)
    for start in range(0, len(among), BLOCK):
        block = np.ascontiguousarray(rows[among[start : start + BLOCK]]) + 0.0  # -0.0 is 0.0
        # Small integers as doubles are zero in their lower bits: mix before multiplying.
        hashes[start : start + BLOCK] = (_mix(block.view(np.uint64)) * multipliers).sum(axis=1)
    return hashes


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter any bits over all 64 (the finaliser of SplitMix64)."""
    x = x * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
