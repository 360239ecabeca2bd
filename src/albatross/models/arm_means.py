"""What the policies that ignore contexts share: a count and a sum of rewards for every arm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.picking import tie_priority


class ArmMeans(NamedTuple):
    counts: np.ndarray  # (K,)
    reward_sum: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)


def no_plays(n_arms: int, random_ties: int, rng: np.random.Generator) -> ArmMeans:
    """Before the first round."""
    return ArmMeans(np.zeros(n_arms), np.zeros(n_arms), tie_priority(n_arms, random_ties, rng))


@compiled
def count_play(state, choice, reward, n):
    """n plays of the chosen arm that brought `reward` in sum."""
    state.counts[choice.arm] += n
    state.reward_sum[choice.arm] += reward


@compiled
def means(state):
    """(K,) mean reward of every arm, 0 before its first."""
    return state.reward_sum / np.maximum(state.counts, 1.0)


def describe_means(state: ArmMeans) -> dict[str, Any]:
    """Plays and mean of every arm."""
    return {"pulls": state.counts.copy(), "means": state.reward_sum / np.maximum(state.counts, 1.0)}
