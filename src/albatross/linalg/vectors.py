"""Products with one vector, as plain loops.

At 75 rows of 50 numbers, BLAS is no faster. It costs a tenth of a microsecond per call, which dominates at 10 rows of
16. "reassoc" allows the compiler to reorder sums, so that they vectorise.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from albatross.compiling import compiled


@partial(compiled, fastmath={"reassoc"})
def dot(x, y):
    """Return the inner product <x, y>.

    >>> float(dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    11.0
    """
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@compiled
def norm(x):
    """Return the Euclidean norm of a vector."""
    return math.sqrt(dot(x, x))


@compiled
def times(rows, x):
    """(n,) inner products of the rows with x."""
    products = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        products[i] = dot(rows[i], x)
    return products


@compiled
def combined(rows, weights):
    """(d,) weighted sum of the rows."""
    total = np.zeros(rows.shape[1])
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            total[j] += weights[i] * rows[i, j]
    return total


@compiled
def row_squares(rows):
    """(n,) squared norms of the rows."""
    squares = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        squares[i] = dot(rows[i], rows[i])
    return squares


@compiled
def row_norms(rows):
    """(n,) norms of the rows."""
    return np.sqrt(row_squares(rows))


@compiled
def hadamard(row, column):
    """+1 or -1: the parity of the bits that both numbers have (Sylvester's matrix of any order)."""
    bits = row & column
    bits ^= bits >> 16
    bits ^= bits >> 8
    bits ^= bits >> 4
    bits ^= bits >> 2
    bits ^= bits >> 1
    return 1.0 - 2.0 * (bits & 1)
