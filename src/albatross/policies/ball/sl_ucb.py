"""SL-UCB: explore all coordinates at once by random signs, keep those that stand out, then play OFUL on them.

Carpentier and Munos (2012), Section 3. Their noise is inside the inner product, r = <x, theta + noise>; here it is
added to it, so sigma replaces their noise in the constant. With exploration x = (+-1, ..., +-1) / sqrt(d), theta_k = (d
/ t) sum x_k r is an unbiased estimate in O(d) per round, without inverting a matrix. With c = (norm bound + sigma)
sqrt(2 ln(2d / delta)), exploration stops at the first t >= sqrt(T) / max_k(|theta_k| - c / sqrt(t)), and not before
sqrt(T). Then A = {k : |theta_k| >= 2c / sqrt(t)}, or all coordinates if that is empty. Until then the policy cannot
learn from actions of others: the estimate needs its own random signs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.models.ball_fit import OWN, SIZE, start_tracking
from albatross.options import AtLeastZero, Positive, Probability, Rounds, derived, parameters, policy
from albatross.policies.ball.ball_oful import BallOFUL
from albatross.policies.ball.on_ball import AroundBallFit, BallState
from albatross.protocol import (
    Choice,
    diagnostics,
    hold,
    init,
    noise_size,
    reset,
    resolve,
    select,
    tag_size,
    update_tracking,
)

_COMMITTED, _SAMPLES = 0, 1  # places in the clock


@policy
class SLUCB(AroundBallFit):
    """SL-UCB (Carpentier and Munos 2012, Section 3); its noise model differs from ours.

    >>> from albatross import environments, simulate
    >>> env = environments.Ball(dim=4, theta=[0.8, 0.0, 0.0, 0.6], noise_sd=0.1)
    >>> run = simulate(SLUCB(sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    85.9
    """

    horizon: Rounds | None = None  #: number of rounds; None: as given to `simulate`
    sigma: Positive = 1.0  #: standard deviation of the noise
    delta: Probability = 0.1  #: the confidence set may fail with this probability
    norm_bound: Positive = 1.0  #: bound on the norm of theta*
    switch: AtLeastZero = 0.0  #: C: a new action when det V has grown by the factor 1 + C; 0: every round
    inner: Any = derived()  # OFUL, on all coordinates
    constant: float = derived()  # c


class SLUCBState(NamedTuple):
    inner: BallState
    clock: np.ndarray  # (2,) int64: 1 once the support is chosen; samples
    moment: np.ndarray  # (d,) sum of x r


@resolve.register
def resolve_sl_ucb(policy: SLUCB, n_arms, dim, horizon):
    inner = BallOFUL(sigma=policy.sigma, delta=policy.delta, norm_bound=policy.norm_bound, switch=policy.switch)
    return parameters(
        policy,
        horizon=checks.given_horizon(policy, horizon),
        inner=resolve(inner, n_arms, dim, horizon),
        constant=(policy.norm_bound + policy.sigma) * math.sqrt(2.0 * math.log(2.0 * dim / policy.delta)),
    )


@init.register
def init_sl_ucb(policy: SLUCB, n_arms, dim, rng):
    return SLUCBState(init(policy.inner, n_arms, dim, rng), np.zeros(2, np.int64), np.zeros(dim))


@noise_size.register
def noise_size_sl_ucb(policy: SLUCB, n_arms, dim):
    return dim


@tag_size.register
def tag_size_sl_ucb(policy: SLUCB):
    return 1 + tag_size(policy.inner)


@select.register
def select_sl_ucb(policy: SLUCB, state, offer, noise):
    tag = np.zeros(1 + OWN + noise.size)
    if state.clock[_COMMITTED]:
        choice = select(policy.inner, state.inner, offer, noise[:0])
        for j in range(choice.tag.size):
            tag[1 + j] = choice.tag[j]
        return choice._replace(tag=tag)
    tag[0] = 1.0
    return Choice(0, np.copysign(1.0 / math.sqrt(noise.size), noise), 0.0, 0.0, np.nan, tag)


@hold.register
def hold_sl_ucb(policy: SLUCB, state, choice):
    if not state.clock[_COMMITTED]:
        return 1
    return hold(policy.inner, state.inner, choice._replace(tag=choice.tag[1:]))


@update_tracking.register
def update_tracking_sl_ucb(policy: SLUCB, state, choice, reward, n, tracked):
    if choice.tag[0] == 1.0:
        for _ in range(n):
            if state.clock[_COMMITTED]:  # one that comes later has nothing left to decide
                return
            state.clock[_SAMPLES] += 1
            for j in range(state.moment.size):
                state.moment[j] += reward / n * choice.action[j]
            commit(policy, state, tracked)
    elif state.clock[_COMMITTED]:
        update_tracking(policy.inner, state.inner, choice._replace(tag=choice.tag[1:]), reward, n, tracked)


@compiled
def commit(policy, state, tracked):
    """Choose the support once the largest coordinate stands out enough for the horizon."""
    t, dim = state.clock[_SAMPLES], state.moment.size
    root = math.sqrt(t)
    largest = np.max(np.abs(state.moment)) * dim / t - policy.constant / root
    if t < math.sqrt(policy.horizon) or t * largest < math.sqrt(policy.horizon):
        return
    support = np.abs(state.moment) * dim / t >= 2.0 * policy.constant / root
    if not np.any(support):
        support[:] = True
    reset(policy.inner._replace(support=support), state.inner)
    start_tracking(tracked, support)
    state.clock[_COMMITTED] = 1


@diagnostics.register
def diagnostics_sl_ucb(policy: SLUCB, state):
    found = diagnostics(policy.inner, state.inner)
    return {
        **found,
        "pulls": state.inner.pulls + state.clock[_SAMPLES],
        "samples": int(state.clock[_SAMPLES]),
        "committed": bool(state.clock[_COMMITTED]),
        "dimension": int(state.inner.fit.clock[SIZE]),
    }
