"""What rich shows of every object, and that plain output stays plain."""

import io
import os
import pty
import subprocess
import sys

import pytest
from rich.console import Console

import noiseshape as ns
from noiseshape.report.terminal import bar


def printed(thing):
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(thing)
    return console.file.getvalue()


def test_every_object_shows_itself(plan, release, book, matrix):
    schema = plan.queries.layout.schema
    for thing, words in (
        (plan, "sex x age"),
        (release, "region 8"),
        (matrix, "x2"),
        (matrix.plan, "directional"),
        (plan.cost, "1e-12"),
        (book, "100.0 %" if not book.history() else "spent"),
        (schema, "categories"),
        (ns.Workload(schema).total(stderr=3), "total"),
        (ns.Workload(schema), "nothing is asked yet"),
        (ns.Table({"[bold]x": ["[red]y"]}), "[red]y"),
    ):
        assert words in printed(thing)
    assert "█" in printed(plan)


def test_long_tables_are_cut_in_the_middle(plan):
    said = printed(plan.errors())
    assert said.count("\n") < 60
    assert "..." in said


@pytest.mark.parametrize("share", [0.0, 0.01, 0.33, 1.0, 7.0])
def test_bars_are_as_wide_as_they_say(share):
    assert len(bar(share)) == 10
    assert bar(share).count("█") == int(min(share, 1) * 10)


def test_colour_on_a_terminal_and_none_in_a_pipe(book):
    command = [sys.executable, "-m", "noiseshape.cli", "ledger", "show", str(book.path)]
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    ours, theirs = pty.openpty()
    process = subprocess.run(command, stdout=theirs, env=env, check=True)
    os.close(theirs)
    said = os.read(ours, 1 << 16)
    os.close(ours)
    assert process.returncode == 0
    assert "┃".encode() in said
    assert b"\x1b[" in said
    plain = subprocess.run(command, capture_output=True, env=env, check=True).stdout
    assert plain.isascii()
