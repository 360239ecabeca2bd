"""What makes two results the same result: settings, trials, seed, data, versions and the sources that compute them."""

from __future__ import annotations

import copyreg
import hashlib
import io
import json
import pickle
import platform
import secrets
from collections.abc import Mapping
from importlib.metadata import version
from types import FunctionType, MappingProxyType
from typing import IO, Any

from albatross.closure import digest
from albatross.constants import Reader, function_of, name_in_the_process

# Of the files in a results folder; raised whenever a version would misread what another wrote.
FORMAT = 2


def identity(*modules: str, trials: int, seed: int, **what: Any) -> dict[str, Any]:
    """Return the identity of a result that these modules compute; sources that they do not import do not count."""
    return {
        "format": FORMAT,
        **json.loads(json.dumps(what)),
        "trials": trials,
        "seed": seed,
        "versions": {name: version(name) for name in ("numpy", "numba")} | {"python": platform.python_version()},
        "sources": digest(*modules, reader=_Whole),
    }


_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), memoryview)
_VERBS = "albatross.compiling"  # whose functions count by what they hold


class _Whole(Reader):
    """Reads all that a result may depend on, such as a data frame."""

    def other(self, value: Any) -> bytes:
        """Return a value as bytes; of one that cannot be read, such that are equal to no others."""
        try:
            return _pickled(value, self)
        except Exception:  # of anything in it
            return secrets.token_bytes(8)


class _Pickler(pickle.Pickler):
    """Pickles values with what pickle itself refuses; what differs in every process counts by its name."""

    _PROTOCOL = 4

    def __init__(self, file: IO[bytes], reader: Reader) -> None:
        super().__init__(file, self._PROTOCOL)
        self._reader = reader

    def persistent_id(self, value: Any) -> str | None:
        """Return the name of what is none of the values, such as the global generator of random numbers."""
        return name_in_the_process(value)

    def reducer_override(self, value: Any) -> Any:
        """Return how functions, views, and what pickle refuses are pickled: by what they hold that can be read."""
        kind = type(value)
        if kind in (FunctionType, MappingProxyType) or kind.__module__ == _VERBS or function_of(value) is not None:
            return bytes, (b"".join(map(bytes, self._reader.held(value))),)
        if kind in _VIEWS:
            return tuple, (tuple(value),)
        if issubclass(kind, type) or kind in copyreg.dispatch_table:
            return NotImplemented
        try:
            return value.__reduce_ex__(self._PROTOCOL)
        except TypeError:  # a lock, a connection, a reference: its attributes, if it has any
            return bytes, (f"{kind.__module__}.{kind.__qualname__}".encode(),), getattr(value, "__dict__", None)


def _pickled(value: Any, reader: Reader) -> bytes:
    whole = io.BytesIO()
    _Pickler(whole, reader).dump(value)
    return whole.getvalue()


def fingerprint(value: Any) -> str | None:
    """Return a hash of all that a policy or an environment holds; None if that cannot be read.

    Its text may leave out much: large arrays, late digits, and what a user's own class keeps.
    """
    try:
        return hashlib.sha256(_pickled(value, Reader(""))).hexdigest()[:16]
    except Exception:  # a user's class may hold anything
        return None


def signed(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identity as it is stored, with the version of this library, in which equal results may differ."""
    return {**found, "versions": {"albatross": version("albatross"), **found["versions"]}}


def differences(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Describe how a stored result differs from the wanted one.

    >>> stored = {"trials": 5, "versions": {"numpy": "2.1"}, "sources": "8c1f", "settings": {"dim": 50, "form": "main"}}
    >>> differences(stored, {"trials": 25, "versions": {"numpy": "2.1"}, "sources": "07aa", "settings": {"dim": 20}})
    ['trials 5 instead of 25', 'sources 8c1f instead of 07aa', 'other settings']
    """
    found = []
    for key, value in wanted.items():
        if stored.get(key) == value:
            continue
        if key == "versions" and isinstance(stored.get(key), dict):
            found += differences(stored[key], value)
        elif isinstance(value, dict):
            found.append(f"other {key}")
        else:
            found.append(f"{key} {stored.get(key, 'unknown')} instead of {value}")
    return found
