"""Matrix-valued questions, and the sets of changes that one person can make to their answers."""

from ..strategies.changes import Ball, Box, Changes, Columns, Custom, Outer, Spectrum
from .clipped import Features, Gradient, features, gradient
from .custom import CustomQuery, custom
from .gram import Gram, gram
from .graph import Graph, adjacency, laplacian
from .identity import Identity, identity
from .moments import Covariance, SecondMoment, covariance, second_moment
from .query import MatrixQuery
from .sums import Mean, Sum, mean, sum  # as matrices.sum

__all__ = [
    "Ball",
    "Box",
    "Changes",
    "Columns",
    "Covariance",
    "Custom",
    "CustomQuery",
    "Features",
    "Gradient",
    "Gram",
    "Graph",
    "Identity",
    "MatrixQuery",
    "Mean",
    "Outer",
    "SecondMoment",
    "Spectrum",
    "Sum",
    "adjacency",
    "covariance",
    "custom",
    "features",
    "gradient",
    "gram",
    "identity",
    "laplacian",
    "mean",
    "second_moment",
    "sum",
]
