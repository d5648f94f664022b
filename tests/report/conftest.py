import shutil

import numpy as np
import pytest

import noiseshape as ns

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def plan():
    """One query for every kind of picture: number, bars, bands, pyramid, lines, heat map."""
    schema = ns.Schema(
        {
            "age": ns.integers(0, 15, missing="drop"),
            "sex": ["F", "M"],
            "region": ns.categories([f"region {i}" for i in range(9)], missing="drop"),
        },
        impossible=["age < 2 and region == 'region 3'"],
    )
    work = ns.Workload(schema, table="people of nowhere")
    work.total(stderr=5).marginal("sex", stderr=8)
    work.ranges("age", [(0, 9), (10, 15), (5, 12)], margin=20)
    work.marginal("sex", "age", stderr=12)
    work.prefixes("age", stderr=15)
    work.prefixes("age", by="sex", stderr=15, name="by sex")
    work.marginal("region", "sex", stderr=9)
    return ns.plan(work)


@pytest.fixture(scope="session")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger") / "b.db"
    return ns.Ledger.create(path, ns.Budget(epsilon=4, delta=1e-9), vintage="v")


@pytest.fixture(scope="session")
def release(plan, book):
    import pyarrow as pa

    n = 4000
    rows = {
        "age": [(i * 7) % 16 for i in range(n)],
        "sex": ["FM"[i % 2] for i in range(n)],
        "region": [f"region {(i * i) % 9}" for i in range(n)],
    }
    return plan.release(pa.table(rows), ledger=book)


@pytest.fixture(scope="session")
def cells():
    """Plain cells with slack, and a scaled plan that misses its targets."""
    return ns.plan(ns.Queries(2).ask("cells", np.eye(2), variance=[1, 4]), refine=True)


@pytest.fixture(scope="session")
def matrix():
    """A covariance of three columns, shaped to weights."""
    rows = np.random.default_rng(3).uniform(size=(500, 3))
    asked = ns.covariance(rows, bounds=(0, 1), expected=500)
    plan = ns.directional(asked, weights=[1, 2, 3]).within(ns.Budget(epsilon=2, delta=1e-9))
    return plan.release(unrecorded=True)


@pytest.fixture(scope="session")
def marginals():
    """Marginals of three columns, planned without the table."""
    import pyarrow as pa

    kinds = {"a": [*"xyz"], "b": [*"pq"], "c": [f"c{i}" for i in range(30)]}
    schema = ns.Schema({n: ns.categories(v, missing="drop") for n, v in kinds.items()})
    work = ns.Workload(schema, table="three").total(stderr=5).marginal("a", "b", stderr=9)
    work.marginal("a", "c", stderr=12).marginal("c", stderr=10)
    rows = {n: [v[i % len(v)] for i in range(900)] for n, v in kinds.items()}
    return ns.plan(work, by="marginals").release(pa.table(rows), unrecorded=True)


@pytest.fixture(scope="session")
def union():
    """Marginals and a query that is none, planned as a union: a kind without pages of its own."""
    import pyarrow as pa

    schema = ns.Schema({n: ns.integers(0, 4, outside="clamp", missing="drop") for n in "abcde"})
    work = ns.Workload(schema).all_marginals(2, stderr=12).where("a >= 3 or b < 2", stderr=3)
    rows = pa.table({n: [(i * (k + 1)) % 5 for i in range(400)] for k, n in enumerate("abcde")})
    return ns.plan(work, by="union").release(rows, unrecorded=True)


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    # A skipped check is not a pass.
    assert found, "reports are looked at in Chromium, which is missing: apt-get install chromium"
    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield made
        made.close()
