"""What a report consists of, for plans and releases of any kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from html import escape
from importlib import import_module
from typing import Any

from .._arb import fraction_up
from .._version import __version__
from ..design.certificate import COST
from ..errors import NoiseshapeError
from ..privacy import Cost, Ledger
from ..release.planned import Planned, Released
from . import planned, words
from .page import Report, Section, listed, page, pairs, said, shown
from .picture import DERIVED, END
from .svg import chance, number

DELTA = 1e-9

# The kind of a plan, and the module that says what is particular to it; "plain" says the rest.
KINDS: Mapping[str, str] = {
    "plan": "noiseshape.report.tables",
    "matrix plan": "noiseshape.report.matrices",
    "marginals plan": "noiseshape.report.marginals",
}
PLAIN = "noiseshape.report.plain"


def of_plan(
    plan: Planned,
    *,
    delta: float = DELTA,
    title: str = "",
    ledger: Ledger | None = None,
    compare: bool = True,
) -> Report:
    """Return the report of a plan: what it would release, at what cost, how accurately.

    Parameters
    ----------
    delta
        The delta at which epsilon is stated; the curve has every other.
    title
        What the report is called.
    ledger
        The budget that would pay: what is left of it, and what this plan would take.
    compare
        Whether to design other noise for comparison, where that is quick.
    """
    kind = _kind(plan)
    return page(
        title or kind.subject(plan) or f"{plan.count:,} statistics",
        "Plan: no data has been touched",
        _lead(plan, "would be released"),
        _facts(plan, delta),
        [
            Section("what", "What would be released, and about whom", _about(plan, kind)),
            _privacy(plan, delta),
            *kind.sections(plan, delta, compare=compare),
            Section("budget", "The budget", _budget(ledger, plan)),
            Section("provenance", "Particulars", pairs(_particulars(plan))),
        ],
    )


def of_release(
    release: Released,
    *,
    delta: float = DELTA,
    title: str = "",
    ledger: Ledger | None = None,
    compare: bool = True,
) -> Report:
    """Return the report of a release: what was released, at what cost, how accurately.

    It is a function of the release alone (and of the ledger, where one is given); parameters are
    those of ``of_plan``.
    """
    plan = release.plan
    kind = _kind(plan)
    paid = (
        "unrecorded: no ledger accounts for this release"
        if release.stamp is None
        else f"ledger entry {release.stamp.number}, {release.stamp.hash}"
    )
    history = [("released", release.when), ("paid by", paid)]
    return page(
        title or kind.subject(plan) or f"{plan.count:,} statistics",
        f"Released {_day(release.when)}",
        _lead(plan, "were released"),
        _facts(plan, delta),
        [
            Section("what", "What was released, and about whom", _about(plan, kind)),
            Section("values", "The released numbers", kind.values(release)),
            _privacy(plan, delta),
            *kind.sections(plan, delta, compare=compare),
            Section("budget", "The budget", _budget(ledger, None)),
            Section(
                "provenance",
                "Provenance",
                pairs([*history, *_particulars(plan)])
                + f"<p>SHA-256 of what was measured: <code>{DERIVED}{release.fingerprint}{END}"
                "</code></p>",
            ),
            Section("cite", "How to cite these numbers", _cite(release, kind.subject(plan))),
        ],
    )


def of_parts(
    parts: Mapping[str, Planned] | Mapping[str, Released],
    *,
    delta: float = DELTA,
    title: str = "",
    ledger: Ledger | None = None,
    compare: bool = True,
) -> Report:
    """Return one report of several plans, or of several releases, that are paid for together.

    Parameters are those of ``of_plan``; the parts are told one after the other, by their names.
    """
    plans = {n: part.plan if isinstance(part, Released) else part for n, part in parts.items()}
    first, *others = (plan.cost for plan in plans.values())
    cost = sum(others, first)
    people = next(iter(plans.values())).people
    sections = [
        Section(
            "privacy",
            "What all parts cost together",
            listed(words.plainly(cost, people)) + shown(planned.curve(cost, delta)),
        )
    ]
    for number_, (name, part) in enumerate(parts.items(), 1):
        plan = plans[name]
        kind = _kind(plan)
        told = [Section("what", "what, and about whom", _about(plan, kind))]
        if isinstance(part, Released):
            told.append(Section("values", "the released numbers", kind.values(part)))
        told += kind.sections(plan, delta, compare=compare)
        facts = [("released", part.when)] if isinstance(part, Released) else []
        told.append(Section("made", "particulars", pairs([*facts, *_particulars(plan)])))
        sections += [
            Section(
                f"part-{number_}-{s.name}", f"{name}: {s.title[0].lower()}{s.title[1:]}", s.body
            )
            for s in told
        ]
    sections.append(Section("budget", "The budget", _budget(ledger, None)))
    count = sum(plan.count for plan in plans.values())
    done = any(isinstance(part, Released) for part in parts.values())
    return page(
        title or f"{len(parts)} parts: {', '.join(parts)}",
        "Released" if done else "Plan: no data has been touched",
        f"{count:,} answers in {len(parts)} parts, with noise that hides {words.whom(people)}.",
        _privacy_facts(cost, delta),
        sections,
    )


def _kind(plan: Planned) -> Any:
    return import_module(KINDS.get(plan.kind, PLAIN))


def _about(plan: Planned, kind: Any) -> str:
    return said(words.neighbours(plan.people)) + str(kind.asked(plan))


def _privacy(plan: Planned, delta: float) -> Section:
    return Section(
        "privacy",
        "What it costs in privacy",
        listed(words.plainly(plan.cost, plan.people)) + shown(planned.curve(plan.cost, delta)),
    )


def _lead(plan: Planned, verb: str) -> str:
    answers = "1 answer" if plan.count == 1 else f"{plan.count:,} answers"
    verb = verb.replace("were", "was") if plan.count == 1 else verb
    return f"{answers} {verb}, with noise that hides {words.whom(plan.people)}."


def _facts(plan: Planned, delta: float) -> list[tuple[str, str]]:
    found = _privacy_facts(plan.cost, delta)
    k = _missed(plan)
    if k is not None:
        met = k <= 1 + 1e-9
        worst = "the worst standard error, over its target"
        found.append(
            ("all met", "accuracy targets") if met else (f"{number(math.sqrt(k))}\u00d7", worst)
        )
    proof = getattr(plan, "certificate", None)
    if proof is not None and proof.lower > 0:
        own = "" if proof.covers == COST else ", of its own objective"
        found.append(
            (f"{100 * max(proof.gap, 1e-6):.2g} %", f"at most from the optimum, proven{own}")
        )
    return found


def _privacy_facts(cost: Cost, delta: float) -> list[tuple[str, str]]:
    return [
        (f"\u03b5 {number(cost.epsilon(delta))}", f"epsilon at delta {chance(delta)}, rounded up"),
        (f"\u03bc {number(cost.mu)}", "the same as one number: Gaussian privacy"),
    ]


def _missed(plan: Planned) -> float | None:
    """Return by which factor of variance targets are met or missed; None without targets."""
    try:
        k = getattr(plan, "k", None)
    except NoiseshapeError:
        return None
    return k if isinstance(k, float) else None


def _budget(ledger: Ledger | None, plan: Planned | None) -> str:
    if ledger is None:
        return ""
    cap, spent = ledger.budget.mu_squared, ledger.spent().mu_squared
    parts = [("spent", float(spent), "blue")]
    sentences = [
        f"The ledger allows {ledger.budget.stated} in all, fixed when it was made; its vintage is "
        f"{ledger.vintage or 'not named'}; releases so far: {len(ledger.history())}."
    ]
    if plan is not None:
        more = ledger.would_cost(plan.charge("anybody", "")).mu_squared
        if spent + more > cap:
            sentences.append("This plan does not fit into what is left.")
        parts.append(("this plan", fraction_up(more), "orange"))
    parts.append(("left", max(0.0, float(cap) - sum(size for _, size, _ in parts)), "left"))
    return said(*sentences) + planned.budget(parts, float(cap)).html()


def _particulars(plan: Planned) -> list[tuple[str, str]]:
    return [
        ("cost, exactly", f"mu\u00b2 = {_exact(plan.cost.mu_squared)}"),
        ("zero-concentrated", f"rho = {number(plan.cost.rho)}"),
        ("neighbours", f"{plan.people.neighbours}; unit {words.person(plan.people)}"),
        ("plan", plan.digest),
        ("software", f"Noiseshape {__version__}"),
    ]


def _exact(value: Fraction) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{number(fraction_up(value))}, rounded up"


def _cite(release: Released, subject: str) -> str:
    plan, people = release.plan, release.plan.people
    paid = "" if release.stamp is None else f" Ledger entry {release.stamp.hash[:16]}."
    epsilon = plan.cost.epsilon(DELTA)
    note = (
        f"Source: {subject or 'these statistics'}, released {_day(release.when)} with differential "
        f"privacy (Gaussian noise, mu = {plan.cost.mu:.4g}; epsilon = {epsilon:.4g} at delta = "
        f"{chance(DELTA)}; {people.neighbours} neighbours, unit {words.person(people)}). Standard "
        f"errors are of the noise only. Noiseshape {__version__}, plan {plan.digest[:16]}.{paid}"
    )
    # The answer of a matrix is an array, and of no questions.
    derived = (
        "release.answer(...) has the exact error of sums, differences and other combinations"
        if callable(getattr(release, "answer", None))
        else "redraw noise of the released size and compute it again, which uses nothing private"
    )
    return (
        said("With a table or a figure that uses these numbers, say:")
        + f"<pre>{escape(note)}</pre>"
        + said(
            "Give standard errors or intervals with every number, and those of anything computed "
            f"from them: {derived}; adding up errors one by one gets it wrong."
        )
    )


def _day(when: str) -> str:
    return when[:10]
