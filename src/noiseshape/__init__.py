"""Statistics under differential privacy, with Gaussian noise shaped to their use."""

from ._version import __version__
from .errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerAltered,
    LedgerError,
    LedgerLocked,
    LedgerMissing,
    NoiseshapeError,
    NotConverged,
    NotSpanned,
    ReleaseFailed,
    TooLarge,
)
from .privacy import Budget, Cost, Ledger, People
from .release import (
    Answer,
    Counts,
    Measurement,
    Plan,
    Queries,
    Release,
    Source,
    Table,
    measure,
    plan,
)

__all__ = [
    "Answer",
    "Budget",
    "BudgetExceeded",
    "Cost",
    "Counts",
    "InvalidInput",
    "Ledger",
    "LedgerAltered",
    "LedgerError",
    "LedgerLocked",
    "LedgerMissing",
    "Measurement",
    "NoiseshapeError",
    "NotConverged",
    "NotSpanned",
    "People",
    "Plan",
    "Queries",
    "Release",
    "ReleaseFailed",
    "Source",
    "Table",
    "TooLarge",
    "__version__",
    "measure",
    "plan",
]
