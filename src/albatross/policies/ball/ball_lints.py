"""Thompson sampling on the unit ball: play the direction of a draw from the posterior.

Agrawal and Goyal (2013), Algorithm 1, with the posterior's own scale sigma. On the ball, the best action under a draw
is its direction. With `switch` > 0, it draws again only when det V has grown by that factor, a rarely switching form
that is our own.
"""

from __future__ import annotations

import numpy as np

from albatross.compiling import compiled
from albatross.linalg.vectors import norm
from albatross.models.ball_fit import ACTION, CHOSEN, MOMENT, SIZE, estimated_mean, offer_action
from albatross.options import AtLeastZero, Positive, policy
from albatross.policies.ball.on_ball import Coordinates, OnBallFit
from albatross.protocol import noise_size, select


@policy
class BallLinTS(OnBallFit):
    """Linear Thompson sampling on the unit ball (Agrawal and Goyal 2013, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Ball(dim=4, theta=[0.8, 0.0, 0.0, 0.6], noise_sd=0.1)
    >>> run = simulate(BallLinTS(sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    7.7
    """

    sigma: Positive = 1.0  #: standard deviation of the noise
    ridge: Positive = 1.0  #: sigma^2 over the prior variance
    switch: AtLeastZero = 0.0  #: C: a new draw when det V has grown by the factor 1 + C; 0: every round
    support: Coordinates | None = None  #: coordinates to play on; None: all


@noise_size.register
def noise_size_ball_lints(policy: BallLinTS, n_arms, dim):
    return int(policy.support.sum())  # type: ignore[union-attr]


@compiled
def posterior_draw(fit, sigma, noise):
    """Return a draw from N(theta_hat, sigma^2 V^-1), in the eigenbasis."""
    k = fit.clock[SIZE]
    drawn = np.empty(k)
    for j in range(k):
        drawn[j] = fit.carried[MOMENT, j] / fit.values[j] + sigma / np.sqrt(fit.values[j]) * noise[j]
    return drawn


@select.register
def select_ball_lints(policy: BallLinTS, state, offer, noise):
    fit = state.fit
    if fit.clock[CHOSEN]:  # kept: nothing is drawn, and it is worth what it is estimated to be
        coordinates = fit.carried[ACTION, : fit.clock[SIZE]].copy()
        return offer_action(fit, coordinates, estimated_mean(fit, coordinates), 0.0, 1.0)
    drawn = posterior_draw(fit, policy.sigma, noise)
    value = norm(drawn)
    coordinates = drawn / value
    return offer_action(fit, coordinates, value, value - estimated_mean(fit, coordinates), np.nan)
