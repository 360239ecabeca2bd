"""What SA Lasso and TH Lasso share: greedy on a sparse theta that is fitted anew on a schedule.

Biases are not penalised by the lasso but by a ridge of their own.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from albatross.models.moments import means_under, record
from albatross.policies.arms.schedule import learn_on_schedule, observe
from albatross.protocol import diagnostics, score, update


class GreedyLassoParameters(NamedTuple):
    """Those of both policies derive from these, and so have the verbs below."""

    penalty: float  # what does not change with t
    bias_strength: float  # infinite without biases
    random_ties: int


def greedy_lasso(kind: Any, policy: Any, penalty: float) -> Any:
    """Parameters of this kind from the keywords that both policies have."""
    bias_strength = float(policy.bias_ridge) if policy.biases else math.inf
    return kind(float(penalty), bias_strength, int(policy.ties == "random"))


@score.register
def score_greedy_lasso(policy: GreedyLassoParameters, state, offer, noise):
    return means_under(state.sums, offer.contexts, state.theta, policy.bias_strength), np.zeros(state.priority.size)


@observe.register
def observe_greedy_lasso(policy: GreedyLassoParameters, state, choice, reward, n):
    record(state.sums, choice.arm, choice.action, reward, n)


@update.register
def update_greedy_lasso(policy: GreedyLassoParameters, state, choice, reward, n):
    learn_on_schedule(policy, state, state.sums.pulls, choice, reward, n)


@diagnostics.register
def diagnostics_greedy_lasso(policy: GreedyLassoParameters, state):
    theta = state.theta.copy()
    return {"pulls": state.sums.pulls.copy(), "theta_hat": theta, "support": np.flatnonzero(theta)}
