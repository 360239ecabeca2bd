"""A floor under all propensities: with a small probability a random arm is played, so that logs can be evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np

from albatross import checks
from albatross.loops import above_floor, count_choices
from albatross.protocol import Offer, refuse_choice


def check_floor(floor: Any) -> None:
    """Require a probability, possibly 0, below 1."""
    checks.share("floor", floor)


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


def estimated_propensity(
    parameters: Any, state: Any, offer: Offer, noise_size: int, floor: float, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the probability (R,) of each row being chosen, from draws of the policy's randomness; nothing changes."""
    draws = draws if noise_size else 1
    checks.fits_in_memory(f"draws={draws} of the policy's noise", 8 * draws * noise_size, "take fewer")
    noise, counts = rng.standard_normal((draws, noise_size)), np.zeros(offer.eligible.size)
    wrong = count_choices(parameters, state, offer, noise, counts)
    if wrong >= 0:
        refuse_choice(parameters, state, offer, noise[wrong])
    return (1.0 - floor) * counts / draws + floor * offer.eligible / np.count_nonzero(offer.eligible)
