"""What leaves the house: plans, releases, and what follows from them."""

from ..tables import Queries, Query
from .marginalsplan import MarginalsPlan
from .marginalsrelease import MarginalsRelease
from .matrixplan import MatrixPlan
from .matrixrelease import MatrixRelease
from .matrixvariate import Mvg, imgm, learn_directions, mvg
from .measurement import Measurement, measure
from .orderedplan import OrderedPlan
from .orderedrelease import OrderedRelease
from .plan import Plan, plan
from .planned import Planned, Released, Stamp, load
from .publication import published as read
from .release import Answer, Release
from .rowsplan import RowsPlan
from .rowsrelease import RowsRelease
from .shapes import directional, isotropic, kronecker
from .source import Counts, Source
from .table import Table
from .unionplan import UnionPlan
from .unionrelease import UnionRelease

__all__ = [
    "Answer",
    "Counts",
    "MarginalsPlan",
    "MarginalsRelease",
    "MatrixPlan",
    "MatrixRelease",
    "Measurement",
    "Mvg",
    "OrderedPlan",
    "OrderedRelease",
    "Plan",
    "Planned",
    "Queries",
    "Query",
    "Release",
    "Released",
    "RowsPlan",
    "RowsRelease",
    "Source",
    "Stamp",
    "Table",
    "UnionPlan",
    "UnionRelease",
    "directional",
    "imgm",
    "isotropic",
    "kronecker",
    "learn_directions",
    "load",
    "measure",
    "mvg",
    "plan",
    "read",
]
