"""Noise for matrix queries, by shape: equal in all directions, directional, or a product.

    isotropic(q)        equal noise in every direction: the least there is for a Ball
    directional(q)      its own noise for each entry or direction, for weights or for targets
    kronecker(q)        a covariance for rows times one for columns

Each takes targets (variance, stderr or margin), and meets them at its least cost; without any, the
plan costs mu = 1, to be scaled with ``within(budget)``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product as corners_of
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import block_diag

from .._checks import Floats, floats
from ..design import Certificate, fit, total
from ..design.entrywise import entrywise
from ..design.entrywise import isotropic as equal_noise
from ..errors import InvalidInput
from ..matrices.query import MatrixQuery
from ..matrices.sums import OverRows
from ..privacy import Budget
from ..strategies.changes import Ball, Box, Changes, Columns, OneOf
from ..tables.targets import variances
from .matrixplan import WRITTEN, MatrixPlan, entries, product, whitened

# A box of up to so many edges has its corners compared in full: 2^8 of them up to sign.
EDGES = 9
# Directions are taken for orthonormal when U^T U is the identity to this.
ORTHONORMAL = 1e-9

ANY = "error at mu = 1, of any Gaussian noise"


def isotropic(
    query: MatrixQuery,
    *,
    variance: ArrayLike | None = None,
    stderr: ArrayLike | None = None,
    margin: ArrayLike | None = None,
) -> MatrixPlan:
    """Return equal noise in all directions of the answer (IMGM, Theorem 2).

    A symmetric answer is measured once, in orthonormal symmetric coordinates: off the diagonal
    the variance is half. Where the coordinates have parts with units of their own (a count, sums,
    products), noise is equal within each, and mu^2 is shared for the least total error.

    Parameters
    ----------
    query
        What is asked.
    variance, stderr, margin : scalar, one a column, or the answer's shape, optional
        One target: the largest variance, standard error, or half-width of a 95 % interval. One a
        column is that of its own entries; in a symmetric answer that of its diagonal entry, and
        entry i, j has the geometric mean of two.

    Formal Guarantees:
      For a Ball no Gaussian noise of the same cost has a smaller covariance, in any direction.
    """
    _is_query(query)
    target = _targets(query, variance, stderr, margin)
    a = _spread(query).T @ query.twice
    sigma = equal_noise(_terms(query), a, tuple(query.parts.values()), _counts(query), query.step)
    proof = _ball_proof(query, a, query.step * sigma)
    plan = entries(query, query.step * sigma, shape="isotropic", certificate=proof)
    return _placed(plan, target)


def directional(
    query: MatrixQuery,
    *,
    weights: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    stderr: ArrayLike | None = None,
    margin: ArrayLike | None = None,
    directions: ArrayLike | None = None,
) -> MatrixPlan:
    """Return noise of its own for each entry, or along each of some directions.

    With weights: the least weighted error for its cost; in closed form for a Box and for Outer,
    sigma_i^2 = (w_i / sqrt a_i) (sum_j w_j sqrt a_j) / mu^2. With targets: the least cost that
    meets every one. Where one person's changes are a finite set (Columns, the corners of a small
    box), among all Gaussian noise; else among noise that is independent from entry to entry,
    which for a symmetric Box and for a Ball is no worse. The certificate says which, and proves it.

    Parameters
    ----------
    query
        What is asked.
    weights : the answer's shape, or one a column, optional
        What each entry's variance counts for, above 0: from public knowledge, never from the
        data. One a column stands for that column's entries, and in a symmetric answer for its row
        too, by their product. All 1 by default.
    variance, stderr, margin : optional
        Targets, as :func:`isotropic` has them, instead of weights.
    directions : shape (m, m), optional
        Orthonormal, one a column, over the m features: noise is then independent along them
        (for a symmetric answer along their pairs), and its cost is a proved bound. From public
        knowledge, or from a private measurement paid in the same ledger.
    """
    _is_query(query)
    public(query, weights=weights, directions=directions)
    target = _targets(query, variance, stderr, margin)
    if weights is not None and target is not None:
        raise InvalidInput("noise is shaped by weights or to targets: leave one of them out.")
    w = _weights(query, weights)
    if directions is not None:
        return _placed(_along(query, _orthonormal(query, directions), w), target)
    finite = _finite(query)
    best = None if finite is None else _fitted(query, *finite, w, target)
    if best is not None:
        return best
    G, neighbours = _spread(query, target), query.people.neighbours
    B = _terms(query) @ sparse.diags_array(query.step**2)
    asked: dict[str, Any] = {"weights": w * query.twice} if target is None else {"variance": target}
    made = entrywise(sparse.csr_array(B), G, neighbours=neighbours, **asked)
    proof = made.certificate if _tight(query) else None
    if proof is not None and _universal(query, G):
        words = proof.covers.replace("noise that is independent from entry to entry", "any noise")
        proof = replace(proof, covers=words)
    plan = entries(query, made.sigma, shape="directional", certificate=proof)
    return _placed(plan, target)


def kronecker(
    query: MatrixQuery,
    *,
    rows: ArrayLike | None = None,
    columns: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    stderr: ArrayLike | None = None,
    margin: ArrayLike | None = None,
) -> MatrixPlan:
    """Return noise with the covariance ``rows x columns`` on an answer of two axes.

    Its scale is free: the plan costs mu = 1, or meets the targets. With one person a row, the cost
    is that of the columns' noise times the greatest of the rows'; for a set of changes with known
    singular values it is that of IMGM's Theorem 1, and for a Ball that of Theorem 2.

    Parameters
    ----------
    query
        What is asked: its coordinates must be the entries of a matrix, shape (m, n).
    rows, columns : shape (m, m) or (m,), and (n, n) or (n,), optional
        Symmetric positive definite covariances, or the diagonals of such; the identity by default.
        From public knowledge.
    variance, stderr, margin : optional
        Targets, as :func:`isotropic` has them.
    """
    _is_query(query)
    public(query, rows=rows, columns=columns)
    target = _targets(query, variance, stderr, margin)
    if len(query.shape) != 2 or query.size != query.shape[0] * query.shape[1]:
        raise InvalidInput(
            f"a product of covariances is for answers of two axes that are measured entry by "
            f"entry; this one measures {query.size} coordinates."
        )
    factors = [
        _whitening(name, given, size)
        for name, given, size in zip(("rows", "columns"), (rows, columns), query.shape, strict=True)
    ]
    return _placed(product(query, *factors, shape="kronecker"), target)


def public(query: MatrixQuery, **arrays: Any) -> None:
    """Refuse arrays that are visibly made of the rows that the query is asked of.

    Visibly: the same object, or the same memory. What was computed from the rows cannot be told
    without reading them; ``docs/matrices.md`` says what may be used.
    """
    rows = query.rows
    for name, array in arrays.items():
        held = isinstance(array, np.ndarray) and isinstance(rows, np.ndarray)
        if rows is not None and (array is rows or (held and np.may_share_memory(array, rows))):
            raise InvalidInput(
                f"{name} is made of the rows that the query is about: what shapes the noise comes "
                "from public knowledge, or from a private measurement paid in the same ledger."
            )


def _is_query(query: Any) -> None:
    if not isinstance(query, MatrixQuery):
        raise InvalidInput(
            f"noise is shaped for a matrix query, got {type(query).__name__}: "
            "covariance(rows, bounds=(0, 1)), say."
        )


def _placed(plan: MatrixPlan, target: Floats | None) -> MatrixPlan:
    """Return a plan that meets its targets, or that costs mu = 1."""
    return plan.within(Budget(mu=1.0)) if target is None else plan.meeting(target)


def _targets(
    query: MatrixQuery,
    variance: ArrayLike | None,
    stderr: ArrayLike | None,
    margin: ArrayLike | None,
) -> Floats | None:
    """Return the target variance of each entry, (entries,), or None."""
    given = {"variance": variance, "stderr": stderr, "margin": margin}
    stated = {name: value for name, value in given.items() if value is not None}
    if not stated:
        return None
    listed = {name: _each(query, name, value) for name, value in stated.items()}
    public(query, **stated)
    return variances(query.kind, len(query.entries[0]), **listed)


def _each(query: MatrixQuery, name: str, value: ArrayLike) -> Floats:
    """Return one number, or one an entry, from one in the answer's shape or one a column."""
    array = floats(f"the {name} of a {query.kind}", value)
    if array.ndim == 0:
        return array
    if array.shape == query.shape[-1:] and len(query.shape) == 2 and np.all(array > 0):
        roots = np.sqrt(array)
        both = np.outer(roots, roots) if query.symmetric else np.broadcast_to(array, query.shape)
        return np.asarray(both[query.entries])
    if array.shape != query.shape:
        raise InvalidInput(
            f"the {name} must be one number, one for each of {query.shape[-1]} columns, or have "
            f"the answer's shape {query.shape}; got {array.shape}."
        )
    if query.symmetric and not np.array_equal(array, array.T):
        raise InvalidInput(f"the {name} of a symmetric answer must be symmetric.")
    return np.asarray(array[query.entries])


def _weights(query: MatrixQuery, weights: ArrayLike | None) -> Floats:
    """Return what each entry counts for, (entries,)."""
    if weights is None:
        return np.ones(len(query.entries[0]))
    w = floats("weights", weights)
    if w.shape == query.shape[-1:] and len(query.shape) == 2:
        w = np.outer(w, w) if query.symmetric else np.broadcast_to(w, query.shape)
    if w.shape != query.shape:
        raise InvalidInput(
            f"weights must have the answer's shape {query.shape}, or one entry for each of "
            f"{query.shape[-1]} columns; got {w.shape}."
        )
    if query.symmetric and not np.array_equal(w, w.T):
        raise InvalidInput("the weights of a symmetric answer must be symmetric.")
    bad = int((~(w > 0)).sum())
    if bad:
        raise InvalidInput(
            f"weights must be above 0, and {bad} of {w.size} are not: an entry that counts for "
            "little gets a small one."
        )
    return np.asarray(w[query.entries], dtype=np.float64)


def _spread(query: MatrixQuery, target: Floats | None = None) -> sparse.csr_array:
    """Return G; where nobody said how many rows there are, for one: the shape is the same."""
    if not query.sized and target is None and isinstance(query, OverRows):
        query = replace(query, expected=1)
    return sparse.csr_array(query.spread())


def _terms(query: MatrixQuery) -> sparse.csr_array:
    """Return B in whole steps, with both relations where a row may also leave."""
    changes, people = query.changes, query.people
    B = changes.terms(people.neighbours)
    if people.neighbours == "replace" and (query.rows_may_leave or people.max_rows > 1):
        B = sparse.csr_array(sparse.vstack([B, changes.terms("add-remove")]))
    return B


def _tight(query: MatrixQuery) -> bool:
    changes, people = query.changes, query.people
    leaves = people.neighbours == "replace" and (query.rows_may_leave or people.max_rows > 1)
    return changes.tight(people.neighbours) and (not leaves or changes.tight("add-remove"))


def _counts(query: MatrixQuery) -> Floats:
    """Return how often each coordinate stands in the answer: off the diagonal twice."""
    if query.size == len(query.twice):
        return query.twice
    counts = np.ones(query.size)
    if "products" in query.parts:
        i, j = np.triu_indices(query.shape[0])
        counts[-len(i) :] = np.where(i == j, 1.0, 2.0)
    elif query.symmetric:
        counts[:] = 2.0  # pairs i < j alone
    return counts


def _inner(query: MatrixQuery) -> Changes:
    """Return what one person can do, to their own row of a data matrix where there is one."""
    return query.changes.inner if isinstance(query.changes, OneOf) else query.changes


def _ball_proof(query: MatrixQuery, a: Floats, sigma: Floats) -> Certificate | None:
    """Return the proof that equal noise is the best of all for a Ball, in every direction."""
    if not (query.linear and isinstance(_inner(query), Ball)):
        return None
    # Every covariance that is allowed at mu = 1 is at least diag(B) in Loewner's order (B is
    # diagonal here): so is each of its weighted traces.
    least = float(a @ (query.step**2 * _terms(query).sum(axis=0)))
    reached = float(a @ sigma**2)
    return Certificate(least * (1 - 1e-12), reached, neighbours=query.people.neighbours, covers=ANY)


def _universal(query: MatrixQuery, G: sparse.csr_array) -> bool:
    """Return whether no correlated noise does better than independent noise can.

    Where each entry depends on one coordinate, and the set of changes is a ball, or a box that is
    symmetric about 0: over its corners D, the mean of D^T P D is sum_i w_i^2 P_ii, and
    P_ii >= 1 / S_ii.
    """
    inner, alone = _inner(query), bool(np.all(np.diff(G.indptr) == 1))
    if isinstance(inner, Box):
        opposite = np.array_equal(inner.low, -inner.high)
        leaves = query.rows_may_leave or query.people.max_rows > 1
        alone = alone and (opposite or (query.people.neighbours == "replace" and not leaves))
    return alone and isinstance(inner, (Ball, Box))


def _finite(query: MatrixQuery) -> tuple[Floats, str] | None:
    """Return all changes of one person in the coordinates' own units, (size, c), if so few.

    And the relation under which columns stand: as they are, or each replaced by any other.
    """
    changes, people = query.changes, query.people
    if not query.linear or len(query.parts) > 1:
        return None
    both = people.neighbours == "replace" and (query.rows_may_leave or people.max_rows > 1)
    if isinstance(changes, Columns):
        E = changes.reach.astype(np.float64)
        if both:
            E = np.pad(E, ((0, 0), (0, 1)))
        return query.step[:, None] * E, people.neighbours
    if isinstance(changes, Box) and changes.size <= EDGES:
        low, high = changes.low.astype(np.float64), changes.high.astype(np.float64)
        if people.neighbours == "replace" and not both:
            low, high = low - high, high - low
        elif both:
            widest = np.maximum(high - low, np.maximum(abs(low), abs(high)))
            low, high = -widest, widest
        if np.array_equal(low, -high):
            return None  # entrywise noise is the best there is
        E = np.array(list(corners_of(*zip(low, high, strict=True)))).T
        return query.step[:, None] * E, "add-remove"
    return None


def _fitted(
    query: MatrixQuery, E: Floats, neighbours: Any, w: Floats, target: Floats | None
) -> MatrixPlan | None:
    """Return the best of all Gaussian noise against a finite set; None where it has less rank."""
    if np.linalg.matrix_rank(E) < query.size:
        return None
    zero = query.answer(np.zeros(query.size))[query.entries]
    L = np.array([query.answer(e)[query.entries] - zero for e in np.eye(query.size)]).T
    if target is not None:
        design = fit(L @ E, target, neighbours=neighbours)
    else:
        design = total(L @ E, 1.0, weights=w * query.twice, neighbours=neighbours)
    A = np.linalg.lstsq(E.T, np.asarray(design.A).T, rcond=None)[0].T
    proof = design.certificate
    plan = whitened(query, A, shape="directional", certificate=proof)
    return _placed(plan, target)


def _orthonormal(query: MatrixQuery, directions: ArrayLike) -> Floats:
    U = floats("directions", directions, ndim=2)
    m = query.shape[-1]
    if U.shape != (m, m):
        raise InvalidInput(
            f"directions must be one column for each of {m} features, shape {(m, m)}, got "
            f"{U.shape}."
        )
    off = float(np.abs(U.T @ U - np.eye(m)).max())
    if not off <= ORTHONORMAL:
        raise InvalidInput(
            f"directions must be orthonormal: U^T U differs from the identity by {off:.3g} "
            "(np.linalg.qr(U)[0] makes them so)."
        )
    return U


def _along(query: MatrixQuery, U: Floats, w: Floats) -> MatrixPlan:
    """Return independent noise along directions, by widths that are proved bounds.

    A direction u of a box moves by at most min(sum |u_i| c_i, ||c||). What the plan costs is the
    safe bound of the query's own set for the executed integers.
    """
    size = _inner(query).size
    rows, m = query.size // size, len(U)
    if size > WRITTEN:
        raise InvalidInput(
            f"directions over {size} coordinates are too many to be written out, at most {WRITTEN}."
        )
    a = np.asarray(_spread(query).T @ (w * query.twice)).reshape(rows, -1).sum(axis=0)
    T, reach = _lifted(query, U, size)
    b = np.linalg.inv(T).T ** 2 @ a
    sigma = np.sqrt(reach / np.sqrt(b) * (reach @ np.sqrt(b)))
    note = f"the cost is a proved bound, for {m} directions that the caller gave"
    A = T / sigma[:, None]
    if rows > 1:
        return product(query, np.ones(rows), A, shape="directional", note=note)
    return whitened(query, A, shape="directional", note=note)


def _lifted(query: MatrixQuery, U: Floats, size: int) -> tuple[Floats, Floats]:
    """Return what is measured along directions, (size, size), and how far each can move.

    U^T x for features x, U^T C U for their products, i <= j.
    """
    parts = query.parts
    over = isinstance(query, OverRows)
    if not over and (query.symmetric or size != len(U)):
        raise InvalidInput(f"a {query.kind} has no directions of features: leave them out.")
    if isinstance(query, OverRows):
        wide = query.features.far * query.features.step
    else:
        wide = _inner(query).widest(query.people.neighbours) * query.step[:size]
    along = np.minimum(np.abs(U.T) @ wide, np.linalg.norm(wide))
    if not over:
        return U.T, along
    i, j = np.triu_indices(len(U))
    crossed = U[i][:, j] * U[j][:, i]
    products = U[i][:, i] * U[j][:, j] + np.where(i == j, 0.0, 1.0)[:, None] * crossed
    blocks = {"count": np.eye(1), "sums": U.T, "products": products.T}
    widths = {"count": np.ones(1), "sums": along, "products": along[i] * along[j]}
    return (
        np.asarray(block_diag(*(blocks[part] for part in parts))),
        np.concatenate([widths[part] for part in parts]),
    )


def _whitening(name: str, covariance: ArrayLike | None, size: int) -> Floats:
    """Return A with (A^T A)^-1 a covariance: (size, size), or (size,) for a diagonal one."""
    if covariance is None:
        return np.ones(size)
    S = floats(f"the covariance of {name}", covariance)
    if S.shape == (size,):
        if not np.all(S > 0):
            raise InvalidInput(f"the variances of {name} must be above 0.")
        return 1 / np.sqrt(S)
    if S.shape != (size, size):
        raise InvalidInput(
            f"the covariance of {name} must be {size} x {size}, or its diagonal; got {S.shape}."
        )
    if not np.allclose(S, S.T, rtol=1e-9, atol=1e-12 * np.abs(S).max()):
        raise InvalidInput(f"the covariance of {name} must be symmetric.")
    values, vectors = np.linalg.eigh((S + S.T) / 2)
    if not values[0] > 1e-12 * values[-1]:
        raise InvalidInput(
            f"the covariance of {name} must be positive definite: its least eigenvalue is "
            f"{values[0]:.3g}, its greatest {values[-1]:.3g}."
        )
    return np.asarray((vectors / np.sqrt(values)).T)
