"""Save agents and fleets, atomically, as one file of arrays and JSON without code.

Files are not trusted: sizes are checked before memory is allocated, and numbers before compiled code uses them as
indices.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from albatross import checks, policies
from albatross.compiling import all_ours
from albatross.errors import UnreadableFile
from albatross.protocol import check_state, init, is_policy, resolve
from albatross.states import leaves, mapped
from albatross.store.files import replacing

FORMAT = 1  # format version of saved files; increase it if older files would be misread
KINDS = ("agent", "fleet", "flock")
Source = str | os.PathLike[str] | BinaryIO  # a path or an open binary file

AFFORDABLE = 1 << 28  # bytes that loading may take beyond the size of the file
_LONGEST_DIRECTORY = 1 << 20  # bytes of a zip file's directory: thousands of arrays
_COUNTS = ("pulls", "plays", "counts")  # suffixes of arrays that count plays


# ----------------------------------------------------------------------------------------------- states as arrays


def state_arrays(state: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a state under their names in a file."""
    return {f"state/{name}": array for name, array in leaves(state)}


def new_state(policy: Any, n_arms: int, dim: int, horizon: int | None, *, most_bytes: int) -> tuple[Any, Any]:
    """Return parameters and a new state for the sizes that a file claims; refuse sizes too large for the file.

    The size of a state is only known once it is built. It grows with arms and features, so smaller states are built
    first: if one of them has more bytes than the file, the claimed sizes are wrong.
    """
    too_large = ValueError(f"a state for {n_arms} arms and {dim} features is larger than this file")
    size, sizes_known = 1, False
    while size < max(n_arms, dim):
        arms, features = min(n_arms, size), min(dim, size)
        size *= 2
        try:
            parameters = resolve(_for_features(policy, features), arms, features, horizon)
            smaller = init(parameters, arms, features, np.random.default_rng(0))
        except ValueError:  # the policy accepts no other number of features
            continue
        sizes_known = True
        if sum(array.nbytes for _, array in leaves(smaller)) > most_bytes:
            raise too_large
    if not sizes_known and 8 * _n_policies(policy) * dim**2 > most_bytes + AFFORDABLE:
        raise too_large
    parameters = resolve(policy, n_arms, dim, horizon)
    return parameters, init(parameters, n_arms, dim, np.random.default_rng(0))


def _for_features(policy: Any, dim: int) -> Any:
    """Return the policy, and those nested in it, for the first `dim` features only."""
    if type(policy) is tuple:
        return tuple(_for_features(part, dim) for part in policy)
    if not (is_dataclass(policy) and is_policy(policy)):
        return policy
    kind: Any = type(policy)
    known = dict(vars(policy))
    if "dim" in known:
        known["dim"] = dim = min(known["dim"], dim)
    if "sparsity" in known:
        known["sparsity"] = min(known["sparsity"], dim)
    if "dims" in known:
        known["dims"] = sorted({min(each, dim) for each in known["dims"]})
    if "covariance" in known:
        known["covariance"] = None
    return kind(**{name: _for_features(value, dim) for name, value in known.items()})


def _n_policies(policy: Any) -> int:
    """Count the policy and the policies nested in it."""
    parts = policy if type(policy) is tuple else vars(policy).values() if is_dataclass(policy) else ()
    return int(is_policy(policy)) + sum(_n_policies(part) for part in parts)


# ---------------------------------------------------------------------------------- policies and generators in JSON


def plain(value: Any) -> Any:
    """Convert policies, NumPy numbers and arrays to JSON types."""
    if is_dataclass(value) or hasattr(value, "_fields"):
        return describe_policy(value)
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def describe_policy(policy: Any) -> dict[str, Any]:
    """Return the name and parameters of a policy, with nested policies."""
    names = [field.name for field in fields(policy)] if is_dataclass(policy) else policy._fields
    return {"name": type(policy).__name__, "parameters": {name: plain(getattr(policy, name)) for name in names}}


def restore_policy(saved: dict[str, Any], given: Any) -> Any:
    """Return the described policy, or `given` if there is one; a given policy must match the description."""
    name = saved["name"]
    if given is not None:
        found = describe_policy(given)
        if found != saved and repr(found) != repr(saved):  # NaN differs from itself
            raise UnreadableFile(f"the saved policy is {name}({saved['parameters']}), not {given!r}")
        return given
    return _revive(saved)


def _revive(saved: Any) -> Any:
    """Rebuild the library's policies from their descriptions, at any depth."""
    if isinstance(saved, list):
        return tuple(_revive(part) for part in saved)
    if not isinstance(saved, dict):
        return saved
    known = {entry.policy.__name__: entry.policy for entry in policies.CATALOGUE.values()}
    name = saved["name"]
    if name not in known:
        raise UnreadableFile(f"the saved policy {name} is not part of this library: pass it, load(path, policy=...)")
    return known[name](**{key: _revive(value) for key, value in saved["parameters"].items()})


def describe_rng(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of a generator."""
    return dict(plain(rng.bit_generator.state))


def restore_rng(saved: dict[str, Any]) -> np.random.Generator:
    """Return a generator in the saved state."""
    rng = np.random.Generator(np.random.SFC64())
    inner = {key: np.array(part, np.uint64) for key, part in saved["state"].items()}
    rng.bit_generator.state = {**saved, "state": inner}
    return rng


# ------------------------------------------------------------------------------------------------- writing a file


def write(target: Source, *, kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write to an open binary file, or atomically to a path: a reader sees the old file or the complete new one."""
    text = json.dumps({f"albatross-{kind}": FORMAT, **header})
    members: Any = {"header": np.frombuffer(text.encode(), np.uint8), **arrays}
    if not isinstance(target, str | os.PathLike):
        _check_binary(target, "write")
        _write_all(target, members)
    elif Path(target).exists() and not Path(target).is_file():  # do not replace a pipe or a device by a file
        with open(target, "wb") as file:
            _write_all(file, members)
    else:
        with replacing(Path(target)) as file:
            _zip(file, members)


def _write_all(file: BinaryIO, members: Any) -> None:
    """Write to a file that may not be seekable and may accept only part of the data at once."""
    whole = io.BytesIO()
    _zip(whole, members)
    left = whole.getbuffer()
    while left:
        written = file.write(left)
        if written is None:  # some files, such as paramiko's, write everything and do not say so
            return
        if written <= 0:
            raise OSError(f"the file accepts no more data: {len(left)} bytes are not written")
        left = left[written:]


def _zip(file: BinaryIO, members: Any) -> None:
    try:
        np.savez(file, **members)
    except ValueError as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # after which the zip file could not be closed
            raise error.__context__ from None
        raise


def _check_binary(file: Any, verb: str) -> None:
    """Refuse what is neither a path nor an open binary file."""
    if isinstance(file, io.TextIOBase):
        raise TypeError(f"{file!r} is open for text: open it in binary mode, open(path, '{verb[0]}b')")
    if not hasattr(file, verb):
        raise TypeError(f"give a path (a str or a Path) or an open binary file, not {checks.shown(file)}")


def in_memory(thing: Any) -> io.BytesIO:
    """Save an agent or a fleet to memory, ready to be read."""
    file = io.BytesIO()
    thing.save(file)
    file.seek(0)
    return file


# ------------------------------------------------------------------------------------------------- reading a file


class _Bounded:
    """A file from which no more than `most` bytes are read at once, as a zip file's directory of members is."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.most: int | None = _LONGEST_DIRECTORY

    def read(self, size: int = -1) -> bytes:
        """Read the rest of the file, which is short where `zipfile` asks for it, or so many bytes."""
        if self.most is not None and size > self.most:
            raise ValueError("it has too many members")
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Saved:
    """A saved file: its header and its arrays, each read only if it has the expected shape."""

    def __init__(self, file: BinaryIO) -> None:
        bounded = _Bounded(file)
        self._archive = zipfile.ZipFile(bounded)
        bounded.most = None
        members = self._archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("it is compressed: the size after decompression is unknown")
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
        """Read an array of this shape and dtype."""
        found = self._shape(name)
        if found != (shape, np.dtype(dtype)):
            raise ValueError(f"{name} must have shape {shape} of {np.dtype(dtype)}, got {found[0]} of {found[1]}")
        with self._archive.open(f"{name}.npy") as member:
            array = np.lib.format.read_array(member, allow_pickle=False)
            array = np.ascontiguousarray(array).reshape(array.shape)  # an array of shape () keeps it
        if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
            raise ValueError(f"{name} must hold only True and False")
        return array

    def state(self, parameters: Any, template: Any, *, prefix: str = "", leading: tuple[int, ...] = ()) -> Any:
        """Read a state with the shapes of the template after `leading` axes, and let the policy check it."""
        names = [f"state/{name}" for name, _ in leaves(template, prefix)]
        missing = [name for name in names if name not in self]
        if missing:
            raise ValueError(
                f"{missing[0]} is missing. It is damaged, or an earlier version saved it, whose "
                f"{_name(parameters)} kept other numbers. Learn again from a log of the decisions: "
                "Agent.warm_start(contexts, arms, rewards), or Fleet.record and Fleet.update"
            )
        following = iter(names)
        state = mapped(lambda leaf: self.array(next(following), leading + leaf.shape, leaf.dtype), template)
        if all_ours(parameters):
            for name, array in leaves(state):
                if leading and array.dtype.kind == "f":
                    # Of one user, such as one whose row came from elsewhere: the others must be loaded. No policy plays
                    # by NaN, and no loop runs without end.
                    array[~are_possible(name, array)] = np.nan
                else:
                    check_numbers(name, array)
        check_state(parameters, state)
        return state


def _name(parameters: Any) -> str:
    """Return the name of the policy that has these parameters."""
    return type(parameters).__name__.removesuffix("Parameters")


def is_count(name: str) -> bool:
    """Return whether an array of this name counts plays."""
    return name.endswith(_COUNTS)


def are_possible(name: str, array: np.ndarray) -> np.ndarray:
    """Return which numbers are neither infinite nor impossible numbers of plays."""
    return (array >= 0.0) & (array <= checks.MOST_ROUNDS) if is_count(name) else ~np.isinf(array)


def check_numbers(name: str, array: np.ndarray) -> None:
    """Refuse infinite numbers and impossible numbers of plays, which could cause endless loops."""
    if not are_possible(name, array).all():
        what = "must hold numbers of plays, from 0 to 2^53" if is_count(name) else "holds an infinite number"
        raise ValueError(f"{name} {what}")


def check_state_can_be_read(parameters: Any, state: Any) -> None:
    """Refuse to save what loading would refuse, before it replaces an older file."""
    try:
        for name, array in leaves(state) if all_ours(parameters) else ():
            check_numbers(name, array)
    except ValueError as error:
        raise ValueError(
            f"this {_name(parameters)} cannot be saved, its rewards or features were too large: {error}"
        ) from None


@contextmanager
def reading(source: Source, *, kind: str) -> Iterator[Saved]:
    """Open a saved file of this kind. Any defect raises UnreadableFile."""
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else getattr(source, "name", "the file")
    with _opened(source, name, kind) as file:
        try:
            saved = Saved(file)
            found = next(each for each in KINDS if f"albatross-{each}" in saved.header)
            version = saved.header[f"albatross-{found}"]
        except Exception:  # damage may cause any error: zip, JSON, shapes
            # Not chained: NumPy's message advises loading the file unsafely.
            raise UnreadableFile(f"{name} is truncated, or is not a saved {kind}") from None
        if found != kind:
            raise UnreadableFile(f"{name} is a saved {found}: use {found.capitalize()}.load")
        if version != FORMAT:
            raise UnreadableFile(f"{name} has format {version}, but this version of Albatross reads format {FORMAT}")
        try:
            yield saved
        except UnreadableFile:
            raise
        except Exception as error:  # a damaged or malicious file may cause any error
            what = str(error) if isinstance(error, ValueError) else repr(error)
            raise UnreadableFile(f"{name} is not a valid saved {kind}: {what}") from error


@contextmanager
def _opened(source: Source, name: Any, kind: str) -> Iterator[BinaryIO]:
    if not isinstance(source, str | os.PathLike):
        _check_binary(source, "read")
        if getattr(source, "seekable", lambda: False)():
            yield source
        else:  # a socket or a pipe
            with tempfile.SpooledTemporaryFile(AFFORDABLE) as copied:
                shutil.copyfileobj(source, copied)
                yield copied  # type: ignore[misc]
        return
    try:
        mode = os.stat(source).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a pipe would wait for its writer
            raise UnreadableFile(f"{name} is not a saved {kind}: it is not a regular file")
        with open(source, "rb") as file:
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableFile(f"{name} is not a saved {kind}: {error.strerror}") from error
