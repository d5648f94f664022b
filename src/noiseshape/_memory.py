"""How much memory can still be had."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


def free_memory() -> int:
    """Return the memory that can still be had, in bytes."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def kept() -> Iterator[None]:
    """Make many small objects that all stay: the collector need not walk them as they come.

    A hundred thousand queries are made in half the time; what was left to collect is collected
    after.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
