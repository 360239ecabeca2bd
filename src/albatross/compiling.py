"""One source of a policy for single steps and for compiled loops.

`compiled` decorates functions; a verb is a `generic`, with one function per type of its first argument. Both can be
called from Python, where Numba compiles them together with everything they call, and from compiled code.
"""

from __future__ import annotations

import functools
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from pathlib import Path
from traceback import walk_tb
from typing import Any, get_type_hints

import numba
import numpy as np
from numba.core import errors as numba_errors
from numba.core import types
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
from numba.core.imputils import impl_ret_borrowed, lower_builtin
from numba.core.ir import Loc
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, signature
from numba.extending import overload

from albatross.closure import hashes_for_code
from albatross.constants import Reader, is_ours, note, variables_of
from albatross.errors import NotCompiled
from albatross.inlining import InnerCompiler, OuterCompiler, VerbCompiler
from albatross.machine_code import MachineCode

# Bytecode that Numba does not know is an error of its own kind since Numba 0.61.
_NOT_COMPILED = tuple(
    getattr(numba_errors, name) for name in ("NumbaError", "UnsupportedBytecodeError") if hasattr(numba_errors, name)
)
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_STEP = re.compile(r"(\w+: )?Failed in nopython mode pipeline.*")
_NAME_OF_ERROR = re.compile(r"^(TypingError|LoweringError|UnsupportedError|Numba\w+): ")
_PLACE = re.compile(r'(?:, defined at|Raised from|\bat) (\S[^\n]*?) \((\d+)\)|File "(.*)", line (\d+)')
_OPTIONS: Any = {"nogil": True, "error_model": "numpy"}
_REGISTERED: dict[type, set[str]] = defaultdict(set)  # the modules that register verbs for a type
_FIRST_COMPILED: dict[str, str] = {}  # hashes of users' modules


def code_of(function: Callable[..., Any], **options: Any) -> Any:
    """Decorate what returns, for types of arguments, the Python code that compiled code runs for `function`."""
    inside: Any = {**_OPTIONS, "pipeline_class": InnerCompiler, **options}
    return overload(function, jit_options=inside, strict=False)


class compiled:
    """A function that Numba compiles: separately if Python calls it, into its caller if compiled code does.

    Machine code is kept on disk, for exactly these sources (`machine_code.py`).
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._options = function, {**_OPTIONS, **options}
        code_of(self, **self._options)(lambda *args, **kwargs: function)

    @functools.cached_property
    def _dispatcher(self) -> Any:
        """The dispatcher that Python calls."""
        dispatcher = numba.njit(pipeline_class=OuterCompiler, **self._options)(self.py_func)
        if hasattr(dispatcher, "_cache"):  # unless Numba is switched off
            dispatcher._cache = MachineCode(self.py_func, self._sources)
        return dispatcher

    def _sources(self, arguments: tuple[Any, ...]) -> str | None:
        """Return a hash of all sources that determine the code for arguments of these types; None if some are unknown.

        These are the closures of the function's module and of the modules that define the types, or verbs for them.
        """
        modules, kinds = {self.py_func.__module__}, list(_classes_in(arguments))
        for kind in kinds:
            if not _can_be_found(kind):  # by a later process, which loads the code
                return None
            modules.add(kind.__module__)
            modules.update(*(_REGISTERED.get(parent, ()) for parent in kind.__mro__))
        try:
            found = hashes_for_code(*modules, reader=_Frozen)
            if found is None or not _as_when_first_compiled(found):
                return None
            names = [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds]  # of which Numba says the last part
            return repr((names, sorted(found.items())))
        except (OSError, SyntaxError, ValueError):  # no sources, as in a notebook, or values that cannot be read
            return None

    def __call__(self, *args: Any) -> Any:
        """Call it from Python. It returns arrays, numbers and plain tuples only.

        For a NamedTuple, Numba calls Python to find its class; if a Ctrl-C comes just then, the process crashes.
        """
        try:
            return self._dispatcher(*args)
        except SystemError as error:
            raise first_cause(error) from None
        except Exception as error:
            if (cause := _cause(error)) is None:
                raise
            raise NotCompiled(cause) from None

    def prepared(self, *examples: Any) -> Any:
        """Return the function for exactly these types, without looking at types again: 0.8 us a call, not 5."""
        if not hasattr(self._dispatcher, "compile"):  # Numba is switched off
            return self._dispatcher
        try:
            return self._dispatcher.compile(tuple(numba.typeof(example) for example in examples))
        except Exception as error:
            if (cause := _cause(error)) is None:
                raise
            raise NotCompiled(cause) from None


def first_cause(error: SystemError) -> BaseException:
    """Return what a signal handler raised, such as KeyboardInterrupt, while Numba returned arrays to Python.

    Numba runs a Python function then, goes on after its error, and Python reports a SystemError instead.
    """
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return cause


def numba_cause(text: str) -> str:
    """Cut an error of Numba, often a hundred lines, to its innermost cause, with file and line if Numba says them.

    >>> said = "Failed in nopython mode pipeline (step: nopython frontend)\\nUnknown attribute 'cuonts' of type State"
    >>> numba_cause(said + "\\n\\nDuring: typing of get attribute at /home/me/mine.py (23)")
    "Numba cannot compile this: Unknown attribute 'cuonts' of type State (mine.py, line 23)"
    """
    innermost = _ESCAPE.sub("", text).rpartition("raised a specific error:")[2].partition("During: Pass")[0]
    lines = [line.strip() for line in innermost.splitlines()]
    lines = [line for line in lines if line and not _STEP.fullmatch(line)]
    what = lines[0] if lines else "it does not say why"
    if what.endswith("found for signature:"):
        call = next((line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")), "")
        what = f"it has no implementation of {call}"
    what = _NAME_OF_ERROR.sub("", _PLACE.sub("", what)).removesuffix("Raised from None").rstrip(" ,.")
    place = _PLACE.search(innermost)
    where = f" ({Path(place[1] or place[3]).name}, line {place[2] or place[4]})" if place else ""
    return f"Numba cannot compile this: {what}{where}"


def _cause(error: Exception) -> str | None:
    """Return why Numba could not compile; None if the error is another one.

    Some mistakes, such as a misspelt function of NumPy, are errors of Python in Numba, at a line that it is typing.
    """
    if isinstance(error, _NOT_COMPILED):
        return numba_cause(str(error))
    methods = (frame.f_locals.get("self") for frame, _ in walk_tb(error.__traceback__))
    lines = [place for each in methods if isinstance(place := getattr(each, "loc", None), Loc)]
    if not lines or isinstance(error, MemoryError):
        return None
    return f"Numba cannot compile this: {error} ({Path(lines[-1].filename).name}, line {lines[-1].line})"


# Numba has types for these, but none can be a constant: arrays of objects (others are read), and generators.
_NEVER_FROZEN = (np.ndarray, np.generic, np.random.Generator, np.random.BitGenerator)


class _Frozen(Reader):
    """Reads what compiled code may hold. It holds no lists."""

    into_lists = False

    def other(self, value: Any) -> bytes:
        """Refuse a value of a type that Numba knows; of others, the type is enough."""
        if issubclass(type(value), _NEVER_FROZEN):
            return b""
        try:
            is_known = type(value).__module__.partition(".")[0] == "numba" or isinstance(
                numba.typeof(value), types.Type
            )
        except Exception:  # Numba asks the value for attributes, which may raise anything
            is_known = False
        if not is_known:
            return b""
        raise ValueError(f"what compiled code holds of a {type(value).__name__} is not known")


def _as_when_first_compiled(found: dict[str, str]) -> bool:
    """Return whether the user's modules hold what they held when code of theirs was first compiled in this process.

    Helpers are compiled once per process, with the values of that moment, and are then part of whatever calls them.
    """
    own = {name: value for name, value in found.items() if not is_ours(name)}
    for name in own.keys() - _FIRST_COMPILED.keys():
        _FIRST_COMPILED[name] = "" if any(map(_is_compiled, variables_of(name).values())) else own[name]
    return all(_FIRST_COMPILED[name] == value for name, value in own.items())


def _is_compiled(value: Any) -> bool:
    """Return whether this is a function that Numba has compiled, with values of then, or keeps on disk by itself."""
    if not issubclass(type(value), Dispatcher):
        return False
    return bool(value.overloads) or not isinstance(value._cache, NullCache)


def _can_be_found(kind: type) -> bool:
    """Return whether a class is where its name says: not inside of a function, and not replaced since."""
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind


def _classes_in(arguments: Any) -> Iterator[type]:
    """Return the classes of all NamedTuples and enumerations in the types of arguments, in order."""
    for each in arguments:
        if isinstance(each, types.BaseTuple):
            yield from _classes_in(each)
        if hasattr(each, "instance_class"):
            yield each.instance_class


def all_ours(parameters: Any) -> bool:
    """Return whether a policy, with everything in it, is defined in this package."""
    parts = parameters if isinstance(parameters, tuple) else ()
    ours = not hasattr(parameters, "_fields") or is_ours(type(parameters).__module__)
    return ours and all(all_ours(part) for part in parts)


def parameters_type(kind: type) -> type:
    """Return the type that verbs are registered on: the parameters of a policy declared by `options.policy`."""
    return getattr(kind, "_parameters_type", kind)


def subject_of(function: Callable[..., Any]) -> type:
    """Return the type that a function is registered for: the annotation of its first argument."""
    first = function.__code__.co_varnames[0]
    subject = get_type_hints(function).get(first)
    if not isinstance(subject, type):
        raise TypeError(f"{function.__name__}: annotate {first!r} with the type that it is for")
    return parameters_type(subject)


def python_verb(function: Callable[..., Any]) -> Any:
    """A verb that is not compiled, otherwise like a `generic`; `function` is the default for all types."""
    verb: Any = functools.singledispatch(function)
    register = verb.register

    def register_subject(function: Callable[..., Any]) -> Callable[..., Any]:
        note(function)
        return register(subject_of(function), function)

    verb.register = register_subject
    return verb


class generic:
    """A verb: one function per type of the first argument, callable from Python and from compiled code."""

    def __init__(self, name: str, fallback: Callable[..., Any] | None = None) -> None:
        self.__name__ = name
        self._functions: dict[type, Any] = {}
        self._fallback = compiled(fallback) if fallback else None
        code_of(self, pipeline_class=VerbCompiler)(self._implement)

    def __call__(self, subject: Any, *args: Any) -> Any:
        return self._find(type(subject))(subject, *args)

    def register(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register `function` for the type that annotates its first argument."""
        subject = subject_of(function)
        note(function)
        self._functions[subject] = compiled(function)
        # A function made by another one depends on more than its file: no module, so its code is not kept.
        _REGISTERED[subject].add(
            function.__module__ if function.__closure__ is None else f"{function.__module__}.<locals>"
        )
        return function

    def _find(self, subject: type) -> Any:
        """Return the function for the type, or for its nearest base class."""
        for kind in subject.__mro__:
            if kind in self._functions:
                return self._functions[kind]
        if self._fallback is None:
            raise TypeError(f"{self.__name__} is not defined for {subject.__name__}: register it")
        return self._fallback

    def has(self, subject: type) -> bool:
        """Return whether a function is registered for the type, apart from the default."""
        return any(kind in self._functions for kind in subject.__mro__)

    def _implement(self, subject: Any, *args: Any) -> Any:
        return self._find(subject.instance_class).py_func


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
