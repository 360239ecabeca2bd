"""Nested feature maps: map m is the first d_m features; the last map has all of them."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.options import Option

Dims = Annotated[tuple[int, ...], Option(checks.nested_dims, lambda dims: np.array(dims, np.int64))]


def check_maps(dims: tuple[int, ...], n_arms: int, dim: int) -> None:
    """Refuse maps that do not fit the arms, and a single arm."""
    if n_arms < 2:
        raise ValueError(f"n_arms must be at least 2 for random exploration to tell arms apart, not {n_arms}")
    if dims[-1] != dim:
        raise ValueError(f"dims={dims} must end with all features, of which arms have {dim}")


@compiled
def in_map(rows, size):
    """Return the features of a map: features beyond its dimension are set to 0."""
    seen = rows.copy()
    for i in range(rows.shape[0]):
        for j in range(size, rows.shape[1]):
            seen[i, j] = 0.0
    return seen
