"""The benchmarks' yardsticks play the same arms as the policies that are measured against them."""

from __future__ import annotations

import numpy as np
import pytest

from albatross import Agent, policies
from plain_numpy import PlainAlbatross, PlainLinUCB, PlainOFULPlus

N_ARMS, DIM, ROUNDS = 6, 4, 300


@pytest.mark.parametrize(
    ("policy", "plain"),
    [
        (
            policies.OFULPlus(norm_bound=2.0, sigma=0.5, horizon=ROUNDS, ties="first"),
            PlainOFULPlus(N_ARMS, DIM, norm_bound=2.0, sigma=0.5, horizon=ROUNDS),
        ),
        (policies.LinUCB(biases=False, ties="first"), PlainLinUCB(N_ARMS, DIM)),
        (policies.Albatross(ties="first"), PlainAlbatross(N_ARMS, DIM)),
    ],
)
def test_plain_numpy_plays_the_same_arms(policy, plain):
    agent = Agent(policy, n_arms=N_ARMS, dim=DIM)
    rng = np.random.default_rng(0)
    for _ in range(ROUNDS):
        contexts = rng.standard_normal((N_ARMS, DIM))
        decision = agent.select(contexts)
        assert decision.arm == plain.select(contexts)
        reward = float(contexts[decision.arm, 0] + 0.5 * rng.standard_normal())
        agent.update(decision, reward)
        plain.update(decision.arm, contexts[decision.arm], reward)
