"""LinUCB: estimated mean plus alpha times the length of the features in V^-1.

Li, Chu, Langford and Schapire (2010), Algorithm 1 (here with one parameter for all arms); Chu, Li, Reyzin and Schapire
(2011), Algorithm 1, take alpha = sqrt(ln(2TK/delta)/2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from albatross import checks
from albatross.policies.arms.linear import describe_fit, learn_play, nothing_learnt, optimistic
from albatross.protocol import diagnostics, init, resolve, score, update


@dataclass(frozen=True, kw_only=True)
class LinUCB:
    """LinUCB (Chu, Li, Reyzin and Schapire 2011, Algorithm 1)."""

    alpha: float = 1.0  #: widths, in posterior standard deviations at noise 1
    ridge: float = 1.0  #: weight of the penalty on the parameter's length
    biases: bool = True  #: False: an arm's context explains all of its mean reward
    ties: str = "random"  #: "random": equal scores go by an order drawn once; "first": to the lowest arm

    def __post_init__(self) -> None:
        checks.at_least_zero("alpha", self.alpha)
        checks.positive("ridge", self.ridge)
        checks.flag("biases", self.biases)
        checks.one_of("ties", self.ties, ("random", "first"))


class LinUCBParameters(NamedTuple):
    alpha: float
    strength: float
    biases: int
    random_ties: int


@resolve.register
def resolve_linucb(policy: LinUCB, n_arms, dim, horizon):
    return LinUCBParameters(float(policy.alpha), float(policy.ridge), int(policy.biases), int(policy.ties == "random"))


@init.register
def init_linucb(policy: LinUCBParameters, n_arms, dim, rng):
    return nothing_learnt(policy, n_arms, dim, rng)


@score.register
def score_linucb(policy: LinUCBParameters, state, offer, noise):
    return optimistic(state.fit, offer.contexts, policy.alpha)


@update.register
def update_linucb(policy: LinUCBParameters, state, choice, reward, n):
    learn_play(state, choice, reward, n)


@diagnostics.register
def diagnostics_linucb(policy: LinUCBParameters, state):
    return describe_fit(state)
