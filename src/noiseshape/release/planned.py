"""What a release needs of any kind of plan, and what any kind of plan hands back.

Tables, matrices and whatever else is measured go through one order of events (run.py), one
staging folder, one debit and one publication; they differ in what is said here.

    a plan      says what it costs, which data it reads, how it is measured
    a release   says how its answers are rebuilt, written and read again

``PLANS`` and ``RELEASES`` name the kinds by the word in the seal of their files.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

from ..archive import kind_of, read_text, sealed, unsealed, write_whole
from ..errors import InvalidInput
from ..privacy import Budget, Cost, People
from ..privacy.ledger import Charge
from ..strategies.exact import Integers

if TYPE_CHECKING:
    from ..privacy import Ledger
    from ..report import Report
    from .chunks import Chunks
    from .source import Source
    from .table import Table

FORMAT = 1

R = TypeVar("R", bound="Released")

# The word in a file's seal, and the class that reads it: imported when such a file is met.
PLANS: Mapping[str, str] = {
    "plan": "noiseshape.release.plan:Plan",
    "matrix plan": "noiseshape.release.matrixplan:MatrixPlan",
    "marginals plan": "noiseshape.release.marginalsplan:MarginalsPlan",
    "ordered plan": "noiseshape.release.orderedplan:OrderedPlan",
    "rows plan": "noiseshape.release.rowsplan:RowsPlan",
    "union plan": "noiseshape.release.unionplan:UnionPlan",
}
RELEASES: Mapping[str, str] = {
    "release": "noiseshape.release.release:Release",
    "matrix release": "noiseshape.release.matrixrelease:MatrixRelease",
    "marginals release": "noiseshape.release.marginalsrelease:MarginalsRelease",
    "ordered release": "noiseshape.release.orderedrelease:OrderedRelease",
    "rows release": "noiseshape.release.rowsrelease:RowsRelease",
    "union release": "noiseshape.release.unionrelease:UnionRelease",
}


class Planned(ABC):
    """A plan of any kind: made before data is touched, and holding nothing of it."""

    kind: ClassVar[str]
    """The word in the seal of its file."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What one release costs, exactly, from the integers that are executed."""

    @property
    @abstractmethod
    def people(self) -> People:
        """Whose privacy."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of everything that the plan says: releases and ledger entries carry it."""

    @abstractmethod
    def source(self, data: Any) -> Source:
        """Return what will be read, checked as far as declarations tell: no row is read."""

    @abstractmethod
    def rehearse(self) -> None:
        """Rebuild answers to public numbers, so that what cannot be is found before the debit."""

    @abstractmethod
    def charge(self, who: str, what: str) -> Charge:
        """Return what the ledger is told; ``what`` is never empty in it."""

    @abstractmethod
    def measured(self, x: Any) -> Integers:
        """Return the measurement of what the source read, (k,): through ``measure`` alone."""

    @abstractmethod
    def released(self, y: Integers, stamp: Stamp | None, when: str) -> Released:
        """Return what may be published of a measurement: the one that was just kept, or paid."""

    @abstractmethod
    def errors(self) -> Table:
        """Return how accurate every answer will be."""

    @abstractmethod
    def summary(self) -> Table:
        """Return one line for each thing that is asked, with its greatest error."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what the plan comes to, for programs: numbers, texts and lists of them."""

    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """Return what the plan comes to beside its cost, in sentences."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many answers it gives."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say the plan; nothing of the data."""

    @classmethod
    @abstractmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return the plan that ``to_json`` said; costs and errors are computed anew."""

    def text(self) -> str:
        """Return what the plan's file says: nothing of the data."""
        return sealed(self.kind, FORMAT, self.to_json())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file that holds nothing of the data."""
        text = self.text()
        try:
            write_whole(path, text)
        except (OSError, ValueError):
            raise InvalidInput(
                f"the plan cannot be written to {os.fspath(path)}: name a file in a folder that "
                "exists and can be written in."
            ) from None

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        delta: float = 1e-9,
        title: str = "",
        ledger: Ledger | None = None,
        compare: bool = True,
    ) -> Report:
        """Return the plan's report, one HTML file to be looked at; write it, if a path is given.

        Parameters
        ----------
        delta
            The delta at which epsilon is stated; the curve in it has every other.
        title
            What the report is called.
        ledger
            The budget that would pay: what is left of it, and what this plan would take.
        compare
            Whether to design other noise for comparison, where that is quick.
        """
        from ..report import of_plan

        made = of_plan(self, delta=delta, title=title, ledger=ledger, compare=compare)
        if path is not None:
            made.save(path)
        return made

    def _repr_html_(self) -> str:
        from ..report.scraps import of_plan

        return of_plan(self)

    def __rich__(self) -> Any:
        from ..report.terminal import of_plan

        return of_plan(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan of this kind; refuse a file that is altered, newer, or not such a plan."""
        text = read_text(path, "plan")
        return cls.from_json(unsealed(cls.kind, FORMAT, text, os.fspath(path)))


class Scaled(Planned, Generic[R]):
    """A plan that has a scale, and whose releases are ``R``: what people call on it."""

    @abstractmethod
    def _scaled(self, factor: float) -> Self:
        """Return the same shape with every sigma multiplied, and rounded up."""

    def within(self, budget: Budget) -> Self:
        """Return the same shape scaled to spend the budget, and never more (FFU Problem 2).

        ``k`` of the result says by which factor every variance target is then met or missed.
        """
        is_budget(budget)
        factor = math.sqrt(float(self.cost.mu_squared / budget.mu_squared))
        if not factor > 0:
            raise InvalidInput("this plan costs nothing: no scale of it spends a budget.")
        plan = self._scaled(factor)
        while not budget.allows(plan.cost):  # scales and weights are rounded: a hair more noise
            factor *= 1 + 2.0**-33
            plan = self._scaled(factor)
        return plan

    def release(
        self,
        data: Source | Any = None,
        *,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        out: str | os.PathLike[str] | None = None,
        who: str = "",
        what: str = "",
        vintage: str | None = None,
        unrecorded: bool = False,
        resume: int | None = None,
    ) -> R:
        """Debit the ledger, measure the data with exact noise, rebuild, and publish.

        Without ``data``: the rows that a matrix query was asked of. See
        :func:`noiseshape.release.run.run` for the order of events and what each refusal means.
        """
        from .run import run

        made = run(
            self,
            data,
            ledger=ledger,
            out=out,
            who=who,
            what=what,
            vintage=vintage,
            unrecorded=unrecorded,
            resume=resume,
        )
        return cast("R", made)


def is_budget(budget: object) -> None:
    """Refuse what is no budget."""
    if not isinstance(budget, Budget):
        raise InvalidInput(
            f"a budget must be a Budget, got {type(budget).__name__}: Budget(epsilon=1, "
            "delta=1e-9), Budget(rho=0.1) or Budget(mu=0.5)."
        )


class InChunks(Planned):
    """A plan whose measurement memory does not hold: it is kept chunk by chunk as it is made."""

    @abstractmethod
    def kept_in(self, folder: Path, entry: str) -> Chunks:
        """Return where the chunks of a ledger entry are kept."""

    @abstractmethod
    def measured(self, x: Any, kept: Chunks | None = None) -> Any:
        """Measure the chunks that are missing, through ``measure`` alone; return all of them."""


@dataclass(frozen=True)
class Stamp:
    """The ledger entry that paid: its number, and its hash, which finds a replaced ledger."""

    number: int
    hash: str


class Released(ABC):
    """A measurement that was paid for, of any kind, and what follows from it.

    Attributes
    ----------
    plan
        What was asked, and the strategy as it was executed.
    stamp
        The ledger entry that paid, or None for an unrecorded release.
    when
        When it was paid for: UTC, ISO 8601.

    Everything here may be published: it is post-processing of the measured integers.
    """

    kind: ClassVar[str]
    """The word in the seal of its file."""

    plan: Planned
    stamp: Stamp | None
    when: str

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 of what was measured: two releases of one ledger entry must share it."""

    @abstractmethod
    def settle(self) -> None:
        """Rebuild the answers now, so that nothing is left to fail later."""

    @abstractmethod
    def table(self) -> Table:
        """Return answers with their errors and intervals."""

    @abstractmethod
    def files(self, folder: Path) -> None:
        """Write the answers into a folder that is about to be published."""

    @abstractmethod
    def told(self) -> dict[str, Any]:
        """Return mechanism, accuracy, design and rows, for the provenance."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values from which, with ``files``, the release is made again."""

    @classmethod
    @abstractmethod
    def from_json(cls, content: dict[str, Any], folder: Path | None = None) -> Self:
        """Return the release that ``to_json`` said; ``folder`` holds what ``files`` wrote."""

    def verify(self, ledger: Ledger) -> None:
        """Raise unless ``ledger`` holds the entry that paid for this very release."""
        from .run import paid_for

        if self.stamp is None:
            raise InvalidInput("this release is unrecorded: no ledger paid for it.")
        ledger.verify(self.stamp.hash)
        (entry,) = (e for e in ledger.history() if e.hash == self.stamp.hash)
        mine = self.plan.charge("anybody", "")
        if entry.number != self.stamp.number or not paid_for(entry.charge, mine):
            raise InvalidInput(
                f"ledger entry {entry.number} paid for another release than this one: find the "
                "ledger that paid for it, and trust its numbers no further until then."
            )

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        delta: float = 1e-9,
        title: str = "",
        ledger: Ledger | None = None,
        compare: bool = True,
    ) -> Report:
        """Return the report, one HTML file to be looked at; write it, if a path is given.

        Parameters are those of :meth:`Planned.report`. Without a ledger it is a function of the
        release alone: the file that is published with it.
        """
        from ..report import of_release

        made = of_release(self, delta=delta, title=title, ledger=ledger, compare=compare)
        if path is not None:
            made.save(path)
        return made

    def _repr_html_(self) -> str:
        from ..report.scraps import of_release

        return of_release(self)

    def __rich__(self) -> Any:
        from ..report.terminal import of_release

        return of_release(self)

    def write(self, out: str | os.PathLike[str]) -> None:
        """Publish in a new folder: CSV, Parquet, report, provenance, y and A for later use."""
        from .publication import publish, writable

        writable(out)
        publish(self, out)

    @classmethod
    def read(cls, out: str | os.PathLike[str]) -> Self:
        """Read a published release of this kind; refuse one that was altered."""
        from .publication import published

        made = published(out)
        if not isinstance(made, cls):
            raise InvalidInput(
                f"{os.fspath(out)} holds a {made.kind}, and a {cls.kind} is read here: "
                "noiseshape.read(folder) reads any."
            )
        return made


def load(path: str | os.PathLike[str]) -> Planned:
    """Read a plan of any kind."""
    made = _kind(PLANS, "plan", read_text(path, "plan"))
    loaded: Planned = made.load(path)
    return loaded


def opened(path: Path) -> Released:
    """Read the sealed file of a published release, of any kind, and what lies beside it."""
    text, where = read_text(path, "release"), os.fspath(path)
    made = _kind(RELEASES, "release", text)
    release: Released = made.from_json(unsealed(made.kind, FORMAT, text, where), path.parent)
    return release


def _kind(kinds: Mapping[str, str], usual: str, text: str) -> Any:
    """Return the class that reads a file: told by its seal; the usual one says what is wrong."""
    module, name = kinds.get(kind_of(text), kinds[usual]).split(":")
    return getattr(import_module(module), name)
