"""The sources that a module depends on, found from its import statements without running any code.

A result or machine code is valid as long as these files are unchanged. A package's `__init__.py` that only passes on a
name does not count: the file that defines the name does.
"""

from __future__ import annotations

import ast
import hashlib
import re
import time
from functools import cache
from pathlib import Path

_IMPORTED = time.time_ns()
_ROOT = Path(__file__).parent
_NAME = _ROOT.name
_IMPORT = re.compile(rf"^[ \t]*from[ \t]+({_NAME}[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n(]+)", re.MULTILINE)
_PLAIN_IMPORT = re.compile(rf"^[ \t]*import[ \t]+({_NAME}[\w.]*)", re.MULTILINE)
_COMMENT = re.compile(r"#[^\n]*")


@cache
def closure(module: str) -> tuple[Path, ...]:
    """Return the files of a module and of everything that it imports from this package, directly or not, sorted.

    >>> [path.name for path in closure("albatross.forks")]
    ['forks.py']
    """
    found: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _dependencies(name)
    return tuple(sorted(_file(name) for name in found))


@cache
def digest(*modules: str) -> str:
    """Return a hash of all sources that these modules depend on, and of their places in the package."""
    files = sorted({path for module in modules for path in closure(module)})
    content = b"".join(f"{path.relative_to(_ROOT)}\0".encode() + path.read_bytes() + b"\0" for path in files)
    return hashlib.sha256(content).hexdigest()[:16]


def unchanged(*modules: str) -> bool:
    """Return whether these sources, and those that they depend on, are unchanged since this process imported them."""
    files = {path for module in modules for path in closure(module)}
    return all(max(found.st_mtime_ns, found.st_ctime_ns) <= _IMPORTED for found in map(Path.stat, files))


@cache
def _dependencies(module: str) -> frozenset[str]:
    """Return the modules that define what a module imports."""
    text = _file(module).read_text(encoding="utf-8")
    found = set(_PLAIN_IMPORT.findall(text))
    for source, names in _imports(module):
        for name, called in names.items():
            home = _home(source, name)
            used = _attributes(module, called) if _is_package(home) else None
            found |= {home} if used is None else {_home(home, each) for each in used}
    return frozenset(found - {module})


@cache
def _imports(module: str) -> list[tuple[str, dict[str, str]]]:
    """Return the module of each `from ... import ...` of this package, and each imported name with its local name."""
    text = _file(module).read_text(encoding="utf-8")
    found = []
    for source, names in _IMPORT.findall(text):
        parts = [part.split() for part in _COMMENT.sub("", names).strip("() \n").split(",")]
        found.append((source, {part[0]: part[-1] for part in parts if part}))
    return found


def _attributes(module: str, name: str) -> set[str] | None:
    """Return the names that a module uses of a package it calls by this name; None if unknown, which may be all."""
    tree = ast.parse(_file(module).read_text(encoding="utf-8"))
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    own = [node for node in attributes if isinstance(node.value, ast.Name) and node.value.id == name]
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))
    return {node.attr for node in own} if own and len(own) == uses else None


@cache
def _home(module: str, name: str) -> str:
    """Return the module that defines a name: `name` may be a module itself, or be passed on by a package."""
    if _is_module(f"{module}.{name}"):
        return f"{module}.{name}"
    if _is_package(module):
        for source, names in _imports(module):
            if name in names and source != module:
                return _home(source, name)
    return module


def _is_package(module: str) -> bool:
    return _file(module).name == "__init__.py"


def _is_module(name: str) -> bool:
    path = _ROOT.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _file(module: str) -> Path:
    path = _ROOT.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
