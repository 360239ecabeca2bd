"""Regret balancing: play the base whose regret, by its putative bound or by its rewards, is smallest so far.

Every base i comes with a bound R_i(n) = coefficient sqrt(n) on its regret after n plays of its own. Three rules:
"balance" (Abbasi-Yadkori, Pacchiano and Phan 2020) plays the base with the smallest empirical regret n_i v - u_i, where
v = max_i (u_i + R_i(n_i)) / n_i is the best mean reward that any bound still allows; "eliminate" (Pacchiano, Dann,
Gentile and Bartlett 2020) plays the smallest R_i(n_i) and drops a base for good once

    u_i / n_i + c_i + R_i(n_i) / n_i < max_j (u_j / n_j - c_j);

"dynamic" (Cutkosky, Dann, Das, Gentile, Pacchiano and Purohit 2021) makes that test anew after every reward, so that a
base can come back.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.options import Flag, Option, Positive, Probability, one_of, parameters, policy
from albatross.policies.nested.first_features import FirstFeatures
from albatross.policies.over_policies.bases import (
    BaseRecord,
    OverPolicies,
    Policies,
    best_lower_bound,
    check_state_over_policies,
    learn_bases,
    mean_width,
    nothing_played,
    play_base,
    resolve_bases,
)
from albatross.protocol import check_state, init, resolve, select, update

_BALANCE, _DYNAMIC = 0, 2  # places among the rules


@policy
class RegretBalancing(OverPolicies):
    """Regret balancing over base policies (Abbasi-Yadkori et al. 2020; Pacchiano et al. 2020; Cutkosky et al. 2021).

    >>> from albatross import environments, policies, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(RegretBalancing(bases=(policies.LinUCB(), policies.UCB())), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    29.2
    """

    bases: Policies  #: policies of any kind
    #: a base's regret after n plays is at most this times sqrt(n); None: sqrt(d) of the features it sees
    coefficients: Annotated[tuple[float, ...] | None, Option()] = None
    #: or "eliminate" (refuted bases are dropped), or "dynamic" (they may come back)
    rule: Annotated[str, one_of("balance", "eliminate", "dynamic")] = "balance"
    delta: Probability = 0.01  #: the confidence in mean rewards may fail with this probability
    width: Positive = 1.0  #: c, in units of the reward: the larger, the later a base is refuted
    share: Flag = False  #: every base learns from every reward

    def __post_init__(self) -> None:
        if self.coefficients is not None:
            given = checks.finite_array("coefficients", self.coefficients, (len(self.bases),)).tolist()
            for coefficient in given:
                checks.positive("coefficients", coefficient)
            object.__setattr__(self, "coefficients", tuple(given))


class RegretBalancingState(NamedTuple):
    record: BaseRecord
    active: np.ndarray  # (M,) bool


@resolve.register
def resolve_regret_balancing(policy: RegretBalancing, n_arms, dim, horizon):
    sizes = [base.dim if isinstance(base, FirstFeatures) else dim for base in policy.bases]
    coefficients = policy.coefficients or np.sqrt(sizes)
    bases = resolve_bases(policy, n_arms, dim, horizon)
    return parameters(policy, bases=bases, coefficients=np.array(coefficients))


@init.register
def init_regret_balancing(policy: RegretBalancing, n_arms, dim, rng):
    record = nothing_played(policy, n_arms, dim, rng)
    return RegretBalancingState(record, np.ones(record.plays.size, bool))


@compiled
def regret_bound(policy, base, plays):
    """Return R_i(n)."""
    return policy.coefficients[base] * math.sqrt(plays)


@compiled
def next_base(policy, state):
    """Return a base without a play first; then the one with the smallest regret, by the rule."""
    plays, sums = state.record.plays, state.record.sums
    best_mean = -np.inf
    for i in range(plays.size):
        if plays[i] == 0.0:
            return i
        best_mean = max(best_mean, (sums[i] + regret_bound(policy, i, plays[i])) / plays[i])
    chosen, least = -1, np.inf
    for i in range(plays.size):
        regret = regret_bound(policy, i, plays[i])
        if policy.rule == _BALANCE:
            regret = plays[i] * best_mean - sums[i]
        if state.active[i] and (chosen < 0 or regret < least):
            chosen, least = i, regret
    return chosen


@select.register
def select_regret_balancing(policy: RegretBalancing, state, offer, noise):
    return play_base(policy.bases, state.record, next_base(policy, state), 1.0, offer, noise)


@update.register
def update_regret_balancing(policy: RegretBalancing, state, choice, reward, n):
    for _ in range(n):
        learn_bases(policy.bases, state.record, choice, reward / n, 1.0, policy.share)
        drop_refuted(policy, state)


@compiled
def drop_refuted(policy, state):
    """Drop the bases whose bound cannot hold, unless the rule is "balance"."""
    if policy.rule == _BALANCE:
        return
    plays, sums = state.record.plays, state.record.sums
    if policy.rule == _DYNAMIC:
        state.active.fill(True)
    best = best_lower_bound(state.record, state.active, policy.delta, policy.width)
    for i in range(plays.size):
        if plays[i] > 0.0:
            allowed = sums[i] + regret_bound(policy, i, plays[i])
            upper = allowed / plays[i] + mean_width(plays[i], plays.size, policy.delta, policy.width)
            state.active[i] = state.active[i] and upper >= best


@check_state.register
def check_state_regret_balancing(policy: RegretBalancing, state):
    if not state.active.any(axis=-1).all():
        raise ValueError("active is False for every base")
    check_state_over_policies(policy, state)
