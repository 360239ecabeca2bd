"""Products and factors of small matrices, as loops whose sums have one fixed order.

BLAS costs more than the work at these sizes, and its last digits depend on the processor. These loops run along rows,
so that they vectorise without any reordering: the same numbers everywhere, which replaying a log needs. Four rows at a
time halve the time, since sums are then loaded and stored once for four products.
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
    result, n = np.zeros((a.shape[0], b.shape[1])), a.shape[1]
    for i in range(a.shape[0]):
        for k in range(0, n - 3, 4):
            w0, w1, w2, w3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            if w0 != 0.0 or w1 != 0.0 or w2 != 0.0 or w3 != 0.0:
                for j in range(b.shape[1]):
                    result[i, j] += (w0 * b[k, j] + w1 * b[k + 1, j]) + (w2 * b[k + 2, j] + w3 * b[k + 3, j])
        for k in range(n - n % 4, n):
            if a[i, k] != 0.0:
                for j in range(b.shape[1]):
                    result[i, j] += a[i, k] * b[k, j]
    return result


@compiled
def add_gram(total, a, weight):
    """Add weight a'a to the lower triangle of `total`."""
    m = a.shape[0]
    for k in range(0, m - 3, 4):
        for i in range(a.shape[1]):
            w0, w1, w2, w3 = weight * a[k, i], weight * a[k + 1, i], weight * a[k + 2, i], weight * a[k + 3, i]
            for j in range(i + 1):
                total[i, j] += (w0 * a[k, j] + w1 * a[k + 1, j]) + (w2 * a[k + 2, j] + w3 * a[k + 3, j])
    for k in range(m - m % 4, m):
        for i in range(a.shape[1]):
            scaled = weight * a[k, i]
            for j in range(i + 1):
                total[i, j] += scaled * a[k, j]


@compiled
def add_gram_of_lower(total, a, weight):
    """Add weight a'a to the lower triangle of `total`, for a lower triangular a."""
    for k in range(a.shape[0]):
        for i in range(k + 1):
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

    A column of L is 0 if rounding left no variance there.

    >>> cholesky(np.array([[4.0, 0.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    n = matrix.shape[0]
    upper = np.zeros((n, n))  # L', row by row
    for k in range(n):
        for j in range(k, n):
            upper[k, j] = matrix[j, k]
        for r in range(0, k - 3, 4):
            w0, w1, w2, w3 = upper[r, k], upper[r + 1, k], upper[r + 2, k], upper[r + 3, k]
            for j in range(k, n):
                upper[k, j] -= (w0 * upper[r, j] + w1 * upper[r + 1, j]) + (w2 * upper[r + 2, j] + w3 * upper[r + 3, j])
        for r in range(k - k % 4, k):
            weight = upper[r, k]
            for j in range(k, n):
                upper[k, j] -= weight * upper[r, j]
        upper[k, k] = max(upper[k, k], 2.0**-52 * matrix[k, k])  # rounding may cancel a pivot
        if upper[k, k] <= 0.0:
            upper[k, k:] = 0.0
            continue
        scale = 1.0 / math.sqrt(upper[k, k])
        for j in range(k, n):
            upper[k, j] *= scale
    return transposed(upper)


@compiled
def solve_lower(lower, b):
    """Return L^-1 b for a lower triangular L and a matrix b.

    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]])).tolist()
    [[1.0], [2.0]]
    """
    solved = b.copy()
    for i in range(b.shape[0]):
        for k in range(0, i - 3, 4):
            w0, w1, w2, w3 = lower[i, k], lower[i, k + 1], lower[i, k + 2], lower[i, k + 3]
            for j in range(b.shape[1]):
                solved[i, j] -= (w0 * solved[k, j] + w1 * solved[k + 1, j]) + (
                    w2 * solved[k + 2, j] + w3 * solved[k + 3, j]
                )
        for k in range(i - i % 4, i):
            for j in range(b.shape[1]):
                solved[i, j] -= lower[i, k] * solved[k, j]
        scale = 1.0 / lower[i, i]
        for j in range(b.shape[1]):
            solved[i, j] *= scale
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
