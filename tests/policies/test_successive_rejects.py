"""Successive Rejects: play for play as the algorithm in its paper, and within its budget."""

from __future__ import annotations

import math

import numpy as np
import pytest

from albatross import Agent, environments, policies, simulate
from albatross.policies.arms.successive_rejects import phase_plays


def slow_rejects(draw, n_arms, budget):
    """Section 3 of Audibert, Bubeck and Munos (2010): plays per arm, the arms in the order of their rejection."""
    logbar = 0.5 + sum(1 / i for i in range(2, n_arms + 1))
    alive, rewards, rejected = list(range(n_arms)), {i: [] for i in range(n_arms)}, []
    before = 0
    for k in range(1, n_arms):
        n_k = math.ceil((budget - n_arms) / (logbar * (n_arms + 1 - k)))
        for arm in alive:
            rewards[arm] += [draw(arm, len(rewards[arm]) + j) for j in range(n_k - before)]
        before = n_k
        worst = min(alive, key=lambda arm: np.mean(rewards[arm]))
        alive.remove(worst)
        rejected.append(worst)
    return [len(rewards[i]) for i in range(n_arms)], [*rejected, alive[0]]


@pytest.mark.parametrize("seed", range(8))
def test_it_rejects_the_arms_of_a_slow_transcription_within_its_budget(seed):
    rng = np.random.default_rng(seed)
    n_arms, budget = int(rng.integers(2, 8)), int(rng.integers(20, 200))
    table = rng.uniform(0, 1, n_arms)[:, None] + 0.5 * rng.standard_normal((n_arms, budget))  # the j-th play of an arm
    plays, rejected = slow_rejects(lambda arm, j: table[arm, j], n_arms, budget)
    assert sum(plays) <= budget
    agent = Agent(policies.SuccessiveRejects(horizon=budget), n_arms=n_arms, dim=1, seed=seed)
    for _ in range(sum(plays)):
        decision = agent.select([0.0])
        agent.update(decision, float(table[decision.arm, int(agent.diagnostics()["pulls"][decision.arm])]))
    found = agent.diagnostics()
    assert found["pulls"].tolist() == plays
    assert found["survivors"].tolist() == [rejected[-1]]
    assert [int(found["dropped"][arm]) for arm in rejected] == [*range(1, n_arms), 0]


def test_after_its_budget_it_plays_the_last_arm_for_ever():
    env = environments.FixedArms(n_arms=4, dim=4, arms="axes", theta=[0.1, 0.9, 0.2, 0.0], noise_sd=0.1)
    run = simulate(policies.SuccessiveRejects(horizon=200), env, horizon=2_000, trials=5)
    assert all(found["survivors"].tolist() == [1] for found in run.diagnostics)
    assert all(found["pulls"][1] > 1_800 for found in run.diagnostics)
    assert (run.regret[:, 200] == run.regret[:, -1]).all()


def test_with_several_decisions_pending_no_arm_is_played_too_often():
    agent = Agent(policies.SuccessiveRejects(horizon=60), n_arms=3, dim=1, seed=0)
    first = phase_plays(60, 3)[0]
    arms = [agent.select([0.0]).arm for _ in range(3 * first)]  # no reward has come yet
    assert np.bincount(arms).tolist() == [first] * 3


def test_where_only_rejected_arms_are_eligible_the_last_rejected_is_played():
    agent = Agent(policies.SuccessiveRejects(horizon=40), n_arms=3, dim=1, seed=0)
    for _ in range(40):
        decision = agent.select([0.0])
        agent.update(decision, float(decision.arm))
    assert agent.diagnostics()["survivors"].tolist() == [2]
    assert agent.select([0.0], eligible=[0, 1]).arm == 1


def test_arms_of_equal_mean_are_rejected_at_random():
    last = set()
    for seed in range(30):
        agent = Agent(policies.SuccessiveRejects(horizon=20), n_arms=3, dim=1, seed=seed)
        for _ in range(20):
            agent.update(agent.select([0.0]), 1.0)
        last.add(agent.diagnostics()["survivors"].item())
    assert last == {0, 1, 2}


def test_a_budget_below_the_number_of_arms_still_plays_every_arm_once():
    assert phase_plays(3, 5) == [1, 1, 1, 1]
    agent = Agent(policies.SuccessiveRejects(horizon=3), n_arms=5, dim=1)
    for _ in range(5):
        decision = agent.select([0.0])
        agent.update(decision, float(decision.arm))
    assert agent.diagnostics()["survivors"].tolist() == [4]


def test_a_single_arm_survives_at_once():
    agent = Agent(policies.SuccessiveRejects(horizon=10), n_arms=1, dim=1)
    agent.update(agent.select([0.0]), 1.0)
    assert agent.diagnostics()["survivors"].tolist() == [0]


def test_without_a_budget_an_agent_asks_for_it():
    with pytest.raises(ValueError, match=r"give SuccessiveRejects\(horizon=...\)"):
        Agent(policies.SuccessiveRejects(), n_arms=3, dim=1)
