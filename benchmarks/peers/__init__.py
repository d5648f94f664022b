"""Solvers that the papers compare with, for development only: nothing in the package uses them."""
