"""Linear algebra that learns one row at a time: least squares, and V's eigenbasis for actions on the ball."""

from __future__ import annotations

from albatross.linalg.eigen import optimistic_action, optimistic_coordinates, rank_one_update
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
    "Ridge",
    "absorb",
    "bias_estimates",
    "combined",
    "dot",
    "forget",
    "joint",
    "learn",
    "leverages",
    "norm",
    "optimistic_action",
    "optimistic_coordinates",
    "perturb",
    "predict",
    "rank_one_update",
    "refit",
    "ridge",
    "row_norms",
    "row_squares",
    "shifted",
    "times",
    "tridiagonal",
]
