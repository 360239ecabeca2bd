"""Convert feedback dicts of the Open Bandit Pipeline (Saito, Aihara, Matsutani and Narita, 2020) to logs and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albatross import checks
from albatross.datasets.logs import Log, check_n_actions, checked


def from_feedback(feedback: Mapping[str, Any]) -> Log:
    """Convert a feedback dict to a log; `context`, `action_context` and `position` may be None or absent.

    >>> log = from_feedback({"n_rounds": 2, "n_actions": 2, "action": [1, 0], "reward": [0, 1], "pscore": [0.5, 0.5]})
    >>> log.actions.tolist(), log.n_actions, log.features.shape
    ([1, 0], 2, (2, 0))
    """
    absent = [key for key in ("action", "reward", "pscore") if feedback.get(key) is None]
    if absent:
        raise ValueError(
            f"the feedback has no {' or '.join(map(repr, absent))}: it has {', '.join(map(repr, feedback))}"
        )
    actions = _column(feedback, "action", n_rounds=feedback.get("n_rounds"))
    n_rounds = len(actions)
    if not n_rounds:
        raise ValueError("the feedback has no rounds")
    rewards = _column(feedback, "reward", n_rounds=n_rounds)
    propensities = _column(feedback, "pscore", n_rounds=n_rounds)
    n_actions = feedback.get("n_actions")
    if n_actions is None:
        n_actions = int(actions[np.isfinite(actions)].max(initial=0.0)) + 1
    check_n_actions(n_actions)
    wrong = (actions < 0) | (actions >= n_actions) | (actions != np.round(actions)) & ~np.isnan(actions)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"feedback, round {row}: action is {actions[row]:g}, but must be a whole number from 0 to {n_actions - 1}"
        )
    context = feedback.get("context")
    features = np.empty((n_rounds, 0)) if context is None else checks.numbers("context", context).astype(np.float64)
    if features.ndim != 2 or len(features) != n_rounds:
        raise ValueError(f"context must have shape ({n_rounds}, any), got {features.shape}")
    of_actions = feedback.get("action_context")
    log = Log(
        actions,
        rewards,
        propensities,
        features,
        n_actions=int(n_actions),
        feature_names=tuple(f"context_{j}" for j in range(features.shape[1])),
        action_names=tuple(map(str, range(n_actions))),
        action_features=None
        if of_actions is None
        else checks.finite_array("action_context", of_actions, (n_actions, None)),
        positions=None if feedback.get("position") is None else _column(feedback, "position", n_rounds=n_rounds),
    )
    return checked(log, name="feedback", place=lambda row: f"feedback, round {row}")


def to_feedback(log: Log) -> dict[str, Any]:
    """Convert a log to the dict that the estimators of the Open Bandit Pipeline take.

    >>> feedback = to_feedback(from_feedback({"action": [1, 0], "reward": [0, 1], "pscore": [0.5, 0.5]}))
    >>> feedback["n_rounds"], feedback["n_actions"], feedback["pscore"].tolist(), feedback["position"]
    (2, 2, [0.5, 0.5], None)
    """
    return {
        "n_rounds": len(log.actions),
        "n_actions": log.n_actions,
        "context": log.features,
        "action_context": log.action_features,
        "action": log.actions,
        "position": log.positions,
        "reward": log.rewards,
        "pscore": log.propensities,
    }


def _column(feedback: Mapping[str, Any], key: str, *, n_rounds: int | None) -> np.ndarray:
    column = checks.numbers(key, feedback[key]).astype(np.float64)
    if column.ndim != 1 or (n_rounds is not None and len(column) != n_rounds):
        raise ValueError(f"{key} must have shape ({'any' if n_rounds is None else n_rounds}), got {column.shape}")
    return column
