"""Evaluate policies named in words on a log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albatross import datasets, policies
from albatross.agent import Agent
from albatross.datasets import Log
from albatross.environments import Logged
from albatross.environments.log_contexts import Products
from albatross.evaluation import Evaluation, PerUser, standard_error
from albatross.evaluation.playing import check_tables
from albatross.features import Features
from albatross.policies.in_words import build
from albatross.protocol import on_ball
from albatross.store.decision_log import journal_of

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


def open_log(text: str, *, items: Path | None = None, schema: Path | None = None) -> Log:
    """Read an included log by its name, or a file, possibly with a schema."""
    if text in SHIPPED:
        for option, given in (("items", items), ("schema", schema)):
            if given is not None:
                raise ValueError(f"{text} includes its items and features: leave out --{option}")
        return datasets.open_bandit(**SHIPPED[text])
    if not (Path(text).is_file() or journal_of(text).is_file()):
        raise ValueError(f"there is no file {text}; the included logs are {', '.join(SHIPPED)}")
    if schema is not None:
        return Features.read(schema).read_log(text, items=items)
    return datasets.read_log(text, items=items)


def may_take_long(env: Logged) -> str | None:
    """Return a note to show before the work if contexts have hundreds of features."""
    if env.dim < MANY_FEATURES:
        return None
    costs = "and every choice costs their square: this may take long. Leave"
    if not isinstance(env.contexts, Products):
        return f"contexts have {env.dim:,} features, {costs} some out"
    q, d = env.contexts.of_actions.shape[1], env.contexts.of_rounds.shape[1]
    return (
        f"contexts have {env.dim:,} features, {q:,} of the actions times {d:,} of the round, {costs} columns out, or "
        "give --arms actions or --arms biases"
    )


def open_agent(path: Path, log: Log, schema: Path | None) -> Agent:
    """Read a saved agent for a log whose contexts are of the kind that it knows: logged with it, or of its schema."""
    agent = Agent.load(path)
    if log.contexts is None:
        raise ValueError(
            f"the log has no column 'contexts', and {path.name} does not know contexts made of its other columns: "
            "evaluate the agent on a log that Agent.log wrote, or give --schema with the agent's features"
        )
    if schema is not None and Features.read(schema) != agent.features:
        has = "has no features" if agent.features is None else "has other features"
        raise ValueError(
            f"contexts are made as in {schema.name}, but {path.name} {has}: give the schema that "
            "agent.features.write(path) writes, of an agent made as Agent(features=...)"
        )
    return agent


def contenders(
    texts: Sequence[str], env: Logged, *, per_user: bool = False, agents: Mapping[str, Agent] | None = None
) -> dict[str, Any]:
    """Return uniform play, the agents and the named policies; sigma is by default the standard deviation of rewards."""
    sigma = float(env.rewards.std()) or 1.0
    known = {
        "sigma": sigma,
        "bases": (policies.LinUCB(), policies.LinTS(sigma=sigma), policies.UCB(sigma=sigma)),
        "oracle": _no_oracle,
    }
    if np.ptp(env.rewards) > 0.0:
        known["reward_range"] = (float(env.rewards.min()), float(env.rewards.max()))
    if per_user and env.users is None:
        raise ValueError("--per-user needs a column 'user' in the log")
    check_tables(env.length, env.n_arms, 3 + len(texts))
    uniform = env.eligible / env.eligible.sum(axis=1, keepdims=True)
    built = {text: build(text, known, files=True) for text in texts if text != "uniform"}
    for text, policy in built.items():
        if on_ball(policy):
            raise ValueError(f"{text} plays actions of the unit ball, a log has {env.n_arms} arms")
    if per_user:
        built = {text: PerUser(policy) for text, policy in built.items()}
    return {"uniform": uniform, **(agents or {}), **built}


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


def features(log: Log, arms: str | None, schema: Path | None) -> list[str]:
    """Return which columns the contexts are built from: one line for the rounds, one for the actions.

    A text column is named once, whatever the number of its indicators.
    """
    if log.contexts is not None:
        return ["features: the column contexts" if schema is None else f"features: as in {schema.name}"]
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
