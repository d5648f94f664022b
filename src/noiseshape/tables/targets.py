"""How accurate an answer must be, in the words people use, as a variance."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from .._checks import Floats, floats, real
from ..errors import InvalidInput
from .recode import public_rows

# Half-widths of 95 % intervals are this many standard errors.
HALF_WIDTH = float(-ndtri(0.025))

Reference = ArrayLike | Mapping[Any, float] | str | os.PathLike[str]


def variances(name: str, rows: int, **targets: ArrayLike | None) -> Floats:
    """Return the target variance of each row, from one of ``variance``, ``stderr``, ``margin``."""
    given = {kind: value for kind, value in targets.items() if value is not None}
    if len(given) != 1:
        raise InvalidInput(
            f"{name!r} needs one target: {_listed(list(targets))}; got "
            f"{' and '.join(given) or 'none'}."
        )
    ((kind, value),) = given.items()
    target = floats(f"the {kind} of {name!r}", value)
    if target.shape not in ((), (rows,)):
        raise InvalidInput(
            f"the {kind} of {name!r} must be one number, or one for each of its {rows} rows."
        )
    if not np.all(target > 0):
        raise InvalidInput(f"the {kind} of {name!r} must be above 0, got {target.min():g}.")
    if kind == "margin":
        target = target / HALF_WIDTH
    # One target is kept once, however many answers have it.
    return np.broadcast_to(target if kind == "variance" else target**2, (rows,))


def from_cv(
    name: str,
    cv: ArrayLike,
    reference: Reference | None,
    axes: Sequence[str],
    parts: Sequence[tuple[str, ...]],
) -> Floats:
    """Return standard errors: ``cv`` times what each row is expected to be.

    Parameters
    ----------
    reference
        A public table, such as last year's: one number a row in order, a mapping from the
        row's labels to it, or a CSV file with a column for each axis and one more.
    axes, parts
        The names of what the rows are by, and the labels of each row.
    """
    if reference is None:
        raise InvalidInput(
            f"the cv of {name!r} is a share of what is expected: give a public reference table."
        )
    expected = _expected(name, reference, axes, parts)
    if not np.all(expected > 0):
        raise InvalidInput(
            f"the reference of {name!r} must be above 0 in every row, and "
            f"{int((~(expected > 0)).sum())} of {len(expected)} are not: a share of nothing is no "
            "target; raise them to the least count that matters."
        )
    share = floats(f"the cv of {name!r}", cv)
    if share.shape not in ((), (len(parts),)) or not np.all(share > 0):
        raise InvalidInput(f"the cv of {name!r} must be above 0: one number, or one a row.")
    return np.asarray(share * expected)


def _expected(
    name: str, reference: Reference, axes: Sequence[str], parts: Sequence[tuple[str, ...]]
) -> Floats:
    if isinstance(reference, (str, os.PathLike)):
        reference = _from_file(name, reference, axes)
    if isinstance(reference, Mapping):
        table = {_key(k): v for k, v in reference.items()}
        missed = [p for p in parts if p not in table]
        if missed:
            raise InvalidInput(
                f"the reference of {name!r} lacks {len(missed)} of {len(parts)} rows, such as "
                f"{', '.join(missed[0]) or 'the total'}."
            )
        return np.array([real(f"the reference of {name!r}", table[p]) for p in parts])
    values = floats(f"the reference of {name!r}", reference)
    if values.shape not in ((), (len(parts),)):
        raise InvalidInput(f"the reference of {name!r} must have one number for each row.")
    return np.broadcast_to(values, (len(parts),))


def _from_file(name: str, path: str | os.PathLike[str], axes: Sequence[str]) -> dict[Any, float]:
    rows = public_rows(path)
    values = [column for column in rows[0] if column not in axes]
    missing = [axis for axis in axes if axis not in rows[0]]
    if missing or len(values) != 1:
        raise InvalidInput(
            f"the reference of {name!r} needs the columns {', '.join(axes)} and one more with "
            f"the expected values; {os.fspath(path)} has {', '.join(rows[0])}."
        )
    try:
        return {tuple(row[a] for a in axes): float(row[values[0]]) for row in rows}
    except ValueError:
        raise InvalidInput(f"the reference file {os.fspath(path)} holds no numbers.") from None


def _key(key: Any) -> tuple[str, ...]:
    return tuple(map(str, key)) if isinstance(key, tuple) else (str(key),) if key != "" else ()


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
