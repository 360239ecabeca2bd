"""Data sets included in the package, so that everything runs without downloads.

| function        | content                                                         | rows       | size   | licence    |
|-----------------|-----------------------------------------------------------------|------------|--------|------------|
| `yandex()`      | web pages rated for 117 queries, 50 features (Yandex, CatBoost) | 2,000      | 106 kB | Apache 2.0 |
| `open_bandit()` | clicks in a fashion shop, two campaigns, two policies (ZOZO)    | 4 x 10,000 | 677 kB | Apache 2.0 |
| `upworthy()`    | click rates of headlines in 3,602 randomised tests (Upworthy)   | 16,340     | 1.3 MB | CC BY 4.0  |

Each folder under `data` has an ATTRIBUTION file with the source of the data and how they were reduced.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from albatross import checks
from albatross.datasets.logs import Log, read_log
from albatross.datasets.ranking import Ranking, read_ranking
from albatross.datasets.tables import Table

_DATA = Path(__file__).parent / "data"


def yandex() -> Ranking:
    """Query-document pairs of a web search, with graded relevance from 0 to 0.61: a problem with small theta.

    >>> yandex().features.shape
    (2000, 50)
    """
    folder = _DATA / "ltr-yandex-querywise"
    parts = [read_ranking(folder / f"{part}.svm.txt.gz") for part in ("train", "test")]  # no query occurs in both
    return Ranking(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def open_bandit(*, campaign: str = "all", policy: str = "random") -> Log:
    """Recommendations in a fashion shop, by a uniform policy or by Thompson sampling, with clicks as rewards.

    About 40 of 10,000 rows are clicks: enough to check computations, not to distinguish policies.

    >>> log = open_bandit()
    >>> log.n_actions, log.features.shape, float(log.rewards.sum())
    (80, (10000, 20), 38.0)
    """
    checks.one_of("campaign", campaign, ("all", "women"))
    checks.one_of("policy", policy, ("random", "bts"))
    folder = _DATA / "logged-open-bandit"
    return read_log(folder / f"{campaign}_{policy}.csv.gz", items=folder / f"{campaign}_{policy}_items.csv.gz")


def upworthy() -> Ranking:
    """Headlines with 50 features of their words, rated by click rate; the query is the randomised test.

    >>> ranking = upworthy()
    >>> ranking.features.shape, round(float(ranking.ratings.mean()), 4), len(np.unique(ranking.queries))
    ((16340, 50), 0.0174, 3602)
    """
    folder = _DATA / "news-upworthy-headlines"
    with np.load(folder / "headline_svd50.npz") as file:
        features = file["embedding"].astype(np.float64)
    tests, impressions, clicks = Table(folder / "arms.csv.gz").numbers(["test_id", "impressions", "clicks"]).T
    return Ranking(features, clicks / impressions, tests.astype(np.int64))
