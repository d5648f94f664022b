"""Declared tables: schemas, workloads, and where rows are counted."""

from .domains import (
    Bins,
    Booleans,
    Categories,
    Dates,
    Domain,
    Integers,
    bins,
    booleans,
    categories,
    dates,
    integers,
)
from .layout import Layout
from .queries import Queries, Query
from .recode import Recode, recode
from .schema import Schema
from .workload import Workload

__all__ = [
    "Bins",
    "Booleans",
    "Categories",
    "Dates",
    "Domain",
    "Integers",
    "Layout",
    "Queries",
    "Query",
    "Recode",
    "Schema",
    "Workload",
    "bins",
    "booleans",
    "categories",
    "dates",
    "integers",
    "recode",
]
