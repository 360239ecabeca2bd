"""First features: any policy, shown the first few features only. Told the true dimension, it is the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.protocol import (
    Choice,
    Offer,
    check_state,
    check_tags,
    diagnostics,
    init,
    is_policy,
    noise_size,
    on_ball,
    resolve,
    select,
    tag_size,
    update,
)


@dataclass(frozen=True, kw_only=True)
class FirstFeatures:
    """A policy on one of nested feature maps, the first `dim` features (Foster, Krishnamurthy and Luo 2019)."""

    policy: Any  #: any policy for finitely many arms
    dim: int  #: features that it sees

    def __post_init__(self) -> None:
        checks.whole("dim", self.dim, least=1)
        if not is_policy(self.policy):
            raise ValueError(f"policy must be a policy, and {self.policy!r} is not one")
        if isinstance(self.policy, FirstFeatures):
            raise ValueError("policy is FirstFeatures itself: give the policy in it, with the smaller dim")
        if on_ball(self.policy):
            raise ValueError(f"policy plays on the unit ball and sees no features: {self.policy!r}")


class FirstFeaturesParameters(NamedTuple):
    inner: Any
    dim: int


class FirstFeaturesState(NamedTuple):
    inner: Any


@resolve.register
def resolve_first_features(policy: FirstFeatures, n_arms, dim, horizon):
    if policy.dim > dim:
        raise ValueError(f"dim={policy.dim} features are wanted, arms have {dim}")
    return FirstFeaturesParameters(resolve(policy.policy, n_arms, policy.dim, horizon), int(policy.dim))


@init.register
def init_first_features(policy: FirstFeaturesParameters, n_arms, dim, rng):
    return FirstFeaturesState(init(policy.inner, n_arms, policy.dim, rng))


@noise_size.register
def noise_size_first_features(policy: FirstFeaturesParameters, n_arms, dim):
    return noise_size(policy.inner, n_arms, policy.dim)


@tag_size.register
def tag_size_first_features(policy: FirstFeaturesParameters):
    return tag_size(policy.inner)


@compiled
def cut(contexts, dim):
    """The first `dim` columns, as an array of their own."""
    return np.ascontiguousarray(contexts[:, :dim])


@select.register
def select_first_features(policy: FirstFeaturesParameters, state, offer, noise):
    seen = Offer(cut(offer.contexts, policy.dim), offer.eligible, offer.pending, offer.retry)
    choice = select(policy.inner, state.inner, seen, noise)
    action = offer.contexts[choice.arm]
    return Choice(choice.arm, action, choice.score, choice.width, choice.propensity, choice.tag)


@update.register
def update_first_features(policy: FirstFeaturesParameters, state, choice, reward, n):
    action = choice.action[: policy.dim]
    seen = Choice(choice.arm, action, choice.score, choice.width, choice.propensity, choice.tag)
    update(policy.inner, state.inner, seen, reward, n)


@check_state.register
def check_state_first_features(policy: FirstFeaturesParameters, state):
    check_state(policy.inner, state.inner)


@check_tags.register
def check_tags_first_features(policy: FirstFeaturesParameters, state, tags):
    check_tags(policy.inner, state.inner, tags)


@diagnostics.register
def diagnostics_first_features(policy: FirstFeaturesParameters, state):
    return diagnostics(policy.inner, state.inner)
