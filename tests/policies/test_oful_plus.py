"""OFUL+: the golden cases, and what the two estimators converge to."""

from __future__ import annotations

import numpy as np
import pytest
from golden_norm import CASES, Case, assert_plays_as

from albatross import Agent, environments, policies, simulate


@pytest.mark.parametrize("name", CASES)
def test_it_plays_the_golden_case(name):
    case = Case(name)
    policy = policies.OFULPlus(norm_bound=float(case["oful_b"]), horizon=case.horizon, **case.ball)
    agent = Agent(policy, n_arms=case.n_arms, dim=case.dim)
    assert_plays_as(case, "oful", agent)
    found = agent.diagnostics()
    np.testing.assert_allclose(found["theta_hat"], case["oful_theta_end"], rtol=1e-7)
    np.testing.assert_allclose(found["radius"], case["oful_radius_end"], rtol=1e-7)
    np.testing.assert_allclose(found["optimistic_biases"], case["oful_mu_tilde_end"], rtol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_the_oracle_is_oful_plus_told_the_norm(name):
    case = Case(name)
    policy = policies.OFULPlus(norm_bound=float(np.linalg.norm(case["theta"])), horizon=case.horizon, **case.ball)
    agent = Agent(policy, n_arms=case.n_arms, dim=case.dim)
    assert_plays_as(case, "oracle", agent)
    np.testing.assert_allclose(agent.diagnostics()["theta_hat"], case["oracle_theta_end"], rtol=1e-7)


def test_the_centred_estimator_finds_theta_and_the_papers_own_shrinks_it():
    env = environments.Mixture(n_arms=10, dim=5, theta_norm=1.0, noise_sd=0.5)
    found = {}
    for estimator in ("centered", "paper"):
        policy = policies.OFULPlus(norm_bound=1.0, sigma=0.5, estimator=estimator, scale=0.1)
        run = simulate(policy, env, horizon=5_000, trials=4)
        errors = [np.linalg.norm(trial["theta_hat"] - trial["truth"]["theta"]) for trial in run.diagnostics]
        found[estimator] = np.mean(errors)
    assert found["centered"] < 0.1
    assert found["paper"] > 0.3


def test_simulate_fills_in_the_horizon_and_an_agent_asks_for_it():
    env = environments.Mixture(n_arms=4, dim=2)
    told = simulate(policies.OFULPlus(horizon=300), env, horizon=300)
    filled = simulate(policies.OFULPlus(), env, horizon=300)
    assert np.array_equal(told.regret, filled.regret)
    with pytest.raises(ValueError, match=r"OFULPlus needs the number of rounds.*OFULPlus\(horizon="):
        Agent(policies.OFULPlus(), n_arms=4, dim=2)
