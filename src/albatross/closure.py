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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import resolve_name
from pathlib import Path

from albatross.constants import Reader, is_ours

_IMPORTED = time.time_ns()
_ROOT = Path(__file__).parent
_NAME = _ROOT.name
_IMPORT = re.compile(rf"^[ \t]*from[ \t]+({_NAME}[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n(]+)", re.MULTILINE)
_PLAIN_IMPORT = re.compile(rf"^[ \t]*import[ \t]+({_NAME}[\w.]*)", re.MULTILINE)
_COMMENT = re.compile(r"#[^\n]*")
_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
# Names of Numba and of this package for code that runs while Numba compiles, and may look at anything.
_COMPILE_TIME = frozenset({"core", "experimental", "extending", "generated_jit", "code_of"})


def closure(module: str) -> tuple[Path, ...]:
    """Return the files of a module and of everything that it depends on, directly or not, sorted.

    >>> [path.name for path in closure("albatross.forks")]
    ['forks.py']
    """
    return tuple(sorted(map(_file, _names(module))))


def digest(*modules: str, reader: type[Reader] = Reader) -> str:
    """Return a hash of all that these modules depend on, of a user's module with what its variables hold.

    ValueError: a value in a user's module cannot be read.
    """
    return hashlib.sha256(repr(sorted(_hashes(_all_names(modules, reader), reader).items())).encode()).hexdigest()[:16]


def hashes_for_code(*modules: str, reader: type[Reader]) -> dict[str, str] | None:
    """Return a hash of each module that code compiled now depends on; None if they cannot say all about it.

    That is so if a file was edited since it was imported, there is no file, or code runs while Numba compiles.
    """
    if not all(is_ours(name) or _has_source(name) for name in modules):  # a notebook may have large variables
        return None
    names = _all_names(modules, reader)
    own = [name for name in names if not is_ours(name)]
    if not all(map(_has_source, own)):
        return None
    files = (path.stat() for path in map(_file, names))
    if any(max(found.st_mtime_ns, found.st_ctime_ns) > _IMPORTED for found in files):
        return None
    return None if any(_used_of_numba(name) & _COMPILE_TIME for name in own) else _hashes(names, reader)


def _hashes(names: frozenset[str], reader: type[Reader]) -> dict[str, str]:
    return {name: _hash_of_ours(name) if is_ours(name) else _hash_of_own(name, reader) for name in names}


def _all_names(modules: Iterable[str], reader: type[Reader]) -> frozenset[str]:
    return frozenset[str]().union(*(_names(module, reader) for module in modules))


def _names(module: str, reader: type[Reader] = Reader) -> frozenset[str]:
    """Return the module and all modules that it depends on."""
    return _names_of_ours(module) if is_ours(module) else _names_of_own(module, reader)


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


def _homes(text: str | bytes, imports: list[tuple[str, dict[str, str]]]) -> set[str]:
    """Return the modules of this package that define the names which a source imports."""
    found: set[str] = set()
    for source, names in imports:
        for name, called in names.items():
            home = _home(source, name)
            used = _attributes(text, called) if _is_package(home) else None
            found |= {home} if used is None else {_home(home, each) for each in used}
    return found


def _attributes(text: str | bytes, name: str) -> set[str] | None:
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


def _names_of_own(module: str, reader: type[Reader]) -> frozenset[str]:
    found: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            for each in _own_dependencies(name, reader):
                if is_ours(each):
                    found |= _names_of_ours(each)
                elif _counts(each, name):
                    left.append(each)
    return frozenset(found)


def _own_dependencies(module: str, reader: type[Reader]) -> set[str]:
    """Return the modules of this package, and all others, that a user's module may import, or uses by its variables.

    No statement need import these.
    """
    met = reader(module, homes_only=True)
    with _readable(module):
        for _ in met.constants():
            pass
    found = {name for name in met.homes if type(name) is str and not is_ours(name)}
    if not _has_source(module):
        return found - {module}
    path = _own_file(module)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    ours: list[tuple[str, dict[str, str]]] = []
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            found |= {part for each in node.names for part in _with_parents(each.name)}
        elif isinstance(node, ast.ImportFrom):
            try:
                source = resolve_name("." * node.level + (node.module or ""), package)
            except ImportError:  # beyond its package: such a line was not run
                continue
            if is_ours(source):
                ours.append((source, {each.name: each.asname or each.name for each in node.names}))
            else:
                found |= {part for each in node.names for part in _with_parents(f"{source}.{each.name}")}
    return (found | _homes(path.read_bytes(), ours)) - {module}


def _tree(module: str) -> ast.Module:
    """Return the parsed source of a user's module; if it was never imported, and cannot be, nothing."""
    path = _own_file(module)
    found = path.stat()
    try:
        return _parsed(path, found.st_mtime_ns, found.st_size)
    except (SyntaxError, ValueError):
        if module in sys.modules:
            raise
        return ast.Module([], [])


@cache
def _parsed(path: Path, modified: int, size: int) -> ast.Module:
    """Return a parsed file, once for each time and size that it had."""
    return ast.parse(path.read_bytes())


@contextmanager
def _readable(module: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a user's class may raise anything
        raise ValueError(f"the values in the module {module} cannot be read: {type(error).__name__}") from error


def neighbours_missed(module: str) -> Iterator[tuple[Path, Path]]:
    """Yield files that a user's module, or one of its neighbours, means to import, and gets another file instead.

    A file of a name that was imported from another folder before is not found any more.
    """
    for name in filter(lambda each: not is_ours(each) and "." not in each and _has_source(each), _names(module)):
        folder = _own_file(name).parent
        for imported in filter(_has_source, _own_dependencies(name, Reader)):
            meant = [folder / f"{imported}.py", folder / imported / "__init__.py"]
            there = [path.resolve() for path in meant if path.is_file()]
            if there and _counts(imported, name) and _own_file(imported) not in there:
                yield there[0], _own_file(imported)


def _used_of_numba(module: str) -> set[str]:
    """Return the names that a source imports of Numba or of this package, and the attributes that it uses of them."""
    nodes = list(ast.walk(_tree(module)))
    found, bound = set[str](), set[str]()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            within = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for each in node.names:
                parts = ".".join([*within, each.name]).split(".")
                if parts[0] in ("numba", _NAME):
                    found.update(parts)
                    bound.add(each.asname or (each.name if within else parts[0]))
    for node in nodes:
        attributes, root = set[str](), node
        while isinstance(root, ast.Attribute):
            attributes.add(root.attr)
            root = root.value
        if isinstance(root, ast.Name) and root.id in bound:
            found |= attributes
    return found


def _with_parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _counts(module: str, importer: str) -> bool:
    """Return whether a module that a user's module uses is of the same package, or not installed."""
    if module.partition(".")[0] in sys.stdlib_module_names:
        return False
    spec = _spec(module)
    if spec is None:
        return module in sys.modules  # or it is no module but a name in one
    if spec.origin is None:
        return module in sys.modules and spec.submodule_search_locations is None  # or it is a folder
    related = module.partition(".")[0] == importer.partition(".")[0]
    return related or not _is_installed(Path(spec.origin).resolve())


def _is_installed(path: Path) -> bool:
    """Return whether a file belongs to Python or to an installed package, which count by their versions."""
    if path.is_relative_to(_STANDARD_LIBRARY) or {"site-packages", "dist-packages"} & set(path.parts):
        return True
    places = {Path(place).resolve() for place in sys.path} & set(path.parents)
    return any(path.relative_to(place).parts[0] in _installed_in(place) for place in places)


@cache
def _installed_in(folder: Path) -> frozenset[str]:
    """Return the names of the files and folders that packages were installed as, into any folder.

    Only a RECORD says so: an egg-info beside sources lists these sources.
    """
    installed = (each for each in metadata.distributions(path=[str(folder)]) if each.read_text("RECORD") is not None)
    return frozenset(file.parts[0] for each in installed for file in each.files or ())


def _own_file(module: str) -> Path:
    """Return the file that a user's module is, or would be, imported from."""
    spec = _spec(module)
    if spec is None or spec.origin is None or not _has_source(module):
        raise FileNotFoundError(f"the module {module} has no source file")
    return Path(spec.origin).resolve()


def _has_source(module: str) -> bool:
    """Return whether a file says what a user's module is.

    It does not for what runs as __main__, in a notebook, from an archive, or after changes by its loader.
    """
    spec = _spec(module)
    return module != "__main__" and spec is not None and type(spec.loader) is SourceFileLoader


def _spec(module: str) -> ModuleSpec | None:
    return getattr(sys.modules[module], "__spec__", None) if module in sys.modules else _found(module)


def _found(module: str) -> ModuleSpec | None:
    """Find a module that was not imported, without running its packages."""
    places, spec = None, None
    for name in _with_parents(module):
        spec = PathFinder.find_spec(name, places)
        places = None if spec is None else spec.submodule_search_locations
        if places is None:
            return spec if name == module else None
    return spec


def _hash_of_own(module: str, reader: type[Reader]) -> str:
    """Return a hash of a user's file, the versions of the packages that it imports, and what its variables hold."""
    tops = {each.partition(".")[0] for each in _own_dependencies(module, reader)} - {_NAME, *sys.stdlib_module_names}
    versions = {top: _version(top) for top in sorted(tops)}
    found = hashlib.sha256(repr((_content(module), versions)).encode())
    with _readable(module):
        for part in reader(module).constants():
            found.update(b"%d:" % len(part))
            found.update(part)
    return found.hexdigest()


def _content(module: str) -> bytes:
    """Return the bytes of the file of a user's module, which may be compiled; none if there is no file."""
    path = Path(getattr(_spec(module), "origin", None) or "")
    return path.read_bytes() if path.is_file() else b""


@cache
def _version(package: str) -> str:
    """Return the version of an installed package, with its record of files: it may be installed again, and changed."""
    try:
        found = metadata.distribution(package)
        return f"{found.version} {hashlib.sha256((found.read_text('RECORD') or '').encode()).hexdigest()}"
    except metadata.PackageNotFoundError:  # of another name than its project, or a module of the user's own
        projects = metadata.packages_distributions().get(package, ())
        return " ".join(sorted(f"{each} {metadata.version(each)}" for each in projects))
