"""Checks of arguments. Each error names the argument, what was given and what is needed."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

_FLOAT = np.dtype(np.float64)
LARGEST = 1e100  # contexts, rewards and parameters: sums of their squares must stay finite
MOST_ROUNDS = 2**53  # above this, floats cannot count in steps of 1
MOST_DECISIONS = 2**31 - 2**24  # of a user, in a file: they are counted on in 32 bits
# In a row: the user goes on, and the file of all users must stay readable.
MOST_ROUNDS_IN_ROW, MOST_DECISIONS_IN_ROW = MOST_ROUNDS // 2, MOST_DECISIONS // 2
_LONGEST_SHOWN = 100  # characters of a wrong value in a message
_LONGEST_NAME = 4_000  # bits of a whole number; Python does not write numbers of any length to a file
_LITTLE = 1 << 24  # bytes that are always available
# Where Linux reports the free memory of the machine and the limit of the container.
_MEMORY_FILES = {
    "/proc/meminfo": (r"^MemAvailable:\s+(\d+) kB", 1024),
    "/sys/fs/cgroup/memory.max": (r"^(\d+)", 1),
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": (r"^(\d+)", 1),
}


def shortened(text: str) -> str:
    """Shorten a text for an error message."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def shown(value: Any) -> str:
    """Format a wrong value for an error message, shortened if it is long."""
    if isinstance(value, str):
        return repr(shortened(value))
    try:
        return shortened(" ".join(repr(value).split()))  # a sentence is one line, and a data frame has several
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        if isinstance(value, int):
            return f"an integer of about {value.bit_length() * 3 // 10} digits"
        return f"a {type(value).__name__} with a huge integer"


def _number(name: str, value: Any, needed: str) -> float:
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} must be {needed}, not {shown(value)}")
    number = value.item() if isinstance(value, np.generic) else value
    if not -LARGEST <= number <= LARGEST:  # compares integers of any size, and NaN
        raise ValueError(f"{name} must be {needed} of at most {LARGEST:g} in size, not {shown(value)}")
    return float(number)


def positive(name: str, value: Any) -> None:
    """Require a finite number above 0 whose square does not underflow."""
    if _number(name, value, "a positive number") < 1.0 / LARGEST:
        raise ValueError(f"{name} must be a positive number (at least {1 / LARGEST:g}), not {shown(value)}")


def real(name: str, value: Any) -> None:
    """Require a finite number."""
    _number(name, value, "a number")


def at_least_zero(name: str, value: Any) -> None:
    """Require a finite number of at least 0."""
    if _number(name, value, "a number >= 0") < 0:
        raise ValueError(f"{name} must be a number >= 0, not {shown(value)}")


def probability(name: str, value: Any) -> None:
    """Require a number strictly between 0 and 1."""
    if not 0 < _number(name, value, "a number strictly between 0 and 1") < 1:
        raise ValueError(f"{name} must be a number strictly between 0 and 1, not {shown(value)}")


def share(name: str, value: Any) -> None:
    """Require 0 or a number strictly between 0 and 1."""
    if not 0 <= _number(name, value, "0 or a number strictly between 0 and 1") < 1:
        raise ValueError(f"{name} must be 0 or a number strictly between 0 and 1, not {shown(value)}")


def whole(name: str, value: Any, *, least: int) -> None:
    """Require a 64-bit integer of at least `least`."""
    _integer(name, value, least=least)
    if value >= 2**63:
        raise ValueError(f"{name} must be below 2^63, not {shown(value)}")


def rounds(name: str, value: Any) -> None:
    """Require a number of rounds: from 1 to 2^53, above which floats cannot count in steps of 1."""
    _integer(name, value, least=1)
    if value > MOST_ROUNDS:
        raise ValueError(f"{name} must be at most 2^53, the limit of counting in floats, not {shown(value)}")


def _integer(name: str, value: Any, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, not {shown(value)}")


def seed(name: str, value: Any) -> None:
    """Require an integer of at least 0, of any size."""
    _integer(name, value, least=0)


def generator(name: str, value: Any) -> np.random.Generator:
    """Return a generator seeded by an integer or a SeedSequence, or by the system for None."""
    if not isinstance(value, np.random.SeedSequence | None):
        seed(name, value)
    return np.random.Generator(np.random.SFC64(value))


def name(what: str, value: Any) -> None:
    """Require a name of a user or an arm: a text that is not empty, or a whole number."""
    if type(value) not in (str, int) or value == "":
        raise ValueError(f"the name of {what} must be a text or a whole number, not {shown(value)}")
    if type(value) is int and value.bit_length() > _LONGEST_NAME:
        raise ValueError(f"the name of {what} must have at most 1,200 digits, not {shown(value)}")


def names_or_number(name: str, named: Any, number: Any) -> None:
    """Require either a list of names or `n_<name>`, a number of at least 1."""
    if (named is None) == (number is None):
        raise ValueError(f"give {name}, a list of names, or n_{name}, their number, but not both")
    if named is None:
        whole(f"n_{name}", number, least=1)


def words(name: str, value: Any, n: int) -> np.ndarray:
    """Return n words of 64 bits."""
    if not isinstance(value, list) or len(value) != n:
        raise ValueError(f"{name} must be {n} whole numbers, not {shown(value)}")
    for word in value:
        _integer(name, word, least=0)
    return np.array(value, np.uint64)


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Require one of the given words."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {shown(value)}")


def flag(name: str, value: Any) -> None:
    """Require True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, not {shown(value)}")


def _hides_something(value: Any, axes: int = 3) -> bool:
    """Return whether this, or something in lists of up to `axes` axes, is a masked array with masked entries."""
    if isinstance(value, list | tuple):
        return axes > 0 and any(_hides_something(part, axes - 1) for part in value)
    return isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value)


def numbers(name: str, value: Any) -> np.ndarray:
    """Return `value` as an array of real numbers (integer or float); refuse an array with masked entries."""
    if _hides_something(value):
        raise ValueError(f"{name} has masked entries: fill them in, or leave out the rows that hold them")
    try:
        array = np.asarray(value)
        if array.dtype == object:
            has_text = any(isinstance(each, str | bytes) for each in array.flat)  # float("1_0") would be 10
            array = array.astype(str if has_text else np.float64)
    except (TypeError, ValueError, OverflowError):  # rows of unequal length, not numbers, or too large
        array = np.array([value], object)
    if array.dtype.kind not in "biuf" and array.size:
        given = "text" if array.dtype.kind in "US" else f"{type(value).__name__} of {array.dtype}"
        raise ValueError(f"{name} must be an array of numbers, got {given}")
    return array


def real_array(name: str, value: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return `value` as a C-ordered float array, copied only if necessary; None in `shape` means any length."""
    if type(value) is np.ndarray and value.dtype == np.float64 and value.shape == shape and value.flags.carray:
        return value
    if type(value) is list and shape == (len(value),) and all(type(number) is float for number in value):
        return np.array(value, np.float64)  # such as the rewards of a batch
    array = numbers(name, value)
    fits = len(shape) == array.ndim and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape) + "," * (len(shape) == 1)
        raise ValueError(f"{name} must have shape ({wanted}), got {array.shape}")
    return np.require(array, np.float64, ["C", "A"])  # as compiled code takes it


def finite_array(name: str, value: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return `value` as a C-ordered array of finite floats; None in `shape` means any length."""
    array = real_array(name, value, shape)
    good = np.abs(array) <= LARGEST
    if not good.all():
        where = tuple(int(i) for i in np.argwhere(~good)[0])
        raise ValueError(f"{name} must be finite, but holds {array[where]} at {where} (at most {LARGEST:g} in size)")
    return array


def coordinates(name: str, value: Any) -> tuple[int, ...]:
    """Return at least one distinct coordinate, in ascending order."""
    array = numbers(name, value)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu" or array.min() < 0:
        raise ValueError(f"{name} must be a list of coordinates (whole numbers >= 0), not {shown(value)}")
    if np.unique(array).size < array.size:
        raise ValueError(f"{name} must list each coordinate once, not {shown(value)}")
    return tuple(int(j) for j in np.sort(array))


def interval(name: str, value: Any) -> tuple[float, float]:
    """Return the ends of an interval that is not a point."""
    low, high = finite_array(name, value, (2,)).tolist()
    if not low < high:
        raise ValueError(f"{name} must be a lower and a higher number, not {value!r}")
    return low, high


def nested_dims(name: str, value: Any) -> tuple[int, ...]:
    """Return the dimensions of nested feature maps: increasing whole numbers."""
    array = numbers(name, value)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu" or array.min() < 1:
        raise ValueError(f"{name} must be a list of dimensions (whole numbers >= 1), not {shown(value)}")
    if not (array[1:] > array[:-1]).all():
        raise ValueError(f"{name} must increase from map to map, not {shown(value)}")
    return tuple(int(dim) for dim in array)


def indices(name: str, values: np.ndarray, most: Any) -> None:
    """Require whole numbers from 0 to `most`, a number or an array along the last axis."""
    wrong = ~((values >= 0) & (values <= most) & (values == np.floor(values)))
    if wrong.any():
        raise ValueError(f"{name} holds {values[wrong][0]:g}, which is impossible")


def tags(name: str, values: np.ndarray) -> None:
    """Require NaN, or numbers no larger than a product of two contexts."""
    if (np.abs(values) > LARGEST**2).any():
        raise ValueError(f"{name} must hold numbers of at most {LARGEST**2:g} in size")


def covariance(name: str, value: Any, dim: int) -> np.ndarray:
    """Return a symmetric (d, d) matrix without negative eigenvalues."""
    array = finite_array(name, value, (dim, dim)).copy()
    size = np.abs(array).max()
    if not np.allclose(array, array.T, rtol=1e-9, atol=1e-12 * size):
        raise ValueError(f"{name} must be symmetric")
    if np.linalg.eigvalsh(array)[0] < -1e-9 * size:
        raise ValueError(f"{name} must have no negative eigenvalue")
    return array


def given_horizon(policy: Any, horizon: int | None) -> int:
    """Return the number of rounds, given by the policy or else by the simulation."""
    total = policy.horizon if policy.horizon is not None else horizon
    if total is None:
        name = type(policy).__name__
        raise ValueError(f"{name} needs the number of rounds: give {name}(horizon=...)")
    return int(total)


def fits_in_memory(what: str, n_bytes: int, instead: str) -> None:
    """Refuse an allocation above the free memory, where the system reports it, before anything is allocated."""
    if n_bytes <= _LITTLE:
        return
    free = free_memory()
    if n_bytes > free:
        raise ValueError(
            f"{what} would take {n_bytes / 1e9:,.4g} GB of memory, but {free / 1e9:,.3g} GB are free: {instead}"
        )


def model_fits(dim: int, *, rows: int) -> None:
    """Refuse a linear model whose matrices, of `rows` rows in total and `dim` columns, do not fit in memory."""
    fits_in_memory(f"a linear model of dim={dim}", 8 * int(rows) * int(dim), "take fewer features")


def free_memory() -> float:
    """Return the number of bytes that this process may still allocate."""
    free = math.inf
    if hasattr(os, "sysconf"):
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # the memory of the machine
    for path, (pattern, unit) in _MEMORY_FILES.items():
        try:
            found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
        except OSError:
            continue
        if found:
            free = min(free, unit * int(found[1]))
    return free


# ------------------------------------------------------------------------------------------- decisions and rewards


def contexts(value: Any, n_arms: int, dim: int) -> np.ndarray:
    """A C-ordered (K, d) array of float64, from (K, d) or (d,) for all arms. Compiled code checks that it is finite."""
    shape = (n_arms, dim)
    if type(value) is np.ndarray and value.shape == shape and value.dtype is _FLOAT and value.flags.carray:  # fast
        return value
    array: np.ndarray = numbers("contexts", value)
    array = np.require(array, np.float64, ["C", "A", "W"])
    if array.shape == shape:
        return array
    if array.shape == (dim,):
        return np.ascontiguousarray(np.broadcast_to(array, shape))
    if array.ndim == 2 and array.shape[0] == n_arms:
        raise ValueError(f"contexts have {array.shape[1]} features per arm, but this agent has dim={dim}")
    if array.ndim == 2 and array.shape[1] == dim:
        raise ValueError(f"contexts have {array.shape[0]} rows, but this agent has n_arms={n_arms}")
    raise ValueError(f"contexts must have shape ({n_arms}, {dim}), or ({dim},) shared by all arms, got {array.shape}")


def eligible(value: Any, n_arms: int) -> np.ndarray:
    """A mask (K,) of the eligible arms, from a mask or a list of arms."""
    wanted = f"eligible must be a mask of {n_arms} booleans or a list of arms, got {shown(value)}"
    try:
        given = numbers("eligible", value)
    except ValueError:
        raise ValueError(wanted) from None
    if given.size == 0:
        raise ValueError("eligible is empty: at least one arm must be eligible")
    if given.dtype == bool:
        if given.shape != (n_arms,):
            raise ValueError(f"eligible must have shape ({n_arms},) as a mask, got {given.shape}")
        if not given.any():
            raise ValueError("eligible is False for every arm: at least one arm must be eligible")
        return np.ascontiguousarray(given)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(wanted)
    if given.min() < 0 or given.max() >= n_arms:
        wrong = given.min() if given.min() < 0 else given.max()
        raise ValueError(f"arm {wrong} in eligible is unknown: this agent has arms 0 to {n_arms - 1}")
    if np.unique(given).size < given.size:
        raise ValueError("eligible lists an arm twice: list each arm once, or give a mask of booleans")
    mask = np.zeros(n_arms, bool)
    mask[given] = True
    return mask


def arms(value: Any, n: int, n_arms: int) -> np.ndarray:
    """(n,) numbers of arms."""
    given = numbers("arms", value)
    if given.shape != (n,) or not (np.issubdtype(given.dtype, np.integer) or n == 0):
        raise ValueError(
            f"arms must be {n} whole numbers, one for each reward, got shape {given.shape} of {given.dtype}"
        )
    if n and not (given.min() >= 0 and given.max() < n_arms):
        wrong = given.min() if given.min() < 0 else given.max()
        raise ValueError(f"arm {wrong} is unknown: this agent has arms 0 to {n_arms - 1}")
    return given.astype(np.int64)


def reward(value: Any) -> float:
    """A finite number."""
    try:
        if isinstance(value, str | bytes | bytearray | memoryview | complex | np.complexfloating):
            raise TypeError
        if isinstance(value, np.ndarray) and value.dtype.kind not in "biuf":
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"reward must be a number, not {shown(value)}") from None
    if not abs(number) <= LARGEST:
        raise ValueError(f"reward must be finite, not {number} (at most {LARGEST:g} in size)")
    return number
