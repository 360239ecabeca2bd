"""Personalizer's API: its bodies, its status codes and what they do, call by call."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from albatross.service import personalizer
from albatross.service.keys import new_key
from albatross.service.openapi import document
from albatross.service.personalizer import Action, encoded
from albatross.service.problems import Problem

pytestmark = pytest.mark.xdist_group("service")

RANK = "/personalizer/v1.0/rank"
ARTICLES = [
    {"id": "news", "features": [{"type": "News"}]},
    {"id": "sports", "features": [{"type": "Sports"}]},
    {"id": "stars", "features": [{"type": "Entertainment", "length": 3}]},
]
ASKED = {"contextFeatures": [{"timeOfDay": "Morning"}], "actions": ARTICLES}


def rank(served, code=201, **changes):
    answer = served.call("POST", RANK, {**ASKED, **changes})
    assert answer.status_code == code, answer.text
    return answer.json()


def event(served, event_id, what, body=None):
    return served.call("POST", f"/personalizer/v1.0/events/{event_id}/{what}", body)


def reward(served, event_id, value=1.0, code=204):
    answer = event(served, event_id, "reward", {"value": value})
    assert answer.status_code == code, answer.text
    assert code != 204 or answer.content == b""


def outcomes(served):
    model = served.engine.models["personalizer"]
    rows = served.engine.store.tallies_by_label(model.number, 0)
    return {what.partition(":")[2]: n for what, _, n, *_ in _summed(rows) if what.startswith("outcome:")}


def _summed(rows):
    totals: dict[str, int] = {}
    for what, _, n, *_ in rows:
        totals[what] = totals.get(what, 0) + n
    return [(what, "", n) for what, n in totals.items()]


# -------------------------------------------------------------------------------------------------------------- rank


def test_a_rank_is_answered_as_personalizer_answers(served):
    answer = rank(served, eventId="75269AD0-BFEE-4598")
    assert set(answer) == {"ranking", "eventId", "rewardActionId"}
    assert answer["eventId"] == "75269AD0-BFEE-4598"
    assert [set(each) for each in answer["ranking"]] == [{"id", "probability"}] * 3
    assert answer["ranking"][0]["id"] == answer["rewardActionId"]
    assert {each["id"] for each in answer["ranking"]} == {"news", "sports", "stars"}
    assert sum(each["probability"] for each in answer["ranking"]) == pytest.approx(1.0)


def test_excluded_actions_keep_their_places_and_are_never_chosen(served):
    for number in range(20):
        answer = rank(served, excludedActions=["sports", "never-heard-of"], eventId=f"e{number}")
        assert answer["ranking"][1] == {"id": "sports", "probability": 0.0}
        assert answer["rewardActionId"] == answer["ranking"][0]["id"] != "sports"
    answer = rank(served, excludedActions=["news"])
    assert answer["ranking"][0] == {"id": "news", "probability": 0.0}
    assert answer["ranking"][1]["id"] == answer["rewardActionId"]


def test_the_same_event_is_decided_once(served):
    one = rank(served, eventId="e")
    assert rank(served, eventId="e") == one
    served.restart()
    assert rank(served, eventId="e") == one
    assert len(served.engine.store.page(1, 0, 10)) == 1
    refused = rank(served, 400, eventId="e", contextFeatures=[{"timeOfDay": "Evening"}])
    assert refused["error"] == {"code": "BadRequest", "message": "this id was used for another request"}


def test_without_an_event_id_the_service_gives_one(served):
    one, other = rank(served), rank(served, eventId=None, deferActivation=None, excludedActions=None)
    assert one["eventId"] != other["eventId"]
    reward(served, one["eventId"])
    assert served.sweep(601) is None
    assert outcomes(served) == {"closed": 1, "default": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"actions": []},
        {"actions": [ARTICLES[0], ARTICLES[0]]},
        {"actions": [{"id": "", "features": []}]},
        {"actions": [{"id": "x" * 257, "features": []}]},
        {"actions": [{"id": f"a{k}", "features": []} for k in range(51)]},
        {"actions": [{"id": "a", "features": [{"price": 1e31}]}]},
        {"actions": [{"id": "a", "features": [{str(k): 1 for k in range(201)}]}]},
        {"excludedActions": ["news", "sports", "stars"]},
        {"contextFeatures": [{"a": {"b": [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}}]},
        {"contextFeatures": "morning"},
        {"contextFeatures": [{"huge": 10**400}]},
        {"eventId": "x" * 257},
        {"unknown": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_wrong_is_a_bad_request_and_changes_nothing(served, changes):
    rank(served)
    seq = served.engine.seq
    refused = rank(served, 400, **changes)
    assert refused["error"]["code"] == "BadRequest"
    assert refused["error"]["message"] == refused["detail"] != ""
    assert served.engine.seq == seq


def test_products_of_large_numbers_are_refused_not_infinite(served):
    actions = [{"id": "a", "features": [{"x": 1e30}]}, {"id": "b", "features": []}]
    refused = rank(served, 400, actions=actions, contextFeatures=[{"y": 1e30}])
    assert "at most" in refused["detail"]


# ---------------------------------------------------------------------------------------------- rewards and activation


def test_rewards_are_learnt_at_the_end_of_the_wait_and_the_rest_are_0(served):
    rank(served, eventId="clicked")
    rank(served, eventId="ignored")
    reward(served, "clicked", 0.5)
    reward(served, "clicked", 0.5)
    reward(served, "clicked", 1.0)  # the earliest counts, as Personalizer has it by default
    assert outcomes(served) == {}
    served.sweep(601)
    assert outcomes(served) == {"closed": 1, "default": 1}
    reward(served, "ignored", 1.0)  # too late: no error, and not learnt
    assert outcomes(served) == {"closed": 1, "default": 1, "late": 1}


def test_events_that_were_never_ranked_are_not_found(served):
    for what, body in (("reward", {"value": 1}), ("activate", None)):
        assert event(served, "e", what, body).status_code == 404  # there is no model yet
    rank(served)
    for what, body in (("reward", {"value": 1}), ("activate", None)):
        answer = event(served, "nobody", what, body)
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "ResourceNotFound"


def test_a_deferred_event_counts_once_it_is_activated(served):
    rank(served, eventId="shown", deferActivation=True)
    rank(served, eventId="never", deferActivation=True)
    reward(served, "shown", 1.0)
    assert event(served, "shown", "activate").status_code == 204
    assert event(served, "shown", "activate").status_code == 204
    served.sweep(601)
    assert outcomes(served) == {"closed": 1, "expired": 1}


def test_decisions_of_other_models_are_no_events(served):
    served.model()
    rank(served)
    other = served.decide(defer=True)
    reward(served, other, code=404)
    assert event(served, other, "activate").status_code == 404


def test_an_event_is_found_as_long_as_its_reward_may_come(served):
    settings = {
        "arms": ["news"],
        "features": personalizer.FEATURES,
        "policy": "albatross",
        "users": "shared",
        "rewards": {"wait": "7d"},
    }
    assert served.call("PUT", "/v1/models/personalizer", settings).status_code == 201
    rank(served, eventId="e")
    served.now += 6 * 86_400
    served.engine.store.forget_requests(served.engine.now, 1_000)
    reward(served, "e", 1.0)
    assert outcomes(served) == {"learnt": 1}


def test_bad_rewards_are_bad_requests(served):
    rank(served, eventId="e")
    for body in ({"value": "1"}, {"value": None}, {}, {"value": 1, "x": 1}, {"value": 1e31}):
        answer = event(served, "e", "reward", body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "BadRequest")


def test_event_ids_may_hold_slashes_and_spaces(served):
    rank(served, eventId="a/b c")
    reward(served, "a%2Fb%20c")


def test_more_events_than_one_user_may_have_can_be_open(served, monkeypatch):
    """All users share a bandit, so the bound on what one user leaves open is not theirs."""
    monkeypatch.setattr("albatross.service.model.MOST_OPEN", 5)
    served.model()
    for _ in range(7):
        rank(served)
        served.decide()
    assert outcomes(served) == {}
    assert len(served.engine.models["news"].fold.open) == 5


# ------------------------------------------------------------------------------------------------- model, arms, users


def test_the_model_has_personalizers_defaults(served):
    rank(served)
    shown = served.call("GET", "/v1/models/personalizer").json()["settings"]
    assert (shown["policy"], shown["users"], shown["features"]) == ("albatross", "shared", personalizer.FEATURES)
    assert (shown["rewards"]["wait"], shown["rewards"]["default"], shown["rewards"]["combine"]) == ("10m", 0.0, "first")


def test_actions_come_and_go(served, monkeypatch):
    monkeypatch.setattr(personalizer, "MOST_ARMS", 4)

    def offer(*names):
        return rank(served, actions=[{"id": name, "features": []} for name in names])["rewardActionId"]

    assert offer("a", "b") in "ab"
    assert offer("c", "d") in "cd"
    offer("a", "d")
    assert offer("e") == "e"  # b was not offered for the longest time
    arms = served.engine.models["personalizer"].arms
    assert set(arms) == {"a", "c", "d", "e"}
    served.restart()
    assert offer("b", "f") in "bf"
    assert len(served.engine.models["personalizer"].arms) == 4


def test_actions_of_a_model_whose_arms_pass_become_no_arms(served):
    settings = {
        "arms": "passing",
        "features": personalizer.FEATURES,
        "policy": "linucb(biases=False)",
        "users": "shared",
    }
    assert served.call("PUT", "/v1/models/personalizer", settings).status_code == 201
    for number in range(3):
        actions = [{"id": f"{number}/{each['id']}", "features": each["features"]} for each in ARTICLES]
        answer = rank(served, eventId=f"e{number}", actions=actions)
        assert {each["id"] for each in answer["ranking"]} == {each["id"] for each in actions}
        reward(served, f"e{number}")
    arms = served.call("GET", "/v1/models/personalizer/arms").json()["arms"]
    assert [(arm["arm"], arm["decisions"], arm["rewards"]) for arm in arms] == [("passing", 3, 3)]


def test_with_one_bandit_per_user_the_context_names_the_user(served):
    features = {"hashed": {"kind": "vector", "length": 64, "of": "arm"}}  # the same in more words
    settings = {"arms": ["news"], "features": features, "policy": "linucb", "rewards": {"wait": "10m"}}
    served.call("PUT", "/v1/models/personalizer", settings)
    for user in ("anna", "bob", "anna"):
        rank(served, contextFeatures=[{"user": user}, {"timeOfDay": "Morning"}])
    assert len(served.engine.models["personalizer"].hot) == 2
    assert "'user'" in rank(served, 400)["detail"]


def test_a_model_with_other_features_is_left_alone(served):
    served.model("personalizer")
    assert rank(served, 409)["error"]["code"] == "BadRequest"


def test_an_apprentice_plays_the_first_action_that_is_not_excluded(served):
    settings = {
        "arms": ["news"],
        "features": personalizer.FEATURES,
        "policy": "albatross",
        "users": "shared",
        "mode": "apprentice",
    }
    served.call("PUT", "/v1/models/personalizer", settings)
    answer = rank(served, excludedActions=["news"])
    assert answer["rewardActionId"] == "sports"
    assert [each["probability"] for each in answer["ranking"]] == [0.0, 1.0, 0.0]


def test_parallel_first_calls_make_one_model(served):
    async def many():
        import asyncio

        headers = {"Authorization": f"Bearer {served.key}"}
        bodies = [{"actions": [{"id": f"a{k}", "features": []}, {"id": "b", "features": []}]} for k in range(10)]
        return await asyncio.gather(*(served.http.post(RANK, json=body, headers=headers) for body in bodies))

    assert {answer.status_code for answer in served.run(many())} == {201}
    assert set(served.engine.models) == {"personalizer"}
    assert len(served.engine.models["personalizer"].arms) == 11


def test_it_learns_which_action_suits_which_context(served):
    """The action that earns depends on the context alone: without products of both, half is the best there is."""
    good = {"Morning": "news", "Evening": "stars"}
    rng, hits = np.random.default_rng(0), []
    for number in range(160):
        time_of_day = "Morning" if rng.random() < 0.5 else "Evening"
        answer = rank(served, contextFeatures=[{"timeOfDay": time_of_day}], eventId=f"e{number}")
        hit = answer["rewardActionId"] == good[time_of_day]
        hits.append(hit)
        reward(served, f"e{number}", float(hit))
        served.sweep(601)
    assert np.mean(hits[80:]) > 0.85


# -------------------------------------------------------------------------------------------------------------- keys


def test_the_key_comes_in_personalizers_header_or_as_a_bearer(served):
    own = {"Authorization": "", "Ocp-Apim-Subscription-Key": served.key}
    assert served.call("POST", RANK, ASKED, headers=own).status_code == 201
    assert served.call("GET", "/v1/models", headers=own).status_code == 401  # elsewhere it is nothing
    wrong = served.call("POST", RANK, ASKED, headers={"Ocp-Apim-Subscription-Key": "wrong"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (401, "401")


def test_a_key_needs_the_scope_and_the_model(served):
    keys = {}
    for name, scopes, models in (
        ("a", ["reward"], None),
        ("b", ["decide"], ["news"]),
        ("c", ["decide"], ["personalizer"]),
    ):
        keys[name], row = new_key(name, scopes, models, None, 1e6)
        served.engine.store.add_key(row)
    served.service.keys.read()
    codes = [served.call("POST", RANK, ASKED, key=key).status_code for key in keys.values()]
    assert codes == [403, 403, 201]


# ----------------------------------------------------------------------------------------------------------- features


def hashed(context, features, name="a"):
    return encoded(context, [Action(id=name, features=features)])[0]


def test_features_are_hashed_by_name_whatever_their_order_and_nesting():
    one = hashed([{"a": 1.5, "b": "x"}], [{"n": {"c": True}}])
    other = hashed([{"b": "x"}, {"a": 1.5}], [{"n": {"c": True}}])
    assert np.array_equal(one, other)
    assert np.abs(one).sum() > 0.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (([{"a": "x"}], []), ([{"a": "y"}], [])),
        (([{"a": "x"}], []), ([], [{"a": "x"}])),
        (([], [{"a": True}]), ([], [{"a": False}])),
        (([], [{"a": [1, 2]}]), ([], [{"a": [2, 1]}])),
    ],
)
def test_other_features_are_other_vectors(one, other):
    assert not np.array_equal(hashed(*one), hashed(*other))


def test_numbers_keep_their_value_and_nothing_says_nothing():
    assert np.allclose(hashed([], [{"price": 3.0}]), 3.0 * hashed([], [{"price": 1.0}]))
    assert not hashed([{"a": None}], [{"b": []}]).any()
    assert not encoded([], [Action(id="a")]).any()


def test_products_are_of_the_context_and_the_action():
    both, context, features = [{"t": "am"}], [{"t": "am"}], [{"s": "x"}]
    product = hashed(both, features) - hashed([], features) - hashed(context, [])
    assert np.abs(product).sum() == 1.0  # one context feature and one of the action
    assert not np.array_equal(hashed(context, [], "a"), hashed(context, [], "b"))


def test_hashing_is_as_defined():
    """States and logs hold what was hashed: with another hash they would be worthless."""
    row = hashed([{"timeOfDay": "Morning", "age": 31}], [{"type": "News", "tags": ["a", "b"]}], "news")
    context = {"context:timeOfDay=Morning": 1.0, "context:age": 31.0}
    action = {"action:type=News": 1.0, "action:tags=a": 1.0, "action:tags=b": 1.0}
    slow = [0.0] * 64

    def add(number, value):
        slow[number % 64] += -value if number & 64 else value

    for name, value in (context | action).items():
        add(slow_hash(name), value)
    for name, value in context.items():
        for other, factor in (action | {"id:news": 1.0}).items():
            add(slow_mix(slow_hash(name), slow_hash(other)), value * factor)
    assert row.tolist() == slow


def slow_hash(name):
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def slow_mix(one, other):
    z = (one * 0x9E3779B97F4A7C15 + other) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_too_deep_or_too_many_features_are_refused():
    deep: dict = {}
    for _ in range(30):
        deep = {"x": deep}
    with pytest.raises(Problem, match="nested deeper"):
        hashed([{"x": deep, "y": 1}], [])


def test_the_service_uses_one_thread_of_blas():
    """With several, a rank among hundreds of arms takes fifty times as long on a busy machine."""
    code = "import sys, albatross.service, os; print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"
    bare = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=bare, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "1"]


def test_the_document_describes_the_three_calls():
    paths = json.loads(document())["paths"]
    assert set(paths[RANK]["post"]["responses"]) >= {"201", "400", "401", "403", "404", "413", "415", "429", "503"}
    assert "200" not in paths[RANK]["post"]["responses"]
    given = paths["/personalizer/v1.0/events/{eventId}/reward"]["post"]["responses"]["204"]
    assert not given.get("content")
