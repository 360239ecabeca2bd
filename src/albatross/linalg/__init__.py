"""Linear algebra that learns one row at a time: least squares, the lasso, and V's eigenbasis for the ball."""

from __future__ import annotations

from albatross.linalg.eigen import optimistic_action, optimistic_coordinates, rank_one_update
from albatross.linalg.ellipsoid import centred, estimate_norm, exact_leverages, unplayed, widest
from albatross.linalg.lasso import descend, least_squares_on
from albatross.linalg.moments import Moments, means_under, moments, rebuild, record, reduced, settle
from albatross.linalg.ridge import (
    Joint,
    Ridge,
    absorb,
    bias_estimates,
    combined,
    dot,
    forget,
    joint,
    learn,
    leverages,
    norm,
    perturb,
    predict,
    refit,
    ridge,
    row_norms,
    row_squares,
    times,
)
from albatross.linalg.tridiagonal import shifted, tridiagonal

__all__ = [
    "Joint",
    "Moments",
    "Ridge",
    "absorb",
    "bias_estimates",
    "centred",
    "combined",
    "descend",
    "dot",
    "estimate_norm",
    "exact_leverages",
    "forget",
    "joint",
    "learn",
    "least_squares_on",
    "leverages",
    "means_under",
    "moments",
    "norm",
    "optimistic_action",
    "optimistic_coordinates",
    "perturb",
    "predict",
    "rank_one_update",
    "rebuild",
    "record",
    "reduced",
    "refit",
    "ridge",
    "row_norms",
    "row_squares",
    "settle",
    "shifted",
    "times",
    "tridiagonal",
    "unplayed",
    "widest",
]
