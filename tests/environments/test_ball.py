"""The unit ball as an environment: what theta* may be, and how it is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from albatross.environments import Ball
from albatross.protocol import begin, describe


def drawn(env, seed=0):
    return begin(env, np.random.default_rng(seed)).theta


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"theta": [0.8, 0.8, 0.0]}, "theta"),
        ({"theta": [0.1, 0.2]}, "theta"),
        ({"theta": [0.1, np.nan, 0.0]}, "theta"),
        ({"magnitudes": [0.9, 0.9]}, "magnitudes"),
        ({"magnitudes": [0.1, np.inf]}, "magnitudes"),
        ({"sparsity": 4, "smallest": 0.1}, "sparsity"),
        ({"magnitudes": [0.1, 0.1, 0.1, 0.1]}, "sparsity"),
        ({"sparsity": 3, "magnitudes": [0.1, 0.1]}, "sparsity"),
        ({"sparsity": 2.5, "smallest": 0.1}, "sparsity"),
        ({"sparsity": 0, "smallest": 0.1}, "sparsity"),
        ({"smallest": 0.1}, "sparsity"),
        ({"sparsity": 2, "smallest": 0.0}, "smallest"),
        ({"sparsity": 2, "smallest": -0.1}, "smallest"),
        ({"sparsity": 2, "smallest": 0.8}, "norm"),
        ({"magnitudes": [-0.1, 0.2]}, "magnitudes"),
        ({"magnitudes": [0.0, 0.2]}, "magnitudes"),
        ({"magnitudes": []}, "magnitudes"),
        ({"magnitudes": [0.1, 0.2], "smallest": 0.15}, "smallest"),
        ({"theta": [0.0, 0.0, 0.5], "sparsity": 5}, "sparsity"),
        ({"theta": [0.0, 0.0, 0.5], "smallest": -3.0}, "smallest"),
        ({"theta": [0.0, 0.0, 0.5], "noise": "cauchy"}, "noise"),
        ({"theta": [0.0, 0.0, 0.5], "noise_sd": -1.0}, "noise_sd"),
        ({"theta": [0.0, 0.0, 0.5], "noise_sd": np.nan}, "noise_sd"),
    ],
)
def test_a_wrong_ball_is_refused_by_the_name_of_the_argument(wrong, named):
    with pytest.raises((ValueError, TypeError), match=named):
        Ball(**{"dim": 3, **wrong})


@pytest.mark.parametrize("dim", [0, -1, 2.5, None])
def test_a_wrong_dimension_is_refused(dim):
    with pytest.raises((ValueError, TypeError), match="dim"):
        Ball(dim=dim, sparsity=1, smallest=0.1)


def test_theta_given_is_what_every_trial_plays_and_later_changes_do_not_reach_it():
    mine = np.array([0.6, 0.0, -0.8])
    env = Ball(dim=3, theta=mine)
    mine[0] = 5.0
    assert drawn(env, 0).tolist() == drawn(env, 1).tolist() == [0.6, 0.0, -0.8]
    assert describe(begin(env, np.random.default_rng(0)))["support"].tolist() == [0, 2]


def test_a_theta_of_length_one_to_rounding_is_taken():
    theta = np.random.default_rng(0).standard_normal(50)
    assert np.linalg.norm(drawn(Ball(dim=50, theta=theta / np.linalg.norm(theta)))) == pytest.approx(1.0)


@pytest.mark.parametrize(("n", "smallest"), [(2, 0.1), (5, 0.2), (20, 0.12), (20, 0.22)])
def test_magnitudes_are_evenly_spaced_from_the_smallest_up_to_norm_one(n, smallest):
    magnitudes = Ball(dim=30, sparsity=n, smallest=smallest).magnitudes
    assert magnitudes[0] == pytest.approx(smallest, rel=1e-12)
    assert np.diff(magnitudes) == pytest.approx(np.full(n - 1, magnitudes[1] - magnitudes[0]), abs=1e-12)
    assert magnitudes[-1] >= magnitudes[0]
    assert np.linalg.norm(magnitudes) == pytest.approx(1.0, rel=1e-12)


def test_a_single_magnitude_is_the_smallest():
    assert Ball(dim=3, sparsity=1, smallest=0.4).magnitudes.tolist() == [0.4]


def test_given_magnitudes_are_placed_at_random_with_random_signs():
    magnitudes = np.linspace(0.12, 0.30, 4)
    env = Ball(dim=6, magnitudes=magnitudes)
    assert env.sparsity == 4
    thetas = np.array([drawn(env, seed) for seed in range(400)])
    for theta in thetas:
        assert np.sort(np.abs(theta[theta != 0.0])) == pytest.approx(magnitudes)
    on = (thetas != 0.0).mean(axis=0)
    assert np.all(np.abs(on - 4 / 6) < 4 * np.sqrt(4 / 6 * 2 / 6 / 400))
    positive = (thetas[thetas != 0.0] > 0.0).mean()
    assert abs(positive - 0.5) < 4 * 0.5 / np.sqrt(1600)
    assert len({tuple(np.abs(theta)[theta != 0.0]) for theta in thetas}) == 24  # every order of the magnitudes


def test_the_same_seed_draws_the_same_theta():
    env = Ball(dim=6, sparsity=2, smallest=0.3)
    assert np.array_equal(drawn(env, 7), drawn(env, 7))
    assert not np.array_equal(drawn(env, 7), drawn(env, 8))
