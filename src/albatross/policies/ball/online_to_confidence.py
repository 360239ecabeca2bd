"""Online-to-confidence-set conversion: OFUL on the unit ball, about the predictions of an online sparse regression.

Abbasi-Yadkori, Pal and Szepesvari (2012), Theorem 1 and Section 4. A predictor says p before each reward y. If its
square loss exceeds that of theta* by at most B, then with probability 1 - delta, in all rounds,

    sum (p - <x, theta*>)^2 <= beta = 1 + 2B + 32 sigma^2 ln((sqrt(8) sigma + sqrt(1 + B)) / delta),

so theta* is in an ellipsoid about q, the ridge regression of the predictions on the actions: with V = I + sum x x',

    ||theta* - q||_V^2 <= S^2 + beta - (||q||^2 + sum (p - <x, q>)^2).

The paper's predictor, SeqSEW, needs Monte Carlo. Here it is the exact mixture over all supports of the given size, each
a Gaussian model with prior N(0, S^2 I) weighted by its evidence; hence few coordinates only. B is not a bound proved
beforehand but the loss so far against the best of these supports, which theta* cannot beat: with ridge sigma^2 / S^2,

    sum (y - <x, theta*>)^2 >= min over supports and theta of [sum (y - <x, theta>)^2 + ridge ||theta||^2] - sigma^2.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.linalg.eigen import optimistic_coordinates
from albatross.linalg.vectors import norm
from albatross.models.ball_fit import (
    MOMENT,
    OWN,
    SIZE,
    BallFit,
    ball_fit,
    describe_ball,
    estimated_mean,
    learn_action,
    nothing_tracked,
    offer_action,
)
from albatross.models.ridge import Ridge, absorb
from albatross.options import AtLeastOne, Positive, Probability, derived, parameters, policy
from albatross.policies.ball.on_ball import OnBall
from albatross.protocol import check_state, diagnostics, init, resolve, select, tag_size, update

_MOST_SUPPORTS = 5_000
_LOSS, _SQUARES = 0, 1  # places in the sums
_EMPTY = 1e-12  # squared radius of a set that is empty, which has probability delta


@policy
class OnlineToConfidence(OnBall):
    """OFUL on an online-to-confidence set, given the sparsity (Abbasi-Yadkori, Pal and Szepesvari 2012).

    >>> from albatross import environments, simulate
    >>> env = environments.Ball(dim=4, theta=[0.8, 0.0, 0.0, 0.6], noise_sd=0.1)
    >>> run = simulate(OnlineToConfidence(sparsity=2, sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    27.2
    """

    sparsity: AtLeastOne  #: theta* has at most so many coordinates that are not 0
    sigma: Positive = 1.0  #: standard deviation of the noise
    delta: Probability = 0.1  #: the confidence set may fail with this probability
    norm_bound: Positive = 1.0  #: S, what the norm of theta* is at most
    dim: int = derived()  # d
    supports: np.ndarray = derived()  # (N, s) int64, the coordinates of each


class OnlineToConfidenceState(NamedTuple):
    fit: BallFit  # V, and the sum of x p in place of x y
    roots: np.ndarray  # (N, s, s) of the ridge regression of rewards on each support
    thetas: np.ndarray  # (N, s)
    log_dets: np.ndarray  # (N, 1)
    moment: np.ndarray  # (d,) sum of x y
    sums: np.ndarray  # (2,) of (y - p)^2 - y^2, and of p^2
    pulls: np.ndarray  # (1,) rewards received


@resolve.register
def resolve_online_to_confidence(policy: OnlineToConfidence, n_arms, dim, horizon):
    if policy.sparsity > dim:
        raise ValueError(f"sparsity is {policy.sparsity}, but the ball has only {dim} coordinates")
    what = f"supports of {policy.sparsity} of {dim} coordinates"
    # Counted only if few coordinates are kept or left out: the number may have millions of digits.
    many = min(policy.sparsity, dim - policy.sparsity) >= _MOST_SUPPORTS.bit_length()
    if many or math.comb(dim, policy.sparsity) > _MOST_SUPPORTS:
        raise ValueError(
            f"there are too many {what} for OnlineToConfidence, which keeps a regression for each, at most "
            f"{_MOST_SUPPORTS}: use SLUCB or AlbatrossDim"
        )
    n_bytes = 8 * math.comb(dim, policy.sparsity) * policy.sparsity**2
    checks.fits_in_memory(f"a regression for each of the {what}", n_bytes, "use SLUCB or AlbatrossDim")
    return parameters(policy, dim=dim, supports=np.array(list(combinations(range(dim), policy.sparsity))))


@init.register
def init_online_to_confidence(policy: OnlineToConfidence, n_arms, dim, rng):
    n_supports, size = policy.supports.shape
    prior_sd_over_noise = policy.norm_bound / policy.sigma
    return OnlineToConfidenceState(
        fit=ball_fit(dim, np.ones(dim, bool), 1.0),
        roots=np.repeat(prior_sd_over_noise * np.eye(size)[None], n_supports, axis=0),
        thetas=np.zeros((n_supports, size)),
        log_dets=np.zeros((n_supports, 1)),
        moment=np.zeros(dim),
        sums=np.zeros(2),
        pulls=np.zeros(1),
    )


@tag_size.register
def tag_size_online_to_confidence(policy: OnlineToConfidence):
    return OWN + policy.dim


@compiled
def explained_by(policy, state):
    """(N,) by how much each support's penalised least squares is below sum y^2."""
    explained = np.zeros(policy.supports.shape[0])
    for a in range(explained.size):
        for i in range(policy.supports.shape[1]):
            explained[a] += state.moment[policy.supports[a, i]] * state.thetas[a, i]
    return explained


@compiled
def log_evidence(policy, state):
    """(N,) logarithm of the density of all rewards under each support's Gaussian model, up to a common constant."""
    return explained_by(policy, state) / (2.0 * policy.sigma**2) - 0.5 * state.log_dets[:, 0]


@compiled
def prediction(policy, state, x):
    """p: the mean of <x, theta> over supports, weighted by their evidence."""
    evidence = log_evidence(policy, state)
    weights = np.exp(evidence - np.max(evidence))
    total = 0.0
    for a in range(weights.size):
        for i in range(policy.supports.shape[1]):
            total += weights[a] * state.thetas[a, i] * x[policy.supports[a, i]]
    return total / np.sum(weights)


@compiled
def regret_bound(policy, state):
    """B: what the predictions have lost, at most, in square loss against theta*."""
    return max(state.sums[_LOSS] + np.max(explained_by(policy, state)) + policy.sigma**2, 0.0)


@compiled
def conversion(B, delta, sigma):
    """beta: a bound on sum (p - <x, theta*>)^2 with probability 1 - delta (Theorem 1).

    >>> round(conversion(3.0, 0.1, 0.5), 4)
    35.2443
    """
    return 1.0 + 2.0 * B + 32.0 * sigma**2 * math.log((math.sqrt(8.0) * sigma + math.sqrt(1.0 + B)) / delta)


@compiled
def set_radius(policy, state):
    """How far theta* may be from q, in the norm of V."""
    fit = state.fit
    beta = conversion(regret_bound(policy, state), policy.delta, policy.sigma)
    residual = state.sums[_SQUARES]  # ||q||^2 + sum (p - <x, q>)^2 = sum p^2 - <q, sum x p>
    for j in range(fit.values.size):
        residual -= fit.carried[MOMENT, j] ** 2 / fit.values[j]
    return math.sqrt(max(policy.norm_bound**2 + beta - residual, _EMPTY))


@select.register
def select_online_to_confidence(policy: OnlineToConfidence, state, offer, noise):
    fit = state.fit
    centre = fit.carried[MOMENT] / fit.values
    longest = optimistic_coordinates(fit.values, centre, set_radius(policy, state))
    promise = norm(longest)
    coordinates = longest / promise
    return offer_action(fit, coordinates, promise, promise - estimated_mean(fit, coordinates), 1.0)


@update.register
def update_online_to_confidence(policy: OnlineToConfidence, state, choice, reward, n):
    x, y = choice.action, reward / n
    for _ in range(n):
        p = prediction(policy, state, x)
        state.sums[_LOSS] += p * p - 2.0 * p * y
        state.sums[_SQUARES] += p * p
        learn_action(state.fit, nothing_tracked(state.fit), choice, p, 1, 0.0)
        learn_supports(policy, state, x, y)
        state.pulls[0] += 1.0


@compiled
def learn_supports(policy, state, x, y):
    """One play, for the regression on every support."""
    for j in range(x.size):
        state.moment[j] += x[j] * y
    part = np.empty(policy.supports.shape[1])
    for a in range(policy.supports.shape[0]):
        for i in range(part.size):
            part[i] = x[policy.supports[a, i]]
        absorb(Ridge(state.roots[a], state.thetas[a], state.log_dets[a]), part, y)


@check_state.register
def check_state_online_to_confidence(policy: OnlineToConfidence, state):
    sizes = state.fit.clock[..., SIZE]
    if (sizes != policy.dim).any():
        raise ValueError(f"clock must name all {policy.dim} coordinates, not {sizes.min()} of them")


@diagnostics.register
def diagnostics_online_to_confidence(policy: OnlineToConfidence, state):
    return {
        **describe_ball(state.fit),
        "pulls": state.pulls.copy(),
        "radius": float(set_radius(policy, state)),
        "regret_bound": float(regret_bound(policy, state)),
        "support": policy.supports[np.argmax(log_evidence(policy, state))].copy(),
    }
