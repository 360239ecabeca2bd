"""ALB-Dim for finite arms: round for round as a slow transcription of Algorithm 3, its phases and its fallbacks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from albatross import Agent, policies, simulate
from albatross.environments import Nested
from albatross.policies.nested.sup_lin_rel import linrel_scale
from albatross.protocol import resolve
from slow_sup_lin import SlowALBDimFinite

INNER = ("suplinrel", "suplinucb", "linucb")
every_inner = pytest.mark.parametrize("inner", INNER)

DIMS, N_ARMS, DIM = (1, 3, 5), 3, 5
# Growing slower than the paper's (25, 5), five phases fit into a short test: 16 + 4, 64 + 12, 256 + 36, ... rounds
SHORT = {"first_phase": 16, "growth": (4, 3), "delta": 0.1, "sigma": 0.2}
THETA = np.array([0.9, 0.0, -0.6, 0.0, 0.0])


def pair(inner, **changes):
    """The policy's agent, and the slow one."""
    given = {"dims": DIMS, "inner": inner, **SHORT, **changes}
    agent = Agent(policies.ALBDimFinite(ties="first", **given), n_arms=N_ARMS, dim=DIM, seed=5)
    return agent, SlowALBDimFinite(n_arms=N_ARMS, **given)


def play(agent, slow, *, rounds, seed, theta=THETA, features=None, noise_sd=0.2, late=0, some_eligible=False):
    """Play both, compared in every round. Which arms were tried in exploration is read from the agent."""
    rng = np.random.default_rng(seed)
    waiting = []
    for _ in range(rounds):
        X = rng.standard_normal((N_ARMS, DIM)) if features is None else features(rng)
        eligible = rng.permutation(N_ARMS)[: rng.integers(1, N_ARMS + 1)] if some_eligible else None
        found = agent.diagnostics()
        assert (found["phase"], found["exploring"]) == (slow.phase, slow.exploring())
        assert found["samples"] == len(slow.samples)
        decision, wanted = agent.select(X, eligible), None
        if not slow.exploring():
            wanted = slow.choose(X, eligible)
            assert decision.arm == wanted.arm
            assert decision.width == pytest.approx(wanted.width, rel=1e-9, abs=1e-12)
        reward = float(decision.action @ theta + noise_sd * rng.standard_normal())
        waiting.append((decision, wanted, slow.phase, reward))
        while len(waiting) > late:
            decision, wanted, phase, reward = waiting.pop(int(rng.integers(len(waiting))))
            if late and rng.random() < 0.1:
                continue  # this one never comes
            agent.update(decision, reward)
            if wanted is None:
                slow.learn_exploration(phase, decision.action, reward)
            else:
                slow.learn_play(phase, wanted, decision.action, reward)
    return agent.diagnostics()


def same_phases(found, slow):
    """Whether the diagnostics tell of the slow one's phases."""
    assert found["phase"] == slow.phase
    assert [phase["model"] for phase in found["phases"]] == slow.models
    assert [phase["samples"] for phase in found["phases"]] == slow.sample_counts
    for phase, support, estimate in zip(found["phases"], slow.supports, slow.estimates):
        if estimate is not None:
            assert list(phase["support"]) == support


# ---------------------------------------------------------------------------------------- the slow transcription


@every_inner
@pytest.mark.parametrize("seed", range(3))
def test_it_plays_the_arms_of_the_slow_transcription(inner, seed):
    agent, slow = pair(inner)
    found = play(agent, slow, rounds=550, seed=seed)  # until well into the fourth phase
    assert slow.phase == 3
    assert slow.models[:2] == [5, 5]  # the first exploration has 4 samples for 5 features
    assert slow.models[-1] == 3
    same_phases(found, slow)


@every_inner
def test_with_a_feature_bound_of_its_own_too(inner):
    # A small one, so that widths pass thresholds and arms are eliminated within a phase's inner policy.
    agent, slow = pair(inner, feature_bound=0.5, sigma=0.02)
    same_phases(play(agent, slow, rounds=500, seed=3), slow)


@every_inner
def test_with_late_unordered_and_lost_rewards_too(inner):
    agent, slow = pair(inner)
    found = play(agent, slow, rounds=700, seed=4, late=8)
    assert slow.phase == 3
    same_phases(found, slow)


@every_inner
def test_with_some_arms_eligible_too(inner):
    agent, slow = pair(inner)
    same_phases(play(agent, slow, rounds=500, seed=5, some_eligible=True), slow)


@every_inner
def test_with_the_papers_growth_too(inner):
    agent, slow = pair(inner, first_phase=9, growth=(25, 5))
    found = play(agent, slow, rounds=9 + 3 + 225 + 15 + 60, seed=6)
    assert slow.phase == 2
    same_phases(found, slow)


class ToTheLetter:
    """SupLinRel with its own paper's widths, on features divided by b and on rewards as they are."""

    def __init__(self, inner, sigma):
        self.inner = inner
        inner.factor /= math.sqrt(2) * sigma / inner.b

    def choose(self, contexts, eligible):
        choice = self.inner.choose(contexts, eligible)
        return choice._replace(width=choice.width / self.inner.b)

    def learn(self, choice, context, reward):
        self.inner.learn(choice, context, reward * self.inner.b)


class SlowToTheLetter(SlowALBDimFinite):
    def begin_phase(self, *given):
        super().begin_phase(*given)
        self.inner = ToTheLetter(self.inner, self.sigma)


@pytest.mark.parametrize("feature_bound", [None, 0.5])
def test_to_the_letter_features_alone_are_divided_by_b(feature_bound):
    given = {"dims": DIMS, "inner": "suplinrel", "feature_bound": feature_bound, **SHORT}
    agent = Agent(policies.ALBDimFinite(ties="first", scaling="features", **given), n_arms=N_ARMS, dim=DIM, seed=5)
    slow = SlowToTheLetter(n_arms=N_ARMS, **given)
    same_phases(play(agent, slow, rounds=400, seed=3), slow)
    assert slow.phase == 3


def test_to_the_letter_widths_do_not_know_the_noise():
    quiet, loud = (
        resolve(policies.ALBDimFinite(dims=(1, 3), first_phase=36, sigma=sigma, scaling="features"), 4, 3, 5_000)
        for sigma in (0.1, 10.0)
    )
    assert np.array_equal(quiet.settings, loud.settings)
    assert quiet.settings[1, 2] == pytest.approx(linrel_scale(900, 4, 0.05, math.sqrt(0.5), 1.0))


@every_inner
def test_to_the_letter_it_finds_the_true_map_too(inner):
    env = Nested(n_arms=5, dims=(2, 4, 8), true_dim=4, magnitude=0.5, noise_sd=0.3)
    policy = policies.ALBDimFinite(dims=(2, 4, 8), first_phase=784, sigma=0.3, inner=inner, scaling="features")
    for found in simulate(policy, env, horizon=2_000, trials=3, record=[2_000]).diagnostics:
        assert [phase["model"] for phase in found["phases"]] == [8, 4]


@pytest.mark.parametrize("threshold", ["pseudocode", "text"])
def test_the_threshold_is_that_of_the_pseudocode_or_of_the_text(threshold):
    # After phases 0, 1 and 2 they are 1/4, 1/8, 1/16 and by the text 1/2, 1/4, 1/8.
    agent, slow = pair("linucb", dims=(1, 2, 5), threshold=threshold, sigma=0.001, first_phase=40)
    theta = np.array([0.9, 0.35, 0.0, 0.18, 0.0])
    found = play(agent, slow, rounds=40 + 7 + 160 + 21 + 640 + 63 + 5, seed=7, theta=theta, noise_sd=0.001)
    wanted = {"pseudocode": [[0, 1], [0, 1, 3], [0, 1, 3]], "text": [[0], [0, 1], [0, 1, 3]]}[threshold]
    assert [list(phase["support"]) for phase in found["phases"][1:]] == wanted
    assert [phase["model"] for phase in found["phases"]] == {
        "pseudocode": [5, 2, 5, 5],
        "text": [5, 1, 2, 5],
    }[threshold]
    same_phases(found, slow)


# ------------------------------------------------------------------------------------------ phases and fallbacks


def exploring_rounds(agent, rounds):
    rng = np.random.default_rng(0)
    flags, phases = [], []
    for _ in range(rounds):
        found = agent.diagnostics()
        flags.append(found["exploring"])
        phases.append(found["phase"])
        agent.update(agent.select(rng.standard_normal((agent.n_arms, agent.dim))), 0.0)
    return flags, phases


def test_phases_last_as_long_as_they_should_and_explore_at_their_end():
    agent = Agent(policies.ALBDimFinite(dims=(1, 2), first_phase=5, inner="linucb"), n_arms=2, dim=2, seed=0)
    flags, phases = exploring_rounds(agent, 5 + 3 + 125 + 15 + 10)
    assert flags == [False] * 5 + [True] * 3 + [False] * 125 + [True] * 15 + [False] * 10
    assert phases == [0] * 8 + [1] * 140 + [2] * 10


def test_left_out_the_first_phase_grows_with_the_square_of_the_dimension():
    agent = Agent(policies.ALBDimFinite(dims=(1, 3), inner="linucb"), n_arms=2, dim=3, seed=0)
    first = math.ceil((3.5 * 3) ** 2)
    flags, phases = exploring_rounds(agent, first + 11 + 1)
    assert (first, math.ceil(math.sqrt(first))) == (111, 11)
    assert flags == [False] * 111 + [True] * 11 + [False]
    assert phases == [0] * 122 + [1]


def test_exploration_draws_every_eligible_arm_equally_often():
    policy = policies.ALBDimFinite(dims=(1, 2), first_phase=1, growth=(2, 60), inner="linucb")
    agent = Agent(policy, n_arms=4, dim=2, seed=0)
    rng = np.random.default_rng(0)
    drawn = np.zeros(4)
    for _ in range(4_000):
        exploring = agent.diagnostics()["exploring"]
        decision = agent.select(rng.standard_normal((4, 2)), eligible=[0, 1, 3])
        drawn[decision.arm] += exploring
        if exploring:
            assert decision.propensity == pytest.approx(1 / 3)
        agent.update(decision, 0.0)
    assert drawn[2] == 0
    n = drawn.sum()
    assert n > 3_000
    assert np.abs(drawn[[0, 1, 3]] / n - 1 / 3).max() < 4 * math.sqrt(2 / 9 / n)


def test_with_fewer_samples_than_features_it_keeps_the_largest_map_and_says_why():
    agent, slow = pair("linucb", first_phase=4)  # explores for 2, then 6 rounds
    found = play(agent, slow, rounds=4 + 2 + 16 + 6 + 3, seed=8)
    assert [phase["model"] for phase in found["phases"]] == [5, 5, 3]
    assert [phase["samples"] for phase in found["phases"]] == [0, 2, 8]
    assert "fewer samples" in found["phases"][1]["reason"]
    assert found["phases"][2]["reason"] != found["phases"][1]["reason"]


def test_a_singular_gram_matrix_keeps_the_largest_map_and_says_why():
    def dependent(rng):  # the fourth feature is the sum of the first two
        X = rng.standard_normal((N_ARMS, DIM))
        X[:, 3] = X[:, 0] + X[:, 1]
        return X

    agent, slow = pair("linucb", first_phase=40)  # 7 samples, then 28, are enough
    found = play(agent, slow, rounds=40 + 7 + 160 + 21 + 3, seed=9, features=dependent)
    assert [phase["model"] for phase in found["phases"]] == [5, 5, 5]
    for phase in found["phases"][1:]:
        assert phase["samples"] > 5
        assert "factorise" in phase["reason"] or "singular" in phase["reason"]
        assert phase["conditioning"] < 1e-12


def test_where_nothing_is_above_the_threshold_it_takes_the_smallest_map():
    agent, slow = pair("linucb", first_phase=400)
    found = play(agent, slow, rounds=400 + 20 + 3, seed=10, theta=np.zeros(5))
    assert [phase["model"] for phase in found["phases"]] == [5, 1]
    assert list(found["phases"][1]["support"]) == []
    same_phases(found, slow)


def test_diagnostics_tell_of_every_phase():
    agent, slow = pair("suplinrel")
    found = play(agent, slow, rounds=16 + 4 + 64 + 12 + 20, seed=12)
    assert len(found["phases"]) == 3
    for phase in found["phases"]:
        assert phase.keys() >= {"model", "support", "samples", "conditioning", "reason"}
    assert 0.0 < found["phases"][2]["conditioning"] <= 1.0
    assert found["samples"] == 16
    assert found["pulls"].shape == (N_ARMS,)
    assert found["pulls"].sum() == 116


def test_somebody_elses_plays_are_samples():
    agent, _ = pair("linucb")
    rng = np.random.default_rng(13)
    agent.warm_start(rng.standard_normal((20, DIM)), rng.integers(N_ARMS, size=20), rng.standard_normal(20))
    found = agent.diagnostics()
    assert (found["samples"], found["phase"], found["exploring"]) == (20, 0, False)


@every_inner
def test_it_finds_the_true_map(inner):
    env = Nested(n_arms=5, dims=(2, 4, 8), true_dim=4, magnitude=0.5, noise_sd=0.3)
    policy = policies.ALBDimFinite(dims=(2, 4, 8), first_phase=784, sigma=0.3, inner=inner)
    run = simulate(policy, env, horizon=2_000, trials=6, record=[2_000])
    for found in run.diagnostics:
        assert [phase["model"] for phase in found["phases"]] == [8, 4]


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("dims", ()),
        ("dims", (3, 2)),
        ("dims", (2, 2, 5)),
        ("dims", (0, 2)),
        ("dims", (1, 2.5)),
        ("dims", 5),
        ("first_phase", 0),
        ("delta", 1.5),
        ("sigma", -1.0),
        ("inner", "oful"),
        ("inner", None),
        ("feature_bound", 0.0),
        ("growth", (25, 5, 1)),
        ("growth", (1, 5)),
        ("threshold", "neither"),
        ("scaling", "rewards"),
        ("shrinkage", 0.5),
        ("ties", "last"),
    ],
)
def test_bad_arguments_are_refused_by_name(name, wrong):
    with pytest.raises((ValueError, TypeError), match=name):
        policies.ALBDimFinite(**{"dims": (1, 3), name: wrong})


def test_a_bound_beyond_64_bits_is_a_number_like_any_other():
    whole, real = (
        Agent(policies.ALBDimFinite(dims=(1, 3), feature_bound=bound), n_arms=2, dim=3, seed=0)
        for bound in (10**30, 1e30)
    )
    assert whole._parameters.settings.dtype == float
    np.testing.assert_array_equal(whole._parameters.settings, real._parameters.settings)


def test_maps_that_do_not_end_with_all_features_are_refused_when_these_are_known():
    for dim in (4, 6):
        with pytest.raises(ValueError, match="dims"):
            Agent(policies.ALBDimFinite(dims=(2, 5)), n_arms=3, dim=dim)
    with pytest.raises(ValueError, match="dims"):
        simulate(policies.ALBDimFinite(dims=(2, 5)), Nested(n_arms=3, dims=(2, 4), true_dim=2), horizon=10)


def test_one_arm_is_no_choice():
    with pytest.raises(ValueError, match="n_arms"):
        Agent(policies.ALBDimFinite(dims=(1, 2)), n_arms=1, dim=2)
