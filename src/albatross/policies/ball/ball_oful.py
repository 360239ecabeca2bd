"""OFUL on the unit ball, every round or rarely switching; with a support given, the oracle of ALB-Dim.

Abbasi-Yadkori, Pal and Szepesvari (2011), Figures 1 and 3. The optimistic action is exact (`linalg.optimistic_action`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.confidence import ellipsoid_radius
from albatross.linalg.eigen import optimistic_coordinates
from albatross.linalg.vectors import norm
from albatross.models.ball_fit import (
    ACTION,
    AXES,
    CHOSEN,
    MOMENT,
    OWN,
    SIZE,
    BallFit,
    ball_fit,
    check_fit,
    describe_ball,
    estimated_mean,
    in_world,
    keep_action,
    learn_action,
    nothing_tracked,
    offer_action,
    plays_until_switch,
    track_theta,
    tracked_mean,
    width_squared,
)
from albatross.protocol import (
    check_state,
    diagnostics,
    hold,
    init,
    mean_reward,
    on_ball,
    resolve,
    select,
    tag_size,
    track,
    update,
    update_tracking,
)


@dataclass(frozen=True, kw_only=True)
class BallOFUL:
    """OFUL on the unit ball (Abbasi-Yadkori, Pal and Szepesvari 2011, Figures 1 and 3)."""

    sigma: float = 1.0  #: standard deviation of the noise
    delta: float = 0.1  #: the confidence set may fail with this probability
    norm_bound: float = 1.0  #: what the norm of theta* is at most
    ridge: float = 1.0  #: weight of the penalty on the parameter's length
    switch: float = 0.0  #: C: a new action when det V has grown by the factor 1 + C; 0: every round
    support: tuple[int, ...] | None = None  #: coordinates to play on; None: all

    def __post_init__(self) -> None:
        checks.positive("sigma", self.sigma)
        checks.probability("delta", self.delta)
        checks.positive("norm_bound", self.norm_bound)
        checks.positive("ridge", self.ridge)
        checks.at_least_zero("switch", self.switch)
        if self.support is not None:
            object.__setattr__(self, "support", checks.coordinates("support", self.support))


class BallOFULParameters(NamedTuple):
    sigma: float
    delta: float
    norm_bound: float
    strength: float
    switch: float
    support: np.ndarray  # (d,) bool


class BallState(NamedTuple):
    fit: BallFit
    pulls: np.ndarray  # (1,) rewards received


@on_ball.register
def on_ball_oful(policy: BallOFUL) -> bool:
    return True


@resolve.register
def resolve_ball_oful(policy: BallOFUL, n_arms, dim, horizon):
    return BallOFULParameters(
        float(policy.sigma),
        float(policy.delta),
        float(policy.norm_bound),
        float(policy.ridge),
        float(policy.switch),
        support_mask(policy.support, dim),
    )


def support_mask(support: tuple[int, ...] | None, dim: int) -> np.ndarray:
    """(d,) the coordinates to play on; all of them for None."""
    mask = np.full(dim, support is None)
    if support is not None:
        if max(support) >= dim:
            raise ValueError(f"support names coordinate {max(support)}, the ball has coordinates 0 to {dim - 1}")
        mask[list(support)] = True
    return mask


@init.register
def init_ball_oful(policy: BallOFULParameters, n_arms, dim, rng):
    return BallState(ball_fit(dim, policy.support, policy.strength), np.zeros(1))


@track.register
def track_ball_oful(policy: BallOFULParameters, state, theta):
    fit, tracked = track_theta(state.fit, theta)
    return state._replace(fit=fit), tracked


@mean_reward.register
def mean_reward_ball_oful(policy: BallOFULParameters, state, choice, tracked):
    return tracked_mean(state.fit, choice, tracked)


@tag_size.register
def tag_size_ball_oful(policy: BallOFULParameters):
    return OWN + policy.support.size


@compiled
def radius(policy, fit):
    """Of the confidence ellipsoid about theta_hat."""
    return ellipsoid_radius(fit.log_det[0], policy.norm_bound, policy.delta, policy.sigma, policy.strength)


@compiled
def optimistic_direction(policy, fit):
    """The action that promises most: the direction of the ellipsoid's longest theta, in the eigenbasis."""
    values = fit.values[: fit.clock[SIZE]]
    longest = optimistic_coordinates(values, fit.carried[MOMENT, : values.size] / values, radius(policy, fit))
    return longest / norm(longest)


@select.register
def select_ball_oful(policy: BallOFULParameters, state, offer, noise):
    fit = state.fit
    if fit.clock[CHOSEN]:
        coordinates = fit.carried[ACTION, : fit.clock[SIZE]].copy()
    else:
        coordinates = optimistic_direction(policy, fit)
    width = radius(policy, fit) * math.sqrt(width_squared(fit, coordinates))
    return offer_action(fit, coordinates, estimated_mean(fit, coordinates) + width, width, 1.0)


@hold.register
def hold_ball_oful(policy: BallOFULParameters, state, choice):
    return plays_until_switch(state.fit, choice, policy.switch)


@update.register
def update_ball_oful(policy: BallOFULParameters, state, choice, reward, n):
    update_tracking(policy, state, choice, reward, n, nothing_tracked(state.fit))


@update_tracking.register
def update_tracking_ball_oful(policy: BallOFULParameters, state, choice, reward, n, tracked):
    state.pulls[0] += n
    fit = state.fit
    learn_action(fit, tracked, choice, reward, n, policy.switch)
    # The next action is settled here, not by the next `select`: rewards that come late must not unsettle it.
    if policy.switch > 0.0 and fit.clock[SIZE] > 0 and not fit.clock[CHOSEN]:
        following = optimistic_direction(policy, fit)
        keep_action(fit, tracked, following, in_world(fit.carried[AXES:], following))


@check_state.register
def check_state_ball_oful(policy: BallOFULParameters, state):
    check_fit(state.fit, policy.support.sum())


@diagnostics.register
def diagnostics_ball_oful(policy: BallOFULParameters, state):
    found = {**describe_ball(state.fit), "pulls": state.pulls.copy()}
    return {**found, "radius": float(radius(policy, state.fit))}
