"""The golden cases of Albatross: contexts and rewards, and what it must play."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from albatross import Agent, policies
from albatross.protocol import Offer, noise_size, score

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


def played(case: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return arms, scores less the first reward, and propensities of all rounds, by the code that agents run."""
    n_rounds, n_arms, dim = case["contexts"].shape
    agent = Agent(policy_of(case), n_arms=n_arms, dim=dim)
    parameters, state = agent._parameters, agent._state._replace(priority=case["priority"].astype(np.int64))
    eligible, pending, rows = np.ones(n_arms, bool), np.zeros(n_arms, np.int64), np.arange(n_arms)
    arms, scores, propensities = np.empty(n_rounds, np.int64), np.empty((n_rounds, n_arms)), np.empty(n_rounds)
    for t in range(n_rounds):
        contexts, noise = case["contexts"][t], case["noise"][t : t + 1][: noise_size(parameters, n_arms, dim)]
        scores[t] = score(parameters, state, Offer(contexts, eligible, pending, -1, rows), noise)[0] - state.origin[1]
        _, _, kept = agent._decide(parameters, state, contexts, eligible, pending, rows, 0, noise)
        arms[t], propensities[t] = kept[0], kept[4]
        agent._learn(parameters, state, kept, case["rewards"][t, arms[t]], 1, agent._learnt)
    return arms, scores, propensities
