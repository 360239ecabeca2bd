"""NAOFUL: OFUL with a ridge that decreases over time, so that it needs no bound on the norm of theta*.

Gales, Sethuraman and Jun (2022). With m features, including the biases, after t - 1 plays

    ridge_t = sigma^2 m / t^decay,   radius_t = sigma (sqrt(ln det V_t/ridge_t^m + 2 ln(1/delta_t)) + sqrt(m)),

and delta_t = 6 delta / (pi t)^2. The second root covers the ridge as soon as t^decay >= ||theta*||^2. Here t, and with
it the ridge, changes only at refits: the set for any of these t holds at all later times.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.confidence import ellipsoid_radius
from albatross.models.moments import Moments, fold_moments, moments, rebuild
from albatross.models.ridge import Joint, Ridge, fold_bias
from albatross.options import Flag, Positive, Probability, Ties, derived, parameters, policy
from albatross.picking import tie_priority
from albatross.policies.arms.linear import describe_fit, new_fit, optimistic
from albatross.policies.arms.schedule import OnSchedule, refit
from albatross.protocol import diagnostics, fold_arm, init, open_arm, resolve, score


@policy
class NAOFUL(OnSchedule):
    """Norm-agnostic OFUL (Gales, Sethuraman and Jun 2022).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(NAOFUL(sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    11.5
    """

    sigma: Positive = 1.0  #: standard deviation of the noise
    delta: Probability = 0.1  #: the confidence set may fail with this probability
    decay: Positive = 2.0  #: the ridge decreases as t to the power of -decay
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm
    first_ridge: float = derived()  # sigma^2 m
    price: float = derived()  # sigma sqrt(m), what the radius pays for the ridge


class NAOFULState(NamedTuple):
    fit: Joint | Ridge
    sums: Moments
    t: np.ndarray  # (1,) the round whose ridge is in use
    priority: np.ndarray  # (K,)


@resolve.register
def resolve_na_oful(policy: NAOFUL, n_arms, dim, horizon):
    size = n_arms + dim if policy.biases else dim
    return parameters(policy, first_ridge=policy.sigma**2 * size, price=policy.sigma * math.sqrt(size))


@init.register
def init_na_oful(policy: NAOFUL, n_arms, dim, rng):
    fit = new_fit(n_arms, dim, strength=policy.first_ridge, biases=policy.biases)
    return NAOFULState(fit, moments(n_arms, dim), np.ones(1), tie_priority(n_arms, policy.ties, rng))


@compiled
def norm_agnostic_radius(policy, state):
    """Return sqrt(beta_t), in the norm of V_t."""
    delta = 6.0 * policy.delta / (math.pi * state.t[0]) ** 2
    return ellipsoid_radius(state.fit.log_det[0], policy.price, delta, policy.sigma, 1.0)


@compiled
def current_ridge(policy, state):
    """The ridge since the last refit."""
    return policy.first_ridge / state.t[0] ** policy.decay


@score.register
def score_na_oful(policy: NAOFUL, state, offer, noise):
    return optimistic(state.fit, offer, norm_agnostic_radius(policy, state))


@refit.register
def refit_na_oful(policy: NAOFUL, state):
    state.t[0] = state.sums.pulls.sum() + 1.0
    rebuild(state.fit, state.sums, current_ridge(policy, state))


@fold_arm.register
def fold_arm_na_oful(policy: NAOFUL, state, arm):
    fold_moments(state.sums, arm, current_ridge(policy, state))
    fold_bias(state.fit, arm, current_ridge(policy, state))


@open_arm.register
def open_arm_na_oful(policy: NAOFUL, state, arm):
    if policy.biases:
        state.fit.weight[arm] = current_ridge(policy, state)


@diagnostics.register
def diagnostics_na_oful(policy: NAOFUL, state):
    fitted = describe_fit(state.fit, state.sums.pulls)
    ridge = float(current_ridge(policy, state))
    return {**fitted, "radius": norm_agnostic_radius(policy, state), "ridge": ridge}
