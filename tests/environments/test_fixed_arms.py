from __future__ import annotations

import numpy as np
import pytest

from albatross import policies, simulate
from albatross.environments import FixedArms
from albatross.protocol import Rounds, begin, describe, draw

K, D = 4, 3


def played(env, seed=0, n=50):
    rng = np.random.Generator(np.random.SFC64(seed))
    instance = begin(env, rng)
    table = (n, env.n_arms)
    chunk = Rounds(np.empty((*table, env.dim)), np.ones(table, bool), np.empty(table), np.empty(table))
    draw(instance, chunk, rng)
    return describe(instance), chunk


@pytest.mark.parametrize("arms", ["normal", "cube", "axes"])
def test_arms_stay_for_a_trial_and_their_means_are_linear(arms):
    truth, chunk = played(FixedArms(n_arms=3, dim=D, arms=arms, theta_norm=2.0))
    assert (chunk.contexts == truth["arms"]).all()
    np.testing.assert_allclose(chunk.means, np.broadcast_to(truth["arms"] @ truth["theta"], (50, 3)))
    assert np.linalg.norm(truth["theta"]) == pytest.approx(2.0)
    again, _ = played(FixedArms(n_arms=3, dim=D, arms=arms, theta_norm=2.0), seed=1)
    assert (arms == "axes") == np.array_equal(truth["arms"], again["arms"])


def test_drawn_arms_have_their_law():
    normal, _ = played(FixedArms(n_arms=5_000, dim=D), n=1)
    cube, _ = played(FixedArms(n_arms=5_000, dim=4, arms="cube"), n=1)
    np.testing.assert_allclose(np.cov(normal["arms"].T), np.eye(D), atol=0.08)
    assert np.abs(cube["arms"]).max() <= 0.5
    np.testing.assert_allclose(cube["arms"].var(axis=0), 0.25 / 3.0, rtol=0.08)


def test_given_arms_and_theta_are_played():
    arms = np.arange(12.0).reshape(K, D)
    truth, chunk = played(FixedArms(n_arms=K, dim=D, arms=arms, theta=[1.0, 0.0, -1.0]))
    np.testing.assert_array_equal(chunk.contexts[7], arms)
    np.testing.assert_array_equal(chunk.means[0], [-2.0] * K)
    assert truth["theta"].tolist() == [1.0, 0.0, -1.0]


def test_greedy_locks_in_where_optimism_does_not():
    env = FixedArms(n_arms=5, dim=5, arms="axes", theta=[0.0, 0.1, 0.2, 0.3, 1.0], noise_sd=1.0)
    runs = simulate(
        {"greedy": policies.Greedy(biases=False), "linucb": policies.LinUCB(biases=False, alpha=2.0)},
        env,
        horizon=2_000,
        trials=20,
        seed=0,
    )
    assert runs["linucb"].regret[:, -1].mean() < 0.5 * runs["greedy"].regret[:, -1].mean()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"arms": "line"}, "arms must be one of"),
        ({"arms": "axes", "n_arms": 9}, "arms='axes' needs dim >= n_arms=9"),
        ({"arms": np.ones((2, 2))}, r"arms must have shape \(4, 3\)"),
        ({"theta": [1.0]}, r"theta must have shape \(3,\)"),
        ({"noise_sd": -1.0}, "noise_sd"),
        ({"dim": 0}, "dim"),
    ],
)
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        FixedArms(**{"n_arms": K, "dim": D, **wrong})
