"""How a population learns: steps of expectation and maximisation (Dempster, Laird and Rubin 1977).

A step adds up what every user says under the present population (`add_user`), and makes the next population of the
sums (`renewed`). Users are added in a fixed order, bucket by bucket, so that any number of processes can share the work
and find the same population, bit for bit.

Two departures from plain EM: the new spread is shrunk towards a plain one of the weight of eight users; and the spread
is rescaled by a regression of rewards on predicted deviations, which speeds up EM where it is slowest (PX-EM, Liu,
Rubin and Wu 1998). Neither waiting for more rewards before variances are learnt, nor counting what is not known of f in
the expectations (REML, Patterson and Thompson 1971) does better than early looks (`flocking/looks.py`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.linalg.small import (
    add_gram,
    add_gram_of_lower,
    apply,
    cholesky,
    inverse_of_lower,
    mirror,
    product,
    transposed,
)
from albatross.models.population import (
    MEANS,
    NEGLIGIBLE,
    NU,
    S0,
    SHARES,
    SPREADS,
    gain_of,
    level_and_rest,
    log_weight,
    noise_variance,
    under_kinds,
)

_FREEDOMS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])  # values of nu to choose from
_PLAIN_USERS = 8.0  # the plain spread counts as so many users
_GUESSES = 0.25, 1.0  # of the rewards' variance: from the high one, differences between users may pass for noise
_LEAST_NOISE = 0.01  # of the rewards' variance: users whose few rewards are all equal seem to have none
_NOT_FAR = 10.0  # times too large or too small
_LEAST_S0 = 1e-100  # if all rewards are equal, s0 would fall without end
_PRIOR_USERS = 3.0  # the first shares of the kinds count as so many users
USERS, WEIGHT, PRECISION, REWARDS, SUM, SQUARES = range(6)  # places in `counts`
COMMON = -1  # place in `evidence` of nearly the same noise for all users


class Heard(NamedTuple):
    """Sums over users: all that a step needs to know of them. A matrix is kept as its lower triangle."""

    counts: np.ndarray  # (6,) users; their weight in the kinds that count; the same times their precision 1 / v; and
    # of the rewards number, sum, and sum of squares
    shares: np.ndarray  # (6,) probabilities of the kinds
    evidence: np.ndarray  # (6,) of every nu to choose from
    squares: np.ndarray  # (2, 2) for rescaling: of predicted deviations of theta and biases
    products: np.ndarray  # (2,) and of these with the rewards
    deviations: np.ndarray  # (p, p) second moment of delta / sqrt(s2)
    information: np.ndarray  # (p, p) of f: sum of D_b Z' V^-1 Z D_b / v
    moment: np.ndarray  # (p,) sum of D_b Z' V^-1 y / v


def nothing_heard(p: int) -> Heard:
    """Return the sums over no users."""
    shapes = ((6,), (6,), (6,), (2, 2), (2,), (p, p), (p, p), (p,))
    return Heard(*map(np.zeros, shapes))


@compiled
def add_user(prior, dim, data, heard):
    """Add one user with at least one reward."""
    plays, rows = data.beyond[1], data.rows
    m, p = rows.shape
    kinds = under_kinds(prior, dim, data)
    heard.counts[USERS] += 1.0
    add_rewards(dim, data, heard.counts)
    add_evidence(prior, kinds, plays, heard.evidence)
    of_topics, of_outlets = np.zeros((m, m)), np.zeros((m, m))  # V^-1 / v of kinds with and without theta in the mean
    kept = 0.0
    for kind in range(6):
        w = kinds.weights[kind]
        heard.shares[kind] += w
        if w < NEGLIGIBLE:
            continue
        b, e = MEANS[kind], 1.0 / noise_variance(prior, kinds, kind, plays)
        kept += w
        heard.counts[PRECISION] += w * e
        add_gram_of_lower(of_topics if b > 0.0 else of_outlets, inverse_of_lower(kinds.lowers[kind]), w * e)
        gain = gain_of(kinds, kind)
        delta = np.zeros(p)
        for k in range(m):
            for i in range(p):
                delta[i] += gain[k, i] * kinds.residuals[kind, k]
        add_gram(heard.deviations, gain, -w)
        add_gram(heard.deviations, delta.reshape((1, -1)), w * e)
        add_scales(data, dim, kinds, kind, gain, e, heard)
    heard.counts[WEIGHT] += kept
    for i in range(p):
        for j in range(i + 1):
            heard.deviations[i, j] += kept * prior.spread[i, j]
    mirror(of_topics)
    mirror(of_outlets)
    add_information(rows, of_topics, 0, heard, data.rewards)
    if kinds.weights[0] >= NEGLIGIBLE:
        add_information(rows, of_outlets, dim, heard, data.rewards)


@compiled
def add_rewards(dim, data, counts):
    """Add how many rewards a user has, their sum and the sum of their squares."""
    counts[REWARDS] += data.beyond[1]
    counts[SQUARES] += data.beyond[0]
    for k in range(data.rewards.size):
        counts[SQUARES] += data.rewards[k] ** 2
        for i in range(dim, data.rows.shape[1]):
            counts[SUM] += data.rows[k, i] * data.rewards[k]


@compiled
def add_evidence(prior, kinds, plays, evidence):
    """Add the log evidence of one user for every nu."""
    for i in range(6):
        nu = _FREEDOMS[i]
        logs = np.empty(6)
        for kind in range(6):
            logs[kind] = log_weight(prior, kinds, kind, plays, nu)
        best = np.max(logs)
        evidence[i] += (
            math.lgamma(0.5 * (nu + plays)) - math.lgamma(0.5 * nu) + 0.5 * nu * math.log(nu * prior.noise[S0])
        )
        evidence[i] += best + math.log(np.sum(np.exp(logs - best)))


@compiled
def add_scales(data, dim, kinds, kind, gain, e, heard):
    """Add a regression of the rewards on what delta's two blocks predict: its squares and its products."""
    w, c, m = kinds.weights[kind], SPREADS[kind], gain.shape[0]
    # Z_i T_i' for both blocks: the predictions have mean Z_i T_i' r and covariance Z_i (Omega_il - T_i'T_l) Z_l'.
    along_theta = product(data.rows[:, :dim], transposed(gain[:, :dim]))
    along_biases = product(data.rows[:, dim:], transposed(gain[:, dim:]))
    theta, biases, both = kinds.priors[0], kinds.priors[1], kinds.priors[2]
    for i in range(m):
        by_theta, by_biases = 0.0, 0.0
        for k in range(m):
            theta -= along_theta[i, k] ** 2
            biases -= along_biases[i, k] ** 2
            both -= along_theta[i, k] * along_biases[i, k]
            by_theta += along_theta[i, k] * kinds.residuals[kind, k]
            by_biases += along_biases[i, k] * kinds.residuals[kind, k]
        theta += e * by_theta**2
        biases += e * by_biases**2
        both += e * by_theta * by_biases
        heard.products[0] += w * e * c * by_theta * kinds.surprises[kind, i]
        heard.products[1] += w * e * by_biases * kinds.surprises[kind, i]
    heard.squares[0, 0] += w * c * c * theta
    heard.squares[1, 1] += w * biases
    heard.squares[0, 1] += w * c * both
    heard.squares[1, 0] += w * c * both


@compiled
def add_information(rows, weights, first, heard, rewards):
    """Add Z' weights Z and Z' weights y, of the coordinates from `first` on."""
    p = rows.shape[1]
    weighted = product(weights, rows[:, first:].copy())
    for k in range(rows.shape[0]):
        for i in range(first, p):
            if rows[k, i] != 0.0:
                for j in range(i + 1 - first):
                    heard.information[i, first + j] += rows[k, i] * weighted[k, j]
            heard.moment[i] += weighted[k, i - first] * rewards[k]


@compiled
def reward_variance(counts):
    """Return the variance of all rewards."""
    n = counts[REWARDS]
    return max(counts[SQUARES] / n - (counts[SUM] / n) ** 2, 0.0)


def noise_guesses(noise: np.ndarray, counts: np.ndarray, *, exact: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return a low and a high guess of the noise. Unless `exact`, the present one stays if it is not far off."""
    variance = reward_variance(counts) if counts[REWARDS] > 0.0 else 0.0
    low, high = (np.array([guess * variance, noise[NU]]) for guess in _GUESSES)
    is_near = low[S0] / _NOT_FAR <= noise[S0] <= high[S0] * _NOT_FAR
    if not _LEAST_S0 < variance < np.inf or (is_near and not exact):
        return noise, noise
    return low, high


@compiled
def renewed(population, dim, heard, independent, few):
    """Return the parts of the next population, whose biases may be independent of each other and of theta.

    With `few` rewards, the ridge on theta takes what is not known of theta into account.
    """
    shares = (heard.shares + _PRIOR_USERS * SHARES) / (heard.counts[USERS] + _PRIOR_USERS)
    least = _LEAST_NOISE * reward_variance(heard.counts)
    s0 = max(heard.counts[WEIGHT] / heard.counts[PRECISION], least, _LEAST_S0)
    noise = np.array([s0, _FREEDOMS[np.argmax(heard.evidence)]])
    spread = rescaled(shrunk_spread(dim, heard, independent), dim, heard)
    power = 0.0
    for i in range(dim):
        power += population.mean[i] ** 2 + (population.doubt[i, i] if few else 0.0)
    doubt, mean = estimated_mean(power, spread, noise, dim, heard)
    spread, shares = recentred(spread, shares, dim)
    return mean, spread, noise, shares, doubt


@compiled
def shrunk_spread(dim, heard, independent):
    """Return the second moment of delta, shrunk towards a plain spread: equal variances, and a level of biases."""
    p, weight = heard.moment.size, heard.counts[WEIGHT]
    found = heard.deviations / weight
    mirror(found)
    if independent:
        for i in range(dim, p):
            for j in range(i):
                found[i, j] = found[j, i] = 0.0
    level, rest = level_and_rest(found, dim)
    theta = 0.0
    for i in range(dim):
        theta += found[i, i] / dim
    spread = np.empty((p, p))
    for i in range(p):
        for j in range(p):
            plain = level if i >= dim and j >= dim else 0.0
            if i == j:
                plain += rest if i >= dim else theta
            spread[i, j] = (weight * found[i, j] + _PLAIN_USERS * plain) / (weight + _PLAIN_USERS)
    return spread


@compiled
def rescaled(spread, dim, heard):
    """Return the spread with theta and biases scaled by the regression of rewards on predicted deviations."""
    a, b, d = heard.squares[0, 0] + 1.0, heard.squares[0, 1], heard.squares[1, 1] + 1.0
    x, y = heard.products[0] + 1.0, heard.products[1] + 1.0
    determinant = a * d - b * b
    of_theta = min(max((d * x - b * y) / determinant, 0.25), 4.0)
    of_biases = min(max((a * y - b * x) / determinant, 0.25), 4.0)
    scaled = np.empty_like(spread)
    for i in range(spread.shape[0]):
        for j in range(spread.shape[0]):
            scale = (of_theta if i < dim else of_biases) * (of_theta if j < dim else of_biases)
            scaled[i, j] = scale * 0.5 * (spread[i, j] + spread[j, i])
    return scaled


@compiled
def estimated_mean(power, spread, noise, dim, heard):
    """Return covariance and mean of f, by generalised least squares with a weak ridge. `power` is theta's square."""
    p, s0 = heard.moment.size, noise[S0]
    n_arms, rest = p - dim, level_and_rest(spread, dim)[1]
    trace = 0.0
    for i in range(dim):
        trace += spread[i, i]
    A = heard.information.copy()
    for i in range(p):
        if i < dim:
            A[i, i] += dim / (s0 * (trace + 1.0) + power)
        else:
            A[i, i] += 1.0 / (s0 * (rest + 1.0))
            for j in range(dim, i + 1):
                A[i, j] += (1e-6 - 1.0 / (rest + 1.0)) / (s0 * n_arms)
    inverse = inverse_of_lower(cholesky(A))
    doubt = np.zeros((p, p))
    add_gram(doubt, inverse, 1.0)
    mirror(doubt)
    return doubt, apply(doubt, heard.moment)


@compiled
def recentred(spread, shares, dim):
    """Return the spread in a unit of theta in which topic readers are, on average, of kind c = 1, and the shares."""
    topics, average = 0.0, 0.0
    for kind in range(1, 6):
        topics += shares[kind]
        average += shares[kind] * (kind - 3)  # log2 c
    shift = int(np.round(average / topics))
    if shift == 0:
        return spread, shares
    moved, least = np.zeros(6), np.min(shares)
    moved[0] = shares[0]
    for kind in range(1, 6):
        moved[min(max(kind - shift, 1), 5)] += shares[kind]
    moved = np.maximum(moved, least)
    scaled = spread.copy()
    for i in range(spread.shape[0]):
        for j in range(spread.shape[0]):
            scaled[i, j] *= 2.0 ** (shift * ((i < dim) + (j < dim)))
    return scaled, moved / np.sum(moved)
