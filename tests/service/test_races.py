"""What happens at the same time: failed commits, loads, erasures and requests that wait for each other."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time

import pytest
from refolding import refold
from serving_tests import NEWS

from albatross.service.problems import Problem
from albatross.service.sqlite import SQLiteStore
from albatross.service.verifying import verify

RANK = "/v1/models/news/rank"


@pytest.fixture
def news(served):
    served.model()
    return served


class Held:
    """A function of the store that waits until it may go on."""

    def __init__(self, store, name, monkeypatch):
        self.entered, self.may_go = threading.Event(), threading.Event()
        function = getattr(store, name)

        def held(*given):
            self.entered.set()
            assert self.may_go.wait(10)
            return function(*given)

        monkeypatch.setattr(store, name, held)


async def until(event):
    """Wait for another thread without holding up the loop."""
    assert await asyncio.to_thread(event.wait, 10)


def called(served, method, path, body=None):
    """Return a task that sends a request."""
    headers = {"Authorization": f"Bearer {served.key}"}
    return asyncio.ensure_future(served.http.request(method, path, json=body, headers=headers))


def assert_live_is_replayed(served):
    """Stop, and compare what is in memory with the fold of the log."""
    rows = served.rows()
    served.stop()
    store = SQLiteStore(served.folder / "log.db")
    assert verify(store).wrong == []
    (fold,) = refold(store)[0].values() if not store.erased else (None,)
    if fold is not None:
        assert rows == {user: fold.bandits.row(user) for user in rows}
    store.close()
    served.start()


def test_a_request_id_is_decided_once_although_a_commit_fails_while_it_waits(news, monkeypatch):
    store = news.engine.store
    held = Held(store, "history", monkeypatch)
    write = store.write

    def fail(group):
        raise sqlite3.OperationalError("disk I/O error")

    async def race():
        first = called(news, "POST", RANK, {"user": "anna", "id": "r"})
        await until(held.entered)
        monkeypatch.setattr(store, "write", fail)
        assert (await called(news, "PUT", "/v1/models/news/arms/dorf", {})).status_code == 503
        monkeypatch.setattr(store, "write", write)
        second = called(news, "POST", RANK, {"user": "anna", "id": "r"})
        await asyncio.sleep(0.05)
        held.may_go.set()
        return await asyncio.gather(first, second)

    answers = news.run(race())
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


def test_who_comes_back_before_the_erasure_is_on_disk_is_a_newcomer(news, monkeypatch):
    """The old state is still on disk then, and must not be read from there."""
    old = news.decide("anna")
    held = Held(news.engine.store, "write", monkeypatch)

    async def race():
        erasure = called(news, "DELETE", "/v1/models/news/users/anna")
        await until(held.entered)
        rank = called(news, "POST", RANK, {"user": "anna", "id": "r"})
        reward = called(news, "POST", f"/v1/decisions/{old}/reward", {"value": 1.0})
        await asyncio.sleep(0.1)
        held.may_go.set()
        return await asyncio.gather(erasure, rank, reward)

    erasure, rank, reward = news.run(race())
    assert erasure.json() == {"erased": 1}
    assert rank.json()["new_user"]
    assert (reward.status_code, reward.json()["status"]) == (410, "gone")
    decision = rank.json()["decisions"][0]["id"]
    news.sweep(10_000.0)
    assert_live_is_replayed(news)
    assert news.reward(decision) == (200, "late")
    assert not news.rank("anna")["new_user"]


def test_an_erasure_takes_what_is_not_on_disk_yet_and_leaves_what_comes_later(news, monkeypatch):
    held = Held(news.engine.store, "write", monkeypatch)

    async def race():
        first = called(news, "POST", RANK, {"user": "bob"})
        await until(held.entered)  # what follows is one group
        before = called(news, "POST", RANK, {"user": "anna", "id": "r"})
        await asyncio.sleep(0.1)
        erasure = called(news, "DELETE", "/v1/models/news/users/anna")
        await asyncio.sleep(0.1)
        after = called(news, "POST", RANK, {"user": "anna", "id": "s"})
        await asyncio.sleep(0.1)
        held.may_go.set()
        return await asyncio.gather(first, before, erasure, after)

    _, before, erasure, after = news.run(race())
    assert erasure.json() == {"erased": 1}
    assert after.json()["new_user"]
    assert news.reward(before.json()["decisions"][0]["id"]) == (410, "gone")
    assert news.reward(after.json()["decisions"][0]["id"]) == (200, "learnt")
    assert news.rank("anna", id="s") == after.json()
    assert news.decide("anna", id="r") != before.json()["decisions"][0]["id"]
    assert_live_is_replayed(news)


def test_a_user_whose_records_are_damaged_can_be_erased(news):
    decision = news.decide("anna")
    news.stop()
    with sqlite3.connect(news.folder / "log.db") as file:
        file.execute("UPDATE decisions SET choice = zeroblob(length(choice))")
    file.close()
    news.start()
    assert news.call("POST", RANK, {"user": "anna"}).status_code == 500
    assert news.call("DELETE", "/v1/users/anna").json() == {"erased": 1}
    assert news.rank("anna")["new_user"]
    assert news.reward(decision) == (410, "gone")
    assert_live_is_replayed(news)


def test_arms_are_not_given_to_a_model_that_was_read_again(news, monkeypatch):
    engine, store = news.engine, news.engine.store
    write, old = store.write, engine.models["news"]

    def fail(group):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store, "write", fail)
    assert news.call("PUT", "/v1/models/news/arms/dorf", {}).status_code == 503
    monkeypatch.setattr(store, "write", write)
    with pytest.raises(Problem, match="read again"):  # as a request that found the model before
        news.run(engine.put_arm(old, "eule", {}))
    assert news.call("PUT", "/v1/models/news/arms/eule", {}).status_code == 201
    news.decide()
    assert_live_is_replayed(news)


@pytest.mark.parametrize(
    ("function", "path"),
    [("page", "log"), ("tallies", "stats"), ("of_user", "users/anna/log"), ("history", "users/bob")],
)
def test_the_log_is_closed_after_the_last_read_of_it(news, monkeypatch, function, path):
    """SQLite brings the process down if its connection is closed while another thread reads."""
    news.decide("anna")
    store = news.engine.store
    held, close, closed = Held(store, function, monkeypatch), store.close, []
    monkeypatch.setattr(store, "close", lambda: closed.append(held.may_go.is_set()) or close())

    async def race():
        reading = called(news, "GET", f"/v1/models/news/{path}")
        await until(held.entered)
        reading.cancel()  # as the server does with what is not done when its patience ends
        stopping = asyncio.ensure_future(news.engine.stop())
        await asyncio.sleep(0.2)
        held.may_go.set()
        await stopping

    news.run(race())
    assert closed == [True]
    news.start()


def test_a_command_that_fails_midway_leaves_nothing_in_the_log(news, monkeypatch):
    """The writer takes its group at once, before the loop could take it away."""
    decision = news.decide("anna")
    model, before = news.engine.models["news"], news.rows()

    def fail(*given):
        raise RuntimeError("a defect")

    monkeypatch.setattr(model, "_tally_outcome", fail)  # after the record and the state
    start_anew = news.engine._start_anew
    monkeypatch.setattr(news.engine, "_start_anew", lambda error: (time.sleep(0.2), start_anew(error)))
    assert news.call("POST", f"/v1/decisions/{decision}/reward", {"value": 1.0}).status_code == 500
    assert news.call("GET", f"/v1/decisions/{decision}").json()["outcomes"] == []
    news.call("GET", "/v1/models/news/users/anna")
    assert news.rows() == before
    assert news.reward(decision) == (200, "learnt")
    assert_live_is_replayed(news)


def test_many_users_who_wait_for_a_model_that_was_lost_stop_nobody(news, monkeypatch):
    store = news.engine.store
    write, held = store.write, Held(store, "history", monkeypatch)

    def fail(group):
        held.may_go.wait(10)
        raise sqlite3.OperationalError("disk I/O error")

    async def race():
        monkeypatch.setattr(store, "write", fail)
        creating = called(news, "PUT", "/v1/models/shop", NEWS)
        while "shop" not in news.engine.models:
            await asyncio.sleep(0.01)
        ranks = [called(news, "POST", "/v1/models/shop/rank", {"user": f"u{n}"}) for n in range(100)]
        await until(held.entered)
        held.may_go.set()
        return await asyncio.gather(creating, *ranks)

    assert {answer.status_code for answer in news.run(race())} == {503}
    monkeypatch.setattr(store, "write", write)
    assert news.rank("anna")["new_user"]
