"""EB-LinTS: Thompson sampling with the prior scale under which the observed rewards are most likely.

LinTS (Agrawal and Goyal 2013, Algorithm 1) with the ridge chosen by empirical Bayes (MacKay 1992). The prior of theta
is N(0, sigma^2/ridge I); with the eigenvalues v_j of the Gram matrix and the coordinates c_j of sum y x in its
eigenbasis,

    ln evidence(ridge) = sum_j (c_j^2 / (v_j + ridge) / sigma^2 - ln(1 + v_j/ridge)) / 2 + constant.

Biases keep a prior N(0, sigma^2/bias_ridge) and are integrated out. Every refit takes the best power of two.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.models.moments import Moments, fold_moments, likeliest_ridge, moments, reduced, settle
from albatross.models.ridge import Joint, Ridge, joint, ridge
from albatross.options import Flag, Positive, Ties, parameters, policy
from albatross.picking import tie_priority
from albatross.policies.arms.linear import describe_fit
from albatross.policies.arms.lints import Sampling
from albatross.policies.arms.schedule import OnSchedule, refit
from albatross.protocol import diagnostics, fold_arm, init, resolve


@policy
class EBLinTS(OnSchedule, Sampling):
    """Linear Thompson sampling (Agrawal and Goyal 2013) with an empirical-Bayes prior (MacKay 1992).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(EBLinTS(sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    7.7
    """

    sigma: Positive = 1.0  #: standard deviation of the noise
    bias_ridge: Positive = 1.0  #: sigma^2 over the prior variance of the biases
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


class EBLinTSState(NamedTuple):
    fit: Joint | Ridge
    sums: Moments
    strength: np.ndarray  # (1,) the ridge in use
    priority: np.ndarray  # (K,)


@resolve.register
def resolve_eb_lints(policy: EBLinTS, n_arms, dim, horizon):
    return parameters(policy, bias_ridge=policy.bias_ridge if policy.biases else math.inf)


@init.register
def init_eb_lints(policy: EBLinTS, n_arms, dim, rng):
    fit: Joint | Ridge = joint(n_arms, dim, bias_strength=policy.bias_ridge) if policy.biases else ridge(dim)
    return EBLinTSState(fit, moments(n_arms, dim), np.ones(1), tie_priority(n_arms, policy.ties, rng))


@refit.register
def refit_eb_lints(policy: EBLinTS, state):
    gram, cross = reduced(state.sums, policy.bias_ridge)
    spectrum, basis = np.linalg.eigh(gram)
    spectrum = np.maximum(spectrum, 0.0)
    coordinates = basis.T @ cross
    state.strength[0] = likeliest_ridge(spectrum, coordinates, policy.sigma)
    settle(state.fit, spectrum + state.strength[0], basis, cross)
    # The symmetric root: a draw must not depend on which of many eigenbases of equal values LAPACK returns.
    state.fit.root[:] = state.fit.root @ basis.T


@fold_arm.register
def fold_arm_eb_lints(policy: EBLinTS, state, arm):
    fold_moments(state.sums, arm, policy.bias_ridge)


@diagnostics.register
def diagnostics_eb_lints(policy: EBLinTS, state):
    return {**describe_fit(state.fit, state.sums.pulls), "ridge": float(state.strength[0])}
