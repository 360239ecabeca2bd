"""Products with one vector, as plain loops.

Plain loops for products with one vector: BLAS is no faster at 75 rows of 50 numbers, and loses a tenth of a
microsecond a call, which at 10 rows of 16 is the larger part. A sum in the written order would wait for itself at
every term, hence "reassoc".
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from albatross.compiling import compiled


@partial(compiled, fastmath={"reassoc"})
def dot(x, y):
    """<x, y>."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@compiled
def norm(x):
    """Length of a vector."""
    return math.sqrt(dot(x, x))


@compiled
def times(rows, x):
    """(n,) the inner product of every row with x."""
    products = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        products[i] = dot(rows[i], x)
    return products


@compiled
def combined(rows, weights):
    """(d,) the weighted sum of the rows."""
    total = np.zeros(rows.shape[1])
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            total[j] += weights[i] * rows[i, j]
    return total


@compiled
def row_squares(rows):
    """Squared length of every row."""
    squares = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        squares[i] = dot(rows[i], rows[i])
    return squares


@compiled
def row_norms(rows):
    """Length of every row."""
    return np.sqrt(row_squares(rows))
