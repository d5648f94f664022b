"""Every Python block of the documents runs, in order, one namespace a document."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = path.read_text()
    namespace = {"__name__": "__document__"}
    for match in BLOCK.finditer(text):
        line = text[: match.start(1)].count("\n")
        # Leading newlines, so that a traceback names the document's own line.
        exec(compile("\n" * line + match[1], str(path), "exec"), namespace)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in LINK.findall(path.read_text()):
        assert (path.parent / target).exists(), target


def test_there_are_examples_to_run():
    """A pattern that matches nothing would pass everything."""
    assert sum(len(BLOCK.findall(path.read_text())) for path in DOCUMENTS) >= 2
