"""SW-LinUCB: LinUCB on the last plays only, for a parameter that drifts.

Cheung, Simchi-Levi and Zhu (2019), Algorithm 1 (SW-UCB). Contexts explain the whole mean reward, as there.
"""

from __future__ import annotations

import numpy as np

from albatross.models.discounted import windowed
from albatross.models.ridge import forget
from albatross.options import AtLeastOne, AtLeastZero, Positive, Ties, policy
from albatross.picking import tie_priority
from albatross.policies.arms.linear import LinearState, describe_fit, learn_play, optimistic
from albatross.protocol import diagnostics, init, reset, score, update


@policy
class SWLinUCB:
    """SW-LinUCB (Cheung, Simchi-Levi and Zhu 2019, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Drifting(n_arms=5, dim=3, noise_sd=0.1, drift="redrawn", rounds=100)
    >>> run = simulate(SWLinUCB(window=50), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    26.4
    """

    window: AtLeastOne  #: plays that are remembered
    alpha: AtLeastZero = 1.0  #: widths, in posterior standard deviations at noise 1
    ridge: Positive = 1.0  #: weight of the penalty on the parameter's norm
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


@init.register
def init_sw_linucb(policy: SWLinUCB, n_arms, dim, rng):
    fit = windowed(dim, strength=policy.ridge, window=policy.window)
    return LinearState(fit, np.zeros(n_arms), tie_priority(n_arms, policy.ties, rng))


@score.register
def score_sw_linucb(policy: SWLinUCB, state, offer, noise):
    return optimistic(state.fit, offer, policy.alpha)


@update.register
def update_sw_linucb(policy: SWLinUCB, state, choice, reward, n):
    learn_play(state, choice, reward, n)


@reset.register
def reset_sw_linucb(policy: SWLinUCB, state):
    forget(state.fit, policy.ridge)
    state.pulls.fill(0.0)


@diagnostics.register
def diagnostics_sw_linucb(policy: SWLinUCB, state):
    return describe_fit(state.fit, state.pulls)
