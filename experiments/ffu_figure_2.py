"""Fitness-for-use, Figure 2: one-way marginals (workload A)."""

from .marginal_figures import figure

EXPERIMENT = figure(1, "one-way marginals of binary attributes", "All one-way marginals")
