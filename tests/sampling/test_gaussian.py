"""The law of the draws, against exact probabilities, and that the tests can see a wrong one.

The draws are truly random, so thresholds are set where a right sampler fails by chance
less than once in 10^9 runs of the file, and sample sizes where every negative control is
rejected by many orders of magnitude more than that.
"""

import ast
import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from noiseshape.errors import InvalidInput, NoiseshapeError, TooLarge
from noiseshape.sampling import bits, gaussian, rounded_gaussian

# About 60 tests of hypotheses below: 60 times this is far under 1e-9.
CHANCE = 1e-13
# The same for a standard normal statistic, two-sided: P(|N| > 7.5) = 6e-14.
SDS = 7.5
WRONG = Fraction(103, 100)


def chi_square(draws, sigma, pmf):
    """p-value of the draws under the exact law, cells of 300 expected draws or more."""
    n = draws.size
    reach = int(np.ceil(9 * float(sigma))) + 2
    ms = np.arange(-reach, reach + 1)
    expected = n * pmf(sigma, ms)
    counts = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=ms.size)
    # Pool from the left until a cell is full; what is left over joins the last one.
    ends, mass = [], 0.0
    for i, e in enumerate(expected):
        mass += e
        if mass >= 300:
            ends.append(i + 1)
            mass = 0.0
    starts = [0, *ends[:-1]]
    pooled, seen = np.add.reduceat(expected, starts), np.add.reduceat(counts, starts)
    statistic = ((seen - pooled) ** 2 / pooled).sum()
    return stats.chi2.sf(statistic, len(starts) - 1)


@pytest.fixture
def biased(monkeypatch):
    """Make one bit of every word 1 with chance 0.53 in place of 0.5."""

    def bias(bit: int) -> None:
        honest = bits.secret_words

        def words(count: int) -> np.ndarray:
            odd = (honest(count) % np.uint64(100) < 6).astype(np.uint64)
            return honest(count) | odd << np.uint64(bit)

        monkeypatch.setattr(bits, "secret_words", words)

    return bias


# ---------------------------------------------------------------- the law


@pytest.mark.parametrize(
    ("sigma", "n"),
    [
        (0.125, 2 * 10**7),
        (Fraction(3, 10), 10**6),
        (0.5, 10**6),
        (1, 10**6),
        (Fraction(10, 3), 10**6),
        (7.3, 10**6),
        (100, 10**6),
        (Fraction(1000, 7), 10**6),
    ],
    ids=str,
)
def test_probabilities_are_exact(sigma, n, pmf):
    draws = rounded_gaussian(sigma, n)
    assert chi_square(draws, sigma, pmf) > CHANCE
    # The same draws refute a sigma 3 % off, either way.
    assert chi_square(draws, Fraction(sigma) * WRONG, pmf) < CHANCE**2
    assert chi_square(draws, Fraction(sigma) / WRONG, pmf) < CHANCE**2


@pytest.mark.parametrize("bit", [63, 62, 61, 60])
def test_a_biased_bit_is_seen(bit, biased, pmf):
    biased(bit)
    assert chi_square(rounded_gaussian(Fraction(10, 3), 10**6), Fraction(10, 3), pmf) < CHANCE**2


def test_the_smallest_sigmas_give_zeros():
    # P(not 0) is 1e-545 at 1/100: what is not zero takes chosen bits (test_interval.py).
    assert not rounded_gaussian(0.01, 10**6).any()
    assert not rounded_gaussian(Fraction(1, 100), 1000).any()


def test_log_ratios_to_the_centre(pmf):
    n, sigma = 10**7, Fraction(10, 3)
    ms = np.delete(np.arange(-9, 10), 9)
    counts = np.bincount(rounded_gaussian(sigma, n) + 60, minlength=121)
    seen, centre = counts[ms + 60], counts[60]

    def worst(s):
        expected = np.log(pmf(s, ms) / pmf(s, [0]))
        return np.abs((np.log(seen / centre) - expected) / np.sqrt(1 / seen + 1 / centre)).max()

    assert worst(sigma) < SDS
    assert worst(sigma * WRONG) > 4 * SDS


@pytest.mark.parametrize(("sigma", "beyond"), [(1, 4), (10, 35), (Fraction(10, 3), 12)], ids=str)
def test_tails_have_their_weight(sigma, beyond, pmf):
    n = 10**7
    draws = rounded_gaussian(sigma, n)

    def p_value(s):
        weight = 1 - pmf(s, np.arange(-beyond + 1, beyond)).sum()
        return stats.binomtest(int((np.abs(draws) >= beyond).sum()), n, weight).pvalue

    assert p_value(sigma) > CHANCE
    assert p_value(sigma * WRONG) < CHANCE**2


@pytest.mark.parametrize("zeros", [20, 40, 60])
def test_far_tails_are_exact_given_that_they_are_far(zeros, monkeypatch):
    # With the first bits of the tail probability forced to 0, it is uniform below 2^-zeros:
    # a test of tails that no sample could reach. All of it goes through arb.
    honest = bits.secret_words
    forced = np.uint64(zeros)
    monkeypatch.setattr(bits, "secret_words", lambda n: honest(n) >> forced if n > 1 else honest(n))
    sigma, n = 2.0**30, 20_000
    draws = rounded_gaussian(sigma, n)
    t = np.abs(draws).astype(float) / sigma

    def p_value(scale):
        return stats.kstest(stats.norm.sf(t / scale) * 2.0**zeros, "uniform").pvalue

    assert (draws > 0).all()  # the sign bit is forced as well
    assert p_value(1.0) > CHANCE
    assert p_value(1.03) < CHANCE**2


@pytest.mark.parametrize(
    ("sigma", "n"),
    [
        (1000, 10**6),
        (Fraction(10**9), 10**6),
        (2.0**40, 10**6),
        (2**60, 150_000),
        (Fraction(2**80), 150_000),
    ],
    ids=str,
)
def test_large_sigmas_are_normal_in_shape_scale_and_last_digits(sigma, n):
    draws = rounded_gaussian(sigma, n)
    z = draws.astype(float) / float(sigma)
    assert stats.kstest(z, "norm").pvalue > CHANCE

    def scale_off(standardised):
        return abs((standardised**2).mean() - 1) / np.sqrt(2 / n)

    assert scale_off(z) < SDS
    assert scale_off(z / float(WRONG)) > SDS  # 15.7 expected, give or take 0.9
    assert stats.kstest(np.abs(z), "norm").pvalue < CHANCE**2

    # The remainder modulo 16 is uniform to e^(-2 pi^2 (sigma/16)^2).
    def last_digits(values):
        counts = np.bincount((values % 16).astype(int), minlength=16)
        return stats.chisquare(counts).pvalue

    assert last_digits(draws) > CHANCE
    assert last_digits(draws // 2 * 2) < CHANCE**2


# ---------------------------------------------------------------- independence


def correlations(rows):
    """The largest correlation between two rows, or a row and another's neighbour, in sds."""
    n = rows.shape[1]
    shifted = np.vstack([rows, np.roll(rows, 1, axis=1)]).astype(float)
    r = np.corrcoef(shifted)
    squares = np.corrcoef(shifted**2)
    upper = np.triu_indices_from(r, k=1)
    return max(np.abs(r[upper]).max(), np.abs(squares[upper]).max() / 2) * np.sqrt(n)


def test_rows_and_neighbours_are_independent(monkeypatch):
    sigma = [1.0, Fraction(10, 3), 1e3, 1e6]
    assert correlations(rounded_gaussian(sigma, (4, 300_000))) < SDS
    # Control: one word in 20 handed out twice in a row.
    honest = bits.secret_words

    def repeating(count):
        words = honest(count).copy()
        words[1::20] = words[: words.size - 1 : 20]
        return words

    monkeypatch.setattr(bits, "secret_words", repeating)
    assert correlations(rounded_gaussian(sigma, (4, 300_000))) > 1.5 * SDS


def test_threads_never_share_draws():
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: rounded_gaussian(2**60, 500), range(8)))
    # Two equal values in 4,000 have chance 1e-12.
    assert len({int(x) for part in parts for x in part}) == 4000


def test_a_forked_process_draws_something_else():
    program = """
import os
from noiseshape.sampling import rounded_gaussian
rounded_gaussian(2**50, 100)
for child in range(2):
    if os.fork() == 0:
        print(*rounded_gaussian(2**50, 100), flush=True)
        os._exit(0)
    os.wait()
print(*rounded_gaussian(2**50, 100))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    draws = [int(x) for x in run.stdout.split()]
    assert len(draws) == 300
    assert len(set(draws)) == 300  # a chance repeat: 1e-11


# ---------------------------------------------------------------- no seed


def test_no_seed_and_no_generator_on_this_path():
    package = Path(gaussian.__file__).parents[1]
    files = [*sorted((package / "sampling").glob("*.py"))]
    files += [package / name for name in ("_arb.py", "_checks.py", "errors.py")]
    assert len(files) >= 8
    ours = {"noiseshape", "_arb", "_checks", "errors", "sampling"} | {f.stem for f in files}
    for file in files:
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            names = {
                getattr(node, field, None) for field in ("id", "attr", "arg", "name", "module")
            } - {None}
            for name in names:
                words = str(name).lower().replace(".", "_").split("_")
                assert not {"random", "rng", "seed", "generator", "randint"} & set(words), file
            if isinstance(node, ast.ImportFrom) and node.level:
                # Nothing that this path imports from the package escapes the list above.
                assert (node.module or "bits").split(".")[-1] in ours, (file, node.module)
    assert list(inspect.signature(rounded_gaussian).parameters) == ["sigma", "size"]


def test_every_draw_takes_its_own_64_bits(monkeypatch):
    honest, taken = bits.secret_words, []
    monkeypatch.setattr(bits, "secret_words", lambda n: (taken.append(n), honest(n))[1])
    rounded_gaussian(1.0, 100_000)
    assert 100_000 <= sum(taken) <= 100_010


def test_secret_words_use_all_64_bits():
    words = bits.secret_words(100_000)
    assert words.shape == (100_000,)
    for bit in range(64):
        share = (words >> np.uint64(bit) & np.uint64(1)).mean()
        assert abs(share - 0.5) * 2 * np.sqrt(words.size) < SDS + 1


# ---------------------------------------------------------------- shapes, types, rows


def test_one_sigma_without_a_size_is_an_int():
    assert type(rounded_gaussian(3)) is int
    assert type(rounded_gaussian(2.0**60)) is int
    assert type(rounded_gaussian(np.float64(3.5))) is int
    assert type(rounded_gaussian(np.array(3))) is int


@pytest.mark.parametrize(
    ("sigma", "size", "shape"),
    [
        (1, 5, (5,)),
        (1.5, (2, 3), (2, 3)),
        (1.5, (), ()),
        (1, 0, (0,)),
        (1, (3, 0), (3, 0)),
        ([1, 2.5, Fraction(10, 3)], None, (3,)),
        ([1, 2, 3], 3, (3,)),
        ((1, 2, 3), (3, 4, 5), (3, 4, 5)),
        (np.array([1, 2]), (2, 20_000), (2, 20_000)),
        (np.array([1, 2], dtype=np.float32), (2, 0), (2, 0)),
        ([], None, (0,)),
        ([], (0, 4), (0, 4)),
    ],
)
def test_shapes(sigma, size, shape):
    draws = rounded_gaussian(sigma, size)
    assert np.shape(draws) == shape
    assert shape == () or draws.dtype == np.int64


@pytest.mark.parametrize("columns", [1, 3, 4096, 9000])
def test_each_row_has_its_own_sigma(columns):
    # Scales 2^13 apart: a draw in the wrong row would be out of range by 1e-15 or more.
    sigma = np.array([1.0, 2.0**13, 2.0**26, 2.0**39])
    repeats = 12_000 // columns + 1
    draws = np.hstack([rounded_gaussian(sigma, (4, columns)) for _ in range(repeats)])
    spread = np.sqrt((draws.astype(float) ** 2).mean(axis=1)) / sigma
    assert (np.abs(spread**2 - [13 / 12, 1, 1, 1]) < SDS * np.sqrt(2 / draws.shape[1])).all()
    assert (np.abs(draws).max(axis=1) < 10 * sigma).all()


def test_refined_draws_use_their_own_rows_exact_sigma(chosen_bits, reference):
    sigma = [Fraction(2**70, 3), Fraction(1), Fraction(2**60 + 1, 7)]
    words = [2**62 + 5, 3, 2**63 + 17, 2**61, 7, 2**63 + 2**50]
    chosen_bits([*words, *range(1000, 1040)])
    draws = rounded_gaussian(sigma, (3, 2))
    refinements = iter(range(1000, 1040))
    for i, word in enumerate(words):
        used = [word]
        while True:
            try:
                expected = reference(used, sigma[i // 2])
                break
            except AssertionError:
                used.append(next(refinements))
        assert draws.ravel()[i] == expected


def test_the_type_is_told_by_sigma_alone():
    assert rounded_gaussian(2**50, 10).dtype == np.int64
    assert rounded_gaussian([1, 2**50 + 2**10], 2).dtype == object
    draws = rounded_gaussian([1.0, 2.0**80], (2, 50))
    assert draws.dtype == object
    assert {type(m) for m in draws.ravel()} == {int}
    assert max(abs(m) for m in draws[1]) > 2**64


def test_a_result_past_64_bits_would_raise_not_wrap(monkeypatch):
    monkeypatch.setattr(gaussian, "settle_exactly", lambda *_: 2**63)
    with pytest.raises(OverflowError):
        rounded_gaussian(2**50, 10_000)


@pytest.mark.parametrize("value", [0.1, 1000.0, 0.1 * 2**40, 2.0**60])
def test_however_sigma_is_given_it_is_the_same_rational(value, chosen_bits):
    words = [int(w) for w in bits.secret_words(800)]
    draws = []
    for one in (value, Fraction(value), np.float64(value)):
        chosen_bits(words)
        draws.append(rounded_gaussian(one, 200))
    for row in ([value], (Fraction(value),), np.array([value])):
        chosen_bits(words)
        draws.append(rounded_gaussian(row, (1, 200))[0])
    chosen_bits(words)
    draws.append(rounded_gaussian(np.full(200, value)))
    for other in draws[1:]:
        assert np.array_equal(draws[0], other)


def test_the_callers_array_may_change_later():
    sigma = np.array([1.0, 2.0])
    rounded_gaussian(sigma, (2, 3))
    assert sigma.tolist() == [1.0, 2.0]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("size", [2**70, (10**200, 10**200)])
def test_more_draws_than_memory(size):
    with pytest.raises(TooLarge, match=r"about 2\^\d+ draws do not fit in memory: draw fewer"):
        rounded_gaussian(1.0, size)


@pytest.mark.parametrize(
    ("sigma", "size", "says"),
    [
        (0, None, "above 0"),
        (-1.0, None, "above 0"),
        (float("nan"), None, "finite"),
        (float("inf"), None, "finite"),
        ([1.0, float("nan")], None, "finite"),
        (np.array([1.0, np.nan]), None, "finite"),
        (np.array([1.0, -2.0]), None, "above 0"),
        (np.array([1.0, np.inf]), None, "finite"),
        (0.001, None, "about 2\\*\\*-10"),
        (Fraction(1, 10**400), None, "between 2\\*\\*-7 and 2\\*\\*80"),
        (10**400, None, "between 2\\*\\*-7 and 2\\*\\*80"),
        (np.array([1.0, 2.0**81]), None, "about 2\\*\\*81"),
        ("3", None, "got str"),
        (b"33", None, "got bytes"),
        (np.ma.masked_array([1.0, 2.0], mask=[False, True]), None, "not be masked"),
        (None, None, "got NoneType"),
        ([[1, 2], [3, 4]], None, "1-D"),
        (np.ones((2, 2)), None, "1-D"),
        (np.longdouble(1), None, "got longdouble|above|1-D"),
        (1.0, -1, "not be negative"),
        (1.0, (2, -3), "not be negative"),
        (1.0, 2.5, "int or a tuple"),
        (1.0, "3", "int or a tuple"),
        ([1.0, 2.0], 3, "begin with 2"),
        ([1.0, 2.0], (3, 2), "begin with 2"),
        ([1.0, 2.0], (), "begin with 2"),
    ],
)
def test_bad_input_gets_one_sentence(sigma, size, says):
    with pytest.raises(InvalidInput, match=says) as refused:
        rounded_gaussian(sigma, size)
    assert isinstance(refused.value, NoiseshapeError | ValueError)
    assert str(refused.value).endswith(".")
    assert str(refused.value).count(". ") == 0
