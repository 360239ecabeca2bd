"""Select rows of a stored table for drawing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def groups(rows: Mapping[str, np.ndarray], *keys: str) -> dict[tuple[Any, ...], np.ndarray]:
    """Return the rows of every combination of the keys' values, in order of appearance."""
    columns = list(zip(*(rows[key].tolist() for key in keys), strict=True))
    found: dict[tuple[Any, ...], list[int]] = {}
    for position, key in enumerate(columns):
        found.setdefault(key, []).append(position)
    return {key: np.array(positions) for key, positions in found.items()}


def matrix(rows: Mapping[str, np.ndarray], chosen: np.ndarray, trial: str, along: str, value: str) -> np.ndarray:
    """Return the chosen rows as (trials, points)."""
    order = chosen[np.lexsort((rows[along][chosen], rows[trial][chosen]))]
    return rows[value][order].reshape(len(np.unique(rows[trial][chosen])), -1)


def by_policy(rows: Mapping[str, np.ndarray], *, along: str, value: str) -> dict[str, np.ndarray]:
    """Return (trials, points) for every policy, the points in ascending order of a column."""
    found = groups(rows, "policy").items()
    return {policy: matrix(rows, chosen, "trial", along, value) for (policy,), chosen in found}
