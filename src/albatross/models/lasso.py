"""The lasso by coordinate descent on the Gram matrix, and least squares on a support."""

from __future__ import annotations

import numpy as np

from albatross.compiling import compiled

_TOLERANCE = 1e-12
_MOST_SWEEPS = 1_000


@compiled
def descend(gram, cross, penalty, theta):
    """Move theta in place to the minimum of <theta, gram theta>/2 - <cross, theta> + penalty |theta|_1.

    The loss is a sum over t rows: `penalty` is t times that for half the mean squared error.

    >>> theta = np.zeros(2)
    >>> descend(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([3.0, 1.0]), 1.0, theta)
    >>> theta.tolist()
    [1.0, 0.0]
    """
    dim = cross.size
    slope = cross.copy()
    for j in range(dim):
        for i in range(dim):
            slope[i] -= theta[j] * gram[i, j]
    for _ in range(_MOST_SWEEPS):
        largest_move, largest = 0.0, 0.0
        for j in range(dim):
            curvature = gram[j, j]
            if curvature <= 0.0:
                continue
            pull = slope[j] + curvature * theta[j]
            target = np.sign(pull) * max(abs(pull) - penalty, 0.0) / curvature
            move = target - theta[j]
            if move != 0.0:
                theta[j] = target
                for i in range(dim):
                    slope[i] -= move * gram[j, i]
            scale = np.sqrt(curvature)  # so that features in different units count equally
            largest_move = max(largest_move, scale * abs(move))
            largest = max(largest, scale * abs(target))
        if largest_move <= _TOLERANCE * largest:
            break


@compiled
def least_squares_on(gram, cross, support):
    """(d,) least squares on the support, 0 elsewhere; the shortest solution if there are several.

    >>> least_squares_on(np.array([[2.0, 1.0], [1.0, 4.0]]), np.array([3.0, 1.0]), np.array([True, False])).tolist()
    [1.5, 0.0]
    """
    dim = cross.size
    kept = np.flatnonzero(support)
    theta = np.zeros(dim)
    if kept.size == 0:
        return theta
    block = np.empty((kept.size, kept.size))
    for a in range(kept.size):
        for b in range(kept.size):
            block[a, b] = gram[kept[a], kept[b]]
    spectrum, basis = np.linalg.eigh(block)
    floor = dim * 2.0**-52 * spectrum[kept.size - 1]
    for k in range(kept.size):
        if spectrum[k] > floor:
            coordinate = 0.0
            for a in range(kept.size):
                coordinate += basis[a, k] * cross[kept[a]]
            for a in range(kept.size):
                theta[kept[a]] += basis[a, k] * coordinate / spectrum[k]
    return theta
