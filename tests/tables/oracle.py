"""Random declared tables, and what plain pandas counts in them: one label a row, and no SQL.

A world is drawn whole: schema, policies, recodes, structural zeros, people, rows, queries. Rows are
placed by what the documents say of each domain, value by value; then they are grouped.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import math
import re
from dataclasses import dataclass

import pandas as pd
from hypothesis import strategies as st

import noiseshape as ns

NUMBER = re.compile(r" *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *")
TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


def number(raw):
    """Return what a value is as a number; None where it is none."""
    if isinstance(raw, str):
        raw = float(raw) if NUMBER.fullmatch(raw) else None
    return None if raw is None or not math.isfinite(raw) else raw


def text(raw):
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, float):
        if not math.isfinite(raw):
            return None
        return str(int(raw)) if raw == int(raw) and abs(raw) < 9e15 else repr(raw)
    return None if raw is None else str(raw)


def month(year, number):
    return year * 12 + number - 1


def ordinal(domain, raw):
    """Return the year, or the month counted from year 0."""
    if isinstance(raw, datetime.date):
        return raw.year if domain.by == "year" else month(raw.year, raw.month)
    if isinstance(raw, str):
        if domain.by == "year":
            return int(raw[:4]) if re.match(r"[0-9]{4}(-|$)", raw) else None
        found = re.match(r"([0-9]{4})-(0[1-9]|1[0-2])", raw)
        return month(int(found[1]), int(found[2])) if found else None
    return raw


def truth(raw):
    if isinstance(raw, str):
        word = raw.strip(" ").lower()
        return 1 if word in TRUE else 0 if word in FALSE else None
    value = number(raw)
    return None if value is None else int(value) if value in (0, 1) else -1


def place(domain, raw):
    """Return the cell of a value, or None where its row leaves the table."""
    n = domain.regular
    other = n if domain.outside == "other" else None
    below, above = (0, n - 1) if domain.outside == "clamp" else (other, other)
    absent = n + (domain.outside == "other") if domain.missing == "own-cell" else None
    if domain.kind == "categories":
        value = number(raw) if isinstance(domain.values[0], int) else text(raw)
        if value is None:
            return absent
        return domain.values.index(value) if value in domain.values else other
    if domain.kind == "booleans":
        value = truth(raw)
        return absent if value is None else other if value < 0 else value
    if domain.kind == "dates":
        first = domain.span[0]
        value = ordinal(domain, raw)
        if value is None:
            return absent
        return below if value < first else above if value >= first + n else value - first
    value = number(raw)
    if value is None:
        return absent
    if domain.kind == "integers":
        if value < domain.low or value > domain.high:
            return below if value < domain.low else above
        whole = math.floor(value)
        return whole - domain.low if whole == value or domain.outside == "clamp" else other
    edges = domain.edges
    if value < edges[0] or value > edges[-1]:
        return below if value < edges[0] else above
    if domain.closed == "right":
        return next(i for i in range(n) if value <= edges[i + 1])
    return min(next(i for i in range(n + 1) if i == n or value < edges[i + 1]), n - 1)


# --- conditions: drawn as trees, written as text, and told row by row -------------------------

OPERATORS = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


@dataclass(frozen=True)
class Term:
    """``column operator value``, or ``column is missing``."""

    column: str
    operator: str
    value: object

    def __str__(self):
        if self.operator == "is":
            return f"`{self.column}` is {self.value}"
        value = self.value
        mark = '"' if "'" in str(value) else "'"
        shown = f"{mark}{value}{mark}" if isinstance(value, str) else str(value).lower()
        return f"`{self.column}` {self.operator} {shown}"

    def holds(self, schema, cells):
        domain, cell = schema.columns[self.column], cells[self.column]
        n = domain.regular
        if self.operator == "is":
            return cell >= n and domain.label(cell) == self.value
        if cell >= n:
            return False
        if domain.kind == "bins":  # only cuts at edges are drawn
            low = domain.edges[cell]
            return low >= self.value if self.operator[0] == ">" else low < self.value
        own = {
            "integers": lambda: domain.low + cell,
            "categories": lambda: domain.values[cell],
            "booleans": lambda: bool(cell),
            "dates": lambda: domain.label(cell),
        }[domain.kind]()
        return OPERATORS[self.operator](own, self.value)


@dataclass(frozen=True)
class Joined:
    how: str
    parts: tuple

    def __str__(self):
        if self.how == "not":
            return f"not ({self.parts[0]})"
        return f" {self.how} ".join(f"({part})" for part in self.parts)

    def holds(self, schema, cells):
        told = [part.holds(schema, cells) for part in self.parts]
        return not told[0] if self.how == "not" else (all if self.how == "and" else any)(told)


@st.composite
def terms(draw, columns):
    name = draw(st.sampled_from(sorted(columns)))
    domain = columns[name]
    named = [w for w, has in (("missing", domain.missing == "own-cell"),
                              ("other", domain.outside == "other")) if has]  # fmt: skip
    if named and draw(st.integers(0, 4)) == 0:
        return Term(name, "is", draw(st.sampled_from(named)))
    cell = draw(st.integers(0, domain.regular - 1))
    if domain.kind == "bins":
        if domain.regular == 1:
            return Term(name, "is", "missing")
        cut = domain.edges[max(cell, 1)]
        pair = (">", "<=") if domain.closed == "right" else (">=", "<")
        return Term(name, draw(st.sampled_from(pair)), cut)
    if domain.kind == "integers":
        value = domain.low + cell + draw(st.sampled_from([0, 0, 1, -1]))
        return Term(name, draw(st.sampled_from(sorted(OPERATORS))), value)
    value = {
        "categories": lambda: domain.values[cell],
        "booleans": lambda: bool(cell),
        "dates": lambda: domain.label(cell),
    }[domain.kind]()
    some = sorted(OPERATORS) if domain.kind == "dates" else ["==", "!="]
    return Term(name, draw(st.sampled_from(some)), value)


def conditions(columns):
    return st.recursive(
        terms(columns),
        lambda inner: st.one_of(
            st.builds(lambda a: Joined("not", (a,)), inner),
            st.builds(lambda a, b: Joined("and", (a, b)), inner, inner),
            st.builds(lambda a, b: Joined("or", (a, b)), inner, inner),
        ),
        max_leaves=3,
    )


# --- columns ------------------------------------------------------------------------------------

WORDS = ["", "a", "b c", "o'hara", 'q"', "back\\slash", "é", "1", "true", "x,y"]


@st.composite
def columns(draw):
    """Return a domain, the kind that the data holds it as, and a pool of such values."""
    kind = draw(st.sampled_from(["integers", "categories", "numbers", "bins", "booleans", "dates"]))
    missing = draw(st.sampled_from(["own-cell", "drop"]))
    flat = draw(st.sampled_from(["drop", "other"]))
    ordered = draw(st.sampled_from(["drop", "clamp", "other"]))
    low = draw(st.integers(-3, 3))
    near = [*range(-6, 9), 100, -(2**63), 2**63 - 1]
    if kind == "integers":
        high = low + draw(st.integers(0, 4))
        domain = ns.integers(low, high, outside=ordered, missing=missing)
    elif kind == "categories":
        some = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
        domain = ns.categories(some, outside=flat, missing=missing)
    elif kind == "numbers":
        some = draw(st.lists(st.integers(-3, 4), min_size=1, max_size=4, unique=True))
        domain = ns.categories(some, outside=flat, missing=missing)
    elif kind == "bins":
        edges = draw(st.lists(st.sampled_from([-3, -1.5, 0, 1, 2.5, 4]), min_size=2, max_size=4,
                              unique=True))  # fmt: skip
        closed = draw(st.sampled_from(["left", "right"]))
        domain = ns.bins(sorted(edges), closed=closed, outside=ordered, missing=missing)
    elif kind == "booleans":
        domain = ns.booleans(outside=flat, missing=missing)
    else:
        by = draw(st.sampled_from(["year", "month"]))
        last = {"year": "2022", "month": "2020-05"}[by]
        domain = ns.dates("2020", last, by=by, outside=ordered, missing=missing)
    if kind == "dates":
        held = draw(st.sampled_from(["date", "text"] + ["integer"] * (domain.by == "year")))
        days = [datetime.date(y, m, 28) for y in (1999, 2020, 2021, 2030) for m in (2, 11)]
        texts = [str(d) for d in days] + ["2021", "2020-04", "2020-13", "20200", "soon"]
        pool = {"date": days, "text": texts, "integer": [1999, 2019, 2020, 2022, 2023, 2**40]}[held]
    else:
        held = draw(st.sampled_from(["integer", "real", "text", "truth"]))
        # Categories of texts are told from reals by their digits: whole ones alone agree.
        halves = [] if kind == "categories" else [n + 0.5 for n in range(-4, 5)]
        reals = [*map(float, range(-6, 9)), *halves, math.nan, math.inf, -1e300]
        shown = [*map(str, near), " 2", "1.0", "2.5", "1e0", ".5", "0x1", "1_0", "nan", "inf"]
        texts = [*WORDS, *shown, "1e400", "Yes", "F ", "FALSE"]
        pool = {"integer": near, "real": reals, "text": texts, "truth": [True, False]}[held]
    values = st.lists(st.one_of(st.none(), st.sampled_from(pool)), min_size=24, max_size=24)
    return domain, held, draw(values)


@dataclass(frozen=True)
class World:
    """Everything that is declared and asked, and the rows: name -> (kind, values)."""

    schema: ns.Schema
    zeros: tuple
    people: ns.People
    held: dict
    work: ns.Workload
    asked: tuple

    def as_text(self):
        """Return the rows as a CSV file tells them."""
        shown = {name: [_csv(v) for v in values] for name, (_, values) in self.held.items()}
        held = {name: ("text", values) for name, values in shown.items()}
        return World(self.schema, self.zeros, self.people, held, self.work, self.asked)

    def placed(self):
        """Return the rows that count, as a frame of labels: policies, zeros and people applied."""
        rows = []
        columns = self.schema.columns
        count = len(next(iter(self.held.values()))[1])
        for i in range(count):
            cells = {n: place(d, self.held[n][1][i]) for n, d in columns.items()}
            if None in cells.values() or any(z.holds(self.schema, cells) for z in self.zeros):
                continue
            person = None
            if self.people.unit != "rows":
                person = text(self.held[self.people.unit][1][i])
                if person is None:
                    continue
            rows.append((person, cells))
        if self.people.unit != "rows":
            rows = _first(rows, self.people.max_rows)
        return [cells for _, cells in rows]

    def answers(self):
        """Return the answers to each query, None where nobody could make it other than 0."""
        rows = self.placed()
        sizes = [range(domain.size) for domain in self.schema.columns.values()]
        everyone = (
            dict(zip(self.schema.columns, cells, strict=True))
            for cells in itertools.product(*sizes)
        )
        possible = [c for c in everyone if not any(z.holds(self.schema, c) for z in self.zeros)]
        return [
            [
                value if reachable else None
                for value, reachable in zip(
                    self._grouped(query, rows), self._grouped(query, possible, abs), strict=True
                )
            ]
            for query in self.asked
        ]

    def _grouped(self, query, rows, measure=lambda value: value):
        """Return the answers to one query by a plain group-by."""
        by, masks, summed = query
        axes = [self.schema.view(name) for name in by]
        combinations = list(itertools.product(*(view.labels for view in axes)))
        parts = []
        for mask in masks:
            worth = [1 if summed is None else _worth(self.schema, summed, c) for c in rows]
            frame = pd.DataFrame(
                [[_label(view, cells) for view in axes] for cells in rows],
                columns=[f"by{i}" for i in range(len(by))],
                index=range(len(rows)),
            )
            frame["value"] = [measure(mask(c) * v) for c, v in zip(rows, worth, strict=True)]
            if not by:
                parts.append([frame["value"].sum()])
                continue
            grouped = frame.groupby([f"by{i}" for i in range(len(by))])["value"].sum()
            told = {k if isinstance(k, tuple) else (k,): v for k, v in grouped.items()}
            parts.append([told.get(c, 0) for c in combinations])
        return [float(part[i]) for i in range(len(combinations)) for part in parts]


def _csv(value):
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    return text(value) if isinstance(value, bool) else str(value)


def _label(view, cells):
    cell = cells[view.column]
    if view.recoded is None:
        return view.domain.label(cell)
    labels, steps = view.recoded
    return labels[int(steps.at(cell))]


def _worth(schema, column, cells):
    domain, cell = schema.columns[column], cells[column]
    return domain.low + cell if cell < domain.regular else 0


def _first(rows, most):
    """Return the first rows of each person, in the order of a hash of that person's own."""
    kept, seen = [], {}

    def order(row):
        cells = ",".join(map(str, row[1].values()))
        return hashlib.md5(f"{row[0]}|{cells}".encode()).hexdigest(), cells

    for row in sorted(rows, key=order):
        seen[row[0]] = seen.get(row[0], 0) + 1
        if seen[row[0]] <= most:
            kept.append(row)
    return kept


# --- queries ------------------------------------------------------------------------------------


def _everything(cells):
    return 1


@st.composite
def asked(draw, schema, work, number):
    """Ask one query; return how the oracle answers it: by, one weight a sub-answer, summed."""
    plain = schema.columns
    name, target = f"q{number}", {"stderr": draw(st.sampled_from([1.0, 7.5]))}
    kinds = ["total", "marginal", "prefixes", "ranges", "all_ranges", "where", "sum", "rows"]
    kind = draw(st.sampled_from(kinds))
    ordered = [n for n, d in plain.items() if d.ordered]
    summable = [n for n, d in plain.items() if d.kind == "integers"]
    if kind in ("prefixes", "ranges", "all_ranges") and not ordered:
        kind = "marginal"
    if kind == "sum" and not summable:
        kind = "total"
    column = draw(st.sampled_from({"sum": summable}.get(kind, ordered) or sorted(plain)))
    own = {column} if kind in ("prefixes", "ranges", "all_ranges", "rows") else set()
    views = [v for v in schema.views.values() if v.column not in own]
    by = []
    for view in draw(st.permutations(views))[: draw(st.integers(0, 2))]:
        if view.column not in {schema.view(n).column for n in by}:
            by.append(view.name)
    said = {"name": name, "by": by, **target}
    if kind == "total":
        work.total(**said)
        return by, [_everything], None
    if kind == "marginal":
        if not by:
            by = [sorted(plain)[0]]
        work.marginal(*by, name=name, **target)
        return by, [_everything], None
    if kind == "where":
        condition = draw(conditions(plain))
        work.where(str(condition), **said)
        return by, [lambda c: int(condition.holds(schema, c))], None
    if kind == "sum":
        condition = draw(st.one_of(st.none(), conditions(plain)))
        work.sum(column, where=None if condition is None else str(condition), **said)
        return by, [lambda c: 1 if condition is None else int(condition.holds(schema, c))], column
    domain = plain[column]
    n = domain.regular
    if kind == "rows":
        weights = draw(st.lists(st.lists(st.integers(-2, 3), min_size=domain.size,
                                         max_size=domain.size).filter(any),
                                min_size=1, max_size=2))  # fmt: skip
        work.rows(weights, over=[column], **said)
        return by, [lambda c, w=w: w[c[column]] for w in weights], None
    if kind == "prefixes":
        work.prefixes(column, **said)
        spans = [(0, j + 1) for j in range(n)]
    elif kind == "all_ranges":
        work.all_ranges(column, **said)
        spans = [(i, j + 1) for i in range(n) for j in range(i, n)]
    else:
        i = draw(st.integers(0, n - 1))
        spans = [(i, draw(st.integers(i + 1, n))), (0, n)]
        ends = {
            "integers": lambda a, b: (domain.low + a, domain.low + b - 1),
            "bins": lambda a, b: (domain.edges[a], domain.edges[b]),
            "dates": lambda a, b: (domain.label(a), domain.label(b - 1)),
        }[domain.kind]
        spans = list(dict.fromkeys(spans))
        work.ranges(column, [ends(a, b) for a, b in spans], **said)
    return by, [lambda c, s=s: int(s[0] <= c[column] < s[1]) for s in spans], None


NAMES = ["age", "The Sex", 'q"uote', "o'hara", "select", "größe", "a.b"]


@st.composite
def worlds(draw):
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, 3))]
    made = {name: draw(columns()) for name in names}
    domains = {name: domain for name, (domain, _, _) in made.items()}
    held = {name: (kind, values) for name, (_, kind, values) in made.items()}
    recodes = {}
    for name, domain in domains.items():
        if draw(st.booleans()) and domain.kind in ("integers", "categories"):
            cut = draw(st.integers(0, domain.regular - 1))
            if domain.kind == "integers":
                bands = {"low": (domain.low, domain.low + cut)}
                if cut + 1 < domain.regular:
                    bands["high"] = (domain.low + cut + 1, domain.high)
            else:
                bands = {"one": list(domain.values[: cut + 1])}
                if cut + 1 < domain.regular:
                    bands["rest"] = list(domain.values[cut + 1 :])
            recodes[f"coarse {name}"] = ns.recode(name, bands)
    zeros = (draw(conditions(domains)),) if draw(st.integers(0, 2)) == 0 else ()
    try:
        schema = ns.Schema(domains, recodes, [str(z) for z in zeros])
        ns.Workload(schema).total(stderr=1).compiled()
    except ns.InvalidInput:  # nobody could be counted, or "is missing" of what has no such cell
        zeros = ()
        schema = ns.Schema(domains, recodes)
    people = ns.People(neighbours=draw(st.sampled_from(["add-remove", "replace"])))
    if draw(st.booleans()):
        people = ns.People("who", draw(st.integers(1, 3)), people.neighbours)
        ids = draw(st.sampled_from([("integer", [1, 2, 3]), ("text", ["ann", "b'ob", "1", ""])]))
        some = st.lists(st.one_of(st.none(), st.sampled_from(ids[1])), min_size=24, max_size=24)
        held["who"] = (ids[0], draw(some))
    work = ns.Workload(schema, people)
    questions = tuple(draw(asked(schema, work, i)) for i in range(draw(st.integers(1, 3))))
    return World(schema, zeros, people, held, work, questions)
