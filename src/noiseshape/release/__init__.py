"""What leaves the house: plans, releases, and what follows from them."""

from ..tables import Queries, Query
from .measurement import Measurement, measure
from .plan import Plan, plan
from .planned import Planned, Released, Stamp, load
from .publication import published as read
from .release import Answer, Release
from .source import Counts, Source
from .table import Table

__all__ = [
    "Answer",
    "Counts",
    "Measurement",
    "Plan",
    "Planned",
    "Queries",
    "Query",
    "Release",
    "Released",
    "Source",
    "Stamp",
    "Table",
    "load",
    "measure",
    "plan",
    "read",
]
