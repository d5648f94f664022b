"""Fitness-for-use, Figure 3: two-way marginals with the first attribute (workload B)."""

from .marginal_figures import figure

EXPERIMENT = figure(
    2,
    "two-way marginals with the first attribute",
    "All two-way marginals with the first attribute",
)
