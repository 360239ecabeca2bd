"""Generate a ranking set like the paper's, for tests and for users without the real one."""

from __future__ import annotations

import numpy as np

from albatross import checks
from albatross.datasets.ranking import Ranking

# As in samples of the Yahoo! Learning to Rank Challenge: the share of each rating 0..4, values of two decimals up to 1
# that are mostly absent, a few directions with most of the variance, and ratings with a third of their variance between
# queries and a third linear in the columns.
_SHARES = (0.226, 0.389, 0.294, 0.070, 0.021)
_TOPICS = 12
_QUERY_SHARE = 0.6
_RATING_SHARE = 0.45
_BLOCK = 4096  # rows at a time, so that a large set takes no memory beyond its table


def generate_ranking(n_rows: int = 20_000, n_columns: int = 50, seed: int = 0) -> Ranking:
    """Generate rated rows, about 20 per query, whose features and ratings depend on a few hidden topics.

    >>> ranking = generate_ranking(1_000, 5, seed=0)
    >>> ranking.features.shape, np.bincount(ranking.ratings.astype(int)).tolist()
    ((1000, 5), [190, 383, 323, 78, 26])
    """
    from scipy.special import ndtr, ndtri

    checks.whole("n_rows", n_rows, least=1)
    checks.whole("n_columns", n_columns, least=1)
    rng = np.random.default_rng(seed)
    queries = np.repeat(np.arange(1, n_rows // 5 + 2), rng.integers(5, 36, n_rows // 5 + 1))[:n_rows]
    weights = np.arange(1, _TOPICS + 1) ** -0.8  # the first topics matter most
    loadings = _unit_columns(rng.standard_normal((_TOPICS, n_columns)) * weights[:, None])
    explained = rng.uniform(0.5, 0.99, n_columns)  # share of a column's variance explained by topics
    present = rng.uniform(0.1, 1.0, n_columns) ** 1.5
    taste = _unit_columns(rng.standard_normal((_TOPICS, 1)) * weights[:, None])[:, 0]
    of_query = rng.standard_normal((int(queries[-1]) + 1, _TOPICS))
    cuts = ndtri(np.cumsum(_SHARES)[:-1])
    features, ratings = np.empty((n_rows, n_columns)), np.empty(n_rows)
    for start in range(0, n_rows, _BLOCK):
        rows = slice(start, min(start + _BLOCK, n_rows))
        own = rng.standard_normal((rows.stop - start, _TOPICS))
        topics = np.sqrt(_QUERY_SHARE) * of_query[queries[rows]] + np.sqrt(1 - _QUERY_SHARE) * own
        noise = rng.standard_normal((len(own), n_columns))
        level = ndtr(np.sqrt(explained) * (topics @ loadings) + np.sqrt(1 - explained) * noise)  # uniform on (0, 1)
        value = np.ceil(100 * (level - (1 - present)) / present) / 100
        features[rows] = np.clip(value, 0.0, 1.0)
        judged = np.sqrt(_RATING_SHARE) * (topics @ taste) + np.sqrt(1 - _RATING_SHARE) * rng.standard_normal(len(own))
        ratings[rows] = np.searchsorted(cuts, judged)
    return Ranking(features, ratings, queries)


def _unit_columns(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.linalg.norm(matrix, axis=0)
