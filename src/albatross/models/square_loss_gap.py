"""The gap in square loss between a larger and a smaller feature map, without estimating either regression.

Foster, Krishnamurthy and Luo (2019), Section 3. Features are made uncorrelated one after the other, so that the larger
map adds only those that the smaller one lacks. With v their product with the reward, the gap is ||E v||^2.
"""

from __future__ import annotations

import math

import numpy as np

from albatross.compiling import compiled

_NOTHING_NEW = 1e-8  # of a feature's variance that those before it do not explain


@compiled
def whitener(covariance, smaller):
    """(d, d) W such that W x is uncorrelated with variance 1; the rows of the first `smaller` features are 0.

    Cholesky's method on the correlations: row j uses only features up to j, and units do not matter. A feature that is
    (nearly) a combination of those before it adds nothing, so its row is 0 too.
    """
    dim = covariance.shape[0]
    factor, inverse = np.zeros((dim, dim)), np.zeros((dim, dim))
    for i in range(dim):
        left = 1.0
        for j in range(i):
            if factor[j, j] > 0.0 and covariance[i, i] > 0.0:
                shared = covariance[i, j] / math.sqrt(covariance[i, i] * covariance[j, j])
                for k in range(j):
                    shared -= factor[i, k] * factor[j, k]
                factor[i, j] = shared / factor[j, j]
                left -= factor[i, j] * factor[i, j]
        if covariance[i, i] > 0.0 and left > _NOTHING_NEW:
            factor[i, i] = math.sqrt(left)
            inverse[i, i] = 1.0 / (factor[i, i] * math.sqrt(covariance[i, i]))
            for j in range(i):
                for k in range(j + 1):
                    inverse[i, k] -= factor[i, j] * inverse[j, k] / factor[i, i]
    inverse[:smaller] = 0.0
    return inverse


@compiled
def square_loss_gap(covariance, smaller, moment, second, n):
    """Return the estimated square-loss gap between the first `smaller` features and all, and its spread if the gap is
    0.

    `moment` and `second` are the sums of x y and of y^2 x x' over n random plays. With W of `whitener`, v = W x y.
    """
    W = whitener(covariance, smaller)
    total, outer = W @ moment, W @ second @ W.T
    pairs = n * (n - 1.0)
    estimate = (np.dot(total, total) - np.trace(outer)) / pairs
    spread = 0.0  # tr S^2
    for i in range(total.size):
        for j in range(total.size):
            spread += (outer[i, j] / n - total[i] / n * total[j] / n) ** 2
    return estimate, math.sqrt(2.0 * spread / pairs)
