"""Exact integer products at 1,024 x 1,024, and what rounding a design to integers costs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import mul
from time import perf_counter

import numpy as np
from flint import fmpz_mat

from noiseshape.strategies import rounded
from noiseshape.strategies.exact import product

SIZE = 1024


def main() -> None:
    rng = np.random.default_rng(1)
    A = rng.integers(-(2**24), 2**24, (SIZE, SIZE))
    print(f"A x for {SIZE} x {SIZE} integers of 24 bits, milliseconds (best of 5).")
    print(f"{'x of':>8} {'ours':>8} {'Python ints':>12} {'flint':>8} {'float64':>8} {'exact':>6}")
    wide, floats = A.astype(object), A.astype(np.float64)
    matrix = fmpz_mat(A.tolist())
    for bits in (20, 30, 60, 90):
        x = np.array(
            [int(v) << max(0, bits - 30) for v in rng.integers(0, 2 ** min(bits, 30), SIZE)]
        )
        x = x.astype(np.int64 if bits < 62 else object)
        column = fmpz_mat([[int(v)] for v in x])
        plain = wide @ x.astype(object)
        times = [
            milliseconds(partial(product, A, x)),
            milliseconds(partial(np.matmul, wide, x.astype(object))),
            milliseconds(partial(mul, matrix, column)),
            milliseconds(partial(np.matmul, floats, x.astype(np.float64))),
        ]
        exact = bool((product(A, x).astype(object) == plain).all())
        print(
            f"{bits:>5} bit {times[0]:8.2f} {times[1]:12.2f} {times[2]:8.2f} {times[3]:8.2f}",
            end="",
        )
        print(f" {exact!s:>6}")
    print("(flint: the product alone; making its matrix from the array takes", end=" ")
    print(f"{milliseconds(partial(fmpz_mat, A.tolist())):.0f} ms.)\n")
    print("Rounding a strategy for d prefixes to integers: seconds, bits of sigma, loss in mu.")
    for d in (64, 256, SIZE):
        W = np.tril(np.ones((d, d)))
        strategy = np.linalg.cholesky(np.linalg.inv(W.T @ W + np.eye(d))).T
        start = perf_counter()
        result = rounded(strategy, W)
        took = perf_counter() - start
        bits = np.log2(result.strategy.sigma[0])
        print(f"{d:>6} {took:8.2f} {bits:6.1f} {result.loss:10.1e}")


def milliseconds(call: Callable[[], object]) -> float:
    """Return the best of five timings."""
    best = np.inf
    for _ in range(5):
        start = perf_counter()
        call()
        best = min(best, perf_counter() - start)
    return best * 1e3


if __name__ == "__main__":
    main()
