"""Designs with one thread against as many as there are cores, in one run."""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from noiseshape import _threads
from noiseshape.design import fit

from .workloads import range_queries


def main() -> None:
    """Print seconds of fit, with one thread and with all, as cells grow."""
    most = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    print(f"cells   one thread   {most} threads   ratio")
    small = _threads.SMALL
    for d in (64, 256, 512, 1024):
        W, c = range_queries(d, 2 * d, np.random.default_rng(d))
        times = []
        for threads in (1, most):
            # Past the limit of what counts as small, the threads are as they were set.
            _threads.SMALL = -1
            with threadpool_limits(threads, user_api="blas"):
                start = time.perf_counter()
                fit(W, c)
                times.append(time.perf_counter() - start)
            _threads.SMALL = small
        print(f"{d:5} {times[0]:12.3f} {times[1]:11.3f} {times[1] / times[0]:7.2f}", flush=True)
