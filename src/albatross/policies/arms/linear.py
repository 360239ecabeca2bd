"""What the policies on one ridge regression share: the fit, with a bias for every arm or without, and its upkeep."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.models.ridge import Joint, Ridge, bias_estimates, joint, learn, leverages, predict, ridge
from albatross.picking import tie_priority


class LinearState(NamedTuple):
    fit: Joint | Ridge
    pulls: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)


def nothing_learnt(policy: Any, n_arms: int, dim: int, rng: np.random.Generator) -> LinearState:
    """Before the first round; `policy` says `strength` (of the ridge), `biases` and `random_ties`."""
    fit: Joint | Ridge = ridge(dim, strength=policy.strength)
    if policy.biases:
        fit = joint(n_arms, dim, strength=policy.strength, bias_strength=policy.strength)
    return LinearState(fit, np.zeros(n_arms), tie_priority(n_arms, policy.random_ties, rng))


@compiled
def learn_play(state, choice, reward, n):
    """n plays of the choice that brought `reward` in sum."""
    state.pulls[choice.arm] += n
    learn(state.fit, choice.arm, choice.action, reward, n)


@compiled
def optimistic(fit, contexts, reach):
    """(K,) the highest mean of every arm within `reach` of the estimate in the norm of V, and its part above it."""
    widths = reach * np.sqrt(leverages(fit, contexts))
    return predict(fit, contexts) + widths, widths


def describe_fit(state: LinearState) -> dict[str, Any]:
    """Plays, theta_hat and, where the model has them, the biases."""
    found: dict[str, Any] = {"pulls": state.pulls.copy(), "theta_hat": state.fit.theta.copy()}
    if isinstance(state.fit, Joint):
        found["biases"] = bias_estimates(state.fit)
    return found
