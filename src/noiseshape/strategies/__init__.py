"""Strategies as they are executed: integer rows, dyadic scales, exact costs."""

from .dense import Dense
from .diagonal import Diagonal
from .kronecker import Kronecker
from .residual import Residual
from .rounding import Rounded, rounded
from .strategy import Strategy

__all__ = ["Dense", "Diagonal", "Kronecker", "Residual", "Rounded", "Strategy", "rounded"]
