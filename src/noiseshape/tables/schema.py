"""The table as it is declared: columns, recodes of them, and cells that nobody can be in.

Domains come from public knowledge, never from the data. A schema decides which rows are counted
and in which cell each is; two releases with one schema count the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

from ..archive import digest
from ..errors import InvalidInput
from ..privacy import People
from .domains import Booleans, Domain, Literals, Operator, categories, from_json
from .predicate import Predicate, parse
from .recode import Recode
from .steps import Steps

Declaration = Domain | Sequence[int | str]


@dataclass(frozen=True, eq=False)
class View:
    """A column, or a recode of one: what queries name.

    Attributes
    ----------
    name, column
        What it is called, and the column whose cells it reads.
    recoded
        None for a column itself; for a recode its labels, and the label of each cell.
    """

    name: str
    column: str
    domain: Domain
    recoded: tuple[tuple[str, ...], Steps] | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of what it tells apart."""
        return self.domain.labels() if self.recoded is None else self.recoded[0]

    @property
    def size(self) -> int:
        """How many cells, or labels, it tells apart."""
        return self.domain.size if self.recoded is None else len(self.recoded[0])

    @property
    def truth(self) -> bool:
        """Whether the name alone is a condition."""
        return self.recoded is None and isinstance(self.domain, Booleans)

    def cells(self) -> Steps:
        """Return the label number of each cell of the column."""
        if self.recoded is not None:
            return self.recoded[1]
        count = len(self.labels)  # refuses what cannot be listed
        return Steps(np.arange(count), np.arange(count))

    def compare(self, operator: Operator, value: Literals) -> Steps:
        """Return the truth of "operator value" over the cells of the column."""
        if self.recoded is None:
            return self.domain.compare(operator, value)
        labels, steps = self.recoded
        if operator not in ("==", "!=") or not isinstance(value, str) or value not in labels:
            raise InvalidInput(f"{self.name} compares by == with one of {', '.join(labels[:8])}.")
        chosen = steps.values == labels.index(value)
        return Steps(steps.starts, chosen if operator == "==" else ~chosen).merged()

    def named(self, special: str) -> Steps:
        """Return the truth of "is missing" or "is other" over the cells of the column."""
        return self.domain.is_missing() if special == "missing" else self.domain.is_other()


@dataclass(frozen=True, eq=False, repr=False)
class Schema:
    """Declared columns.

    Parameters
    ----------
    columns
        Name of each column -> its domain; a list stands for categories.
    recodes
        Name of each recode -> ``recode(column, ...)``.
    impossible
        Conditions that nobody can meet, such as ``"AGEP < 15 and MARRIED"``: structural zeros.
        Those cells hold no query, and a row that is in one all the same is left out.

    Examples
    --------
    >>> from noiseshape.tables import integers
    >>> Schema({"age": integers(0, 115), "sex": ["F", "M"]})
    Schema(age: integers, sex: categories; 117 x 3 cells)
    """

    columns: Mapping[str, Domain]
    recodes: Mapping[str, Recode]
    excluded: tuple[str, ...]

    def __init__(
        self,
        columns: Mapping[str, Declaration],
        recodes: Mapping[str, Recode] | None = None,
        impossible: Sequence[str] = (),
    ) -> None:
        if not isinstance(columns, Mapping) or not columns:
            raise InvalidInput("a schema needs columns: a name for each, and its domain.")
        if recodes is not None and not isinstance(recodes, Mapping):
            raise InvalidInput(
                "recodes are a mapping from a new column's name to its recode; conditions that "
                "nobody meets are impossible=[...]."
            )
        declared = {_name(n): _domain(n, d) for n, d in columns.items()}
        lowered = [n.lower() for n in declared]
        twice = [n for n in declared if lowered.count(n.lower()) > 1]
        if twice:
            raise InvalidInput(
                f"columns must differ in more than their case, and {' and '.join(twice)} do not: "
                "rename one in the data."
            )
        if both := [n for n in recodes or {} if n in declared]:
            raise InvalidInput(f"{both[0]} is a column and a recode: give the recode another name.")
        for name, made in (recodes or {}).items():
            if not isinstance(made, Recode):
                raise InvalidInput(f"{_name(name)} must be recode(column, ...).")
        object.__setattr__(self, "columns", declared)
        object.__setattr__(self, "recodes", dict(recodes or {}))
        if isinstance(impossible, str):
            impossible = [impossible]
        object.__setattr__(self, "excluded", tuple(impossible))
        self.views  # noqa: B018  # each recode is checked now
        self.zeros  # noqa: B018

    def impossible(self, *conditions: str) -> Schema:
        """Return the same schema with further conditions that nobody can meet: structural zeros.

        Examples
        --------
        >>> from noiseshape.tables import booleans, integers
        >>> schema = Schema({"age": integers(0, 99), "married": booleans()})
        >>> schema.impossible("age < 15 and married").excluded
        ('age < 15 and married',)
        """
        return Schema(self.columns, self.recodes, (*self.excluded, *conditions))

    @cached_property
    def views(self) -> dict[str, View]:
        """Every column and recode by its name."""
        views = {n: View(n, n, d) for n, d in self.columns.items()}
        left = dict(self.recodes)
        while left:
            ready = [n for n, r in left.items() if r.of in views]
            if not ready:
                name, made = next(iter(left.items()))
                raise InvalidInput(f"{name} recodes {made.of!r}, and no column is called so.")
            for name in ready:
                views[name] = _recoded(name, left.pop(name), views)
        return views

    def view(self, name: str) -> View:
        """Return a column or recode, or say which there are."""
        found = self.views.get(name) if isinstance(name, str) else None
        if found is None:
            near = get_close_matches(str(name), self.views, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.views)}."
            raise InvalidInput(f"no column is called {name!r}: {hint}")
        return found

    def condition(self, text: str) -> Predicate:
        """Return the predicate that a text says about this schema."""
        return parse(text, self.views.get, tuple(self.views))

    @cached_property
    def zeros(self) -> tuple[Predicate, ...]:
        """The conditions of ``impossible``."""
        return tuple(self.condition(text) for text in self.excluded)

    @property
    def cells(self) -> int:
        """How many cells the whole table has."""
        return math.prod(domain.size for domain in self.columns.values())

    @property
    def rows_may_leave(self) -> bool:
        """Whether a value can take its row out of the table."""
        return bool(self.excluded) or any(d.drops for d in self.columns.values())

    def policies(self) -> dict[str, str]:
        """Return for each column in words what becomes of values outside, and of missing ones."""
        return {name: domain.policies() for name, domain in self.columns.items()}

    def words(self, people: People) -> list[str]:
        """Return in sentences which rows are counted, and in which cell."""
        said = [f"{name}: {policy}." for name, policy in self.policies().items()]
        said += [f"Impossible, and left out: {text}." for text in self.excluded]
        if people.unit != "rows":
            said.append(
                f"Rows without {people.unit}, and beyond {people.max_rows} of one, are left out."
            )
        return said

    @cached_property
    def digest(self) -> str:
        """A digest of everything that decides which rows are counted where."""
        content = self.to_json()
        return digest({key: content[key] for key in ("columns", "impossible", "recodes")})

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values that say all of this."""
        return {
            "columns": [[n, d.to_json()] for n, d in self.columns.items()],
            "recodes": [
                [n, r.of, [[label, _plain(m)] for label, m in r.mapping.items()]]
                for n, r in self.recodes.items()
            ],
            "impossible": list(self.excluded),
        }

    @staticmethod
    def from_json(content: dict[str, Any]) -> Schema:
        """Return the schema that ``to_json`` said."""
        return Schema(
            {name: from_json(domain) for name, domain in content["columns"]},
            {name: Recode(of, dict(mapping)) for name, of, mapping in content["recodes"]},
            content["impossible"],
        )

    def _repr_html_(self) -> str:
        from ..report.scraps import of_schema

        return of_schema(self)

    def __rich__(self) -> Any:
        from ..report.terminal import of_schema

        return of_schema(self)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{n}: {d.kind}" for n, d in self.columns.items())
        sizes = " x ".join(str(d.size) for d in self.columns.values())
        return f"Schema({kinds}; {sizes} cells)"


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "`" in name:
        raise InvalidInput("a column's name must be printable text, without backticks.")
    return name


def _domain(name: str, declared: Declaration) -> Domain:
    if isinstance(declared, Domain):
        return declared
    if isinstance(declared, Sequence) and not isinstance(declared, str):
        return categories(declared)
    raise InvalidInput(
        f"{name} needs a domain: integers, categories, bins, booleans or dates, got "
        f"{type(declared).__name__}."
    )


def _recoded(name: str, made: Recode, views: Mapping[str, View]) -> View:
    parent = views[made.of]
    if parent.recoded is None:
        return View(name, parent.column, parent.domain, made.steps(name, parent.domain))
    names, steps = parent.recoded
    # What is neither declared nor there stays so, unless the mapping says what it becomes.
    special = [n for n in ("other", "missing") if n in names and n not in _members(made)]
    plain = [n for n in names if n not in special]
    labels, coarser = made.steps(name, categories(plain, missing="drop"))
    kept = (*labels, *special)
    number = dict(zip(plain, coarser.at(range(len(plain))), strict=True))
    number |= {n: kept.index(n) for n in special}
    values = np.array([number[n] for n in names])[steps.values]
    return View(name, parent.column, parent.domain, (kept, Steps(steps.starts, values).merged()))


def _members(made: Recode) -> set[Any]:
    return {v for m in made.mapping.values() for v in (m if isinstance(m, (list, tuple)) else [m])}


def _plain(members: Any) -> Any:
    """Return members as JSON holds them."""
    if isinstance(members, (list, tuple)):
        return [_plain(m) for m in members]
    return int(members) if isinstance(members, np.integer) else members
