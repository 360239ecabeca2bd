"""Online least squares with rank-one updates in O(d^2) that never lose positive definiteness.

A `Ridge` keeps theta_hat and a square root R of the inverse, V^-1 = R R', under V += n x x' (Potter's square-root
form of the Kalman filter). What the policies need from V^-1 then costs one product: ||x||_{V^-1} = |R'x|, and
theta_hat + R g is a draw from N(theta_hat, V^-1). A squared norm can never become negative, and a row of length 1e6
costs six digits instead of twelve.

A `Joint` is ridge regression on the features [e_arm; x]: one bias per arm and a theta shared by all arms. Its matrix
is (K + d) x (K + d), but the bias block is diagonal: if arm i has N_i plays and s_i is the sum of their contexts,

    P = ridge I + sum_i (sum x x' - s_i s_i' / N_i),   bias_i = (sum of rewards - <s_i, theta>) / N_i,

and a play adds the rank-one term N/(N+1) c c' with c = x - s_i/N_i. A prior on the biases counts as `bias_ridge` plays
of reward 0 and context 0 in N_i; with bias_ridge = 0, theta_hat is least squares on rows centred within their arm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled, generic
from albatross.linalg.vectors import combined, dot, row_squares, times
from albatross.picking import by_row


class Ridge(NamedTuple):
    """Ridge regression with a shared parameter."""

    root: np.ndarray  # (d, d) R with V^-1 = R R'
    theta: np.ndarray  # (d,)
    log_det: np.ndarray  # (1,) ln det V - ln det V_0


class Joint(NamedTuple):
    """Ridge regression with a bias per arm and a shared parameter."""

    weight: np.ndarray  # (K,) plays + bias_ridge
    reward_sum: np.ndarray  # (K,)
    context_sum: np.ndarray  # (K, d)
    root: np.ndarray  # (d, d) R with P^-1 = R R'
    theta: np.ndarray  # (d,)
    log_det: np.ndarray  # (1,) ln det V - ln det V_0 of the joint matrix


def ridge(dim: int, *, strength: float = 1.0) -> Ridge:
    """Return a fit without data: V = strength I.

    >>> ridge(2, strength=4.0).root.tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    checks.model_fits(dim, rows=dim)
    return Ridge(np.eye(dim) / math.sqrt(strength), np.zeros(dim), np.zeros(1))


def joint(n_arms: int, dim: int, *, strength: float = 1.0, bias_strength: float = 0.0) -> Joint:
    """Return a fit without data: V = diag(bias_strength, ..., strength, ...).

    With bias_strength = 0, `leverages` and `perturb` are undefined for an arm before its first play.

    >>> fit = joint(2, 1, bias_strength=1.0)
    >>> learn(fit, 0, np.array([1.0]), 3.0, 1)
    >>> predict(fit, np.array([[1.0], [1.0]]), np.arange(2)).round(6).tolist()
    [2.0, 1.0]
    """
    checks.model_fits(dim, rows=n_arms + dim)
    bias = np.full(n_arms, float(bias_strength))
    return Joint(bias, np.zeros(n_arms), np.zeros((n_arms, dim)), *ridge(dim, strength=strength))


@compiled
def absorb(fit, x, y):
    """Add the row (x, y) to anything with a root, a theta and a log_det: V += x x'."""
    f = combined(fit.root, x)
    gain = times(fit.root, f)
    leverage = dot(f, f)
    shrink = 1.0 / (1.0 + leverage)
    step = (y - dot(x, fit.theta)) * shrink
    factor = shrink / (1.0 + math.sqrt(shrink))  # 1 - factor * leverage = sqrt(shrink): R stays a root
    for i in range(x.size):
        fit.theta[i] += step * gain[i]
        row = factor * gain[i]
        for j in range(x.size):
            fit.root[i, j] -= row * f[j]
    fit.log_det[0] += math.log1p(leverage)


@compiled
def forget_theta(fit, strength):
    """Reset to V = strength I and theta_hat = 0, for anything with a root, a theta and a log_det."""
    fit.root.fill(0.0)
    for i in range(fit.theta.size):
        fit.root[i, i] = 1.0 / math.sqrt(strength)
    fit.theta.fill(0.0)
    fit.log_det[0] = 0.0


@compiled
def refit(fit, V, b):
    """Set V and theta_hat = V^-1 b; log_det restarts at 0."""
    dim = b.size
    lower = np.zeros((dim, dim))  # the Cholesky factor L; then R = L'^-1
    for i in range(dim):
        for j in range(i):
            lower[i, j] = (V[i, j] - dot(lower[i, :j], lower[j, :j])) / lower[j, j]
        pivot = V[i, i] - dot(lower[i, :i], lower[i, :i])
        lower[i, i] = math.sqrt(max(pivot, 2.0**-52 * V[i, i]))  # rounding may cancel a pivot
    fit.root.fill(0.0)
    for column in range(dim):
        fit.root[column, column] = 1.0 / lower[column, column]
        for i in range(column + 1, dim):
            inner = dot(lower[i, column:i], fit.root[column, column:i])
            fit.root[column, i] = -inner / lower[i, i]
    explained = times(fit.root, combined(fit.root, b))
    for i in range(dim):
        fit.theta[i] = explained[i]
    fit.log_det[0] = 0.0


# Verbs of both fits. They dispatch on the fit, so the code of a policy is the same with and without biases.
learn = generic("learn")  # learn(fit, arm, x, reward, n): add n plays of x with total reward `reward`
forget = generic("forget")  # forget(fit, strength): reset to V = strength I
predict = generic("predict")  # predict(fit, contexts, arms) -> (R,) estimated mean of every row
leverages = generic("leverages")  # leverages(fit, contexts, arms) -> (R,) squared norm of every row's features in V^-1
# perturb(fit, contexts, arms, scale, noise) -> (R,) means under a draw from N(., scale^2 V^-1)
perturb = generic("perturb")


@learn.register
def learn_ridge(fit: Ridge, arm, x, reward, n):
    # n equal rows are one row of length sqrt(n).
    weight = math.sqrt(n)
    absorb(fit, weight * x, reward / weight)


@forget.register
def forget_ridge(fit: Ridge, strength):
    forget_theta(fit, strength)


@predict.register
def predict_ridge(fit: Ridge, contexts, arms):
    return times(contexts, fit.theta)


@leverages.register
def leverages_ridge(fit: Ridge, contexts, arms):
    return row_squares(contexts @ fit.root)


@perturb.register
def perturb_ridge(fit: Ridge, contexts, arms, scale, noise):
    return times(contexts, fit.theta + scale * times(fit.root, noise))


@learn.register
def learn_joint(fit: Joint, arm, x, reward, n):
    weight = fit.weight[arm]
    if weight > 0.0:
        centred = x - fit.context_sum[arm] / weight
        pull = math.sqrt(n * weight / (weight + n))
        absorb(fit, pull * centred, pull * (reward / n - fit.reward_sum[arm] / weight))
        fit.log_det[0] += math.log1p(n / weight)  # det V = product of the weights x det P
    else:
        fit.log_det[0] += math.log(n)  # without a prior, an arm counts from its first play
    fit.weight[arm] += n
    fit.reward_sum[arm] += reward
    for j in range(x.size):
        fit.context_sum[arm, j] += n * x[j]


@forget.register
def forget_joint(fit: Joint, strength):
    fit.weight.fill(strength)
    fit.reward_sum.fill(0.0)
    fit.context_sum.fill(0.0)
    forget_theta(fit, strength)


def fold_bias(fit: Joint | Ridge, arm: int, bias_strength: float) -> None:
    """Drop the bias of an arm from ln det V, before its weight is that of an arm without plays again."""
    if isinstance(fit, Joint) and fit.weight[arm] > bias_strength:
        fit.log_det[0] -= math.log(fit.weight[arm] / (bias_strength or 1.0))


@compiled
def bias_estimates(fit):
    """(K,) mean reward of every arm minus the part explained by theta_hat; 0 for an arm without weight."""
    estimates = np.zeros(fit.weight.size)
    for arm in range(estimates.size):
        if fit.weight[arm] > 0.0:
            estimates[arm] = (fit.reward_sum[arm] - dot(fit.context_sum[arm], fit.theta)) / fit.weight[arm]
    return estimates


@predict.register
def predict_joint(fit: Joint, contexts, arms):
    return by_row(bias_estimates(fit), arms) + times(contexts, fit.theta)


@leverages.register
def leverages_joint(fit: Joint, contexts, arms):
    centred = np.empty_like(contexts)
    for row in range(arms.size):
        arm = arms[row]
        weight = fit.weight[arm]  # looked up in the inner loop, it would keep that from being vectorised
        for j in range(contexts.shape[1]):
            centred[row, j] = contexts[row, j] - fit.context_sum[arm, j] / weight
    found = row_squares(centred @ fit.root)
    for row in range(arms.size):
        found[row] += 1.0 / fit.weight[arms[row]]
    return found


@perturb.register
def perturb_joint(fit: Joint, contexts, arms, scale, noise):
    # Draw theta from its marginal, then the biases given theta: independent, with variance scale^2 / N_i.
    dim = contexts.shape[1]
    theta = fit.theta + scale * times(fit.root, noise[:dim])
    biases = (fit.reward_sum - times(fit.context_sum, theta)) / fit.weight
    return by_row(biases + scale * noise[dim:] / np.sqrt(fit.weight), arms) + times(contexts, theta)
