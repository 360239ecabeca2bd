"""D3RB: balance the bases' realised regret, and double a base's coefficient whenever its rewards refute it.

Pacchiano, Dann and Gentile (2024), Algorithm 1 with the doubling rule. No regret bounds are given in advance: base i
starts with the coefficient d_min, and its regret is estimated as phi_i = d_i sqrt(n_i). The base with the smallest phi
is played; if

    u_i / n_i + c_i + d_i / sqrt(n_i) < max_j (u_j / n_j - c_j),

its coefficient is doubled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.options import Flag, Positive, Probability, policy
from albatross.policies.over_policies.bases import (
    BaseRecord,
    OverPolicies,
    Policies,
    best_lower_bound,
    learn_bases,
    mean_width,
    nothing_played,
    play_base,
)
from albatross.protocol import init, select, update


@policy
class D3RB(OverPolicies):
    """D3RB over base policies (Pacchiano, Dann and Gentile 2024, Algorithm 1).

    >>> from albatross import environments, policies, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(D3RB(bases=(policies.LinUCB(), policies.UCB())), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    57.6
    """

    bases: Policies  #: policies of any kind
    delta: Probability = 0.01  #: the confidence in mean rewards may fail with this probability
    width: Positive = 1.0  #: c, in units of the reward: the larger, the later a base is refuted
    least: Positive = 1.0  #: d_min, in units of the reward: the larger, the longer bases are played in turn
    share: Flag = False  #: every base learns from every reward


class RealisedState(NamedTuple):
    record: BaseRecord
    coefficients: np.ndarray  # (M,) d
    potentials: np.ndarray  # (M,) phi


@init.register
def init_d3rb(policy: D3RB, n_arms, dim, rng):
    record = nothing_played(policy, n_arms, dim, rng)
    return RealisedState(record, np.full(record.plays.size, policy.least), np.full(record.plays.size, policy.least))


@select.register
def select_d3rb(policy: D3RB, state, offer, noise):
    smallest = int(np.argmin(state.potentials))
    return play_base(policy.bases, state.record, smallest, 1.0, offer, noise)


@compiled
def shortfall(policy, state, base):
    """Return max_j (u_j / n_j - c_j) - u_i / n_i - c_i, a lower bound on the gap to the best base."""
    record = state.record
    everyone = np.ones(record.plays.size, np.bool_)
    best = best_lower_bound(record, everyone, policy.delta, policy.width)
    mean = record.sums[base] / record.plays[base]
    return best - mean - mean_width(record.plays[base], record.plays.size, policy.delta, policy.width)


@update.register
def update_d3rb(policy: D3RB, state, choice, reward, n):
    for _ in range(n):
        i = learn_bases(policy.bases, state.record, choice, reward / n, 1.0, policy.share)
        if i >= 0:
            root = math.sqrt(state.record.plays[i])
            if state.coefficients[i] / root < shortfall(policy, state, i):
                state.coefficients[i] *= 2.0
            state.potentials[i] = state.coefficients[i] * root
