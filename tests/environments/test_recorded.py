from __future__ import annotations

import numpy as np
import pytest

from albatross import policies, simulate
from albatross.environments import Recorded
from albatross.protocol import Rounds, begin, draw

T, K, D = 30, 3, 2


@pytest.fixture
def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "contexts": rng.standard_normal((T, K, D)),
        "means": rng.standard_normal((T, K)),
        "noise": rng.standard_normal((T, K)),
    }


def one_arm_a_round() -> np.ndarray:
    """Which arm alone is eligible in each round."""
    return np.random.default_rng(1).integers(0, K, T)


def drawn(env: Recorded, sizes: list[int]) -> list[np.ndarray]:
    """Contexts, eligible, means and noise of chunks of these sizes, one after the other."""
    rng = np.random.default_rng(9)
    instance, chunks = begin(env, rng), []
    for n in sizes:
        chunk = Rounds(np.empty((n, K, D)), np.zeros((n, K), bool), np.empty((n, K)), np.empty((n, K)))
        draw(instance, chunk, rng)
        chunks.append(chunk)
    return [np.concatenate(parts) for parts in zip(*chunks, strict=True)]


# ---------------------------------------------------------------------------------------- what is played


@pytest.mark.parametrize("sizes", [[T], [10, 10, 10], [7, 7, 7, 7, 7]])
def test_rounds_are_played_as_given_whatever_the_size_of_a_chunk(table, sizes):
    contexts, eligible, means, noise = drawn(Recorded(**table), sizes)
    assert np.array_equal(contexts[:T], table["contexts"])
    assert np.array_equal(means[:T], table["means"])
    assert np.array_equal(noise[:T], table["noise"])
    assert eligible[:T].all()


def test_rewards_and_regret_are_those_of_the_arms_played(table):
    arms = one_arm_a_round()
    eligible = np.eye(K, dtype=bool)[arms]
    run = simulate(policies.Uniform(), Recorded(**table, eligible=eligible), horizon=T)
    played = (table["means"] + table["noise"])[np.arange(T), arms]
    np.testing.assert_allclose(run.reward[0], np.cumsum(played), rtol=1e-12)
    assert not run.regret.any()  # no other arm could be had


def test_arms_that_are_not_eligible_are_neither_played_nor_missed(table):
    eligible = np.ones((T, K), bool)
    eligible[:, 1] = False
    table["means"][:, 1] = 1e6
    run = simulate(policies.Uniform(), Recorded(**table, eligible=eligible), horizon=T, trials=3)
    assert all(found["pulls"][1] == 0 and found["pulls"].sum() == T for found in run.diagnostics)
    assert run.regret.max() < 1e3


def test_regret_is_counted_in_means_and_not_in_noise(table):
    run = simulate(policies.Uniform(), Recorded(**table), horizon=T, trials=5)
    best = np.cumsum(table["means"].max(axis=1))
    silent = simulate(policies.Uniform(), Recorded(**{**table, "noise": None}), horizon=T, trials=5)
    np.testing.assert_array_equal(run.regret, silent.regret)
    np.testing.assert_allclose(silent.regret + silent.reward, np.tile(best, (5, 1)), rtol=1e-10)
    assert np.abs(run.reward - silent.reward).min() > 0


def test_with_rewards_alone_regret_is_counted_in_rewards(table):
    rewards = table["means"] + table["noise"]
    run = simulate(policies.Uniform(), Recorded(contexts=table["contexts"], rewards=rewards), horizon=T, trials=5)
    best = np.cumsum(rewards.max(axis=1))
    np.testing.assert_allclose(run.regret + run.reward, np.tile(best, (5, 1)), rtol=1e-10)
    assert (np.diff(run.regret, axis=1) >= 0).all()


def test_every_trial_plays_the_same_rounds(table):
    eligible = np.eye(K, dtype=bool)[one_arm_a_round()]
    run = simulate(policies.Uniform(), Recorded(**table, eligible=eligible), horizon=T, trials=4, workers=2)
    assert (run.reward == run.reward[0]).all()


def test_lists_will_do():
    env = Recorded(contexts=[[[1], [2]], [[3], [4]]], rewards=[[1, 0], [0, 1]], eligible=[[1, 0], [1, 1]])
    assert (env.length, env.n_arms, env.dim) == (2, 2, 1)
    assert env.eligible.tolist() == [[True, False], [True, True]]


def test_repr_says_how_much_there_is(table):
    assert repr(Recorded(**table)) == "Recorded(30 rounds, n_arms=3, dim=2)"


# ---------------------------------------------------------------------------------------------------- bad input


def test_a_horizon_past_the_last_round_is_refused(table):
    with pytest.raises(ValueError, match="horizon=31 is longer than the 30 rounds"):
        simulate(policies.Uniform(), Recorded(**table), horizon=T + 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contexts": np.zeros((T, K))}, "contexts must have shape"),
        ({"contexts": np.zeros((0, K, D))}, "contexts must have at least one round"),
        ({"contexts": np.full((T, K, D), np.nan)}, "contexts must be finite"),
        ({"contexts": "rounds"}, "contexts must be an array of numbers"),
        ({"means": np.zeros((T, K + 1))}, "means must have shape"),
        ({"means": np.full((T, K), np.inf)}, "means must be finite"),
        ({"means": None}, "either means .* or rewards"),
        ({"rewards": np.zeros((T, K))}, "either means .* or rewards"),
        ({"means": None, "rewards": np.zeros((T, K))}, "give noise only with means"),
        ({"means": None, "noise": None, "rewards": np.zeros((T - 1, K))}, "rewards must have shape"),
        ({"means": None, "noise": None, "rewards": np.full((T, K), np.nan)}, "rewards must be finite"),
        ({"noise": np.zeros(T)}, "noise must have shape"),
        ({"noise": np.full((T, K), -np.inf)}, "noise must be finite"),
        ({"eligible": np.ones((T, K + 1), bool)}, "eligible must have shape"),
        ({"eligible": np.arange(T)[:, None] * np.ones((T, K)) != 7}, "round 7 has no eligible arm"),
    ],
)
def test_bad_arguments_are_refused_by_name(table, changes, message):
    with pytest.raises(ValueError, match=message):
        Recorded(**{**table, **changes})
