"""Albatross from all plays at once: every play has a weight, and nothing is kept but plays, weights and the prior."""

from __future__ import annotations

from math import lgamma

import numpy as np

from plain_numpy import second_moments

RIDGES, NO_BIASES, SIGNALS = 4.0 ** np.arange(-12, 8), 4.0**20, 2.0 ** np.arange(-20, 27)
HALF_LIVES = [np.inf, 4000, 1000, 250, 60]


def half_cauchy(u):
    return np.sqrt(u) / (1 + u)


class Slow:
    """The policy; contexts are given in its unit."""

    def __init__(self, policy, n_arms, dim):
        self.policy, self.n_arms, self.dim = policy, n_arms, dim
        self.arms, self.X, self.y, self.w = np.empty(0, int), np.empty((0, dim)), np.empty(0), np.empty(0)
        self.r, self.act, self.sig2, self.D, self.p = 1.0, np.ones(dim), 1.0, 1.0, 0.5
        self.E, self.looks, self.next, self.last = 0.0, 0, 8.0, 0
        self.memories, self.weights = [np.empty(0) for _ in HALF_LIVES], np.full(5, 0.2)
        self.in_use = 0

    # ---- the posterior

    def features(self, arms, X):
        biases = np.eye(self.n_arms)[arms] if self.policy.biases else np.empty((len(X), 0))
        return np.hstack([biases, np.ones((len(X), 1)), X])

    def posterior(self, arms, X):
        """Means and leverages of some rows."""
        prior = np.diag(np.r_[[self.r] * (self.n_arms * self.policy.biases), 1e-6, self.act])
        Z, z = self.features(self.arms, self.X), self.features(arms, X)
        V = np.linalg.inv(prior + Z.T @ (self.w[:, None] * Z))
        self.freedom = len(V) - np.trace(prior @ V)
        return z @ V @ Z.T @ (self.w * self.y), np.sum(z @ V * z, axis=1)

    def index(self, X, pending):
        means, h = self.posterior(np.arange(self.n_arms), X)
        h = 1 / (1 / h + pending)  # as if each had been played so often with this context
        return means, np.sqrt(2 * self.sig2 * h * np.log(1 + (self.w.sum() + 1) * h / self.D))

    # ---- the evidence

    def reduced(self, w, r):
        """A, a and q for theta, and the penalty."""
        s = np.sqrt(w)
        B = s[:, None] * np.eye(self.n_arms)[self.arms] / np.sqrt(r)
        C = np.eye(len(w)) + (B @ B.T if self.policy.biases else 0.0)
        inverse = np.linalg.inv(C)
        one = inverse @ s
        inverse -= np.outer(one, one) / (s @ one)
        X, y = s[:, None] * self.X, s * self.y
        return X.T @ inverse @ X, X.T @ inverse @ y, y @ inverse @ y, np.linalg.slogdet(C)[1] + np.log(s @ one)

    def ev(self, reduced, lam, t):
        A, a, q, penalty = reduced
        lam = np.broadcast_to(lam, a.shape)
        left = max(q - a @ np.linalg.solve(A + np.diag(lam), a), 0.0) + self.b2
        log_det = np.linalg.slogdet(np.eye(len(a)) + A / np.sqrt(np.outer(lam, lam)))[1]
        return -(penalty + log_det + t * np.log(left)) / 2, left / t

    # ---- learning

    def learn(self, arm, x, y):
        if len(self.y) == 0:
            self.first = y
        y -= self.first
        if self.looks == 0:
            mean, h = self.posterior(np.array([arm]), x[None])
            self.E += (y - mean[0]) ** 2 / (1 + h[0])
        self.arms, self.X = np.append(self.arms, arm), np.vstack([self.X, x])
        self.y, self.w = np.append(self.y, y), np.append(self.w, 1.0)
        t = self.w.sum()
        var = self.w @ self.y**2 / t - (self.w @ self.y / t) ** 2
        if self.looks == 0 and var > 0:
            self.sig2 = (self.E + 0.1 * var) / t
        if len(self.y) >= self.next:
            memory, growth = self.policy.memory, max((2**0.25 - 1) * self.next, 1.0)
            if memory is not None:
                growth = min(growth, 32.0 if memory == "learnt" else max(memory / 8, 1.0))
            self.next += growth
            if var > 0:
                self.b2 = 0.1 * var
                self.look()

    def look(self):
        if self.looks:
            before, t = self.reduced(self.w, self.r), self.w.sum()
            gain = self.ev(before, self.sparse, t)[0] - self.evS - self.ev(before, self.lam, t)[0] + self.evD
            odds = np.exp(np.clip(np.log(self.p / (1 - self.p)) + gain, -500, 500))
            self.p = 0.98 * odds / (1 + odds) + 0.01
        self.forget()
        t = self.w.sum()
        power = max(self.w @ np.sum(self.X**2, axis=1) / t, 1e-12)
        ridges, priors = (
            np.append(RIDGES, NO_BIASES),
            np.append(0.9 * half_cauchy(RIDGES) / sum(half_cauchy(RIDGES)), 0.1),
        )
        if not self.policy.biases:
            ridges, priors = np.ones(1), np.ones(1)
        elif t > 300:
            k = np.flatnonzero(1.01 * self.r >= RIDGES)[-1] if 1.01 * self.r >= RIDGES[0] else 0
            kept = np.r_[max(k - 1, 0) : min(k + 3, 20), 20]
            ridges, priors = ridges[kept], priors[kept]
        logs, variances = np.empty((len(ridges), len(SIGNALS))), np.empty((len(ridges), len(SIGNALS)))
        for i, r in enumerate(ridges):
            reduced = self.reduced(self.w, r)
            for s, signal in enumerate(SIGNALS):
                found, variances[i, s] = self.ev(reduced, power / signal, t)
                logs[i, s] = found + np.log(priors[i]) + np.log(half_cauchy(signal))
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        self.r = np.sum(weights * ridges[:, None] ** -0.5) ** -2
        self.lam = power / np.sum(weights * SIGNALS**0.5) ** 2
        sigD = np.sum(weights * variances)
        reduced = self.reduced(self.w, self.r)
        if self.looks == 0:
            self.sparse, self.sigS = np.full(self.dim, self.lam), sigD
        self.revise_sparse(reduced, t)
        self.evS, self.sigS = self.ev(reduced, self.sparse, t)
        self.evD, _ = self.ev(reduced, self.lam, t)
        self.sig2 = self.p * self.sigS + (1 - self.p) * sigD
        self.act = self.sig2 / (self.p * self.sigS / self.sparse + (1 - self.p) * sigD / self.lam)
        self.posterior(self.arms[:1], self.X[:1])
        self.D = max(self.freedom, 1.0)
        self.looks += 1

    def revise_sparse(self, reduced, t):
        A, a, _, _ = reduced
        s = np.sqrt(np.maximum(np.diag(A), 0) / t)
        seen = (np.diag(A) > 1e-12 * (self.w @ self.X**2)) & (s > 1e-9 * s.max())
        self.sparse[~seen] = self.lam
        for _ in range(3 if seen.any() else 0):
            C = np.linalg.inv(A + np.diag(self.sparse))
            own = np.minimum(np.diag(C) * self.sparse, 1 - 1e-12)[seen]
            tau = self.sparse[seen] * (1 / own - 1) / s[seen] ** 2
            nu = (C @ a)[seen] * self.sparse[seen] / (own * s[seen] * np.sqrt(self.sigS))
            self.sparse[seen] = np.sqrt(self.sparse[seen] * s[seen] ** 2 / second_moments(tau, nu))

    def forget(self):
        since, self.last = len(self.y) - self.last, len(self.y)
        memory = self.policy.memory
        if memory is None:
            return
        if memory != "learnt":
            self.w = self.w * 2 ** (-since / memory)
            return

        def predictive(w):
            found = self.ev(self.reduced(w, self.r), self.act, w.sum())[0]
            return found + lgamma(w.sum() / 2) + w.sum() / 2 * np.log(2)

        gains = np.zeros(5)
        for j, half_life in enumerate(HALF_LIVES):
            grown = np.append(self.memories[j], np.ones(since))
            if self.looks:
                gains[j] = predictive(grown) - predictive(np.append(self.memories[j], np.zeros(since)))
            self.memories[j] = grown * 2 ** (-since / half_life)
        w = self.weights * np.exp(np.maximum(gains - gains.max(), -500))
        w = 0.98 * w / w.sum() + 0.004
        used = np.flatnonzero(w >= 0.1 * w.max())[0]
        for j in range(used):
            if w[j] < 0.01 * w[used] + 0.004:
                self.memories[j], w[j] = self.memories[used].copy(), w[used] / 2
        self.weights, self.w, self.in_use = w / w.sum(), self.memories[used].copy(), used
