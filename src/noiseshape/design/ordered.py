"""One ordered attribute of up to millions of values: which structured strategy, and how good.

Nothing of the size d x d is formed. Three families are designed for the same targets, and the one
of the least cost is taken:

    series     sums of all cells so far, weighed by powers (1 - x)^-a, blocks of rows of own noise
    wavelet    Haar's differences of halves, each level with its own noise
    tree       totals of nodes, least squares, each level with its own noise

The levels' noise is found by the multiplicative iteration of the dual: with rho_jl what level l
adds to answer j at unit noise, minimise sum_l w_l subject to sum_l rho_jl / w_l <= c_j by

    w_l = (sum_j q_j rho_jl / c_j)^1/2,  q_j <- q_j (h_j / F)^1.5,  h_j = sum_l rho_jl / w_l / c_j.

The lower bound is over all Gaussian noise: that of nested sums among what is asked, from
``spectrum.prefix_bound``, and where that runs the one of the dense ``fit``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, floats, frozen
from ..errors import InvalidInput, TooLarge
from ..strategies.haar import Haar, height
from ..strategies.spanning import Spanning, Spans
from ..strategies.toeplitz import (
    Toeplitz,
    filtered,
    greatest_gains,
    power_series,
    precision,
    rounded_power,
)
from ..strategies.tree import Tree
from .certificate import COST, Certificate, Neighbours
from .fit import fit
from .spectrum import WRITTEN, prefix_bound, stretched

# Targets aimed at, so that rounding of scales and of noise misses none.
AIM = 1 - 2e-9

# Spans on which levels are designed; all of them are then checked.
SAMPLE = 192
ROUNDS = 50
ADDED = 4  # how often the worst of the others are added

# The dense design, for its lower bound: it takes a second.
DENSE_CELLS, DENSE_SPANS = 128, 2000

# Up to so many cells all their ranges are listed, half a million.
LISTED = 1000

# Blocks of rows of a series. At 10^6 prefixes 24 cost 0.1 % more than as many as there are rows.
BLOCKS = 24

_FINE = 20  # bits below one unit of the data at which levels are first stated


@dataclass(frozen=True, eq=False)
class Targets:
    """What is asked of d ordered cells: listed spans, and perhaps all ranges by their length.

    Attributes
    ----------
    spans, variance
        What is published, and the target variance of each, shape (m,).
    by_length : shape (n,), or None
        Of every range of 1, 2, ..., n cells among the first n: its target; infinite for none.
    """

    spans: Spans
    variance: Floats
    by_length: Floats | None = None

    def __post_init__(self) -> None:
        c = np.broadcast_to(floats("variance", self.variance), (len(self.spans),))
        if not np.all(c > 0):
            raise InvalidInput(f"target variances must be above 0, got {c.min():g}.")
        object.__setattr__(self, "variance", c)
        if self.by_length is not None:
            each = np.array(self.by_length, dtype=np.float64)
            right = each.ndim == 1 and 0 < len(each) <= self.spans.cells
            if not right or not np.all(each > 0) or not np.isfinite(each).any():
                raise InvalidInput(
                    "targets by length are variances above 0 for ranges of 1, 2, ... cells, at "
                    f"most {self.spans.cells}; got shape {each.shape}."
                )
            object.__setattr__(self, "by_length", frozen(each))

    def worst(self, strategy: Spanning) -> float:
        """Return the greatest ratio of a variance to its target, of all that is asked."""
        spans = self.spans
        worst = float((strategy.span_variance(spans.low, spans.high) / self.variance).max())
        if self.by_length is None:
            return worst
        if isinstance(strategy, Toeplitz):
            achieved = strategy.by_length(len(self.by_length))
            return max(worst, float((achieved / self.by_length).max()))
        low, high, c = self.listed()
        return float((strategy.span_variance(low, high) / c).max())

    def _ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return every range and its target."""
        assert self.by_length is not None
        low, last = np.triu_indices(len(self.by_length))
        return low, last + 1, self.by_length[last - low]

    def listed(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return all that is asked as spans and targets, where the ranges are few enough."""
        spans = self.spans
        found = spans.low, spans.high, self.variance
        if self.by_length is None:
            return found
        joined = [np.concatenate(pair) for pair in zip(found, self._ranges(), strict=True)]
        told = np.isfinite(joined[2])
        return joined[0][told], joined[1][told], joined[2][told]


@dataclass(frozen=True, eq=False)
class OrderedDesign:
    """A structured strategy that meets its targets, why it was taken, and how good it is.

    Attributes
    ----------
    strategy
        What is executed: integers and dyadic scales, every target met.
    name
        "series", "wavelet" or "tree".
    considered
        The mu of each family at these targets; of one that was passed over at least this much.
    certificate
        Proof of how far the cost is from the least of all Gaussian noise, and from what.
    targets : shape (m,)
        The target variance of each span.
    """

    strategy: Spanning
    name: str
    considered: dict[str, float]
    certificate: Certificate
    targets: Floats


def ordered(
    targets: Targets,
    *,
    neighbours: Neighbours = "add-remove",
    families: Sequence[str] = ("series", "wavelet", "tree"),
) -> OrderedDesign:
    """Design structured noise for spans of ordered cells, and round it to integers.

    Parameters
    ----------
    targets
        What is asked, how accurately.
    neighbours
        The relation that the certificate is for. Strategies are designed under add-remove, and
        compared by their cost under this one.
    families
        Which of "series", "wavelet" and "tree" are considered.

    Examples
    --------
    >>> made = ordered(Targets(Spans.prefixes(5000), 100.0))
    >>> made.name, round(made.certificate.gap, 2)
    ('series', 0.08)
    """
    started = time.perf_counter()
    unknown = set(families) - set(_FAMILIES)
    if unknown or not families:
        raise InvalidInput(f"families are series, wavelet and tree, got {sorted(unknown)}.")
    best: tuple[float, str, Spanning] | None = None
    considered: dict[str, float] = {}
    for name in families:
        bound, made = _FAMILIES[name](targets, neighbours, math.inf if best is None else best[0])
        if math.isfinite(bound):
            considered[name] = math.sqrt(bound)
        if made is not None and (best is None or bound < best[0]):
            best = (bound, name, made)
    if best is None:
        raise TooLarge(
            "no structured strategy can state its errors for this many ranges of different "
            "lengths: ask for fewer, or for all ranges."
        )
    cost, name, strategy = best
    lower, by = least(targets, neighbours)
    proof = Certificate(
        lower, cost, seconds=time.perf_counter() - started, reason=by, neighbours=neighbours,
        covers=COST,
    )  # fmt: skip
    return OrderedDesign(strategy, name, considered, proof, targets.variance)


def _cost(strategy: Spanning, neighbours: Neighbours) -> float:
    return float(strategy.cost_of_one(neighbours))


def _met(targets: Targets, strategy: Spanning) -> Spanning:
    """Return the strategy at the scale at which every target is just met, checked."""
    factor = math.sqrt(AIM / targets.worst(strategy))
    made = strategy.scaled(factor, up=False)
    while (worst := targets.worst(made)) > 1:  # rounded noise has 1/12 more variance
        factor *= math.sqrt(AIM / worst)
        made = strategy.scaled(factor, up=False)
    return made


# Series


def _series(targets: Targets, neighbours: Neighbours, _: float) -> tuple[float, Spanning | None]:
    """Return the cost and strategy of the best power, with blocks where only prefixes are asked."""
    spans = targets.spans
    prefixes = targets.by_length is None and bool((spans.low == 0).all())
    try:
        power = _best_power(targets)
        coefficients = rounded_power(power, spans.cells)
        sigma, blocks = _blocks(targets, power) if prefixes else (np.ones(1), [spans.cells])
        made = Toeplitz(spans, coefficients, sigma * 2.0 ** (precision(spans.cells) + 8), blocks)
        made_met = _met(targets, made)
    except TooLarge:
        return math.inf, None
    return _cost(made_met, neighbours), made_met


def _best_power(targets: Targets) -> float:
    """Return the power of least cost at the targets: a grid, then halving around its best."""
    tried: dict[float, float] = {}

    def value(power: float) -> float:
        power = min(max(round(power, 6), 0.0), 1.0)
        if power not in tried:
            tried[power] = _power_cost(targets, power)
        return tried[power]

    for power in (0.5, 0.25, 0.75, 0.0, 1.0):
        value(power)
    step = 0.125
    while step > 0.005:
        at = min(tried, key=tried.__getitem__)
        value(at - step)
        value(at + step)
        step /= 2
    return min(tried, key=tried.__getitem__)


def _power_cost(targets: Targets, power: float) -> float:
    """Return mu^2 of a series at the targets, in doubles: sum a^2 times the worst of its errors."""
    d, spans = targets.spans.cells, targets.spans
    r = power_series(1 - power, d)
    sums = np.concatenate([[0.0], np.cumsum(r**2)])
    worst = 0.0
    from_first = spans.low == 0
    if from_first.any():
        worst = float((sums[spans.high[from_first]] / targets.variance[from_first]).max())
    if not from_first.all():
        # Those that begin later: some of them, since the choice of a power needs no more.
        later = np.flatnonzero(~from_first)
        later = later[np.linspace(0, len(later) - 1, min(len(later), SAMPLE)).astype(np.int64)]
        for j in later.tolist():
            low, length = int(spans.low[j]), int(spans.high[j] - spans.low[j])
            apart = float(((r[length : length + low] - r[:low]) ** 2).sum())
            worst = max(worst, (sums[length] + apart) / float(targets.variance[j]))
    if targets.by_length is not None:
        gains = greatest_gains(r[: len(targets.by_length)])
        worst = max(worst, float((gains / targets.by_length).max()))
    return float((power_series(power, d) ** 2).sum()) * worst


def _blocks(targets: Targets, power: float) -> tuple[Floats, list[int]]:
    """Return a scale for each block of rows, and how many rows each has.

    With the dual weights p of cells and q of prefixes the best weight of row r is
    (beta_r / alpha_r)^1/2, alpha = a^2 * p the cost that it has and beta = r^2 * q the error that
    it takes away: found at up to 1,024 rows, and stretched.
    """
    d = targets.spans.cells
    n = min(d, WRITTEN)
    c = np.full(d, np.inf)
    np.minimum.at(c, targets.spans.high - 1, targets.variance)
    c = _filled(c)
    where = np.rint(stretched(np.arange(n, dtype=np.float64), d)).astype(np.int64)
    small = np.full(n, np.inf)
    np.minimum.at(small, where, c)  # the tightest target of each place
    a, r = power_series(power, n) ** 2, power_series(1 - power, n) ** 2
    small = _filled(small)
    p = q = np.ones(n) / n
    best = (math.inf, np.ones(n))
    for _ in range(200):
        alpha, beta = filtered(a, p), filtered(r, (q / small)[::-1])[::-1]
        w = np.sqrt(beta / alpha)
        cost = filtered(a, w[::-1])[::-1]
        error = filtered(r, 1 / w) / small
        best = min(best, (float(cost.max() * error.max()), w), key=lambda pair: pair[0])
        p, q = p * (cost / (p @ cost)) ** 1.5, q * (error / (q @ error)) ** 1.5
        p, q = p / p.sum(), q / q.sum()
    logs = stretched(np.log(best[1]), d)
    places = stretched(np.linspace(0, 1, n), d)
    borders = np.searchsorted(places, np.linspace(0, 1, BLOCKS + 1)[1:-1])
    borders = np.unique(np.concatenate([[0], borders, [d]]))
    scales = [math.exp(-0.5 * float(logs[i:j].mean())) for i, j in pairwise(borders.tolist())]
    return np.array(scales) / min(scales), np.diff(borders).tolist()


def _filled(c: Floats) -> Floats:
    """Return targets with those of the prefix before where none is asked, or else of the first."""
    told = np.flatnonzero(np.isfinite(c))
    at = np.searchsorted(told, np.arange(len(c)), side="right") - 1
    return np.asarray(c[told[np.maximum(at, 0)]])


# Wavelets and trees


def _wavelet(
    targets: Targets, neighbours: Neighbours, beaten: float
) -> tuple[float, Spanning | None]:
    spans = targets.spans
    levels = height(spans.cells) + 1

    def make(spans: Spans, sigma: Floats) -> Spanning:
        return Haar(spans, sigma)

    return _levelled(targets, neighbours, beaten, make, levels)


def _tree(targets: Targets, neighbours: Neighbours, beaten: float) -> tuple[float, Spanning | None]:
    best: tuple[float, Spanning | None] = (math.inf, None)
    for widths in _widths(targets):

        def make(spans: Spans, sigma: Floats, widths: tuple[int, ...] = widths) -> Spanning:
            return Tree(spans, widths, sigma)

        found = _levelled(targets, neighbours, min(beaten, best[0]), make, len(widths))
        best = min(best, found, key=lambda pair: pair[0])
    return best


def _widths(targets: Targets) -> list[tuple[int, ...]]:
    """Return the widths of some trees: regular ones, and that of the blocks that are asked."""
    d = targets.spans.cells
    found = []
    for fan in (2, 4, 16):
        widths = [1]
        while widths[-1] < d:
            widths.append(widths[-1] * fan)
        found.append(tuple(widths))
    lengths = np.unique(targets.spans.high - targets.spans.low)
    if len(lengths) <= 24:
        chain = tuple(sorted({1, *lengths.tolist()}))
        if all(b % a == 0 for a, b in pairwise(chain)):
            found.append(chain)
    return list(dict.fromkeys(found))


def _levelled(
    targets: Targets,
    neighbours: Neighbours,
    beaten: float,
    make: Callable[[Spans, Floats], Spanning],
    levels: int,
) -> tuple[float, Spanning | None]:
    """Return a cost and a strategy with designed levels; a bound below it and None if beaten."""
    if targets.by_length is not None and len(targets.by_length) > LISTED:
        return math.inf, None
    low, high, c = targets.listed()
    some = np.unique(np.linspace(0, len(low) - 1, SAMPLE).astype(np.int64))
    bound = math.inf
    for _ in range(ADDED):
        sample = Targets(Spans(low[some], high[some], targets.spans.cells), c[some])
        sigma = _level_scales(sample, make, levels)
        # To answer all that is asked costs no less than these at no more error.
        bound = _cost(_met(sample, make(sample.spans, sigma)), neighbours)
        if bound >= beaten:
            return bound, None
        made = make(targets.spans, sigma)
        each = made.span_variance(low, high) / c
        if each.max() <= 1.01 * each[some].max():
            break
        some = np.union1d(some, np.argsort(each)[-SAMPLE // 2 :])  # the worst, not thought of
    met = _met(targets, made)
    return _cost(met, neighbours), met


def _level_scales(
    sample: Targets, make: Callable[[Spans, Floats], Spanning], levels: int
) -> Floats:
    """Return the scales of levels that cost least for some spans: the iteration of the dual."""
    spans, c = sample.spans, sample.variance
    w, q = np.ones(levels), np.ones(len(spans)) / len(spans)
    best = (math.inf, w)
    for _ in range(ROUNDS):
        rho = make(spans, _scales(w)).gains(spans.low, spans.high)
        each = rho @ (1 / w) / c
        best = min(best, (float(w.sum() * each.max()), w), key=lambda pair: pair[0])
        z = (q / c) @ rho
        w = np.maximum(np.sqrt(z), 1e-7 * math.sqrt(z.max()))
        q = q * (each / (q @ each)) ** 1.5
        q /= q.sum()
    return _scales(best[1])


def _scales(w: Floats) -> Floats:
    """Return the scales of weights on levels: 1 / sigma^2 in their ratio, the least 2^20."""
    return np.asarray(np.ldexp(np.sqrt(w.max() / w), _FINE))


_FAMILIES: dict[
    str, Callable[[Targets, Neighbours, float], tuple[float, Spanning | None]]
] = {"series": _series, "wavelet": _wavelet, "tree": _tree}  # fmt: skip


# Lower bounds


def least(targets: Targets, neighbours: Neighbours = "add-remove") -> tuple[float, str]:
    """Return a lower bound on mu^2 of any Gaussian noise that meets the targets, and its source.

    Of spans with a common end, and of ranges of 1, 2, ... cells from the first: nested sums.
    Under replace n nested sums are n - 1 differences from a person of the innermost group.
    """
    spans, c = targets.spans, targets.variance
    replace = neighbours == "replace"
    chains: list[Floats] = []
    for common, moving in ((spans.low, spans.high), (spans.high, -spans.low)):
        chains += _chains(common, moving, c)
    if targets.by_length is not None:
        told = targets.by_length[np.isfinite(targets.by_length)]
        longest = np.flatnonzero(np.isfinite(targets.by_length))[-1] + 1
        each = np.minimum.accumulate(targets.by_length[:longest][::-1])[::-1]
        for value in np.unique(told)[:8]:
            chains.append(targets.by_length[: np.flatnonzero(each <= value)[-1] + 1])
    chains.sort(key=_guess, reverse=True)
    best, by = 0.0, "a single answer"
    if not replace:
        best = 1 / float(c.min())
    for chain in chains[:3]:
        kept = chain[np.isfinite(chain)]
        kept = kept[:-1] if replace else kept
        if len(kept):
            found = prefix_bound(kept)
            if found > best:
                best, by = found, f"{len(chain):,} nested sums among what is asked"
    small = spans.cells <= DENSE_CELLS and len(spans) <= DENSE_SPANS
    if small:
        low, high, variance = targets.listed()
        W = Spans(low, high, spans.cells).written()
        made = fit(W, variance, neighbours=neighbours, gap=1e-3, on_gap="label")
        assert made.certificate is not None
        if made.certificate.lower > best:
            best, by = made.certificate.lower, "the dense design of all that is asked"
    return best, by


def _chains(common: NDArray[np.int64], moving: NDArray[np.int64], c: ArrayLike) -> list[Floats]:
    """Return the targets of spans with one end in common, from the shortest: the longest chains."""
    variance = np.asarray(c)
    order = np.lexsort((moving, common))
    starts = np.flatnonzero(np.append(True, np.diff(common[order]) != 0))
    sizes = np.diff(np.append(starts, len(order)))
    found = []
    for group in np.argsort(sizes)[::-1][:3].tolist():
        mine = order[starts[group] : starts[group] + sizes[group]]
        distinct, place = np.unique(moving[mine], return_inverse=True)
        tightest = np.full(len(distinct), np.inf)
        np.minimum.at(tightest, place, variance[mine])
        found.append(tightest)
    return found


def _guess(chain: Floats) -> float:
    """Return about what a chain's bound will be: that of equal targets, at their harmonic mean."""
    kept = chain[np.isfinite(chain)]
    return (
        ((math.log(len(kept)) + 2.2) / math.pi) ** 2 * float((1 / kept).mean())
        if len(kept)
        else 0.0
    )
