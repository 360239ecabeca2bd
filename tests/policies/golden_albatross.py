"""The golden cases of Albatross: contexts and rewards, and what it must play."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from albatross import policies
from albatross.compiling import compiled
from albatross.protocol import Offer, init, noise_size, resolve, score, select, update

FOLDER = Path(__file__).parents[1] / "golden" / "albatross2"
CASES = sorted(path.stem for path in FOLDER.glob("*.npz"))


def load(name: str) -> dict[str, Any]:
    """The arrays of a case."""
    with np.load(FOLDER / f"{name}.npz") as file:
        return {key: file[key] for key in file}


def policy_of(case: dict[str, Any]) -> policies.Albatross:
    """The policy that a case is played with."""
    memory, rho = float(case["memory"]), float(case["explore"])
    return policies.Albatross(memory="learnt" if memory < 0 else memory or None, explore=rho or None, ties="first")


@compiled
def replay(policy, state, contexts, rewards, noise):
    """Return arms, scores less the first reward, and propensities of all rounds."""
    n_rounds, n_arms = rewards.shape
    arms, scores, propensities = np.empty(n_rounds, np.int64), np.empty((n_rounds, n_arms)), np.empty(n_rounds)
    eligible, pending, rows = np.ones(n_arms, np.bool_), np.zeros(n_arms, np.int64), np.arange(n_arms)
    for t in range(n_rounds):
        offer = Offer(contexts[t], eligible, pending, -1, rows)
        scores[t] = score(policy, state, offer, noise[t])[0] - state.origin[1]
        choice = select(policy, state, offer, noise[t])
        arms[t], propensities[t] = choice.arm, choice.propensity
        update(policy, state, choice, rewards[t, choice.arm], 1)
    return arms, scores, propensities


def played(case: dict[str, Any]) -> Any:
    """What Albatross plays in a case."""
    _, n_arms, dim = case["contexts"].shape
    parameters = resolve(policy_of(case), n_arms, dim, None)
    state = init(parameters, n_arms, dim, np.random.default_rng(0))
    state = state._replace(priority=case["priority"].astype(np.int64))
    noise = case["noise"][:, None][:, : noise_size(parameters, n_arms, dim)]
    return replay(parameters, state, case["contexts"], case["rewards"], np.ascontiguousarray(noise))
