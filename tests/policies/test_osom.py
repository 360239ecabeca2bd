"""OSOM: plays UCB's arms while contexts say nothing, and switches where they do."""

from __future__ import annotations

import numpy as np

from albatross import Agent, environments, policies, simulate

BALL = {"sigma": 0.5, "norm_bound": 1.0}


def test_where_theta_is_zero_it_plays_ucbs_arms():
    env = environments.Mixture(n_arms=6, dim=3, theta_norm=0.0, noise_sd=0.5)
    osom = policies.OSOM(**BALL, ties="first")
    ucb = policies.UCB(sigma=0.5, form="main", scale=0.5, ties="first")
    runs = simulate({"osom": osom, "ucb": ucb}, env, horizon=2_000, trials=10, record=2_000)
    assert not any(found["switched"] for found in runs["osom"].diagnostics)
    assert np.array_equal(runs["osom"].regret, runs["ucb"].regret)


def test_it_switches_where_contexts_matter_and_gains_by_it():
    env = environments.Mixture(n_arms=6, dim=3, theta_norm=3.0, noise_sd=0.5)
    osom = policies.OSOM(sigma=0.5, norm_bound=3.0)
    ucb = policies.UCB(sigma=0.5)
    runs = simulate({"osom": osom, "ucb": ucb}, env, horizon=2_000, trials=10)
    assert all(found["switched"] for found in runs["osom"].diagnostics)
    assert runs["osom"].regret[:, -1].mean() < 0.5 * runs["ucb"].regret[:, -1].mean()


def test_once_switched_it_never_goes_back():
    agent = Agent(policies.OSOM(sigma=0.1, norm_bound=3.0, horizon=2_000), n_arms=4, dim=2, seed=0)
    rng = np.random.default_rng(0)
    switched = []
    for _ in range(600):
        decision = agent.select(rng.standard_normal((4, 2)))
        agent.update(decision, float(3.0 * decision.action[0] + 0.1 * rng.standard_normal()))
        switched.append(agent.diagnostics()["switched"])
    first = switched.index(True)
    assert not any(switched[:first])
    assert all(switched[first:])


def test_a_log_teaches_it_without_counting_towards_the_switch():
    agent = Agent(policies.OSOM(**BALL, horizon=500), n_arms=3, dim=2)
    rng = np.random.default_rng(0)
    agent.warm_start(rng.standard_normal((50, 2)), rng.integers(3, size=50), rng.standard_normal(50))
    found = agent.diagnostics()
    assert found["pulls"].sum() == 50
    assert found["shortfall"] == 0.0
    assert found["theta_hat"].any()
