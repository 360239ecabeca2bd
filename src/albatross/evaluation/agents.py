"""A trained agent on a log: frozen, with its own propensities."""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from albatross.agent import Agent
from albatross.checks import shown
from albatross.environments.logged import Logged
from albatross.evaluation.playing import Pace
from albatross.protocol import on_ball
from albatross.simulation import streams


class FrozenAgent:
    """A copy of an agent, offered in every round those eligible arms that it has, by their names."""

    def __init__(self, name: str, agent: Agent, env: Logged) -> None:
        title = f"agent {name}" if name else "the agent"
        if on_ball(agent.policy):
            raise ValueError(f"{title} plays on the unit ball, but the log has {env.n_arms} arms")
        if agent.dim != env.dim:
            raise ValueError(f"{title} has {agent.dim} features, but the log has {env.dim}")
        column_of = {arm: column for column, arm in enumerate(env.names)}
        arms = [arm for arm in agent.arms if str(arm) in column_of]
        self._columns = np.array([column_of[str(arm)] for arm in arms], np.int64)
        self._arms = np.array(arms, object)
        without = ~env.eligible[:, self._columns].any(axis=1)
        if without.any():
            row = int(np.argmax(without))
            offered = [env.names[column] for column in np.flatnonzero(env.eligible[row])]
            raise ValueError(
                f"round {row} offers no arm that {title} has: it offers {shown(offered)}, and the agent has "
                f"{shown(agent.arms)}"
            )
        self._agent, self._env = deepcopy(agent), env

    def probabilities(self, draws: int, seed: int, pace: Pace) -> np.ndarray:
        """(n, K) its propensities in every round, from `draws` draws if its policy draws at random."""
        env, table = self._env, np.zeros((self._env.length, self._env.n_arms))
        seeds = streams(seed, 0)[1].integers(2**63, size=env.length).tolist()
        for part in pace.chunks(np.arange(env.length), env.n_arms * env.dim):
            contexts, eligible = env.contexts[part][:, self._columns], env.eligible[part][:, self._columns]
            for row, offered, mask in zip(part.tolist(), contexts, eligible, strict=True):
                arms = self._arms[mask].tolist()
                shares = self._agent.propensity(offered[mask], arms=arms, draws=draws, seed=seeds[row])
                table[row, self._columns[mask]] = shares
        return table
