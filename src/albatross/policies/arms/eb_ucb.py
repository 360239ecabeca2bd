"""EB-UCB: OFUL that replaces the given norm bound by the one that its confidence ellipsoid implies.

Suder and Laber (2025), the optimistic rival of their information-directed sampling; "EB" stands for empirical bound.
With V = ridge sigma^2 I + sum x x', radius(B) that of OFUL at confidence min(delta, 1/t^2), and the given bound B,

    B_hat = min(B, |theta_hat| + radius(B) / sqrt(lambda_min(V))).

The first `warm_up` rounds use radius(B_hat), later rounds the smallest |theta_hat| + radius(B_hat)/sqrt(lambda_min) so
far. Bounds are computed at refits only: lambda_min never falls, so an older bound stays valid.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.confidence import ellipsoid_radius
from albatross.models.ellipsoid import estimate_norm, widest
from albatross.models.ridge import Joint, Ridge, fold_bias
from albatross.options import Flag, Positive, Probability, Ties, Whole, parameters, policy
from albatross.picking import tie_priority
from albatross.policies.arms.linear import describe_fit, learn_play, new_fit, optimistic
from albatross.policies.arms.schedule import learn_on_schedule, observe, refit
from albatross.protocol import diagnostics, fold_arm, init, resolve, score, update

LATEST, SMALLEST = 0, 1  # places in the bounds


@policy
class EBUCB:
    """Empirical-bound UCB (Suder and Laber 2025), with one noise level for all arms.

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(EBUCB(norm_bound=10.0, sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    11.3
    """

    norm_bound: Positive = 100.0  #: safe bound on the norm of [mu; theta]; may be loose
    sigma: Positive = 1.0  #: standard deviation of the noise
    delta: Probability = 1e-3  #: the set may fail with this probability; 1/t^2 where that is less
    ridge: Positive = 0.2  #: weight of the penalty, in units of sigma^2
    warm_up: Whole = 50  #: rounds before the smallest bound seen is trusted
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


class EBUCBState(NamedTuple):
    fit: Joint | Ridge
    pulls: np.ndarray  # (K,)
    bounds: np.ndarray  # (2,) the latest norm bound, and the smallest one
    priority: np.ndarray  # (K,)


@resolve.register
def resolve_eb_ucb(policy: EBUCB, n_arms, dim, horizon):
    return parameters(policy, ridge=policy.ridge * policy.sigma**2)


@init.register
def init_eb_ucb(policy: EBUCB, n_arms, dim, rng):
    fit = new_fit(n_arms, dim, strength=policy.ridge, biases=policy.biases)
    return EBUCBState(fit, np.zeros(n_arms), np.full(2, policy.norm_bound), tie_priority(n_arms, policy.ties, rng))


@compiled
def bounded_radius(policy, state, norm_bound):
    """Return radius(B), in the norm of V."""
    delta = min(policy.delta, 1.0 / (state.pulls.sum() + 1.0) ** 2)
    return ellipsoid_radius(state.fit.log_det[0], norm_bound, delta, policy.sigma, policy.ridge)


@compiled
def current_radius(policy, state):
    """Return the radius that the index currently uses."""
    which = LATEST if state.pulls.sum() < policy.warm_up else SMALLEST
    return bounded_radius(policy, state, state.bounds[which])


@score.register
def score_eb_ucb(policy: EBUCB, state, offer, noise):
    return optimistic(state.fit, offer, current_radius(policy, state))


@observe.register
def observe_eb_ucb(policy: EBUCB, state, choice, reward, n):
    learn_play(state, choice, reward, n)


@refit.register
def refit_eb_ucb(policy: EBUCB, state):
    length, reach = estimate_norm(state.fit), math.sqrt(widest(state.fit))
    latest = min(policy.norm_bound, length + reach * bounded_radius(policy, state, policy.norm_bound))
    again = length + reach * bounded_radius(policy, state, latest)
    state.bounds[LATEST] = latest
    state.bounds[SMALLEST] = min(state.bounds[SMALLEST], again)


@update.register
def update_eb_ucb(policy: EBUCB, state, choice, reward, n):
    learn_on_schedule(policy, state, state.pulls, choice, reward, n)


@fold_arm.register
def fold_arm_eb_ucb(policy: EBUCB, state, arm):
    fold_bias(state.fit, arm, policy.ridge)


@diagnostics.register
def diagnostics_eb_ucb(policy: EBUCB, state):
    found = {"radius": current_radius(policy, state), "norm_bound": float(state.bounds[SMALLEST])}
    return {**describe_fit(state.fit, state.pulls), **found}
