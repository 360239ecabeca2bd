"""Tables of equally long columns, as Parquet."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from albatross.queries import absolute_name, ctrl_c, exact_pattern
from albatross.store.files import replacing


def write_table(columns: Mapping[str, np.ndarray], path: Path) -> None:
    """Write a table of equally long columns."""
    with _in_words(path), duckdb.connect() as connection, replacing(path) as file:
        connection.register("columns", dict(columns))
        place = absolute_name(file.name).replace("'", "''")
        connection.execute(f"COPY (SELECT * FROM columns) TO '{place}' (FORMAT parquet, USE_TMP_FILE false)")


def read_table(path: Path, sql: str = "SELECT * FROM rows", *, name: str = "rows") -> dict[str, np.ndarray]:
    """Return the columns of a query of a table, which the query calls `name`."""
    with _in_words(path):
        database = _database(os.getpid(), threading.get_ident())
        rows = database.read_parquet(exact_pattern(path), hive_partitioning=False)
        return dict(rows.query(name, sql).fetchnumpy())


@lru_cache(maxsize=4)
def _database(process: int, thread: int) -> Any:
    """Return a connection, made once: connecting takes longer than a query.

    Threads cannot share one, and in a forked process the connection of its parent waits for threads that are not there.
    """
    return duckdb.connect()


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Raise DuckDB's errors as one sentence."""
    try:
        with ctrl_c():
            yield
    except duckdb.Error as error:
        what = str(error).partition("\n")[0]
        raise OSError(
            f"{path} cannot be read or written ({what}): see that there is room, or remove its folder"
        ) from None
