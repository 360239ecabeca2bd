"""UCB1: mean + sqrt(2 ln t / n), for rewards in [0, 1] or, times `scale`, in an interval of that length.

Auer, Cesa-Bianchi and Fischer (2002), Figure 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.models.arm_means import count_play, describe_means, means, no_plays
from albatross.protocol import diagnostics, init, resolve, score, update


@dataclass(frozen=True, kw_only=True)
class UCB1:
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002, Figure 1)."""

    scale: float = 1.0  #: length of the interval that rewards lie in
    ties: str = "random"  #: "random": equal scores go by an order drawn once; "first": to the lowest arm

    def __post_init__(self) -> None:
        checks.positive("scale", self.scale)
        checks.one_of("ties", self.ties, ("random", "first"))


class UCB1Parameters(NamedTuple):
    scale: float
    random_ties: int


@resolve.register
def resolve_ucb1(policy: UCB1, n_arms, dim, horizon):
    return UCB1Parameters(float(policy.scale), int(policy.ties == "random"))


@init.register
def init_ucb1(policy: UCB1Parameters, n_arms, dim, rng):
    return no_plays(n_arms, policy.random_ties, rng)


@score.register
def score_ucb1(policy: UCB1Parameters, state, offer, noise):
    t = max(np.sum(state.counts), 1.0)
    widths = np.empty(state.counts.size)
    for arm in range(widths.size):
        plays = state.counts[arm]
        widths[arm] = policy.scale * np.sqrt(2.0 * np.log(t) / plays) if plays > 0.0 else np.inf
    return means(state) + widths, widths


@update.register
def update_ucb1(policy: UCB1Parameters, state, choice, reward, n):
    count_play(state, choice, reward, n)


@diagnostics.register
def diagnostics_ucb1(policy: UCB1Parameters, state):
    return describe_means(state)
