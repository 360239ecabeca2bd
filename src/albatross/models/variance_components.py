"""Variances of biases, theta and noise under one variance for all of theta, by empirical Bayes on a grid.

The evidence of (r, lam), see `sums`, is multiplied by half-Cauchy priors on the standard deviations (Gelman 2006), with
a tenth of the mass on "no biases". The estimates are posterior means of the standard deviations: unlike maxima, they do
not collapse to 0. For each r the matrix is made tridiagonal once; each lam then costs O(d).
"""

from __future__ import annotations

import math

import numpy as np

from albatross.compiling import compiled
from albatross.linalg.tridiagonal import shifted, tridiagonal
from albatross.models.sums import of_played_arms, reduce_sums

_BIAS_RIDGES = 4.0 ** np.append(np.arange(-12, 8), 20)  # the last one stands for no biases
_SIGNALS = 2.0 ** np.arange(-20, 27)  # signal-to-noise ratios, mean ||x||^2 / lam; large ones are
# for a feature in a far larger unit than the others
_NO_BIASES = 0.1  # prior probability
_ALL_BIAS_RIDGES_UNTIL = 300.0
_LEAST = 1e-12


def _half_cauchy(u: np.ndarray) -> np.ndarray:
    """Density of the squares u of a half-Cauchy variable, with respect to ln u."""
    return np.sqrt(u) / (1.0 + u)


_some = _half_cauchy(_BIAS_RIDGES[:-1])
_LOG_PRIORS = np.log(np.append((1.0 - _NO_BIASES) * _some / _some.sum(), _NO_BIASES))
_LOG_SIGNAL_PRIORS = np.log(_half_cauchy(_SIGNALS))


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
def candidates(n_arms, r, t):
    """Return the indices of the values of r to try: all at first, later "no biases" and those near the current one."""
    last = _BIAS_RIDGES.size - 1
    if n_arms == 0:
        return np.arange(last, last + 1)  # without biases, the value of r has no effect
    if t <= _ALL_BIAS_RIDGES_UNTIL:
        return np.arange(last + 1)
    present = 0
    while present + 1 < last and _BIAS_RIDGES[present + 1] <= 1.01 * r:
        present += 1
    found = np.arange(max(present - 1, 0), min(present + 3, last) + 1)
    found[-1] = last
    return found


@compiled
def common_variances(sums, r, prior_square):
    """Return the estimates of r, lam and sigma^2, given the value of r in use."""
    t, power = sums.totals.gram[0, 0], mean_square(sums.totals)
    unit = power_of_two(math.sqrt(power))
    ridges = candidates(sums.rewards.size, r, t)
    sums = of_played_arms(sums)
    log_weights = np.empty((ridges.size, _SIGNALS.size))
    variances = np.empty((ridges.size, _SIGNALS.size))
    for k in range(ridges.size):
        reduced = reduce_sums(sums, _BIAS_RIDGES[ridges[k]])
        diagonal, off, turned = tridiagonal(reduced.matrix / unit**2, reduced.moment / unit)
        for s in range(_SIGNALS.size):
            explained, log_det = shifted(diagonal, off, turned, power / unit**2 / _SIGNALS[s])
            left = max(reduced.square - explained, 0.0) + prior_square
            variances[k, s] = left / t
            log_evidence = -0.5 * (reduced.penalty + log_det + t * math.log(left))
            log_weights[k, s] = _LOG_PRIORS[ridges[k]] + _LOG_SIGNAL_PRIORS[s] + log_evidence
    weights = np.exp(log_weights - np.max(log_weights))
    total = np.sum(weights)
    bias_sd, signal_sd = 0.0, 0.0
    for k in range(ridges.size):
        bias_sd += np.sum(weights[k]) / math.sqrt(_BIAS_RIDGES[ridges[k]]) / total
        signal_sd += np.sum(weights[k] * np.sqrt(_SIGNALS)) / total
    return 1.0 / bias_sd**2, power / signal_sd**2, np.sum(weights * variances) / total
