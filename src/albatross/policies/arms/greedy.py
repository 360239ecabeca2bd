"""Ridge greedy: the arm of the highest estimated mean, without any bonus for exploring.

Where contexts are diverse they explore by themselves and greedy is hard to beat (Bastani, Bayati and Khosravi 2021,
Algorithm 1; Kannan et al. 2018); on fixed arms it locks in on whatever looked good first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.models.ridge import predict
from albatross.policies.arms.linear import describe_fit, learn_play, nothing_learnt
from albatross.protocol import diagnostics, init, resolve, score, update


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """Greedy on ridge regression (Bastani, Bayati and Khosravi 2021, Algorithm 1)."""

    ridge: float = 1.0  #: weight of the penalty on the parameter's length
    biases: bool = True  #: False: an arm's context explains all of its mean reward
    ties: str = "random"  #: "random": equal scores go by an order drawn once; "first": to the lowest arm

    def __post_init__(self) -> None:
        checks.positive("ridge", self.ridge)
        checks.flag("biases", self.biases)
        checks.one_of("ties", self.ties, ("random", "first"))


class GreedyParameters(NamedTuple):
    strength: float
    biases: int
    random_ties: int


@resolve.register
def resolve_greedy(policy: Greedy, n_arms, dim, horizon):
    return GreedyParameters(float(policy.ridge), int(policy.biases), int(policy.ties == "random"))


@init.register
def init_greedy(policy: GreedyParameters, n_arms, dim, rng):
    return nothing_learnt(policy, n_arms, dim, rng)


@score.register
def score_greedy(policy: GreedyParameters, state, offer, noise):
    return predict(state.fit, offer.contexts), np.zeros(offer.eligible.size)


@update.register
def update_greedy(policy: GreedyParameters, state, choice, reward, n):
    learn_play(state, choice, reward, n)


@diagnostics.register
def diagnostics_greedy(policy: GreedyParameters, state):
    return describe_fit(state)
