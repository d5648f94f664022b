"""The statement: it reads no value that it may stop on, and quotes whatever names hold."""

import datetime

import duckdb
import pyarrow as pa
import pytest

import noiseshape as ns
from noiseshape import InvalidInput, People, Schema, Workload
from noiseshape.tables.duck import arrow
from noiseshape.tables.engine import Rows
from noiseshape.tables.sql import DUCKDB, SPARK, check_kinds

NASTY = ["'; drop table rows; --", 'a"b', "a`b", "a\\b", "%s", "{0}", "é", "\x00", "\ud7ff"]


@pytest.mark.parametrize("value", [v for v in NASTY if v != "\x00"])
def test_texts_are_quoted_for_both_engines(value):
    ((told,),) = duckdb.sql(f"select {DUCKDB.literal(value)}").fetchall()
    assert told == value
    assert SPARK.literal(value).replace("\\\\", "\\").replace("\\'", "'")[1:-1] == value


@pytest.mark.parametrize("name", NASTY[:2] + NASTY[3:7])
def test_names_are_quoted_wherever_they_stand(name):
    table = pa.table({name: [0, 1, 1]})
    work = Workload(Schema({name: ns.integers(0, 1)})).marginal(name, stderr=1)
    assert Rows(arrow(table), work.compiled().layout, People()).read().tolist() == [1, 2, 0]


FEW = {"sex": ["F", "M"]}
SUMMED = [
    # how low and policies decide which way is taken: all native, in two parts, or value by value
    (ns.integers(0, 100), "native"),
    (ns.integers(0, 100, outside="clamp"), "native"),
    (ns.integers(-9, 100, outside="other", missing="drop"), "native"),
    (ns.integers(5, 100), "two parts"),
    (ns.integers(5, 100, outside="other", missing="drop"), "two parts"),
    (ns.integers(5, 100, missing="drop"), "native"),
]
VALUES = [None, -(2**63), 2**63 - 1, -1, 0, 5, 100, 101, 50, 50]


def plainly(domain, value):
    """Return what a value adds to the sum; None where its row leaves."""
    if value is None:
        return None if domain.missing == "drop" else 0
    if domain.low <= value <= domain.high:
        return value
    nearest = min(max(value, domain.low), domain.high)
    return {"drop": None, "clamp": nearest, "other": 0}[domain.outside]


@pytest.mark.parametrize(("domain", "way"), SUMMED)
def test_sums_take_the_native_way_where_policies_allow_and_agree(domain, way):
    table = pa.table({"sex": ["F", "M"] * 5, "x": pa.array(VALUES, pa.int64())})
    work = Workload(Schema(FEW | {"x": domain})).sum("x", by="sex", stderr=1).total(stderr=1)
    asked = work.compiled()
    rows = Rows(arrow(table), asked.layout, People())
    assert ("UNION ALL" in rows.statement) == (way == "two parts")
    told = (asked.matrix @ rows.read().astype(float)).tolist()
    added = [plainly(domain, v) for v in VALUES]
    assert told == [
        sum(v or 0 for v in added[::2]),
        sum(v or 0 for v in added[1::2]),
        0,
        sum(v is not None for v in added),
    ]


@pytest.mark.parametrize("domain", [ns.integers(0, 9), ns.integers(0, 9, outside="clamp"),
                                    ns.integers(0, 9, missing="drop")])  # fmt: skip
def test_a_column_that_nobody_asks_about_still_drops_its_rows(domain):
    table = pa.table({"sex": ["F", "M"] * 5, "x": pa.array(VALUES, pa.int64())})
    work = Workload(Schema(FEW | {"x": domain})).total(stderr=1)
    rows = Rows(arrow(table), work.compiled().layout, People())
    assert rows.read().tolist() == [sum(plainly(domain, v) is not None for v in VALUES)]


def test_sums_are_exact_beyond_doubles_and_64_bits():
    most = 2**53 - 2
    table = pa.table({"x": [most] * 5000 + [7]})
    work = Workload(Schema({"x": ns.integers(0, most)})).sum("x", stderr=1e9)
    counted = Rows(arrow(table), work.compiled().layout, People()).read()
    assert counted.tolist() == [5001, 5000 * most + 7]
    assert counted[1] > 2**63


DAY = datetime.date(2020, 1, 1)
READABLE = {"integer": 1, "real": 1.5, "text": "1", "truth": True, "date": DAY}
DOMAINS = {
    "integers": ns.integers(0, 9), "categories": ns.categories(["a"]), "bins": ns.bins([0, 9]),
    "booleans": ns.booleans(), "years": ns.dates(2020, 2021),
    "months": ns.dates(2020, 2021, by="month"),
}  # fmt: skip
REFUSED = {("integers", "date"), ("bins", "date"), ("booleans", "date"), ("years", "real"),
           ("years", "truth"), ("months", "real"), ("months", "truth"),
           ("months", "integer")}  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("kind", READABLE)
def test_declared_types_are_read_or_refused_before_any_row(domain, kind):
    schema = Schema({"x": DOMAINS[domain]})
    if (domain, kind) in REFUSED:
        with pytest.raises(InvalidInput, match=f"column 'x' holds {kind}, and is declared as"):
            check_kinds(schema, People(), {"x": kind})
        return
    check_kinds(schema, People(), {"x": kind})
    work = Workload(schema).marginal("x", stderr=1)
    rows = Rows(arrow(pa.table({"x": [READABLE[kind]]})), work.compiled().layout, People())
    assert rows.read().sum() <= 1


def test_every_missing_column_is_counted_and_the_unit_too():
    schema = Schema({"a": ["x"], "b": ["x"], "c": ["x"]})
    with pytest.raises(InvalidInput, match=r"no column 'b', .* \(nor 2 more\): it has a"):
        check_kinds(schema, People("id"), {"a": "text"})
    with pytest.raises(InvalidInput, match="declared as the id of a person"):
        check_kinds(schema, People("id"), {"a": "text", "b": "text", "c": "text", "id": None})
