"""Exp4-IX: probabilities and weights of a slow transcription, alone and as the base of ModCB."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from albatross import Agent, environments, policies, simulate

EXPERTS = [theta for theta in product((-1.0, 0.0, 1.0), repeat=2) if any(theta)]


class SlowExp4IX:
    """One weight per expert, multiplied round by round."""

    def __init__(self, experts, n_arms, horizon, reward_range):
        self.experts, self.n_arms, self.range = np.array(experts), n_arms, reward_range
        self.eta = math.sqrt(2 * math.log(len(experts)) / (n_arms * horizon))
        self.weights = np.ones(len(experts))

    def probabilities(self, X, eligible):
        p = np.zeros(self.n_arms)
        for weight, arm in zip(self.weights / self.weights.sum(), self.advice(X, eligible)):
            p[arm] += weight
        return p

    def advice(self, X, eligible):
        return [max(sorted(eligible), key=lambda arm: X[arm] @ theta) for theta in self.experts]

    def learn(self, advice, arm, p, reward):
        low, high = self.range
        loss = min(max((high - reward) / (high - low), 0.0), 1.0)
        for i, named in enumerate(advice):
            if named == arm:
                self.weights[i] *= math.exp(-self.eta * loss / (p + self.eta / 2))


@pytest.mark.parametrize("late", [0, 7])
def test_it_has_the_probabilities_and_weights_of_the_slow_transcription(late):
    rng = np.random.default_rng(late)
    given = {"horizon": 300, "reward_range": (-2.0, 1.5)}
    slow = SlowExp4IX(EXPERTS, 4, **given)
    agent = Agent(policies.Exp4IX(experts=EXPERTS, **given), n_arms=4, dim=2, seed=1)
    waiting, clipped = [], 0
    for _ in range(300):
        X, eligible = rng.standard_normal((4, 2)), rng.permutation(4)[: rng.integers(1, 5)]
        decision = agent.select(X, eligible)
        p = slow.probabilities(X, eligible)[decision.arm]
        assert decision.propensity == pytest.approx(p, rel=1e-9)
        reward = float(X[decision.arm] @ [1.0, -0.5] + 0.3 * rng.standard_normal())
        waiting.append((decision, slow.advice(X, eligible), p, reward))
        while len(waiting) > late:
            decision, advice, p, reward = waiting.pop(int(rng.integers(len(waiting))))
            agent.update(decision, reward)
            slow.learn(advice, decision.arm, p, reward)
            clipped += not -2.0 <= reward <= 1.5
    found = agent.diagnostics()
    assert found["weights"] == pytest.approx(slow.weights / slow.weights.sum(), rel=1e-9)
    assert found["clipped"] == clipped > 0


@pytest.mark.parametrize(
    "policy",
    [
        policies.Exp4IX(experts=EXPERTS, horizon=200, reward_range=(-2.0, 2.0)),
        policies.ModCB(dims=(1, 2), base=policies.Exp4IX(experts=EXPERTS, horizon=200, reward_range=(-2.0, 2.0))),
    ],
    ids=["alone", "in ModCB"],
)
def test_arms_are_played_as_often_as_their_propensities_say(policy):
    rng = np.random.default_rng(0)
    agent = Agent(policy, n_arms=3, dim=2, seed=0)
    for _ in range(150):
        decision = agent.select(rng.standard_normal((3, 2)))
        agent.update(decision, float(decision.action[0]))
    X, drawn, said = rng.standard_normal((3, 2)), np.zeros(3), np.full(3, np.nan)
    for _ in range(4_000):
        decision = agent.select(X)
        drawn[decision.arm] += 1
        said[decision.arm] = decision.propensity
        agent.drop(decision)
    seen = drawn > 0
    assert said[seen].sum() == pytest.approx(1.0, abs=0.01)
    assert drawn[seen] / 4_000 == pytest.approx(said[seen], abs=4 * 0.5 / math.sqrt(4_000))


def test_it_comes_to_prefer_the_right_policy():
    env = environments.Mixture(n_arms=3, dim=2, theta=[1.0, 1.0], noise_sd=0.1, biases=[0.0] * 3)
    run = simulate(policies.Exp4IX(experts=EXPERTS, reward_range=(-4.0, 4.0)), env, horizon=20_000, trials=3)
    for found in run.diagnostics:
        assert EXPERTS[int(found["weights"].argmax())] == (1.0, 1.0)
        assert found["weights"].max() > 0.9


def test_mod_cb_with_exp4_ix_moves_to_the_larger_map_and_starts_it_afresh():
    rng = np.random.default_rng(2)
    base = policies.Exp4IX(experts=EXPERTS, horizon=3_000, reward_range=(-4.0, 4.0))
    agent = Agent(policies.ModCB(dims=(1, 2), covariance=np.eye(2), base=base), n_arms=3, dim=2, seed=0)
    for _ in range(3_000):
        before = agent.diagnostics()
        decision = agent.select(rng.standard_normal((3, 2)))
        agent.update(decision, float(decision.action[1] + 0.1 * rng.standard_normal()))
        found = agent.diagnostics()
        if found["model"] != before["model"]:
            assert found["base"]["pulls"].sum() == 0
            assert np.ptp(found["base"]["weights"]) == 0.0
    assert found["model"] == 2
    # On the small map, experts that differ only beyond it are one policy and keep equal weights.
    assert EXPERTS[int(found["base"]["weights"].argmax())][1] == 1.0


@pytest.mark.parametrize(
    ("keywords", "wanted"),
    [
        ({"experts": [[1.0, 0.0]]}, "experts must have 2 to 10000 rows"),
        ({"experts": [1.0, 0.0]}, "experts"),
        ({"experts": [[np.nan], [1.0]]}, "experts"),
        ({"experts": EXPERTS, "reward_range": (1.0, 1.0)}, "reward_range must be a lower and a higher number"),
        ({"experts": EXPERTS, "horizon": 0}, "horizon"),
    ],
)
def test_bad_arguments_are_refused_by_name(keywords, wanted):
    with pytest.raises(ValueError, match=wanted):
        policies.Exp4IX(**keywords)


def test_experts_of_another_length_and_other_bases_are_refused():
    with pytest.raises(ValueError, match="experts have 2 columns, but arms have 3 features"):
        Agent(policies.Exp4IX(experts=EXPERTS, horizon=10), n_arms=2, dim=3)
    with pytest.raises(ValueError, match="base must be Exp4IX"):
        policies.ModCB(dims=(1, 2), base=policies.LinTS())
