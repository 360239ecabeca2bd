"""What the variables of a user's module hold, as bytes to be hashed.

Compiled code holds numbers, texts, arrays and functions as they are when it is compiled, and a result is computed from
what its module holds. Both may come from elsewhere than the file: from another file, the environment, or a program that
has set them.

Only the type of a value decides what is read of it, as for Numba: `isinstance` and `hasattr` may run code of the value,
which may raise. A value of a type that is not known here is left to the caller, who knows what its bytes are for.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import EnumType
from types import (
    BuiltinFunctionType,
    CodeType,
    EllipsisType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

_NAME = __name__.partition(".")[0]
_PLAIN = (bool, int, float, complex, str, bytes, NoneType, EllipsisType)
_DEEPEST = 5  # lists in lists, and modules in modules that cannot be imported
_OF_EVERY_MODULE = frozenset(vars(ModuleType("any"))) | {
    *("__annotations__", "__builtins__", "__cached__", "__file__", "__path__", "__warningregistry__")
}
_OF_A_CLASS = (property, classmethod, staticmethod)

_OF_THE_PROCESS: dict[str, Any] = {
    "environ": os.environ,
    "argv": sys.argv,
    "path": sys.path,
    "modules": sys.modules,
    "the generator of random": getattr(random.random, "__self__", None),
    "the generator of numpy.random": getattr(np.random.normal, "__self__", None),
}
_NAMELESS = WeakKeyDictionary[ModuleType, list[Callable[..., Any]]]()


def name_in_the_process(value: Any) -> str | None:
    """Return the name of what differs in every process, and is none of a file's values; None of anything else."""
    return next((name for name, each in _OF_THE_PROCESS.items() if value is each), None)


def note(function: Callable[..., Any]) -> None:
    """Count a function among what its module holds, even if no variable names it: verbs may all be called `_`."""
    module = sys.modules.get(function.__module__)
    if module is not None and not is_ours(function.__module__):
        _NAMELESS.setdefault(module, []).append(function)


def is_ours(module: str) -> bool:
    """Return whether the module is part of this package."""
    return module.partition(".")[0] == _NAME


def variables_of(name: str) -> dict[str, Any]:
    """Return the variables of a module; none if it was not imported."""
    return dict(vars(sys.modules[name])) if name in sys.modules else {}  # a copy: threads may add some


class Reader:
    """Reads what the variables of a module hold, and which modules that comes from.

    Subclasses say what counts of a value of a type that is not known here, and whether to look into lists.
    """

    into_lists = True  # also into dicts and sets

    def __init__(self, module: str, *, homes_only: bool = False) -> None:
        self._module, self._homes_only = module, homes_only
        self.homes: set[str | None] = set()  # modules met so far
        self._met: dict[int, int] = {}  # functions and classes, by their order: they may hold themselves

    def other(self, value: Any) -> bytes:
        """Return what to hash of a value of an unknown type, beside its type; a ValueError refuses it."""
        return b""

    def _other(self, value: Any) -> bytes:
        return b"" if self._homes_only else self.other(value)

    def constants(self) -> Iterator[Any]:
        """Yield the names of the variables, each followed by what it holds, and the functions without a name."""
        yield from self.variables(variables_of(self._module))
        if self._module in sys.modules:
            yield from self.held(tuple(_NAMELESS.get(sys.modules[self._module], ())))

    def variables(self, variables: Mapping[str, Any], depth: int = 0) -> Iterator[Any]:
        """Yield the names of variables, each followed by what it holds."""
        for name, value in sorted(variables.items()):
            if name not in _OF_EVERY_MODULE:
                yield name.encode("utf-8", "surrogatepass")
                yield from self.held(value, depth)

    def held(self, value: Any, depth: int = 0) -> Iterator[Any]:
        """Yield what a value holds. Two values that compiled code could tell apart yield different bytes."""
        kind = type(value)
        self._meet(kind)
        yield f"{kind.__module__}.{kind.__qualname__}".encode()
        if (called := name_in_the_process(value)) is not None:
            yield called.encode()
            return
        if issubclass(kind, np.ndarray | np.generic):
            yield f"{value.dtype} {value.shape}".encode()
            if value.dtype.hasobject:
                yield self._other(value)
            else:
                yield np.ascontiguousarray(value).reshape(-1).view(np.uint8)  # no copy: it may be large
            if issubclass(kind, np.ma.MaskedArray):
                yield from self.held(np.ma.getmaskarray(value))
        elif issubclass(type(kind), EnumType):  # before numbers: a member may be one
            yield from self.held(value._value_, depth)
        elif issubclass(kind, _PLAIN):
            plain: Any = next(each for each in _PLAIN if issubclass(kind, each))
            yield plain.__repr__(value).encode("utf-8", "surrogatepass")
        elif issubclass(kind, slice | range):
            yield from self.held((value.start, value.stop, value.step), depth)
        elif issubclass(kind, np.dtype) or _is_type_of_numba(kind):
            yield repr(value).encode()
        elif issubclass(kind, set | list | dict) and not self.into_lists:
            pass
        elif issubclass(kind, set | frozenset) and depth < _DEEPEST:
            yield b"%d parts" % len(value)
            yield from sorted(b"".join(map(bytes, self.held(part, depth + 1))) for part in value)
        elif issubclass(kind, tuple) or (issubclass(kind, list | dict) and depth < _DEEPEST):
            parts = value.items() if issubclass(kind, dict) else value
            yield f"{len(parts)} parts {getattr(kind, '_fields', '')}".encode()
            for part in parts:
                yield from self.held(part, depth + 1)
        elif issubclass(kind, type):
            yield from self._held_by_class(value, depth)
        elif issubclass(kind, ModuleType):
            self.homes.add(name := name_of(value))
            if name is None and depth < _DEEPEST:  # others have hashes of their own
                yield from self.variables(vars(value), depth + 1)
        elif issubclass(kind, CodeType):
            yield from self.held((value.co_code, value.co_names, value.co_consts), depth)
        elif issubclass(kind, MappingProxyType):
            yield from self.held(dict(value), depth)
        elif issubclass(kind, _OF_A_CLASS):
            yield from self.held(value.fget if issubclass(kind, property) else value.__func__, depth)
        elif (function := function_of(value)) is not None:
            yield from self._held_by_function(function, depth)
            yield repr(_options(value)).encode()
        elif _goes_by_its_name(kind):
            yield f"{getattr(value, '__module__', None)}.{value.__name__}".encode()  # SciPy's ufuncs have no module
            if kind is MethodType:
                yield from self.held(value.__self__, depth)
        else:
            yield self._other(value)

    def _meet(self, kind: type) -> None:
        """Note the module of a class. Those that Cython makes for its own types are no modules of anybody."""
        module = sys.modules.get(kind.__module__) if type(kind.__module__) is str else None
        if issubclass(type(module), ModuleType) and vars(module).get("__spec__") is not None:
            self.homes.add(kind.__module__)

    def _held_by_class(self, kind: Any, depth: int) -> Iterator[Any]:
        """Yield the name of a class; of an enumeration its values, of a class of the module its other attributes."""
        self._meet(kind)
        yield f"{kind.__module__}.{kind.__qualname__}".encode()
        if issubclass(type(kind), EnumType):
            yield from self.held(tuple((name, member._value_) for name, member in kind.__members__.items()), depth)
        elif kind.__module__ == self._module and self._is_new(kind):
            yield from self.variables({name: value for name, value in vars(kind).items() if not name.startswith("__")})

    def _is_new(self, value: Any) -> bool:
        n_met = len(self._met)
        self._met.setdefault(id(value), n_met)
        return len(self._met) > n_met

    def _held_by_function(self, function: FunctionType, depth: int) -> Iterator[Any]:
        """Yield what a function holds that its file need not show: which it is, defaults, and values of its factory."""
        if not self._is_new(function):
            yield b"%d" % self._met[id(function)]
            return
        yield from self.held(function.__code__, depth)
        for cell in function.__closure__ or ():
            yield from self.held(cell.cell_contents, depth + 1)
        yield from self.held((function.__defaults__, function.__kwdefaults__, function.__dict__), depth)
        self.homes.add(home := home_of(function))
        if home is None:
            used = {name: function.__globals__.get(name) for name in _names_in(function.__code__)}
            yield from self.variables(used, depth + 1)


def name_of(module: ModuleType) -> str | None:
    """Return the name that a module is imported by; None if it cannot be imported, because its user loaded a file."""
    name = object.__getattribute__(module, "__dict__").get("__name__")  # of a lazy module, an attribute may run code
    return name if type(name) is str and sys.modules.get(name) is module else None


def home_of(function: FunctionType) -> str | None:
    """Return the module whose globals a function uses; None if they are others, as after `exec`."""
    name = function.__globals__.get("__name__")
    home = sys.modules.get(name) if type(name) is str else None
    return name if issubclass(type(home), ModuleType) and vars(home) is function.__globals__ else None


def function_of(value: Any) -> FunctionType | None:
    """Return the Python function of a function, plain or decorated by Numba or this package; None of ours."""
    function = getattr(value, "__wrapped__", None) if _is_decorated(type(value)) else value
    return function if type(function) is FunctionType and not is_ours(function.__module__ or "") else None


def _is_decorated(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in (_NAME, "numba")


def _options(value: Any) -> list[tuple[str, str]]:
    """Return how a decorated function is compiled, such as `fastmath=True`."""
    if not _is_decorated(type(value)):
        return []
    options = getattr(value, "_options", None) or getattr(value, "targetoptions", None) or {}
    return sorted(
        (name, repr(sorted(option) if type(option) is set else option))
        for name, option in (options | getattr(value, "locals", {})).items()
    )


def _is_type_of_numba(kind: type) -> bool:
    return any((each.__module__, each.__name__) == ("numba.core.types.abstract", "Type") for each in kind.__mro__)


def _goes_by_its_name(kind: type) -> bool:
    """Return whether this is a type of functions of Python, NumPy or this package, or of verbs."""
    compiling = f"{_NAME}.compiling"
    names = ("numpy", "_ArrayFunctionDispatcher"), (compiling, "compiled"), (compiling, "generic")
    return (
        kind in (BuiltinFunctionType, FunctionType, MethodType, np.ufunc) or (kind.__module__, kind.__name__) in names
    )


def _names_in(code: CodeType) -> set[str]:
    """Return the names of globals, and of attributes, that code uses."""
    return set(code.co_names).union(*(_names_in(part) for part in code.co_consts if type(part) is CodeType))
