"""A policy's state as a tree: NamedTuples and tuples whose leaves are arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


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


def mapped(function: Callable[..., np.ndarray], *states: Any) -> Any:
    """The function of the arrays that stand in the same place of each state, through nested NamedTuples and tuples."""
    first = states[0]
    if isinstance(first, np.ndarray):
        return function(*states)
    parts = tuple(mapped(function, *column) for column in zip(*states, strict=True))
    return type(first)(*parts) if hasattr(first, "_fields") else parts
