"""Ratings of items by users, and the item factors that explain them."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from albatross import checks
from albatross.checks import shortened
from albatross.datasets.tables import UNNAMED, Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_HEADLESS = ("user", "item", "rating", "timestamp")
_USER = ("user", "userid", "user_id")
_ITEM = ("item", "itemid", "item_id", "movieid", "movie_id")
_RATING = ("rating", "score")
_TIME = ("timestamp", "datetime", "date", "time")  # the first of them that there is
_NEVER_ITEMS = _TIME[:2]
_FIRST_DATE = 10_000  # no rating is as large
_MOST_CELLS = 1_000_000  # up to this size, the full SVD is fast and exact


class Ratings(NamedTuple):
    """Ratings for one bandit per user: items are arms with mean and factors, ratings are rewards."""

    matrix: csr_array  # (n_users, n_items); stored entries are ratings, including 0
    users: np.ndarray  # (n_users,) names in the file
    items: np.ndarray  # (n_items,) names in the file
    item_means: np.ndarray  # (n_items,)
    factors: np.ndarray  # (n_items, rank)


def read_ratings(path: str | os.PathLike[str], *, rank: int = 10) -> Ratings:
    """Read ratings as lines user, item, rating (MovieLens), or as one line per user with one column per item (Jester).

    Fields may be separated by commas, tabs, blanks or `::`; Parquet works too. Lines of three or four fields need no
    header. If a user rated an item twice, the last rating counts, by a column `timestamp` or `date` if there is one.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "u.data")
    ...     _ = path.write_text("1 20 5\\n1 30 1\\n2 20 1\\n2 30 5\\n")
    ...     ratings = read_ratings(path, rank=1)
    >>> ratings.matrix.toarray().tolist(), ratings.items.tolist(), ratings.factors.round(9).tolist()
    ([[5.0, 1.0], [1.0, 5.0]], [20, 30], [[1.0], [-1.0]])
    """
    checks.whole("rank", rank, least=1)
    table = Table(path, headless=_HEADLESS, titles=(*_USER, *_ITEM, *_RATING, *_TIME))
    user, item, rating = (_named(table, names) for names in (_USER, _ITEM, _RATING))
    if user is None or (item is None) != (rating is None):
        raise ValueError(
            f"{table.name} needs columns user, item and rating, or user and one column per item: "
            f"it has {', '.join(map(shortened, table.names[:8]))}"
        )
    if item is None or rating is None:
        matrix, users, items = _wide(table, user)
    else:
        matrix, users, items = _long(table, user, item, rating)
    try:
        means, factors = item_factors(matrix, rank=rank)
    except ValueError as error:
        raise ValueError(f"{table.name}: {error}") from error
    return Ratings(matrix, users, items, means, factors)


def item_factors(matrix: csr_array, *, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean ratings (n_items,) and factors (n_items, rank) of the items, from a truncated SVD of the centred matrix.

    Ratings are centred by item and then by user; missing ratings count as 0. Factors are orthogonal and have mean
    square 1 over the items, so the norm of a user's theta is in the unit of the ratings.

    >>> from scipy.sparse import csr_array
    >>> means, factors = item_factors(csr_array([[5.0, 1.0], [1.0, 5.0]]), rank=1)
    >>> means.tolist(), factors.round(9).tolist()
    ([3.0, 3.0], [[1.0], [-1.0]])
    """
    from scipy.sparse.linalg import svds

    n_users, n_items = matrix.shape
    if rank > min(n_users, n_items):
        raise ValueError(
            f"rank={rank}, but {n_users} users and {n_items} items have at most {min(n_users, n_items)} factors"
        )
    centred = matrix.copy()
    rows = np.repeat(np.arange(n_users), np.diff(matrix.indptr))
    means = _group_means(matrix.data, matrix.indices, n_items)
    centred.data = matrix.data - means[matrix.indices]
    centred.data -= _group_means(centred.data, rows, n_users)[rows]
    least = 1e-9 * np.abs(matrix.data).max(initial=0.0) * np.sqrt(matrix.nnz)  # a smaller factor is rounding
    if np.linalg.norm(centred.data) <= least:
        raise ValueError("the ratings have no factors: after centring by item and user, they are all equal")
    if n_users * n_items <= _MOST_CELLS or rank == min(n_users, n_items):  # svds cannot compute all factors
        _, strengths, basis = np.linalg.svd(centred.toarray(), full_matrices=False)
    else:
        start = np.random.default_rng(0).standard_normal(min(n_users, n_items))  # the same factors in every call
        _, strengths, basis = svds(centred, k=rank, v0=start)
    order = np.argsort(-strengths, kind="stable")[:rank]
    n_found = int((strengths[order] > least).sum())
    if n_found < rank:
        raise ValueError(f"rank={rank}, but after centring by item and user, the ratings have only {n_found} factors")
    factors = basis[order].T * np.sqrt(n_items)
    peaks = factors[np.argmax(np.abs(factors), axis=0), np.arange(rank)]
    # Choose the sign that makes the largest entry positive.
    return means, np.ascontiguousarray(factors * np.sign(peaks))


def _group_means(values: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
    return np.bincount(groups, values, n_groups) / np.maximum(np.bincount(groups, minlength=n_groups), 1)


def _named(table: Table, names: tuple[str, ...]) -> str | None:
    found = [name for name in table.names if name.lower() in names]
    if len(found) > 1:
        raise ValueError(f"{table.name} has the columns {' and '.join(found)}, which mean the same: leave out one")
    return found[0] if found else None


def _long(table: Table, user: str, item: str, rating: str) -> tuple[csr_array, np.ndarray, np.ndarray]:
    values = table.numbers([rating])[:, 0]
    (users, rows), (items, columns) = table.labels(user), table.labels(item)
    _refuse_infinite(table, values)
    kept = ~np.isnan(values) & (rows >= 0) & (columns >= 0)
    if not kept.all():
        _warn_dropped(table, int((~kept).sum()), "without a user, an item or a rating")
    in_time = _in_time(table)
    chosen = in_time[kept[in_time]]
    return _stored(table, rows[chosen], columns[chosen], values[chosen], (len(users), len(items))), users, items


def _in_time(table: Table) -> np.ndarray:
    """Return the rows in the order of their times, first those without one; of the file if there are no times."""
    times = {name.lower(): name for name in table.names if name.lower() in _TIME}
    if not times:
        return np.arange(table.n_rows)
    first = next(each for each in _TIME if each in times)
    of_day = [times["time"]] if first == "date" and "time" in times else []
    return table.order(times[first], *of_day, missing_first=True)


def _wide(table: Table, user: str) -> tuple[csr_array, np.ndarray, np.ndarray]:
    others = [name for name in table.names if name != user and not name.startswith(UNNAMED)]
    items, texts = table.numeric_and_text(others)
    times = [name for name in items if name.lower() in _NEVER_ITEMS or _has_dates(table, name)]
    items = [name for name in items if name not in times]
    if not items:
        raise ValueError(f"{table.name} has no column of ratings besides {user!r}")
    if times:
        warnings.warn(f"{table.name}: left out {' and '.join(times)}: times, not items", stacklevel=3)
    if texts:
        warnings.warn(
            f"{table.name}: left out {len(texts)} column(s) without numbers: {', '.join(map(shortened, texts[:8]))}",
            stacklevel=3,
        )
    values = table.numbers(items)
    _refuse_infinite(table, np.nanmax(np.abs(values), axis=1, initial=0.0, where=~np.isnan(values)))
    users, places = table.labels(user)
    if len(users) < table.n_rows or (places < 0).any():
        raise ValueError(f"{table.name} must have one row per user, each with a different {user}")
    rows, columns = np.nonzero(~np.isnan(values))
    matrix = _stored(table, places[rows], columns, values[rows, columns], (len(users), len(items)))
    return matrix, users, np.array(items, dtype=object)


def _has_dates(table: Table, name: str) -> bool:
    """Return whether a column called as a time has dates such as 20200131, or seconds: a magazine may be called so."""
    return name.lower() in _TIME and bool(np.nanmin(table.numbers([name]), initial=np.inf) >= _FIRST_DATE)


def _stored(
    table: Table, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]
) -> csr_array:
    """Build the matrix; if a user rated an item twice, keep the last rating."""
    from scipy.sparse import csr_array

    order = np.lexsort((columns, rows))  # stable: later ratings of the same item come later
    rows, columns, values = rows[order], columns[order], values[order]
    last = np.append((rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1]), True)[: len(rows)]
    if not last.all():
        _warn_dropped(table, int((~last).sum()), "rated again later by the same user")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[last], minlength=shape[0]))])
    return csr_array((values[last], columns[last].astype(np.int64), starts), shape=shape)


def _refuse_infinite(table: Table, values: np.ndarray) -> None:
    wrong = np.abs(values) > checks.LARGEST
    if wrong.any():
        raise ValueError(
            f"{table.place(int(np.argmax(wrong)))}: a rating is {values[np.argmax(wrong)]:g}, not a finite number"
        )


def _warn_dropped(table: Table, n_dropped: int, why: str) -> None:
    warnings.warn(f"{table.name}: dropped {n_dropped} of {table.n_rows} ratings: {why}", stacklevel=5)
