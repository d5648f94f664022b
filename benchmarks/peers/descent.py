"""Gradient descent on the soft-max objective: SM-II's peer in fitness for use, Table 3."""

from __future__ import annotations

from numpy.typing import ArrayLike

from noiseshape._checks import Floats
from noiseshape.design import Design
from noiseshape.design.sm2 import PUBLISHED, Model, Options, solve


def descent(
    W: ArrayLike,
    variance: ArrayLike,
    *,
    basis: ArrayLike | None = None,
    options: Options = PUBLISHED,
) -> Design:
    """Run Algorithm 1 with ``-grad F`` for the direction; all else is as SM-II has it.

    Parameters
    ----------
    W, variance, basis, options
        As in :func:`noiseshape.design.sm2.sm2`.

    Returns
    -------
    Design
        Named "descent".
    """
    return solve("descent", _downhill, W, variance, basis, None, options, None)


def _downhill(model: Model, options: Options) -> Floats:  # noqa: ARG001 (conjugate gradients' peer)
    return -model.gradient
