"""Sufficient statistics of all plays, from which a fit can be rebuilt when its ridge changes.

Biases are eliminated, as in `Joint`. The sums are centred within the arms,

    G = sum_i (sum x x' - s_i s_i' / N_i),   c = sum_i (sum y x - s_i r_i / N_i),

where arm i has N_i plays with sum of contexts s_i and sum of rewards r_i. A prior of `bias_strength` plays of reward 0
on every bias adds s_i s_i' / (N_i (1 + N_i / bias_strength)), which is never negative. An infinite strength means a
model without biases.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled, generic
from albatross.linalg.vectors import dot, times
from albatross.models.ridge import Joint, Ridge

_OCTAVES = 20  # ridges from 2^-20 to 2^20


class Moments(NamedTuple):
    """Sums over all plays."""

    pulls: np.ndarray  # (K,)
    reward_sum: np.ndarray  # (K,)
    context_sum: np.ndarray  # (K, d)
    gram: np.ndarray  # (d, d) centred within the arms
    cross: np.ndarray  # (d,) centred within the arms


def moments(n_arms: int, dim: int) -> Moments:
    """Return the sums before the first play."""
    checks.model_fits(dim, rows=n_arms + dim)
    return Moments(np.zeros(n_arms), np.zeros(n_arms), np.zeros((n_arms, dim)), np.zeros((dim, dim)), np.zeros(dim))


@compiled
def record(sums, arm, x, reward, n):
    """Add n plays of x with total reward `reward`.

    >>> sums = moments(1, 1)
    >>> record(sums, 0, np.array([1.0]), 2.0, 1)
    >>> record(sums, 0, np.array([3.0]), 4.0, 1)
    >>> sums.gram.tolist(), sums.cross.tolist()
    ([[2.0]], [2.0])
    """
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


def fold_moments(sums: Moments, arm: int, bias_strength: float) -> None:
    """Settle what the plays of an arm say of theta under the prior of its bias, before its own sums are cleared."""
    n = sums.pulls[arm]
    if n > 0.0 and bias_strength > 0.0:
        weight = 1.0 / (n * (1.0 + n / bias_strength))
        sums.gram[:] += weight * np.outer(sums.context_sum[arm], sums.context_sum[arm])
        sums.cross[:] += weight * sums.reward_sum[arm] * sums.context_sum[arm]


@compiled
def reduced(sums, bias_strength):
    """Return the normal equations (d, d) and (d,) of theta, with biases eliminated and without a ridge on theta."""
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
def means_under(sums, contexts, arms, theta, bias_strength):
    """(R,) estimated mean of every row for this theta, with the biases that fit best."""
    means = times(contexts, theta)
    for row in range(means.size):
        arm = arms[row]
        unexplained = sums.reward_sum[arm] - dot(sums.context_sum[arm], theta)
        means[row] += unexplained / (sums.pulls[arm] + bias_strength)
    return means


@compiled
def settle(fit, values, basis, cross):
    """Set root and theta of a fit whose matrix has these eigenvalues and eigenvectors (columns)."""
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
    """`settle` on all data with this ridge on theta; return ln det P - d ln strength."""
    gram, cross = reduced(sums, bias_strength)
    spectrum, basis = np.linalg.eigh(gram)
    spectrum = np.maximum(spectrum, 0.0)
    settle(fit, spectrum + strength, basis, cross)
    return np.log1p(spectrum / strength).sum()


@compiled
def log_evidence(spectrum, coordinates, strength, sigma):
    """Return the log-likelihood of all rewards under the prior N(0, sigma^2/strength I), minus that of theta = 0.

    >>> round(log_evidence(np.array([3.0]), np.array([2.0]), 1.0, 1.0), 12)
    -0.19314718056
    """
    total = 0.0
    for j in range(spectrum.size):
        total += coordinates[j] ** 2 / (spectrum[j] + strength) / sigma**2 - math.log1p(spectrum[j] / strength)
    return total / 2.0


@compiled
def likeliest_ridge(spectrum, coordinates, sigma):
    """Return the power of two with the largest evidence; 1 if the data are uninformative."""
    best, most = 1.0, log_evidence(spectrum, coordinates, 1.0, sigma)
    for octave in range(-_OCTAVES, _OCTAVES + 1):
        evidence = log_evidence(spectrum, coordinates, 2.0**octave, sigma)
        if evidence > most:
            best, most = 2.0**octave, evidence
    return best


rebuild = generic("rebuild")  # rebuild(fit, sums, strength): the fit as if it had started with V = strength I


@rebuild.register
def rebuild_ridge(fit: Ridge, sums, strength):
    fit.log_det[0] = settle_ridge(fit, sums, np.inf, strength)


@rebuild.register
def rebuild_joint(fit: Joint, sums, strength):
    fit.log_det[0] = settle_ridge(fit, sums, strength, strength)
    for arm in range(sums.pulls.size):
        fit.weight[arm] = sums.pulls[arm] + strength
        fit.log_det[0] += np.log1p(sums.pulls[arm] / strength)
