"""Evaluation offers only eligible arms, keeps a state for every user, and takes trained agents as they are."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest

from albatross import Agent, Fleet, LogWriter, policies
from albatross.datasets import read_log
from albatross.environments import Logged
from albatross.evaluation import PerUser, evaluate, predicted_rewards, probabilities, replay
from albatross.evaluation.agents import FrozenAgent
from albatross.evaluation.playing import Pace
from albatross.evaluation.predictions import folds_of_rows
from albatross.simulation import streams

pytestmark = pytest.mark.xdist_group("evaluation")  # they compile the same code

GREEDY, LINTS = policies.Greedy(ties="first"), policies.LinTS(sigma=0.5)
THETAS = np.array([[1.0, -0.5], [-1.0, 0.5], [0.2, 1.0]])  # of three users
K, D = 4, 2


def a_log(n=600, *, seed=3, eligible=True, users=False, names=None):
    """A log of uniform play among the eligible arms; each user has another theta."""
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((n, K, D))
    mask = rng.random((n, K)) < 0.6 if eligible else np.ones((n, K), bool)
    mask[np.arange(n), rng.integers(K, size=n)] = True
    actions = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
    of_user = rng.integers(3, size=n) if users else np.zeros(n, int)
    means = np.einsum("nkd,nd->nk", contexts, THETAS[of_user])
    env = Logged(
        contexts=contexts,
        actions=actions,
        rewards=means[np.arange(n), actions] + 0.3 * rng.standard_normal(n),
        propensities=1.0 / mask.sum(axis=1),
        eligible=mask if eligible else None,
        users=of_user if users else None,
        names=names,
    )
    return env, means


# --------------------------------------------------------------------------------------------------- eligible arms


def offered_in_replay(env, seed=0):
    """The rows that a replay offers: each with the least propensity divided by its own."""
    rng = streams(seed, 0)[0]
    return np.flatnonzero(rng.random(env.length) < env.propensities.min() / env.propensities)


def test_replay_is_an_agent_that_is_offered_eligible_arms_only():
    env, _ = a_log()
    agent = Agent(GREEDY, n_arms=K, dim=D, max_pending=1)  # a rejected decision is forgotten at the next
    earned = []
    for row in offered_in_replay(env):
        decision = agent.select(env.contexts[row], eligible=env.eligible[row])
        if decision.arm == env.actions[row]:
            agent.update(decision, env.rewards[row])
            earned.append(env.rewards[row])
    found = replay(GREEDY, env)
    assert found.rewards[0].tolist() == earned
    assert found.reason is None


def test_replay_accepts_a_share_of_the_least_propensity_whatever_is_eligible():
    accepted = replay(LINTS, a_log(4_000)[0]).accepted[0]
    # Binomial with 4,000 rounds and probability 1 / 4.
    assert abs(accepted - 1_000) < 4.0 * np.sqrt(4_000 * 0.25 * 0.75)


def test_probabilities_are_those_of_an_agent_among_the_eligible_arms():
    env, _ = a_log()
    agent = Agent(GREEDY, n_arms=K, dim=D)
    agent.warm_start(env.contexts[:200], env.actions[:200], env.rewards[:200])
    found = probabilities(GREEDY, env, trained_on=slice(200), rows=slice(200, None))
    wanted = [agent.propensity(env.contexts[row], eligible=env.eligible[row]) for row in range(200, 600)]
    np.testing.assert_array_equal(found, wanted)
    drawn = probabilities(LINTS, env, trained_on=slice(200), rows=slice(200, None))
    assert (drawn[~env.eligible[200:]] == 0.0).all()
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)


@pytest.mark.parametrize("estimate", ["ips", "doubly_robust"])
def test_estimates_are_unbiased_where_arms_come_and_go(estimate):
    rng, deviations = np.random.default_rng(1), []
    for seed in range(100):
        env, means = a_log(200, seed=seed)
        scores = np.where(env.eligible, np.exp(rng.standard_normal((200, K))), 0.0)
        target = scores / scores.sum(axis=1, keepdims=True)
        found = getattr(evaluate(target, env, seed=seed), estimate).value
        deviations.append(found - (target * means).sum(axis=1).mean())
    assert abs(np.mean(deviations)) < 3.0 * np.std(deviations, ddof=1) / 10.0


def test_probability_of_an_arm_that_is_not_eligible_is_refused():
    env, _ = a_log(20)
    row = int(np.argmin(env.eligible.all(axis=1)))
    target = env.eligible / env.eligible.sum(axis=1, keepdims=True)
    target[row] = 0.25
    arm = int(np.argmin(env.eligible[row]))
    message = f"probabilities mine give 0.25 to arm {arm} in round {row}, where it is not eligible"
    with pytest.raises(ValueError, match=message):
        evaluate({"mine": target}, env)


# ----------------------------------------------------------------------------------------------------------- users


def test_a_replay_per_user_is_an_agent_for_every_user():
    env, _ = a_log(users=True)
    agents = [Agent(GREEDY, n_arms=K, dim=D, max_pending=1) for _ in range(3)]
    earned = []
    for row in offered_in_replay(env):
        agent = agents[env.users[row]]
        decision = agent.select(env.contexts[row], eligible=env.eligible[row])
        if decision.arm == env.actions[row]:
            agent.update(decision, env.rewards[row])
            earned.append(env.rewards[row])
    found = replay({"each": PerUser(GREEDY), "all": GREEDY}, env)
    assert found["each"].rewards[0].tolist() == earned
    assert found["all"].rewards[0].tolist() != earned


def test_probabilities_per_user_are_those_of_agents_that_learnt_from_their_users_alone():
    env, _ = a_log(users=True)
    agents = [Agent(GREEDY, n_arms=K, dim=D) for _ in range(3)]
    for user, agent in enumerate(agents):
        rows = np.flatnonzero(env.users[:300] == user)
        agent.warm_start(env.contexts[rows], env.actions[rows], env.rewards[rows])
    found = probabilities(PerUser(GREEDY), env, trained_on=slice(300), rows=slice(300, None))
    wanted = [
        agents[env.users[row]].propensity(env.contexts[row], eligible=env.eligible[row]) for row in range(300, 600)
    ]
    np.testing.assert_array_equal(found, wanted)


def test_a_state_per_user_earns_more_where_users_differ():
    env, means = a_log(2_000, users=True)
    found = evaluate({"one for all": LINTS, "one per user": PerUser(LINTS)}, env)
    one, each = found["one for all"].doubly_robust, found["one per user"].doubly_robust
    best = np.where(env.eligible, means, -np.inf).max(axis=1).mean()
    assert each.value - one.value > 6.0 * np.hypot(each.standard_error, one.standard_error)
    assert each.value > best - 0.1
    assert found["one per user"].replay.value > found["one for all"].replay.value


def test_every_fold_has_its_share_of_every_user():
    env, _ = a_log(users=True)
    for folds in (2, 5):
        fold_of_row = folds_of_rows(env, folds, seed=0)
        counts = [np.bincount(fold_of_row[env.users == user], minlength=folds) for user in range(3)]
        assert max(np.ptp(each) for each in counts) <= 1
    assert np.ptp(np.bincount(folds_of_rows(env, 2, seed=1))) <= 3


def test_a_log_of_one_user_has_the_folds_of_a_log_without_users():
    without, _ = a_log(100)
    fields = {name: getattr(without, name) for name in ("contexts", "actions", "rewards", "propensities", "eligible")}
    one = Logged(**fields, users=["ann"] * 100)
    np.testing.assert_array_equal(folds_of_rows(one, 3, seed=4), folds_of_rows(without, 3, seed=4))
    np.testing.assert_array_equal(predicted_rewards(one), predicted_rewards(without))
    same = evaluate(PerUser(LINTS), one), evaluate(LINTS, without)
    assert same[0][1:] == same[1][1:]
    assert same[0].replay.rewards[0].tolist() == same[1].replay.rewards[0].tolist()


def test_a_state_per_user_needs_users():
    env, _ = a_log(20)
    for run in (evaluate, replay):
        with pytest.raises(ValueError, match="PerUser needs a log that names the user of every round"):
            run(PerUser(GREEDY), env)
    with pytest.raises(TypeError, match="'greedy' is not a policy but a text"):
        evaluate(PerUser("greedy"), a_log(20, users=True)[0])


# ---------------------------------------------------------------------------------------------------------- agents

NAMES = ("art", "code", "politics", "sport")  # as a log sorts them
ARMS = ["sport", "politics", "old", "art", "code"]  # as an agent has them


def a_trained_agent(policy=GREEDY, **options):
    agent = Agent(policy, arms=ARMS, dim=D, floor=0.1, seed=0, **options)
    rng = np.random.default_rng(5)
    for _ in range(60):
        decision = agent.select(rng.standard_normal((5, D)))
        agent.update(decision, float(decision.action @ THETAS[0] + 0.3 * rng.standard_normal()))
    agent.retire_arm("old")
    return agent


def saved(agent):
    file = io.BytesIO()
    agent.save(file)
    return file.getvalue()


def test_an_agent_is_evaluated_by_its_own_propensities_and_does_not_change():
    env, _ = a_log(names=NAMES)
    agent = a_trained_agent()
    before = saved(agent)
    order = [NAMES.index(arm) for arm in agent.arms]
    target = np.zeros((env.length, K))
    for row in range(env.length):
        target[row, order] = agent.propensity(env.contexts[row][order], eligible=env.eligible[row][order])
    found = evaluate({"mine": agent, "table": target}, env)
    assert found["mine"].replay is None
    assert found["mine"].ips == pytest.approx(found["table"].ips, nan_ok=True)
    assert found["mine"].doubly_robust == pytest.approx(found["table"].doubly_robust, nan_ok=True)
    assert found["mine"].ips.effective_sample_size < 0.9 * env.length  # it is not uniform
    assert saved(agent) == before


def test_the_draws_of_an_agent_differ_from_round_to_round():
    log = {"actions": [0] * 600, "rewards": [0.0] * 600, "propensities": [0.25] * 600, "names": NAMES}
    env = Logged(contexts=np.ones((600, K, D)), **log)
    agent = Agent(LINTS, arms=NAMES, dim=D, seed=0)
    agent.warm_start(np.ones((4, D)), list(NAMES), [0.0, 0.2, 0.4, 0.6])
    exact = agent.propensity(np.ones((K, D)), draws=100_000)
    pace = Pace(lambda steps: None, threading.Event())
    found = FrozenAgent("", agent, env).probabilities(20, 0, pace)
    # Shares of 600 * 20 draws; with the same draws in every round, they would deviate by 24 times as much.
    assert np.abs(found.mean(axis=0) - exact).max() < 4.0 * np.sqrt(0.25 / 12_000)


def test_a_numbered_agent_has_the_arms_of_a_log_without_names():
    env, _ = a_log()
    agent = Agent(GREEDY, n_arms=K, dim=D)
    agent.warm_start(env.contexts[:50], env.actions[:50], env.rewards[:50])
    target = [agent.propensity(env.contexts[row], eligible=env.eligible[row]) for row in range(env.length)]
    assert evaluate(agent, env).snips == evaluate(np.array(target), env).snips


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (lambda: Agent(arms=["x"], dim=D), r"round 0 offers no arm that agent mine has: it offers \['code'.*\['x'\]"),
        (lambda: Agent(arms=NAMES, dim=3), "agent mine has 3 features, but the log has 2"),
        (lambda: Agent(dim=2), "agent mine plays on the unit ball, but the log has 4 arms"),
    ],
)
def test_an_agent_that_does_not_fit_the_log_is_refused(agent, message):
    with pytest.raises(ValueError, match=message):
        evaluate({"mine": agent()}, a_log(20, names=NAMES)[0])


# ---------------------------------------------------------------------------------------------------------- fleets


def a_trained_fleet(users, policy=GREEDY, arms=ARMS):
    """A fleet whose users have learnt different thetas; its last user is not in the log."""
    fleet, rng = Fleet(policy, users=[*users, "away"], arms=arms, dim=D, floor=0.1, seed=0), np.random.default_rng(5)
    for number, user in enumerate(users):
        for _ in range(30):
            choices = fleet.select([user], rng.standard_normal((1, fleet.n_arms, D)))
            fleet.update(choices, choices.actions @ THETAS[number])
    if "old" in arms:
        fleet.retire_arm("old")
    return fleet


def a_log_of_named_users():
    env, _ = a_log(users=True, names=NAMES)
    return Logged(
        contexts=env.contexts,
        actions=env.actions,
        rewards=env.rewards,
        propensities=env.propensities,
        eligible=env.eligible,
        users=np.array(["ann", "bob", "zoe"])[np.array(env.user_names)[env.users]],
        names=env.names,
    )


def test_a_fleet_is_evaluated_by_the_propensities_of_each_users_state_and_does_not_change():
    env = a_log_of_named_users()
    fleet = a_trained_fleet(["ann", "bob"])  # the log's third user is a newcomer
    before = saved(fleet)
    with_all = Fleet.load(io.BytesIO(before))
    with_all.admit(["zoe"])
    users = np.array(env.user_names)[env.users]
    order = [NAMES.index(arm) for arm in fleet.arms]
    target = np.zeros((env.length, K))
    target[:, order] = with_all.propensity(users, env.contexts[:, order], env.eligible[:, order])
    found = evaluate({"mine": fleet, "table": target}, env)
    assert found["mine"].replay is None
    assert found["mine"].ips == pytest.approx(found["table"].ips, nan_ok=True)
    assert saved(fleet) == before


def test_a_fleet_with_a_state_per_user_earns_more_where_users_differ():
    env = a_log_of_named_users()
    fleet = a_trained_fleet(["ann", "bob", "zoe"])
    one = Agent(GREEDY, arms=list(NAMES), dim=D, floor=0.1, seed=0)
    one.warm_start(
        env.contexts[np.arange(300), env.actions[:300]], [NAMES[k] for k in env.actions[:300]], env.rewards[:300]
    )
    found = evaluate({"fleet": fleet, "one": one}, env)
    errors = found["fleet"].snips.standard_error + found["one"].snips.standard_error
    assert found["fleet"].snips.value > found["one"].snips.value + 2.0 * errors


def test_numbered_users_are_found_by_their_numbers():
    env, _ = a_log(users=True)
    fleet = Fleet(GREEDY, n_users=3, n_arms=K, dim=D, seed=0)
    users = np.array(env.user_names)[env.users]
    fleet.update(
        fleet.record(users[:60], env.actions[:60], env.contexts[np.arange(60), env.actions[:60]]), env.rewards[:60]
    )
    target = fleet.propensity(users, env.contexts, env.eligible)
    assert evaluate(fleet, env).snips == evaluate(target, env).snips


def test_users_with_a_plus_are_found_by_their_names_in_a_log(tmp_path):
    fleet = Fleet(GREEDY, users=["+49171"], arms=["a", "b"], dim=1, seed=0)
    for _ in range(9):
        fleet.update(fleet.record(["+49171"], ["b"], [[1.0]]), [1.0])
    with LogWriter(tmp_path / "log.csv") as log:
        for decision in range(4):
            offer = {"action": "ab"[decision % 2], "eligible": ["a", "b"], "contexts": [[1.0], [1.0]]}
            log.write_decision(decision, **offer, propensity=0.5, user="+49171")
            log.write_reward(decision, decision % 2)
    assert evaluate(fleet, Logged.from_log(read_log(tmp_path / "log.csv"))).ips.value == 1.0


def test_propensities_of_a_fleet_are_the_frequencies_of_its_choices():
    fleet = Fleet(LINTS, users=["ann", "bob"], arms=["a", "b", "c"], dim=D, floor=0.2, seed=0)
    rng = np.random.default_rng(0)
    fleet.update(
        fleet.record(["ann"] * 6, ["a", "b", "c"] * 2, 0.5 * rng.standard_normal((6, D))), rng.standard_normal(6)
    )
    contexts, before = rng.standard_normal((1, 3, D)), saved(fleet)
    found = fleet.propensity(["ann"], contexts, [["a", "c"]], draws=20_000)
    assert saved(fleet) == before
    choices = fleet.select(
        ["ann"] * 4_000, np.repeat(contexts, 4_000, axis=0), [True, False, True], pending=np.zeros((4_000, 3))
    )
    shares = [(choices.arms == arm).mean() for arm in "abc"]
    assert found.sum() == pytest.approx(1.0)
    assert np.abs(found[0] - shares).max() < 4.0 * np.sqrt(0.25 / 4_000 + 0.25 / 20_000)
    with pytest.raises(ValueError, match="user 'eve' is unknown"):
        fleet.propensity(["eve"], contexts)


@pytest.mark.parametrize(
    ("fleet", "users", "message"),
    [
        (lambda: Fleet(users=[], arms=["x"], dim=D), True, "round 0 offers no arm that fleet mine has"),
        (lambda: Fleet(users=[], arms=NAMES, dim=3), True, "fleet mine has 3 features, but the log has 2"),
        (
            lambda: Fleet(users=[], arms=NAMES, dim=D),
            False,
            "fleet mine has a state for every user, but the log has no",
        ),
        (lambda: Fleet(n_users=2, arms=NAMES, dim=D), True, "user 2 is unknown: this fleet has users 0 to 1"),
    ],
)
def test_a_fleet_that_does_not_fit_the_log_is_refused(fleet, users, message):
    with pytest.raises(ValueError, match=message):
        evaluate({"mine": fleet()}, a_log(40, names=NAMES, users=users)[0])
