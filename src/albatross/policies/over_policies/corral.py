"""Corral: mirror descent over base policies, whose learning rates grow for those that it plays rarely.

Agarwal, Luo, Neyshabur and Schapire (2017), Algorithm 1. A base is drawn from p mixed with a little uniform play; its
loss over its probability goes through one step of online mirror descent with the log barrier. When a base's
probability falls below half of what it ever was, its learning rate is raised by exp(1 / ln T), so that a base which
starts badly can come back.

The paper hands the chosen base its reward over its probability. Bases that estimate variances or widths from rewards
of known size cannot live with that; by default they get the reward as it is (`importance_weighting=True`: the paper).
Losses are (high - reward) / (high - low), cut to [0, 1]; how many were cut is in the diagnostics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.picking import uniform_from_normal
from albatross.policies.over_policies.bases import (
    BaseRecord,
    Bases,
    bases_noise,
    bases_tag,
    check_base_states,
    check_base_tags,
    check_bases,
    describe_bases,
    learn_bases,
    nothing_played,
    play_base,
    resolve_bases,
)
from albatross.protocol import check_state, check_tags, diagnostics, init, noise_size, resolve, select, tag_size, update

_P, _PLAYED, _RHO, _ETA = 0, 1, 2, 3  # rows of the table


@dataclass(frozen=True, kw_only=True)
class Corral:
    """Corral over base policies (Agarwal, Luo, Neyshabur and Schapire 2017, Algorithm 1)."""

    bases: tuple[Any, ...]  #: policies of any kinds
    horizon: int | None = None  #: rounds to be played; None: what `simulate` or a `Fleet` is told
    eta: float | None = None  #: learning rate; None: sqrt(bases / rounds)
    reward_range: tuple[float, float] = (0.0, 1.0)  #: for Corral's own losses; rewards outside of it are cut there
    importance_weighting: bool = False  #: hand a base its reward over its probability

    def __post_init__(self) -> None:
        check_bases(self)
        if self.horizon is not None:
            checks.rounds("horizon", self.horizon)
        if self.eta is not None:
            checks.positive("eta", self.eta)
        low, high = checks.finite_array("reward_range", self.reward_range, (2,)).tolist()
        if not low < high:
            raise ValueError(f"reward_range must be a lower and a higher number, not {self.reward_range!r}")
        object.__setattr__(self, "reward_range", (low, high))
        checks.flag("importance_weighting", self.importance_weighting)


class CorralParameters(NamedTuple):
    bases: Bases
    eta: float
    mixing: float  # gamma = 1 / T
    raise_by: float  # beta = exp(1 / ln T)
    low: float
    high: float
    weighted: int


class CorralState(NamedTuple):
    record: BaseRecord
    table: np.ndarray  # (4, M) p; p with uniform play mixed in; rho; eta
    clipped: np.ndarray  # (1,) rewards outside of the range


@resolve.register
def resolve_corral(policy: Corral, n_arms, dim, horizon):
    rounds = checks.told_horizon(policy, horizon)
    bases = resolve_bases(policy, n_arms, dim, rounds)
    low, high = policy.reward_range
    return CorralParameters(
        bases=bases,
        eta=math.sqrt(len(policy.bases) / rounds) if policy.eta is None else float(policy.eta),
        mixing=1.0 / rounds,
        raise_by=math.exp(1.0 / math.log(max(rounds, 3))),
        low=low,
        high=high,
        weighted=int(policy.importance_weighting),
    )


@init.register
def init_corral(policy: CorralParameters, n_arms, dim, rng):
    record = nothing_played(policy.bases, n_arms, dim, rng)
    size = record.plays.size
    table = np.repeat([[1.0 / size], [1.0 / size], [2.0 * size], [policy.eta]], size, axis=1)
    return CorralState(record, table, np.zeros(1))


@noise_size.register
def noise_size_corral(policy: CorralParameters, n_arms, dim):
    return bases_noise(policy.bases) + 1


@tag_size.register
def tag_size_corral(policy: CorralParameters):
    return bases_tag(policy.bases)


@select.register
def select_corral(policy: CorralParameters, state, offer, noise):
    probabilities = state.table[_PLAYED]
    base, left = 0, uniform_from_normal(noise[noise.size - 1]) - probabilities[0]
    while left >= 0.0 and base < probabilities.size - 1:
        base += 1
        left -= probabilities[base]
    return play_base(policy.bases, state.record, base, probabilities[base], offer, noise)


@update.register
def update_corral(policy: CorralParameters, state, choice, reward, n):
    for _ in range(n):
        learn_once(policy, state, choice, reward / n)


@compiled
def learn_once(policy, state, choice, reward):
    """One play."""
    weight = 1.0 / choice.tag[1] if policy.weighted else 1.0
    base = learn_bases(policy.bases, state.record, choice, reward, 1, weight, False)
    if base < 0:
        return
    loss = (policy.high - reward) / (policy.high - policy.low)
    if loss < 0.0 or loss > 1.0:
        state.clipped[0] += 1.0
        loss = min(max(loss, 0.0), 1.0)
    descend(state.table[_P], state.table[_ETA], base, loss / choice.tag[1])
    n_bases = state.record.plays.size
    for j in range(n_bases):
        state.table[_PLAYED, j] = (1.0 - policy.mixing) * state.table[_P, j] + policy.mixing / n_bases
        if 1.0 / state.table[_PLAYED, j] > state.table[_RHO, j]:
            state.table[_RHO, j] = 2.0 / state.table[_PLAYED, j]
            state.table[_ETA, j] *= policy.raise_by


@compiled
def descend(p, eta, base, loss):
    """Mirror descent with the log barrier, for a loss of one base: 1/p_j += eta_j (l_j - lambda) with sum p = 1."""
    low, high = 0.0, loss
    for j in range(p.size):
        own = loss if j == base else 0.0
        high = min(high, own + 1.0 / (p[j] * eta[j]))  # beyond this p_j would be negative
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        total = 0.0
        for j in range(p.size):
            own = loss if j == base else 0.0
            total += 1.0 / (1.0 / p[j] + eta[j] * (own - middle))
        if total < 1.0:
            low = middle
        else:
            high = middle
    total = 0.0
    for j in range(p.size):
        own = loss if j == base else 0.0
        p[j] = 1.0 / (1.0 / p[j] + eta[j] * (own - low))
        total += p[j]
    for j in range(p.size):
        p[j] /= total


@check_state.register
def check_state_corral(policy: CorralParameters, state):
    check_base_states(policy.bases, state.record)


@check_tags.register
def check_tags_corral(policy: CorralParameters, state, tags):
    check_base_tags(policy.bases, state.record, tags)


@diagnostics.register
def diagnostics_corral(policy: CorralParameters, state):
    return {
        **describe_bases(policy.bases, state.record),
        "probabilities": state.table[_PLAYED].copy(),
        "learning_rates": state.table[_ETA].copy(),
        "clipped": int(state.clipped[0]),
    }
