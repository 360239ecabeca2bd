"""Raw values to coordinates, in one compiled pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled


class Plan(NamedTuple):
    """A schema as compiled code sees it."""

    # (r, 4) for every row of raw values, those of the arm first: its first coordinate, the number of indicators of a
    # category or 0 for a number, mean and sd
    rows: np.ndarray
    products: np.ndarray  # (p, 4) int64: first coordinate and width of both sides


@compiled
def fill(plan, of_arms, of_situations, contexts, missing):
    """Write the contexts (n, d) of raw values (rows, n), or (rows, 1) for one situation.

    Counts the missing values of every row. Returns the row of a number that is infinite or too large; -1 if there is
    none, and -2 if moreover no value is missing.
    """
    n = contexts.shape[0]
    n_arms = of_arms.shape[0]
    contexts.fill(0.0)
    found = -2
    for row in range(plan.rows.shape[0]):
        values = of_arms[row] if row < n_arms else of_situations[row - n_arms]
        start, width, mean, sd = int(plan.rows[row, 0]), plan.rows[row, 1], plan.rows[row, 2], plan.rows[row, 3]
        step = 0 if values.size < n else 1
        for i in range(n):
            value = values[i * step]
            if value != value:
                if i < values.size:
                    missing[row] += 1
                    found = -1
            elif width > 0.0:
                contexts[i, start + int(value)] = 1.0
            elif abs(value) <= checks.LARGEST:
                contexts[i, start] = (value - mean) / sd
            else:
                return row
    last = contexts.shape[1]
    for p in range(plan.products.shape[0]):
        last -= plan.products[p, 1] * plan.products[p, 3]
    for p in range(plan.products.shape[0]):
        left, left_width, right, right_width = plan.products[p]
        for i in range(n):
            for j in range(left_width):
                for k in range(right_width):
                    contexts[i, last + j * right_width + k] = contexts[i, left + j] * contexts[i, right + k]
        last += left_width * right_width
    return found
