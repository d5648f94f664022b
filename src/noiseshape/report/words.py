"""Privacy, people and proof in sentences that a committee can read."""

from __future__ import annotations

import math

from scipy.special import ndtr, ndtri

from ..design.certificate import COST, Certificate
from ..privacy import Cost, People


def person(people: People) -> str:
    """Return what one person is in the data."""
    if people.unit == "rows":
        return "one row"
    rows = "row" if people.max_rows == 1 else "rows"
    return f"up to {people.max_rows} {rows} of one {people.unit}"


def whom(people: People) -> str:
    """Return whom the noise hides."""
    return "every single person (one row each)" if people.unit == "rows" else person(people)


def neighbours(people: People) -> str:
    """Return what the promise is about: what is hidden of one person."""
    if people.neighbours == "add-remove":
        return (
            "Two data sets are neighbours when they differ in the presence of "
            f"{person(people)}: what is protected is even whether somebody is in the data at all."
        )
    return (
        f"Two data sets are neighbours when they differ in the values of {person(people)}: what is "
        "protected is everything that is said about somebody, but not how many there are."
    )


def guess(cost: Cost) -> float:
    """Return how often the best guess between two equally likely neighbours is right, at most."""
    return _up(float(ndtr(cost.mu / 2)))


def found(cost: Cost, alarms: float = 0.05) -> float:
    """Return the greatest chance to find a person who is there, at a rate of false alarms."""
    return _up(float(ndtr(float(ndtri(alarms)) + cost.mu)))


def _up(chance: float) -> float:
    """Round a chance up at the fourth digit, which covers what doubles err by."""
    return min(1.0, math.ceil(chance * 1e4 + 1e-6) / 1e4)


def plainly(cost: Cost, people: People) -> list[str]:
    """Return what the cost means for one person, without a formula."""
    question = (
        "whether one person is in the data"
        if people.neighbours == "add-remove"
        else "which of two versions of one person's values is in the data"
    )
    return [
        f"Suppose that somebody knows everything about everybody else, sees all that is published "
        f"here, and must decide {question}. Where both are equally likely beforehand, the best "
        f"possible guess is right {percent(guess(cost))} of the time; a coin is right 50 %.",
        f"If they may raise a false alarm about 5 in 100, they find at most "
        f"{100 * found(cost):.4g} in 100; blind alarms find 5.",
        "This holds against any method, any computer and any other knowledge, now and later. It is "
        "about these numbers alone: further releases about the same people add to it, which "
        "is what "
        "a ledger is for.",
    ]


def percent(share: float) -> str:
    """Return a share as it is read."""
    return f"{100 * share:.4g} %"


def proof(certificate: Certificate | None) -> str:
    """Return the certificate in one sentence."""
    if certificate is None:
        return "No proof of optimality was asked for: this design is for comparison."
    if not certificate.lower > 0:
        return "These targets cost nothing, which nothing undercuts."
    if certificate.covers.startswith(COST):
        part = "" if certificate.covers == COST else " (of the first answers, which it covers)"
        return (
            f"Proven: any Gaussian noise, of whatever shape, that meets these targets{part} "
            f"costs at "
            f"least mu = {certificate.lower**0.5:.6g}, and this design meets them at "
            f"{certificate.achieved**0.5:.6g}: at most {100 * certificate.gap:.2g} % in mu squared "
            "from the best there is."
        )
    return near(certificate) + " That is not the least privacy for these targets."


def near(certificate: Certificate) -> str:
    """Return how close a design is to the best for its objective."""
    share = f"{100 * certificate.gap:.2g} %" if certificate.gap > 1e-9 else "rounding errors"
    return f"Proven: the design is within {share} of the least {certificate.covers}."
