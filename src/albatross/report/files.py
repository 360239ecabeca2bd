"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from albatross.datasets.extras import ctrl_c


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write in its place, renamed at the end: a full disk or a killed run leaves the old one or none."""
    aside = path.with_name(f".{os.getpid()}-{path.name}")  # another run may write the same
    try:
        yield aside
        os.replace(aside, path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(f"no room for {path}: make some, and the same command goes on where it stopped") from None
        raise
    finally:
        aside.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """A text."""
    with whole(path) as aside:
        aside.write_text(text, encoding="utf-8")


@contextmanager
def in_words(path: Path) -> Iterator[None]:
    """What goes wrong between a database and this Parquet file is told in words."""
    try:
        with ctrl_c():
            yield
    except duckdb.Error as error:
        what = str(error).partition("\n")[0]
        raise OSError(
            f"{path} cannot be read or written ({what}): see that there is room, or remove its folder"
        ) from None
