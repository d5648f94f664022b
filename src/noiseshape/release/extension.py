"""Further queries inside the slack of a plan: answered at no extra cost (FFU 3.2.1).

A release costs its profile's greatest entry, mu^2. A second measurement whose profile stays
below mu^2 - profile_i in every cell i leaves that greatest entry as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..design.slack import NO_SLACK, fill
from ..errors import InvalidInput
from ..strategies import Dense, rounded
from ..tables.queries import Queries, replace_queries

if TYPE_CHECKING:
    from .plan import Plan


def extended(plan: Plan, queries: Queries) -> Plan:
    """Return a plan that measures what ``plan`` does, refined, and answers further queries too.

    Formal Guarantees:
      The result costs at most what the refined plan costs, compared as exact rationals.
    """
    if not plan.queries.same_subject(queries):
        raise InvalidInput(
            "further queries must be about the same cells, people, table and selection as the plan."
        )
    known = {query.name for query in plan.queries.queries}
    repeated = [query.name for query in queries.queries if query.name in known]
    if repeated:
        raise InvalidInput(
            f"a query named {repeated[0]!r} is planned already: give it another name."
        )
    base = plan.refine()
    room = base.slack() / base.queries.people.max_rows**2  # profiles count one row, costs k
    full = NO_SLACK * float(base.cost.mu_squared)
    from .plan import AIM, on_coordinates, per_row

    seen = per_row(queries, queries.matrix)
    design = fill(room, seen, queries.variance * AIM, least=full)
    A = on_coordinates(queries, design.A)
    further = rounded(A, queries.matrix, reach=queries.reach).strategy
    union = _union(base.strategy, further)
    asked = replace_queries(base.queries, base.queries.queries + queries.queries)
    proof = base.certificate
    if proof is not None:
        proof = replace(
            proof, covers=f"{proof.covers} of the first {base.strategy.queries} answers"
        )
    prices = base.prices
    if prices is not None:  # what fits into slack is free
        prices = np.append(prices, np.zeros(further.queries))
    made = replace(
        base, queries=asked, strategy=union, refined=False, certificate=proof, prices=prices
    )
    while made.cost.mu_squared > base.cost.mu_squared:  # by the last bits that rounding left
        further = further.scaled(1 + 2.0**-31)
        made = replace(made, strategy=_union(base.strategy, further))
    return made


def _union(first: Dense, second: Dense) -> Dense:
    rows = np.vstack([first.rows, second.rows])
    workload = np.vstack([first.workload, second.workload])
    return Dense(rows, np.concatenate([first.sigma, second.sigma]), workload, first.reach)
