"""How many threads linear algebra uses: one, where matrices are small.

Two threads wait for each other longer than either works: on two cores a design over 256 or 512
cells took two to four times as long with both, over 1,024 as long as with one (``python -m
benchmarks threads``). Where the machine is busy, one of them may not run at all, and the other
waits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")

# Entries of a matrix up to which one thread does as well: 2,048 queries over 1,024 cells.
SMALL = 1 << 21


def where_small(act: Callable[P, T]) -> Callable[P, T]:
    """Return a function that works in one thread where its first argument is a small matrix.

    The limit is the process's, and restored when the function ends, however it ends.
    """

    @wraps(act)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        if args and getattr(args[0], "size", 0) > SMALL:
            return act(*args, **kwargs)
        with _controller().limit(limits=1, user_api="blas"):
            return act(*args, **kwargs)

    return limited


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  # brings its own library, which is to be found too

    return ThreadpoolController()
