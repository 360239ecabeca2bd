"""Sums that a fit can be built from again: against fits that began with the other ridge, and dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from albatross.models.moments import means_under, moments, rebuild, record, reduced
from albatross.models.ridge import joint, learn, ridge

N_ARMS, DIM = 4, 3


def plays(rng, rounds):
    return [
        (int(rng.integers(N_ARMS - 1)), rng.standard_normal(DIM), float(rng.standard_normal()), int(rng.integers(1, 4)))
        for _ in range(rounds)
    ]


@pytest.mark.parametrize("rounds", [0, 2, 40])
@pytest.mark.parametrize("biases", [True, False])
def test_a_rebuilt_fit_is_the_one_that_began_with_the_other_ridge(biases, rounds):
    old, new = [
        joint(N_ARMS, DIM, strength=strength, bias_strength=strength) if biases else ridge(DIM, strength=strength)
        for strength in (2.0, 0.03)
    ]
    sums = moments(N_ARMS, DIM)
    for arm, x, reward, n in plays(np.random.default_rng(0), rounds):
        record(sums, arm, x, reward, n)
        for fit in (old, new):
            learn(fit, arm, x, reward, n)
    rebuild(old, sums, 0.03)
    np.testing.assert_allclose(old.theta, new.theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(old.log_det, new.log_det, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(old.root @ old.root.T, new.root @ new.root.T, rtol=1e-9, atol=1e-12)
    if biases:
        np.testing.assert_allclose(old.weight, new.weight)


@pytest.mark.parametrize("strength", [0.5, np.inf])
def test_eliminating_the_biases_is_what_dense_least_squares_does(strength):
    rng = np.random.default_rng(1)
    sums, rows, rewards = moments(N_ARMS, DIM), [], []
    for arm, x, reward, n in plays(rng, 30):
        record(sums, arm, x, reward, n)
        rows += n * [np.concatenate([np.eye(N_ARMS)[arm], x])]
        rewards += n * [reward / n]
    rows, rewards = np.array(rows), np.array(rewards)
    contexts = rng.standard_normal((N_ARMS, DIM))
    if np.isinf(strength):
        wanted = np.concatenate([np.zeros(N_ARMS), np.linalg.lstsq(rows[:, N_ARMS:], rewards, rcond=None)[0]])
    else:
        prior = np.diag([strength] * N_ARMS + [0.0] * DIM)
        wanted = np.linalg.solve(rows.T @ rows + prior, rows.T @ rewards)
    theta = np.linalg.solve(*reduced(sums, strength))
    np.testing.assert_allclose(theta, wanted[N_ARMS:], rtol=1e-9)
    means = means_under(sums, contexts, np.arange(N_ARMS), theta, strength)
    np.testing.assert_allclose(means, wanted[:N_ARMS] + contexts @ wanted[N_ARMS:], rtol=1e-9, atol=1e-12)
