"""OSOM, a reconstruction: UCB until the data show that contexts matter, then optimism in theta* permanently.

After Chatterji, Muthukumar and Bartlett (2020), Algorithm 1. Their switching threshold could not be verified; this one
is valid on the same good event. If theta* = 0, the value that the complex model promises exceeds the reward of the
simple model's arm by at most 2 (bonus of the arm) + 2 K ||alpha|| plus noise, so

    switch once  sum [promise - reward] > sum [2 bonus + 2 K ||alpha||] + sigma sqrt(2 t ln(t (t+1) / delta)).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.confidence import bias_widths
from albatross.linalg.vectors import row_norms, times
from albatross.options import derived, parameters, policy
from albatross.picking import pick_best
from albatross.policies.arms.oful_plus import EuclideanBall, OFULPlus, OFULPlusState, ball_radius, biases
from albatross.protocol import Choice, diagnostics, init, resolve, select, tag_size, update


@policy
class OSOM(EuclideanBall):
    """OSOM, a reconstruction (Chatterji, Muthukumar and Bartlett 2020, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(OSOM(norm_bound=3.0, sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    111.9
    """

    ball: Any = derived()  # OFUL+, the complex model


class OSOMState(NamedTuple):
    complex: OFULPlusState
    pulls: np.ndarray  # (K,)
    switched: np.ndarray  # (1,) 1 once the complex model is in use
    tested: np.ndarray  # (1,) t, rewards that the test has seen
    shortfall: np.ndarray  # (1,) sum of promise - reward
    allowance: np.ndarray  # (1,) sum of 2 bonus + 2 K ||alpha||


@resolve.register
def resolve_osom(policy: OSOM, n_arms, dim, horizon):
    rounds = checks.given_horizon(policy, horizon)
    ball = resolve(OFULPlus(**{**vars(policy), "horizon": rounds}), n_arms, dim, horizon)
    return parameters(policy, ball=ball, horizon=rounds)


@init.register
def init_osom(policy: OSOM, n_arms, dim, rng):
    return OSOMState(init(policy.ball, n_arms, dim, rng), np.zeros(n_arms), *(np.zeros(1) for _ in range(4)))


@tag_size.register
def tag_size_osom(policy: OSOM):
    return 2


@select.register
def select_osom(policy: OSOM, state, offer, noise):
    fit, ball = state.complex.fit, policy.ball
    bonus = bias_widths(ball.form, fit.weight, 0.0, ball.delta, ball.sigma, offer.contexts.shape[1])
    reach = ball_radius(ball, state.complex) * row_norms(offer.contexts)
    simple = fit.reward_sum / np.maximum(fit.weight, 1.0) + bonus
    optimistic = biases(fit) + times(offer.contexts, fit.theta) + bonus + reach

    simple_arm = pick_best(simple, offer, state.complex.priority)
    complex_arm = pick_best(optimistic, offer, state.complex.priority)
    if state.switched[0]:
        arm, value, width = complex_arm, optimistic[complex_arm], bonus[complex_arm] + reach[complex_arm]
    else:
        arm, value, width = simple_arm, simple[simple_arm], bonus[simple_arm]

    tag = np.full(2, np.nan)
    if np.isfinite(simple[simple_arm]):  # forced plays are no part of the test
        tag[0] = optimistic[complex_arm]
        tag[1] = 2.0 * bonus[simple_arm] + 2.0 * reach[complex_arm]
    return Choice(arm, offer.contexts[arm], value, width, 1.0, tag)


@update.register
def update_osom(policy: OSOM, state, choice, reward, n):
    state.pulls[choice.arm] += n
    if not state.switched[0] and not np.isnan(choice.tag[0]):
        state.tested[0] += n
        state.shortfall[0] += n * choice.tag[0] - reward
        state.allowance[0] += n * choice.tag[1]
        t = state.tested[0]
        luck = policy.sigma * math.sqrt(2.0 * t * math.log(t * (t + 1.0) / policy.delta))
        if state.shortfall[0] > state.allowance[0] + luck:
            state.switched[0] = 1.0
    # Bias widths here do without the contexts' part.
    update(policy.ball._replace(norm_bound=0.0), state.complex, choice, reward, n)


@diagnostics.register
def diagnostics_osom(policy: OSOM, state):
    return {
        **diagnostics(policy.ball, state.complex),
        "pulls": state.pulls.copy(),
        "switched": bool(state.switched[0]),
        "shortfall": float(state.shortfall[0]),
        "allowance": float(state.allowance[0]),
    }
