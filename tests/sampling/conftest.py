"""A slow, plain reference, and a way to hand the sampler chosen bits."""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq

from noiseshape._arb import ball, precision
from noiseshape.sampling import bits


def upper_tail(t):
    """Q(t) for an arb t."""
    return (t / arb(2).sqrt()).erfc() / 2


def round_by_bisection(words: list[int], sigma: Fraction) -> int:
    """What the words decide, by the forward function alone: no inverse, no doubles.

    |sigma N| rounds to at least j when its tail probability is at most Q((j - 1/2) / sigma).
    """
    width, k = 64 * len(words), 0
    for word in words:
        k = k << 64 | word
    negative, k = divmod(k, 1 << (width - 1))
    lows, highs = (Fraction(k + end, 1 << width) for end in (0, 1))

    def reaches(j: int, p: Fraction) -> bool:
        edge = upper_tail(ball(Fraction(2 * j - 1, 2) / sigma))
        point = arb(fmpq(p.numerator, p.denominator))
        if point < edge:
            return True
        assert point > edge, "the reference needs more precision"
        return False

    def largest(p: Fraction) -> int:
        low, high = 0, 1
        while reaches(high, p):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if reaches(middle, p) else (low, middle)
        return low

    with precision(width + 400):
        m = largest(highs)
        assert lows > 0, "the words leave the tail open"
        assert largest(lows) == m, "the words leave more than one integer"
    return -m if negative else m


@pytest.fixture
def reference():
    return round_by_bisection


@pytest.fixture
def tail():
    return upper_tail


@pytest.fixture
def pmf():
    """P(round(sigma N) = m) as doubles, from differences of erfc in arb."""

    def chances(sigma, ms: Iterable[int]) -> np.ndarray:
        with precision(256):
            s = ball(Fraction(sigma))
            edge = {}
            for m in ms:
                for j in (abs(int(m)), abs(int(m)) + 1):
                    if j not in edge:
                        edge[j] = upper_tail((2 * j - 1) / (2 * s))
            return np.array([float(edge[abs(int(m))] - edge[abs(int(m)) + 1]) for m in ms])

    return chances


@pytest.fixture
def chosen_bits(monkeypatch):
    """Serve these words, in order, instead of secret ones; returns the list of those left."""

    def serve(words: Iterable[int]) -> list[int]:
        left = list(words)

        def take(count: int) -> np.ndarray:
            taken = [left.pop(0) for _ in range(count)]
            return np.array(taken, dtype=np.uint64)

        monkeypatch.setattr(bits, "secret_words", take)
        return left

    return serve
