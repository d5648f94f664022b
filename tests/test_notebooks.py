"""Notebooks run from top to bottom, show what they end with, and are kept without outputs."""

import ast
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_runs_and_shows(path, tmp_path, monkeypatch):
    """As a kernel does: each cell in one namespace, its last expression shown."""
    monkeypatch.chdir(tmp_path)
    namespace, shown = {"__name__": "__main__"}, 0
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"]))
        last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
        exec(compile(body, path.name, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), namespace)
            if hasattr(value, "_repr_html_"):
                assert "<" in value._repr_html_()
                shown += 1
    assert shown >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_no_outputs_are_kept(path):
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
