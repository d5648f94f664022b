"""How a strategy is chosen: the least privacy cost for the accuracy that each query needs."""

from .certificate import Certificate, Level
from .design import Design
from .fit import fit
from .slack import extend, slack
from .solve import Progress
from .total import total

__all__ = ["Certificate", "Design", "Level", "Progress", "extend", "fit", "slack", "total"]
