"""First features: any policy, restricted to the first few features. Given the true dimension, it is the oracle."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.options import AtLeastOne, Option, check_base, parameters, policy
from albatross.protocol import (
    check_change_of_arms,
    check_state,
    check_tags,
    diagnostics,
    fold_arm,
    init,
    noise_size,
    open_arm,
    resolve,
    select,
    tag_size,
    update,
)


def _check_policy(name: str, value: Any) -> None:
    check_base(name, value)
    if isinstance(value, FirstFeatures):
        raise ValueError(f"{name} is FirstFeatures itself: give the policy in it, with the smaller dim")


@policy
class FirstFeatures:
    """A policy on one of nested feature maps, the first `dim` features (Foster, Krishnamurthy and Luo 2019).

    >>> from albatross import environments, policies, simulate
    >>> env = environments.Nested(n_arms=5, dims=(2, 6), true_dim=2, noise_sd=0.1)
    >>> run = simulate(FirstFeatures(policy=policies.LinUCB(biases=False), dim=2), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    0.5
    """

    policy: Annotated[Any, Option(_check_policy)]  #: any policy for finitely many arms
    dim: AtLeastOne  #: features that it sees


class FirstFeaturesState(NamedTuple):
    inner: Any


@resolve.register
def resolve_first_features(policy: FirstFeatures, n_arms, dim, horizon):
    if policy.dim > dim:
        raise ValueError(f"dim={policy.dim} features are wanted, arms have {dim}")
    return parameters(policy, policy=resolve(policy.policy, n_arms, policy.dim, horizon))


@init.register
def init_first_features(policy: FirstFeatures, n_arms, dim, rng):
    return FirstFeaturesState(init(policy.policy, n_arms, policy.dim, rng))


@noise_size.register
def noise_size_first_features(policy: FirstFeatures, n_arms, dim):
    return noise_size(policy.policy, n_arms, policy.dim)


@tag_size.register
def tag_size_first_features(policy: FirstFeatures):
    return tag_size(policy.policy)


@compiled
def cut(contexts, dim):
    """The first `dim` columns, as an array of their own."""
    return np.ascontiguousarray(contexts[:, :dim])


@select.register
def select_first_features(policy: FirstFeatures, state, offer, noise):
    choice = select(policy.policy, state.inner, offer._replace(contexts=cut(offer.contexts, policy.dim)), noise)
    return choice._replace(action=offer.contexts[choice.arm])


@update.register
def update_first_features(policy: FirstFeatures, state, choice, reward, n):
    update(policy.policy, state.inner, choice._replace(action=choice.action[: policy.dim]), reward, n)


@check_change_of_arms.register
def check_change_of_arms_first_features(policy: FirstFeatures):
    check_change_of_arms(policy.policy)


@fold_arm.register
def fold_arm_first_features(policy: FirstFeatures, state, arm):
    fold_arm(policy.policy, state.inner, arm)


@open_arm.register
def open_arm_first_features(policy: FirstFeatures, state, arm):
    open_arm(policy.policy, state.inner, arm)


@check_state.register
def check_state_first_features(policy: FirstFeatures, state):
    check_state(policy.policy, state.inner)


@check_tags.register
def check_tags_first_features(policy: FirstFeatures, state, tags):
    check_tags(policy.policy, state.inner, tags)


@diagnostics.register
def diagnostics_first_features(policy: FirstFeatures, state):
    return diagnostics(policy.policy, state.inner)
