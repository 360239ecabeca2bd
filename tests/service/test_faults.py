"""Disk full, read-only file, damaged records, a clock that is set back, two processes."""

from __future__ import annotations

import sqlite3
import threading
import time

import pytest
from serving_tests import Served

from albatross.service import endpoints
from albatross.service.engine import Engine
from albatross.service.problems import Problem
from albatross.service.serving import locked
from albatross.service.sqlite import SQLiteStore
from albatross.service.verifying import verify

RANK = "/v1/models/news/rank"


@pytest.fixture
def news(served):
    served.model()
    return served


def failing(store, monkeypatch, error):
    """Let commits fail, in the middle of a transaction as a full disk does."""
    insert = store._insert

    def fail(connection, group):
        insert(connection, group)
        raise error

    monkeypatch.setattr(store, "_insert", fail)


@pytest.mark.parametrize("policy", ["linucb", "flock"])
def test_a_commit_that_fails_is_not_acknowledged_and_leaves_no_trace(served, monkeypatch, policy):
    served.model(policy=policy)
    kept = [served.decide(f"user {n}") for n in range(5)]
    for each in kept[:3]:
        served.reward(each, 0.5)
    before, seq = served.rows(), served.engine.seq
    with monkeypatch.context() as broken:
        failing(served.engine.store, broken, sqlite3.OperationalError("database or disk is full"))
        answer = served.call("POST", RANK, {"user": "user 1", "id": "r"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "disk is full" in answer.json()["detail"]
        assert served.call("POST", f"/v1/decisions/{kept[3]}/reward", {"value": 1.0}).status_code == 503
        assert served.call("GET", "/readyz").status_code == 503
        assert served.call("GET", "/healthz").status_code == 200
    assert served.call("GET", "/readyz").status_code == 200
    assert served.engine.seq == seq
    for number in range(5):
        served.call("GET", f"/v1/models/news/users/user {number}")  # brings them back into memory
    assert served.rows() == before
    assert served.reward(kept[3], 1.0) == (200, "learnt")
    assert served.reward(kept[0], 0.5) == (200, "duplicate")
    served.stop()
    store = SQLiteStore(served.folder / "log.db")
    assert verify(store).wrong == []
    store.close()
    served.start()


def test_requests_that_wait_behind_a_failed_commit_are_refused_too(news, monkeypatch):
    import asyncio
    import time

    store = news.engine.store
    write = store.write

    def slow(group):
        time.sleep(0.2)
        if group.decisions:
            raise sqlite3.OperationalError("disk I/O error")
        write(group)

    monkeypatch.setattr(store, "write", slow)

    async def many():
        headers = {"Authorization": f"Bearer {news.key}"}
        calls = []
        for number in range(6):
            calls.append(asyncio.ensure_future(news.http.post(RANK, json={"user": f"u{number}"}, headers=headers)))
            await asyncio.sleep(0.05)
        return await asyncio.gather(*calls)

    assert {answer.status_code for answer in news.run(many())} == {503}
    monkeypatch.setattr(store, "write", write)
    assert news.rank("u0")["new_user"]


def test_nothing_is_shown_that_is_not_on_disk(news, monkeypatch):
    import asyncio
    import threading

    news.reward(news.decide("anna"), 0.5)
    store, may_write = news.engine.store, threading.Event()
    write = store.write

    def slow(group):
        may_write.wait(10.0)
        write(group)

    monkeypatch.setattr(store, "write", slow)

    async def meanwhile():
        headers = {"Authorization": f"Bearer {news.key}"}
        rank = asyncio.ensure_future(news.http.post(RANK, json={"user": "anna"}, headers=headers))
        await asyncio.sleep(0.1)  # it is decided, and not written
        looks = [
            asyncio.ensure_future(news.http.get(f"/v1/models/news{path}", headers=headers))
            for path in ("", "/arms", "/users/anna")
        ]
        shown, _ = await asyncio.wait(looks, timeout=0.3)
        may_write.set()
        return shown, [await rank, *[await look for look in looks]]

    shown, answers = news.run(meanwhile())
    assert not shown
    assert [answer.status_code for answer in answers] == [200] * 4


def test_a_read_only_file_answers_503(news, monkeypatch):
    news.decide()
    failing(news.engine.store, monkeypatch, sqlite3.OperationalError("attempt to write a readonly database"))
    assert news.call("POST", RANK, {"user": "anna"}).status_code == 503


def test_a_damaged_record_concerns_its_user_alone(news):
    decision = news.decide("anna")
    news.decide("bob")
    news.stop()
    seq = news.engine.identity.parse(decision).seq
    with sqlite3.connect(news.folder / "log.db") as file:
        file.execute("UPDATE decisions SET choice = zeroblob(length(choice)) WHERE seq = ?", (seq,))
    file.close()
    news.start()
    answer = news.call("POST", RANK, {"user": "anna"})
    assert (answer.status_code, answer.json()["detail"]) == (500, "the records of this user are damaged")
    assert not news.rank("bob")["new_user"]
    found = verify(news.engine.store)
    assert [sentence for sentence in found.wrong if f"record {seq} is damaged" in sentence]


@pytest.mark.parametrize("damage", ["value = value + 1", "at = at + 1", "status = 'waits'"])
def test_a_damaged_reward_concerns_its_user_alone(news, damage):
    news.reward(news.decide("anna"), 0.5)
    news.reward(news.decide("bob"), 0.5)
    news.stop()
    user = news.engine.identity.user(1, "anna")
    with sqlite3.connect(news.folder / "log.db") as file:
        file.execute(f"UPDATE outcomes SET {damage} WHERE user = ?", (user,))
    file.close()
    news.start()
    assert news.call("POST", RANK, {"user": "anna"}).status_code == 500
    assert not news.rank("bob")["new_user"]
    assert "record 4 is damaged: its checksum is wrong" not in verify(news.engine.store).wrong
    assert "record 3 is damaged: its checksum is wrong" in verify(news.engine.store).wrong


def test_a_damaged_happening_is_named(news):
    news.call("PUT", "/v1/models/news/arms/dorf", {})
    news.stop()
    store = SQLiteStore(news.folder / "log.db")
    store._connection.execute("UPDATE happenings SET body = zeroblob(length(body)) WHERE kind = 'arm'")
    assert verify(store).wrong == ["record 2 is damaged: its checksum is wrong"]
    with pytest.raises(Problem, match="record 2 is damaged"):
        Engine(store)
    store._connection.execute("DELETE FROM happenings WHERE seq = 2")
    store.close()
    news.start()


def test_a_damaged_snapshot_concerns_its_user_alone(news, monkeypatch):
    monkeypatch.setattr("albatross.service.snapshots._OLD", 1)
    news.decide("anna")
    news.decide("bob")
    news.stop()
    user = news.engine.identity.user(1, "anna")
    with sqlite3.connect(news.folder / "log.db") as file:
        file.execute("UPDATE snapshots SET row = zeroblob(100) WHERE user = ?", (user,))
    file.close()
    news.start()
    assert news.call("POST", RANK, {"user": "anna"}).status_code == 500
    assert not news.rank("bob")["new_user"]
    assert len(verify(news.engine.store).wrong) == 1


def test_a_clock_that_is_set_back_changes_no_order(news):
    first = news.decide("anna")
    news.now -= 3_600
    second = news.decide("anna")
    shown = [news.call("GET", f"/v1/decisions/{each}").json()["at"] for each in (first, second)]
    assert shown[0] == shown[1]
    assert news.reward(second) == (200, "learnt")


def test_one_process_serves_a_folder(tmp_path):
    with locked(tmp_path), pytest.raises(ValueError, match="in use by another process"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_file_that_is_no_log_is_refused(tmp_path):
    path = tmp_path / "log.db"
    path.write_bytes(b"not a database, but long enough to be one " * 100)
    with pytest.raises(ValueError, match="cannot be read as a log"):
        SQLiteStore(path, create=True)


def test_a_log_that_cannot_be_written_is_not_called_damaged(tmp_path, monkeypatch):
    SQLiteStore(tmp_path / "log.db", create=True).close()

    def refuse(*_, **__):
        error = sqlite3.OperationalError("attempt to write a readonly database")
        error.sqlite_errorcode = sqlite3.SQLITE_READONLY
        raise error

    monkeypatch.setattr(sqlite3, "connect", refuse)
    with pytest.raises(OSError, match=r"log\.db cannot be opened \(attempt to write .*: its folder must be writable"):
        SQLiteStore(tmp_path / "log.db")


def test_nobody_else_may_read_the_log(tmp_path):
    service = Served(tmp_path)
    try:
        assert (tmp_path / "log.db").stat().st_mode & 0o077 == 0
    finally:
        service.close()


def test_a_damaged_record_does_not_keep_other_decisions_open(news):
    news.model(rewards={"wait": "1h", "default": 0.0})
    decision = news.decide("anna")
    news.decide("bob")
    news.stop()
    seq = news.engine.identity.parse(decision).seq
    with sqlite3.connect(news.folder / "log.db") as file:
        file.execute("UPDATE decisions SET choice = zeroblob(length(choice)) WHERE seq = ?", (seq,))
    file.close()
    news.start()
    with pytest.raises(Problem, match="damaged"):
        news.sweep(7_200.0)
    assert [decision for decision, _ in news.engine.store.open_of((b"", b"\xff" * 17))] == [seq]


def test_a_full_disk_is_seen_although_nothing_is_asked(news):
    """Of a real file that may not grow: a commit of nothing would succeed."""
    resource = pytest.importorskip("resource")
    news.decide()
    largest = max(path.stat().st_size for path in news.folder.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    news.engine.committed_at = -1e9  # the last commit was long ago
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
    try:
        assert largest > 1
        assert news.call("GET", "/readyz").status_code == 503
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert news.call("GET", "/readyz").status_code == 200


def test_it_is_not_ready_while_decisions_do_not_fit_on_the_disk(news):
    resource = pytest.importorskip("resource")
    reader = sqlite3.connect(news.folder / "log.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM decisions").fetchone()  # from now on the write-ahead log grows
    news.decide()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((news.folder / "log.db-wal").stat().st_size + 16_000, limits[1]))
    try:
        assert news.call("POST", RANK, {"user": "anna"}).status_code == 503
        assert news.call("GET", "/readyz").status_code == 503
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        reader.close()
    assert news.call("GET", "/readyz").status_code == 200
    assert news.call("POST", RANK, {"user": "anna"}).status_code == 200


def test_decisions_of_damaged_users_do_not_keep_others_open(news, monkeypatch):
    monkeypatch.setattr("albatross.service.engine._SWEPT", 2)
    first = news.decide("anna")
    for _ in range(4):
        news.decide("anna")
    others = [news.decide("bob") for _ in range(3)]
    news.stop()
    with sqlite3.connect(news.folder / "log.db") as file:
        seq = news.engine.identity.parse(first).seq
        file.execute("UPDATE decisions SET choice = zeroblob(length(choice)) WHERE seq = ?", (seq,))
    file.close()
    news.start()
    with pytest.raises(Problem, match="damaged"):
        news.sweep(3_601.0)
    for each in others:
        assert [came["status"] for came in news.call("GET", f"/v1/decisions/{each}").json()["outcomes"]] == ["expired"]


def test_who_reads_the_file_for_long_holds_up_no_commits_and_no_erasure(news, monkeypatch):
    """As `albatross verify` does."""
    monkeypatch.setattr("albatross.service.sqlite._LARGE_LOG", 1)
    monkeypatch.setattr("albatross.service.sqlite._CHECKPOINT_EVERY", 0.01)
    news.restart()
    news.decide("anna")
    user, log = news.engine.identity.user(1, "anna"), news.folder / "log.db-wal"
    reader = sqlite3.connect(news.folder / "log.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM decisions").fetchone()
    begun = time.monotonic()
    for number in range(20):
        news.decide(f"u{number}")
    assert news.call("DELETE", "/v1/users/anna").json() == {"erased": 1}
    assert time.monotonic() - begun < 4.0  # a single wait for the reader would take 5 seconds
    assert user in log.read_bytes()
    reader.close()
    until = time.monotonic() + 10.0
    while user in log.read_bytes():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert user not in (news.folder / "log.db").read_bytes()


def test_old_answers_are_forgotten_a_few_at_a_time(news, monkeypatch):
    monkeypatch.setattr("albatross.service.engine._FORGOTTEN", 2)
    for number in range(5):
        news.decide(f"u{number}", id=f"r{number}")
    news.now += 25 * 3_600.0
    kept = news.decide("anna", id="new")
    news.run(news.engine.forget_requests())
    assert news.engine.store._connection.execute("SELECT count(*) FROM requests").fetchone() == (1,)
    assert news.decide("anna", id="new") == kept


@pytest.mark.parametrize(
    ("path", "function"),
    [("log", "page"), ("users/anna/log", "of_user"), ("arms", "tallies_by_label"), ("stats", "tallies")],
)
def test_long_reads_do_not_hold_up_the_loop(news, monkeypatch, path, function):
    news.decide("anna")
    read, threads = getattr(news.engine.store, function), []

    def noted(*given):
        threads.append(threading.get_ident())
        return read(*given)

    monkeypatch.setattr(news.engine.store, function, noted)
    assert news.call("GET", f"/v1/models/news/{path}").status_code == 200
    assert threads
    assert news._thread.ident not in threads


def test_stats_are_not_written_down_in_the_loop(news, monkeypatch):
    news.decide("anna")
    shown_time, threads = endpoints.shown_time, []
    monkeypatch.setattr(endpoints, "shown_time", lambda at: threads.append(threading.get_ident()) or shown_time(at))
    assert news.call("GET", "/v1/models/news/stats").json()["hours"]
    assert threads
    assert news._thread.ident not in threads


def test_of_several_rewards_those_that_are_not_written_are_named(news, monkeypatch):
    monkeypatch.setattr("albatross.service.hot.MOST_WAITING", 2)
    items = [{"id": news.decide(f"u{number}"), "value": 1.0} for number in range(3)]
    results = news.call("POST", "/v1/models/news/rewards", {"rewards": items}).json()["results"]
    assert [each["status"] for each in results] == ["learnt", "learnt", "failed"]
    assert "too many requests" in results[2]["detail"]
    monkeypatch.setattr("albatross.service.hot.MOST_WAITING", 0)
    answer = news.call("POST", "/v1/models/news/rewards", {"rewards": items})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_rewards_of_others_are_answered_beside_those_of_a_damaged_user(news):
    decisions = [news.decide("anna"), news.decide("bob")]
    news.stop()
    with sqlite3.connect(news.folder / "log.db") as file:
        seq = news.engine.identity.parse(decisions[0]).seq
        file.execute("UPDATE decisions SET choice = zeroblob(length(choice)) WHERE seq = ?", (seq,))
    file.close()
    news.start()
    rewards = [{"id": each, "value": 1.0} for each in decisions]
    results = news.call("POST", "/v1/models/news/rewards", {"rewards": rewards}).json()["results"]
    assert [each["status"] for each in results] == ["failed", "learnt"]
