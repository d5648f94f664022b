"""One YAML file says what Python says, in the same words; what it cannot say it refuses."""

import json

import jsonschema
import pytest
import yaml

import noiseshape as ns
from noiseshape import InvalidInput
from noiseshape import spec as specs

SPEC = """\
schema:
  age: {integers: [0, 9], missing: drop}
  sex: [F, M]
  hours: {bins: [0, 20, 40.5], closed: left, outside: clamp}
  married: booleans
  widowed: {booleans: true, missing: drop}
  born: {dates: [2000-05, 2001-02], by: month, outside: other}
  place: {categories: {file: places.csv, column: code}}
recodes:
  band: {of: age, ranges: {young: [0, 4], old: [[5, 6], [7, 9]]}}
  county: {of: place, file: places.csv, source: code, target: county}
  state: {of: county, mapping: {all: [North, South]}}
impossible: ["age < 3 and married"]
table: persons
vintage: survey 2026
people: {unit: id, max_rows: 3, neighbours: replace}
queries:
  - {name: a, total: true, stderr: 10}
  - {name: b, marginal: [sex, age], by: state, stderr: 20}
  - {name: c, prefixes: age, by: [sex], margin: 15}
  - {name: d, ranges: {hours: [[0, 20], [20, 40.5]]}, variance: 10}
  - {name: e, all_ranges: age, stderr: 9}
  - {name: f, where: "age >= 5 and hours >= 20", by: sex, variance: 1e2}
  - {name: g, sum: age, where: married, by: county, stderr: 50}
  - {name: h, rows: [[1, -1, 0]], over: [sex], stderr: 3}
  - {name: i, marginal: county, cv: 0.05, reference: {North: 100, South: 200, missing: 10}}
  - {name: j, marginal: county, cv: 0.05, reference: {file: counties.csv}}
  - {marginal: sex, stderr: [1, 2, 3]}
budget: {epsilon: 2.0, delta: 1e-9}
prioritise: privacy
shape: identity
data: people.parquet
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "places.csv").write_text("code,county\n010,North\nno,South\n")
    (tmp_path / "counties.csv").write_text("county,n\nNorth,100\nSouth,200\nmissing,10\n")
    return tmp_path


def in_python():
    schema = ns.Schema(
        {
            "age": ns.integers(0, 9, missing="drop"),
            "sex": ["F", "M"],
            "hours": ns.bins([0, 20, 40.5], closed="left", outside="clamp"),
            "married": ns.booleans(),
            "widowed": ns.booleans(missing="drop"),
            "born": ns.dates("2000-05", "2001-02", by="month", outside="other"),
            "place": ["010", "no"],
        },
        {
            "band": ns.recode("age", {"young": (0, 4), "old": [(5, 6), (7, 9)]}),
            "county": ns.recode("place", {"North": ["010"], "South": ["no"]}),
            "state": ns.recode("county", {"all": ["North", "South"]}),
        },
        ["age < 3 and married"],
    )
    work = ns.Workload(schema, ns.People("id", 3, "replace"), table="persons")
    work.total(name="a", stderr=10).marginal("sex", "age", by="state", name="b", stderr=20)
    work.prefixes("age", by=["sex"], name="c", margin=15)
    work.ranges("hours", [(0, 20), (20, 40.5)], name="d", variance=10)
    work.all_ranges("age", name="e", stderr=9)
    work.where("age >= 5 and hours >= 20", by="sex", name="f", variance=100)
    work.sum("age", where="married", by="county", name="g", stderr=50)
    work.rows([[1, -1, 0]], over="sex", name="h", stderr=3)
    work.marginal("county", name="i", stderr=[5, 10, 0.5])
    return work.marginal("county", name="j", stderr=[5, 10, 0.5]).marginal("sex", stderr=[1, 2, 3])


def test_every_word_of_a_spec_is_the_one_of_python(folder):
    asked = specs.parsed(SPEC)
    one, two = asked.workload(folder).compiled(), in_python().compiled()
    assert one.same_subject(two)
    assert one.domain == two.domain
    assert (one.names, one.labels) == (two.names, two.labels)
    assert (one.matrix == two.matrix).all()
    assert one.variance == pytest.approx(two.variance, rel=1e-15)
    assert asked.ceiling().mu == ns.Budget(epsilon=2.0, delta=1e-9).mu
    assert (asked.prioritise, asked.shape, asked.vintage) == ("privacy", "identity", "survey 2026")


def test_all_marginals_are_those_of_python(folder):
    text = SPEC.split("queries:")[0] + "queries:\n  - {all_marginals: 2, "
    asked = specs.parsed(text + "over: [sex, age, place], least: 2, stderr: 9}")
    two = ns.Workload(in_python().schema, ns.People("id", 3, "replace"), table="persons")
    two.all_marginals(2, columns=["sex", "age", "place"], least=2, stderr=9)
    one, two = asked.workload(folder).compiled(), two.compiled()
    assert [q.name for q in one.queries] == ["sex x age", "sex x place", "age x place"]
    assert (one.names, one.labels) == (two.names, two.labels)
    assert one.variance == pytest.approx(two.variance)
    every = specs.parsed(text.replace(": 2", ": 1") + "stderr: 9}").workload(folder).compiled()
    assert [q.name for q in every.queries] == list(in_python().schema.columns)
    for said, sentence in (("by: sex, stderr: 9}", "leave name and by out"),
                           ("name: x, stderr: 9}", "leave name and by out")):  # fmt: skip
        with pytest.raises(InvalidInput, match=sentence):
            specs.parsed(text + said)
    with pytest.raises(InvalidInput, match="least goes with all_marginals"):
        specs.parsed(SPEC.replace("{marginal: sex,", "{marginal: sex, least: 2,"))
    with pytest.raises(InvalidInput, match=r"queries, 1: .* least <= most"):
        specs.parsed(text.replace("2, ", "9, ") + "stderr: 9}").workload(folder)


def test_a_folder_and_what_was_not_filled_in_are_said_to_be_so(tmp_path):
    with pytest.raises(InvalidInput, match="is a folder: name the spec"):
        specs.read(tmp_path)
    with pytest.raises(InvalidInput, match="schema, a, categories: FILL_IN stands there still"):
        specs.parsed("schema: {a: {categories: FILL_IN}}\nqueries: [{total: true, stderr: 1}]")


def test_the_schema_for_editors_accepts_what_is_accepted(folder):
    described = specs.json_schema()
    jsonschema.Draft202012Validator.check_schema(described)
    said = json.loads(json.dumps(yaml.load(SPEC, specs._Loader)))
    jsonschema.validate(said, described)
    said["queries"][0]["totl"] = True
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(said, described)


@pytest.mark.parametrize(
    ("text", "value"),
    [("no", "no"), ("010", "010"), ("1e-9", 1e-9), ("1_000", "1_000"), ("0x10", "0x10"),
     ("2020-01-01", "2020-01-01"), ("12:30", "12:30"), ("true", True), ("yes", "yes"), (".5", 0.5),
     ("-3", -3), ("~", None), ("1.", 1.0), ("=", "=")],
)  # fmt: skip
def test_words_are_words_and_numbers_numbers(text, value):
    told = yaml.load(f"a: {text}", specs._Loader)["a"]
    assert told == value
    assert type(told) is type(value)


def test_code_in_a_spec_is_not_run():
    with pytest.raises(InvalidInput, match="cannot be read"):
        specs.parsed("a: !!python/object/apply:os.system ['true']")


MINE = "schema: {a: [x]}\nqueries: [{total: true, stderr: 1}]\n"
BAD = [
    ("schema: {a: {integers: [0, 9], bins: [0, 1]}}", "schema, a: a column needs one of"),
    ("schema: {a: {outside: drop}}", "got none"),
    ("schema: {a: {integers: [0, 9], by: year}}", "by goes with dates"),
    ("schema: {a: {integers: [0, 9], closed: left}}", "closed goes with bins"),
    ("schema: {a: {integers: [0]}}", "at least 2 items"),
    ("schema: {a: {booleans: false}}", "must be True"),
    ("schema: {a: {categories: {file: f.csv}}}", "column"),
    ("schema: {a: 3}", "schema, a: "),
    ("recodes: {r: {of: a}}", "a recode needs one of ranges, mapping, file; got none"),
    ("recodes: {r: {of: a, mapping: {b: x}, source: y}}", "source goes with file"),
    ("queries: [{total: true, marginal: a, stderr: 1}]", "got total and marginal"),
    ("queries: [{stderr: 1}]", "a query needs one of"),
    ("queries: [{total: true, over: [a], stderr: 1}]", "over goes with rows"),
    ("queries: [{ranges: {a: [[0, 1]], b: [[0, 1]]}, stderr: 1}]", "ranges are of one column"),
    ("queries: [{total: true, stderr: many}]", "queries, 1, stderr: must be a number"),
    ("queries: 3", "queries: must be a list, got 3"),
    ("people: rows", "people: must be keys and values, got 'rows'"),
    ("people: {max_rows: 1.5}", "people, max_rows: must be a whole number"),
    ("prioritise: speed", "must be 'accuracy' or 'privacy', got 'speed'"),
    ("shape: round", "shape: must be 'fit'"),
    ("impossible: a > 1", "impossible: must be a list"),
    ("a: {b: [}", "cannot be read at line"),
    ("? [a]\n: 3", "must be a word"),
]


@pytest.mark.parametrize(("text", "sentence"), BAD)
def test_refusals_name_the_place(text, sentence):
    key = text.split(":")[0]
    kept = [line for line in MINE.splitlines() if not line.startswith(f"{key}:")]
    with pytest.raises(InvalidInput) as refused:
        specs.parsed("\n".join([*kept, text]))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(refused.value)[-1] in ".?"


def test_a_spec_begun_holds_names_and_types_and_no_domain():
    kinds = {"age": "integer", "no": "text", "a b": "real", "x": None, "d": "date", "t": "truth"}
    begun = specs.begun("people.csv", kinds)
    with pytest.raises(InvalidInput):
        specs.parsed(begun)
    filled = begun.replace("[FILL, IN]", "[0, 9]").replace("stderr: FILL_IN", "stderr: 1")
    for kind, domain in (("categories", "[a]"), ("bins", "[0, 1]"), ("dates", "[2000, 2001]")):
        filled = filled.replace(f"{kind}: FILL_IN", f"{kind}: {domain}")
    read = specs.parsed(filled)
    assert list(read.columns) == ["age", "no", "a b", "d", "t"]
    assert "# x has a type that cannot be counted by." in begun


def test_specs_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidInput, match="noiseshape init makes one"):
        specs.read(tmp_path / "none.yaml")
    (tmp_path / "s.yaml").write_bytes(b"\xff")
    with pytest.raises(InvalidInput, match="must be UTF-8"):
        specs.read(tmp_path / "s.yaml")
    with pytest.raises(InvalidInput, match="is a folder"):
        specs.read(tmp_path)


def test_a_column_of_many_values_has_bands_of_length(tmp_path):
    text = """
schema: {day: {integers: [0, 5999]}}
queries: [{name: any, all_ranges: day, lengths: [30, 6000], stderr: [20, 80]}]
"""
    work = specs.parsed(text).workload(tmp_path)
    assert work.listing()[0]["answers"] == 6000
    plan = work.ordered()
    assert plan.by_length[[0, 29, 30, 5999]].tolist() == [400, 400, 6400, 6400]
    with pytest.raises(InvalidInput, match="lengths"):
        specs.parsed(text.replace("all_ranges: day", "prefixes: day"))
