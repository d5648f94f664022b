"""Small designs are made in one thread, and all threads are there again afterwards."""

import re

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from noiseshape import _threads
from noiseshape.design import fit


def blas():
    """Threads of what numpy and scipy compute with; other tests load other libraries."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    own = [p for p in pools if re.search(r"(numpy|scipy)\.libs", p["filepath"])]
    return {pool["filepath"]: pool["num_threads"] for pool in own or pools}


@pytest.fixture(autouse=True)
def two():
    """Two threads, which the machine of a test may not have by itself."""
    with threadpool_limits(2, user_api="blas"):
        yield


def seen(size):
    found = []
    _threads.where_small(lambda matrix: found.append(blas()))(np.empty(size))
    return set(found[0].values())


def test_small_matrices_have_one_thread_and_large_ones_all():
    before = blas()
    assert seen(_threads.SMALL) == {1}
    assert seen(_threads.SMALL + 1) == set(before.values()) == {2}
    assert blas() == before


def test_a_design_is_made_in_one_thread():
    found = []
    fit(np.tril(np.ones((8, 8))), np.ones(8), progress=lambda _: found.append(blas()))
    assert found
    assert all(set(each.values()) == {1} for each in found)
    assert set(blas().values()) == {2}


def test_threads_come_back_after_failures_and_from_within():
    def fail(_):
        assert seen(4) == {1}
        assert set(blas().values()) == {1}  # the one within has left, and this one has not
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _threads.where_small(fail)(np.empty(4))
    assert set(blas().values()) == {2}
