"""Kinds of features: numbers, categories and vectors, of the arm or of the situation.

A kind turns the values of n records into raw rows of n floats: a number is itself, a category the place of its value,
and a missing value NaN. `encoding.py` makes coordinates of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import numpy as np

from albatross import checks
from albatross.checks import shown

Whose = Literal["arm", "situation"]
_PLAIN = frozenset({float, int})
_NAMES = frozenset({str, int})
_MOST_REMEMBERED = 100_000  # hashed values whose bucket is kept in memory


@dataclass(frozen=True, kw_only=True)
class Number:
    """A real number, scaled to (value - mean) / sd."""

    mean: float = 0.0  #: is encoded as 0
    sd: float = 1.0  #: above the mean by this much is encoded as 1
    of: Whose = "arm"  #: "arm" or "situation"

    def __post_init__(self) -> None:
        checks.real("mean", self.mean)
        checks.positive("sd", self.sd)
        _check_whose(self.of)

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return 1

    def coordinates(self, name: str) -> list[str]:
        """Return the names of the coordinates."""
        return [name]

    def raw(self, name: str, values: Sequence[Any]) -> Sequence[float]:
        """Return one row: the numbers (n,), NaN if missing."""
        if _PLAIN.issuperset(map(type, values)):  # the common case
            return values
        return [_number(name, value) for value in values]


@dataclass(frozen=True, kw_only=True)
class Category:
    """One of several values: one indicator per listed value, or hashed into a number of buckets."""

    values: Sequence[Any] = ()  #: texts or whole numbers
    other: bool = False  #: whether values that are not listed share an indicator; otherwise they are refused
    buckets: int = 0  #: number of buckets of a hashed category, instead of values
    of: Whose = "arm"  #: "arm" or "situation"

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Sequence):
            raise ValueError(f"values must be a list of texts or whole numbers, not {shown(self.values)}")
        object.__setattr__(self, "values", tuple(self.values))
        checks.whole("buckets", self.buckets, least=0)
        checks.flag("other", self.other)
        _check_whose(self.of)
        if bool(self.values) == bool(self.buckets):
            raise ValueError("a category needs either values or buckets, not both and not none")
        if self.buckets and self.other:
            raise ValueError("a hashed category takes no other=True: every value has a bucket")
        known = set()
        for value in self.values:
            if type(value) not in (str, int):
                raise ValueError(f"values of a category must be texts or whole numbers, not {shown(value)}")
            if value in known:
                raise ValueError(f"values of a category must differ, but {shown(value)} is listed twice")
            known.add(value)

    @cached_property
    def _codes(self) -> dict[Any, float]:  # floats, because NumPy and `array` convert integers slowly
        return {value: float(code) for code, value in enumerate(self.values)}

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return self.buckets or len(self.values) + self.other

    def coordinates(self, name: str) -> list[str]:
        """Return the names of the coordinates."""
        if self.buckets:
            return [f"{name}#{bucket}" for bucket in range(self.buckets)]
        return [f"{name}={value}" for value in self.values] + [f"{name}=(other)"] * self.other

    def raw(self, name: str, values: Sequence[Any]) -> Sequence[float]:
        """Return one row: the place of every value (n,), NaN if missing."""
        if _NAMES.issuperset(map(type, values)):  # True would be 1
            try:
                return list(map(self._codes.__getitem__, values))  # all are known: the common case
            except KeyError:
                pass
        return [self._code(name, value) for value in values]

    def _code(self, name: str, value: Any) -> float:
        if is_missing(value):
            return math.nan
        value = value.item() if isinstance(value, np.generic) else value
        if type(value) is float and value.is_integer():  # a column of whole numbers with gaps is one of floats
            value = int(value)
        if type(value) not in (str, int):
            raise ValueError(f"{name} must be a text or a whole number, not {shown(value)}")
        if value in self._codes:
            return self._codes[value]
        if self.buckets:
            text = str(value).encode("utf-8", "surrogatepass")
            bucket = int.from_bytes(blake2b(text, digest_size=8).digest(), "little") % self.buckets
            if len(self._codes) < _MOST_REMEMBERED:
                self._codes[value] = float(bucket)
            return float(bucket)
        if self.other:
            return float(len(self.values))
        known = ", ".join(map(shown, self.values[:8])) + ", ..." * (len(self.values) > 8)
        raise ValueError(f"{name}={shown(value)} is not one of its values: {known}")


@dataclass(frozen=True, kw_only=True)
class Vector:
    """Several numbers, such as an embedding."""

    length: int  #: how many
    of: Whose = "arm"  #: "arm" or "situation"

    def __post_init__(self) -> None:
        checks.whole("length", self.length, least=1)
        _check_whose(self.of)

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return self.length

    def coordinates(self, name: str) -> list[str]:
        """Return the names of the coordinates."""
        return [f"{name}[{j}]" for j in range(self.length)]

    def raw(self, name: str, values: Sequence[Any]) -> Sequence[float]:
        """Return `length` rows of n numbers, one after the other."""
        nothing = np.full(self.length, np.nan)
        vectors = [nothing if is_missing(value) else self._checked(name, value) for value in values]
        return np.ascontiguousarray(np.reshape(vectors, (len(vectors), self.length)).T).ravel().tolist()

    def _checked(self, name: str, value: Any) -> np.ndarray:
        try:
            if isinstance(value, list | tuple) and any(isinstance(each, bool) for each in value):
                raise ValueError("True would be 1")
            return checks.finite_array(name, value, (self.length,))
        except ValueError:
            raise ValueError(f"{name} must be {self.length} finite numbers, not {shown(value)}") from None


Feature = Number | Category | Vector
KINDS: dict[str, type[Feature]] = {"number": Number, "category": Category, "vector": Vector}


def is_missing(value: Any) -> bool:
    """Return whether the value is absent: None, or NaN as data frames have it."""
    return value is None or (isinstance(value, float | np.floating) and value != value)


def _check_whose(of: Any) -> None:
    checks.one_of("of", of, ("arm", "situation"))


def _number(name: str, value: Any) -> float:
    """Return a number, NaN if it is missing; refuse texts and truth values."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{name} must be a number, not {shown(value)}")
    return float(value)
