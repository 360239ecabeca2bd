"""The sources that a module depends on, found from its import statements without running any code.

A result or machine code is valid as long as these files are unchanged. A package's `__init__.py` that only passes on a
name does not count: the file that defines the name does. Of a user's own module, the modules count that it imports, or
uses by its variables, from its own package or from outside of installed packages; these count by their versions.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from enum import EnumType
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_IMPORTED = time.time_ns()
_ROOT = Path(__file__).parent
_NAME = _ROOT.name
_IMPORT = re.compile(rf"^[ \t]*from[ \t]+({_NAME}[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n(]+)", re.MULTILINE)
_PLAIN_IMPORT = re.compile(rf"^[ \t]*import[ \t]+({_NAME}[\w.]*)", re.MULTILINE)
_COMMENT = re.compile(r"#[^\n]*")
_INSTALLED = tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")})
_DEEPEST = 5  # lists in lists, and functions in functions, among the globals of a module


def is_ours(module: str) -> bool:
    """Return whether the module is part of this package."""
    return module.partition(".")[0] == _NAME


def closure(module: str) -> tuple[Path, ...]:
    """Return the files of a module and of everything that it depends on, directly or not, sorted.

    >>> [path.name for path in closure("albatross.forks")]
    ['forks.py']
    """
    return tuple(sorted(map(_file, _names(module))))


def digest(*modules: str) -> str:
    """Return a hash of all sources that these modules depend on.

    FileNotFoundError: one of them has no source file. ValueError: a value in a user's module cannot be read.
    """
    names = sorted(set[str]().union(*map(_names, modules)))
    parts = [(name, _hash_of_ours(name) if is_ours(name) else _hash_of_own(name)) for name in names]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def unchanged(*modules: str) -> bool:
    """Return whether these sources, and those that they depend on, are unchanged since this process imported them."""
    files = {path for module in modules for path in closure(module)}
    return all(max(found.st_mtime_ns, found.st_ctime_ns) <= _IMPORTED for found in map(Path.stat, files))


def _names(module: str) -> frozenset[str]:
    """Return the module and all modules that it depends on."""
    return _names_of_ours(module) if is_ours(module) else _names_of_own(module)


# --------------------------------------------------------------------------------------------- modules of this package


@cache
def _names_of_ours(module: str) -> frozenset[str]:
    found: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _dependencies(name)
    return frozenset(found)


@cache
def _hash_of_ours(module: str) -> str:
    return hashlib.sha256(_file(module).read_bytes()).hexdigest()


@cache
def _dependencies(module: str) -> frozenset[str]:
    """Return the modules that define what a module of this package imports."""
    text = _file(module).read_text(encoding="utf-8")
    plain = set(_PLAIN_IMPORT.findall(text))
    return frozenset((plain | _homes(text, _imports(module))) - {module})


@cache
def _imports(module: str) -> list[tuple[str, dict[str, str]]]:
    """Return the module of each `from ... import ...` of this package, and each imported name with its local name."""
    text = _file(module).read_text(encoding="utf-8")
    found = []
    for source, names in _IMPORT.findall(text):
        parts = [part.split() for part in _COMMENT.sub("", names).strip("() \n").split(",")]
        found.append((source, {part[0]: part[-1] for part in parts if part}))
    return found


def _homes(text: str, imports: list[tuple[str, dict[str, str]]]) -> set[str]:
    """Return the modules of this package that define the names which a source imports."""
    found: set[str] = set()
    for source, names in imports:
        for name, called in names.items():
            home = _home(source, name)
            used = _attributes(text, called) if _is_package(home) else None
            found |= {home} if used is None else {_home(home, each) for each in used}
    return found


def _attributes(text: str, name: str) -> set[str] | None:
    """Return the names that a source uses of a package it calls by this name; None if unknown, which may be all."""
    tree = ast.parse(text)
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
    if not is_ours(module):
        return _own_file(module)
    path = _ROOT.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


# ---------------------------------------------------------------------------------- modules of a user's own: not cached


def _names_of_own(module: str) -> frozenset[str]:
    found: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            for each in _own_dependencies(name):
                if is_ours(each):
                    found |= _names_of_ours(each)
                elif _counts(each, name):
                    left.append(each)
    return frozenset(found)


def _own_dependencies(module: str) -> set[str]:
    """Return the modules of this package, and all others, that a user's module may import."""
    path = _own_file(module)
    text = path.read_text(encoding="utf-8")
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    others: set[str] = set()
    ours: list[tuple[str, dict[str, str]]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            others |= {part for each in node.names for part in _with_parents(each.name)}
        elif isinstance(node, ast.ImportFrom):
            try:
                source = resolve_name("." * node.level + (node.module or ""), package)
            except ImportError:  # beyond its package: such a line was not run
                continue
            if is_ours(source):
                ours.append((source, {each.name: each.asname or each.name for each in node.names}))
            else:
                others |= {part for each in node.names for part in _with_parents(f"{source}.{each.name}")}
    return (others | _homes(text, ours) | _used(module)) - {module}


def _used(module: str) -> set[str]:
    """Return the modules that a user's module uses by its variables, other than ours: no statement need import them."""
    found: set[str | None] = set()
    for value in list(vars(sys.modules[module]).values()) if module in sys.modules else ():  # threads may add some
        if issubclass(type(value), ModuleType):
            found.add(_name_of(value))
        elif (function := _function_of(value)) is not None:
            found.add(_home_of(function))
    return {name for name in found if name is not None and not is_ours(name)}


def _name_of(module: ModuleType) -> str | None:
    """Return the name that a module is imported by; None if it cannot be imported, because its user loaded a file."""
    name = object.__getattribute__(module, "__dict__").get("__name__")  # of a lazy module, an attribute may run code
    return name if type(name) is str and sys.modules.get(name) is module else None


def _home_of(function: FunctionType) -> str | None:
    """Return the module whose globals a function uses; None if they are others, as after `exec`."""
    name = function.__globals__.get("__name__")
    home = sys.modules.get(name) if type(name) is str else None
    return name if issubclass(type(home), ModuleType) and vars(home) is function.__globals__ else None


def _with_parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _counts(module: str, importer: str) -> bool:
    """Return whether a module that a user's module imports is a source: of the same package, or not installed."""
    try:
        path = _own_file(module)
    except FileNotFoundError:  # built in, compiled, or no module but a name in one
        return False
    related = module.partition(".")[0] == importer.partition(".")[0]
    return related or not any(path.is_relative_to(folder) for folder in _INSTALLED)


def _own_file(module: str) -> Path:
    """Return the file that a user's module is, or would be, imported from."""
    spec = getattr(sys.modules[module], "__spec__", None) if module in sys.modules else _found(module)
    # What runs as __main__, in a notebook, or after changes by its loader is not what a file says.
    if module == "__main__" or spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
        raise FileNotFoundError(f"the module {module} has no source file")
    return Path(spec.origin).resolve()


def _found(module: str) -> ModuleSpec | None:
    """Find a module that was not imported, without running its packages."""
    places, spec = None, None
    for name in _with_parents(module):
        spec = PathFinder.find_spec(name, places)
        places = None if spec is None else spec.submodule_search_locations
        if places is None:
            return spec if name == module else None
    return spec


def _hash_of_own(module: str) -> str:
    """Return a hash of a user's file, the versions of the packages that it imports, and its constants.

    Compiled code holds numbers and arrays as they are when it is compiled. They may come from elsewhere than the file,
    such as another file, or a program that has set them.
    """
    tops = {each.partition(".")[0] for each in _own_dependencies(module)} - {_NAME, *sys.stdlib_module_names}
    versions = {top: _version(top) for top in sorted(tops)}
    found = hashlib.sha256(repr((_own_file(module).read_bytes(), versions)).encode())
    try:
        for part in _constants(vars(sys.modules[module]) if module in sys.modules else {}):
            found.update(b"%d:" % len(part))
            found.update(part)
    except Exception as error:  # a user's class may raise anything
        raise ValueError(f"the values in the module {module} cannot be read: {type(error).__name__}") from error
    return found.hexdigest()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # of another name than its project, or a module of the user's own
        projects = metadata.packages_distributions().get(package, ())
        return " ".join(sorted(f"{each} {metadata.version(each)}" for each in projects))


def _constants(variables: Mapping[str, Any], depth: int = 0) -> Iterator[Any]:
    """Yield the names of a module's variables, each followed by the bytes of its value."""
    for name, value in sorted(variables.items()):
        if not (name.startswith("__") and name.endswith("__")):
            yield name.encode()
            yield from _held(value, depth)


def _held(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield, as bytes, what compiled code would hold of a value: numbers, texts, arrays, tuples and functions of these.

    A class counts by its name, an enumeration also by its values, and all else by the name of its type; modules that
    can be imported have hashes of their own. Only the type decides, as for Numba: `isinstance` and `hasattr` may run
    code of the value, which may raise.
    """
    kind = type(value)
    if issubclass(kind, np.ndarray | np.generic):
        yield f"{value.dtype} {value.shape}".encode()
        if not value.dtype.hasobject:
            yield np.ascontiguousarray(value).reshape(-1).view(np.uint8)  # no copy: it may be large
    elif issubclass(kind, bool | int | float | complex | str | bytes | None):
        yield repr(value).encode()
    elif issubclass(kind, tuple) or (issubclass(kind, list | dict) and depth < _DEEPEST):
        parts = value.items() if issubclass(kind, dict) else value
        yield b"%d parts" % len(parts)
        for part in parts:
            yield from _held(part, depth + 1)
    elif issubclass(kind, type):
        yield f"class {value.__module__}.{value.__qualname__}".encode()
        if issubclass(kind, EnumType):
            yield from _held({name: member._value_ for name, member in value.__members__.items()}, depth)
    elif issubclass(kind, ModuleType) and _name_of(value) is None and depth < _DEEPEST:
        yield from _constants(vars(value), depth + 1)
    elif issubclass(kind, CodeType):
        yield from _held((value.co_code, value.co_names, value.co_consts), depth)
    elif (function := _function_of(value)) is not None:
        yield from _held_by(function, depth)
    else:
        yield kind.__name__.encode()


def _function_of(value: Any) -> FunctionType | None:
    """Return the Python function of a function, plain or decorated by Numba or this package; None of ours."""
    kind = type(value)
    decorated = kind.__module__.partition(".")[0] in (_NAME, "numba")
    function = getattr(value, "__wrapped__", None) if decorated else value
    return function if type(function) is FunctionType and not is_ours(function.__module__ or "") else None


def _held_by(function: FunctionType, depth: int) -> Iterator[Any]:
    """Yield what a function holds that its file need not show: the values of its factory, defaults, and which it is."""
    if depth == _DEEPEST:  # or it holds itself
        raise ValueError("functions in functions in functions")
    yield from _held(function.__code__, depth)
    for cell in function.__closure__ or ():
        yield from _held(cell.cell_contents, depth + 1)
    yield from _held((function.__defaults__, function.__kwdefaults__), depth)
    if _home_of(function) is None:
        used = {name: function.__globals__.get(name) for name in _names_in(function.__code__)}
        yield from _constants(used, depth + 1)


def _names_in(code: CodeType) -> set[str]:
    """Return the names of globals, and of attributes, that code uses."""
    return set(code.co_names).union(*(_names_in(part) for part in code.co_consts if type(part) is CodeType))
