"""What leaves the house: plans, releases, and what follows from them."""

from .measurement import Measurement, measure
from .plan import Plan, plan
from .queries import Queries, Query
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
