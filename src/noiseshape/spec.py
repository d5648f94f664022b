"""One YAML file that says a release: schema, people, queries, budget; in the words of Python.

Nothing in a spec comes from the data: domains, bounds and targets are public knowledge.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Hashable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from annotated_types import Len
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from . import matrices
from .errors import InvalidInput, NoiseshapeError
from .matrices import MatrixQuery
from .privacy import Budget, People
from .release import MatrixPlan, RowsPlan, directional, isotropic
from .tables import Schema, Workload, bins, booleans, categories, dates, integers, recode
from .tables.domains import Domain, Missing, Outside
from .tables.recode import Recode, public_rows

# The part of a spec that its queries are, beside its matrices.
TABLES = "tables"
_MATRICES = ("sum", "mean", "second_moment", "covariance", "identity")

Number = float | int
Pair = Annotated[list[int], Len(2, 2)]
Target = Number | list[Number]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ValuesFile(_Part):
    """Values listed in a column of a public CSV file."""

    file: str
    column: str


class ColumnSpec(_Part):
    """The domain of one column, from public knowledge, and what becomes of other values."""

    integers: Pair | None = Field(None, description="Least and greatest whole number.")
    categories: list[int | str] | ValuesFile | None = Field(None, description="Every value.")
    bins: list[Number] | None = Field(None, description="Edges of intervals, increasing.")
    booleans: Literal[True] | None = Field(None, description="False and true.")
    dates: Annotated[list[int | str], Len(2, 2)] | None = Field(None, description="First, last.")
    by: Literal["year", "month"] = "year"
    closed: Literal["right", "left"] = "right"
    outside: Outside = "drop"
    missing: Missing = "own-cell"

    @model_validator(mode="after")
    def _one(self) -> Self:
        kinds = ("integers", "categories", "bins", "booleans", "dates")
        _exactly_one("a column", {k: getattr(self, k) for k in kinds})
        _only_with(self, "by", "dates")
        _only_with(self, "closed", "bins")
        return self

    def domain(self, folder: Path) -> Domain:
        """Return the domain."""
        policies: dict[str, Any] = {"outside": self.outside, "missing": self.missing}
        if self.integers is not None:
            return integers(*self.integers, **policies)
        if isinstance(self.categories, ValuesFile):
            rows = public_rows(folder / self.categories.file)
            if self.categories.column not in rows[0]:
                raise InvalidInput(
                    f"{self.categories.file} has no column {self.categories.column!r}: it has "
                    f"{', '.join(rows[0])}."
                )
            listed = dict.fromkeys(row[self.categories.column] for row in rows)
            return categories(list(listed), **policies)
        if self.categories is not None:
            return categories(self.categories, **policies)
        if self.bins is not None:
            return bins(self.bins, closed=self.closed, **policies)
        if self.dates is not None:
            return dates(*self.dates, by=self.by, **policies)
        return booleans(**policies)


class RecodeSpec(_Part):
    """A coarser reading of a column: by ranges, by a mapping, or by a public CSV file."""

    of: str
    ranges: dict[str, Pair | list[Pair]] | None = None
    mapping: dict[str, int | str | list[int | str]] | None = None
    file: str | None = None
    source: str | None = Field(None, description="The file's column of values.")
    target: str | None = Field(None, description="The file's column of labels.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        _exactly_one("a recode", {k: getattr(self, k) for k in ("ranges", "mapping", "file")})
        _only_with(self, "source", "file")
        _only_with(self, "target", "file")
        return self

    def recode(self, folder: Path) -> Recode:
        """Return the recode."""
        if self.file is not None:
            return recode(self.of, folder / self.file, source=self.source, target=self.target)
        return recode(self.of, self.ranges or self.mapping or {})


class PeopleSpec(_Part):
    """Whose privacy."""

    unit: str = Field("rows", description='"rows", or the column that names a person.')
    max_rows: int = 1
    neighbours: Literal["add-remove", "replace"] = "add-remove"


class ReferenceFile(_Part):
    """Expected values in a public CSV file: a column for each axis, and one more."""

    file: str


class QuerySpec(_Part):
    """One query and its target."""

    name: str | None = None
    total: Literal[True] | None = None
    marginal: str | list[str] | None = None
    all_marginals: int | None = Field(
        None, description="Every marginal of at most so many columns together."
    )
    least: int = Field(1, description="The fewest columns of all_marginals.")
    prefixes: str | None = None
    ranges: dict[str, list[Annotated[list[int | float | str], Len(2, 2)]]] | None = None
    all_ranges: str | None = None
    lengths: list[int] | None = Field(None, description="The longest range of each band.")
    where: str | None = Field(None, description="A condition; with sum, of the rows summed.")
    sum: str | None = None
    rows: list[list[Number]] | None = None
    over: list[str] | None = Field(
        None, description="The columns of rows, or those that all_marginals are of."
    )
    by: str | list[str] = []
    variance: Target | None = None
    stderr: Target | None = None
    margin: Target | None = Field(None, description="Half-width of a 95 % interval.")
    cv: Target | None = Field(None, description="Standard error over the expected value.")
    reference: Target | dict[str, Number] | ReferenceFile | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        kinds = ["total", "marginal", "all_marginals", "prefixes", "ranges", "all_ranges"]
        kinds += ["sum", "rows"]
        if self.sum is None:
            kinds.append("where")
        _exactly_one("a query", {k: getattr(self, k) for k in kinds})
        _only_with(self, "least", "all_marginals")
        if self.all_marginals is None:
            _only_with(self, "over", "rows")
        elif self.name is not None or self.by:
            raise ValueError(
                "all_marginals are each called by their columns: leave name and by out"
            )
        _only_with(self, "lengths", "all_ranges")
        if self.ranges is not None and len(self.ranges) != 1:
            raise ValueError("ranges are of one column")
        return self

    def ask(self, work: Workload, folder: Path) -> None:
        """Add the query to a workload."""
        names = ("variance", "stderr", "margin", "cv")
        asked: dict[str, Any] = {k: getattr(self, k) for k in names if getattr(self, k) is not None}
        if self.reference is not None:
            is_file = isinstance(self.reference, ReferenceFile)
            asked["reference"] = folder / self.reference.file if is_file else self.reference  # type: ignore[union-attr]
        if self.name is not None:
            asked["name"] = self.name
        if self.all_marginals is not None:
            work.all_marginals(self.all_marginals, columns=self.over, least=self.least, **asked)
            return
        asked["by"] = self.by
        if self.rows is not None:
            work.rows(self.rows, over=self.over, **asked)
        elif self.total:
            work.total(**asked)
        elif self.marginal is not None:
            columns = [self.marginal] if isinstance(self.marginal, str) else self.marginal
            work.marginal(*columns, **asked)
        elif self.prefixes is not None:
            work.prefixes(self.prefixes, **asked)
        elif self.all_ranges is not None:
            work.all_ranges(self.all_ranges, lengths=self.lengths, **asked)
        elif self.ranges is not None:
            ((column, pairs),) = self.ranges.items()
            work.ranges(column, [(low, high) for low, high in pairs], **asked)
        elif self.sum is not None:
            work.sum(self.sum, where=self.where, **asked)
        else:
            work.where(self.where or "", **asked)


class MatrixSpec(_Part):
    """One matrix of bounded columns, its target, and how its noise is shaped."""

    name: str
    sum: list[str] | None = None
    mean: list[str] | None = None
    second_moment: list[str] | None = None
    covariance: list[str] | None = None
    identity: list[str] | None = Field(None, description="The columns as they are; replace only.")
    bounds: dict[str, Annotated[list[Number], Len(2, 2)]]
    step: dict[str, Number] | None = Field(None, description="The grid of each column.")
    missing: Literal["drop", "middle"] | None = None
    count: int | None = Field(None, description="How many rows there are, if that is public.")
    expected: int | None = Field(None, description="About how many, from public knowledge.")
    row_by_row: bool = Field(False, description="An identity that memory does not hold.")
    key: str | None = Field(None, description="Numbers the rows of a cluster, with row_by_row.")
    noise: Literal["directional", "isotropic"] = "directional"
    variance: Number | dict[str, Number] | None = None
    stderr: Number | dict[str, Number] | None = None
    margin: Number | dict[str, Number] | None = Field(None, description="Half-width at 95 %.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        _exactly_one("a matrix", {k: getattr(self, k) for k in _MATRICES})
        _exactly_one("a matrix", {k: getattr(self, k) for k in ("variance", "stderr", "margin")})
        for name, kinds in (("expected", ("mean", "covariance")), ("count", _MATRICES)):
            if getattr(self, name) is not None and self._kind not in kinds:
                raise ValueError(f"{name} goes with {' or '.join(kinds)}: leave {name} out")
        if self.row_by_row and (self._kind != "identity" or self.count is None):
            raise ValueError("row_by_row goes with an identity and its count")
        if self.key is not None and not self.row_by_row:
            raise ValueError("key goes with row_by_row: leave key out")
        if self.missing is not None and self._kind == "identity":
            raise ValueError("an identity leaves no row out: leave missing out")
        if not re.fullmatch(r"[\w][\w .-]*", self.name) or self.name == TABLES:
            raise ValueError(
                f"a matrix is published in a folder of its name: letters and digits, and not "
                f"{TABLES!r}"
            )
        return self

    @property
    def _kind(self) -> str:
        return next(k for k in _MATRICES if getattr(self, k) is not None)

    def _each(self, what: str, given: dict[str, Number]) -> list[Number]:
        """Return one number for each column, in order."""
        columns = getattr(self, self._kind)
        for name in [*columns, *given]:
            if name not in given or name not in columns:
                raise InvalidInput(f"{what} is one number for each column: see {name!r}.")
        return [given[name] for name in columns]

    def query(self, people: People) -> MatrixQuery:
        """Return the question."""
        kind = self._kind
        columns = getattr(self, kind)
        spare = [name for name in self.bounds if name not in columns]
        if spare:
            raise InvalidInput(f"bounds are of columns, and {spare[0]!r} is none of this matrix's.")
        said: dict[str, Any] = {"columns": columns, "people": people}
        said["bounds"] = {name: (low, high) for name, (low, high) in self.bounds.items()}
        if self.step is not None:
            said["step"] = self._each("step", self.step)
        if kind == "identity":
            return matrices.identity(**said, n=1 if self.row_by_row else self.count)
        if self.missing is not None:
            said["missing"] = self.missing
        if self.expected is not None:
            said["expected"] = self.expected
        made: MatrixQuery = getattr(matrices, kind)(**said, count=self.count)
        return made

    def plan(self, people: People) -> MatrixPlan | RowsPlan:
        """Return the plan that meets the target."""
        shaped = isotropic if self.noise == "isotropic" else directional
        try:
            target: dict[str, Any] = {}
            for kind in ("variance", "stderr", "margin"):
                given = getattr(self, kind)
                target[kind] = self._each(kind, given) if isinstance(given, dict) else given
            made = shaped(self.query(people), **target)
            if self.row_by_row:
                return made.row_by_row(self.count or 0, key=self.key)
            return made
        except NoiseshapeError as error:
            raise type(error)(f"matrices, {self.name}: {error}") from None


class BudgetSpec(_Part):
    """The most that may be spent: epsilon and delta, or rho, or mu."""

    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None
    mu: Number | None = None


class Spec(_Part):
    """A release, said in one file."""

    columns: dict[str, ColumnSpec | list[int | str] | Literal["booleans"]] = Field(
        {}, alias="schema", description="The declared columns."
    )
    recodes: dict[str, RecodeSpec] = {}
    impossible: list[str] = Field([], description="Conditions that nobody can meet.")
    table: str | None = Field(None, description="The custodian's name of the table.")
    vintage: str | None = Field(None, description="The custodian's name of this frozen data.")
    people: PeopleSpec | None = None
    queries: list[QuerySpec] = []
    matrices: list[MatrixSpec] = Field([], description="Released beside the tables, alike.")
    budget: BudgetSpec | None = Field(None, description="A ceiling.")
    prioritise: Literal["accuracy", "privacy"] = "accuracy"
    shape: Literal["fit", "total", "hierarchy", "identity", "sm2"] = "fit"
    data: str | None = Field(None, description="Where the rows are; --data says otherwise.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.queries and not self.matrices:
            raise ValueError("the key 'queries' is missing: ask something, or add matrices")
        if self.queries and not self.columns:
            raise ValueError("the key 'schema' is missing: queries are about declared columns")
        names = [matrix.name for matrix in self.matrices]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"two matrices are called {twice[0]!r}: give each a name of its own")
        return self

    def named(self) -> dict[str, MatrixSpec]:
        """Return the matrices by name."""
        return {matrix.name: matrix for matrix in self.matrices}

    def said_people(self) -> People:
        """Return whose privacy."""
        said = self.people
        return People() if said is None else People(said.unit, said.max_rows, said.neighbours)

    def workload(self, folder: Path) -> Workload:
        """Return the schema, people and queries; files are looked for beside the spec."""
        columns = {name: _domain(name, column, folder) for name, column in self.columns.items()}
        recodes = {name: made.recode(folder) for name, made in self.recodes.items()}
        schema = Schema(columns, recodes, self.impossible)
        work = Workload(schema, self.said_people(), table=self.table)
        for i, query in enumerate(self.queries, start=1):
            try:
                query.ask(work, folder)
            except NoiseshapeError as error:
                raise type(error)(f"queries, {i}: {error}") from None
        return work

    def ceiling(self) -> Budget | None:
        """Return the budget, if there is one."""
        if self.budget is None:
            return None
        stated = self.budget
        return Budget(epsilon=stated.epsilon, delta=stated.delta, rho=stated.rho, mu=stated.mu)


def read(path: str | os.PathLike[str]) -> Spec:
    """Return the spec in a YAML file, or say in one sentence what is wrong with it, and where."""
    name = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"there is no spec at {name}: noiseshape init makes one.") from None
    except IsADirectoryError:
        raise InvalidInput(f"{name} is a folder: name the spec, a YAML file.") from None
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"the spec {name} cannot be read: it must be UTF-8 text.") from None
    return parsed(text, name)


def parsed(text: str, name: str = "the spec") -> Spec:
    """Return the spec that a text says."""
    try:
        content = yaml.load(text, _Loader)  # a SafeLoader, stricter
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InvalidInput(f"{name} cannot be read{where}: {error.problem}.") from None
    except (yaml.YAMLError, RecursionError):
        raise InvalidInput(f"{name} is not YAML.") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{name} must hold keys such as schema, people and queries.")
    try:
        return Spec.model_validate(content)
    except ValidationError as error:
        raise InvalidInput(f"{name}: {_sentence(error, content)}") from None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec, for editors."""
    return Spec.model_json_schema(by_alias=True) | {"title": "Noiseshape spec"}


def begun(data: str, kinds: Mapping[str, str | None]) -> str:
    """Return a spec to be filled in, from the names and declared types of columns.

    It holds no domain: those come from public knowledge, never from the data, so that whoever
    fills it in must know them. As it stands it is refused.
    """
    lines = [_HEAD.format(data=_quoted(data))]
    for name, kind in kinds.items():
        if kind is None:
            lines.append(f"  # {_quoted(name)} has a type that cannot be counted by.")
            continue
        holds, domain = _DOMAINS[kind]
        lines.append(f"  {_quoted(name)}: {domain}   # holds {holds}")
    if kinds and not set(kinds.values()) - {"text", None}:
        lines.insert(1, _UNTYPED)
    return "\n".join(lines) + _TAIL


_HEAD = """\
# What is released, about whom, how accurately. Delete the columns that you do not need.
#
# DOMAINS MUST COME FROM PUBLIC KNOWLEDGE (a questionnaire, a code book, a law), NEVER FROM THE
# DATA: a bound or a category that is learnt from the rows tells of the people in them.
#
#   integers: [0, 99]        categories: [F, M]        bins: [0, 20, 40, 100]
#   booleans: true           dates: ["2000", "2024"], by: year | month
#   outside: drop | clamp | other      what becomes of a value outside the domain
#   missing: own-cell | drop           what becomes of a missing one
#
# noiseshape schema prints a JSON Schema for your editor; noiseshape check SPEC reads this file.
data: {data}
# table: persons             # a name, if releases about this frozen table shall add cell by cell
# vintage: survey 2026, frozen 2026-10-01
people: {{unit: rows}}        # or {{unit: ID_COLUMN, max_rows: 3, neighbours: replace}}
schema:"""
_TAIL = """
# recodes:
#   band: {of: AGE, ranges: {minor: [0, 17], adult: [18, 64], old: [65, 99]}}
# impossible: ["AGE < 15 and MARRIED"]
queries:                     # each with one target: variance, stderr, margin (95 %) or cv
  - {name: everybody, total: true, stderr: FILL_IN}
# - {name: pyramid, marginal: [SEX, AGE], stderr: 20}
# - {all_marginals: 2, stderr: 40}       # every column and every pair
# - {name: up to age, prefixes: AGE, by: [SEX], stderr: 15}
# - {name: bands, ranges: {AGE: [[0, 17], [18, 64], [65, 99]]}, margin: 10}
# - {name: long hours, where: "AGE >= 18 and HOURS > 40", by: SEX, variance: 25}
# - {name: income, sum: INCOME, by: band, stderr: 100000}
# budget: {epsilon: 2.0, delta: 1e-9}    # a ceiling: what the targets need is spent, and no more
# prioritise: accuracy                   # or privacy: scale all targets to spend the budget
"""
_UNTYPED = "  # A CSV file declares no types: write integers, bins or dates where they are meant."
_DOMAINS = {
    "integer": ("whole numbers", "{integers: [FILL, IN]}"),
    "real": ("numbers", "{bins: FILL_IN}"),
    "text": ("text", "{categories: FILL_IN}"),
    "truth": ("true and false", "{booleans: true}"),
    "date": ("dates", "{dates: FILL_IN, by: year}"),
}


def _quoted(text: str) -> str:
    """Return a text as YAML holds it: in quotes where it would be anything else without."""
    plain = re.fullmatch(r"[A-Za-z_][\w./-]*", text) and isinstance(yaml.load(text, _Loader), str)
    return text if plain else json.dumps(text, ensure_ascii=False)


class _Loader(yaml.SafeLoader):
    """YAML as people mean it: no is a word, 1e-9 a number, 010 a text, and no key stands twice."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false|True|False|TRUE|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first)
    )


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    found: dict[Hashable, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be a word", key_node.start_mark
            )
        if key in found:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} stands here twice", key_node.start_mark
            )
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _domain(
    name: str, column: ColumnSpec | list[int | str] | Literal["booleans"], folder: Path
) -> Domain:
    try:
        if isinstance(column, ColumnSpec):
            return column.domain(folder)
        return booleans() if column == "booleans" else categories(column)
    except InvalidInput as error:
        raise InvalidInput(f"schema, {name}: {error}") from None


def _exactly_one(what: str, given: dict[str, Any]) -> None:
    stated = [name for name, value in given.items() if value is not None]
    if len(stated) != 1:
        raise ValueError(
            f"{what} needs one of {', '.join(given)}; got {' and '.join(stated) or 'none'}"
        )


def _only_with(part: BaseModel, key: str, other: str) -> None:
    """Refuse a key that would mean nothing where it stands."""
    if key in part.model_fields_set and getattr(part, other) is None:
        raise ValueError(f"{key} goes with {other}, and there is none: leave {key} out")


def _sentence(error: ValidationError, content: Any) -> str:
    """Return the first thing that is wrong, where it is, and what would be right."""
    # Of the members of a union, the one that got furthest is what was meant.
    first = max(error.errors(include_url=False), key=lambda e: (len(e["loc"]), e["type"] == _EXTRA))
    path: list[str] = []
    part_of = content
    for part in first["loc"]:
        # Names of union members are no part of the file.
        try:
            part_of = part_of[part]
        except (TypeError, KeyError, IndexError):
            if first["type"] not in (_EXTRA, "missing") or part != first["loc"][-1]:
                continue
        path.append(f"{part + 1}" if isinstance(part, int) else str(part))
    where = ", ".join(path)
    if first["type"] == _EXTRA:
        key = str(first["loc"][-1])
        known = _keys(path[:-1])
        near = get_close_matches(key, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
        inside = f" in {', '.join(path[:-1])}" if path[:-1] else ""
        return f"no key is called {key!r}{inside}: {hint}"
    if first["type"] == "missing":
        return f"the key {where!r} is missing."
    problem = _MEANS.get(first["type"], first["msg"]).removeprefix("Value error, ").rstrip(".")
    problem = problem.replace("Input should be", "must be").replace(" after validation", "")
    if isinstance(first["input"], str) and first["input"] in ("FILL_IN", "FILL", "IN"):
        return f"{where}: FILL_IN stands there still: write what is true, from public knowledge."
    problem = re.sub("^(List|Dictionary) should have", "must have", problem)
    got = "" if isinstance(first["input"], (dict, list)) else f", got {first['input']!r}"
    if first["type"] == "value_error":
        return f"{where}: {problem}." if where else f"{problem}."
    return f"{where}: {problem[0].lower()}{problem[1:]}{got}."


_EXTRA = "extra_forbidden"
_MEANS = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be keys and values",
    "model_type": "must be keys and values",
}


def _keys(path: list[str]) -> list[str]:
    """Return the keys that are known at a place of the file."""
    parts: dict[str, type[BaseModel]] = {
        "schema": ColumnSpec,
        "recodes": RecodeSpec,
        "people": PeopleSpec,
        "queries": QuerySpec,
        "matrices": MatrixSpec,
        "budget": BudgetSpec,
    }
    model = parts.get(path[0], Spec) if path else Spec
    return [field.alias or name for name, field in model.model_fields.items()]
