"""Arms that pass: articles of the day, which every call brings along, and of which nothing is kept."""

from __future__ import annotations

import base64
import csv
import json

import numpy as np
import pytest
from refolding import refold
from serving_tests import NEWS, Served
from test_maintenance import run

from albatross.datasets.logs import read_log
from albatross.service.exporting import export
from albatross.service.verifying import verify

POLICIES = {"linucb": "linucb(biases=False)", "lints": "lints(biases=False)"}
ARTICLES = {f"article {number}": {"topic": "sport", "age": float(number)} for number in range(4)}


def passing(served, **changes):
    served.model(**{"arms": "passing", "policy": POLICIES["linucb"], **changes})


@pytest.fixture
def news(served):
    passing(served)
    return served


def day(rng, number):
    """The articles of a day: any number, with names of their own."""
    topics = rng.choice(["sport", "politics"], int(rng.integers(1, 6)))
    ages = rng.random(topics.size).round(2)
    return {f"{number}/{row}": {"topic": topic, "age": ages[row]} for row, topic in enumerate(topics.tolist())}


def lived(served, n=60):
    """Users who read some days' articles, and like sport."""
    rng = np.random.default_rng(0)
    for number in range(n):
        articles = day(rng, number)
        slots = int(min(len(articles), 1 + number % 3))
        made = served.rank(f"user {number % 7}", arms=articles, context={"device": "phone"}, slots=slots)["decisions"]
        names = [each["arm"] for each in made]
        assert len(set(names)) == slots
        assert set(names) <= set(articles)
        for each in made[: 1 + number % 2]:
            served.reward(each["id"], float(articles[each["arm"]]["topic"] == "sport"))


def test_a_decision_is_one_of_the_arms_of_the_call(news):
    answer = news.rank(arms=ARTICLES, context={"device": "phone"}, slots=3, explain=True, exclude=["article 2"])
    assert [each["arm"] for each in answer["decisions"]].count("article 2") == 0
    assert {each["arm"] for each in answer["ranking"]} == ARTICLES.keys() - {"article 2"}
    np.testing.assert_allclose([each["propensity"] for each in answer["decisions"]], [0.98 + 0.02 / 3, 0.99, 1.0])
    shown = news.call("GET", f"/v1/decisions/{answer['decisions'][0]['id']}").json()
    assert shown["arm"] == answer["decisions"][0]["arm"]
    assert [row["age"] for row in shown["offer"].values()] == pytest.approx([-1.0, -5 / 6, -0.5])
    other = news.rank(arms={"another day's": {"topic": "politics", "age": 1.0}})["decisions"][0]
    assert (other["arm"], other["propensity"]) == ("another day's", 1.0)


def test_what_is_learnt_is_of_features_whatever_the_arms_are_called(news):
    passing(news, floor=0.0)
    lived(news)
    offer = {"x": {"topic": "politics", "age": 0.5}, "y": {"topic": "sport", "age": 0.5}}
    assert {news.rank(f"user {number}", arms=offer)["decisions"][0]["arm"] for number in range(7)} == {"y"}


def test_encoded_features_are_the_same_as_features(news):
    records = news.rank("anna", arms=ARTICLES)["decisions"][0]
    rows = news.engine.models["news"].features.encode({}, list(ARTICLES.values()))
    text = base64.b64encode(rows.astype("<f4").tobytes()).decode()
    encoded = news.rank("bob", arms=list(ARTICLES), features_b64=text)["decisions"][0]
    offers = [news.call("GET", f"/v1/decisions/{made['id']}").json()["offer"] for made in (records, encoded)]
    assert offers[0] == offers[1]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", ["online", "apprentice"])
def test_the_log_folds_to_the_live_states_bit_for_bit_and_a_restart_goes_on(served, policy, mode, monkeypatch):
    monkeypatch.setattr("albatross.service.snapshots._OLD", 5)
    passing(served, policy=POLICIES[policy], mode=mode, floor=0.2)
    if mode == "online":
        lived(served)
    else:
        for number in range(40):
            answer = served.rank(f"user {number % 3}", arms=ARTICLES, baseline="article 3")
            assert (answer["decisions"][0]["arm"], answer["decisions"][0]["by"]) == ("article 3", "baseline")
            served.reward(answer["decisions"][0]["id"], float(number % 2))
    served.sweep(2 * 3600.0)  # what was not rewarded expires
    live = served.rows()
    folds, compared = refold(served.engine.store)
    (fold,) = folds.values()
    assert compared > 0
    assert {user: fold.bandits.row(user) for user in live} == live
    assert verify(served.engine.store).wrong == []
    served.restart()
    for number in range(7):
        served.call("GET", f"/v1/models/news/users/user {number}")
    assert served.rows() == live
    served.decide(arms=ARTICLES, baseline="article 0")
    assert verify(served.engine.store).wrong == []


def test_a_decision_is_rewarded_after_a_restart_and_answered_again_by_its_id(news):
    first = news.rank(arms=ARTICLES, id="r-1")
    news.restart()
    assert news.rank(arms=ARTICLES, id="r-1") == first
    assert news.reward(first["decisions"][0]["id"]) == (200, "learnt")
    assert news.reward(first["decisions"][0]["id"]) == (200, "duplicate")


@pytest.mark.parametrize("policy", POLICIES)
def test_an_export_can_be_evaluated(tmp_path, policy):
    served, path = Served(tmp_path / "service"), tmp_path / "log.csv"
    passing(served, policy=POLICIES[policy])
    lived(served)
    lines = [json.loads(line) for line in served.call("GET", "/v1/models/news/log").text.splitlines()]
    chosen, offer = {}, {}  # features of the chosen arm, by decision; the last offer
    for line in lines:
        if line["record"] == "decision":
            offer = line["offer"] or offer  # the slots of a request follow each other
            chosen[line["id"]] = list(offer[line["arm"]].values())
    assert export(served.engine.store, "news", path) == len(chosen) > 60
    served.close()
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            place = json.loads(row["eligible"]).index(row["action"])
            assert json.loads(row["contexts"])[place] == chosen[row["decision"]]
    with pytest.warns(UserWarning, match="without a reward"):
        log = read_log(path)
    assert ((log.propensities > 0.0) & (log.propensities <= 1.0)).all()
    assert log.n_actions == 5  # rows, not names: otherwise every day would bring more of them
    code, output = run("evaluate", path, "--policies", "uniform,linucb(biases=False)")
    assert code == 0, output
    assert "linucb(biases=False)" in output


def test_a_batch_an_import_and_a_frozen_model(news):
    requests = [{"user": "anna", "arms": ARTICLES}, {"user": "anna"}]
    answers = news.call("POST", "/v1/models/news/rank/batch", {"requests": requests}).json()["answers"]
    assert answers[0]["answer"]["decisions"][0]["arm"] in ARTICLES
    assert answers[1]["problem"]["at"] == "/arms"
    imported = {"user": "bob", "arm": "old news", "features": {"topic": "sport"}, "reward": 1.0}
    assert news.call("POST", "/v1/models/news/decisions", {"decisions": [imported]}).json() == {"learnt": 1}
    assert news.call("GET", "/v1/models/news/users/bob").json()["estimates"]["decisions"] == 1
    passing(news, mode="frozen")
    assert news.reward(news.decide(arms=ARTICLES)) == (200, "frozen")
    assert verify(news.engine.store).wrong == []


def test_all_arms_are_counted_together(news):
    lived(news)
    (row,) = news.call("GET", "/v1/models/news/arms").json()["arms"]
    assert (row["arm"], row["active"], row["decisions"] > row["rewards"] >= 60) == ("passing", True, True)
    labels = {row["label"] for row in news.call("GET", "/v1/models/news/stats").json()["hours"]}
    assert not any("/" in label for label in labels)
    page = news.call("GET", "/dashboard/news").text
    assert ">passing</td>" in page
    assert "retired" not in page.split('id="arms"')[1]
    assert "passing arms" in news.call("GET", "/dashboard").text


def test_arms_of_a_call_may_be_a_thousand(news):
    many = {f"a{number}": {} for number in range(1_000)}
    assert news.rank(arms=many)["decisions"][0]["arm"] in many
    assert news.call("POST", "/v1/models/news/rank", {"user": "u", "arms": many | {"b": {}}}).status_code == 422


BAD = {
    "no arms": ({}, "/arms", "every rank must bring arms with their features"),
    "names alone": ({"arms": ["a", "b"]}, "/arms", "every rank must bring arms with their features"),
    "none": ({"arms": {}}, "/arms", "no arm is eligible"),
    "all excluded": ({"arms": {"a": {}}, "exclude": ["a"]}, "/arms", "no arm is eligible"),
    "an arm of another call": ({"arms": {"a": {}}, "exclude": ["b"]}, "/exclude", "there is no active arm 'b'"),
    "a list of one twice": ({"arms": ["a", "a"], "features_b64": ""}, "/arms", "arms lists an arm twice"),
    "too few bytes": ({"arms": ["a"], "features_b64": ""}, "/features_b64", "has 0 bytes"),
    "an unknown feature": ({"arms": {"a": {"colour": 1}}}, "/arms/a", "colour"),
    "a name of 300 bytes": ({"arms": {"ä" * 150: {}}}, "/arms", "at most 256 bytes"),
    "a control character": ({"arms": {"a\n": {}}}, "/arms", "a name must have no control characters"),
    "too many slots": ({"arms": {"a": {}}, "slots": 2}, "/slots", "as many eligible arms"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_requests_are_refused_and_change_nothing(news, case):
    body, at, words = BAD[case]
    news.decide(arms=ARTICLES)
    before, last = news.rows(), news.engine.store.last()
    answer = news.call("POST", "/v1/models/news/rank", {"user": "anna", **body})
    assert (answer.status_code, answer.json()["at"]) == (422, at), answer.text
    assert words in answer.json()["detail"]
    assert (news.rows(), news.engine.store.last()) == (before, last)


def test_nothing_can_be_added_or_retired(news):
    for method, body in (("PUT", {}), ("DELETE", None)):
        answer = news.call(method, "/v1/models/news/arms/a", body)
        assert (answer.status_code, "the arms of this model pass" in answer.json()["detail"]) == (422, True)
    answer = news.call(
        "PUT", "/v1/models/news", {**news.call("GET", "/v1/models/news").json()["settings"], "arms": ["a"]}
    )
    assert (answer.status_code, answer.json()["at"]) == (422, "/arms")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"policy": "flock"}, 'needs a policy without biases, such as "albatross(biases=False)", not "flock"'),
        ({"policy": "linucb"}, "rows that pass have no bias: give a policy like LinUCB(biases=False), not LinUCB"),
        ({"policy": "ucb"}, "rows that pass have no bias"),
        ({"arms": "all"}, "Invalid enum value 'all'"),
    ],
)
def test_a_model_needs_a_policy_without_biases(served, changes, words):
    answer = served.call("PUT", "/v1/models/news", {**NEWS, "arms": "passing", "policy": POLICIES["linucb"], **changes})
    assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text
