"""The main job on real data, twice: from counts, and from a file of people.

The population pyramid of the United States, 2019: counts by single year of age and sex, which
come with the package. And a survey: 7,634 people of the American Community Survey, from a spec
(examples/survey.yaml) and a file to published tables. What is asked, and how accurately, is
public; the design finds the least privacy that gives it, proves that, draws the noise exactly,
and pays from a ledger.

Run: python examples/demo.py [folder]
"""

from __future__ import annotations

import csv
import shutil
import sys
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

import noiseshape as ns
from noiseshape import spec as specs

SPEC = Path(__file__).parent / "survey.yaml"
SEXES = ["male", "female"]
BANDS = {"0-17": (0, 17), "18-64": (18, 64), "65+": (65, 85)}


def counts() -> tuple[list[str], np.ndarray]:
    """Return the declared cells (sex, then age; 85 is 85 and over) and how many are in each."""
    text = files("noiseshape").joinpath("data/us_pyramid_2019.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    cells = [f"{sex} {row['age']}" for sex in SEXES for row in rows]
    return cells, np.array([int(row[sex]) for sex in SEXES for row in rows])


def asked(cells: list[str]) -> ns.Queries:
    """Return what is published, each with the accuracy that its use needs."""
    ages = len(cells) // len(SEXES)
    by_sex = np.eye(len(SEXES))
    everybody = np.ones((1, ages))
    bands = np.array([[a <= age <= b for age in range(ages)] for a, b in BANDS.values()])
    up_to = np.tril(np.ones((ages, ages)))
    return (
        ns.Queries(cells)
        .ask("total", np.ones(len(cells)), stderr=40)
        .ask("sex", np.kron(by_sex, everybody), stderr=30, labels=SEXES)
        .ask(
            "band by sex",
            np.kron(by_sex, bands),
            margin=50,  # half-width at 95 %
            labels=[f"{sex} {band}" for sex in SEXES for band in BANDS],
        )
        .ask(
            "up to age by sex",
            np.kron(by_sex, up_to),
            stderr=60,
            labels=[f"{sex} up to {age}" for sex in SEXES for age in range(ages)],
        )
        .ask("pyramid", np.eye(len(cells)), stderr=20, labels=cells)
    )


def main(folder: str = "out") -> None:
    """Plan, pay, release and publish into ``folder``/demo, which is made anew."""
    out = Path(folder) / "demo"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    population(out / "population")
    survey(out / "survey")
    print("\nWritten:")
    for path in sorted(out.rglob("*")):
        if path.is_file() and "budget.db" not in path.parts[-1] and ".runs" not in str(path):
            print(f"  {path}")
    for name in ("population", "survey"):
        print(f"  {out / name / 'budget.db'} (the ledger; its private staging folder beside it)")
    print("Open these in a browser: the releases, with pictures, and what is left of the budget:")
    for name in ("population", "survey"):
        print(f"  {out / name / 'report.html'}")


def survey(out: Path) -> None:
    """Release tables of the survey: from a spec and a file to published numbers."""
    out.mkdir()
    spec = specs.read(SPEC)
    work = spec.workload(SPEC.parent)
    plan = ns.plan(work, by="cells", budget=spec.ceiling())
    print(f"\n{work}\n{plan}")
    plan.save(out / "plan.json")
    ledger = ns.Ledger.create(
        out / "budget.db", ns.Budget(epsilon=4.0, delta=1e-9), vintage=spec.vintage
    )
    # The file's rows are read once, after the debit, by the embedded engine.
    with as_file(files("noiseshape").joinpath("data/ma2019.csv.gz")) as data:
        release = plan.release(data, ledger=ledger, out=out / "release", what="survey tables")
    print(f"epsilon at delta 1e-9: {plan.cost.epsilon(1e-9):.4f} of 4 spent\n")
    release.report(out / "report.html", ledger=ledger, title="A survey of Massachusetts, 2019")
    print(release.table())
    print()
    print(release.mean("PINCP", by="sex"))
    print(f"\nPeople under 30, which nobody asked for: {release.answer('AGEP < 30')}")


def population(out: Path) -> None:
    """Release the population pyramid."""
    out.mkdir()
    cells, people = counts()
    queries = asked(cells)
    plan = ns.plan(queries)
    plain = ns.plan(queries, shape="identity")
    proof = plan.certificate
    assert proof is not None
    print(f"{queries}\n{plan}")
    print(
        f"No Gaussian noise meets these targets at less than {np.sqrt(proof.lower):.6f} of the "
        f"{plan.cost.mu:.6f} spent (mu);\nthe same noise on every cell would need "
        f"{plain.cost.mu:.6f}, {plain.cost.mu / plan.cost.mu:.2f} times as much."
    )
    plan.save(out / "plan.json")

    ledger = ns.Ledger.create(
        out / "budget.db", ns.Budget(epsilon=1.0, delta=1e-9), vintage="US population, July 2019"
    )
    release = plan.release(people, ledger=ledger, out=out / "release", what="age pyramid")
    print(f"\nReleased: {release}")
    print(
        f"epsilon at delta 1e-9: {plan.cost.epsilon(1e-9):.4f} spent of 1; {ledger.remaining()}\n"
    )
    print(release.table())
    release.report(
        out / "report.html", ledger=ledger, title="Population of the United States, 2019"
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
