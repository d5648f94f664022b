"""Products of designs, one for each attribute: what is optimal for each is optimal for all.

Asked W_1 x W_2 x ... with targets c_1 x c_2 x ..., the Kronecker product of strategies costs the
product of their costs and errs by the product of their errors. And the dual is multiplicative too:
with K_i = diag(q_i/c_i)^1/2 W_i diag(p_i)^1/2 the nuclear norm of K_1 x K_2 is the product of the
nuclear norms, so that lower bounds multiply. Where each factor is optimal the product is optimal
among *all* Gaussian noise on all cells, correlated in whatever way (docs/math/onedim.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from .._checks import Floats, positive
from ..errors import InvalidInput
from ..strategies import Kronecker, Strategy, Toeplitz, rounded
from ..strategies.sigma import PREFERRED
from ..strategies.toeplitz import precision
from .certificate import COST, Certificate
from .design import Design
from .ordered import AIM, OrderedDesign

# Bits that the last coefficient of a series keeps in a product.
SHORT = 9


@dataclass(frozen=True, eq=False)
class ProductDesign:
    """A product strategy as it is executed, and how far it is from the best.

    Attributes
    ----------
    strategy
        One factor for each attribute, never written out.
    certificate
        Proof over all Gaussian noise on all cells: its lower bound is the product of the factors'.
    """

    strategy: Kronecker
    certificate: Certificate


def kronecker(factors: Sequence[Design | OrderedDesign], variance: float = 1.0) -> ProductDesign:
    """Return the product of designs, scaled to meet the product of their targets.

    Parameters
    ----------
    factors
        Designs of ``fit`` or ``ordered`` under add-remove neighbours, each with its certificate and
        its own targets, in the order of the attributes (the last varies fastest).
    variance
        A factor on the targets: the target of an answer is this times the product of its own.

    Formal Guarantees:
      No Gaussian noise on the cells of the product meets these targets with ``mu**2`` below
      ``certificate.lower``; the strategy meets every one at ``certificate.achieved``.

    Examples
    --------
    >>> import numpy as np
    >>> from .fit import fit
    >>> one = fit(np.tril(np.ones((4, 4))), 1.0, gap=1e-6)
    >>> both = kronecker([one, one])
    >>> round(both.certificate.lower, 4), round(1.7586**2, 4)
    (3.0927, 3.0927)
    """
    times = positive("variance", variance)
    if not factors:
        raise InvalidInput("a product needs at least one design.")
    strategies: list[Strategy] = []
    lower = 1.0
    for design in factors:
        proof = design.certificate
        if proof is None or proof.covers != COST or proof.neighbours != "add-remove":
            raise InvalidInput(
                "a product is certified by its factors: make each with fit or ordered, under "
                "add-remove neighbours."
            )
        lower *= proof.lower
        if isinstance(design, OrderedDesign):
            strategies.append(_shortened(design.strategy))
        else:
            strategies.append(rounded(design.A, design.W).strategy)
    ratio = 1.0
    for design, strategy in zip(factors, strategies, strict=True):
        c = design.targets if isinstance(design, OrderedDesign) else design.c
        ratio *= float((strategy.variance / c).max())
    # The 1/12 that rounding adds to noise is not a product: it is checked, answer by answer.
    targets = outer([d.targets if isinstance(d, OrderedDesign) else d.c for d in factors]) * times
    product = Kronecker(strategies).scaled(math.sqrt(AIM * times / ratio), up=False)
    while (worst := float((product.variance / targets).max())) > 1:
        product = product.scaled(math.sqrt(AIM / worst), up=False)
    return ProductDesign(
        product,
        Certificate(lower / times * (1 - 1e-12), float(product.cost_of_one("add-remove")),
                    reason="the product of the factors' bounds"),
    )  # fmt: skip


def _shortened(strategy: Strategy) -> Strategy:
    """Return a series in fewer bits: those of factors add up, and beyond 40 draws are slow.

    What it costs and how it errs is that of the shorter integers.
    """
    if not isinstance(strategy, Toeplitz):
        return strategy
    a = strategy.coefficients
    shift = precision(len(a)) - SHORT - (len(a).bit_length() + 1) // 2
    if shift <= 0 or not (np.ldexp(strategy.level_sigma, -shift) >= PREFERRED).all():
        return strategy
    shorter = np.rint(np.ldexp(a.astype(np.float64), -shift)).astype(np.int64)
    sigma = np.ldexp(strategy.level_sigma, -shift)
    return Toeplitz(strategy.spans, shorter, sigma, strategy.level_rows)


def outer(targets: Sequence[Floats]) -> Floats:
    """Return the products of one target from each factor, in the order of the answers."""
    return np.asarray(reduce(np.multiply.outer, targets)).ravel()


def union(parts: Sequence[ProductDesign]) -> float:
    """Return a lower bound on mu^2 of any noise that answers all of several products at once.

    To answer a union is to answer each of its parts: the greatest of their bounds. It is exact
    where one part contains the others, and may be off by up to the number of parts.
    """
    if not parts:
        raise InvalidInput("a union needs at least one product.")
    return max(part.certificate.lower for part in parts)
