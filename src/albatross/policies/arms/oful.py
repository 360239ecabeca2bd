"""OFUL: optimism in the face of uncertainty over an ellipsoid that contains theta* at all times.

Abbasi-Yadkori, Pal and Szepesvari (2011), Figure 1 and Theorem 2. With `biases` the parameter is [mu; theta], and
`norm_bound` bounds the length of both together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from albatross import checks
from albatross.confidence import ellipsoid_radius
from albatross.policies.arms.linear import describe_fit, learn_play, nothing_learnt, optimistic
from albatross.protocol import diagnostics, init, resolve, score, update


@dataclass(frozen=True, kw_only=True)
class OFUL:
    """OFUL on finitely many arms (Abbasi-Yadkori, Pal and Szepesvari 2011, Figure 1)."""

    norm_bound: float = 1.0  #: what the norm of [mu; theta] is at most, without biases that of theta
    sigma: float = 1.0  #: standard deviation of the noise
    delta: float = 0.1  #: the confidence set may fail with this probability
    ridge: float = 1.0  #: weight of the penalty on the parameter's length
    biases: bool = True  #: False: an arm's context explains all of its mean reward
    ties: str = "random"  #: "random": equal scores go by an order drawn once; "first": to the lowest arm

    def __post_init__(self) -> None:
        checks.at_least_zero("norm_bound", self.norm_bound)
        checks.positive("sigma", self.sigma)
        checks.probability("delta", self.delta)
        checks.positive("ridge", self.ridge)
        checks.flag("biases", self.biases)
        checks.one_of("ties", self.ties, ("random", "first"))


class OFULParameters(NamedTuple):
    norm_bound: float
    sigma: float
    delta: float
    strength: float
    biases: int
    random_ties: int


@resolve.register
def resolve_oful(policy: OFUL, n_arms, dim, horizon):
    return OFULParameters(
        float(policy.norm_bound),
        float(policy.sigma),
        float(policy.delta),
        float(policy.ridge),
        int(policy.biases),
        int(policy.ties == "random"),
    )


@init.register
def init_oful(policy: OFULParameters, n_arms, dim, rng):
    return nothing_learnt(policy, n_arms, dim, rng)


@score.register
def score_oful(policy: OFULParameters, state, offer, noise):
    reach = ellipsoid_radius(state.fit.log_det[0], policy.norm_bound, policy.delta, policy.sigma, policy.strength)
    return optimistic(state.fit, offer.contexts, reach)


@update.register
def update_oful(policy: OFULParameters, state, choice, reward, n):
    learn_play(state, choice, reward, n)


@diagnostics.register
def diagnostics_oful(policy: OFULParameters, state):
    growth = float(state.fit.log_det[0])
    reach = ellipsoid_radius(growth, policy.norm_bound, policy.delta, policy.sigma, policy.strength)
    return {**describe_fit(state), "radius": reach, "log_det": growth}
