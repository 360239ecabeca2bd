from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import numpy as np
import pytest

from albatross.datasets import Log, read_log

PLAIN = "action,reward,propensity,age,price\n1,0.5,0.25,31,1e-2\n0,1,0.75,27,-3\n1,0,1,40,0\n"
PLAIN_ROWS = "(1::UTINYINT, 0.5::FLOAT, 0.25, 31::BIGINT, 0.01), (0, 1, 0.75, 27, -3), (1, 0, 1, 40, 0)"
OPEN = (
    ",timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,"
    "user-item_affinity_0,user-item_affinity_1,user-item_affinity_2\n"
    "0,2019-11-24 00:00:02.5+00:00,2,3,1,0.5,b,x,0.0,0.0,1.0\n"
    "1,2019-11-24 00:00:01+00:00,0,1,0,0.25,a,x,0.0,0.0,0.0\n"
    "2,2019-11-24 00:00:03+00:00,1,2,0,0.25,c,y,0.0,0.0,0.0\n"
)
ITEMS = ",item_id,item_feature_0,item_feature_1\n0,1,0.5,p\n1,0,-0.5,q\n2,2,1.5,q\n"


def put(folder: Path, text: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def parquet(folder: Path, query: str) -> Path:
    duckdb.execute(f"COPY ({query}) TO '{folder / 'log.parquet'}' (FORMAT parquet)")
    return folder / "log.parquet"


def with_line(line: str) -> str:
    """A log whose fourth line, after an empty one, is this."""
    head, first, *rest = PLAIN.splitlines()
    return "\n".join([head, first, "", line, *rest])


def assert_plain(log: Log) -> None:
    assert log.actions.tolist() == [1, 0, 1]
    assert log.rewards.tolist() == [0.5, 1, 0]
    assert log.propensities.tolist() == [0.25, 0.75, 1]
    assert log.features.tolist() == [[31, 0.01], [27, -3], [40, 0]]
    assert (log.n_actions, log.feature_names, log.action_names) == (2, ("age", "price"), ("0", "1"))
    assert log.action_features is None
    assert log.positions is None
    assert log.actions.dtype == np.int64


# --------------------------------------------------------------------------------------------------- plain tables


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.rstrip("\n"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace("\n", "\r").replace(",", " "),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", "  "),
        PLAIN.replace(",", " , "),
        PLAIN.replace("\n", "\n\n"),
        "\ufeff" + PLAIN,
        PLAIN.replace("\n1,", "\n1.0,"),
        '"action","reward","propensity","age","price"\n' + PLAIN.split("\n", 1)[1].replace("31", '"31"'),
    ],
    ids=[
        "plain",
        "no line end at the end",
        "Windows line ends",
        "old Mac line ends",
        "old Mac line ends and blanks",
        "semicolons",
        "tabs",
        "blanks",
        "blanks around commas",
        "empty lines",
        "byte order mark",
        "whole floats",
        "quotes",
    ],
)
def test_the_same_log_however_it_is_written(tmp_path, text):
    assert_plain(read_log(put(tmp_path, text)))


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log", "a [1] *? log's.csv"])
def test_gzip_is_told_by_content_and_names_mean_nothing(tmp_path, name):
    assert_plain(read_log(put(tmp_path, PLAIN, name)))
    assert_plain(read_log(put(tmp_path, gzip.compress(PLAIN.encode()), name)))


@pytest.mark.parametrize("folder", ["propensity=0.9", "reward=7", "action=2", "line=0"])
@pytest.mark.parametrize("separator", [",", " ", "Parquet"])
def test_names_of_folders_mean_nothing(tmp_path, folder, separator):
    (tmp_path / folder).mkdir()
    if separator == "Parquet":
        query = f"SELECT * FROM (VALUES {PLAIN_ROWS}) AS t(action, reward, propensity, age, price)"
        path = parquet(tmp_path / folder, query)
    else:
        path = put(tmp_path / folder, PLAIN.replace(",", separator))
    assert_plain(read_log(path))


def test_parquet_of_any_numeric_type(tmp_path):
    query = f"SELECT * FROM (VALUES {PLAIN_ROWS}) AS t(action, reward, propensity, age, price)"
    assert_plain(read_log(parquet(tmp_path, query)))


def test_clicks_may_be_true_and_false_in_parquet(tmp_path):
    query = "SELECT * FROM (VALUES (0, true, 0.5), (1, false, 0.5)) AS t(action, reward, propensity)"
    assert read_log(parquet(tmp_path, query)).rewards.tolist() == [1, 0]


def test_the_order_of_columns_means_nothing(tmp_path):
    log = read_log(put(tmp_path, "propensity,age,action,reward\n0.5,31,0,2\n0.5,27,1,3\n"))
    assert (log.actions.tolist(), log.rewards.tolist(), log.features.tolist()) == ([0, 1], [2, 3], [[31], [27]])


@pytest.mark.parametrize(
    "times", [("9", "10", "8"), ("1.5", "2e1", "-3"), (f"1{'0' * 17}1", f"1{'0' * 17}2", f"1{'0' * 18}")]
)
def test_rounds_stand_in_the_order_of_times_that_are_numbers(tmp_path, times):
    rows = [f"{time},{item},0,0.5" for item, time in enumerate(times)]
    text = "\n".join(["timestamp,item_id,click,propensity_score", *rows])
    assert read_log(put(tmp_path, text)).actions.tolist() == [2, 0, 1]


def test_rounds_of_parquet_stand_in_the_order_of_times_that_are_numbers(tmp_path):
    query = "SELECT * FROM (VALUES (9, 0, 0, 0.5), (10, 1, 0, 0.5), (8, 2, 0, 0.5)) AS t"
    assert read_log(parquet(tmp_path, f"{query}(timestamp, item_id, click, propensity_score)")).actions.tolist() == [
        2,
        0,
        1,
    ]


def test_columns_of_lists_and_structs_are_left_out(tmp_path):
    rows = "(0, 1, 0.5, [1, 2], {'a': 1}, [0.5::DECIMAL(3, 1)]), (1, 0, 0.5, [3], {'a': 2}, [1.5])"
    query = f"SELECT * FROM (VALUES {rows}) AS t(action, reward, propensity, list, struct, decimals)"
    with pytest.warns(UserWarning, match="left out 3 column\\(s\\) without numbers: list, struct, decimals"):
        assert read_log(parquet(tmp_path, query)).feature_names == ()


def test_the_index_of_a_data_frame_is_no_feature(tmp_path):
    query = "SELECT 0 AS action, 1 AS reward, 0.5 AS propensity, 7 AS __index_level_0__"
    assert read_log(parquet(tmp_path, query)).feature_names == ()


def test_errors_show_the_beginning_of_a_long_value(tmp_path):
    with pytest.raises(ValueError, match=rf"line 4: reward is '{'x' * 100}\.\.\.', not a number$"):
        read_log(put(tmp_path, with_line(f"1,{'x' * 200_000},1,31,1")))


def test_a_long_name_of_an_action_costs_no_more_than_its_letters(tmp_path):
    names = ["x" * 1_000_000, *(f"name {i}" for i in range(40_000))]  # as a NumPy array of text: 160 GB
    log = read_log(put(tmp_path, "action,reward,propensity\n" + "".join(f"{name},1,0.5\n" for name in names)))
    assert log.n_actions == 40_001


def test_a_category_with_too_many_levels_is_refused(tmp_path):
    rows = "".join(f"{i % 2},0,0.5,user {i}\n" for i in range(40_000))
    with pytest.raises(ValueError, match=r"^log\.csv: user_feature_0 has 40000 distinct values in 40000 rows"):
        read_log(put(tmp_path, "item_id,click,propensity_score,user_feature_0\n" + rows))


def test_more_actions_than_can_be_named_are_refused(tmp_path):
    with pytest.raises(ValueError, match="n_actions must be at most 1000000, not 1000000000000"):
        read_log(put(tmp_path, PLAIN), n_actions=10**12)


def test_a_log_needs_no_features(tmp_path):
    log = read_log(put(tmp_path, "action,reward,propensity\n0,1,0.5\n1,0,0.5\n"))
    assert log.features.shape == (2, 0)


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_a_column_without_a_name_counts_rows_and_is_no_feature(tmp_path, name):
    log = read_log(put(tmp_path, name + ",action,reward,propensity\n0,0,1,0.5\n1,1,0,0.5\n"))
    assert log.feature_names == ()


def test_actions_may_have_names(tmp_path):
    log = read_log(put(tmp_path, "action,reward,propensity\nred,1,0.5\nblue,0,0.5\nred,0,0.5\n"))
    assert (log.actions.tolist(), log.action_names, log.n_actions) == ([1, 0, 1], ("blue", "red"), 2)


def test_a_row_without_a_name_for_its_action_is_dropped(tmp_path):
    with pytest.warns(UserWarning, match="dropped 1 of 3 rows: 1 without an action"):
        log = read_log(put(tmp_path, "action,reward,propensity\nred,1,0.5\n,0,0.5\nblue,0,0.5\n"))
    assert log.actions.tolist() == [1, 0]


def test_large_numbers_are_names_too(tmp_path):
    log = read_log(put(tmp_path, "action,reward,propensity\n9007199254740993,1,0.5\n10001,0,0.5\n"))
    assert (log.actions.tolist(), log.action_names) == ([1, 0], ("10001", "9007199254740993"))


def test_columns_of_text_are_left_out_with_a_warning(tmp_path):
    text = "action,reward,propensity,age,when\n0,1,0.5,3,monday\n1,0,0.5,4,1984\n1,0,0.5,4,friday\n"
    with pytest.warns(UserWarning, match="log.csv: left out 1 column\\(s\\) without numbers: when"):
        log = read_log(put(tmp_path, text))
    assert log.feature_names == ("age",)


def test_items_bring_features_of_actions_and_say_how_many_there_are(tmp_path):
    items = put(tmp_path, "action,size,colour\n2,5,red\n0,3,blue\n1,4,red\n", "items.csv")
    with pytest.warns(UserWarning, match="1 of 3 actions never logged: 2"):
        log = read_log(put(tmp_path, PLAIN), items=items)
    assert log.n_actions == 3
    assert log.action_features is not None
    assert log.action_features.tolist() == [[3, 0], [4, 1], [5, 1]]
    assert log.action_feature_names == ("size", "colour=red")


# ---------------------------------------------------------------------------------------- the Open Bandit Dataset


def test_the_open_bandit_layout_is_recognised(tmp_path):
    log = read_log(put(tmp_path, OPEN))
    assert log.actions.tolist() == [0, 2, 1], "rounds stand in the order of their time"
    assert log.rewards.tolist() == [0, 1, 0]
    assert log.propensities.tolist() == [0.25, 0.5, 0.25]
    assert log.positions is not None
    assert log.positions.tolist() == [0, 2, 1]
    assert log.n_actions == 3


def test_categories_become_indicators_of_all_levels_but_the_first(tmp_path):
    log = read_log(put(tmp_path, OPEN))
    assert log.feature_names == ("user_feature_0=b", "user_feature_0=c", "user_feature_1=y")
    assert log.features.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 1]]


def test_a_missing_category_is_no_level(tmp_path):
    log = read_log(put(tmp_path, OPEN.replace("0.5,b,x", "0.5,,x")))
    assert log.feature_names == ("user_feature_0=c", "user_feature_1=y")
    assert log.features.tolist() == [[0, 0], [0, 0], [1, 1]]


def test_item_context_is_found_beside_an_open_bandit_log(tmp_path):
    put(tmp_path, ITEMS, "item_context.csv")
    log = read_log(put(tmp_path, OPEN))
    assert log.action_features is not None
    assert log.action_features.tolist() == [[-0.5, 1], [0.5, 0], [1.5, 1]]


def test_affinities_say_how_many_actions_there_are(tmp_path):
    with pytest.warns(UserWarning, match="log.csv: 1 of 3 actions never logged: 1"):
        log = read_log(put(tmp_path, OPEN.rsplit("\n", 2)[0] + "\n"))
    assert log.n_actions == 3


# ------------------------------------------------------------------------------------- dropped, with a warning


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,1,,31,1", "dropped 1 of 4 rows: 1 without a propensity"),
        ("1,1,NA,31,1", "dropped 1 of 4 rows: 1 without a propensity"),
        ("1,1,nan,31,1", "dropped 1 of 4 rows: 1 without a propensity"),
        ("1,1,0,31,1", "dropped 1 of 4 rows: 1 with a propensity of 0"),
        ("1,,0,31,1", "dropped 1 of 4 rows: 1 without a reward, 1 with a propensity of 0"),
        (",1,1,31,1", "dropped 1 of 4 rows: 1 without an action"),
        ("1,1,1,31,", "dropped 1 of 4 rows: 1 without a feature"),
        ("1,1,  ,31,1", "dropped 1 of 4 rows: 1 without a propensity"),
    ],
)
def test_rows_that_miss_something_are_dropped_and_counted(tmp_path, line, message):
    with pytest.warns(UserWarning, match=f"^log.csv: {message}$"):
        log = read_log(put(tmp_path, with_line(line)))
    assert_plain(log)


def test_actions_never_logged_are_named(tmp_path):
    with pytest.warns(UserWarning, match=r"log.csv: 3 of 5 actions never logged: 1, 2, 4\. They are kept"):
        log = read_log(put(tmp_path, "action,reward,propensity\n0,1,0.5\n3,1,0.5\n"), n_actions=5)
    assert log.n_actions == 5


def test_whole_numbers_that_do_not_count_the_actions_are_names(tmp_path):
    log = read_log(put(tmp_path, "action,reward,propensity\n1002,1,0.5\n1000,0,0.5\n1001,1,0.5\n"))
    assert (log.n_actions, log.action_names, log.actions.tolist()) == (3, ("1000", "1001", "1002"), [2, 0, 1])


def test_a_gap_between_actions_is_one_never_logged(tmp_path):
    with pytest.warns(UserWarning, match="1 of 3 actions never logged: 1"):
        read_log(put(tmp_path, "action,reward,propensity\n0,1,0.5\n2,1,0.5\n"))


# -------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,1,1.5,31,1", "propensity is 1.5, but must be above 0, at most 1"),
        ("1,1,-0.1,31,1", "propensity is -0.1, but must be above 0, at most 1"),
        ("1,1,half,31,1", "propensity is 'half', not a number"),
        ("1,click,1,31,1", "reward is 'click', not a number"),
        ("1,inf,1,31,1", "reward is inf, but must be finite"),
        ("1,1,1,old,1", "age is 'old', not a number"),
        ("1,1,1,31,-inf", "the largest feature is inf, but must be finite"),
        ("0.5,1,1,31,1", "action is 0.5, but actions must be whole numbers of up to 18 digits, or names"),
        (
            f"1{'0' * 30},1,1,31,1",
            f"action is 1{'0' * 30}, but actions must be whole numbers of up to 18 digits, or names",
        ),
        ("1e30,1,1,31,1", "action is 1e30, but actions must be whole numbers of up to 18 digits, or names"),
        ("1_0,1,1,31,1", "action is '1_0', not a number"),
        ("1,1_0,1,31,1", "reward is '1_0', not a number"),
        ("1,1,1_0,31,1", "propensity is '1_0', not a number"),
        ("1,1,1,3_1,1", "age is '3_1', not a number"),
        ("1,1,1,+-31,1", "age is '[+]-31', not a number"),
        ("1,1,1,\u0663\u0661,1", "age is '\u0663\u0661', not a number"),
        ("first,1,1,31,1", "action is 'first', not a number"),
        ("-1,1,1,31,1", "action is -1, but actions are counted from 0"),
        ("1,1,1,31", "4 fields where the first line has 5"),
        ("1,1,1,31,1,2", "6 fields where the first line has 5"),
        ('1,1,1,31,"1', "a quote is opened and never closed"),
    ],
)
def test_what_cannot_be_is_refused_by_line(tmp_path, line, message):
    with pytest.raises(ValueError, match=rf"^log\.csv, line 4: {message}$"):
        read_log(put(tmp_path, with_line(line)))


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_errors_name_the_line_whatever_ends_it(tmp_path, end):
    text = with_line('1,1,1,31,"1').replace("\n", end)
    with pytest.raises(ValueError, match=r"^log\.csv, line 4: a quote is opened and never closed$"):
        read_log(put(tmp_path, text))
    with pytest.raises(ValueError, match=r"^log\.csv, line 4: reward is 'x', not a number$"):
        read_log(put(tmp_path, with_line("1,x,1,31,1").replace("\n", end)))


@pytest.mark.parametrize("position", ["0.5", "1.7", "1e30", "inf", "-1", "-inf"])
def test_a_position_is_a_whole_number(tmp_path, position):
    text = f"item_id,click,propensity_score,position\n0,1,0.5,0\n1,0,0.5,{position}\n"
    with pytest.raises(
        ValueError, match=r"^log\.csv, line [23]: position is .*, but must be a whole number up to 2\^53$"
    ):
        read_log(put(tmp_path, text))


def test_parquet_errors_name_the_row(tmp_path):
    query = "SELECT * FROM (VALUES (0, 1, 0.5), (1, 0, 2.5)) AS t(action, reward, propensity)"
    with pytest.raises(ValueError, match=r"log\.parquet, row 2: propensity is 2\.5"):
        read_log(parquet(tmp_path, query))


def test_a_log_without_any_propensity_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"log.csv has no usable row: 2 without a propensity"):
        read_log(put(tmp_path, "action,reward,propensity\n0,1,\n1,1,\n"))


def test_missing_columns_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"has no column 'reward' or 'propensity': .* this file has action, age"):
        read_log(put(tmp_path, "action,age\n0,1\n"))


def test_a_log_that_is_of_two_kinds_is_refused(tmp_path):
    path = put(tmp_path, "action,reward,propensity,item_id,click,propensity_score\n0,1,0.5,3,0,0.2\n")
    with pytest.raises(ValueError, match="and those of an Open Bandit log, item_id, click, propensity_score: leave"):
        read_log(path)


@pytest.mark.parametrize("text", ["", "\n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_refused(tmp_path, text):
    with pytest.raises(ValueError, match=r"log.csv has no columns"):
        read_log(put(tmp_path, text))


def test_a_header_alone_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"log.csv has no rows"):
        read_log(put(tmp_path, "action,reward,propensity\n"))


def test_a_column_named_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match="line 1: the column 'reward' is named twice"):
        read_log(put(tmp_path, "action,reward,reward,propensity\n0,1,1,1\n"))


def test_a_cut_gzip_names_the_line_it_breaks_off_in(tmp_path):
    rng = np.random.default_rng(0)
    rows = "".join(f"{i % 2},{x},0.5\n" for i, x in enumerate(rng.random(5_000)))
    whole = gzip.compress(f"action,reward,propensity\n{rows}".encode())
    with pytest.raises(ValueError, match=r"^log\.csv, line \d{4}: the gzip data end here"):
        read_log(put(tmp_path, whole[: len(whole) // 2]))


def test_a_cut_parquet_file_is_refused_by_name(tmp_path):
    path = parquet(tmp_path, "SELECT 0 AS action, 1 AS reward, 0.5 AS propensity")
    with pytest.raises(ValueError, match=r"^cut\.parquet: "):
        read_log(put(tmp_path, path.read_bytes()[:-20], "cut.parquet"))


def test_text_that_is_not_utf8_is_refused_by_line(tmp_path):
    with pytest.raises(ValueError, match="line 3: the text is not UTF-8"):
        read_log(put(tmp_path, b"action,reward,propensity\nb,1,1\nm\xe4rz,1,1\n"))


@pytest.mark.parametrize("actions", [3, 4])
def test_more_actions_than_told_are_refused(tmp_path, actions):
    text = "action,reward,propensity\n0,1,0.5\n4,1,0.5\n"
    with pytest.raises(ValueError, match=f"line 3: action is 4, but the {actions} actions are 0, 1, 2"):
        read_log(put(tmp_path, text), n_actions=actions)


def test_items_must_tell_actions_apart(tmp_path):
    items = put(tmp_path, "item_id,size\n0,1\n0,2\n", "items.csv")
    with pytest.raises(ValueError, match="one row per action"):
        read_log(put(tmp_path, PLAIN), items=items)


def test_items_must_be_as_many_as_told(tmp_path):
    items = put(tmp_path, "item_id,size\n0,1\n1,2\n", "items.csv")
    with pytest.raises(ValueError, match=r"n_actions=3, but items.csv has 2 actions: 0, 1"):
        read_log(put(tmp_path, PLAIN), items=items, n_actions=3)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "absent.csv")


def test_actions_with_leading_zeros_are_names(tmp_path):
    (tmp_path / "log.csv").write_text("action,reward,propensity\n007,1,0.5\n7,0,0.5\n07,1,0.5\n")
    log = read_log(tmp_path / "log.csv")
    assert (log.action_names, log.actions.tolist()) == (("007", "07", "7"), [0, 2, 1])


def test_a_propensity_that_is_almost_0_is_refused_by_line(tmp_path):
    (tmp_path / "log.csv").write_text("action,reward,propensity\n0,1,0.5\n1,0,1e-160\n")
    with pytest.raises(ValueError, match=r"log\.csv, line 3: propensity is 1e-160, but must be at least 1e-100"):
        read_log(tmp_path / "log.csv")


def test_an_open_bandit_log_with_other_times_keeps_its_order_with_a_warning(tmp_path):
    rows = "".join(f"{time},{item},0,0.5\n" for item, time in enumerate(("10:00", "9:59")))
    (tmp_path / "log.csv").write_text(f"timestamp,item_id,click,propensity_score\n{rows}")
    with pytest.warns(UserWarning, match="the rows stay in the order of the file"):
        assert read_log(tmp_path / "log.csv").actions.tolist() == [0, 1]
