"""Which coordinates of theta* matter, and how much: a posterior under a spike and slabs whose weights are learnt.

theta_j is 0, or of one of several scales m_1 > m_2 > ...: half N(m_k, (m_k / 4)^2) and half N(-m_k, (m_k / 4)^2). The
weights of 0 and of the scales are estimated from all coordinates by EM, and a little is added to each of them, so that
no coordinate is ever ruled out (after Stephens 2017, who mixes scales and favours 0 in this way). What the rewards say
of one coordinate is N(nu_j / tau_j, 1 / tau_j): the cavity of expectation propagation (Minka 2001), in which the other
coordinates' priors are replaced by normal ones of mean 0, whose precisions follow the posterior.
"""

from __future__ import annotations

import math

import numpy as np

from albatross.compiling import compiled

MEAN, SPREAD, INCLUSION, INFORMATION, PRECISION = 0, 1, 2, 3, 4  # rows of a belief

_SWEEPS, _EM_STEPS = 3, 100
_FIRST_SPIKE = 0.99  # the weight of 0 before the first step of EM
_NULL, _SLAB = 10.0, 1.0  # coordinates that are pretended to be 0, and not to be
_RATIO = math.sqrt(2.0)  # of a scale to the next
_WIDTH = 0.25  # standard deviation about a scale, in units of it
_FEWEST, _MOST = 3, 14  # scales
_ABSURD = 1e12  # times norm_bound^2: so large a square of a coordinate would lose the others in rounding


def nothing_known(dim: int, norm_bound: float) -> np.ndarray:
    """(5, d) the belief before the first reward: every coordinate is N(0, norm_bound^2 / d)."""
    belief = np.zeros((5, dim))
    belief[SPREAD] = norm_bound / math.sqrt(dim)
    belief[INCLUSION] = 1.0
    belief[PRECISION] = dim / norm_bound**2
    return belief


@compiled
def revise(belief, gram, cross, sigma, norm_bound):
    """Bring the belief up to date with gram = sum x x' and cross = sum x y."""
    open_before = norm_bound**2
    for sweep in range(_SWEEPS):
        tau, nu = leave_one_out(gram, cross, belief[PRECISION], sigma)
        scales = slab_scales(tau, nu, norm_bound)
        likelihood = likelihoods(tau, nu, scales)
        weights = mixture_weights(likelihood)
        for j in range(tau.size):
            mean, variance, inclusion = moments(tau[j], nu[j], scales, weights * likelihood[j])
            # Floors are shares of what the rewards leave open, but of no more than was open before any came.
            variance = max(variance, min(1e-9 / tau[j], open_before))
            belief[MEAN, j] = mean
            belief[SPREAD, j] = math.sqrt(variance)
            belief[INCLUSION, j] = inclusion
            belief[INFORMATION, j] = tau[j]
            if sweep < _SWEEPS - 1:  # half way on a logarithmic scale: whole steps need not settle
                size = max(mean * mean + variance, min(1e-6 / tau[j], open_before))
                size = min(size, _ABSURD * open_before)
                belief[PRECISION, j] = math.sqrt(belief[PRECISION, j] / size)


@compiled
def leave_one_out(gram, cross, precision, sigma):
    """tau and nu: what the rewards say of each coordinate, without the coordinate's own prior."""
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

    What is left of I + M when some coordinates are eliminated is again I plus a positive semidefinite matrix, whose
    entries are at most the geometric mean of their diagonal ones. Held to that, rounding cannot make a pivot negative
    nor a factor huge, and there is one whatever M is.
    """
    dim = below.shape[0]
    column = np.empty(dim)
    for k in range(dim):
        excess = max(below[k, k] - 1.0, 0.0)
        pivot = math.sqrt(1.0 + excess)
        below[k, k] = pivot
        for i in range(k + 1, dim):
            most = math.sqrt(excess * max(below[i, i] - 1.0, 0.0))
            column[i] = min(max(below[i, k], -most), most) / pivot
            below[i, k] = column[i]
        for i in range(k + 1, dim):
            row, factor = below[i], column[i]
            for j in range(k + 1, i + 1):
                row[j] -= factor * column[j]


@compiled
def invert(factor, right):
    """The diagonal of (L L')^-1, and (L L')^-1 times the right side."""
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
    """m_1 > m_2 > ...: from the largest estimate down to what the best known coordinate would just show."""
    finest = 1.0 / math.sqrt(tau.max())
    # Where every estimate is 0, scales that nobody can tell from 0 stand for none.
    largest = min(norm_bound, max(np.abs(nu / tau).max(), 1e-6 * finest))
    steps = math.log(largest / min(finest, largest / 2.0)) / math.log(_RATIO)
    n_scales = min(max(math.ceil(steps) + 1, _FEWEST), _MOST)
    return largest / _RATIO ** np.arange(n_scales)


@compiled
def likelihoods(tau, nu, scales):
    """(d, 1 + scales) of each coordinate's estimate if it is 0 or of a scale, relative to its most likely one."""
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
    """(1 + scales) of 0 and of each scale, by EM over all coordinates."""
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
    """Mean and variance of one coordinate, and the probability that it is not 0.

    `joint` (1 + scales) is weight times likelihood of 0 and of each scale.
    """
    shares = joint / joint.sum()
    centre, shift, chance = np.empty(scales.size), np.empty(scales.size), np.empty(scales.size)
    mean = 0.0
    for k in range(scales.size):
        spread = (_WIDTH * scales[k]) ** 2
        # Given the scale and the sign, theta_j is normal about centre +- shift.
        centre[k] = nu / (tau + 1.0 / spread)
        shift[k] = scales[k] / (1.0 + tau * spread)
        other_sign = math.exp(-2.0 * abs(nu / tau) * scales[k] / (spread + 1.0 / tau))
        chance[k] = (1.0 if nu >= 0.0 else other_sign) / (1.0 + other_sign)  # of the sign +
        mean += shares[1 + k] * (centre[k] + (2.0 * chance[k] - 1.0) * shift[k])
    variance = shares[0] * mean * mean
    for k in range(scales.size):
        above, below = centre[k] + shift[k] - mean, centre[k] - shift[k] - mean
        within = 1.0 / (tau + 1.0 / (_WIDTH * scales[k]) ** 2)
        variance += shares[1 + k] * (within + chance[k] * above * above + (1.0 - chance[k]) * below * below)
    return mean, variance, 1.0 - shares[0]
