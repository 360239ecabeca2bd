"""Exp4-IX: exponential weights over finitely many policies, with losses that explore implicitly.

Neu (2015), Section 3.2; the base of ModCB in Foster, Krishnamurthy and Luo (2019), there over a cover of linear
policies. Each of N experts names an arm. With weights w_i, arm a is played with probability p_a, the weight of all
experts that name it. Then

    w_i is multiplied by exp(-eta loss / (p_a + eta / 2)) for the experts that named a,   eta = sqrt(2 ln N / (K T)).

Here an expert is a vector theta and names the arm of the largest <theta, x>, the lowest of equals. Losses are
(high - reward) / (high - low), cut to [0, 1]; how many were cut is in the diagnostics. It cannot learn from actions
that others chose: their probability is not known.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.options import Interval, Option, Rounds, derived, parameters, policy
from albatross.picking import uniform_from_normal
from albatross.protocol import Choice, diagnostics, init, noise_size, reset, resolve, select, tag_size, update

_MOST = 10_000  # experts; a pending decision holds a number for each
_PROBABILITY, _OWN = 0, 1  # places in a tag; whether each expert named the arm follows


def _check_experts(name: str, value: Any) -> tuple[tuple[float, ...], ...]:
    experts = checks.finite_array(name, value, (None, None))
    if not 2 <= len(experts) <= _MOST:
        raise ValueError(f"{name} must have 2 to {_MOST} rows, one per policy, not {len(experts)}")
    return tuple(map(tuple, experts.tolist()))


@policy
class Exp4IX:
    """Exp4-IX over linear policies (Neu 2015, Section 3.2).

    >>> from itertools import product
    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=3, dim=2, noise_sd=0.1, biases=[0.0] * 3)
    >>> directions = [theta for theta in product((-1.0, 0.0, 1.0), repeat=2) if any(theta)]
    >>> run = simulate(Exp4IX(experts=directions, reward_range=(-3.0, 3.0)), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    150.6
    """

    #: (N, d) one policy per row: it plays the arm of the largest product with its row
    experts: Annotated[tuple[tuple[float, ...], ...], Option(_check_experts, np.array)]
    horizon: Rounds | None = None  #: rounds to be played; None: what `simulate` or a `Fleet` is given
    #: for the losses; rewards outside of it are cut there
    reward_range: Interval = (0.0, 1.0)
    eta: float = derived()


class Exp4IXState(NamedTuple):
    losses: np.ndarray  # (N,) sum of the estimated losses of each expert
    pulls: np.ndarray  # (K,)
    clipped: np.ndarray  # (1,) rewards outside of the range


@resolve.register
def resolve_exp4_ix(policy: Exp4IX, n_arms, dim, horizon):
    n_experts, features = np.shape(policy.experts)
    if features != dim:
        raise ValueError(f"experts have {features} columns, but arms have {dim} features")
    rounds = checks.given_horizon(policy, horizon)
    return parameters(policy, horizon=rounds, eta=math.sqrt(2.0 * math.log(n_experts) / (n_arms * rounds)))


@init.register
def init_exp4_ix(policy: Exp4IX, n_arms, dim, rng):
    return Exp4IXState(np.zeros(len(policy.experts)), np.zeros(n_arms), np.zeros(1))


@reset.register
def reset_exp4_ix(policy: Exp4IX, state):
    state.losses.fill(0.0)
    state.pulls.fill(0.0)
    state.clipped.fill(0.0)


@noise_size.register
def noise_size_exp4_ix(policy: Exp4IX, n_arms, dim):
    return 1


@tag_size.register
def tag_size_exp4_ix(policy: Exp4IX):
    return _OWN + len(policy.experts)


@compiled
def weights_of(policy, state):
    """(N,) w, which sum to 1."""
    weights = np.exp(-policy.eta * (state.losses - np.min(state.losses)))
    return weights / np.sum(weights)


@compiled
def arms_named(policy, offer):
    """(N,) the arm that each expert names."""
    values, named = policy.experts @ offer.contexts.T, np.empty(policy.experts.shape[0], np.int64)
    for i in range(named.size):
        best = -1
        for arm in range(values.shape[1]):
            if offer.eligible[arm] and (best < 0 or values[i, arm] > values[i, best]):
                best = arm
        named[i] = best
    return named


@select.register
def select_exp4_ix(policy: Exp4IX, state, offer, noise):
    weights, named = weights_of(policy, state), arms_named(policy, offer)
    left, expert = uniform_from_normal(noise[0]), 0
    while expert < weights.size - 1 and left >= weights[expert]:
        left -= weights[expert]
        expert += 1
    arm = named[expert]
    tag = np.zeros(_OWN + weights.size)
    for i in range(weights.size):
        if named[i] == arm:
            tag[_OWN + i] = 1.0
            tag[_PROBABILITY] += weights[i]
    return Choice(arm, offer.contexts[arm], tag[_PROBABILITY], 0.0, tag[_PROBABILITY], tag)


@update.register
def update_exp4_ix(policy: Exp4IX, state, choice, reward, n):
    state.pulls[choice.arm] += n
    if np.isnan(choice.tag[_PROBABILITY]):
        return
    low, high = policy.reward_range
    loss = (high - reward / n) / (high - low)
    if not 0.0 <= loss <= 1.0:
        state.clipped[0] += n
        loss = min(max(loss, 0.0), 1.0)
    estimate = n * loss / (choice.tag[_PROBABILITY] + 0.5 * policy.eta)
    for i in range(state.losses.size):
        state.losses[i] += estimate * choice.tag[_OWN + i]


@diagnostics.register
def diagnostics_exp4_ix(policy: Exp4IX, state):
    return {"pulls": state.pulls.copy(), "weights": weights_of(policy, state), "clipped": int(state.clipped[0])}
