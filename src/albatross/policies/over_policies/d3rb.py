"""D3RB: balance the bases' realised regret, doubling a base's coefficient whenever its rewards refute it.

Pacchiano, Dann and Gentile (2024), Algorithm 1 with the doubling rule. Nobody states a regret bound beforehand: base i
starts with the coefficient d_min, and its regret is taken to be phi_i = d_i sqrt(n_i). The base with the smallest phi
is played; where u_i / n_i + c_i + d_i / sqrt(n_i) < max_j (u_j / n_j - c_j), its coefficient is doubled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.policies.over_policies.bases import (
    BaseRecord,
    Bases,
    bases_noise,
    bases_tag,
    best_lower_bound,
    check_balance,
    check_base_states,
    check_base_tags,
    describe_bases,
    learn_bases,
    mean_width,
    nothing_played,
    play_base,
    resolve_bases,
)
from albatross.protocol import check_state, check_tags, diagnostics, init, noise_size, resolve, select, tag_size, update


@dataclass(frozen=True, kw_only=True)
class D3RB:
    """D3RB over base policies (Pacchiano, Dann and Gentile 2024, Algorithm 1)."""

    bases: tuple[Any, ...]  #: policies of any kinds
    delta: float = 0.01  #: the confidence in mean rewards may fail with this probability
    width: float = 1.0  #: c, in units of the reward: the larger, the later a base is refuted
    least: float = 1.0  #: d_min, in units of the reward: the larger, the longer bases are played in turn
    share: bool = False  #: every base learns from every reward

    def __post_init__(self) -> None:
        check_balance(self)
        checks.positive("least", self.least)


class D3RBParameters(NamedTuple):
    """ED2RB's derive from them, and so have all verbs but `update`."""

    bases: Bases
    delta: float
    width: float
    least: float
    share: int


class RealisedState(NamedTuple):
    record: BaseRecord
    coefficients: np.ndarray  # (M,) d
    potentials: np.ndarray  # (M,) phi


@resolve.register
def resolve_d3rb(policy: D3RB, n_arms, dim, horizon):
    bases = resolve_bases(policy, n_arms, dim, horizon)
    return D3RBParameters(bases, float(policy.delta), float(policy.width), float(policy.least), int(policy.share))


@init.register
def init_d3rb(policy: D3RBParameters, n_arms, dim, rng):
    record = nothing_played(policy.bases, n_arms, dim, rng)
    return RealisedState(record, np.full(record.plays.size, policy.least), np.full(record.plays.size, policy.least))


@noise_size.register
def noise_size_d3rb(policy: D3RBParameters, n_arms, dim):
    return bases_noise(policy.bases)


@tag_size.register
def tag_size_d3rb(policy: D3RBParameters):
    return bases_tag(policy.bases)


@select.register
def select_d3rb(policy: D3RBParameters, state, offer, noise):
    smallest = int(np.argmin(state.potentials))
    return play_base(policy.bases, state.record, smallest, 1.0, offer, noise)


@compiled
def shortfall(policy, state, base):
    """max_j (u_j / n_j - c_j) - u_i / n_i - c_i: what a base's mean reward certainly lacks."""
    record = state.record
    everyone = np.ones(record.plays.size, np.bool_)
    best = best_lower_bound(record, everyone, policy.delta, policy.width)
    mean = record.sums[base] / record.plays[base]
    return best - mean - mean_width(record.plays[base], record.plays.size, policy.delta, policy.width)


@update.register
def update_d3rb(policy: D3RBParameters, state, choice, reward, n):
    for _ in range(n):
        i = learn_bases(policy.bases, state.record, choice, reward / n, 1, 1.0, policy.share)
        if i >= 0:
            root = math.sqrt(state.record.plays[i])
            if state.coefficients[i] / root < shortfall(policy, state, i):
                state.coefficients[i] *= 2.0
            state.potentials[i] = state.coefficients[i] * root


@check_state.register
def check_state_d3rb(policy: D3RBParameters, state):
    check_base_states(policy.bases, state.record)


@check_tags.register
def check_tags_d3rb(policy: D3RBParameters, state, tags):
    check_base_tags(policy.bases, state.record, tags)


@diagnostics.register
def diagnostics_d3rb(policy: D3RBParameters, state):
    return {
        **describe_bases(policy.bases, state.record),
        "coefficients": state.coefficients.copy(),
        "potentials": state.potentials.copy(),
    }
