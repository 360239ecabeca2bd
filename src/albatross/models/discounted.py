"""Least squares that forgets: plays weighted by their age, or those of a window only.

`Discounted`: a play of age a has the weight gamma^a (Russac, Vernade and Cappe 2019, D-LinUCB). With V the weighted
matrix and W the one with squared weights, the estimate has the covariance sigma^2 V^-1 W V^-1, and the leverage of a
row is its squared norm in that. Biases are eliminated as in `ridge.Joint`. `Windowed`: the last plays count in full,
others not at all (Cheung, Simchi-Levi and Zhu 2019). Both solve the normal equations anew with every play, in O(d^3):
a weight that falls has no square-root form that stays accurate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.linalg.vectors import combined, dot, row_squares, times
from albatross.models.ridge import forget, learn, leverages, predict, refit
from albatross.picking import by_row

STRENGTH, RATE = 0, 1  # places in the constants
ONCE, TWICE = 0, 1  # first axis: weights, and squared weights
_DROWNS = 1e6  # times the sum of squares of the other plays


class Discounted(NamedTuple):
    """Ridge regression with weights that fall; K = 0 without biases."""

    counts: np.ndarray  # (2, K) sums of weights
    context_sum: np.ndarray  # (2, K, d)
    reward_sum: np.ndarray  # (K,)
    gram: np.ndarray  # (2, d, d)
    moment: np.ndarray  # (d,)
    root: np.ndarray  # (d, d) R with P^-1 = R R', P the matrix of theta once biases are eliminated
    theta: np.ndarray  # (d,)
    log_det: np.ndarray  # (1,) unused: of any fit with a root
    constants: np.ndarray  # (2,) ridge, -ln gamma


class Windowed(NamedTuple):
    """Ridge regression on the last plays, without biases."""

    rows: np.ndarray  # (w, d) the plays in the window
    rewards: np.ndarray  # (w,)
    clock: np.ndarray  # (1,) int64, plays so far
    gram: np.ndarray  # (d, d) of the window
    moment: np.ndarray  # (d,)
    root: np.ndarray  # (d, d)
    theta: np.ndarray  # (d,)
    log_det: np.ndarray  # (1,) unused: of any fit with a root
    constants: np.ndarray  # (1,) ridge


def discounted(n_arms: int, dim: int, *, strength: float, half_life: float) -> Discounted:
    """Return a fit without data; n_arms = 0 for one without biases."""
    checks.model_fits(dim, rows=n_arms + dim)
    return Discounted(
        np.zeros((2, n_arms)),
        np.zeros((2, n_arms, dim)),
        np.zeros(n_arms),
        np.zeros((2, dim, dim)),
        np.zeros(dim),
        np.eye(dim) / math.sqrt(strength),
        np.zeros(dim),
        np.zeros(1),
        np.array([strength, math.log(2.0) / half_life]),
    )


def windowed(dim: int, *, strength: float, window: int) -> Windowed:
    """Return a fit without data."""
    checks.model_fits(dim, rows=window)
    return Windowed(
        np.zeros((window, dim)),
        np.zeros(window),
        np.zeros(1, np.int64),
        np.zeros((dim, dim)),
        np.zeros(dim),
        np.eye(dim) / math.sqrt(strength),
        np.zeros(dim),
        np.zeros(1),
        np.array([strength]),
    )


@learn.register
def learn_discounted(fit: Discounted, arm, x, reward, n):
    for power in range(2):
        rate = fit.constants[RATE] * (1 + power)
        kept, added = math.exp(-n * rate), math.expm1(-n * rate) / math.expm1(-rate)  # 1 + gamma + ... + gamma^(n-1)
        age(fit.counts[power], kept)
        age(fit.context_sum[power].ravel(), kept)
        age(fit.gram[power].ravel(), kept)
        add_row(fit.gram[power], x, added)
        if fit.reward_sum.size > 0:
            fit.counts[power, arm] += added
            for j in range(x.size):
                fit.context_sum[power, arm, j] += added * x[j]
        if power == 0:
            age(fit.reward_sum, kept)
            age(fit.moment, kept)
            if fit.reward_sum.size > 0:
                fit.reward_sum[arm] += added * reward / n
            for j in range(x.size):
                fit.moment[j] += added * reward / n * x[j]
    solve(fit)


@compiled
def age(values, factor):
    """Multiply by the factor."""
    for i in range(values.size):
        values[i] *= factor


@compiled
def add_row(gram, x, weight):
    """Add weight x x'."""
    for i in range(x.size):
        for j in range(x.size):
            gram[i, j] += weight * x[i] * x[j]


@compiled
def solve(fit):
    """Eliminate the biases and solve for theta."""
    P, b = fit.gram[ONCE].copy(), fit.moment.copy()
    strength = fit.constants[STRENGTH]
    for i in range(b.size):
        P[i, i] += strength
    for arm in range(fit.reward_sum.size):
        weight, sums = fit.counts[ONCE, arm] + strength, fit.context_sum[ONCE, arm]
        add_row(P, sums, -1.0 / weight)
        for j in range(b.size):
            b[j] -= sums[j] * fit.reward_sum[arm] / weight
    refit(fit, P, b)


@predict.register
def predict_discounted(fit: Discounted, contexts, arms):
    means = times(contexts, fit.theta)
    return means + by_row(biases_of(fit), arms) if fit.reward_sum.size > 0 else means


@compiled
def biases_of(fit):
    """(K,) the part of every arm's mean reward that theta does not explain."""
    found = np.empty(fit.reward_sum.size)
    for arm in range(found.size):
        explained = dot(fit.context_sum[ONCE, arm], fit.theta)
        found[arm] = (fit.reward_sum[arm] - explained) / (fit.counts[ONCE, arm] + fit.constants[STRENGTH])
    return found


@leverages.register
def leverages_discounted(fit: Discounted, contexts, arms):
    strength, biases = fit.constants[STRENGTH], fit.reward_sum.size > 0
    found = np.empty(arms.size)
    for row in range(arms.size):
        own, x = arms[row], contexts[row].copy()
        if biases:
            for j in range(x.size):
                x[j] -= fit.context_sum[ONCE, own, j] / (fit.counts[ONCE, own] + strength)
        u = times(fit.root, combined(fit.root, x))  # the part of V^-1 z for theta
        total = dot(u, times(fit.gram[TWICE], u)) + strength * dot(u, u)
        for arm in range(fit.reward_sum.size):
            part = ((1.0 if arm == own else 0.0) - dot(fit.context_sum[ONCE, arm], u)) / (
                fit.counts[ONCE, arm] + strength
            )
            total += part * ((fit.counts[TWICE, arm] + strength) * part + 2.0 * dot(fit.context_sum[TWICE, arm], u))
        found[row] = max(total, 0.0)
    return found


@forget.register
def forget_discounted(fit: Discounted, strength):
    for array in (fit.counts.ravel(), fit.context_sum.ravel(), fit.gram.ravel(), fit.reward_sum, fit.moment):
        array.fill(0.0)
    solve(fit)


def fold_discounted(fit: Discounted, arm: int) -> None:
    """Centre the plays of a retired arm, so that its bias is gone, and what they teach of theta stays."""
    plays = fit.counts[ONCE, arm]
    if plays > 0.0:
        mean, twice = (
            fit.context_sum[ONCE, arm] / plays,
            np.outer(fit.context_sum[TWICE, arm], fit.context_sum[ONCE, arm]),
        )
        fit.gram[ONCE] -= plays * np.outer(mean, mean)
        fit.gram[TWICE] -= (twice + twice.T) / plays - fit.counts[TWICE, arm] * np.outer(mean, mean)
        fit.moment[:] -= mean * fit.reward_sum[arm]


@learn.register
def learn_windowed(fit: Windowed, arm, x, reward, n):
    each, size = reward / n, fit.rewards.size
    for _ in range(min(n, size)):
        place = fit.clock[0] % size
        dominated = fit.clock[0] >= size and drop_place(fit, place)
        fit.rewards[place] = each
        for j in range(x.size):
            fit.rows[place, j] = x[j]
        count_place(fit, place, 1.0)
        fit.clock[0] += 1
        if dominated or place == size - 1:
            sum_anew(fit)
    V = fit.gram.copy()
    for i in range(x.size):
        V[i, i] += fit.constants[STRENGTH]
    refit(fit, V, fit.moment)


@compiled
def count_place(fit, place, weight):
    """Add `weight` times the play at a place of the window to the sums."""
    add_row(fit.gram, fit.rows[place], weight)
    for j in range(fit.moment.size):
        fit.moment[j] += weight * fit.rewards[place] * fit.rows[place, j]


@compiled
def drop_place(fit, place):
    """Take the play at a place out of the sums; return whether it was so long that its rounding drowns the others."""
    count_place(fit, place, -1.0)
    for j in range(fit.moment.size):
        if fit.rows[place, j] ** 2 > _DROWNS * (fit.gram[j, j] + fit.constants[STRENGTH]):
            return True
    return False


@compiled
def sum_anew(fit):
    """Sum the full window: what was taken out of the sums has left its rounding behind."""
    fit.gram.fill(0.0)
    fit.moment.fill(0.0)
    for place in range(fit.rewards.size):
        count_place(fit, place, 1.0)


@predict.register
def predict_windowed(fit: Windowed, contexts, arms):
    return times(contexts, fit.theta)


@leverages.register
def leverages_windowed(fit: Windowed, contexts, arms):
    return row_squares(contexts @ fit.root)


@forget.register
def forget_windowed(fit: Windowed, strength):
    fit.clock.fill(0)
    fit.gram.fill(0.0)
    fit.moment.fill(0.0)
    refit(fit, strength * np.eye(fit.moment.size), fit.moment)
