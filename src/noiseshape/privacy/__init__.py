"""What a release costs: the curve, costs and budgets, composition, and whose privacy it is."""

from .cost import (
    Budget,
    Cost,
    classic_sigma,
    compose,
    compose_profiles,
    mu_from_rdp,
    mu_from_rho,
)
from .curve import delta, epsilon, log_delta, mu
from .imgm import privacy_bound
from .ledger import Charge, Entry, Ledger
from .people import Neighbours, People
from .profile import Profile

__all__ = [
    "Budget",
    "Charge",
    "Cost",
    "Entry",
    "Ledger",
    "Neighbours",
    "People",
    "Profile",
    "classic_sigma",
    "compose",
    "compose_profiles",
    "delta",
    "epsilon",
    "log_delta",
    "mu",
    "mu_from_rdp",
    "mu_from_rho",
    "privacy_bound",
]
