"""What every policy is held to, ours and a user's own: run by `tests/test_contract.py` and `albatross check-policy`."""

from __future__ import annotations

from albatross.contract.cases import DIM, HORIZON, N_ARMS, SIGMA, Broken, Case, case_of, easy_problem
from albatross.contract.checks import arms_and_scores, checks_for, sentence

__all__ = [
    "DIM",
    "HORIZON",
    "N_ARMS",
    "SIGMA",
    "Broken",
    "Case",
    "arms_and_scores",
    "case_of",
    "checks_for",
    "easy_problem",
    "sentence",
]
