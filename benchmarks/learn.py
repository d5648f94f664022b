"""The estimators against diffprivlib's, on the same rows, bounds and epsilon.

diffprivlib needs scikit-learn 1.6.1, so that it gets an environment of its own in a temporary
folder (this alone uses a network; or name one that has it). Both are told the same bounds, and
how many rows there are (replace neighbours): its means divide by that number as by a public one.

What each promises is not the same. diffprivlib: epsilon-DP, delta = 0. Ours: (epsilon, 1e-9)-DP.

    python -m benchmarks.learn FOLDER [PYTHON]     a folder with adult_raw.parquet (UCI Adult),
                                                   ctg.csv.gz (UCI Cardiotocography) and
                                                   liver_bupa.csv.gz (UCI Liver Disorders)

Medians of the fits, with their 90 % point in brackets: of the error that noise causes alone,
since all is compared on the rows themselves with what least squares, or an eigendecomposition,
finds on them without privacy.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet

import noiseshape as ns
from noiseshape._checks import Floats

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-9
FITS = 30
K = 2  # components whose share of the variance is compared
# Its PCA clips rows to a length: the farthest corner, and smaller ones, the best taken afterwards.
SHARES = (1.0, 0.5, 0.25)

FILES = {
    "adult_raw.parquet": "Adult",
    "ctg.csv.gz": "Cardiotocography",
    "liver_bupa.csv.gz": "Liver Disorders",
}

# Bounds are what a person would say who knows the field, not what the file happens to hold.
Bounds = Mapping[str, tuple[float, float]]
ADULT: Bounds = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 5_000),
    "male": (0, 1),
    "hours_per_week": (1, 99),
}
CTG: Bounds = {
    "AC": (0, 0.03),
    "UC": (0, 0.02),
    "ASTV": (0, 100),
    "MSTV": (0, 10),
    "ALTV": (0, 100),
    "MLTV": (0, 60),
    "Width": (0, 200),
    "LB": (100, 170),
}
LIVER: Bounds = {
    "mcv": (60, 110),
    "alkphos": (0, 150),
    "sgpt": (0, 200),
    "sgot": (0, 100),
    "gammagt": (0, 300),
    "drinks": (0, 20),
}


def main(folder: str | None = None, python: str | None = None) -> None:
    """Print the comparison, a table for each data set; the last column of each is the target."""
    if folder is None:
        print("Name the folder of the data: python -m benchmarks.learn FOLDER [PYTHON].")
        return
    with tempfile.TemporaryDirectory() as scratch:
        theirs = python or environment(Path(scratch))
        for name, (bounds, rows) in read(Path(folder)).items():
            compare(name, bounds, rows, theirs, Path(scratch))


def environment(scratch: Path) -> str:
    """Return the Python of a new environment that has diffprivlib."""
    home = scratch / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q"]
    subprocess.run([*pip, "diffprivlib==0.6.6", "scikit-learn==1.6.1"], check=True)
    return str(home / "bin" / "python")


def read(folder: Path) -> dict[str, tuple[Bounds, Floats]]:
    """Return the columns of each data set, (n, m + 1), clipped to its bounds."""
    for name, source in FILES.items():
        if not (folder / name).is_file():
            raise SystemExit(f"{folder} lacks {name}: it is made of UCI's {source}, CC BY 4.0.")
    adult = pyarrow.parquet.read_table(folder / "adult_raw.parquet").to_pydict()
    adult["male"] = [float(sex.strip() == "Male") for sex in adult["sex"]]
    ctg = pyarrow.csv.read_csv(folder / "ctg.csv.gz").to_pydict()
    liver = pyarrow.csv.read_csv(folder / "liver_bupa.csv.gz").to_pydict()
    found = {"adult": (ADULT, adult), "ctg": (CTG, ctg), "liver": (LIVER, liver)}
    made = {}
    for name, (bounds, columns) in found.items():
        rows = np.column_stack([np.asarray(columns[c], dtype=np.float64) for c in bounds])
        low, high = np.array(list(bounds.values())).T
        made[name] = bounds, np.clip(rows, low, high)
    return made


def compare(name: str, bounds: Bounds, rows: Floats, python: str, scratch: Path) -> None:
    """Print both libraries' errors on one data set."""
    pairs = np.array(list(bounds.values()), dtype=np.float64)
    unit = (rows - pairs.mean(axis=1)) / (np.diff(pairs).ravel() / 2)
    norms = np.sqrt(rows.shape[1]) * np.array(SHARES)
    given, out = scratch / f"{name}.npz", scratch / f"{name}-fitted.npz"
    np.savez(
        given, X=rows[:, :-1], y=rows[:, -1], bounds=pairs[:-1], y_bounds=pairs[-1],
        epsilons=EPSILONS, fits=FITS, unit=unit, norms=norms,
    )  # fmt: skip
    script = Path(__file__).parent / "peers" / "with_diffprivlib.py"
    subprocess.run([python, str(script), str(given), str(out)], check=True)
    theirs = np.load(out)

    m = rows.shape[1]
    C = np.cov(unit.T, ddof=0)
    print(f"\n{name}: {len(rows):,} rows, {m} columns; median (90 % point) of {FITS} fits\n")
    print("| epsilon | what | ours | ours, rows private | diffprivlib |")
    print("| --- | --- | --- | --- | --- |")
    for at, epsilon in enumerate(EPSILONS):
        budget = ns.Budget(epsilon=epsilon, delta=DELTA)
        known = {"budget": budget, "unrecorded": True, "neighbours": "replace", "missing": "middle"}
        private = {"budget": budget, "unrecorded": True}
        w = theirs[f"ridge {at}"]
        lines = {
            "regression: excess RMSE, %": [
                *(excess(rows, ridge(rows, pairs, kind)) for kind in (known, private)),
                excess(rows, w),
            ]
        }
        ours = [covariances(unit, kind) for kind in (known, private)]
        best: dict[str, list[Floats]] = {}
        for k in range(len(norms)):
            V = theirs[f"directions {at} {k}"]
            S = np.swapaxes(V, 1, 2) @ (theirs[f"variances {at} {k}"][:, :, None] * V)
            best.setdefault("missed", []).append(np.array([missed(C, v[:K]) for v in V]))
            best.setdefault("off", []).append(np.array([off(C, s) for s in S]))
        least = {what: min(each, key=np.median) for what, each in best.items()}
        lines[f"first {K} components: variance missed, %"] = [
            *(np.array([missed(C, top(S)) for S in found]) for found in ours),
            least["missed"],
        ]
        lines["covariance: relative error, %"] = [
            *(np.array([off(C, S) for S in found]) for found in ours),
            least["off"],
        ]
        for what, columns in lines.items():
            print(f"| {epsilon:g} | {what} | " + " | ".join(map(said, columns)) + " |", flush=True)


def ridge(rows: Floats, pairs: Floats, kind: dict[str, Any]) -> Floats:
    """Return coefficients and intercept of our fits."""
    from noiseshape.learn import PrivateRidge

    found = []
    for _ in range(FITS):
        model = PrivateRidge(pairs[:-1].tolist(), tuple(pairs[-1]), **kind)
        model.fit(rows[:, :-1], rows[:, -1])
        found.append([*model.coef_, model.intercept_])
    return np.array(found)


def covariances(unit: Floats, kind: dict[str, Any]) -> list[Floats]:
    """Return covariances of our fits; the components are their eigenvectors."""
    from noiseshape.learn import PrivateCovariance

    return [PrivateCovariance((-1, 1), **kind).fit(unit).covariance_ for _ in range(FITS)]


def excess(rows: Floats, fits: Floats) -> Floats:
    """Return by how many per cent each fit's RMSE is above that of least squares."""
    X, y = np.column_stack([rows[:, :-1], np.ones(len(rows))]), rows[:, -1]
    least = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    each = np.sqrt([np.mean((y - X @ w) ** 2) for w in fits])
    return np.asarray(100 * (each / np.sqrt(np.mean(least**2)) - 1))


def top(S: Floats) -> Floats:
    """Return the first components, one a row."""
    return np.asarray(np.linalg.eigh(S)[1][:, ::-1].T[:K])


def missed(C: Floats, V: Floats) -> float:
    """Return how many per cent less variance components have than the best ones."""
    return float(100 * (1 - np.trace(V @ C @ V.T) / np.linalg.eigvalsh(C)[-K:].sum()))


def off(C: Floats, S: Floats) -> float:
    """Return the Frobenius error, in per cent of the matrix."""
    return float(100 * np.linalg.norm(S - C) / np.linalg.norm(C))


def said(values: Floats) -> str:
    """Return the median and the 90 % point."""
    return f"{np.median(values):.3g} ({np.quantile(values, 0.9):.3g})"


if __name__ == "__main__":
    main(*sys.argv[1:])
