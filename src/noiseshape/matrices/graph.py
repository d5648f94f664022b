"""Graphs: adjacency and Laplacian matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._checks import Floats, is_masked, kept_as, whole
from ..errors import InvalidInput
from ..privacy import People
from ..strategies.changes import Changes
from ..strategies.exact import Integers
from .changes import Edges, Star
from .query import MatrixQuery, length, numbered, within_memory
from .reading import listed


@dataclass(frozen=True, eq=False, repr=False)
class EdgeList:
    """Pairs of nodes, to be read: the source of a release."""

    edges: Any
    nodes: int

    def cells(self) -> int:
        """Return how many pairs there are."""
        return self.nodes * (self.nodes - 1) // 2

    def read(self) -> Integers:
        """Return 1 for every pair i < j that is joined, and 0 for the others. Total.

        Loops, repeated edges and nodes that are not declared count for nothing.
        """
        n, e = self.nodes, _numbered(self.edges, self.nodes)
        known = np.all((e >= 0) & (e < n), axis=1) & (e[:, 0] != e[:, 1])
        low, high = e[known].min(axis=1, initial=n), e[known].max(axis=1, initial=0)
        z = np.zeros(self.cells(), dtype=np.int64)
        # Pair (i, j) in the order of numpy's triu_indices(n, 1).
        z[(low * (2 * n - low - 1)) // 2 + high - low - 1] = 1
        return z


def _numbered(edges: Any, nodes: int) -> NDArray[np.int64]:
    """Return pairs of node numbers, (e, 2): -1 for what is none, whatever it is."""
    if sparse.issparse(edges):
        edges = np.column_stack(edges.nonzero())
    # Compared as they are: what is beyond 64 bits, or no whole number, is no node.
    known = (edges >= 0) & (edges < nodes)
    known &= edges == np.floor(edges) if edges.dtype.kind == "f" else True
    return np.where(known, edges, -1).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Graph(MatrixQuery):
    """The adjacency or Laplacian matrix of an undirected graph, shape (nodes, nodes).

    Attributes
    ----------
    nodes
        How many there are: public.
    person
        What one person is: an edge (a pair changes by 1), or a node with all its pairs.
    laplacian
        D - A instead of A: from the same measurement.
    """

    kind = "graph"

    nodes: int
    person: Literal["edge", "node"] = "edge"
    laplacian: bool = False

    def __post_init__(self) -> None:
        whole("nodes", self.nodes, least=2)
        within_memory(self.nodes, self.nodes // 2 + 1)
        if self.person not in ("edge", "node"):
            raise InvalidInput(f'person must be "edge" or "node", got {self.person!r}.')
        if self.people.unit != "rows":
            raise InvalidInput('a person of a graph is an edge or a node: use the unit "rows".')

    @property
    def symmetric(self) -> bool:
        """Both are."""
        return True

    @property
    def semidefinite(self) -> bool:
        """A Laplacian is."""
        return self.laplacian

    @property
    def shape(self) -> tuple[int, ...]:
        """A row and a column for each node."""
        return (self.nodes, self.nodes)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Numbers of nodes, twice."""
        return (numbered("", self.nodes),) * 2

    @property
    def selection(self) -> str:
        """Return in words what one person is."""
        return f"every edge once; one person is one {self.person}"

    @cached_property
    def changes(self) -> Changes:
        """One pair, or all pairs of one node."""
        return Edges(self.nodes) if self.person == "edge" else Star(self.nodes, None, 1)

    @cached_property
    def step(self) -> Floats:
        """1."""
        return np.ones(self.changes.size)

    def source(self, data: Any) -> EdgeList:
        """Return the edges to be read: integers (e, 2), a list of pairs, or a sparse matrix.

        Told by shapes and types alone: how many edges there are is not said, and no edge is looked
        at.
        """
        if sparse.issparse(data):
            return EdgeList(data, self.nodes)
        if is_masked(data):
            raise InvalidInput("edges must not be masked: leave out what is hidden.")
        edges = listed(data) if isinstance(data, (list, tuple)) else np.asarray(data)
        if not edges.size:
            edges = np.zeros((0, 2), dtype=np.int64)
        if edges.ndim != 2 or edges.shape[1] != 2:
            told = f"{edges.ndim} axes" if edges.ndim != 2 else f"{edges.shape[1]} in each"
            raise InvalidInput(f"edges must be pairs of nodes, shape (e, 2), got {told}.")
        if edges.dtype.kind not in "iu" and not isinstance(data, (list, tuple)):
            raise InvalidInput(
                f"edges must hold integers, got {kept_as(edges.dtype)}: they are numbers of nodes, "
                "converted as with astype(int)."
            )
        return EdgeList(edges, self.nodes)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        i, j = np.triu_indices(self.nodes, 1)
        return i, j

    def answer(self, v: Floats) -> Floats:
        """Return A, or diag(A 1) - A."""
        A = np.zeros(self.shape)
        i, j = self._pairs
        A[i, j] = A[j, i] = v
        return np.diag(A.sum(axis=1)) - A if self.laplacian else A

    def spread(self) -> sparse.csr_array:
        """Return 1 for each pair; degrees, on a Laplacian's diagonal, add those of their pairs."""
        n, (i, j) = self.nodes, self._pairs
        at = np.arange(len(i))
        a, b = self.entries
        place = np.empty((n, n), dtype=np.int64)
        place[a, b] = np.arange(len(a))
        rows, columns = [place[i, j]], [at]
        if self.laplacian:
            rows += [place[i, i], place[j, j]]
            columns += [at, at]
        values = np.ones(len(at) * len(rows))
        placed = (values, (np.concatenate(rows), np.concatenate(columns)))
        return sparse.csr_array(placed, shape=(len(a), len(i)))

    def s2(self) -> float:
        """Return sqrt 2 for an edge's adjacency (2 for its Laplacian), and so on: exact.

        A node: sqrt(2 (n - 1)). Its Laplacian adds the square of its own degree, n - 1, and
        n - 1 others by 1. Two edges under replace: at different places, or at one node.
        """
        if not self.laplacian:
            return length(self, np.full(self.size, 2.0))
        n = self.nodes
        if self.person == "node":
            return float(np.sqrt(2 * (n - 1) + (n - 1) ** 2 + (n - 1)))
        # One edge: two entries off the diagonal, two on it. Two edges apart: twice as much; of
        # one that goes and one that comes at one node, the node's degree stays.
        one = 4.0
        return float(np.sqrt(one if self.people.neighbours == "add-remove" else 2 * one))

    def gamma(self) -> float:
        """Return that of the complete graph."""
        n = self.nodes
        pairs = n * (n - 1)
        return float(np.sqrt(pairs + n * (n - 1) ** 2 * self.laplacian))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the question."""
        said = {"nodes": self.nodes, "person": self.person, "laplacian": self.laplacian}
        return {"kind": self.kind, "people": self._people_json()} | said

    @classmethod
    def from_json(cls, **content: Any) -> Self:
        """Return the question that ``to_json`` said."""
        return cls(**content)


def adjacency(
    edges: Any = None,
    *,
    nodes: int,
    person: Literal["edge", "node"] = "edge",
    people: People | None = None,
) -> Graph:
    """Ask for the adjacency matrix of an undirected graph, shape (nodes, nodes).

    Parameters
    ----------
    edges : integers, shape (e, 2), or a sparse matrix
        Pairs of nodes 0, 1, ...; repeated ones count once, loops not at all.
    nodes
        How many nodes there are: public.
    person
        What one person is: an edge (one pair changes by 1), or a node with all its pairs.
    people
        The neighbours: an edge is added or removed, or replaced by another. A node's pairs change
        from any to any others under both.
    """
    return Graph(nodes=nodes, person=person, people=people or People(), rows=edges)


def laplacian(
    edges: Any = None,
    *,
    nodes: int,
    person: Literal["edge", "node"] = "edge",
    people: People | None = None,
) -> Graph:
    """Ask for the Laplacian D - A of an undirected graph, from a measurement of A.

    Parameters
    ----------
    edges, nodes, person, people
        As :func:`adjacency` has them.
    """
    return Graph(nodes=nodes, person=person, laplacian=True, people=people or People(), rows=edges)
