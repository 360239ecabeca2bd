"""What is written of an agent or a fleet: arrays and JSON in one file, no code, there whole or not at all."""

from __future__ import annotations

import io
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from albatross import policies
from albatross.errors import UnreadableFile

FORMAT = 1  # of a saved file; raise it whenever an older file would be read wrongly
KINDS = ("agent", "fleet")


def leaves(state: Any, prefix: str = "") -> list[tuple[str, np.ndarray]]:
    """The arrays of a state by name, through nested NamedTuples and tuples."""
    if isinstance(state, np.ndarray):
        return [(prefix, state)]
    names = getattr(state, "_fields", range(len(state)))
    return [
        leaf
        for name, part in zip(names, state, strict=True)
        for leaf in leaves(part, f"{prefix}.{name}" if prefix else str(name))
    ]


def state_arrays(state: Any) -> dict[str, np.ndarray]:
    """A state as arrays of a file."""
    return {f"state/{name}": array for name, array in leaves(state)}


def fill_state(state: Any, arrays: Mapping[str, np.ndarray], *, path: Path) -> None:
    """Put what `state_arrays` gave back into a state of the same shape."""
    for name, leaf in leaves(state):
        saved = arrays[f"state/{name}"]
        if saved.shape != leaf.shape or saved.dtype != leaf.dtype:
            raise UnreadableFile(f"{path}: {name} has shape {saved.shape}, this version needs {leaf.shape}")
        leaf[...] = saved


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


# -------------------------------------------------------------------------------------------------------- the file


def write(path: str | os.PathLike[str], *, kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write to a temporary name and rename: a reader sees the old file or the whole new one."""
    path = Path(path)
    text = json.dumps({f"albatross-{kind}": FORMAT, **header})
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            np.savez(file, header=np.frombuffer(text.encode(), np.uint8), **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str], *, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file of this kind."""
    path = Path(path)
    try:
        whole = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableFile(f"{path} is not a saved {kind}: {error.strerror}") from error
    try:
        with np.load(io.BytesIO(whole), allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        header = json.loads(arrays.pop("header").tobytes())
        found = next(each for each in KINDS if f"albatross-{each}" in header)
        version = header[f"albatross-{found}"]
    except Exception:  # damage can surface as anything: zip, zlib, JSON, shapes
        # Not from the error: NumPy's own advises to load the file unsafely.
        raise UnreadableFile(f"{path} is cut or is not a saved {kind}") from None
    if found != kind:
        raise UnreadableFile(f"{path} is a saved {found}: use {found.capitalize()}.load")
    if version != FORMAT:
        raise UnreadableFile(f"{path} is of format {version}, this version of Albatross reads format {FORMAT}")
    return header, arrays
