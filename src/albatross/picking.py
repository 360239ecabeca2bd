"""Which row of an offer to play, given scores or probabilities: ties, eligible rows, first plays."""

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
    """Return a uniformly random eligible row and its probability, from one standard normal number."""
    n_eligible = 0
    for row in range(eligible.size):
        n_eligible += eligible[row]
    rank = int(uniform_from_normal(z) * n_eligible)
    for row in range(eligible.size):
        if eligible[row]:
            if rank == 0:
                break
            rank -= 1
    return row, 1.0 / n_eligible


@compiled
def by_row(values, arms):
    """(R,) the value of every row's arm."""
    found = np.empty(arms.size)
    for row in range(arms.size):
        found[row] = values[arms[row]]
    return found


@compiled
def row_to_retry(decision, eligible):
    """Return the row whose arm may get another first play: in about every tenth decision an eligible one, else -1.

    A reward may be lost. If the policy waited for it forever, the arm would never be played again. The decisions and
    rows are a hash of the decision's number, so they cannot coincide with a periodic pattern in the data.
    """
    mixed = (decision % 2**32 * 1_664_525 + 1_013_904_223) % 2**32
    mixed = (mixed ^ (mixed >> 16)) * 69_069 % 2**32
    mixed ^= mixed >> 15
    if mixed % _RETRY_EVERY != 0:
        return -1
    rank = (mixed // _RETRY_EVERY) % max(np.sum(eligible), 1)
    for row in range(eligible.size):
        if eligible[row]:
            if rank == 0:
                return row
            rank -= 1
    return -1


@compiled
def pick_best(scores, offer, priority):
    """Return the eligible row with the highest score; ties go to the arm of lowest `priority`.

    A score of +inf requests a first play. The first such row whose arm has no pending decision is played, so that a
    burst of decisions before any reward does not repeat one arm; if all have one, the row of the arm with the fewest
    pending decisions. A row with a score of NaN is returned at once, for `is_sound` to refuse.
    """
    best, waiting, again, pending, arms = -1, -1, -1, offer.pending, offer.arms
    for row in range(scores.size):
        if not offer.eligible[row]:
            continue
        if scores[row] == np.inf:
            if pending[arms[row]] == 0:
                return row
            if row == offer.retry:
                again = row
            if waiting < 0 or pending[arms[row]] < pending[arms[waiting]]:
                waiting = row
        elif (
            best < 0
            or scores[row] > scores[best]
            or (scores[row] == scores[best] and priority[arms[row]] < priority[arms[best]])
        ):
            best = row
        elif scores[row] != scores[row]:
            return row
    if best < 0:
        return waiting
    return again if again >= 0 else best


def tie_priority(n_arms: int, ties: Any, rng: np.random.Generator) -> np.ndarray:
    """Draw the order that breaks ties between arms: `state.priority` of an index policy.

    `ties` is the compiled keyword: 1 for a random order, 0 for the order of the arms.
    """
    return rng.permutation(n_arms) if ties else np.arange(n_arms)
