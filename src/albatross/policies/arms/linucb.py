"""LinUCB: estimated mean plus alpha times the length of the features in V^-1.

Li, Chu, Langford and Schapire (2010), Algorithm 1 (here with one parameter for all arms); Chu, Li, Reyzin and Schapire
(2011), Algorithm 1, take alpha = sqrt(ln(2TK/delta)/2). With a `memory` it is D-LinUCB, for a parameter that drifts:
Russac, Vernade and Cappe (2019), Algorithm 1, with gamma = 2^(-1 / memory).
"""

from __future__ import annotations

import numpy as np

from albatross.models.discounted import Discounted, discounted, fold_discounted
from albatross.options import AtLeastZero, Flag, Positive, Ties, parameters, policy
from albatross.picking import tie_priority
from albatross.policies.arms.linear import LinearState, OnRidge, fold_arm_on_ridge, init_on_ridge, optimistic
from albatross.protocol import fold_arm, init, resolve, score


@policy
class LinUCB(OnRidge):
    """LinUCB (Chu, Li, Reyzin and Schapire 2011, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(LinUCB(alpha=0.5), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    7.6
    """

    alpha: AtLeastZero = 1.0  #: widths, in posterior standard deviations at noise 1
    ridge: Positive = 1.0  #: weight of the penalty on the parameter's norm
    memory: Positive | None = None  #: half-life of a play's weight, in plays; None: nothing is forgotten
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


@resolve.register
def resolve_linucb(policy: LinUCB, n_arms, dim, horizon):
    return parameters(policy, memory=policy.memory or 0.0)


@init.register
def init_linucb(policy: LinUCB, n_arms, dim, rng):
    if not policy.memory:
        return init_on_ridge(policy, n_arms, dim, rng)
    fit = discounted(n_arms if policy.biases else 0, dim, strength=policy.ridge, half_life=policy.memory)
    return LinearState(fit, np.zeros(n_arms), tie_priority(n_arms, policy.ties, rng))


@fold_arm.register
def fold_arm_linucb(policy: LinUCB, state, arm):
    if not isinstance(state.fit, Discounted):
        fold_arm_on_ridge(policy, state, arm)
    elif policy.biases:
        fold_discounted(state.fit, arm)


@score.register
def score_linucb(policy: LinUCB, state, offer, noise):
    return optimistic(state.fit, offer, policy.alpha)
