"""Links that lead out of the documentation, to the sources, are names on the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:]+?)(#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Return a page whose links into the repository, which the site does not hold, are text."""
    home = Path(config["docs_dir"]).resolve()
    here = (home / page.file.src_uri).parent

    def kept(match: re.Match[str]) -> str:
        inside = (here / match[2]).resolve().is_relative_to(home)
        return match[0] if inside else match[1]

    return _LINK.sub(kept, markdown)
