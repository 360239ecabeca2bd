"""Decisions, rewards, activations, time, restarts and erasures in any order: a small model of the service agrees."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refolding import refold
from serving_tests import Served

from albatross.service.events import EFFECTS, LEARN
from albatross.service.sqlite import SQLiteStore
from albatross.service.verifying import verify

WAIT = 3_600.0
CODES = {"inactive": 202, "conflict": 409, "gone": 410}
RULES = {
    "first": {"wait": "1h"},
    "default": {"wait": "1h", "default": 0.0},
    "at the end": {"wait": "1h", "learn": "at_close"},
    "sum": {"wait": "1h", "combine": "sum"},
    "last": {"wait": "1h", "combine": "last"},
}


@dataclass
class Expected:
    """What a decision should be, by the table of rewards."""

    user: str
    due: float
    active: bool
    kept: list[float] = field(default_factory=list)  # they wait for the end, or for the activation
    ended: bool = False
    learnt: float | None = None  # the value with which it ended
    late: set[float] = field(default_factory=set)
    gone: bool = False

    def end(self, rules: dict) -> None:
        """End the wait."""
        self.ended = True
        if self.active and self.kept:
            combine = {"sum": math.fsum, "last": lambda kept: kept[-1]}.get(rules.get("combine"), lambda kept: kept[0])
            self.learnt = combine(self.kept)
        elif self.active:
            self.learnt = rules.get("default")

    def reward(self, value: float, rules: dict, now: float) -> str:
        """Take a reward and return its status."""
        if self.gone:
            return "gone"
        if not self.ended and self.due <= now:
            self.end(rules)
        first = "combine" not in rules
        if self.ended:
            if value in self.late:
                return "duplicate"
            if first and self.learnt is not None and self.kept:
                return "duplicate" if value == self.learnt else "conflict"
            self.late.add(value)
            return "late"
        if first and self.kept:
            return "duplicate" if value == self.kept[0] else "conflict"
        self.kept.append(value)
        if not self.active:
            return "inactive"
        if not first or {"default", "learn"} & rules.keys():
            return "waits"
        self.ended, self.learnt = True, value
        return "learnt"

    def activate(self, rules: dict, now: float) -> str:
        """Begin the wait and return the status."""
        if not self.ended and self.due <= now:
            self.end(rules)
        if self.ended:
            return "closed"
        if self.active:
            return "active"
        self.active, self.due = True, now + WAIT
        if self.kept and rules == RULES["first"]:
            self.ended, self.learnt = True, self.kept[0]
        return "activated"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("rank"), st.sampled_from(["anna", "bob"]), st.booleans()),
        st.tuples(st.just("reward"), st.integers(0, 5), st.sampled_from([0.5, 1.0])),
        st.tuples(st.just("reward"), st.integers(0, 5), st.sampled_from([0.5, 1.0])),
        st.tuples(st.just("activate"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.sampled_from([60.0, WAIT / 2, WAIT])),
        st.tuples(st.just("sweep")),
        st.tuples(st.just("restart")),
        st.tuples(st.just("erase"), st.sampled_from(["anna", "bob"])),
    ),
    min_size=5,
    max_size=30,
)


@pytest.mark.parametrize("rule", RULES)
def test_the_service_and_its_model_agree_in_any_order(tmp_path_factory, rule):
    rules = RULES[rule]

    @settings(max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def agree(steps):
        served = Served(tmp_path_factory.mktemp("service"))
        try:
            served.model(rewards=rules)
            made = {}
            for step in [("rank", "anna", False), ("rank", "bob", True), *steps]:
                follow(served, made, step, rules)
            compare(served, made)
        finally:
            served.close()

    agree()


def follow(served: Served, made: dict[str, Expected], step: tuple, rules: dict) -> None:
    """Take a step with the service and with the model of it."""
    match step:
        case "rank", user, defer:
            made[served.decide(user, defer=defer)] = Expected(user, served.now + WAIT, not defer)
        case "reward", number, value:
            decision, expected = list(made.items())[-1 - number % len(made)]
            status = expected.reward(value, rules, served.now)
            assert served.reward(decision, value) == (CODES.get(status, 200), status)
        case "activate", number:
            decision, expected = list(made.items())[-1 - number % len(made)]
            answer = served.call("POST", f"/v1/decisions/{decision}/activate")
            if expected.gone:
                assert answer.status_code == 410
            else:
                assert answer.json()["status"] == expected.activate(rules, served.now)
        case "wait", seconds:
            served.now += seconds
        case ("sweep",):
            served.sweep(0.0)
            for expected in made.values():
                if not (expected.ended or expected.gone) and expected.due <= served.now:
                    expected.end(rules)
        case ("restart",):
            served.restart()
        case "erase", user:
            served.call("DELETE", f"/v1/users/{user}")
            for expected in made.values():
                expected.gone |= expected.user == user


def compare(served: Served, made: dict[str, Expected]) -> None:
    """Compare what was learnt, and live states with the fold over the log."""
    for decision, expected in made.items():
        answer = served.call("GET", f"/v1/decisions/{decision}")
        assert answer.status_code == (410 if expected.gone else 200)
        came = [] if expected.gone else answer.json()["outcomes"]
        learnt = [each["value"] for each in came if EFFECTS[each["status"]] == LEARN]
        assert learnt == ([expected.learnt] if expected.learnt is not None and not expected.gone else [])
    rows = served.rows()
    served.stop()
    store = SQLiteStore(served.folder / "log.db")
    assert verify(store).wrong == []
    if not store.erased:
        (fold,) = refold(store)[0].values()
        assert rows == {user: fold.bandits.row(user) for user in rows}
    store.close()
    served.start()
