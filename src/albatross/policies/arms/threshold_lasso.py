"""TH Lasso: greedy on least squares over the coordinates that pass two thresholds of the lasso.

Ariu, Abe and Proutiere (2022), Algorithm 1. After t plays, with theta of the lasso at penalty_t,

    penalty_t = penalty sqrt(2 ln t ln d / t),
    S_1 = {|theta_j| > 4 penalty_t},   S_2 = {j in S_1: |theta_j| > 4 penalty_t sqrt(|S_1|)},

the policy is greedy on least squares over S_2. The lasso minimises half the mean squared error, as in the authors'
code. Both are fitted at refits only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.models.lasso import descend, least_squares_on
from albatross.models.moments import Moments, moments, reduced
from albatross.options import Flag, Positive, Ties, policy
from albatross.picking import tie_priority
from albatross.policies.arms.greedy_lasso import GreedyLasso
from albatross.policies.arms.schedule import refit
from albatross.protocol import init


@policy
class ThresholdLasso(GreedyLasso):
    """The thresholded lasso bandit (Ariu, Abe and Proutiere 2022, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(ThresholdLasso(), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    8.4
    """

    penalty: Positive = 0.02  #: lambda_0, the penalty's factor that does not change with t
    bias_ridge: Positive = 1.0  #: weight of the penalty on biases
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


class ThresholdLassoState(NamedTuple):
    sums: Moments
    lasso: np.ndarray  # (d,)
    theta: np.ndarray  # (d,) least squares on what survived
    priority: np.ndarray  # (K,)


@init.register
def init_threshold_lasso(policy: ThresholdLasso, n_arms, dim, rng):
    priority = tie_priority(n_arms, policy.ties, rng)
    return ThresholdLassoState(moments(n_arms, dim), np.zeros(dim), np.zeros(dim), priority)


@compiled
def fading_penalty(penalty, t, dim):
    """Return penalty_t, with ln 2 for ln 1 at the first play: any estimate would pass a threshold of 0.

    >>> round(fading_penalty(0.02, 100.0, 50.0), 12)
    0.012005176121
    """
    return penalty * math.sqrt(2.0 * math.log(max(t, 2.0)) * math.log(dim) / t)


@compiled
def survivors(theta, penalty):
    """Return S_2 as a mask.

    >>> survivors(np.array([0.5, -9.0, 5.0, 8.0]), 1.0).tolist()
    [False, True, False, True]
    """
    first = np.abs(theta) > 4.0 * penalty
    return first & (np.abs(theta) > 4.0 * penalty * math.sqrt(first.sum()))


@refit.register
def refit_threshold_lasso(policy: ThresholdLasso, state):
    t = state.sums.pulls.sum()
    gram, cross = reduced(state.sums, policy.bias_ridge)
    penalty = fading_penalty(policy.penalty, t, cross.size)
    descend(gram, cross, t * penalty, state.lasso)
    theta = least_squares_on(gram, cross, survivors(state.lasso, penalty))
    for j in range(theta.size):
        state.theta[j] = theta[j]
