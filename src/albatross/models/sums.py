"""Sums over plays, and the evidence that they give for a normal prior: the model of Albatross.

    y = m + mu_i + <x, theta> + noise,   m flat,  mu_i ~ N(0, sigma^2 / r),  theta_j ~ N(0, sigma^2 / precision_j).

Biases, intercept and theta are integrated out in closed form, and so is sigma^2 (MacKay 1992).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled, generic
from albatross.linalg.vectors import dot
from albatross.models.ridge import Joint, Ridge
from albatross.models.soft_support import factorise

_LEAST = 1e-300  # of what the plays say about the intercept: nothing, once all arms that were played have retired
_EQUAL = 1e-250  # a variance of rewards below this is none: forgetting halves it as long as rewards are equal


class Totals(NamedTuple):
    """Sums over all plays of rows [1, x] and rewards y."""

    gram: np.ndarray  # (d + 1, d + 1) sum of [1, x][1, x]'; the first entry counts the plays that are not forgotten
    moment: np.ndarray  # (d + 1,) sum of y [1, x]
    square: np.ndarray  # (1,) sum of y^2


class Sums(NamedTuple):
    """Sums over the plays of every arm, none without biases, and over all plays."""

    rows: np.ndarray  # (K, d + 1) sum of [1, x]
    rewards: np.ndarray  # (K,) sum of y
    totals: Totals


class Reduced(NamedTuple):
    """Normal equations for theta, with biases and intercept integrated out."""

    matrix: np.ndarray  # (d, d)
    moment: np.ndarray  # (d,)
    square: float
    penalty: float  # ln det of what was integrated out


def no_totals(dim: int) -> Totals:
    """Return the sums before the first play."""
    return Totals(np.zeros((dim + 1, dim + 1)), np.zeros(dim + 1), np.zeros(1))


sums_of = generic("sums_of")  # sums_of(fit, totals) -> Sums, of which the fit keeps those of every arm


@sums_of.register
def sums_of_joint(fit: Joint, totals):
    return Sums(fit.context_sum, fit.reward_sum, totals)


@sums_of.register
def sums_of_ridge(fit: Ridge, totals):
    return Sums(np.empty((0, fit.theta.size)), np.empty(0), totals)


@compiled
def add_to_totals(totals, row, reward, n):
    """Add n plays of `row` with reward `reward` each."""
    for i in range(row.size):
        totals.moment[i] += n * reward * row[i]
        weight = n * row[i]
        for j in range(row.size):
            totals.gram[i, j] += weight * row[j]
    totals.square[0] += n * reward * reward


@compiled
def add_plays(sums, arm, row, reward, n):
    """Add n plays of an arm's `row` with reward `reward` each."""
    if sums.rewards.size > 0:
        sums.rewards[arm] += n * reward
        for j in range(row.size):
            sums.rows[arm, j] += n * row[j]
    add_to_totals(sums.totals, row, reward, n)


@compiled
def parts(sums):
    """Return all sums as vectors."""
    totals = sums.totals
    return sums.rows.ravel(), totals.gram.ravel(), sums.rewards, totals.moment, totals.square


@compiled
def scale_sums(sums, factor):
    """Multiply all sums by a factor."""
    for part in parts(sums):
        for i in range(part.size):
            part[i] *= factor


@compiled
def add_sums(sums, other):
    """Add other sums to these."""
    for part, more in zip(parts(sums), parts(other)):  # noqa: B905  Numba's zip has no `strict`
        for i in range(part.size):
            part[i] += more[i]


def fold(sums: Sums, arm: int) -> None:
    """Centre the plays of an arm in the sums over all plays: its bias is gone, and what they teach of theta stays."""
    totals = sums.totals
    if sums.rows[arm, 0] > 0.0:
        plays, x, reward = sums.rows[arm, 0], sums.rows[arm, 1:], sums.rewards[arm]
        totals.gram[1:, 1:] -= np.outer(x, x) / plays
        totals.gram[0, 1:] -= x
        totals.gram[1:, 0] -= x
        totals.moment[1:] -= x * reward / plays
        totals.moment[0] -= reward
        totals.square[0] -= reward**2 / plays


@compiled
def of_played_arms(sums):
    """Return the same without arms that were not played: they have no part in the evidence, but cost time."""
    rows, rewards = sums.rows, sums.rewards
    n, kept = 0, np.empty(rewards.size, np.int64)
    for arm in range(rewards.size):
        if rows[arm, 0] > 0.0:
            kept[n] = arm
            n += 1
    return Sums(rows[kept[:n]], rewards[kept[:n]], sums.totals)


@compiled
def reward_variance(totals):
    """Return the variance of the rewards, 0 if they are equal."""
    t = totals.gram[0, 0]
    variance = totals.square[0] / t - (totals.moment[0] / t) ** 2
    return variance if variance > _EQUAL else 0.0


@compiled
def without_biases(sums, r):
    """Return matrix, moment and square for m and theta, with biases integrated out."""
    rows, rewards = sums.rows, sums.rewards
    P, b, square = sums.totals.gram.copy(), sums.totals.moment.copy(), sums.totals.square[0]
    if rewards.size > 0:
        share = 1.0 / (rows[:, 0] + r)
        shrunk = rows * share.reshape((-1, 1))
        P -= shrunk.T @ rows
        b -= shrunk.T @ rewards
        square -= np.sum(share * rewards * rewards)
        # The row of m, computed without cancellation: n - n^2 / (n + r) = n r / (n + r).
        kept = (r * share) @ rows
        for j in range(kept.size):
            P[0, j] = kept[j]
            P[j, 0] = kept[j]
        b[0] = r * np.sum(share * rewards)
    return P, b, square


@compiled
def reduce_sums(sums, r):
    """Integrate out biases and intercept."""
    P, b, square = without_biases(sums, r)
    dim, first = b.size - 1, max(P[0, 0], _LEAST)
    matrix, moment = np.empty((dim, dim)), np.empty(dim)
    for i in range(dim):
        share = P[i + 1, 0] / first
        moment[i] = b[i + 1] - share * b[0]
        for j in range(dim):
            matrix[i, j] = P[i + 1, j + 1] - share * P[0, j + 1]
    penalty = np.sum(np.log1p(sums.rows[:, 0] / r)) + math.log(first)
    return Reduced(matrix, moment, square - b[0] * b[0] / first, penalty)


@compiled
def evidence(reduced, precisions, t, prior_square):
    """Return the log evidence of t plays for these precisions of theta, and the estimate of sigma^2 under them.

    `prior_square` is what the prior of sigma^2 adds to the sum of squared errors.
    """
    dim, moment = precisions.size, reduced.moment
    below = np.empty((dim, dim))  # I + M, M the matrix scaled from both sides; then its Cholesky factor
    scale = 1.0 / np.sqrt(precisions)
    for i in range(dim):
        for j in range(i + 1):
            below[i, j] = reduced.matrix[i, j] * scale[i] * scale[j]
        below[i, i] += 1.0
    factorise(below)
    solved, explained, log_det = np.empty(dim), 0.0, 0.0
    for i in range(dim):
        solved[i] = (moment[i] * scale[i] - dot(below[i, :i], solved[:i])) / below[i, i]
        explained += solved[i] * solved[i]
        log_det += 2.0 * math.log(below[i, i])
    left = max(reduced.square - explained, 0.0) + prior_square
    return -0.5 * (reduced.penalty + log_det + t * math.log(left)), left / t
