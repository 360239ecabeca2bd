"""Shared by policies that ignore contexts and use the mean reward of every arm."""

from __future__ import annotations

from albatross.models.arm_means import count_play, describe_means, no_plays
from albatross.protocol import diagnostics, init, update


class OnMeans:
    """A policy on the mean rewards of the arms: a class with the keyword `ties` inherits the verbs below."""

    ties: str


@init.register
def init_on_means(policy: OnMeans, n_arms, dim, rng):
    return no_plays(n_arms, policy.ties, rng)


@update.register
def update_on_means(policy: OnMeans, state, choice, reward, n):
    count_play(state, choice, reward, n)


@diagnostics.register
def diagnostics_on_means(policy: OnMeans, state):
    return describe_means(state)
