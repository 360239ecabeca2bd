"""Logs read with a schema: contexts are what the schema encodes, and a log that does not fit is refused by line."""

from __future__ import annotations

import warnings

import duckdb
import numpy as np
import pytest

from albatross.datasets import read_log
from albatross.environments import Logged
from albatross.features import Category, Features, Number, Vector

FEATURES = Features(
    {
        "topic": Category(values=["sport", "art"]),
        "device": Category(values=["phone", "desktop"], other=True, of="situation"),
        "hour": Number(mean=12.0, sd=6.0, of="situation"),
        "age": Number(mean=2.0, sd=2.0),
        "level": Category(values=[1, 2], of="situation"),
    },
    products=[("topic", "device"), ("age", "hour")],
)
HEAD = "action,reward,propensity,device,hour,level,note\n"
ROWS = ["a1,1,0.5,phone,3,1,x", "a2,0,0.5,desktop,,2,y", "a1,1,0.5,tv,24,1.0,z"]
ITEMS = "action,topic,age,note\na1,sport,1,p\na2,art,3,q\na3,art,,r\n"
ARMS = [{"topic": "sport", "age": 1.0}, {"topic": "art", "age": 3.0}, {"topic": "art", "age": None}]
SITUATIONS = [
    {"device": "phone", "hour": 3.0, "level": 1},
    {"device": "desktop", "hour": None, "level": 2},
    {"device": "tv", "hour": 24.0, "level": 1},
]


def put(folder, text, name="log.csv"):
    (folder / name).write_text(text)
    return folder / name


def written(folder, *rows, head=HEAD, items=ITEMS):
    return put(folder, head + "\n".join(rows) + "\n"), put(folder, items, "items.csv")


def test_contexts_are_what_the_schema_encodes(tmp_path):
    path, items = written(tmp_path, *ROWS)
    with pytest.warns(UserWarning, match="log.csv") as told:
        log = FEATURES.read_log(path, items=items)
    assert sorted(str(each.message) for each in told) == [
        "log.csv: 1 of 3 actions never logged: a3. They are kept, but the log says nothing about their rewards",
        "log.csv: missing values are encoded as 0: 1 of 'hour', 1 of 'age'",
    ]
    wanted = np.array([FEATURES.encode(situation, ARMS) for situation in SITUATIONS])
    np.testing.assert_array_equal(log.contexts[np.arange(3)], wanted)
    env = Logged.from_log(log)
    assert (env.names, env.dim) == (("a1", "a2", "a3"), FEATURES.dim)
    assert env.actions.tolist() == [0, 1, 0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_that_are_dropped_take_their_contexts_along(tmp_path):
    path, items = written(tmp_path, ROWS[0], "a2,,0.5,phone,1,1,n", ROWS[2])
    log = FEATURES.read_log(path, items=items)
    assert log.rewards.tolist() == [1.0, 1.0]
    wanted = np.array([FEATURES.encode(SITUATIONS[row], ARMS) for row in (0, 2)])
    np.testing.assert_array_equal(log.contexts[np.arange(2)], wanted)


def test_features_of_the_arm_may_be_columns_of_the_log(tmp_path):
    features = Features({"topic": Category(values=["sport", "art"]), "hour": Number(of="situation")})
    head = "action,reward,propensity,topic,hour\n"
    log = features.read_log(put(tmp_path, head + "x,1,0.5,art,1\ny,0,0.5,sport,2\nx,0,0.5,art,3\n"))
    wanted = [features.encode({"hour": hour}, [{"topic": "art"}, {"topic": "sport"}]) for hour in (1.0, 2.0, 3.0)]
    np.testing.assert_array_equal(log.contexts[np.arange(3)], wanted)
    with pytest.raises(ValueError, match=r"line 4: topic of 'x' is sport, but art in another row: the schema declares"):
        features.read_log(put(tmp_path, head + "x,1,0.5,art,1\ny,0,0.5,sport,2\nx,0,0.5,sport,3\n"))
    with pytest.raises(
        ValueError, match=r"the features of 1 arm\(s\) that were never chosen: z\. Give a table of items"
    ):
        features.read_log(put(tmp_path, head.replace("hour", "hour,eligible") + "x,1,0.5,art,1,x|z\n"))


def test_vectors_are_lists(tmp_path):
    features = Features({"embedding": Vector(length=2)})
    query = "SELECT * FROM (VALUES ('a', [0.5, 1.0]), ('b', [2.0, -1.0])) AS items(action, embedding)"
    duckdb.execute(f"COPY ({query}) TO '{tmp_path / 'items.parquet'}' (FORMAT parquet)")
    path = put(tmp_path, "action,reward,propensity\na,1,0.5\nb,1,0.5\n")
    log = features.read_log(path, items=tmp_path / "items.parquet")
    assert log.contexts[[0]].tolist() == [[[0.5, 1.0], [2.0, -1.0]]]


VERSIONS = ["10.0", "11.0", "12"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "category",
    [
        Category(values=VERSIONS, of="situation"),
        Category(values=VERSIONS[:2], other=True, of="situation"),
        Category(values=[10, 11], other=True, of="situation"),
        Category(buckets=64, of="situation"),
    ],
    ids=["listed", "with others", "numbers", "hashed"],
)
def test_texts_that_look_like_numbers_are_encoded_as_an_agent_encodes_them(tmp_path, category, ending):
    features = Features({"os": category})
    path = put(tmp_path, "action,reward,propensity,os\n" + "".join(f"a,1,0.5,{os}\n" for os in VERSIONS))
    if ending == "parquet":
        path = tmp_path / "log.parquet"
        duckdb.sql(f"COPY (FROM read_csv('{tmp_path}/log.csv', all_varchar = true)) TO '{path}'")
    numbered = 10 in category.values  # then the file's texts are taken for these
    live = [{"os": int(float(os)) if numbered else os} for os in VERSIONS]
    if category.buckets and ending == "csv":  # which cannot say that they are texts
        live = [{"os": int(float(os))} for os in VERSIONS]
        with pytest.warns(UserWarning, match="os is read as whole numbers, 10 for 10.0"):
            log = features.read_log(path)
    else:
        log = features.read_log(path)
    found = log.contexts[np.arange(3)][:, 0]
    np.testing.assert_array_equal(found, np.array([features.encode(each, [{}])[0] for each in live]))


@pytest.mark.parametrize("shops", [["10.0", ""], ["10.0", "11.0"], ["10", "11"]], ids=["gaps", "floats", "numbers"])
def test_numbers_of_a_data_frame_are_whole(tmp_path, shops):
    features = Features({"shop": Category(buckets=64, of="situation")})
    path = put(tmp_path, "action,reward,propensity,shop\n" + "".join(f"a,1,0.5,{shop}\n" for shop in shops))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = features.read_log(path).contexts[np.arange(1)][0]
    np.testing.assert_array_equal(found, features.encode({"shop": 10}, [{}]))
    assert any("shop is read as whole numbers, 10 for 10.0" in str(each.message) for each in told) == ("." in shops[0])


def test_parts_of_a_log_with_and_without_gaps_are_of_the_same_users(tmp_path):
    path = put(tmp_path, "action,reward,propensity,user\na,1,0.5,7\na,0,0.5,8\na,1,0.5,7.0\n")
    assert read_log(path).users.tolist() == ["7", "8", "7"]


def test_a_proposed_schema_fits_its_log(tmp_path):
    rows = [f"{'ab'[t % 2]},{t % 3},0.5,{('red', 'blue')[t % 2]},{t % 5}" for t in range(40)]
    path = put(tmp_path, "action,reward,propensity,colour,hour\n" + "\n".join(rows))
    features = Features.from_log(path)
    log = features.read_log(path)
    wanted = [features.encode({"hour": float(t % 5)}, [{"colour": "red"}, {"colour": "blue"}]) for t in range(40)]
    np.testing.assert_array_equal(log.contexts[np.arange(40)], wanted)


def test_a_proposed_schema_fits_an_open_bandit_log_with_its_affinities(tmp_path):
    """Affinities, one column per action, are read only if the schema declares them."""
    head = "item_id,click,propensity_score,user-item_affinity_0,user-item_affinity_1\n"
    path = put(tmp_path, head + "\n".join(f"{t % 2},0,0.5,{t % 3},{t % 5}" for t in range(30)))
    features = Features.from_log(path)
    assert list(features.schema) == ["user-item_affinity_0", "user-item_affinity_1"]
    log = features.read_log(path)
    situations = [{"user-item_affinity_0": t % 3, "user-item_affinity_1": t % 5} for t in range(30)]
    wanted = [features.encode(situation, [{}, {}]) for situation in situations]
    np.testing.assert_array_equal(log.contexts[np.arange(30)], wanted)


@pytest.mark.parametrize(
    ("rows", "head", "items", "message"),
    [
        (
            ROWS,
            HEAD.replace("hour", "time"),
            ITEMS,
            r"log\.csv has no column 'hour', a feature of the situation in the",
        ),
        (ROWS, HEAD, ITEMS.replace("topic", "theme"), r"items\.csv has no column 'topic', a feature of the arm in the"),
        (
            ROWS,
            HEAD,
            ITEMS.replace("art,3", "food,3"),
            r"items\.csv, line 3: topic='food' is not one of its values: 'sp",
        ),
        ([*ROWS, "a1,1,0.5,tv,1,3,x"], HEAD, ITEMS, r"log\.csv, line 5: level=3 is not one of its values: 1, 2"),
        ([*ROWS, "a1,1,0.5,tv,late,1,x"], HEAD, ITEMS, r"log\.csv, line 5: hour is 'late', not a number"),
        (
            [*ROWS, "a9,1,0.5,tv,1,1,x"],
            HEAD,
            ITEMS,
            r"log\.csv, line 5: action is a9, but the 3 actions are a1, a2, a3",
        ),
        (
            [*ROWS, "a1,1,0.5,tv,1e200,1,x"],
            HEAD,
            ITEMS,
            r"log\.csv does not fit the schema: hour must be a number of at",
        ),
        (
            ROWS,
            HEAD.replace("note", "contexts").replace(",device", ",eligible,device"),
            ITEMS,
            "takes no schema and no items",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_log_that_does_not_fit_its_schema_is_refused(tmp_path, rows, head, items, message):
    if "contexts" in head:
        rows = [row.replace("0.5,", "0.5,a1|a2,").rsplit(",", 1)[0] + ',"[[1], [2]]"' for row in rows]
    path, items = written(tmp_path, *rows, head=head, items=items)
    with pytest.raises(ValueError, match=message):
        FEATURES.read_log(path, items=items)
