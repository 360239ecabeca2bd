"""NAOFUL: OFUL with a ridge that fades, so that no bound on the norm of theta* enters.

Gales, Sethuraman and Jun (2022). With m features, the biases among them, and after t - 1 plays

    ridge_t = sigma^2 m / t^decay,   radius_t = sigma (sqrt(ln det V_t/ridge_t^m + 2 ln(1/delta_t)) + sqrt(m)),

and delta_t = 6 delta / (pi t)^2. The second root pays for the ridge as soon as t^decay >= ||theta*||^2. Here t, and so
the ridge, stands still from one refit to the next: the set holds for any of these t at all later times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.confidence import ellipsoid_radius
from albatross.models.moments import Moments, moments, rebuild, record
from albatross.models.ridge import Joint, Ridge, learn
from albatross.policies.arms.linear import LinearState, describe_fit, nothing_learnt, optimistic
from albatross.policies.arms.schedule import learn_on_schedule, observe, refit
from albatross.protocol import diagnostics, init, resolve, score, update


@dataclass(frozen=True, kw_only=True)
class NAOFUL:
    """Norm-agnostic OFUL (Gales, Sethuraman and Jun 2022)."""

    sigma: float = 1.0  #: standard deviation of the noise
    delta: float = 0.1  #: the confidence set may fail with this probability
    decay: float = 2.0  #: how fast the ridge fades: as t to the power of -decay
    biases: bool = True  #: False: an arm's context explains all of its mean reward
    ties: str = "random"  #: "random": equal scores go by an order drawn once; "first": to the lowest arm

    def __post_init__(self) -> None:
        checks.positive("sigma", self.sigma)
        checks.probability("delta", self.delta)
        checks.positive("decay", self.decay)
        checks.flag("biases", self.biases)
        checks.one_of("ties", self.ties, ("random", "first"))


class NAOFULParameters(NamedTuple):
    sigma: float
    delta: float
    decay: float
    strength: float  # of the ridge in the first round
    price: float  # sigma sqrt(m), what the radius pays for the ridge
    biases: int
    random_ties: int


class NAOFULState(NamedTuple):
    fit: Joint | Ridge
    sums: Moments
    t: np.ndarray  # (1,) the round whose ridge is in use
    priority: np.ndarray  # (K,)


@resolve.register
def resolve_na_oful(policy: NAOFUL, n_arms, dim, horizon):
    size = n_arms + dim if policy.biases else dim
    return NAOFULParameters(
        float(policy.sigma),
        float(policy.delta),
        float(policy.decay),
        float(policy.sigma**2 * size),
        float(policy.sigma * math.sqrt(size)),
        int(policy.biases),
        int(policy.ties == "random"),
    )


@init.register
def init_na_oful(policy: NAOFULParameters, n_arms, dim, rng):
    start = nothing_learnt(policy, n_arms, dim, rng)
    return NAOFULState(start.fit, moments(n_arms, dim), np.ones(1), start.priority)


@compiled
def norm_agnostic_radius(policy, state):
    """sqrt(beta_t), in the norm of V_t."""
    delta = 6.0 * policy.delta / (math.pi * state.t[0]) ** 2
    return ellipsoid_radius(state.fit.log_det[0], policy.price, delta, policy.sigma, 1.0)


@score.register
def score_na_oful(policy: NAOFULParameters, state, offer, noise):
    return optimistic(state.fit, offer.contexts, norm_agnostic_radius(policy, state))


@observe.register
def observe_na_oful(policy: NAOFULParameters, state, choice, reward, n):
    record(state.sums, choice.arm, choice.action, reward, n)
    learn(state.fit, choice.arm, choice.action, reward, n)


@refit.register
def refit_na_oful(policy: NAOFULParameters, state):
    state.t[0] = state.sums.pulls.sum() + 1.0
    rebuild(state.fit, state.sums, policy.strength / state.t[0] ** policy.decay)


@update.register
def update_na_oful(policy: NAOFULParameters, state, choice, reward, n):
    learn_on_schedule(policy, state, state.sums.pulls, choice, reward, n)


@diagnostics.register
def diagnostics_na_oful(policy: NAOFULParameters, state):
    fitted = describe_fit(LinearState(state.fit, state.sums.pulls, state.priority))
    strength = policy.strength / float(state.t[0]) ** policy.decay
    return {**fitted, "radius": norm_agnostic_radius(policy, state), "ridge": strength}
