"""OFUL+: OFUL for arms with biases, optimistic over a Euclidean ball of known norm bound.

Ghosh, Sankararaman and Ramchandran (2021), sub-routine of Algorithm 1 and Appendix A. Optimism over a ball has a closed
form: the index of arm i is mu~_i + <alpha_i, theta_hat> + K ||alpha_i||, where mu~_i is its estimated bias plus a
width.

There are two estimators of theta*. `paper` is the paper's: ridge regression of g - mu~ on the played contexts, with
each mu~ frozen at its play. It assumes that played contexts have mean zero, but the arm is chosen by looking at them,
so theta_hat is shrunk permanently (to about 0.13 theta* on the paper's own problem). `centered`, the default, repairs
this by centring contexts and rewards within each arm, which is joint least squares in the biases and theta*.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled, generic
from albatross.confidence import FORMS, Form, arms_in_play, bias_width, bias_widths, radius
from albatross.linalg.vectors import dot, norm
from albatross.models.ridge import Joint, absorb, bias_estimates, forget, forget_theta, joint, learn, ridge
from albatross.options import AtLeastZero, Positive, Probability, Rounds, Ties, one_of, parameters, policy
from albatross.picking import by_row, tie_priority
from albatross.protocol import diagnostics, init, reset, resolve, score, update

Estimator = Annotated[str, one_of("centered", "paper")]


@policy
class EuclideanBall:
    """The keywords of a policy that is optimistic over a Euclidean ball of known norm bound."""

    norm_bound: AtLeastZero = 1.0  #: bound on the norm of theta*
    horizon: Rounds | None = None  #: number of rounds; None: as given to `simulate` or `Fleet`
    delta: Probability = 0.1  #: sets the width; the set may fail with 4 delta if form is "appendix" and scale 1
    sigma: Positive = 1.0  #: standard deviation of the noise
    rho_min: Positive = 1.0  #: least eigenvalue of the contexts' covariance
    form: Form = "main"  #: "main": the displays of Section 3.2; "appendix": those of Appendix A
    scale: Positive = 0.5  #: c, a factor on all widths
    estimator: Estimator = "centered"  #: "centered": contexts and rewards centred within arms; "paper": as in the paper
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


@policy
class OFULPlus(EuclideanBall):
    """OFUL+ (Ghosh, Sankararaman and Ramchandran 2021, Algorithm 1); given the true norm, the paper's oracle.

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(OFULPlus(norm_bound=3.0, sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    42.1
    """


class Residual(NamedTuple):
    """The fit of the paper's estimator. The centred estimator uses a `Joint`, which has these fields and one more."""

    weight: np.ndarray  # (K,) plays
    reward_sum: np.ndarray  # (K,)
    root: np.ndarray  # (d, d)
    theta: np.ndarray  # (d,)
    log_det: np.ndarray  # (1,)


class OFULPlusState(NamedTuple):
    fit: Joint | Residual
    plays: np.ndarray  # (1,) n, forced plays not counted
    priority: np.ndarray  # (K,)


@resolve.register
def resolve_oful_plus(policy: OFULPlus, n_arms, dim, horizon):
    rounds = max(checks.given_horizon(policy, horizon) - n_arms, 1)  # T~: forced plays are not counted
    return parameters(policy, horizon=rounds, form=FORMS[policy.form](float(policy.scale)))


@init.register
def init_oful_plus(policy: OFULPlus, n_arms, dim, rng):
    fit: Joint | Residual = joint(n_arms, dim)
    if policy.estimator:  # 1: "paper"
        fit = Residual(np.zeros(n_arms), np.zeros(n_arms), *ridge(dim))
    return OFULPlusState(fit, np.zeros(1), tie_priority(n_arms, policy.ties, rng))


biases = generic("biases")  # biases(fit) -> (K,) estimates of mu
absorb_play = generic("absorb_play")  # absorb_play(fit, policy, arm, x, reward)


@biases.register
def biases_centered(fit: Joint):
    return bias_estimates(fit)


@biases.register
def biases_paper(fit: Residual):
    return fit.reward_sum / np.maximum(fit.weight, 1.0)


@absorb_play.register
def absorb_play_centered(fit: Joint, policy, arm, x, reward):
    learn(fit, arm, x, reward, 1)


@absorb_play.register
def absorb_play_paper(fit: Residual, policy, arm, x, reward):
    forced = fit.weight[arm] == 0.0
    fit.weight[arm] += 1.0
    fit.reward_sum[arm] += reward
    if not forced:
        count = fit.weight[arm]
        width = bias_width(
            policy.form, count, policy.norm_bound, policy.delta, policy.sigma, arms_in_play(fit.weight), x.size
        )
        optimistic_bias = fit.reward_sum[arm] / count + width  # mu~ right after this play, never revised
        absorb(fit, x, reward - optimistic_bias)


@forget.register
def forget_paper(fit: Residual, strength):
    fit.reward_sum.fill(0.0)
    forget_theta(fit, strength)


@compiled
def ball_radius(policy, state):
    """Return K_delta(b, n, T~), the largest distance of theta* from theta_hat."""
    n_arms, dim, n = arms_in_play(state.fit.weight), state.fit.theta.size, state.plays[0]
    delta, sigma = policy.delta, policy.sigma
    return radius(policy.form, policy.norm_bound, n, policy.horizon, delta, sigma, n_arms, dim, policy.rho_min)


@score.register
def score_oful_plus(policy: OFULPlus, state, offer, noise):
    fit, dim = state.fit, offer.contexts.shape[1]
    reach = ball_radius(policy, state)
    of_arms = bias_widths(policy.form, fit.weight, policy.norm_bound, policy.delta, policy.sigma, dim)
    scores, widths = by_row(biases(fit), offer.arms), by_row(of_arms, offer.arms)
    for row in range(scores.size):
        x = offer.contexts[row]
        widths[row] += reach * norm(x)
        scores[row] += dot(x, fit.theta) + widths[row]
    return scores, widths


@update.register
def update_oful_plus(policy: OFULPlus, state, choice, reward, n):
    for _ in range(n):
        if state.fit.weight[choice.arm] > 0.0:  # an arm's first play is forced and does not count
            state.plays[0] += 1.0
        absorb_play(state.fit, policy, choice.arm, choice.action, reward / n)


@reset.register
def reset_oful_plus(policy: OFULPlus, state):
    forget(state.fit, 1.0)
    state.fit.weight.fill(0.0)
    state.plays[0] = 0.0


@diagnostics.register
def diagnostics_oful_plus(policy: OFULPlus, state):
    dim = state.fit.theta.size
    widths = bias_widths(policy.form, state.fit.weight, policy.norm_bound, policy.delta, policy.sigma, dim)
    return {
        "pulls": state.fit.weight.copy(),
        "theta_hat": state.fit.theta.copy(),
        "radius": float(ball_radius(policy, state)),
        "biases": biases(state.fit),
        "optimistic_biases": biases(state.fit) + widths,
        "norm_bound": policy.norm_bound,
    }
