"""The three data sets of MVG's experiments; where they come from is in NOTICE.

Bounds are taken as declared: what is between them is scaled to [0, 1], or to [-1, 1] about the
middle. MVG does not say which bounds it used; here each column's own extremes stand for them, as if
they were public.
"""

from __future__ import annotations

import csv
import gzip
from functools import cache
from pathlib import Path

import numpy as np

from ..harness import Floats

HERE = Path(__file__).parent
LIVER = ("MCV", "ALKPHOS", "ALT", "AST", "GGT", "Y")
MOVEMENT = ("ANC0", "ANC1", "ANC2", "ANC3")
CTG_FEATURES = 21


@cache
def read(name: str) -> tuple[tuple[str, ...], Floats]:
    """Return the columns' names and the numbers (rows, columns) of a file."""
    with gzip.open(HERE / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    values = np.array(rows, dtype=np.float64)
    values.flags.writeable = False
    return tuple(header), values


def liver(*, centred: bool) -> Floats:
    """Return Liver Disorders (345, 6): five blood tests and the drinks a day (Y), scaled."""
    _, values = read("liver_bupa")
    return scaled(values[:, :6], centred=centred)


def movement(records: int | None = None) -> Floats:
    """Return the four signal strengths in [-1, 1] (records, 4), in the file's order; all for None.

    The order is by sequence: the first 80 of them hold 2,021 records, the first 255 hold 10,176.
    """
    _, values = read("movementaal")
    return values[:records, 2:6]


def ctg() -> Floats:
    """Return Cardiotocography (2126, 21), scaled to [0, 1]."""
    _, values = read("ctg")
    return scaled(values[:, :CTG_FEATURES], centred=False)


def ctg_columns(*names: str) -> list[int]:
    """Return where features of Cardiotocography stand."""
    header, _ = read("ctg")
    return [header.index(name) for name in names]


def scaled(values: Floats, *, centred: bool) -> Floats:
    """Return columns scaled from their extremes to [0, 1], or to [-1, 1] if ``centred``."""
    low, high = values.min(axis=0), values.max(axis=0)
    unit = (values - low) / (high - low)
    return 2 * unit - 1 if centred else unit
