"""Features from records: what a schema makes of them, and what it refuses."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal

import duckdb
import numpy as np
import pytest

from albatross import Agent, policies
from albatross.features import Category, Features, Number, Vector, propose

SCHEMA = {
    "topic": Category(values=["sport", "politics", "art"]),
    "age": Number(mean=12.0, sd=6.0),
    "site": Category(buckets=4),
    "embedding": Vector(length=2),
    "device": Category(values=["phone", "desktop"], other=True, of="situation"),
    "hour": Number(mean=12.0, sd=4.0, of="situation"),
}
PRODUCTS = [("topic", "device"), ("age", "hour")]
ARMS = [
    {"topic": "sport", "age": 18.0, "site": "a.example", "embedding": [0.5, -1.0]},
    {"topic": "art", "age": 6, "site": "b.example", "embedding": (2, 3)},
]
SITUATION = {"device": "desktop", "hour": 20}


@pytest.fixture
def features():
    return Features(SCHEMA, products=PRODUCTS)


def slow(features, situation, arms):
    """The definition, one coordinate after the other, by name."""
    rows = []
    for arm in arms:
        values, row = {**arm, **situation}, {}
        for name, feature in features.schema.items():
            for j, coordinate in enumerate(feature.coordinates(name)):
                value = values.get(name)
                if value is None:
                    row[coordinate] = 0.0
                elif isinstance(feature, Number):
                    row[coordinate] = (value - feature.mean) / feature.sd
                elif isinstance(feature, Vector):
                    row[coordinate] = float(value[j])
                elif feature.values:
                    row[coordinate] = float(coordinate == f"{name}={value if value in feature.values else '(other)'}")
                else:
                    row[coordinate] = np.nan  # hashed: tested apart
        for left, right in features.products:
            blocks = (features.schema[side].coordinates(side) for side in (left, right))
            for one, other in itertools.product(*blocks):
                row[f"{one} * {other}"] = row[one] * row[other]
        assert tuple(row) == features.names
        rows.append(list(row.values()))
    return np.array(rows)


def compared(features, found, expected):
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(found[known], expected[known])
    hashed = [j for j, name in enumerate(features.names) if name.startswith("site#")]
    assert found.shape == expected.shape
    assert set(found[:, hashed].sum(axis=1)) <= {0.0, 1.0}


@pytest.mark.parametrize("situation", [SITUATION, {"device": "television", "hour": 0.5}, {}, {"hour": None}])
def test_contexts_are_the_definition(features, situation):
    compared(features, features.encode(situation, ARMS), slow(features, situation, ARMS))


def test_missing_values_are_zero_and_counted(features):
    arms = [{"topic": None, "age": np.nan}, {"age": 12.0, "site": "a.example", "embedding": None}]
    found = features.encode(None, arms)
    compared(features, found, slow(features, {}, [{}, {"age": 12.0, "site": "a.example"}]))
    assert features.missing == {"topic": 2, "age": 1, "site": 1, "embedding": 2, "device": 1, "hour": 1}


def test_a_hash_is_stable_across_processes():
    features = Features({"site": Category(buckets=1000)})
    assert np.flatnonzero(features.encode(None, [{"site": "a.example"}, {"site": 7}])).tolist() == [412, 1255]


def test_all_kinds_of_tables_give_the_same_contexts(features):
    expected = features.encode(SITUATION, ARMS)
    kinds = [("topic", "U8"), ("age", float), ("site", "U10"), ("embedding", float, 2)]
    records = np.array([tuple(tuple(v) if isinstance(v, list) else v for v in arm.values()) for arm in ARMS], kinds)
    by_name = {"two": ARMS[1], "one": ARMS[0]}
    assert np.array_equal(features.encode(SITUATION, by_name, order=["one", "two"]), expected)
    assert np.array_equal(features.encode(SITUATION, records), expected)
    assert np.array_equal(features.encode_rows([SITUATION] * 2, ARMS), expected)
    for library in ("pandas", "polars"):
        module = pytest.importorskip(library)
        columns = {name: [arm[name] for arm in ARMS] for name in ARMS[0]}
        columns["embedding"] = [list(map(float, row)) for row in columns["embedding"]]
        assert np.array_equal(features.encode(SITUATION, module.DataFrame(columns)), expected), library


@pytest.mark.parametrize(
    ("situation", "arms", "message"),
    [
        ({"houor": 3}, ARMS, "the situation has no feature 'houor': the schema declares 'device', 'hour'"),
        ({"topic": "sport"}, ARMS, "'topic' is a feature of the arm, not of the situation"),
        ({}, [{"topic": "sports"}], "topic='sports' is not one of its values: 'sport', 'politics', 'art'"),
        ({}, [{"age": "old"}], "age must be a number, not 'old'"),
        ({}, [{"age": True}], "age must be a number, not True"),
        ({}, [{"age": 10**400}], "age must be a number of at most 1e\\+100 in size, not 1000"),
        ({}, [{"age": np.inf}], "age must be a number of at most 1e\\+100 in size, not inf"),
        ({}, [{"topic": 1.5}], "topic must be a text or a whole number, not 1.5"),
        ({}, [{"embedding": [1.0]}], "embedding must be 2 finite numbers, not \\[1.0\\]"),
        ({}, [{"embedding": [1.0, np.nan]}], "embedding must be 2 finite numbers"),
        ({}, [{"embedding": [1.0, True]}], "embedding must be 2 finite numbers, not \\[1.0, True\\]"),
        ({}, ["sport"], "a record of the arm must be a dict of its features, not 'sport'"),
        ({}, "sport", "records of the arm must be a list of dicts or a data frame, not 'sport'"),
        ([1], ARMS, "situation must be a dict of its features, not \\[1\\]"),
    ],
)
def test_wrong_records_are_refused_by_name_and_count_nothing(features, situation, arms, message):
    with pytest.raises(ValueError, match=message):
        features.encode(situation, arms)
    assert not any(features.missing.values())


@pytest.mark.parametrize("feature", [Category(values=[0, 1]), Category(buckets=8)], ids=["listed", "hashed"])
@pytest.mark.parametrize("value", [True, Decimal(1)], ids=repr)
def test_a_number_in_a_category_is_not_what_equals_it(feature, value):
    features = Features({"floor": feature})
    features.encode(None, [{"floor": 1}])  # a hashed category remembers it
    with pytest.raises(ValueError, match="floor must be a text or a whole number, not "):
        features.encode(None, [{"floor": value}])


def test_any_text_can_be_hashed():
    assert Features({"site": Category(buckets=4)}).encode(None, [{"site": "\ud800"}]).sum() == 1.0


def test_records_by_name_follow_the_arms_when_their_order_changes():
    features = Features({"x": Number()})
    agent = Agent(policies.LinUCB(), arms=["a", "b"], features=features, seed=0)
    records = {"a": {"x": 1.0}, "b": {"x": -1.0}}
    agent.retire_arm("a")
    agent.add_arm("a")
    decision = agent.select(features.encode(None, records, order=agent.arms), eligible=["a"])
    assert decision.action.tolist() == [1.0]


def test_names_of_numpy_order_records():
    features = Features({"x": Number()})
    for names in (["b", "a"], [7, 5]):
        records = {names[1]: {"x": 1.0}, names[0]: {"x": -1.0}}
        assert features.encode(None, records, order=np.array(names)).tolist() == [[-1.0], [1.0]]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (None, r"a dict of records needs the order of its rows: encode\(situation, records, order=agent.arms\)"),
        (["a", "b", "c"], "arm 'c' has no record: give one for every name in order"),
        (["a"], "there is a record of 'b', which is not in order"),
        ([["a"], "b"], r"the name of an arm must be a text or a whole number, not \['a'\]"),
        ("ab", "order must be a list of names, not 'ab'"),
        (2, "order must be a list of names, not 2"),
    ],
)
def test_records_by_name_are_refused_if_their_order_is_not_clear(order, message):
    features = Features({"x": Number()})
    with pytest.raises(ValueError, match=message):
        features.encode(None, {"a": {"x": 1.0}, "b": {}}, order=order)
    with pytest.raises(ValueError, match="order is for a dict of records by name, not for"):
        features.encode(None, [{"x": 1.0}, {}], order=["a", "b"])
    with pytest.raises(ValueError, match="records of the arm must be a list of dicts or a data frame"):
        features.encode_rows([{}, {}], {"a": {"x": 1.0}, "b": {}})
    assert features.missing == {"x": 0}


def test_a_policy_on_the_first_features_is_described_by_their_names():
    features = Features({"x": Number(), "y": Number()})
    agent = Agent(policies.FirstFeatures(policy=policies.LinUCB(), dim=1), n_arms=2, features=features, seed=0)
    assert agent.diagnostics()["theta_hat"] == {"x": 0.0}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Features({}), "at least one feature"),
        (lambda: Features({"a": Category(values=[1, "1"])}), "two coordinates would be called 'a=1'"),
        (lambda: Features(["a"]), r"a schema is a dict of features by name, not \['a'\]"),
        (lambda: Features({"a": 3}), "feature 'a' must be a Number, a Category or a Vector"),
        (lambda: Features({"a": Number()}, products=[("a", "b")]), "needs a feature 'b', which is not declared"),
        (lambda: Features({"a": Number()}, products=[("a",)]), "a product has two features"),
        (lambda: Features({"a": Category(buckets=99_999)}), "99999 coordinates, but at most 10000"),
        (lambda: Category(values=["x", "x"]), "'x' is listed twice"),
        (lambda: Category(values="xy"), "values must be a list"),
        (lambda: Category(), "either values or buckets"),
        (lambda: Number(sd=0.0), "sd must be a positive number"),
        (lambda: Number(mean="x"), "mean must be a number, not 'x'"),
        (lambda: Number(of="user"), "of must be one of 'arm', 'situation'"),
        (lambda: Features.from_dict({"features": {"a": {"kind": "text"}}}), "feature 'a' needs a kind: 'number'"),
        (lambda: Features.from_dict({"features": {"a": {"kind": "vector"}}}), "feature 'a' needs its length"),
        (
            lambda: Features.from_dict({"features": {"a": {"kind": "number", "SD": 1}}}),
            "a number has no 'SD', but mean",
        ),
        (lambda: Features.from_dict({"feature": {}}), "a schema has features and products, not 'feature'"),
    ],
)
def test_wrong_schemas_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_schema_survives_a_file(features, tmp_path):
    features.write(tmp_path / "schema.toml")
    assert Features.read(tmp_path / "schema.toml") == features
    odd = Features({'a "quoted" näme\n': Category(values=["ä\x7f", "\\"], of="situation"), "b.c": Number(mean=-0.5)})
    odd.write(tmp_path / "schema.toml")
    assert Features.read(tmp_path / "schema.toml") == odd
    (tmp_path / "schema.toml").write_text("features = 3")
    with pytest.raises(ValueError, match=r"schema\.toml is not a schema of features: a schema needs a table"):
        Features.read(tmp_path / "schema.toml")


def test_a_proposed_mean_is_as_exact_as_the_spread_asks_for():
    times = np.array([(t % 3, 1_577_836_800 + 10 * t) for t in range(60)], dtype=[("action", int), ("t", float)])
    features = Features.from_log(times)
    coordinate = features.encode_rows([{"t": t} for t in times["t"]], [{}] * 60)[:, 0]
    assert abs(coordinate.mean()) < 0.01
    assert coordinate.std() == pytest.approx(1.0, abs=1e-3)


def test_columns_that_no_feature_can_hold_are_left_out_with_the_reason(tmp_path):
    """A stray text among numbers, also in a column that is never a feature, costs that column alone."""
    rows = [f"{t % 3},{t % 7 or 'n/a'},{t % 5},{'?' if t == 3 else 1}" for t in range(60)]
    (tmp_path / "log.csv").write_text("action,age,hour,reward\n" + "\n".join(rows))
    found = propose(tmp_path / "log.csv")
    assert list(found.features.schema) == ["hour"]
    assert found.left_out == ["'age' has numbers and texts, such as 1.0 and 'n/a'"]
    kinds = [("action", int), ("new", bool), ("hour", float)]
    table = np.array([(t % 2, t % 3 == 0, t % 5) for t in range(20)], dtype=kinds)
    assert propose(table).left_out == ["'new' has truth values: make numbers of them, 0 and 1"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_vectors_and_an_index_in_a_frame_are_left_out_of_a_proposal(library):
    columns = {"": range(20), "action": [t % 2 for t in range(20)], "hour": [t % 5 for t in range(20)]}
    columns["embedding"] = [[1.0, float(t)] for t in range(20)]
    found = propose(pytest.importorskip(library).DataFrame(columns))
    assert list(found.features.schema) == ["hour"]
    assert found.left_out == ["'embedding' has lists or structs: declare a vector, if they are lists of numbers"]


@pytest.mark.parametrize(
    "query",
    ["[1.0, t]", "['x']", "{'a': t}", "'[1, ' || t || ']'", "CASE WHEN t > 3 THEN [t] END"],
    ids=["lists", "lists of texts", "structs", "JSON", "gaps"],
)
def test_lists_in_a_file_are_left_out_of_a_proposal(tmp_path, query):
    path = tmp_path / "log.parquet"
    duckdb.sql(f"COPY (SELECT t % 2 AS action, t % 5 AS hour, {query} AS x FROM range(20) AS r(t)) TO '{path}'")
    found = propose(path)
    assert list(found.features.schema) == ["hour"]
    assert found.left_out[0].startswith(("'x' has lists or structs", "'x' is constant"))


def test_actions_may_be_lists(tmp_path):
    rows = [f'"[{1 + t % 2}, {2 - t % 2}]",1,0.5,{t % 5}' for t in range(20)]
    (tmp_path / "slates.csv").write_text("action,reward,propensity,hour\n" + "\n".join(rows))
    assert list(propose(tmp_path / "slates.csv").features.schema) == ["hour"]


def test_texts_in_brackets_are_no_lists(tmp_path):
    rows = [f"{t % 2},{t % 5},[{'ab'[t % 3 == 0]}]" for t in range(20)]
    (tmp_path / "log.csv").write_text("action,hour,tag\n" + "\n".join(rows))
    assert propose(tmp_path / "log.csv").features.schema["tag"] == Category(values=["[a]", "[b]"], of="situation")


def test_a_table_of_items_describes_the_arms(tmp_path):
    (tmp_path / "log.csv").write_text("action,hour,topic\n" + "\n".join(f"{t % 4},{t % 5},x{t % 3}" for t in range(60)))
    (tmp_path / "items.csv").write_text("action,topic,size\n0,art,1\n1,art,2\n2,sport,3\n3,sport,4\n")
    found = propose(tmp_path / "log.csv", tmp_path / "items.csv")
    assert found.features.schema == {
        "hour": Number(mean=2.0, sd=1.414, of="situation"),
        "topic": Category(values=["art", "sport"]),  # of the items, not of the log
        "size": Number(mean=2.5, sd=1.118),
    }
    assert found.features.products == (("topic", "hour"), ("size", "hour"))
    assert found.to_toml().startswith("products = ")
    wide = "\n".join(f"{t % 4},{t % 5},x{t % 3},a{t % 7},b{t % 9},c{t % 10},d{t % 8},e{t % 6}" for t in range(360))
    (tmp_path / "wide.csv").write_text("action,hour,topic,a,b,c,d,e\n" + wide)
    (tmp_path / "many.csv").write_text("action,p,q\n" + "\n".join(f"{t},p{t % 8},q{t % 9}" for t in range(20)))
    written = propose(tmp_path / "wide.csv", tmp_path / "many.csv").to_toml()
    assert written.startswith("# Products of the arm's and the situation's features would be many: add those that")
    alone = propose(tmp_path / "log.csv")
    assert alone.to_toml().startswith("# No feature is of the arm, so none changes which arm is best: give a table of")
    with pytest.raises(ValueError, match="the table of items must be a CSV or Parquet file or a data frame, not 3"):
        propose(tmp_path / "log.csv", 3)


def test_a_proposal_reads_a_log(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["action,reward,propensity,price,colour,device,city,title,same,empty"]
    prices, colours = {"a": 3, "b": 4, "c": 9}, {"a": "red", "b": "blue", "c": "red"}
    for row in range(400):
        action = "abc"[rng.integers(3)]
        device = "watch" if row == 7 else ("phone", "desktop")[rng.integers(2)]
        city, title = f"city {rng.integers(60)}", f"a headline of its own, number {row}"
        lines.append(f'{action},1,0.5,{prices[action]},{colours[action]},{device},{city},"{title}",1,')
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines))
    found = propose(path)
    schema = found.features.schema
    assert set(schema) == {"price", "colour", "device", "city"}
    assert schema["price"].of == schema["colour"].of == "arm"
    assert schema["colour"] == Category(values=["blue", "red"])
    assert schema["device"] == Category(values=["desktop", "phone"], other=True, of="situation")
    assert schema["city"] == Category(buckets=32, of="situation")
    assert schema["price"].mean == pytest.approx(16 / 3, abs=0.5)
    assert found.features.products == (("price", "device"), ("colour", "device"))
    assert found.left_out == [
        "'title' has texts that hardly recur: make features of them yourself",
        "'same' is constant",
        "'empty' is missing in every row",
    ]
    (tmp_path / "schema.toml").write_text(found.to_toml())
    assert Features.read(tmp_path / "schema.toml") == found.features == Features.from_log(path)


@pytest.mark.parametrize("text", ["😀", "a\x7fb", 'back\\slash "quoted"\n', "é"])
def test_any_text_survives_a_schema_file(tmp_path, text):
    features = Features({text: Number(), "of": Category(values=[text, "z"])}, products=[(text, "of")])
    features.write(tmp_path / "schema.toml")
    assert Features.read(tmp_path / "schema.toml") == features


@pytest.mark.parametrize(
    "feature",
    [Number(mean=np.float32(2.5), sd=np.int64(2)), Category(buckets=np.int64(4)), Vector(length=np.int64(3))],
    ids=lambda feature: type(feature).__name__,
)
def test_numbers_of_numpy_in_a_schema_can_be_saved(tmp_path, feature):
    agent = Agent(policies.LinUCB(), n_arms=2, features=Features({"x": feature}))
    agent.save(tmp_path / "agent")
    assert Agent.load(tmp_path / "agent").features == agent.features
    agent.features.write(tmp_path / "schema.toml")
    assert Features.read(tmp_path / "schema.toml") == agent.features


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("products = 5\n[features.a]\nkind = 'number'", "products must be a list of pairs of features, not 5"),
        ("products = [5]\n[features.a]\nkind = 'number'", "a product has two features, not 5"),
        ("products = ['aa']\n[features.a]\nkind = 'number'", "a product has two features, not 'aa'"),
        ("products = [[['a'], 'a']]\n[features.a]\nkind = 'number'", "a product has two features"),
        ("[features.a]\nkind = ['number']", "feature 'a' needs a kind"),
        ("[features.a]\nkind = 'vector'\nlength = 1000000000000", "1000000000000 coordinates, but at most 10000"),
        ("[features.a]\nkind = 'category'\nbuckets = 1000000000000", "1000000000000 coordinates, but at most 10000"),
        ("x = " + "[" * 5_000, "is not a schema of features"),
    ],
)
def test_a_hostile_schema_is_refused_in_words_before_it_costs_anything(tmp_path, declared, message):
    (tmp_path / "schema.toml").write_text(declared)
    with pytest.raises(ValueError, match=re.escape(message)):
        Features.read(tmp_path / "schema.toml")


def test_products_are_counted_before_their_names_are_made():
    wide = {"a": Vector(length=9_000), "b": Vector(length=900)}
    with pytest.raises(ValueError, match="the schema has 8109900 coordinates"):
        Features(wide, products=[("a", "b")])


FRAMES = {
    "a column that is absent": ({"age": [1.0]}, "the frame has no column 'topic', a feature of the arm: it"),
    "an unknown column": ({"topic": ["art"], "age": [1.0], "hue": [1]}, "the arm has no feature 'hue'"),
    "a category never seen": ({"topic": ["chess"], "age": [1.0]}, "topic='chess' is not one of its values"),
    "texts for numbers": ({"topic": ["art"], "age": ["old"]}, "age must be a number, not 'old'"),
}


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
@pytest.mark.parametrize(("columns", "message"), FRAMES.values(), ids=FRAMES)
def test_a_frame_that_does_not_fit_the_schema_is_refused_by_name_and_counts_nothing(library, columns, message):
    features = Features({"topic": Category(values=["sport", "art"]), "age": Number()})
    if library == "numpy":
        kinds = [(name, "U8" if isinstance(values[0], str) else float) for name, values in columns.items()]
        frame = np.array(list(zip(*columns.values())), dtype=kinds)
    else:
        frame = pytest.importorskip(library).DataFrame(columns)
    with pytest.raises(ValueError, match=message):
        features.encode(None, frame)
    assert not any(features.missing.values())


def test_an_error_that_shows_a_frame_is_one_line():
    frame = pytest.importorskip("pandas").DataFrame({"age": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"not age 0 1\.0 1 2\.0$"):
        Features({"age": Number()}).encode(frame, [{}])


def test_a_frame_with_two_columns_of_one_name_is_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([["art", 1.0, 2.0]], columns=["topic", "age", "age"])
    with pytest.raises(ValueError, match="the frame has two columns called 'age'"):
        Features({"topic": Category(values=["art"]), "age": Number()}).encode(None, frame)


def test_a_category_never_seen_changes_nothing_in_an_agent():
    features = Features({"topic": Category(values=["sport", "art"])})
    agent = Agent(policies.LinUCB(), n_arms=2, features=features, seed=0)
    with pytest.raises(ValueError, match="topic='chess' is not one of its values: 'sport', 'art'"):
        agent.select(features.encode(None, [{"topic": "sport"}, {"topic": "chess"}]))
    assert agent.diagnostics()["pending"] == 0
    assert agent.select(features.encode(None, [{"topic": "sport"}, {"topic": "art"}])).arm in (0, 1)


@pytest.mark.parametrize(("records", "order"), [([], None), ({}, [])], ids=["list", "dict"])
def test_an_offer_without_arms_has_no_contexts(records, order):
    features = Features({"age": Number(), "device": Number(of="situation")})
    assert features.encode({}, records, order=order).shape == (0, 2)


def test_a_number_too_large_is_named_although_a_hashed_category_holds_a_larger_one():
    features = Features({"site": Category(buckets=4), "age": Number()})
    with pytest.raises(ValueError, match="age must be a number"):
        features.encode(None, [{"site": 10**401, "age": 10**400}])


def test_a_number_of_numpy_that_is_infinite_is_refused_in_words():
    with pytest.raises(ValueError, match=r"n must be a number of at most 1e\+100 in size, not .*inf"):
        Features({"n": Number()}).encode(None, [{"n": np.float32("inf")}])


def test_schemas_that_order_coordinates_differently_differ():
    schema = {"age": Number(of="situation"), "topic": Category(values=["sport", "art"])}
    features, turned = Features(schema), Features(dict(reversed(schema.items())))
    assert features.names != turned.names
    assert features != turned
    assert features == Features(dict(schema))
    assert hash(features) == hash(Features(dict(schema)))
