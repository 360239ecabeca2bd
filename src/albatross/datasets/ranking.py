"""Ranking sets: rows of features with a rating and a query, in svmlight or LETOR format.

A line reads `2 qid:10 1:0.5 7:1.25 # comment`: rating, query, then column:value in ascending order of columns; missing
columns are 0. The Yahoo! Learning to Rank Challenge, LETOR, MSLR-WEB and Istella use this format.
"""

from __future__ import annotations

import gzip
import math
import os
import warnings
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.datasets.extras import load
from albatross.datasets.files import lines
from albatross.store.files import replacing

_MOST_CELLS = 2**30  # 8 GB of floats: beyond that, a column number is probably a mistake


class Ranking(NamedTuple):
    """Rated rows, which `environments.Clusters` turns into arms."""

    features: np.ndarray  # (n, p)
    ratings: np.ndarray  # (n,)
    queries: np.ndarray  # (n,) int64; all 0 if the file has no queries


def read_ranking(path: str | os.PathLike[str]) -> Ranking:
    """Read a plain or gzipped svmlight file as a dense table; columns count from 1, or from 0 if column 0 occurs.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "set2.test.txt")
    ...     _ = path.write_text("2 qid:10 1:0.5 3:1.25 # a page\\n0 qid:11 2:1e-1\\n")
    ...     ranking = read_ranking(path)
    >>> ranking.features.tolist(), ranking.ratings.tolist(), ranking.queries.tolist()
    ([[0.5, 0.0, 1.25], [0.0, 0.1, 0.0]], [2.0, 0.0], [10, 11])
    """
    # scikit-learn reads fast but does not report the line of an error, nor lines without a query. A file that it
    # refuses, or that looks wrong, is read again, slowly, to find the line.
    load_svmlight_file = load("sklearn.datasets", package="scikit-learn").load_svmlight_file
    rows = _Rows(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file: refused below
            table, ratings = load_svmlight_file(rows, zero_based="auto")
    except (ValueError, OverflowError, MemoryError) as error:
        _raise_for_first_bad_line(path)
        raise ValueError(f"{Path(path).name}: {error}") from error
    n_rows = len(ratings)
    queries = np.array(rows.queries, np.int64)
    if queries.size not in (0, n_rows) or not (_fine(ratings) and _fine(table.data)):
        _raise_for_first_bad_line(path)
    if not n_rows:
        raise ValueError(f"{Path(path).name} has no rows: a line should read like '2 qid:10 1:0.5 7:1.25'")
    if not table.nnz:
        raise ValueError(
            f"{Path(path).name} has {n_rows} rows but no features: a line should read like '2 qid:10 1:0.5'"
        )
    if n_rows * table.shape[1] > _MOST_CELLS:
        raise ValueError(
            f"{Path(path).name} has {n_rows} rows and columns up to {table.shape[1]}: this is not a table of numbers "
            f"(at most {_MOST_CELLS} cells)"
        )
    what = f"{Path(path).name} with {n_rows} rows and columns up to {table.shape[1]}"
    checks.fits_in_memory(what, 8 * n_rows * table.shape[1], "take fewer")
    return Ranking(table.toarray(), ratings, queries if queries.size else np.zeros(n_rows, np.int64))


def write_ranking(path: str | os.PathLike[str], ranking: Ranking) -> None:
    """Write a file that `read_ranking` reads back exactly; gzipped if its name ends in .gz.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.txt")
    ...     write_ranking(path, Ranking(np.array([[0.5, 0.0, 2.0]]), np.array([3.0]), np.array([7])))
    ...     path.read_text()
    '3 qid:7 1:0.5 3:2\\n'
    """
    features = checks.finite_array("features", ranking.features, (None, None))
    ratings = checks.finite_array("ratings", ranking.ratings, (len(features),))
    queries = checks.numbers("queries", ranking.queries)
    if queries.shape != ratings.shape or queries.dtype.kind not in "iu":
        raise ValueError(f"queries must be {len(features)} whole numbers, got shape {queries.shape} of {queries.dtype}")
    written = features != 0.0
    written[:1, -1:] = True  # so that the last column is there even if it is 0 in every row
    with replacing(Path(path)) as plain, ExitStack() as stack:
        file = stack.enter_context(gzip.open(plain, "wb")) if os.fspath(path).endswith(".gz") else plain
        for row, kept, rating, query in zip(features, written, ratings.tolist(), queries.tolist(), strict=True):
            pairs = zip((np.flatnonzero(kept) + 1).tolist(), row[kept].tolist(), strict=True)
            line = f"{_short(rating)} qid:{query} {' '.join([f'{j}:{_short(value)}' for j, value in pairs])}\n"
            file.write(line.encode())


def _short(value: float) -> str:
    text = repr(value)
    return text[:-2] if text.endswith(".0") else text


def _fine(values: np.ndarray) -> bool:
    return bool((np.abs(values) <= checks.LARGEST).all())


class _Rows:
    """The file as a readable object for scikit-learn, which iterates over its lines.

    Queries are removed from the lines here, because scikit-learn's time for them grows with the square of the rows.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.queries = array("q")

    def read(self) -> bytes:
        raise NotImplementedError  # scikit-learn checks that it exists

    def __iter__(self) -> Iterator[bytes]:
        for line in lines(self.path):
            row = line.partition(b"#")[0]
            if b"_" in row:  # 1_0 is 10 in Python
                raise ValueError("an underscore in a number")
            rating, *rest = row.split(maxsplit=2) or [b""]
            if rest and rest[0].startswith(b"qid"):
                if b"qid" in b"".join(rest[1:]):  # which scikit-learn would ignore
                    raise ValueError("a second query")
                self.queries.append(int(rest[0].removeprefix(b"qid:")))
                row = b" ".join([rating, *rest[1:]])
            yield row


def _raise_for_first_bad_line(path: str | os.PathLike[str]) -> None:
    """Raise an error for the first invalid line, if there is one."""
    first: tuple[int, bool] | None = None  # the first row's line and whether it has a query
    for number, line in enumerate(lines(path), start=1):
        fields = line.partition(b"#")[0].split()
        if not fields:
            continue
        wrong = _what_is_wrong(fields)
        has_query = len(fields) > 1 and fields[1].startswith(b"qid:")
        first = first or (number, has_query)
        if wrong is None and has_query != first[1]:
            here, there = ("a query", "none") if has_query else ("no query", "one")
            wrong = f"has {here} (qid), but line {first[0]} has {there}"
        if wrong is not None:
            raise ValueError(f"{Path(path).name}, line {number}: {wrong}")


def _what_is_wrong(fields: list[bytes]) -> str | None:
    """Describe the first error in the fields of a line; None if there is none."""
    rating, *rest = fields
    if not math.isfinite(_number(rating)):
        return f"the rating {_text(rating)} is not a number"
    if rest and rest[0].startswith(b"qid:"):
        query = rest.pop(0)[len(b"qid:") :]
        if not _is_whole(query):
            return f"the query {_text(query)} is not a whole number"
    last = -1
    for field in rest:
        column, colon, value = field.partition(b":")
        if column == b"qid":
            return "the query (qid) must follow the rating"
        if not colon or not _is_whole(column) or not 0 <= int(column) < 2**31:
            return f"{_text(field)} is not column:value"
        if not math.isfinite(_number(value)):
            return f"column {int(column)} has the value {_text(value)}, which is not a number"
        if int(column) == last:
            return f"column {last} is given twice"
        if int(column) < last:
            return f"column {int(column)} follows column {last}: columns must be in ascending order"
        last = int(column)
    return None


def _number(field: bytes) -> float:
    """Parse a number; NaN if the field is not a number, or too large to be squared."""
    try:
        value = math.nan if b"_" in field else float(field)
    except ValueError:
        return math.nan
    return value if abs(value) <= checks.LARGEST else math.nan


def _is_whole(field: bytes) -> bool:
    try:
        return b"_" not in field and -(2**63) <= int(field) < 2**63
    except ValueError:
        return False


def _text(field: bytes) -> str:
    return checks.shown(field.decode("utf-8", "replace"))
