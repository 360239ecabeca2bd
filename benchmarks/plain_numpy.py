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
    """Albatross without memory and options: two priors of theta, averaged by evidence at the looks."""

    RIDGES = np.r_[4.0 ** np.arange(-12, 8), 4.0**20]
    SIGNALS = 2.0 ** np.arange(-20, 27)

    def __init__(self, n_arms, dim):
        half_cauchy = np.sqrt(self.RIDGES[:-1]) / (1.0 + self.RIDGES[:-1])
        self.log_priors = np.log(np.r_[0.9 * half_cauchy / half_cauchy.sum(), 0.1])
        self.counts, self.reward_sum, self.row_sum = np.zeros(n_arms), np.zeros(n_arms), np.zeros((n_arms, dim + 1))
        self.gram, self.moment, self.square = np.zeros((dim + 1, dim + 1)), np.zeros(dim + 1), 0.0
        self.r, self.act, self.noise, self.in_use, self.p = 1.0, np.ones(dim), 1.0, 1.0, 0.5
        self.errors, self.looks, self.next, self.unit, self.first_reward = 0.0, 0, 8.0, None, None
        self.inverse, self.centred_moment = np.diag(np.r_[1e6, np.ones(dim)]), np.zeros(dim + 1)

    def estimates(self, arms, rows):
        beta, weights = self.inverse @ self.centred_moment, self.counts[arms] + self.r
        centred = rows - self.row_sum[arms] / weights[:, None]
        leverages = 1.0 / weights + np.einsum("ij,ij->i", centred @ self.inverse, centred)
        return rows @ beta + (self.reward_sum[arms] - self.row_sum[arms] @ beta) / weights, leverages

    def select(self, contexts):
        if self.unit is None:
            self.unit = np.sqrt(np.mean(np.einsum("ij,ij->i", contexts, contexts)))
        rows = np.hstack([np.ones((len(contexts), 1)), contexts / self.unit])
        means, h = self.estimates(np.arange(len(rows)), rows)
        t = self.counts.sum() + 1.0
        return int(np.argmax(means + np.sqrt(2.0 * self.noise * h * np.log1p(t * h / self.in_use))))

    def update(self, arm, x, reward):
        if self.first_reward is None:
            self.first_reward = reward
        reward, row, weight = reward - self.first_reward, np.r_[1.0, x / self.unit], self.counts[arm] + self.r
        if self.looks == 0:
            (mean,), (h,) = self.estimates([arm], row[None])
            self.errors += (reward - mean) ** 2 / (1.0 + h)
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
        t = self.counts.sum()
        variance = self.square / t - (self.moment[0] / t) ** 2
        if self.looks == 0 and variance > 0.0:
            self.noise = (self.errors + 0.1 * variance) / t
        if t >= self.next:
            self.next += max((2.0**0.25 - 1.0) * self.next, 1.0)
            if variance > 0.0:
                self.look(t, 0.1 * variance)

    def without_biases(self, r):
        share = 1.0 / (self.counts + r)
        P = self.gram - (self.row_sum * share[:, None]).T @ self.row_sum
        b, square = self.moment - self.row_sum.T @ (share * self.reward_sum), self.square - share @ self.reward_sum**2
        P[0] = P[:, 0] = (r * share) @ self.row_sum
        b[0] = r * share @ self.reward_sum
        return P, b, square

    def reduced(self, r):
        P, b, square = self.without_biases(r)
        penalty = np.log1p(self.counts / r).sum() + np.log(P[0, 0])
        inner, moment = P[1:, 1:] - np.outer(P[1:, 0], P[0, 1:]) / P[0, 0], b[1:] - P[1:, 0] * b[0] / P[0, 0]
        return inner, moment, square - b[0] ** 2 / P[0, 0], penalty

    def evidence(self, reduced, lam, t, prior_square):
        inner, moment, square, penalty = reduced
        lam = np.broadcast_to(lam, moment.shape)
        left = max(square - moment @ np.linalg.solve(inner + np.diag(lam), moment), 0.0) + prior_square
        scaled = inner / np.sqrt(np.outer(lam, lam))
        log_det = np.linalg.slogdet(np.eye(lam.size) + scaled)[1]
        return -0.5 * (penalty + log_det + t * np.log(left)), left / t

    def look(self, t, prior_square):
        if self.looks:
            reduced = self.reduced(self.r)
            sparse, dense = (self.evidence(reduced, lam, t, prior_square)[0] for lam in (self.sparse, self.lam))
            odds = np.log(self.p / (1.0 - self.p)) + (sparse - self.ev_sparse) - (dense - self.ev_dense)
            self.p = 0.98 / (1.0 + np.exp(-np.clip(odds, -500.0, 500.0))) + 0.01
        noise_dense = self.look_dense(t, prior_square)
        reduced = self.reduced(self.r)
        if not self.looks:
            self.sparse, self.noise_sparse = np.full(self.act.size, self.lam), noise_dense
        self.look_sparse(reduced, t)
        self.ev_sparse, self.noise_sparse = self.evidence(reduced, self.sparse, t, prior_square)
        self.ev_dense = self.evidence(reduced, self.lam, t, prior_square)[0]
        self.noise = self.p * self.noise_sparse + (1.0 - self.p) * noise_dense
        self.act = self.noise / (self.p * self.noise_sparse / self.sparse + (1.0 - self.p) * noise_dense / self.lam)
        self.looks += 1
        self.rebuild()

    def look_dense(self, t, prior_square):
        power, which = max(np.trace(self.gram[1:, 1:]) / t, 1e-12), np.arange(self.RIDGES.size)
        if t > 300:
            present = np.flatnonzero(self.RIDGES[:-1] <= 1.01 * self.r)[-1]
            which = np.r_[which[:-1][max(present - 1, 0) : present + 3], which[-1]]
        lams, logs, noises = power / self.SIGNALS, [], []
        for k in which:
            inner, moment, square, penalty = self.reduced(self.RIDGES[k])
            values, basis = np.linalg.eigh(inner)
            turned, values = basis.T @ moment, np.maximum(values, 0.0)
            left = np.maximum(square - (turned**2 / (values + lams[:, None])).sum(axis=1), 0.0) + prior_square
            penalty = penalty + np.log1p(values / lams[:, None]).sum(axis=1)
            logs.append(self.log_priors[k] + 0.5 * np.log(self.SIGNALS) - np.log1p(self.SIGNALS))
            logs[-1] -= 0.5 * (penalty + t * np.log(left))
            noises.append(left / t)
        weights = np.exp(np.array(logs) - np.max(logs))
        weights /= weights.sum()
        self.r = 1.0 / (weights.sum(axis=1) @ self.RIDGES[which] ** -0.5) ** 2
        self.lam = power / (weights.sum(axis=0) @ self.SIGNALS**0.5) ** 2
        return float((weights * np.array(noises)).sum())

    def look_sparse(self, reduced, t):
        inner, moment = reduced[:2]
        spread = np.sqrt(np.maximum(np.diag(inner), 0.0) / t)
        for _ in range(3):
            covariance = np.linalg.inv(inner + np.diag(self.sparse))
            own = np.minimum(np.diag(covariance) * self.sparse, 1.0 - 1e-12)
            tau = self.sparse * (1.0 / own - 1.0) / spread**2
            nu = covariance @ moment * self.sparse / (own * spread * np.sqrt(self.noise_sparse))
            self.sparse = np.sqrt(self.sparse * spread**2 / second_moments(tau, nu))

    def rebuild(self):
        P, self.centred_moment, _ = self.without_biases(self.r)
        self.inverse = np.linalg.inv(P + np.diag(np.r_[1e-6, self.act]))
        arms = self.counts + self.r
        means = self.row_sum / arms[:, None]
        spent = self.act @ np.diag(self.inverse)[1:] + 1e-6 * self.inverse[0, 0]
        spent += self.r * (1.0 / arms + np.einsum("ij,ij->i", means @ self.inverse, means)).sum()
        self.in_use = max(arms.size + self.moment.size - spent, 1.0)


def second_moments(tau, nu):
    """Of coefficients that are 0, or +-m_k give or take m_k / 4."""
    e = np.abs(nu) / tau
    fine = 1 / np.sqrt(tau.max())
    top = max(e.max(), 1e-6 * fine)
    n = int(np.clip(np.ceil(np.log(top / min(fine, top / 2)) / np.log(np.sqrt(2))) + 1, 3, 14))
    m = top / np.sqrt(2) ** np.arange(n)
    g, e, tau = m**2 / 16, e[:, None], tau[:, None]
    v = g + 1 / tau
    x = np.exp(-2 * e * m / v)
    logs = np.hstack([np.log(tau) / 2 - tau * e**2 / 2, -np.log(v) / 2 - (e - m) ** 2 / (2 * v) + np.log((1 + x) / 2)])
    L = np.exp(logs - logs.max(axis=1, keepdims=True))
    w = np.r_[0.99, np.full(n, 0.01 / n)]
    for _ in range(100):
        R = w * L / (L @ w)[:, None]
        w = np.r_[10.0, np.full(n, 1 / n)] + R.sum(axis=0)
        w /= w.sum()
    R = (w * L / (L @ w)[:, None])[:, 1:]
    u = 1 / (tau + 1 / g)
    o, c = e * tau * u, m / (1 + tau * g)
    return np.maximum(np.sum(R * (u + ((o + c) ** 2 + x * (o - c) ** 2) / (1 + x)), axis=1), 1e-6 / tau[:, 0])
