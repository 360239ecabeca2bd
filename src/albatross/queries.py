"""Helpers for DuckDB queries of files: exact paths, and Ctrl-C as a KeyboardInterrupt."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def exact_pattern(path: str | os.PathLike[str]) -> str:
    """Return an absolute path as a pattern for DuckDB that matches no other file."""
    return re.sub(r"([*?\[])", r"[\1]", str(Path(path).absolute()))


@contextmanager
def ctrl_c() -> Iterator[None]:
    """Turn DuckDB's RuntimeError after Ctrl-C in a query back into a KeyboardInterrupt."""
    try:
        yield
    except RuntimeError as error:
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise
