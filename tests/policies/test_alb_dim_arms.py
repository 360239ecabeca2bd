"""ALB-Dim on a finite set of arms: round for round as a slow transcription, fixed arms, and its fallbacks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from albatross import Agent, policies, simulate
from albatross.environments import FixedArms

# Growing slower than the paper's (25, 5), four phases fit into a short test.
SHORT = {"first_phase": 36, "growth": (4, 3), "delta": 0.1, "sigma": 0.1}
THETA = np.array([0.0, 0.7, 0.0, -0.5, 0.0])
N_ARMS, DIM = 6, 5


class SlowALBDim:
    """Algorithm 2 with OFUL solved from anew in every round, on the columns of D_i alone."""

    def __init__(self, *, first_phase, growth, delta, sigma):
        self.first_phase, self.growth, self.delta, self.sigma = first_phase, growth, delta, sigma
        self.samples, self.supports, self.phase = [], [], -1
        self.begin(np.arange(DIM))

    def begin(self, support):
        self.phase += 1
        self.supports.append(support.tolist())
        self.support, self.plays, self.explored = support, [], 0

    def exploring(self):
        return len(self.plays) >= self.growth[0] ** self.phase * self.first_phase

    def choose(self, X):
        Z = np.array([x[self.support] for x, _ in self.plays]).reshape(-1, len(self.support))
        V = np.eye(len(self.support)) + Z.T @ Z
        theta = np.linalg.solve(V, Z.T @ [reward for _, reward in self.plays])
        delta = self.delta / 2**self.phase
        radius = self.sigma * math.sqrt(np.linalg.slogdet(V)[1] + 2 * math.log(1 / delta)) + 1.0
        z = X[:, self.support]
        return int(np.argmax(z @ theta + radius * np.sqrt(np.sum(z * np.linalg.solve(V, z.T).T, axis=1))))

    def learn(self, x, reward):
        if not self.exploring():
            self.plays.append((x, reward))
            return
        self.samples.append((x, reward))
        self.explored += 1
        if self.explored == self.growth[1] ** self.phase * math.ceil(math.sqrt(self.first_phase)):
            X, y = (np.array(part) for part in zip(*self.samples, strict=True))
            theta = np.linalg.lstsq(X, y, rcond=None)[0]
            told = np.linalg.matrix_rank(X) == DIM
            self.begin(np.flatnonzero(np.abs(theta) >= (2.0 ** -(self.phase + 2) if told else 0.0)))


@pytest.mark.parametrize("fixed", [False, True])
def test_it_plays_the_arms_of_the_slow_transcription(fixed):
    agent = Agent(policies.ALBDimArms(ties="first", **SHORT), n_arms=N_ARMS, dim=DIM, seed=0)
    slow = SlowALBDim(**SHORT)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N_ARMS, DIM))
    for _ in range(36 + 6 + 144 + 18 + 100):
        X = X if fixed else rng.standard_normal((N_ARMS, DIM))
        decision = agent.select(X)
        if not slow.exploring():
            assert decision.arm == slow.choose(X)
        reward = float(decision.action @ THETA + 0.1 * rng.standard_normal())
        agent.update(decision, reward)
        slow.learn(decision.action, reward)
    found = agent.diagnostics()
    assert (found["phase"], found["samples"]) == (slow.phase, len(slow.samples)) == (2, 24)
    assert [phase["support"].tolist() for phase in found["phases"]] == slow.supports
    assert slow.supports[1:] == [list(range(DIM)) if fixed else [1, 3], [1, 3]]  # 6 draws of 6 fixed arms repeat some
    assert [phase["model"] for phase in found["phases"]] == [len(support) for support in slow.supports]


def test_on_fixed_arms_it_finds_a_support_that_no_nested_map_would_be():
    theta = np.zeros(12)
    theta[[4, 11]] = 0.8, -0.6
    env = FixedArms(n_arms=60, dim=12, theta=theta, noise_sd=0.3)
    run = simulate(policies.ALBDimArms(sigma=0.3, first_phase=900), env, horizon=5_000, trials=4, seed=0)
    for found in run.diagnostics:
        assert [phase["support"].tolist() for phase in found["phases"]] == [list(range(12)), [4, 11]]


def test_arms_that_do_not_span_the_features_keep_all_of_them():
    env = FixedArms(n_arms=4, dim=6, theta=[0.8, 0, 0, 0.6, 0, 0], noise_sd=0.1)
    found = simulate(policies.ALBDimArms(sigma=0.1, first_phase=100), env, horizon=300).diagnostics[0]
    assert found["phases"][1]["support"].tolist() == list(range(6))
    assert "factorise" in found["phases"][1]["reason"]


def test_where_nothing_is_above_the_threshold_all_features_are_kept():
    env = FixedArms(n_arms=8, dim=3, theta_norm=0.0, noise_sd=0.01)
    found = simulate(policies.ALBDimArms(sigma=0.01, first_phase=100), env, horizon=300).diagnostics[0]
    assert found["phases"][1]["support"].tolist() == [0, 1, 2]
    assert found["phases"][1]["reason"] == "all features kept: none was above the threshold"


def test_one_arm_is_no_choice():
    with pytest.raises(ValueError, match="n_arms"):
        Agent(policies.ALBDimArms(), n_arms=1, dim=2)
