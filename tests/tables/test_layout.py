"""Cells, excesses and what one row can do to them: checked value by value over random worlds."""

import itertools

import numpy as np
import pytest
from hypothesis import given, reject, settings
from scipy.optimize import nnls
from tests.tables.oracle import worlds
from tests.tables.test_engines import THOROUGH

import noiseshape as ns
from noiseshape import InvalidInput, NotSpanned, Schema, TooLarge, Workload
from noiseshape.privacy import Profile
from noiseshape.tables.layout import Layout


def compiled(world):
    try:
        return world.work.compiled()
    except InvalidInput:  # a query that is 0 whoever is counted; test_engines sees it refused
        reject()


def one_row(layout, person):
    """Return what a row in these cells of the whole table adds to the data, by the definition."""
    at = tuple(int(axis.steps.at(person[axis.column])) for axis in layout.axes)
    index = int(np.ravel_multi_index(at, layout.shape)) if at else 0
    counts = np.zeros(layout.grid_size, dtype=object)
    counts[index] = 1
    sums = []
    for total in layout.sums:
        domain, cell = layout.schema.columns[total.column], person[total.column]
        added = np.zeros(layout.grid_size, dtype=object)
        added[index] = domain.low + cell if cell < domain.regular else 0
        sums.append(added)
    return layout.gathered(counts, sums).astype(float)


def everybody(schema, most=60):
    sizes = [range(domain.size) for domain in schema.columns.values()]
    everyone = list(itertools.product(*sizes))
    for cells in everyone[:: max(1, len(everyone) // most)]:
        yield dict(zip(schema.columns, cells, strict=True))


@settings(THOROUGH, max_examples=25)
@given(world=worlds())
def test_what_a_row_adds_is_a_mean_of_the_corners_of_its_cell(world):
    """So no value costs more than the corners do; and each corner is some row's, or its hull's."""
    asked = compiled(world)
    layout = asked.layout
    reach = np.eye(layout.cells) if layout.reach is None else layout.reach.astype(float)
    touched = np.zeros(reach.shape[1], dtype=bool)
    for person in everybody(world.schema):
        if any(zero.holds(world.schema, person) for zero in world.zeros):
            continue
        added = one_row(layout, person)
        assert added[: layout.cells].sum() == 1
        own = np.flatnonzero(reach[: layout.cells].T @ added[: layout.cells])
        corners = np.vstack([reach[:, own] / 1e3, np.ones(len(own))])
        _, distance = nnls(corners, np.append(added / 1e3, 1))
        assert distance < 1e-9
        touched[own] |= (np.abs(reach[:, own] - added[:, None]) < 1e-9).all(axis=0)
    assert touched.any() or not world.placed()


@settings(THOROUGH, max_examples=25)
@given(world=worlds())
def test_answers_are_linear_in_what_rows_add(world):
    asked = compiled(world)
    rows = world.placed()
    x = sum((one_row(asked.layout, cells) for cells in rows), np.zeros(asked.layout.coordinates))
    told = [v for query in world.answers() for v in query if v is not None]
    assert (asked.matrix @ x).tolist() == told


@settings(THOROUGH, max_examples=15)
@given(world=worlds())
def test_it_survives_a_file(world):
    asked = compiled(world)
    back = Layout.from_json(asked.layout.to_json())
    assert back.to_json() == asked.layout.to_json()
    assert back.labels == asked.layout.labels == asked.cells
    assert len(set(back.labels)) == back.coordinates
    one, two = back.reach, asked.layout.reach
    assert (one is None) == (two is None)
    assert one is None or (one == two).all()


def test_a_charge_is_told_for_every_cell_of_the_schema_at_its_worst_corner():
    schema = Schema({"sex": ["F", "M"], "x": ns.integers(0, 3, missing="drop")})
    layout = Workload(schema).sum("x", by="sex", stderr=1).compiled().layout
    assert layout.reach.shape == (3 + 3, 6)  # F, M, missing: a count and an excess each
    profile = Profile(np.array([1, 5, 2, 2, 7, 3], dtype=object), 4)
    told = layout.charged(profile)
    assert told.units.tolist() == [5] * 4 + [2] * 4 + [7] * 4
    assert told.exponent == 4


def test_a_charge_of_too_many_cells_is_not_told():
    schema = Schema({"x": ns.integers(0, 200_000)})
    layout = Workload(schema).ranges("x", [(0, 9)], stderr=1).compiled().layout
    assert layout.charged(Profile(np.array([1, 1], dtype=object), 4)) is None


def test_what_was_not_measured_is_refused():
    schema = Schema({"age": ns.integers(0, 9), "x": ns.integers(0, 9), "sex": ["F", "M"]})
    work = Workload(schema).ranges("age", [(0, 4)], stderr=1).sum("x", stderr=1)
    layout = work.compiled().layout
    with pytest.raises(NotSpanned, match="needs age in more detail"):
        layout.rows(work.question("age < 3"))
    with pytest.raises(NotSpanned, match="needs sex in more detail"):
        layout.rows(work.question(by="sex"))
    with pytest.raises(NotSpanned, match="x was not summed by age"):
        layout.rows(work.question("age < 5", summed="x"))
    with pytest.raises(NotSpanned, match="age was not summed"):
        layout.rows(work.question(summed="age"))
    assert layout.rows(work.question("age < 5")).sum() == 1


def test_what_would_not_fit_is_refused_before_it_is_made():
    schema = Schema({f"x{i}": ns.integers(0, 9) for i in range(18)})
    work = Workload(schema)
    for name in schema.columns:
        work.sum(name, stderr=1)
    with pytest.raises(TooLarge, match=r"262,144 things that one row can do.*sum fewer columns"):
        work.compiled().layout.reach  # noqa: B018
    wide = Schema({f"c{i}": ns.integers(0, 999) for i in range(3)})
    work = Workload(wide).prefixes("c0", stderr=1).prefixes("c1", stderr=1)
    with pytest.raises(TooLarge, match="cells apart, and a plan forms at most 67,108,864"):
        work.prefixes("c2", stderr=1).compiled()


def test_nobody_is_an_impossible_workload():
    schema = Schema({"a": ["x"]}, impossible="a == 'x' or a is missing")
    with pytest.raises(InvalidInput, match="nobody can be counted"):
        Workload(schema).total(stderr=1).compiled()


def test_a_plan_whose_cells_were_changed_is_refused():
    content = (
        Workload(Schema({"a": ["x", "y"]})).marginal("a", stderr=1).compiled().layout.to_json()
    )
    for starts, values in (([0, 0, 2], [0, 1, 2]), ([0, 1, 9], [0, 1, 2]), ([0, 1], [0, 2])):
        content["axes"] = [["a", starts, values]]
        with pytest.raises(InvalidInput, match="do not fit its schema"):
            Layout.from_json(content)
