"""Promises of the house that a machine can check."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import noiseshape

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "noiseshape"
MODULES = sorted(SOURCE.rglob("*.py"))

# Later rooms may import earlier ones, never the other way.
CORRIDOR = ["privacy", "tables", "sampling", "strategies", "design", "release", "report", "learn"]


def imports(path):
    """Yield the absolute names of what a module imports at its top level."""
    package = list(path.relative_to(SOURCE.parent).with_suffix("").parts[:-1])
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*base, node.module or ""]).rstrip(".")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    room = path.relative_to(SOURCE).parts[0]
    if room not in CORRIDOR:
        return
    later = CORRIDOR[CORRIDOR.index(room) + 1 :]
    for name in imports(path):
        parts = name.split(".")
        assert not (parts[0] == "noiseshape" and len(parts) > 1 and parts[1] in later), name


HEAVY = {"torch", "opacus", "pyspark", "sklearn", "shiny", "altair", "cvxpy", "opendp", "pandas"}


# Rooms that nobody imports but who asks for them: their classes inherit from an extra's.
ADAPTERS = {"learn": {"sklearn"}}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_heavy_extras_are_imported_only_inside_functions_and_adapters(path):
    own = ADAPTERS.get(path.relative_to(SOURCE).parts[0], set())
    assert not (HEAVY - own) & {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_generator_or_seed_near_a_release(path):
    """Only functions named simulate_*, on numbers that are public already, may have one."""
    pattern = re.compile(r"np\.random|default_rng|import random|\bseed\b\s*=|RandomState")
    tree, lines = ast.parse(path.read_text()), path.read_text().splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith(("simulate_", "_simulate_")):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    assert not pattern.search("\n".join(lines))


def test_one_door_between_data_and_noise():
    drawing = [path for path in MODULES if "rounded_gaussian" in path.read_text()]
    outside = {str(path.relative_to(SOURCE)) for path in drawing if path.parent.name != "sampling"}
    assert outside == {"release/measurement.py"}


def test_the_base_install_alone_imports():
    """In a process of its own: nothing of the development extra is pulled in."""
    code = "import sys, noiseshape; print(*(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert not (HEAVY | {"dp_accounting", "hypothesis", "pytest"}) & set(loaded.stdout.split())


def test_everything_that_is_installed_is_pinned():
    """What the base install and the development extra need, and what that needs in turn."""
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["dev"]
    waiting, seen = [Requirement(text) for text in asked], set()
    while waiting:
        needed = waiting.pop()
        key = (canonicalize_name(needed.name), frozenset(needed.extras))
        if key in seen:
            continue
        seen.add(key)
        assert metadata.version(needed.name) == pins.get(key[0]), f"{needed.name} is not pinned"
        for text in metadata.requires(needed.name) or []:
            further = Requirement(text)
            marker = further.marker
            if not marker or any(marker.evaluate({"extra": e}) for e in ["", *needed.extras]):
                waiting.append(further)
    assert len(seen) > len(asked)


def test_the_version_is_one():
    assert noiseshape.__version__ == metadata.version("noiseshape")
    assert f"version: {noiseshape.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_what_is_public_is_documented():
    for name in noiseshape.__all__:
        thing = getattr(noiseshape, name)
        assert isinstance(thing, str) or (thing.__doc__ or "").strip(), name


def test_no_file_names_a_package_source_or_a_path_of_one_machine():
    """In the pins, above all: they must install from whatever index the reader uses."""
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    pattern = re.compile(r"i[n]dex-url|/(w[o]rk|t[m]p|r[o]ot)/|https?://[^ ]*pypi")
    for name in tracked:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".cff", ""} and path.is_file():
            assert not pattern.search(path.read_text(errors="ignore")), name
    assert "http" not in (ROOT / "constraints.txt").read_text()


class TestMake:
    """The two commands say what is missing, in one sentence, before anything is made."""

    def make(self, tmp_path, script):
        python = tmp_path / "python3"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            (tmp_path / name).write_text((ROOT / name).read_text())
        run = subprocess.run(
            ["make", f"PYTHON={python}", "demo"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"]},
        )
        assert run.returncode == 2
        assert not (tmp_path / ".venv").exists()
        return run.stdout

    def test_venv_missing(self, tmp_path):
        said = self.make(tmp_path, 'case "$*" in *ensurepip*) exit 1;; esac')
        assert "apt-get install python3-venv" in said

    def test_python_too_old(self, tmp_path):
        said = self.make(tmp_path, 'case "$*" in *version_info*) exit 1;; esac')
        assert "needs Python 3.11" in said

    @pytest.mark.parametrize(
        ("user", "apt", "said"),
        [
            (1000, "", "apt-get install chromium"),  # who may not install is told how
            (0, "exit 1", "apt-get install chromium"),
            (0, 'touch "$0.asked"; printf "%s\\n" "$@" >> "$0.asked"', "Installing Chromium"),
        ],
    )
    def test_a_browser_is_installed_or_asked_for(self, tmp_path, user, apt, said):
        for name, script in (("id", f"echo {user}"), ("apt-get", apt or "exit 1")):
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o755)
        touch = shutil.which("touch")
        (tmp_path / "touch").symlink_to(touch)
        run = subprocess.run(
            [shutil.which("make"), "-f", str(ROOT / "Makefile"), "browser"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={"PATH": str(tmp_path)},
        )
        assert said in run.stdout
        asked = tmp_path / "apt-get.asked"
        assert run.returncode == (0 if asked.exists() else 2)
        assert not asked.exists() or "chromium" in asked.read_text()
