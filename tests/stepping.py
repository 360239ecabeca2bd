"""Play a policy one call at a time, on the streams that `simulate` would give it."""

from __future__ import annotations

import numpy as np

from albatross import Agent
from albatross.environments.ball import draw_luck
from albatross.models.ball_fit import narrow
from albatross.protocol import Rounds, begin, draw, init
from albatross.simulation import _CHUNK_BYTES, _ROUNDS_AT_ONCE, streams
from albatross.states import leaves


def agent_on_stream(policy, env, *, seed, trial=0):
    """An agent that starts from the policy's stream of this trial."""
    agent = Agent(policy, n_arms=env.n_arms, dim=env.dim)
    agent._rng = streams(seed, trial)[1]
    agent._state = init(agent._parameters, env.n_arms, env.dim, agent._rng)
    return agent


def agent_on_ball(policy, env, *, seed, decisions, trial=0):
    """An agent whose state looks with theta* only, as in a simulation, and the luck of its rounds."""
    agent = Agent(policy, dim=env.dim)
    env_rng, agent._rng, _ = streams(seed, trial)
    instance = begin(env, env_rng)
    state = init(agent._parameters, 1, env.dim, agent._rng)
    agent._state = narrow(agent._parameters, state, instance.theta[None, :])
    luck = []
    while len(luck) < decisions:
        luck.extend(draw_luck(instance, _ROUNDS_AT_ONCE, env_rng))
    return agent, luck


def rounds_of(env, *, horizon, seed, trial=0):
    """The rounds of a trial, as `simulate` draws them: (contexts, means, noise) one after the other."""
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


def state_of(agent):
    """A copy of all arrays of an agent's state, by name."""
    return {name: array.copy() for name, array in leaves(agent._state)}


def same_state(one, other):
    """Whether two such copies are equal to the last bit."""
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key], equal_nan=True) for key in one)
