"""The documentation as a site: it builds without a network, strictly, and asks for nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FETCHED = re.compile(r"""<(?:script|link|img|iframe)[^>]*?(?:src|href)=["'](?:https?:)?//[^"']+""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    # A proxy that is not there: whatever asked the network would fail.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        env={**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
        timeout=300,
    )
    return out


def test_every_page_is_there_and_fetches_nothing(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert not FETCHED.search(page.read_text()), page.name
    assert FETCHED.search('<script async src="https://example.org/x.js">')


def test_every_document_is_on_the_site(site):
    for path in (ROOT / "docs").rglob("*.md"):
        assert (site / path.relative_to(ROOT / "docs").with_suffix(".html")).exists(), path.name


def test_the_reference_has_what_people_type(site):
    text = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    for name in ("plan", "Plan", "Release", "Workload", "Schema", "Ledger", "covariance"):
        assert re.search(rf'id="noiseshape\.[\w.]*\b{name}"', text), name
    assert "Formal guarantees." in text
    assert "Formal Guarantees:" not in text


def test_sources_are_names_on_the_site(site):
    assert 'href="../../tests' not in (site / "math" / "fit.html").read_text()


def test_docstrings_keep_their_lists():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from docstrings import noted
    finally:
        sys.path.pop(0)
    said = "One.\n\nParameters\n----------\na\n    First.\n\nb : c\n    Second.\n\nAnd so on.\n\n"
    said += "Formal Guarantees:\n  It holds,\n  always."
    assert noted(said) == (
        "One.\n\nParameters\n----------\na\n    First.\n\nb : c\n    Second.\n\nNotes\n-----\n"
        "And so on.\n\nNotes\n-----\n**Formal guarantees.** It holds, always."
    )
