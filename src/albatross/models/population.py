"""What a population of users has in common, and what follows for one user.

A play of arm i with context x is a row z = [x; e_i] of length p = d + K. For user u

    y = <z, w_u> + noise,  noise ~ N(0, s2_u),  s2_u ~ inverse gamma(nu / 2, nu s0 / 2),
    w_u = D_b f + D_c delta,  delta ~ N(0, s2_u Omega),

where D_v scales theta by v and leaves the biases. f is the population's mean, Omega its spread, and (b, c) the user's
*kind*: (0, 0) for outlet readers, whose theta is 0, or (1, c) for topic readers nearer to the population's theta or
further from it. The population learns f, Omega, s0, nu and the shares of the kinds by empirical Bayes
(`population_looks.py`).

Everything about one user follows from its rows Z (m, p), their rewards y and the sum of squares that they leave
unexplained. The rewards have covariance s2 V, V = I + Z D_c Omega D_c Z' = L L'. With T = L^-1 Z D_c Omega and the
residuals r = L^-1 (y - Z D_b f), delta has posterior mean T'r and covariance s2 (Omega - T'T). V is m x m, so a user
with few rewards costs little, and there are never more than max(p, 20) rows (`user_rows.py`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.linalg.small import add_gram, apply, cholesky, mirror, product, solve_lower, transposed

# (b, c) of the kinds: outlet readers, then topic readers.
MEANS = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
SPREADS = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0])
SHARES = np.array([0.1, 0.05, 0.1, 0.6, 0.1, 0.05])  # before anything is learnt
NEGLIGIBLE = 1e-3  # kinds of smaller probability are left out
_FLAT = 1e6  # prior variance of the level that all biases share
LEAST_REST = 1e-8
S0, NU = 0, 1  # places in `noise`


class Population(NamedTuple):
    """What all users have in common."""

    mean: np.ndarray  # (p,) f
    spread: np.ndarray  # (p, p) Omega
    noise: np.ndarray  # (2,) s0 and nu
    shares: np.ndarray  # (6,) of the kinds
    doubt: np.ndarray  # (p, p) C, the covariance of f's estimate


def first_population(n_arms: int, dim: int, *, independent: bool = False) -> Population:
    """Return the population before any reward: nothing known, a flat level of the biases.

    Independent biases have no level in common, so it is the population's mean whose level is not known.
    """
    p = dim + n_arms
    spread, doubt = np.eye(p), np.zeros((p, p))
    (doubt if independent else spread)[dim:, dim:] += _FLAT
    return Population(np.zeros(p), spread, np.array([1.0, 2.0]), SHARES.copy(), doubt)


@compiled
def level_and_rest(spread, dim):
    """Return the variance that all biases share, and that of each beyond it."""
    n_arms = spread.shape[0] - dim
    total, own = 0.0, 0.0
    for i in range(dim, spread.shape[0]):
        own += spread[i, i]
        for j in range(dim, spread.shape[0]):
            total += spread[i, j]
    level = 0.0 if n_arms == 1 else max((total - own) / (n_arms * (n_arms - 1)), 0.0)
    return level, max(own / n_arms - level, LEAST_REST)


def with_arm(population: Population, dim: int, slot: int) -> Population:
    """Return the population with a new arm in a slot, of which it is only known how the others are.

    Its bias goes along with the average of the others as far as two of them go together. A covariance of `level` with
    each of them may be impossible: users may all agree about one arm, while the others differ widely together.
    """
    known = [k for k in range(len(population.mean)) if k != dim + slot]
    biases = known[dim:]
    level, rest = level_and_rest(population.spread[np.ix_(known, known)], dim)
    with_average = population.spread[np.ix_(known, biases)].mean(axis=1)
    along = level / with_average[dim:].mean() * with_average if level > 0.0 else np.zeros(len(known))
    p = max(len(population.mean), dim + slot + 1)
    mean, spread, doubt = np.empty(p), np.zeros((p, p)), np.empty((p, p))
    mean[known], new = population.mean[known], dim + slot
    mean[new] = population.mean[biases].mean()
    spread[np.ix_(known, known)] = population.spread[np.ix_(known, known)]
    spread[known, new] = spread[new, known] = along
    spread[new, new] = level + rest
    doubt[np.ix_(known, known)] = population.doubt[np.ix_(known, known)]
    doubt[known, new] = doubt[new, known] = population.doubt[np.ix_(known, biases)].mean(axis=1)
    common = population.doubt[np.ix_(biases, biases)]
    doubt[new, new] = common.mean() + (population.noise[S0] * (rest + 1.0) if common.any() else 0.0)
    return Population(mean, spread, population.noise, population.shares, doubt)


@compiled
def made_definite(covariance):
    """Return the covariance, a little larger so that rounding does not cost its positive definiteness."""
    p = covariance.shape[0]
    matrix, trace = covariance.copy(), 0.0
    for i in range(p):
        trace += covariance[i, i]
    for i in range(p):
        matrix[i, i] += 1e-12 * trace / p + 1e-14
    return matrix


class Prior(NamedTuple):
    """A population as the formulas for one user need it: computed once, used for all users."""

    mean: np.ndarray  # (p,) f
    spread: np.ndarray  # (p, p) Omega
    noise: np.ndarray  # (2,) s0 and nu
    log_shares: np.ndarray  # (6,)


@compiled
def logarithms(shares):
    """Return the logarithms of shares, to the same last digit on every processor."""
    return np.log(shares)


def prior_for_users(population: Population) -> Prior:
    """Return the prior of a user's own posterior: what is not known of f counts as spread."""
    spread = population.spread + population.doubt / population.noise[S0]
    return Prior(population.mean, made_definite(spread), population.noise, logarithms(population.shares))


def prior_for_looks(population: Population) -> Prior:
    """Return the prior under which the population learns."""
    return Prior(population.mean, made_definite(population.spread), population.noise, logarithms(population.shares))


# ------------------------------------------------------------------------------------------------- one user, six kinds


class Data(NamedTuple):
    """What a user has seen: rows and rewards whose sums of products are those of all plays, at most p of them."""

    rows: np.ndarray  # (m, p) Z
    rewards: np.ndarray  # (m,) y
    beyond: np.ndarray  # (2,) squared rewards that no w explains, beyond the rows; number of plays


class Kinds(NamedTuple):
    """One user under each of the six kinds, from m rows."""

    log_weights: np.ndarray  # (6,) log of share times evidence, up to a constant
    weights: np.ndarray  # (6,) probabilities
    squares: np.ndarray  # (6,) q, the squared rewards that the kind leaves to the noise
    log_dets: np.ndarray  # (6,) ln det V
    lowers: np.ndarray  # (6, m, m) L
    surprises: np.ndarray  # (6, m) y - Z D_b f
    residuals: np.ndarray  # (6, m) r, L times which are the surprises
    priors: np.ndarray  # (3,) traces of Z Omega Z' for features, biases, and between them
    by_features: np.ndarray  # (m, p) Z Omega without the biases of Z; Z D_c Omega is c times this, plus
    by_biases: np.ndarray  # (m, p) Z Omega without the features of Z


@compiled
def under_kinds(prior, dim, data):
    """Return what follows for a user from its data."""
    features, biases = data.rows[:, :dim], data.rows[:, dim:]
    m = features.shape[0]
    by_features, by_biases = product(features, prior.spread[:dim]), product(biases, prior.spread[dim:])
    # Features and biases may be 0, which `product` skips if they come first.
    among_features = product(features, transposed(by_features[:, :dim]))
    among_biases = product(biases, transposed(by_biases[:, dim:]))
    across = product(biases, transposed(by_features[:, dim:]))
    kinds = Kinds(
        log_weights=np.empty(6),
        weights=np.empty(6),
        squares=np.empty(6),
        log_dets=np.empty(6),
        lowers=np.empty((6, m, m)),
        surprises=np.empty((6, m)),
        residuals=np.empty((6, m)),
        priors=np.zeros(3),
        by_features=by_features,
        by_biases=by_biases,
    )
    for i in range(m):
        kinds.priors[0] += among_features[i, i]
        kinds.priors[1] += among_biases[i, i]
        kinds.priors[2] += across[i, i]
    of_theta, of_biases = apply(features, prior.mean[:dim]), apply(biases, prior.mean[dim:])  # Z f
    V = np.empty((m, m))
    for kind in range(6):
        b, c = MEANS[kind], SPREADS[kind]
        for i in range(m):
            for j in range(i + 1):
                V[i, j] = c * c * among_features[i, j] + c * (across[i, j] + across[j, i]) + among_biases[i, j]
            V[i, i] += 1.0
        lower = cholesky(V)
        kinds.lowers[kind] = lower
        for i in range(m):
            kinds.surprises[kind, i] = data.rewards[i] - b * of_theta[i] - of_biases[i]
        kinds.residuals[kind] = solve_lower(lower, kinds.surprises[kind].copy().reshape((-1, 1)))[:, 0]
        log_det, square = 0.0, data.beyond[0]
        for i in range(m):
            log_det += 2.0 * math.log(lower[i, i])
            square += kinds.residuals[kind, i] ** 2
        kinds.squares[kind], kinds.log_dets[kind] = square, log_det
        kinds.log_weights[kind] = log_weight(prior, kinds, kind, data.beyond[1], prior.noise[NU])
    best = np.max(kinds.log_weights)
    total = 0.0
    for kind in range(6):
        kinds.weights[kind] = math.exp(kinds.log_weights[kind] - best)
        total += kinds.weights[kind]
    for kind in range(6):
        kinds.weights[kind] /= total
    return kinds


@compiled
def log_weight(prior, kinds, kind, plays, nu):
    """Return the log of a kind's share times the evidence for it, up to a constant."""
    left = nu * prior.noise[S0] + kinds.squares[kind]
    return prior.log_shares[kind] - 0.5 * kinds.log_dets[kind] - 0.5 * (nu + plays) * math.log(left)


@compiled
def noise_variance(prior, kinds, kind, plays):
    """Return v, the posterior mean of s2 under a kind."""
    return (prior.noise[NU] * prior.noise[S0] + kinds.squares[kind]) / (prior.noise[NU] + plays)


@compiled
def gain_of(kinds, kind):
    """Return T = L^-1 Z D_c Omega (m, p): delta's posterior covariance over s2 is Omega - T'T."""
    c, gain = SPREADS[kind], np.empty_like(kinds.by_features)
    for i in range(gain.shape[0]):
        for j in range(gain.shape[1]):
            gain[i, j] = c * kinds.by_features[i, j] + kinds.by_biases[i, j]
    return solve_lower(kinds.lowers[kind], gain)


# ------------------------------------------------------------------------------------------------- a user's posterior


class Posterior(NamedTuple):
    """What a user's rewards say of w: normal with this mean, and covariance s2 times `covariance`."""

    mean: np.ndarray  # (p,)
    covariance: np.ndarray  # (p, p)
    scalars: np.ndarray  # (2,) s2 and the effective number of parameters


NOISE, IN_USE = 0, 1  # places in `scalars`


@compiled
def look(prior, dim, data, posterior):
    """Write the posterior of a user, averaged over the kinds."""
    p, plays = prior.mean.size, data.beyond[1]
    kinds = under_kinds(prior, dim, data)
    s2, kept = 0.0, 0.0
    for kind in range(6):
        s2 += kinds.weights[kind] * noise_variance(prior, kinds, kind, plays)
        if kinds.weights[kind] >= NEGLIGIBLE:
            kept += kinds.weights[kind]
    means, mean, covariance = np.zeros((6, p)), np.zeros(p), np.zeros((p, p))
    powers = np.zeros(3)  # sums over the kinds of w v / s2 times 1, c and c^2
    for kind in range(6):
        if kinds.weights[kind] >= NEGLIGIBLE:
            w, b, c = kinds.weights[kind] / kept, MEANS[kind], SPREADS[kind]
            weight = w * noise_variance(prior, kinds, kind, plays) / s2
            for power in range(3):
                powers[power] += weight * c**power
            gain = gain_of(kinds, kind)
            for k in range(gain.shape[0]):
                for i in range(p):
                    means[kind, i] += gain[k, i] * kinds.residuals[kind, k]
                for i in range(dim):
                    gain[k, i] *= c
            add_gram(covariance, gain, -weight)
            for i in range(p):
                means[kind, i] = b * prior.mean[i] + c * means[kind, i] if i < dim else prior.mean[i] + means[kind, i]
                mean[i] += w * means[kind, i]
    for i in range(p):
        for j in range(i + 1):
            covariance[i, j] += powers[(i < dim) + (j < dim)] * prior.spread[i, j]
    for kind in range(6):
        if kinds.weights[kind] >= NEGLIGIBLE:
            away = (means[kind] - mean).reshape((1, -1))
            add_gram(covariance, away, kinds.weights[kind] / kept / s2)
    mirror(covariance)
    posterior.mean[:] = mean
    posterior.covariance[:] = covariance
    posterior.scalars[NOISE] = s2
    posterior.scalars[IN_USE] = np.sum(product(data.rows, covariance) * data.rows)


@compiled
def absorb_reward(posterior, row, reward):
    """Update mean and covariance with one more reward; the scalars stay as they are until the next look."""
    k = apply(posterior.covariance, row)
    h, predicted = 0.0, 0.0
    for i in range(row.size):
        h += row[i] * k[i]
        predicted += row[i] * posterior.mean[i]
    for i in range(row.size):
        posterior.mean[i] += k[i] * (reward - predicted) / (1.0 + h)
        for j in range(row.size):
            posterior.covariance[i, j] -= k[i] * k[j] / (1.0 + h)
