"""Bounds of the paper's theorems and lemmas, the conditions under which they hold, and what holds in their place.

The paper leaves some constants unnamed. Here they are 1 (C) or the smallest value allowed (C_1 = 9), so a curve with
such a constant is meaningful only up to a factor: draw it as "shape only".
"""

from __future__ import annotations

from albatross.bounds.boxes import oful, oful_plus, sup_lin_rel
from albatross.bounds.dim import (
    FINITE_READINGS,
    READINGS,
    explored,
    feature_bound,
    first_phase,
    first_phase_finite,
    lemma_2,
    lemma_3,
    theorem_2,
    theorem_3,
)
from albatross.bounds.norm import Condition, check, least_epoch_length, norm_contraction, norm_noise, theorem_1
from albatross.bounds.proved import centred_radius, least_spread, rounds_to_spread, samples_needed, start_width

__all__ = [
    "FINITE_READINGS",
    "READINGS",
    "Condition",
    "centred_radius",
    "check",
    "explored",
    "feature_bound",
    "first_phase",
    "first_phase_finite",
    "least_epoch_length",
    "least_spread",
    "lemma_2",
    "lemma_3",
    "norm_contraction",
    "norm_noise",
    "oful",
    "oful_plus",
    "rounds_to_spread",
    "samples_needed",
    "start_width",
    "sup_lin_rel",
    "theorem_1",
    "theorem_2",
    "theorem_3",
]
