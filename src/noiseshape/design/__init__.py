"""How a strategy is chosen: the least privacy cost for the accuracy that each query needs."""

from .certificate import Certificate, Level
from .compare import Comparison, compare
from .design import Design
from .fit import fit
from .hierarchy import hierarchy
from .identity import identity, per_query
from .marginals import MarginalsDesign, marginals
from .ordered import OrderedDesign, Targets, ordered
from .product import ProductDesign, kronecker, union
from .slack import extend, slack
from .sm2 import sm2
from .solve import Progress
from .total import total, weighted_total

__all__ = [
    "Certificate",
    "Comparison",
    "Design",
    "Level",
    "MarginalsDesign",
    "OrderedDesign",
    "ProductDesign",
    "Progress",
    "Targets",
    "compare",
    "extend",
    "fit",
    "hierarchy",
    "identity",
    "kronecker",
    "marginals",
    "ordered",
    "per_query",
    "slack",
    "sm2",
    "total",
    "union",
    "weighted_total",
]
