"""Corral: mirror descent over base policies, with learning rates that grow for bases that are rarely played.

Agarwal, Luo, Neyshabur and Schapire (2017), Algorithm 1. A base is drawn from p mixed with a little uniform play. Its
loss divided by its probability enters one step of online mirror descent with the log barrier. When a base's probability
falls below half of what it was when its learning rate was last raised (at first, when it started), the rate is raised
by exp(1 / ln T), so that a base that starts badly can recover.

The paper gives the chosen base its reward divided by its probability. Bases that estimate variances or widths from
rewards of known size cannot handle that; by default they get the reward itself (`importance_weighting=True` is the
paper's version). Losses are (high - reward) / (high - low), clipped to [0, 1]; the diagnostics count the clipped ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.options import Flag, Interval, Positive, Rounds, derived, parameters, policy
from albatross.picking import uniform_from_normal
from albatross.policies.over_policies.bases import (
    BaseRecord,
    OverPolicies,
    Policies,
    diagnostics_over_policies,
    learn_bases,
    noise_size_over_policies,
    nothing_played,
    play_base,
    resolve_bases,
)
from albatross.protocol import diagnostics, init, noise_size, resolve, select, update

_P, _PLAYED, _RHO, _ETA = 0, 1, 2, 3  # rows of the table


@policy
class Corral(OverPolicies):
    """Corral over base policies (Agarwal, Luo, Neyshabur and Schapire 2017, Algorithm 1).

    >>> from albatross import environments, policies, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> corral = Corral(bases=(policies.LinUCB(), policies.UCB()), reward_range=(-3.0, 3.0))
    >>> run = simulate(corral, env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    78.9
    """

    bases: Policies  #: policies of any kind
    horizon: Rounds | None = None  #: number of rounds; None: as given to `simulate` or `Fleet`
    eta: Positive | None = None  #: learning rate; None: sqrt(bases / rounds)
    #: for Corral's own losses; rewards outside are clipped
    reward_range: Interval = (0.0, 1.0)
    importance_weighting: Flag = False  #: give a base its reward divided by its probability
    mixing: float = derived()  # gamma = 1 / T
    raise_by: float = derived()  # beta = exp(1 / ln T)


class CorralState(NamedTuple):
    record: BaseRecord
    table: np.ndarray  # (4, M) p; p with uniform play mixed in; rho; eta
    clipped: np.ndarray  # (1,) rewards outside of the range


@resolve.register
def resolve_corral(policy: Corral, n_arms, dim, horizon):
    rounds = checks.given_horizon(policy, horizon)
    return parameters(
        policy,
        bases=resolve_bases(policy, n_arms, dim, rounds),
        horizon=rounds,
        eta=math.sqrt(len(policy.bases) / rounds) if policy.eta is None else policy.eta,
        mixing=1.0 / rounds,
        raise_by=math.exp(1.0 / math.log(max(rounds, 3))),
    )


@init.register
def init_corral(policy: Corral, n_arms, dim, rng):
    record = nothing_played(policy, n_arms, dim, rng)
    size = record.plays.size
    table = np.repeat([[1.0 / size], [1.0 / size], [2.0 * size], [policy.eta]], size, axis=1)
    return CorralState(record, table, np.zeros(1))


@noise_size.register
def noise_size_corral(policy: Corral, n_arms, dim):
    return noise_size_over_policies(policy, n_arms, dim) + 1


@select.register
def select_corral(policy: Corral, state, offer, noise):
    probabilities = state.table[_PLAYED]
    base, left = 0, uniform_from_normal(noise[noise.size - 1]) - probabilities[0]
    while left >= 0.0 and base < probabilities.size - 1:
        base += 1
        left -= probabilities[base]
    return play_base(policy.bases, state.record, base, probabilities[base], offer, noise)


@update.register
def update_corral(policy: Corral, state, choice, reward, n):
    low, high = policy.reward_range
    for _ in range(n):
        weight = 1.0 / choice.tag[1] if policy.importance_weighting else 1.0
        base = learn_bases(policy.bases, state.record, choice, reward / n, weight, False)
        if base < 0:
            continue
        loss = (high - reward / n) / (high - low)
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
    """Return p after a step of mirror descent for the loss of one base: 1/p_j += eta_j (l_j - lambda), sum p = 1."""
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


@diagnostics.register
def diagnostics_corral(policy: Corral, state):
    found = diagnostics_over_policies(policy, state)
    _, probabilities, _, rates = found.pop("table")
    clipped = int(found.pop("clipped")[0])
    return {**found, "probabilities": probabilities, "learning_rates": rates, "clipped": clipped}
