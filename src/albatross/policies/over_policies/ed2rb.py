"""ED2RB: balance the bases' realised regret, with coefficients estimated from what their rewards certainly lack.

Pacchiano, Dann and Gentile (2024), Algorithm 1 with the estimating rule. As D3RB, but

    d_i = max(d_min, sqrt(n_i) (max_j (u_j / n_j - c_j) - u_i / n_i - c_i)),

and phi_i = d_i sqrt(n_i), kept between its last value and twice that. The meta-policy to take first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from albatross import checks
from albatross.policies.over_policies.bases import check_balance, learn_bases, resolve_bases
from albatross.policies.over_policies.d3rb import D3RBParameters, shortfall
from albatross.protocol import resolve, update


@dataclass(frozen=True, kw_only=True)
class ED2RB:
    """ED2RB over base policies (Pacchiano, Dann and Gentile 2024, Algorithm 1)."""

    bases: tuple[Any, ...]  #: policies of any kinds
    delta: float = 0.01  #: the confidence in mean rewards may fail with this probability
    width: float = 1.0  #: c, in units of the reward: the larger, the later a base is refuted
    least: float = 1.0  #: d_min, in units of the reward: the larger, the longer bases are played in turn
    share: bool = False  #: every base learns from every reward

    def __post_init__(self) -> None:
        check_balance(self)
        checks.positive("least", self.least)


class ED2RBParameters(D3RBParameters):
    """All but `update` is D3RB's."""


@resolve.register
def resolve_ed2rb(policy: ED2RB, n_arms, dim, horizon):
    bases = resolve_bases(policy, n_arms, dim, horizon)
    return ED2RBParameters(bases, float(policy.delta), float(policy.width), float(policy.least), int(policy.share))


@update.register
def update_ed2rb(policy: ED2RBParameters, state, choice, reward, n):
    for _ in range(n):
        i = learn_bases(policy.bases, state.record, choice, reward / n, 1, 1.0, policy.share)
        if i >= 0:
            root, before = math.sqrt(state.record.plays[i]), state.potentials[i]
            state.coefficients[i] = max(policy.least, root * shortfall(policy, state, i))
            state.potentials[i] = min(max(state.coefficients[i] * root, before), 2.0 * before)
