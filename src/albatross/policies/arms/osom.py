"""OSOM, a reconstruction: UCB until the data show that contexts matter, then optimism in theta* permanently.

After Chatterji, Muthukumar and Bartlett (2020), Algorithm 1. Their switching threshold could not be verified; this one
is valid on the same good event. If theta* = 0, the value that the complex model promises exceeds the reward of the
simple model's arm by at most 2 (bonus of the arm) + 2 K ||alpha|| plus noise, so

    switch once  sum [promise - reward] > sum [2 bonus + 2 K ||alpha||] + sigma sqrt(2 t ln(t (t+1) / delta)).

At K = 75, d = 50 and T = 12,775 this test does not reject a norm of 1 if the bound is 10: it allows for K ||alpha||, of
order sqrt(d), in every round. `test="norm"` is a second test, at the scale of OFUL+'s own radii. If theta* = 0, then
theta_hat is within K_delta(0, n, T), the radius for norm 0, from T_min rounds on; so

    switch once  ||theta_hat|| > K_delta(0, n, T)  and  n >= T_min.

With scale 0.5 this is for large d: where theta* = 0, K = 6 and T = 2,000, it switched in 43, 24, 4 and 0 % of 300
trials at d = 1, 3, 10 and 30; with scale 1 in 1, 0, 0 and 0 %.

The widths of the arms are here those of plain means, as OSOM's are. With `test="reward"` they are OFUL+'s for norm 0,
which carry a factor sqrt(d) in the form "main".
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.confidence import Appendix, bias_widths, burn_in
from albatross.linalg.vectors import norm, row_norms, times
from albatross.options import derived, one_of, parameters, policy
from albatross.picking import by_row, pick_best
from albatross.policies.arms.oful_plus import EuclideanBall, OFULPlus, OFULPlusState, ball_radius, biases
from albatross.protocol import Choice, check_state, diagnostics, init, resolve, select, tag_size, update

_UNKNOWN = 1.0  # switched, in a file of version 0.2 or older: the first round is always forced, so no switch is then


@policy
class OSOM(EuclideanBall):
    """OSOM, a reconstruction (Chatterji, Muthukumar and Bartlett 2020, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(OSOM(norm_bound=3.0, sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    111.9
    """

    #: "reward": switches if UCB earns less than the complex model promises; "norm": if theta_hat is too long for 0
    test: Annotated[str, one_of("reward", "norm")] = "reward"
    ball: Any = derived()  # OFUL+, the complex model
    null: Any = derived()  # OFUL+ for theta* = 0
    arm_widths: Any = derived()  # the form of the arms' widths, which do without the contexts' part


class OSOMState(NamedTuple):
    complex: OFULPlusState
    pulls: np.ndarray  # (K,)
    switched: np.ndarray  # (1,) rewards learnt when the complex model came into use, 0 before
    tested: np.ndarray  # (1,) t, rewards that the test has seen
    shortfall: np.ndarray  # (1,) sum of promise - reward
    allowance: np.ndarray  # (1,) sum of 2 bonus + 2 K ||alpha||


@resolve.register
def resolve_osom(policy: OSOM, n_arms, dim, horizon):
    rounds = checks.given_horizon(policy, horizon)
    given = {name: value for name, value in vars(policy).items() if name != "test"}
    ball = resolve(OFULPlus(**{**given, "horizon": rounds}), n_arms, dim, horizon)
    arm_widths = Appendix(float(policy.scale)) if policy.test == "norm" else ball.form
    return parameters(policy, ball=ball, null=ball._replace(norm_bound=0.0), arm_widths=arm_widths, horizon=rounds)


@init.register
def init_osom(policy: OSOM, n_arms, dim, rng):
    return OSOMState(init(policy.ball, n_arms, dim, rng), np.zeros(n_arms), *(np.zeros(1) for _ in range(4)))


@tag_size.register
def tag_size_osom(policy: OSOM):
    return 2


@select.register
def select_osom(policy: OSOM, state, offer, noise):
    fit, ball = state.complex.fit, policy.ball
    of_arms = bias_widths(policy.arm_widths, fit.weight, 0.0, ball.delta, ball.sigma, offer.contexts.shape[1])
    bonus = by_row(of_arms, offer.arms)
    reach = ball_radius(ball, state.complex) * row_norms(offer.contexts)
    simple = by_row(fit.reward_sum / np.maximum(fit.weight, 1.0), offer.arms) + bonus
    optimistic = by_row(biases(fit), offer.arms) + times(offer.contexts, fit.theta) + bonus + reach

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
    update(policy.null._replace(form=policy.arm_widths), state.complex, choice, reward, n)
    if state.switched[0]:
        return
    if not np.isnan(choice.tag[0]):
        state.tested[0] += n
        state.shortfall[0] += n * choice.tag[0] - reward
        state.allowance[0] += n * choice.tag[1]
    if too_long(policy, state.complex) if policy.test else falls_short(policy, state):
        state.switched[0] = np.sum(state.pulls)


@compiled
def falls_short(policy, state):
    """Whether the rewards fall short of the complex model's promises by more than theta* = 0 allows."""
    t = max(state.tested[0], 1.0)
    luck = policy.sigma * math.sqrt(2.0 * t * math.log(t * (t + 1.0) / policy.delta))
    return state.shortfall[0] > state.allowance[0] + luck


@compiled
def too_long(policy, fitted):
    """Whether theta_hat is longer than theta* = 0 allows."""
    theta, ball = fitted.fit.theta, policy.null
    enough = fitted.plays[0] >= burn_in(ball.delta, ball.horizon, theta.size, ball.rho_min)
    return enough and norm(theta) > ball_radius(ball, fitted)


@check_state.register
def check_state_osom(policy: OSOM, state):
    checks.indices("switched", state.switched, checks.MOST_ROUNDS)


@diagnostics.register
def diagnostics_osom(policy: OSOM, state):
    switched = float(state.switched[0])
    found = {
        **diagnostics(policy.ball, state.complex),
        "pulls": state.pulls.copy(),
        "switched": switched > 0.0,
        "switched_at": int(switched) if switched > _UNKNOWN else None,
    }
    if policy.test:  # 1: "norm"
        return {**found, "null_radius": float(ball_radius(policy.null, state.complex))}
    return {**found, "shortfall": float(state.shortfall[0]), "allowance": float(state.allowance[0])}
