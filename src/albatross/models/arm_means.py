"""Counts and sums of rewards per arm, for policies that ignore contexts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.picking import tie_priority


class ArmMeans(NamedTuple):
    counts: np.ndarray  # (K,)
    reward_sum: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)


def no_plays(n_arms: int, ties: Any, rng: np.random.Generator) -> ArmMeans:
    """Return the state before the first round."""
    return ArmMeans(np.zeros(n_arms), np.zeros(n_arms), tie_priority(n_arms, ties, rng))


@compiled
def count_play(state, choice, reward, n):
    """Add n plays of the chosen arm with total reward `reward`."""
    state.counts[choice.arm] += n
    state.reward_sum[choice.arm] += reward


@compiled
def means(state):
    """(K,) mean reward of every arm; 0 for an arm without plays.

    >>> means(ArmMeans(np.array([2.0, 0.0]), np.array([3.0, 0.0]), np.arange(2))).tolist()
    [1.5, 0.0]
    """
    return state.reward_sum / np.maximum(state.counts, 1.0)


def describe_means(state: ArmMeans) -> dict[str, Any]:
    """Return the number of plays and the mean reward of every arm."""
    return {"pulls": state.counts.copy(), "means": state.reward_sum / np.maximum(state.counts, 1.0)}
