"""DuckDB's queries of files: a path names one file, and Ctrl-C stays Ctrl-C."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def exact_pattern(path: str | os.PathLike[str]) -> str:
    """The path for DuckDB, which takes paths for patterns: absolute, and this one matches no other file."""
    return re.sub(r"([*?\[])", r"[\1]", str(Path(path).absolute()))


@contextmanager
def ctrl_c() -> Iterator[None]:
    """Ctrl-C in a query, which DuckDB turns into a RuntimeError, is a KeyboardInterrupt again."""
    try:
        yield
    except RuntimeError as error:
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise
