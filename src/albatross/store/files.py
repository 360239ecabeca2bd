"""Write files atomically: a reader sees the old file or the complete new one."""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_ENDING = ".albatross-saving"
TEMPORARY = re.compile(rf"\..*-[0-9a-f]{{8}}{re.escape(_ENDING)}")  # names of temporary files
_LONGEST = 200  # bytes of a file's name in that of a temporary one
_JUST_MADE = 60.0  # seconds during which a new temporary file may not be locked yet


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` once it is written. Symbolic links and file modes are kept.

    If the disk is full, the old file remains. A killed process leaves its temporary file behind; the next writer of the
    same path removes it. A folder, a pipe or a device is refused: it would be replaced by a file, /dev/null as well.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a folder, a pipe or a device, not a regular file: name another one")
    _remove_abandoned(path)
    temporary = path.with_name(f"{_hidden(path)}-{secrets.token_hex(4)}{_ENDING}")
    try:
        with open(temporary, "xb") as file:
            if fcntl:
                with suppress(OSError):  # some file systems have no locks
                    fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(f"no room for {path}: free some space and try again") from None
        if isinstance(error, OSError) and str(error.filename) == str(temporary):  # of which the caller knows nothing
            error.filename = str(path)
        raise


def _hidden(path: Path) -> str:
    """Return how the names of temporary files of `path` begin. File systems take up to 255 bytes."""
    return "." + os.fsencode(path.name)[:_LONGEST].decode(errors="ignore")


def try_lock(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed; return False if another one holds the lock."""
    if fcntl:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # some file systems have no locks
            pass
    return True


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    with replacing(path) as file:
        file.write(text.encode())


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of `path` that no process holds a lock on: their writers are gone."""
    if not fcntl:
        return
    for left in path.parent.glob(f"{glob.escape(_hidden(path))}-*{_ENDING}"):
        with suppress(OSError):
            found = left.lstat()
            if stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > _JUST_MADE:
                with open(left, "rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    left.unlink()
