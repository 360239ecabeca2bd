"""Tridiagonal form of a symmetric matrix A, to compute with (A + shift I)^-1 for many shifts.

Householder reflections make T = Q'AQ tridiagonal in O(d^3), without iterations that could fail to converge. Every shift
then costs O(d), by the recursion of the pivots of T + shift I.
"""

from __future__ import annotations

import math

import numpy as np

from albatross.compiling import compiled

_NOTHING = 1e-140  # whose square does not underflow


@compiled
def tridiagonal(matrix, vector):
    """Return the diagonal (d,) and the off-diagonal (d,) of Q'AQ, the latter ending in a 0, and Q'b.

    A has no negative eigenvalue; entries below 1e-140 are treated as 0.

    >>> diagonal, off, turned = tridiagonal(np.array([[9.0, 0.0, 4.0], [0.0, 9.0, 3.0], [4.0, 3.0, 9.0]]), np.ones(3))
    >>> diagonal.round(6).tolist(), (off + 0.0).round(6).tolist(), turned.round(6).tolist()
    ([9.0, 9.0, 9.0], [0.0, -5.0, 0.0], [-0.2, -1.4, 1.0])
    """
    left, turned = matrix.copy(), vector.copy()
    dim = vector.size
    off = np.zeros(dim)
    v, p = np.empty(dim), np.empty(dim)
    for k in range(dim - 1, 1, -1):  # from the last row up: loops that start at 0 are vectorised
        size = 0.0
        for i in range(k):
            v[i] = left[k, i]
            size += v[i] * v[i]
        size = math.sqrt(size)
        if size <= _NOTHING:
            continue
        off[k - 1] = -math.copysign(size, v[k - 1])
        v[k - 1] -= off[k - 1]
        half = size * abs(v[k - 1])  # v'v / 2: the reflection is I - v v' / half
        # A -> A - v q' - q v', q = p - (v'p / 2 half) v, p = A v / half; by rows, which A's symmetry allows
        p.fill(0.0)
        for i in range(k):
            for j in range(k):
                p[j] += left[i, j] * v[i]
        along, shadow = 0.0, 0.0
        for i in range(k):
            p[i] /= half
            along += v[i] * p[i]
            shadow += v[i] * turned[i]
        along, shadow = along / (2.0 * half), shadow / half
        for i in range(k):
            p[i] -= along * v[i]
            turned[i] -= shadow * v[i]
        for i in range(k):
            for j in range(k):
                left[i, j] -= v[i] * p[j] + p[i] * v[j]
    if dim > 1:
        off[0] = left[1, 0]
    diagonal, trace = np.empty(dim), 0.0
    for i in range(dim):
        diagonal[i] = left[i, i]
        trace += diagonal[i]
    diagonal += 2.0**-50 * trace  # compensate rounding: T must have no negative eigenvalue either
    return diagonal, off, turned


@compiled
def shifted(diagonal, off, vector, shift):
    """Return b'(T + shift I)^-1 b and ln det(I + T / shift), for T without negative eigenvalues.

    >>> quad, log_det = shifted(np.array([1.0, 1.0]), np.array([1.0, 0.0]), np.array([1.0, 0.0]), 1.0)
    >>> round(float(quad), 6), round(math.exp(log_det), 6)
    (0.666667, 3.0)
    """
    value, pivot = 0.0, 1.0
    quad, log_det, above = 0.0, 0.0, 0.0
    for k in range(diagonal.size):
        value = vector[k] - above * value / pivot
        # In exact arithmetic, no pivot of T + shift I is below shift.
        pivot = max(diagonal[k] + shift - above * above / pivot, shift)
        quad += value * value / pivot
        log_det += math.log(pivot / shift)
        above = off[k]
    return quad, log_det
