"""What callers send, and what they get: decisions, features, arms, modes, keys, and what is refused."""

from __future__ import annotations

import base64
import json
import time

import numpy as np
import pytest
from serving_tests import NEWS

from albatross.service.bandits import Bandits
from albatross.service.keys import new_key

RANK = "/v1/models/news/rank"
ARTICLES = {"anzeiger": {"topic": "sport", "age": 2.0}, "bote": {"topic": "politics", "age": 1.0}}


@pytest.fixture
def news(served):
    served.model()
    return served


def test_a_decision_has_an_arm_a_propensity_and_an_id(news):
    answer = news.rank(arms=ARTICLES, context={"device": "phone"})
    (made,) = answer["decisions"]
    assert made["arm"] in ARTICLES
    assert made["propensity"] in (0.99, 0.01)
    assert (made["by"], made["slot"], answer["new_user"], answer["model_version"]) == ("policy", 0, True, 1)
    assert not news.rank(arms=ARTICLES)["new_user"]


def test_the_same_id_and_body_give_the_same_decision(news):
    one = news.rank(id="r1", arms=ARTICLES)
    assert news.rank(id="r1", arms=ARTICLES) == one
    news.restart()
    assert news.rank(id="r1", arms=ARTICLES) == one
    answer = news.call("POST", RANK, {"user": "bob", "id": "r1"})
    assert (answer.status_code, answer.json()["at"]) == (422, "/id")


def test_an_id_is_forgotten_after_a_day(news):
    one = news.rank(id="r1")
    news.now += 86_401
    assert news.rank(id="r1") != one


def test_parallel_requests_of_one_id_are_one_decision(news):
    async def many():
        import asyncio

        headers = {"Authorization": f"Bearer {news.key}"}
        body = {"user": "anna", "id": "same"}
        return await asyncio.gather(*(news.http.post(RANK, json=body, headers=headers) for _ in range(50)))

    answers = news.run(many())
    assert {answer.text for answer in answers} == {answers[0].text}
    assert len(news.engine.models["news"].fold.open) == 1


def test_slots_are_different_arms_with_propensities_given_those_above(news):
    made = news.rank(slots=3)["decisions"]
    assert sorted(each["arm"] for each in made) == NEWS["arms"]
    assert [each["slot"] for each in made] == [0, 1, 2]
    assert made[2]["propensity"] == 1.0
    assert [news.reward(each["id"], 1.0)[1] for each in made] == 3 * ["learnt"]


def test_encoded_features_are_the_same_as_features(news):
    features = news.engine.models["news"].features
    rows = features.encode({"device": "phone"}, list(ARTICLES.values())).astype("<f4")
    coded = base64.b64encode(rows.tobytes()).decode()
    one = news.rank("one", arms=list(ARTICLES), features_b64=coded)
    other = news.rank("two", arms=ARTICLES, context={"device": "phone"})
    shown = [news.call("GET", f"/v1/decisions/{each['decisions'][0]['id']}").json()["offer"] for each in (one, other)]
    assert shown[0] == shown[1]


def test_registered_features_are_used_where_none_are_given(news):
    news.call("PUT", "/v1/models/news/arms/dorfblatt", {"features": {"topic": "sport", "age": 12.0}})
    made = news.decide(arms=["dorfblatt"])
    assert news.call("GET", f"/v1/decisions/{made}").json()["offer"]["dorfblatt"]["age"] == 1.0


def test_an_explanation_names_features(news):
    for number in range(30):
        made = news.rank(arms=ARTICLES)["decisions"][0]
        news.reward(made["id"], float(made["arm"] == "anzeiger") + 0.1 * (number % 3))
    ranking = news.rank(arms=ARTICLES, explain=True)["ranking"]
    assert [each["arm"] for each in ranking] == ["anzeiger", "bote"]
    assert {name for name, _ in ranking[0]["top"]} <= {*news.engine.models["news"].features.names, "bias"}


def test_a_batch_is_answered_one_by_one(news):
    requests = [{"user": "anna"}, {"user": ""}, {"user": "bob", "arms": ["nobody"]}, 7]
    answers = news.call("POST", f"{RANK}/batch", {"requests": requests}).json()["answers"]
    assert [list(each) for each in answers] == [["answer"], ["problem"], ["problem"], ["problem"]]
    assert answers[1]["problem"]["at"] == "/requests/1/user"


def test_decisions_of_others_are_learnt(news):
    items = [
        {"user": "anna", "arm": "bote", "features": {"topic": "sport", "age": 1.0}, "reward": 1.0, "propensity": 0.5},
        {"user": "bob", "arm": "anzeiger", "reward": 0.0},
    ]
    assert news.call("POST", "/v1/models/news/decisions", {"decisions": items}).json() == {"learnt": 2}
    assert not news.rank("anna")["new_user"]


# ----------------------------------------------------------------------------------------------------- models and arms


def test_a_model_is_shown_changed_by_version_and_archived(news):
    shown = news.call("GET", "/v1/models/news")
    assert shown.json()["settings"]["floor"] == 0.02
    changed = {**NEWS, "floor": 0.5}
    assert news.call("PUT", "/v1/models/news", changed, headers={"If-Match": '"7"'}).status_code == 412
    answer = news.call("PUT", "/v1/models/news", changed, headers={"If-Match": shown.headers["etag"]})
    assert (answer.status_code, answer.json()["version"]) == (200, 2)
    assert news.rank()["decisions"][0]["propensity"] in (0.5 + 0.5 / 3, 0.5 / 3)
    assert news.call("PUT", "/v1/models/news", {**NEWS, "policy": "lints"}).json()["at"] == "/policy"
    assert news.call("DELETE", "/v1/models/news").json()["archived"]
    assert news.call("POST", RANK, {"user": "anna"}).status_code == 404
    news.restart()
    assert news.call("GET", "/v1/models").json() == {"models": []}
    assert news.call("GET", "/v1/models/news").json()["archived"]
    assert len(news.call("GET", "/v1/models/news/log").text.splitlines()) == 1
    assert len(news.call("GET", "/v1/models/news/users/anna/log").text.splitlines()) == 1
    assert news.call("DELETE", "/v1/models/news/users/anna").json() == {"erased": 1}


def test_a_model_is_compiled_with_a_few_of_its_arms(served, monkeypatch):
    rehearsed = []
    monkeypatch.setattr(Bandits, "rehearse", lambda bandits: rehearsed.append(bandits.arms))
    served.model(arms=[f"a{number}" for number in range(50)])
    served.model("daily", arms="passing", policy="linucb(biases=False)")
    assert rehearsed == [["a0", "a1", "a2"], []]


def test_the_order_of_features_cannot_change(news):
    shown = news.call("GET", "/v1/models/news").json()
    features = dict(reversed(NEWS["features"].items()))
    refused = news.call("PUT", "/v1/models/news", {**NEWS, "floor": 0.5, "features": features})
    assert (refused.status_code, refused.json()["at"]) == (422, "/features")
    assert refused.json()["detail"].endswith("those of this model are topic, age, device")
    assert news.call("GET", "/v1/models/news").json() == shown


def test_arms_come_and_go_while_decisions_are_open(news):
    open_one = news.decide(arms=["bote"])
    assert news.call("PUT", "/v1/models/news/arms/dorfblatt", {}).status_code == 201
    assert news.call("PUT", "/v1/models/news/arms/dorfblatt", {}).status_code == 200
    assert news.call("DELETE", "/v1/models/news/arms/bote").status_code == 200
    assert news.call("DELETE", "/v1/models/news/arms/bote").status_code == 404
    assert news.call("POST", RANK, {"user": "anna", "arms": ["bote"]}).status_code == 422
    assert {each["arm"] for each in news.rank(slots=3)["decisions"]} == {"anzeiger", "chronik", "dorfblatt"}
    assert news.reward(open_one) == (200, "learnt")
    news.restart()
    listed = news.call("GET", "/v1/models/news/arms").json()["arms"]
    assert {each["arm"]: each["active"] for each in listed} == {
        "anzeiger": True,
        "chronik": True,
        "dorfblatt": True,
        "bote": False,
    }


def test_a_slot_is_used_again_once_all_decisions_of_its_arm_have_ended(news):
    bandits, open_one = news.engine.models["news"].bandits, news.decide(arms=["bote"])
    news.call("DELETE", "/v1/models/news/arms/bote")
    news.call("PUT", "/v1/models/news/arms/early", {})
    assert bandits.n_slots == 4
    assert news.reward(open_one) == (200, "learnt")
    news.call("PUT", "/v1/models/news/arms/later", {})
    assert (bandits.n_slots, bandits.slot("later")) == (4, 1)


def test_a_policy_whose_arms_cannot_change_says_so_and_no_number_is_lost(served):
    served.model(policy="successive-rejects", horizon=100)
    seq = served.engine.seq
    answer = served.call("PUT", "/v1/models/news/arms/new", {})
    assert answer.status_code == 422, answer.text
    assert served.engine.seq == seq


def test_an_apprentice_plays_the_baseline_and_learns_from_it(served):
    served.model(mode="apprentice")
    assert served.call("POST", RANK, {"user": "anna"}).json()["at"] == "/baseline"
    (made,) = served.rank(baseline="chronik")["decisions"]
    assert (made["arm"], made["by"]) == ("chronik", "baseline")
    assert served.reward(made["id"]) == (200, "learnt")


def test_users_may_share_one_bandit(served):
    served.model(users="shared")
    served.reward(served.decide("anna"))
    assert not served.rank("bob")["new_user"]


# ----------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("body", "status", "at"),
    [
        ("{", 400, ""),
        ("[1,", 400, ""),
        (b'{"user": "\xff"}', 400, ""),
        ("[]", 422, ""),
        ("{}", 422, ""),
        ('{"user": 7}', 422, "/user"),
        ('{"user": ""}', 422, "/user"),
        (json.dumps({"user": 257 * "a"}), 422, "/user"),
        (json.dumps({"user": 200 * "é"}), 422, "/user"),
        (json.dumps({"user": "a\nb"}), 422, "/user"),
        (json.dumps({"user": "a\n"}), 422, "/user"),
        ('{"user": "a", "user": "b"}', 422, ""),
        ('{"user": "a", "arms": {"bote": {}, "bote": {}}}', 422, ""),
        ('{"user": "a", "surprise": 1}', 422, ""),
        ('{"user": "a", "arms": ["nobody"]}', 422, "/arms"),
        ('{"user": "a", "arms": ["bote", "bote"]}', 422, "/arms"),
        ('{"user": "a", "arms": []}', 422, "/arms"),
        (json.dumps({"user": "a", "arms": {"bote\u0007": {}}}), 422, "/arms"),
        ('{"user": "a", "exclude": ["anzeiger", "bote", "chronik"]}', 422, "/arms"),
        ('{"user": "a", "exclude": ["nobody"]}', 422, "/exclude"),
        ('{"user": "a", "slots": 0}', 422, "/slots"),
        ('{"user": "a", "slots": 4}', 422, "/slots"),
        ('{"user": "a", "arms": {"bote": {"age": "1"}}}', 422, "/arms/bote"),
        ('{"user": "a", "arms": {"bote": {"age": true}}}', 422, "/arms/bote"),
        ('{"user": "a", "arms": {"bote": {"age": NaN}}}', 422, "/arms/bote/age"),
        ('{"user": "a", "arms": {"bote": {"age": 1e999}}}', 422, "/arms/bote/age"),
        ('{"user": "a", "arms": {"bote": {"age": ' + 5_000 * "9" + "}}}", 422, "/arms/bote/age"),
        ('{"user": "a", "arms": {"bote": {"age": 1e40}}}', 422, "/arms/bote"),
        ('{"user": "a", "arms": {"bote": {"topic": "chess"}}}', 422, "/arms/bote"),
        ('{"user": "a", "arms": {"bote": {"size": 1}}}', 422, "/arms/bote"),
        ('{"user": "a", "arms": {"anzeiger": {"age": 1}, "bote": {"age": [1]}}}', 422, "/arms/bote"),
        ('{"user": "a", "context": {"topic": "sport"}}', 422, "/context"),
        ('{"user": "a", "context": {"device": "watch"}, "arms": {"bote": {}}}', 422, "/context"),
        ('{"user": "a", "context": {"x/y~": [1, -Infinity]}}', 422, "/context/x~1y~0/1"),
        ('{"user": "a", "context": {"device": NaN}', 400, ""),
        ('{"user": "a", "arms": ["bote"], "features_b64": "AAAA"}', 422, "/features_b64"),
        ('{"user": "a", "arms": ["bote"], "features_b64": "!"}', 422, "/features_b64"),
        ('{"user": "a", "features_b64": "AAAA"}', 422, "/features_b64"),
    ],
)
def test_a_bad_request_is_refused_and_changes_nothing(news, body, status, at):
    before = news.engine.seq
    answer = news.call("POST", RANK, headers={"Content-Type": "application/json"}, content=body)
    assert (answer.status_code, answer.json().get("at", "")) == (status, at), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]
    assert (news.engine.seq, news.rows()) == (before, {})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"arms": []}, "at least one arm"),
        ({"arms": ["a", "a"]}, "twice"),
        ({"policy": "no-such"}, "there is no policy"),
        ({"policy": "ball-oful"}, "unit ball"),
        ({"features": {}}, "at least one feature"),
        ({"features": {"x": {"kind": "vector", "length": 600}}}, "at most 512"),
        ({"rewards": {"wait": "0s"}}, "wait"),
        ({"rewards": {"wait": "1 day"}}, "a duration is a whole number with a unit, such as 90s"),
        ({"arms": ["a\n"]}, "a name must have no control characters"),
        ({"rewards": {"low": 2.0, "high": 1.0}}, "low"),
        ({"rewards": {"learn": "at_once", "default": 0.0}}, "at_once"),
        ({"users": "shared", "policy": "flock"}, "shared"),
        ({"floor": 1.0}, "1.0"),
        ({"policy": "my_file.py:Mine"}, "there is no policy"),
        ({"policy": "alb-dim-finite(dims=(2, 5))", "arms": ["a"]}, "n_arms must be at least 2"),
    ],
)
def test_a_bad_model_is_refused_in_words(served, settings, words):
    answer = served.call("PUT", "/v1/models/news", {**NEWS, **settings})
    assert answer.status_code == 422
    assert words in answer.json()["detail"]
    assert served.engine.models == {}


def test_wrong_types_sizes_and_paths_are_refused(news):
    assert news.call("POST", RANK, content=b"{}").status_code == 415
    large = json.dumps({"user": "a", "id": 2**20 * "x"})
    assert news.call("POST", RANK, headers={"Content-Type": "application/json"}, content=large).status_code == 413
    assert news.call("GET", "/nothing").status_code == 404
    for method, path, allowed in (("DELETE", "/v1/models", {"GET", "HEAD"}), ("GET", RANK, {"POST"})):
        answer = news.call(method, path)
        assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (405, allowed)
    assert news.call("PUT", "/v1/models/news/arms/x", {"features": {"age": "old"}}).json()["at"] == "/features"
    imported = {"decisions": [{"user": "a", "arm": "bote", "features": {"age": "old"}, "reward": 1}]}
    assert news.call("POST", "/v1/models/news/decisions", imported).json()["at"] == "/decisions/0/features"
    assert news.call("POST", "/v1/models/none/rank", {"user": "a"}).status_code == 404
    assert news.call("PUT", "/v1/models/No Name", NEWS).status_code == 422


# ---------------------------------------------------------------------------------------------------------------- keys


def added(news, **changes):
    given = {"name": "k", "scopes": ["decide"], "models": None, "expires": None, "rate": 1_000.0, **changes}
    text, row = new_key(**given)
    news.engine.store.add_key(row)
    news.service.keys.read()
    return text


def test_keys_open_what_their_scope_and_model_say(news):
    key = added(news)
    assert news.call("POST", RANK, {"user": "anna"}, key=key).status_code == 200
    assert news.call("GET", "/v1/models/news", key=key).status_code == 403
    other = added(news, name="other", models=["shop"])
    assert news.call("POST", RANK, {"user": "anna"}, key=other).status_code == 403
    reader = added(news, name="reader", scopes=["read"], models=["shop"])
    assert news.call("GET", "/metrics", key=reader).status_code == 403  # they name all models
    for wrong in ("", "alb_wrong", key[:-1]):
        assert news.call("POST", RANK, {"user": "anna"}, key=wrong).status_code == 401


def test_expired_and_revoked_keys_are_refused(news):
    expired = added(news, expires=int(time.time()) - 1)
    assert news.call("POST", RANK, {"user": "anna"}, key=expired).status_code == 401
    revoked = added(news, name="revoked")
    news.engine.store.revoke_key("revoked")
    news.service.keys.read()
    assert news.call("POST", RANK, {"user": "anna"}, key=revoked).status_code == 401


def test_a_key_that_asks_too_often_must_wait(news):
    key = added(news, rate=2.0)
    codes = [news.call("POST", RANK, {"user": "anna"}, key=key) for _ in range(4)]
    assert [answer.status_code for answer in codes[:2]] == [200, 200]
    assert codes[-1].status_code == 429
    assert int(codes[-1].headers["retry-after"]) >= 1


def test_a_browser_may_send_the_key_as_a_password(news):
    basic = base64.b64encode(f":{news.key}".encode()).decode()
    assert news.call("GET", "/v1/models", headers={"Authorization": f"Basic {basic}"}).status_code == 200


def test_health_needs_no_key_and_metrics_do(news):
    assert news.call("GET", "/healthz", key="").status_code == 200
    assert news.call("GET", "/readyz", key="").status_code == 200
    assert news.call("GET", "/metrics", key="").status_code == 401
    news.model(floor=0.0)
    news.decide()
    assert 'albatross_decisions_total{by="policy",model="news"} 1.0' in news.call("GET", "/metrics").text


# --------------------------------------------------------------------------------------------------------- users, log


def test_a_user_is_shown_and_erased_everywhere_in_the_file(news):
    decision = news.decide("anna", arms={"bote": {"age": 1234.5}}, id="secret-request")
    news.reward(decision, 0.123456789)
    news.reward(news.decide("bob", arms=["bote"]), 0.5)  # sums over all users stay
    others = news.engine.identity.user(1, "bob")
    row = news.rows()[others]
    assert not news.call("GET", "/v1/models/news/users/anna").json()["new_user"]
    lines = news.call("GET", "/v1/models/news/users/anna/log").text.splitlines()
    assert [json.loads(line)["record"] for line in lines] == ["decision", "outcome"]
    digest = news.engine.identity.user(1, "anna")
    assert news.call("DELETE", "/v1/users/anna").json() == {"erased": 2}
    assert news.call("GET", "/v1/models/news/users/anna").json()["new_user"]
    assert news.rows() == {others: row}
    news.stop()
    action = np.float32((1234.5 - 6.0) / 6.0).tobytes()
    for path in news.folder.iterdir():
        data = path.read_bytes()
        assert digest not in data
        assert action not in data
        assert np.float64(0.123456789).tobytes()[::-1] not in data  # as SQLite stores it
    news.start()


def test_the_log_is_exported_in_pages_that_can_be_resumed(news, monkeypatch):
    monkeypatch.setattr("albatross.service.endpoints._PAGE", 3)
    ids = [news.decide(f"user {n}") for n in range(5)]
    for each in ids[:2]:
        news.reward(each, 1.0)
    lines = [json.loads(line) for line in news.call("GET", "/v1/models/news/log").text.splitlines()]
    assert [line["record"] for line in lines] == 5 * ["decision"] + 2 * ["outcome"]
    rest = news.call("GET", f"/v1/models/news/log?after={lines[3]['seq']}").text.splitlines()
    assert [json.loads(line) for line in rest] == lines[4:]
    assert news.call("GET", "/v1/models/news/log?after=x").status_code == 422


def test_keys_of_other_models_find_no_decisions_and_erase_nobody(news):
    news.model("shop")
    decision = news.decide("anna", defer=True)
    other = added(news, models=["shop"], scopes=["reward", "erase", "read"])
    own = added(news, name="own", models=["news"], scopes=["reward", "erase", "read"])
    path = f"/v1/decisions/{decision}"
    assert news.call("POST", f"{path}/activate", key=other).status_code == 404
    assert news.call("POST", f"{path}/reward", {"value": 1.0}, key=other).status_code == 404
    assert news.call("DELETE", "/v1/users/anna", key=other).json() == {"erased": 0}
    assert news.call("GET", path).json()["outcomes"] == []
    assert news.call("POST", f"{path}/activate", key=own).status_code == 200
    assert news.call("POST", f"{path}/reward", {"value": 1.0}, key=own).json()["status"] == "learnt"
    assert news.call("DELETE", "/v1/users/anna", key=own).json() == {"erased": 3}


@pytest.mark.parametrize("version", ["\u00b2", "1" * 5_000, "-1", "x"])
def test_a_version_that_is_no_number_is_refused(news, version):
    headers = {"If-Match": version.encode("latin-1")}
    assert news.call("PUT", "/v1/models/news", NEWS, headers=headers).status_code == 412


def test_a_version_of_a_model_that_is_not_there_is_refused(news):
    assert news.call("PUT", "/v1/models/shop", NEWS, headers={"If-Match": '"1"'}).status_code == 412
    assert news.call("GET", "/v1/models/shop").status_code == 404


def test_first_arms_must_have_features_of_the_model(news):
    wrong = {**NEWS, "arms": {"anzeiger": {"topics": "sport"}}}
    assert news.call("PUT", "/v1/models/shop", wrong).status_code == 422
    assert news.call("PUT", "/v1/models/shop", {**NEWS, "arms": ["\u00e9" * 200]}).status_code == 422
