"""The population of a flock, over restarts and when most users are not in memory."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from serving_tests import Served

from albatross.service.events import unpack_arrays
from albatross.service.loading import bandits_elsewhere
from albatross.service.sqlite import SQLiteStore
from albatross.service.verifying import verify

TOPICS = ("sport", "politics")


@pytest.fixture
def flock(served):
    served.model(policy="flock")
    return served


def visit(served, user, rng):
    """Let a user come once, and click."""
    arms = {arm: {"topic": str(rng.choice(TOPICS)), "age": float(rng.normal())} for arm in ("anzeiger", "bote")}
    served.reward(served.decide(user, arms=arms), float(rng.normal()))


def looks(served):
    """Return the populations of the log, once nothing is due."""
    model = served.engine.models["news"]
    until = time.monotonic() + 60
    while served.engine._looking or (model.is_counted and model.bandits.look_is_due):
        assert time.monotonic() < until
        time.sleep(0.01)
    return served.engine.store.happenings(None, ("population",))


def test_rewards_before_a_restart_count_for_the_next_look(flock):
    rng = np.random.default_rng(0)
    flock.model("other", policy="flock")  # with numbers in between
    for number in range(40):
        visit(flock, f"user {number}", rng)
    before = [event.content["rewards"] for event in looks(flock)]
    assert before[-1] < 40
    for number in range(40, 46):  # the next look is at 45.3 rewards
        assert [event.content["rewards"] for event in looks(flock)] == before
        flock.restart()
        visit(flock, f"user {number}", rng)
    assert [event.content["rewards"] for event in looks(flock)] == [*before, 46]
    assert verify(flock.engine.store).wrong == []


def test_rewards_during_a_look_count_for_the_next_one(flock, monkeypatch):
    rng, looked = np.random.default_rng(0), flock.engine._looked
    is_looking, may_end = threading.Event(), threading.Event()

    def slowly(model, here):
        is_looking.set()
        assert may_end.wait(60)
        return looked(model, here)

    monkeypatch.setattr(flock.engine, "_looked", slowly)
    for number in range(16):
        visit(flock, f"user {number}", rng)
    assert is_looking.wait(60)
    for number in range(3):
        visit(flock, f"user {number}", rng)
    may_end.set()
    assert [event.content["rewards"] for event in looks(flock)] == [16]
    flock.restart()
    visit(flock, "user 0", rng)
    looks(flock)
    assert flock.engine.models["news"].bandits.looks.rewards == 20


def test_users_who_are_not_in_memory_are_heard(flock, monkeypatch):
    rng = np.random.default_rng(1)
    for number in range(60):
        visit(flock, f"user {number % 30}", rng)
    looks(flock)
    all_of_them = flock.engine.models["news"].bandits.look()["population"]
    flock.restart()
    flock.call("GET", "/v1/models/news/users/user 1")
    engine = flock.engine
    model = engine.models["news"]
    assert model.bandits.n_users == 1
    found = engine._looked(model, set(model.hot))["population"]
    alone = model.bandits.look()["population"]
    for name, array in unpack_arrays(all_of_them).items():
        np.testing.assert_allclose(unpack_arrays(found)[name], array, rtol=1e-6, atol=1e-9)
        assert name == "noise" or not np.allclose(unpack_arrays(alone)[name], array, rtol=0.01)

    monkeypatch.setattr("albatross.service.engine._ENOUGH", 1)
    assert engine._looked(model, set(model.hot)) == model.bandits.look()


def test_those_who_are_heard_are_chosen_from_one_model_and_bounded(flock):
    rng = np.random.default_rng(2)
    for number in range(25):
        visit(flock, f"user {number}", rng)
        flock.call("POST", "/v1/models/other/rank", {"user": f"user {number}"})
    flock.model("other", policy="flock")
    for number in range(25):
        flock.call("POST", "/v1/models/other/rank", {"user": f"user {number}"})
    engine = flock.engine
    model, store = engine.models["news"], engine.store
    mine = set(model.hot)
    assert len(mine) == 25
    for first in (b"", b"\x80" * 16, b"\xff" * 16):
        found = store.some_users(model.number, first, 100)
        assert len(found) == len(set(found)) == 25
        assert set(found) == mine
        assert found == sorted(found, key=lambda user: (user < first, user))
    assert len(store.some_users(model.number, b"", 7)) == 7
    here = set(sorted(mine)[:20])
    assert bandits_elsewhere(model, store, here, 100, 2**20).n_users == 5
    assert bandits_elsewhere(model, store, set(), 9, 2**20).n_users == 9
    some = bandits_elsewhere(model, store, set(), 1, 2**20)
    (user,) = [each for each in mine if each in some]
    assert some.row(user) == model.bandits.row(user)


def test_a_damaged_user_is_not_heard(tmp_path):
    served, rng = Served(tmp_path), np.random.default_rng(3)
    served.model(policy="flock")
    for number in range(10):
        visit(served, f"user {number}", rng)
    served.engine.store._connection.execute(
        "UPDATE decisions SET choice = x'00' WHERE seq = (SELECT min(seq) FROM decisions)"
    )
    served.restart()
    store = SQLiteStore(tmp_path / "log.db")
    assert bandits_elsewhere(served.engine.models["news"], store, set(), 100, 2**20).n_users == 9
    store.close()
    served.close()


def test_a_look_that_arms_overtake_is_made_again_and_is_no_error(flock, monkeypatch, caplog):
    rng, store = np.random.default_rng(4), flock.engine.store
    for number in range(15):
        visit(flock, f"user {number}", rng)
    some_users = store.some_users

    def overtaken(*given):
        monkeypatch.undo()
        answer = flock.call("PUT", "/v1/models/news/arms/dorf", {})
        assert answer.status_code == 201
        return some_users(*given)

    monkeypatch.setattr(store, "some_users", overtaken)
    visit(flock, "user 15", rng)  # the first look is at 16 rewards
    while flock.engine._looking:
        time.sleep(0.01)
    assert "dorf" in flock.engine.models["news"].arms
    assert store.happenings(None, ("population",)) == []
    visit(flock, "user 16", rng)
    assert len(looks(flock)) == 1
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
