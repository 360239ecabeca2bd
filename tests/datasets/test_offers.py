"""Logs that say which actions could be taken, what was known of each, and whom a round was for."""

from __future__ import annotations

import json
import warnings

import duckdb
import numpy as np
import pytest

from albatross import LogWriter
from albatross.datasets import read_log
from albatross.environments import Logged

HEAD = "action,reward,propensity,eligible,user,age\n"
ROWS = [
    "red,1,0.5,red|blue,ann,31",
    'blue,0,0.5,"[""blue"", ""green""]",bob,27',
    "red,1,1,red,ann,40",
]


def put(folder, text, name="log.csv"):
    (folder / name).write_text(text)
    return folder / name


def log_of(folder, *rows, head=HEAD):
    return put(folder, head + "\n".join(rows) + "\n")


@pytest.mark.filterwarnings("ignore:.*1 of 3 actions never logged")
def test_eligible_actions_are_names_joined_by_bars_or_lists_in_json_or_parquet(tmp_path):
    in_csv = read_log(log_of(tmp_path, *ROWS))
    query = """SELECT * FROM (VALUES ('red', 1, 0.5, ['red', 'blue'], 'ann', 31), ('blue', 0, 0.5, ['blue', 'green'],
        'bob', 27), ('red', 1, 1, ['red'], 'ann', 40)) AS log(action, reward, propensity, eligible, "user", age)"""
    duckdb.execute(f"COPY ({query}) TO '{tmp_path / 'log.parquet'}' (FORMAT parquet)")
    for log in (in_csv, read_log(tmp_path / "log.parquet")):
        assert log.action_names == ("blue", "green", "red")  # green was never taken
        assert log.eligible.tolist() == [[True, False, True], [True, True, False], [False, False, True]]
        assert log.users.tolist() == ["ann", "bob", "ann"]
        assert log.feature_names == ("age",)
        env = Logged.from_log(log)
        assert (env.n_users, env.names) == (2, log.action_names)
        np.testing.assert_array_equal(env.eligible, log.eligible)


def test_numbered_actions_are_eligible_by_their_numbers(tmp_path):
    rows = ["0,1,0.5,0|2,1", "2,1,0.5,0|2,1"]
    with pytest.warns(UserWarning, match="1 of 3 actions never logged: 1"):
        log = read_log(log_of(tmp_path, *rows, head="action,reward,propensity,eligible,age\n"))
    assert (log.action_names, log.eligible.tolist()) == (("0", "1", "2"), [[True, False, True]] * 2)


def test_names_may_be_among_numbers_where_they_are_eligible(tmp_path):
    with LogWriter(tmp_path / "log.csv") as log:
        for number, action in enumerate(["1", "2", "3", "none"]):
            log.write_decision(number, action=action, eligible=[1, 2, 3, "none"], propensity=0.25)
            log.write_reward(number, 1.0)
    found = read_log(tmp_path / "log.csv")
    assert found.action_names == ("1", "2", "3", "none")
    assert found.actions.tolist() == [0, 1, 2, 3]
    assert found.eligible.all()
    text = (tmp_path / "log.csv").read_text().replace(',none,"', ',nine,"')
    (tmp_path / "other.csv").write_text(text)
    with pytest.raises(ValueError, match="line 5: action is 'nine', not a number"):
        read_log(tmp_path / "other.csv")


def test_an_empty_column_is_no_column(tmp_path):
    log = read_log(log_of(tmp_path, "0,1,0.5,,,1", "1,0,0.5,,,2"))
    assert (log.eligible, log.users, log.contexts, log.feature_names) == (None, None, None, ("age",))


def test_rows_without_eligible_actions_or_user_are_dropped_and_counted(tmp_path):
    rows = [*ROWS, "red,1,0.5,,bob,1", "red,1,0.5,red|blue,,1"]
    with pytest.warns(UserWarning, match="log.csv") as told:
        log = read_log(log_of(tmp_path, *rows))
    assert str(told[0].message) == "log.csv: dropped 2 of 5 rows: 1 without eligible arms, 1 without a user"
    assert len(told) == 2  # and of the action that was never logged
    assert len(log.rewards) == len(log.eligible) == len(log.users) == 3


CONTEXTS = "action,reward,propensity,eligible,contexts\n"


def with_contexts(*rows):
    """Rows of action, eligible and contexts."""
    return [f'{action},1,0.5,{eligible},"{json.dumps(contexts)}"' for action, eligible, contexts in rows]


def test_contexts_are_those_of_the_eligible_actions_in_their_order(tmp_path):
    rows = with_contexts(("b", "b|a", [[1, 2], [3, 4]]), ("a", "c|a", [[5, 6], [7, 8]]), ("c", "c|b", [[0, 9], [1, 1]]))
    log = read_log(log_of(tmp_path, *rows, head=CONTEXTS))
    assert log.contexts[np.arange(3)].tolist() == [
        [[3, 4], [1, 2], [0, 0]],
        [[7, 8], [0, 0], [5, 6]],
        [[0, 0], [1, 1], [0, 9]],
    ]
    assert Logged.from_log(log).dim == 2
    with pytest.raises(ValueError, match="arms='biases' is for logs without contexts of their own"):
        Logged.from_log(log, "biases")
    with pytest.raises(ValueError, match=r"has a column 'contexts' .* takes no schema and no items"):
        read_log(tmp_path / "log.csv", items=put(tmp_path, "action,price\na,1\nb,2\nc,3\n", "items.csv"))


@pytest.mark.parametrize(
    ("head", "rows", "message"),
    [
        (
            HEAD,
            [*ROWS, "red,1,0.5,blue|green,ann,1"],
            r"log\.csv, line 5: action is 'red', which is not among the eligible arms \['blue', 'green'\]",
        ),
        (HEAD, [*ROWS, "red,1,0.5,red|red,ann,1"], r"log\.csv, line 5: eligible lists an arm twice"),
        (HEAD, [*ROWS, "red,1,0.5,red|blue|,ann,1"], r"line 5: eligible is \['red', 'blue', ''\], not a list of names"),
        (HEAD, [*ROWS, "red,1,0.5,red|NA,ann,1"], r"line 5: eligible is \['red', 'NA'\], not a list of names"),
        (
            HEAD,
            [*ROWS, 'red,1,0.5,"[""red"", 0.5]",ann,1'],
            r"line 5: eligible is \['red', 0\.5\], not a list of names",
        ),
        (HEAD, [*ROWS, 'red,1,0.5,"[""red""",ann,1'], r"line 5: eligible is .*, not a list such as \[.*\] or a\|b"),
        (CONTEXTS, with_contexts(("a", "", [[1]])), "has a column 'contexts', so it needs a column 'eligible'"),
        (
            CONTEXTS,
            with_contexts(("a", "a|b", [[1], [2]]), ("a", "a|b", [[1]])),
            r"line 3: with 2 eligible arms, contexts must have shape \(2, 1\), got \(1, 1\)",
        ),
        (
            CONTEXTS,
            with_contexts(("a", "a|b", [[1], [2]]), ("a", "a|b", [[1], [True, 2]])),
            "line 3: with 2 eligible arms, contexts must be an array of numbers",
        ),
        (
            CONTEXTS,
            with_contexts(("a", "a|b", [1, 2])),
            r"line 2: contexts must be a list of numbers for each eligible",
        ),
    ],
)
def test_offers_that_cannot_be_are_refused_by_line(tmp_path, head, rows, message):
    with pytest.raises(ValueError, match=message):
        read_log(log_of(tmp_path, *rows, head=head))


def test_eligible_actions_that_the_items_do_not_know_are_refused(tmp_path):
    items = put(tmp_path, "action,price\nred,1\nblue,2\n", "items.csv")
    with pytest.raises(ValueError, match=r"line 3: arm 'green' in eligible is unknown: the actions are \['blue', 'red"):
        read_log(log_of(tmp_path, *ROWS), items=items)


def test_blanks_around_names_are_no_part_of_them(tmp_path):
    rows = ['red,1,0.5,"[""red"", "" blue""]",ann,1', "blue,0,0.5,red | blue,ann,2"]
    log = read_log(log_of(tmp_path, *rows))
    assert (log.action_names, log.eligible.tolist()) == (("blue", "red"), [[True, True]] * 2)


@pytest.mark.filterwarnings("ignore:.*dropped 1 of 3 rows. 1 without a user")
def test_users_of_a_data_frame_with_gaps_are_whole_numbers(tmp_path):
    query = """SELECT * FROM (VALUES ('a', 1, 1, 7.0::DOUBLE), ('b', 1, 1, 12), ('a', 0, 1, NULL))
        AS log(action, reward, propensity, "user")"""
    duckdb.execute(f"COPY ({query}) TO '{tmp_path / 'log.parquet'}' (FORMAT parquet)")
    assert read_log(tmp_path / "log.parquet").users.tolist() == ["7", "12"]


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_users_are_read_as_they_were_written(tmp_path, name):
    users = ["1", "1.0", "2", "-0", "0", "007", None]
    for chosen in (users[:6], users[:5], users):
        with LogWriter(tmp_path / f"{len(chosen)}-{name}") as log:
            for user in chosen:
                log.write_decision(f"of {user}", action="a", eligible=["a", "b"], propensity=0.5, user=user)
                log.write_reward(f"of {user}", 1.0)
        with warnings.catch_warnings(action="ignore"):  # of b, which was never logged, and of no user
            assert read_log(log.path).users.tolist() == [user for user in chosen if user]


@pytest.mark.parametrize("gap", [True, False])
def test_users_of_a_column_of_floats_are_whole_numbers(tmp_path, gap):
    rows = [f"a,{t % 2},0.5,{user}" for t, user in enumerate(["7.0", "8.0", "7.0"] + [""] * gap)]
    path = log_of(tmp_path, *rows, head="action,reward,propensity,user\n")
    with warnings.catch_warnings(action="ignore"):
        assert read_log(path).users.tolist() == ["7", "8", "7"]


def test_an_open_bandit_log_may_say_what_was_offered_and_to_whom(tmp_path):
    head = "item_id,click,propensity_score,user_feature_0,eligible,user,contexts\n"
    rows = ['0,1,0.5,x,0|1,ann,"[[1], [2]]"', '1,0,1,y,1,bob,"[[3]]"', '1,0,0.5,x,1|0,ann,"[[2], [1]]"']
    put(tmp_path, "item_id,price\n0,1\n1,2\n", "item_context.csv")  # beside the log: the contexts take its place
    log = read_log(log_of(tmp_path, *rows, head=head))
    assert log.eligible.tolist() == [[True, True], [False, True], [True, True]]
    assert log.users.tolist() == ["ann", "bob", "ann"]
    assert log.contexts[[0, 1, 2]][:, 1].tolist() == [[2.0], [3.0], [2.0]]
    assert log.feature_names == ()
    without = [row.partition(',"')[0] for row in rows]
    log = read_log(log_of(tmp_path, *without, head=head.replace(",contexts", "")))
    assert (log.contexts, log.feature_names, log.action_feature_names) == (None, ("user_feature_0=y",), ("price",))
    assert log.eligible.tolist() == [[True, True], [False, True], [True, True]]
