"""Shared by SA Lasso and TH Lasso: greedy on a sparse theta that is refitted on a schedule.

Biases have a ridge penalty of their own and no lasso penalty.
"""

from __future__ import annotations

import math

import numpy as np

from albatross.models.moments import fold_moments, means_under, record
from albatross.options import parameters
from albatross.policies.arms.schedule import OnSchedule, observe
from albatross.protocol import diagnostics, fold_arm, resolve, score


class GreedyLasso(OnSchedule):
    """A policy that plays greedily on a sparse theta: a class with these keywords inherits the verbs below."""

    bias_ridge: float
    biases: bool
    ties: str


@resolve.register
def resolve_greedy_lasso(policy: GreedyLasso, n_arms, dim, horizon):
    return parameters(policy, bias_ridge=policy.bias_ridge if policy.biases else math.inf)


@score.register
def score_greedy_lasso(policy: GreedyLasso, state, offer, noise):
    means = means_under(state.sums, offer.contexts, offer.arms, state.theta, policy.bias_ridge)
    return means, np.zeros(means.size)


@observe.register
def observe_greedy_lasso(policy: GreedyLasso, state, choice, reward, n):
    record(state.sums, choice.arm, choice.action, reward, n)


@fold_arm.register
def fold_arm_greedy_lasso(policy: GreedyLasso, state, arm):
    fold_moments(state.sums, arm, policy.bias_ridge)


@diagnostics.register
def diagnostics_greedy_lasso(policy: GreedyLasso, state):
    theta = state.theta.copy()
    return {"pulls": state.sums.pulls.copy(), "theta_hat": theta, "support": np.flatnonzero(theta)}
