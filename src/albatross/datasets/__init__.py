"""Data sets: readers of ranking files, logs and ratings, three included data sets, and a generated one.

Readers return NamedTuples of arrays. They need the extra `lab` (duckdb, scikit-learn).
"""

from __future__ import annotations

from albatross.datasets.feedback import from_feedback, to_feedback
from albatross.datasets.generated import generate_ranking
from albatross.datasets.logs import Log, read_log
from albatross.datasets.ranking import Ranking, read_ranking, write_ranking
from albatross.datasets.ratings import Ratings, item_factors, read_ratings
from albatross.datasets.shipped import open_bandit, upworthy, yandex

__all__ = [
    "Log",
    "Ranking",
    "Ratings",
    "from_feedback",
    "generate_ranking",
    "item_factors",
    "open_bandit",
    "read_log",
    "read_ranking",
    "read_ratings",
    "to_feedback",
    "upworthy",
    "write_ranking",
    "yandex",
]
