"""SupLinUCB: LinUCB in stages, each a ridge regression on its own plays.

Chu, Li, Reyzin and Schapire (2011), Algorithms 2 and 3. The width of z is alpha ||z||_{V^-1} with

    alpha = 2 (sigma / b) sqrt(ln(2TKS / delta) / 2) + 1.

The factor 2 sigma / b accounts for the scaled noise; their rewards are in [0, 1]. The 1 covers the ridge.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.models.ridge import Ridge, forget, learn, leverages, predict
from albatross.options import policy
from albatross.picking import tie_priority
from albatross.policies.nested.sup_lin import Staged, estimate_stage, learn_stage, n_stages, staged_parameters
from albatross.protocol import init, reset, resolve


@policy
class SupLinUCB(Staged):
    """SupLinUCB (Chu, Li, Reyzin and Schapire 2011, Algorithm 3).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1, biases=[0.0] * 5)
    >>> run = simulate(SupLinUCB(sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    356.7
    """


class SupLinUCBState(NamedTuple):
    roots: np.ndarray  # (S, d, d) of every stage's ridge regression, see linalg.Ridge
    thetas: np.ndarray  # (S, d)
    log_dets: np.ndarray  # (S, 1)
    stage_plays: np.ndarray  # (S + 1,) plays that no stage learnt from, then those of each
    pulls: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)


def linucb_alpha(rounds: float, n_arms: int, delta: float, sigma: float, bound: float) -> float:
    """Return alpha of LinUCB, 2 (sigma / b) sqrt(ln(2TK / delta) / 2) + 1.

    >>> round(linucb_alpha(1_000, 5, 0.1, 1.0, 1.0), 4)
    5.7985
    """
    return 2.0 * sigma / bound * math.sqrt(0.5 * math.log(2.0 * rounds * n_arms / delta)) + 1.0


def staged_alpha(rounds: float, n_arms: int, delta: float, sigma: float, bound: float) -> float:
    """Return the same with delta divided among the stages."""
    return linucb_alpha(rounds, n_arms, delta / n_stages(rounds), sigma, bound)


@resolve.register
def resolve_sup_lin_ucb(policy: SupLinUCB, n_arms, dim, horizon):
    return staged_parameters(policy, n_arms, dim, horizon, staged_alpha)


@init.register
def init_sup_lin_ucb(policy: SupLinUCB, n_arms, dim, rng):
    return SupLinUCBState(
        roots=np.repeat(np.eye(dim)[None], policy.stages, axis=0),
        thetas=np.zeros((policy.stages, dim)),
        log_dets=np.zeros((policy.stages, 1)),
        stage_plays=np.zeros(policy.stages + 1),
        pulls=np.zeros(n_arms),
        priority=tie_priority(n_arms, policy.ties, rng),
    )


@reset.register
def reset_sup_lin_ucb(policy: SupLinUCB, state):
    for stage in range(state.roots.shape[0]):
        forget(fit_of(state, stage), 1.0)
    state.stage_plays.fill(0.0)
    state.pulls.fill(0.0)


@compiled
def fit_of(state, stage):
    """Return the stage's ridge regression."""
    return Ridge(state.roots[stage], state.thetas[stage], state.log_dets[stage])


@estimate_stage.register
def estimate_ridge(policy: SupLinUCB, state, stage, contexts):
    fit = fit_of(state, stage)
    arms = np.empty(0, np.int64)  # there are no biases
    return predict(fit, contexts, arms), policy.scale * np.sqrt(leverages(fit, contexts, arms))


@learn_stage.register
def learn_ridge(policy: SupLinUCB, state, stage, x, reward, n):
    learn(fit_of(state, stage), 0, x, reward, n)
