"""What every policy is held to."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from processes import LIMIT
from stepping import agent_on_stream, regret_on_ball, rounds_of, same_state, state_of, tracked_play
from variants import (
    DIM,
    HORIZON,
    N_ARMS,
    ON_THE_BALL,
    SIGMA,
    SLOW_TO_START,
    VARIANTS,
    easy_problem,
    has_biases,
    new_agent,
    offered,
)

from albatross import Agent, checks, policies, simulate
from albatross.protocol import Choice, hold, on_ball, reset, resolve, update

every_policy = pytest.mark.parametrize("name", VARIANTS)
every_policy_with_arms = pytest.mark.parametrize("name", [name for name in VARIANTS if name not in ON_THE_BALL])
every_policy_on_the_ball = pytest.mark.parametrize("name", sorted(ON_THE_BALL))


def play(name, agent, rng, rounds):
    """So many rounds of contexts and rewards that depend on nothing but `rng` and the agent."""
    decisions = []
    for _ in range(rounds):
        decision = agent.select(*offered(name, rng))
        agent.update(decision, float(decision.action.sum() + 0.3 * decision.arm + 0.1 * rng.standard_normal()))
        decisions.append(decision)
    return decisions


def test_every_policy_of_the_catalogue_is_held_to_the_contract():
    assert {type(policy) for policy in VARIANTS.values()} == {entry.policy for entry in policies.CATALOGUE.values()}


@every_policy_with_arms
def test_stepping_equals_the_compiled_loop_bit_for_bit(name):
    env, policy = easy_problem(name), VARIANTS[name]
    run = simulate(policy, env, horizon=HORIZON, seed=3, record=HORIZON)
    agent = agent_on_stream(policy, env, seed=3)
    total, regret = 0.0, []
    for contexts, means, noise in rounds_of(env, horizon=HORIZON, seed=3):
        arm = (decision := agent.select(contexts)).arm
        agent.update(decision, means[arm] + noise[arm])
        total += means.max() - means[arm]
        regret.append(total)
    assert regret == run.regret[0].tolist()
    stepped, compiled = agent.diagnostics(), run.diagnostics[0]
    for key in compiled.keys() - {"truth"}:
        np.testing.assert_equal(stepped[key], compiled[key], err_msg=key)  # also through dicts and lists


def arms_and_scores(variants, rounds):
    found = {}
    for name in variants:
        decisions = play(name, new_agent(name, seed=1), np.random.default_rng(5), rounds)
        found[name] = [[int(decision.arm), float(decision.score), float(decision.width)] for decision in decisions]
    return found


def test_without_compilation_the_same_arms_are_played():
    script = (
        "import json, sys; sys.path.insert(0, 'tests'); import test_contract as t;"
        "print(json.dumps(t.arms_and_scores(t.VARIANTS, 50)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=os.path.dirname(os.path.dirname(__file__)),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    interpreted, compiled = json.loads(done.stdout), arms_and_scores(VARIANTS, 50)
    for name in VARIANTS:
        slow, fast = np.array(interpreted[name]), np.array(compiled[name])
        assert slow[:, 0].tolist() == fast[:, 0].tolist(), name
        np.testing.assert_allclose(slow, fast, rtol=1e-9, atol=1e-12, err_msg=name)


@every_policy
def test_select_writes_nothing_into_the_state(name):
    agent = new_agent(name, seed=0)
    rng = np.random.default_rng(2)
    play(name, agent, rng, 60)
    before = state_of(agent)
    for _ in range(20):
        agent.select(*offered(name, rng))
    assert same_state(before, state_of(agent))


@every_policy
def test_saving_and_loading_in_the_middle_changes_nothing(name, tmp_path):
    straight = new_agent(name, seed=7)
    broken = new_agent(name, seed=7)
    play(name, straight, one := np.random.default_rng(8), 120)
    play(name, broken, two := np.random.default_rng(8), 70)
    broken.save(tmp_path / "agent")
    broken = Agent.load(tmp_path / "agent")
    play(name, broken, two, 50)
    assert same_state(state_of(straight), state_of(broken))
    last, again = play(name, straight, one, 1)[0], play(name, broken, two, 1)[0]
    assert (last.arm, last.score) == (again.arm, again.score)


@every_policy_with_arms
def test_late_and_out_of_order_rewards_are_taken(name):
    env, policy = easy_problem(name), VARIANTS[name]
    agent = agent_on_stream(policy, env, seed=4)
    rng, waiting, regret, uniform = np.random.default_rng(0), [], 0.0, 0.0
    for contexts, means, noise in rounds_of(env, horizon=HORIZON, seed=4):
        decision = agent.select(contexts)
        waiting.append((decision, means[decision.arm] + noise[decision.arm]))
        regret += means.max() - means[decision.arm]
        uniform += means.max() - means.mean()
        while len(waiting) > 15:
            late = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.9:  # some never come
                agent.update(*late)
    assert agent.diagnostics()["pulls"].sum() == HORIZON - agent.diagnostics()["pending"]
    for array in state_of(agent).values():
        assert np.isfinite(array).all()
    if name != "uniform" and name not in SLOW_TO_START:
        assert regret < 0.8 * uniform


@every_policy_with_arms
def test_rewards_that_never_come_starve_no_arm(name):
    env, policy = easy_problem(name), VARIANTS[name]
    agent = agent_on_stream(policy, env, seed=6)
    rng, chosen, regret, uniform, lost = np.random.default_rng(0), np.zeros(N_ARMS), 0.0, 0.0, np.zeros(N_ARMS)
    rounds = 4 * HORIZON
    for t, (contexts, means, noise) in enumerate(rounds_of(env, horizon=rounds, seed=6)):
        decision = agent.select(contexts)
        arm = decision.arm
        lost[arm] += 1
        if lost[arm] > 2 and rng.random() < 0.9:  # the first two plays of every arm are never rewarded, nor some others
            agent.update(decision, means[arm] + noise[arm])
        if t >= rounds // 2:
            chosen[arm] += 1
            regret += means.max() - means[arm]
            uniform += means.max() - means.mean()
    if name in ("uniform", "greedy", *SLOW_TO_START):  # greedy never explores
        return
    assert regret < 0.5 * uniform
    if has_biases(name):  # the best arm is the same in all rounds
        assert chosen[-1] > 0


@every_policy
def test_the_seed_fixes_everything_and_the_worker_count_nothing(name):
    env, policy = easy_problem(name), VARIANTS[name]
    one = simulate(policy, env, horizon=100, trials=3, seed=1, workers=1)
    two = simulate(policy, env, horizon=100, trials=3, seed=1, workers=2)
    other = simulate(policy, env, horizon=100, trials=3, seed=2, workers=2)
    assert np.array_equal(one.regret, two.regret)
    assert not np.array_equal(one.regret, other.regret)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "uniform" and name not in ON_THE_BALL])
def test_it_beats_uniform_play_by_a_wide_margin_on_an_easy_problem(name):
    horizon = 20 * HORIZON if name in SLOW_TO_START else HORIZON
    runs = simulate(
        {"it": VARIANTS[name], "uniform": policies.Uniform()}, easy_problem(name), horizon=horizon, trials=5, seed=0
    )
    assert runs["it"].regret[:, -1].mean() < 0.5 * runs["uniform"].regret[:, -1].mean()


@every_policy_with_arms
def test_ineligible_arms_are_never_played(name):
    agent = new_agent(name, seed=0)
    rng = np.random.default_rng(3)
    for t in range(120):
        eligible = rng.permutation(N_ARMS)[: 1 + t % N_ARMS]
        decision = agent.select(rng.standard_normal((N_ARMS, DIM)), eligible=eligible)
        assert decision.arm in eligible
        agent.update(decision, float(rng.standard_normal()))


@every_policy_with_arms
def test_input_that_is_not_finite_or_of_the_wrong_shape_is_refused_before_the_state_changes(name):
    agent = new_agent(name, seed=0)
    play(name, agent, np.random.default_rng(1), 30)
    decision = agent.select(np.ones((N_ARMS, DIM)))
    before, stream = state_of(agent), json.dumps(agent._rng.bit_generator.state, default=str)
    spoilt = np.ones((N_ARMS, DIM))
    spoilt[2, 1] = np.nan
    for wrong in (spoilt, np.ones((N_ARMS, DIM + 1)), np.ones((N_ARMS - 1, DIM)), np.full((N_ARMS, DIM), np.inf)):
        with pytest.raises(ValueError):
            agent.select(wrong)
    for wrong in (np.nan, np.inf, "much", None):
        with pytest.raises(ValueError):
            agent.update(decision, wrong)
    assert same_state(before, state_of(agent))
    assert stream == json.dumps(agent._rng.bit_generator.state, default=str)
    agent.update(decision, 1.0)


@pytest.mark.parametrize("name", policies.CATALOGUE)
def test_its_docstring_cites_its_paper(name):
    entry = policies.CATALOGUE[name]
    cited = re.search(r"\d{4}", entry.policy.__doc__)
    assert cited or name == "uniform"


def _sizes():
    """Rounds of contexts whose squares are no longer numbers, or were never any."""
    rng = np.random.default_rng(6)
    free = rng.standard_normal((60, N_ARMS, DIM))
    collinear = rng.standard_normal((60, N_ARMS, 1)) * [1.0, -2.0, 0.5]
    half = np.arange(60)[:, None, None] < 30
    yield "zeros", np.zeros_like(free)
    for size in (1e-300, 1e-200, 1e-156, 1e-140, 1e-100):
        yield f"{size:g}", size * free
        yield f"collinear-{size:g}", size * collinear
    yield "largest", checks.LARGEST * np.tanh(free)
    yield "growing", np.where(half, 1e-150 * free, 1e99 * free)
    yield "shrinking", np.where(half, 1e99 * free, 1e-150 * free)
    yield "mixed-arms", free * np.array([1e-300, 1e-150, 0.0, 1.0, 1e99])[:, None]
    yield "mixed-features", free * [1e-156, 1.0, 1e99]
    yield "any", free * 10.0 ** rng.uniform(-300.0, 99.0, (60, 1, DIM))


@every_policy_with_arms
def test_whatever_the_size_of_contexts_no_score_is_nan_and_diagnostics_answer(name):
    for size, rounds in _sizes():
        agent, rng = new_agent(name, seed=0), np.random.default_rng(7)
        for contexts in rounds:
            decision = agent.select(contexts)
            assert not np.isnan([decision.score, decision.width]).any(), size
            agent.update(decision, float(rng.standard_normal() + decision.arm))
        for key, array in state_of(agent).items():
            assert not np.isnan(array).any(), (size, key)
        assert agent.diagnostics()["pulls"].sum() == len(rounds), size


@every_policy
def test_its_diagnostics_have_a_list_of_warnings(name):
    agent = new_agent(name, seed=0)
    for rounds in (0, 20):
        play(name, agent, np.random.default_rng(0), rounds)
        sentences = agent.diagnostics()["warnings"]
        assert isinstance(sentences, list)
        assert all(isinstance(each, str) for each in sentences)


@every_policy
def test_its_repr_makes_it_again_and_equality_is_by_type_and_value(name):
    policy = VARIANTS[name]
    assert eval(repr(policy), vars(policies)) == policy
    assert all(policy != other for other in VARIANTS.values() if other is not policy)


@every_policy_on_the_ball
def test_on_the_ball_stepping_equals_the_compiled_loop_bit_for_bit(name):
    env, policy = easy_problem(name), VARIANTS[name]
    run = simulate(policy, env, horizon=HORIZON, seed=3, record=HORIZON, blocks=False)
    regret = regret_on_ball(policy, env, horizon=HORIZON, seed=3)
    assert regret == run.regret[0].tolist()


@every_policy_on_the_ball
def test_on_the_ball_it_learns_from_rewards_alone_whatever_theta_is(name):
    one, other = (tracked_play(VARIANTS[name], theta, rounds=60) for theta in ([0.8, 0.0, -0.6], [0.1, 0.2, 0.3]))
    assert one == other


@every_policy_on_the_ball
def test_on_the_ball_its_regret_falls_far_below_that_of_a_random_direction(name):
    run = simulate(VARIANTS[name], easy_problem(name), horizon=1_000, trials=5)
    assert run.regret[:, -1].mean() < 0.2 * 1_000  # a random direction loses 1 a round


@every_policy_on_the_ball
def test_on_the_ball_late_rewards_reach_the_right_action(name):
    agent = new_agent(name, seed=0)
    rng, theta, waiting, regret = np.random.default_rng(0), np.array([0.8, 0.0, -0.6]), [], 0.0
    for _ in range(HORIZON):
        decision = agent.select()
        assert np.linalg.norm(decision.action) <= 1.0 + 1e-9
        regret += 1.0 - decision.action @ theta
        waiting.append((decision, float(decision.action @ theta + SIGMA * rng.standard_normal())))
        if len(waiting) > 10:
            agent.update(*waiting.pop(int(rng.integers(len(waiting)))))
    assert regret < 0.5 * HORIZON
    found = agent.diagnostics()
    if "theta_hat" in found:
        assert np.linalg.norm(found["theta_hat"] - theta) < 0.3


@every_policy
def test_a_block_is_so_many_single_plays_of_equal_reward(name):
    one, many = new_agent(name, seed=0), new_agent(name, seed=0)
    rng = np.random.default_rng(5)
    learnt = [entry_of(agent) for agent in (one, many)]
    for t in range(25):
        contexts = offered(name, rng)
        decision, same = one.select(*contexts), many.select(*contexts)
        assert decision.arm == same.arm
        n, reward = 1 + t % 3, float(rng.standard_normal())
        if name in ON_THE_BALL:  # an action may only be played as often at once as the policy holds it
            n = min(n, hold(one._parameters, one._state, Choice(*one._pending[decision.id])))
        learnt[0](decision, n * reward, n)
        for _ in range(n):
            learnt[1](same, reward, 1)
    blocks, singles = state_of(one), state_of(many)
    skipped = ("clock", "carried") if name in ON_THE_BALL else ("carried",)  # eigenbases turn by other angles
    for key in blocks:
        if not key.endswith(skipped):
            np.testing.assert_allclose(blocks[key], singles[key], rtol=1e-7, atol=1e-9, err_msg=key)


def entry_of(agent):
    """Learn n plays at once, by the verb itself."""

    def learn(decision, reward, n):
        update(agent._parameters, agent._state, Choice(*agent._pending[decision.id]), reward, n)

    return learn


def can_be_reset(policy):
    n_arms = 1 if on_ball(policy) else N_ARMS
    return reset.has(type(resolve(policy, n_arms, DIM, HORIZON)))


@pytest.mark.parametrize("name", [name for name, policy in VARIANTS.items() if can_be_reset(policy)])
def test_a_policy_that_is_reset_plays_like_a_fresh_one(name):
    fresh, used = new_agent(name, seed=0), new_agent(name, seed=0)
    play(name, used, np.random.default_rng(0), 30)
    reset(used._parameters, used._state)
    used._rng.bit_generator.state = fresh._rng.bit_generator.state
    one, other = (play(name, agent, np.random.default_rng(1), 20) for agent in (fresh, used))
    assert [(each.arm, each.score) for each in one] == [(each.arm, each.score) for each in other]
