"""OFUL on the unit ball: golden replay, the action it plays, and rare switching."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from stepping import same_state, state_of

from albatross import Agent, policies, simulate
from albatross.environments import Ball
from albatross.linalg.eigen import optimistic_action
from albatross.protocol import Choice, hold, update

GOLDEN = np.load(Path(__file__).parent.parent / "golden" / "dim" / "replay.npz")
THETA = np.array([0.5, -0.4, 0.3, 0.2])


def golden_agent(**changed):
    return Agent(policies.BallOFUL(sigma=float(GOLDEN["sigma"]), delta=float(GOLDEN["delta"]), **changed), dim=4)


def precision(agent):
    """V of an agent, from its eigenbasis."""
    fit = agent._state.fit
    axes = fit.carried[2:]
    return (axes * fit.values) @ axes.T


def plays_left(agent, decision):
    return hold(agent._parameters, agent._state, Choice(*agent._pending[decision.id]))


# ----------------------------------------------------------------------------------------------------- replay


def check_replay(agent, t):
    found = agent.diagnostics()
    assert found["theta_hat"] == pytest.approx(GOLDEN["theta_hat"][t], rel=1e-10, abs=1e-14)
    assert found["log_det"] == pytest.approx(GOLDEN["logdet"][t], rel=1e-10, abs=1e-15)
    assert found["radius"] == pytest.approx(GOLDEN["beta"][t], rel=1e-10)
    assert np.abs(precision(agent) - GOLDEN["V"][t]).max() < 1e-10


@pytest.mark.parametrize("switch", [0.0, 1.0])
def test_golden_replay_of_somebodys_actions_one_by_one(switch):
    agent = golden_agent(switch=switch)
    check_replay(agent, 0)
    for t, (action, reward) in enumerate(zip(GOLDEN["actions"], GOLDEN["rewards"], strict=True), start=1):
        agent.update(action, float(reward))
        check_replay(agent, t)
    assert agent.diagnostics()["pulls"].tolist() == [12.0]


def test_golden_replay_as_a_log():
    agent = golden_agent()
    agent.warm_start(GOLDEN["actions"], None, GOLDEN["rewards"])
    check_replay(agent, 12)


def test_golden_block_of_five_plays_is_one_update():
    agent = golden_agent()
    choice = Choice(0, GOLDEN["actions"][0].copy(), 0.0, 0.0, np.nan, np.full(5, np.nan))
    update(agent._parameters, agent._state, choice, float(GOLDEN["rewards"][:5].sum()), 5)
    assert precision(agent) == pytest.approx(GOLDEN["block_V"], rel=1e-10, abs=1e-14)
    moment = agent._state.fit.carried[2:] @ agent._state.fit.carried[0]
    assert moment == pytest.approx(GOLDEN["block_b"], rel=1e-10, abs=1e-14)


# ------------------------------------------------------------------------------------------------- the action


def test_the_action_is_the_optimistic_one_of_all_that_was_learnt():
    rng = np.random.default_rng(0)
    agent = Agent(policies.BallOFUL(sigma=0.3, delta=0.05), dim=4)
    V, moment, compared = np.eye(4), np.zeros(4), 0
    for _ in range(60):
        decision = agent.select()
        theta_hat = np.linalg.solve(V, moment)
        beta = 0.3 * np.sqrt(np.linalg.slogdet(V)[1] + 2 * np.log(1 / 0.05)) + 1.0
        action, value = optimistic_action(V, theta_hat, beta)
        assert decision.score == pytest.approx(value, rel=1e-9)
        assert np.linalg.norm(decision.action) == pytest.approx(1.0, abs=1e-12)
        width = decision.action @ np.linalg.solve(V, decision.action)
        assert decision.width == pytest.approx(beta * np.sqrt(width), rel=1e-6)
        values, basis = np.linalg.eigh(V)
        if values[1] > values[0] * (1 + 1e-6) and abs(basis[:, 0] @ theta_hat) > 1e-4:
            assert decision.action == pytest.approx(action, abs=1e-6)
            compared += 1
        reward = float(decision.action @ THETA + 0.3 * rng.standard_normal())
        agent.update(decision, reward)
        V += np.outer(decision.action, decision.action)
        moment += reward * decision.action
    assert compared > 30


def test_on_a_support_the_action_is_zero_elsewhere_and_the_rest_is_a_smaller_ball():
    agent = Agent(policies.BallOFUL(sigma=0.3, support=(1, 3)), dim=4)
    small = Agent(policies.BallOFUL(sigma=0.3), dim=2)
    for t in range(20):
        one, other = agent.select(), small.select()
        assert one.action[[0, 2]].tolist() == [0.0, 0.0]
        assert one.action[[1, 3]] == pytest.approx(other.action, abs=1e-9)
        agent.update(one, 0.1 * t)
        small.update(other, 0.1 * t)
    assert agent.diagnostics()["dimension"] == 2


def test_a_support_outside_the_ball_is_refused():
    with pytest.raises(ValueError, match="support"):
        Agent(policies.BallOFUL(support=(0, 4)), dim=4)


def test_rewards_may_come_late_and_in_any_order():
    agent, prompt = (Agent(policies.BallOFUL(sigma=0.3, switch=0.5), dim=4) for _ in range(2))
    decisions = [agent.select() for _ in range(3)]
    for i in (2, 0, 1):
        agent.update(decisions[i], 0.1 * i)
    for i in range(3):
        prompt.update(np.array(decisions[i].action), 0.1 * i)
    assert agent.diagnostics()["theta_hat"] == pytest.approx(prompt.diagnostics()["theta_hat"], abs=1e-12)
    assert agent.diagnostics()["log_det"] == pytest.approx(prompt.diagnostics()["log_det"], rel=1e-12)


# -------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("action", "reward", "named"),
    [
        ([2.0, 0.0, 0.0, 0.0], 0.5, "action"),
        ([np.nan, 0.0, 0.0, 0.0], 0.5, "action"),
        ([0.5, 0.0, 0.0], 0.5, "action"),
        ([0.5, 0.0, 0.0, 0.0], np.nan, "reward"),
        ([0.5, 0.0, 0.0, 0.0], np.inf, "reward"),
    ],
)
def test_bad_input_names_the_argument_and_leaves_the_state_untouched(action, reward, named):
    agent = golden_agent()
    agent.update(np.array([0.5, 0.5, 0.0, 0.0]), 0.3)
    before = state_of(agent)
    for given in (action, np.array(action)):
        with pytest.raises(ValueError, match=named):
            agent.update(given, reward)
    decision = agent.select()
    with pytest.raises(ValueError, match="reward"):
        agent.update(decision, np.nan)
    assert same_state(before, state_of(agent))


# --------------------------------------------------------------------------------------------- rare switching


def test_an_action_is_kept_until_the_determinant_has_grown_by_more_than_the_factor():
    rng = np.random.default_rng(1)
    switch = 0.7
    agent = Agent(policies.BallOFUL(sigma=0.2, switch=switch), dim=4)
    chosen_at, kept, switches = 0.0, None, 0
    for _ in range(300):
        decision = agent.select()
        if kept is not None:
            assert decision.action == pytest.approx(kept, abs=1e-9)
        agent.update(decision, float(decision.action @ THETA + 0.2 * rng.standard_normal()))
        found = agent.diagnostics()
        grown = found["log_det"] - chosen_at
        if found["switches"] > switches:
            assert grown > np.log1p(switch)
            chosen_at, kept, switches = found["log_det"], None, found["switches"]
        else:
            assert grown <= np.log1p(switch) * (1 + 1e-12)
            kept = decision.action
    assert 5 < switches < 100


def test_hold_says_how_many_single_plays_there_are_until_the_action_changes():
    rng = np.random.default_rng(2)
    agent = Agent(policies.BallOFUL(sigma=0.2, switch=0.7), dim=4)
    for _ in range(12):
        first = agent.select()
        promised = plays_left(agent, first)
        switches = agent.diagnostics()["switches"]
        decision, plays = first, 0
        while agent.diagnostics()["switches"] == switches:
            assert plays_left(agent, decision) == promised - plays
            agent.update(decision, float(decision.action @ THETA + 0.2 * rng.standard_normal()))
            plays += 1
            decision = agent.select()
        assert plays == promised
        assert np.abs(decision.action - first.action).max() > 1e-6


def test_without_switching_every_play_is_a_choice_of_its_own():
    agent = Agent(policies.BallOFUL(sigma=0.2), dim=4)
    for t in range(1, 10):
        decision = agent.select()
        assert plays_left(agent, decision) == 1
        agent.update(decision, 0.2)
        assert agent.diagnostics()["switches"] == t


def test_a_small_factor_plays_like_choosing_every_round():
    env = Ball(dim=5, theta=[0.5, -0.4, 0.3, 0.0, 0.2], noise_sd=0.7)
    settings = {"horizon": 500, "trials": 600, "record": 1}
    rare = simulate(policies.BallOFUL(sigma=0.7, switch=0.05), env, seed=1, **settings).regret[:, -1]
    often = simulate(policies.BallOFUL(sigma=0.7, switch=0.0), env, seed=2, **settings).regret[:, -1]
    error = np.sqrt(rare.var(ddof=1) / rare.size + often.var(ddof=1) / often.size)
    assert abs(rare.mean() - often.mean()) < 3 * error
    assert error < 0.02 * often.mean()


def test_after_a_trillion_rounds_the_eigenvalues_still_make_up_the_determinant():
    env = Ball(dim=200, magnitudes=np.linspace(0.12, 0.30, 20), noise_sd=np.sqrt(0.5))
    policy = policies.BallOFUL(sigma=float(np.sqrt(0.5)), switch=1.0)
    run = simulate(policy, env, horizon=10**12, seed=0, record="log")
    found = run.diagnostics[0]
    assert found["pulls"].tolist() == [1e12]
    assert np.sum(np.log(found["eigenvalues"])) == pytest.approx(found["log_det"], rel=1e-8)
    assert np.sum(found["eigenvalues"]) == pytest.approx(1e12 + 200, rel=1e-8)  # trace: all actions have length 1


@pytest.mark.parametrize("delay", [0, 1, 10])
@pytest.mark.parametrize("policy", [policies.BallOFUL, policies.ALBDim])
def test_actions_change_as_rarely_when_rewards_come_late(policy, delay):
    agent, rng, waiting, played = Agent(policy(sigma=0.3, switch=1.0), dim=4), np.random.default_rng(0), [], []
    for _ in range(500 if policy is policies.BallOFUL else 70):  # within ALB-Dim's first phase
        decision = agent.select()
        played.append(decision.action)
        waiting.append((decision, float(decision.action @ THETA + 0.3 * rng.standard_normal())))
        if len(waiting) > delay:
            agent.update(*waiting.pop(0))
    changes = sum(not np.array_equal(one, other) for one, other in pairwise(played))  # kept to the last bit
    switches = agent.diagnostics()["switches"]
    assert switches <= changes + 1 <= switches + 2
    assert changes <= 1 + agent.diagnostics()["log_det"] / np.log(2.0)


@pytest.mark.parametrize("switch", [0.5, 1.0, 2.0])
def test_where_the_determinant_ties_with_the_rule_blocks_are_as_long_as_exact_arithmetic_has_them(switch):
    agent = Agent(policies.BallOFUL(sigma=0.3, switch=switch), dim=1)
    det, exact, counted, run = 1, [], [], 0
    while len(exact) < 5:  # V is the number of plays + 1: a block ends when it is more than 1 + C times its start
        exact.append(int(switch * det) + 1)
        det += exact[-1]
    while len(counted) < 5:
        before = agent.diagnostics()["switches"]
        agent.update(agent.select(), 0.1)
        run += 1
        if agent.diagnostics()["switches"] > before:
            counted.append(run)
            run = 0
    assert counted == exact


def test_a_kept_draw_of_thompson_sampling_is_the_same_vector_to_the_last_bit():
    agent, rng, played = Agent(policies.BallLinTS(sigma=0.3, switch=1.0), dim=4, seed=0), np.random.default_rng(0), []
    for _ in range(300):
        decision = agent.select()
        played.append(decision.action)
        agent.update(decision, float(decision.action @ THETA + 0.3 * rng.standard_normal()))
    changes = sum(not np.array_equal(one, other) for one, other in pairwise(played))
    assert changes <= agent.diagnostics()["switches"]


def test_score_and_width_are_those_of_the_action_that_is_played_also_while_it_is_kept():
    agent, rng = golden_agent(switch=1.0), np.random.default_rng(0)
    for _ in range(200):
        decision, found, V = agent.select(), agent.diagnostics(), precision(agent)
        width = found["radius"] * np.sqrt(decision.action @ np.linalg.solve(V, decision.action))
        assert decision.width == pytest.approx(width, rel=1e-9)
        assert decision.score == pytest.approx(decision.action @ found["theta_hat"] + width, rel=1e-9)
        agent.update(decision, float(decision.action @ THETA + rng.standard_normal()))


def test_a_vector_that_the_agent_chose_is_the_reward_of_that_decision():
    agent = Agent(policies.ALBDim(first_phase=5, exploration="gaussian"), dim=4, seed=0)
    for _ in range(40):
        agent.update(agent.select().action, 0.5)  # some of them are longer than 1
    assert agent.diagnostics()["pending"] == 0
    assert agent.diagnostics()["phase"] == 1
    with pytest.raises(ValueError, match=r"length at most 1, got 1\.5"):
        agent.update([1.5, 0.0, 0.0, 0.0], 0.5)


def test_an_endless_switch_plays_one_action_for_ever():
    run = simulate(policies.BallOFUL(switch=1e19), Ball(dim=4, theta=THETA), horizon=10**15)
    assert run.diagnostics[0]["switches"] == 0
