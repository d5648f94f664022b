"""Run the benchmarks: all of them, or those that are named."""

import importlib
import pkgutil
import platform
import sys
from time import perf_counter

import numpy as np

import benchmarks


def main(wanted: list[str]) -> None:
    """Run each wanted module's ``main`` under a heading."""
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    for found in pkgutil.iter_modules(benchmarks.__path__):
        if found.name.startswith("_") or (wanted and found.name not in wanted):
            continue
        run = getattr(importlib.import_module(f"benchmarks.{found.name}"), "main", None)
        if run is not None:
            print(f"\n==== {found.name} " + "=" * (70 - len(found.name)), flush=True)
            start = perf_counter()
            run()
            print(f"({perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main(sys.argv[1:])
