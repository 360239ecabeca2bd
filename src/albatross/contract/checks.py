"""The checks. The docstring of each is the sentence that it checks; it raises Broken if the sentence is not true."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from albatross import Agent, checks, simulate
from albatross.compiling import all_ours
from albatross.contract.cases import DIM, HORIZON, N_ARMS, SIGMA, Broken, Case, ratio_to_uniform
from albatross.contract.stepping import (
    agent_on_stream,
    learn_block,
    regret_on_ball,
    rounds_of,
    same_state,
    state_of,
    tracked_play,
)
from albatross.protocol import Choice, check_change_of_arms, diagnostics, hold, reset, resolve

Check = Callable[[Case], None]


def checks_for(case: Case) -> list[Check]:
    """Return the checks of a policy: those of its kind, and those of all."""
    own = ON_BALL if case.on_ball else WITH_ARMS
    can_be_reset = reset.has(type(resolve(case.policy, 1 if case.on_ball else N_ARMS, DIM, HORIZON)))
    return [*own, *OF_ALL, *([a_reset_policy_plays_like_a_new_one] if can_be_reset else [])]


def sentence(check: Check) -> str:
    """Return what a check checks."""
    return " ".join((check.__doc__ or "").split())


def _require(condition: Any, text: str) -> None:
    if not condition:
        raise Broken(text)


def _play(case: Case, agent: Agent, rng: np.random.Generator, rounds: int) -> list[Any]:
    """Play rounds of contexts and rewards that depend on nothing but `rng` and the agent."""
    decisions = []
    for _ in range(rounds):
        decision = agent.select(*case.offer(rng))
        agent.update(decision, float(decision.action.sum() + 0.3 * decision.arm + 0.1 * rng.standard_normal()))
        decisions.append(decision)
    return decisions


def _difference(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> str:
    """Return the arrays in which two states differ."""
    return ", ".join(key for key in one if not np.array_equal(one[key], other[key], equal_nan=True))


def arms_and_scores(case: Case, rounds: int) -> list[list[float]]:
    """Return arm, score and width of every decision, to compare compiled code with plain Python."""
    decisions = _play(case, case.agent(1), np.random.default_rng(5), rounds)
    return [[int(decision.arm), float(decision.score), float(decision.width)] for decision in decisions]


# ------------------------------------------------------------------------------------------------------ of all policies


def select_writes_nothing(case: Case) -> None:
    """Selecting writes nothing into the state, and nothing into the contexts."""
    agent, rng = case.agent(0), np.random.default_rng(2)
    _play(case, agent, rng, 60)
    before = state_of(agent)
    for _ in range(20):
        offered = case.offer(rng)
        given = [array.copy() for array in offered]
        agent.select(*offered)
        _require(all(map(np.array_equal, offered, given)), "select wrote into the contexts, which are the caller's")
    _require(same_state(before, after := state_of(agent)), f"select wrote into {_difference(before, after)}")


def saving_and_loading_changes_nothing(case: Case) -> None:
    """Saving and loading an agent in the middle of its work changes nothing."""
    straight, broken = case.agent(7), case.agent(7)
    _play(case, straight, one := np.random.default_rng(8), 120)
    _play(case, broken, two := np.random.default_rng(8), 70)
    with tempfile.TemporaryDirectory() as folder:
        broken.save(Path(folder) / "agent")
        broken = Agent.load(Path(folder) / "agent", None if all_ours(broken._parameters) else case.policy)
    _play(case, broken, two, 50)
    wanted, found = state_of(straight), state_of(broken)
    _require(same_state(wanted, found), f"{_difference(wanted, found)} differ 50 rounds after loading")
    last, again = _play(case, straight, one, 1)[0], _play(case, broken, two, 1)[0]
    _require((last.arm, last.score) == (again.arm, again.score), "the next decision differs after loading")


def the_seed_fixes_everything(case: Case) -> None:
    """The seed determines all numbers, and the number of workers none."""
    one, two, other = (
        simulate(case.policy, case.env, horizon=100, trials=3, seed=seed, workers=workers, progress=False).regret
        for seed, workers in ((1, 1), (1, 2), (2, 2))
    )
    _require(np.array_equal(one, two), "two runs with the same seed differ: draw all random numbers from noise and rng")
    _require(not np.array_equal(one, other), "another seed gives the same numbers")


def diagnostics_have_warnings(case: Case) -> None:
    """Diagnostics answer at any time, and their warnings are a list of sentences."""
    agent = case.agent(0)
    for rounds in (0, 20):
        _play(case, agent, np.random.default_rng(0), rounds)
        sentences = agent.diagnostics()["warnings"]
        are_texts = isinstance(sentences, list) and all(isinstance(each, str) for each in sentences)
        _require(are_texts, f"warnings are {checks.shown(sentences)}")


def a_block_is_single_plays(case: Case) -> None:
    """Learning n plays of equal reward at once is learning them one by one."""
    one, many = case.agent(0), case.agent(0)
    needed = "update gets the number of plays n and the sum of their rewards"
    rng = np.random.default_rng(5)
    for t in range(25):
        contexts = case.offer(rng)
        decision, same = one.select(*contexts), many.select(*contexts)
        _require(decision.arm == same.arm, f"after {t} blocks another arm is played than after single plays: {needed}")
        n, reward = 1 + t % 3, float(rng.standard_normal())
        if case.on_ball:  # an action may only be played as often at once as the policy holds it
            n = min(n, hold(one._parameters, one._state, Choice(*one._pending[decision.id])))
        learn_block(one, decision, n * reward, n)
        for _ in range(n):
            learn_block(many, same, reward, 1)
    blocks, singles = state_of(one), state_of(many)
    skipped = ("clock", "carried") if case.on_ball else ("carried",)  # eigenbases turn by other angles
    differ = [
        key
        for key in blocks
        if not (key.endswith(skipped) or np.allclose(blocks[key], singles[key], rtol=1e-7, atol=1e-9, equal_nan=True))
    ]
    _require(not differ, f"{', '.join(differ)} differ: {needed}")


def a_reset_policy_plays_like_a_new_one(case: Case) -> None:
    """A policy that was reset plays like a new one."""
    new, used = case.agent(0), case.agent(0)
    _play(case, used, np.random.default_rng(0), 30)
    reset(used._parameters, used._state)
    used._rng.bit_generator.state = new._rng.bit_generator.state
    one, other = (_play(case, agent, np.random.default_rng(1), 20) for agent in (new, used))
    same = [(each.arm, each.score) for each in one] == [(each.arm, each.score) for each in other]
    _require(same, "it plays other arms")


# ----------------------------------------------------------------------------------- of policies for finitely many arms


def stepping_equals_the_compiled_loop(case: Case) -> None:
    """Decisions one by one in an agent equal those of a compiled simulation, bit for bit."""
    run = simulate(case.policy, case.env, horizon=HORIZON, seed=3, record=HORIZON, progress=False)
    agent = agent_on_stream(case.policy, case.env, seed=3)
    total, regret = 0.0, []
    for contexts, means, noise in rounds_of(case.env, horizon=HORIZON, seed=3):
        arm = (decision := agent.select(contexts)).arm
        agent.update(decision, means[arm] + noise[arm])
        total += means.max() - means[arm]
        regret.append(total)
    _require(regret == run.regret[0].tolist(), "the regret differs")
    stepped, compiled = diagnostics(agent._parameters, agent._state), run.diagnostics[0]
    for key in sorted(compiled.keys() - {"truth"}):
        try:
            np.testing.assert_equal(stepped[key], compiled[key])  # also through dicts and lists
        except AssertionError:
            raise Broken(f"{key} of the diagnostics differs") from None


def late_rewards_are_taken(case: Case) -> None:
    """Rewards may come late, in any order, or never."""
    agent = agent_on_stream(case.policy, case.env, seed=4)
    rng, regret, uniform = np.random.default_rng(0), 0.0, 0.0
    waiting: list[tuple[Any, float]] = []
    for contexts, means, noise in rounds_of(case.env, horizon=HORIZON, seed=4):
        decision = agent.select(contexts)
        waiting.append((decision, means[decision.arm] + noise[decision.arm]))
        regret += means.max() - means[decision.arm]
        uniform += means.max() - means.mean()
        while len(waiting) > 15:
            late = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.9:  # some never come
                agent.update(*late)
    found = agent.diagnostics()
    if "pulls" in found:
        learnt = found["pulls"].sum()
        _require(learnt == HORIZON - found["pending"], f"{learnt:g} pulls of {HORIZON - found['pending']} rewards")
    is_sound = np.isfinite if all_ours(agent._parameters) else lambda array: ~np.isnan(array)
    for key, array in state_of(agent).items():
        _require(is_sound(array).all(), f"{key} of the state holds a number that is not finite")
    if case.learns and not case.slow:
        _require(regret < 0.8 * uniform, f"the regret is {regret / uniform:.2f} of that of uniform play, not below 0.8")


def lost_rewards_starve_no_arm(case: Case) -> None:
    """An arm whose first rewards are lost is not given up."""
    agent = agent_on_stream(case.policy, case.env, seed=6)
    rng, chosen, lost = np.random.default_rng(0), np.zeros(N_ARMS), np.zeros(N_ARMS)
    rounds, regret, uniform = 4 * HORIZON, 0.0, 0.0
    for t, (contexts, means, noise) in enumerate(rounds_of(case.env, horizon=rounds, seed=6)):
        decision = agent.select(contexts)
        arm = decision.arm
        lost[arm] += 1
        if lost[arm] > 2 and rng.random() < 0.9:  # the first two plays of every arm are never rewarded, nor some others
            agent.update(decision, means[arm] + noise[arm])
        if t >= rounds // 2:
            chosen[arm] += 1
            regret += means.max() - means[arm]
            uniform += means.max() - means.mean()
    if not (case.learns and case.explores) or case.slow:
        return
    _require(regret < 0.5 * uniform, f"the regret is {regret / uniform:.2f} of that of uniform play, not below 0.5")
    if np.ptp(case.env.biases) > 0.0:  # the best arm is the same in all rounds
        _require(chosen[-1] > 0, "the best arm is never played")


def it_beats_uniform_play(case: Case) -> None:
    """On an easy problem, its regret is less than half of that of uniform play."""
    if case.learns:
        ratio = ratio_to_uniform(case)
        _require(ratio < 0.5, f"the regret is {ratio:.2f} of that of uniform play, not below 0.5")


def ineligible_arms_are_never_played(case: Case) -> None:
    """Arms that are not eligible are never played."""
    agent, rng = case.agent(0), np.random.default_rng(3)
    for t in range(120):
        eligible = rng.permutation(N_ARMS)[: 1 + t % N_ARMS]
        decision = agent.select(rng.standard_normal((N_ARMS, DIM)), eligible=eligible)
        _require(decision.arm in eligible, f"arm {decision.arm} was played, eligible were {eligible.tolist()}")
        agent.update(decision, float(rng.standard_normal()))


def arms_come_and_go(case: Case) -> None:
    """Arms may be added and retired while it plays, unless it refuses to."""
    agent, rng = Agent(case.policy, arms=range(N_ARMS), dim=DIM, seed=4), np.random.default_rng(4)
    try:
        check_change_of_arms(agent._parameters)
    except ValueError:
        return
    for t in range(30):
        if t % 10 == 5:
            agent.add_arm(f"arm {t}")
        if t % 10 == 9:
            agent.retire_arm(agent.arms[0])
        agent.update(agent.select(rng.standard_normal((agent.n_arms, DIM))), float(rng.standard_normal()))


def no_size_of_contexts_gives_nan(case: Case) -> None:
    """Whatever the size of contexts, from 1e-300 to 1e100, no score is NaN."""
    for size, rounds in _sizes():
        agent, rng = case.agent(0), np.random.default_rng(7)
        for contexts in rounds:
            decision = agent.select(contexts)
            _require(not np.isnan([decision.score, decision.width]).any(), f"NaN as a score for contexts: {size}")
            agent.update(decision, float(rng.standard_normal() + decision.arm))
        for key, array in state_of(agent).items():
            _require(not np.isnan(array).any(), f"NaN in {key} of the state for contexts: {size}")
        if "pulls" in (found := agent.diagnostics()):
            _require(found["pulls"].sum() == len(rounds), f"a play is not counted for contexts: {size}")


def _sizes() -> Iterator[tuple[str, np.ndarray]]:
    """Rounds of contexts whose squares are no longer numbers, or were never any."""
    rng = np.random.default_rng(6)
    free = rng.standard_normal((60, N_ARMS, DIM))
    collinear = rng.standard_normal((60, N_ARMS, 1)) * [1.0, -2.0, 0.5]
    half = np.arange(60)[:, None, None] < 30
    yield "zeros", np.zeros_like(free)
    for size in (1e-300, 1e-200, 1e-156, 1e-140, 1e-100):
        yield f"{size:g}", size * free
        yield f"collinear, {size:g}", size * collinear
    yield "largest", checks.LARGEST * np.tanh(free)
    yield "growing", np.where(half, 1e-150 * free, 1e99 * free)
    yield "shrinking", np.where(half, 1e99 * free, 1e-150 * free)
    yield "mixed arms", free * np.array([1e-300, 1e-150, 0.0, 1.0, 1e99])[:, None]
    yield "mixed features", free * [1e-156, 1.0, 1e99]
    yield "any", free * 10.0 ** rng.uniform(-300.0, 99.0, (60, 1, DIM))


# ----------------------------------------------------------------------------------------- of policies on the unit ball


def stepping_on_the_ball_equals_the_compiled_loop(case: Case) -> None:
    """Decisions one by one equal those of a compiled simulation, bit for bit."""
    run = simulate(case.policy, case.env, horizon=HORIZON, seed=3, record=HORIZON, blocks=False, progress=False)
    regret = regret_on_ball(case.policy, case.env, horizon=HORIZON, seed=3)
    _require(regret == run.regret[0].tolist(), "the regret differs")


def it_learns_from_rewards_alone(case: Case) -> None:
    """It learns from rewards alone, whatever theta is."""
    one, other = (tracked_play(case.policy, theta, rounds=60) for theta in ([0.8, 0.0, -0.6], [0.1, 0.2, 0.3]))
    _require(one == other, "with equal rewards, its state depends on theta")


def its_regret_falls_below_a_random_directions(case: Case) -> None:
    """Its regret falls far below that of a random direction."""
    run = simulate(case.policy, case.env, horizon=1_000, trials=5, progress=False)
    lost = run.regret[:, -1].mean() / 1_000  # a random direction loses 1 a round
    _require(lost < 0.2, f"it is {lost:.2f} of it, not below 0.2")


def late_rewards_reach_their_action(case: Case) -> None:
    """Late rewards are learnt for the action that was played."""
    agent, rng, theta, regret = case.agent(0), np.random.default_rng(0), np.array([0.8, 0.0, -0.6]), 0.0
    waiting: list[tuple[Any, float]] = []
    for _ in range(HORIZON):
        decision = agent.select()
        _require(np.linalg.norm(decision.action) <= 1.0 + 1e-9, "it plays an action outside of the ball")
        regret += 1.0 - decision.action @ theta
        waiting.append((decision, float(decision.action @ theta + SIGMA * rng.standard_normal())))
        if len(waiting) > 10:
            agent.update(*waiting.pop(int(rng.integers(len(waiting)))))
    _require(regret < 0.5 * HORIZON, f"its regret per round is {regret / HORIZON:.2f}, not below 0.5")
    found = agent.diagnostics()
    if "theta_hat" in found:
        _require(np.linalg.norm(found["theta_hat"] - theta) < 0.3, "theta_hat is more than 0.3 from theta")


WITH_ARMS: list[Check] = [
    stepping_equals_the_compiled_loop,
    ineligible_arms_are_never_played,
    late_rewards_are_taken,
    lost_rewards_starve_no_arm,
    arms_come_and_go,
    it_beats_uniform_play,
    no_size_of_contexts_gives_nan,
]
ON_BALL: list[Check] = [
    stepping_on_the_ball_equals_the_compiled_loop,
    it_learns_from_rewards_alone,
    its_regret_falls_below_a_random_directions,
    late_rewards_reach_their_action,
]
OF_ALL: list[Check] = [
    select_writes_nothing,
    saving_and_loading_changes_nothing,
    the_seed_fixes_everything,
    diagnostics_have_warnings,
    a_block_is_single_plays,
]
