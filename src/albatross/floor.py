"""A floor under all propensities: with a small probability a random arm is played, so that logs can be evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np

from albatross import checks
from albatross.loops import above_floor


def check_floor(floor: Any) -> None:
    """Require a probability, possibly 0, below 1."""
    if floor != 0.0:
        checks.probability("floor", floor)


def with_floor(
    floor: float, z: np.ndarray, contexts: np.ndarray, eligible: np.ndarray, arms: np.ndarray, row: int, kept: Any
) -> tuple[int, Any]:
    """Return the row to play and its choice, with the exact propensity (1 - floor) p + floor / n among n eligible rows.

    p is the policy's own probability of the row. A row that the policy did not choose is learnt as somebody else's
    choice.
    """
    arm, action, score, width, p, tag = kept
    played, propensity = above_floor(floor, z, eligible, row, p)
    if played == row:
        return row, (arm, action, score, width, propensity, tag)
    return played, (int(arms[played]), contexts[played].copy(), 0.0, 0.0, propensity, np.full(tag.size, np.nan))
