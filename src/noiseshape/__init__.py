"""Statistics under differential privacy, with Gaussian noise shaped to their use."""

from ._version import __version__
from .errors import (
    BudgetExceeded,
    InvalidInput,
    NoiseshapeError,
    NotConverged,
    NotSpanned,
    TooLarge,
)
from .privacy import Budget, Cost, People
from .release import Measurement, measure

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Cost",
    "InvalidInput",
    "Measurement",
    "NoiseshapeError",
    "NotConverged",
    "NotSpanned",
    "People",
    "TooLarge",
    "__version__",
    "measure",
]
