"""Shared by policies on one ridge regression, with or without a bias for every arm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.models.discounted import Discounted, Windowed, biases_of
from albatross.models.ridge import (
    Joint,
    Ridge,
    bias_estimates,
    fold_bias,
    forget,
    joint,
    learn,
    leverages,
    predict,
    ridge,
)
from albatross.picking import tie_priority
from albatross.protocol import diagnostics, fold_arm, init, reset, update


class OnRidge:
    """A policy on one ridge regression: a class with these keywords inherits the verbs below."""

    ridge: float
    biases: bool
    ties: str


class LinearState(NamedTuple):
    fit: Joint | Ridge | Discounted | Windowed
    pulls: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)


def new_fit(n_arms: int, dim: int, *, strength: float, biases: Any) -> Joint | Ridge:
    """Return a fit without data, with the same ridge on theta and on the biases."""
    return joint(n_arms, dim, strength=strength, bias_strength=strength) if biases else ridge(dim, strength=strength)


@init.register
def init_on_ridge(policy: OnRidge, n_arms, dim, rng):
    fit = new_fit(n_arms, dim, strength=policy.ridge, biases=policy.biases)
    return LinearState(fit, np.zeros(n_arms), tie_priority(n_arms, policy.ties, rng))


@update.register
def update_on_ridge(policy: OnRidge, state, choice, reward, n):
    learn_play(state, choice, reward, n)


@reset.register
def reset_on_ridge(policy: OnRidge, state):
    forget(state.fit, policy.ridge)
    state.pulls.fill(0.0)


@fold_arm.register
def fold_arm_on_ridge(policy: OnRidge, state, arm):
    fold_bias(state.fit, arm, policy.ridge)


@diagnostics.register
def diagnostics_on_ridge(policy: OnRidge, state):
    return describe_fit(state.fit, state.pulls)


@compiled
def learn_play(state, choice, reward, n):
    """Add n plays of the choice with total reward `reward`."""
    state.pulls[choice.arm] += n
    learn(state.fit, choice.arm, choice.action, reward, n)


@compiled
def optimistic(fit, offer, reach):
    """(R,) the highest mean of every row within `reach` of the estimate in the norm of V, and its part above it."""
    widths = reach * np.sqrt(leverages(fit, offer.contexts, offer.arms))
    return predict(fit, offer.contexts, offer.arms) + widths, widths


def describe_fit(fit: Joint | Ridge | Discounted | Windowed, pulls: np.ndarray) -> dict[str, Any]:
    """Return the plays, theta_hat and, if the model has them, the biases."""
    found: dict[str, Any] = {"pulls": pulls.copy(), "theta_hat": fit.theta.copy()}
    if isinstance(fit, Joint):
        found["biases"] = bias_estimates(fit)
    elif isinstance(fit, Discounted) and fit.reward_sum.size:
        found["biases"] = biases_of(fit)
    return found
