"""Replay and off-policy estimates: unbiased, of the law of online play, and exact where a hand can compute them."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import ks_2samp

from albatross import Agent, checks, policies, simulate
from albatross.datasets import open_bandit
from albatross.environments import Logged, Recorded
from albatross.evaluation import (
    doubly_robust,
    evaluate,
    ips,
    playing,
    predicted_rewards,
    probabilities,
    replay,
    snips,
)

pytestmark = pytest.mark.xdist_group("evaluation")  # they compile the same code

# --------------------------------------------------------------------------------------- a problem with known values


def softmax(scores):
    grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def draw_actions(shares, rng):
    """An action of every row of probabilities."""
    return (rng.random(len(shares))[:, None] > np.cumsum(shares, axis=1)).sum(axis=1).clip(max=shares.shape[1] - 1)


class Problem(NamedTuple):
    """Contexts come from so few tables that every value is a finite sum."""

    tables: np.ndarray  # (M, K, d)
    means: np.ndarray  # (M, K), not linear
    logging: np.ndarray  # (M, K)
    target: np.ndarray  # (M, K)

    @property
    def value(self):
        return float((self.target * self.means).sum(axis=1).mean())

    def log(self, n, rng):
        """A log, and the target's probabilities on it."""
        rows = rng.integers(len(self.tables), size=n)
        actions = draw_actions(self.logging[rows], rng)
        rewards = self.means[rows, actions] + 0.5 * rng.standard_normal(n)
        env = Logged(
            contexts=self.tables[rows],
            actions=actions,
            rewards=rewards,
            propensities=self.logging[rows, actions],
        )
        return env, self.target[rows]


def a_problem():
    rng = np.random.default_rng(8)
    tables = rng.standard_normal((32, 5, 4))
    means = 1.0 + tables @ [0.8, -0.5, 0.3, 0.0] + 0.3 * np.sin(3.0 * tables[:, :, 0])
    return Problem(tables, means, softmax(tables @ [-0.6, 0.6, 0.0, 0.4]), softmax(1.5 * means))


def arrays_of(env):
    return {"actions": env.actions, "rewards": env.rewards, "propensities": env.propensities}


@pytest.fixture(scope="module")
def estimates():
    """Value and standard error of each estimator on 200 logs of 1,000 rounds, and what ignoring propensities gives."""
    problem, rng = a_problem(), np.random.default_rng(0)
    found = {"ips": [], "snips": [], "dr": [], "mean": [], "equal propensities": []}
    for seed in range(200):
        env, target = problem.log(1_000, rng)
        arrays = arrays_of(env)
        found["ips"].append(ips(target, **arrays)[:2])
        found["snips"].append(snips(target, **arrays)[:2])
        found["dr"].append(doubly_robust(target, **arrays, predictions=predicted_rewards(env, seed=seed))[:2])
        found["mean"].append((env.rewards.mean(), 0.0))
        found["equal propensities"].append(((target[np.arange(1_000), env.actions] / 0.2 * env.rewards).mean(), 0.0))
    return {name: np.array(values) for name, values in found.items()}


def z_score(values, truth):
    return (values.mean() - truth) / (values.std(ddof=1) / np.sqrt(len(values)))


@pytest.mark.parametrize("name", ["ips", "dr"])
def test_ips_and_dr_are_unbiased(estimates, name):
    assert abs(z_score(estimates[name][:, 0], a_problem().value)) < 3.0


@pytest.mark.parametrize("name", ["mean", "equal propensities"])
def test_whoever_ignores_the_propensities_is_far_off(estimates, name):
    assert abs(z_score(estimates[name][:, 0], a_problem().value)) > 10.0


def test_dr_varies_less_than_ips(estimates):
    assert estimates["dr"][:, 0].var() < 0.5 * estimates["ips"][:, 0].var()


@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
def test_standard_errors_are_what_estimates_vary_by(estimates, name):
    values, errors = estimates[name].T
    # The deviation of 200 values is itself uncertain by 5 %, and by more where weights are heavy-tailed.
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(values.std(ddof=1), rel=0.2)


def test_estimates_by_hand():
    target = [[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]]
    log = {"actions": [1, 0, 1], "rewards": [1.0, 3.0, 5.0], "propensities": [0.4, 0.25, 0.5]}
    # Weights 2, 2 and 0.
    assert ips(target, **log)[:3] == pytest.approx((8 / 3, np.std([2, 6, 0], ddof=1) / np.sqrt(3), 2.0))
    # (4 (1 - 2)^2 + 4 (3 - 2)^2) / 16 under the root
    assert snips(target, **log)[:3] == pytest.approx((2.0, np.sqrt(0.5), 2.0))
    predictions = [[0.0, 2.0], [1.0, 1.0], [4.0, 7.0]]
    values = [1.6 + 2 * (1 - 2), 1.0 + 2 * (3 - 1), 4.0]
    wanted = np.mean(values), np.std(values, ddof=1) / np.sqrt(3), 2.0
    assert doubly_robust(target, **log, predictions=predictions)[:3] == pytest.approx(wanted)


def test_an_error_of_zero_is_not_known():
    log = {"actions": [0, 1, 0, 1], "propensities": [0.5] * 4}
    uniform = np.full((4, 2), 0.5)
    for reward in (0.0, 0.1):  # no reward was met, or the same one every time
        arrays = {**log, "rewards": [reward] * 4}
        for found in (
            ips(uniform, **arrays),
            snips(uniform, **arrays),
            doubly_robust(uniform, **arrays, predictions=np.zeros((4, 2))),
        ):
            assert found.value == pytest.approx(reward)
            assert np.isnan(found.standard_error)
            assert found.reason is None


@pytest.mark.parametrize("campaign", ["all", "women"])
def test_uniform_play_on_a_log_of_uniform_play_earns_what_was_logged(campaign):
    log = open_bandit(campaign=campaign, policy="random")
    for rows in (slice(None), *(log.positions == slot for slot in range(3))):
        rewards = log.rewards[rows]
        uniform = np.full((len(rewards), log.n_actions), 1 / log.n_actions)
        found = ips(uniform, actions=log.actions[rows], rewards=rewards, propensities=log.propensities[rows])
        assert found.value == pytest.approx(rewards.mean(), rel=1e-9)
        assert found.effective_sample_size == pytest.approx(len(rewards), rel=1e-9)


# ---------------------------------------------------------------------------------------------------------- support

RATES = np.array([0.02, 0.05, 0.05, 0.08, 0.1, 0.12, 0.15, 0.4])


@pytest.fixture(scope="module")
def certain():
    """A log of Albatross, which draws nothing and so has propensities of 1."""
    rng, rows = np.random.default_rng(6), []
    agent = Agent(n_arms=RATES.size, dim=2, seed=0)
    tables = rng.standard_normal((1_000, RATES.size, 2))
    for contexts in tables:
        decision = agent.select(contexts)
        rows.append((int(decision.arm), float(rng.random() < RATES[decision.arm]), decision.propensity))
        agent.update(decision, rows[-1][1])
    actions, rewards, propensities = zip(*rows)
    return Logged(contexts=tables, actions=actions, rewards=rewards, propensities=propensities)


def all_estimates(target, arrays):
    predictions = np.zeros(np.shape(target))
    return ips(target, **arrays), snips(target, **arrays), doubly_robust(target, **arrays, predictions=predictions)


def test_a_log_without_randomness_supports_no_estimate_of_other_actions(certain):
    uniform, arrays = np.full((1_000, RATES.size), 1 / RATES.size), arrays_of(certain)
    assert (certain.propensities == 1.0).all()
    plain = uniform[0, 0] * certain.rewards  # what IPS would average: far off, and sure of it
    assert abs(plain.mean() - RATES.mean()) > 10.0 * plain.std() / np.sqrt(plain.size)
    with pytest.warns(UserWarning, match="the target: no IPS, SNIPS or DR, because it spends 875 of 1,000 rounds on"):
        refused = all_estimates(uniform, arrays)
    for found in refused:
        assert np.isnan(found[:2]).all()
        assert found.effective_sample_size == pytest.approx(1_000)
        assert "the logged action had propensity 1" in found.reason


def test_a_log_without_randomness_supports_the_policy_that_wrote_it(certain):
    for found in all_estimates(np.eye(RATES.size)[certain.actions], arrays_of(certain)):
        assert found.value == pytest.approx(certain.rewards.mean())
        assert found.reason is None
    found = replay(policies.Albatross(), certain)
    # Ties are broken by an order of its own: a few first plays may differ.
    assert found.accepted[0] > 990
    assert found.value == pytest.approx(certain.rewards.mean(), abs=0.01)


def test_a_policy_without_support_does_not_cost_the_others_theirs(certain):
    with pytest.warns(UserWarning, match="LinTS: no ") as told:
        found = evaluate({"LinTS": LINTS, "the log's": np.eye(RATES.size)[certain.actions]}, certain)
    assert found["the log's"].ips.value == pytest.approx(certain.rewards.mean())
    assert [np.isnan(each.value) for each in found["LinTS"]] == [True] * 4
    assert np.isnan(found["LinTS"].replay.standard_error)
    assert found["LinTS"].replay.rewards[0].size == found["LinTS"].replay.accepted[0]  # these are kept
    assert sorted(str(each.message) for each in told) == [
        f"LinTS: no IPS, SNIPS or DR, because {found['LinTS'].ips.reason}",
        f"LinTS: no replay, because {found['LinTS'].replay.reason}",
    ]


def test_weights_that_average_too_little_betray_actions_that_the_log_does_not_take():
    rng = np.random.default_rng(1)
    actions = rng.integers(1, 4, size=900)  # never 0; 4 hardly ever
    actions[:3] = 4
    arrays = {"actions": actions, "rewards": rng.standard_normal(900), "propensities": np.full(900, 1 / 3)}
    with pytest.warns(UserWarning, match="it spends 225 of 900 rounds on 1 action that was never logged"):
        assert np.isnan(ips(np.tile([0.25, 0.25, 0.25, 0.25, 0.0], (900, 1)), **arrays).value)
    with pytest.warns(
        UserWarning, match=r"weights average 0\.75 ± 0\.00, not 1: .* the actions of 25 % of its choices"
    ):
        assert np.isnan(ips(np.tile([0.0, 0.25, 0.25, 0.25, 0.25], (900, 1)), **arrays).value)
    assert ips(np.tile([0.0, 1 / 3, 1 / 3, 1 / 3, 0.0], (900, 1)), **arrays).reason is None


def test_weights_that_average_too_much_betray_propensities_that_are_too_small():
    rng = np.random.default_rng(2)
    uniform, actions, rewards = np.full((900, 4), 0.25), rng.integers(4, size=900), rng.random(900)
    log = {"actions": actions, "rewards": rewards, "propensities": np.full(900, 0.25 / 3)}  # of one slot in three
    with pytest.warns(UserWarning, match=r"weights average 3\.00, but at most 1 is possible: the propensities are too"):
        refused = all_estimates(uniform, log)
    assert np.isnan([found[:2] for found in refused]).all()
    env = Logged(contexts=np.ones((900, 4, 1)), **log)
    with pytest.warns(UserWarning, match=r"no replay, because \d+ rounds were accepted where about 75 are expected: "):
        assert np.isnan(replay(LINTS, env).value)


@pytest.mark.parametrize("propensity", [0.33, 0.12])
def test_propensities_of_two_digits_are_exact_enough(propensity):
    n_arms = round(1.0 / propensity)
    log = {"actions": np.arange(9_600) % n_arms, "rewards": np.ones(9_600), "propensities": np.full(9_600, propensity)}
    assert ips(np.full((9_600, n_arms), 1.0 / n_arms), **log).reason is None


def test_few_lucky_rounds_betray_nothing():
    log = {"actions": [0] * 10, "rewards": [1.0] * 10, "propensities": [0.5] * 10}
    assert ips([[1.0, 0.0]] * 10, **log).value == 2.0


def test_heavy_weights_of_true_propensities_are_hardly_ever_refused():
    rng, refused = np.random.default_rng(3), 0
    propensities, target = np.array([0.004, 0.016, 0.08, 0.9]), np.array([0.4, 0.3, 0.2, 0.1])
    for _ in range(2_000):
        actions = rng.choice(4, size=200, p=propensities)
        weights = (target / propensities)[actions]
        log = {"actions": actions, "rewards": np.ones(200), "propensities": propensities[actions]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refused += "too small" in (ips(np.tile(target, (200, 1)), **log).reason or "")
        assert weights.max() <= 100.0
    assert refused <= 2


@pytest.mark.parametrize(("n", "fewest"), [(1_000, 10), (40, 4)])
def test_an_estimate_needs_ten_effective_rounds_or_a_tenth_of_a_small_log(n, fewest):
    n_arms = n // fewest  # so that weights have mean 1 with as many hits
    always_first = np.eye(n_arms)[np.zeros(n, int)]

    def with_hits(hits):
        actions = (np.arange(n) >= hits).astype(int)
        arrays = {"actions": actions, "rewards": np.arange(n), "propensities": np.full(n, 1 / n_arms)}
        return all_estimates(always_first, arrays)

    assert [found.reason for found in with_hits(fewest)] == [None] * 3
    reason = f"it rests on {fewest - 1} effective rounds of {n:,}, but needs at least {fewest}"
    with pytest.warns(UserWarning, match=reason):
        refused = with_hits(fewest - 1)
    for found in refused:
        assert np.isnan(found[:2]).all()
        assert found.effective_sample_size == pytest.approx(fewest - 1)
        assert found.reason == reason


def test_a_target_that_takes_no_logged_action_has_no_estimate():
    log = {"actions": [0, 1], "rewards": [1.0, 1.0], "propensities": [0.5, 0.5]}
    with pytest.warns(UserWarning, match="it rests on 0 effective rounds of 2"):
        refused = all_estimates([[0, 1], [1, 0]], log)
    assert np.isnan([found.value for found in refused]).all()
    assert [found.effective_sample_size for found in refused] == [0.0] * 3


# ----------------------------------------------------------------------------------------------------------- replay

ROUNDS, LOGS = 100, 300
LINTS = policies.LinTS(sigma=0.5)


def rounds_of_play(n, rng):
    contexts = rng.standard_normal((n, 3, 2))
    return contexts, contexts @ [1.0, -0.5], 0.5 * rng.standard_normal((n, 3))


def uniform_shares(means):
    return np.full(means.shape, 1 / 3)


def eager_shares(means):
    """Takes the best arm more often where it is good."""
    best = np.eye(3)[means.argmax(axis=1)]
    return np.where(means.max(axis=1, keepdims=True) > 0.8, 0.1 + 0.7 * best, 1 / 3)


@pytest.fixture(scope="module")
def online():
    rng = np.random.default_rng(1)
    totals = []
    for seed in range(LOGS):
        contexts, means, noise = rounds_of_play(ROUNDS, rng)
        run = simulate(LINTS, Recorded(contexts=contexts, means=means, noise=noise), horizon=ROUNDS, seed=seed)
        totals.append(run.reward[0, -1])
    return totals


def replayed_totals(shares, *, n, told=None):
    """Reward of the first rounds that count, on logs of their own; `told` is a propensity to be believed instead."""
    rng = np.random.default_rng(2)
    totals = []
    for seed in range(LOGS):
        contexts, means, noise = rounds_of_play(n, rng)
        logging = shares(means)
        actions, every = draw_actions(logging, rng), np.arange(n)
        rewards = (means + noise)[every, actions]
        propensities = logging[every, actions] if told is None else np.full(n, told)
        env = Logged(contexts=contexts, actions=actions, rewards=rewards, propensities=propensities)
        (earned,) = replay(LINTS, env, seed=LOGS + seed).rewards
        assert len(earned) >= ROUNDS
        totals.append(earned[:ROUNDS].sum())
    return totals


@pytest.mark.parametrize(("shares", "n"), [(uniform_shares, 450), (eager_shares, 1_600)], ids=["uniform", "eager"])
def test_replay_has_the_law_of_online_play_whoever_wrote_the_log(online, shares, n):
    assert ks_2samp(online, replayed_totals(shares, n=n)).pvalue > 0.05


@pytest.mark.filterwarnings("ignore:.*no replay:UserWarning")  # where enough rounds betray the wrong propensities
def test_replay_that_does_not_know_the_propensities_has_another_law(online):
    assert ks_2samp(online, replayed_totals(eager_shares, n=500, told=1 / 3)).pvalue < 1e-6


def small_log(n=400, seed=3):
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((n, 3, 2))
    actions = rng.integers(3, size=n)
    rewards = (contexts @ [1.0, -0.5])[np.arange(n), actions] + 0.5 * rng.standard_normal(n)
    return Logged(contexts=contexts, actions=actions, rewards=rewards, propensities=np.full(n, 1 / 3))


def test_replay_is_an_agent_that_meets_only_rounds_where_it_agrees():
    env, policy = small_log(), policies.Greedy(ties="first")
    agent = Agent(policy, n_arms=3, dim=2, max_pending=1)  # a rejected decision is forgotten at the next
    earned = []
    for contexts, action, reward in zip(env.contexts, env.actions, env.rewards):
        decision = agent.select(contexts)
        if decision.arm == action:
            agent.update(decision, reward)
            earned.append(reward)
    found = replay(policy, env)
    assert found.rewards[0].tolist() == earned
    assert found.accepted.tolist() == [len(earned)]
    assert found.value == pytest.approx(np.mean(earned))
    assert found.standard_error == pytest.approx(np.std(earned, ddof=1) / np.sqrt(len(earned)))


def test_the_first_replay_keeps_the_order_and_others_have_their_own():
    env = small_log()
    in_order = Logged(
        contexts=env.contexts, actions=env.actions, rewards=np.arange(env.length), propensities=env.propensities
    )
    first, second, third = replay(LINTS, in_order, trials=3).rewards
    assert (np.diff(first) > 0).all()
    assert (np.diff(second) < 0).any()
    assert second.tolist() != third.tolist()


def test_replay_depends_on_the_seed_alone():
    env = small_log()
    alone = replay(LINTS, env, trials=2, seed=5)
    among = replay({"greedy": policies.Greedy(), "lints": LINTS}, env, trials=3, seed=5)["lints"]
    assert [list(each) for each in alone.rewards] == [list(each) for each in among.rewards[:2]]
    assert replay(LINTS, env, seed=6).rewards[0].tolist() != alone.rewards[0].tolist()


def test_a_replay_without_a_round_that_counts_has_no_value():
    env = Logged(contexts=np.ones((2, 2, 1)), actions=[1, 1], rewards=[1, 1], propensities=[0.5, 0.5])
    found = replay(policies.Greedy(ties="first"), env)
    assert found.accepted.tolist() == [0]
    assert np.isnan(found.value)
    assert np.isnan(found.standard_error)


def test_replay_of_a_policy_that_the_log_hardly_ever_follows_is_refused():
    rng = np.random.default_rng(9)
    log = {"contexts": np.ones((900, 3, 1)), "rewards": rng.random(900), "propensities": np.full(900, 0.5)}
    with pytest.warns(
        UserWarning, match=r"the policy: no replay, because \d+ rounds were accepted where about 450 are expected"
    ) as told:
        found = replay(policies.UCB(), Logged(actions=rng.integers(2, size=900), **log), trials=2)
    assert found.reason in str(told[0].message)
    assert found.reason in repr(found)
    assert np.isnan(found.reward).all()
    assert np.isnan([found.value, found.standard_error]).all()
    two_arms = {**log, "contexts": np.ones((900, 2, 1))}
    assert replay(policies.UCB(), Logged(actions=rng.integers(2, size=900), **two_arms)).reason is None


def test_a_replay_of_equal_rewards_has_no_error():
    env = small_log()
    alike = Logged(contexts=env.contexts, actions=env.actions, rewards=np.zeros(400), propensities=env.propensities)
    found = replay(LINTS, alike, trials=2)
    assert found.value == 0.0
    assert np.isnan(found.standard_error)


# ------------------------------------------------------------------------------------------- what policies have learnt


def test_a_policy_that_draws_nothing_has_one_action_as_the_agent_that_learnt_the_log():
    env, policy = small_log(), policies.Greedy(ties="first")
    agent = Agent(policy, n_arms=3, dim=2)
    agent.warm_start(env.contexts[:200], env.actions[:200], env.rewards[:200])
    found = probabilities(policy, env, trained_on=slice(200), rows=slice(200, None))
    wanted = [agent.propensity(contexts) for contexts in env.contexts[200:]]
    np.testing.assert_array_equal(found, wanted)


def test_a_policy_that_draws_has_the_agents_probabilities_up_to_luck():
    env, draws = small_log(), 2_000
    agent = Agent(LINTS, n_arms=3, dim=2)
    agent.warm_start(env.contexts[:6], env.actions[:6], env.rewards[:6])
    found = probabilities(LINTS, env, trained_on=range(6), rows=[50, 60], draws=draws)
    for row, shares in zip((50, 60), found):
        wanted = agent.propensity(env.contexts[row], draws=draws)
        # Two shares of 2,000 draws differ with deviation at most sqrt(2 / 4 / 2,000) = 0.016.
        np.testing.assert_allclose(shares, wanted, atol=0.064)
        assert shares.sum() == pytest.approx(1.0)
        assert 0.0 < shares.max() < 1.0


def test_nobody_is_tested_on_rounds_that_were_learnt_from():
    """Rewards are luck alone: every policy is worth 0, unless it has seen the luck."""
    rng, cheated, found = np.random.default_rng(4), [], []
    for seed in range(60):
        env = Logged(
            contexts=rng.standard_normal((100, 4, 8)),
            actions=rng.integers(4, size=100),
            rewards=rng.standard_normal(100),
            propensities=np.full(100, 0.25),
        )
        found.append(evaluate(policies.Greedy(), env, seed=seed))
        seen = probabilities(policies.Greedy(), env, trained_on=slice(None), rows=slice(None))
        cheated.append(ips(seen, **arrays_of(env)).value)
    assert z_score(np.array(cheated), 0.0) > 6.0
    assert abs(z_score(np.array([each.ips.value for each in found]), 0.0)) < 3.0
    assert abs(z_score(np.array([each.doubly_robust.value for each in found]), 0.0)) < 3.0


def test_evaluate_knows_what_a_learnt_policy_is_worth():
    env, _ = a_problem().log(4_000, np.random.default_rng(5))
    found = evaluate({"greedy": policies.Greedy(), "uniform": np.full((4_000, 5), 0.2)}, env, folds=4)
    best, all_alike = a_problem().means.max(axis=1).mean(), a_problem().means.mean()
    greedy, uniform = found["greedy"], found["uniform"]
    assert all_alike + 0.3 < greedy.doubly_robust.value < best + 3 * greedy.doubly_robust.standard_error
    for estimate in uniform[1:]:
        assert abs(estimate.value - all_alike) < 3 * estimate.standard_error
    assert uniform.replay is None
    assert greedy.replay.accepted[0] == replay(policies.Greedy(), env).accepted[0]


def test_evaluate_depends_on_the_seed_alone():
    env = small_log()
    alone = evaluate(LINTS, env, seed=1)
    assert alone[1:] == evaluate({"greedy": policies.Greedy(), "lints": LINTS}, env, seed=1)["lints"][1:]
    assert alone[1:] != evaluate(LINTS, env, seed=2)[1:]


def test_predictions_are_a_ridge_regression_with_a_bias_an_arm():
    env = small_log(n=6)
    found = predicted_rewards(env, folds=6)  # each row by all others
    others = np.arange(6) != 2
    design = np.hstack([np.eye(3)[env.actions], env.contexts[np.arange(6), env.actions]])[others]
    level = env.rewards[others].mean()
    prior = np.diag([1.0, 1.0, 1.0, 2.0, 2.0])
    fit = np.linalg.solve(design.T @ design + prior, design.T @ (env.rewards[others] - level))
    np.testing.assert_allclose(found[2], level + fit[:3] + env.contexts[2] @ fit[3:], rtol=1e-9)


# ------------------------------------------------------------------------------------------------------ what is wrong


def test_actions_that_were_never_logged_are_told_with_their_share():
    log = {"actions": [0, 1], "rewards": [1.0, 1.0], "propensities": [0.5, 0.5]}
    with pytest.warns(UserWarning, match="the target spends 0.75 of 2 rounds on 1 action that was never logged"):
        ips([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], **log)


TABLE = {"actions": [0, 1], "rewards": [1.0, 1.0], "propensities": [0.5, 0.5]}


@pytest.mark.parametrize(
    ("target", "log", "message"),
    [
        ([[0.5, 0.4], [1, 0]], {}, "must sum to 1 in each round, but to 0.9 in round 0"),
        ([[1.5, -0.5], [1, 0]], {}, "must not be negative, but hold -0.5"),
        ([[1, 0]], {}, r"probabilities must have shape \(2, any\), got \(1, 2\)"),
        ([[1, 0], [1, 0]], {"actions": [0, 2]}, "action 2 of round 1 is unknown"),
        ([[1, 0], [1, 0]], {"propensities": [0.5, 0.0]}, "above 0 and at most 1"),
        ([[1, 0], [1, 0]], {"rewards": [np.nan, 0.0]}, "rewards must be finite"),
        (np.empty((0, 2)), {"rewards": [], "actions": [], "propensities": []}, "at least one round"),
    ],
    ids=["sum", "negative", "shape", "action", "propensity", "reward", "empty"],
)
@pytest.mark.parametrize("estimator", [ips, snips])
def test_tables_that_are_no_policy_or_no_log_are_refused(estimator, target, log, message):
    with pytest.raises(ValueError, match=message):
        estimator(target, **{**TABLE, **log})


def test_predictions_must_be_of_every_arm():
    with pytest.raises(ValueError, match=r"predictions must have shape \(2, 2\), got \(2,\)"):
        doubly_robust([[1, 0], [1, 0]], **TABLE, predictions=[0, 0])


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        (policies.BallOFUL(), {}, ValueError, "BallOFUL plays on the unit ball, but the log has 3 arms"),
        ({}, {}, ValueError, "at least one policy"),
        (policies.Greedy(), {"folds": 1}, ValueError, "folds must be a whole number >= 2"),
        (policies.Greedy(), {"folds": 500}, ValueError, "folds=500 needs at least 500 rounds, but the log has 400"),
        (policies.Greedy(), {"trials": 0}, ValueError, "trials must be"),
        (policies.Greedy(), {"draws": 0}, ValueError, "draws must be"),
        (policies.Greedy(), {"seed": -1}, ValueError, "seed must be"),
        (np.full((400, 2), 0.5), {}, ValueError, "have 2 columns, but the log has 3 arms"),
        (np.full((4, 3), 1 / 3), {}, ValueError, r"probabilities must have shape \(400, any\)"),
        ("greedy", {}, TypeError, "neither a policy, an agent, a fleet nor an array of probabilities"),
    ],
)
def test_what_cannot_be_evaluated_is_told(given, options, error, message):
    with pytest.raises(error, match=message):
        evaluate(given, small_log(), **options)


def test_only_logs_are_replayed():
    contexts = np.ones((5, 2, 1))
    recorded = Recorded(contexts=contexts, rewards=np.ones((5, 2)))
    for given in (policies.Greedy(), np.full((5, 2), 0.5)):
        with pytest.raises(TypeError, match="is not a log"):
            evaluate(given, recorded)
    with pytest.raises(TypeError, match="is not a log"):
        replay(policies.Greedy(), recorded)
    with pytest.raises(TypeError, match="is not a policy"):
        replay("greedy", small_log())


@pytest.mark.parametrize("estimate", [ips, snips])
def test_a_propensity_whose_inverse_cannot_be_squared_is_refused_by_round(estimate):
    logged = {"actions": [0, 1], "rewards": [1, 1], "propensities": [0.5, 1e-160]}
    with pytest.raises(ValueError, match=r"round 1 has 1e-160 \(at least 1e-100 is needed\)"):
        estimate([[0.5, 0.5]] * 2, **logged)


def test_draws_of_all_workers_at_once_must_fit_in_memory(monkeypatch):
    monkeypatch.setattr(checks, "free_memory", lambda: 60e9)
    monkeypatch.setattr(playing, "default_workers", lambda: 1)
    assert playing.draws_per_round(LINTS, small_log(), 10**9) == 10**9
    monkeypatch.setattr(playing, "default_workers", lambda: 4)
    with pytest.raises(ValueError, match=r"draws=1000000000 of the policy's noise would take \d+ GB of memory"):
        probabilities(LINTS, small_log(), trained_on=[0], rows=[1], draws=10**9)


@pytest.mark.parametrize("wrong", [[7], -5, [True], "all", [0.5]])
def test_rows_that_the_log_does_not_have_are_refused_by_name(wrong):
    env = Logged(contexts=np.ones((4, 2, 1)), actions=[0, 1] * 2, rewards=[0, 1] * 2, propensities=[0.5] * 4)
    for name in ("trained_on", "rows"):
        with pytest.raises(ValueError, match=rf"{name} must be row numbers from 0 to 3, a mask or a slice, not"):
            probabilities(policies.Greedy(), env, **{"trained_on": [0], "rows": [1], name: wrong})


@pytest.mark.parametrize("rows", [None, True, [[0, 1], [2, 3]], "0", 1e9])
def test_rows_that_are_no_list_mask_or_slice_are_refused(rows):
    log = Logged(contexts=np.ones((4, 2, 1)), actions=[0, 1, 0, 1], rewards=[0, 1, 0, 1], propensities=[0.5] * 4)
    with pytest.raises(ValueError, match="trained_on must be row numbers from 0 to 3, a mask or a slice"):
        probabilities(policies.Greedy(), log, trained_on=rows, rows=[3])
