"""Data frames in and out, without depending on any of their libraries."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from albatross.checks import shown
from albatross.errors import missing_extra

_LIBRARIES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def is_frame(value: Any) -> bool:
    """Return whether it is a table with named columns: a data frame of any library, or a NumPy record array.

    >>> is_frame(np.array([(1, 0.5)], dtype=[("age", int), ("rate", float)])), is_frame([{"age": 1}])
    (True, False)
    """
    if isinstance(value, np.ndarray):
        return value.dtype.names is not None
    if len(getattr(value, "shape", (0, 0))) != 2:  # a single column speaks the protocols too
        return False
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a frame by name, as lists of Python values; a missing value is None or NaN.

    >>> columns_of(np.array([(1, 0.5), (2, 1.0)], dtype=[("age", int), ("rate", float)]))
    {'age': [1, 2], 'rate': [0.5, 1.0]}
    """
    if isinstance(frame, np.ndarray):
        return {name: frame[name].tolist() for name in frame.dtype.names or ()}
    names = list(map(str, getattr(frame, "columns", ())))
    if any(names.count(name) > 1 for name in names):  # pandas allows it, and DuckDB would rename them
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the frame has two columns called {shown(twice)}")
    own = next((_OWN[kind] for each in type(frame).__mro__ if (kind := _library_and_name(each)) in _OWN), None)
    if own is not None:
        return own(frame)
    if not hasattr(frame, "__arrow_c_stream__"):
        return columns_of(_from_interchange(frame))
    try:
        import duckdb
    except ImportError:
        raise ImportError(missing_extra("duckdb")) from None
    with duckdb.connect() as connection:
        connection.register("frame", _Stream(frame))
        found = connection.execute("SELECT * FROM frame")
        names = [column[0] for column in found.description]
        rows = found.fetchall()
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {name: [] for name in names}


def _columns_of_pandas(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a pandas frame; a missing value of any kind is None."""
    found = {}
    for name, column in frame.items():
        gone = column.isna()
        found[str(name)] = (column.astype(object).where(~gone, None) if gone.any() else column).tolist()
    return found


def _columns_of_polars(frame: Any) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = frame.to_dict(as_series=False)
    return columns


# Frames that give their columns themselves. A pandas frame has no Arrow stream without pyarrow, and DuckDB takes a
# hundred times as long for the few rows of an offer.
_OWN = {("pandas", "DataFrame"): _columns_of_pandas, ("polars", "DataFrame"): _columns_of_polars}


def _library_and_name(kind: type) -> tuple[str, str]:
    return kind.__module__.partition(".")[0], kind.__name__


class _Stream:
    """Nothing but the Arrow stream of a frame, which DuckDB reads without the frame's library."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


def _from_interchange(frame: Any) -> Any:
    """Convert a frame that only speaks the dataframe interchange protocol, with a library that reads it."""
    for reader in ("pandas.api.interchange", "pyarrow.interchange"):
        if find_spec(reader.partition(".")[0]):
            return import_module(reader).from_dataframe(frame)
    raise ImportError(f"reading a {type(frame).__name__} needs pandas or pyarrow: install one of them")


def as_frame(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """Return columns as a data frame of `library`: "pandas", "polars" or "pyarrow"; by default the first installed."""
    if library is not None and library not in _LIBRARIES:
        raise ValueError(f"library must be one of {', '.join(map(repr, _LIBRARIES))}, not {shown(library)}")
    installed = next((name for name in ([library] if library else _LIBRARIES) if find_spec(name)), None)
    if installed is None:
        raise ImportError(f"a data frame needs {library or 'pandas, polars or pyarrow'}: install it with pip")
    return getattr(import_module(installed), _LIBRARIES[installed])(dict(columns))
