"""SA Lasso: greedy on the lasso, with a penalty that does not depend on the sparsity of theta*.

Oh, Iyengar and Zeevi (2021), Algorithm 1. After t plays the lasso minimises half the mean squared error plus

    penalty_t |theta|_1   with   penalty_t = 2 sigma feature_bound sqrt((4 ln t + 2 ln d) / t).

It is fitted at refits only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.models.lasso import descend
from albatross.models.moments import Moments, moments, reduced
from albatross.options import Flag, Positive, Ties, policy
from albatross.picking import tie_priority
from albatross.policies.arms.greedy_lasso import GreedyLasso
from albatross.policies.arms.schedule import refit
from albatross.protocol import init


@policy
class SALasso(GreedyLasso):
    """The sparsity-agnostic lasso bandit (Oh, Iyengar and Zeevi 2021, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(SALasso(sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    8.3
    """

    sigma: Positive = 1.0  #: standard deviation of the noise
    feature_bound: Positive = 1.0  #: x_max of the penalty, 1 in the authors' programs
    bias_ridge: Positive = 1.0  #: weight of the penalty on biases
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


class SALassoState(NamedTuple):
    sums: Moments
    theta: np.ndarray  # (d,)
    priority: np.ndarray  # (K,)


@init.register
def init_sa_lasso(policy: SALasso, n_arms, dim, rng):
    return SALassoState(moments(n_arms, dim), np.zeros(dim), tie_priority(n_arms, policy.ties, rng))


@compiled
def agnostic_penalty(scale, t, dim):
    """Return penalty_t.

    >>> round(agnostic_penalty(1.0, 100.0, 50.0), 12)
    0.51229607411
    """
    return scale * math.sqrt((4.0 * math.log(t) + 2.0 * math.log(dim)) / t)


@refit.register
def refit_sa_lasso(policy: SALasso, state):
    t = state.sums.pulls.sum()
    gram, cross = reduced(state.sums, policy.bias_ridge)
    penalty = agnostic_penalty(2.0 * policy.sigma * policy.feature_bound, t, cross.size)
    descend(gram, cross, t * penalty, state.theta)
