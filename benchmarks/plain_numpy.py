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


class PlainAlbatross:
    """Albatross with biases, without certificate; the evidence from one eigendecomposition a value of r."""

    RIDGES, SIGNALS = 4.0 ** np.arange(-12, 8), 2.0 ** np.arange(-20, 27)

    def __init__(self, n_arms, dim):
        self.counts, self.reward_sum = np.zeros(n_arms), np.zeros(n_arms)
        self.row_sum = np.zeros((n_arms, dim + 1))  # rows are [1, x]
        self.gram, self.moment, self.square = np.zeros((dim + 1, dim + 1)), np.zeros(dim + 1), 0.0
        self.r, self.noise, self.in_use, self.next = 1.0, 1.0, 1.0, 16.0
        self.first_reward = self.inverse = None
        self.centred_moment = np.zeros(dim + 1)

    def select(self, contexts):
        rows = np.hstack([np.ones((len(contexts), 1)), contexts])
        if self.inverse is None:
            power = np.mean(np.einsum("ij,ij->i", contexts, contexts))
            self.inverse = np.diag(np.r_[1e6, np.full(contexts.shape[1], 1.0 / power)])
        beta, weights = self.inverse @ self.centred_moment, self.counts + self.r
        centred = rows - self.row_sum / weights[:, None]
        means = rows @ beta + (self.reward_sum - self.row_sum @ beta) / weights
        leverages = 1.0 / weights + np.einsum("ij,ij->i", centred @ self.inverse, centred)
        t = self.counts.sum() + 1.0
        return int(np.argmax(means + np.sqrt(2.0 * self.noise * leverages * np.log1p(t * leverages / self.in_use))))

    def update(self, arm, x, reward):
        if self.first_reward is None:
            self.first_reward = reward
        reward, row, weight = reward - self.first_reward, np.r_[1.0, x], self.counts[arm] + self.r
        share, c = weight / (weight + 1.0), row - self.row_sum[arm] / weight
        u = self.inverse @ c
        self.inverse -= np.outer(u, u * (share / (1.0 + share * (c @ u))))
        self.centred_moment += share * (reward - self.reward_sum[arm] / weight) * c
        self.counts[arm] += 1.0
        self.reward_sum[arm] += reward
        self.row_sum[arm] += row
        self.gram += np.outer(row, row)
        self.moment += reward * row
        self.square += reward**2
        if self.counts.sum() >= self.next:
            self.next = max(self.next * 2.0**0.25, self.next + 1.0)
            self.reestimate()

    def without_biases(self, r):
        share = 1.0 / (self.counts + r)
        P = self.gram - (self.row_sum * share[:, None]).T @ self.row_sum
        return P, self.moment - self.row_sum.T @ (share * self.reward_sum), self.square - share @ self.reward_sum**2

    def reestimate(self):
        t, dim = self.counts.sum(), self.moment.size - 1
        spread = 0.1 * (self.square / t - (self.moment[0] / t) ** 2)
        power, ridges = np.trace(self.gram[1:, 1:]) / t, self.RIDGES
        if t > 300:
            present = np.flatnonzero(ridges <= 1.01 * self.r)[-1]
            ridges = ridges[max(present - 1, 0) : present + 3]
        lams, logs, noises = power / self.SIGNALS, [], []
        for r in ridges:
            P, b, square = self.without_biases(r)
            inner = P[1:, 1:] - np.outer(P[1:, 0], P[0, 1:]) / P[0, 0]
            values, basis = np.linalg.eigh(inner)
            turned = basis.T @ (b[1:] - P[1:, 0] * b[0] / P[0, 0])
            explained = (turned**2 / (np.maximum(values, 0.0) + lams[:, None])).sum(axis=1)
            left = np.maximum(square - b[0] ** 2 / P[0, 0] - explained, 0.0) + spread
            log_det = np.log1p(np.maximum(values, 0.0) / lams[:, None]).sum(axis=1)
            complexity = np.log1p(self.counts / r).sum() + np.log(P[0, 0]) + log_det
            priors = 0.5 * np.log(r) - np.log1p(r) + 0.5 * np.log(self.SIGNALS) - np.log1p(self.SIGNALS)
            logs.append(priors - 0.5 * (complexity + t * np.log(left)))
            noises.append(left / t)
        weights = np.exp(np.array(logs) - np.max(logs))
        weights /= weights.sum()
        self.r = 1.0 / (weights.sum(axis=1) @ ridges**-0.5) ** 2
        lam = power / (weights.sum(axis=0) @ self.SIGNALS**0.5) ** 2
        self.noise = float((weights * np.array(noises)).sum())
        P, self.centred_moment, _ = self.without_biases(self.r)
        P.flat[:: dim + 2] += np.r_[1e-6, np.full(dim, lam)]
        self.inverse = np.linalg.inv(P)
        arms = self.counts + self.r
        means = self.row_sum / arms[:, None]
        spent = lam * np.trace(self.inverse[1:, 1:]) + 1e-6 * self.inverse[0, 0]
        spent += self.r * (1.0 / arms + np.einsum("ij,ij->i", means @ self.inverse, means)).sum()
        self.in_use = max(arms.size + dim + 1 - spent, 1.0)
