"""The hierarchical mechanism: noise on the nodes of a tree over an ordered attribute.

A tree over d ordered cells is measured at every level with equal noise, and answers are rebuilt by
least squares. Each cell lies in one node of each level, so that mu^2 is the number of levels times
the precision of a node.

The branching factor b is that of Qardaji, Yang and Li (PVLDB 2013): the one with the least variance
averaged over all ranges. A range of a complete tree of height h is a sum of
(b - 1) h - 2 (b + 1) / 3 nodes, up to what vanishes in d. Times the noise of a node, h^2 for
Laplace noise, this is least near b = 16, the value that is often quoted; for Gaussian noise, h, it
is least near b = 5. With least squares, as here, the average has a closed form
(:func:`average_range_variance`), and b = 2 is best at most sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats
from .._memory import free_memory
from ..errors import InvalidInput, TooLarge
from .design import Design
from .fit import workload


def hierarchy(
    W: ArrayLike,
    variance: ArrayLike,
    *,
    branching: int | None = None,
    sizes: Sequence[int] | None = None,
    ordered: Sequence[bool] | None = None,
    two_level: bool = False,
    kept: ArrayLike | None = None,
) -> Design:
    """Equal noise on every node of a tree, scaled so that the worst query just meets its target.

    Parameters
    ----------
    W : (m, d)
        Workload, one query a row.
    variance : (m,) or a number
        Target variance of each query.
    branching
        Children of a node; by default :func:`optimal_branching` of each attribute's size.
    sizes
        Sizes of the attributes that the d cells are the product of, the last varying fastest; by
        default one attribute of d cells. The strategy is the Kronecker product of one a attribute.
    ordered
        Which attributes are ordered and so have a tree; the others have their cells and their
        total. By default all.
    two_level
        Instead of trees with a branching factor, :func:`two_level_tree`: what the authors of the
        fitness-for-use paper compare with as HM.
    kept
        Which cells of the product nobody rules out, a truth value each: those are the d cells. By
        default all.

    Returns
    -------
    Design
        Named "hierarchy".
    """
    W, c = workload(W, variance)
    here = np.ones(_grid(W.shape[1], sizes), dtype=bool) if kept is None else _mask(kept)
    sizes, ordered = _attributes(W.shape[1], sizes, ordered, here)
    factors = [
        _factor(size, tree=is_ordered, branching=branching, two_level=two_level)
        for size, is_ordered in zip(sizes, ordered, strict=True)
    ]
    _check_memory(math.prod(len(factor) for factor in factors), len(here))
    A: Floats = np.ones((1, 1))
    for factor in factors:
        A = np.kron(A, factor).astype(np.float64)
    return Design("hierarchy", W, c, A if here.all() else A[:, here]).meeting_targets()


def tree(d: int, branching: int) -> Floats:
    """Return the nodes (r, d) of a tree over ``d`` ordered cells, from the root to the cells.

    Unless ``d`` is a power of ``branching``, the last node of a level has fewer cells.
    """
    levels = range(_height(d, branching), -1, -1)
    return np.vstack([_blocks(d, branching**level) for level in levels])


def two_level_tree(d: int) -> Floats:
    """Return the root, k blocks of k cells, and the cells, where k = floor(sqrt d) (r, d).

    As in the program of the fitness-for-use paper's authors, cells past k^2 lie in no block.
    """
    k = math.isqrt(d)
    blocks = _blocks(k * k, k) if k > 1 else np.zeros((0, k * k))
    middle = np.hstack([blocks, np.zeros((len(blocks), d - k * k))])
    return np.vstack([np.ones((1, d)), middle, np.eye(d)])


def optimal_branching(d: int) -> int:
    """Return the branching factor with the least variance averaged over all ranges of ``d`` cells.

    One candidate for each height: the least factor that reaches ``d`` cells.
    """
    if d <= 2:
        return 2
    heights = range(1, _height(d, 2) + 1)
    candidates = [(_least_branching(d, height), height) for height in heights]
    return min(candidates, key=lambda shape: average_range_variance(*shape))[0]


def average_range_variance(branching: int, height: int) -> float:
    """Return the mean variance over all ranges of a complete tree's cells, at ``mu = 1``.

    With E_l the projector that averages over the nodes of level l, of s_l cells, the precision of
    the cells is sum_l s_l E_l: its eigenvalue on what E_l keeps and E_(l-1) does not is
    s_l + ... + s_h, and the mean of w^T E_l w over all ranges w is a sum of polynomials.
    """
    d = branching**height
    s = [branching**level for level in range(height, -1, -1)]
    eigenvalues = np.cumsum(s[::-1])[::-1]
    kept = np.array([_mean_kept(d, size) for size in s])
    return (height + 1) * float(np.sum(np.diff(kept, prepend=0.0) / eigenvalues))


def _mean_kept(d: int, s: int) -> float:
    """Return the mean of ``w^T E w`` over all ranges w of ``d`` cells, E averaging blocks of s.

    A range holds both cells i and j in (min(i, j) + 1)(d - max(i, j)) cases; i = a + u and
    j = a + v are summed over the s^2 pairs of a block that starts at a.
    """
    a = np.arange(0, d, s, dtype=np.float64)
    least, most = s * (s - 1) * (2 * s - 1) / 6, s * (s - 1) * (4 * s + 1) / 6
    product = (s * (s - 1) / 2) ** 2  # sums over pairs of min, max, and min times max = u v
    pairs = (a + 1) * (d - a) * s**2 - (a + 1) * most + (d - a) * least - product
    return float(pairs.sum()) / s / (d * (d + 1) / 2)


def _check_memory(rows: int, d: int) -> None:
    """Refuse a strategy that would not fit, before it is formed: A, its QR, and room to work."""
    needed, free = 3 * 8 * rows * d, free_memory()
    if needed > free:
        raise TooLarge(
            f"A hierarchy of {rows} nodes over {d} cells needs about {needed / 1e9:.1f} GB and "
            f"{free / 1e9:.1f} GB are free: leave attributes out, or use marginals, whose design "
            "never forms the table."
        )


def _factor(size: int, *, tree: bool, branching: int | None, two_level: bool) -> Floats:
    """Return the strategy of one attribute (r, size)."""
    if size == 1:
        return np.ones((1, 1))
    if not tree:
        return np.vstack([np.ones((1, size)), np.eye(size)])
    return two_level_tree(size) if two_level else _tree(size, branching)


def _tree(size: int, branching: int | None) -> Floats:
    return tree(size, optimal_branching(size) if branching is None else branching)


def _blocks(d: int, width: int) -> Floats:
    """Return the totals of consecutive blocks of ``width`` cells (ceil(d / width), d)."""
    cells = np.arange(d)
    blocks = np.arange(-(-d // width))
    return np.asarray(cells // width == blocks[:, None], dtype=np.float64)


def _height(d: int, branching: int) -> int:
    """Return the least height at which a tree reaches ``d`` cells."""
    if not (isinstance(branching, (int, np.integer)) and branching >= 2):
        raise InvalidInput(f"branching must be a whole number of at least 2, got {branching}.")
    height = 0
    while branching**height < d:
        height += 1
    return height


def _least_branching(d: int, height: int) -> int:
    """Return the least branching factor with which a tree of ``height`` reaches ``d`` cells."""
    b = max(2, int(d ** (1 / height)))
    while b**height < d:
        b += 1
    return b


def _grid(d: int, sizes: Sequence[int] | None) -> int:
    return d if sizes is None else max(math.prod(sizes), 0)


def _mask(kept: ArrayLike) -> NDArray[np.bool_]:
    mask = np.ravel(np.asarray(kept))
    if mask.dtype != np.bool_:
        raise InvalidInput(f"kept must hold truth values, got {mask.dtype}.")
    return mask


def _attributes(
    d: int,
    sizes: Sequence[int] | None,
    ordered: Sequence[bool] | None,
    kept: NDArray[np.bool_],
) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Return attribute sizes, checked to make the workload's cells, and which are ordered."""
    sizes = (len(kept),) if sizes is None else tuple(sizes)
    cells = np.count_nonzero(kept)
    if min(sizes, default=1) < 1 or math.prod(sizes) != len(kept) or cells != d:
        left = "" if kept.all() else f", of which {cells} are kept,"
        raise InvalidInput(
            f"sizes {sizes}{left} must be positive and multiply to the workload's {d} cells."
        )
    ordered = (True,) * len(sizes) if ordered is None else tuple(ordered)
    if len(ordered) != len(sizes):
        raise InvalidInput(f"ordered must say yes or no for each of {len(sizes)} attributes.")
    return sizes, ordered
