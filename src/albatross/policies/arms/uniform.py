"""Uniform: play any eligible arm with the same probability. Every other policy should beat it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from albatross.options import policy
from albatross.picking import pick_uniformly
from albatross.protocol import Choice, init, noise_size, select, update


@policy
class Uniform:
    """Uniform play (folklore; the control of every study).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(Uniform(), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    451.6
    """


class UniformState(NamedTuple):
    pulls: np.ndarray  # (K,)


@init.register
def init_uniform(policy: Uniform, n_arms, dim, rng):
    return UniformState(np.zeros(n_arms))


@noise_size.register
def noise_size_uniform(policy: Uniform, n_arms, dim):
    return 1


@select.register
def select_uniform(policy: Uniform, state, offer, noise):
    arm, propensity = pick_uniformly(offer.eligible, noise[0])
    return Choice(arm, offer.contexts[arm], 0.0, 0.0, propensity, np.empty(0))


@update.register
def update_uniform(policy: Uniform, state, choice, reward, n):
    state.pulls[choice.arm] += n
