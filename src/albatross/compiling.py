"""How one text of a policy runs stepped and compiled, and where compiled code is kept.

A verb is a `generic`: called from Python it looks up the type of its first argument, called inside compiled code Numba
does.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable
from functools import singledispatch
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, get_type_hints

import numba
from numba.core import types
from numba.core.imputils import impl_ret_borrowed, lower_builtin
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, signature
from numba.extending import overload

from albatross.cache import private_folder

_PACKAGE = str(Path(__file__).parent)
_OPTIONS: Any = {"nogil": True, "error_model": "numpy"}
_NEVER_COMPILED = {"experiments", "report", "cli"}


def _cache_folder() -> str:
    """Where Numba keeps machine code for exactly these sources; empty if there is no safe place for it.

    Numba only watches the file of the outermost function: after an edit to a policy it would go on running the old
    one. So the folder's name is a hash of all sources, and the folders of earlier hashes are deleted.
    """
    package = Path(_PACKAGE)
    sources = sorted(p for p in package.rglob("*.py") if p.relative_to(package).parts[0] not in _NEVER_COMPILED)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    installation = private_folder(hashlib.sha256(_PACKAGE.encode()).hexdigest()[:16])
    if installation is None:
        return ""
    if not (installation / digest).exists():
        for stale in installation.glob("*"):
            shutil.rmtree(stale, ignore_errors=True)
    return str(private_folder(installation.name, digest) or "")


_CACHE_FOLDER = _cache_folder()
_PROCESS = secrets.token_hex(4)


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Compile one of Albatross's own functions, cached on disk in a folder keyed by the sources."""
    config: Any = numba.config
    users_folder, config.CACHE_DIR = config.CACHE_DIR, _CACHE_FOLDER
    try:
        dispatcher = numba.njit(cache=bool(_CACHE_FOLDER), **_OPTIONS, **options)(function)
    finally:
        config.CACHE_DIR = users_folder
    _name_files_apart(dispatcher)
    return dispatcher


def _name_files_apart(dispatcher: Any) -> None:
    """Let no two processes write machine code to the same file.

    Numba numbers the files of a function by what its index knows. Of two processes that compile for different types at
    the same time both may take the same number, and the index then leads to the other one's code.
    """
    files = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if files is not None:
        numbered = files._data_name
        files._data_name = lambda number: f"{_PROCESS}-{os.getpid()}-{numbered(number)}"  # a fork has the same token


def is_ours(parameters: Any) -> bool:
    """Whether a policy and all that it holds are defined in this package."""
    parts = parameters if isinstance(parameters, tuple) else ()
    ours = not hasattr(parameters, "_fields") or type(parameters).__module__.startswith("albatross.")
    return ours and all(is_ours(part) for part in parts)


class entry:
    """A compiled function that Python enters with a policy as its first argument: a loop over rounds, or one step."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._cached = compiled(function)
        self._fresh = numba.njit(**_OPTIONS)(function)

    def __call__(self, *args: Any) -> Any:
        # Somebody else's policy is not cached on disk, because the cache could not see its file change.
        return (self._cached if is_ours(args[0]) else self._fresh)(*args)

    def prepared(self, *examples: Any) -> Any:
        """The function for arguments of exactly these types, which are not looked at again: 0.8 us a call, not 5."""
        function = self._cached if is_ours(examples[0]) else self._fresh
        if not hasattr(function, "compile"):  # Numba is switched off
            return function
        return function.compile(tuple(numba.typeof(example) for example in examples))


def parameters_type(kind: type) -> type:
    """The type that verbs are registered on: a policy declared by `options.policy` stands for its parameters."""
    return getattr(kind, "_parameters_type", kind)


def subject_of(function: Callable[..., Any]) -> type:
    """The type that annotates the first argument of a function, for which it is registered."""
    first = function.__code__.co_varnames[0]
    subject = get_type_hints(function).get(first)
    if not isinstance(subject, type):
        raise TypeError(f"{function.__name__}: annotate {first!r} with the type that it is for")
    return parameters_type(subject)


def python_verb(function: Callable[..., Any]) -> Any:
    """A verb that is not compiled. Otherwise like a `generic`: `function` is what types without their own do."""
    verb: Any = singledispatch(function)
    register = verb.register

    def register_subject(function: Callable[..., Any]) -> Callable[..., Any]:
        return register(subject_of(function), function)

    verb.register = register_subject
    return verb


class generic:
    """A verb: one name, one function per type of the first argument, the same from Python and in compiled code."""

    def __init__(self, name: str, fallback: Callable[..., Any] | None = None) -> None:
        self.__name__ = name
        self._functions: dict[type, Any] = {}
        self._fallback = compiled(fallback) if fallback else None
        # Inlined, a verb costs no counting of references to the arrays of a state.
        options: Any = {**_OPTIONS, "forceinline": True}
        overload(self, jit_options=options, strict=False)(self._implement)

    def __call__(self, subject: Any, *args: Any) -> Any:
        return self._find(type(subject))(subject, *args)

    def register(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register `function` for the type that annotates its first argument."""
        subject = subject_of(function)
        ours = function.__code__.co_filename.startswith(_PACKAGE)
        self._functions[subject] = compiled(function) if ours else numba.njit(**_OPTIONS)(function)
        return function

    def _find(self, subject: type) -> Any:
        """The function for the type, or for the nearest type that it derives from."""
        for kind in subject.__mro__:
            if kind in self._functions:
                return self._functions[kind]
        if self._fallback is None:
            raise TypeError(f"{self.__name__} is not defined for {subject.__name__}: register it")
        return self._fallback

    def has(self, subject: type) -> bool:
        """Whether a function is registered for the type, rather than the fallback."""
        return any(kind in self._functions for kind in subject.__mro__)

    def _implement(self, subject: Any, *args: Any) -> Any:
        return self._find(subject.instance_class).py_func


class reentrant:
    """A compiled helper of policies that hold policies: it may meet itself in one of those, with other types.

    Numba would take that for a recursion that it cannot resolve. This compiles anew wherever it is called from.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._function = function
        overload(self, jit_options=_OPTIONS, strict=False)(lambda *args: function)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


# ------------------------------------------------------- `_replace` of a NamedTuple, which Numba does not know itself


@infer_getattr
class _Replace(AttributeTemplate):
    key = types.BaseNamedTuple

    def resolve__replace(self, before: Any) -> Any:
        kind = before.instance_class
        keywords = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in kind._fields]

        class Replace(AbstractTemplate):
            key = _Replace

            def generic(self, args: Any, changes: Any) -> Any:
                given = [types.unliteral(changes.get(name, types.none)) for name in kind._fields]
                parts = [old if new is types.none else new for old, new in zip(before, given, strict=True)]
                after = types.BaseTuple.from_types(parts, kind)
                return signature(after, *given, recvr=before).replace(pysig=Signature(keywords))

        return types.BoundFunction(Replace, before)


@lower_builtin(_Replace, types.BaseNamedTuple, types.VarArg(types.Any))
def _lower_replace(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    before, *given = args
    parts = [
        builder.extract_value(before, i) if sig.args[1 + i] is types.none else value for i, value in enumerate(given)
    ]
    return impl_ret_borrowed(context, builder, sig.return_type, context.make_tuple(builder, sig.return_type, parts))
