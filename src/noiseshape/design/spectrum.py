"""What prefix sums cost at least, at any size: a bound of the dual in closed form.

For nested sums of n groups of cells, W = diag(c)^-1/2 M with M the n x n matrix of ones on and
below the diagonal. For every matrix U with singular values of at most 1, and unit vectors u and v,

    alpha* >= F(p, q)^2 >= (sum over k <= i of u_i c_i^-1/2 U_ik v_k)^2,       p = v^2, q = u^2,

since a nuclear norm is at least the inner product with U. Here U is the orthogonal factor of M,

    U_ik = g(i - k + 1/2) + g(i + k - 1/2),   g(x) = 2 / (2n + 1) sin(n x phi)^2 / sin(x phi),

phi = pi / (2n + 1): M has the singular values 1 / (2 sin((2j - 1) phi / 2)). With u and v constant
the bound is the nuclear norm of M over n, squared; with the best of them it is within a percent
of the optimum (docs/math/onedim.md). The first part is a convolution, the second one for each block
below the diagonal: nothing of the size n x n is formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

from .._checks import Floats

# Weights are found at this size, by the power method on the matrix written out, and stretched.
WRITTEN = 1024
# Doubles err by less: sums of numbers of one sign, by FFT of at most 2^24 of them.
ALLOWANCE = 1e-9


def prefix_bound(variance: Floats) -> float:
    """Return a lower bound on mu^2 of any noise for nested sums with these target variances.

    Parameters
    ----------
    variance : shape (n,)
        Targets of n nested sums, the smallest first: of one group of cells, of two, ...

    Examples
    --------
    >>> import numpy as np
    >>> round(prefix_bound(np.ones(64)), 3)  # the optimum is 4.458
    4.426
    """
    root = 1 / np.sqrt(np.asarray(variance, dtype=np.float64))
    n = len(root)
    u, v = _weights(root)
    total = _convolved_part(u * root, v, n) + _blocked_part(u * root, v, n)
    norms = float(np.linalg.norm(u) * np.linalg.norm(v))
    return float(max(total / norms, root.max()) ** 2 * (1 - ALLOWANCE))


def nuclear_bound(n: int) -> float:
    """Return the squared nuclear norm of M over n: the bound of equal weights, at unit targets."""
    j = np.arange(1, n + 1)
    return float((0.5 / np.sin((2 * j - 1) * np.pi / (4 * n + 2))).sum() / n) ** 2


def g(x: NDArray[Any], n: int) -> Floats:
    """Return 2 / (2n + 1) sin(n x phi)^2 / sin(x phi), phi = pi / (2n + 1)."""
    phi = np.pi / (2 * n + 1)
    return np.asarray(2 / (2 * n + 1) * np.sin(n * x * phi) ** 2 / np.sin(x * phi))


def orthogonal_factor(n: int) -> Floats:
    """Return U (n, n), orthogonal: M = U (M^T M)^1/2."""
    i, k = np.arange(1, n + 1)[:, None], np.arange(1, n + 1)
    return g(i - k + 0.5, n) + g(i + k - 0.5, n)


def stretched(values: Floats, n: int) -> Floats:
    """Return a function that was found at fewer places at n of them.

    Along log(x / (1 - x)), to whose scale the weights of prefix sums keep near both ends. (At 10^6
    sums the bound is then 26.27, stretched along x 26.01, and with equal weights 26.01.)
    """
    return np.interp(_places(n), _places(len(values)), values)


def _places(n: int) -> Floats:
    x = (np.arange(n) + 0.5) / n
    logs = np.log(x / (1 - x))
    return logs / logs[-1] if n > 1 else logs


def _weights(root: Floats) -> tuple[Floats, Floats]:
    """Return u and v, at least 0: the top singular vectors at up to 1,024 sums, then stretched."""
    n = len(root)
    small = min(n, WRITTEN)
    chosen = np.rint(np.interp(_places(small), _places(n), np.arange(n))).astype(np.int64)
    K = np.tril(orthogonal_factor(small)) * root[chosen][:, None]
    v = np.ones(small)
    for _ in range(100):
        u = K @ v
        v = K.T @ (u / np.linalg.norm(u))
        v /= np.linalg.norm(v)
    return stretched(np.abs(K @ v), n), stretched(np.abs(v), n)


def _convolved_part(u: Floats, v: Floats, n: int) -> float:
    """Return the sum over k <= i of u_i v_k g(i - k + 1/2)."""
    size = 1 << (2 * n - 1).bit_length()
    apart = irfft(rfft(u, size) * np.conj(rfft(v, size)), size)[:n]
    return float(apart @ g(np.arange(n) + 0.5, n))


def _blocked_part(u: Floats, v: Floats, n: int) -> float:
    """Return the sum over k <= i of u_i v_k g(i + k - 1/2): the diagonal, then block by block."""
    i = np.arange(1, n + 1)
    total = float((u * v) @ g(2 * i - 0.5, n))
    size = 1 << (n - 1).bit_length()
    # g(i + k - 1/2) of numbers counted from 0: i + k + 3/2. Past the end weights are 0.
    u, v = (np.append(w, np.zeros(size - n)) for w in (u, v))
    values = np.zeros(2 * size)
    values[: 2 * n - 1] = g(np.arange(2 * n - 1) + 1.5, n)
    half = 1
    while half < size:
        lower = u.reshape(-1, 2, half)[:, 1]  # i in the second half of a block
        upper = v.reshape(-1, 2, half)[:, 0]  # k in the first
        sums = irfft(rfft(lower, 2 * half) * rfft(upper, 2 * half), 2 * half)
        first = 2 * half * np.arange(len(sums)) * 2 + half
        last = sums.shape[1] - 1
        for start in range(0, len(sums), max(1, (1 << 22) // (2 * half))):
            rows = slice(start, start + max(1, (1 << 22) // (2 * half)))
            at = first[rows, None] + np.arange(last)
            total += float((sums[rows, :last] * values[np.minimum(at, 2 * size - 1)]).sum())
        half *= 2
    return total
