"""Shared by the policies on the unit ball: verbs on ridge regression in V's eigenbasis (`models/ball_fit.py`)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import generic
from albatross.models.ball_fit import (
    OWN,
    SWITCHES,
    BallFit,
    ball_fit,
    check_fit,
    describe_ball,
    learn_action,
    nothing_tracked,
    plays_until_switch,
    start_over,
    track_theta,
    tracked_mean,
)
from albatross.options import Option, parameters
from albatross.protocol import (
    check_state,
    diagnostics,
    hold,
    init,
    mean_reward,
    on_ball,
    reset,
    resolve,
    tag_size,
    track,
    update,
    update_tracking,
)

Coordinates = Annotated[tuple[int, ...], Option(checks.coordinates)]


class OnBall:
    """A policy whose arms are the vectors of the unit ball."""


@on_ball.register
def on_ball_always(policy: OnBall) -> bool:
    return True


# -------------------------------------------------------------------------------- a policy on one fit, rarely switching


class OnBallFit(OnBall):
    """A policy on one ridge regression: a class with these keywords inherits the verbs below."""

    ridge: float
    switch: float
    support: Any


class BallState(NamedTuple):
    fit: BallFit
    pulls: np.ndarray  # (1,) rewards received


@resolve.register
def resolve_on_fit(policy: OnBallFit, n_arms, dim, horizon):
    support = range(dim) if policy.support is None else policy.support
    if max(support) >= dim:
        raise ValueError(f"support names coordinate {max(support)}, the ball has coordinates 0 to {dim - 1}")
    return parameters(policy, support=np.isin(np.arange(dim), list(support)))


@init.register
def init_on_fit(policy: OnBallFit, n_arms, dim, rng):
    return BallState(ball_fit(dim, policy.support, policy.ridge), np.zeros(1))


@tag_size.register
def tag_size_on_fit(policy: OnBallFit):
    return OWN + policy.support.size


@hold.register
def hold_on_fit(policy: OnBallFit, state, choice):
    return plays_until_switch(state.fit, choice, policy.switch)


@track.register
def track_on_fit(policy: OnBallFit, state, theta):
    fit, tracked = track_theta(state.fit, theta)
    return state._replace(fit=fit), tracked


@mean_reward.register
def mean_reward_on_fit(policy: OnBallFit, state, choice, tracked):
    return tracked_mean(state.fit, choice, tracked)


@update.register
def update_on_fit(policy: OnBallFit, state, choice, reward, n):
    update_tracking(policy, state, choice, reward, n, nothing_tracked(state.fit))


@update_tracking.register
def update_tracking_on_fit(policy: OnBallFit, state, choice, reward, n, tracked):
    state.pulls[0] += n
    learn_action(state.fit, tracked, choice, reward, n, policy.switch)


@reset.register
def reset_on_fit(policy: OnBallFit, state):
    start_over(state.fit, policy.support, policy.ridge)
    state.fit.clock[SWITCHES] = 0
    state.pulls.fill(0.0)


@check_state.register
def check_state_on_fit(policy: OnBallFit, state):
    check_fit(state.fit, policy.support.sum())


def _no_radius(policy, fit):
    return np.nan


# confidence_radius(policy, fit) -> of the confidence ellipsoid about theta_hat, NaN without one
confidence_radius = generic("confidence_radius", _no_radius)


@diagnostics.register
def diagnostics_on_fit(policy: OnBallFit, state):
    found = {**describe_ball(state.fit), "pulls": state.pulls.copy()}
    if confidence_radius.has(type(policy)):
        found["radius"] = float(confidence_radius(policy, state.fit))
    return found


# ------------------------------------------------------------ a policy that explores, and otherwise plays such a policy


class AroundBallFit(OnBall):
    """A policy that explores with its own vectors and otherwise plays its `inner` policy, which is also part of its
    state.

    The inner policy's tag is the end of its own tag.
    """

    inner: Any


@track.register
def track_around(policy: AroundBallFit, state, theta):
    inner, tracked = track(policy.inner, state.inner, theta)
    return state._replace(inner=inner), tracked


@mean_reward.register
def mean_reward_around(policy: AroundBallFit, state, choice, tracked):
    return mean_reward(policy.inner, state.inner, choice, tracked)


@update.register
def update_around(policy: AroundBallFit, state, choice, reward, n):
    update_tracking(policy, state, choice, reward, n, nothing_tracked(state.inner.fit))


@check_state.register
def check_state_around(policy: AroundBallFit, state):
    check_state(policy.inner, state.inner)
