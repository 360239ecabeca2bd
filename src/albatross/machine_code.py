"""Machine code on disk: one file per function, types of arguments and sources, shared by later processes.

Numba's own cache watches only the file of the outermost function: after an edit to a policy, it would still run the old
one. Here the name of a file is a hash of everything that its code depends on, so a file is either right or not found.
Code of other versions stays in the folder until it grows too large.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from albatross.cache import is_private_file, private_folder

MOST_BYTES = 500_000_000  # in the folder; past this, files that were not used for longest are removed
not_kept = list[str]()  # files that could not be written
_CHECKSUM = 32  # bytes of a hash before the content of a file
_RECENT = 86_400  # seconds in which a file's last use need not be noted again
_PATIENCE = 2.0  # seconds of compiling before a line says so
_SETTINGS = (
    "BOUNDSCHECK",
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "DISABLE_INTEL_SVML",
    "DEBUGINFO_DEFAULT",
)  # of Numba
_VERSIONS = " ".join(f"{name} {version(name)}" for name in ("numba", "llvmlite", "numpy"))


@cache
def folder() -> Path | None:
    """Return the folder of machine code; None if there is no safe one."""
    return private_folder("machine-code")


class MachineCode(_Cache):
    """The cache of one function, in the form that Numba expects."""

    def __init__(self, function: Callable[..., Any], sources: Callable[[tuple[Any, ...]], str | None]) -> None:
        self._function, self._sources = function, sources

    @property
    def cache_path(self) -> str:
        return str(folder() or "")

    def enable(self) -> None:
        """Required by Numba; the cache is always on."""

    def disable(self) -> None:
        """Required by Numba; the cache is always on."""

    def flush(self) -> None:
        """Required by Numba; a file is never outdated."""

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled function for these types of arguments, or None."""
        target_context.refresh()
        path = self._path(signature, target_context.codegen())
        content = path and _read(path)
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(content)) if content else None
        except Exception:  # code of another build of Numba may raise anything; the function is compiled again
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Save a function that was just compiled."""
        path = self._path(signature, result.codegen)
        if path is not None and not result.library.has_dynamic_globals:
            _write(path, dumps(result._reduce()))

    def _path(self, signature: Any, codegen: Any) -> Path | None:
        place, sources = folder(), self._sources(getattr(signature, "args", signature))
        if place is None or sources is None:
            return None
        name = f"{self._function.__module__}.{self._function.__qualname__}"
        machine = (str(codegen.magic_tuple()), sys.implementation.cache_tag, _VERSIONS)
        parts = (name, str(signature), sources, *machine, [getattr(config, each, None) for each in _SETTINGS])
        return place / f"{name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"


def _read(path: Path) -> bytes | None:
    """Return the content of the file; None if it is damaged, cannot be read, or others may have written it."""
    try:
        if not is_private_file(path):
            return None
        content = path.read_bytes()
        if time.time() - path.stat().st_mtime > _RECENT:
            with contextlib.suppress(OSError):  # of a read-only folder
                os.utime(path)
    except OSError:
        return None
    checksum, content = content[:_CHECKSUM], content[_CHECKSUM:]
    return content if hashlib.sha256(content).digest() == checksum else None


def _write(path: Path, content: bytes) -> None:
    """Write the file completely or not at all; make room first, once per process."""
    _make_room()
    unfinished = path.with_name(f"unfinished-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with open(unfinished, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(hashlib.sha256(content).digest() + content)
        unfinished.replace(path)
    except OSError:
        not_kept.append(path.name)
        with contextlib.suppress(OSError):
            unfinished.unlink()


@cache
def _make_room() -> None:
    """Remove the least recently used files until the folder is small enough.

    A file is read completely before its code runs, so removing it is safe even if it is in use.
    """
    place = folder()
    if place is None:
        return
    files = list[tuple[float, int, str]]()
    with contextlib.suppress(OSError):  # another process may remove a file, or the folder, meanwhile
        for each in os.scandir(place):
            found = each.stat()
            files.append((found.st_mtime, found.st_size, each.path))
    size = sum(size for _, size, _ in files)
    for _, each_size, path in sorted(files):
        if size <= MOST_BYTES:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        size -= each_size


@contextlib.contextmanager
def announced(what: str) -> Iterator[None]:
    """Print one line to the standard error of a terminal if this takes long; ALBATROSS_QUIET silences it."""
    if os.environ.get("ALBATROSS_QUIET") or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    place = folder()
    kept = "in every process, because there is no private folder to keep code in"
    if place is not None and os.access(place, os.W_OK):
        kept = "once"
    text = f"albatross: compiling {what}; this happens {kept} (ALBATROSS_QUIET=1 hides this line)"
    timer = threading.Timer(_PATIENCE, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
