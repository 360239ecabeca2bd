"""Thompson sampling on the unit ball: play the direction of a draw from the posterior.

Agrawal and Goyal (2013), Algorithm 1, with the posterior's own scale sigma. On the ball the best action under a draw is
its direction. With `switch` > 0 it draws anew only when det V has grown by that factor (its own rarely switching form).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.linalg.vectors import norm
from albatross.models.ball_fit import (
    ACTION,
    CHOSEN,
    MOMENT,
    OWN,
    SIZE,
    ball_fit,
    check_fit,
    describe_ball,
    estimated_mean,
    learn_action,
    nothing_tracked,
    offer_action,
    plays_until_switch,
    track_theta,
    tracked_mean,
)
from albatross.policies.ball.ball_oful import BallState, support_mask
from albatross.protocol import (
    check_state,
    diagnostics,
    hold,
    init,
    mean_reward,
    noise_size,
    on_ball,
    resolve,
    select,
    tag_size,
    track,
    update,
    update_tracking,
)


@dataclass(frozen=True, kw_only=True)
class BallLinTS:
    """Linear Thompson sampling on the unit ball (Agrawal and Goyal 2013, Algorithm 1)."""

    sigma: float = 1.0  #: standard deviation of the noise
    ridge: float = 1.0  #: sigma^2 over the prior variance
    switch: float = 0.0  #: C: a new draw when det V has grown by the factor 1 + C; 0: every round
    support: tuple[int, ...] | None = None  #: coordinates to play on; None: all

    def __post_init__(self) -> None:
        checks.positive("sigma", self.sigma)
        checks.positive("ridge", self.ridge)
        checks.at_least_zero("switch", self.switch)
        if self.support is not None:
            object.__setattr__(self, "support", checks.coordinates("support", self.support))


class BallLinTSParameters(NamedTuple):
    sigma: float
    strength: float
    switch: float
    support: np.ndarray  # (d,) bool


@on_ball.register
def on_ball_lints(policy: BallLinTS) -> bool:
    return True


@resolve.register
def resolve_ball_lints(policy: BallLinTS, n_arms, dim, horizon):
    return BallLinTSParameters(
        float(policy.sigma), float(policy.ridge), float(policy.switch), support_mask(policy.support, dim)
    )


@init.register
def init_ball_lints(policy: BallLinTSParameters, n_arms, dim, rng):
    return BallState(ball_fit(dim, policy.support, policy.strength), np.zeros(1))


@track.register
def track_ball_lints(policy: BallLinTSParameters, state, theta):
    fit, tracked = track_theta(state.fit, theta)
    return state._replace(fit=fit), tracked


@mean_reward.register
def mean_reward_ball_lints(policy: BallLinTSParameters, state, choice, tracked):
    return tracked_mean(state.fit, choice, tracked)


@noise_size.register
def noise_size_ball_lints(policy: BallLinTSParameters, n_arms, dim):
    return int(policy.support.sum())


@tag_size.register
def tag_size_ball_lints(policy: BallLinTSParameters):
    return OWN + policy.support.size


@compiled
def posterior_draw(fit, sigma, noise):
    """A draw from N(theta_hat, sigma^2 V^-1), in the eigenbasis."""
    k = fit.clock[SIZE]
    drawn = np.empty(k)
    for j in range(k):
        drawn[j] = fit.carried[MOMENT, j] / fit.values[j] + sigma / np.sqrt(fit.values[j]) * noise[j]
    return drawn


@select.register
def select_ball_lints(policy: BallLinTSParameters, state, offer, noise):
    fit = state.fit
    if fit.clock[CHOSEN]:  # kept: nothing is drawn, and it is worth what it is estimated to be
        coordinates = fit.carried[ACTION, : fit.clock[SIZE]].copy()
        return offer_action(fit, coordinates, estimated_mean(fit, coordinates), 0.0, 1.0)
    drawn = posterior_draw(fit, policy.sigma, noise)
    value = norm(drawn)
    coordinates = drawn / value
    return offer_action(fit, coordinates, value, value - estimated_mean(fit, coordinates), np.nan)


@hold.register
def hold_ball_lints(policy: BallLinTSParameters, state, choice):
    return plays_until_switch(state.fit, choice, policy.switch)


@update.register
def update_ball_lints(policy: BallLinTSParameters, state, choice, reward, n):
    update_tracking(policy, state, choice, reward, n, nothing_tracked(state.fit))


@update_tracking.register
def update_tracking_ball_lints(policy: BallLinTSParameters, state, choice, reward, n, tracked):
    state.pulls[0] += n
    learn_action(state.fit, tracked, choice, reward, n, policy.switch)


@check_state.register
def check_state_ball_lints(policy: BallLinTSParameters, state):
    check_fit(state.fit, policy.support.sum())


@diagnostics.register
def diagnostics_ball_lints(policy: BallLinTSParameters, state):
    return {**describe_ball(state.fit), "pulls": state.pulls.copy()}
