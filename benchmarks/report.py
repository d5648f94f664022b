"""Reports: drawn here, against what Altair with vl-convert takes for its first picture alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np

import noiseshape as ns

_ALTAIR = """
import resource, time
begun = time.perf_counter()
import altair
import vl_convert
def drawn():
    data = altair.Data(values=[{"x": i, "y": i * i} for i in range(100)])
    chart = altair.Chart(data).mark_bar().encode(x="x:Q", y="y:Q")
    return vl_convert.vegalite_to_svg(chart.to_dict())
drawn()
first = time.perf_counter()
drawn()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(first - begun, time.perf_counter() - first, peak)
"""


def main() -> None:
    """Print the time of a report, and of Altair's pictures in a process of their own."""
    for cells, what in ((2, "2 cells, 2 answers"), (170, "170 cells, 340 answers")):
        asked = ns.Queries(cells).ask("up to", np.tril(np.ones((cells, cells))), stderr=30)
        asked = asked.ask("each", np.eye(cells), stderr=20) if cells > 2 else asked
        release = ns.plan(asked).release(np.arange(cells), unrecorded=True)
        release.report()
        begun = time.perf_counter()
        report = release.report()
        seconds = time.perf_counter() - begun
        print(f"report of {what}: {seconds:.3f} s, {len(report.html) / 1e3:.0f} kB")
    done = subprocess.run(
        [sys.executable, "-c", _ALTAIR], capture_output=True, text=True, check=True, env=os.environ
    )
    first, further, peak = map(float, done.stdout.split())
    print(f"Altair with vl-convert, first picture: {first:.2f} s, {peak / 1e3:.0f} MB")
    print(f"Altair with vl-convert, each further one: {further:.3f} s")


if __name__ == "__main__":
    main()
