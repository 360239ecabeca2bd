"""LinTS: play the arm that is best under a parameter drawn from the posterior.

Agrawal and Goyal (2013), Algorithm 1, with the posterior's own scale sigma rather than the inflated one of the proof.
Needs no bound on the norm of theta*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from albatross import checks
from albatross.models.ridge import perturb, predict
from albatross.policies.arms.linear import describe_fit, learn_play, nothing_learnt
from albatross.protocol import diagnostics, init, noise_size, resolve, score, update


@dataclass(frozen=True, kw_only=True)
class LinTS:
    """Linear Thompson sampling (Agrawal and Goyal 2013, Algorithm 1)."""

    sigma: float = 1.0  #: standard deviation of the noise
    ridge: float = 1.0  #: sigma^2 over the prior variance
    biases: bool = True  #: False: an arm's context explains all of its mean reward
    ties: str = "random"  #: "random": equal scores go by an order drawn once; "first": to the lowest arm

    def __post_init__(self) -> None:
        checks.positive("sigma", self.sigma)
        checks.positive("ridge", self.ridge)
        checks.flag("biases", self.biases)
        checks.one_of("ties", self.ties, ("random", "first"))


class LinTSParameters(NamedTuple):
    sigma: float
    strength: float
    biases: int
    random_ties: int


@resolve.register
def resolve_lints(policy: LinTS, n_arms, dim, horizon):
    return LinTSParameters(float(policy.sigma), float(policy.ridge), int(policy.biases), int(policy.ties == "random"))


@init.register
def init_lints(policy: LinTSParameters, n_arms, dim, rng):
    return nothing_learnt(policy, n_arms, dim, rng)


@noise_size.register
def noise_size_lints(policy: LinTSParameters, n_arms, dim):
    return dim + n_arms if policy.biases else dim


@score.register
def score_lints(policy: LinTSParameters, state, offer, noise):
    drawn = perturb(state.fit, offer.contexts, policy.sigma, noise)
    return drawn, drawn - predict(state.fit, offer.contexts)


@update.register
def update_lints(policy: LinTSParameters, state, choice, reward, n):
    learn_play(state, choice, reward, n)


@diagnostics.register
def diagnostics_lints(policy: LinTSParameters, state):
    return describe_fit(state)
