"""Contexts in a unit of their own, the size of those offered first, so that users need not scale them."""

from __future__ import annotations

import math

import numpy as np

from albatross.compiling import compiled

_SMALLEST = 1e-40  # contexts up to 1e100 can still be squared and summed in such a unit


@compiled
def unit_of(offer):
    """Root mean square length of the contexts of eligible rows."""
    total, rows = 0.0, 0
    for row in range(offer.eligible.size):
        if offer.eligible[row]:
            total += np.dot(offer.contexts[row], offer.contexts[row])
            rows += 1
    return usable(math.sqrt(total / rows))


@compiled
def usable(unit):
    """Return the unit, or 1 if contexts are zero.

    >>> usable(0.25), usable(0.0)
    (0.25, 1.0)
    """
    return unit if unit > _SMALLEST else 1.0


@compiled
def with_constant(contexts, unit):
    """Return rows [1, x / unit].

    >>> with_constant(np.array([[2.0, 6.0]]), 2.0).tolist()
    [[1.0, 1.0, 3.0]]
    """
    rows, scale = np.empty((contexts.shape[0], contexts.shape[1] + 1)), 1.0 / unit
    for i in range(contexts.shape[0]):
        rows[i, 0] = 1.0
        for j in range(contexts.shape[1]):
            rows[i, j + 1] = contexts[i, j] * scale
    return rows
