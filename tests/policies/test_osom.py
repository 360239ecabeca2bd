"""OSOM: plays UCB's arms while contexts say nothing, and switches where they do."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from albatross import Agent, environments, policies, saving, simulate
from albatross.errors import UnreadableFile

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


def slow_osom(contexts, rewards, *, sigma, bound, delta, scale, horizon, test):
    """OSOM as the module's docstring has it, with the main text's radii and dense centred least squares.

    Return the arms, the round of the switch or None, and the two sums of the test on rewards.
    """
    n_arms, dim = contexts.shape[1:]
    rounds = horizon - n_arms
    log_level = np.sqrt(np.log(n_arms * rounds / delta))
    plays, arms, switched = [], [], None
    shortfall = allowance = 0.0
    tested = 0
    for t, X in enumerate(contexts):
        mine = [[k for k, (arm, _, _) in enumerate(plays) if arm == i] for i in range(n_arms)]
        if not all(mine):
            arm, promise = next(i for i in range(n_arms) if not mine[i]), None
        else:
            x = np.array([row for _, row, _ in plays])
            y = np.array([g for _, _, g in plays])
            means = np.array([[*x[k].mean(axis=0), y[k].mean()] for k in mine])
            arm_of = np.array([a for a, _, _ in plays])
            xc, yc = x - means[arm_of, :-1], y - means[arm_of, -1]
            theta = np.linalg.solve(np.eye(dim) + xc.T @ xc, xc.T @ yc)
            counts = np.array([len(k) for k in mine])
            bonus = scale * sigma * np.sqrt(dim / counts * np.log(1 / delta))
            if test == "norm":  # index (c) of UCB on means
                uniform = 1 + 2 * np.log(n_arms * np.sqrt(1 + counts) / delta)
                bonus = scale * sigma * np.sqrt((1 + counts) / counts**2 * uniform)
            n = max(len(plays) - n_arms, 1)
            too_long = np.linalg.norm(theta) > scale * sigma * np.sqrt(dim / n) * log_level
            enough = n >= (16 + 8 / 3) * np.log(2 * dim * rounds / delta)
            if test == "norm" and switched is None and enough and too_long:
                switched = len(plays)
            radius = scale * (sigma * np.sqrt(dim) + bound) / np.sqrt(n) * log_level
            reach = radius * np.linalg.norm(X, axis=1)
            simple = means[:, -1] + bonus
            complex_index = means[:, -1] - means[:, :-1] @ theta + X @ theta + bonus + reach
            i, j = int(np.argmax(simple)), int(np.argmax(complex_index))
            arm, promise = (i if switched is None else j), complex_index[j]
            allowed = 2 * bonus[i] + 2 * reach[j]
        reward = rewards[t, arm]
        plays.append((arm, X[arm], reward))
        arms.append(arm)
        if test == "reward" and promise is not None and switched is None:
            tested += 1
            shortfall += promise - reward
            allowance += allowed
            luck = sigma * np.sqrt(2 * tested * np.log(tested * (tested + 1) / delta))
            switched = len(plays) if shortfall > allowance + luck else None
    return arms, switched, shortfall, allowance


@pytest.mark.parametrize("test", ["reward", "norm"])
@pytest.mark.parametrize(("norm", "seed"), [(0.0, 0), (3.0, 1), (3.0, 2), (6.0, 3)])
def test_it_plays_the_arms_of_a_slow_transcription(test, norm, seed):
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((330, 4, 2))
    theta = rng.standard_normal(2)
    theta *= norm / np.linalg.norm(theta)
    rewards = rng.uniform(-1, 1, 4) + contexts @ theta + 0.3 * rng.standard_normal((330, 4))
    given = {"sigma": 0.3, "delta": 0.1, "scale": 0.5, "test": test, "horizon": 330}
    arms, switched, shortfall, allowance = slow_osom(contexts, rewards, bound=3.0, **given)
    agent = Agent(policies.OSOM(norm_bound=3.0, ties="first", **given), n_arms=4, dim=2)
    for t in range(330):
        decision = agent.select(contexts[t])
        assert decision.arm == arms[t]
        agent.update(decision, rewards[t, decision.arm])
    found = agent.diagnostics()
    assert found["switched_at"] == switched
    assert found["switched"] == (norm > 0.0)
    if test == "reward":
        assert found["shortfall"] == pytest.approx(shortfall, rel=1e-9)
        assert found["allowance"] == pytest.approx(allowance, rel=1e-9)


def test_at_the_papers_size_only_the_test_on_the_norm_can_reject_0_against_a_bound_of_10():
    env = environments.Mixture(n_arms=75, dim=50, theta_norm=1.0, noise_sd=0.5**0.5)
    given = {"sigma": 0.5**0.5, "norm_bound": 10.0}
    both = {test: policies.OSOM(test=test, **given) for test in ("reward", "norm")}
    runs = simulate(both, env, horizon=12_775, trials=3, record=2)
    assert [found["switched_at"] for found in runs["reward"].diagnostics] == [None] * 3
    assert all(found["switched_at"] < 1_000 for found in runs["norm"].diagnostics)
    assert runs["norm"].regret[:, -1].max() < 0.2 * runs["reward"].regret[:, -1].min()


def test_the_test_on_the_norm_does_not_reject_0_where_it_is_true():
    env = environments.Mixture(n_arms=6, dim=3, theta_norm=0.0, noise_sd=0.5)
    osom = policies.OSOM(**BALL, test="norm", scale=1.0, ties="first")
    ucb = policies.UCB(sigma=0.5, form="appendix", scale=1.0, ties="first")
    runs = simulate({"osom": osom, "ucb": ucb}, env, horizon=2_000, trials=10, record=2_000)
    assert not any(found["switched"] for found in runs["osom"].diagnostics)
    assert np.array_equal(runs["osom"].regret, runs["ucb"].regret)


def test_a_file_of_an_earlier_version_loads_with_the_round_of_its_switch_unknown():
    agent = Agent(policies.OSOM(**BALL, horizon=500), n_arms=3, dim=2, seed=0)
    agent.update(agent.select([0.0, 0.0]), 1.0)
    file = saving.in_memory(agent)
    with np.load(file) as archive:
        members = dict(archive)
    header = json.loads(members["header"].tobytes())
    del header["policy"]["parameters"]["test"]  # earlier versions had no such keyword,
    members["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    members["state/switched"] = np.ones(1)  # and wrote 1 for yes
    older = io.BytesIO()
    np.savez(older, **members)
    older.seek(0)
    found = Agent.load(older).diagnostics()
    assert found["switched"]
    assert found["switched_at"] is None


def test_an_impossible_round_of_the_switch_is_refused():
    agent = Agent(policies.OSOM(**BALL, horizon=500), n_arms=3, dim=2, seed=0)
    for wrong in (np.nan, -1.0, 2.5):
        agent._state.switched[0] = wrong
        with pytest.raises(UnreadableFile, match="switched holds"):
            Agent.load(saving.in_memory(agent))
