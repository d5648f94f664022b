"""What the comparison with diffprivlib measures: nothing where nothing is lost."""

import numpy as np
import pytest
from benchmarks.learn import K, excess, main, missed, off, read, top

rng = np.random.default_rng(0)
rows = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))


def test_least_squares_has_no_excess_and_anything_else_has():
    X = np.column_stack([rows[:, :-1], np.ones(200)])
    w = np.linalg.lstsq(X, rows[:, -1], rcond=None)[0]
    assert excess(rows, w[None])[0] == pytest.approx(0, abs=1e-9)
    mean = np.append(np.zeros(3), rows[:, -1].mean())
    r2 = 1 - np.var(rows[:, -1] - X @ w) / np.var(rows[:, -1])
    assert excess(rows, mean[None])[0] == pytest.approx(100 * (1 / np.sqrt(1 - r2) - 1))


def test_the_best_components_miss_nothing_and_the_last_miss_most():
    C = np.cov(rows.T)
    assert missed(C, top(C)) == pytest.approx(0, abs=1e-9)
    values = np.linalg.eigvalsh(C)
    worst = 100 * (1 - values[:K].sum() / values[-K:].sum())
    assert missed(C, top(-C)) == pytest.approx(worst)


def test_errors_of_a_covariance():
    C = np.cov(rows.T)
    assert off(C, C) == 0
    assert off(C, 1.5 * C) == pytest.approx(50)


def test_without_data_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit, match=r"lacks adult_raw.parquet: it is made of UCI's Adult"):
        read(tmp_path)
    main()
    assert capsys.readouterr().out.startswith("Name the folder of the data")
