"""What is written of an agent or a fleet: arrays and JSON in one file, no code, there whole or not at all.

A file may come from anywhere. Nothing in it is believed before it is checked: not the sizes that it claims, which cost
memory, nor the numbers that compiled code uses as indices.
"""

from __future__ import annotations

import io
import json
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from albatross import checks, policies
from albatross.compiling import is_ours
from albatross.errors import UnreadableFile
from albatross.protocol import check_state, init, is_policy, resolve
from albatross.states import leaves, mapped
from albatross.store.files import replacing

FORMAT = 1  # of a saved file; raise it whenever an older file would be read wrongly
KINDS = ("agent", "fleet")
Source = str | os.PathLike[str] | BinaryIO  # a path or an open binary file

_AFFORDABLE = 1 << 28  # bytes that a file may cost although it is smaller
_COUNTS = ("pulls", "plays", "counts")  # names of arrays that count plays


# ----------------------------------------------------------------------------------------------- states as arrays


def state_arrays(state: Any) -> dict[str, np.ndarray]:
    """A state as arrays of a file."""
    return {f"state/{name}": array for name, array in leaves(state)}


def new_state(policy: Any, n_arms: int, dim: int, horizon: int | None, *, most_bytes: int) -> tuple[Any, Any]:
    """Parameters and a fresh state for so many arms and features, which a file claims; refused if it is too large.

    To know how large a state is takes building it. It grows with arms and features, so smaller ones are built first:
    where one of them has more bytes than the file, the claim is false.
    """
    too_large = ValueError(f"a state for {n_arms} arms and {dim} features is larger than this file")
    size, sizes_known = 1, False
    while size < max(n_arms, dim):
        arms, features = min(n_arms, size), min(dim, size)
        size *= 2
        try:
            smaller = init(resolve(policy, arms, features, horizon), arms, features, np.random.default_rng(0))
        except ValueError:  # a policy for this number of features alone
            continue
        sizes_known = True
        if sum(array.nbytes for _, array in leaves(smaller)) > most_bytes:
            raise too_large
    if not sizes_known and 8 * _n_policies(policy) * dim**2 > most_bytes + _AFFORDABLE:
        raise too_large
    parameters = resolve(policy, n_arms, dim, horizon)
    return parameters, init(parameters, n_arms, dim, np.random.default_rng(0))


def _n_policies(policy: Any) -> int:
    """The policy and all that it holds."""
    parts = policy if type(policy) is tuple else vars(policy).values() if is_dataclass(policy) else ()
    return int(is_policy(policy)) + sum(_n_policies(part) for part in parts)


# ---------------------------------------------------------------------------------- policies and generators in JSON


def plain(value: Any) -> Any:
    """Policies, NumPy's numbers and arrays as JSON knows them."""
    if is_dataclass(value) or hasattr(value, "_fields"):
        return describe_policy(value)
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def describe_policy(policy: Any) -> dict[str, Any]:
    """Its name and its parameters, through the policies that it may hold."""
    names = [field.name for field in fields(policy)] if is_dataclass(policy) else policy._fields
    return {"name": type(policy).__name__, "parameters": {name: plain(getattr(policy, name)) for name in names}}


def restore_policy(saved: dict[str, Any], given: Any) -> Any:
    """The policy that was described; `given` for a policy of somebody's own, which must be the same."""
    name = saved["name"]
    if given is not None:
        if describe_policy(given) != saved:
            raise UnreadableFile(f"the saved policy is {name}({saved['parameters']}), not {given!r}")
        return given
    return _revive(saved)


def _revive(saved: Any) -> Any:
    """The policies of this library from their descriptions, wherever they stand."""
    if isinstance(saved, list):
        return tuple(_revive(part) for part in saved)
    if not isinstance(saved, dict):
        return saved
    known = {entry.policy.__name__: entry.policy for entry in policies.CATALOGUE.values()}
    name = saved["name"]
    if name not in known:
        raise UnreadableFile(f"the saved policy {name} is not of this library: load(path, policy=...)")
    return known[name](**{key: _revive(value) for key, value in saved["parameters"].items()})


def describe_rng(rng: np.random.Generator) -> dict[str, Any]:
    """Where a generator stands."""
    return dict(plain(rng.bit_generator.state))


def restore_rng(saved: dict[str, Any]) -> np.random.Generator:
    """A generator that goes on from there."""
    rng = np.random.Generator(np.random.SFC64())
    inner = {key: np.array(part, np.uint64) for key, part in saved["state"].items()}
    rng.bit_generator.state = {**saved, "state": inner}
    return rng


# ------------------------------------------------------------------------------------------------- writing a file


def write(target: Source, *, kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write to an open binary file, or to a path: whoever reads that sees the old file or the whole new one."""
    text = json.dumps({f"albatross-{kind}": FORMAT, **header})
    members: Any = {"header": np.frombuffer(text.encode(), np.uint8), **arrays}
    if not isinstance(target, str | os.PathLike):
        _write_all(target, members)
    elif Path(target).exists() and not Path(target).is_file():  # a pipe or a device stays what it is
        with open(target, "wb") as file:
            _write_all(file, members)
    else:
        with replacing(Path(target)) as file:
            np.savez(file, **members)


def _write_all(file: BinaryIO, members: Any) -> None:
    """Write to a file that may be unable to seek, and that may take less than it is given at once."""
    whole = io.BytesIO()
    np.savez(whole, **members)
    left = whole.getbuffer()
    while left:
        left = left[file.write(left) :]


def in_memory(thing: Any) -> io.BytesIO:
    """The saved form of an agent or a fleet, ready to be read."""
    file = io.BytesIO()
    thing.save(file)
    file.seek(0)
    return file


# ------------------------------------------------------------------------------------------------- reading a file


class Saved:
    """A saved file: its header, and arrays that are read only where they have the shape that is needed."""

    def __init__(self, file: BinaryIO) -> None:
        self._archive = zipfile.ZipFile(file)
        members = self._archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("it is compressed, and could become of any size")
        self._names = {member.filename for member in members}
        self.nbytes = file.seek(0, os.SEEK_END)
        (length,), dtype = self._shape("header")
        self.header: dict[str, Any] = json.loads(self.array("header", (min(length, self.nbytes),), dtype).tobytes())

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._names

    def _shape(self, name: str) -> tuple[tuple[int, ...], np.dtype]:
        with self._archive.open(f"{name}.npy") as member:
            if np.lib.format.read_magic(member) != (1, 0):
                raise ValueError(f"{name} is not an array of this format")
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        return shape, dtype

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array, if it has this shape and this type."""
        found = self._shape(name)
        if found != (shape, np.dtype(dtype)):
            raise ValueError(f"{name} has shape {found[0]} of {found[1]}, needed is {shape} of {np.dtype(dtype)}")
        with self._archive.open(f"{name}.npy") as member:
            array = np.ascontiguousarray(np.lib.format.read_array(member, allow_pickle=False))
        if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
            raise ValueError(f"{name} holds something else than True and False")
        return array

    def state(self, parameters: Any, template: Any, *, prefix: str = "", leading: tuple[int, ...] = ()) -> Any:
        """A state like the template, with `leading` axes in front of its arrays, that the policy accepts."""
        names = (f"state/{name}" for name, _ in leaves(template, prefix))
        state = mapped(lambda leaf: self.array(next(names), leading + leaf.shape, leaf.dtype), template)
        if is_ours(parameters):
            for name, array in leaves(state):
                _check_numbers(name, array)
        check_state(parameters, state)
        return state


def _check_numbers(name: str, array: np.ndarray) -> None:
    """Refuse infinite numbers, and numbers of plays that cannot be: loops that count by them would not end."""
    if array.dtype.kind == "f" and np.isinf(array).any():
        raise ValueError(f"{name} holds an infinite number")
    if name.endswith(_COUNTS) and not ((array >= 0.0) & (array <= checks.MOST_ROUNDS)).all():
        raise ValueError(f"{name} must hold numbers of plays")


@contextmanager
def reading(source: Source, *, kind: str) -> Iterator[Saved]:
    """A saved file of this kind. Whatever turns out to be wrong with it is an UnreadableFile."""
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else getattr(source, "name", "the file")
    with _opened(source, name, kind) as file:
        try:
            saved = Saved(file)
            found = next(each for each in KINDS if f"albatross-{each}" in saved.header)
            version = saved.header[f"albatross-{found}"]
        except Exception:  # damage can surface as anything: zip, JSON, shapes
            # Not from the error: NumPy's own advises to load the file unsafely.
            raise UnreadableFile(f"{name} is cut or is not a saved {kind}") from None
        if found != kind:
            raise UnreadableFile(f"{name} is a saved {found}: use {found.capitalize()}.load")
        if version != FORMAT:
            raise UnreadableFile(f"{name} is of format {version}, this version of Albatross reads format {FORMAT}")
        try:
            yield saved
        except UnreadableFile:
            raise
        except Exception as error:  # whatever a damaged or hostile header or array may cause
            what = str(error) if isinstance(error, ValueError) else repr(error)
            raise UnreadableFile(f"{name} is not a whole saved {kind}: {what}") from error


@contextmanager
def _opened(source: Source, name: Any, kind: str) -> Iterator[BinaryIO]:
    if not isinstance(source, str | os.PathLike):
        yield io.BytesIO(source.read())  # a socket or a pipe cannot seek
        return
    try:
        mode = os.stat(source).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # to open a pipe is to wait for its writer
            raise UnreadableFile(f"{name} is not a saved {kind}: it is not a file")
        with open(source, "rb") as file:
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableFile(f"{name} is not a saved {kind}: {error.strerror}") from error
