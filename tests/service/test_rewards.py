"""Every row of the table of rewards, in any order, twice, before and after a restart."""

from __future__ import annotations

import pytest
from serving_tests import NEWS

from albatross.service.verifying import verify

HOUR = 3_600.0


def learnt(served):
    """Return how many rewards were learnt."""
    return served.engine.models["news"].bandits.looks.rewards


@pytest.mark.parametrize("restarts", [False, True])
def test_a_first_reward_is_learnt_and_a_second_one_is_a_duplicate_or_a_conflict(served, restarts):
    served.model()
    decision = served.decide()
    assert served.reward(decision, 0.5) == (200, "learnt")
    if restarts:
        served.restart()
    before = served.rows()
    assert served.reward(decision, 0.5) == (200, "duplicate")
    assert served.reward(decision, 0.75) == (409, "conflict")
    assert restarts or served.rows() == before


def test_a_reward_after_the_wait_is_logged_and_not_learnt(served):
    served.model()
    decision = served.decide()
    served.now += HOUR + 1
    assert served.reward(decision, 0.5) == (200, "late")
    assert served.reward(decision, 0.5) == (200, "duplicate")
    assert learnt(served) == 0
    assert [each["status"] for each in served.call("GET", f"/v1/decisions/{decision}").json()["outcomes"]] == [
        "expired",
        "late",
    ]


def test_an_unrewarded_decision_expires_unlearnt(served):
    served.model()
    served.decide()
    model = served.engine.models["news"]
    assert len(model.fold.open) == 1
    served.sweep(HOUR + 1)
    assert not model.fold.open
    assert learnt(served) == 0


@pytest.mark.parametrize("restarts", [False, True])
def test_a_default_reward_is_learnt_at_the_end_and_others_wait_for_it(served, restarts):
    served.model(rewards={"wait": "1h", "default": 0.0})
    clicked, missed = served.decide("anna"), served.decide("bob")
    assert served.reward(clicked, 1.0) == (200, "waits")
    assert served.reward(clicked, 1.0) == (200, "duplicate")
    assert served.reward(clicked, 2.0) == (409, "conflict")
    assert learnt(served) == 0
    if restarts:
        served.restart()
    served.sweep(HOUR + 1)
    assert learnt(served) == 2
    outcomes = [served.call("GET", f"/v1/decisions/{each}").json()["outcomes"][-1] for each in (clicked, missed)]
    assert [(each["status"], each["value"]) for each in outcomes] == [("closed", 1.0), ("default", 0.0)]


def test_a_negative_zero_is_learnt_as_the_log_has_it(served):
    served.model(rewards={"wait": "1h", "default": -0.0})
    served.decide()
    served.sweep(HOUR + 1)
    assert verify(served.engine.store).wrong == []


@pytest.mark.parametrize(("combine", "expected"), [("sum", 3.5), ("last", 2.5)])
def test_several_rewards_are_combined_at_the_end(served, combine, expected):
    served.model(rewards={"wait": "1h", "combine": combine})
    decision = served.decide()
    assert served.reward(decision, 1.0) == (200, "waits")
    assert served.reward(decision, 2.5) == (200, "waits")
    served.sweep(HOUR + 1)
    assert served.call("GET", f"/v1/decisions/{decision}").json()["outcomes"][-1]["value"] == expected


@pytest.mark.parametrize("restarts", [False, True])
def test_a_deferred_decision_waits_for_its_activation(served, restarts):
    served.model()
    decision = served.decide(defer=True)
    assert served.reward(decision, 0.5) == (202, "inactive")
    assert served.reward(decision, 0.5) == (200, "duplicate")
    assert learnt(served) == 0
    if restarts:
        served.restart()
    activate = f"/v1/decisions/{decision}/activate"
    assert served.call("POST", activate).json() == {"status": "activated"}
    assert learnt(served) == 1
    assert served.call("POST", activate).json() == {"status": "closed"}
    assert served.reward(decision, 0.5) == (200, "duplicate")


def test_the_wait_of_a_deferred_decision_begins_with_its_activation(served):
    served.model()
    decision = served.decide(defer=True)
    served.now += HOUR - 1
    served.call("POST", f"/v1/decisions/{decision}/activate")
    served.sweep(HOUR - 1)
    assert served.reward(decision, 0.5) == (200, "learnt")


def test_a_decision_that_is_never_activated_expires(served):
    served.model()
    decision = served.decide(defer=True)
    served.reward(decision, 1.0)
    served.sweep(HOUR + 1)
    assert learnt(served) == 0
    assert served.call("POST", f"/v1/decisions/{decision}/activate").json() == {"status": "closed"}


def test_ids_that_were_never_given_out_are_unknown(served):
    served.model()
    decision = served.decide()
    for wrong in ("", "x", decision[:-1] + ("0" if decision[-1] != "0" else "1"), "00-zzz-00000000", "00-1-é"):
        if wrong:
            assert served.reward(wrong) == (404, "unknown")
    assert served.engine.identity.parse(decision).seq == 2


def test_a_reward_of_an_erased_user_is_gone(served):
    served.model()
    decision = served.decide("anna")
    assert served.call("DELETE", "/v1/models/news/users/anna").json() == {"erased": 1}
    assert served.reward(decision) == (410, "gone")


def test_rewards_outside_of_their_bounds_are_refused(served):
    served.model(rewards={"low": 0.0, "high": 1.0})
    decision = served.decide()
    assert served.reward(decision, 1.5) == (422, "invalid")
    assert served.reward(decision, 1.0) == (200, "learnt")


def test_imported_rewards_have_the_same_bounds(served):
    served.model(rewards={"low": 0.0, "high": 1.0})
    items = [{"user": "anna", "arm": "bote", "reward": value} for value in (1.0, 1.5)]
    answer = served.call("POST", "/v1/models/news/decisions", {"decisions": items})
    assert (answer.status_code, answer.json()["at"]) == (422, "/decisions/1/reward")
    assert learnt(served) == 1


def test_a_frozen_model_learns_nothing(served):
    served.model()
    served.call("PUT", "/v1/models/news", {**NEWS, "mode": "frozen"})
    before = served.decide(), served.rows()
    assert served.reward(before[0], 1.0) == (200, "frozen")
    assert served.reward(before[0], 1.0) == (200, "duplicate")
    assert learnt(served) == 0


@pytest.mark.parametrize(
    ("rules", "sent", "outcome"),
    [
        ({}, [1.0], ("frozen", 1.0)),
        ({"combine": "sum"}, [1.0, 2.5], ("frozen", 3.5)),
        ({"combine": "last"}, [1.0, 2.5], ("frozen", 2.5)),
        ({"default": 0.0}, [1.0], ("frozen", 1.0)),
        ({"default": 0.0}, [], ("frozen_default", 0.0)),
        ({}, [], ("expired", None)),
    ],
)
def test_a_frozen_model_logs_the_reward_that_it_would_learn(served, rules, sent, outcome):
    served.model(mode="frozen", rewards={"wait": "1h", **rules})
    decision = served.decide()
    for value in sent:
        assert served.reward(decision, value)[0] == 200
    served.sweep(HOUR + 1)
    last = served.call("GET", f"/v1/decisions/{decision}").json()["outcomes"][-1]
    assert (last["status"], last["value"]) == outcome
    arms = served.call("GET", "/v1/models/news/arms").json()["arms"]
    assert sum(arm["rewards"] for arm in arms) == (outcome[1] is not None)
    assert learnt(served) == 0
    assert verify(served.engine.store).wrong == []
    if not sent:
        assert served.reward(decision, 1.0) == (200, "late")


def test_several_rewards_are_answered_one_by_one(served):
    served.model()
    one, other = served.decide("anna"), served.decide("bob")
    items = [{"id": one, "value": 1.0}, {"id": "wrong", "value": 1.0}, {"id": other, "value": 0.0}]
    answer = served.call("POST", "/v1/models/news/rewards", {"rewards": items})
    assert [each["status"] for each in answer.json()["results"]] == ["learnt", "unknown", "learnt"]


def test_the_oldest_of_too_many_open_decisions_expires(served, monkeypatch):
    monkeypatch.setattr("albatross.service.model.MOST_OPEN", 3)
    served.model()
    first, *others = [served.decide() for _ in range(4)]
    assert served.reward(first) == (200, "late")
    assert [served.reward(each) for each in others] == 3 * [(200, "learnt")]


def test_the_reward_of_the_oldest_of_too_many_open_decisions_is_learnt(served, monkeypatch):
    """It was acknowledged: only the wait ends earlier."""
    monkeypatch.setattr("albatross.service.model.MOST_OPEN", 2)
    served.model(rewards={"wait": "1h", "default": 0.0})
    clicked, missed = served.decide(), served.decide()
    assert served.reward(clicked, 1.0) == (200, "waits")
    served.decide()
    served.decide()
    outcomes = [served.call("GET", f"/v1/decisions/{each}").json()["outcomes"][-1] for each in (clicked, missed)]
    assert [(each["status"], each["value"]) for each in outcomes] == [("closed", 1.0), ("default", 0.0)]
    assert learnt(served) == 2
    assert verify(served.engine.store).wrong == []


def test_a_reward_after_the_wait_of_a_frozen_decision_is_late(served):
    served.model(mode="frozen")
    decision = served.decide()
    served.sweep(HOUR + 1)
    assert served.reward(decision, 0.5) == (200, "late")
    assert served.reward(decision, 0.5) == (200, "duplicate")


def test_an_archived_model_learns_nothing_and_stays_archived(served):
    served.model(rewards={"wait": "1h", "default": 0.0})
    served.decide("bob")
    decision = served.decide("anna")
    served.call("DELETE", "/v1/models/news")
    assert served.reward(decision, 0.5) == (200, "frozen")
    served.sweep(HOUR + 1)
    assert learnt(served) == 0
    assert served.call("PUT", "/v1/models/news", NEWS).status_code == 422


def test_a_deferred_decision_whose_wait_has_ended_cannot_be_activated(served):
    served.model()
    decision = served.decide(defer=True)
    served.now += HOUR + 1
    assert served.call("POST", f"/v1/decisions/{decision}/activate").json() == {"status": "closed"}
