"""Comparisons: equal cost for all, numbers that agree with the designs, tables and a picture."""

from __future__ import annotations

import builtins
import csv
import io
import json

import numpy as np
import pytest
from benchmarks.workloads import pl94, prefixes
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseshape.design.certificate import recompute
from noiseshape.design.compare import DESIGNS, MOST_TICKS, QUICK, SAME, Comparison, _ticks, compare
from noiseshape.design.hierarchy import hierarchy
from noiseshape.design.identity import identity
from noiseshape.errors import InvalidInput, NoiseshapeError

TARGETS = np.array([1.0, 4, 2, 9, 1, 3])


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(prefixes(6)[0], TARGETS, designs=list(DESIGNS))


def test_every_design_spends_the_same(comparison):
    assert [row.design for row in comparison.rows()] == list(DESIGNS)
    for design in comparison.designs.values():
        assert design.mu == pytest.approx(comparison.mu)
        assert design.profile.max() == pytest.approx(comparison.mu**2)


def test_fit_just_meets_its_targets_and_no_other_design_beats_it(comparison):
    rows = {row.design: row for row in comparison.rows()}
    # All spend what the cheapest needs; the certificate says by how much fit may need more.
    assert rows["fit"].worst_ratio <= 1 + comparison.designs["fit"].certificate.gap
    for row in rows.values():
        assert row.worst_ratio >= 1 - 1e-12
        assert row.mu_for_targets == pytest.approx(comparison.mu * np.sqrt(row.worst_ratio))
    assert rows["sm2"].worst_ratio < 1.002


def test_least_total_error_is_that_of_total(comparison):
    totals = {row.design: row.total_variance for row in comparison.rows()}
    assert all(totals["total"] <= other * (1 + 2e-3) for other in totals.values())


def test_numbers_agree_with_a_slow_computation(comparison):
    W, c = prefixes(6)[0], TARGETS
    for row, design in zip(comparison.rows(), comparison.designs.values(), strict=True):
        weights = np.ones(6) / 6
        achieved = recompute(W, c, weights, weights, design.A)[1]  # alpha = mu^2 times worst ratio
        assert achieved == pytest.approx(comparison.mu**2 * row.worst_ratio)
        variances = np.diag(W @ np.linalg.inv(design.A.T @ design.A) @ W.T)
        assert row.total_variance == pytest.approx(variances.sum())
        assert row.median_ratio == pytest.approx(np.median(variances / c))


def test_pl94_at_equal_cost():
    W, c = pl94()
    rows = {row.design: row for row in compare(W, c, ["fit", "total", "identity"]).rows()}
    # 53.31 for noise on cells and 5.82 for least total error, over the optimum of 2.36332.
    assert rows["identity"].worst_ratio == pytest.approx(53.31, rel=2e-3)
    assert rows["total"].worst_ratio == pytest.approx(5.82, rel=5e-3)
    assert rows["fit"].mu_for_targets ** 2 == pytest.approx(2.36332, rel=1e-3)


def test_a_given_cost_is_spent():
    comparison = compare(*prefixes(4), designs=["fit", "identity"], mu=0.1)
    at_one = compare(*prefixes(4), designs=["fit", "identity"], mu=1)
    for row, wider in zip(at_one.rows(), comparison.rows(), strict=True):
        assert wider.worst_ratio == pytest.approx(100 * row.worst_ratio)
        assert wider.mu_for_targets == pytest.approx(row.mu_for_targets)


def test_designs_of_ones_own_take_part_and_repeats_are_numbered():
    W, c = prefixes(9)
    own = [hierarchy(W, c, branching=3), hierarchy(W, c, two_level=True), identity(W, c)]
    comparison = compare(W, c, designs=[*own, "hierarchy"])
    assert list(comparison.designs) == ["hierarchy", "hierarchy 2", "identity", "hierarchy 3"]
    np.testing.assert_allclose(
        comparison.designs["hierarchy"].profile, comparison.designs["hierarchy 2"].profile
    )


# ---- tables -------------------------------------------------------------------------------------


def test_the_plain_table(comparison):
    lines = str(comparison).splitlines()
    assert lines[0] == f"6 queries over 6 cells, every design at mu = {comparison.mu:.4g}"
    assert lines[2].split("  ")[0].strip() == "design"
    assert [line.split()[0] for line in lines[4:]] == list(DESIGNS)
    assert len({len(line) for line in lines[2:]}) == 1
    assert lines[4].split()[1] == "1"


def test_csv_of_the_rows(comparison, tmp_path):
    text = comparison.to_csv(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text() == text
    for line, row in zip(csv.DictReader(io.StringIO(text)), comparison.rows(), strict=True):
        assert line["design"] == row.design
        assert float(line["worst_ratio"]) == row.worst_ratio


def test_csv_of_the_queries(comparison):
    lines = list(csv.DictReader(io.StringIO(comparison.to_csv(per_query=True))))
    assert len(lines) == 6 * len(DESIGNS)
    errors = comparison.errors()
    assert list(lines[0]) == ["design", "query", "target", "achieved", "ratio"]
    assert [float(line["achieved"]) for line in lines] == errors["achieved"].tolist()
    np.testing.assert_allclose(errors["ratio"], errors["achieved"] / errors["target"])
    assert errors["query"].tolist() == list(range(6)) * len(DESIGNS)
    worst = max(float(line["ratio"]) for line in lines if line["design"] == "identity")
    assert worst == comparison.designs["identity"].k


# ---- the picture --------------------------------------------------------------------------------


def test_the_picture_shows_every_design(comparison):
    chart = comparison.chart()
    spec = json.loads(chart.to_json())
    values = [data for data in _values(spec) if "worst_ratio" in data]
    assert {data["design"]: data["worst_ratio"] for data in values} == {
        row.design: row.worst_ratio for row in comparison.rows()
    }
    text = json.dumps(spec)
    assert "achieved / target variance (log scale)" in text
    assert comparison._title() in text


def test_the_picture_is_drawn(comparison, tmp_path):
    comparison.chart().save(tmp_path / "picture.svg")
    svg = (tmp_path / "picture.svg").read_text()
    assert svg.startswith("<svg")
    assert all(name in svg for name in DESIGNS)


def test_without_altair_one_sentence_says_what_to_do(comparison, monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "altair":
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ModuleNotFoundError, match="needs altair: pip install"):
        comparison.chart()


def _values(spec):
    """Yield every inline data value of a chart's specification."""
    if isinstance(spec, dict):
        data = spec.get("data")
        if isinstance(data, dict):
            yield from data.get("values", [])
        for part in spec.values():
            yield from _values(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from _values(part)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(seed=st.integers(0, 1000), n=st.integers(1, 2000))
def test_ticks_are_few_true_and_complete(seed, n):
    ratios = np.exp(np.random.default_rng(seed).normal(size=n))
    ticks = np.array(_ticks(ratios))
    assert len(ticks) <= MOST_TICKS + 2
    assert np.isin(ticks, ratios).all()
    assert (ticks.min(), ticks.max()) == (ratios.min(), ratios.max())
    if n <= 100:  # none is left out: every ratio has a tick within its share
        nearest = np.abs(np.log(ratios)[:, None] - np.log(ticks)).min(axis=1)
        assert nearest.max() <= SAME * 1.01


def test_near_equal_ratios_are_one_tick_but_both_ends_are_kept():
    assert _ticks(np.array([1.0, 1.0001, 1.0002])) == [1.0, 1.0002]
    assert len(_ticks(np.linspace(2.0, 2.001, 50))) <= 3


# ---- bad input ----------------------------------------------------------------------------------


def test_bad_input_is_refused():
    W, c = prefixes(3)
    with pytest.raises(InvalidInput, match="No design is called 'best'"):
        compare(W, c, designs=["best"])
    with pytest.raises(InvalidInput, match="at least one"):
        compare(W, c, designs=[])
    with pytest.raises(InvalidInput, match="another workload"):
        compare(W, c, designs=[identity(W, 2 * c)])
    with pytest.raises(InvalidInput, match="mu must be above 0"):
        compare(W, c, designs=["identity"], mu=0)
    with pytest.raises(NoiseshapeError, match="all zeros"):
        compare(np.zeros((1, 2)), 1)


def test_designs_for_different_neighbours_do_not_compare():
    W, c = prefixes(3)
    with pytest.raises(InvalidInput, match="different neighbours"):
        compare(W, c, designs=["fit", DESIGNS["fit"](W, c, neighbours="replace")])


def test_the_quick_designs_leave_out_only_the_slow_one():
    assert set(DESIGNS) - set(QUICK) == {"sm2"}
