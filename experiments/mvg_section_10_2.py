"""MVG, section 10.2: two features kept and the rest dropped, against directional noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import data
from .baselines import additive, projection
from .baselines.ridge import KERNELS, predicted, rmse
from .harness import Case, Experiment, Rows, Size, Verdict, generator, mean, printed
from .matrix_noise import (
    FIXED,
    FIXED_SKETCH,
    WEIGHT,
    Release,
    Setup,
    binary_sigma,
    box_sigma,
    noisy,
    weighted,
)
from .mvg_table_3 import EPSILON, IMPORTANT, SETUPS, split
from .tables import by_method, pictured, summary
from .trials import packed

NAME = "mvg-section-10-2"
SUBSPACE = [data.LIVER.index(name) for name in ("ALT", "Y")]
TRIALS = {"tiny": 3, "default": 100, "full": 1000}


def cases(size: Size) -> list[Case]:
    """Return a case for each set-up."""
    return [Case(name, partial(_trials, setup, TRIALS[size])) for name, setup in SETUPS.items()]


def _releases(setup: Setup, small: Setup) -> dict[str, tuple[list[int], Release]]:
    """Return the columns kept and the release of each method."""
    every = list(range(setup.features))
    classic = additive.classic_sigma(small.change, EPSILON, small.delta)
    weights = weighted(setup.features, IMPORTANT, WEIGHT)

    def sketched(X: Any, rng: np.random.Generator) -> Any:
        return projection.sketch(X, FIXED_SKETCH, small.change, EPSILON, small.delta, rng)

    B = setup.budget(EPSILON)
    return {
        "Gaussian, subspace": (SUBSPACE, partial(noisy, sigma=classic)),
        "Johnson-Lindenstrauss, subspace": (SUBSPACE, sketched),
        "IMGM, subspace": (SUBSPACE, partial(noisy, sigma=small.change / B)),
        "MVG, domain knowledge": (
            every,
            partial(noisy, sigma=binary_sigma(setup, EPSILON, IMPORTANT, FIXED)),
        ),
        "ours, directional": (
            every,
            partial(noisy, sigma=box_sigma(setup.width, weights, B)),
        ),
    }


def _trials(setup: Setup, trials: int) -> Rows:
    """Return a row for each trial, method and kernel."""
    small = Setup(setup.name, setup.records, len(SUBSPACE), setup.low, setup.high)
    rows: Rows = []
    for trial in range(trials):
        train, test = split(setup, trial)
        for method, (kept, release) in _releases(setup, small).items():
            seen = release(train[:, kept], generator(NAME, setup.name, method, trial))
            for kernel in ("linear",) if method.startswith("Johnson") else KERNELS:
                guess = predicted(seen[:, :-1], seen[:, -1], test[:, kept[:-1]], kernel)
                rows.append(_row(setup, method, kernel, trial, rmse(guess, test[:, -1])))
        for kernel in KERNELS:
            whole = list(range(setup.features))
            for label, kept in (("non-private", whole), ("non-private, subspace", SUBSPACE)):
                X, Y = train[:, kept], test[:, kept]
                guess = predicted(X[:, :-1], X[:, -1], Y[:, :-1], kernel)
                rows.append(_row(setup, label, kernel, trial, rmse(guess, Y[:, -1])))
    return packed(rows)


def _row(setup: Setup, method: str, kernel: str, trial: int, error: float) -> dict[str, Any]:
    return {
        "setup": setup.name,
        "method": method,
        "parameter": "",
        "kernel": kernel,
        "trial": trial,
        "error": error,
    }


def table(rows: Rows) -> Rows:
    """Return a row a method and kernel."""
    return summary(NAME, rows, ("kernel",), scale=100)


def verdict(rows: Rows) -> Verdict:
    """Say whether directions beat the subspace, at equal privacy."""
    known = printed(NAME)["values"]
    told = []
    for setup in SETUPS:
        found = by_method(rows, setup=setup, kernel="linear")
        difference = mean(np.array(found["IMGM, subspace"]) - np.array(found["ours, directional"]))
        ahead = (
            "directional noise on all features is better"
            if difference.mean > 0
            else ("the subspace is better")
        )
        if abs(difference.mean) <= difference.half:
            ahead = "neither is better beyond the interval"
        told.append(f"{ahead} ({setup}: {difference.mean:.3f} ± {difference.half:.2g})")
    drop = mean(by_method(rows, setup="full version", kernel="linear")["non-private, subspace"])
    return Verdict(
        "cannot be reproduced",
        "At this epsilon all of these releases are mostly noise, and errors of "
        f"{known['Gaussian, subspace']['mean']}e-2 cannot come of any: without noise two features "
        f"alone err by {drop.mean:.3f}. With exact noise at the same cost, linear kernel, "
        f"{'; '.join(told)}: fewer features also take less noise each, which the paper's "
        "comparison does not weigh.",
    )


def picture(rows: Rows) -> Any:
    """Return the errors with the linear kernel."""
    return pictured(NAME, rows, "Two features, or all with directions", 100, kernel="linear")


EXPERIMENT = Experiment(
    title="a subspace against directions",
    protocol=(
        "The splits of Table 3, 100 trials. Subspace: only ALT and Y are released, with the noise "
        "that two features take; directions: all six, with less noise on those two. Kernels, "
        "ridge, tau and weight as there."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
