"""Whose privacy: what one person is in the data, and when two data sets are neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .._checks import whole
from ..errors import InvalidInput

Neighbours = Literal["add-remove", "replace"]


@dataclass(frozen=True)
class People:
    """Whose privacy is protected; part of every plan, release and ledger entry.

    Parameters
    ----------
    unit
        ``"rows"`` (each row is a person) or the name of the column that identifies one.
    max_rows
        The most rows of one person that count (k). It multiplies mu by k.
    neighbours
        ``"add-remove"``: data sets that differ by one person's presence.
        ``"replace"``: data sets of equal size that differ in one person's rows.

    Examples
    --------
    >>> People()
    People(unit='rows', max_rows=1, neighbours='add-remove')
    """

    unit: str = "rows"
    max_rows: int = 1
    neighbours: Neighbours = "add-remove"

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or not self.unit or not self.unit.isprintable():
            raise InvalidInput('unit must be "rows" or the name of a column.')
        object.__setattr__(self, "max_rows", whole("max_rows", self.max_rows))
        if self.neighbours not in ("add-remove", "replace"):
            raise InvalidInput(
                f'neighbours must be "add-remove" or "replace", got {self.neighbours!r}.'
            )
        if self.unit == "rows" and self.max_rows != 1:
            raise InvalidInput(
                f'with unit "rows" a person is one row, so max_rows must be 1, got '
                f"{self.max_rows}: name the column that identifies a person."
            )
