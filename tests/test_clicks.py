"""The logistic rival of the click benchmark: its posterior is that of the model."""

from __future__ import annotations

import numpy as np
import pytest

import clicks
from albatross.protocol import Choice, init, update


def after_sixty_plays(policy):
    rng = np.random.default_rng(0)
    state = init(policy, 3, 2, rng)
    for _ in range(60):
        choice = Choice(rng.integers(3), rng.standard_normal(2), 0.0, 0.0, 1.0, np.empty(0))
        update(policy, state, choice, float(rng.random() < 0.3), 1)
    assert state.rows[:, 1:4].sum() == pytest.approx(60.0)  # one arm in each row
    return state


def test_its_mean_is_the_mode_of_the_posterior():
    state = after_sixty_plays(clicks.LogisticTS(60, 0.3))
    clicks.refit(state, 60)
    chances = 1.0 / (1.0 + np.exp(-state.rows @ state.mean))
    slope = state.rows.T @ (state.clicks - chances) - state.prior * state.mean
    curvature = np.diag(state.prior) + (state.rows.T * chances * (1.0 - chances)) @ state.rows
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)
    np.testing.assert_allclose(state.precision, curvature, rtol=1e-5, atol=1e-5)


def test_the_linear_one_has_the_posterior_of_real_rewards():
    state = after_sixty_plays(clicks.LogisticTS(60, 0.3, variance=0.2))
    precision = np.diag(state.prior) + 0.2 * state.rows.T @ state.rows  # slope 0.2, noise 0.2
    np.testing.assert_allclose(state.precision, precision)
    np.testing.assert_allclose(state.mean, np.linalg.solve(precision, state.rows.T @ state.clicks))
