"""SupLinRel and SupLinUCB: arm for arm, width for width and stage for stage as a slow transcription plays."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from albatross import Agent, environments, policies, simulate
from slow_sup_lin import SlowSup, scale_of_features

POLICIES = {"suplinrel": policies.SupLinRel, "suplinucb": policies.SupLinUCB}
ROUNDS = 220
SEEDS = range(16)

both = pytest.mark.parametrize("kind", POLICIES)


def problem(seed):
    """A small problem; b is small against sigma and the horizon short, so that widths pass several thresholds."""
    rng = np.random.default_rng(seed)
    n_arms, dim = int(rng.integers(2, 7)), int(rng.integers(1, 7))
    given = {
        "horizon": int(rng.choice([1, 2, 10, 60, ROUNDS, 5_000])),
        "delta": float(rng.choice([0.01, 0.1, 0.5])),
        "sigma": float(rng.choice([0.02, 0.1, 0.5])),
        "feature_bound": float(rng.choice([0.3, 1.0, 2.5])),
    }
    b = given["feature_bound"]
    contexts = rng.standard_normal((ROUNDS, n_arms, dim))
    lengths = b * rng.uniform(0.4, 1.5, (ROUNDS, n_arms, 1))  # no two are equal: rounding must not choose the widest
    contexts *= lengths / np.linalg.norm(contexts, axis=2, keepdims=True)
    # Some rounds offer short features only: these are soon known to within 1 / sqrt(T), and no stage learns there.
    contexts[rng.random(ROUNDS) < 0.2] *= 0.03
    theta = rng.standard_normal(dim)
    theta /= np.linalg.norm(theta)
    rewards = contexts @ theta + given["sigma"] * rng.standard_normal((ROUNDS, n_arms))
    return given, contexts, rewards


def same(decision, wanted):
    """Whether the agent's decision is the slow one's: the arm, and its width to nine digits."""
    assert decision.arm == wanted.arm
    assert decision.width == pytest.approx(wanted.width, rel=1e-9, abs=1e-12)
    assert decision.score == pytest.approx(wanted.upper, rel=1e-9, abs=1e-9)


@cache
def played(kind, seed, *, late=False, some_eligible=False):
    """Play a problem with both, compare every round; what the slow one saw."""
    given, contexts, rewards = problem(seed)
    n_arms, dim = contexts.shape[1:]
    rng = np.random.default_rng(1_000 + seed)
    slow = SlowSup(kind, n_arms=n_arms, dim=dim, **given)
    agent = Agent(POLICIES[kind](ties="first", **given), n_arms=n_arms, dim=dim)
    waiting, seen, pulls = [], [], np.zeros(n_arms)
    for t, X in enumerate(contexts):
        eligible = rng.permutation(n_arms)[: rng.integers(1, n_arms + 1)] if some_eligible else None
        wanted, decision = slow.choose(X, eligible), agent.select(X, eligible)
        same(decision, wanted)
        seen.append(wanted)
        waiting.append((decision, wanted, X[wanted.arm], rewards[t, wanted.arm]))
        while len(waiting) > (12 if late else 0):
            decision, wanted, x, reward = waiting.pop(int(rng.integers(len(waiting))))
            if late and rng.random() < 0.1:
                continue  # this one never comes
            agent.update(decision, float(reward))
            slow.learn(wanted, x, reward)
            pulls[wanted.arm] += 1
    found = agent.diagnostics()
    assert found["pulls"].tolist() == pulls.tolist()
    assert found["stage_plays"].tolist() == slow.stage_plays()
    assert found["unstaged"] == slow.unstaged
    return seen


@both
@pytest.mark.parametrize("seed", SEEDS)
def test_it_plays_the_arms_of_the_slow_transcription(kind, seed):
    played(kind, seed)


@both
@pytest.mark.parametrize("seed", SEEDS)
def test_with_late_unordered_and_lost_rewards_too(kind, seed):
    played(kind, seed, late=True)


@both
@pytest.mark.parametrize("seed", SEEDS)
def test_with_some_arms_eligible_too(kind, seed):
    played(kind, seed, some_eligible=True)


@both
@pytest.mark.parametrize("late", [False, True])
def test_these_problems_visit_several_stages_and_eliminate_arms(kind, late):
    # Else the comparisons above would say little.
    stages, eliminations = Counter(), 0
    for seed in SEEDS:
        for choice in played(kind, seed, late=late):
            stages[choice.stage] += 1
            eliminations += any(len(later) < len(earlier) for earlier, later in pairwise(choice.sets))
    assert all(stages[s] > 20 for s in (0, 1, 2, 3))
    assert eliminations > 50


@both
@pytest.mark.parametrize("seed", [3, 5, 8])
def test_any_set_of_arms_gives_the_widths_and_survivors_of_the_slow_transcription(kind, seed):
    # An agent shows the width of the arm that it plays. Asked about every set of arms in turn, it shows all of them;
    # and asking teaches it nothing.
    given, contexts, rewards = problem(seed)
    n_arms, dim = contexts.shape[1:]
    slow = SlowSup(kind, n_arms=n_arms, dim=dim, **given)
    agent = Agent(POLICIES[kind](ties="first", **given), n_arms=n_arms, dim=dim)
    sets = [[a for a in range(n_arms) if chosen >> a & 1] for chosen in range(1, 2**n_arms)]
    for t, X in enumerate(contexts):
        wanted, decision = slow.choose(X), agent.select(X)
        agent.update(decision, float(rewards[t, wanted.arm]))
        slow.learn(wanted, X[wanted.arm], rewards[t, wanted.arm])
        if t % 20 == 19:
            for eligible in sets:
                same(agent.select(X, eligible), slow.choose(X, eligible))


@both
@pytest.mark.parametrize("seed", [0, 1])
def test_without_a_feature_bound_it_takes_b_for_gaussian_features(kind, seed):
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((150, 3, 2))
    contexts[::3] *= 0.1
    given = {"horizon": 150, "delta": 0.1, "sigma": 0.3}
    slow = SlowSup(kind, n_arms=3, dim=2, **given)
    assert slow.b == scale_of_features(2, 3, 150, 0.1) == pytest.approx(math.sqrt(2) + math.sqrt(2 * math.log(18_000)))
    agent = Agent(POLICIES[kind](ties="first", **given), n_arms=3, dim=2)
    for X in contexts:
        wanted, decision = slow.choose(X), agent.select(X)
        same(decision, wanted)
        reward = float(X[wanted.arm].sum() + 0.3 * rng.standard_normal())
        agent.update(decision, reward)
        slow.learn(wanted, X[wanted.arm], reward)


@both
def test_arms_of_exactly_equal_width_go_to_the_lowest_or_to_one_drawn_beforehand(kind):
    given = {"horizon": 100, "sigma": 0.1, "feature_bound": 1.0}
    first = Agent(POLICIES[kind](ties="first", **given), n_arms=4, dim=2)
    assert first.select([1.0, 0.5]).arm == 0
    assert first.select([1.0, 0.5], eligible=[3, 2]).arm == 2
    drawn = set()
    for seed in range(30):
        agent = Agent(POLICIES[kind](ties="random", **given), n_arms=4, dim=2, seed=seed)
        arms = {agent.select([1.0, 0.5]).arm for _ in range(5)}
        assert len(arms) == 1
        drawn |= arms
    assert drawn == {0, 1, 2, 3}


@both
def test_there_are_as_many_stages_as_the_logarithm_of_the_horizon_and_at_least_one(kind):
    for horizon, stages in ((1, 1), (2, 1), (3, 2), (60_000, 12)):
        agent = Agent(POLICIES[kind](horizon=horizon), n_arms=2, dim=2)
        assert agent.diagnostics()["stage_plays"].shape == (stages,)


@both
def test_a_reward_that_comes_late_teaches_the_stage_that_chose(kind):
    given = {"horizon": 5_000, "delta": 0.1, "sigma": 0.2, "feature_bound": 1.0}
    agent = Agent(POLICIES[kind](ties="first", **given), n_arms=2, dim=1)
    X = [[0.9], [0.4]]
    late = agent.select(X)  # nothing is known: stage 1 asked
    for _ in range(50):
        agent.update(agent.select(X), 0.3)
    before = agent.diagnostics()
    assert before["stage_plays"][1:].sum() > 0
    agent.update(late, 0.3)
    after = agent.diagnostics()
    assert (after["stage_plays"] - before["stage_plays"]).tolist() == [1] + [0] * (len(after["stage_plays"]) - 1)
    assert after["unstaged"] == before["unstaged"]


def learnt_over(kind, contexts, rewards, given):
    """An agent after these rounds, and the slow one told which stage learnt from each."""
    n_arms, dim = contexts.shape[1:]
    slow = SlowSup(kind, n_arms=n_arms, dim=dim, **given)
    agent = Agent(POLICIES[kind](ties="first", **given), n_arms=n_arms, dim=dim)
    before = agent.diagnostics()["stage_plays"]
    for t, X in enumerate(contexts):
        decision = agent.select(X)
        agent.update(decision, float(rewards[t, decision.arm]))
        after = agent.diagnostics()["stage_plays"]
        for stage in np.flatnonzero(after - before) + 1:
            slow.past[stage].append((decision.action / slow.b, rewards[t, decision.arm] / slow.b))
        before = after
    return agent, slow


@both
def test_after_thousands_of_rounds_widths_are_still_those_of_all_data(kind):
    rng = np.random.default_rng(0)
    contexts = rng.uniform(-0.6, 0.6, (6_000, 4, 6))
    rewards = contexts @ rng.uniform(-1, 1, 6) + 0.1 * rng.standard_normal((6_000, 4))
    given = {"horizon": 6_000, "delta": 0.1, "sigma": 0.1, "feature_bound": 1.0}
    agent, slow = learnt_over(kind, contexts, rewards, given)
    assert sum(plays > 100 for plays in slow.stage_plays()) > 1
    for X in contexts[:200]:
        for eligible in ([0], [1], [0, 1, 2, 3]):
            same(agent.select(X, eligible), slow.choose(X, eligible))


@both
def test_features_that_never_leave_a_plane_or_are_all_zero_do_no_harm(kind):
    rng = np.random.default_rng(1)
    contexts = rng.uniform(-0.6, 0.6, (400, 3, 2)) @ rng.uniform(-1, 1, (2, 5))
    contexts[::5] = 0.0  # a round in which there is nothing to tell apart
    rewards = contexts.sum(axis=2) + 0.1 * rng.standard_normal((400, 3))
    given = {"horizon": 400, "delta": 0.1, "sigma": 0.1, "feature_bound": 1.0}
    agent, slow = learnt_over(kind, contexts, rewards, given)
    out_of_plane = rng.uniform(-0.6, 0.6, (100, 3, 5))
    for X in [*contexts[300:], *out_of_plane]:
        same(agent.select(X), slow.choose(X))
    assert agent.diagnostics()["unstaged"] >= 80


@both
def test_arms_without_contexts_may_be_given_as_unit_vectors(kind):
    # Their Gram matrix has eigenvalues of exactly 1, which count, and stays diagonal: each arm learns for itself.
    given = {"horizon": 300, "delta": 0.1, "sigma": 0.1, "feature_bound": 1.0}
    slow = SlowSup(kind, n_arms=3, dim=3, **given)
    agent = Agent(POLICIES[kind](ties="first", **given), n_arms=3, dim=3)
    rng = np.random.default_rng(2)
    for _ in range(300):
        decision, wanted = agent.select(np.eye(3)), slow.choose(np.eye(3))
        # Arms played equally often are equally wide: which of them it is, is a matter of the last bit.
        assert decision.width == pytest.approx(wanted.width, rel=1e-9)
        assert decision.arm in wanted.sets[-1]
        reward = float(0.2 * decision.arm + 0.1 * rng.standard_normal())
        agent.update(decision, reward)
        slow.learn(wanted, np.eye(3)[decision.arm], reward)
    assert agent.diagnostics()["stage_plays"].tolist() == slow.stage_plays()


@both
def test_a_log_teaches_the_first_stage(kind):
    rng = np.random.default_rng(3)
    contexts, arms, rewards = rng.uniform(-1, 1, (40, 3, 2)), rng.integers(3, size=40), rng.standard_normal(40)
    given = {"horizon": 300, "delta": 0.1, "sigma": 0.1, "feature_bound": 1.0}
    slow = SlowSup(kind, n_arms=3, dim=2, **given)
    agent = Agent(POLICIES[kind](ties="first", **given), n_arms=3, dim=2)
    agent.warm_start(contexts, arms, rewards)
    slow.past[1] = [(contexts[t, arm], rewards[t]) for t, arm in enumerate(arms)]
    assert agent.diagnostics()["stage_plays"].tolist() == slow.stage_plays()
    for X in contexts:
        same(agent.select(X), slow.choose(X))


@both
def test_scaling_features_rewards_noise_and_bound_together_changes_no_arm(kind):
    given, contexts, rewards = problem(4)
    n_arms, dim = contexts.shape[1:]
    tens = {**given, "sigma": 8 * given["sigma"], "feature_bound": 8 * given["feature_bound"]}
    one = Agent(POLICIES[kind](ties="first", **given), n_arms=n_arms, dim=dim)
    other = Agent(POLICIES[kind](ties="first", **tens), n_arms=n_arms, dim=dim)
    for t in range(100):
        a, b = one.select(contexts[t]), other.select(8 * contexts[t])
        assert (a.arm, 8 * a.width, 8 * a.score) == pytest.approx((b.arm, b.width, b.score), rel=1e-9)
        one.update(a, float(rewards[t, a.arm]))
        other.update(b, float(8 * rewards[t, b.arm]))


@both
def test_in_a_simulation_the_horizon_is_known(kind):
    env = environments.Mixture(n_arms=3, dim=2, noise_sd=0.1, biases=np.zeros(3))
    told = POLICIES[kind](sigma=0.1, feature_bound=2.0, horizon=400)
    untold = POLICIES[kind](sigma=0.1, feature_bound=2.0)
    runs = simulate({"told": told, "untold": untold}, env, horizon=400, trials=2)
    assert np.array_equal(runs["told"].regret, runs["untold"].regret)
    with pytest.raises(ValueError, match="horizon"):
        Agent(untold, n_arms=3, dim=2)


@both
def test_it_learns(kind):
    env = environments.Mixture(n_arms=4, dim=2, noise_sd=0.1, biases=np.zeros(4))
    named = {"it": POLICIES[kind](sigma=0.1, feature_bound=2.0), "uniform": policies.Uniform()}
    runs = simulate(named, env, horizon=2_000, trials=3)
    assert runs["it"].regret[:, -1].max() < 0.5 * runs["uniform"].regret[:, -1].min()


@both
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("horizon", 0),
        ("horizon", 10.5),
        ("delta", 0.0),
        ("delta", 1.0),
        ("sigma", -1.0),
        ("sigma", np.nan),
        ("feature_bound", 0.0),
        ("feature_bound", np.inf),
        ("ties", "last"),
    ],
)
def test_bad_arguments_are_refused_by_name(kind, name, wrong):
    with pytest.raises((ValueError, TypeError), match=name):
        POLICIES[kind](**{name: wrong})
