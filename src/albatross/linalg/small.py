"""Products and factors of small matrices, as loops whose sums have one fixed order.

BLAS costs more than the work at these sizes, and its last digits depend on the processor. These loops run along rows,
so that they vectorise without any reordering: the same numbers everywhere, which replaying a log needs.
"""

from __future__ import annotations

import math

import numpy as np

from albatross.compiling import compiled


@compiled
def product(a, b):
    """Return a b.

    >>> product(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    result = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            weight = a[i, k]
            if weight != 0.0:
                for j in range(b.shape[1]):
                    result[i, j] += weight * b[k, j]
    return result


@compiled
def add_gram(total, a, weight):
    """Add weight a'a to the lower triangle of `total`."""
    for k in range(a.shape[0]):
        for i in range(a.shape[1]):
            scaled = weight * a[k, i]
            for j in range(i + 1):
                total[i, j] += scaled * a[k, j]


@compiled
def mirror(matrix):
    """Copy the lower triangle to the upper one, in place."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[j, i] = matrix[i, j]


@compiled
def transposed(a):
    """Return a' as an array of its own."""
    result = np.empty((a.shape[1], a.shape[0]))
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            result[j, i] = a[i, j]
    return result


@compiled
def apply(a, x):
    """Return a x."""
    result = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            result[i] += a[i, j] * x[j]
    return result


@compiled
def cholesky(matrix):
    """Return the lower triangular L with L L' = matrix, of whose upper triangle nothing is read.

    >>> cholesky(np.array([[4.0, 0.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    n = matrix.shape[0]
    upper = np.zeros((n, n))  # L', row by row
    for i in range(n):
        for j in range(i + 1):
            upper[j, i] = matrix[i, j]
    for k in range(n):
        pivot = math.sqrt(max(upper[k, k], 2.0**-52 * matrix[k, k]))  # rounding may cancel a pivot
        for j in range(k, n):
            upper[k, j] /= pivot
        upper[k, k] = pivot
        for i in range(k + 1, n):
            weight = upper[k, i]
            for j in range(i, n):
                upper[i, j] -= weight * upper[k, j]
    return transposed(upper)


@compiled
def solve_lower(lower, b):
    """Return L^-1 b for a lower triangular L and a matrix b.

    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]])).tolist()
    [[1.0], [2.0]]
    """
    solved = b.copy()
    for i in range(b.shape[0]):
        for k in range(i):
            weight = lower[i, k]
            for j in range(b.shape[1]):
                solved[i, j] -= weight * solved[k, j]
        for j in range(b.shape[1]):
            solved[i, j] /= lower[i, i]
    return solved


@compiled
def inverse_of_lower(lower):
    """Return the inverse of a lower triangular matrix."""
    n = lower.shape[0]
    inverse = np.zeros((n, n))
    for i in range(n):
        pivot = 1.0 / lower[i, i]
        for k in range(i):
            weight = -lower[i, k] * pivot
            for j in range(k + 1):
                inverse[i, j] += weight * inverse[k, j]
        inverse[i, i] = pivot
    return inverse
