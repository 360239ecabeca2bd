"""ALB-Dim: the golden exploration, phases, fallbacks and what its diagnostics tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from albatross import Agent, policies, simulate
from albatross.environments import Ball
from albatross.models.least_squares import least_squares
from albatross.policies.exploration import phase_lengths
from albatross.protocol import Choice, update

GOLDEN = np.load(Path(__file__).parent.parent / "golden" / "dim" / "exploration.npz")
PHASE_KEYS = {"support", "samples", "conditioning", "switches", "reason"}


def play(agent, reward, *, until):
    """Play by the given reward of an action until the diagnostics say so."""
    for _ in range(100_000):
        found = agent.diagnostics()
        if until(found):
            return found
        decision = agent.select()
        agent.update(decision, float(reward(decision.action)))
    raise AssertionError("never came")


def in_phase(i):
    return lambda found: found["phase"] == i


def nothing(action):
    return 0.0


# ------------------------------------------------------------------------------------------ golden exploration


def gram_of(cut):
    X, y = GOLDEN["X"][:cut], GOLDEN["y"][:cut]
    return X.T @ X, X.T @ y


@pytest.mark.parametrize("i", [2, 3])
def test_golden_estimates_and_masks(i):
    cut = int(GOLDEN["cuts"][i - 1])
    theta, conditioning, reason = least_squares(*gram_of(cut), cut, 0)
    assert reason == 0
    assert 0.0 < conditioning <= 1.0
    assert theta == pytest.approx(GOLDEN[f"est_{i}"], rel=1e-9, abs=1e-9)
    assert np.array_equal(np.abs(theta) >= 2.0 ** -(i + 1), GOLDEN[f"D_pseudocode_{i}"])
    assert np.array_equal(np.abs(theta) >= 2.0**-i, GOLDEN[f"D_text_{i}"])


def test_golden_first_cut_has_too_few_samples_to_threshold():
    cut = int(GOLDEN["cuts"][0])
    assert (cut, bool(GOLDEN["ok_1"])) == (12, False)
    theta, _, reason = least_squares(*gram_of(cut), cut, 0)
    assert reason == 1
    assert not theta.any()


def test_a_gram_matrix_that_does_not_factorise_is_told_from_too_few_samples():
    x = np.array([1.0, 0.0, 0.0])
    assert least_squares(np.outer(x, x) * 50, x * 10, 50, 0)[2] == 2


def test_the_minimum_norm_option_gives_an_estimate_all_the_same():
    X, y = GOLDEN["X"][:12], GOLDEN["y"][:12]
    theta, _, reason = least_squares(X.T @ X, X.T @ y, 12, 1)
    assert reason == 0
    assert theta == pytest.approx(np.linalg.lstsq(X, y, rcond=None)[0], abs=1e-5)


def test_golden_phase_lengths():
    lengths = phase_lengths(int(GOLDEN["phases_T0"]), (25, 5), 2**53)
    golden = np.array([[int(part) for part in row] for row in GOLDEN["phases"]])
    assert lengths[: len(golden)].tolist() == golden.tolist()


@pytest.mark.parametrize("first_phase", [1, 2, 3, 4, 9, 10, 99, 100, 101, 10**12])
def test_exploration_starts_with_the_root_of_the_first_phase_rounded_up(first_phase):
    explored = int(phase_lengths(first_phase, (25, 5), 1)[0, 1])
    assert (explored - 1) ** 2 < first_phase <= explored**2


def fed(policy, cuts):
    """An agent that ends its phases with the golden samples as exploration; 16 coordinates."""
    agent = Agent(policy, dim=16, seed=0)
    X, y = GOLDEN["X"], GOLDEN["y"]
    parameters, state = agent._parameters, agent._state
    done = 0
    for phase, cut in enumerate(cuts):
        state.clock[1] = parameters.lengths[phase, 0]  # all rounds of play are over
        state.clock[2] = parameters.lengths[phase, 1] - (cut - done)  # the rest of exploration is golden
        for x, reward in zip(X[done:cut], y[done:cut], strict=True):
            tag = np.concatenate([[phase, 1.0], x, [0.0, 0.0]])
            update(parameters, state, Choice(0, x, 0.0, 0.0, np.nan, tag), float(reward), 1)
        done = cut
    return agent.diagnostics()


@pytest.mark.parametrize("rule", ["pseudocode", "text"])
def test_golden_samples_through_the_policy_give_the_golden_supports(rule):
    found = fed(policies.ALBDim(first_phase=10**6, threshold=rule), [int(cut) for cut in GOLDEN["cuts"]])
    assert found["phase"] == 3
    phases = found["phases"]
    assert phases[0]["support"].tolist() == phases[1]["support"].tolist() == list(range(16))
    assert "fewer samples" in phases[1]["reason"]
    for i in (2, 3):
        assert phases[i]["support"].tolist() == np.flatnonzero(GOLDEN[f"D_{rule}_{i}"]).tolist()
        assert phases[i]["reason"] == "thresholded"
    assert [phase["samples"] for phase in phases] == [0, 12, 400, 1500]


# --------------------------------------------------------------------------------------------------- fallbacks


def test_a_first_phase_too_small_for_the_dimension_keeps_all_coordinates_and_says_why():
    agent = Agent(policies.ALBDim(first_phase=1, switch=1.0), dim=16, seed=0)
    found = play(agent, lambda x: x[0], until=in_phase(2))
    for i in (1, 2):
        assert found["phases"][i]["support"].tolist() == list(range(16))
        assert found["phases"][i]["reason"] == "all coordinates kept: fewer samples than coordinates"
    assert [phase["samples"] for phase in found["phases"]] == [0, 1, 6]
    run = simulate(policies.ALBDim(first_phase=1, switch=1.0), Ball(dim=40, sparsity=3, smallest=0.3), horizon=20_000)
    assert np.isfinite(run.regret).all()
    assert "fewer samples" in run.diagnostics[0]["phases"][2]["reason"]


def test_too_few_samples_cut_the_shortest_fit_where_that_is_asked_for():
    agent = Agent(policies.ALBDim(first_phase=1, switch=1.0, on_few_samples="min-norm"), dim=16, seed=0)
    played = []

    def reward(x):
        played.append(x)
        return 20.0 * x[0]

    found = play(agent, reward, until=in_phase(1))
    shortest = 20.0 * played[-1][0] * played[-1]  # of all theta with the one reward of exploration
    assert 0 < np.sum(np.abs(shortest) >= 0.25) < 16
    assert found["phases"][1]["support"].tolist() == np.flatnonzero(np.abs(shortest) >= 0.25).tolist()
    assert found["phases"][1]["reason"] == "thresholded"


def test_an_empty_support_keeps_all_coordinates_and_says_why():
    found = play(Agent(policies.ALBDim(first_phase=9, switch=1.0), dim=2, seed=0), nothing, until=in_phase(1))
    assert found["phases"][1]["support"].tolist() == [0, 1]
    assert found["phases"][1]["reason"] == "all coordinates kept: none was above the threshold"
    assert found["dimension"] == 2


def test_an_empty_support_plays_zero_where_that_is_asked_for():
    agent = Agent(policies.ALBDim(first_phase=9, switch=1.0, on_empty="zero"), dim=2, seed=0)
    found = play(agent, nothing, until=in_phase(1))
    assert found["phases"][1]["support"].tolist() == []
    assert "plays 0" in found["phases"][1]["reason"]
    for _ in range(225):
        decision = agent.select()
        assert decision.action.tolist() == [0.0, 0.0]
        agent.update(decision, 0.0)
    assert agent.diagnostics()["exploring"]
    found = play(agent, lambda x: x[0], until=in_phase(2))  # exploration goes on, and may find something again
    assert found["phases"][2]["samples"] == 3 + 15


def test_an_empty_support_plays_zero_in_blocks_too():
    env = Ball(dim=2, theta=[0.0, 0.0], noise_sd=0.01)
    policy = policies.ALBDim(first_phase=100, sigma=0.01, switch=1.0, on_empty="zero")
    run = simulate(policy, env, horizon=2_000, record=[2_000])
    assert run.diagnostics[0]["phases"][1]["support"].size == 0
    assert run.diagnostics[0]["pulls"].tolist() == [2_000.0]
    assert run.regret[0, -1] == 0.0


def test_wrong_options_are_refused_by_name():
    for name, wrong in (
        ("first_phase", 0),
        ("delta", 1.5),
        ("sigma", -1.0),
        ("switch", -0.1),
        ("threshold", "neither"),
        ("exploration", "cube"),
        ("on_few_samples", "guess"),
        ("on_empty", "stop"),
        ("growth", (25, 5, 1)),
        ("growth", (1, 5)),
        ("inner", "ucb"),
    ):
        with pytest.raises((ValueError, TypeError), match=name):
            policies.ALBDim(**{name: wrong})


# ----------------------------------------------------------------------------------------- phases, diagnostics


def test_phases_last_as_long_as_they_should_and_explore_at_their_end():
    agent = Agent(policies.ALBDim(first_phase=5, switch=1.0), dim=2, seed=0)
    exploring, phase = [], []
    for _ in range(5 + 3 + 125 + 15 + 10):
        found = agent.diagnostics()
        exploring.append(found["exploring"])
        phase.append(found["phase"])
        agent.update(agent.select(), 0.0)
    assert exploring == [False] * 5 + [True] * 3 + [False] * 125 + [True] * 15 + [False] * 10
    assert phase == [0] * 8 + [1] * 140 + [2] * 10


def test_diagnostics_tell_of_every_phase():
    agent = Agent(policies.ALBDim(first_phase=30, switch=1.0, sigma=0.1), dim=3, seed=0)
    found = play(agent, lambda x: 0.9 * x[1], until=in_phase(2))
    assert len(found["phases"]) == 3
    for phase in found["phases"]:
        assert phase.keys() >= PHASE_KEYS
    assert found["phases"][0]["support"].tolist() == [0, 1, 2]
    assert found["phases"][1]["support"].tolist() == found["phases"][2]["support"].tolist() == [1]
    assert [phase["samples"] for phase in found["phases"]] == [0, 6, 36]
    assert all(0.0 < phase["conditioning"] <= 1.0 for phase in found["phases"][1:])
    assert all(phase["switches"] > 0 for phase in found["phases"][:2])
    assert found["phases"][2]["switches"] == 0
    assert found["dimension"] == 1
    assert found["radius"] > 0.0
    assert found["pulls"].tolist() == [30 + 6 + 750 + 30]


@pytest.mark.parametrize("law", ["sphere", "ball", "gaussian"])
def test_exploration_follows_its_law(law):
    agent = Agent(policies.ALBDim(first_phase=1_000_000, exploration=law), dim=3, seed=0)
    agent._state.clock[1] = 1_000_000  # all rounds of play are over
    actions = np.array([agent.select().action for _ in range(3_000)])
    squares = np.sum(actions**2, axis=1)
    expected = {"sphere": 1.0, "ball": 3 / 5, "gaussian": 3.0}[law]
    assert abs(squares.mean() - expected) <= 4 * squares.std() / np.sqrt(3_000) + 1e-12
    assert np.abs(actions.mean(axis=0)).max() < 4 * np.sqrt(expected / 3 / 3_000)
    assert (squares.max() > 1.0 + 1e-9) == (law == "gaussian")


def test_an_exploration_action_outside_the_ball_may_be_rewarded_by_the_agent_that_chose_it():
    agent = Agent(policies.ALBDim(first_phase=1_000, exploration="gaussian"), dim=3, seed=1)
    agent._state.clock[1] = 1_000
    outside = next(d for d in (agent.select() for _ in range(50)) if np.linalg.norm(d.action) > 1.5)
    with pytest.raises(ValueError, match="action"):
        agent.update(outside.action + 0.1, 0.5)
    assert agent.diagnostics()["samples"] == 0
    agent.update(outside, 0.5)
    assert agent.diagnostics()["samples"] == 1
    assert agent._state.gram == pytest.approx(np.outer(outside.action, outside.action))
    assert agent._state.cross == pytest.approx(0.5 * outside.action)


def test_late_rewards_of_an_earlier_phases_play_are_ignored():
    agent = Agent(policies.ALBDim(first_phase=4, switch=1.0), dim=2, seed=0)
    late = agent.select()
    play(agent, lambda x: x[0], until=in_phase(1))
    agent.update(agent.select(), 0.3)
    before = agent.diagnostics()
    agent.update(late, 1_000.0)
    after = agent.diagnostics()
    assert after["theta_hat"].tolist() == before["theta_hat"].tolist()
    assert after["log_det"] == before["log_det"]
    assert after["samples"] == before["samples"]
    assert after["pulls"] == before["pulls"] + 1


def test_late_rewards_of_an_earlier_phases_exploration_count_as_samples_but_not_for_oful():
    agent = Agent(policies.ALBDim(first_phase=4, switch=1.0), dim=2, seed=0)
    play(agent, lambda x: x[0], until=lambda found: found["exploring"])
    late = agent.select()
    play(agent, lambda x: x[0], until=in_phase(1))
    before, gram = agent.diagnostics(), agent._state.gram.copy()
    agent.update(late, 0.7)
    after = agent.diagnostics()
    assert after["samples"] == before["samples"] + 1
    assert agent._state.gram - gram == pytest.approx(np.outer(late.action, late.action))
    assert after["theta_hat"].tolist() == before["theta_hat"].tolist()
    assert agent._state.clock[2] == 0  # this phase's own exploration is still to come


def test_somebodys_own_actions_count_as_samples():
    agent = Agent(policies.ALBDim(first_phase=4, switch=1.0), dim=2, seed=0)
    agent.warm_start([[1.0, 0.0], [0.6, 0.8]], None, [0.5, 0.1])
    found = agent.diagnostics()
    assert (found["samples"], found["phase"], found["log_det"]) == (2, 0, 0.0)
    assert agent._state.cross == pytest.approx([0.56, 0.08])


def test_gaussian_exploration_finds_a_sparse_support():
    env = Ball(dim=20, magnitudes=[0.5, 0.5, 0.4], noise_sd=0.1)
    policy = policies.ALBDim(first_phase=400, sigma=0.1, switch=1.0, exploration="gaussian")
    run = simulate(policy, env, horizon=100_000, trials=8, seed=3, record="log")
    for found in run.diagnostics:
        assert found["phases"][2]["samples"] == 120
        assert found["phases"][2]["support"].tolist() == found["truth"]["support"].tolist()
        assert found["phases"][2]["reason"] == "thresholded"
        assert found["dimension"] == 3


def test_thompson_sampling_may_play_inside():
    env = Ball(dim=3, theta=[0.0, 0.8, 0.0], noise_sd=0.1)
    run = simulate(policies.ALBDim(first_phase=50, sigma=0.1, switch=1.0, inner="lints"), env, horizon=3_000, trials=2)
    for found in run.diagnostics:
        assert found["phases"][1]["support"].tolist() == [1]
        assert "radius" not in found
