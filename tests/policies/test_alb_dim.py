"""ALB-Dim: the golden exploration, phases, fallbacks and what its diagnostics tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from albatross import Agent, policies, simulate
from albatross.environments import Ball
from albatross.models.least_squares import least_squares
from albatross.policies.exploration import growth_for, phase_lengths
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


def fed(policy, cuts, X=GOLDEN["X"], y=GOLDEN["y"]):
    """An agent that ends its phases with these samples as exploration; 16 coordinates."""
    agent = Agent(policy, dim=16, seed=0)
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
        ("samples", "some"),
        ("shrinkage", 1.0),
        ("shrinkage", 9.5),
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


# ------------------------------------------------------------------------------------------- inside the ball

INSIDE = {"threshold": "intervals", "samples": "all"}


def supports_by_intervals(X, y, *, sigma, delta, phase):
    """The rule in NumPy: coordinates whose interval reaches the lowest lower end above 0."""
    theta = np.linalg.lstsq(X, y, rcond=None)[0]
    halfwidth = sigma * np.sqrt(2 * np.log(2 * len(theta) * 2**phase / delta) * np.diag(np.linalg.inv(X.T @ X)))
    lower = np.abs(theta) - halfwidth
    least = min(lower[lower > 0.0], default=0.0)
    return np.flatnonzero(np.abs(theta) + halfwidth >= least).tolist()


def test_intervals_give_the_supports_of_a_transcription():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_500, 16))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X[:, :4] @ [0.8, -0.5, 0.4, 0.3] + 0.1 * rng.standard_normal(1_500)
    cuts = [12, 100, 1_500]
    phases = fed(policies.ALBDim(first_phase=10**6, threshold="intervals", sigma=0.1), cuts, X, y)["phases"]
    assert "fewer samples" in phases[1]["reason"]
    for i in (2, 3):
        wanted = supports_by_intervals(X[: cuts[i - 1]], y[: cuts[i - 1]], sigma=0.1, delta=0.1, phase=i)
        assert phases[i]["support"].tolist() == wanted
    assert set(range(4)) < set(phases[2]["support"])  # 100 samples do not tell all zeros yet
    assert phases[3]["support"].tolist() == [0, 1, 2, 3]


def test_intervals_keep_all_coordinates_while_none_is_surely_not_0():
    phases = fed(policies.ALBDim(first_phase=10**6, threshold="intervals", sigma=30.0), [12, 400])["phases"]
    assert phases[2]["support"].tolist() == list(range(16))


def test_every_play_is_a_sample_if_all_are():
    agent = Agent(policies.ALBDim(first_phase=9, switch=1.0, **INSIDE), dim=3, seed=0)
    late = agent.select()
    actions, rewards = [late.action], [0.25]
    while agent.diagnostics()["phase"] < 1:
        decision = agent.select()
        actions.append(decision.action)
        rewards.append(0.5 * decision.action[1])
        agent.update(decision, rewards[-1])
    agent.update(late, 0.25)  # its policy is gone, but it is a sample all the same
    X = np.array(actions)
    assert np.linalg.norm(X, axis=1).max() <= 1.0 + 1e-12
    assert agent.diagnostics()["samples"] == len(actions) == 9 + 3 + 1
    assert agent._state.gram == pytest.approx(X.T @ X)
    assert agent._state.cross == pytest.approx(X.T @ rewards)


def test_a_simulation_that_keeps_the_axes_plays_as_one_that_does_not():
    env = Ball(dim=6, magnitudes=[0.6, 0.5], noise_sd=0.2)
    kept, lean = (
        simulate(policies.ALBDim(first_phase=900, sigma=0.2, switch=1.0, samples=which), env, horizon=900, trials=3)
        for which in ("all", "exploration")
    )
    assert kept.regret == pytest.approx(lean.regret, rel=1e-8)


def test_inside_the_ball_the_paper_s_rule_fails_where_intervals_on_all_plays_find_the_support():
    env = Ball(dim=40, magnitudes=[0.55, 0.45, 0.4, 0.3], noise_sd=0.5)
    common = {"first_phase": 900, "sigma": 0.5, "switch": 1.0}
    rivals = {
        "paper": policies.ALBDim(**common),
        "inside": policies.ALBDim(**common, **INSIDE),
        "oful": policies.BallOFUL(sigma=0.5, switch=1.0),
    }
    runs = simulate(rivals, env, horizon=15_000_000, trials=4, seed=1, record="log")
    for found in runs["inside"].diagnostics:
        assert found["phases"][3]["support"].tolist() == found["truth"]["support"].tolist()
        assert all(set(found["truth"]["support"]) <= set(phase["support"]) for phase in found["phases"])
    for found in runs["paper"].diagnostics:
        assert found["phases"][3]["support"].tolist() != found["truth"]["support"].tolist()
    final = {name: run.regret[:, -1].mean() for name, run in runs.items()}
    assert final["inside"] < final["oful"] / 2.0
    assert final["inside"] < final["paper"]


# --------------------------------------------------------------------------------------------------- Remark 5


def test_thresholds_shrink_by_c_and_phases_grow_with_it():
    policy = policies.ALBDim(first_phase=9, sigma=1e-6, switch=1.0, exploration="gaussian", shrinkage=3.0)
    agent = Agent(policy, dim=3, seed=0)
    # Cut at 1/6 and 1/18: the second coordinate comes in with the second phase, the third not yet.
    found = play(agent, lambda x: 0.5 * x[0] + 0.1 * x[1] + 0.05 * x[2], until=in_phase(2))
    assert [phase["support"].tolist() for phase in found["phases"]] == [[0, 1, 2], [0], [0, 1]]
    assert [phase["samples"] for phase in found["phases"]] == [0, 3, 3 + 30]
    assert found["pulls"].tolist() == [9 + 3 + 900 + 30]


@pytest.mark.parametrize("c", [2.0, 3.0, 4.0])
def test_the_exponent_of_gamma_falls_towards_4_as_c_grows(c):
    """Rounds until a coordinate just above eps_i / 2 is found: they grow as (1 / gamma)^log_C(C')."""
    gammas = 1.1 * c ** -np.arange(2.0, 6.0) / 2.0
    rounds = []
    for gamma in gammas:
        policy = policies.ALBDim(first_phase=4, sigma=1e-9, switch=1.0, exploration="gaussian", shrinkage=c)
        env = Ball(dim=2, theta=[0.5, gamma], noise_sd=1e-9)
        found = simulate(policy, env, horizon=5 * growth_for(c)[0] ** 5, seed=0, record="log").diagnostics[0]
        first = next(i for i, phase in enumerate(found["phases"]) if i and 1 in phase["support"])
        rounds.append(phase_lengths(4, growth_for(c), 2**53)[:first].sum())
    slope = np.polyfit(-np.log(gammas), np.log(rounds), 1)[0]
    assert slope == pytest.approx({2.0: 4.64, 3.0: 4.19, 4.0: 4.09}[c], rel=0.01)
