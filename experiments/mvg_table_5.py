"""MVG, Table 5: all principal components of Cardiotocography, from a noisy copy of the data."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import data
from .harness import Case, Experiment, Floats, Rows, Size, Verdict, generator, mean, printed, shown
from .matrix_noise import FIXED, Setup, binary_sigma, identity_mechanisms, moment
from .tables import by_method, pictured, summary
from .trials import packed

NAME = "mvg-table-5"
EPSILON = 1.0
IMPORTANT = data.ctg_columns("LB", "ASTV", "ALTV")
SETUP = Setup("both versions", 2126, 21, 0.0, 1.0)
# The text defines the covariance as X X^T / n; beside it, about the means, as the word means.
ABOUT = ("as described", "about the means")
TRIALS = {"tiny": 2, "default": 100, "full": 1000}
CHUNK = {"tiny": 2, "default": 20, "full": 20}


def cases(size: Size) -> list[Case]:
    """Return cases of a few trials."""
    return [
        Case(f"trials {first} to {first + CHUNK[size] - 1}", partial(_trials, first, CHUNK[size]))
        for first in range(0, TRIALS[size], CHUNK[size])
    ]


def residual(released: Floats, S: Floats) -> float:
    """Return RSS: sum_i (lambda_i - v_i^T S v_i)^2, v_i the components of what was released."""
    _, V = np.linalg.eigh(released)
    captured = np.einsum("ij,jk,ki->i", V.T, S, V)
    return float(((np.linalg.eigvalsh(S) - captured) ** 2).sum())


def second_moment(X: Floats, about: str) -> Floats:
    """Return ``X^T X / n``, or the covariance about the means."""
    return moment(X - X.mean(axis=0) if about == "about the means" else X)


def _trials(first: int, count: int) -> Rows:
    """Return a row for each trial, method and parameter."""
    X = data.ctg()
    truth = {about: second_moment(X, about) for about in ABOUT}
    rows: Rows = []

    def row(about: str, method: str, parameter: str, trial: int | None, error: float) -> None:
        rows.append(
            {
                "setup": about,
                "method": method,
                "parameter": parameter,
                "trial": trial,
                "error": error,
            }
        )

    methods = identity_mechanisms(SETUP, EPSILON, IMPORTANT)
    for trial in range(first, first + count):
        for method, releases in methods.items():
            for parameter, release in releases.items():
                noisy = release(X, generator(NAME, method, parameter, trial))
                # A sketch knows second moments about 0 only.
                for about in ABOUT[:1] if method.startswith("Johnson") else ABOUT:
                    error = residual(second_moment(noisy, about), truth[about])
                    row(about, method, parameter, trial, error)
        Q = np.linalg.qr(generator(NAME, "guess", trial).standard_normal((21, 21)))[0]
        for about in ABOUT:
            error = residual(Q @ np.diag(np.arange(21.0)) @ Q.T, truth[about])
            row(about, "random guess", "", trial, error)
    if first == 0:
        for about in ABOUT:
            row(about, "non-private", "", None, residual(truth[about], truth[about]))
        sigma = binary_sigma(SETUP, EPSILON, IMPORTANT, FIXED)
        rows.append(
            {
                "method": "facts",
                "least sigma": float(sigma.min()),
                "greatest sigma": float(sigma.max()),
                "sigma, IMGM": SETUP.change / SETUP.budget(EPSILON),
            }
        )
    return packed(rows)


def table(rows: Rows) -> Rows:
    """Return a row a method: printed, and measured."""
    return summary(NAME, [r for r in rows if "errors" in r], scale=100)


def verdict(rows: Rows) -> Verdict:
    """Say what a random guess loses, and what the noise is."""
    known = printed(NAME)["values"]
    (f,) = (r for r in rows if r["method"] == "facts")
    told = []
    for about in ABOUT:
        found = {m: mean(errors) for m, errors in by_method(rows, setup=about).items()}
        guess, mvg = found["random guess"], found["MVG, domain knowledge"]
        better = [
            method
            for method, e in found.items()
            if method != "non-private" and e.mean + e.half < guess.mean - guess.half
        ]
        told.append(
            f"{about}, a random basis loses {100 * guess.mean:.1f}e-2 and MVG "
            f"{100 * mvg.mean:.1f}e-2; less than a random basis, beyond both intervals: "
            f"{', '.join(better) or 'none'}"
        )
    return Verdict(
        "cannot be reproduced",
        "Theorem 2, as Algorithm 1 uses it, prescribes noise of a standard deviation of "
        f"{shown(f['least sigma'])} to {shown(f['greatest sigma'])} for data in [0, 1]; IMGM needs "
        f"{f['sigma, IMGM']:.1f}. Components of such noise are those of nothing. With second "
        f"moments {'. With those '.join(told)}. Printed: {known['random guess']['mean']}e-2 and "
        f"{known['MVG, domain knowledge']['mean']}e-2. (The exponential mechanism's databases stay "
        "in the domain, and so keep the direction of its middle, which has much of the first "
        "component about 0.)",
    )


def picture(rows: Rows) -> Any:
    """Return the loss of each method."""
    return pictured(NAME, [r for r in rows if "errors" in r], "Components of Cardiotocography", 100)


EXPERIMENT = Experiment(
    title="all principal components of Cardiotocography",
    protocol=(
        "100 trials of fresh noise on the data matrix (2,126 x 21, scaled from the columns' "
        "extremes to [0, 1]; both versions have the same set-up); error: residual sum of squares "
        "of the variances that the components of the noisy second moment capture, as the text "
        "defines it and about the means. epsilon = 1, "
        "delta = 1/n; tau, weights and rows of a sketch fixed beforehand, and in hindsight."
    ),
    cases=cases,
    table=table,
    verdict=verdict,
    picture=picture,
)
