"""What leaves the house: plans, releases, and what follows from them."""

from ..tables import Queries, Query
from .measurement import Measurement, measure
from .plan import Plan, plan
from .release import Answer, Release, Stamp
from .source import Counts, Source
from .table import Table

__all__ = [
    "Answer",
    "Counts",
    "Measurement",
    "Plan",
    "Queries",
    "Query",
    "Release",
    "Source",
    "Stamp",
    "Table",
    "measure",
    "plan",
]
