"""Section 6.4 of MVG, measured: seconds of both samplers and both algorithms as matrices grow.

The paper states O(max(m^3, n^3)) for the affine sampler, O((m n)^2) for the Kronecker product of
the other, O(min(max(m^3, n^3), (m n)^2)) for Algorithm 1 and O(m^3) for Algorithm 2. Each line is
one run; the last column is the slope of the logarithms since the line before. The sampler on vec
has to factor its covariance too, (m n)^3 steps, which the paper leaves to the sampler it calls.

    python -m benchmarks.mvg
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from noiseshape.design.condition import Condition
from noiseshape.design.covariances import Covariances
from noiseshape.design.mvg import algorithm_1, algorithm_2
from noiseshape.design.precision import binary


def main() -> None:
    print("Seconds for one draw, covariances given; slope against m = n.\n")
    print(_line("m = n", "affine", "slope", "vec", "slope", "vec / affine"))
    before: tuple[int, float, float] | None = None
    for m in (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048):
        Sigma = _definite(m)
        affine = _seconds(partial(_affine, Sigma, Sigma))
        vec = math.nan
        if m <= 64:
            vec = _seconds(partial(_vec, Sigma, Sigma))
        slopes = ("", "")
        if before is not None:
            step = math.log(m / before[0])
            slopes = (
                f"{math.log(affine / before[1]) / step:.2f}",
                f"{math.log(vec / before[2]) / step:.2f}" if vec == vec else "",
            )
        shown = ("", "") if vec != vec else (f"{vec:.2e}", f"{vec / affine:.1f}")
        print(_line(m, f"{affine:.2e}", slopes[0], shown[0], slopes[1], shown[1]), flush=True)
        before = (m, affine, vec)
    print(
        "\nOne matrix of 4,096 entries, by its shape: the affine sampler pays for the long side.\n"
    )
    print(_line("m x n", "affine", "vec", "vec / affine"))
    for m in (1, 4, 16, 64):
        n = 4096 // m
        rows, columns = _definite(m), _definite(n)
        affine = _seconds(partial(_affine, rows, columns))
        vec = _seconds(partial(_vec, rows, columns), least=0.0)
        print(_line(f"{m} x {n}", f"{affine:.2e}", f"{vec:.2e}", f"{vec / affine:.1f}"), flush=True)
    print(
        "\nSeconds of a design and a draw, directions given (m rows; Algorithm 1 on m x 1,000).\n"
    )
    print(_line("m", "Algorithm 1", "slope", "Algorithm 2", "slope"))
    last: tuple[int, float, float] | None = None
    for m in (32, 64, 128, 256, 512, 1024, 2048):
        W = np.linalg.qr(np.random.default_rng(m).normal(size=(m, m)))[0]
        one = _seconds(partial(_draw, m, 1000, W))
        two = _seconds(partial(_draw, m, m, W))
        slopes = ("", "")
        if last is not None:
            step = math.log(m / last[0])
            slopes = (
                f"{math.log(one / last[1]) / step:.2f}",
                f"{math.log(two / last[2]) / step:.2f}",
            )
        print(_line(m, f"{one:.2e}", slopes[0], f"{two:.2e}", slopes[1]), flush=True)
        last = (m, one, two)


def _affine(rows: np.ndarray, columns: np.ndarray) -> None:
    Covariances(rows, columns).simulate_affine(1, seed=1)


def _vec(rows: np.ndarray, columns: np.ndarray) -> None:
    Covariances(rows, columns).simulate_vec(1, seed=1)


def _draw(m: int, n: int, W: np.ndarray) -> None:
    c = Condition(m=m, n=n, s2=1.0, gamma=1.0, epsilon=1.0, delta=1e-5)
    theta = binary(m, [0], 0.5)
    noise = algorithm_2(c, theta, W) if m == n else algorithm_1(c, theta, W)
    noise.simulate_affine(1, seed=1)


def _definite(k: int) -> np.ndarray:
    M = np.random.default_rng(k).normal(size=(k, k + 2))
    return M @ M.T / k + np.eye(k)


def _seconds(act: Callable[[], object], least: float = 0.2) -> float:
    """Return seconds a call: the best of several, over at least ``least`` seconds in all."""
    best, spent = math.inf, 0.0
    while True:
        start = time.perf_counter()
        act()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
        if spent >= least:
            return best


def _line(*cells: object) -> str:
    return " ".join(str(cell).rjust(13) for cell in cells)


if __name__ == "__main__":
    main()
