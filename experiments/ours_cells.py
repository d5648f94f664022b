"""Marginals over 10^100 cells."""

from __future__ import annotations

import itertools
import math
import time
from functools import partial
from typing import Any

import numpy as np

from noiseshape.design import marginals

from .harness import Case, Experiment, Rows, Size, Verdict, generator
from .pictures import lines

NAME = "ours-cells"
VALUES, WAYS = 10, 3
ATTRIBUTES: dict[Size, tuple[int, ...]] = {
    "tiny": (3, 5),
    "default": (5, 10, 20, 50, 100),
    "full": (5, 10, 20, 50, 100, 150),
}


def cases(size: Size) -> list[Case]:
    """Return a case for each number of attributes."""
    return [Case(f"{n} attributes", partial(_rows, n)) for n in ATTRIBUTES[size]]


def _rows(attributes: int) -> Rows:
    """Return how long all marginals of one to three attributes take, each with its own target."""
    asked = [
        s for way in range(1, WAYS + 1) for s in itertools.combinations(range(attributes), way)
    ]
    c = generator(NAME, attributes).uniform(1, 10, size=len(asked))
    begun = time.process_time()
    made = marginals([VALUES] * attributes, asked, c, gap=1e-3)
    seconds = time.process_time() - begun
    # Noise on the cells: a marginal of w attributes sums 10^(attributes - w) of them.
    sizes = np.array([len(s) for s in asked])
    logs = (attributes - sizes) * math.log10(VALUES) - np.log10(c)
    return [
        {
            "attributes": attributes,
            "cells": f"10^{attributes}",
            "marginals": len(asked),
            "answers": int((float(VALUES) ** sizes).sum()),
            "mu^2": made.scaled(1 / made.k).alpha,
            "gap": made.certificate.gap,
            "steps": made.certificate.iterations,
            "seconds": seconds,
            "log10 of mu^2, noise on the cells": float(logs.max()),
        }
    ]


def table(rows: Rows) -> Rows:
    """Return the rows as they are."""
    return rows


def verdict(rows: Rows) -> Verdict:
    """Say what the largest took."""
    last = rows[-1]
    return Verdict(
        "ours",
        f"All {last['marginals']:,} marginals of up to three of {last['attributes']} attributes, "
        f"{last['cells']} cells that are never formed, are certified to {last['gap']:.1e} in "
        f"{last['seconds']:.1f} s; noise on the cells would cost 10^"
        f"{last['log10 of mu^2, noise on the cells'] - math.log10(last['mu^2']):.0f} times the "
        "mu^2.",
    )


def picture(rows: Rows) -> Any:
    """Return seconds against the number of marginals."""
    points = [{**r, "by": "certified to 1e-3"} for r in rows]
    title = "Marginals of up to three attributes of ten values"
    return lines(points, "marginals", "seconds", "by", title, log_x=True, log_y=True)


EXPERIMENT = Experiment(
    title="marginals over 10^100 cells",
    protocol=(
        "Attributes of ten values; all marginals of one, two and three of them, each with its own "
        "target, uniform on (1, 10); from the call to the certified design."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
