"""The diagnostics of Albatross: estimates by name, and warnings in sentences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from albatross.models.certificate import describe_certificate
from albatross.models.memory import HALF_LIVES, Learnt
from albatross.models.ridge import bias_estimates
from albatross.models.two_priors import ACTING, BIAS_RIDGE, FIRST_LOOK, IN_USE, NOISE, PLAYS, SPARSE_WEIGHT
from albatross.policies.arms.safeguard import describe_safeguard

_HARDLY = 1e-12  # of a sum of squares
_SIGMA_TOO_SMALL = 1.1  # times sigma, or three standard errors where they are more


def describe_albatross(policy: Any, state: Any, *, sigma: float) -> dict[str, Any]:
    """Return estimates, variances and warnings, with certificate and safeguard if they are in use."""
    numbers = state.prior.numbers
    r, variance = float(numbers[BIAS_RIDGE]), float(numbers[NOISE])
    unit, first_reward = float(state.origin[0]) or 1.0, float(state.origin[1])
    prior_norm = math.sqrt(variance * np.sum(1.0 / state.prior.precisions[ACTING])) / unit
    found: dict[str, Any] = {
        "pulls": state.pulls.copy(),
        "intercept": float(state.fit.theta[0] + first_reward),
        "theta_hat": state.fit.theta[1:] / unit,
        "noise_sd": math.sqrt(variance),
        "prior_norm": prior_norm if np.any(state.totals.gram[1:, 1:]) else None,
        "sparse_probability": float(numbers[SPARSE_WEIGHT]),
        "effective_parameters": float(numbers[IN_USE]),
    }
    if policy.biases:
        found.update(biases=bias_estimates(state.fit), bias_ridge=r, bias_sd=math.sqrt(variance / r))
    if isinstance(policy.memory, Learnt):
        found.update(half_life=float(HALF_LIVES[int(state.memories.in_use[0])]))
    warnings = plain_warnings(policy, state)
    if policy.certificate:
        proved, sentences = describe_certificate(state.certificate, delta=policy.delta, sigma=sigma, unit=unit)
        found.update(**proved, **describe_safeguard(policy.safeguard, state, sigma))
        warnings += sentences
    return {**found, "warnings": warnings}


def plain_warnings(policy: Any, state: Any) -> list[str]:
    """List warnings about the estimates, in sentences."""
    found = []
    t, plays, dim = state.totals.gram[0, 0], state.prior.numbers[PLAYS], state.fit.theta.size - 1
    if t > 0.0:
        found += unidentified(policy, state, t, dim)
    sd = math.sqrt(state.prior.numbers[NOISE])
    if plays < FIRST_LOOK:
        found.append(f"Fewer than {FIRST_LOOK:.0f} rewards: the variances are still first guesses.")
    elif policy.sigma and sd > policy.sigma * max(_SIGMA_TOO_SMALL, 1.0 + 3.0 / math.sqrt(2.0 * t)):
        found.append(
            f"The noise looks like {sd:.3g}, sigma={policy.sigma:.3g} was given: the certificate does not hold; "
            "decisions are hardly affected."
        )
    if policy.certificate and not policy.sigma:
        found.append("sigma was not given: the certificate rests on an estimate of it and is not proved.")
    return found


def unidentified(policy: Any, state: Any, t: float, dim: int) -> list[str]:
    """List what t plays cannot identify of theta, biases and noise."""
    found = []
    contexts = state.totals.gram[1:, 1:]
    sums = state.fit.context_sum if policy.biases else np.empty((0, dim + 1))
    plays = np.where(sums[:, :1] > 0.0, sums[:, :1], 1.0)
    within = contexts - (sums[:, 1:] / plays).T @ sums[:, 1:]
    if not contexts.any():
        found.append("All contexts played were zero: nothing is known about theta.")
    elif len(sums) and np.trace(within) <= _HARDLY * np.trace(contexts):
        found.append("Contexts never changed within an arm: biases and theta cannot be told apart.")
    if t < dim:
        found.append(f"{t:.3g} reward{'s' * int(t != 1)} for {dim} features: most of theta still comes from the prior.")
    if state.totals.square[0] * t - state.totals.moment[0] ** 2 <= _HARDLY * state.totals.square[0] * t:
        found.append("All rewards were equal: there is nothing to learn from.")
    return found
