"""Signs of life on the terminal for what takes longer than a second; nothing of the data."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 1.0  # seconds before anything is said
_EVERY = 10.0  # seconds between lines where there is no terminal


@contextmanager
def progress(label: str) -> Iterator[Callable[[str], None]]:
    """Show on standard error what is being done, and for how long; yield where to say more."""
    said = [""]
    done = threading.Event()
    terminal = sys.stderr.isatty()

    def show() -> None:
        begun = time.monotonic()
        wait = _PATIENCE
        shown = False
        while not done.wait(wait):
            seconds = time.monotonic() - begun
            text = f"{label}, {seconds:.0f} s" + (f", {said[0]}" if said[0] else "")
            print(f"\r\x1b[K{text}" if terminal else text, end="" if terminal else "\n",
                  file=sys.stderr, flush=True)  # fmt: skip
            shown, wait = True, 0.5 if terminal else _EVERY
        if shown and terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield lambda text: said.__setitem__(0, text)
    finally:
        done.set()
        thread.join()
