"""Helpers for DuckDB queries of files: exact paths, and Ctrl-C as a KeyboardInterrupt."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def absolute_name(path: str | os.PathLike[str]) -> str:
    """Return the absolute path as text for DuckDB, which accepts only UTF-8."""
    name = str(Path(path).absolute())
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} is not UTF-8: rename it, or make a link to it with another name") from None
    return name


def exact_pattern(path: str | os.PathLike[str]) -> str:
    """Return the absolute path for DuckDB, which reads paths as patterns; this one matches no other file."""
    name = absolute_name(path)
    pattern = re.sub(r"([*?\[])", r"[\1]", name)
    if pattern != name and "\\" in name and os.sep == "/":  # DuckDB takes it for a separator
        raise ValueError(f"{name} has a backslash and one of *?[: rename it, or make a link to it with another name")
    return pattern


@contextmanager
def ctrl_c() -> Iterator[None]:
    """Turn DuckDB's RuntimeError after Ctrl-C in a query back into a KeyboardInterrupt."""
    try:
        yield
    except RuntimeError as error:
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise
