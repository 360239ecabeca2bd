"""SF-OFUL: optimism over an anytime confidence set that needs no bound on the norm of theta*.

The self-normalised inequality behind OFUL (Abbasi-Yadkori, Pal and Szepesvari 2011, Theorem 1) concerns only the noise.
Before it is solved for theta*, it states for G = sum x x' and V = G + ridge I

    |sum y x - G theta*|_{V^-1} <= sigma sqrt(ln det V/ridge^m + 2 ln(1/delta)) =: radius   at all times,

an ellipsoid around least squares. It bounds <x, theta> by <x, theta_hat> +- radius |G^-1 x|_V, and not at all if x is
outside the span of the plays: such arms are played first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.confidence import ellipsoid_radius
from albatross.linalg.vectors import dot
from albatross.models.ellipsoid import centred, centred_rows, exact_half_axis, exact_leverages, unplayed
from albatross.models.moments import Moments, moments, record, reduced, settle
from albatross.models.ridge import Joint, Ridge, fold_bias, joint, learn, predict, ridge
from albatross.options import Flag, Positive, Probability, Ties, policy
from albatross.picking import tie_priority
from albatross.policies.arms.linear import describe_fit, new_fit
from albatross.policies.arms.schedule import OnSchedule, observe, refit
from albatross.protocol import check_state, diagnostics, fold_arm, init, score

_LEAST = 1.0 / checks.LARGEST  # squared length: the largest contexts, squared and divided by it, are finite


@policy
class SFOFUL(OnSchedule):
    """Norm-free OFUL, on the exact set of Abbasi-Yadkori, Pal and Szepesvari (2011), Theorem 1.

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(SFOFUL(sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    13.7
    """

    sigma: Positive = 1.0  #: standard deviation of the noise
    delta: Probability = 0.1  #: the confidence set may fail with this probability
    ridge: Positive = 1.0  #: weight of the penalty on the parameter's norm
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


class SFOFULState(NamedTuple):
    exact: Joint | Ridge  # least squares; the first columns of its root are the directions nobody has played
    ridged: Joint | Ridge  # for ln det V
    sums: Moments
    unseen: np.ndarray  # (2,) how many such directions there are, and the squared length that counts as 0 along them
    priority: np.ndarray  # (K,)


@init.register
def init_sf_oful(policy: SFOFUL, n_arms, dim, rng):
    exact: Joint | Ridge = joint(n_arms, dim) if policy.biases else ridge(dim)
    ridged = new_fit(n_arms, dim, strength=policy.ridge, biases=policy.biases)
    unseen = np.array([float(dim), 0.0])
    return SFOFULState(exact, ridged, moments(n_arms, dim), unseen, tie_priority(n_arms, policy.ties, rng))


@compiled
def norm_free_radius(policy, state):
    """Return the radius: the contribution of the noise, in the norm of V^-1."""
    return ellipsoid_radius(state.ridged.log_det[0], 0.0, policy.delta, policy.sigma, policy.ridge)


@score.register
def score_sf_oful(policy: SFOFUL, state, offer, noise):
    products = centred_rows(state.exact, offer.contexts, offer.arms) @ state.exact.root
    outside = np.zeros(offer.eligible.size)
    for row in range(outside.size):
        for j in range(int(state.unseen[0])):
            outside[row] += products[row, j] ** 2
            products[row, j] = 0.0
    squares = exact_leverages(state.exact, products, offer.arms, policy.ridge)
    widths = norm_free_radius(policy, state) * np.sqrt(squares)
    for row in range(outside.size):
        if outside[row] > state.unseen[1] or unplayed(state.exact, offer.arms[row]):
            widths[row] = np.inf
    return predict(state.exact, offer.contexts, offer.arms) + widths, widths


@compiled
def leads_outside(state, arm, x):
    """Return whether x has a component outside the span of the plays."""
    row, outside = centred(state.exact, arm, x), 0.0
    for j in range(int(state.unseen[0])):
        outside += dot(row, state.exact.root[:, j]) ** 2
    return outside > state.unseen[1] and not unplayed(state.exact, arm)


@observe.register
def observe_sf_oful(policy: SFOFUL, state, choice, reward, n):
    opened = leads_outside(state, choice.arm, choice.action)
    record(state.sums, choice.arm, choice.action, reward, n)
    learn(state.ridged, choice.arm, choice.action, reward, n)
    learn(state.exact, choice.arm, choice.action, reward, n)
    if opened:
        refit(policy, state)


@refit.register
def refit_sf_oful(policy: SFOFUL, state):
    gram, cross = reduced(state.sums, 0.0 if policy.biases else np.inf)
    spectrum, basis = np.linalg.eigh(gram)
    floor = max(cross.size * 2.0**-52 * spectrum[-1], _LEAST)
    state.unseen[0], state.unseen[1] = 0.0, floor
    for j in range(cross.size):
        if spectrum[j] <= floor:
            spectrum[j] = 1.0
            state.unseen[0] += 1.0
    settle(state.exact, spectrum, basis, cross)


@check_state.register
def check_state_sf_oful(policy: SFOFUL, state):
    checks.indices("unseen", state.unseen[..., 0], state.exact.root.shape[-1])


@fold_arm.register
def fold_arm_sf_oful(policy: SFOFUL, state, arm):
    fold_bias(state.ridged, arm, policy.ridge)


@diagnostics.register
def diagnostics_sf_oful(policy: SFOFUL, state):
    norm_bound, radius = math.inf, norm_free_radius(policy, state)
    if state.unseen[0] == 0.0:  # the plays span all directions
        norm_bound = float(np.linalg.norm(state.exact.theta) + radius * exact_half_axis(state.exact, policy.ridge))
    return {**describe_fit(state.exact, state.sums.pulls), "radius": radius, "norm_bound": norm_bound}
