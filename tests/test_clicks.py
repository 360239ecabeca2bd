"""The logistic rival of the click benchmark: its posterior is centred where the slope is 0."""

from __future__ import annotations

import numpy as np
import pytest

import clicks
from albatross.protocol import Choice, init, update


def test_its_mean_is_the_mode_of_the_posterior():
    policy, rng = clicks.LogisticTS(60, 0.3), np.random.default_rng(0)
    state = init(policy, 3, 2, rng)
    for _ in range(60):
        choice = Choice(rng.integers(3), rng.standard_normal(2), 0.0, 0.0, 1.0, np.empty(0))
        update(policy, state, choice, float(rng.random() < 0.3), 1)
    clicks.refit(state, 60)
    chances = 1.0 / (1.0 + np.exp(-state.rows @ state.mean))
    slope = state.rows.T @ (state.clicks - chances) - state.prior * state.mean
    curvature = np.diag(state.prior) + (state.rows.T * chances * (1.0 - chances)) @ state.rows
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)
    np.testing.assert_allclose(state.precision, curvature, rtol=1e-5, atol=1e-5)
    assert state.rows[:, 1:4].sum() == pytest.approx(60.0)  # one arm in each row
