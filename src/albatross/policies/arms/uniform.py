"""Uniform: play any eligible arm with the same probability. The policy that everything else must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross.picking import pick_uniformly
from albatross.protocol import Choice, diagnostics, init, noise_size, resolve, select, update


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Uniform play (folklore; the control of every study)."""


class UniformParameters(NamedTuple):
    arms: int


class UniformState(NamedTuple):
    pulls: np.ndarray  # (K,)


@resolve.register
def resolve_uniform(policy: Uniform, n_arms, dim, horizon):
    return UniformParameters(n_arms)


@init.register
def init_uniform(policy: UniformParameters, n_arms, dim, rng):
    return UniformState(np.zeros(n_arms))


@noise_size.register
def noise_size_uniform(policy: UniformParameters, n_arms, dim):
    return 1


@select.register
def select_uniform(policy: UniformParameters, state, offer, noise):
    arm, propensity = pick_uniformly(offer.eligible, noise[0])
    return Choice(arm, offer.contexts[arm], 0.0, 0.0, propensity, np.empty(0))


@update.register
def update_uniform(policy: UniformParameters, state, choice, reward, n):
    state.pulls[choice.arm] += n


@diagnostics.register
def diagnostics_uniform(policy: UniformParameters, state):
    return {"pulls": state.pulls.copy()}
