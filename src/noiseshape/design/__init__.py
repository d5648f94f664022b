"""How a strategy is chosen: the least privacy cost for the accuracy that each query needs."""

from .certificate import Certificate
from .design import Design
from .fit import fit
from .solve import Progress
from .total import total

__all__ = ["Certificate", "Design", "Progress", "fit", "total"]
