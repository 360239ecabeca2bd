"""ALB-Norm: the golden cases, its epochs, its start, and what delay does to them."""

from __future__ import annotations

import numpy as np
import pytest
from golden_norm import CASES, Case, assert_plays_as

from albatross import Agent, environments, policies, simulate

SMALL = {"sigma": 0.1, "norm_bound": 5.0, "epoch_length": 10, "ties": "first"}


@pytest.mark.parametrize("name", CASES)
def test_it_plays_the_golden_case(name):
    case = Case(name)
    agent = Agent(policies.ALBNorm(**case.epochs), n_arms=case.n_arms, dim=case.dim, seed=0)
    assert_plays_as(case, "alb", agent)
    found = agent.diagnostics()
    np.testing.assert_allclose(found["norm_bounds"], case["alb_b"], rtol=1e-7)
    np.testing.assert_allclose(found["radii"], case["alb_radius_end"], rtol=1e-7)
    assert found["epoch_ends"].tolist() == case["alb_epoch_end"].tolist()


@pytest.mark.parametrize("name", ["recommended", "recommended_tau"])
def test_its_estimates_at_the_ends_of_epochs_are_the_golden_ones(name):
    case = Case(name)
    agent = Agent(policies.ALBNorm(**case.epochs), n_arms=case.n_arms, dim=case.dim, seed=0)
    ends = iter(case["alb_epoch_end"])
    upcoming, epoch = next(ends), 0
    started = 0 if case.epochs["norm_bound"] else 2 * case.epochs["explore"]
    for t, _ in enumerate(case.play(agent), start=1):
        if t == upcoming:
            found = agent.diagnostics()
            np.testing.assert_allclose(found["theta_hat"], case["alb_theta_end"][epoch], rtol=1e-7)
            counts = found["pulls"].copy()
            counts[case.epochs.get("explore_arm", 0)] -= started
            assert counts.tolist() == case["alb_counts_end"][epoch].tolist()
            upcoming, epoch = next(ends, None), epoch + 1
    assert epoch == len(case["alb_epoch_end"])


def test_epochs_double_and_one_that_the_horizon_cuts_leaves_the_bound_alone():
    env = environments.Mixture(n_arms=4, dim=2, noise_sd=0.1)
    run = simulate(policies.ALBNorm(**SMALL), env, horizon=4 + 10 + 20 + 39)
    assert run.diagnostics[0]["epoch_ends"].tolist() == [14, 34]
    assert len(run.diagnostics[0]["norm_bounds"]) == 3
    assert run.diagnostics[0]["epoch"] == 3


def test_a_bound_may_rise_again():
    env = environments.Mixture(n_arms=4, dim=2, theta_norm=3.0, noise_sd=0.1)
    policy = policies.ALBNorm(**{**SMALL, "norm_bound": 0.0})
    bounds = simulate(policy, env, horizon=500).diagnostics[0]["norm_bounds"]
    assert bounds[0] == 0.0
    assert bounds[-1] > 2.9


@pytest.mark.parametrize("restart", [False, True])
def test_the_bound_covers_the_norm_and_closes_in_on_it(restart):
    env = environments.Mixture(n_arms=6, dim=3, theta_norm=0.5, noise_sd=0.1)
    policy = policies.ALBNorm(**SMALL, restart=restart)
    runs = simulate(policy, env, horizon=6 + 10 * (2**8 - 1), trials=20)
    bounds = np.stack([found["norm_bounds"] for found in runs.diagnostics])
    assert (bounds >= 0.5).mean() > 0.95
    assert bounds[:, -1].mean() < 0.6


def test_a_restart_keeps_each_arms_first_play_and_nothing_else():
    agent = Agent(policies.ALBNorm(**SMALL, restart=True), n_arms=4, dim=2)
    rng = np.random.default_rng(0)
    firsts = {}
    for _ in range(4 + 10):
        decision = agent.select(rng.standard_normal((4, 2)))
        reward = float(rng.standard_normal())
        firsts.setdefault(decision.arm, (decision.action, reward))
        agent.update(decision, reward)
    assert agent.diagnostics()["epoch"] == 2
    fit = agent._state.inner.fit
    assert fit.weight.tolist() == [1.0] * 4
    for arm, (action, reward) in firsts.items():
        assert fit.context_sum[arm].tolist() == action.tolist()
        assert fit.reward_sum[arm] == reward
    assert not fit.theta.any()
    assert agent.diagnostics()["pulls"].sum() == 14


def test_without_a_bound_it_makes_its_own_from_pairs_of_one_arm():
    rng = np.random.default_rng(1)
    agent = Agent(policies.ALBNorm(sigma=0.1, explore=8, explore_arm=2), n_arms=4, dim=3)
    theta = np.array([2.0, -1.0, 0.5])
    rows, rewards = [], []
    for _ in range(16):
        decision = agent.select(rng.standard_normal((4, 3)))
        assert decision.arm == 2
        rewards.append(7.0 + decision.action @ theta + 0.1 * rng.standard_normal())
        rows.append(decision.action)
        assert agent.diagnostics()["norm_bounds"].size == 0
        agent.update(decision, rewards[-1])
    x = np.array(rows)[0::2] - np.array(rows)[1::2]
    y = np.array(rewards)[0::2] - np.array(rewards)[1::2]
    estimate = np.linalg.lstsq(x, y, rcond=None)[0]
    width = np.sqrt(2) * 0.1 * np.sqrt(3 / 8 * np.log(1 / 0.1))
    np.testing.assert_allclose(agent.diagnostics()["norm_bounds"], [np.linalg.norm(estimate) + width], rtol=1e-9)
    assert agent.select(np.zeros((4, 3))).arm == 0  # and now every arm once


def test_pairs_are_made_in_order_of_arrival():
    def bound(order):
        agent = Agent(policies.ALBNorm(sigma=0.1, explore=3), n_arms=2, dim=1)
        rng = np.random.default_rng(0)
        decisions = [agent.select(rng.standard_normal((2, 1))) for _ in range(6)]
        for k in order:
            agent.update(decisions[k], 4.0 * float(decisions[k].action[0]) + k)
        return agent.diagnostics()["norm_bounds"][0]

    assert bound([0, 1, 2, 3, 4, 5]) != bound([0, 2, 1, 3, 4, 5])


def test_where_the_arm_of_the_start_is_not_eligible_another_is_played_and_only_counts_as_ordinary():
    agent = Agent(policies.ALBNorm(sigma=0.1, explore=2), n_arms=4, dim=1, seed=0)
    elsewhere = [agent.select(np.ones((4, 1)), eligible=[1, 2, 3]) for _ in range(60)]
    assert {decision.arm for decision in elsewhere} == {1, 2, 3}
    assert {decision.propensity for decision in elsewhere} == {1 / 3}
    agent.update(elsewhere[0], 1.0)
    found = agent.diagnostics()
    assert found["explored"] == 0
    assert found["pulls"].sum() == 1
    assert found["biases"][elsewhere[0].arm] == 1.0


def test_contexts_that_never_change_leave_the_least_bound():
    agent = Agent(policies.ALBNorm(sigma=0.1, explore=60), n_arms=2, dim=3)
    for _ in range(120):
        agent.update(agent.select(np.ones((2, 3))), 1.0)
    assert agent.diagnostics()["norm_bounds"].tolist() == [1.0]


def test_a_burst_before_any_reward_does_not_repeat_an_arm():
    agent = Agent(policies.ALBNorm(**SMALL), n_arms=5, dim=2)
    assert [agent.select(np.ones(2)).arm for _ in range(7)] == [0, 1, 2, 3, 4, 0, 1]


def test_too_few_pairs_are_refused_with_advice():
    with pytest.raises(ValueError, match="explore=3 pairs cannot estimate 3 coordinates: take more than 3"):
        Agent(policies.ALBNorm(explore=3), n_arms=2, dim=3)
    Agent(policies.ALBNorm(explore=3, norm_bound=1.0), n_arms=2, dim=3)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta_explore": 2.0}, "delta_explore"),
        ({"sigma": -1.0}, "sigma"),
        ({"sigma": float("nan")}, "sigma"),
        ({"norm_bound": -1.0}, "norm_bound"),
        ({"epoch_length": 0}, "epoch_length"),
        ({"epoch_length": 2.5}, "epoch_length"),
        ({"form": "mine"}, "form"),
        ({"estimator": "best"}, "estimator"),
        ({"ties": "last"}, "ties"),
        ({"restart": "yes"}, "restart"),
        ({"explore_arm": -1}, "explore_arm"),
        ({"rho_min": 0.0}, "rho_min"),
        ({"scale": 0.0}, "scale"),
    ],
)
def test_a_wrong_parameter_is_named(wrong, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        policies.ALBNorm(**wrong)


def test_an_arm_of_the_start_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match="explore_arm=7 is not one of the arms 0 to 1"):
        Agent(policies.ALBNorm(explore_arm=7), n_arms=2, dim=1)


def test_no_epoch_ends_while_the_start_is_still_on():
    agent = Agent(policies.ALBNorm(sigma=0.1, explore=30, epoch_length=2), n_arms=3, dim=2, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(30):  # the arm of the start is away, another plays on
        agent.update(agent.select(rng.standard_normal((3, 2)), eligible=[1, 2]), float(rng.standard_normal()))
    assert agent.diagnostics()["epoch_ends"].size == 0
    assert agent.diagnostics()["radius"] is None
    for _ in range(60):
        agent.update(agent.select(rng.standard_normal((3, 2))), float(rng.standard_normal()))
    assert agent.diagnostics()["norm_bounds"].size == 1


@pytest.mark.parametrize("goes", ["never eligible", "retired", "reset", "replaced"])
def test_the_start_moves_to_another_arm_if_its_own_goes_away(goes):
    """Otherwise it would wait for that arm, and play at random, for ever."""
    agent = Agent(policies.ALBNorm(sigma=0.1, explore=4), arms=["a", "b", "c"], dim=2, seed=0)
    rng, means, theta = np.random.default_rng(0), {"a": 0.0, "b": 20.0, "c": -9.0, "d": 9.0}, np.array([1.5, -2.0])

    def play(rounds):
        chosen = []
        for _ in range(rounds):
            eligible = [arm for arm in agent.arms if arm != "a" or goes != "never eligible"]
            decision = agent.select(rng.standard_normal((agent.n_arms, 2)), eligible=eligible)
            mean = means[decision.arm] + decision.action @ theta
            agent.update(decision, float(mean + 0.1 * rng.standard_normal()))
            chosen.append(decision.arm)
        return chosen

    play(3)  # the third play waits for its partner
    if goes == "reset":
        agent.reset_arm("a")
    elif goes != "never eligible":
        agent.retire_arm("a")
    if goes == "replaced":
        agent.add_arm("d")
        assert agent.diagnostics()["explored"] == 2
        assert play(1) == ["d"]
    play(3 + 5 + 8)  # plays of the arm that went away, to be ahead by more than tau, and of the start itself
    found = agent.diagnostics()
    assert found["explored"] == 8
    assert found["norm_bounds"][0] == pytest.approx(2.5, abs=0.4)
    assert play(600)[-100:].count("b") > 60


def test_an_arm_that_is_away_now_and_then_keeps_the_start():
    agent, rng = Agent(policies.ALBNorm(sigma=0.1, explore=6), n_arms=3, dim=2, seed=0), np.random.default_rng(0)
    chosen = []
    for t in range(24):
        decision = agent.select(rng.standard_normal((3, 2)), eligible=[t % 2, 2])
        agent.update(decision, 0.0)
        chosen.append(decision.arm)
    assert chosen[::2] == [0] * 12
    assert agent.diagnostics()["norm_bounds"].size == 1


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_first_bound_does_not_depend_on_the_contexts_unit(scale):
    rng = np.random.default_rng(0)
    agent = Agent(policies.ALBNorm(sigma=1e-9, explore=5), n_arms=2, dim=4)
    theta = rng.standard_normal(4) / scale * 1e9
    for _ in range(10):
        decision = agent.select(scale * rng.standard_normal((2, 4)))
        agent.update(decision, float(decision.action @ theta))
    assert agent.diagnostics()["norm_bounds"][0] == pytest.approx(np.linalg.norm(theta), rel=1e-7)
