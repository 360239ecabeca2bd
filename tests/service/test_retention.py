"""Records that are too old are deleted; states, open decisions and what came later stay."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing, nullcontext

import numpy as np
import pytest
from serving_tests import NEWS, Served

from albatross.datasets import read_log
from albatross.service.engine import Engine
from albatross.service.exporting import export
from albatross.service.verifying import verify

DAY = 86_400.0


@pytest.fixture(autouse=True)
def by_hand(monkeypatch):
    """Let nothing be deleted but by these tests."""

    async def later(self):
        pass

    monkeypatch.setattr(Engine, "_delete_old", later)


@pytest.fixture
def served(tmp_path):
    made = Served(tmp_path / "service")
    yield made
    made.close()


def live(served, days, *, first=0, users=2, seed=0):
    """Decide once a day for every user, and reward most of it later; return the decisions without a reward."""
    rng, waiting = np.random.default_rng(seed), []
    for day in range(first, first + days):
        served.now = 1_000_000.0 + DAY * day
        for user in range(users):
            articles = {arm: {"topic": "sport", "age": float(rng.normal())} for arm in ("anzeiger", "bote")}
            waiting.append(served.decide(f"user {user}", arms=articles))
        if day % 5 != 4:
            served.reward(waiting.pop(int(rng.integers(len(waiting)))), float(rng.normal()))
    return waiting


def delete_old(served):
    """Delete what is too old, and return how many decisions are left."""
    served.run(served.engine.close_due())
    served.run(served.engine._retention.delete_old())
    return count(served, "decisions")


def count(served, table):
    return served.engine.store._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def lived(folder, policy, keep):
    """Return a service of which many records are too old, some of decisions that were still open."""
    served = Served(folder)
    served.engine.store._connection.execute("UPDATE about SET value = ? WHERE name = 'secret'", (bytes(32),))
    served.restart()  # with the same secret all draw the same numbers
    served.model(policy=policy, keep=keep, rewards={"wait": "20d"})
    waiting = live(served, 30)
    assert (delete_old(served) < 60) == (keep == "20d")
    served.call("PUT", "/v1/models/news/arms/dorfblatt", {})
    for decision in waiting[-15:]:  # made before the snapshots that the fold now begins with
        assert served.reward(decision, 0.5) == (200, "learnt")
    live(served, 15, first=30, seed=1)
    delete_old(served)
    return served


@pytest.mark.parametrize("policy", ["flock", "linucb"])
def test_live_states_are_the_fold_over_what_is_left(tmp_path, policy):
    served = lived(tmp_path, policy, "20d")
    before = served.rows()
    served.restart()
    for user in range(2):
        assert served.call("GET", f"/v1/models/news/users/user {user}").status_code == 200
    assert served.rows() == before
    found = verify(served.engine.store)
    assert (found.wrong, found.users) == ([], 2)
    assert found.snapshots == 2
    served.close()


@pytest.mark.parametrize("policy", ["linucb", "lints"])
def test_states_are_as_if_everything_had_been_kept(tmp_path, policy):
    rows = []
    for keep in ("20d", "forever"):
        served = lived(tmp_path / keep, policy, keep)
        rows.append(served.rows())
        served.close()
    assert rows[0] == rows[1]


def test_what_is_open_stays_until_it_is_closed(served):
    served.model(keep="20d", rewards={"wait": "20d"})
    decision = served.decide(defer=True)
    live(served, 19, first=1)
    served.call("POST", f"/v1/decisions/{decision}/activate", {})
    live(served, 12, first=20)
    delete_old(served)
    assert served.call("GET", f"/v1/decisions/{decision}").status_code == 200
    assert served.reward(decision) == (200, "learnt")
    assert not verify(served.engine.store).wrong
    delete_old(served)
    assert served.call("GET", f"/v1/decisions/{decision}").status_code == 410
    assert served.reward(decision, 2.0) == (410, "gone")
    assert not verify(served.engine.store).wrong


def test_users_of_whom_nothing_is_left_are_still_known(served):
    served.model(keep="10d", rewards={"wait": "1h"})
    live(served, 5)
    served.sweep(50 * DAY)
    assert delete_old(served) == 0
    assert count(served, "outcomes") == 0
    served.restart()
    found = verify(served.engine.store)
    assert (found.wrong, found.users) == ([], 2)
    assert served.engine.store.count_users() == 2  # so many are folded, some at a time
    made = served.rank("user 1")
    assert not made["new_user"]
    assert int(made["decisions"][0]["id"].split("-")[1], 36) > 20  # no number is given out twice
    assert served.rank("user 7")["new_user"]


def test_other_models_keep_what_they_keep_and_the_rule_may_change(served):
    served.model(keep="forever", rewards={"wait": "1h"})
    live(served, 10)
    served.sweep(500 * DAY)
    assert delete_old(served) == 20
    served.model(keep="600d", rewards={"wait": "1h"})
    assert delete_old(served) == 20
    served.model(keep="30d", rewards={"wait": "1h"})
    assert delete_old(served) == 0
    for keep, why in (("never", "such as 90d, or 'forever'"), ("0d", "at least the wait of 1h, or 'forever', not 0d")):
        answer = served.call("PUT", "/v1/models/news", {**NEWS, "keep": keep})
        assert answer.status_code == 422
        assert why in answer.json()["detail"]


def test_a_damaged_user_stays_and_holds_up_nobody(served):
    served.model(keep="10d", rewards={"wait": "1h"})
    live(served, 5)
    served.sweep(50 * DAY)
    served.stop()
    with closing(sqlite3.connect(served.folder / "log.db")) as file:
        user = file.execute("SELECT user FROM decisions ORDER BY seq LIMIT 1").fetchone()[0]
        file.execute("UPDATE decisions SET choice = x'00' WHERE user = ?", (user,))
        file.commit()
    served.start()
    assert delete_old(served) == 5


def test_an_erased_user_leaves_no_base(served):
    served.model(keep="10d", rewards={"wait": "1h"})
    live(served, 5)
    served.sweep(50 * DAY)
    delete_old(served)
    assert count(served, "bases") == 2
    served.call("DELETE", "/v1/users/user 1")
    assert (count(served, "bases"), count(served, "snapshots")) == (1, 1)
    assert not verify(served.engine.store).wrong


def test_a_damaged_user_of_whom_no_record_is_left_can_be_erased(served):
    served.model(keep="10d", rewards={"wait": "1h"})
    live(served, 5)
    served.sweep(50 * DAY)
    assert delete_old(served) == 0
    served.stop()
    with closing(sqlite3.connect(served.folder / "log.db")) as file:
        file.execute("UPDATE snapshots SET row = x'00'")
        file.commit()
    served.start()
    served.call("DELETE", "/v1/users/user 1")
    assert (count(served, "bases"), count(served, "snapshots")) == (1, 1)


@pytest.mark.parametrize("policy", ["linucb", "lints"])
def test_what_is_left_can_be_exported(served, tmp_path, policy):
    served.model(policy=policy, keep="10d", rewards={"wait": "1h", "default": 0.0})
    live(served, 30)
    served.sweep(DAY)
    left = delete_old(served)
    live(served, 5, first=31)
    served.sweep(DAY)
    assert export(served.engine.store, "news", tmp_path / "log.parquet") == left + 10
    with pytest.warns(UserWarning, match="without a propensity") if policy == "lints" else nullcontext():
        log = read_log(tmp_path / "log.parquet")
    # A policy that draws has no known propensity at decisions before the state that the fold begins with.
    assert log.rewards.size == (left + 10 if policy == "linucb" else 10)


def test_nothing_is_looked_through_twice(served, monkeypatch):
    served.model(keep="10d", rewards={"wait": "1h"})
    live(served, 5)
    served.sweep(50 * DAY)
    delete_old(served)
    monkeypatch.setattr(served.engine.store, "users_of_closed", None)
    delete_old(served)


def test_slots_after_a_deleted_one_are_not_exported_with_its_arm_as_eligible(served, tmp_path):
    served.model(keep="20d", rewards={"wait": "20d"})
    made = served.rank(slots=3, defer=True)["decisions"]
    served.sweep(19 * DAY)
    for place in (0, 2):  # the one between them expires
        served.call("POST", f"/v1/decisions/{made[place]['id']}/activate", {})
    served.sweep(4 * DAY)
    assert delete_old(served) == 2
    for place in (0, 2):
        assert served.reward(made[place]["id"]) == (200, "learnt")
    assert export(served.engine.store, "news", tmp_path / "log.csv") == 1
    assert all(arm in (tmp_path / "log.csv").read_text() for arm in NEWS["arms"])  # of the first slot


def test_waits_end_while_old_records_are_deleted(served, monkeypatch):
    begun = []

    async def takes_hours(self):
        begun.append(self)
        await asyncio.Event().wait()

    monkeypatch.setattr(Engine, "_delete_old", takes_hours)
    served.restart()
    served.model()
    served.decide()
    end = time.monotonic() + 30.0
    while not begun and time.monotonic() < end:
        time.sleep(0.1)
    served.now += DAY
    while count(served, "open") and time.monotonic() < end:
        time.sleep(0.1)
    assert count(served, "open") == 0


def test_a_late_reward_that_comes_while_its_decision_is_deleted_keeps_its_number(served):
    served.model(keep="10d", rewards={"wait": "1h"})
    decision, came = served.decide(), []
    served.sweep(50 * DAY)

    def reward(statement):
        if statement.startswith("BEGIN IMMEDIATE") and not came:
            came.append(decision)
            came.append(served.reward(decision))

    async def watch():
        await served.engine.from_log(lambda: served.engine.store._connection.set_trace_callback(reward))

    served.run(watch())
    delete_old(served)
    assert came == [decision, (200, "late")]
    last = served.engine.seq
    served.restart()
    assert served.engine.seq == last
    assert not verify(served.engine.store).wrong
