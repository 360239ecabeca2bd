"""What the data say of theta for any ridge: sums that a fit can be built from again when its ridge changes.

Biases are eliminated, as in `Joint`. The sums are kept centred within the arms,

    G = sum_i (sum x x' - s_i s_i' / N_i),   c = sum_i (sum y x - s_i r_i / N_i),

with N_i plays, contexts s_i and rewards r_i in sum. A prior of `bias_strength` plays of reward 0 on every bias adds
s_i s_i' / (N_i (1 + N_i / bias_strength)), which is never negative. An infinite strength is a model without biases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled, generic
from albatross.linalg.vectors import dot, times
from albatross.models.ridge import Joint, Ridge


class Moments(NamedTuple):
    """Sums over all plays."""

    pulls: np.ndarray  # (K,)
    reward_sum: np.ndarray  # (K,)
    context_sum: np.ndarray  # (K, d)
    gram: np.ndarray  # (d, d) centred within the arms
    cross: np.ndarray  # (d,) centred within the arms


def moments(n_arms: int, dim: int) -> Moments:
    """No plays yet."""
    checks.model_fits(dim, rows=n_arms + dim)
    return Moments(np.zeros(n_arms), np.zeros(n_arms), np.zeros((n_arms, dim)), np.zeros((dim, dim)), np.zeros(dim))


@compiled
def record(sums, arm, x, reward, n):
    """n plays of x that brought `reward` in sum."""
    before = sums.pulls[arm]
    if before > 0.0:
        centred = x - sums.context_sum[arm] / before
        weight = n * before / (before + n)
        surprise = weight * (reward / n - sums.reward_sum[arm] / before)
        for i in range(x.size):
            sums.cross[i] += surprise * centred[i]
            row = weight * centred[i]
            for j in range(x.size):
                sums.gram[i, j] += row * centred[j]
    sums.pulls[arm] += n
    sums.reward_sum[arm] += reward
    for j in range(x.size):
        sums.context_sum[arm, j] += n * x[j]


@compiled
def reduced(sums, bias_strength):
    """(d, d) and (d,) the normal equations of theta once the biases are eliminated, without a ridge on theta."""
    gram, cross = sums.gram.copy(), sums.cross.copy()
    if bias_strength == 0.0:
        return gram, cross
    for arm in range(sums.pulls.size):
        n = sums.pulls[arm]
        if n > 0.0:
            weight = 1.0 / (n * (1.0 + n / bias_strength))
            for i in range(cross.size):
                row = weight * sums.context_sum[arm, i]
                cross[i] += row * sums.reward_sum[arm]
                for j in range(cross.size):
                    gram[i, j] += row * sums.context_sum[arm, j]
    return gram, cross


@compiled
def means_under(sums, contexts, theta, bias_strength):
    """(K,) estimated mean of every arm if theta is right, with the biases that then fit best."""
    means = times(contexts, theta)
    for arm in range(means.size):
        unexplained = sums.reward_sum[arm] - dot(sums.context_sum[arm], theta)
        means[arm] += unexplained / (sums.pulls[arm] + bias_strength)
    return means


@compiled
def settle(fit, values, basis, cross):
    """The root and theta of a fit whose matrix has these eigenvalues and eigenvectors (columns)."""
    fit.theta.fill(0.0)
    for j in range(values.size):
        coordinate = 0.0
        for i in range(values.size):
            coordinate += basis[i, j] * cross[i]
        for i in range(values.size):
            fit.root[i, j] = basis[i, j] / np.sqrt(values[j])
            fit.theta[i] += basis[i, j] * coordinate / values[j]


@compiled
def settle_ridge(fit, sums, bias_strength, strength):
    """`settle` on all data with this ridge on theta; ln det P - d ln strength."""
    gram, cross = reduced(sums, bias_strength)
    spectrum, basis = np.linalg.eigh(gram)
    spectrum = np.maximum(spectrum, 0.0)
    settle(fit, spectrum + strength, basis, cross)
    return np.log1p(spectrum / strength).sum()


rebuild = generic("rebuild")  # rebuild(fit, sums, strength): the fit that would have begun with V = strength I


@rebuild.register
def rebuild_ridge(fit: Ridge, sums, strength):
    fit.log_det[0] = settle_ridge(fit, sums, np.inf, strength)


@rebuild.register
def rebuild_joint(fit: Joint, sums, strength):
    fit.log_det[0] = settle_ridge(fit, sums, strength, strength)
    for arm in range(sums.pulls.size):
        fit.weight[arm] = sums.pulls[arm] + strength
        fit.log_det[0] += np.log1p(sums.pulls[arm] / strength)
