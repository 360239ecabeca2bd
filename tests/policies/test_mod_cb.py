"""ModCB: its residual estimate is unbiased, does not switch without need, and switches when the class is too small."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import sqrtm

from albatross import Agent, policies, simulate
from albatross.environments import Nested
from albatross.models.square_loss_gap import square_loss_gap


def covariance_of(dim, seed):
    """Of features that are far from independent and of unequal sizes."""
    root = np.random.default_rng(seed).standard_normal((dim, dim))
    return root @ root.T / dim + 0.3 * np.eye(dim)


def slow_residual(covariance, d_m, X, y):
    """The estimate pair by pair, v_s = Sigma^{1/2} R x_s y_s, and the spread of such an estimate under the null."""
    R = np.linalg.inv(covariance)
    R[:d_m, :d_m] -= np.linalg.inv(covariance[:d_m, :d_m])
    v = (sqrtm(covariance).real @ R @ (X * y[:, None]).T).T
    n = len(y)
    total = 0.0
    for s in range(n):
        for other in range(n):
            if s != other:
                total += v[s] @ v[other]
    centred = v - v.mean(axis=0)
    S = centred.T @ centred / n
    return total / (n * (n - 1)), np.sqrt(2 * np.trace(S @ S) / (n * (n - 1)))


def sums(X, y):
    return X.T @ y, (X * y[:, None] ** 2).T @ X, len(y)


def squared_loss_gap(covariance, theta, d_m):
    """What the best linear predictor on the first d_m features loses to the one on all."""
    inside, across = covariance[:d_m, :d_m], covariance[:d_m, d_m:]
    left_over = covariance[d_m:, d_m:] - across.T @ np.linalg.solve(inside, across)
    return float(theta[d_m:] @ left_over @ theta[d_m:])


# --------------------------------------------------------------------------------------------------- the estimate


@pytest.mark.parametrize(("d_m", "dim", "n"), [(1, 2, 2), (1, 4, 10), (3, 4, 25), (2, 6, 40), (5, 8, 60)])
def test_the_estimate_from_sums_is_the_double_sum_over_pairs(d_m, dim, n):
    rng = np.random.default_rng(dim)
    covariance = covariance_of(dim, seed=n)
    X = rng.multivariate_normal(np.zeros(dim), covariance, n)
    y = X @ rng.standard_normal(dim) + rng.standard_normal(n)
    estimate, spread = square_loss_gap(covariance, d_m, *sums(X, y))
    wanted, wanted_spread = slow_residual(covariance, d_m, X, y)
    assert estimate == pytest.approx(wanted, rel=1e-8, abs=1e-10)
    assert spread == pytest.approx(wanted_spread, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("reach", [2, 4, 6])  # theta is not zero on so many features; with 2 the null is true
def test_the_estimate_is_unbiased(reach):
    d_m, dim, n, times = 2, 6, 25, 20_000
    rng = np.random.default_rng(reach)
    covariance = covariance_of(dim, seed=1)
    theta = np.where(np.arange(dim) < reach, rng.choice([-0.5, 0.5], dim), 0.0)
    truth = squared_loss_gap(covariance, theta, d_m)
    assert (truth > 0.05) == (reach > 2)
    X = rng.multivariate_normal(np.zeros(dim), covariance, (times, n))
    y = X @ theta + 0.7 * rng.standard_normal((times, n))
    estimates = np.array([square_loss_gap(covariance, d_m, *sums(X[k], y[k]))[0] for k in range(times)])
    standard_error = estimates.std(ddof=1) / np.sqrt(times)
    assert abs(estimates.mean() - truth) < 3 * standard_error
    assert standard_error < max(0.02, 0.05 * truth)  # else this would say little


def test_under_the_null_its_spread_is_what_it_says():
    d_m, dim, n, times = 2, 5, 400, 2_000
    rng = np.random.default_rng(0)
    covariance = covariance_of(dim, seed=2)
    theta = np.array([0.5, -0.5, 0.0, 0.0, 0.0])
    X = rng.multivariate_normal(np.zeros(dim), covariance, (times, n))
    y = X @ theta + 0.7 * rng.standard_normal((times, n))
    found = np.array([square_loss_gap(covariance, d_m, *sums(X[k], y[k])) for k in range(times)])
    assert found[:, 0].std() == pytest.approx(found[:, 1].mean(), rel=0.1)


# ---------------------------------------------------------------------------------------------------- the policy

DIMS = (2, 4, 6)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("correlated", [False, True])
def test_it_does_not_leave_a_class_that_is_large_enough(known, correlated):
    covariance = covariance_of(6, seed=3) if correlated else np.eye(6)
    env = Nested(n_arms=4, dims=DIMS, true_dim=2, noise_sd=0.5, covariance=covariance)
    policy = policies.ModCB(dims=DIMS, covariance=covariance if known else None)
    run = simulate(policy, env, horizon=2_000, trials=200, workers=2, record=[2_000])
    stayed = [found["model"] == 2 and not found["switches"] for found in run.diagnostics]
    assert np.mean(stayed) >= 0.95


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("true_dim", [4, 6])
def test_it_leaves_a_class_that_is_too_small(known, true_dim):
    covariance = covariance_of(6, seed=4)
    env = Nested(n_arms=4, dims=DIMS, true_dim=true_dim, noise_sd=0.5, covariance=covariance)
    policy = policies.ModCB(dims=DIMS, covariance=covariance if known else None)
    run = simulate(policy, env, horizon=20_000, trials=20, workers=2, record=[20_000])
    for found in run.diagnostics:
        assert found["model"] == true_dim
        assert len(found["switches"]) >= 1
        assert found["switches"][0]["from"] == 2
        assert found["switches"][-1]["to"] == true_dim
        assert 0 < found["switches"][0]["rounds"] <= 20_000
        for one, two in pairwise(found["switches"]):
            assert one["to"] == two["from"]
            assert one["rounds"] < two["rounds"]


def test_it_gains_by_switching():
    env = Nested(n_arms=4, dims=DIMS, true_dim=6, noise_sd=0.5)
    stuck = policies.FirstFeatures(policy=policies.LinUCB(biases=False), dim=2)
    named = {"modcb": policies.ModCB(dims=DIMS), "stuck": stuck, "uniform": policies.Uniform()}
    runs = simulate(named, env, horizon=20_000, trials=4, workers=2, record=[20_000])
    assert runs["modcb"].regret[:, -1].max() < 0.5 * runs["stuck"].regret[:, -1].min()
    assert runs["modcb"].regret[:, -1].max() < 0.3 * runs["uniform"].regret[:, -1].min()


def step_by_step(policy, *, rounds, theta, seed=0, n_arms=4, dim=6, noise_sd=0.5):
    """Every round: its offer, the decision, the reward and whether it was exploration (it then is a sample)."""
    agent = Agent(policy, n_arms=n_arms, dim=dim, seed=seed)
    rng = np.random.default_rng(seed)
    log = []
    for _ in range(rounds):
        X = rng.standard_normal((n_arms, dim))
        before = agent.diagnostics()
        decision = agent.select(X)
        reward = float(decision.action @ theta + noise_sd * rng.standard_normal())
        agent.update(decision, reward)
        explored = agent.diagnostics()["explored"] - before["explored"]
        log.append((X, decision, reward, explored, before["model"]))
    return agent, log


def test_it_explores_as_often_as_it_should():
    for exponent in (1 / 3, 1 / 4):
        policy = policies.ModCB(dims=DIMS, exponent=exponent)
        _, log = step_by_step(policy, rounds=3_000, theta=np.zeros(6))
        chance = np.minimum(1.0, (4 / np.arange(1, 3_001)) ** exponent)
        explored = np.array([entry[3] for entry in log])
        assert explored[:4].all()
        assert set(explored) == {0, 1}
        assert abs(explored.sum() - chance.sum()) < 4 * np.sqrt((chance * (1 - chance)).sum())
        arms = np.array([entry[1].arm for entry in log])[explored == 1]
        assert np.abs(np.bincount(arms, minlength=4) / arms.size - 0.25).max() < 4 * np.sqrt(3 / 16 / arms.size)


def test_its_estimates_are_the_residuals_of_its_exploration():
    agent, log = step_by_step(
        policies.ModCB(dims=DIMS, covariance=np.eye(6)), rounds=1_500, theta=np.array([1.0, 1.0, 0, 0, 0, 0])
    )
    found = agent.diagnostics()
    samples = [(decision.action, reward) for _, decision, reward, explored, _ in log if explored]
    assert found["explored"] == len(samples) > 100
    assert found["model"] == 2
    X, y = np.array([x for x, _ in samples]), np.array([r for _, r in samples])
    # It looks again whenever its samples have grown by 5 %: the last look was at one of these numbers of them.
    looks = range(int(len(y) / 1.06), len(y) + 1)
    for j, dim in enumerate((4, 6)):
        candidates = [square_loss_gap(np.eye(dim), 2, *sums(X[:n, :dim], y[:n]))[0] for n in looks]
        assert np.abs(np.array(candidates) - found["estimates"][j]).min() < 1e-9


def test_an_estimated_covariance_comes_near_the_known_one_after_a_log_too():
    # A log says nothing of what was offered: it must not count as rounds whose offers were all zero.
    estimates = []
    for covariance in (np.eye(6), None):
        policy = policies.ModCB(dims=DIMS, covariance=covariance, delta=1e-300)  # so that it never switches
        agent = Agent(policy, n_arms=4, dim=6, seed=1)
        rng = np.random.default_rng(1)
        agent.warm_start(rng.standard_normal((2_000, 6)), rng.integers(4, size=2_000), rng.standard_normal(2_000))
        for _ in range(1_500):
            decision = agent.select(rng.standard_normal((4, 6)))
            agent.update(decision, float(decision.action.sum() + 0.1 * rng.standard_normal()))
        assert agent.diagnostics()["model"] == 2
        estimates.append(agent.diagnostics()["estimates"])
    assert estimates[1] == pytest.approx(estimates[0], rel=0.15)


@pytest.mark.parametrize("known", [True, False])
def test_late_unordered_and_lost_rewards_are_taken(known):
    agent = Agent(policies.ModCB(dims=DIMS, covariance=np.eye(6) if known else None), n_arms=4, dim=6, seed=2)
    rng = np.random.default_rng(2)
    waiting, rewarded = [], 0
    for _ in range(4_000):
        decision = agent.select(rng.standard_normal((4, 6)), eligible=rng.permutation(4)[: rng.integers(2, 5)])
        waiting.append((decision, float(decision.action[4] + 0.3 * rng.standard_normal())))
        while len(waiting) > 15:
            late = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.9:  # some never come
                agent.update(*late)
                rewarded += 1
    found = agent.diagnostics()
    assert found["pulls"].sum() == rewarded
    assert found["model"] == 6  # the fifth feature is all that matters


def slow_linucb(rows, X, *, alpha, ridge):
    x = np.array([row for row, _ in rows]).reshape(-1, X.shape[1])
    V = ridge * np.eye(X.shape[1]) + x.T @ x
    theta = np.linalg.solve(V, x.T @ np.array([r for _, r in rows]))
    return X @ theta + alpha * np.sqrt(np.einsum("kd,kd->k", X, np.linalg.solve(V, X.T).T))


def test_between_explorations_it_plays_linucb_on_its_class_anew_after_every_switch():
    policy = policies.ModCB(dims=DIMS, covariance=np.eye(6), alpha=0.7, ridge=2.0)
    agent, log = step_by_step(policy, rounds=1_200, theta=np.array([0.5, 0, 0, 0, 0, 1.0]))
    switches = agent.diagnostics()["switches"]
    assert len(switches) >= 1
    rows, model, checked = [], 2, 0
    for t, (X, decision, reward, explored, class_then) in enumerate(log):
        if class_then != model:
            assert any(switch["rounds"] == t and switch["to"] == class_then for switch in switches)
            model, rows = class_then, []
        if not explored:
            scores = slow_linucb(rows, X[:, :model], alpha=0.7, ridge=2.0)
            assert decision.arm == scores.argmax()
            assert decision.score == pytest.approx(scores.max(), rel=1e-9)
            rows.append((decision.action[:model], reward))
            checked += 1
    assert checked > 800


def test_in_the_largest_class_there_is_nothing_left_to_estimate():
    agent, _ = step_by_step(policies.ModCB(dims=(6,)), rounds=200, theta=np.ones(6))
    found = agent.diagnostics()
    assert found["model"] == 6
    assert len(found["estimates"]) == 0
    assert not found["switches"]


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("dims", ()),
        ("dims", (3, 2)),
        ("dims", (2, 2)),
        ("dims", (0, 2)),
        ("delta", 0.0),
        ("delta", 2.0),
        ("alpha", -1.0),
        ("ridge", 0.0),
        ("covariance", np.eye(3)),
        ("covariance", np.zeros((4, 4))),
        ("covariance", np.diag([1.0, 1.0, -1.0, 1.0])),
        ("covariance", np.triu(np.ones((4, 4)))),
        ("covariance", np.full((4, 4), np.nan)),
        ("exponent", 0.0),
        ("exponent", -0.5),
    ],
)
def test_bad_arguments_are_refused_by_name(name, wrong):
    with pytest.raises((ValueError, TypeError), match=name):
        Agent(policies.ModCB(**{"dims": (2, 4), name: wrong}), n_arms=3, dim=4)


def test_maps_past_the_features_and_a_single_arm_are_refused():
    with pytest.raises(ValueError, match="dims"):
        Agent(policies.ModCB(dims=(2, 5)), n_arms=3, dim=4)
    with pytest.raises(ValueError, match="n_arms"):
        Agent(policies.ModCB(dims=(2, 4)), n_arms=1, dim=4)


# ------------------------------------------------------------------------ features that repeat others, or none at all


def test_contexts_without_any_variance_are_never_tested_on_and_do_no_harm():
    agent = Agent(policies.ModCB(dims=(1, 2)), n_arms=2, dim=2, seed=0)
    for _ in range(200):
        agent.update(agent.select(np.zeros((2, 2))), 1.0)
    found = agent.diagnostics()
    assert found["model"] == 1
    assert np.isfinite(found["estimates"]).all()


def share_that_leaves(dims, features, theta, **keywords):
    env = Nested(n_arms=3, dims=dims, theta=theta, noise_sd=0.5, features=features)
    run = simulate(policies.ModCB(dims=dims, **keywords), env, horizon=4_000, trials=40)
    return np.mean([bool(found["switches"]) for found in run.diagnostics])


@pytest.mark.parametrize("nearly", [0.0, 1e-7, 1e-5, 1e-3])
def test_a_map_that_only_repeats_a_feature_is_not_taken(nearly):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5_000, 2))
    features = np.column_stack([X, X[:, 0] + nearly * rng.standard_normal(5_000)])
    assert share_that_leaves((2, 3), features, [1.0, 0.5, 0.0]) <= 0.05


def test_an_intercept_beside_all_dummies_is_not_mistaken_for_news():
    dummies = np.eye(3)[np.random.default_rng(0).integers(3, size=2_000)]
    features = np.column_stack([np.ones(2_000), dummies])
    assert share_that_leaves((3, 4), features, [0.3, 1.0, -0.5, 0.0]) <= 0.05


@pytest.mark.parametrize("unit", [1e-6, 1e4, 1e6])
@pytest.mark.parametrize("known", [False, True])
def test_a_feature_in_another_unit_changes_nothing(unit, known):
    root = np.diag([unit, 1.0, 1.0]) @ np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.5]])
    features = np.random.default_rng(0).standard_normal((5_000, 3)) @ root.T
    covariance = root @ root.T if known else None
    assert share_that_leaves((2, 3), features, [0.0, 1.0, 0.0], covariance=covariance) <= 0.05
    assert share_that_leaves((2, 3), features, [0.0, 1.0, 2.0], covariance=covariance) == 1.0
