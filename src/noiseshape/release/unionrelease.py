"""What may be published of a union: every answer, from the cells, from residuals or from both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..archive import unpack
from ..errors import InvalidInput
from .marginalsrelease import MarginalsRelease
from .planned import Stamp
from .unionplan import UnionPlan


@dataclass(frozen=True, eq=False, repr=False)
class UnionRelease(MarginalsRelease):
    """A measurement of a union that was paid for, and the answers that follow from it.

    Attributes
    ----------
    plan
        What was asked, and the strategy as it was executed.
    values : integers, shape (k,)
        y of the residuals, then of the cells: the only thing that came out of the data.
    stamp, when
        As of ``MarginalsRelease``.
    """

    kind = "union release"

    plan: UnionPlan

    def settle(self) -> None:
        """Rebuild the answers: first what the cells tell, however many there are."""
        cells = self.plan.cells.strategy
        cells.rebuild(self._rows(len(self.plan.joint.lattice)))
        super().settle()

    def told(self) -> dict[str, Any]:
        """Return mechanism, accuracy, design and rows, for the provenance."""
        said, plan = super().told(), self.plan
        design = {
            "shape": "union",
            "why": plan.why,
            "notes": list(plan.notes),
            "share of the cost over cells": plan.share,
            "cells of": [plan.asked.axes[i].column for i in plan.joint.inside],
            "certificate": plan.to_json()["certificate"],
        }
        return {**said, "design": design}

    @classmethod
    def from_json(cls, content: dict[str, Any], folder: Path | None = None) -> UnionRelease:
        """Return the release that ``to_json`` said; large ones have integers beside it."""
        from .matrixrelease import _beside

        try:
            stamp, values = content["ledger"], content["values"]
            return UnionRelease(
                UnionPlan.from_json(content["plan"]),
                _beside(values, folder) if "file" in values else unpack(values),
                None if stamp is None else Stamp(*stamp),
                str(content["when"]),
            )
        except (KeyError, TypeError):
            raise InvalidInput("the release lacks a part: restore it from a copy.") from None

    def __repr__(self) -> str:
        paid = "unrecorded" if self.stamp is None else f"ledger entry {self.stamp.number}"
        return f"UnionRelease({self.plan.count:,} answers, {self.plan.cost!r}, {paid})"
