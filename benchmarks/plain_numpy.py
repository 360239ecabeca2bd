"""The same policies as plain vectorised NumPy: what a careful user would write without this package.

They are the yardstick of the benchmarks and, arm for arm, a check on the compiled ones (tests/test_benchmarks.py).
"""

from __future__ import annotations

import numpy as np


class PlainOFULPlus:
    """OFUL+ with the centred estimator and the main text's widths."""

    def __init__(self, n_arms, dim, *, norm_bound, horizon, delta=0.1, sigma=1.0, rho_min=1.0, scale=0.5):
        self.counts = np.zeros(n_arms)
        self.reward_sum = np.zeros(n_arms)
        self.context_sum = np.zeros((n_arms, dim))
        self.inverse = np.eye(dim)
        self.moment = np.zeros(dim)
        self.theta = np.zeros(dim)
        self.plays = 0
        self.width = scale * (sigma + norm_bound) * np.sqrt(dim * np.log(1 / delta))
        level = np.log(n_arms * (horizon - n_arms) / delta)
        self.radius = scale * (sigma * np.sqrt(dim) + norm_bound) / rho_min * np.sqrt(level)
        self.unplayed = n_arms

    def select(self, contexts):
        if self.unplayed:
            return int(np.argmin(self.counts))
        biases = (self.reward_sum - self.context_sum @ self.theta) / self.counts
        widths = self.width / np.sqrt(self.counts)
        lengths = np.sqrt(np.einsum("ij,ij->i", contexts, contexts))
        reach = self.radius / np.sqrt(max(self.plays, 1))
        return int(np.argmax(biases + widths + contexts @ self.theta + reach * lengths))

    def update(self, arm, x, reward):
        count = self.counts[arm]
        if count > 0:
            self.plays += 1
            weight = count / (count + 1)
            c = x - self.context_sum[arm] / count
            u = self.inverse @ c
            self.inverse -= np.outer(u, u * (weight / (1 + weight * (c @ u))))
            self.moment += weight * (reward - self.reward_sum[arm] / count) * c
            self.theta = self.inverse @ self.moment
        else:
            self.unplayed -= 1
        self.counts[arm] += 1
        self.reward_sum[arm] += reward
        self.context_sum[arm] += x


class PlainLinUCB:
    """LinUCB without biases."""

    def __init__(self, n_arms, dim, *, alpha=1.0, ridge=1.0):
        self.alpha = alpha
        self.inverse = np.eye(dim) / ridge
        self.moment = np.zeros(dim)
        self.theta = np.zeros(dim)

    def select(self, contexts):
        leverages = np.einsum("ij,ij->i", contexts @ self.inverse, contexts)
        return int(np.argmax(contexts @ self.theta + self.alpha * np.sqrt(leverages)))

    def update(self, arm, x, reward):
        u = self.inverse @ x
        self.inverse -= np.outer(u, u / (1 + x @ u))
        self.moment += reward * x
        self.theta = self.inverse @ self.moment
