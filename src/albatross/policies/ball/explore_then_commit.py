"""Explore, then commit: thresholded least squares on random actions, then its direction permanently.

The simplest policy that needs to know neither sparsity nor signal (after Hao, Lattimore and Wang 2020, Algorithm 1,
with the unit sphere for their design and a threshold for their Lasso). It explores for max(2d, T^(2/3)) rounds, keeps
the coordinates with |theta_j| >= sigma sqrt(2 ln(2d / delta) (A'A)^-1_jj), and plays the direction of these.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.linalg.vectors import norm
from albatross.models.least_squares import add_sample
from albatross.options import Positive, Probability, Rounds, derived, parameters, policy
from albatross.policies.ball.on_ball import OnBall
from albatross.protocol import Choice, diagnostics, hold, init, noise_size, resolve, select, tag_size, update

_FOR_EVER = 2**53


@policy
class ExploreThenCommit(OnBall):
    """Explore, then commit to a sparse least squares fit (after Hao, Lattimore and Wang 2020, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Ball(dim=4, theta=[0.8, 0.0, 0.0, 0.6], noise_sd=0.1)
    >>> run = simulate(ExploreThenCommit(sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    46.8
    """

    horizon: Rounds | None = None  #: number of rounds; None: as given to `simulate`
    sigma: Positive = 1.0  #: standard deviation of the noise
    delta: Probability = 0.1  #: some coordinate that is 0 is kept with at most this probability
    explore: float = derived()  # rounds
    level: float = derived()  # sigma sqrt(2 ln(2d / delta))
    dim: int = derived()


class ExploreThenCommitState(NamedTuple):
    samples: np.ndarray  # (1,)
    gram: np.ndarray  # (d, d)
    cross: np.ndarray  # (d,)
    action: np.ndarray  # (d,) what it commits to; 0 before
    pulls: np.ndarray  # (1,)


@resolve.register
def resolve_explore_then_commit(policy: ExploreThenCommit, n_arms, dim, horizon):
    rounds = checks.given_horizon(policy, horizon)
    return parameters(
        policy,
        horizon=rounds,
        explore=max(2 * dim, math.ceil(rounds ** (2 / 3))),
        level=policy.sigma * math.sqrt(2.0 * math.log(2.0 * dim / policy.delta)),
        dim=dim,
    )


@init.register
def init_explore_then_commit(policy: ExploreThenCommit, n_arms, dim, rng):
    return ExploreThenCommitState(np.zeros(1), np.zeros((dim, dim)), np.zeros(dim), np.zeros(dim), np.zeros(1))


@noise_size.register
def noise_size_explore_then_commit(policy: ExploreThenCommit, n_arms, dim):
    return dim


@tag_size.register
def tag_size_explore_then_commit(policy: ExploreThenCommit):
    return policy.dim  # the action again: pending decisions that were saved have it


@select.register
def select_explore_then_commit(policy: ExploreThenCommit, state, offer, noise):
    if state.samples[0] < policy.explore:
        action = noise / norm(noise)
        return Choice(0, action, 0.0, 0.0, np.nan, action)
    return Choice(0, state.action.copy(), 0.0, 0.0, 1.0, state.action.copy())


@hold.register
def hold_explore_then_commit(policy: ExploreThenCommit, state, choice):
    return 1 if state.samples[0] < policy.explore else _FOR_EVER


@update.register
def update_explore_then_commit(policy: ExploreThenCommit, state, choice, reward, n):
    state.pulls[0] += n
    for _ in range(n):
        if state.samples[0] >= policy.explore:
            return
        state.samples[0] += 1.0
        add_sample(state.gram, state.cross, choice.action, reward / n, 1)
        if state.samples[0] >= policy.explore:
            commit(policy, state)


@compiled
def commit(policy, state):
    """Return the direction of the coordinates above the threshold, or of all coordinates if there is none."""
    dim = state.cross.size
    inverse = np.linalg.inv(state.gram + 1e-9 * np.trace(state.gram) / dim * np.eye(dim))
    theta = inverse @ state.cross
    kept = np.zeros(dim)
    for j in range(dim):
        if abs(theta[j]) >= policy.level * math.sqrt(inverse[j, j]):
            kept[j] = theta[j]
    if norm(kept) == 0.0:
        kept[:] = theta
    length = norm(kept)
    for j in range(dim):
        state.action[j] = kept[j] / length if length > 0.0 else 0.0


@diagnostics.register
def diagnostics_explore_then_commit(policy: ExploreThenCommit, state):
    return {
        "pulls": state.pulls.copy(),
        "samples": int(state.samples[0]),
        "action": state.action.copy(),
        "support": np.flatnonzero(state.action),
    }
