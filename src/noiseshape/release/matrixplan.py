"""Plans for matrix queries: how noisily each coordinate is measured, what it costs and gives.

Any noise on the coordinates becomes a plan by one of three ways, each rounded to the integers
that are executed:

    entries(q, sigma)      independent noise, a standard deviation for each coordinate
    product(q, A1, A2)     A = A1 x A2 on an answer of two axes: covariance (A^T A)^-1
    whitened(q, A)         any invertible A on the coordinates

What it costs is the exact cost of those integers under the query's own set of changes, whatever
the design believed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._checks import Floats, floats, frozen
from ..archive import digest, pack, uncompressed, unpack
from ..design.certificate import Certificate
from ..errors import BudgetExceeded, InvalidInput
from ..matrices.changes import Recorded
from ..matrices.query import MatrixQuery, from_json
from ..privacy import Budget, Cost, People
from ..privacy.ledger import Charge
from ..strategies import Dense, Diagonal, Kronecker, Strategy, rounded
from ..strategies.exact import Integers
from ..strategies.rounding import LOSS
from .measurement import measure
from .planned import Scaled, Stamp
from .source import Source, fitting, is_source
from .table import Table

if TYPE_CHECKING:
    from .matrixrelease import MatrixRelease
    from .rowsplan import RowsPlan

# What rounding a factor of a product may move mu and standard errors by: the millionth of other
# strategies would take scales beyond 2^40, where a draw takes thirty times as long.
COARSE = 1e-4

# Coordinates whose strategy is written out: squared, times eight bytes, they fill 128 MB.
WRITTEN = 4096


@dataclass(frozen=True, eq=False, repr=False)
class MatrixPlan(Scaled["MatrixRelease"]):
    """A strategy for a matrix query, as it will be executed, with what it costs and gives.

    Attributes
    ----------
    query
        What is asked. Rows that were handed in with it stay in memory; no file holds them.
    strategy
        Integer rows and dyadic scales over the query's coordinates, with its set of changes.
    shape
        How the noise was chosen, in a word.
    certificate
        Proof of how good the noise is, of the objective that it names; None where there is none.
    target : shape (entries,), optional
        The variance that each entry shall have at most, in the order of ``query.entries``.
    note
        What a reader must know of the design, in a sentence; published with it.

    Formal Guarantees:
      ``cost`` holds for what ``release`` executes, given true secret bits. Answers of a linear
      query are unbiased, and their errors exact; for others the plan's errors are bounds to first
      order, and the release's are simulated from what was measured.
    """

    kind = "matrix plan"

    query: MatrixQuery
    strategy: Strategy
    shape: str
    certificate: Certificate | None = None
    target: Floats | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.strategy.shape[1] != self.query.size or self.strategy.queries != self.query.size:
            raise InvalidInput("the plan's strategy is about other coordinates than its query's.")
        if self.strategy.changes is None:
            raise InvalidInput("the strategy of a matrix plan states the query's set of changes.")

    @cached_property
    def cost(self) -> Cost:
        """What one release costs, exactly or rounded up, under the query's neighbours.

        Of a plan read from a file that cannot hold its set of changes: what it cost when it was
        made. Such a plan is not released again.
        """
        asked = self.query
        return self.strategy.cost(asked.people, rows_may_leave=asked.rows_may_leave)

    @property
    def people(self) -> People:
        """Whose privacy."""
        return self.query.people

    @property
    def count(self) -> int:
        """How many different entries the answer has."""
        return len(self.query.entries[0])

    @cached_property
    def coordinates(self) -> Floats:
        """The variance of each coordinate in its own units, (size,): exact."""
        return frozen(self.query.step**2 * self.strategy.variance)

    @cached_property
    def variance(self) -> Floats:
        """The variance of each entry, (entries,): exact for linear queries, else a bound.

        The bound is to first order, whatever the data, at the declared or expected number of rows.
        """
        G = sparse.csr_array(self.query.spread())
        if isinstance(self.strategy, Diagonal) or len(G.indices) == G.shape[0]:
            return frozen(np.asarray(G @ self.coordinates))
        # Correlated coordinates that are put together: at most the square of the sum of roots.
        return frozen(np.asarray(np.sqrt(G) @ np.sqrt(self.coordinates)) ** 2)

    @property
    def stderr(self) -> Floats:
        """The standard error of the answer, in its own shape: see ``variance``."""
        asked = self.query
        out = np.empty(asked.shape)
        each = np.sqrt(self.variance)
        out[asked.entries] = each
        if asked.symmetric:
            out[asked.entries[::-1]] = each
        return out

    @property
    def total(self) -> float:
        """The sum of the variances of all entries, off the diagonal of a symmetric one twice."""
        return float(self.query.twice @ self.variance)

    @property
    def k(self) -> float:
        """The factor by which the variance targets are met (at most 1) or missed (above 1)."""
        if self.target is None:
            raise InvalidInput("this plan has no targets: it was made by weights alone.")
        return float((self.variance / self.target).max())

    def errors(self) -> Table:
        """Return the standard error of every entry, with its target if there is one."""
        columns = named(self.query) | {"stderr": np.sqrt(self.variance)}
        if self.target is not None:
            columns["target"] = np.sqrt(self.target)
            columns["variance / target"] = self.variance / self.target
        return Table(columns, note=self._errors_are)

    @property
    def _errors_are(self) -> str:
        if self.query.linear:
            return "exact; of the noise only"
        return "bounds to first order, whatever the data; of the noise only"

    def summary(self) -> Table:
        """Return one line: how many entries, their least and greatest error.

        Where nobody said about how many rows there are, one for each part of what is measured.
        """
        if not self.query.sized:
            parts = self.query.parts
            ends = np.cumsum(list(parts.values()))[:-1]
            greatest = [float(np.sqrt(v.max())) for v in np.split(self.coordinates, ends)]
            each: dict[str, Any] = {"part": tuple(parts), "entries": list(parts.values())}
            note = "of what is measured; say expected=... for the errors of the answer"
            return Table(each | {"greatest stderr": greatest}, note=note)
        error = np.sqrt(self.variance)
        columns: dict[str, Any] = {
            "query": (self.query.kind,),
            "entries": [self.count],
            "least stderr": [float(error.min())],
            "greatest stderr": [float(error.max())],
        }
        if self.target is not None:
            columns["variance / target"] = [self.k]
        return Table(columns, note=self._errors_are)

    def facts(self) -> dict[str, Any]:
        """Return shape, the design, k and the errors' ends."""
        proof = self.certificate
        return {
            "query": self.query.kind,
            "shape": list(self.query.shape),
            "design": self.shape,
            "gap": None if proof is None else proof.gap,
            "k": None if self.target is None else self.k,
            "errors": list(self.summary().rows()),
        }

    def words(self) -> tuple[str, ...]:
        """Return the design, its proof, and which rows count, in sentences."""
        said = [f"{self.query.kind.capitalize()} with {self.shape} noise; {self.query.selection}."]
        if self.certificate is not None:
            proof = self.certificate
            said.append(f"Within {proof.gap:.1e} of the least {proof.covers}.")
        if self.note:
            said.append(f"{self.note}.")
        if self.target is not None:
            said.append(f"Every variance is at most {self.k:.6g} times its target.")
        return tuple(said)

    def meeting(self, target: Floats) -> MatrixPlan:
        """Return the same shape scaled so that every target is met, and the tightest just so."""
        made = replace(self, target=target)
        factor = float(1 / np.sqrt(made.k))
        plan = made._scaled(factor, up=False)
        while plan.k > 1:  # rounding the noise adds a twelfth of a unit, whatever the scale
            factor *= (1 - 2.0**-31) / np.sqrt(plan.k)
            plan = made._scaled(factor, up=False)
        return plan

    def _scaled(self, factor: float, *, up: bool = True) -> MatrixPlan:
        return replace(self, strategy=self.strategy.scaled(factor, up=up))

    def capped(self, budget: Budget | None) -> MatrixPlan:
        """Return this plan, or refuse one whose targets need more than a budget."""
        if budget is not None and not budget.allows(self.cost):
            k = self.within(budget).k if self.target is not None else np.nan
            raise BudgetExceeded(
                f"the targets need {budget.in_its_words(self.cost)}, and the budget is "
                f"{budget.stated}: it buys every target variance times {k:.6g} (standard errors "
                f"times {k**0.5:.6g}); relax the targets by that, raise the budget, or say "
                "prioritise='privacy'."
            )
        return self

    def row_by_row(self, n: int, *, rows: int | None = None, key: str | None = None) -> RowsPlan:
        """Return the plan that measures each of n rows as this one does, a chunk at a time.

        For matrices with a row for each person (``identity``, ``features``) that memory does not
        hold. Ask about one row, or a few that are measured alike: ``identity(..., n=1)``.

        Parameters
        ----------
        n
            How many rows there are: public under replace neighbours.
        rows
            How many of them are read, measured and published at a time.
        key
            For Spark frames: the column that numbers their rows 0, 1, ..., n - 1.
        """
        from .rowsplan import CHUNK, RowsPlan

        width = self.query.size // max(1, getattr(self.query, "n", 1))
        return RowsPlan(self, n, rows or max(1, CHUNK // width), key)

    def source(self, data: Source | Any) -> Source:
        """Return the rows to be read; no row is."""
        if isinstance(self.strategy.changes, Recorded):
            raise InvalidInput(
                "no file holds this plan's set of changes: ask again in Python, with the function "
                "and the set that it is."
            )
        given = self.query.rows if data is None else data
        if given is None:
            raise InvalidInput("hand in the rows: release(rows, ...), or with the query.")
        asked = given if is_source(given) else self.query.source(given)
        return fitting(asked, self.query.size)

    def rehearse(self) -> None:
        """Rebuild public numbers as large as sums over 2^40 rows may be."""
        size = self.query.size
        if isinstance(self.strategy, Diagonal):  # each by itself: nothing can fail
            return
        x = (np.arange(size) % 2) << 40
        self.strategy.rebuild(self.strategy.apply(x if size > WRITTEN else x.astype(object) << 60))

    def charge(self, who: str, what: str) -> Charge:
        """Return what the ledger is told."""
        shape = " x ".join(map(str, self.query.shape))
        return Charge(
            who=who,
            what=what or f"{self.query.kind}, {shape}",
            people=self.people,
            cost=self.cost,
            profile=None,
            schema_hash=self.query.digest(),
            selection=self.query.selection,
            spec_hash=self.digest,
        )

    def measured(self, x: Integers) -> Integers:
        """Return A~ x + noise, (k,)."""
        asked = self.query
        return measure(
            self.strategy, x, self.cost, people=asked.people, rows_may_leave=asked.rows_may_leave
        ).values

    def released(self, y: Integers, stamp: Stamp | None, when: str) -> MatrixRelease:
        """Return the release of a measurement."""
        from .matrixrelease import MatrixRelease

        return MatrixRelease(self._public(), y, stamp, when)

    def _public(self) -> MatrixPlan:
        """Return the same plan without the rows that it was asked of."""
        plan = replace(self, query=self.query.without_rows())
        kept = {n: v for n, v in vars(self).items() if n in ("cost", "variance", "coordinates")}
        vars(plan).update(kept)
        return plan

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that the plan says, but for how long its design took."""
        content = self.to_json()
        proof = content["certificate"]
        if proof is not None:
            proof = {name: value for name, value in proof.items() if name != "seconds"}
        return digest(uncompressed({**content, "certificate": proof}))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: the query, integers, scales; nothing of data."""
        return {
            "query": self.query.to_json(),
            "strategy": _written(self.strategy),
            "shape": self.shape,
            "certificate": None if self.certificate is None else asdict(self.certificate),
            "target": None if self.target is None else pack(self.target),
            "note": self.note,
            "mu squared": str(self.cost.mu_squared),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> MatrixPlan:
        """Return the plan that ``to_json`` said; costs and errors are computed anew."""
        try:
            query = from_json(content["query"])
            proof = content["certificate"]
            target = content["target"]
            plan = MatrixPlan(
                query,
                _read(content["strategy"], query),
                str(content["shape"]),
                None if proof is None else Certificate(**{**proof, "levels": ()}),
                None if target is None else frozen(unpack(target)),
                str(content["note"]),
            )
            if isinstance(plan.strategy.changes, Recorded):
                paid = Cost(Fraction(content["mu squared"]), query.people.neighbours)
                vars(plan)["cost"] = paid
            return plan
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput("the plan file lacks a part: make the plan anew.") from None

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.query.shape))
        return f"MatrixPlan({self.shape} noise for {self.query.kind}, {shape}, {self.cost!r})"


def entries(query: MatrixQuery, sigma: ArrayLike, **described: Any) -> MatrixPlan:
    """Return a plan with independent noise on the coordinates.

    Parameters
    ----------
    sigma : shape (size,)
        The standard deviation of each coordinate, in its own units; rounded up.
    described
        ``shape``, ``certificate``, ``target``, ``note`` of the plan.
    """
    wanted = floats("sigma", sigma, ndim=1)
    if wanted.shape != (query.size,):
        raise InvalidInput(f"sigma needs one entry for each of {query.size} coordinates.")
    return MatrixPlan(query, Diagonal.of(wanted / query.step, query.changes), **described)


def product(
    query: MatrixQuery, rows: ArrayLike, columns: ArrayLike, **described: Any
) -> MatrixPlan:
    """Return a plan that measures A1 V A2^T with unit noise, V the coordinates as a matrix (m, n).

    The noise on V then has the covariance (A1^T A1)^-1 x (A2^T A2)^-1: Psi x Sigma of the papers
    for A1 = Psi^-1/2, A2 = Sigma^-1/2.

    Parameters
    ----------
    rows, columns : shape (k, m) and (l, n), or (m,) and (n,) for diagonal ones
        A1 and A2, in the coordinates' own units.
    described
        ``shape``, ``certificate``, ``target``, ``note`` of the plan.
    """
    first, second = floats("the rows' factor", rows), floats("the columns' factor", columns)
    sizes = (first.shape[-1], second.shape[-1]) if first.ndim and second.ndim else (0, 0)
    step = query.step.reshape(sizes) if sizes[0] * sizes[1] == query.size else None
    if step is None:
        raise InvalidInput(
            f"the factors are of {sizes[0]} and {sizes[1]} coordinates, and the query has "
            f"{query.size}: their product must be that."
        )
    # The step of an entry must be a product too, as it is where each column has its own.
    a, b = step[:, 0] / step[0, 0], np.array(step[0])
    if not np.array_equal(np.outer(a, b), step):
        raise InvalidInput("the grid of this query is no product of one for rows and columns.")
    if first.ndim == 1 and not np.any(first[1:] != first[0]) and np.all(a == 1) and first[0] > 0:
        # Equal rows: all of the scale goes to the columns, and rows are measured as they are.
        factors: list[Strategy] = [
            Diagonal(np.ones(sizes[0])),
            _factor(first[0] * second, b, COARSE),
        ]
    else:
        factors = [_factor(first, a, COARSE), _factor(second, b, COARSE)]
    return MatrixPlan(query, Kronecker(factors, query.changes), **described)


def whitened(query: MatrixQuery, A: ArrayLike, **described: Any) -> MatrixPlan:
    """Return a plan that measures A v with unit noise: covariance (A^T A)^-1 on the coordinates.

    Parameters
    ----------
    A : shape (k, size)
        In the coordinates' own units, of full rank.
    described
        ``shape``, ``certificate``, ``target``, ``note`` of the plan.
    """
    A = floats("A", A, ndim=2)
    if A.shape[1] != query.size:
        raise InvalidInput(f"A needs one column for each of {query.size} coordinates.")
    if query.size > WRITTEN:
        raise InvalidInput(
            f"a strategy over {query.size} coordinates is too large to be written out: at most "
            f"{WRITTEN}; use noise entry by entry, or a product."
        )
    made = cast("Dense", _factor(A, query.step))
    return MatrixPlan(query, replace(made, changes=query.changes), **described)


def _factor(A: Floats, step: Floats, loss: float = LOSS) -> Strategy:
    """Return a real whitening matrix, in its own units, as integers over whole steps."""
    if A.ndim == 1:
        if not np.all(A > 0):
            raise InvalidInput("a diagonal factor needs entries above 0.")
        return Diagonal.of(1 / (A * step))
    executed: Dense = rounded(A * step, np.eye(A.shape[1]), loss=loss).strategy
    return executed


def named(query: MatrixQuery) -> dict[str, Any]:
    """Return the columns of a table that name the entries: one for each axis of the answer."""
    usual: dict[int, tuple[str, ...]] = {1: ("entry",), 2: ("row", "column")}
    n = len(query.shape)
    axes = usual.get(n, tuple(f"axis {i}" for i in range(n)))
    labels = zip(axes, query.labels, query.entries, strict=True)
    return {axis: tuple(map(names.__getitem__, at.tolist())) for axis, names, at in labels}


def _written(strategy: Strategy) -> dict[str, Any]:
    """Return plain JSON values that say a strategy, but for its set of changes."""
    if isinstance(strategy, Diagonal):
        sigma = strategy.sigma
        times = _period(sigma)
        return {"diagonal": pack(sigma[: len(sigma) // times]), "times": times} | {
            "bits": strategy.bits
        }
    if isinstance(strategy, Kronecker):
        return {"factors": [_written(factor) for factor in strategy.factors]}
    dense = strategy.densify()
    return {"rows": pack(dense.rows), "sigma": pack(dense.sigma)}


def _period(sigma: Floats) -> int:
    """Return how often the first part of the scales is repeated: rows of a matrix are alike."""
    same = np.flatnonzero(sigma == sigma[0])
    for length in same[1:64].tolist():
        if len(sigma) % length == 0:
            parts = sigma.reshape(-1, length)
            if np.array_equal(parts, np.broadcast_to(parts[0], parts.shape)):
                return len(parts)
    return 1


def _read(content: dict[str, Any], query: MatrixQuery) -> Strategy:
    changes = query.changes
    if "factors" in content:
        return Kronecker([_read_factor(part) for part in content["factors"]], changes)
    return replace(_read_factor(content), changes=changes)


def _read_factor(content: dict[str, Any]) -> Diagonal | Dense:
    if "diagonal" in content:
        sigma = np.tile(unpack(content["diagonal"]), content["times"])
        return Diagonal(sigma, bits=content["bits"])
    rows = unpack(content["rows"])
    return Dense(rows, unpack(content["sigma"]), np.eye(rows.shape[1]))
