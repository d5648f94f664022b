"""Exact noise: draws per second, the share of each tier, and the float error against arb.

Run ``python -m benchmarks.sampling [intervals]``; ten million intervals take a minute or two.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import opendp.prelude as dp
from flint import arb
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from noiseshape._arb import ball, precision
from noiseshape.sampling import rounded_gaussian
from noiseshape.sampling.bits import secret_words
from noiseshape.sampling.gaussian import CHUNK
from noiseshape.sampling.interval import (
    ABSOLUTE,
    RELATIVE,
    TAIL,
    settle_quickly,
    tail_midpoint,
)

DRAWS = 10**6


def main(intervals: int = 10**7) -> None:
    speed()
    tiers()
    far_scales()
    float_error(intervals)
    decisions()
    discrete_excess()


# ---------------------------------------------------------------- speed


def speed() -> None:
    print(f"\nIntegers of scale sigma, ns a draw ({DRAWS:,} draws, best of 5; OpenDP once,")
    print("at nearly 10 seconds). numpy's floats are no private noise: they are the floor.")
    print("Of ours, the operating system's bits alone:", end=" ")
    print(f"{nanoseconds(partial(secret_words_in_chunks, DRAWS), DRAWS):.1f}")
    print(f"{'sigma':>8} {'ours':>8} {'draws/s':>10} {'OpenDP':>8} {'numpy':>7}", end="")
    print(f" {'OpenDP/ours':>12} {'ours/numpy':>11}")
    rng = np.random.default_rng(1)
    dp.enable_features("contrib")
    for sigma in (1e3, 1e9):
        ours = nanoseconds(partial(rounded_gaussian, sigma, DRAWS), DRAWS)
        floor = nanoseconds(partial(rng.normal, 0.0, sigma, DRAWS), DRAWS)
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        measurement = space >> dp.m.then_gaussian(scale=sigma)
        theirs = nanoseconds(partial(measurement, [0] * DRAWS), DRAWS, rounds=1)
        print(f"{sigma:8.0e} {ours:8.1f} {1e9 / ours:10.2e} {theirs:8.0f} {floor:7.1f}", end="")
        print(f" {theirs / ours:12.0f} {ours / floor:11.1f}")


def secret_words_in_chunks(draws: int) -> None:
    for _ in range(draws // CHUNK):
        secret_words(CHUNK)


def nanoseconds(call: Callable[[], Any], draws: int, rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times) / draws * 1e9


def tiers() -> None:
    print(f"\nShare of {DRAWS:,} draws that doubles settle; arb settles the rest.")
    words = secret_words(DRAWS)
    for name, sigma in (("1/100", 0.01), ("1", 1.0), ("1e3", 1e3), ("1e9", 1e9), ("2^40", 2.0**40)):
        late = int((~settle_quickly(words, np.float64(sigma))[1]).sum())
        print(f"{name:>8} {1 - late / DRAWS:11.6f}   left to arb: {late}")


def far_scales() -> None:
    print("\nFrom 2^40 on, microseconds a draw (5,000 draws).")
    for power in (40, 42, 44, 50, 56, 60, 70, 80):
        took = nanoseconds(partial(rounded_gaussian, 2**power, 5000), 5000)
        print(f"    2^{power} {took / 1e3:8.2f}")


# ---------------------------------------------------------------- margins


def float_error(intervals: int) -> None:
    """Print how much of the stated margin the doubles' true error ever takes."""
    print("\nError of |x| in doubles (x = sigma N, sigma = 10/3), farther end of the interval,")
    print("against erfc in arb: worst share of the stated margin, and worst relative error of x")
    print("against the interval's midpoint in units of 2^-53.")
    rng = np.random.default_rng(20261101)
    for region, weight, p in regions(rng):
        share = relative = 0.0
        count = int(weight * intervals)
        for start in range(0, count, 10**5):
            words = (p(min(10**5, count - start)) * 2.0**64).astype(np.uint64)
            words += rng.integers(0, 1024, words.size, dtype=np.uint64)
            shares, relatives = errors(np.minimum(words, np.uint64(2**63 - 1)), Fraction(10, 3))
            share, relative = max(share, shares), max(relative, relatives)
        print(f"{region:>36} {count:>12,} {share:8.3f} {relative:8.1f}", flush=True)


def regions(
    rng: np.random.Generator,
) -> list[tuple[str, float, Callable[[int], NDArray[np.float64]]]]:
    def seam(n: int) -> NDArray[np.float64]:
        distance: NDArray[np.float64] = 2.0 ** -rng.uniform(3, 40, n)
        p: NDArray[np.float64] = np.exp(-2) * (1 + rng.choice([-1, 1], n) * distance)
        return p

    return [
        ("as drawn", 0.5, lambda n: rng.uniform(TAIL, 0.5, n)),
        ("at the seam of ndtri, p near e^-2", 0.25, seam),
        ("near one half", 0.1, lambda n: 0.5 - 2.0 ** -rng.uniform(2, 52, n)),
        ("down to the tail, log-uniform", 0.15, lambda n: 2.0 ** -rng.uniform(1, 17, n)),
    ]


def errors(words: NDArray[np.uint64], sigma: Fraction) -> tuple[float, float]:
    """Return the worst share of the margin, and the worst relative error in 2^-53."""
    x = np.abs(ndtri(tail_midpoint(words)) * float(sigma))
    gaps, ts = np.empty(x.size), np.empty(x.size)
    with precision(128):
        scale, root = 1 / ball(sigma), 1 / arb(2).sqrt()
        for i, (k, xi) in enumerate(zip(words.tolist(), x.tolist(), strict=True)):
            t = arb(xi) * scale
            gaps[i] = float(abs((t * root).erfc() * 0.5 - arb((2 * k + 1, -65))))
            ts[i] = float(t)
    # Q(t) - p over the density is t's distance to the true |N|; 1e-9 covers its curvature.
    inverse_density = np.sqrt(2 * np.pi) * np.exp(ts**2 / 2) * (1 + 1e-9)
    shares = (gaps + 2.0**-65) * inverse_density / (RELATIVE * ts + ABSOLUTE)
    far = ts > 0.5  # nearer to 0 the rounding of p rules, which ABSOLUTE covers
    relative = (gaps * inverse_density)[far] / ts[far] * 2.0**53
    return float(shares.max()), float(relative.max(initial=0.0))


def decisions(wanted: int = 100_000) -> None:
    """Check settled draws that came closest to not being settled, by erfc at the edges."""
    sigma = Fraction(2**40)
    wrong = checked = 0
    while checked < wanted:
        words = secret_words(DRAWS)
        m, settled = settle_quickly(words, np.float64(sigma))
        x = np.abs(ndtri(tail_midpoint(words)) * float(sigma))
        slack = 0.5 - ABSOLUTE * float(sigma) - np.abs(x - np.rint(x)) - RELATIVE * x
        closest = np.flatnonzero(settled & (slack < 0.004))
        with precision(160):
            scale = 1 / (ball(sigma) * arb(8).sqrt())
            for word, near in zip(words[closest].tolist(), m[closest].tolist(), strict=True):
                k, j = word % 2**63, abs(int(near))
                inner = ((2 * j - 1) * scale).erfc() * 0.5
                outer = ((2 * j + 1) * scale).erfc() * 0.5
                wrong += not (outer <= arb((k, -64)) and arb((k + 1, -64)) <= inner)
        checked += closest.size
    print("\nSettled draws at sigma 2^40 that came within 0.004 of the margin,")
    print(f"against erfc at both edges: {wrong} wrong of {checked:,}.")


# ---------------------------------------------------------------- why rounded, not discrete


def discrete_excess() -> None:
    """Print how far each integer noise exceeds the continuous Gaussian's delta."""
    print("\nLargest ratio of a noise's delta to the continuous Gaussian's, over all epsilon")
    print("where the latter is at least the floor (f differs by `shift`).")
    print(f"{'sigma':>6} {'shift':>6} {'floor':>7} {'discrete':>9} {'at eps':>7} {'rounded':>12}")
    for sigma, shift in ((0.5, 1), (1.0, 1), (10.0, 1), (10.0, 10), (64.0, 64)):
        for floor in (1e-3, 1e-6, 1e-8):
            eps = np.arange(0, 12, 0.005)
            smooth = gaussian_delta(eps, shift / sigma)
            eps, smooth = eps[smooth >= floor], smooth[smooth >= floor]
            discrete = lattice_delta(eps, discrete_weight, sigma, shift) / smooth
            rounded = lattice_delta(eps, rounded_weight, sigma, shift) / smooth
            print(f"{sigma:6g} {shift:6d} {floor:7.0e} {discrete.max():9.4f}", end="")
            print(f" {eps[discrete.argmax()]:7.3f} {rounded.max():12.9f}")


def gaussian_delta(eps: NDArray[np.float64], mu: float) -> NDArray[np.float64]:
    delta: NDArray[np.float64] = ndtr(mu / 2 - eps / mu) - np.exp(eps) * ndtr(-mu / 2 - eps / mu)
    return delta


def lattice_delta(
    eps: NDArray[np.float64],
    weight: Callable[[NDArray[np.int64], float], NDArray[np.float64]],
    sigma: float,
    shift: int,
) -> NDArray[np.float64]:
    reach = math.ceil(30 * sigma) + shift
    m = np.arange(-reach, reach + 1)
    here, there = weight(m, sigma), weight(m - shift, sigma)
    return np.array([np.maximum(here - np.exp(e) * there, 0).sum() for e in eps])


def discrete_weight(m: NDArray[np.int64], sigma: float) -> NDArray[np.float64]:
    reach = math.ceil(40 * sigma)
    total = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2)).sum()
    weight: NDArray[np.float64] = np.exp(-(m**2) / (2 * sigma**2)) / total
    return weight


def rounded_weight(m: NDArray[np.int64], sigma: float) -> NDArray[np.float64]:
    j = np.abs(m)
    weight: NDArray[np.float64] = ndtr((0.5 - j) / sigma) - ndtr((-0.5 - j) / sigma)
    return weight


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
