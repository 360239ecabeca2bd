"""Posterior of a sparse theta* under a spike-and-slab prior whose weights are learnt.

theta_j is 0, or has one of several scales m_1 > m_2 > ...: half N(m_k, (m_k / 4)^2) and half N(-m_k, (m_k / 4)^2). The
weights of 0 and of the scales are estimated from all coordinates by EM, with pseudo-counts, so that no coordinate is
ever excluded (after Stephens 2017, who mixes scales and favours 0 in this way). The likelihood of one coordinate is
N(nu_j / tau_j, 1 / tau_j): the cavity of expectation propagation (Minka 2001), in which the priors of the other
coordinates are replaced by normal priors of mean 0, whose precisions follow the posterior.
"""

from __future__ import annotations

import math

import numpy as np

from albatross.compiling import compiled

MEAN, SPREAD, INCLUSION, INFORMATION, PRECISION = 0, 1, 2, 3, 4  # rows of a belief

_SWEEPS, _EM_STEPS = 3, 100
_FIRST_SPIKE = 0.99  # initial weight of 0 in EM
_NULL, _SLAB = 10.0, 1.0  # pseudo-counts of zero and nonzero coordinates
_RATIO = math.sqrt(2.0)  # ratio of a scale to the next
_WIDTH = 0.25  # standard deviation about a scale, in units of it
_FEWEST, _MOST = 3, 14  # number of scales
_ABSURD = 1e12  # times norm_bound^2: the square of a larger coordinate would drown the others in rounding


def nothing_known(dim: int, norm_bound: float) -> np.ndarray:
    """(5, d) the belief before the first reward: every coordinate is N(0, norm_bound^2 / d).

    >>> nothing_known(4, 1.0)[SPREAD].tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    belief = np.zeros((5, dim))
    belief[SPREAD] = norm_bound / math.sqrt(dim)
    belief[INCLUSION] = 1.0
    belief[PRECISION] = dim / norm_bound**2
    return belief


@compiled
def revise(belief, gram, cross, sigma, norm_bound):
    """Update the belief in place, given gram = sum x x' and cross = sum x y."""
    open_before = norm_bound**2
    for sweep in range(_SWEEPS):
        tau, nu = leave_one_out(gram, cross, belief[PRECISION], sigma)
        scales = slab_scales(tau, nu, norm_bound)
        likelihood = likelihoods(tau, nu, scales)
        weights = mixture_weights(likelihood)
        for j in range(tau.size):
            mean, variance, inclusion = moments(tau[j], nu[j], scales, weights * likelihood[j])
            # Floors are small shares of the variance given the rewards, but never above the prior variance.
            variance = max(variance, min(1e-9 / tau[j], open_before))
            belief[MEAN, j] = mean
            belief[SPREAD, j] = math.sqrt(variance)
            belief[INCLUSION, j] = inclusion
            belief[INFORMATION, j] = tau[j]
            if sweep < _SWEEPS - 1:  # half a step on a logarithmic scale: full steps may not converge
                size = max(mean * mean + variance, min(1e-6 / tau[j], open_before))
                size = min(size, _ABSURD * open_before)
                belief[PRECISION, j] = math.sqrt(belief[PRECISION, j] / size)


@compiled
def leave_one_out(gram, cross, precision, sigma):
    """Return tau and nu: the likelihood of each coordinate, without its own prior."""
    dim = cross.size
    scale = 1.0 / (sigma * np.sqrt(precision))
    below = np.empty((dim, dim))  # I + M for M = gram, scaled from both sides; then its Cholesky factor
    for i in range(dim):
        for j in range(i + 1):
            below[i, j] = gram[i, j] * scale[i] * scale[j]
        below[i, i] += 1.0
    factorise(below)
    diagonal, solution = invert(below, cross * scale)
    tau, nu = np.empty(dim), np.empty(dim)
    for j in range(dim):
        own = min(diagonal[j], 1.0 - 1e-12)
        tau[j] = precision[j] * (1.0 / own - 1.0)
        nu[j] = scale[j] * solution[j] * precision[j] / own
    return tau, nu


@compiled
def factorise(below):
    """Turn the lower triangle of I + M, where M is positive semidefinite, into its Cholesky factor.

    After some coordinates are eliminated, I + M is again I plus a positive semidefinite matrix, whose entries are at
    most the geometric mean of their diagonal ones. Enforcing this bound, rounding cannot make a pivot negative or a
    factor huge, and the factorisation exists for every M.
    """
    dim = below.shape[0]
    upper, diagonal = np.zeros((dim, dim)), np.diag(below).copy()  # the factor row by row; what is left of the diagonal
    for k in range(dim):
        row = upper[k]
        for j in range(k + 1, dim):
            row[j] = below[j, k]
        for r in range(0, k - 3, 4):  # four rows at a time, in order: the same numbers in a third of the time
            one, two, three, four = upper[r], upper[r + 1], upper[r + 2], upper[r + 3]
            a, b, c, d = one[k], two[k], three[k], four[k]
            for j in range(k + 1, dim):
                row[j] = (((row[j] - a * one[j]) - b * two[j]) - c * three[j]) - d * four[j]
        for r in range(k - k % 4, k):
            for j in range(k + 1, dim):
                row[j] -= upper[r, k] * upper[r, j]
        excess = max(diagonal[k] - 1.0, 0.0)
        row[k] = math.sqrt(1.0 + excess)
        for j in range(k + 1, dim):
            most = math.sqrt(excess * max(diagonal[j] - 1.0, 0.0))
            row[j] = min(max(row[j], -most), most) / row[k]
            diagonal[j] -= row[j] * row[j]
    for k in range(dim):
        for j in range(k, dim):
            below[j, k] = upper[k, j]


@compiled
def invert(factor, right):
    """Return the diagonal of (L L')^-1, and (L L')^-1 times the right-hand side."""
    dim = right.size
    inverse = np.zeros((dim, dim))  # of L
    diagonal, solution = np.zeros(dim), np.zeros(dim)
    for i in range(dim):
        row = inverse[i]
        row[i] = 1.0
        for k in range(i):
            above, entry = inverse[k], factor[i, k]
            for j in range(k + 1):
                row[j] -= entry * above[j]
        product = 0.0
        for j in range(i + 1):
            row[j] /= factor[i, i]
            product += row[j] * right[j]
        for j in range(i + 1):
            diagonal[j] += row[j] * row[j]
            solution[j] += row[j] * product
    return diagonal, solution


@compiled
def slab_scales(tau, nu, norm_bound):
    """Return scales m_1 > m_2 > ..., from the largest estimate down to the smallest standard error."""
    finest = 1.0 / math.sqrt(tau.max())
    # If every estimate is 0, use scales that cannot be distinguished from 0.
    largest = min(norm_bound, max(np.abs(nu / tau).max(), 1e-6 * finest))
    steps = math.log(largest / min(finest, largest / 2.0)) / math.log(_RATIO)
    n_scales = min(max(math.ceil(steps) + 1, _FEWEST), _MOST)
    return largest / _RATIO ** np.arange(n_scales)


@compiled
def likelihoods(tau, nu, scales):
    """(d, 1 + scales) likelihood of each estimate for 0 and for each scale, relative to the largest."""
    found = np.empty((tau.size, 1 + scales.size))
    for j in range(tau.size):
        estimate = abs(nu[j] / tau[j])
        found[j, 0] = -0.5 * tau[j] * estimate * estimate + 0.5 * math.log(tau[j])
        most = found[j, 0]
        for k in range(scales.size):
            variance = (_WIDTH * scales[k]) ** 2 + 1.0 / tau[j]
            distance = estimate - scales[k]
            other_sign = math.exp(-2.0 * estimate * scales[k] / variance)
            found[j, 1 + k] = (
                -0.5 * distance * distance / variance - 0.5 * math.log(variance) + math.log(0.5 * (1.0 + other_sign))
            )
            most = max(most, found[j, 1 + k])
        for k in range(1 + scales.size):
            found[j, k] = math.exp(found[j, k] - most)
    return found


@compiled
def mixture_weights(likelihood):
    """(1 + scales) weights of 0 and of each scale, by EM over all coordinates."""
    dim, size = likelihood.shape
    weights = np.full(size, (1.0 - _FIRST_SPIKE) / (size - 1))
    weights[0] = _FIRST_SPIKE
    for _ in range(_EM_STEPS):
        members = np.full(size, _SLAB / (size - 1))
        members[0] = _NULL
        for j in range(dim):
            total = 0.0
            for k in range(size):
                total += weights[k] * likelihood[j, k]
            for k in range(size):
                members[k] += weights[k] * likelihood[j, k] / total
        weights = members / (dim + _NULL + _SLAB)
    return weights


@compiled
def moments(tau, nu, scales, joint):
    """Return mean and variance of one coordinate, and the probability that it is not 0.

    `joint` (1 + scales) holds weight times likelihood for 0 and for each scale.
    """
    shares = joint / joint.sum()
    centre, shift, chance = np.empty(scales.size), np.empty(scales.size), np.empty(scales.size)
    mean = 0.0
    for k in range(scales.size):
        spread = (_WIDTH * scales[k]) ** 2
        # Given scale and sign, theta_j is normal with mean centre +- shift.
        centre[k] = nu / (tau + 1.0 / spread)
        shift[k] = scales[k] / (1.0 + tau * spread)
        other_sign = math.exp(-2.0 * abs(nu / tau) * scales[k] / (spread + 1.0 / tau))
        chance[k] = (1.0 if nu >= 0.0 else other_sign) / (1.0 + other_sign)  # of a positive sign
        mean += shares[1 + k] * (centre[k] + (2.0 * chance[k] - 1.0) * shift[k])
    variance = shares[0] * mean * mean
    for k in range(scales.size):
        above, below = centre[k] + shift[k] - mean, centre[k] - shift[k] - mean
        within = 1.0 / (tau + 1.0 / (_WIDTH * scales[k]) ** 2)
        variance += shares[1 + k] * (within + chance[k] * above * above + (1.0 - chance[k]) * below * below)
    return mean, variance, 1.0 - shares[0]
