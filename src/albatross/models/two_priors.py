"""A normal prior learnt online: dense and sparse ones averaged by how well they predict.

At looks, which become rarer, both priors are estimated anew: one variance for all of theta (`variance_components`), and
one for each coefficient that matches a spike-and-slab prior (`spike_and_slab`). Their weights follow the evidence of
the plays since the last look, with a fixed share for both (Herbster and Warmuth 1998). The fit that a policy acts on
has the average of their prior variances. Nothing depends on the unit of the rewards.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled, generic
from albatross.linalg.vectors import row_squares
from albatross.models.memory import forget
from albatross.models.ridge import Joint, Ridge, joint, leverages, predict, refit, ridge
from albatross.models.spike_and_slab import sparse_precisions
from albatross.models.sums import evidence, reduce_sums, reward_variance, sums_of, without_biases
from albatross.models.variance_components import common_variances

# Places in the numbers of a prior: r, sigma^2 and D_eff in use; the next look, looks, plays, and plays since a look;
# squared errors of the predictions before the first look; lam and evidence of the dense prior; probability, sigma^2 and
# evidence of the sparse one.
BIAS_RIDGE, NOISE, IN_USE, NEXT, LOOKS, PLAYS, SINCE, ERRORS = 0, 1, 2, 3, 4, 5, 6, 7
DENSE_RIDGE, DENSE_EVIDENCE, SPARSE_WEIGHT, SPARSE_NOISE, SPARSE_EVIDENCE = 8, 9, 10, 11, 12
SPARSE, ACTING = 0, 1  # rows of the precisions

FIRST_LOOK = 8.0
_GROWTH = 2.0**0.25  # of the time between looks
_PRIOR_SHARE = 0.1  # of the variance of the rewards: the prior sum of squared errors
_SHARE = 0.02  # of the weight is divided equally
_FLAT = 1e-6  # precision of m


class Prior(NamedTuple):
    numbers: np.ndarray  # (13,)
    precisions: np.ndarray  # (2, d) of theta, over 1 / sigma^2: the sparse prior's, and those in use


def first_prior(dim: int) -> Prior:
    """Return the prior before the first look: all precisions 1, sigma^2 = D_eff = 1, both priors as likely."""
    numbers = np.zeros(13)
    numbers[[BIAS_RIDGE, NOISE, IN_USE, DENSE_RIDGE, SPARSE_NOISE]] = 1.0
    numbers[NEXT], numbers[SPARSE_WEIGHT] = FIRST_LOOK, 0.5
    return Prior(numbers, np.ones((2, dim)))


def first_fit(n_arms: int, dim: int, *, biases: int) -> Joint | Ridge:
    """Return the fit without data: r = 1 if there are biases, precision 1 of theta, m flat."""
    fit: Joint | Ridge = joint(n_arms, dim + 1, bias_strength=1.0) if biases else ridge(dim + 1)
    fit.root[0, 0] = 1.0 / math.sqrt(_FLAT)
    return fit


@compiled
def plays_until_look(prior):
    """Return the number of plays until the next look, at least 1."""
    return max(1, math.ceil(prior.numbers[NEXT] - prior.numbers[PLAYS]))


@compiled
def note_error(prior, fit, arm, row, reward, n):
    """Before the first look, add the squared error of the fit's prediction of n plays, in units of its variance."""
    if prior.numbers[LOOKS] == 0.0:
        rows, arms = row.reshape((1, -1)), np.full(1, arm)
        error, h = reward - predict(fit, rows, arms)[0], leverages(fit, rows, arms)[0]
        prior.numbers[ERRORS] += n * error * error / (1.0 + n * h)


@compiled
def count_plays(prior, fit, totals, memory, memories, n):
    """Count n plays that fit and totals have learnt; look if it is time."""
    numbers = prior.numbers
    numbers[PLAYS] += n
    numbers[SINCE] += n
    variance = reward_variance(totals)
    if numbers[LOOKS] == 0.0 and variance > 0.0:
        numbers[NOISE] = (numbers[ERRORS] + _PRIOR_SHARE * variance) / totals.gram[0, 0]
    if numbers[PLAYS] >= numbers[NEXT]:
        numbers[NEXT] += min(max((_GROWTH - 1.0) * numbers[NEXT], 1.0), memory.longest_wait)
        if variance > 0.0:
            look(prior, fit, totals, memory, memories, _PRIOR_SHARE * variance)


@compiled
def look(prior, fit, totals, memory, memories, prior_square):
    """Weigh both priors by the plays since the last look, forget, estimate both again, and rebuild the fit."""
    numbers, sums = prior.numbers, sums_of(fit, totals)
    sparse = prior.precisions[SPARSE]
    if numbers[LOOKS] > 0.0:
        reduced, t = reduce_sums(sums, numbers[BIAS_RIDGE]), totals.gram[0, 0]
        for_sparse = evidence(reduced, sparse, t, prior_square)[0] - numbers[SPARSE_EVIDENCE]
        for_dense = dense_evidence(reduced, numbers, t, prior_square) - numbers[DENSE_EVIDENCE]
        p = numbers[SPARSE_WEIGHT]
        log_odds = min(max(math.log(p / (1.0 - p)) + for_sparse - for_dense, -500.0), 500.0)
        numbers[SPARSE_WEIGHT] = (1.0 - _SHARE) / (1.0 + math.exp(-log_odds)) + 0.5 * _SHARE
    forget(memory, memories, sums, numbers[SINCE], numbers[BIAS_RIDGE], prior.precisions[ACTING], prior_square)
    t = totals.gram[0, 0]
    r, lam, dense_noise = common_variances(sums, numbers[BIAS_RIDGE], prior_square)
    numbers[BIAS_RIDGE], numbers[DENSE_RIDGE] = r, lam
    if numbers[LOOKS] == 0.0:
        sparse.fill(lam)
        numbers[SPARSE_NOISE] = dense_noise
    reduced = reduce_sums(sums, r)
    sparse_precisions(sparse, reduced, totals, lam, numbers[SPARSE_NOISE])
    numbers[SPARSE_EVIDENCE], sparse_noise = evidence(reduced, sparse, t, prior_square)
    numbers[DENSE_EVIDENCE] = dense_evidence(reduced, numbers, t, prior_square)
    numbers[SPARSE_NOISE] = sparse_noise
    p = numbers[SPARSE_WEIGHT]
    numbers[NOISE] = p * sparse_noise + (1.0 - p) * dense_noise
    for j in range(sparse.size):
        variance = p * sparse_noise / sparse[j] + (1.0 - p) * dense_noise / lam
        prior.precisions[ACTING, j] = numbers[NOISE] / variance
    numbers[IN_USE] = rebuild(fit, totals, r, prior.precisions[ACTING])
    numbers[LOOKS] += 1.0
    numbers[SINCE] = 0.0


@compiled
def dense_evidence(reduced, numbers, t, prior_square):
    """Return the log evidence for lam."""
    return evidence(reduced, np.full(reduced.moment.size, numbers[DENSE_RIDGE]), t, prior_square)[0]


@compiled
def rebuild(fit, totals, r, precisions):
    """Rebuild the fit from the sums, and return its effective number of parameters, trace of V^-1 (V - prior)."""
    sums = sums_of(fit, totals)
    P, b, _ = without_biases(sums, r)
    P[0, 0] += _FLAT
    for j in range(precisions.size):
        P[j + 1, j + 1] += precisions[j]
    refit(fit, P, b)
    variances = row_squares(fit.root)
    in_use = b.size - _FLAT * variances[0] - np.sum(precisions * variances[1:])
    weights = bias_weights(fit)
    for arm in range(weights.size):
        weights[arm] = sums.rows[arm, 0] + r
    if weights.size > 0:
        means = sums.rows / weights.reshape((-1, 1))
        in_use += weights.size - r * np.sum(1.0 / weights + row_squares(means @ fit.root))
    return max(in_use, 1.0)


bias_weights = generic("bias_weights")  # bias_weights(fit) -> (K,) plays + r of every arm; empty without biases


@bias_weights.register
def bias_weights_joint(fit: Joint):
    return fit.weight


@bias_weights.register
def bias_weights_ridge(fit: Ridge):
    return np.empty(0)
