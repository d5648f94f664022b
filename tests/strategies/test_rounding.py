"""From real strategies to integers: nothing is lost but a millionth of mu."""

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.errors import InvalidInput, NotSpanned
from noiseshape.privacy import People
from noiseshape.strategies import Dense, rounded
from noiseshape.strategies.rounding import _exactly_spans, _Span, integer_basis

from .kit import check_unbiased


def designed(W, rng, spread=1.0):
    """Any strategy for W that could have been designed: a random S on its row space."""
    V = np.linalg.svd(W, full_matrices=False)[2][: np.linalg.matrix_rank(W)]
    k = len(V)
    turn = np.linalg.qr(rng.normal(size=(k, k)))[0]
    return turn @ np.diag(np.exp(spread * rng.normal(size=k))) @ turn.T @ V


def variances(A, W):
    return ((W @ np.linalg.pinv(A)) ** 2).sum(axis=1)


def exact_rank(*matrices):
    rows = [[int(v) for v in row] for M in matrices for row in M]
    return fmpz_mat(rows).rank()


def check_rounded(A, W):
    result = rounded(A, W)
    strategy, mu = result.strategy, np.sqrt((A**2).sum(axis=0).max())
    assert isinstance(strategy, Dense)
    assert strategy.cost().mu <= mu * (1 + 1e-6)
    assert strategy.cost().mu == pytest.approx(mu * (1 + result.loss), rel=1e-12)
    assert abs(result.loss) <= 1e-6
    # Scales keep 32 bits: rounded up instead of down they would be over by up to 9e-10.
    assert np.all(strategy.variance <= variances(A, W) * (1 + 1e-11))
    # Every query is as accurate as designed, no less and no more.
    assert strategy.variance == pytest.approx(variances(A, W), rel=3e-6)
    return result


@pytest.mark.parametrize("share", [1, 3, 7])
def test_what_the_basis_spans_is_proved_by_whole_shares_or_by_the_rank(share):
    """Thirds are guessed, sevenths left to the rank; a row that is off by one is not spanned."""
    rng = np.random.default_rng(share)
    whole = share * rng.integers(-3, 4, (4, 9)).astype(float)
    inside = (whole[0] - whole[1] + 2 * whole[2]) / share
    B, moved = integer_basis(np.vstack([whole, inside]))
    assert B is not None
    assert (len(B), moved) == (4, 0.0)
    span = _Span(whole.astype(np.int64))
    asked = inside.astype(np.int64)[None, :]
    assert _exactly_spans(span, asked)
    assert not _exactly_spans(span, asked + np.eye(9, dtype=np.int64)[:1])


@settings(deadline=None, derandomize=True, max_examples=60)
@given(d=st.integers(1, 12), m=st.integers(1, 20), seed=st.integers(0, 999))
def test_whole_workloads_of_any_rank_are_spanned_exactly(d, m, seed):
    rng = np.random.default_rng(seed)
    W = rng.integers(0, 2, (m, d)).astype(float)
    W[:, 0] = 1  # no query of zeros
    result = check_rounded(designed(W, rng), W)
    rows = result.strategy.rows
    assert result.moved == 0.0
    assert len(rows) == exact_rank(W) == exact_rank(rows) == exact_rank(rows, W)
    check_unbiased(result.strategy, None, W)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(k=st.integers(1, 5), d=st.integers(5, 9), seed=st.integers(0, 999))
def test_real_workloads_of_low_rank_move_less_than_1e_12(k, d, seed):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(8, k)) @ rng.normal(size=(k, d))
    result = check_rounded(designed(W, rng), W)
    assert result.strategy.shape == (k, d)
    assert result.moved < 1e-12
    x = rng.integers(0, 10**6, d)
    off = np.abs(result.strategy.rebuild(result.strategy.apply(x)) - W @ x)
    assert np.all(off <= 1e-5 * np.sqrt(result.strategy.variance) + 1e-7)


def test_queries_that_nearly_repeat_others_have_no_clear_rank():
    W = np.array([[1.0, 1, 0], [0, 1, 1], [1, 2, 1 + 9e-12]])
    with pytest.raises(NotSpanned, match="no clear rank"):
        rounded(W[:2], W)


def test_whole_numbers_that_only_nearly_repeat_others_are_said_to_move():
    """The third row is 3e-12 off the plane of the others, in entries of half a million."""
    W = np.array([[999983, 7, -999979], [13, 999961, 999959], [-499987, -499981, 2]])
    assert exact_rank(W) == 3
    B, moved = integer_basis(W.astype(float))
    assert len(B) == 2
    assert 0 < moved < 1e-12
    assert integer_basis(W[:2].astype(float))[1] == 0.0


def test_binary_fractions_are_an_integer_basis():
    B, moved = integer_basis(np.array([[0.5, 0.25, 0], [0.5, 0.25, 0]]))
    assert B.tolist() == [[2, 1, 0]]
    assert moved == 0.0


def test_ill_conditioned_strategies_get_longer_integers():
    rng = np.random.default_rng(5)
    W = np.eye(6)
    flat, steep = (rounded(designed(W, rng, spread), W) for spread in (0.1, 4.0))
    assert steep.strategy.sigma[0] > flat.strategy.sigma[0]


def test_rows_beyond_the_rank_are_folded_in():
    """A tree measures 7 sums of 4 cells; 4 rows tell and cost the same."""
    tree = np.vstack([np.eye(4), [[1, 1, 0, 0], [0, 0, 1, 1]], np.ones((1, 4))])
    result = check_rounded(tree, np.tril(np.ones((4, 4))))
    assert result.strategy.shape == (4, 4)
    both = People(neighbours="replace")
    pairs = ((tree[:, :, None] - tree[:, None, :]) ** 2).sum(axis=0).max()
    assert result.strategy.cost(both).mu == pytest.approx(np.sqrt(pairs), rel=1e-5)


@pytest.mark.parametrize(
    ("A", "rank"),
    [
        (np.eye(4), 4),
        (np.array([[1.0, 1, 1, 1], [0.3, -0.3, 0.1, -0.1]]), 2),
        (np.vstack([np.ones(4), np.sqrt([2.0, 3, 5, 7]), [1, 0, 0, 0]]), 3),
    ],
)
def test_a_strategy_may_measure_more_than_is_asked(A, rank):
    """As the identity does for a total: the rest is measured too, and W stays exact."""
    W = np.ones((1, 4))
    result = check_rounded(A, W)
    assert exact_rank(result.strategy.rows) == exact_rank(result.strategy.rows, W) == rank
    check_unbiased(result.strategy, None, W)


def test_queries_of_zeros_are_answered_with_zero():
    strategy = rounded(np.ones((1, 2)), np.array([[0.0, 0], [1, 1]])).strategy
    assert strategy.rebuild(strategy.apply([3, 4])).tolist() == [0.0, 7.0]
    assert strategy.variance[0] == 0.0


@pytest.mark.parametrize(
    ("A", "W", "error", "sentence"),
    [
        (np.eye(2), np.eye(3), InvalidInput, "share cells"),
        (np.eye(2), np.zeros((1, 2)), InvalidInput, "asks nothing"),
        (np.eye(2)[:1], np.eye(2), NotSpanned, "1 independent rows for a workload of rank 2"),
        (np.array([[1.0, 0], [1, 0]]), np.eye(2), NotSpanned, "1 independent rows .* rank 2"),
        (np.outer([1, 2, 0.3], [0.1, 0.3]), np.eye(2), NotSpanned, "1 independent rows"),
        (np.eye(2) * 1e200, np.eye(2), InvalidInput, "between 1e-100 and 1e100, got 1e.200"),
        (np.eye(2) * 1e-200, np.eye(2), InvalidInput, "between 1e-100 and 1e100, got 1e-200"),
        (np.zeros((2, 2)), np.eye(2), InvalidInput, "got 0"),
        (np.eye(2) * np.nan, np.eye(2), InvalidInput, "finite"),
        (np.diag([1.0, 1e-40]), np.eye(2), InvalidInput, "ill-conditioned"),
    ],
)
def test_refusals(A, W, error, sentence):
    with pytest.raises(error, match=sentence):
        rounded(A, W)


def test_a_loss_of_zero_is_refused():
    with pytest.raises(InvalidInput, match="loss must be above 0"):
        rounded(np.eye(2), np.eye(2), loss=0.0)
