"""What a population of users has in common, and what follows for one user.

A play of arm i with context x is a row z = [x; e_i] of length p = d + K. For user u

    y = <z, w_u> + noise,  noise ~ N(0, s2_u),  s2_u ~ inverse gamma(nu / 2, nu s0 / 2),
    w_u = D_b f + D_c delta,  delta ~ N(0, s2_u Omega),

where D_v scales theta by v and leaves the biases. f is the population's mean, Omega its spread, and (b, c) the user's
*kind*: (0, 0) for outlet readers, whose theta is 0, or (1, c) for topic readers nearer to the population's theta or
further from it. The population learns f, Omega, s0, nu and the shares of the kinds by empirical Bayes
(`population_looks.py`).

Everything about one user follows from its rows Z (m, p), their rewards y and the sum of squares that they leave
unexplained. With F F' = Omega and Y = Z D_c F, the rewards have covariance s2 V, V = I + Y Y'. One Cholesky factor of
V per kind gives the evidence, the posterior and what the population learns from the user. V is m x m, so a user with
few rewards costs little, and there are never more than max(p, 16) rows (`user_rows.py`).
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


def first_population(n_arms: int, dim: int) -> Population:
    """Return the population before any reward: nothing known, a flat level of the biases."""
    p = dim + n_arms
    spread = np.eye(p)
    spread[dim:, dim:] += _FLAT
    return Population(np.zeros(p), spread, np.array([1.0, 2.0]), SHARES.copy(), np.zeros((p, p)))


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
    """Return the population with a new arm in a slot, of which it is only known how the others are."""
    known = [k for k in range(len(population.mean)) if k != dim + slot]
    biases = known[dim:]
    level, rest = level_and_rest(population.spread[np.ix_(known, known)], dim)
    p = max(len(population.mean), dim + slot + 1)
    mean, spread, doubt = np.empty(p), np.zeros((p, p)), np.empty((p, p))
    mean[known], new = population.mean[known], dim + slot
    mean[new] = population.mean[biases].mean()
    spread[np.ix_(known, known)] = population.spread[np.ix_(known, known)]
    spread[biases, new] = spread[new, biases] = level
    spread[new, new] = level + rest
    doubt[np.ix_(known, known)] = population.doubt[np.ix_(known, known)]
    doubt[known, new] = doubt[new, known] = population.doubt[np.ix_(known, biases)].mean(axis=1)
    common = population.doubt[np.ix_(biases, biases)]
    doubt[new, new] = common.mean() + (population.noise[S0] * (rest + 1.0) if common.any() else 0.0)
    return Population(mean, spread, population.noise, population.shares, doubt)


@compiled
def root_of(covariance):
    """Return F with F F' = covariance, a little larger so that it is positive definite."""
    p = covariance.shape[0]
    matrix, trace = covariance.copy(), 0.0
    for i in range(p):
        trace += covariance[i, i]
    for i in range(p):
        matrix[i, i] += 1e-12 * trace / p + 1e-14
    return cholesky(matrix)


class Prior(NamedTuple):
    """A population as the formulas for one user need it: computed once, used for all users."""

    mean: np.ndarray  # (p,) f
    root: np.ndarray  # (p, p) F
    noise: np.ndarray  # (2,) s0 and nu
    log_shares: np.ndarray  # (6,)


@compiled
def prior_for_users(population):
    """Return the prior of a user's own posterior: what is not known of f counts as spread."""
    spread = population.spread + population.doubt / population.noise[S0]
    return Prior(population.mean, root_of(spread), population.noise, np.log(population.shares))


@compiled
def prior_for_looks(population):
    """Return the prior under which the population learns."""
    return Prior(population.mean, root_of(population.spread), population.noise, np.log(population.shares))


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
    lowers: np.ndarray  # (6, m, m) L, with L L' = V
    residuals: np.ndarray  # (6, m) L^-1 (y - Z D_b f)
    by_features: np.ndarray  # (m, p) Z F without biases; Y is c times this, plus
    by_biases: np.ndarray  # (m, p) Z F without features


@compiled
def under_kinds(prior, dim, data):
    """Return what follows for a user from its data."""
    rows = data.rows
    m = rows.shape[0]
    by_features, by_biases = product(rows[:, :dim], prior.root[:dim]), product(rows[:, dim:], prior.root[dim:])
    across = product(by_features, transposed(by_biases))
    among_features, among_biases = np.zeros((m, m)), np.zeros((m, m))
    add_gram(among_features, transposed(by_features), 1.0)
    add_gram(among_biases, transposed(by_biases), 1.0)
    of_theta, of_biases = apply(rows[:, :dim], prior.mean[:dim]), apply(rows[:, dim:], prior.mean[dim:])  # Z f
    kinds = Kinds(
        log_weights=np.empty(6),
        weights=np.empty(6),
        squares=np.empty(6),
        log_dets=np.empty(6),
        lowers=np.empty((6, m, m)),
        residuals=np.empty((6, m)),
        by_features=by_features,
        by_biases=by_biases,
    )
    V = np.empty((m, m))
    for kind in range(6):
        b, c = MEANS[kind], SPREADS[kind]
        for i in range(m):
            for j in range(i + 1):
                V[i, j] = c * c * among_features[i, j] + c * (across[i, j] + across[j, i]) + among_biases[i, j]
            V[i, i] += 1.0
        lower = cholesky(V)
        kinds.lowers[kind] = lower
        surprises = data.rewards - b * of_theta - of_biases
        kinds.residuals[kind] = solve_lower(lower, surprises.reshape((-1, 1)))[:, 0]
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
def half_of(kinds, kind):
    """Return L^-1 Y (m, p): with it, delta's posterior covariance over s2 is Q = F (I - half' half) F'."""
    c, Y = SPREADS[kind], np.empty_like(kinds.by_features)
    for i in range(Y.shape[0]):
        for j in range(Y.shape[1]):
            Y[i, j] = c * kinds.by_features[i, j] + kinds.by_biases[i, j]
    return solve_lower(kinds.lowers[kind], Y)


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
    means, mean = np.zeros((6, p)), np.zeros(p)
    # Sums over the kinds of w v (I - half' half), times 1, c and c^2: for biases, both, and features.
    inner = np.zeros((3, p, p))
    for kind in range(6):
        if kinds.weights[kind] >= NEGLIGIBLE:
            w, b, c = kinds.weights[kind] / kept, MEANS[kind], SPREADS[kind]
            half = half_of(kinds, kind)
            weight = w * noise_variance(prior, kinds, kind, plays) / s2
            for power in range(3):
                for i in range(p):
                    inner[power, i, i] += weight * c**power
                add_gram(inner[power], half, -weight * c**power)
            delta = apply(prior.root, apply(transposed(half), kinds.residuals[kind]))
            for i in range(p):
                means[kind, i] = b * prior.mean[i] + c * delta[i] if i < dim else prior.mean[i] + delta[i]
                mean[i] += w * means[kind, i]
    for power in range(3):
        mirror(inner[power])
    theta_root, bias_root = prior.root[:dim], prior.root[dim:]
    covariance = np.empty((p, p))
    covariance[:dim, :dim] = product(product(theta_root, inner[2]), transposed(theta_root))
    covariance[dim:, :dim] = product(product(bias_root, inner[1]), transposed(theta_root))
    covariance[dim:, dim:] = product(product(bias_root, inner[0]), transposed(bias_root))
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
