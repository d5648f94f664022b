"""Marginals at any scale: the optimum in the residual basis, with its certificate.

Every marginal asks for all cells of the product of some attributes, with one target. By symmetry
some best noise treats all values of an attribute alike, so that its precision is

    S^-1 = sum_T R_T x (prod over i not in T of n_i) / u_T,    R_T the residual projector of T,

one positive number ``u_T`` for each subset T of the sets asked for (docs/math/marginals.md):

    cost       sum_T s_T / u_T                     s_T = prod over T of (1 - 1/n_i)
    variance   sum over T within U of b_UT u_T     b_UT = s_T prod over U minus T of 1/n_i^2

The table itself, 10^100 cells or more, is never formed. With weights ``q`` on queries and ``p``
on the ways to be a neighbour, each of sum one, ``s = p G`` and ``z = (q/c) B``,

    F(p, q) = sum_T sqrt(s_T z_T),    F^2 <= optimum <= max g max h,    u_T = sqrt(s_T / z_T).

Attributes with a structure of their own, and queries that are no marginals, put other numbers
into ``B`` and ``G`` and leave the rest as it is; ``covers`` then says what the proof is about.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._checks import Floats, floats, frozen, positive
from ..errors import InvalidInput, NotConverged
from ..strategies.lattice import Ints, Lattice
from .certificate import COST, Certificate, Neighbours

Objective = Literal["max", "sum"]

TOTAL = "privacy cost mu^2 times the weighted sum of variances"

# With one side fixed any exponent up to 2 never lowers F; this one is near the fastest.
EXPONENT = 1.9
# Weights stay above this share of the uniform one, so that none can vanish for good.
FLOOR = 1e-10
MAX_ITERATIONS = 20_000
# Under replace every set of attributes in which two people differ is looked at by itself while
# there are at most so many attributes; beyond, their average bounds the optimum from below, and
# the worst of them from above.
MOST_DIFFERING = 8
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Residuals:
    """What is asked and what it costs, seen in the residual basis.

    Attributes
    ----------
    lattice
        The t sets of attributes that have a residual.
    B : sparse (m, t)
        Variance of each query for a unit of ``u`` in each residual.
    c : (m,)
        Target variances.
    G : (ways, t)
        Cost of each way to be a neighbour for a unit of ``1 / u``.
    above : (t,)
        The same, at or above every way there is.
    """

    lattice: Lattice
    B: sparse.csr_array
    c: Floats
    G: Floats
    above: Floats

    @cached_property
    def scaled(self) -> sparse.csr_array:
        """Rows of B over their targets."""
        return sparse.csr_array(sparse.diags_array(1 / self.c) @ self.B)

    @cached_property
    def transposed(self) -> sparse.csr_array:
        """The same, by residuals."""
        return sparse.csr_array(self.scaled.T)


@dataclass(frozen=True, eq=False)
class MarginalsDesign:
    """One scale for each residual, what they cost and what they achieve.

    Formal guarantees: measuring the residual of each set T with variance ``u_T`` costs at most
    ``alpha`` for one row, and answers query ``j`` with variance ``variances[j]``; no Gaussian
    noise meets the targets for less than ``certificate.lower`` (of what it ``covers``).

    Attributes
    ----------
    problem
        What is asked, in the residual basis.
    u : (t,)
        Variance of each residual.
    p, q
        Dual weights that prove the certificate.
    certificate
        The proof, at the scale at which targets are met.
    neighbours
        Whether a neighbour adds or removes one person, or replaces one by another.
    notes
        What was merged on the way, in sentences.
    """

    problem: Residuals
    u: Floats
    p: Floats
    q: Floats
    certificate: Certificate
    neighbours: Neighbours = "add-remove"
    notes: tuple[str, ...] = ()

    @cached_property
    def variances(self) -> Floats:
        """Achieved variance of each query, shape (m,)."""
        return frozen(np.asarray(self.problem.B @ self.u))

    @property
    def ratios(self) -> Floats:
        """Achieved over target variance (m,)."""
        return self.variances / self.problem.c

    @property
    def k(self) -> float:
        """Every query has variance at most ``k`` times its target."""
        return float(self.ratios.max())

    @cached_property
    def alpha(self) -> float:
        """Squared privacy cost of one row; under replace with many attributes, a bound above."""
        return float(costs(self.problem, self.u).max())

    @property
    def mu(self) -> float:
        """Privacy cost of one row."""
        return float(np.sqrt(self.alpha))

    def scaled(self, k: float) -> MarginalsDesign:
        """Return the same shape with every variance times ``k``."""
        return replace(self, u=frozen(self.u * positive("k", k)))

    def within(self, mu: Any) -> MarginalsDesign:
        """Return the same shape scaled to spend exactly ``mu``, or what has one as ``.mu``."""
        wanted = positive("mu", getattr(mu, "mu", mu))
        return self.scaled((self.mu / wanted) ** 2)

    def __repr__(self) -> str:
        return (
            f"MarginalsDesign({len(self.problem.c):,} queries in {len(self.u):,} residuals, "
            f"{self.neighbours}, mu={self.mu:.6g}, gap {self.certificate.gap:.1e})"
        )


def marginals(
    sizes: Mapping[str, int] | Sequence[int],
    asked: Sequence[Sequence[Any]],
    variance: ArrayLike,
    *,
    objective: Objective = "max",
    weights: ArrayLike | None = None,
    neighbours: Neighbours = "add-remove",
    rows_may_leave: bool = False,
    gap: float = 1e-3,
    max_iterations: int = MAX_ITERATIONS,
) -> MarginalsDesign:
    """Design the noise of marginals, each with its own target, over any number of attributes.

    Parameters
    ----------
    sizes
        How many values each attribute has: by name, or one after the other.
    asked
        The attributes of each marginal, by name or number; the empty one asks for the total.
    variance : scalar or (m,)
        Target variance of every cell of each marginal.
    objective
        ``"max"``: the least cost that meets every target. ``"sum"``: the least weighted sum of
        variances for its cost, then scaled to meet the targets.
    weights : (m,), optional
        With ``"sum"``: weight of the variance of a cell of each marginal; by default how many
        cells it has, so that every answer counts alike.
    neighbours, rows_may_leave
        The relation of neighbours; under replace, whether a row may also leave the table.
    gap
        How close to the least possible cost to come, with proof.

    Formal guarantees:
      The optimum is global: the certificate's lower bound holds for *every* Gaussian noise
      that meets the targets, not only for noise of this form.

    Examples
    --------
    >>> made = marginals({"age": 100, "sex": 2, "state": 50},
    ...     [("age", "sex"), ("state", "sex"), ()], [100, 100, 25])
    >>> made.certificate.gap < 1e-3, round(made.mu, 4)
    (True, 0.2443)
    """
    begun = time.perf_counter()
    names, n = _sizes(sizes)
    groups, places = _grouped(names, asked)
    c = _targets(variance, len(asked))
    lattice, numbers = Lattice.under(groups, len(n))
    values = [expanded(1 - 1 / n[g], n[g] ** -2.0) for g in groups]
    B = in_order(stacked(numbers, values, len(lattice)), places)
    problem = Residuals(lattice, B, c, *ways(lattice, n, neighbours, rows_may_leave))
    w = None
    if objective == "sum":
        w = np.empty(len(asked))
        for group, place in zip(groups, places, strict=True):
            w[place] = n[group].prod(axis=1)
        if weights is not None:
            w = _weights(weights, len(asked))
    elif objective != "max" or weights is not None:
        raise InvalidInput('objective must be "max", or "sum" with or without weights.')
    made = solved(problem, weights=w, gap=gap, max_iterations=max_iterations,
                  neighbours=neighbours, begun=begun)  # fmt: skip
    return replace(made, notes=_repeated(names, groups, places, c))


def expanded(inside: Floats, outside: Floats) -> Floats:
    """Return what products over attributes are made of, (m, 2^k), from arrays (m, k).

    Parameters
    ----------
    inside, outside
        What an attribute of a query contributes where it is in a subset (the variance of its
        contrast) and where it is not (the square of its mean): of a marginal, ``1 - 1/n`` and
        ``1/n^2``. Subsets are numbered as by ``Lattice.under``.
    """
    part = np.ones((len(inside), 1))
    for i in range(inside.shape[1]):
        part = np.concatenate([part * outside[:, i : i + 1], part * inside[:, i : i + 1]], axis=1)
    return part


def stacked(columns: Sequence[Ints], values: Sequence[Floats], residuals: int) -> sparse.csr_array:
    """Return B (m, residuals) from blocks of rows: where their entries are, and what they are."""
    lengths = np.concatenate([np.full(len(part), part.shape[1]) for part in columns])
    ends = np.concatenate([[0], np.cumsum(lengths)])
    where = np.concatenate([part.ravel() for part in columns])
    entries = np.concatenate([part.ravel() for part in values])
    return sparse.csr_array((entries, where, ends), shape=(len(lengths), residuals))


def in_order(B: sparse.csr_array, places: Sequence[Ints]) -> sparse.csr_array:
    """Return rows that stand group by group in the order in which they were asked."""
    order = np.concatenate(places)
    if np.array_equal(order, np.arange(len(order))):
        return B
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return sparse.csr_array(B[back])


def ways(
    lattice: Lattice, n: Floats, neighbours: Neighbours, rows_may_leave: bool = False
) -> tuple[Floats, Floats]:
    """Return the ways to be a neighbour in the residual basis, (ways, t), and a bound above, (t,).

    Added or removed, a row costs ``sum_T s_T / u_T`` in whatever cell it is. Replaced by one that
    differs in the attributes D it costs ``sum_T 2 s_T (1 - prod over T and D of -1/(n_i - 1)) /
    u_T``, where T holds an attribute of D, and nothing elsewhere; two rows drawn alike and
    independently cost ``sum_{T not empty} 2 s_T / u_T`` on average, which bounds the worst from
    below.
    """
    s = lattice.product(1 - 1 / n)
    if neighbours == "add-remove":
        return s[None, :], s
    if neighbours != "replace":
        raise InvalidInput(f"neighbours must be 'add-remove' or 'replace', got {neighbours!r}.")
    told = np.unique(lattice.last[1:])
    mean = np.where(np.arange(len(s)) > 0, 2 * s, 0.0)
    above = mean * (1 + lattice.greatest(1 / (n - 1)))
    found = [mean]
    if len(told) <= MOST_DIFFERING:
        for bits in itertools.product([False, True], repeat=len(told)):
            if any(bits):
                each = np.ones(len(n))
                each[told] = np.where(bits, -1 / (n[told] - 1), 1.0)
                found.append(2 * s * (1 - lattice.product(each)))
        above = found[0]  # the list is all there is
    if rows_may_leave:
        found.append(s)
    return np.array(found), above


def costs(problem: Residuals, u: Floats) -> Floats:
    """Return the cost of every way to be a neighbour, and last the bound above them all."""
    with np.errstate(over="ignore"):
        return np.append(problem.G @ (1 / u), problem.above @ (1 / u))


def solved(
    problem: Residuals,
    *,
    weights: Floats | None = None,
    gap: float = 1e-3,
    max_iterations: int = MAX_ITERATIONS,
    neighbours: Neighbours = "add-remove",
    covers: str = COST,
    begun: float | None = None,
) -> MarginalsDesign:
    """Return the best scales of the residuals, with their certificate.

    ``q <- q (h/F)^1.9`` with ``p`` fixed never lowers F, nor does ``p <- p (g/F)^1.9`` with ``q``
    fixed (docs/math/fit.md, "Exponents"): the two take turns. With ``weights`` the queries' side
    is fixed, ``q`` proportional to ``weights c``, and where there is one way to be a neighbour
    the first step is the last.
    """
    begun = time.perf_counter() if begun is None else begun
    gap = positive("gap", gap)
    m, many = len(problem.c), len(problem.G)
    q = np.full(m, 1 / m)
    if weights is not None:
        q = weights * problem.c / (weights @ problem.c)
    p = np.full(many, 1 / many)
    reason = "gap reached"
    for iteration in range(1, max_iterations + 1):
        s, z = p @ problem.G, problem.transposed @ q
        root = np.sqrt(s * z)
        F = float(root.sum())
        u = _scales(s, z, root)
        h = problem.scaled @ u
        g = problem.G @ (1 / u)
        aim = float(h.max()) if weights is None else F
        if float(g.max()) * aim <= F * F * (1 + 0.9 * gap):
            break
        if many > 1 and (iteration % 2 or weights is not None):
            p = _multiplied(p, g / F)
        elif weights is None:
            q = _multiplied(q, h / F)
    else:
        raise NotConverged(
            f"the marginals are not proved within {gap:g} of the least after "
            f"{max_iterations:,} steps: allow a greater gap, or more steps."
        )
    u = u / float((problem.scaled @ u).max())
    made = MarginalsDesign(problem, frozen(u), frozen(p), frozen(q),
                           Certificate(0.0, 0.0), neighbours)  # fmt: skip
    lower, achieved = F * F, made.alpha
    if weights is not None:
        total = float(weights @ problem.c)
        lower, achieved, covers = lower * total, achieved * float(weights @ made.variances), TOTAL
    # Sums of terms that are not negative err by an ulp a term, and their roots by half of that.
    terms = m + len(s) + many + problem.lattice.attributes
    return replace(
        made,
        certificate=Certificate(
            max(lower * (1 - 8 * terms * EPS), 0.0),
            achieved,
            iterations=iteration,
            seconds=time.perf_counter() - begun,
            reason=reason,
            neighbours=neighbours,
            covers=covers,
        ),
    )


def _scales(s: Floats, z: Floats, root: Floats) -> Floats:
    """Return u = sqrt(s / z); where a residual costs nothing, next to no noise.

    Under replace the number of people is public: its noise may be as little as is wanted, and a
    billionth of what the targets leave is little enough.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        u = root / z
    free = np.flatnonzero(s == 0)
    u[free] = 1e-6 * (root.sum() or 1.0) / z[free]
    return np.asarray(u)


def _multiplied(weights: Floats, relative: Floats) -> Floats:
    moved = weights * np.maximum(relative, 1e-100) ** EXPONENT
    moved = np.maximum(moved / moved.sum(), FLOOR / len(moved))
    return np.asarray(moved / moved.sum())


def _sizes(sizes: Mapping[str, int] | Sequence[int]) -> tuple[list[Any], Floats]:
    """Return the attributes' names and how many values each has."""
    names: list[Any] = list(sizes) if isinstance(sizes, Mapping) else list(range(len(sizes)))
    values = list(sizes.values()) if isinstance(sizes, Mapping) else list(sizes)
    if not names:
        raise InvalidInput("marginals need attributes: how many values each of them has.")
    for name, size in zip(names, values, strict=True):
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise InvalidInput(f"attribute {name!r} needs a whole number of values.")
        if size < 2:
            has = "one value" if size == 1 else "no value"
            raise InvalidInput(
                f"attribute {name!r} has {has} and tells nobody apart: leave it out of the "
                "attributes and of the marginals."
            )
    return names, np.array(values, dtype=np.float64)


def _grouped(names: Sequence[Any], asked: Sequence[Sequence[Any]]) -> tuple[list[Ints], list[Ints]]:
    """Return sets of equal size as arrays of increasing numbers, and which ones they are."""
    if isinstance(asked, str) or not len(asked):
        raise InvalidInput("nothing is asked: name the attributes of at least one marginal.")
    if any(isinstance(attributes, str) for attributes in asked):
        raise InvalidInput('a marginal is a list of attributes: ("age",), say, for one.')
    lengths = np.fromiter(map(len, asked), dtype=np.int64, count=len(asked))
    at = {name: i for i, name in enumerate(names)}
    groups, places = [], []
    for size in np.unique(lengths).tolist():
        place = np.flatnonzero(lengths == size)
        try:
            flat = [at[name] for i in place.tolist() for name in asked[i]]
        except (KeyError, TypeError):
            unknown = next(x for i in place.tolist() for x in asked[i] if x not in at)
            raise InvalidInput(
                f"a marginal is over {unknown!r}, which is not among the {len(names)} attributes: "
                "say how many values it has, or mend its name."
            ) from None
        group = np.sort(np.array(flat, dtype=np.int64).reshape(len(place), size), axis=1)
        twice = np.flatnonzero((np.diff(group, axis=1) == 0).any(axis=1))
        if twice.size:
            raise InvalidInput(
                f"marginal {place[twice[0]]} names an attribute twice: name each once."
            )
        groups.append(group)
        places.append(place)
    return groups, places


def _targets(variance: ArrayLike, m: int) -> Floats:
    c = floats("variance", variance)
    if c.shape not in ((), (m,)):
        raise InvalidInput(f"variance must be one number, or one for each of {m} marginals.")
    if not np.all(c > 0):
        raise InvalidInput(f"a target variance must be above 0, got {c.min():g}.")
    return frozen(np.broadcast_to(c, (m,)).copy())


def _repeated(
    names: Sequence[Any], groups: Sequence[Ints], places: Sequence[Ints], c: Floats
) -> tuple[str, ...]:
    """Return a sentence for each set that is asked more than once, to different accuracy."""
    notes = []
    for group, place in zip(groups, places, strict=True):
        _, first, inverse = np.unique(group, axis=0, return_index=True, return_inverse=True)
        if len(first) == len(group):
            continue
        least = np.full(len(first), np.inf)
        greatest = np.zeros(len(first))
        np.minimum.at(least, inverse.ravel(), c[place])
        np.maximum.at(greatest, inverse.ravel(), c[place])
        for i in np.flatnonzero(greatest > least):
            members = ", ".join(str(names[a]) for a in group[first[i]]) or "nothing (the total)"
            notes.append(
                f"the marginal of {members} is asked with different targets: the tightest, a "
                f"standard error of {least[i] ** 0.5:g}, holds for all of them."
            )
    return tuple(notes)


def _weights(weights: ArrayLike, m: int) -> Floats:
    w = floats("weights", weights)
    if w.shape != (m,) or not np.all(w > 0):
        raise InvalidInput(f"weights must be {m} numbers above 0, one for each marginal.")
    return w
