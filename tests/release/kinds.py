"""Every kind of plan that goes through the one door, with neighbouring data.

``test_contract.py`` and ``test_replay.py`` try the door's promises on each: a new kind of plan
is one line here.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import noiseshape as ns


class Kind(NamedTuple):
    """How a plan is made, and two data sets that its people rule calls neighbours."""

    plan: Callable[[], Any]
    one: Callable[[], Any]
    two: Callable[[], Any]
    linear: bool = True  # whether answers are unbiased and their errors known beforehand


def prefixes(people=None):
    W = np.tril(np.ones((4, 4)))
    return ns.plan(ns.Queries(4, people, table="t").ask("up to", W, stderr=3))


def people(unit="rows"):
    rule = ns.People() if unit == "rows" else ns.People(unit, 2)
    schema = ns.Schema({"age": ns.integers(0, 3), "sex": ["F", "M"]})
    work = ns.Workload(schema, rule, table="people").marginal("sex", stderr=4)
    return ns.plan(work.sum("age", by="sex", stderr=9).ranges("age", [(0, 1), (2, 3)], stderr=5))


def moments():
    query = ns.second_moment(columns=["x", "y"], bounds={"x": (0, 1), "y": (-2, 2)})
    return ns.directional(query, stderr=3)


def data_matrix():
    query = ns.identity(bounds=(0, 1), columns=["x", "y"], n=3)
    return ns.kronecker(query, columns=[[2, 1], [1, 3]], stderr=2)


POINTS = np.array([[0.25, -1.0], [1.0, 0.5], [0.5, 2.0]])


def frame(persons):
    """Up to two rows of each person, in other cells."""
    rows = [(p, (p + i) % 4, "FM"[p % 3 % 2]) for p in range(persons) for i in range(1 + p % 2)]
    return pd.DataFrame(rows, columns=["pid", "age", "sex"])


def marginals(unit="rows", neighbours="add-remove"):
    rule = ns.People(neighbours=neighbours) if unit == "rows" else ns.People(unit, 2, neighbours)
    schema = ns.Schema({"age": ns.integers(0, 3), "sex": ["F", "M"]})
    work = ns.Workload(schema, rule, table="people").marginal("age", "sex", stderr=4)
    work.prefixes("age", by="sex", stderr=5).total(stderr=3)
    return ns.plan(work, by="marginals")


def in_order(neighbours="add-remove"):
    rule = ns.People(neighbours=neighbours)
    schema = ns.Schema({"sex": ["F", "M"], "age": ns.integers(0, 3)})
    work = ns.Workload(schema, rule, table="people").prefixes("age", by="sex", stderr=5)
    return ns.plan(work.total(by="sex", stderr=9), by="ordered")


def rows(changed=()):
    """Ten people with two numbers in [0, 1]; some of them as far as can be from themselves."""
    made = (np.arange(20).reshape(10, 2) * 7 % 11) / 11
    made[list(changed)] = np.rint(1 - made[list(changed)])
    return made


def square(**options):
    """A covariance of two columns in [0, 1], with a noisy count."""
    return ns.covariance(bounds=UNIT, expected=10, **options)


UNIT = {"a": (0, 1), "b": (0, 1)}
REPLACED = ns.People(neighbours="replace")


def union():
    schema = ns.Schema({"age": ns.integers(0, 3), "sex": ["F", "M"]})
    work = ns.Workload(schema, table="people").marginal("age", "sex", stderr=4)
    work.where("age >= 2", stderr=2).prefixes("age", stderr=5)  # residuals of sex beside ages
    return ns.plan(work.total(stderr=3), by="union")


KINDS = {
    "queries": Kind(prefixes, lambda: [5, 6, 7, 8], lambda: [5, 6, 8, 8]),
    "replace": Kind(
        lambda: prefixes(ns.People(neighbours="replace")),
        lambda: [5, 6, 7, 8],
        lambda: [6, 6, 7, 7],
    ),
    "workload": Kind(people, lambda: frame(10), lambda: frame(10)[:-1]),
    "moments": Kind(moments, lambda: POINTS, lambda: POINTS[:2]),
    "correlated": Kind(data_matrix, lambda: POINTS, lambda: np.vstack([POINTS[:2], [[0, 0]]])),
    "persons": Kind(lambda: people("pid"), lambda: frame(10), lambda: frame(9)),
    "union": Kind(union, lambda: frame(10), lambda: frame(10)[:-1]),
    "marginals": Kind(marginals, lambda: frame(10), lambda: frame(10)[:-1]),
    "marginals of persons": Kind(lambda: marginals("pid"), lambda: frame(10), lambda: frame(9)),
    "marginals, replaced": Kind(
        lambda: marginals(neighbours="replace"),
        lambda: frame(10),
        lambda: frame(10).assign(age=lambda rows: (rows.age + (rows.index == 3)) % 4),
    ),
    "in order": Kind(in_order, lambda: frame(10), lambda: frame(10)[:-1]),
    "in order, replaced": Kind(
        lambda: in_order("replace"),
        lambda: frame(10),
        lambda: frame(10).assign(age=lambda rows: (rows.age + (rows.index == 3)) % 4),
    ),
    "covariance": Kind(
        lambda: ns.directional(square(), weights=[[1, 2], [2, 3]]).within(ns.Budget(mu=1)),
        rows,
        lambda: rows()[1:],
        linear=False,
    ),
    "mean": Kind(
        lambda: ns.isotropic(ns.mean(bounds=UNIT, count=10, people=REPLACED), stderr=0.1),
        rows,
        lambda: rows([3]),
    ),
    "row by row": Kind(
        lambda: ns.directional(ns.identity(bounds=UNIT, n=1), stderr=[0.6, 0.4]).row_by_row(10),
        rows,
        lambda: rows([3]),
    ),
    "data matrix": Kind(
        lambda: ns.imgm(ns.identity(bounds=UNIT, n=10, people=REPLACED), rows=np.eye(10)),
        rows,
        lambda: rows([3]),
    ),
}


@cache
def planned(name):
    """The plan of a kind, made once."""
    return KINDS[name].plan()


@cache
def release_type(name):
    """The class of what a kind of plan releases."""
    return type(planned(name).release(KINDS[name].one(), unrecorded=True))
