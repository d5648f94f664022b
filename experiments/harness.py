"""What every experiment is: cases that are computed one by one and kept, a table, a verdict."""

from __future__ import annotations

import ast
import csv
import hashlib
import importlib
import json
import os
import pkgutil
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

import experiments
from noiseshape import __version__
from noiseshape.errors import InvalidInput

Size = Literal["tiny", "default", "full"]
Row = dict[str, Any]
Rows = list[Row]
Floats = NDArray[np.float64]
Watch = Callable[[str], None]

HERE = Path(__file__).parent
GROUPS = {"ffu": "Fitness-for-use", "mvg": "MVG", "imgm": "IMGM", "ours": "Ours"}
# What is not computed with: modules, functions by how their names begin, arguments of EXPERIMENT.
SHOWING = ("harness", "pictures", "tables", "document")
TOLD = ("table", "verdict", "picture", "_told")
WORDS = ("title", "protocol", "what", "why", "table", "verdict", "picture")
Kind = Literal["agrees", "differs", "cannot be reproduced", "ours"]


class Case(NamedTuple):
    """A part of an experiment that is computed at once, and kept when the rest is interrupted."""

    key: str
    compute: Callable[[], Rows]


class Verdict(NamedTuple):
    """How what was measured compares with what is printed, and why."""

    kind: Kind
    why: str


@dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Attributes
    ----------
    title
        What is measured, in one line.
    protocol
        What is done, and what the paper leaves open, in one paragraph.
    cases
        The cases at a size: "tiny" for tests, "default" for minutes, "full" for all of it.
    table
        From all rows to the rows that are shown.
    verdict
        From all rows to the verdict; every number in it is computed from the rows.
    picture
        From all rows to an Altair chart.
    """

    title: str
    protocol: str
    cases: Callable[[Size], list[Case]]
    table: Callable[[Rows], Rows]
    verdict: Callable[[Rows], Verdict]
    picture: Callable[[Rows], Any]
    name: str = field(default="", compare=False)

    @property
    def group(self) -> str:
        """Return whose claim it is about."""
        return GROUPS[self.name.split("-")[0]]


@dataclass(frozen=True)
class Record:
    """What a run of an experiment found: all rows, and where and how long it ran."""

    name: str
    size: Size
    script: str
    version: str
    machine: Row
    cases: dict[str, Row]

    @property
    def rows(self) -> Rows:
        """Return the rows of all cases, in order."""
        return [row for case in self.cases.values() for row in case["rows"]]

    @property
    def seconds(self) -> float:
        """Return how long the cases took in all."""
        return float(sum(case["seconds"] for case in self.cases.values()))


# ---------------------------------------------------------------- what there is


@cache
def experiments_by_name() -> dict[str, Experiment]:
    """Return every experiment, by the name that is typed, in the papers' order."""
    found = {}
    for module in pkgutil.iter_modules(experiments.__path__):
        if module.name.split("_")[0] in GROUPS:
            name = module.name.replace("_", "-")
            made: Experiment = importlib.import_module(f"experiments.{module.name}").EXPERIMENT
            object.__setattr__(made, "name", name)
            found[name] = made
    order = list(GROUPS)
    return dict(sorted(found.items(), key=lambda item: order.index(item[0].split("-")[0])))


def named(name: str) -> Experiment:
    """Return the experiment of that name, or say which there are."""
    known = experiments_by_name()
    if name not in known:
        raise InvalidInput(f"no experiment is called {name!r}: choose from {', '.join(known)}.")
    return known[name]


@cache
def _printed() -> dict[str, Any]:
    return json.loads((HERE / "printed.json").read_text(encoding="utf-8"))


def printed(name: str) -> dict[str, Any]:
    """Return what the paper prints for an experiment; empty for our own."""
    return dict(_printed().get(name, {}))


# ---------------------------------------------------------------- chance


def seed(*words: object) -> int:
    """Return the seed that the words stand for: 128 bits of their hash, chosen by nobody."""
    text = "/".join(map(str, words))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def generator(*words: object) -> np.random.Generator:
    """Return numpy's generator for a case, or for one trial of it."""
    return np.random.default_rng(seed(*words))


class Mean(NamedTuple):
    """A mean over independent trials, and the half-width of its 95 % interval."""

    mean: float
    half: float


def mean(values: ArrayLike) -> Mean:
    """Return the mean and its 95 % interval by Student's t; 0 wide for a single value."""
    x = np.asarray(values, dtype=np.float64)
    if x.size < 2:
        return Mean(float(x.mean()), 0.0)
    spread = float(x.std(ddof=1) / np.sqrt(x.size))
    return Mean(float(x.mean()), float(student.ppf(0.975, x.size - 1)) * spread)


def column(rows: Rows, name: str, **where: object) -> list[Any]:
    """Return one column of the rows in which the named others have these values."""
    return [row[name] for row in rows if all(row.get(k) == v for k, v in where.items())]


def distinct(rows: Rows, name: str) -> list[Any]:
    """Return the values of a column, each once, in order of appearance."""
    return list(dict.fromkeys(row[name] for row in rows if name in row))


# ---------------------------------------------------------------- running


def run(
    experiment: Experiment,
    out: Path,
    size: Size = "default",
    *,
    again: bool = False,
    watch: Watch = lambda _: None,
) -> Record:
    """Compute the cases that are missing, keeping each as it is done, and write the files.

    Cases that an earlier run kept are used if size, script and version are the same.
    """
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{experiment.name}.json"
    kept = {} if again else _kept(path, experiment, size)
    cases: dict[str, Row] = {}
    listed = experiment.cases(size)
    for number, case in enumerate(listed, 1):
        watch(f"case {number} of {len(listed)}: {case.key}")
        if case.key in kept:
            cases[case.key] = kept[case.key]
            continue
        begun = time.perf_counter()
        rows = [{name: plain(value) for name, value in row.items()} for row in case.compute()]
        seconds = round(time.perf_counter() - begun, 3)
        cases[case.key] = {"seconds": seconds, "rows": rows}
        # What was kept and is not reached yet stays, should this run be interrupted too.
        _keep(path, _record(experiment, size, {**kept, **cases}))
    record = _record(experiment, size, cases)
    _keep(path, record)
    write(experiment, record, out)
    return record


def load(experiment: Experiment, out: Path) -> Record | None:
    """Return the record that a run has kept in a folder, if it is whole and of this script."""
    path = out / f"{experiment.name}.json"
    if not path.is_file():
        return None
    try:
        record = Record(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        return None
    wanted = {case.key for case in experiment.cases(record.size)}
    same = record.script == script(experiment)
    return record if same and wanted <= set(record.cases) else None


def script(experiment: Experiment) -> str:
    """Return the hash of what the experiment computes with: its script and what that imports here.

    How it is shown and told does not count: the modules of ``SHOWING``, and in every other what is
    called table, verdict, picture or _told..., or is their words.
    """
    digest = hashlib.sha256()
    waiting, seen = [HERE / f"{experiment.name.replace('-', '_')}.py"], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in seen or path.stem in SHOWING:
            continue
        seen.add(path)
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        for node in tree.body:
            for part in _computing(node):
                digest.update((ast.get_source_segment(source, part) or "").encode())
        for found in ast.walk(tree):
            if isinstance(found, ast.ImportFrom) and found.level:
                base = path.parent if found.level == 1 else path.parents[1]
                names = [found.module] if found.module else [alias.name for alias in found.names]
                places = [base.joinpath(*name.split(".")) for name in names]
                waiting += [p for at in places for p in (at.with_suffix(".py"), at / "__init__.py")
                            if p.is_file()]  # fmt: skip
    return digest.hexdigest()[:16]


def _computing(node: ast.stmt) -> list[ast.AST]:
    """Return the parts of a module's statement that results depend on."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr)):
        return []
    if isinstance(node, ast.FunctionDef) and node.name.startswith(TOLD):
        return []
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXPERIMENT":
        call = node.value
        assert isinstance(call, ast.Call)
        return [*call.args, *(k.value for k in call.keywords if k.arg not in WORDS)]
    return [node]


def plain(value: Any) -> Any:
    """Return a number, text or truth value as JSON and CSV know it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"a row holds numbers, texts and truth values, not {type(value).__name__}.")
    return value


def machine() -> Row:
    """Return what numbers and times depend on: processor, cores, threads, versions."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
        name = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), name)
    versions = {lib: metadata.version(lib) for lib in ("numpy", "scipy", "python-flint")}
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "BLAS threads": os.environ.get("OPENBLAS_NUM_THREADS", "as many as cores"),
        "Python": platform.python_version(),
        **versions,
        "when": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def _record(experiment: Experiment, size: Size, cases: dict[str, Row]) -> Record:
    return Record(experiment.name, size, script(experiment), __version__, machine(), cases)


def _kept(path: Path, experiment: Experiment, size: Size) -> dict[str, Row]:
    """Return the cases of an earlier run of the same script, size and version."""
    try:
        old = Record(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}
    same = (old.size, old.script, old.version) == (size, script(experiment), __version__)
    return old.cases if same else {}


def _keep(path: Path, record: Record) -> None:
    """Write a record whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(vars(record), separators=(",", ":")) + "\n", encoding="utf-8")
    part.replace(path)


# ---------------------------------------------------------------- writing


def write(experiment: Experiment, record: Record, out: Path) -> None:
    """Write NAME.csv (every row), NAME.md (table, picture, verdict) and NAME.svg."""
    rows = record.rows
    names = list(dict.fromkeys(name for row in rows for name in row))
    with (out / f"{experiment.name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    experiment.picture(rows).save(out / f"{experiment.name}.svg")
    text = "\n".join(section(experiment, record, level=1, folder=""))
    (out / f"{experiment.name}.md").write_text(text + "\n", encoding="utf-8")


def section(experiment: Experiment, record: Record, *, level: int, folder: str) -> Iterator[str]:
    """Yield the lines of one experiment's part of a document."""
    name, rows = experiment.name, record.rows
    verdict, paper = experiment.verdict(rows), printed(name)
    yield f"{'#' * level} {name}: {experiment.title}"
    yield ""
    if paper:
        yield f"*{paper['paper']}, {paper['table']} ({paper['place']}).* {paper['says']}"
        yield ""
    yield experiment.protocol
    yield ""
    yield from markdown(experiment.table(rows))
    yield ""
    yield f"![{experiment.title}]({folder}{name}.svg)"
    yield ""
    label = "" if verdict.kind == "ours" else f"**{verdict.kind.capitalize()}.** "
    yield f"{label}{verdict.why}"
    yield ""
    yield (
        f"`noiseshape reproduce {name}`, size {record.size}, {record.seconds:.0f} s; "
        f"every row in [{name}.csv]({folder}{name}.csv)."
    )


def markdown(rows: Rows) -> Iterator[str]:
    """Yield a Markdown table; columns in order of first appearance, numbers to the right."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {n: all(not isinstance(row.get(n), str) for row in rows) for n in names}
    yield "| " + " | ".join(names) + " |"
    yield "| " + " | ".join("--:" if numeric[n] else "---" for n in names) + " |"
    for row in rows:
        yield "| " + " | ".join(shown(row.get(n)) for n in names) + " |"


def shown(value: Any) -> str:
    """Return a value as a table shows it: numbers to four digits."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def capital(text: str) -> str:
    """Return the text with a capital."""
    return text[0].upper() + text[1:]


def plus_minus(values: Mean | Sequence[float] | Iterable[float]) -> str:
    """Return a mean and its interval as tables show them."""
    m = values if isinstance(values, Mean) else mean(list(values))
    return shown(m.mean) if m.half == 0 else f"{shown(m.mean)} ± {m.half:.2g}"
