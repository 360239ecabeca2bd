"""A trained agent or fleet on a log: frozen, with its own propensities."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from albatross.agent import Agent
from albatross.checks import shown
from albatross.environments.logged import Logged
from albatross.evaluation.playing import Pace
from albatross.fleet import Fleet
from albatross.protocol import on_ball
from albatross.simulation import streams


class FrozenAgent:
    """A copy of an agent, offered in every round those eligible arms that it has, by their names."""

    _kind = "agent"

    def __init__(self, name: str, agent: Agent | Fleet, env: Logged) -> None:
        self._title = title = f"{self._kind} {name}" if name else f"the {self._kind}"
        if on_ball(agent.policy):
            raise ValueError(f"{title} plays on the unit ball, but the log has {env.n_arms} arms")
        if agent.dim != env.dim:
            raise ValueError(f"{title} has {agent.dim} features, but the log has {env.dim}")
        column_of = {arm: column for column, arm in enumerate(env.names)}
        self._arms = np.array([arm for arm in agent.arms if str(arm) in column_of], object)
        self._rows = np.flatnonzero([str(arm) in column_of for arm in agent.arms])  # of these arms, in its own offers
        self._columns = np.array([column_of[str(arm)] for arm in self._arms], np.int64)
        without = ~env.eligible[:, self._columns].any(axis=1)
        if without.any():
            row = int(np.argmax(without))
            offered = [env.names[column] for column in np.flatnonzero(env.eligible[row])]
            raise ValueError(
                f"round {row} offers no arm that {title} has: it offers {shown(offered)}, and the {self._kind} has "
                f"{shown(agent.arms)}"
            )
        self._agent: Any = deepcopy(agent)
        self._env = env

    def probabilities(self, draws: int, seed: int, pace: Pace) -> np.ndarray:
        """(n, K) its propensities in every round, from `draws` draws if its policy draws at random."""
        env, table = self._env, np.zeros((self._env.length, self._env.n_arms))
        seeds = streams(seed, 0)[1].integers(2**63, size=env.length).tolist()
        for part in pace.chunks(np.arange(env.length), env.n_arms * env.dim):
            contexts, eligible = env.contexts[part][:, self._columns], env.eligible[part][:, self._columns]
            for row, offered, mask in zip(part.tolist(), contexts, eligible, strict=True):
                table[row, self._columns[mask]] = self._propensity(row, offered, mask, draws, seeds[row])
        return table

    def _propensity(self, row: int, contexts: np.ndarray, mask: np.ndarray, draws: int, seed: int) -> np.ndarray:
        """Return the propensities of the eligible arms in one round."""
        return self._agent.propensity(contexts[mask], arms=self._arms[mask].tolist(), draws=draws, seed=seed)


class FrozenFleet(FrozenAgent):
    """A copy of a fleet, offered every round for its user; a user whom it does not know is a newcomer."""

    _kind = "fleet"

    def __init__(self, name: str, fleet: Fleet, env: Logged) -> None:
        super().__init__(name, fleet, env)
        if env.users is None:
            raise ValueError(f"{self._title} has a state for every user, but the log has no users")
        known = {str(user): user for user in fleet.users}
        self._users = [known.get(str(user), user) for user in env.user_names]
        self._agent.admit(self._users)

    def _propensity(self, row: int, contexts: np.ndarray, mask: np.ndarray, draws: int, seed: int) -> np.ndarray:
        offered, eligible = np.zeros((1, self._agent.n_arms, self._env.dim)), np.zeros(self._agent.n_arms, bool)
        offered[0, self._rows], eligible[self._rows] = contexts, mask
        user = self._users[self._env.users[row]]
        return self._agent.propensity([user], offered, eligible, draws=draws, seed=seed)[0, self._rows[mask]]
