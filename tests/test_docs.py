"""Every Python block of the documents runs, in order, one namespace a document."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from noiseshape.cli import app
from noiseshape.spec import parsed

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


SPECS = [
    (path, text)
    for path in DOCUMENTS
    for text in re.findall(r"^```yaml\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize(("path", "text"), SPECS, ids=[p.name for p, _ in SPECS])
def test_specs_can_be_read(path, text):
    assert parsed(text, path.name).queries


def commands():
    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        subs = getattr(command, "commands", None)
        yield from [name] if subs is None else [f"{name} {sub}" for sub in subs]


@pytest.mark.parametrize("command", sorted(commands()))
def test_every_command_is_documented(command):
    assert f"noiseshape {command} " in (ROOT / "docs/commands.md").read_text()


TYPED = re.compile(r"^ *(noiseshape [a-z][^#`|\n]*?) *(?:#.*|> .*)?$", re.MULTILINE)
LINES = [
    (path, line)
    for path in DOCUMENTS
    if path.parent.name != "reproduction"
    for line in TYPED.findall(path.read_text())
]


@pytest.mark.parametrize(("path", "line"), LINES, ids=[line for _, line in LINES])
def test_commands_as_typed_are_understood(path, line):
    """Each word is a command, an argument or an option that there is; nothing is run."""
    command, words = typer.main.get_command(app), shlex.split(line)[1:]
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("noiseshape", words)


def test_a_command_that_is_not_there_would_be_found():
    assert len(LINES) > 10
    with pytest.raises(KeyError):
        test_commands_as_typed_are_understood(None, "noiseshape paln spec.yaml")
    with pytest.raises(Exception, match="no-such-option"):
        test_commands_as_typed_are_understood(None, "noiseshape plan spec.yaml --no-such-option")


def test_there_are_examples_to_run():
    """A pattern that matches nothing would pass everything."""
    assert sum(len(BLOCK.findall(path.read_text())) for path in DOCUMENTS) >= 2
