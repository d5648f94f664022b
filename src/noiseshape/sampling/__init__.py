"""Exact noise: integers distributed as a rounded normal, drawn from the operating system's bits."""

from .gaussian import rounded_gaussian
from .variance import rounded_variance

__all__ = ["rounded_gaussian", "rounded_variance"]
