"""Which arm to play, given scores or probabilities: ties, eligible arms, first plays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from albatross.compiling import compiled

_RETRY_EVERY = 10  # decisions, on average


@compiled
def uniform_from_normal(z):
    """Return Phi(z), which turns a standard normal number into a uniform one in (0, 1)."""
    return min(0.5 * math.erfc(-z / math.sqrt(2.0)), 1.0 - 2.0**-53)


@compiled
def pick_uniformly(eligible, z):
    """Return a uniformly random eligible arm and its probability, from one standard normal number."""
    n_eligible = 0
    for arm in range(eligible.size):
        n_eligible += eligible[arm]
    rank = int(uniform_from_normal(z) * n_eligible)
    for arm in range(eligible.size):
        if eligible[arm]:
            if rank == 0:
                break
            rank -= 1
    return arm, 1.0 / n_eligible


@compiled
def arm_to_retry(decision, n_arms):
    """Return the arm that may get another first play: in about every tenth decision one of the arms, else -1.

    A reward may be lost. If the policy waited for it forever, the arm would never be played again. The decisions and
    arms are a hash of the decision's number, so they cannot coincide with a periodic pattern in the data.
    """
    mixed = (decision % 2**32 * 1_664_525 + 1_013_904_223) % 2**32
    mixed = (mixed ^ (mixed >> 16)) * 69_069 % 2**32
    mixed ^= mixed >> 15
    return (mixed // _RETRY_EVERY) % n_arms if mixed % _RETRY_EVERY == 0 else -1


@compiled
def pick_best(scores, offer, priority):
    """Return the eligible arm with the highest score; ties go to the lowest `priority`.

    A score of +inf requests a first play. The lowest such arm without a pending decision is played, so that a burst of
    decisions before any reward does not repeat one arm; if all have one, the arm with the fewest pending decisions. An
    arm with a score of NaN is returned at once, for `is_sound` to refuse.
    """
    best, waiting, again = -1, -1, -1
    for arm in range(scores.size):
        if not offer.eligible[arm]:
            continue
        if scores[arm] == np.inf:
            if offer.pending[arm] == 0:
                return arm
            if arm == offer.retry:
                again = arm
            if waiting < 0 or offer.pending[arm] < offer.pending[waiting]:
                waiting = arm
        elif best < 0 or scores[arm] > scores[best] or (scores[arm] == scores[best] and priority[arm] < priority[best]):
            best = arm
        elif scores[arm] != scores[arm]:
            return arm
    if best < 0:
        return waiting
    return again if again >= 0 else best


def tie_priority(n_arms: int, ties: Any, rng: np.random.Generator) -> np.ndarray:
    """Draw the order that breaks ties between arms: `state.priority` of an index policy.

    `ties` is the compiled keyword: 1 for a random order, 0 for the order of the arms.
    """
    return rng.permutation(n_arms) if ties else np.arange(n_arms)
