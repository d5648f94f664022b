"""Strategies as they are executed: integer rows, dyadic scales, exact costs."""

from .dense import Dense
from .diagonal import Diagonal
from .haar import Haar
from .kronecker import Kronecker
from .residual import Residual
from .rounding import Rounded, rounded
from .spanning import Spans
from .strategy import Strategy
from .toeplitz import Toeplitz
from .tree import Tree

__all__ = [
    "Dense",
    "Diagonal",
    "Haar",
    "Kronecker",
    "Residual",
    "Rounded",
    "Spans",
    "Strategy",
    "Toeplitz",
    "Tree",
    "rounded",
]
