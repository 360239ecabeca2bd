"""Which conditions of the theorems hold for the settings of an experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from albatross import bounds
from albatross.bounds import Condition

THEOREMS = {"mixture": "Theorem 1", "ball": "Theorem 2", "nested": "Theorem 3"}  # by kind of problem


def conditions(kind: str, settings: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions of the theorem about this kind of problem, for these settings."""
    common = {"sigma": settings["noise_sd"], "delta": settings["delta"]}
    if kind == "mixture":
        keys = ("n_arms", "dim", "epoch_length", "norm_bound", "horizon")
        return bounds.check(**common, **{key: settings[key] for key in keys})
    if kind == "ball":
        dim = settings["dim"]
        length = math.sqrt(dim) if settings["exploration"] == "gaussian" else 1.0
        least = {reading: bounds.first_phase(dim, reading=reading, **common) for reading in bounds.READINGS}
        found = [Condition("exploration of norm at most 1", length <= 1.0, length, 1.0)]
    else:
        common |= {"n_arms": settings["n_arms"], "horizon": settings["horizon"]}
        dim = max(settings["dims"])
        least = {each: bounds.first_phase_finite(dim, reading=each, **common) for each in bounds.FINITE_READINGS}
        found = []
    given = settings["first_phase"]
    return [
        Condition(f"T_0, {reading} reading", given >= needed, given, needed) for reading, needed in least.items()
    ] + found
