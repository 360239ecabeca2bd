"""Policies and environments in a user's own file, written as `my_file.py:MyPolicy`.

Loading a file runs it, as `python my_file.py` would.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from albatross.checks import shown
from albatross.closure import neighbours_missed
from albatross.errors import NotCompiled

_LOADED: dict[Path, ModuleType] = {}


def is_own(name: str) -> bool:
    """Return whether a name in words is that of a class in a file.

    >>> is_own("my_file.py:MyPolicy"), is_own("lints")
    (True, False)
    """
    return name.endswith(".py") or ".py:" in name


def find_class(name: str, kind: str, wanted: Callable[[type], bool]) -> type:
    """Load the file in `my_file.py:MyPolicy` and return the class. `kind` says in errors what it must be.

    The name of the class may be left out if the file has only one of this kind.
    """
    path, _, called = (name, "", "") if name.endswith(".py") else name.rpartition(":")
    module = load(path)
    there = {each.__name__: each for each in _classes_in(module, wanted)}
    if not called and len(there) == 1:
        return next(iter(there.values()))
    found = getattr(module, called, None) if called else None
    if isinstance(found, type) and wanted(found):  # it may be imported from a neighbour
        return found
    what = f"{kind} {shown(called)}" if called else kind
    if not there:
        raise ValueError(f"{path} has no {what}: no class in it has the verbs of one")
    names = ", ".join(f"{path}:{each}" for each in there)
    raise ValueError(f"{path} has no {what}: it has {names}" if called else f"{path} has several: take one of {names}")


def _classes_in(module: ModuleType, wanted: Callable[[type], bool]) -> list[type]:
    """Return the classes of a kind that a file defines, in its order."""
    classes = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    return [each for each in dict.fromkeys(classes) if wanted(each)]


def load(text: str) -> ModuleType:
    """Run a file once per process and return its module. Its neighbours can be imported, as in `python my_file.py`."""
    try:
        path = Path(text).resolve()
        regular = path.is_file()  # reading a pipe would wait for its writer
    except (OSError, ValueError, RuntimeError):  # too long, with a null, or a loop of links
        regular = False
    if not regular:
        raise ValueError(f"there is no file {shown(text)}")
    if path not in _LOADED:
        _LOADED[path] = _run(path)
        try:
            _check_neighbours()
        except BaseException:
            del sys.modules[_LOADED.pop(path).__name__]
            raise
    return _LOADED[path]


def _run(path: Path) -> ModuleType:
    name = "".join(letter if letter.isalnum() else "_" for letter in path.stem)
    if name in sys.modules:
        known = getattr(sys.modules[name], "__file__", None)
        if known is not None and Path(known).resolve() == path:
            return sys.modules[name]
        name += f"_{hashlib.sha256(bytes(path)).hexdigest()[:8]}"
    loader = SourceFileLoader(name, str(path))
    spec = spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # at the end, so that a neighbour cannot stand for an installed package
    sys.modules[name] = module
    try:
        # Not by the loader, which may take an older version of the file from __pycache__.
        exec(loader.source_to_code(loader.get_data(str(path)), str(path)), vars(module))
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt | MemoryError):
            raise
        raise ValueError(f"{path.name} cannot be loaded: {said(error, path)}") from None
    return module


def _check_neighbours() -> None:
    """Refuse files that get the neighbour of another one, because both have the same name."""
    for module in _LOADED.values():
        try:
            missed = list(neighbours_missed(module.__name__))
        except (OSError, SyntaxError, UnicodeDecodeError):  # of a neighbour that is imported later, if ever
            continue
        for meant, got in missed:
            raise ValueError(
                f"{shown(str(meant))} and {shown(str(got))} cannot be used together, because Python imports one module "
                f"{meant.stem!r} only: rename one of them"
            )


def loaded() -> list[str]:
    """Return the names of the modules of all files that were loaded."""
    return sorted(module.__name__ for module in _LOADED.values())


def is_theirs(error: BaseException) -> bool:
    """Return whether an error comes from a loaded file: raised in or below it, or by a check of its verbs."""
    return bool(_LOADED) and (isinstance(error, TypeError) or any(_place(error, path) for path in _LOADED))


def said(error: BaseException, *paths: Path) -> str:
    """Return an error of a user's file in one line, with the place in that file.

    >>> said(ValueError("too large"))
    'ValueError: too large'
    """
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"{error.msg} ({Path(error.filename or '').name}, line {error.lineno})"
    if isinstance(error, NotCompiled):
        return str(error)
    what = " ".join(str(error).split())
    what = f"{type(error).__name__}: {what}" if what else type(error).__name__
    places = filter(None, (_place(error, path) for path in paths or _LOADED))
    return f"{what} ({place})" if (place := next(places, "")) else what


def _place(error: BaseException, path: Path) -> str:
    """Return the innermost line of the file that an error passed."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path.name}, line {lines[-1]}" if lines else ""
