"""Evaluate policies named in words on a log."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albatross import datasets, policies
from albatross.datasets import Log
from albatross.environments import Logged
from albatross.evaluation import Evaluation, standard_error
from albatross.evaluation.playing import check_tables
from albatross.policies.in_words import build
from albatross.protocol import on_ball

POLICIES = "albatross,alb-norm,lints,ucb"  # where none are named
SHIPPED = {
    "open-bandit": {"campaign": "all", "policy": "random"},
    "open-bandit-bts": {"campaign": "all", "policy": "bts"},
    "open-bandit-women": {"campaign": "women", "policy": "random"},
    "open-bandit-women-bts": {"campaign": "women", "policy": "bts"},
}
MANY_FEATURES = 200  # a choice costs their square
COLUMNS = ("policy", "replay", "rounds", "IPS", "SNIPS", "DR", "ESS")
LEGEND = (
    "Mean reward per round ± its standard error. replay: the policy learns as it plays, from the rounds in which it "
    "chose the logged action. IPS, SNIPS, DR: the policy trained on the other folds, frozen. ESS: effective "
    "number of rounds; if it is small, the errors are understated. ±?: the error is unknown, because all averaged "
    "values are equal. –: no round was accepted, or the log does not support an estimate; a note says why."
)


def open_log(text: str, *, items: str | os.PathLike[str] | None = None) -> Log:
    """Read an included log by its name, or a file."""
    if text in SHIPPED:
        if items is not None:
            raise ValueError(f"{text} includes its items: leave out --items")
        return datasets.open_bandit(**SHIPPED[text])
    if not Path(text).is_file():
        raise ValueError(f"there is no file {text}; the included logs are {', '.join(SHIPPED)}")
    return datasets.read_log(text, items=items)


def may_take_long(env: Logged) -> str | None:
    """Return a note to show before the work if contexts have hundreds of features."""
    if env.dim < MANY_FEATURES:
        return None
    q, d = env.contexts.of_actions.shape[1], env.contexts.of_rounds.shape[1]
    return (
        f"contexts have {env.dim:,} features, {q:,} of the actions times {d:,} of the round, and every choice costs "
        "their square: this may take long. Leave columns out, or give --arms actions or --arms biases"
    )


def contenders(texts: Sequence[str], log: Log) -> dict[str, Any]:
    """Return uniform play and the named policies; by default, sigma is the standard deviation of the rewards."""
    sigma = float(log.rewards.std()) or 1.0
    known = {
        "sigma": sigma,
        "bases": (policies.LinUCB(), policies.LinTS(sigma=sigma), policies.UCB(sigma=sigma)),
        "oracle": _no_oracle,
    }
    if np.ptp(log.rewards) > 0.0:
        known["reward_range"] = (float(log.rewards.min()), float(log.rewards.max()))
    check_tables(len(log.rewards), log.n_actions, 3 + len(texts))
    uniform = np.full((len(log.rewards), log.n_actions), 1.0 / log.n_actions)
    built = {text: build(text, known) for text in texts if text != "uniform"}
    for text, policy in built.items():
        if on_ball(policy):
            raise ValueError(f"{text} plays actions of the unit ball, a log has {log.n_actions} arms")
    return {"uniform": uniform, **built}


def _no_oracle(make: Any) -> Any:
    raise ValueError("an oracle needs the true parameters, and a log does not contain them")


def rows(log: Log, found: Mapping[str, Evaluation]) -> list[tuple[str, ...]]:
    """Return the rows of the table: the logging policy, then each evaluated policy."""
    n = len(log.rewards)
    logged = _with_error(float(log.rewards.mean()), standard_error(log.rewards))
    lines: list[tuple[str, ...]] = [("logged", "", "", logged, "", "", f"{n:,}")]
    for name, each in found.items():
        played = ("", "")
        if each.replay is not None:
            played = _with_error(each.replay.value, each.replay.standard_error), f"{each.replay.accepted.mean():,.0f}"
        estimates = (_with_error(*estimate[:2]) for estimate in (each.ips, each.snips, each.doubly_robust))
        lines.append((name, *played, *estimates, f"{each.ips.effective_sample_size:,.0f}"))
    return lines


def features(log: Log, arms: str | None) -> list[str]:
    """Return which columns the contexts are built from: one line for the rounds, one for the actions.

    A text column is named once, whatever the number of its indicators.
    """
    of_actions = np.empty((1, 0)) if log.action_features is None else log.action_features
    lines = []
    for whose, table, names, users in (
        ("round", log.features, log.feature_names, ("products", "disjoint")),
        ("actions", of_actions, log.action_feature_names, ("products", "actions")),
    ):
        varying = [name for name, column in zip(names, table.T, strict=True) if np.ptp(column) > 0.0]
        columns = dict.fromkeys(name.partition("=")[0] for name in varying)
        if columns and arms in (None, *users):
            lines.append(f"features of the {whose}: {', '.join(columns)}")
    return lines


def _with_error(value: float, error: float) -> str:
    """Format value and error on two lines, with two digits of the error, or a question mark if it is unknown.

    >>> _with_error(0.00381234, 0.000618)
    '0.00381\\n±0.00062'
    """
    if math.isnan(value):
        return "–"
    if math.isnan(error):
        return f"{value:.3g}\n±?"
    digits = max(0, 1 - math.floor(math.log10(error)))
    if digits > 6:
        return f"{value:.1e}\n±{error:.1e}"
    return f"{value:,.{digits}f}\n±{error:,.{digits}f}"
