"""MVG and IMGM for a question: the papers' noise as plans, like any other.

    mvg(q, theorem=3, directions=W, precision=theta).within(budget)     MVG, Algorithms 1 and 2
    imgm(q).within(budget)                                              IMGM, Algorithm 1
    imgm(q, rows=Sigma_1, columns=Sigma_2)                              IMGM, Theorem 2
    learn_directions(q, epsilon=..., delta=...)                         directions, paid for

The papers add Z to f(X), m x n. A plan measures each coordinate once, at the same cost:

    standard bases    each coordinate on its own
    a data matrix     A_1 x A_2, a factor for rows and one for columns
    symmetric f       f + Z tells of it no more than f + (Z + Z^T) / 2 does, whose covariance on the
                      entries i <= j has the inverse D^T (Sigma^-1 x Psi^-1) D, D from those to all

Costs are then told by the integers, for the question's own set of changes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import Floats, floats, positive
from ..design.condition import Condition, Theorem, Zeta
from ..design.covariances import Covariances, Mode
from ..design.directions import Learnt, shares
from ..design.imgm import overhead
from ..design.mvg import Claim, Modes, algorithm_1, algorithm_2, claim, stated
from ..design.precision import Allocation
from ..errors import InvalidInput, TooLarge
from ..matrices import second_moment
from ..matrices.centred import centred
from ..matrices.identity import Identity
from ..matrices.query import MatrixQuery
from ..privacy import Budget
from .matrixplan import MatrixPlan, entries, product, whitened
from .shapes import public

if TYPE_CHECKING:
    from ..privacy.ledger import Ledger
    from .matrixrelease import MatrixRelease

Sampler = Literal["affine", "vec"]

# Coordinates of a symmetric answer with directions of its own: a matrix (m^2, this) is factored.
MOST = 2_080


@dataclass(frozen=True, eq=False)
class Mvg:
    """MVG noise for a question, with its scale still open: a budget of (epsilon, delta) sets it.

    Attributes
    ----------
    query
        What is asked.
    theorem, zeta
        The condition that calibrates it.
    mode
        Where directions are: "rows" or "columns" of the answer (Algorithm 1), "both" (2).
    precision, directions
        theta and W, as the algorithms have them.
    s2, gamma
        The question's own, or what was stated.
    """

    query: MatrixQuery
    theorem: Theorem
    zeta: Zeta
    mode: Modes
    precision: ArrayLike | Allocation | None
    directions: ArrayLike | None
    s2: float
    gamma: float

    def condition(self, budget: Budget, *, delta: float | None = None) -> Condition:
        """Return what the theorem asks at a budget.

        Parameters
        ----------
        budget
            Stated as epsilon and delta; or else ``delta`` says at which delta to take it.
        """
        if not isinstance(budget, Budget):
            raise InvalidInput(
                f"a budget must be a Budget, got {type(budget).__name__}: Budget(epsilon=1, "
                "delta=1e-9)."
            )
        epsilon, chance = stated(budget, delta)
        m, n = sides(self.query)
        return Condition(
            m=m, n=n, s2=self.s2, gamma=self.gamma, epsilon=epsilon, delta=chance,
            theorem=self.theorem, zeta=self.zeta,
        )  # fmt: skip

    def noise(self, budget: Budget, *, delta: float | None = None) -> Covariances:
        """Return the covariances that Algorithm 1 or 2 gives at a budget."""
        asked = self.condition(budget, delta=delta)
        if self.mode == "both":
            return algorithm_2(asked, self.precision, self.directions)
        return algorithm_1(asked, self.precision, self.directions, mode=self.mode)

    def claim(self, budget: Budget, *, delta: float | None = None) -> Claim:
        """Return what MVG claims at a budget, and what the noise truly costs."""
        return claim(self.condition(budget, delta=delta), self.noise(budget, delta=delta))

    def simulate_answers(
        self,
        answer: ArrayLike,
        budget: Budget,
        *,
        size: int = 1,
        seed: int,
        sampler: Sampler = "affine",
        delta: float | None = None,
    ) -> Floats:
        """Return f(X) + Z as the papers have it, in doubles from a seed: (size, m, n).

        For experiments on public numbers: doubles leak, and a seed is no secret. ``release`` draws
        exact integers, and measures symmetric answers once.

        Parameters
        ----------
        answer : shape (m, n)
            f(X).
        budget, delta
            As ``condition`` has them.
        sampler
            "affine" (section 6.3.2), or "vec" (6.3.1), which writes the covariance out.
        """
        f = floats("answer", answer)
        if f.shape != self.query.shape:
            raise InvalidInput(f"the answer must have shape {self.query.shape}, got {f.shape}.")
        noise = self.noise(budget, delta=delta)
        samplers = {"affine": noise.simulate_affine, "vec": noise.simulate_vec}
        if sampler not in samplers:
            raise InvalidInput(f'sampler must be "affine" or "vec", got {sampler!r}.')
        return f.reshape(noise.shape) + samplers[sampler](size, seed)

    def within(
        self, budget: Budget, *, delta: float | None = None, exact: bool = False
    ) -> MatrixPlan:
        """Return the plan at a budget: MVG's own calibration, or the exact one.

        Parameters
        ----------
        budget, delta
            As ``condition`` has them.
        exact
            The same directions and proportions, scaled to spend the budget by the exact curve: all
            that MVG's conditions waste is saved.

        Formal Guarantees:
          The plan's cost is the true one, of the integers that are executed, and within the budget.
        """
        told = self.claim(budget, delta=delta)
        shape = f"mvg, theorem {self.theorem}"
        made = planned(self.query, self.noise(budget, delta=delta), shape=shape, note=_said(told))
        # A cost that is told by a bound (a person's row and column, in directions of one's own)
        # may pass what the papers' whole ball would cost.
        return made if not exact and budget.allows(made.cost) else made.within(budget)


def mvg(
    query: MatrixQuery,
    *,
    theorem: Theorem = 2,
    mode: Modes | None = None,
    directions: ArrayLike | None = None,
    precision: ArrayLike | Allocation | None = None,
    zeta: Zeta = "printed",
    s2: float | None = None,
    gamma: float | None = None,
) -> Mvg:
    """Ask for the matrix-variate Gaussian mechanism's noise (MVG, Algorithms 1 and 2).

    For comparison and teaching: its conditions waste noise by factors of 10 to 10^9
    (docs/math/mvg.md). ``directional`` shapes noise by what one person can truly change.

    Parameters
    ----------
    query
        What is asked: its answer is linear in what is measured.
    theorem
        2, or 3 for answers that are symmetric and positive semi-definite.
    mode
        Where directions are: "rows" or "columns" of the answer (Algorithm 1), or "both"
        (Algorithm 2). By default "both" for a symmetric answer, else "columns": features, where
        rows are records. (The papers have records in columns.)
    directions : shape (k, k)
        Orthonormal columns; None for the standard basis. From public knowledge, or from
        ``learn_directions``.
    precision : shape (k,), or an Allocation
        Each direction's share of the precision budget, above 0, at most 1 together; see
        ``noiseshape.design.precision``. Equal by default.
    zeta
        As printed, or tight.
    s2, gamma
        The greatest norm of a change, and of an answer; by default the question's own. A gamma of
        one's own must be a true bound: it is refused below s2 / 2, and believed above.
    """
    query = centred(query)
    _linear(query)
    public(query, directions=directions, precision=precision)
    if theorem == 3 and not query.semidefinite:
        raise InvalidInput(
            "Theorem 3 is for answers that are symmetric and positive semi-definite whatever the "
            f"data, and this one ({query.kind}) is not known to be: use theorem=2."
        )
    where = mode or ("both" if query.symmetric else "columns")
    if where not in ("rows", "columns", "both"):
        raise InvalidInput(f'mode must be "rows", "columns" or "both", got {mode!r}.')
    if theorem == 3 and where != "both":
        raise InvalidInput('Theorem 3 is for equal noise in rows and columns: mode="both".')
    change = query.s2() if s2 is None else positive("s2", s2)
    # Both are bounds, rounded on their own: a true gamma is at least half of s2.
    top = max(query.gamma(), change / 2) if gamma is None else gamma
    made = Mvg(query, theorem, zeta, where, precision, directions, change, top)
    # What is refused at every budget is refused now.
    made.noise(Budget(epsilon=1.0, delta=1e-6))
    return made


def imgm(
    query: MatrixQuery,
    *,
    rows: ArrayLike | None = None,
    columns: ArrayLike | None = None,
) -> MatrixPlan:
    """Return IMGM's noise as a plan: independent (Algorithm 1), or of covariances of one's own.

    Parameters
    ----------
    query
        What is asked: its answer is linear in what is measured.
    rows, columns : shapes (m, m), (n, n); or the diagonals of such
        Sigma_1 and Sigma_2, taken as they are: the plan's cost says what they give, and
        ``within(budget)`` scales them. ``noiseshape.design.imgm.validate`` says the same of
        numbers alone. Without either the plan has independent noise of standard deviation s2, which
        costs at most mu = 1: ``within(budget)`` makes it s2 / B.

    For T releases, each within ``noiseshape.design.imgm.each(budget, T)`` (Theorem 4).
    """
    query = centred(query)
    m, n = _linear(query)
    public(query, rows=rows, columns=columns)
    given = rows is not None or columns is not None
    first = Mode.of("the covariance of rows", np.ones(m) if rows is None else rows)
    second = Mode.of("the covariance of columns", np.ones(n) if columns is None else columns)
    noise = Covariances(first, second)
    if noise.shape != (m, n):
        raise InvalidInput(
            f"the covariances are for {noise.shape[0]} x {noise.shape[1]} answers, and this one is "
            f"{m} x {n}."
        )
    if not given:
        return planned(query, noise.scaled(query.s2()), shape="imgm")
    times = overhead(first, second)
    note = (
        f"over every change of one norm its mean variance is {times:.6g} times the least that the "
        "same privacy needs"
    )
    return planned(query, noise, shape="imgm", note=note)


@dataclass(frozen=True, eq=False)
class Paid(Learnt):
    """Directions that were paid for, the release that told them, and what is left to spend.

    Attributes
    ----------
    release
        The noisy matrix: published, like any other.
    rest
        The rest of epsilon and delta.
    """

    release: MatrixRelease
    rest: Budget


def learn_directions(
    query: MatrixQuery,
    data: Any = None,
    *,
    epsilon: float,
    delta: float,
    share: float = 0.2,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    who: str = "",
    unrecorded: bool = False,
) -> Paid:
    """Release directions for noise: private PCA, for a share of epsilon and of delta.

    For a symmetric answer, a noisy one and its eigenvectors. For a data matrix, a noisy sum of
    x x^T over its rows, and the eigenvectors of that: directions for ``mode="columns"``. For any
    other matrix, a noisy one and its right singular vectors (MVG, section 5.4.3). Noise is IMGM's,
    independent; the spectrum is paid for with them, and may serve ``max_pnr`` (that of a sum over
    rows: divide by their number for the variance of one).

    Parameters
    ----------
    query
        What the directions are for.
    data
        Its rows, if they were not handed in with it.
    epsilon, delta, share
        The budget of both releases, and what of each this one takes.
    ledger, who, unrecorded
        As ``MatrixPlan.release`` has them.

    Formal Guarantees:
      This release and another within ``rest`` are together (epsilon, delta)-differentially
      private; a ledger of that budget pays for both.
    """
    first, rest = shares(epsilon, delta, share)
    asked = _telling(query)
    plan = imgm(asked).within(first)
    release = plan.release(
        query.rows if data is None else data,
        ledger=ledger,
        who=who,
        what=f"directions of noise: {query.kind}",
        unrecorded=unrecorded,
    )
    told = Learnt.of(release.answer)
    return Paid(told.directions, told.spectrum, release, rest)


def _telling(query: MatrixQuery) -> MatrixQuery:
    """Return the question whose answer tells directions."""
    if query.symmetric:
        return centred(query)
    if isinstance(query, Identity):
        f = query.features
        bounds = list(zip(f.low.tolist(), f.high.tolist(), strict=True))
        return second_moment(
            bounds=bounds, columns=f.names, step=f.step, count=query.n, people=query.people
        )
    if len(query.shape) != 2:
        raise InvalidInput(
            f"directions are learnt for matrices, and this answer ({query.kind}) is a vector: "
            "hand in directions from public knowledge."
        )
    return query


def sides(query: MatrixQuery) -> tuple[int, int]:
    """Return the answer's shape as a matrix: a vector is one column."""
    shape = query.shape
    if len(shape) > 2:
        raise InvalidInput(f"matrix-variate noise is for matrices, and the answer is {shape}.")
    return (shape[0], shape[1]) if len(shape) == 2 else (shape[0], 1)


def _linear(query: MatrixQuery) -> tuple[int, int]:
    """Return the answer's shape; refuse what is no question, or not linear."""
    if not isinstance(query, MatrixQuery):
        raise InvalidInput(
            f"noise is shaped for a matrix query, got {type(query).__name__}: "
            "second_moment(rows, bounds=(0, 1), count=...), say."
        )
    if not query.linear:
        raise InvalidInput(
            f"this answer ({query.kind}) is put together from several measurements, and MVG and "
            "IMGM add noise to the answer itself: declare the number of rows, count=..., where it "
            "is public, or ask for second_moment, whose answer is the sum of x x^T."
        )
    return sides(query)


def planned(query: MatrixQuery, noise: Covariances, **described: Any) -> MatrixPlan:
    """Return the plan that measures a question with this noise on its answer.

    Parameters
    ----------
    query
        A question whose answer is linear in its coordinates.
    noise
        Of the answer's shape. For a symmetric answer, of Z before it is made symmetric.
    described
        ``shape`` and ``note`` of the plan.

    Formal Guarantees:
      Every variance is that of the noise to a millionth (in a product of directions to a few
      ten-thousandths); the cost is that of the integers.
    """
    if noise.shape != _linear(query):
        raise InvalidInput(
            f"the noise is for {noise.shape[0]} x {noise.shape[1]} answers, and the question's is "
            f"{' x '.join(map(str, query.shape))}."
        )
    place, worth = _coordinates(query)
    plain = noise.rows.directions is None and noise.columns.directions is None
    if place is not None and plain:
        return entries(query, np.sqrt(_variances(query, noise, place)) / worth, **described)
    if query.symmetric:
        return whitened(query, _symmetric(query, noise), **described)
    if not np.all(worth == worth[0]):
        raise InvalidInput("directions need one unit for all entries of the answer.")
    # All of the scale in one factor: the other is then of the size of 1.
    one = noise.rows.variances.min()
    modes = (
        Mode(noise.rows.variances / one, noise.rows.directions),
        Mode(noise.columns.variances * one / worth[0] ** 2, noise.columns.directions),
    )
    factors = [
        mode.variances**-0.5 if mode.directions is None else mode.whitening for mode in modes
    ]
    if len(query.shape) == 1:
        factors = [factors[0] * float(np.asarray(factors[1]).ravel()[0])]
        A = factors[0] if factors[0].ndim == 2 else np.diag(factors[0])
        return whitened(query, A, **described)
    return product(query, *factors, **described)


def _coordinates(query: MatrixQuery) -> tuple[NDArray[np.int64] | None, Floats]:
    """Return which entry each coordinate is, and what it counts for there.

    No places where a coordinate is in more entries than one (a Laplacian's degrees).
    """
    spread = query.spread().tocoo()
    place = np.zeros(query.size, dtype=np.int64)
    worth = np.zeros(query.size)
    place[spread.col], worth[spread.col] = spread.row, np.sqrt(spread.data)
    single = bool(np.all(np.bincount(spread.col, minlength=query.size) == 1))
    return (place if single else None), worth


def _variances(query: MatrixQuery, noise: Covariances, place: NDArray[np.int64]) -> Floats:
    rows, columns = noise.rows.variances, noise.columns.variances
    if not query.symmetric:
        return np.outer(rows, columns).ravel()[place]
    i, j = (axis[place] for axis in query.entries)
    # Entries off the diagonal are measured twice in f + Z, at variances S_i P_j and S_j P_i.
    apart = 1 / (rows[i] * columns[j]) + 1 / (rows[j] * columns[i])
    return np.where(i == j, rows[i] * columns[i], 1 / apart)


def _symmetric(query: MatrixQuery, noise: Covariances) -> Floats:
    """Return A with A^T A = D^T (Sigma^-1 x Psi^-1) D, (m^2, size)."""
    size = query.size
    if size > MOST:
        raise TooLarge(
            f"directions of their own for {size:,} entries of a symmetric answer are more than the "
            f"{MOST:,} that are factored: use the standard basis, directions=None."
        )
    zero = query.answer(np.zeros(size))
    D = np.array([(query.answer(e) - zero).ravel() for e in np.eye(size)]).T
    return np.asarray(np.kron(noise.rows.whitening, noise.columns.whitening) @ D)


def _said(told: Claim) -> str:
    """Return a claim as a plan's note: true of the plan at whatever scale."""
    return (
        f"designed by MVG's Theorem {told.theorem} ({told.zeta} zeta) for "
        f"epsilon={told.epsilon:.6g} at delta={told.delta:.3g}, by which every standard deviation "
        f"is {told.wasted:.4g} times what the exact condition asks"
    )
