"""Every empirical claim of the paper, and questions of our own, judged on stored results.

Ghosh, Sankararaman and Ramchandran (2021). A claim is a sentence with its source, and a function from stored results to
numbers; the verdict follows from the numbers. Where the default reading departs from the paper's words, its `change`
says how, and what the words give, to the letter, is measured beside it.
"""

from __future__ import annotations

from albatross.report.claims import ball, exploration, finite, norm, rows, scaling, theorems
from albatross.report.claims.engine import Claim, Result, judge
from albatross.store.results import Stored

CLAIMS: tuple[Claim, ...] = (
    *(*norm.CLAIMS, *ball.CLAIMS, *rows.CLAIMS, *finite.CLAIMS, *scaling.CLAIMS),
    *theorems.CLAIMS,
    *exploration.CLAIMS,
)


def measured(stored: Stored) -> list[Result]:
    """All claims, in the order of the paper."""
    return [judge(claim, stored) for claim in CLAIMS]
