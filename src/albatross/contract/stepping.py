"""Play a policy one call at a time, on the streams that `simulate` would give it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from albatross import Agent
from albatross.environments.ball import draw_luck
from albatross.protocol import (
    Offer,
    Rounds,
    begin,
    draw,
    init,
    mean_reward,
    noise_size,
    resolve,
    select,
    track,
    update_tracking,
)
from albatross.simulation import _CHUNK_BYTES, _ROUNDS_AT_ONCE, streams
from albatross.states import leaves


def agent_on_stream(policy: Any, env: Any, *, seed: int, trial: int = 0) -> Agent:
    """Return an agent that starts from the policy's stream of this trial."""
    agent = Agent(policy, n_arms=env.n_arms, dim=env.dim)
    agent._rng = streams(seed, trial)[1]
    agent._state = init(agent._parameters, env.n_arms, env.dim, agent._rng)
    return agent


def learn_block(agent: Agent, decision: Any, reward: float, n: int) -> None:
    """Let an agent learn n plays of a decision with this sum of rewards. The decision stays pending."""
    agent._learn(agent._parameters, agent._state, agent._pending[decision.id], reward, n, agent._learnt)


def regret_on_ball(policy: Any, env: Any, *, horizon: int, seed: int, trial: int = 0) -> list[float]:
    """Return the cumulative regret (horizon,) on the ball, verb by verb as `simulate` plays it without blocks."""
    env_rng, rng, _ = streams(seed, trial)
    instance = begin(env, env_rng)
    parameters = resolve(policy, 1, env.dim, horizon)
    state, tracked = track(parameters, init(parameters, 1, env.dim, rng), instance.theta)
    luck = np.concatenate([draw_luck(instance, _ROUNDS_AT_ONCE, env_rng) for _ in range(0, horizon, _ROUNDS_AT_ONCE)])
    offer = Offer(np.zeros((1, env.dim)), np.ones(1, bool), np.zeros(1, np.int64), -1, np.zeros(1, np.int64))
    total, regret = 0.0, []
    for t in range(horizon):
        choice = select(parameters, state, offer, rng.standard_normal(noise_size(parameters, 1, env.dim)))
        mean = mean_reward(parameters, state, choice, tracked)
        update_tracking(parameters, state, choice, mean + env.noise_sd * luck[t], 1, tracked)
        total += np.linalg.norm(instance.theta) - mean
        regret.append(total)
    return regret


def tracked_play(policy: Any, theta: Sequence[float], *, rounds: int) -> dict[str, bytes]:
    """Return the arrays of a state, as bytes, after rounds simulated with theta* but rewarded regardless of it."""
    dim, rng = len(theta), np.random.default_rng(0)
    parameters = resolve(policy, 1, dim, rounds)
    state, tracked = track(parameters, init(parameters, 1, dim, rng), np.array(theta))
    offer = Offer(np.zeros((1, dim)), np.ones(1, bool), np.zeros(1, np.int64), -1, np.zeros(1, np.int64))
    for _ in range(rounds):
        choice = select(parameters, state, offer, rng.standard_normal(noise_size(parameters, 1, dim)))
        update_tracking(parameters, state, choice, rng.standard_normal(), 1, tracked)
    return {name: array.tobytes() for name, array in leaves(state)}


def rounds_of(
    env: Any, *, horizon: int, seed: int, trial: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the rounds of a trial, as `simulate` draws them: (contexts, means, noise) one after the other."""
    rng = streams(seed, trial)[0]
    instance = begin(env, rng)
    size = max(1, _CHUNK_BYTES // (8 * env.n_arms * env.dim))
    table = (size, env.n_arms)
    chunk = Rounds(np.empty((*table, env.dim)), np.ones(table, bool), np.empty(table), np.empty(table))
    played = 0
    while True:
        draw(instance, chunk, rng)
        for t in range(size):
            if played == horizon:
                return
            yield chunk.contexts[t], chunk.means[t], chunk.noise[t]
            played += 1


def state_of(agent: Agent) -> dict[str, np.ndarray]:
    """Return a copy of all arrays of an agent's state, by name."""
    return {name: array.copy() for name, array in leaves(agent._state)}


def same_state(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    """Return whether two such copies are equal to the last bit."""
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key], equal_nan=True) for key in one)
