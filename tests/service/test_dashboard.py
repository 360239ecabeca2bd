"""The dashboard: what it says is what happened, and it is safe and legible in a real browser."""

from __future__ import annotations

import asyncio
import html
import os
import re
import shutil
from types import SimpleNamespace

import pytest
import uvicorn
from serving_tests import Served

from albatross.service.dashboard import charts, facts
from albatross.service.dashboard.facts import Cell, Facts
from albatross.service.dashboard.warnings import warnings
from albatross.service.keys import new_key
from albatross.service.settings import ModelSettings, RewardRules

pytestmark = pytest.mark.xdist_group("service")

HOSTILE = '<script>window.hacked=1</script>"><img src=x onerror=window.hacked=1>'
LONG = "w" * 200
NEWS = "/dashboard/news"


def page(served, path=NEWS, **options):
    answer = served.call("GET", path, **options)
    assert answer.status_code == 200, answer.text
    return answer


def text_of(answer):
    """The text of a page, without its style sheet and tags."""
    body = re.sub(r"<style>.*?</style>", "", answer.text, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def fill(served, n=60, **model):
    """Decide n times for 12 users, and reward most decisions; return the rewards by arm."""
    served.model(**model)
    brought: dict[str, list[float]] = {}
    for number in range(n):
        served.now += 600.0
        arms = {
            "anzeiger": {"topic": "sport", "age": 30.0},
            "bote": {"topic": "politics"},
            "chronik": {"topic": "sport", "age": 2.0},
        }
        answer = served.rank(f"u{number % 12}", context={"device": "phone"}, arms=arms)
        made = answer["decisions"][0]
        if number % 5:
            served.now += 30.0
            value = float(number % 2)
            served.reward(made["id"], value)
            brought.setdefault(made["arm"], []).append(value)
    return brought


# ------------------------------------------------------------------------------------------------------ what it says


def test_the_page_says_what_happened(served):
    brought = fill(served)
    rewards = [value for values in brought.values() for value in values]
    said = text_of(page(served))
    assert "60 decisions" in said
    assert f"{len(rewards)} rewards learnt" in said
    assert "12 new users" in said
    for arm, values in brought.items():
        mean = charts.shown(sum(values) / len(values))
        assert re.search(rf"{arm} \d+ {re.escape(mean)} ", said), (arm, mean)
    assert f"up to 1 min {len(rewards)} " in said
    assert "learnt when the reward came 48" in said
    assert re.search(r"age arm 33 % \+1\.\d\d", said)  # 30 and 2 hours, where 6 was declared; one arm in three has none


def test_outcomes_that_end_with_the_wait_are_shown(served):
    fill(served)
    late = served.decide()
    served.sweep(3_601)
    served.reward(late)
    said = text_of(page(served))
    assert "expired without a reward 13" in said
    assert "reward came late 1" in said


def test_floor_plays_are_told_from_the_policys(served):
    fill(served, n=80, floor=0.5)
    served.now += 60.0
    counts = {row[1]: row for row in served.engine.store.tallies_by_hour(1, 0)}
    assert {"reward:policy", "reward:floor"} <= counts.keys()
    found = facts.gathered(served.engine.store, served.engine.models["news"], [], int(1_000 * served.now), None)
    cells = found.rewards
    assert cells["policy"].n + cells["floor"].n == found.outcomes["learnt"]
    assert set(found.series) == {"policy", "floor"}
    assert found.effective is not None
    assert found.decisions["floor"] < found.effective < found.n_decisions


def test_a_restart_keeps_the_counts_and_who_decided(served):
    fill(served, floor=0.5)
    pending = served.decide()
    served.restart()
    served.reward(pending, 1.0)
    assert "61 decisions" in text_of(page(served))


def test_after_a_restart_a_flock_does_not_say_that_nothing_is_learnt(served):
    fill(served, policy="flock", n=80)
    served.run(asyncio.sleep(0.5))  # for the look
    before = served.engine.models["news"].bandits.population()
    served.restart()
    after = served.engine.models["news"].bandits.population()
    assert before.looks > 0
    assert (after.looks, after.users, after.rewards) == (before.looks, before.users, before.rewards)
    assert "Nothing is learnt of the population yet" not in text_of(page(served))


def test_users_of_a_flock_are_shown_by_norm_without_names(served):
    fill(served, policy="flock", n=80)
    answer = page(served)
    said = text_of(answer)
    assert "12 of 12 in memory" in said
    assert "outlet readers, for whom the arm counts" in said
    assert "Nothing is learnt of the population yet" not in said
    users = served.engine.models["news"].hot
    assert not any(user.hex() in answer.text for user in users)
    assert "u1" not in re.findall(r"\bu\d+\b", said)


def test_before_the_first_look_no_kinds_of_users_are_drawn(served):
    fill(served, policy="flock", n=4)
    assert served.engine.models["news"].bandits.population().looks == 0
    said = text_of(page(served))
    assert "Kinds of users are not known before the first look" in said
    assert "in memory. The population has learnt" not in said
    assert "1 open decisions in memory" in said


def test_a_number_that_never_came_has_no_mean(served):
    served.model()
    served.decide()
    said = text_of(page(served))
    assert "age arm 100 % n/a n/a" in said


def test_points_of_the_same_hour_stand_side_by_side():
    one = [charts.Point(0.5, 0.3, 0.1, 20)]
    drawn = charts.lines({"policy": one, "floor": one}, first=0.0, last=1.0, label="")
    places = re.findall(r'<circle.*?cx="([\d.]+)"', drawn)
    assert len(places) == 2
    assert abs(float(places[0]) - float(places[1])) > 10


def test_at_most_some_hundred_users_are_looked_at(served, monkeypatch):
    monkeypatch.setattr("albatross.service.dashboard.page.MOST_USERS", 5)
    fill(served, policy="flock", n=30)
    assert "4 of 12 in memory" in text_of(page(served))  # every third


def test_a_fresh_model_says_what_to_do_and_shows_no_key(served):
    served.model()
    answer = page(served)
    said = text_of(answer)
    assert "No decision in the last 14 days" in said
    assert "curl -s http://service/v1/models/news/rank" in said
    assert served.key not in answer.text
    assert "$KEY" in said


def test_the_line_that_a_fresh_model_shows_works(served):
    served.model(arms=["it's", "b"])
    said = html.unescape(re.search(r"<pre>(.*?)</pre>", page(served).text, re.S)[1])
    import json
    import shlex

    words = shlex.split(said)
    content = json.loads(words[words.index("-d") + 1])
    assert set(content["arms"]) == {"it's", "b"}
    assert served.call("POST", "/v1/models/news/rank", content).status_code == 200


def test_decisions_without_rewards_say_how_to_send_one(served):
    served.model()
    served.decide()
    assert "/v1/decisions/$ID/reward" in text_of(page(served))


def test_without_a_model_the_list_says_how_to_make_one(served):
    assert "There is no model yet" in text_of(page(served, "/dashboard"))


def test_an_arm_that_is_added_without_features_misses_none(served):
    fill(served, n=5)
    served.call("PUT", "/v1/models/news/arms/dienst", {})
    found = facts.gathered(served.engine.store, served.engine.models["news"], [], int(1_000 * served.now), None)
    assert {row.name: row.missing for row in found.features} == {"topic": 0, "age": 5, "device": 0}
    assert "dienst" in found.never_played


def test_the_policy_of_a_shared_bandit_warns_of_no_slots(served):
    fill(served, n=25, users="shared", policy="albatross", arms=["anzeiger", "bote", "chronik", "dienst"])
    said = text_of(page(served))
    assert "1 of 4 active arms were not played in 14 days: dienst." in said
    assert "were never played" not in said
    assert "All users share one bandit." in said


@pytest.mark.parametrize("changes", [{"users": "shared"}, {"mode": "frozen"}, {"floor": 0.0}, {"policy": "lints"}])
def test_other_kinds_of_models_have_a_page(served, changes):
    fill(served, n=25, **changes)
    assert "25 decisions" in text_of(page(served))


def test_an_apprentice_says_how_often_it_agrees(served):
    served.model(mode="apprentice")
    for _ in range(4):
        served.reward(served.decide(baseline="bote"), 1.0)
    assert "agree with the baseline" in text_of(page(served))


# --------------------------------------------------------------------------------------------------------- warnings


def told(**changes):
    """Facts of a model with 100 decisions and varied rewards, but for the changes."""
    settings = changes.pop("settings", ModelSettings(arms=["a", "b"], features={}))
    model = SimpleNamespace(settings=settings, arms={"a": {}, "b": {}}, seen=SimpleNamespace(requests=100))
    found = Facts(model)
    found.decisions = {"policy": 100}
    found.rewards = {"policy": Cell(60, 30.0, 30.0)}
    found.outcomes = {"learnt": 60}
    found.arms = [facts.ArmRow(name, True, 50, 0.5, Cell()) for name in "ab"]
    for name, value in changes.items():
        setattr(found, name, value)
    return warnings(found)


def test_an_ordinary_model_has_no_warnings():
    assert told() == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"own_warnings": ["The population rests on 3 users."]}, "The population rests on 3 users."),
        ({"rewards": {}, "outcomes": {}}, "No reward of 100 decisions"),
        ({"rewards": {"policy": Cell(60, 60.0, 60.0)}}, "All 60 rewards were 1: nothing can be learnt"),
        ({"rewards": {"policy": Cell(60, 6.0, 0.6)}}, "All 60 rewards were 0.1: nothing can be learnt"),
        ({"outcomes": {"learnt": 60, "late": 20}}, "25 % of the rewards came after the wait of 24h"),
        ({"outcomes": {"learnt": 10, "expired": 40}}, "80 % of the decisions expired"),
        ({"arms": [facts.ArmRow("c", True, 0, 0.0, Cell())]}, "1 of 2 active arms were not played in 14 days: c."),
        (
            {"rewards": {"policy": Cell(60, 30.0, 30.0), "floor": Cell(60, 54.0, 54.0)}},
            "Random arms earn more than the policy, 0.9 against 0.5",
        ),
        ({"features": [facts.FeatureRow("age", "arm", 90, 0.9, 0.0, 1.0)]}, "age is missing in 90 % of the offers"),
        (
            {"features": [facts.FeatureRow("age", "arm", 0, 0.0, -2.0, 1.0)]},
            "age is 2 declared standard deviations below",
        ),
        ({"features": [facts.FeatureRow("age", "arm", 0, 0.0, 0.0, 5.0)]}, "age spreads 5 times as wide"),
        ({"settings": ModelSettings(arms=["a", "b"], features={}, floor=0.0)}, "The floor is 0"),
        ({"settings": ModelSettings(arms=["a", "b"], features={}, mode="frozen")}, "The model is frozen"),
    ],
)
def test_warnings_say_what_to_look_at(changes, said):
    assert [sentence for sentence in told(**changes) if sentence.startswith(said)], told(**changes)


def test_with_a_default_reward_nobody_is_told_to_set_one():
    rules = RewardRules(default=0.0)
    settings = ModelSettings(arms=["a", "b"], features={}, rewards=rules)
    (sentence,) = told(settings=settings, rewards={"policy": Cell(60, 0.0, 0.0)})
    assert "default" not in sentence


# ------------------------------------------------------------------------------------------------------------ charts


def test_points_of_few_rewards_are_merged():
    hours = {hour: Cell(5, 5.0, 5.0) for hour in range(10)}
    points = facts._points(hours, span=10)
    assert [point.n for point in points] == [20, 30]  # the last ten are too few for a point of their own
    assert [point.hour for point in points] == [2.0, 7.0]
    many = facts._points({hour: Cell(50, 25.0, 25.0) for hour in range(200)}, span=200)
    assert len(many) <= 60
    assert sum(point.n for point in many) == 10_000


def test_charts_escape_what_they_are_given():
    drawn = charts.lines({"policy": [charts.Point(1.0, 0.5, 0.1, 3)]}, first=0.0, last=2.0, label=HOSTILE) + charts.tag(
        "text", HOSTILE
    )
    assert "<script" not in drawn
    assert "<img" not in drawn


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.0), (1e-9, 2e-9), (-5.0, 12.0), (1e30, 1e30), (0.0, 1e30)])
def test_ticks_span_what_is_drawn(low, high):
    ticks = charts.nice_ticks(low, high)
    assert ticks[0] <= low <= high <= ticks[-1]
    assert 2 <= len(ticks) <= 8
    assert ticks == sorted(set(ticks))


# ------------------------------------------------------------------------------------------------------ keys and HTTP


def test_a_page_needs_a_key_of_its_model(served):
    served.model()
    served.model("other")
    text, row = new_key("news", ["read"], ["news"], None, 1e6)
    served.engine.store.add_key(row)
    deaf, row = new_key("deaf", ["decide"], None, None, 1e6)
    served.engine.store.add_key(row)
    served.service.keys.read()
    assert page(served, key=text)
    assert served.call("GET", "/dashboard/other", key=text).status_code == 403
    assert "other" not in page(served, "/dashboard", key=text).text
    assert served.call("GET", NEWS, key=deaf).status_code == 403
    answer = served.call("GET", NEWS, key="wrong")
    assert answer.status_code == 401
    # Two lines: in one, browsers do not see that a password would do.
    assert answer.headers.get_list("www-authenticate") == ["Bearer", 'Basic realm="albatross", charset="UTF-8"']
    assert served.call("GET", "/dashboard/nothing").status_code == 404


def test_pages_are_not_kept_and_load_nothing(served):
    served.model()
    for path in ("/dashboard", NEWS):
        answer = page(served, path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        for part in ("form-action 'none'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert part in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r'(?:src|href)="(?!data:|/dashboard)', answer.text)
        assert " style=" not in answer.text


# -------------------------------------------------------------------------------------------------- in a real browser


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        if "ALBATROSS_NEEDS_CHROMIUM" in os.environ:
            pytest.fail("no Chromium was found, and ALBATROSS_NEEDS_CHROMIUM asks for one")
        pytest.skip("no Chromium was found: the dashboard is not opened in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A service on a port, with a flock, hostile names, and a model that was never used."""
    served = Served(tmp_path_factory.mktemp("dashboard"))
    config = uvicorn.Config(served.service, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    running = asyncio.run_coroutine_threadsafe(server.serve(), served._loop)

    async def until_started():
        while not server.started:
            await asyncio.sleep(0.01)
        return server.servers[0].sockets[0].getsockname()[1]

    url = f"http://127.0.0.1:{served.run(until_started())}"
    fill(served, policy="flock", n=80, floor=0.3)
    hostile = {HOSTILE: {"kind": "number"}, LONG: {"kind": "category", "values": [HOSTILE]}}
    served.model("hostile", arms=[HOSTILE, LONG, "'; DROP"], features=hostile, policy="flock")
    for number in range(30):
        made = served.call(
            "POST", "/v1/models/hostile/rank", {"user": HOSTILE, "arms": {HOSTILE: {HOSTILE: 90.0}, LONG: {}}}
        )
        served.reward(made.json()["decisions"][0]["id"], float(number % 2))
    served.model("fresh", arms=[HOSTILE, LONG], features=hostile)
    yield url, served.key
    server.should_exit = True
    running.result(30)
    served.close()


@pytest.mark.parametrize("path", ["/dashboard", NEWS, "/dashboard/hostile", "/dashboard/fresh"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_nothing_fails_nothing_is_fetched_and_nothing_sticks_out(browser, site, path, width, scheme):
    url, key = site
    wrong = []
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        http_credentials={"username": "", "password": key},
    )
    opened = context.new_page()
    opened.on("console", lambda message: wrong.append(message.text))
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("requestfailed", lambda sent: wrong.append(f"failed: {sent.url}"))
    opened.on("request", lambda sent: None if sent.url in (url + path, url + NEWS) else wrong.append(sent.url))
    answer = opened.goto(url + path, wait_until="load", timeout=60_000)
    assert answer.status == 200
    assert wrong == []
    assert opened.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    sticking = """[...document.querySelectorAll('.card td, .card th, .card p, .card li, pre, svg')].filter(
        e => e.offsetParent !== null && e.getBoundingClientRect().right > document.documentElement.clientWidth)"""
    assert opened.evaluate(f"{sticking}.length") == 0
    assert opened.evaluate("window.hacked") is None
    assert opened.locator("script").count() == 0
    assert opened.locator("img").count() == 0
    # The style sheet applies, and in the dark the page is dark.
    ground = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 25, 29)")
    if path == "/dashboard":
        opened.click("text=news")
        opened.wait_for_url(url + NEWS, wait_until="load")
    # What is not ours is not run, even if it came into the page.
    opened.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=data:x onerror=window.hacked=1>')")
    opened.wait_for_timeout(50)
    assert opened.evaluate("window.hacked") is None
    context.close()


def test_a_browser_is_asked_for_the_key(browser, site):
    url, _ = site
    context = browser.new_context(http_credentials={"username": "", "password": "wrong"})
    opened = context.new_page()
    assert opened.goto(url + NEWS).status == 401
    context.close()
