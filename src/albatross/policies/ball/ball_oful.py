"""OFUL on the unit ball, switching every round or rarely; given the support, it is the oracle of ALB-Dim.

Abbasi-Yadkori, Pal and Szepesvari (2011), Figures 1 and 3. The optimistic action is exact (`linalg.optimistic_action`).
"""

from __future__ import annotations

import math

from albatross.compiling import compiled
from albatross.confidence import ellipsoid_radius
from albatross.linalg.eigen import optimistic_coordinates
from albatross.linalg.vectors import norm
from albatross.models.ball_fit import (
    ACTION,
    AXES,
    CHOSEN,
    MOMENT,
    SIZE,
    estimated_mean,
    in_world,
    keep_action,
    learn_action,
    offer_action,
    width_squared,
)
from albatross.options import AtLeastZero, Positive, Probability, policy
from albatross.policies.ball.on_ball import Coordinates, OnBallFit, confidence_radius
from albatross.protocol import select, update_tracking


@policy
class BallOFUL(OnBallFit):
    """OFUL on the unit ball (Abbasi-Yadkori, Pal and Szepesvari 2011, Figures 1 and 3).

    >>> from albatross import environments, simulate
    >>> env = environments.Ball(dim=4, theta=[0.8, 0.0, 0.0, 0.6], noise_sd=0.1)
    >>> run = simulate(BallOFUL(sigma=0.1, switch=0.5), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    22.6
    """

    sigma: Positive = 1.0  #: standard deviation of the noise
    delta: Probability = 0.1  #: the confidence set may fail with this probability
    norm_bound: Positive = 1.0  #: bound on the norm of theta*
    ridge: Positive = 1.0  #: weight of the penalty on the parameter's norm
    switch: AtLeastZero = 0.0  #: C: a new action when det V has grown by the factor 1 + C; 0: every round
    support: Coordinates | None = None  #: coordinates to play on; None: all


@confidence_radius.register
def ball_oful_radius(policy: BallOFUL, fit):
    return ellipsoid_radius(fit.log_det[0], policy.norm_bound, policy.delta, policy.sigma, policy.ridge)


@compiled
def optimistic_direction(policy, fit):
    """Return the optimistic action: the direction of the longest theta of the ellipsoid, in the eigenbasis."""
    values = fit.values[: fit.clock[SIZE]]
    longest = optimistic_coordinates(
        values, fit.carried[MOMENT, : values.size] / values, confidence_radius(policy, fit)
    )
    return longest / norm(longest)


@select.register
def select_ball_oful(policy: BallOFUL, state, offer, noise):
    fit = state.fit
    if fit.clock[CHOSEN]:
        coordinates = fit.carried[ACTION, : fit.clock[SIZE]].copy()
    else:
        coordinates = optimistic_direction(policy, fit)
    width = confidence_radius(policy, fit) * math.sqrt(width_squared(fit, coordinates))
    return offer_action(fit, coordinates, estimated_mean(fit, coordinates) + width, width, 1.0)


@update_tracking.register
def update_tracking_ball_oful(policy: BallOFUL, state, choice, reward, n, tracked):
    state.pulls[0] += n
    fit = state.fit
    learn_action(fit, tracked, choice, reward, n, policy.switch)
    # The next action is settled here, not by the next `select`: rewards that come late must not unsettle it.
    if policy.switch > 0.0 and fit.clock[SIZE] > 0 and not fit.clock[CHOSEN]:
        following = optimistic_direction(policy, fit)
        keep_action(fit, tracked, following, in_world(fit.carried[AXES:], following))
