"""The state of every user is what the log folds to, whoever left memory and came back."""

from __future__ import annotations

import asyncio

import pytest
from replaying import RULES, replay

from albatross.service.loading import Loader
from albatross.service.verifying import verify


@pytest.mark.parametrize("policy", RULES)
def test_live_states_are_the_fold_over_the_log_bit_for_bit(tmp_path, policy, monkeypatch):
    monkeypatch.setattr("albatross.service.snapshots._OLD", 20)
    monkeypatch.setattr("albatross.service.snapshots._WORTH_IT", 4)
    found = asyncio.run(replay(tmp_path, 2_000, policies=[policy], n_users=60, memory=15_000, seed=1))
    assert found.events >= 2_000
    assert found.users == 60
    assert found.loads > 2 * found.users  # they left and came back
    assert found.snapshots > 20
    assert found.reused > 0
    assert (found.populations > 5) == (policy == "flock")


def test_users_who_come_back_live_through_all_arms_together(served):
    served.model()
    users = [f"u{number}" for number in range(20)]
    for user in users:
        served.reward(served.decide(user), 0.5)
    for number in range(5):
        served.call("PUT", f"/v1/models/news/arms/new {number}", {})
        served.decide(users[number])
    rows = served.rows()
    served.restart()
    model, made = served.engine.models["news"], []
    fresh_fold = model.fresh_fold
    model.fresh_fold = lambda happenings: made.append(fresh_fold(happenings)) or made[-1]
    loaded = Loader(model, served.engine.store).load(list(rows))
    assert {user: each.row for user, each in loaded.items()} == rows
    assert len(made) <= 2  # one for those who came before an arm, and one for the others


def test_a_slot_is_not_used_again_while_a_decision_of_its_arm_is_open(served):
    served.model(rewards={"wait": "1h", "default": 0.0})
    decision = served.decide(arms=["bote"])
    served.call("DELETE", "/v1/models/news/arms/bote")
    served.now += 10 * 3600.0  # nobody has closed it yet, as after a long stop
    assert served.call("PUT", "/v1/models/news/arms/neu", {}).status_code == 201
    served.sweep(0.0)
    assert served.reward(decision) == (200, "late")
    assert served.call("PUT", "/v1/models/news/arms/newer", {}).status_code == 201
    slots = [event.content["slot"] for event in served.engine.store.happenings(None, ("arm",))]
    assert slots == [3, 1]
    assert verify(served.engine.store).wrong == []
