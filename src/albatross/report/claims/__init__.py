"""Every empirical claim of the paper, and questions of our own, judged on stored results.

Ghosh, Sankararaman and Ramchandran (2021). A claim is a sentence with its source, and a function from stored results to
numbers; the verdict follows from the numbers. If the default reading departs from the paper's words, its `change` says
how, and the literal reading is measured as well.
"""

from __future__ import annotations

from albatross.report.claims import ball, drift, exploration, finite, flock, news, norm, rivals, rows, scaling, theorems
from albatross.report.claims.engine import Claim, Result, judge
from albatross.store.results import Stored

CLAIMS: tuple[Claim, ...] = (
    *norm.CLAIMS,
    *rivals.CLAIMS,
    *ball.CLAIMS,
    *rows.CLAIMS,
    *finite.CLAIMS,
    *scaling.CLAIMS,
    *news.CLAIMS,
    *flock.CLAIMS,
    *theorems.CLAIMS,
    *exploration.CLAIMS,
    *drift.CLAIMS,
)


def measured(stored: Stored) -> list[Result]:
    """Judge all claims, in the order of the paper."""
    return [judge(claim, stored) for claim in CLAIMS]
