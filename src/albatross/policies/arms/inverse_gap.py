"""Inverse gap weighting: every arm is played with a known probability, less the further its index is below the best.

Foster and Rakhlin (2020), here with the gaps of an index instead of estimated means. With n eligible rows and a
sharpness eta, a row that is `gap` below the best has the probability floor / n + (1 - floor) / (n + eta gap); the best
row has the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from albatross.compiling import generic
from albatross.picking import uniform_from_normal


class PlayBest(NamedTuple):
    """No randomness: the best row is played."""

    rho: float


class InverseGap(NamedTuple):
    """Rows are drawn at random."""

    rho: float  # share of exploration
    floor: float  # probability of a row drawn uniformly


# drawn(explore, row, scores, eligible, pace, noise) -> the row to play instead of the best one, and its probability;
# the sharpness eta is n pace / rho, in which a gap of 1 / pace is hardly one
drawn = generic("drawn")


@drawn.register
def drawn_best(explore: PlayBest, row, scores, eligible, pace, noise):
    return row, 1.0


@drawn.register
def drawn_by_gap(explore: InverseGap, row, scores, eligible, pace, noise):
    n = np.sum(eligible)
    eta = n * pace / explore.rho
    left, rest, played, propensity = uniform_from_normal(noise[0]), 1.0, row, 0.0
    for other in range(scores.size):
        if eligible[other] and other != row:
            p = explore.floor / n + (1.0 - explore.floor) / (n + eta * (scores[row] - scores[other]))
            rest -= p
            if played == row:
                if left < p:
                    played, propensity = other, p
                left -= p
    return played, (rest if played == row else propensity)
