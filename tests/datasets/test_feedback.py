from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from albatross.datasets import from_feedback, open_bandit, to_feedback


@pytest.fixture
def feedback() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "n_rounds": 6,
        "n_actions": 3,
        "context": rng.standard_normal((6, 2)),
        "action_context": rng.standard_normal((3, 4)),
        "action": np.array([0, 1, 2, 0, 1, 2]),
        "position": np.array([0, 2, 2, 0, 0, 2]),
        "reward": rng.standard_normal(6),
        "pscore": np.full(6, 1 / 3),
        "expected_reward": rng.standard_normal((6, 3)),
    }


def test_there_and_back_changes_nothing(feedback):
    back = to_feedback(from_feedback(feedback))
    del feedback["expected_reward"]
    assert back.keys() == feedback.keys()
    for key, value in feedback.items():
        np.testing.assert_array_equal(back[key], value)
        assert np.asarray(back[key]).dtype == np.asarray(value).dtype


def test_a_log_survives_the_dict():
    log = open_bandit()
    back = from_feedback(to_feedback(log))
    for field in ("actions", "rewards", "propensities", "features", "action_features", "positions", "n_actions"):
        np.testing.assert_array_equal(getattr(back, field), getattr(log, field))


@pytest.mark.parametrize("key", ["context", "action_context", "position"])
def test_what_the_pipeline_leaves_out_may_be_missing(feedback, key):
    none = from_feedback({**feedback, key: None})
    del feedback[key]
    absent = from_feedback(feedback)
    assert to_feedback(none).keys() == to_feedback(absent).keys()
    assert len(absent.actions) == 6


def test_rounds_without_a_propensity_are_dropped_with_a_warning(feedback):
    feedback["pscore"] = np.array([0.5, np.nan, 0.5, 0.0, 0.5, 0.5])
    with pytest.warns(
        UserWarning, match="feedback: dropped 2 of 6 rows: 1 without a propensity, 1 with a propensity of 0"
    ):
        log = from_feedback(feedback)
    assert log.actions.tolist() == [0, 2, 1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pscore": None}, "the feedback has no 'pscore'"),
        ({"pscore": [0.5] * 5 + [1.5]}, "feedback, round 5: propensity is 1.5"),
        ({"pscore": [0.5] * 5}, r"pscore must have shape \(6\), got \(5,\)"),
        ({"reward": ["yes"] * 6}, "reward must be an array of numbers"),
        ({"action": [0, 1, 2, 3, 0, 1]}, "feedback, round 3: action is 3, but must be a whole number from 0 to 2"),
        ({"action": [0, 1, 2, 0.5, 0, 1]}, "feedback, round 3: action is 0.5"),
        (
            {"action": [0, 1, 2, np.inf, 0, 1], "n_actions": None},
            "feedback, round 3: action is inf, but must be a whole number from 0 to 2",
        ),
        ({"action": [-5] * 6, "n_actions": None, "action_context": None}, "feedback, round 0: action is -5"),
        (
            {"action": [np.nan] * 6, "n_actions": None, "action_context": None},
            "feedback has no usable row: 6 without an action",
        ),
        ({"action": [0, 1, 2, 1e15, 0, 1], "n_actions": None}, "n_actions must be at most 1000000, not"),
        ({"n_actions": 10**12}, "n_actions must be at most 1000000, not 1000000000000"),
        ({"n_rounds": 7}, r"action must have shape \(7\), got \(6,\)"),
        ({"n_actions": 0}, "n_actions must be a whole number"),
        ({"context": np.zeros((5, 2))}, r"context must have shape \(6, any\)"),
        ({"action_context": np.zeros((2, 2))}, r"action_context must have shape \(3, any\)"),
        ({"position": [-1] * 6}, "feedback, round 0: position is -1"),
        ({"n_rounds": 0, "action": [], "reward": [], "pscore": []}, "the feedback has no rounds"),
    ],
)
def test_bad_feedback_is_refused(feedback, changes, message):
    with pytest.raises(ValueError, match=message):
        from_feedback({**feedback, **changes})
