"""Precisions of theta under a spike-and-slab prior: those of the normal priors that match it, one for each feature.

Every coefficient, in units of its standard error's order, is 0 or has one of several scales, whose weights are learnt
from all of them (`soft_support`). Expectation propagation (Minka 2001) replaces this prior by normal ones: the
precision of a coefficient follows its second moment, given what the rewards say of it without its own prior.
"""

from __future__ import annotations

import math

import numpy as np

from albatross.compiling import compiled
from albatross.models.soft_support import leave_one_out, likelihoods, mixture_weights, moments, slab_scales

_SWEEPS = 3
_LEAST_SHARE = 1e-12  # of a feature's sum of squares: what is left of it beside intercept and biases
_LEAST_SPREAD = 1e-9  # of the largest spread of a feature
_NOTHING = 1e-50  # a spread, in units of the contexts: squares of its square must not underflow


@compiled
def sparse_precisions(precisions, reduced, totals, unseen, noise):
    """Bring the precisions up to date in place; those of features that were never seen to vary become `unseen`."""
    t = totals.gram[0, 0]
    spread = np.empty(precisions.size)
    for j in range(spread.size):
        spread[j] = math.sqrt(max(reduced.matrix[j, j], 0.0) / t)
    seen = np.empty(precisions.size, np.int64)
    n_seen, least = 0, max(_LEAST_SPREAD * np.max(spread), _NOTHING)
    for j in range(spread.size):
        if reduced.matrix[j, j] > _LEAST_SHARE * totals.gram[j + 1, j + 1] and spread[j] > least:
            seen[n_seen] = j
            n_seen += 1
        else:  # its precision would fall without end: nothing is ever said of it
            precisions[j] = unseen
    if n_seen == 0:
        return
    tau, nu = np.empty(n_seen), np.empty(n_seen)
    for _ in range(_SWEEPS):
        all_tau, all_nu = leave_one_out(reduced.matrix, reduced.moment, precisions, 1.0)
        for k in range(n_seen):
            size = spread[seen[k]]
            tau[k], nu[k] = all_tau[seen[k]] / size**2, all_nu[seen[k]] / (size * math.sqrt(noise))
        size_of = second_moments(tau, nu)
        for k in range(n_seen):  # half a step on a logarithmic scale: full steps may not converge
            found = math.sqrt(precisions[seen[k]] * spread[seen[k]] ** 2 / size_of[k])
            precisions[seen[k]] = found if 0.0 < found < np.inf else unseen  # contexts of 1e99 after some of 1e-150


@compiled
def second_moments(tau, nu):
    """(n,) second moments of coefficients with likelihoods N(nu / tau, 1 / tau)."""
    scales = slab_scales(tau, nu, np.inf)
    likelihood = likelihoods(tau, nu, scales)
    weights = mixture_weights(likelihood)
    found = np.empty(tau.size)
    for j in range(tau.size):
        mean, variance, _ = moments(tau[j], nu[j], scales, weights * likelihood[j])
        found[j] = max(mean * mean + variance, 1e-6 / tau[j])
    return found
