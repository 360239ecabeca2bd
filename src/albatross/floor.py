"""A floor under all propensities: with a small probability a random arm is played, so that logs can be evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np

from albatross import checks
from albatross.picking import pick_uniformly, uniform_from_normal

NUMBERS = 2  # random numbers per decision: whether to play a random row, and which


def check_floor(floor: Any) -> None:
    """Require a probability, possibly 0, below 1."""
    if floor != 0.0:
        checks.probability("floor", floor)


def with_floor(
    floor: float, z: np.ndarray, contexts: np.ndarray, eligible: np.ndarray, arms: np.ndarray, row: int, kept: Any
) -> tuple[int, Any]:
    """Return the row to play and its choice, with the exact propensity (1 - floor) p + floor / n among n eligible rows.

    p is the policy's own probability of the row. If the policy draws at random, it says p only of its own choice, and
    the propensity of another row is NaN. A row that the policy did not choose is learnt as somebody else's choice.
    """
    uniform = floor / np.count_nonzero(eligible)
    played = int(pick_uniformly(eligible, z[1])[0]) if uniform_from_normal(z[0]) < floor else row
    arm, action, score, width, p, tag = kept
    if played == row:
        return row, (arm, action, score, width, (1.0 - floor) * p + uniform, tag)
    propensity = uniform if p == 1.0 else np.nan
    return played, (int(arms[played]), contexts[played].copy(), 0.0, 0.0, propensity, np.full(tag.size, np.nan))
