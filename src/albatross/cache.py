"""The folder that caches compiled code between processes.

Numba loads the cache with pickle, which can run arbitrary code. The folder must therefore belong to the user, and
nobody else may be able to write to it or to replace it. Without such a folder, nothing is cached.
"""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

try:
    import grp
    import pwd
except ImportError:  # not on Windows
    pass


def private_folder(name: str) -> Path | None:
    """Return a folder inside the cache folder of Albatross, created with mode 700; None if it is not private."""
    place = _folder_of_albatross()
    if place is None:
        return None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        folder = place.parent.resolve()
        if not all(_guarded(parent) for parent in (folder, *folder.parents)):
            return None
        for inner in (place.name, name):
            folder /= inner
            folder.mkdir(mode=0o700, exist_ok=True)
            if not _is_private(folder):
                return None
    except OSError:
        return None
    return folder


def _folder_of_albatross() -> Path | None:
    """Return ALBATROSS_CACHE, or `albatross` in XDG_CACHE_HOME or ~/.cache; None if none of them is absolute."""
    named = os.environ.get("ALBATROSS_CACHE", "")
    if Path(named).is_absolute():
        return Path(named)
    if named:
        warnings.warn(f"ALBATROSS_CACHE must be an absolute path, not {named!r}: it is ignored", stacklevel=2)
    users = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if users.is_absolute():
        return users / "albatross"
    try:
        home = Path.home()
    except RuntimeError:  # no HOME and an unknown user, as in some containers
        return None
    return home / ".cache" / "albatross" if home.is_absolute() else None


def _is_private(folder: Path) -> bool:
    """Return whether this is a real folder of this user that nobody else may write to.

    It may be read-only, as in an image whose cache was filled when it was built.
    """
    if not hasattr(os, "geteuid"):  # Windows, where the folders of a profile are private
        return True
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and _is_own(found)


def is_private_file(path: Path) -> bool:
    """Return whether this is a real file of this user that nobody else may write to.

    A folder that is private now may hold what others put there before.
    """
    if not hasattr(os, "geteuid"):
        return True
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and _is_own(found)


def _is_own(found: os.stat_result) -> bool:
    """Return whether this user owns it and nobody else may write to it."""
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _guarded(folder: Path) -> bool:
    """Return whether only this user and root can replace a folder inside this one."""
    if not hasattr(os, "geteuid"):
        return True
    found = folder.stat()
    if found.st_uid not in (0, os.geteuid()):
        return False
    others = stat.S_IWOTH if _is_own_group(found.st_gid) else stat.S_IWOTH | stat.S_IWGRP
    return not found.st_mode & others or bool(found.st_mode & stat.S_ISVTX)  # sticky bit: only owners may rename


def _is_own_group(gid: int) -> bool:
    """Return whether this is the private group of this user, as many systems create for each user."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return user.pw_gid == gid and group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}
