"""Questions about marginals, designed in the residual basis of each attribute's own contrasts.

Marginals alone want Helmert's contrasts, and the optimum is global. An attribute that is asked for
prefixes, ranges or any other one-dimensional workload gets contrasts of its own, fitted to it; the
scales of all residuals are then optimal for these contrasts, and where other attributes leave a
question more or less of its target, the contrasts are fitted again to what is left.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._checks import Floats, frozen
from ..errors import InvalidInput, NoiseshapeError
from ..strategies import rounded
from ..strategies.contrast import Contrast, Helmert, Written
from ..strategies.lattice import Ints, Lattice, by_size
from ..strategies.residual import forms, halves, with_whole
from ..tables.asks import Ask
from .certificate import COST, Neighbours
from .fit import fit
from .marginals import MarginalsDesign, Residuals, expanded, solved, stacked, ways

PRODUCTS = f"{COST}, among products of these attributes' contrasts"

# Answers of one query that are told apart by their place; beyond, the worst of each attribute
# stand for all of them, which is safe and may cost more than it need.
MOST_CLASSES = 4096
# Answers of a query whose targets are looked at one by one when contrasts are fitted again.
MOST_LOOKED_AT = 1 << 18
# A one-dimensional design of more entries takes minutes: Helmert's contrasts are used instead.
MOST_FITTED = 4_000_000
# Queries whose leftovers are looked at for every fit of an attribute's contrasts.
MOST_ASKS = 1000
# Rounds of fitting contrasts again; one without a thousandth to gain is the last.
ROUNDS = 4
# How close a one-dimensional design comes, and what rounding it may lose.
FITTED = 1e-3


@dataclass(frozen=True, eq=False)
class ProductsDesign:
    """Contrasts of each attribute and one scale for each residual.

    Attributes
    ----------
    asks
        What is asked.
    contrasts
        What is measured along each attribute.
    made
        Scales, certificate, and the problem that they solve.
    owner
        The ask that each row of the problem belongs to.
    """

    asks: tuple[Ask, ...]
    contrasts: tuple[Contrast, ...]
    made: MarginalsDesign
    owner: Ints

    @cached_property
    def plain(self) -> bool:
        """Whether nothing but marginals is asked, so that the certificate is about all noise."""
        return all(ask.plain for ask in self.asks)


def products(
    sizes: Sequence[int],
    asks: Sequence[Ask],
    variance: Sequence[Floats],
    *,
    neighbours: Neighbours = "add-remove",
    rows_may_leave: bool = False,
    total: bool = False,
    gap: float = 1e-3,
) -> ProductsDesign:
    """Design the noise of questions about marginals.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    asks
        What is asked.
    variance
        Target variances of the answers of each ask, in its shape, or one for all of them.
    total
        The least sum of variances for its cost, instead of the least cost.

    Formal guarantees:
      Every target is met by what the design states; of marginals alone the certificate holds for
      every Gaussian noise, and else for noise in products of the contrasts that it chose.
    """
    begun = time.perf_counter()
    for i, size in enumerate(sizes):
        if size < 2:
            raise InvalidInput(f"attribute {i} has one value and tells nobody apart: leave it out.")
    plain = {n: Helmert(n) for n in set(sizes)}  # one object for all attributes that are alike
    structured = _structured(asks)
    contrasts: list[Contrast] = [plain[n] for n in sizes]
    for i, chosen in structured.items():
        contrasts[i] = _first(i, chosen, asks, variance, sizes[i]) or contrasts[i]

    def settled(contrasts: Sequence[Contrast]) -> ProductsDesign:
        """Return the design with these contrasts, or with better ones of their kind."""
        made = _solved(contrasts, asks, variance, neighbours, rows_may_leave, total, gap, begun)
        for _ in range(0 if total else ROUNDS if structured else 0):
            again = [
                c if isinstance(c, Helmert) else _again(i, _about(i, c, structured, asks), made,
                                                        variance)
                for i, c in enumerate(made.contrasts)
            ]  # fmt: skip
            better = _solved(again, asks, variance, neighbours, rows_may_leave, total, gap, begun)
            gained = 1 - better.made.alpha / made.made.alpha
            if gained > 0:
                made = better
            if gained < 1e-3:
                break
        return made

    made = settled(contrasts)
    if total or neighbours == "replace":
        return made
    for i in structured:  # the total of an attribute apart, or measured along with the rest
        first = _first(i, range(len(asks)), asks, variance, sizes[i], whole=True)
        if first is not None:
            tried = list(made.contrasts)
            tried[i] = first
            other = settled(tried)
            if other.made.alpha < made.made.alpha:
                made = other
    return made


def _about(
    i: int, contrast: Contrast, structured: Mapping[int, Sequence[int]], asks: Sequence[Ask]
) -> Sequence[int]:
    """Return the asks that an attribute's contrasts are for: all, if it is measured whole."""
    return range(len(asks)) if contrast.whole else structured[i]


def _solved(
    contrasts: Sequence[Contrast],
    asks: Sequence[Ask],
    variance: Sequence[Floats],
    neighbours: Neighbours,
    rows_may_leave: bool,
    total: bool,
    gap: float,
    begun: float,
) -> ProductsDesign:
    problem, owner = problem_of(contrasts, asks, variance, neighbours, rows_may_leave)
    weights = None
    if total:
        sizes = [c.cells for c in contrasts]
        each = np.array([math.prod(ask.shape(sizes)) for ask in asks], dtype=np.float64)
        weights = (each / np.bincount(owner, minlength=len(asks)))[owner]
    plain = all(ask.plain for ask in asks) and all(isinstance(c, Helmert) for c in contrasts)
    made = solved(
        problem, weights=weights, gap=gap, neighbours=neighbours,
        covers=COST if plain else PRODUCTS, begun=begun,
    )  # fmt: skip
    return ProductsDesign(tuple(asks), tuple(contrasts), made, owner)


def problem_of(
    contrasts: Sequence[Contrast],
    asks: Sequence[Ask],
    variance: Sequence[Floats],
    neighbours: Neighbours = "add-remove",
    rows_may_leave: bool = False,
) -> tuple[Residuals, Ints]:
    """Return what is asked in the residual basis, and the ask that each of its rows is of."""
    sizes = [c.cells for c in contrasts]
    n = np.array(sizes, dtype=np.float64)
    helmert = np.array([isinstance(c, Helmert) for c in contrasts])
    whole = [i for i, contrast in enumerate(contrasts) if contrast.whole]
    full = [with_whole(ask, whole, sizes) for ask in asks]
    asked = by_size([[i for i in ask.members if i not in whole] for ask in full])
    lattice, numbers = Lattice.under([group for group, _ in asked], len(sizes))
    times = _always(contrasts, whole, asks)
    least = np.array([float(np.min(v)) if v.strides != (0,) else float(v[0]) for v in variance])
    columns: list[Ints] = []
    values: list[Floats] = []
    targets: list[Floats] = []
    owner: list[Ints] = []
    for (group, place), number in zip(asked, numbers, strict=True):
        alike = helmert[group].all(axis=1)
        alike &= np.array([asks[i].plain for i in place.tolist()])
        chosen = group[alike]
        columns.append(number[alike])
        always = times[place[alike]][:, None]
        values.append(expanded(1 - 1 / n[chosen], n[chosen] ** -2.0) * always)
        targets.append(least[place[alike]])
        owner.append(place[alike])
        for row in np.flatnonzero(~alike).tolist():
            at = int(place[row])
            part, target = _rows(contrasts, full[at], variance[at], sizes)
            columns.append(np.broadcast_to(number[row], part.shape))
            values.append(part)
            targets.append(target)
            owner.append(np.full(len(part), at))
    B = stacked(columns, values, len(lattice))
    whose = np.concatenate(owner)
    order = np.argsort(whose, kind="stable")
    if all(helmert):
        G, above = ways(lattice, n, neighbours, rows_may_leave)
    else:
        G, above = _costs(lattice, contrasts, neighbours, rows_may_leave)
    c = frozen(np.concatenate(targets)[order])
    return Residuals(lattice, sparse.csr_array(B[order]), c, G, above), whose[order]


def _always(contrasts: Sequence[Contrast], whole: Sequence[int], asks: Sequence[Ask]) -> Floats:
    """Return what attributes that are measured whole make of each marginal's variance, (m,)."""
    times = np.ones(len(asks))
    for i in whole:
        contrast = contrasts[i]
        each = float(forms(contrast, None)[0].max())
        total = float(forms(contrast, np.ones((1, contrast.cells)))[0][0])
        times *= [each if i in ask.members else total for ask in asks]
    return times


def _costs(
    lattice: Lattice, contrasts: Sequence[Contrast], neighbours: Neighbours, rows_may_leave: bool
) -> tuple[Floats, Floats]:
    """Return at or above the cost of each way to be a neighbour, with contrasts of any kind.

    Added or removed, exactly: every attribute can be at its greatest at once. Replaced, two rows
    are at most as far apart as their lengths and their most negative inner product allow.
    """
    s = lattice.product(np.array([float(c.greatest) for c in contrasts]))
    whole = [c for c in contrasts if c.whole]
    s *= math.prod(float(c.greatest) for c in whole)
    if neighbours == "add-remove":
        return s[None, :], s
    worst = lattice.greatest(np.array([c.negative for c in contrasts]))
    apart = 2 * s * (1 + np.maximum(worst, max((c.negative for c in whole), default=0.0)))
    if not whole:
        apart[0] = 0.0
    return np.array([apart, s]) if rows_may_leave else apart[None, :], apart


def _rows(
    contrasts: Sequence[Contrast], ask: Ask, variance: Floats, sizes: Sequence[int]
) -> tuple[Floats, Floats]:
    """Return what the answers of one ask are made of, (r, 2^k), and their targets.

    Answers that another one implies (as high a target, no more of any residual) are left out.
    """
    mine = [contrasts[i] for i in ask.members]
    free = [axis for axis, contrast in enumerate(mine) if not contrast.whole]
    if ask.weights is not None:
        parts = np.empty((len(ask.weights), 1 << len(free)))
        for mask in range(1 << len(free)):
            kept = [contrast.whole for contrast in mine]
            for bit, axis in enumerate(free):
                kept[axis] = bool(mask >> bit & 1)
            parts[:, mask] = (halves(ask.weights, mine, kept) ** 2).sum(axis=1)
        return parts, np.broadcast_to(variance, (len(parts),))
    pairs: list[Any] = [
        np.broadcast_arrays(*forms(c, W)) for c, W in zip(mine, ask.factors, strict=True)
    ]
    # Of what is measured whole no mean is apart: one number a row.
    pairs = [
        pair if axis in free else [pair[0], np.zeros_like(pair[0])]
        for axis, pair in enumerate(pairs)
    ]
    shape = ask.shape(sizes)
    one = variance.size == 1 or variance.strides == (0,) or np.ptp(variance) == 0
    if not one and math.prod(shape) <= MOST_CLASSES:
        pairs = [
            tuple(np.broadcast_to(each, (length,)) for each in pair)
            for pair, length in zip(pairs, shape, strict=True)
        ]
        target = np.broadcast_to(variance, (math.prod(shape),))
    else:
        pairs = [frontier(inside, outside) for inside, outside in pairs]
        if math.prod(len(inside) for inside, _ in pairs) > MOST_CLASSES:
            pairs = [[side.max(keepdims=True) for side in pair] for pair in pairs]
        target = np.full(math.prod(len(inside) for inside, _ in pairs), float(np.min(variance)))
    grid = [
        np.stack(
            [g.ravel() for g in np.meshgrid(*[pair[side] for pair in pairs], indexing="ij")], 1
        )
        if pairs
        else np.zeros((1, 0))
        for side in (0, 1)
    ]
    always = [axis for axis in range(len(pairs)) if axis not in free]
    parts = expanded(grid[0][:, free], grid[1][:, free])
    return parts * grid[0][:, always].prod(axis=1)[:, None], target


def frontier(inside: Floats, outside: Floats) -> tuple[Floats, Floats]:
    """Return the pairs that no other pair exceeds in both."""
    order = np.lexsort((inside, outside))[::-1]  # outside falls
    best = np.maximum.accumulate(inside[order])
    kept = np.append(True, inside[order][1:] > best[:-1] * (1 + 1e-12))
    return inside[order][kept], outside[order][kept]


# One-dimensional designs.


def _structured(asks: Sequence[Ask]) -> dict[int, list[int]]:
    """Return which asks are about each attribute that has a structure of its own."""
    found: dict[int, list[int]] = {}
    anything: set[int] = set()  # weights may tell anything apart
    for number, ask in enumerate(asks):
        if ask.weights is not None:
            anything.update(ask.members)
        elif not ask.plain:
            for i, factor in zip(ask.members, ask.factors, strict=True):
                if factor is not None:
                    found.setdefault(i, []).append(number)
    for i in anything:
        found.pop(i, None)
    for number, ask in enumerate(asks):
        for i in ask.members:
            if i in found and number not in found[i]:
                found[i].append(number)
    return found


def _workload(
    i: int, chosen: Sequence[int], asks: Sequence[Ask], n: int
) -> tuple[Floats, list[tuple[int, int, int]]]:
    """Return what is asked of one attribute, each matrix once, and which rows each ask has."""
    blocks: list[Floats] = []
    seen: dict[int, tuple[int, int]] = {}
    spans = []
    for number in chosen:
        ask = asks[number]
        inside = i in ask.members
        W = ask.factors[ask.members.index(i)] if inside else None
        key = -1 if not inside else 0 if W is None else id(W)
        if key not in seen:
            start = sum(map(len, blocks))
            blocks.append(np.ones((1, n)) if not inside else np.eye(n) if W is None else W)
            seen[key] = start, start + len(blocks[-1])
        spans.append((number, *seen[key]))
    return np.vstack(blocks), spans


def _first(
    i: int,
    chosen: Sequence[int],
    asks: Sequence[Ask],
    variance: Sequence[Floats],
    n: int,
    *,
    whole: bool = False,
) -> Written | None:
    """Return contrasts that fit what is asked of an attribute; None where it has no structure.

    To begin with each row has the least target of its query.
    """
    W, spans = _workload(i, chosen, asks, n)
    if W.size > MOST_FITTED:
        return None
    c = np.full(len(W), np.inf)
    for number, begin, end in spans:
        c[begin:end] = np.minimum(c[begin:end], float(np.min(variance[number])))
    return fitted(W, c, whole=whole)


def _again(
    i: int, chosen: Sequence[int], made: ProductsDesign, variance: Sequence[Floats]
) -> Contrast:
    """Return the contrasts of an attribute that fit what the others leave of every target.

    With the others and the scales as they are, the variance of an answer is
    ``rest + share * (variance of its contrast along this attribute)``, and so is the cost.
    """
    contrasts, design = made.contrasts, made.made
    sizes = [c.cells for c in contrasts]
    always = [j for j, contrast in enumerate(contrasts) if contrast.whole]
    lattice, u = design.problem.lattice, design.u
    W, spans = _workload(i, chosen, made.asks, sizes[i])
    c = np.full(len(W), np.inf)
    for number, begin, end in spans:
        if made.asks[number].weights is not None:
            return contrasts[i]
        ask = with_whole(made.asks[number], always, sizes)
        shape = ask.shape(sizes)
        if math.prod(shape) > MOST_LOOKED_AT or len(spans) > MOST_ASKS:
            return contrasts[i]
        axis = ask.members.index(i)
        pairs: list[Any] = []
        for a, (j, factor) in enumerate(zip(ask.members, ask.factors, strict=True)):
            along = [-1 if b == a else 1 for b in range(len(shape))]
            pairs.append([np.asarray(f).reshape(along) for f in forms(contrasts[j], factor)])
        rest: Any = 0.0
        share: Any = 0.0
        choices = ([True] if j in always else [False, True] for j in ask.members)
        for kept in itertools.product(*choices):
            inside = itertools.compress(ask.members, kept)
            at = lattice.number([j for j in inside if j not in always])
            assert at is not None
            part: Any = u[at]
            for b, (pair, within) in enumerate(zip(pairs, kept, strict=True)):
                if b != axis or not within:
                    part = part * pair[0 if within else 1]
            if kept[axis]:
                share = share + part
            else:
                rest = rest + part
        asked = made.asks[number].shape(sizes)
        target = np.broadcast_to(variance[number], (math.prod(asked),)).reshape(shape)
        room = np.broadcast_to((target - rest) / share, shape)
        away = tuple(b for b in range(len(shape)) if b != axis)
        c[begin:end] = np.minimum(c[begin:end], room.min(axis=away))
    return fitted(W, c, whole=contrasts[i].whole) or contrasts[i]


def fitted(W: Floats, c: Floats, *, whole: bool = False) -> Written | None:
    """Return contrasts in integers that fit rows W (m, n) to targets c.

    Of the rows without their means, unless ``whole``. None where nothing is told apart, or where
    no design is found.
    """
    n = W.shape[1]
    # Whole numbers times n stay whole: the rows then have an exact integer basis.
    contrast = n * W if whole else n * W - W.sum(axis=1, keepdims=True)
    told = np.abs(contrast).max(axis=1) > 1e-9 * np.abs(n * W).max(axis=1, initial=1e-300)
    told &= np.isfinite(c) & (c > 0)
    if not told.any():
        return None
    unit = c[told] / c[told].min()
    try:
        design = fit(contrast[told], unit, gap=FITTED, on_gap="label")
        made = rounded(design.A, contrast[told], loss=FITTED).strategy
        return Written(made.rows, made.sigma, whole=whole)
    except NoiseshapeError:
        return None
