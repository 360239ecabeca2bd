"""Norms, the largest eigenvalue and ridge-free leverages of the confidence ellipsoid around a fit.

>>> from albatross.models.ridge import ridge
>>> float(widest(ridge(2, strength=4.0)))
0.25
"""

from __future__ import annotations

import math

import numpy as np

from albatross.compiling import compiled, generic
from albatross.linalg.vectors import dot, norm
from albatross.models.ridge import Joint, Ridge, bias_estimates

estimate_norm = generic("estimate_norm")  # estimate_norm(fit) -> norm of theta_hat and the biases together
widest = generic("widest")  # widest(fit) -> the largest eigenvalue of V^-1


@estimate_norm.register
def estimate_norm_ridge(fit: Ridge):
    return norm(fit.theta)


@estimate_norm.register
def estimate_norm_joint(fit: Joint):
    return math.hypot(norm(fit.theta), norm(bias_estimates(fit)))


@widest.register
def widest_ridge(fit: Ridge):
    return np.linalg.eigvalsh(fit.root.T @ fit.root)[-1]


@widest.register
def widest_joint(fit: Joint):
    # A root of V^-1: the biases given theta, and the effect of theta on them.
    n_arms, dim = fit.context_sum.shape
    root = np.zeros((n_arms + dim, n_arms + dim))
    for arm in range(n_arms):
        root[arm, arm] = 1.0 / math.sqrt(fit.weight[arm])
        for j in range(dim):
            root[arm, n_arms + j] = -dot(fit.context_sum[arm], fit.root[:, j]) / fit.weight[arm]
    for i in range(dim):
        for j in range(dim):
            root[n_arms + i, n_arms + j] = fit.root[i, j]
    return np.linalg.eigvalsh(root.T @ root)[-1]


# Least squares without ridge: V is G, the sum of z z', and a bias is identified once its arm has been played.
centred = generic("centred")  # centred(fit, arm, x) -> x after elimination of the bias of its arm
unplayed = generic("unplayed")  # unplayed(fit, arm) -> whether the bias of the arm is unidentified
# exact_leverages(fit, products, arms, strength) -> (R,) z' (G^-1 + strength G^-2) z, from centred rows times the root.
# If the rows do not span the space, G^-1 z is one of many solutions, and with biases not the shortest: maybe too wide.
exact_leverages = generic("exact_leverages")


@centred.register
def centred_ridge(fit: Ridge, arm, x):
    return x


@centred.register
def centred_joint(fit: Joint, arm, x):
    return x - fit.context_sum[arm] / max(fit.weight[arm], 1.0)


@compiled
def centred_rows(fit, contexts, arms):
    """(R, d) every row after elimination of the bias of its arm."""
    rows = np.empty_like(contexts)
    for i in range(contexts.shape[0]):
        row = centred(fit, arms[i], contexts[i])
        for j in range(row.size):
            rows[i, j] = row[j]
    return rows


@unplayed.register
def unplayed_ridge(fit: Ridge, arm):
    return False


@unplayed.register
def unplayed_joint(fit: Joint, arm):
    return fit.weight[arm] == 0.0


@exact_leverages.register
def exact_leverages_ridge(fit: Ridge, products, arms, strength):
    solved = products @ fit.root.T  # G^-1 x
    found = np.empty(products.shape[0])
    for row in range(found.size):
        found[row] = dot(products[row], products[row]) + strength * dot(solved[row], solved[row])
    return found


@exact_leverages.register
def exact_leverages_joint(fit: Joint, products, arms, strength):
    solved = products @ fit.root.T  # the theta part of G^-1 z; the bias part follows
    shares = np.empty_like(fit.context_sum)
    for arm in range(shares.shape[0]):
        for j in range(shares.shape[1]):
            shares[arm, j] = -fit.context_sum[arm, j] / max(fit.weight[arm], 1.0)
    biases = solved @ shares.T
    found = np.empty(products.shape[0])
    for row in range(found.size):
        own = 1.0 / max(fit.weight[arms[row]], 1.0)
        biases[row, arms[row]] += own
        squares = dot(solved[row], solved[row]) + dot(biases[row], biases[row])
        found[row] = own + dot(products[row], products[row]) + strength * squares
    return found


def exact_half_axis(fit: Ridge | Joint, strength: float) -> float:
    """Return how far theta reaches where z' (G^-1 + strength G^-2) z is at most 1, once the plays span the space."""
    inverse = fit.root @ fit.root.T
    shares = np.zeros((1, inverse.shape[0]))
    if isinstance(fit, Joint):
        played = fit.weight > 0.0
        shares = fit.context_sum[played] / fit.weight[played, None]
    squared_axes = inverse + strength * inverse @ (np.eye(len(inverse)) + shares.T @ shares) @ inverse
    return math.sqrt(np.linalg.eigvalsh(squared_axes)[-1])
