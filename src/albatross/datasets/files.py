"""Files as they come: plain or gzipped, which is told by their first bytes and not by their name."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from pathlib import Path
from typing import BinaryIO, cast

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"

# What reading gzipped data raises when they are cut (EOFError) or damaged.
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)


def is_gzipped(path: str | os.PathLike[str]) -> bool:
    """Whether the file's first bytes are gzip's."""
    return _begins(path, _GZIP)


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether the file's first bytes are Parquet's."""
    return _begins(path, _PARQUET)


def exact_pattern(path: str | os.PathLike[str]) -> str:
    """The path for DuckDB, which takes paths for patterns: absolute, and a pattern that matches no other file."""
    return re.sub(r"([*?\[])", r"[\1]", str(Path(path).absolute()))


def _begins(path: str | os.PathLike[str], magic: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic


def open_lines(path: str | os.PathLike[str]) -> BinaryIO:
    """The file's bytes, gunzipped if need be, without the byte order mark that some editors put first."""
    file = cast(BinaryIO, gzip.open(path, "rb") if is_gzipped(path) else open(path, "rb"))  # noqa: SIM115
    try:
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def damaged_line(path: str | os.PathLike[str]) -> int | None:
    """The line in which gzipped data break off, None if they can be read to their end."""
    line = 1
    try:
        with open_lines(path) as file:
            for _ in file:
                line += 1
    except DAMAGED:
        return line
    return None


def damaged(path: str | os.PathLike[str], line: int) -> ValueError:
    """The error that names where gzipped data break off."""
    return ValueError(f"{Path(path).name}, line {line}: the gzipped data break off here: the file is cut or damaged")
