"""Read files, plain or gzipped; their first bytes decide, not their names."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

# Longer lines are not rows of a table. DuckDB silently loses rows if a line is longer than its blocks of 8 MB.
LONGEST_LINE = 2**22
_CHUNK = 2**20
_GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"


def is_gzipped(path: str | os.PathLike[str]) -> bool:
    """Return whether the file starts like a gzip file."""
    return _begins(path, _GZIP)


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Return whether the file starts like a Parquet file."""
    return _begins(path, PARQUET)


def fingerprint(path: Path) -> str:
    """Of a file's content: results on other data are other results, whatever the file's name."""
    _check_regular(path)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    r"""Yield the lines of a file with their ends (`\n`, `\r\n` or `\r`), unzipped, without a byte order mark.

    A line of more than `LONGEST_LINE` bytes, or damaged gzip data, raises an error that names the line.
    """
    number, rest = 1, b""
    try:
        with _opened(path) as file:
            while True:
                chunk = file.read1(_CHUNK)  # type: ignore[attr-defined]
                found = (rest + chunk).splitlines(keepends=True)
                # The last line may continue in the next chunk, if only by the \n of an \r\n.
                rest = found.pop() if chunk and found and not found[-1].endswith(b"\n") else b""
                for line in found:
                    if len(line) > LONGEST_LINE:
                        raise _too_long(path, number)
                    yield line
                    number += 1
                if len(rest) > LONGEST_LINE:
                    raise _too_long(path, number)
                if not chunk:
                    return
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{Path(path).name}, line {number}: the gzip data end here: the file is truncated or damaged"
        ) from error


def _too_long(path: str | os.PathLike[str], number: int) -> ValueError:
    return ValueError(
        f"{Path(path).name}, line {number}: the line is longer than {LONGEST_LINE} bytes: this is not a table of rows"
    )


def _opened(path: str | os.PathLike[str]) -> BinaryIO:
    file = cast(BinaryIO, gzip.open(path, "rb") if is_gzipped(path) else open(path, "rb"))  # noqa: SIM115
    try:
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _begins(path: str | os.PathLike[str], magic: bytes) -> bool:
    _check_regular(path)
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic


def _check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse a folder, a pipe or a device: opening a pipe would wait for its writer."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{path} is a folder, a pipe or a device, not a regular file: save the data to a file first")
