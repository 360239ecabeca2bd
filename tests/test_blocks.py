"""Blocks of equal actions: the same law as round by round, and where they are not valid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp
from stepping import learn_block

from albatross import Agent, policies, simulate
from albatross.environments import Ball, Mixture
from albatross.protocol import Choice, hold

THETA = np.array([0.5, -0.4, 0.3, 0.0, 0.2])
SIGMA = 0.7
ENV = Ball(dim=5, theta=THETA, noise_sd=SIGMA)
PLAYERS = {
    "oful": policies.BallOFUL(sigma=SIGMA, switch=1.0),
    "lints": policies.BallLinTS(sigma=SIGMA, switch=1.0),
    "alb-dim": policies.ALBDim(sigma=SIGMA, first_phase=20, switch=1.0),
}


@pytest.mark.parametrize("name", PLAYERS)
def test_blocks_and_rounds_agree_in_law(name):
    blocks = simulate(PLAYERS[name], ENV, horizon=600, trials=1_500, seed=1_001, record=[40, 600])
    rounds = simulate(PLAYERS[name], ENV, horizon=600, trials=1_500, seed=2_001, record=[40, 600], blocks=False)
    for when in (0, 1):
        assert ks_2samp(blocks.regret[:, when], rounds.regret[:, when]).pvalue > 0.01
        assert ks_2samp(blocks.reward[:, when], rounds.reward[:, when]).pvalue > 0.01
    switches = [np.mean([found["switches"] for found in run.diagnostics]) for run in (blocks, rounds)]
    assert switches[0] == pytest.approx(switches[1], rel=0.03)


def test_without_noise_blocks_and_rounds_agree_to_rounding_at_every_recorded_round():
    env = Ball(dim=5, theta=THETA, noise_sd=0.0)
    policy = PLAYERS["oful"]
    rounds = simulate(policy, env, horizon=500, record=range(1, 501), blocks=False)
    for record in (range(1, 501), [1, 2, 7, 40, 41, 499, 500], [17], [500]):
        blocks = simulate(policy, env, horizon=500, record=list(record))
        at = np.array(list(record)) - 1
        assert blocks.rounds.tolist() == list(record)
        assert blocks.regret[0] == pytest.approx(rounds.regret[0, at], rel=1e-9)
        assert blocks.reward[0] == pytest.approx(rounds.reward[0, at], rel=1e-9)
        assert blocks.regret[0] + blocks.reward[0] == pytest.approx(np.linalg.norm(THETA) * blocks.rounds, rel=1e-12)
        assert blocks.diagnostics[0]["pulls"].tolist() == [500.0]


def test_rewards_inside_blocks_have_the_spread_of_their_rounds():
    run = simulate(PLAYERS["oful"], ENV, horizon=1_000, trials=1_000, seed=5, record=[1, 10, 100, 999, 1_000])
    luck = run.reward + run.regret - np.linalg.norm(THETA) * run.rounds  # the noise alone
    assert luck.std(axis=0) == pytest.approx(SIGMA * np.sqrt(run.rounds), rel=0.1)
    assert np.all(np.abs(luck.mean(axis=0)) < 4 * SIGMA * np.sqrt(run.rounds / 1_000))
    steps = np.diff(luck, axis=1)
    assert abs(np.corrcoef(steps[:, 2], steps[:, 3])[0, 1]) < 4 / np.sqrt(1_000)


def test_a_trillion_rounds_of_all_policies_are_recorded_on_a_logarithmic_grid():
    runs = simulate(PLAYERS, ENV, horizon=10**12, record="log")
    for run in runs.values():
        assert (run.rounds[0], run.rounds[-1]) == (1, 10**12)
        assert np.all(np.diff(run.regret[0]) >= 0.0)
        assert np.isfinite(run.reward).all()
        assert run.diagnostics[0]["pulls"].tolist() == [1e12]


def test_a_horizon_past_what_floats_can_count_is_refused():
    for horizon in (2**53 + 1, 10**20):
        with pytest.raises(ValueError, match="horizon"):
            simulate(PLAYERS["oful"], ENV, horizon=horizon)


@pytest.mark.parametrize("dim", [1, 5])
def test_blocks_reach_the_longest_horizon_without_falling_back_to_single_rounds(dim):
    """Near 2^53 rounds one more play changes ln det V by less than its rounding: a block must still end its action."""
    agent = Agent(policies.BallOFUL(sigma=SIGMA, switch=1.0), dim=dim)
    parameters, state = agent._parameters, agent._state
    theta, rng = np.zeros(dim), np.random.default_rng(0)
    theta[0] = 0.5
    played, blocks = 0, 0
    while played < 2**53 and blocks < 1_000:  # some 250 blocks are needed at dim=5
        decision = agent.select()
        choice = Choice(*agent._pending[decision.id])
        n = min(hold(parameters, state, choice), 2**53 - played)
        gain = n * (choice.action @ theta) + SIGMA * np.sqrt(n) * rng.standard_normal()
        learn_block(agent, decision, float(gain), n)
        played += n
        blocks += 1
    assert played == 2**53


def test_noise_that_is_not_gaussian_is_played_round_by_round_and_says_so():
    env = Ball(dim=5, theta=THETA, noise_sd=SIGMA, noise="uniform")
    with pytest.warns(UserWarning, match="round by round"):
        warned = simulate(PLAYERS["oful"], env, horizon=300, trials=2, seed=1)
    asked = simulate(PLAYERS["oful"], env, horizon=300, trials=2, seed=1, blocks=False)  # which needs no warning
    assert np.array_equal(warned.regret, asked.regret)
    luck = np.diff(warned.reward + warned.regret, axis=1) - np.linalg.norm(THETA)
    assert np.abs(luck).max() <= SIGMA * np.sqrt(3.0) + 1e-9


@pytest.mark.parametrize("policy", [policies.LinTS(sigma=0.5), policies.Uniform()])
def test_a_policy_for_finitely_many_arms_is_refused_on_the_ball_by_name(policy):
    with pytest.raises(ValueError, match=type(policy).__name__):
        simulate(policy, ENV, horizon=10)


@pytest.mark.parametrize("name", PLAYERS)
def test_a_policy_on_the_ball_is_refused_among_finitely_many_arms_by_name(name):
    with pytest.raises(ValueError, match=type(PLAYERS[name]).__name__):
        simulate(PLAYERS[name], Mixture(n_arms=3, dim=5, noise_sd=0.1), horizon=10)


@pytest.mark.parametrize("blocks", [True, False])
def test_numbers_depend_neither_on_workers_nor_on_who_else_plays(blocks):
    env = Ball(dim=5, sparsity=2, smallest=0.3, noise_sd=SIGMA)
    settings = {"horizon": 700, "trials": 4, "seed": 9, "record": 20, "blocks": blocks}
    together = simulate(PLAYERS, env, workers=1, **settings)
    in_two = simulate(dict(reversed(PLAYERS.items())), env, workers=2, **settings)
    for name, policy in PLAYERS.items():
        alone = simulate(policy, env, workers=1, **settings)
        for other in (in_two[name], alone):
            assert np.array_equal(together[name].regret, other.regret)
            assert np.array_equal(together[name].reward, other.reward)
        for found, same in zip(together[name].diagnostics, alone.diagnostics, strict=True):
            assert np.array_equal(found["truth"]["theta"], same["truth"]["theta"])


def test_policies_of_a_trial_share_theta():
    env = Ball(dim=5, sparsity=2, smallest=0.3, noise_sd=SIGMA)
    runs = simulate(PLAYERS, env, horizon=50, trials=3, seed=2)
    for trial in range(3):
        thetas = [run.diagnostics[trial]["truth"]["theta"] for run in runs.values()]
        assert all(np.array_equal(theta, thetas[0]) for theta in thetas)


@pytest.mark.parametrize("blocks", [True, False])
def test_what_is_recorded_changes_no_number(blocks):
    for name, policy in PLAYERS.items():
        finals = [
            simulate(policy, ENV, horizon=5_000, seed=3, record=record, blocks=blocks)
            for record in ([5_000], [10, 2_300, 5_000], None, "log")
        ]
        for run in finals[1:]:
            assert run.regret[0, -1] == finals[0].regret[0, -1], name
            assert run.reward[0, -1] == pytest.approx(finals[0].reward[0, -1], rel=1e-12), name
