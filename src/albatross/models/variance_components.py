"""Variances of biases, theta and noise, estimated by empirical Bayes on a grid.

    y = m + mu_i + <x, theta> + noise,   m flat,  mu_i ~ N(0, sigma^2 / r),  theta ~ N(0, sigma^2 / lam I).

The evidence of (r, lam), with sigma^2 integrated out, has a closed form (MacKay 1992). It is multiplied by half-Cauchy
priors on the standard deviations (Gelman 2006), and the estimates are posterior means of the standard deviations:
unlike maxima, they do not collapse to 0. For each r the matrix is made tridiagonal once; each lam then costs O(d).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled, generic
from albatross.linalg.tridiagonal import shifted, tridiagonal
from albatross.linalg.vectors import row_squares
from albatross.models.ridge import Joint, Ridge, joint, refit, ridge

BIAS_RIDGE, RIDGE, NOISE, IN_USE, NEXT = 0, 1, 2, 3, 4  # indices: r, lam, sigma^2, D_eff, next estimate
_BIAS_RIDGES = 4.0 ** np.arange(-12, 8)
_SIGNALS = 2.0 ** np.arange(-20, 27)  # signal-to-noise ratios, mean ||x||^2 / lam; large ones are
# for a feature in a far larger unit than the others
FIRST_LOOK = 16.0
_GROWTH = 2.0**0.25  # of the time between estimates
_ALL_BIAS_RIDGES_UNTIL = 300.0
_FLAT = 1e-6  # precision of m
_LEAST = 1e-12


class Totals(NamedTuple):
    """Sums over all plays of rows [1, x] and rewards y."""

    gram: np.ndarray  # (d + 1, d + 1) sum of [1, x][1, x]'; the number of plays is its first entry
    moment: np.ndarray  # (d + 1,) sum of y [1, x]
    square: np.ndarray  # (1,) sum of y^2


def no_totals(dim: int) -> Totals:
    """Return the sums before the first play."""
    return Totals(np.zeros((dim + 1, dim + 1)), np.zeros(dim + 1), np.zeros(1))


def first_components(sigma: float) -> np.ndarray:
    """Return the initial components: r = 1, lam = 1, sigma^2 as given (1 if `sigma` is 0), D_eff = 1."""
    return np.array([1.0, 1.0, sigma**2 if sigma else 1.0, 1.0, FIRST_LOOK])


def first_fit(n_arms: int, dim: int, *, biases: int) -> Joint | Ridge:
    """Return the fit without data: r = 1 if there are biases, lam = 1, m flat."""
    fit: Joint | Ridge = joint(n_arms, dim + 1, bias_strength=1.0) if biases else ridge(dim + 1)
    fit.root[0, 0] = 1.0 / math.sqrt(_FLAT)
    return fit


@compiled
def add_plays(totals, row, reward, n):
    """Add n plays of `row` with reward `reward` each."""
    for i in range(row.size):
        totals.moment[i] += n * reward * row[i]
        weight = n * row[i]
        for j in range(row.size):
            totals.gram[i, j] += weight * row[j]
    totals.square[0] += n * reward * reward


def fold_totals(fit: Joint | Ridge, totals: Totals, arm: int) -> None:
    """Centre the plays of an arm in the sums over all plays: its bias is gone, and what they teach of theta stays."""
    if isinstance(fit, Joint) and fit.context_sum[arm, 0] > 0.0:
        plays, x, reward = fit.context_sum[arm, 0], fit.context_sum[arm, 1:], fit.reward_sum[arm]
        totals.gram[1:, 1:] -= np.outer(x, x) / plays
        totals.gram[0, 1:] -= x
        totals.gram[1:, 0] -= x
        totals.moment[1:] -= x * reward / plays
        totals.moment[0] -= reward
        totals.square[0] -= reward**2 / plays


@compiled
def plays_until_next_look(components, totals):
    """Return the number of plays until the next estimate, at least 1."""
    return max(1, math.ceil(components[NEXT] - totals.gram[0, 0]))


per_arm = generic("per_arm")  # per_arm(fit) -> sums of rows and rewards, and weights, per arm; empty without biases


@per_arm.register
def per_arm_joint(fit: Joint):
    return fit.context_sum, fit.reward_sum, fit.weight


@per_arm.register
def per_arm_ridge(fit: Ridge):
    return np.empty((0, fit.theta.size)), np.empty(0), np.empty(0)


@compiled
def without_biases(sums, rewards, totals, r):
    """Return matrix, moment and square for m and theta, with biases integrated out."""
    P, b, square = totals.gram.copy(), totals.moment.copy(), totals.square[0]
    if rewards.size > 0:
        share = 1.0 / (sums[:, 0] + r)
        shrunk = sums * share.reshape((-1, 1))
        P -= shrunk.T @ sums
        b -= shrunk.T @ rewards
        square -= np.sum(share * rewards * rewards)
        # The row of m, computed without cancellation: n - n^2 / (n + r) = n r / (n + r).
        kept = (r * share) @ sums
        for j in range(kept.size):
            P[0, j] = kept[j]
            P[j, 0] = kept[j]
        b[0] = r * np.sum(share * rewards)
    return P, b, square


@compiled
def without_intercept(P, b, square):
    """Return matrix, moment and square for theta, with m integrated out as well."""
    dim = b.size - 1
    inner, moment = np.empty((dim, dim)), np.empty(dim)
    for i in range(dim):
        share = P[i + 1, 0] / P[0, 0]
        moment[i] = b[i + 1] - share * b[0]
        for j in range(dim):
            inner[i, j] = P[i + 1, j + 1] - share * P[0, j + 1]
    return inner, moment, square - b[0] * b[0] / P[0, 0]


@compiled
def mean_square(totals):
    """Return the mean of ||x||^2 over the plays."""
    total = 0.0
    for j in range(1, totals.moment.size):
        total += totals.gram[j, j]
    return max(total / totals.gram[0, 0], _LEAST)


@compiled
def power_of_two(size):
    """Return the smallest power of two above `size`, a unit that causes no rounding.

    >>> power_of_two(3.0), power_of_two(0.25)
    (4.0, 0.5)
    """
    return math.ldexp(1.0, math.frexp(size)[1])


@compiled
def noise_prior(totals, sigma):
    """Return the prior of sigma^2: its number of pseudo-observations and their sum of squares."""
    if sigma > 0.0:
        return 2.0, 2.0 * sigma * sigma
    t = totals.gram[0, 0]
    variance = totals.square[0] / t - (totals.moment[0] / t) ** 2
    return 1.0, 0.1 * max(variance, _LEAST)


@compiled
def candidates(n_arms, r, t):
    """Return first and last + 1 of the values of r to try: all at first, later those near the current one."""
    if n_arms == 0:
        return 0, 1  # without biases, the value of r has no effect
    if t <= _ALL_BIAS_RIDGES_UNTIL:
        return 0, _BIAS_RIDGES.size
    present = 0
    while present + 1 < _BIAS_RIDGES.size and _BIAS_RIDGES[present + 1] <= 1.01 * r:
        present += 1
    return max(present - 1, 0), min(present + 3, _BIAS_RIDGES.size)


@compiled
def log_half_cauchy(u):
    """Log density of the square u of a half-Cauchy variable, with respect to ln u."""
    return 0.5 * math.log(u) - math.log1p(u)


@compiled
def reestimate(fit, totals, components, sigma):
    """Estimate r, lam and sigma^2 from all plays so far, and rebuild the fit with them."""
    sums, rewards, _ = per_arm(fit)
    t, power = totals.gram[0, 0], mean_square(totals)
    prior_plays, prior_square = noise_prior(totals, sigma)
    freedom = t - 1.0 + prior_plays
    first, end = candidates(rewards.size, components[BIAS_RIDGE], t)
    unit = power_of_two(math.sqrt(power))
    log_weights = np.empty((end - first, _SIGNALS.size))
    variances = np.empty((end - first, _SIGNALS.size))
    for k in range(end - first):
        r = _BIAS_RIDGES[first + k]
        P, b, square = without_biases(sums, rewards, totals, r)
        complexity = np.sum(np.log1p(sums[:, 0] / r)) + math.log(P[0, 0])
        inner, moment, square = without_intercept(P, b, square)
        diagonal, off, turned = tridiagonal(inner / unit**2, moment / unit)
        for s in range(_SIGNALS.size):
            explained, log_det = shifted(diagonal, off, turned, power / unit**2 / _SIGNALS[s])
            left = max(square - explained, 0.0) + prior_square
            variances[k, s] = left / freedom
            log_weights[k, s] = (
                log_half_cauchy(r)
                + log_half_cauchy(_SIGNALS[s])
                - 0.5 * (complexity + log_det + freedom * math.log(left))
            )
    weights = np.exp(log_weights - np.max(log_weights))
    total = np.sum(weights)
    bias_sd, signal_sd = 0.0, 0.0
    for k in range(end - first):
        bias_sd += np.sum(weights[k]) / math.sqrt(_BIAS_RIDGES[first + k]) / total
        signal_sd += np.sum(weights[k] * np.sqrt(_SIGNALS)) / total
    components[BIAS_RIDGE] = 1.0 / bias_sd**2
    components[RIDGE] = power / signal_sd**2
    components[NOISE] = np.sum(weights * variances) / total
    components[NEXT] = max(components[NEXT] * _GROWTH, components[NEXT] + 1.0)
    rebuild(fit, totals, components)


@compiled
def rebuild(fit, totals, components):
    """Rebuild the fit from the sums, and compute the effective parameters, trace of V^-1 (V - prior)."""
    r, lam = components[BIAS_RIDGE], components[RIDGE]
    sums, rewards, weights = per_arm(fit)
    P, b, _ = without_biases(sums, rewards, totals, r)
    P[0, 0] += _FLAT
    for j in range(1, b.size):
        P[j, j] += lam
    refit(fit, P, b)
    variances = row_squares(fit.root)
    in_use = b.size - _FLAT * variances[0] - lam * np.sum(variances[1:])
    for arm in range(weights.size):
        weights[arm] = sums[arm, 0] + r
    if weights.size > 0:
        means = sums / weights.reshape((-1, 1))
        in_use += weights.size - r * np.sum(1.0 / weights + row_squares(means @ fit.root))
    components[IN_USE] = max(in_use, 1.0)
