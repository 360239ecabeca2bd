"""A policy and an easy problem that it must solve."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from albatross import Agent, environments, policies, simulate
from albatross.protocol import on_ball

N_ARMS, DIM, HORIZON = 5, 3, 300
SIGMA = 0.1
_PATIENCE = 20  # times the horizon, for a policy that is slow to start


class Broken(Exception):
    """A policy breaks the contract; the text says how."""


class Case(NamedTuple):
    """A policy, its easy problem, and what can be expected of it there."""

    policy: Any
    env: Any
    slow: bool = False  # whether it needs thousands of rounds to learn
    learns: bool = True  # False only for uniform play
    explores: bool = True  # False for greedy play: it may never return to an arm

    @property
    def on_ball(self) -> bool:
        """Whether its arms are the vectors of the unit ball."""
        return on_ball(self.policy)

    def agent(self, seed: int | None) -> Agent:
        """Return a new agent."""
        return Agent(self.policy, n_arms=None if self.on_ball else N_ARMS, dim=DIM, seed=seed)

    def offer(self, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return the arguments of `select`: new contexts, or nothing on the ball."""
        return () if self.on_ball else (rng.standard_normal((N_ARMS, DIM)),)


def easy_problem(policy: Any, *, biases: bool) -> Any:
    """Return a problem whose arms differ by their biases, or whose contexts say all there is to know."""
    if on_ball(policy):
        return environments.Ball(dim=DIM, theta=[0.8, 0.0, -0.6], noise_sd=SIGMA)
    levels, theta_norm = (np.linspace(-1.0, 1.0, N_ARMS), 0.1) if biases else (np.zeros(N_ARMS), 1.0)
    return environments.Mixture(n_arms=N_ARMS, dim=DIM, theta_norm=theta_norm, noise_sd=SIGMA, biases=levels)


def case_of(policy: Any) -> Case:
    """Return a policy with the easy problem that it is better at, and whether it is slow."""
    problems = [easy_problem(policy, biases=biases) for biases in (True, False)]
    if on_ball(policy):
        return Case(policy, problems[0])
    for slow in (False, True):
        ratios = [ratio_to_uniform(Case(policy, env, slow=slow)) for env in problems]
        if min(ratios) < 0.5:
            return Case(policy, problems[int(np.argmin(ratios))], slow=slow)
    return Case(policy, problems[int(np.argmin(ratios))])


def ratio_to_uniform(case: Case) -> float:
    """Return the regret on the easy problem as a share of that of uniform play."""
    runs = simulate(
        {"it": case.policy, "uniform": policies.Uniform()},
        case.env,
        horizon=HORIZON * (_PATIENCE if case.slow else 1),
        trials=5,
        seed=0,
        progress=False,
    )
    return float(runs["it"].regret[:, -1].mean() / runs["uniform"].regret[:, -1].mean())
